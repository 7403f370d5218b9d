//! Queues in front of a transmitter, one discipline per file.

mod drop_tail;

pub use drop_tail::DropTail;

use crate::link::Tally;
use anabranch_base::Instant;

/// A packet as it waits: what it carries and what it counts.
#[derive(Clone, Debug)]
pub struct Packet<P> {
    /// Size given by the sender, in bytes.
    pub size: u32,
    /// Bytes charged to queue and transmitter: size and per-packet overhead.
    pub charged: u64,
    /// When the link took it.
    pub entered: Instant,
    /// What it carries.
    pub payload: P,
}

/// How much may be held, waiting or in transmission. `None` means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limit {
    /// Packets.
    pub packets: Option<u64>,
    /// Bytes, overhead included.
    pub bytes: Option<u64>,
}

impl Limit {
    /// Everything is held.
    pub const NONE: Limit = Limit { packets: None, bytes: None };

    /// At most `n` packets.
    pub const fn packets(n: u64) -> Self {
        Limit { packets: Some(n), bytes: None }
    }
    /// At most `n` bytes.
    pub const fn bytes(n: u64) -> Self {
        Limit { packets: None, bytes: Some(n) }
    }
    /// Does a packet of `bytes` still fit beside `held`?
    pub const fn admits(self, held: Tally, bytes: u64) -> bool {
        let packets = match self.packets {
            Some(limit) => held.packets < limit,
            None => true,
        };
        packets
            && match self.bytes {
                Some(limit) => held.bytes.saturating_add(bytes) <= limit,
                None => true,
            }
    }
}

/// Which discipline a link's queue has.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped ([`DropTail`]).
    #[default]
    DropTail,
}

impl Discipline {
    /// An empty queue of this discipline.
    pub fn build<P: Send + 'static>(&self, limit: Limit) -> Box<dyn Queue<P>> {
        match self {
            Discipline::DropTail => Box::new(DropTail::new(limit)),
        }
    }
}

/// A queue in front of a transmitter.
///
/// `now` never runs backwards from call to call.
pub trait Queue<P>: Send {
    /// Takes a packet, or gives it back when it must be dropped. `serving` is what the transmitter
    /// holds at this moment; limits count it.
    fn push(&mut self, now: Instant, packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>>;

    /// The next packet to transmit. A discipline that drops at the head adds what it dropped to
    /// `dropped` (sizes as given by the sender).
    fn pop(&mut self, now: Instant, dropped: &mut Tally) -> Option<Packet<P>>;

    /// Packets that wait, in charged bytes.
    fn waiting(&self) -> Tally;

    /// Changes the limit. What is already held stays.
    fn set_limit(&mut self, limit: Limit);

    /// Drops everything and says how much (sizes as given by the sender).
    fn clear(&mut self) -> Tally;
}
