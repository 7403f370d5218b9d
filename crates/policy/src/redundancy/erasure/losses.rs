//! Sums for what will be lost: how many are wanted of what is in flight, and by which path.
//!
//! One sum covers 128 chunks at most. What is more is divided into blocks of that size, the newest first, and each block has
//! the sums that its own losses call for.

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
    /// When the first of it is too old or too late.
    until: Option<Instant>,
    in_time: bool,
    summed: bool,
}

/// A chunk that a sum may cover.
#[derive(Clone, Copy)]
pub(super) struct Coverable {
    tsn: Tsn,
    from: PathId,
    /// How probable it is that it was lost.
    loss: f64,
}

/// The newest of these that one sum can cover begin here.
fn last_block(all: &[Coverable]) -> usize {
    let Some(last) = all.last() else { return 0 };
    let far = all.partition_point(|c| u64::from(last.tsn.distance(c.tsn)) >= MOST_SPAN);
    far.max(all.len().saturating_sub(MOST_COVERED))
}

/// Losses to be expected of these, and their variance.
fn expected(block: &[Coverable]) -> (f64, f64) {
    block.iter().fold((0.0, 0.0), |(sum, variance), c| (sum + c.loss, variance + c.loss * (1.0 - c.loss)))
}

/// When a repetition of what left by `from` arrives, of which the way takes so long: a loss shows when what left after it is
/// answered; then the repetition is on its way.
pub(super) fn repeated(from: &PathView, sent: Instant, quickest: Duration) -> Instant {
    sent + from.mean_rtt + from.mean_rtt / 8 + quickest
}

impl Erasure {
    /// Gathers into `coverable` what sums that arrive at `arrival` may cover.
    fn gather(
        &mut self,
        cx: &AssocView<'_>,
        arrival: Instant,
        quickest: Duration,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Cover {
        let mut cover = Cover::default();
        self.coverable.clear();
        let mut outstanding = outstanding.peekable();
        // Sums of what is answered cover nothing any more.
        if let Some(oldest) = outstanding.peek() {
            while self.recent.front().is_some_and(|(_, last)| last.before(oldest.tsn)) {
                self.recent.pop_front();
            }
        }
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
            self.coverable.push(Coverable { tsn: c.tsn, from: from.id, loss: f64::from(from.loss.0) / 1e6 });
            cover.until = earlier(cover.until, Some((deadline - quickest).min(sent + self.window)));
        }
        cover
    }

    /// How many of earlier sums cover this block: none of plain ones.
    fn covered(&self, block: &[Coverable]) -> f64 {
        if self.code == Code::Xor {
            return 0.0;
        }
        let (Some(first), Some(last)) = (block.first(), block.last()) else { return 0.0 };
        let (first, last) = (&first.tsn, &last.tsn);
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

    /// Plans the newest block that lacks a sum: how many are wanted of it. Or the most that is wanted of a block that lacks
    /// none.
    fn plan_block(&mut self) -> Result<f64, f64> {
        self.plan.clear();
        self.on.fill(0);
        let (mut end, mut most) = (self.coverable.len(), 0.0f64);
        while let Some(left) = self.coverable.get(..end).filter(|l| !l.is_empty()) {
            let begin = last_block(left);
            let block = left.get(begin..).unwrap_or_default();
            let (losses, variance) = expected(block);
            let wanted = losses + DEVIATIONS * variance.sqrt();
            if wanted - self.covered(block) >= WORTH {
                for c in block {
                    self.plan.push(c.tsn);
                    if let Some(n) = self.on.get_mut(c.from.index()) {
                        *n += 1;
                    }
                }
                return Ok(wanted);
            }
            (end, most) = (begin, most.max(wanted));
        }
        Err(most)
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
        self.on.resize(cx.paths.len(), 0);
        let wanted = match self.plan_block() {
            Ok(wanted) => wanted,
            Err(most) => {
                let why = match (self.coverable.is_empty(), cover.summed) {
                    (true, false) => cover.in_time.then_some(IN_TIME),
                    (true, true) => Some(ENOUGH),
                    (false, _) => Some(if most > 0.0 { ENOUGH } else { NO_LOSS }),
                };
                why.into_iter().for_each(|w| self.count(w));
                // What is wanted grows with what leaves or is lost alone; what others cover of it may shrink as it gets old.
                self.no_sum.begin(cx, cover.until.filter(|_| most >= WORTH), why);
                return None;
            }
        };
        let carries = |p: &PathView| self.on.get(p.id.index()).copied().unwrap_or(0);
        let most = |p: &PathView| 2 * carries(p) > self.plan.len();
        let best = cx.open().min_by_key(|p| (most(p), arrives(p)))?;
        if self.code == Code::Xor {
            let paid = self.credit.packets(best.mtu);
            part(&mut self.plan, (wanted.round() as u64).min(paid).max(1) as usize);
        }
        Some(best.id)
    }
}
