//! One direction of a path: queue, transmitter, loss, delay.
//!
//! ```text
//! enqueue -> [mtu, down, loss at entry] -> queue -> transmitter (rate) -> [loss on the wire: once more, up to a limit]
//!         -> duplicate -> [damage] -> delay + jitter (or at once: reorder) -> poll_deliver
//! ```
//!
//! The link is lazy: every call first carries out, in the order of their times, what has happened up
//! to its `now` (packets that left, scheduled changes). So results do not depend on how often it is
//! polled, and [`Link::next_event`] need only name the times at which something can come out.

mod arrivals;
mod capacity;
mod config;
mod counters;
mod general;
mod jitter;
mod mahimahi;
mod schedule;
mod steady;
mod transmitter;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, FrameReports, LinkConfig, LossPoint};
pub use counters::{Frames, LinkCounters, Tally};
pub use jitter::Jitter;
pub use mahimahi::DeliveryTrace;
pub use schedule::{Change, Schedule, Setting};

use crate::loss::Losses;
use crate::queue::{AnyQueue, Line, Mark, Packet, Queue};
use anabranch_base::{Duration, Instant, RandomStream};
use arrivals::Travelling;
use schedule::Progress;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use steady::Steady;
pub(crate) use steady::Terms;
use transmitter::Transmitter;

/// What became of a packet at the entrance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Taken. It may still be lost on the wire.
    Queued,
    /// Dropped, and why.
    Dropped(DropReason),
}

/// What became of a packet at the entrance, and when it will come out if that is certain and next.
pub(crate) enum Put {
    /// Taken. It is the only one, and arrives then.
    Alone(Instant),
    /// Taken. There are others, or its arrival is not certain.
    Queued,
    Dropped(DropReason),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The loss model said so.
    Loss,
    /// The loss model said so each time that the link sent it.
    Repeats,
    /// The link was down.
    Down,
    /// It was larger than the link's MTU.
    Mtu,
}

/// A packet that comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// When it arrived; at or before the time of the poll.
    pub at: Instant,
    /// When it was given to the link.
    pub entered: Instant,
    /// Its size in bytes, without overhead.
    pub size: u32,
    /// Is this a second copy?
    pub duplicate: bool,
    /// What it carries.
    pub payload: P,
}

/// One direction of a path. `P` is what a packet carries.
pub struct Link<P> {
    /// All that a packet touches as long as nothing is to change, and what is on the way.
    steady: Steady<P>,
    rest: Box<Rest<P>>,
}

/// What is rarely touched.
struct Rest<P> {
    /// Is the link steady whenever its transmitter is free?
    may_be_steady: bool,
    config: LinkConfig,
    up: bool,
    progress: Progress,
    /// When `progress` has its next change; [`Instant::FAR`] if never.
    next_change: Instant,
    queue: AnyQueue<P>,
    transmitter: Transmitter<P>,
    /// How often what is in transmission was lost before.
    lost_before: u32,
    last_arrival: Instant,
    loss: Losses,
    random: Streams,
    counters: LinkCounters,
    /// Filled by the queue when it drops; kept for its room.
    dropped: Vec<Packet<P>>,
    notices: Option<Vec<Notice<P>>>,
    /// What was dropped, where the caller wants it back.
    kept: Option<Vec<P>>,
    /// Fates on the wire of the packets that have not left, as far as they were decided when the link was steady.
    decided: VecDeque<bool>,
    /// How a packet is damaged, and the bits of the last one that was.
    flip: Option<Flip<P>>,
    flips: Vec<u32>,
}

/// What happened to a packet inside a link; see [`Link::record`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice<P> {
    /// Time of the event.
    pub at: Instant,
    /// `None` when the packet left the queue and its transmission began.
    pub dropped: Option<DropReason>,
    /// What it carries.
    pub payload: P,
}

/// One named stream per question, so that switching one feature on leaves the others' numbers alone.
struct Streams {
    jitter: RandomStream,
    duplicate: RandomStream,
    reorder: RandomStream,
    damage: RandomStream,
}

/// Flips these bits of what a packet carries; see [`Link::set_flip`].
pub type Flip<P> = fn(&mut P, &[u32]);

impl<P: Clone + Send + 'static> Link<P> {
    /// A link called `name`: its random streams are `{name}.loss` (and `{name}.loss2` and so on for further models of
    /// a series), `{name}.jitter`, `{name}.queue`, `{name}.duplicate`, `{name}.reorder` and `{name}.damage` of `seed`. It starts empty
    /// and up at [`Instant::ZERO`].
    pub fn new(name: &str, seed: u64, config: LinkConfig) -> Self {
        let stream = |of: &str| RandomStream::named(seed, &format!("{name}.{of}"));
        let random = Streams {
            jitter: stream("jitter"),
            duplicate: stream("duplicate"),
            reorder: stream("reorder"),
            damage: stream("damage"),
        };
        let progress = Progress::new(config.schedule.clone());
        let line = Line { rate: config.mean_rate(), delay: config.delay };
        let rest = Rest {
            may_be_steady: false,
            up: true,
            next_change: progress.next_at().unwrap_or(Instant::FAR),
            progress,
            queue: config.discipline.build(config.limit, line, stream("queue")),
            transmitter: Transmitter::new(config.rate, config.deliveries.clone()),
            lost_before: 0,
            last_arrival: Instant::ZERO,
            loss: Losses::new(&config.loss, seed, &format!("{name}.loss")),
            random,
            counters: LinkCounters::default(),
            config,
            dropped: Vec::new(),
            notices: None,
            kept: None,
            decided: VecDeque::new(),
            flip: None,
            flips: Vec::new(),
        };
        let mut link = Link { steady: Steady::new(&rest.config), rest: Box::new(rest) };
        link.judge();
        link
    }

    /// From now on keeps a [`Notice`] of each packet that leaves the queue or is dropped, until they
    /// are taken.
    pub fn record(&mut self) {
        self.unsettle();
        self.rest.notices.get_or_insert_default();
    }

    /// The notices since the last call, in the order of their times.
    pub fn take_notices(&mut self) -> impl Iterator<Item = Notice<P>> + '_ {
        self.rest.notices.iter_mut().flat_map(|n| n.drain(..))
    }

    /// How a packet is marked, for a queue whose discipline marks.
    pub fn set_mark(&mut self, mark: Mark<P>) {
        self.rest.queue.set_mark(mark);
    }

    /// How bits of a packet are flipped, on a link that damages packets.
    pub fn set_flip(&mut self, flip: Flip<P>) {
        self.rest.flip = Some(flip);
    }

    /// From now on keeps what it drops until it is taken.
    pub(crate) fn keep_dropped(&mut self) {
        self.rest.kept.get_or_insert_default();
    }

    /// Shares what does not change with links that have equal terms.
    pub(crate) fn share_terms(&mut self, known: &mut BTreeSet<Arc<Terms>>) {
        match known.get(&self.steady.terms) {
            Some(terms) => self.steady.terms = Arc::clone(terms),
            None => drop(known.insert(Arc::clone(&self.steady.terms))),
        }
    }

    /// What comes out after `place` others, as things stand.
    #[inline]
    pub(crate) fn upcoming(&self, place: usize) -> Option<&P> {
        Some(&self.steady.row.get(place)?.payload)
    }

    /// Hands over what was dropped since the last call.
    #[inline]
    pub(crate) fn take_dropped(&mut self, take: impl FnMut(P)) {
        if !self.steady.plain || self.steady.dropped {
            self.steady.dropped = false;
            self.rest.kept.iter_mut().flat_map(|k| k.drain(..)).for_each(take);
        }
    }

    /// Gives a packet of `size` bytes to the link. A `now` before that of an earlier call counts as
    /// that one.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, size: u32, payload: P) -> Verdict {
        match self.put(now, size, payload) {
            Put::Alone(_) | Put::Queued => Verdict::Queued,
            Put::Dropped(reason) => Verdict::Dropped(reason),
        }
    }

    /// [`enqueue`](Self::enqueue), which also says when the packet comes out if that is certain.
    #[inline]
    pub(crate) fn put(&mut self, now: Instant, size: u32, payload: P) -> Put {
        if !self.steady.plain {
            let now = self.advance(now);
            return match self.enqueue_general(now, size, payload) {
                Verdict::Queued => Put::Queued,
                Verdict::Dropped(reason) => Put::Dropped(reason),
            };
        }
        let now = self.steady.clock.max(now);
        self.steady.clock = now;
        if !self.steady.fits_mtu(size) {
            self.refuse(now, size, payload, DropReason::Mtu);
            return Put::Dropped(DropReason::Mtu);
        }
        let Some(left) = self.steady.admit(now, size) else {
            self.refuse(now, size, payload, DropReason::Queue);
            return Put::Dropped(DropReason::Queue);
        };
        let (at, alone) = (self.steady.arrival(left), self.steady.row.len() == 0);
        self.steady.enter(Travelling { at, entered: now, size, duplicate: false, lost: false, payload });
        if alone { Put::Alone(at) } else { Put::Queued }
    }

    fn enqueue_general(&mut self, now: Instant, size: u32, payload: P) -> Verdict {
        if !self.rest.up {
            return self.refuse(now, size, payload, DropReason::Down);
        }
        if self.rest.config.mtu.is_some_and(|mtu| size > mtu) {
            return self.refuse(now, size, payload, DropReason::Mtu);
        }
        if self.rest.config.loss_point == LossPoint::Entry && self.rest.loss.loses(now) {
            return self.refuse(now, size, payload, DropReason::Loss);
        }
        if self.steady.on {
            let Some(left) = self.steady.admit(now, size) else {
                return self.refuse(now, size, payload, DropReason::Queue);
            };
            let lost = self.rest.config.loss_point == LossPoint::Wire && self.is_lost(left);
            let at = self.steady.arrival(left);
            self.steady.enter(Travelling { at, entered: now, size, duplicate: false, lost, payload });
            return Verdict::Queued;
        }
        let charged = u64::from(size) + u64::from(self.rest.config.overhead);
        let packet = Packet { size, charged, entered: now, payload };
        if let Err(packet) = self.rest.queue.push(now, packet, self.rest.transmitter.load_found(now)) {
            return self.refuse(now, size, packet.payload, DropReason::Queue);
        }
        self.pump(now);
        Verdict::Queued
    }

    /// Is the next packet, which leaves at `at`, lost on the wire?
    fn is_lost(&mut self, at: Instant) -> bool {
        self.rest.decided.pop_front().unwrap_or_else(|| self.rest.loss.loses(at))
    }

    /// The next packet that has arrived by `now`.
    #[inline]
    pub fn poll_deliver(&mut self, now: Instant) -> Option<P> {
        if self.steady.plain {
            return self.steady.take(now);
        }
        self.poll_delivery(now).map(|d| d.payload)
    }

    /// May [`poll_deliver`](Self::poll_deliver) have something at `now`?
    #[inline]
    pub(crate) fn may_deliver(&self, now: Instant) -> bool {
        !self.steady.plain || self.steady.is_due(now)
    }

    /// The next packet that has arrived by `now`, with its times.
    #[inline]
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<P>> {
        let now = self.advance(now);
        self.forget_lost(now);
        let p = self.steady.row.pop_due(now)?;
        if self.steady.on {
            self.steady.taken(p.size);
        }
        self.steady.delivered.add(p.size);
        let Travelling { at, entered, size, duplicate, payload, .. } = p;
        Some(Delivery { at, entered, size, duplicate, payload })
    }

    /// Drops what was lost and would have arrived by `now`, up to the first packet that does arrive: else it would be
    /// the next event for ever.
    fn forget_lost(&mut self, now: Instant) {
        while self.steady.row.get(0).is_some_and(|p| p.lost && p.at <= now) {
            let Some(p) = self.steady.row.pop_due(now) else { return };
            if self.steady.on {
                self.steady.taken(p.size);
            }
            self.rest.counters.dropped_loss.add(p.size);
            if let Some(kept) = &mut self.rest.kept {
                kept.push(p.payload);
            }
        }
    }

    /// When the next packet that has arrived by `now` did so.
    pub fn peek_arrival(&mut self, now: Instant) -> Option<Instant> {
        let now = self.advance(now);
        self.forget_lost(now);
        self.steady.row.next_at().filter(|at| *at <= now)
    }

    /// When to poll next: nothing comes out before. `None` while the link is empty or stalled for
    /// good.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        if self.steady.on {
            return self.steady.row.next_at();
        }
        // A change may hurry what is on the way.
        let mut next = self.steady.row.next_at().map_or(Instant::FAR, |at| at.min(self.rest.next_change));
        if self.rest.transmitter.busy() {
            // The packet in transmission cannot arrive before this, unless a change comes in between.
            let shortest = if self.rest.config.reorder > 0.0 {
                Duration::ZERO
            } else {
                self.rest.config.jitter.shortest(self.rest.config.delay)
            };
            next = next.min(self.rest.transmitter.finish_at() + shortest).min(self.rest.next_change);
        }
        (next < Instant::FAR).then_some(next)
    }

    /// Is it certain that what comes later arrives later, and that nothing will change by itself?
    #[inline]
    pub(crate) fn keeps_order(&self) -> bool {
        self.steady.on
    }

    /// Changes one thing now.
    pub fn apply(&mut self, now: Instant, set: Setting) {
        let now = self.advance(now);
        self.unsettle();
        self.set(now, set);
        self.judge();
    }

    /// Is the link up, as of the last call that handed in a time?
    pub fn is_up(&self) -> bool {
        self.rest.up
    }

    /// The link as it is now (changes included), as of the last call that handed in a time.
    pub fn config(&self) -> &LinkConfig {
        &self.rest.config
    }

    /// Counters as of the last call that handed in a time.
    pub fn counters(&self) -> LinkCounters {
        let counted =
            LinkCounters { delivered: self.steady.delivered, marked: self.rest.queue.marked(), ..self.rest.counters };
        let Tally { packets, bytes } = self.rest.queue.waiting().plus(self.rest.transmitter.load());
        let overhead = u64::from(self.rest.config.overhead) * packets;
        let held = self.steady.in_row().plus(Tally { packets, bytes: bytes.saturating_sub(overhead) });
        // Not counted at the entrance, but found by the rule of [`LinkCounters`]: spares each packet a count.
        let offered = counted.delivered.plus(counted.dropped()).plus(held).less(counted.duplicated);
        let dropped_loss = counted.dropped_loss.plus(self.steady.lost_by_now());
        LinkCounters { offered, dropped_loss, ..counted }
    }

    /// Frames as of the last call that handed in a time.
    pub fn frames(&self) -> Frames {
        let c = self.counters();
        let lost = c.dropped_loss.plus(c.dropped_repeats).packets;
        // Second copies are made behind the transmitter.
        let through = (c.delivered.packets + self.on_the_way() as u64).saturating_sub(c.duplicated.packets);
        Frames { sent: through + lost, erroneous: lost + c.repaired.packets, repeated: c.repeated.packets }
    }

    /// What waits or is in transmission, in charged bytes (overhead included).
    pub fn backlog(&self) -> Tally {
        if self.steady.on {
            self.steady.backlog()
        } else {
            self.rest.queue.waiting().plus(self.rest.transmitter.load())
        }
    }

    /// How many packets have left and not arrived.
    pub fn on_the_way(&self) -> usize {
        self.steady.left_by_now() - self.steady.lost_by_now().packets as usize
    }

    /// Brings the link to `now` and returns its time after that.
    #[inline]
    pub fn advance(&mut self, now: Instant) -> Instant {
        if !self.steady.on && (self.rest.transmitter.finish_at() <= now || self.rest.next_change <= now) {
            self.catch_up(now);
        }
        self.steady.clock = self.steady.clock.max(now);
        self.steady.clock
    }
}

impl<P> core::fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link")
            .field("up", &self.rest.up)
            .field("clock", &self.steady.clock)
            .field("on_the_way", &self.steady.row.len())
            .field("counters", &self.rest.counters)
            .finish_non_exhaustive()
    }
}
