//! A link on which nothing will change: the moment a packet comes, all its times are known.
//!
//! That is most links most of the time: first in, first out, at one rate, with one delay. Then nothing need happen
//! when a packet begins to leave or has left, and the whole link is one row of packets: on the way, in transmission,
//! waiting. [`Link`](super::Link) falls back to its general form as soon as something is to change.

use super::arrivals::{Arrivals, Travelling};
use super::{Link, LinkConfig, Tally};
use crate::damage::DamageConfig;
use crate::queue::{Discipline, Packet, Queue};
use anabranch_base::{Duration, Instant, Rate};
use std::sync::Arc;

/// What does not change while a link is steady. Links with equal terms share them, so that it stays in the cache.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Terms {
    mtu: u32,
    overhead: u32,
    /// Bytes per second; 0 sends at once.
    rate: u64,
    /// Nanoseconds for a byte, where they are whole; else 0. Spares a division for each packet.
    byte_time: u64,
    delay: Duration,
    /// The most packets and bytes.
    limit: (u64, u64),
}

impl Terms {
    fn of(config: &LinkConfig) -> Self {
        let rate = config.rate.map_or(0, Rate::bytes_per_sec);
        Terms {
            mtu: config.mtu.unwrap_or(u32::MAX),
            overhead: config.overhead,
            rate,
            byte_time: if rate > 0 && 1_000_000_000 % rate == 0 { 1_000_000_000 / rate } else { 0 },
            delay: config.delay,
            limit: (config.limit.packets.unwrap_or(u64::MAX), config.limit.bytes.unwrap_or(u64::MAX)),
        }
    }
}

/// What a packet touches on its way through a steady link, and no more: with many links, each line of the cache counts.
#[derive(Debug)]
pub(super) struct Steady<P> {
    /// Is the link steady now? Then its transmitter is idle and its schedule empty.
    pub on: bool,
    /// Is it steady, and loses nothing at random?
    pub plain: bool,
    /// Has it dropped what may be taken back?
    pub dropped: bool,
    pub row: Arrivals<P>,
    pub clock: Instant,
    pub delivered: Tally,
    pub terms: Arc<Terms>,
    /// How many at the head of the row are known to have left.
    gone: u32,
    /// The others' bytes with overhead.
    held: u64,
    /// When the last packet will have left.
    free_at: Instant,
    /// Work done beyond it, as the transmitter counts it.
    surplus: u64,
}

impl<P> Steady<P> {
    pub fn new(config: &LinkConfig) -> Self {
        Steady {
            on: false,
            plain: false,
            dropped: false,
            row: Arrivals::new(),
            clock: Instant::ZERO,
            delivered: Tally::default(),
            terms: Arc::new(Terms::of(config)),
            gone: 0,
            held: 0,
            free_at: Instant::FAR,
            surplus: 0,
        }
    }

    /// Can a link like this be steady, its schedule aside?
    pub fn fits(config: &LinkConfig) -> bool {
        config.discipline == Discipline::DropTail
            && config.deliveries.is_none()
            && config.rate != Some(Rate::ZERO)
            && config.jitter == super::Jitter::None
            && !config.jitter_reorders
            && config.duplicate == 0.0
            && config.reorder == 0.0
            && config.damage == DamageConfig::None
            && !config.limit.waiting_only
            && config.repeats == 0
    }

    /// From now on steady. The transmitter is free; it last had `surplus` to spare, at that instant.
    pub fn begin(&mut self, config: &LinkConfig, lossless: bool, surplus: (Instant, u64)) {
        self.on = true;
        self.plain = lossless;
        let terms = Terms::of(config);
        if *self.terms != terms {
            self.terms = Arc::new(terms);
        }
        (self.free_at, self.surplus) = surplus;
        self.gone = self.row.len() as u32;
        self.held = 0;
        // What left at this very instant still counts for what comes at it.
        while self.gone > 0
            && self.left(self.gone as usize - 1).is_some_and(|left| left >= self.clock && self.terms.rate > 0)
        {
            self.gone -= 1;
            self.held += u64::from(self.charged(self.gone as usize));
        }
    }

    /// The larger of size and MTU decides.
    #[inline]
    pub fn fits_mtu(&self, size: u32) -> bool {
        size <= self.terms.mtu
    }

    fn left(&self, place: usize) -> Option<Instant> {
        Some(self.row.get(place)?.at - self.terms.delay)
    }

    fn charged(&self, place: usize) -> u32 {
        self.row.get(place).map_or(0, |p| p.size).saturating_add(self.terms.overhead)
    }

    #[inline]
    fn is_full(&self, charged: u64) -> bool {
        let packets = (self.row.len() - self.gone as usize) as u64;
        packets >= self.terms.limit.0 || self.held.saturating_add(charged) > self.terms.limit.1
    }

    /// Finds out what has left by `now`.
    fn let_go(&mut self, now: Instant) {
        let latest = now + self.terms.delay;
        while let Some(packet) = self.row.get(self.gone as usize)
            && (packet.at < latest || self.terms.rate == 0)
        {
            self.held -= u64::from(packet.size) + u64::from(self.terms.overhead);
            self.gone += 1;
        }
    }

    /// When a packet of `size` bytes that comes now will have left; `None` if there is no room.
    #[inline]
    pub fn admit(&mut self, now: Instant, size: u32) -> Option<Instant> {
        let charged = u64::from(size) + u64::from(self.terms.overhead);
        // What has left is looked for only when it matters.
        if self.is_full(charged) {
            self.let_go(now);
            if self.is_full(charged) {
                return None;
            }
        }
        if self.terms.rate == 0 {
            return Some(now);
        }
        let (since, surplus) =
            if self.free_at == Instant::FAR || now > self.free_at { (now, 0) } else { (self.free_at, self.surplus) };
        if surplus == 0 && self.terms.byte_time > 0 {
            self.free_at = since + Duration::from_nanos(charged * self.terms.byte_time);
            self.surplus = 0;
            return Some(self.free_at);
        }
        let work = (charged * 1_000_000_000).saturating_sub(surplus);
        let time = work.div_ceil(self.terms.rate);
        self.free_at = since + Duration::from_nanos(time);
        self.surplus = time.saturating_mul(self.terms.rate).saturating_sub(work);
        Some(self.free_at)
    }

    /// Puts an admitted packet into the row.
    #[inline(always)]
    pub fn enter(&mut self, packet: Travelling<P>) {
        self.held += u64::from(packet.size) + u64::from(self.terms.overhead);
        self.row.push_last(packet);
    }

    /// Arrival of what leaves at `left`.
    #[inline]
    pub fn arrival(&self, left: Instant) -> Instant {
        left + self.terms.delay
    }

    /// Has a packet arrived by `now`?
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.row.next_at().is_some_and(|at| at <= self.clock.max(now))
    }

    /// The next packet that has arrived by `now`, where none is lost.
    #[inline]
    pub fn take(&mut self, now: Instant) -> Option<P> {
        self.clock = self.clock.max(now);
        let packet = self.row.pop_due(self.clock)?;
        self.taken(packet.size);
        self.delivered.add(packet.size);
        Some(packet.payload)
    }

    /// The head of the row has been taken.
    #[inline]
    pub fn taken(&mut self, size: u32) {
        if self.gone > 0 {
            self.gone -= 1;
        } else {
            self.held = self.held.saturating_sub(u64::from(size) + u64::from(self.terms.overhead));
        }
    }

    /// How many at the head of the row have left by now.
    pub fn left_by_now(&self) -> usize {
        if !self.on {
            return self.row.len();
        }
        self.row.iter().take_while(|p| p.at - self.terms.delay <= self.clock).count()
    }

    /// What waits or is in transmission now, in bytes with overhead.
    pub fn backlog(&self) -> Tally {
        (self.left_by_now()..self.row.len()).fold(Tally::default(), |sum, i| sum.with(self.charged(i)))
    }

    /// All in the row, without overhead.
    pub fn in_row(&self) -> Tally {
        self.row.iter().fold(Tally::default(), |sum, p| sum.with(p.size))
    }

    /// What has left and will not arrive.
    pub fn lost_by_now(&self) -> Tally {
        let lost = self.row.iter().take(self.left_by_now()).filter(|p| p.lost);
        lost.fold(Tally::default(), |sum, p| sum.with(p.size))
    }

    /// What has left at this very instant, in bytes with overhead.
    fn left_just_now(&self, from: usize) -> Tally {
        let now = (0..from).rev().take_while(|i| self.terms.rate > 0 && self.left(*i) == Some(self.clock));
        now.fold(Tally::default(), |sum, i| sum.with(self.charged(i)))
    }

    /// No longer steady: gives back what has been lost, and what has not left, in order.
    pub fn end(&mut self) -> (Tally, Vec<Travelling<P>>, Ended) {
        let (from, lost) = (self.left_by_now(), self.lost_by_now());
        let left_at = (self.clock, self.left_just_now(from));
        let before = from.checked_sub(1).and_then(|i| self.left(i)).unwrap_or(Instant::ZERO);
        let waiting = self.row.split_off(from);
        let left = |p: &Travelling<P>| p.at - self.terms.delay;
        // Each begins when the one before has left, with what that had to spare; so backwards from the last.
        let mut surplus = self.surplus;
        for pair in waiting.windows(2).rev() {
            let time = left(&pair[1]).since(left(&pair[0])).as_nanos();
            let work = (u64::from(pair[1].size) + u64::from(self.terms.overhead)) * 1_000_000_000;
            surplus = (surplus + work).saturating_sub(time.saturating_mul(self.terms.rate));
        }
        let first = waiting.first().map_or(Sending::default(), |p| {
            let (since, finish) = (before.max(p.entered), left(p));
            let work = finish.since(since).as_nanos().saturating_mul(self.terms.rate).saturating_sub(surplus);
            Sending { since, finish, work }
        });
        let surplus = if waiting.is_empty() { (self.free_at, self.surplus) } else { (Instant::FAR, 0) };
        (self.on, self.plain) = (false, false);
        self.row.forget_lost();
        (lost, waiting, Ended { first, surplus, left: left_at })
    }
}

/// What the transmitter needs to know to go on by itself.
pub(super) struct Ended {
    /// Of the packet in transmission, if there is one.
    pub first: Sending,
    /// Work done beyond the last packet, and the instant it may be used at.
    pub surplus: (Instant, u64),
    /// What has left at this instant, in charged bytes.
    pub left: (Instant, Tally),
}

/// How far the transmission of a packet has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    pub since: Instant,
    pub finish: Instant,
    pub work: u64,
}

impl<P: Clone + Send + 'static> Link<P> {
    /// Finds out whether the link may be steady from now on.
    pub(super) fn judge(&mut self) {
        self.rest.may_be_steady = self.rest.up
            && self.rest.next_change == Instant::FAR
            && self.rest.notices.is_none()
            && Steady::<P>::fits(&self.rest.config);
        self.settle_down(self.steady.clock);
    }

    /// Becomes steady if it may and the transmitter is free.
    pub(super) fn settle_down(&mut self, now: Instant) {
        let order_holds = self.rest.last_arrival <= now + self.rest.config.delay;
        if self.rest.may_be_steady
            && !self.rest.transmitter.busy()
            && self.rest.queue.waiting().packets == 0
            && order_holds
        {
            self.steady.begin(&self.rest.config, self.rest.loss.nothing(), self.rest.transmitter.surplus());
        }
    }

    /// Takes the general form, in which anything may change.
    pub(super) fn unsettle(&mut self) {
        self.rest.may_be_steady = false;
        if !self.steady.on {
            return;
        }
        let (lost, rest, ended) = self.steady.end();
        self.rest.transmitter.take_over(&ended);
        self.rest.counters.dropped_loss = self.rest.counters.dropped_loss.plus(lost);
        self.rest.last_arrival = self.steady.row.last_at().unwrap_or(Instant::ZERO);
        let overhead = u64::from(self.rest.config.overhead);
        for p in rest {
            self.rest.decided.push_back(p.lost);
            let charged = u64::from(p.size) + overhead;
            let packet = Packet { size: p.size, charged, entered: p.entered, payload: p.payload };
            if self.rest.transmitter.busy() {
                // It was admitted when it came.
                self.rest.queue.put(packet);
            } else {
                self.rest.transmitter.resume(packet, ended.first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Change, DropReason, Limit, Link, LinkConfig, LossConfig, LossPoint, Schedule, Setting, Verdict};
    use anabranch_base::{Duration, Instant, Rate};
    use proptest::prelude::*;

    fn config(rate: Option<u64>, loss: bool, entry: bool) -> LinkConfig {
        LinkConfig {
            loss: if loss { LossConfig::bernoulli(0.3) } else { LossConfig::None },
            loss_point: if entry { LossPoint::Entry } else { LossPoint::Wire },
            mtu: Some(1_400),
            overhead: 20,
            limit: Limit { packets: Some(5), bytes: Some(4_000), waiting_only: false },
            ..LinkConfig::fixed(rate.map(Rate::from_bytes_per_sec), Duration::from_nanos(3_000))
        }
    }

    /// Changed at the instant at which a packet has left, with part of a nanosecond to spare for the next.
    #[test]
    fn what_a_packet_spares_outlasts_a_change() {
        let plain = LinkConfig { limit: Limit::packets(1), ..config(Some(700_000_001), false, false) };
        let never = Change { at: Duration::from_secs(3_600), set: Setting::Up };
        let waiting = plain.clone().with_schedule(Schedule::once(vec![never]));
        let arrivals = [plain, waiting].map(|config| {
            let (mut link, left) = (Link::new("l", 1, config), Instant::from_nanos(405)); // 404.3 are needed.
            assert_eq!(link.enqueue(Instant::ZERO, 263, 0), Verdict::Queued);
            link.apply(left, Setting::Delay(Duration::from_nanos(2_000)));
            // It still counts for what comes as it leaves.
            assert_eq!(link.enqueue(left, 1, 1), Verdict::Dropped(DropReason::Queue));
            link.apply(left, Setting::Limit(Limit::packets(2)));
            assert_eq!(link.enqueue(left, 767, 2), Verdict::Queued); // 1,124.3 would be 1,125.
            link.poll_delivery(Instant::from_nanos(3_405)).unwrap();
            link.poll_delivery(Instant::from_millis(1)).unwrap().at
        });
        assert_eq!(arrivals.map(Instant::as_nanos), [405 + 1_124 + 2_000; 2]);
    }

    proptest! {
        /// A link that could be steady does what one does that waits for a change, which never comes in time; whatever
        /// is asked of it in between, and when it is changed by hand.
        #[test]
        fn steady_and_general_links_agree(
            rate in proptest::option::of(prop_oneof![Just(1_000_000_000u64), Just(700_000_001), Just(333_333_333)]),
            (loss, entry) in any::<(bool, bool)>(),
            steps in proptest::collection::vec((0u64..4_000, 1u32..1_500, 0u8..4), 1..80),
            cut in proptest::option::of(0usize..80),
        ) {
            let plain = config(rate, loss, entry);
            let never = Change { at: Duration::from_secs(3_600), set: Setting::Up };
            let waiting = plain.clone().with_schedule(Schedule::once(vec![never]));
            let mut links = [plain, waiting].map(|c| Link::new("l", 1, c));
            prop_assert!(links[0].steady.on && !links[1].steady.on);
            let mut now = Instant::ZERO;
            for (i, (gap, size, looks)) in steps.into_iter().enumerate() {
                now += Duration::from_nanos(gap);
                if cut == Some(i) {
                    links.iter_mut().for_each(|l| l.apply(now, Setting::Delay(Duration::from_nanos(2_000))));
                }
                let [a, b] = &mut links;
                prop_assert_eq!(a.enqueue(now, size, i), b.enqueue(now, size, i), "packet {}", i);
                for _ in 0..looks {
                    prop_assert_eq!(a.poll_delivery(now), b.poll_delivery(now));
                }
                prop_assert_eq!((a.backlog(), a.counters(), a.frames()), (b.backlog(), b.counters(), b.frames()));
            }
            let [a, b] = &mut links;
            loop {
                let next = [a.next_event(), b.next_event()].into_iter().flatten().min();
                let Some(next) = next else { break };
                now = now.max(next);
                let got = a.poll_delivery(now);
                prop_assert_eq!(&got, &b.poll_delivery(now));
                if got.is_none() && now < Instant::from_millis(1) {
                    now += Duration::from_nanos(100);
                } else if got.is_none() {
                    break;
                }
            }
            prop_assert_eq!(a.counters(), b.counters());
        }
    }
}
