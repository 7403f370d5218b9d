//! Sums for what will be late: the path and the block of the next one.

use super::hurried::{Hurry, takes_at_most};
use super::{ENOUGH, Erasure, JITTERS, Purpose, in_flight};
use crate::late::Late;
use crate::predict::Forecast;
use crate::view::{AssocView, ChunkView};
use anabranch_base::{Duration, PathId};

impl Erasure {
    /// The path of the next sum where what will be late counts, if it is a block's turn.
    pub(super) fn decide_late(
        &mut self,
        cx: &AssocView<'_>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        let best = cx.open().min_by_key(|p| takes_at_most(cx, p))?;
        let (takes, mtu) = (takes_at_most(cx, best), best.mtu.max(1));
        let mut late = self.late.take()?;
        if !late.wants_more(cx.now, takes) {
            late.begin();
            self.note_in_flight(cx, &mut late, takes, Hurry::of(cx), outstanding);
            let most = self.credit.packets(mtu);
            late.choose(cx, best.id, takes, self.guard + best.jitter * 2, self.code, most as usize);
        }
        let wanted = late.wants_more(cx.now, takes);
        (self.late, self.purpose) = (Some(late), Purpose::Late);
        if !wanted {
            self.count(ENOUGH);
        }
        wanted.then_some(best.id)
    }

    /// The path with room that nothing new wants on which a sum makes up for what will be late there.
    pub(super) fn decide_beside(
        &mut self,
        cx: &AssocView<'_>,
        late: &mut Late,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        let mut unsteady = cx.open().filter(|p| p.reorders(cx.now)).map(|p| (p, Forecast::and_luck(cx.now, p).0));
        // Where something waits already, a sum makes late what comes next.
        let (path, forecast) = unsteady.find(|(_, f)| f.queued == 0)?;
        let takes = forecast.arrival(path.mtu);
        if !late.wants_beside(cx.now, path.id, takes) && late.looks_beside(cx.now, path.id) {
            late.begin();
            self.note_in_flight(cx, late, takes, None, outstanding);
            let most = self.credit.packets(path.mtu);
            late.choose_beside(cx, path, takes, self.code, most as usize);
        }
        self.purpose = Purpose::Beside;
        late.wants_beside(cx.now, path.id, takes).then_some(path.id)
    }

    /// Notes what a sum that takes so long may save, but for what is hurried.
    fn note_in_flight(
        &self,
        cx: &AssocView<'_>,
        late: &mut Late,
        takes: Duration,
        hurry: Option<Hurry>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) {
        for c in outstanding {
            let Some((from, sent, deadline)) = in_flight(cx, &c, self.latency) else { continue };
            if hurry.is_some_and(|h| h.is_on(from, sent, deadline)) {
                continue;
            }
            // What may be a while longer on its way is missed only when that is over.
            let noticed = from.mean_rtt + (from.mean_rtt / 8).max(from.jitter * JITTERS);
            let repeated = !c.retransmissions_used_up() && sent + noticed + takes <= deadline;
            let old = cx.now.since(sent) > self.window.max(deadline - c.queued_at);
            if c.live_copies == 1 && !old && !repeated && cx.now + takes <= deadline {
                late.note(from.id, &c, sent, deadline);
            }
        }
    }
}
