//! What one flow delivered, and when.

use super::repairs::{Departure, Repairs};
use super::serials::Serials;
use super::{Delays, Detail, Due, Dues, Fingerprint, Level, SharedDues, SharedVideo, Unasked, Video, Wanted, Window};
use anabranch_base::{Duration, Instant};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{MutexGuard, PoisonError};

/// A record that both ends of a flow write to.
pub type SharedRecord = Rc<RefCell<Record>>;

/// What one flow delivered within a window. Bytes are payload.
#[derive(Clone, Debug)]
pub struct Within {
    window: Window,
    wanted: Wanted,
    /// Delivered in it.
    pub bytes: u64,
    /// Messages or segments delivered in it.
    pub messages: u64,
    /// From a packet's first transmission to its first arrival, of packets that left in it.
    pub packet_delay: Delays,
    /// From the first transmission of a message's beginning until it is handed over in order.
    pub in_order_delay: Delays,
    /// From the moment the source made a message until it is handed over.
    pub message_delay: Delays,
    /// Bytes in the reorder buffer.
    pub held: Level,
    /// Gaps in the sequence of received TSNs.
    pub holes: Level,
}

impl Within {
    fn new(window: Window, wanted: Wanted) -> Self {
        Within {
            window,
            wanted,
            bytes: 0,
            messages: 0,
            packet_delay: Delays::of(wanted.packet),
            in_order_delay: Delays::of(wanted.in_order),
            message_delay: Delays::of(wanted.message),
            held: Level::new(window),
            holes: Level::new(window),
        }
    }

    fn packet(&mut self, left: Instant, at: Instant) {
        if self.wanted.packet > Detail::Nothing && self.window.holds(left) {
            self.packet_delay.add(at - left);
        }
    }

    fn in_order(&mut self, begun: Instant, at: Instant) {
        if self.wanted.in_order > Detail::Nothing && self.window.holds(begun) {
            self.in_order_delay.add(at - begun);
        }
    }

    fn message(&mut self, born: Instant, at: Instant) {
        if self.wanted.message > Detail::Nothing && self.window.holds(born) {
            self.message_delay.add(at - born);
        }
    }
}

/// When a message was made, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Promise {
    born: Instant,
    deadline: Instant,
}

/// What one flow delivered, and when.
#[derive(Clone, Debug)]
pub struct Record {
    /// What any window wants.
    wanted: Wanted,
    bin: Duration,
    bins: Vec<u64>,
    /// By the path they came on, when that is asked for.
    path_bins: Option<Vec<Vec<u64>>>,
    fingerprint: Fingerprint,
    /// The window of the run as a whole, and those of its phases.
    main: Within,
    phases: Vec<Within>,
    /// Messages with a deadline that were made.
    due: Vec<Promise>,
    /// Those that were handed over in time.
    met: Vec<Promise>,
    sent: Serials,
    begun: Serials,
    born: Serials,
    deadlines: Serials,
    video: Option<SharedVideo>,
    dues: Option<SharedDues>,
    /// What makes the frames or messages that `video` and `dues` know.
    source: Option<Unasked>,
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
        Record::of_windows(&[(Window::since(from), wanted)], bin)
    }

    /// An empty record that keeps of each window what is wanted of it; what is wanted of equal ones is kept once. The
    /// first is that of the run as a whole. What is noted over time begins with the run, whichever window wants it.
    pub fn of_windows(all: &[(Window, Wanted)], bin: Duration) -> Self {
        let (first, rest) = all.split_first().unzip();
        let mut main = first.copied().unwrap_or((Window::since(Instant::ZERO), Wanted::NOTHING));
        let mut phases: Vec<(Window, Wanted)> = Vec::new();
        for (window, wanted) in rest.into_iter().flatten() {
            match std::iter::once(&mut main).chain(&mut phases).find(|w| w.0 == *window) {
                Some(known) => known.1 = known.1.and(*wanted),
                None => phases.push((*window, *wanted)),
            }
        }
        let wanted = phases.iter().fold(main.1, |all, (_, w)| all.and(*w));
        let repaired = std::iter::once(&main).chain(&phases).filter(|(_, w)| w.repairs).map(|(w, _)| *w).collect();
        Record {
            wanted,
            bin,
            bins: Vec::new(),
            path_bins: wanted.paths.then(Vec::new),
            fingerprint: Fingerprint::default(),
            main: Within::new(main.0, main.1),
            phases: phases.into_iter().map(|(window, wanted)| Within::new(window, wanted)).collect(),
            due: Vec::new(),
            met: Vec::new(),
            sent: Serials::default(),
            begun: Serials::default(),
            born: Serials::default(),
            deadlines: Serials::default(),
            video: None,
            dues: None,
            source: None,
            repairs: wanted.repairs.then(|| Box::new(Repairs::new(repaired))),
        }
    }

    /// What it keeps of the run as a whole.
    pub fn main(&self) -> &Within {
        &self.main
    }

    /// What it keeps of a window; none for one that it does not know.
    pub fn within(&self, window: Window) -> Option<&Within> {
        std::iter::once(&self.main).chain(&self.phases).find(|w| w.window == window)
    }

    fn each(&mut self, mut note: impl FnMut(&mut Within)) {
        note(&mut self.main);
        self.phases.iter_mut().for_each(note);
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
        if self.wanted.births() {
            self.born.note(number, at);
        }
        if let Some(deadline) = deadline.filter(|_| self.wanted.deadlines) {
            self.deadlines.note(number, deadline);
            self.due.push(Promise { born: at, deadline });
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

    /// All that was seen of them from outside, of a sender that tells nothing itself.
    pub fn set_repairs(&mut self, seen: Repairs) {
        self.repairs = Some(Box::new(seen));
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
        if self.wanted.packet > Detail::Nothing {
            self.each(|w| w.packet(sent, at));
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
        if let Some(begun) = begun {
            self.each(|w| w.in_order(begun, at));
        }
        if let Some(born) = born {
            self.each(|w| w.message(born, at));
            self.met.extend(deadline.filter(|d| at <= *d).map(|deadline| Promise { born, deadline }));
        }
    }

    /// A message of a stream was handed over; the stream itself counts for what was delivered.
    pub fn message(&mut self, born: Instant, begun: Instant, at: Instant) {
        self.each(|w| {
            w.in_order(begun, at);
            w.message(born, at);
        });
    }

    /// `len` bytes were handed over, which are a message or the end of one.
    #[inline]
    pub fn delivered(&mut self, stream: u16, len: u64, at: Instant) {
        self.count(stream, len, 1, at);
    }

    /// `len` bytes of a message were handed over, of which more follows.
    #[inline]
    pub fn part(&mut self, stream: u16, len: u64, at: Instant) {
        self.count(stream, len, 0, at);
    }

    fn count(&mut self, stream: u16, len: u64, messages: u64, at: Instant) {
        self.fingerprint.add(at.as_nanos());
        self.fingerprint.add(u64::from(stream) << 48 ^ len);
        if self.wanted.bins && !self.bin.is_zero() {
            let bin = (at.as_nanos() / self.bin.as_nanos()) as usize;
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += len;
        }
        self.each(|w| {
            if w.window.holds(at) {
                w.bytes += len;
                w.messages += messages;
            }
        });
    }

    /// What is sent are the packets of these frames.
    pub fn watch(&mut self, video: SharedVideo) {
        self.video = Some(video);
    }

    /// What is sent is of use up to a deadline.
    pub fn expect(&mut self, dues: SharedDues) {
        self.dues = Some(dues);
    }

    /// What is sent comes from here.
    pub fn ask(&mut self, source: Unasked) {
        self.source = Some(source);
    }

    /// Frames and messages that the source, which began at `start`, had made by the end of the run and no transport has
    /// asked for are made all the same.
    pub fn make_rest(&self, start: Instant, end: Instant) {
        if let Some(source) = &self.source {
            source.make_rest(start, end);
        }
    }

    /// Everything with a deadline that was made: messages, or frames with a viewer. None where there is no deadline.
    pub fn each_due(&self, mut note: impl FnMut(&Due)) -> Option<()> {
        if let Some(dues) = &self.dues {
            dues.lock().unwrap_or_else(PoisonError::into_inner).each().for_each(|d| note(&d));
        } else {
            self.video()?.dues().for_each(|d| note(&d));
        }
        Some(())
    }

    /// The messages of a flow with a deadline.
    pub fn dues(&self) -> Option<MutexGuard<'_, Dues>> {
        Some(self.dues.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The flow's packet `number`, from 0, was handed over: of a video, or with a deadline.
    pub fn packet(&mut self, number: u64, at: Instant) {
        if let Some(mut dues) = self.dues() {
            dues.came(number as usize, at);
        }
        if let Some(v) = &self.video {
            v.lock().unwrap_or_else(PoisonError::into_inner).packet(number as usize, at);
        }
    }

    /// The next `bytes` of a stream were handed over: of a video, or of messages with a deadline.
    pub fn stream(&mut self, bytes: u64, at: Instant) {
        if let Some(mut dues) = self.dues() {
            dues.stream(bytes, at);
        }
        if let Some(v) = &self.video {
            v.lock().unwrap_or_else(PoisonError::into_inner).stream(bytes, at);
        }
    }

    /// The frames that a viewer watches.
    pub fn video(&self) -> Option<MutexGuard<'_, Video>> {
        Some(self.video.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Messages made in a window whose deadline has passed by `until`, and how many of them were in time.
    pub fn deadlines(&self, window: Window, until: Instant) -> (u64, u64) {
        let passed = |of: &[Promise]| of.iter().filter(|d| window.holds(d.born) && d.deadline <= until).count() as u64;
        (passed(&self.due), passed(&self.met))
    }

    /// So many bytes are in the reorder buffer from `at` on.
    pub fn held(&mut self, bytes: u64, at: Instant) {
        self.each(|w| w.held.set(bytes, at));
    }

    /// So many gaps are in the sequence of received TSNs from `at` on.
    pub fn holes(&mut self, gaps: u64, at: Instant) {
        self.each(|w| w.holes.set(gaps, at));
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
