//! What a path can carry, from what it delivers.
//!
//! Two kinds of evidence. Samples of the delivery rate (see [`super::rate`]) bound it from below: the largest of the
//! last spans is the estimate while the path holds no queue. Where a queue stands (round trips exceed the smallest
//! by more than their usual variation), what comes out of it is the rate of the bottleneck, whatever was believed: the
//! estimate is at most that while the queue lasts, and is replaced by it when that goes on.
//! Silence says nothing of the rate: without acknowledgements the estimate stays what it was.

use anabranch_base::{Duration, Instant, Rate};

/// Least length of a span whose largest sample counts, and of a measurement of what leaves a queue.
const SPAN: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_millis(80);
/// Longest measurement; slower paths have too few packets in it.
const LONGEST: Duration = Duration::from_millis(400);
/// Packets that make a measurement.
const ENOUGH: u32 = 5;
/// Points of the way between two measurements.
const MARKS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Instant,
    delivered: u64,
    packets: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    /// Largest samples of the current and the previous span.
    best: [Rate; 2],
    /// Was there a sample in them that the source did not limit?
    filled: [bool; 2],
    span_began: Instant,
    /// What was delivered up to points in the past, oldest first from `next` on.
    marks: [Mark; MARKS],
    next: usize,
    total: Mark,
    /// Since when a queue stands without a break.
    queued_since: Option<Instant>,
    /// Since when it empties far slower than was believed.
    slow_since: Option<Instant>,
    drain: Option<Rate>,
    /// What a train of packets showed, and until when that counts.
    guess: Option<(Rate, Instant)>,
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    pub rate: Rate,
    /// The sender had less to send than the path would have taken.
    pub app_limited: bool,
}

impl Capacity {
    /// A sample of the delivery rate, taken on a path with this round trip.
    pub fn sample(&mut self, now: Instant, s: RateSample, rtt: Duration) {
        // A source that offers less than the path carries shows nothing better.
        if !s.app_limited && self.guess.is_some_and(|(_, until)| now > until) {
            self.guess = None;
        }
        if s.app_limited && s.rate <= self.best() {
            return;
        }
        // Only what could have shown more ends a span: a source that pauses has shown nothing.
        if now.since(self.span_began) > SPAN.max(rtt * 8) {
            self.best = [Rate::ZERO, self.best[0]];
            self.filled = [false, self.filled[0]];
            self.span_began = now;
        }
        self.filled[0] |= !s.app_limited;
        self.best[0] = self.best[0].max(s.rate);
    }

    /// What a train of packets showed: better than nothing until data show what the path carries.
    pub fn guess(&mut self, now: Instant, rate: Rate, rtt: Duration) {
        self.guess = Some((rate, now + SPAN.max(rtt * 8)));
    }

    /// `bytes` in `packets` were acknowledged; `queued`: a queue stood when they passed.
    pub fn delivered(&mut self, now: Instant, bytes: u64, packets: u32, queued: bool, rtt: Duration) {
        self.total = Mark {
            at: now,
            delivered: self.total.delivered.saturating_add(bytes),
            packets: self.total.packets.wrapping_add(packets),
        };
        self.drain = self.drain.filter(|_| queued);
        self.queued_since = if queued { self.queued_since.or(Some(now)) } else { None };
        match self.queued_since {
            Some(since) => self.measure(now, since, rtt),
            None => self.slow_since = None,
        }
        let newest = self.marks[(self.next + MARKS - 1) % MARKS];
        if now.since(newest.at) >= LONGEST / MARKS as u64 {
            self.marks[self.next] = self.total;
            self.next = (self.next + 1) % MARKS;
        }
    }

    /// What left the queue between a point in the past and now.
    fn measure(&mut self, now: Instant, since: Instant, rtt: Duration) {
        let from = (0..MARKS).map(|i| self.marks[(self.next + MARKS - 1 - i) % MARKS]).find(|m| {
            let enough = self.total.packets.wrapping_sub(m.packets) >= ENOUGH;
            now.since(m.at) >= MEASURE && enough && m.at >= since
        });
        let Some(from) = from.filter(|m| now.since(m.at) <= LONGEST * 2) else { return };
        let rate = Rate::of(self.total.delivered - from.delivered, now.since(from.at));
        self.drain = Some(rate);
        self.guess = None;
        let best = self.best();
        if rate.bytes_per_sec() >= best.bytes_per_sec() / 5 * 4 {
            self.slow_since = None;
            return;
        }
        let slow = *self.slow_since.get_or_insert(now);
        if now.since(slow) >= (MEASURE * 2).max(rtt) {
            self.best = [rate, Rate::ZERO];
            self.filled = [true, false];
            self.span_began = now;
            self.slow_since = None;
        }
    }

    fn best(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// The estimate; zero before there is any evidence.
    pub fn rate(&self) -> Rate {
        let best = self.guess.map_or(self.best(), |(g, _)| g.max(self.best()));
        self.drain.map_or(best, |d| d.min(best))
    }

    /// Only a source that offered less has shown it: the path carries that much, and may carry more.
    pub fn is_lower_bound(&self) -> bool {
        self.guess.is_none() && self.drain.is_none() && self.filled == [false; 2]
    }

    /// Another route: nothing learnt holds.
    pub fn restart(&mut self) {
        *self = Capacity { total: self.total, ..Capacity::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    struct Run {
        c: Capacity,
        at: Instant,
    }

    impl Run {
        fn new() -> Self {
            Run { c: Capacity::default(), at: Instant::from_millis(1_000) }
        }
        /// One packet of 1000 bytes every `gap` ms for `millis`.
        fn go(&mut self, millis: u64, gap: u64, queued: bool) -> &mut Self {
            for _ in 0..millis / gap {
                self.at += MS(gap);
                self.c.delivered(self.at, 1_000, 1, queued, MS(50));
                let s = RateSample { rate: Rate::of(1_000, MS(gap)), app_limited: !queued };
                self.c.sample(self.at, s, MS(50));
            }
            self
        }
        fn rate(&self) -> u64 {
            self.c.rate().bytes_per_sec()
        }
    }

    #[test]
    fn a_source_that_offers_less_does_not_talk_it_down() {
        let mut r = Run::new();
        r.go(500, 1, true).go(20_000, 10, false);
        assert_eq!(r.rate(), 1_000_000);
    }

    #[test]
    fn a_queue_that_empties_slowly_is_believed_soon_and_forgotten_with_the_queue() {
        let mut r = Run::new();
        r.go(500, 1, false);
        r.go(200, 10, true);
        assert!((80_000..=125_000).contains(&r.rate()), "{}", r.rate());
        r.go(10, 10, false);
        assert!(r.rate() >= 80_000);
    }

    #[test]
    fn a_collapse_that_lasts_replaces_the_estimate() {
        let mut r = Run::new();
        r.go(3_000, 1, true).go(700, 10, true).go(1_000, 20, false);
        assert!((80_000..=125_000).contains(&r.rate()), "{}", r.rate());
        r.go(200, 2, true);
        assert!(r.rate() >= 400_000, "more is news at once: {}", r.rate());
    }

    #[test]
    fn what_a_train_showed_counts_until_data_show_more() {
        let mut r = Run::new();
        r.go(1_000, 100, false);
        assert!(r.c.is_lower_bound() && r.rate() == 10_000);
        r.c.guess(r.at, Rate::from_bytes_per_sec(2_000_000), MS(50));
        r.go(20_000, 100, false);
        assert_eq!((r.rate(), r.c.is_lower_bound()), (2_000_000, false), "a sparse source");
        r.go(1_500, 1, true);
        assert_eq!(r.rate(), 1_000_000);
    }

    #[test]
    fn silence_says_nothing() {
        let mut r = Run::new();
        r.go(500, 1, true);
        r.at += MS(2_000);
        r.go(4, 1, true);
        assert_eq!(r.rate(), 1_000_000);
    }
}
