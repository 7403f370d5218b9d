//! What hands messages to an association, and how the other side takes them.

use anabranch_base::{Duration, Instant, Rate, StreamId};
use anabranch_engine::{AssocId, Association, Endpoint, Part, SendError, SendOptions};
use anabranch_media::{Class, Submission};
use anabranch_sim::traffic::{Emission, FrameClass, Kind, Source};
use bytes::Bytes;

use super::users::Users;
use crate::metrics::Record;

static ZEROS: [u8; 65_536] = [0; 65_536];

/// On which stream a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// On so many in turn, at least 1.
    InTurn(u16),
    /// On the one of its class, of so many, as `anabranch send` has it; what has no class goes on the first.
    ByClass(u16),
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Streams used.
    pub streams: Streams,
    /// Delivered as they come.
    pub unordered: bool,
    /// Given up this long after they were made, by class (I, P, B). What has no class counts as B.
    pub lifetime: [Option<Duration>; 3],
    /// Given up after so many repetitions, by class.
    pub max_retransmissions: [Option<u16>; 3],
    /// Importance of messages that are not frames, 0 first.
    pub class: u8,
    /// The first of its streams: those before it are of other flows on its association.
    pub first_stream: u16,
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery {
            streams: Streams::InTurn(1),
            unordered: false,
            lifetime: [None; 3],
            max_retransmissions: [None; 3],
            class: SendOptions::default().class,
            first_stream: 0,
        }
    }
}

impl Delivery {
    /// Frames of a video as `anabranch send` sends them when they are shown `latency` after they were made.
    pub fn of_video(latency: Option<Duration>) -> Self {
        Delivery {
            streams: Streams::ByClass(Submission::STREAMS),
            unordered: true,
            lifetime: [latency; 3],
            ..Delivery::default()
        }
    }

    /// Most streams that it uses.
    pub fn stream_count(&self) -> u16 {
        match self.streams {
            Streams::InTurn(n) => n.max(1),
            Streams::ByClass(n) => n.max(1),
        }
    }

    /// How message `number`, made at `at`, is sent. `frame` is the class and the number of the frame it belongs to.
    pub fn options(&self, frame: Option<(Class, u32)>, number: u32, at: Instant) -> SendOptions {
        let from_first = |s: StreamId| StreamId(self.first_stream.saturating_add(s.0));
        let in_turn = match self.streams {
            Streams::InTurn(n) => Some(StreamId((number % u32::from(n.max(1))) as u16)),
            Streams::ByClass(_) => None,
        };
        let plain = SendOptions::default();
        // All messages that are not frames have one value of each.
        let index = frame.map_or(Class::B.index(), |(class, _)| class.index());
        let lifetime = self.lifetime.get(index).copied().flatten();
        let options = SendOptions {
            unordered: self.unordered,
            // The number of the message: the receiver's record finds it by this.
            ppid: number,
            max_retransmissions: self.max_retransmissions.get(index).copied().flatten(),
            ..plain
        };
        let Some((class, group)) = frame else {
            let deadline = lifetime.map(|l| at + l);
            let stream = from_first(in_turn.unwrap_or(StreamId(0)));
            return SendOptions { stream, deadline, class: self.class, ..options };
        };
        // What the program does by the same code; the scenario may want another order.
        let submission = Submission::new(class, group, at, lifetime).on(self.stream_count());
        let Submission { stream, unordered: _, deadline, class, group } = submission;
        let stream = from_first(in_turn.unwrap_or(stream));
        SendOptions { stream, deadline, class, group: Some(group), ..options }
    }
}

/// Class and number of the frame that an emission belongs to.
fn frame(e: &Emission) -> Option<(Class, u32)> {
    let Kind::Frame { number, class } = e.kind else { return None };
    let class = match class {
        FrameClass::I => Class::I,
        FrameClass::P => Class::P,
        FrameClass::B => Class::B,
    };
    Some((class, number as u32))
}

/// A source of messages on one side of an association.
pub struct Application {
    source: Box<dyn Source>,
    delivery: Delivery,
    next: Option<Emission>,
    /// The send buffer is full; nothing is tried before it has room.
    blocked: bool,
    number: u32,
    failed: Option<Unsendable>,
}

/// Why an application gave up: what its source makes cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message of {size} bytes: {why}")]
pub struct Unsendable {
    /// Bytes of the message.
    pub size: u64,
    /// What the association says.
    pub why: SendError,
}

/// Number of the first message. As payload protocol identifiers small numbers have owners, and a viewer of captures
/// would take the payload for theirs.
const FIRST: u32 = 0x4000_0000;
/// Where several flows share an association each has so many numbers, the first of them from [`FIRST`] on.
const NUMBERS: u32 = 1 << 26;

impl Application {
    /// An application that sends what `source` makes.
    pub fn new(source: Box<dyn Source>, delivery: Delivery) -> Self {
        Application { source, delivery, next: None, blocked: false, number: FIRST, failed: None }
    }

    /// This application as the flow `number` of an association that several share, from 0.
    #[must_use]
    pub(super) fn numbered(mut self, number: usize) -> Self {
        self.number = FIRST + NUMBERS * number as u32;
        self
    }

    /// Its source begins.
    pub fn start(&mut self, now: Instant) {
        self.source.advance(now, &mut self.next);
    }

    /// The send buffer has room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// No message is taken any more.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// Why it sends nothing more.
    pub(super) fn failed(&self) -> Option<Unsendable> {
        self.failed
    }

    /// When there is something to send.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next.filter(|_| !self.blocked).map(|e| e.at)
    }

    /// The next message that is due, for callers that hand it over by other means. Its deadline is in the time of the
    /// source, as is what `record` notes.
    pub fn take(&mut self, now: Instant, record: &mut Record) -> Option<(SendOptions, Bytes)> {
        while let Some(e) = self.next.filter(|e| e.at <= now) {
            let number = self.number;
            self.number = number.wrapping_add(1);
            self.source.advance(now, &mut self.next);
            // A recording may have frames of no bytes.
            if e.size > 0 {
                let options = self.delivery.options(frame(&e), number, e.at);
                record.made(number, e.at, options.deadline);
                return Some((options, payload(e.size)));
            }
        }
        None
    }

    /// The other side was handed message `ppid`.
    pub fn taken(record: &mut Record, ppid: u32, stream: StreamId, len: u64, now: Instant) {
        record.handed_over(ppid, stream.0, len, now);
        record.packet(u64::from(ppid.wrapping_sub(FIRST) % NUMBERS), now);
    }

    /// Hands over what is due, and notes it where that is asked for.
    pub(super) fn send(&mut self, now: Instant, a: &mut Association, mut record: Option<&mut Record>) {
        while self.send_one(now, a, record.as_deref_mut()) {}
    }

    /// Hands over one message that is due, if there is one and the association takes it; none where it does not.
    pub(super) fn send_one(&mut self, now: Instant, a: &mut Association, record: Option<&mut Record>) -> bool {
        let Some(e) = self.next.filter(|e| !self.blocked && e.at <= now) else { return false };
        let options = self.delivery.options(frame(&e), self.number, e.at);
        match a.send(now, options, payload(e.size)) {
            Ok(()) => {
                if let Some(record) = record {
                    record.made(self.number, e.at, options.deadline);
                }
                self.number = self.number.wrapping_add(1);
            }
            Err(SendError::WouldBlock) => {
                self.blocked = true;
                return false;
            }
            // Too late.
            Err(SendError::Closed) => {
                self.end();
                return false;
            }
            // Nothing to send: a recording may have frames of no bytes.
            Err(SendError::Empty) => self.number = self.number.wrapping_add(1),
            // Left out in silence it would be another traffic.
            Err(why) => {
                self.failed = Some(Unsendable { size: e.size, why });
                self.end();
                return false;
            }
        }
        self.source.advance(now, &mut self.next);
        true
    }
}

/// Which of the flows that share an association this message is of, from 0.
pub(super) fn flow_of(number: u32) -> usize {
    (number.wrapping_sub(FIRST) / NUMBERS) as usize
}

/// So many zeros, shared.
fn payload(size: u64) -> Bytes {
    let n = size as usize;
    match ZEROS.get(..n) {
        Some(zeros) => Bytes::from_static(zeros),
        None => Bytes::from(vec![0; n]),
    }
}

/// How a side takes messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    rate: Option<Rate>,
    ready: Instant,
    waiting: bool,
}

impl Reader {
    /// Takes messages as they come.
    pub fn at_once() -> Self {
        Reader::default()
    }

    /// Takes payload at this rate at most.
    pub fn at(rate: Rate) -> Self {
        Reader { rate: Some(rate), ..Reader::default() }
    }

    /// When it looks again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        (self.waiting && self.ready < Instant::FAR).then_some(self.ready)
    }

    /// There is nothing to take.
    pub(super) fn rest(&mut self, now: Instant) {
        self.waiting &= now < self.ready;
    }

    /// Takes what there is and may be taken.
    pub(super) fn read(&mut self, now: Instant, endpoint: &mut Endpoint, id: AssocId, users: &Users) {
        self.waiting = self.rate.is_some() && now < self.ready;
        // To ask for one more than there is would make the association tell of the next one.
        while !self.waiting && endpoint.association(id).is_some_and(Association::is_readable) {
            let mut len = 0;
            endpoint.read(id, 1, |m| {
                len = m.payload.len() as u64;
                let record = &mut users.record_of(m.ppid).borrow_mut();
                if matches!(m.part, Part::More | Part::Abandoned) {
                    return record.part(m.stream.0, len, now);
                }
                Application::taken(record, m.ppid, m.stream, len, now);
            });
            if let Some(rate) = self.rate {
                self.ready = self.ready.max(now) + rate.time_for(len);
                self.waiting = now < self.ready;
            }
        }
    }
}
