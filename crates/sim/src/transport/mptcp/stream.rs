//! The connection's data at the sender: what has left, on which subflows, what may leave and what leaves again.

use super::{MptcpConfig, Plain, content};
use crate::transport::tcp::{Data, Supply};
use anabranch_base::Instant;
use std::collections::VecDeque;

/// What the sender of a connection did beyond what its subflows count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MptcpCounters {
    /// Segments that left on a second subflow after a time-out of the first.
    pub reinjected: u64,
    /// Segments that a subflow with room sent because the receive window had stopped it (opportunistic retransmission).
    pub opportunistic: u64,
    /// Windows halved because they held up the receive window.
    pub penalties: u64,
    /// How often something waited that the receive window had no room for.
    pub window_stops: u64,
    /// Sums of segments or symbols that left.
    pub sums: u64,
}

/// A segment of the connection from the first unacknowledged one on.
#[derive(Clone, Copy, Debug)]
struct Sent {
    bytes: u32,
    /// When it left first.
    first: Instant,
    /// The subflows that have carried it, a bit each.
    on: u64,
    /// Waits in `again`.
    queued: bool,
}

/// What a subflow gets to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub number: u64,
    pub bytes: u32,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    New,
    Reinjected,
    Opportunistic,
}

/// The data of a connection.
pub(super) struct Stream {
    data: Data,
    /// The first segment that is not acknowledged, and one past the last that has left.
    una: u64,
    next: u64,
    sent: VecDeque<Sent>,
    /// Bytes that have left, and that may.
    bytes: u64,
    edge: u64,
    /// Segments that are to leave on another subflow too.
    again: VecDeque<u64>,
    /// Something waits for the receive window.
    stopped: bool,
    done: Option<Instant>,
    pub counters: MptcpCounters,
}

/// The bit of a subflow.
const fn bit(subflow: usize) -> u64 {
    1 << (subflow & 63)
}

impl Stream {
    pub fn new(supply: Supply, config: &MptcpConfig) -> Self {
        Stream {
            data: Data::new(supply, &config.tcp),
            una: 1,
            next: 1,
            sent: VecDeque::new(),
            bytes: 0,
            // Learnt in the handshake.
            edge: config.receive_buffer,
            again: VecDeque::new(),
            stopped: false,
            done: None,
            counters: MptcpCounters::default(),
        }
    }

    /// The application begins.
    pub fn begin(&mut self, now: Instant) {
        self.data.begin(now);
    }

    /// What subflow `on` would send: what is to leave again first, then something new that the window allows.
    pub fn offer(&mut self, now: Instant, on: usize) -> Option<Offer> {
        self.again_on(on).or_else(|| self.new_one(now))
    }

    fn again_on(&mut self, on: usize) -> Option<Offer> {
        while self.again.front().is_some_and(|n| *n < self.una) {
            self.again.pop_front();
        }
        let number = self.again.iter().copied().find(|n| self.at(*n).is_some_and(|s| s.on & bit(on) == 0))?;
        Some(Offer { number, bytes: self.at(number)?.bytes, kind: Kind::Reinjected })
    }

    fn new_one(&mut self, now: Instant) -> Option<Offer> {
        let was_stopped = core::mem::replace(&mut self.stopped, false);
        if !self.data.has(now, self.next, self.una, self.next) {
            return None;
        }
        let bytes = self.data.bytes(self.next);
        if self.bytes + u64::from(bytes) > self.edge {
            self.stopped = true;
            self.counters.window_stops += u64::from(!was_stopped);
            return None;
        }
        Some(Offer { number: self.next, bytes, kind: Kind::New })
    }

    /// What holds up the window, if subflow `on` has not carried it, and the first other that has.
    pub fn holds_up(&self, on: usize) -> Option<(Offer, usize)> {
        let head = self.sent.front().filter(|_| self.stopped)?;
        let other = head.on & !bit(on);
        if other == 0 {
            return None;
        }
        let offer = Offer { number: self.una, bytes: head.bytes, kind: Kind::Opportunistic };
        Some((offer, other.trailing_zeros() as usize))
    }

    /// Has subflow `on` carried this?
    pub fn was_on(&self, number: u64, on: usize) -> bool {
        self.at(number).is_none_or(|s| s.on & bit(on) != 0)
    }

    /// Subflow `on` has sent what it was offered.
    pub fn left(&mut self, now: Instant, on: usize, offer: Offer) {
        match offer.kind {
            Kind::New => {
                self.sent.push_back(Sent { bytes: offer.bytes, first: now, on: bit(on), queued: false });
                self.bytes += u64::from(offer.bytes);
                self.next += 1;
                return;
            }
            Kind::Reinjected => {
                self.counters.reinjected += 1;
                self.again.retain(|n| *n != offer.number);
            }
            Kind::Opportunistic => self.counters.opportunistic += 1,
        }
        if let Some(sent) = self.at_mut(offer.number) {
            sent.on |= bit(on);
            sent.queued &= offer.kind != Kind::Reinjected;
        }
    }

    /// The timer of subflow `of` has expired with this outstanding: others may carry it too.
    pub fn timed_out(&mut self, numbers: impl Iterator<Item = u64>, of: usize) {
        for number in numbers {
            let Some(sent) = self.at_mut(number).filter(|s| s.on == bit(of) && !s.queued) else { continue };
            sent.queued = true;
            self.again.push_back(number);
        }
    }

    /// What leaves as segment `number` of the connection, and when it left first.
    pub fn content(&self, number: u64) -> (Plain, Option<Instant>) {
        let last = self.data.is_last(number);
        (Plain { number, value: content(number), last }, self.at(number).map(|s| s.first))
    }

    /// Everything below `next` has come, and bytes up to `edge` may leave.
    pub fn acknowledged(&mut self, now: Instant, next: u64, edge: u64) {
        while self.una < next && self.sent.pop_front().is_some() {
            self.una += 1;
        }
        self.edge = self.edge.max(edge);
        self.data.forget_below(self.una);
        if self.una == self.next && self.done.is_none() && self.data.ended(now, self.una) {
            self.done = Some(now);
        }
    }

    /// When there will be more to send.
    pub fn next_at(&self) -> Option<Instant> {
        self.data.next_at()
    }

    /// When the last segment was acknowledged.
    pub fn done(&self) -> Option<Instant> {
        self.done
    }

    /// The first segment that is not acknowledged, and the next to leave.
    pub fn span(&self) -> (u64, u64) {
        (self.una, self.next)
    }

    fn at(&self, number: u64) -> Option<&Sent> {
        self.sent.get(number.checked_sub(self.una)? as usize)
    }

    fn at_mut(&mut self, number: u64) -> Option<&mut Sent> {
        self.sent.get_mut(number.checked_sub(self.una)? as usize)
    }
}
