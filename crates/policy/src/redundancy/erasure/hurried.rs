//! With `late`: what leaves too late before its deadline for a sum that takes a whole round trip has sums as without it.
//!
//! A block of chunks waits for the last moment at which a sum is in time even if all of a round trip is the way there. Where
//! that takes more than half of the time that the forecast of the way there leaves, too few chunks leave until then, or none:
//! a sum for each costs more than it saves. There the guess of how the round trip divides is better than a certain loss.

use super::losses::repeated;
use super::{Erasure, Purpose, in_flight};
use crate::predict::Forecast;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId};

/// How long a sum takes by `p`. How a round trip divides is a guess, and a sum that is late is of no use: it may take the
/// whole of one.
pub(super) fn takes_at_most(cx: &AssocView<'_>, p: &PathView) -> Duration {
    Forecast::of(cx.now, p).arrival(p.mtu).max(p.mean_rtt)
}

/// What was due in less time after it left than this is hurried where `best` is the quickest path for a sum.
fn hurried_below(cx: &AssocView<'_>, best: &PathView) -> Duration {
    let most = takes_at_most(cx, best);
    let (forecast, luck) = Forecast::and_luck(cx.now, best);
    most * 2 - (forecast.arrival(best.mtu) + luck).min(most)
}

/// Which chunks are hurried, by the paths as they are.
#[derive(Clone, Copy)]
pub(super) struct Hurry {
    below: Duration,
    quickest: Duration,
}

impl Hurry {
    /// None while no path is open.
    pub fn of(cx: &AssocView<'_>) -> Option<Self> {
        let best = cx.open().min_by_key(|p| takes_at_most(cx, p))?;
        let quickest = cx.open().map(|p| Forecast::of(cx.now, p).arrival(p.mtu)).min()?;
        Some(Hurry { below: hurried_below(cx, best), quickest })
    }
    /// Is a chunk that left by `from`? What can be sent again in time is not.
    pub fn is_on(&self, from: &PathView, sent: Instant, deadline: Instant) -> bool {
        deadline < sent + self.below && repeated(from, sent, self.quickest) > deadline
    }
}

/// Whether anything in flight may be hurried, without a look at it.
pub(super) struct Lives {
    /// What lived less than this when it left may be.
    below: Duration,
    /// When the last of that is due.
    until: Instant,
}

impl Lives {
    pub fn new() -> Self {
        Lives { below: Duration::from_secs(3_600), until: Instant::ZERO }
    }
    /// A chunk left for the first time.
    pub fn sent(&mut self, at: Instant, deadline: Option<Instant>) {
        if let Some(due) = deadline.filter(|d| *d < at + self.below) {
            self.until = self.until.max(due);
        }
    }
    /// Is anything? What paths take may double meanwhile.
    pub fn may_be(&mut self, now: Instant, hurry: &Hurry) -> bool {
        self.below = hurry.below * 2;
        now <= self.until
    }
}

impl Erasure {
    /// Might sums for what is hurried leave now that new data were offered all room?
    pub(super) fn may_be_hurried(&mut self, cx: &AssocView<'_>) -> bool {
        let lossy = cx.paths.iter().any(|p| p.in_flight > 0 && p.loss.0 > 0);
        let Some(hurry) = Hurry::of(cx).filter(|_| lossy) else { return false };
        self.lives.may_be(cx.now, &hurry) && !self.is_no_sum_wanted(cx)
    }
    /// Where new data were offered all room: the path of a sum beside what will be late there, or else of one for what is
    /// hurried.
    pub(super) fn decide_last(
        &mut self,
        cx: &AssocView<'_>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        let mut late = self.late.take()?;
        let mut found = core::mem::take(&mut self.found);
        found.clear();
        let (latency, hurry) = (self.latency, Hurry::of(cx).filter(|_| self.hurries));
        let is_hurried = |c: &ChunkView| {
            let Some((from, sent, due)) = in_flight(cx, c, latency) else { return false };
            hurry.is_some_and(|h| h.is_on(from, sent, due))
        };
        let mut looked_at = outstanding.inspect(|c| found.extend(is_hurried(c).then_some(*c)));
        let mut path = self.decide_beside(cx, &mut late, &mut looked_at);
        if path.is_none() && hurry.is_some() {
            looked_at.for_each(drop);
            // What is in a block has its sums.
            found.retain(|c| !late.has(c.tsn));
            self.purpose = Purpose::Losses;
            path = self.decide(cx, &mut found.iter().copied());
        }
        (self.late, self.found) = (Some(late), found);
        path
    }
}
