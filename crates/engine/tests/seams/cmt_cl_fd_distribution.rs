//! Xu et al. 2014 §2.8: every period grants each path a budget and binds chunks to it; again when all budgets are spent
//! (§7.1).

use super::two_paths::Notes;
use anabranch_base::{Instant, PathId, PathSet, Tsn};
use anabranch_policy::path_scheduler::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use anabranch_policy::view::{AssocView, PathView, QueueView};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub struct Grant {
    pub at: Instant,
    pub serial: u64,
    pub path: PathId,
    pub bytes: u64,
    /// Published for the path when the grant was made.
    pub spare: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub serial: u64,
    pub path: PathId,
    pub bytes: u64,
    /// The path had a penalty in this period, and another one had none.
    pub blocked: bool,
}

#[derive(Default)]
pub struct Seen {
    pub grants: Vec<Grant>,
    pub spent: Vec<Spent>,
    pub opportunities: u32,
    pub refused: u32,
    /// Largest number of bytes that the board showed as bound.
    pub bound_on_board: u64,
    pub penalised_periods: std::collections::BTreeSet<(u64, PathId)>,
}

#[derive(Default)]
struct Lane {
    budget: u64,
    bound: VecDeque<(Tsn, u64)>,
}

impl Lane {
    fn bytes(&self) -> u64 {
        self.bound.iter().map(|(_, len)| len).sum()
    }
}

/// A smaller budget counts as spent, bytes.
const LEAST: u64 = 1_200;

pub struct Budgets {
    lanes: Vec<Lane>,
    seen: Notes<Seen>,
}

fn blocked(cx: &AssocView<'_>, p: &PathView) -> bool {
    p.signals.sidelined || p.signals.penalised_at.is_some_and(|t| t >= cx.period.start)
}

/// Xu et al. 2014's PathList: what is not blocked, the largest residual capacity first; when all are blocked, the best
/// of them.
fn path_list<'a>(cx: &AssocView<'a>) -> Vec<&'a PathView> {
    let mut list: Vec<_> = cx.active().collect();
    list.sort_by_key(|p| (-p.signals.spare_rate.unwrap_or(0), u64::MAX - p.cwnd, p.id));
    let free: Vec<_> = list.iter().copied().filter(|p| !blocked(cx, p)).collect();
    if free.is_empty() { list.into_iter().take(1).collect() } else { free }
}

impl Budgets {
    pub fn new(seen: Notes<Seen>) -> Self {
        Budgets { lanes: vec![], seen }
    }
    fn grant(&mut self, cx: &AssocView<'_>) {
        self.lanes.resize_with(cx.paths.len(), Lane::default);
        self.lanes.iter_mut().for_each(|l| l.budget = 0);
        let free: u64 = cx.active().map(|p| p.cwnd.saturating_sub(p.in_flight)).sum();
        let waiting: u64 = self.lanes.iter().map(Lane::bytes).sum();
        let mut left = free.min(cx.peer_rwnd).saturating_sub(waiting);
        let period = cx.period.length;
        for p in path_list(cx) {
            let spare = p.signals.spare_rate.unwrap_or(0);
            let rate = p.send_rate.max(p.window_rate());
            let turns = (period.as_nanos() / rate.time_for(p.cwnd).as_nanos().max(1)).clamp(1, 64);
            let wish = match u64::try_from(spare) {
                Ok(r) if r > 0 => turns * p.cwnd + (r as f64 * period.as_secs_f64()) as u64,
                _ => turns * p.cwnd.saturating_sub(p.in_flight),
            };
            let bytes = wish.min(left);
            left -= bytes;
            self.lanes[p.id.index()].budget = bytes;
            self.seen.get().grants.push(Grant { at: cx.now, serial: cx.period.serial, path: p.id, bytes, spare });
        }
    }
    /// Chunks that belong to no path go to the first with budget left.
    fn bind(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>) {
        for l in &mut self.lanes {
            l.bound.retain(|(t, _)| q.chunks.iter().any(|c| c.tsn == *t));
        }
        let list: Vec<PathId> = path_list(cx).iter().map(|p| p.id).collect();
        for c in q.chunks {
            if self.lanes.iter().any(|l| l.bound.iter().any(|(t, _)| *t == c.tsn)) {
                continue;
            }
            let fits = |l: &Lane| l.budget >= c.len;
            let Some(p) = list.iter().find(|p| self.lanes.get(p.index()).is_some_and(fits)) else { return };
            let lane = &mut self.lanes[p.index()];
            lane.budget -= c.len;
            lane.bound.push_back((c.tsn, c.len));
        }
    }
    fn first_bound(&self, q: &QueueView<'_>, p: PathId) -> Option<usize> {
        let lane = self.lanes.get(p.index())?;
        lane.bound.iter().find_map(|(t, _)| q.chunks.iter().position(|c| c.tsn == *t))
    }
}

impl PathScheduler for Budgets {
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        LookAhead { bytes: cx.window_sum().min(cx.peer_rwnd), when_drained: false }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let open: PathSet = path_list(cx).iter().map(|p| p.id).filter(|p| cx.eligible.has(*p)).collect();
        let found = open.iter().find_map(|path| self.first_bound(q, path).map(|index| (index, path)));
        found.map_or(Decision::Blocked, |(index, path)| Decision::Send { index, path })
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        let mut seen = self.seen.get();
        match *outcome {
            Settled::Sent { tsn, path, len } => {
                self.lanes[path.index()].bound.retain(|(t, _)| *t != tsn);
                let hit = cx.path(path).is_some_and(|p| blocked(cx, p));
                let others = cx.active().any(|p| !blocked(cx, p));
                let serial = cx.period.serial;
                seen.spent.push(Spent { serial, path, bytes: len, blocked: hit && others });
            }
            Settled::Refused => seen.refused += 1,
            Settled::Waiting(_) | Settled::Blocked => {}
        }
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        {
            let mut seen = self.seen.get();
            let bound = cx.paths.iter().map(|p| p.signals.bound_bytes).max().unwrap_or(0);
            seen.bound_on_board = seen.bound_on_board.max(bound);
            seen.opportunities += u32::from(why == Occasion::Opportunity);
            let hit = cx.paths.iter().filter(|p| blocked(cx, p)).map(|p| (cx.period.serial, p.id));
            seen.penalised_periods.extend(hit);
        }
        let drained = self.lanes.iter().all(|l| l.bound.is_empty() && l.budget < LEAST);
        if why == Occasion::Period || why == Occasion::Opportunity && drained {
            self.grant(cx);
        }
        // A path that went away keeps nothing.
        for (i, l) in self.lanes.iter_mut().enumerate() {
            if !cx.path(PathId(i as u8)).is_some_and(|p| p.state.usable()) {
                l.bound.clear();
                l.budget = 0;
            }
        }
        self.bind(cx, q);
    }
    fn bound_bytes(&self, p: PathId) -> u64 {
        self.lanes.get(p.index()).map_or(0, Lane::bytes)
    }
}
