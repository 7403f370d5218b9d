//! One direction of a path: queue, transmitter, loss, delay.
//!
//! ```text
//! enqueue -> [mtu, down, loss at entry] -> queue -> transmitter (rate) -> [loss on the wire]
//!         -> duplicate -> delay + jitter (or at once: reorder) -> poll_deliver
//! ```
//!
//! The link is lazy: every call first carries out, in the order of their times, what has happened up
//! to its `now` (packets that left, scheduled changes). So results do not depend on how often it is
//! polled, and [`Link::next_event`] need only name the times at which something can come out.

mod config;
mod counters;
mod jitter;
mod schedule;
mod transmitter;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, LinkConfig, LossPoint};
pub use counters::{LinkCounters, Tally};
pub use jitter::Jitter;
pub use schedule::{Change, Schedule, Setting};

use crate::EventQueue;
use crate::loss::LossModel;
use crate::queue::{Packet, Queue};
use anabranch_base::{Instant, RandomStream};
use schedule::Progress;
use transmitter::Transmitter;

/// What became of a packet at the entrance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Taken. It may still be lost on the wire.
    Queued,
    /// Dropped.
    Dropped(DropReason),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The loss model said so.
    Loss,
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
    config: LinkConfig,
    up: bool,
    clock: Instant,
    progress: Progress,
    queue: Box<dyn Queue<P>>,
    transmitter: Transmitter<P>,
    on_the_way: EventQueue<Delivery<P>>,
    last_arrival: Instant,
    loss: Box<dyn LossModel>,
    random: Streams,
    counters: LinkCounters,
}

/// One named stream per question, so that switching one feature on leaves the others' numbers alone.
struct Streams {
    loss: RandomStream,
    jitter: RandomStream,
    duplicate: RandomStream,
    reorder: RandomStream,
}

impl<P: Clone + Send + 'static> Link<P> {
    /// A link called `name`: its random streams are `{name}.loss`, `{name}.jitter`,
    /// `{name}.duplicate` and `{name}.reorder` of `seed`. It starts empty and up at [`Instant::ZERO`].
    pub fn new(name: &str, seed: u64, config: LinkConfig) -> Self {
        let stream = |of: &str| RandomStream::named(seed, &format!("{name}.{of}"));
        let mut random = Streams {
            loss: stream("loss"),
            jitter: stream("jitter"),
            duplicate: stream("duplicate"),
            reorder: stream("reorder"),
        };
        Link {
            up: true,
            clock: Instant::ZERO,
            progress: Progress::new(config.schedule.clone()),
            queue: config.discipline.build(config.limit),
            transmitter: Transmitter::new(config.rate),
            on_the_way: EventQueue::new(),
            last_arrival: Instant::ZERO,
            loss: config.loss.build(&mut random.loss),
            random,
            counters: LinkCounters::default(),
            config,
        }
    }

    /// Replaces the loss model by one of the caller's own.
    pub fn set_loss_model(&mut self, model: Box<dyn LossModel>) {
        self.loss = model;
    }

    /// Gives a packet of `size` bytes to the link. A `now` before that of an earlier call counts as
    /// that one.
    pub fn enqueue(&mut self, now: Instant, size: u32, payload: P) -> Verdict {
        let now = self.advance(now);
        self.counters.offered.add(size);
        if !self.up {
            return self.drop_packet(size, DropReason::Down);
        }
        if self.config.mtu.is_some_and(|mtu| size > mtu) {
            return self.drop_packet(size, DropReason::Mtu);
        }
        if self.config.loss_point == LossPoint::Entry && self.loss.loses(now, &mut self.random.loss) {
            return self.drop_packet(size, DropReason::Loss);
        }
        let charged = u64::from(size) + u64::from(self.config.overhead);
        let packet = Packet { size, charged, entered: now, payload };
        if self.queue.push(now, packet, self.transmitter.load()).is_err() {
            return self.drop_packet(size, DropReason::Queue);
        }
        self.pump(now);
        Verdict::Queued
    }

    /// The next packet that has arrived by `now`.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<P> {
        self.poll_delivery(now).map(|d| d.payload)
    }

    /// The next packet that has arrived by `now`, with its times.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<P>> {
        let now = self.advance(now);
        let (_, delivery) = self.on_the_way.pop_due(now)?;
        self.counters.delivered.add(delivery.size);
        Some(delivery)
    }

    /// When the next packet that has arrived by `now` did so.
    pub fn peek_arrival(&mut self, now: Instant) -> Option<Instant> {
        let now = self.advance(now);
        self.on_the_way.next_at().filter(|at| *at <= now)
    }

    /// When to poll next: nothing comes out before. `None` while the link is empty or stalled for
    /// good.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.on_the_way.next_at();
        let Some(finish) = self.transmitter.finish() else { return arrival };
        // The packet in transmission cannot arrive before this, unless a change comes in between.
        let soonest =
            if self.config.reorder > 0.0 { finish } else { finish + self.config.jitter.shortest(self.config.delay) };
        let change = self.progress.next_at().filter(|at| *at < soonest);
        [arrival, Some(soonest), change].into_iter().flatten().min().filter(|at| *at < Instant::FAR)
    }

    /// Changes one thing now.
    pub fn apply(&mut self, now: Instant, set: Setting) {
        let now = self.advance(now);
        self.set(now, set);
    }

    /// Is the link up, as of the last call that handed in a time?
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The link as it is now (changes included), as of the last call that handed in a time.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Counters as of the last call that handed in a time.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// What waits or is in transmission, in charged bytes (overhead included).
    pub fn backlog(&self) -> Tally {
        self.queue.waiting().plus(self.transmitter.load())
    }

    /// How many packets have left and not arrived.
    pub fn on_the_way(&self) -> usize {
        self.on_the_way.len()
    }

    /// Brings the link to `now` and returns the time it then stands at.
    pub fn advance(&mut self, now: Instant) -> Instant {
        loop {
            let finish = self.transmitter.finish().filter(|at| *at <= now);
            let change = self.progress.next_at().filter(|at| *at <= now);
            match (finish, change) {
                // What leaves at the very instant of a change has left.
                (Some(f), c) if c.is_none_or(|c| f <= c) => self.pump(f),
                (_, Some(c)) => {
                    if let Some((at, set)) = self.progress.take_due(c) {
                        self.set(at, set);
                    }
                }
                _ => break,
            }
        }
        self.clock = self.clock.max(now);
        self.clock
    }

    /// Lets the transmitter work at `now`: what has finished leaves, what waits starts.
    fn pump(&mut self, now: Instant) {
        loop {
            if let Some((at, packet)) = self.transmitter.take_finished(now) {
                self.launch(at, packet);
            }
            if self.transmitter.busy() {
                return;
            }
            let mut dropped = Tally::default();
            let next = self.queue.pop(now, &mut dropped);
            self.counters.dropped_queue = self.counters.dropped_queue.plus(dropped);
            match next {
                Some(packet) => self.transmitter.start(now, packet),
                None => return,
            }
        }
    }

    /// A packet's last bit has left at `at`.
    fn launch(&mut self, at: Instant, packet: Packet<P>) {
        if self.config.loss_point == LossPoint::Wire && self.loss.loses(at, &mut self.random.loss) {
            self.drop_packet(packet.size, DropReason::Loss);
            return;
        }
        let delivery =
            Delivery { at, entered: packet.entered, size: packet.size, duplicate: false, payload: packet.payload };
        let twice = self.config.duplicate > 0.0 && self.random.duplicate.chance(self.config.duplicate);
        if twice {
            self.counters.duplicated.add(packet.size);
            self.travel(at, delivery.clone());
        }
        self.travel(at, Delivery { duplicate: twice, ..delivery });
    }

    fn travel(&mut self, at: Instant, mut delivery: Delivery<P>) {
        if self.config.reorder > 0.0 && self.random.reorder.chance(self.config.reorder) {
            delivery.at = at;
        } else {
            delivery.at = at + self.config.jitter.vary(self.config.delay, &mut self.random.jitter);
            if !self.config.jitter_reorders {
                delivery.at = delivery.at.max(self.last_arrival);
                self.last_arrival = delivery.at;
            }
        }
        self.on_the_way.push(delivery.at, delivery);
    }

    fn set(&mut self, now: Instant, set: Setting) {
        match set {
            Setting::Rate(rate) => {
                self.config.rate = rate;
                self.transmitter.set_rate(now, rate);
                self.pump(now);
            }
            Setting::Delay(delay) => self.config.delay = delay,
            Setting::Jitter(jitter) => self.config.jitter = jitter,
            Setting::Loss(loss) => {
                self.loss = loss.build(&mut self.random.loss);
                self.config.loss = loss;
            }
            Setting::Limit(limit) => {
                self.config.limit = limit;
                self.queue.set_limit(limit);
            }
            Setting::Duplicate(p) => self.config.duplicate = p,
            Setting::Reorder(p) => self.config.reorder = p,
            Setting::Mtu(mtu) => self.config.mtu = mtu,
            Setting::Up => self.up = true,
            Setting::Down => {
                self.up = false;
                if let Some(packet) = self.transmitter.abort() {
                    self.drop_packet(packet.size, DropReason::Down);
                }
                self.counters.dropped_down = self.counters.dropped_down.plus(self.queue.clear());
            }
        }
    }

    fn drop_packet(&mut self, size: u32, reason: DropReason) -> Verdict {
        self.counters.of(reason).add(size);
        Verdict::Dropped(reason)
    }
}

impl<P> core::fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link")
            .field("up", &self.up)
            .field("clock", &self.clock)
            .field("on_the_way", &self.on_the_way.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
