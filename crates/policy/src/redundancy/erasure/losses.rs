//! Sums for what will be lost: how many are wanted of what is in flight, and by which path.

use super::summed::part;
use super::{ENOUGH, Erasure, IN_TIME, NO_LOSS, in_flight};
use crate::parity::{MOST_COVERED, MOST_SPAN};
use crate::predict::Forecast;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId, Tsn, earlier};
use anabranch_code::Code;

/// Standard deviations above the losses that are to be expected.
const DEVIATIONS: f64 = 2.0;
/// A sum is worth its bytes when this much of it is wanted.
const WORTH: f64 = 0.5;

/// What is in flight and would need parity.
#[derive(Default)]
struct Cover {
    expected: f64,
    variance: f64,
    /// When the first of it is too old or too late.
    until: Option<Instant>,
    in_time: bool,
    summed: bool,
}

/// When a repetition of what left by `from` arrives, of which the way takes so long: a loss shows when what left after it is
/// answered; then the repetition is on its way.
pub(super) fn repeated(from: &PathView, sent: Instant, quickest: Duration) -> Instant {
    sent + from.mean_rtt + from.mean_rtt / 8 + quickest
}

impl Erasure {
    /// Gathers into `plan` what a sum that arrives at `arrival` is to cover.
    fn gather(
        &mut self,
        cx: &AssocView<'_>,
        arrival: Instant,
        quickest: Duration,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Cover {
        let (mut cover, mut begins) = (Cover::default(), 0);
        self.plan.clear();
        self.on.clear();
        self.on.resize(cx.paths.len(), 0);
        for c in outstanding {
            let Some((from, sent, deadline)) = in_flight(cx, &c, self.latency) else { continue };
            if cx.now.since(sent) > self.window || c.live_copies != 1 {
                continue;
            }
            if repeated(from, sent, quickest) <= deadline {
                cover.in_time = true;
                continue;
            }
            if arrival > deadline {
                continue;
            }
            if self.summed.has(c.tsn) {
                cover.summed = true;
                continue;
            }
            // Too far apart for one sum: the newest are what others do not cover.
            while self.plan.len() - begins >= MOST_COVERED
                || self.plan.get(begins).is_some_and(|f| u64::from(c.tsn.distance(*f)) >= MOST_SPAN)
            {
                begins += 1;
            }
            self.plan.push(c.tsn);
            let loss = f64::from(from.loss.0) / 1e6;
            cover.expected += loss;
            cover.variance += loss * (1.0 - loss);
            if let Some(n) = self.on.get_mut(from.id.index()) {
                *n += 1;
            }
            cover.until = earlier(cover.until, Some((deadline - quickest).min(sent + self.window)));
        }
        self.plan.drain(..begins);
        cover
    }

    /// How many of earlier sums cover what is planned now: none of plain ones.
    fn covered(&self) -> f64 {
        if self.code == Code::Xor {
            return 0.0;
        }
        let (Some(first), Some(last)) = (self.plan.first(), self.plan.last()) else { return 0.0 };
        let span = f64::from(last.distance(*first) + 1);
        let overlap = |(from, to): &(Tsn, Tsn)| {
            if to.before(*first) || from.after(*last) {
                return 0.0;
            }
            let from = if from.before(*first) { first } else { from };
            let to = if to.after(*last) { last } else { to };
            f64::from(to.distance(*from) + 1) / span
        };
        self.recent.iter().map(overlap).sum()
    }

    /// Nothing has changed since none was wanted.
    pub(super) fn is_no_sum_wanted(&mut self, cx: &AssocView<'_>) -> bool {
        let none = self.no_sum.holds(cx);
        if let Some(why) = self.no_sum.why().filter(|_| none) {
            self.count(why);
        }
        none
    }

    /// The path of the next sum, if one is wanted.
    pub(super) fn decide(
        &mut self,
        cx: &AssocView<'_>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        let arrives = |p: &PathView| Forecast::of(cx.now, p).arrival(p.mtu);
        let quickest = cx.open().map(arrives).min()?;
        let cover = self.gather(cx, cx.now + quickest, quickest, outstanding);
        let wanted = cover.expected + DEVIATIONS * cover.variance.sqrt();
        if wanted - self.covered() < WORTH {
            let why = match (self.plan.is_empty(), cover.summed) {
                (true, false) => cover.in_time.then_some(IN_TIME),
                (true, true) => Some(ENOUGH),
                (false, _) => Some(if cover.expected > 0.0 { ENOUGH } else { NO_LOSS }),
            };
            why.into_iter().for_each(|w| self.count(w));
            // What is wanted grows with what leaves or is lost alone; what others cover of it may shrink as it gets old.
            self.no_sum.begin(cx, cover.until.filter(|_| wanted >= WORTH), why);
            return None;
        }
        let carries = |p: &PathView| self.on.get(p.id.index()).copied().unwrap_or(0);
        let most = |p: &PathView| 2 * carries(p) > self.plan.len();
        let best = cx.open().min_by_key(|p| (most(p), arrives(p)))?;
        if self.code == Code::Xor {
            let paid = self.credit / (best.mtu.max(1) * 1_000_000);
            part(&mut self.plan, (wanted.round() as u64).min(paid).max(1) as usize);
        }
        Some(best.id)
    }
}
