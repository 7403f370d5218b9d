//! Queues in front of a transmitter, one discipline per file.

mod codel;
mod drop_tail;
mod limit;
mod red;

pub use codel::{CoDel, CoDelParams};
pub use drop_tail::DropTail;
pub use limit::Limit;
pub use red::{Red, RedParams};

use crate::link::Tally;
use anabranch_base::{Duration, Instant, RandomStream, Rate};

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

/// Marks what a packet carries as having met congestion (CE of RFC 3168); false when its sender does not want that.
pub type Mark<P> = fn(&mut P) -> bool;

/// Which discipline a link's queue has.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped ([`DropTail`]).
    #[default]
    DropTail,
    /// First in, first out; what comes while so many packets wait is marked.
    Step {
        /// Packets that wait when one is marked.
        mark: u64,
    },
    /// Random early detection ([`Red`]).
    Red(RedParams),
    /// Controlled delay ([`CoDel`]).
    CoDel(CoDelParams),
}

/// The transmitter and the delay behind a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Rate of the transmitter; `None` sends at once.
    pub rate: Option<Rate>,
    /// Delay behind it.
    pub delay: Duration,
}

impl Discipline {
    /// An empty queue of this discipline.
    pub fn build<P>(&self, limit: Limit, line: Line, random: RandomStream) -> AnyQueue<P> {
        match self {
            Discipline::DropTail => AnyQueue::DropTail(DropTail::new(limit)),
            Discipline::Step { mark } => AnyQueue::DropTail(DropTail::marking(limit, *mark)),
            Discipline::Red(params) => AnyQueue::Red(Box::new(Red::new(*params, limit, line, random))),
            Discipline::CoDel(params) => AnyQueue::CoDel(Box::new(CoDel::new(*params, limit))),
        }
    }

    /// Does it mark packets?
    pub fn marks(&self) -> bool {
        match self {
            Discipline::DropTail => false,
            Discipline::Step { .. } => true,
            Discipline::Red(params) => params.ecn,
            Discipline::CoDel(params) => params.ecn,
        }
    }

    /// What is wrong with the parameters, in words for a user.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            Discipline::DropTail => Ok(()),
            Discipline::Step { mark: 0 } => Err("mark must be at least one packet"),
            Discipline::Step { .. } => Ok(()),
            Discipline::Red(params) => params.check(),
            Discipline::CoDel(params) => params.check(),
        }
    }
}

/// A queue in front of a transmitter.
///
/// `now` never runs backwards from call to call.
pub trait Queue<P> {
    /// Takes a packet, or gives it back when it must be dropped. `serving` is what the transmitter
    /// holds at this moment; limits count it unless they are [`Limit::waiting_only`].
    fn push(&mut self, now: Instant, packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>>;

    /// The next packet to transmit. A discipline that drops at the head puts what it dropped into
    /// `dropped`. The transmitter asks whenever it is free, so an
    /// answer of `None` also says that the line falls idle.
    fn pop(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>>;

    /// Packets that wait, in charged bytes.
    fn waiting(&self) -> Tally;

    /// How packets are marked from now on, by a discipline that marks; without this it drops instead.
    fn set_mark(&mut self, mark: Mark<P>);

    /// What it has marked since its start, in bytes without overhead.
    fn marked(&self) -> Tally;

    /// Changes the limit. What is already held stays.
    fn set_limit(&mut self, limit: Limit);

    /// Says that the rate of the transmitter has changed.
    fn set_rate(&mut self, _rate: Option<Rate>) {}

    /// Drops everything into `dropped`.
    fn clear(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>);
}

/// How a queue marks, and what it has marked.
#[derive(Debug)]
struct Marker<P> {
    /// Does the discipline mark?
    on: bool,
    mark: Option<Mark<P>>,
    marked: Tally,
}

impl<P> Marker<P> {
    fn new(on: bool) -> Self {
        Marker { on, mark: None, marked: Tally::default() }
    }

    /// Marks a packet, if it may be.
    fn mark(&mut self, packet: &mut Packet<P>) -> bool {
        let done = self.on && self.mark.is_some_and(|mark| mark(&mut packet.payload));
        if done {
            self.marked.add(packet.size);
        }
        done
    }
}

/// A queue of any discipline. A choice among few, made per packet, costs less than a call through a
/// table.
#[derive(Debug)]
pub enum AnyQueue<P> {
    /// See [`DropTail`].
    DropTail(DropTail<P>),
    /// See [`Red`].
    Red(Box<Red<P>>),
    /// See [`CoDel`].
    CoDel(Box<CoDel<P>>),
}

macro_rules! each {
    ($any:expr, $queue:ident => $do:expr) => {
        match $any {
            AnyQueue::DropTail($queue) => $do,
            AnyQueue::Red($queue) => $do,
            AnyQueue::CoDel($queue) => $do,
        }
    };
}

impl<P> AnyQueue<P> {
    /// Puts a packet that was admitted before into a drop-tail queue.
    pub(crate) fn put(&mut self, packet: Packet<P>) {
        if let AnyQueue::DropTail(queue) = self {
            queue.put(packet);
        }
    }
}

impl<P> Queue<P> for AnyQueue<P> {
    #[inline]
    fn push(&mut self, now: Instant, packet: Packet<P>, serving: Tally) -> Result<(), Packet<P>> {
        each!(self, q => q.push(now, packet, serving))
    }

    #[inline]
    fn pop(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>) -> Option<Packet<P>> {
        each!(self, q => q.pop(now, dropped))
    }

    fn waiting(&self) -> Tally {
        each!(self, q => q.waiting())
    }

    fn set_mark(&mut self, mark: Mark<P>) {
        each!(self, q => q.set_mark(mark));
    }

    fn marked(&self) -> Tally {
        each!(self, q => q.marked())
    }

    fn set_limit(&mut self, limit: Limit) {
        each!(self, q => q.set_limit(limit));
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        each!(self, q => q.set_rate(rate));
    }

    fn clear(&mut self, now: Instant, dropped: &mut Vec<Packet<P>>) {
        each!(self, q => q.clear(now, dropped));
    }
}
