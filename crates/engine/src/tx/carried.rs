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
#[path = "carried_tests.rs"]
mod tests;
