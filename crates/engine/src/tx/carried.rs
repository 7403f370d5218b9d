//! What the paths carry within the deadline: the rate that an encoder may have.
//!
//! The sum of what the usable paths were measured to carry ([`crate::path::capacity`]), of those that are quick enough
//! for the deadline. It falls at once when that falls, since each tenth of a second above it costs frames, and rises
//! slowly, since a sum of estimates is most often wrong upwards. What waits already has to leave first.
//!
//! A source that offers less shows nothing of what a path carries at most. There the estimate rises above what was ever
//! sent while the source makes use of it and no queue stands: the source that follows probes. Where messages are given up
//! or wait for most of their time the sum was too high, whatever the paths showed: a share of it is believed from then on,
//! which grows back slowly. While something waits all the time, what arrives is what the paths carry, whatever is known of
//! each; where that is less than the sum, the sum is doubted for a while.

use crate::lazy_box::Empty;
use anabranch_base::{Duration, Instant, Rate};

/// Least time between two updates, and between two changes that are published.
pub(crate) const TICK: Duration = Duration::from_millis(50);
const APART: Duration = Duration::from_millis(100);
/// A change of less is none, a part of a thousand.
const NEWS: u64 = 30;
/// Growth a second, parts of a thousand: towards what was measured, and beyond it where only the source was the limit.
const GROWTH: u64 = 400;
const PROBING: u64 = 80;
/// A source that offers so many parts of a thousand of the rate makes use of it.
const IN_USE: u64 = 750;
/// How far beyond what is offered the rate may stand, parts of a thousand.
const BEYOND: u64 = 1_500;
/// Low and middle, parts of a thousand of what the paths carry: of the rest the low one leaves room for repairs and for
/// frames that are larger than others.
const LOW: u64 = 850;
const MIDDLE: u64 = 930;
/// What waits is to have left within this time, but for what always waits after a large frame.
const DRAIN: Duration = Duration::from_secs(1);
/// Looks back in which something waited all the time.
const LOOKS: usize = 8;
/// So much of it at least, as time that it takes to leave, says that the paths are busy.
const BUSY: Duration = Duration::from_millis(40);
/// Time in which the sum is doubted after it was above what arrived.
const DOUBT: Duration = Duration::from_secs(3);
/// The part that is believed: after a misfortune, how far it falls at the most, and how much it grows a second.
const CUT: u64 = 880;
const LEAST: u64 = 500;
const BACK: u64 = 50;
/// Least time between two cuts.
const CUT_APART: Duration = Duration::from_millis(600);
/// Time over which the offered rate is averaged.
const OFFERED: Duration = Duration::from_secs(1);
const THOUSAND: u64 = 1_000;

/// What the paths of an association carry within the deadline of its messages: bytes of them per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsableRate {
    /// Safe for a source whose messages vary in size and have to be repaired.
    pub low: Rate,
    /// To be expected.
    pub middle: Rate,
    /// When it was found.
    pub at: Instant,
    /// How often it has changed; 0 before anything is known.
    pub changes: u64,
}

/// A path, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub capacity: Rate,
    /// Only the source was the limit when that was measured.
    pub may_be_more: bool,
    /// How long the way there takes.
    pub flight: Duration,
    /// Bytes that wait in a queue.
    pub queued: u64,
}

/// What an update is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Payload that the user handed over so far, and that waits to be sent.
    pub offered: u64,
    pub waiting: u64,
    /// Messages given up so far.
    pub given_up: u64,
    /// Payload that arrived so far.
    pub delivered: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// Time that the newest messages with a deadline have; none without one.
    lifetime: Option<Duration>,
    published: UsableRate,
    updated: Instant,
    /// What is believed that the paths carry, bytes a second, before [`Self::share`].
    carried: u64,
    /// Thousandths of that which prove true; none before the first update.
    share: Option<u64>,
    cut_at: Instant,
    offered: u64,
    offered_rate: u64,
    given_up: u64,
    /// At the last looks: when, what waited, what had arrived.
    looks: [(Instant, u64, u64); LOOKS],
    /// What stood on the paths then.
    queued: [u64; LOOKS],
    look: usize,
    doubted_until: Instant,
}

impl Empty for Carried {
    const EMPTY: &'static Carried = &Carried {
        lifetime: None,
        published: UsableRate { low: Rate::ZERO, middle: Rate::ZERO, at: Instant::ZERO, changes: 0 },
        updated: Instant::ZERO,
        carried: 0,
        share: None,
        cut_at: Instant::ZERO,
        offered: 0,
        offered_rate: 0,
        given_up: 0,
        looks: [(Instant::ZERO, 0, 0); LOOKS],
        queued: [0; LOOKS],
        look: 0,
        doubted_until: Instant::ZERO,
    };
}

impl Default for Carried {
    fn default() -> Self {
        *Carried::EMPTY
    }
}

impl Carried {
    /// A message was handed over that is worth something for so long.
    #[inline]
    pub fn lives(&mut self, lifetime: Duration) {
        self.lifetime = Some(lifetime);
    }

    /// Is it time for an update?
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now.since(self.updated) >= TICK
    }

    /// The rate as it was published last.
    pub fn published(&self) -> UsableRate {
        self.published
    }

    /// Takes in how things are.
    pub fn update(&mut self, now: Instant, seen: &Seen, ways: impl Iterator<Item = Way>) {
        let (mut sum, mut more, mut queued) = (0u64, false, 0u64);
        for w in ways.filter(|w| self.is_quick(w)) {
            sum = sum.saturating_add(w.capacity.bytes_per_sec());
            more |= w.may_be_more;
            // What stands on one path keeps the others from nothing.
            queued = queued.saturating_add(w.queued.min(w.capacity.bytes_in(DRAIN)));
        }
        let first = self.share.is_none();
        let passed = if first { TICK } else { now.since(self.updated).min(OFFERED) };
        self.updated = now;
        self.note_offer(seen.offered, passed, first);
        let (unsent, arrives) = self.note_waiting(now, seen.waiting, seen.delivered);
        self.queued[self.look] = queued;
        let waiting = unsent.saturating_add(self.queued.into_iter().min().unwrap_or(0));
        if sum == 0 && self.published.changes == 0 {
            return;
        }
        match arrives.filter(|r| sum > 0 && r.time_for(unsent) >= BUSY).map(Rate::bytes_per_sec) {
            Some(arrives) => {
                if scaled(sum, THOUSAND - 3 * NEWS) > arrives {
                    self.doubted_until = now + DOUBT;
                }
                self.carried = arrives;
            }
            None => self.follow(now, sum, more && waiting == 0, passed),
        }
        self.judge(now, seen.given_up, waiting, passed, first);
        self.tell(now, waiting);
    }

    /// Could what leaves by it come in time, with some time to spare for waiting?
    fn is_quick(&self, w: &Way) -> bool {
        self.lifetime.is_none_or(|l| w.flight <= l * 3 / 4)
    }

    fn note_offer(&mut self, offered: u64, passed: Duration, first: bool) {
        if first {
            self.offered = offered;
        }
        let new = Rate::of(offered.saturating_sub(self.offered), passed).bytes_per_sec();
        let (part, whole) = (passed.as_nanos().min(OFFERED.as_nanos()), OFFERED.as_nanos());
        let mixed = u128::from(self.offered_rate) * u128::from(whole - part) + u128::from(new) * u128::from(part);
        self.offered_rate = (mixed / u128::from(whole)) as u64;
        self.offered = offered;
    }

    /// Answers what has waited all the time lately, and the rate at which something arrived in that time.
    fn note_waiting(&mut self, now: Instant, waiting: u64, delivered: u64) -> (u64, Option<Rate>) {
        let (since, _, before) = self.looks[self.look];
        self.looks[self.look] = (now, waiting, delivered);
        self.look = (self.look + 1) % LOOKS;
        let least = self.looks.iter().map(|l| l.1).min().unwrap_or(0);
        let known = since > Instant::ZERO && delivered > before;
        (least, known.then(|| Rate::of(delivered - before, now.since(since))))
    }

    fn follow(&mut self, now: Instant, sum: u64, more: bool, passed: Duration) {
        if sum <= self.carried && !more {
            self.carried = sum;
            return;
        }
        if sum > self.carried {
            // Half of what was measured is safe at once.
            let from = self.carried.max(sum / 2);
            let growth = if now < self.doubted_until { PROBING } else { GROWTH };
            self.carried = from.saturating_add(part_of(grown(from, growth, passed))).min(sum);
        }
        let used =
            self.offered_rate.saturating_mul(THOUSAND) >= scaled(self.published.low.bytes_per_sec(), IN_USE) * THOUSAND;
        let most = scaled(self.offered_rate, BEYOND).max(sum);
        if more && self.carried >= sum && used {
            self.carried = self.carried.saturating_add(part_of(grown(self.carried, PROBING, passed)));
        }
        self.carried = self.carried.min(most);
    }

    /// Were the paths believed to carry more than they did?
    fn judge(&mut self, now: Instant, given_up: u64, waiting: u64, passed: Duration, first: bool) {
        let lost = !first && given_up > self.given_up;
        self.given_up = given_up;
        let share = self.share.unwrap_or(THOUSAND);
        let rate = Rate::from_bytes_per_sec(scaled(self.carried, share));
        let long = self.lifetime.is_some_and(|l| rate > Rate::ZERO && rate.time_for(waiting) > l / 2);
        let offers_more = self.offered_rate > rate.bytes_per_sec();
        self.share = Some(if (lost || long) && !offers_more && now.since(self.cut_at) >= CUT_APART {
            self.cut_at = now;
            scaled(share, CUT).max(LEAST)
        } else {
            // Thousandths of thousandths would be lost: the time is counted in whole steps of growth.
            let steps = passed.as_millis().saturating_mul(BACK) / THOUSAND;
            (share + steps).min(THOUSAND)
        });
    }

    fn tell(&mut self, now: Instant, waiting: u64) {
        let carried = scaled(self.carried, self.share.unwrap_or(THOUSAND));
        let drains = Rate::of(waiting, DRAIN).bytes_per_sec();
        let left = |part: u64| scaled(carried, part).saturating_sub(drains).max(scaled(carried, part) / 3);
        let (low, middle) = (left(LOW), left(MIDDLE));
        let is_news = |new: u64, old: Rate| new.abs_diff(old.bytes_per_sec()) > scaled(old.bytes_per_sec(), NEWS);
        let news = is_news(low, self.published.low) || is_news(middle, self.published.middle);
        if news && (self.published.changes == 0 || now.since(self.published.at) >= APART) {
            self.published = UsableRate {
                low: Rate::from_bytes_per_sec(low),
                middle: Rate::from_bytes_per_sec(middle),
                at: now,
                changes: self.published.changes + 1,
            };
        }
    }
}

/// So many thousandths of `n`.
fn scaled(n: u64, thousandths: u64) -> u64 {
    (u128::from(n) * u128::from(thousandths) / u128::from(THOUSAND)) as u64
}

/// By how much `n` grows at `thousandths` a second, in parts of [`part_of`].
fn grown(n: u64, thousandths: u64, passed: Duration) -> u128 {
    u128::from(n) * u128::from(thousandths) * u128::from(passed.as_nanos())
}

fn part_of(grown: u128) -> u64 {
    (grown / u128::from(THOUSAND) / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A source that offers `offers` bytes a second over two paths, looked at each 50 ms.
    struct Run {
        c: Carried,
        now: Instant,
        seen: Seen,
        ways: [Way; 2],
        offers: u64,
        /// What arrives, bytes a second, where that is not what the paths seem to carry.
        arrive: Option<u64>,
        /// All rates published, bytes a second.
        published: Vec<UsableRate>,
    }

    impl Run {
        fn new(rates: [u64; 2], offers: u64) -> Self {
            let way = |bytes| Way {
                capacity: Rate::from_bytes_per_sec(bytes),
                may_be_more: false,
                flight: MS(30),
                queued: 0,
            };
            let seen = Seen { offered: 0, waiting: 0, given_up: 0, delivered: 0 };
            let mut c = Carried::default();
            c.lives(MS(400));
            Run {
                c,
                now: Instant::from_millis(1_000),
                seen,
                ways: rates.map(way),
                offers,
                arrive: None,
                published: Vec::new(),
            }
        }
        fn go(&mut self, millis: u64) -> &mut Self {
            for _ in 0..millis / 50 {
                self.now += TICK;
                self.seen.offered += self.offers / 20;
                let carried: u64 = self.ways.iter().map(|w| w.capacity.bytes_per_sec()).sum();
                self.seen.delivered += self.arrive.unwrap_or(self.offers.min(carried)) / 20;
                let before = self.c.published().changes;
                self.c.update(self.now, &self.seen, self.ways.iter().copied());
                if self.c.published().changes != before {
                    self.published.push(self.c.published());
                }
            }
            self
        }
        /// The encoder follows the low rate.
        fn follow(&mut self, millis: u64) -> &mut Self {
            for _ in 0..millis / 50 {
                self.go(50);
                self.offers = self.low();
            }
            self
        }
        fn low(&self) -> u64 {
            self.c.published().low.bytes_per_sec()
        }
        fn middle(&self) -> u64 {
            self.c.published().middle.bytes_per_sec()
        }
        fn carry(&mut self, rates: [u64; 2]) -> &mut Self {
            self.ways.iter_mut().zip(rates).for_each(|(w, r)| w.capacity = Rate::from_bytes_per_sec(r));
            self
        }
    }

    #[test]
    fn it_is_a_part_of_what_the_paths_together_carry() {
        for (a, b) in [(100_000, 0), (100_000, 100_000), (2_000_000, 300_000), (125_000_000, 1)] {
            let mut r = Run::new([a, b], 50_000);
            r.go(10_000);
            let sum = a + b;
            assert!((sum * 82 / 100..=sum * 85 / 100).contains(&r.low()), "{a} {b}: {}", r.low());
            assert!((sum * 90 / 100..=sum * 93 / 100).contains(&r.middle()), "{a} {b}: {}", r.middle());
            assert!(r.low() < r.middle());
        }
    }

    #[test]
    fn nothing_is_told_before_something_is_known() {
        let mut r = Run::new([0, 0], 50_000);
        r.go(2_000);
        assert_eq!((r.c.published().changes, r.low()), (0, 0));
        assert!(r.carry([0, 50_000]).go(50).low() > 0);
    }

    #[test]
    fn a_path_that_is_too_slow_for_the_deadline_does_not_count() {
        let mut r = Run::new([100_000, 900_000], 50_000);
        r.ways[1].flight = MS(301);
        r.go(5_000);
        assert!(r.middle() <= 93_000, "{}", r.middle());
        r.c.lives(MS(402));
        assert!(r.go(10_000).middle() > 500_000);
    }

    #[test]
    fn it_falls_within_a_tenth_of_a_second_and_rises_slowly() {
        for to in [900_000, 500_000, 100_000, 10_000] {
            let mut r = Run::new([1_000_000, 0], 800_000);
            r.go(5_000).carry([to, 0]).go(100);
            assert!(r.middle() <= to * 93 / 100, "{to}: {}", r.middle());
            r.offers = to;
            r.carry([1_000_000, 0]).go(50);
            assert!(r.middle() <= 600_000.max(to), "half at once, no more: {}", r.middle());
            let before = r.middle();
            r.go(1_000);
            assert!(r.middle() <= (before * 3 / 2).max(700_000), "{to}: {before} -> {}", r.middle());
            assert!(r.go(5_000).middle() > 900_000, "{to}: {}", r.middle());
        }
    }

    #[test]
    fn a_source_that_follows_is_not_held_at_what_it_sends() {
        let mut r = Run::new([100_000, 0], 85_000);
        r.ways[0].may_be_more = true;
        let mut last = 0;
        for _ in 0..10 {
            // What it sends is all that the path could show.
            r.follow(2_000);
            let shown = r.offers.max(100_000);
            r.carry([shown, 0]);
            assert!(r.low() >= last, "{} after {last}", r.low());
            last = r.low();
        }
        assert!(last > 200_000, "{last}");
        for pair in r.published.windows(2).skip(3) {
            let (a, b) = (pair[0].low.bytes_per_sec() as f64, pair[1].low.bytes_per_sec() as f64);
            let seconds = pair[1].at.since(pair[0].at).as_secs_f64();
            assert!((b / a).ln() / seconds < 0.6, "{a} -> {b} in {seconds}");
        }
    }

    #[test]
    fn a_source_that_rests_shows_nothing() {
        let mut r = Run::new([100_000, 0], 10_000);
        r.ways[0].may_be_more = true;
        r.go(60_000);
        assert!(r.middle() <= 100_000, "{}", r.middle());
    }

    #[test]
    fn what_stands_still_in_a_queue_holds_it_down_and_a_large_frame_does_not() {
        let mut r = Run::new([1_000_000, 0], 800_000);
        r.go(5_000);
        let before = r.low();
        for _ in 0..20 {
            // An I frame each second, gone after a quarter of it.
            r.seen.waiting = 100_000;
            r.go(250);
            r.seen.waiting = 0;
            r.go(750);
        }
        assert_eq!(r.low(), before);
        r.seen.waiting = 150_000;
        r.arrive = Some(1_000_000);
        r.go(450);
        assert!(r.low() <= before - 140_000, "{}", r.low());
        r.seen.waiting = u64::MAX;
        r.go(1_000);
        assert!(r.low() > 0, "something is left");
    }

    #[test]
    fn what_arrives_while_something_waits_is_what_the_paths_carry() {
        for arrive in [200_000, 600_000, 900_000] {
            let mut r = Run::new([700_000, 300_000], 800_000);
            r.go(5_000);
            (r.seen.waiting, r.arrive) = (arrive / 20, Some(arrive));
            r.go(450);
            assert!(r.middle() <= arrive * 93 / 100, "{arrive}: {}", r.middle());
            // The queue is gone, and what is known of the paths has not changed.
            (r.seen.waiting, r.arrive) = (0, None);
            r.go(2_000);
            assert!(r.middle() <= (arrive * 93 / 100 * 6 / 5).max(600_000), "{arrive}: {}", r.middle());
            assert!(r.go(8_000).middle() > 900_000, "it is believed again: {}", r.middle());
        }
        // Where more arrives than was believed the news is good.
        let mut r = Run::new([500_000, 0], 700_000);
        r.go(5_000);
        (r.seen.waiting, r.arrive) = (60_000, Some(700_000));
        assert!(r.go(450).middle() > 550_000, "{}", r.middle());
    }

    #[test]
    fn where_the_sum_is_a_lie_a_part_of_it_is_believed() {
        let mut r = Run::new([1_000_000, 0], 700_000);
        r.go(5_000);
        for _ in 0..30 {
            r.seen.given_up += 1;
            r.follow(500);
        }
        assert!((350_000..=500_000).contains(&r.low()), "{}", r.low());
        // It grows back once nothing is lost.
        r.go(15_000);
        assert!(r.low() > 800_000, "{}", r.low());
        // A source that does not follow loses whatever is said: nothing is learnt from that.
        r.offers = 5_000_000;
        r.go(3_000);
        for _ in 0..30 {
            r.seen.given_up += 1;
            r.go(500);
        }
        assert!(r.low() > 800_000, "{}", r.low());
    }

    #[test]
    fn it_speaks_seldom_and_only_of_news() {
        let mut r = Run::new([1_000_000, 0], 800_000);
        r.go(10_000);
        r.published.clear();
        for i in 0..200 {
            r.carry([if i % 2 == 0 { 1_000_000 } else { 985_000 }, 0]).go(50);
        }
        assert!(r.published.len() <= 1, "{}", r.published.len());
        for i in 0..200 {
            r.carry([if i % 2 == 0 { 1_000_000 } else { 400_000 }, 0]).go(50);
        }
        for pair in r.published.windows(2) {
            assert!(pair[1].at.since(pair[0].at) >= APART);
        }
    }

    #[test]
    fn no_path_carries_anything_and_then_one_does() {
        let mut r = Run::new([1_000_000, 500_000], 900_000);
        r.go(5_000).carry([0, 0]).go(200);
        assert_eq!((r.low(), r.middle()), (0, 0));
        r.carry([1_000_000, 0]).go(100);
        assert!(r.low() >= 400_000, "half at once: {}", r.low());
    }
}
