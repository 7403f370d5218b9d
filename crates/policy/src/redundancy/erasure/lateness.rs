//! Sums for what will be late: the path and the block of the next one.

use super::{ENOUGH, Erasure, JITTERS};
use crate::late::Late;
use crate::predict::Forecast;
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, PathId};

impl Erasure {
    /// The path of the next sum where what will be late counts, if it is a block's turn.
    pub(super) fn decide_late(
        &mut self,
        cx: &AssocView<'_>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        // How a round trip divides is a guess, and a sum that is late is of no use: it may take the whole of one.
        let arrives = |p: &PathView| Forecast::of(cx.now, p).arrival(p.mtu).max(p.mean_rtt);
        let best = cx.open().min_by_key(|p| arrives(p))?;
        let (takes, mtu) = (arrives(best), best.mtu.max(1));
        let mut late = self.late.take()?;
        if !late.wants_more(cx.now, takes) {
            late.begin();
            self.note_in_flight(cx, &mut late, takes, outstanding);
            let most = self.credit / (mtu * 1_000_000);
            late.choose(cx, best.id, takes, self.guard + best.jitter * 2, self.code, most as usize);
        }
        let wanted = late.wants_more(cx.now, takes);
        self.late = Some(late);
        if !wanted {
            self.count(ENOUGH);
        }
        wanted.then_some(best.id)
    }

    /// The path with room that nothing new wants on which a sum makes up for what will be late there.
    pub(super) fn decide_beside(
        &mut self,
        cx: &AssocView<'_>,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<PathId> {
        let mut unsteady = cx.open().filter(|p| p.reorders(cx.now)).map(|p| (p, Forecast::and_luck(cx.now, p).0));
        // Where something waits already, a sum makes late what comes next.
        let (path, forecast) = unsteady.find(|(_, f)| f.queued == 0)?;
        let takes = forecast.arrival(path.mtu);
        let mut late = self.late.take()?;
        if !late.wants_beside(cx.now, path.id, takes) {
            late.begin();
            self.note_in_flight(cx, &mut late, takes, outstanding);
            let most = self.credit / (path.mtu.max(1) * 1_000_000);
            late.choose_beside(cx, path, self.code, most as usize);
        }
        self.beside = late.wants_beside(cx.now, path.id, takes);
        self.late = Some(late);
        self.beside.then_some(path.id)
    }

    /// Notes what a sum that takes so long may save.
    fn note_in_flight(
        &self,
        cx: &AssocView<'_>,
        late: &mut Late,
        takes: Duration,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) {
        for c in outstanding {
            let from = c.live_on.iter().next().and_then(|p| cx.path(p));
            let (Some(from), Some(sent), Some(deadline)) = (from, c.last_sent, self.deadline(&c)) else { continue };
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
