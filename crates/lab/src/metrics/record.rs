//! What one flow delivered, and when.

use super::repairs::{Departure, Repairs};
use super::serials::Serials;
use super::{Delays, Detail, Fingerprint, Level, SharedVideo, Video, Viewed, Wanted};
use anabranch_base::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{MutexGuard, PoisonError};

/// A record that both ends of a flow write to.
pub type SharedRecord = Rc<RefCell<Record>>;

/// What one flow delivered, and when. Bytes are payload.
#[derive(Clone, Debug)]
pub struct Record {
    /// Deliveries before this count for the fingerprint and the bins only.
    from: Instant,
    wanted: Wanted,
    bin: Duration,
    bins: Vec<u64>,
    /// By the path they came on, when that is asked for.
    path_bins: Option<Vec<Vec<u64>>>,
    fingerprint: Fingerprint,
    /// Delivered since `from`.
    pub bytes: u64,
    /// Messages or segments delivered since `from`.
    pub messages: u64,
    /// From a packet's first transmission to its first arrival.
    pub packet_delay: Delays,
    /// From the first transmission of a message's beginning until it is handed over in order.
    pub in_order_delay: Delays,
    /// From the moment the source made a message until it is handed over.
    pub message_delay: Delays,
    /// Deadlines of messages that were made.
    due: Vec<Instant>,
    /// Those of messages that were handed over in time.
    met: Vec<Instant>,
    sent: Serials,
    begun: Serials,
    born: Serials,
    deadlines: Serials,
    /// Bytes in the reorder buffer.
    pub held: Level,
    /// Gaps in the sequence of received TSNs.
    pub holes: Level,
    video: Option<SharedVideo>,
    /// Every transmission, where that is asked for.
    repairs: Option<Box<Repairs>>,
}

impl Record {
    /// An empty record that counts from `from` and keeps whatever there is, deliveries by `bin`.
    pub fn new(from: Instant, bin: Duration) -> Self {
        Record::with(from, bin, Wanted::ALL)
    }

    /// An empty record that keeps only what is wanted.
    pub fn with(from: Instant, bin: Duration, wanted: Wanted) -> Self {
        Record {
            from,
            wanted,
            bin,
            bins: Vec::new(),
            path_bins: wanted.paths.then(Vec::new),
            fingerprint: Fingerprint::default(),
            bytes: 0,
            messages: 0,
            packet_delay: Delays::of(wanted.packet),
            in_order_delay: Delays::of(wanted.in_order),
            message_delay: Delays::of(wanted.message),
            due: Vec::new(),
            met: Vec::new(),
            sent: Serials::default(),
            begun: Serials::default(),
            born: Serials::default(),
            deadlines: Serials::default(),
            held: Level::new(from),
            holes: Level::new(from),
            video: None,
            repairs: wanted.repairs.then(|| Box::new(Repairs::new(from))),
        }
    }

    /// An empty record for both ends of a flow.
    pub fn shared(from: Instant, bin: Duration) -> SharedRecord {
        Rc::new(RefCell::new(Record::new(from, bin)))
    }

    /// What it keeps.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// The source made message `number` at `at`.
    pub fn made(&mut self, number: u32, at: Instant, deadline: Option<Instant>) {
        // A deadline counts for messages made since `from`.
        if self.wanted.births() {
            self.born.note(number, at);
        }
        if let Some(deadline) = deadline.filter(|_| self.wanted.deadlines) {
            self.deadlines.note(number, deadline);
            if at >= self.from {
                self.due.push(deadline);
            }
        }
    }

    /// A packet left, perhaps not for the first time.
    pub fn transmitted(&mut self, serial: u32, at: Instant) {
        if self.wanted.packet > Detail::Nothing {
            self.sent.note(serial, at);
        }
    }

    /// A chunk left, perhaps not for the first time.
    pub fn chunk_left(&mut self, d: &Departure) {
        if let Some(r) = &mut self.repairs {
            r.left(d);
        }
    }

    /// A chunk came in the sender's packet of this number.
    pub fn chunk_came(&mut self, tsn: u32, packet: u32, at: Instant) {
        if let Some(r) = &mut self.repairs {
            r.came(tsn, packet, at);
        }
    }

    /// All that is known of repairs, where that was asked for.
    pub fn repairs(&self) -> Option<&Repairs> {
        self.repairs.as_deref()
    }

    /// To note what senders and links say of transmissions.
    pub fn repairs_mut(&mut self) -> Option<&mut Repairs> {
        self.repairs.as_deref_mut()
    }

    /// The beginning of message `number` left, perhaps not for the first time.
    pub fn begun(&mut self, number: u32, at: Instant) {
        if self.wanted.in_order > Detail::Nothing {
            self.begun.note(number, at);
        }
    }

    /// A packet arrived, perhaps not for the first time.
    pub fn arrived(&mut self, serial: u32, at: Instant) {
        if let Some(sent) = self.sent.take(serial) {
            self.travelled(sent, at);
        }
    }

    /// A packet that left at `sent` arrived for the first time.
    pub fn travelled(&mut self, sent: Instant, at: Instant) {
        if sent >= self.from && self.wanted.packet > Detail::Nothing {
            self.packet_delay.add(at - sent);
        }
    }

    /// Message `number` was handed over.
    pub fn handed_over(&mut self, number: u32, stream: u16, len: u64, at: Instant) {
        self.delivered(stream, len, at);
        if !self.wanted.messages() {
            return;
        }
        let (begun, born) = (self.begun.take(number), self.born.take(number));
        let deadline = self.deadlines.take(number);
        if let Some(begun) = begun.filter(|t| *t >= self.from) {
            self.in_order_delay.add(at - begun);
        }
        if let Some(born) = born.filter(|t| *t >= self.from) {
            if self.wanted.message > Detail::Nothing {
                self.message_delay.add(at - born);
            }
            self.met.extend(deadline.filter(|d| at <= *d));
        }
    }

    /// A message of a stream was handed over; the stream itself counts for what was delivered.
    pub fn message(&mut self, born: Instant, begun: Instant, at: Instant) {
        if begun >= self.from && self.wanted.in_order > Detail::Nothing {
            self.in_order_delay.add(at - begun);
        }
        if born >= self.from && self.wanted.message > Detail::Nothing {
            self.message_delay.add(at - born);
        }
    }

    /// `len` bytes were handed over, which are a message or the end of one.
    pub fn delivered(&mut self, stream: u16, len: u64, at: Instant) {
        self.part(stream, len, at);
        if at >= self.from {
            self.messages += 1;
        }
    }

    /// `len` bytes of a message were handed over, of which more follows.
    pub fn part(&mut self, stream: u16, len: u64, at: Instant) {
        self.fingerprint.add(at.as_nanos());
        self.fingerprint.add(u64::from(stream) << 48 ^ len);
        if self.wanted.bins && !self.bin.is_zero() {
            let bin = (at.as_nanos() / self.bin.as_nanos()) as usize;
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += len;
        }
        if at >= self.from {
            self.bytes += len;
        }
    }

    /// What is sent are the packets of these frames.
    pub fn watch(&mut self, video: SharedVideo) {
        self.video = Some(video);
    }

    /// The flow's packet `number`, from 0, was handed over: of a video.
    pub fn packet(&mut self, number: u64, at: Instant) {
        if let Some(v) = &self.video {
            v.lock().unwrap_or_else(PoisonError::into_inner).packet(number as usize, at);
        }
    }

    /// The next `bytes` of a stream were handed over: of a video.
    pub fn stream(&mut self, bytes: u64, at: Instant) {
        if let Some(v) = &self.video {
            v.lock().unwrap_or_else(PoisonError::into_inner).stream(bytes, at);
        }
    }

    /// What a viewer of the video saw up to `until`.
    pub fn viewed(&self, until: Instant) -> Option<Viewed> {
        let v = self.video.as_ref()?;
        Some(v.lock().unwrap_or_else(PoisonError::into_inner).viewed(self.from, until))
    }

    /// The frames that a viewer watches.
    pub fn video(&self) -> Option<MutexGuard<'_, Video>> {
        Some(self.video.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Messages whose deadline has passed by `until`, and how many of them were in time.
    pub fn deadlines(&self, until: Instant) -> (u64, u64) {
        let passed = |of: &[Instant]| of.iter().filter(|d| **d <= until).count() as u64;
        (passed(&self.due), passed(&self.met))
    }

    /// Bytes delivered in each bin since the run began.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// `len` bytes of payload came on path `path`, from 0, perhaps not for the first time.
    pub fn came_on(&mut self, path: usize, len: u64, at: Instant) {
        let Some(paths) = self.path_bins.as_mut().filter(|_| !self.bin.is_zero()) else { return };
        if path >= paths.len() {
            paths.resize(path + 1, Vec::new());
        }
        let bin = (at.as_nanos() / self.bin.as_nanos()) as usize;
        let bins = &mut paths[path];
        if bin >= bins.len() {
            bins.resize(bin + 1, 0);
        }
        bins[bin] += len;
    }

    /// Bytes that came on each path in each bin since the run began, where that was asked for.
    pub fn path_bins(&self) -> &[Vec<u64>] {
        self.path_bins.as_deref().unwrap_or(&[])
    }

    /// Hash of all deliveries.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.value()
    }
}
