//! What hands messages to an association, and how the other side takes them.

use anabranch_base::{Duration, Instant, Rate, StreamId};
use anabranch_engine::{AssocId, Association, Endpoint, Part, SendError, SendOptions};
use anabranch_sim::traffic::{Emission, Source};
use bytes::Bytes;

use crate::metrics::Record;

static ZEROS: [u8; 65_536] = [0; 65_536];

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Streams used in turn, at least 1.
    pub streams: u16,
    /// Delivered as they come.
    pub unordered: bool,
    /// Given up this long after they were made.
    pub lifetime: Option<Duration>,
    /// Given up after so many repetitions.
    pub max_retransmissions: Option<u16>,
}

impl Default for Delivery {
    fn default() -> Self {
        Delivery { streams: 1, unordered: false, lifetime: None, max_retransmissions: None }
    }
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

impl Application {
    /// An application that sends what `source` makes.
    pub fn new(source: Box<dyn Source>, delivery: Delivery) -> Self {
        Application { source, delivery, next: None, blocked: false, number: FIRST, failed: None }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.source.advance(now, &mut self.next);
    }

    /// The send buffer has room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Nobody takes messages any more.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// Why it sends nothing more.
    pub(super) fn failed(&self) -> Option<Unsendable> {
        self.failed
    }

    /// When there is something to send.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.next.filter(|_| !self.blocked).map(|e| e.at)
    }

    /// Hands over what is due, and notes it where somebody asked.
    pub(super) fn send(&mut self, now: Instant, a: &mut Association, mut record: Option<&mut Record>) {
        while let Some(e) = self.next.filter(|e| !self.blocked && e.at <= now) {
            let deadline = self.delivery.lifetime.map(|l| e.at + l);
            let options = SendOptions {
                stream: StreamId((self.number % u32::from(self.delivery.streams.max(1))) as u16),
                unordered: self.delivery.unordered,
                // The number of the message: the receiver's record finds it by this.
                ppid: self.number,
                deadline,
                max_retransmissions: self.delivery.max_retransmissions,
                ..SendOptions::default()
            };
            match a.send(now, options, payload(e.size)) {
                Ok(()) => {
                    if let Some(record) = &mut record {
                        record.made(self.number, e.at, deadline);
                    }
                    self.number = self.number.wrapping_add(1);
                }
                Err(SendError::WouldBlock) => {
                    self.blocked = true;
                    return;
                }
                // Too late.
                Err(SendError::Closed) => return self.end(),
                // Nothing to send: a recording may have frames of no bytes.
                Err(SendError::Empty) => self.number = self.number.wrapping_add(1),
                // Left out in silence it would be another traffic.
                Err(why) => {
                    self.failed = Some(Unsendable { size: e.size, why });
                    return self.end();
                }
            }
            self.source.advance(now, &mut self.next);
        }
    }
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
    pub(super) fn read(&mut self, now: Instant, endpoint: &mut Endpoint, id: AssocId, record: &mut Record) {
        self.waiting = self.rate.is_some() && now < self.ready;
        // To ask for one more than there is would make the association tell of the next one.
        while !self.waiting && endpoint.association(id).is_some_and(Association::is_readable) {
            let mut len = 0;
            endpoint.read(id, 1, |m| {
                len = m.payload.len() as u64;
                if matches!(m.part, Part::More | Part::Abandoned) {
                    return record.part(m.stream.0, len, now);
                }
                record.handed_over(m.ppid, m.stream.0, len, now);
                record.packet(u64::from(m.ppid.wrapping_sub(FIRST)), now);
            });
            if let Some(rate) = self.rate {
                self.ready = self.ready.max(now) + rate.time_for(len);
                self.waiting = now < self.ready;
            }
        }
    }
}
