//! ConSN: paths work on the same window of chunks from opposite ends.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.A. Some paths take the lowest unsent TSN, the others
//! the highest, until they meet; what is missing forms blocks, and a healthy path runs towards the hole of a broken
//! one. Which open path sends next follows the weights of §IV.
//! Deviations: directions are set when a round starts, the fastest path ascending; a path whose partners are gone
//! ascends; the meeting point is where the pointers meet. `fixed_split` sets it when a round starts, by the weights: a
//! path that is through with its part waits for the next round. `rounds=0` keeps the window open instead
//! of letting it drain, as delay compensation needs it; a round then ends when its last chunk has left, and with a fixed
//! split when the ascending paths are through with their part: the others always have new chunks at the top, and those
//! at the split would never leave.
//! Parameters: `variant` 1 (one path ascends, the others descend) or 2 (one descends); `look_ahead` ms; `rounds`;
//! `fixed_split`.

use super::{Decision, LookAhead, Occasion, PathScheduler, Settled};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::shares::{Credits, Weights, share};
use crate::view::{AssocView, Direction, PathView, QueueView};
use anabranch_base::{Duration, PathId, PathSet, Tsn};

pub(super) const POLICY: Policy<dyn PathScheduler> = Policy {
    info: PolicyInfo {
        hook: Hook::PathScheduler,
        name: "confluent",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 (ConSN)",
        file: file!(),
        summary: "Fast paths take the lowest unsent TSN, the slowest the highest, until they meet.",
        params: &[
            ParamInfo::count("variant", 2, "", 1, 2, "1: one path ascends; 2: one path descends"),
            ParamInfo::millis("look_ahead", 200, 1, 10_000, "window of chunks, as time at the rate of all paths"),
            ParamInfo::flag("rounds", true, "a new window only when the last has drained"),
            ParamInfo::flag("fixed_split", false, "where paths meet is set by the weights when a round starts"),
        ],
    },
    build: |p| Box::new(Confluent::new(p)),
};

struct Confluent {
    variant: u64,
    look_ahead: Duration,
    rounds: bool,
    fixed_split: bool,
    credits: Credits,
    descending: PathSet,
    /// First TSN of the descending paths' part, where it is fixed.
    split: Option<Tsn>,
    /// Last TSN of the current round.
    round_end: Option<Tsn>,
    /// Chunks came during a round, whoever asked for that: a scheduler around this one may.
    open: bool,
}

impl Confluent {
    fn new(p: &Params) -> Self {
        Confluent {
            variant: p.count("variant"),
            look_ahead: p.millis("look_ahead"),
            rounds: p.flag("rounds"),
            fixed_split: p.flag("fixed_split"),
            credits: Credits::new(Weights::Srtt),
            descending: PathSet::EMPTY,
            split: None,
            round_end: None,
            open: false,
        }
    }
    fn assign_directions(&mut self, cx: &AssocView<'_>) {
        let key = |p: PathId| {
            let srtt = cx.path(p).map_or(Duration::ZERO, |v| v.srtt);
            (if srtt.is_zero() { Duration::MAX } else { srtt }, p)
        };
        let active: PathSet = cx.active().map(|p| p.id).collect();
        self.descending = match active.len() {
            0 | 1 => PathSet::EMPTY,
            _ if self.variant == 1 => active.iter().min_by_key(|&p| key(p)).map_or(active, |p| active.without(p)),
            _ => active.iter().max_by_key(|&p| key(p)).map_or(PathSet::EMPTY, PathSet::only),
        };
    }
    /// Where the descending paths' part of a round begins.
    fn split_at(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Option<Tsn> {
        let down = cx.active().filter(|p| self.descending.has(p.id));
        let share: u64 = down.map(|p| u64::from(share(cx, p, Weights::Srtt).0)).sum();
        let part = (share * q.chunks.len() as u64 + 500_000) / 1_000_000;
        let first = q.chunks.len().saturating_sub(part as usize);
        q.chunks.get(first).map(|c| c.tsn).or_else(|| q.chunks.last().map(|c| c.tsn.plus(1)))
    }
    /// Is the chunk in the part of `path`, or is there no other path to take it?
    fn may_take(&self, cx: &AssocView<'_>, q: &QueueView<'_>, path: PathId, index: usize) -> bool {
        let (Some(split), Some(c)) = (self.split, q.chunks.get(index)) else { return true };
        let down = self.descends(cx, path);
        let own = down != split.after(c.tsn) || self.open && !down;
        // A path that can neither send nor be acknowledged would never wake us up.
        let other = |p: &PathView| self.descends(cx, p.id) != down && (cx.eligible.has(p.id) || p.in_flight > 0);
        own || !cx.active().any(other)
    }
    fn descends(&self, cx: &AssocView<'_>, path: PathId) -> bool {
        self.descending.has(path) && cx.active().any(|p| !self.descending.has(p.id))
    }
}

impl PathScheduler for Confluent {
    fn look_ahead(&self, cx: &AssocView<'_>) -> LookAhead {
        let (mut reach, mut least) = (0u64, 0u64);
        for p in cx.active() {
            reach += p.window_rate().bytes_in(self.look_ahead);
            least = least.max(2 * p.mtu);
        }
        LookAhead { bytes: reach.min(cx.window_sum()).min(cx.peer_rwnd).max(least), when_drained: self.rounds }
    }
    fn permutes(&self) -> bool {
        true
    }
    fn next(&self, cx: &AssocView<'_>, q: &QueueView<'_>) -> Decision {
        let mut view = *cx;
        while let Some(p) = self.credits.best(&view) {
            let index = if self.descends(cx, p.id) { q.chunks.len().saturating_sub(1) } else { 0 };
            if self.may_take(cx, q, p.id, index) {
                return Decision::Send { index, path: p.id };
            }
            view = view.narrowed(view.eligible.without(p.id));
        }
        Decision::Blocked
    }
    fn settle(&mut self, cx: &AssocView<'_>, outcome: &Settled) {
        if let Settled::Sent { path, len, .. } = outcome {
            self.credits.pay(cx, *path, *len);
        }
    }
    fn observe(&mut self, cx: &AssocView<'_>, q: &QueueView<'_>, why: Occasion) {
        let (Some(first), Some(last)) = (q.chunks.first(), q.chunks.last()) else { return };
        if why != Occasion::Refilled {
            return;
        }
        let drained = self.round_end.is_none_or(|end| first.tsn.after(end));
        self.open |= !drained;
        let through = self.open && self.split.is_some_and(|split| !split.after(first.tsn));
        if drained || through {
            self.round_end = Some(last.tsn);
            self.assign_directions(cx);
            self.split = if self.fixed_split { self.split_at(cx, q) } else { None };
        }
    }
    fn direction(&self, p: PathId) -> Option<Direction> {
        Some(if self.descending.has(p) { Direction::Descending } else { Direction::Ascending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    fn policy(variant: u64) -> Confluent {
        Confluent { variant, ..Confluent::new(&Params::defaults(&POLICY.info, 0)) }
    }
    /// Chunks 40 to 49, paths of 30 and 160 ms, a round begun.
    fn begun(p: &mut Confluent) -> Scene {
        let mut s = Scene::new(2, 10);
        s.rtt(0, 30);
        s.rtt(1, 160);
        s.refilled(p);
        s
    }
    /// Sends on `path` only; answers the TSN.
    fn send_on(s: &mut Scene, p: &mut Confluent, path: u8) -> u32 {
        s.eligible = PathSet::only(PathId(path));
        let before = s.chunks.clone();
        let (index, on) = s.send(p).unwrap();
        assert_eq!(on, PathId(path));
        before[index as usize].tsn.0
    }

    #[test]
    fn paths_meet_in_the_example() {
        let mut p = policy(2);
        let mut s = begun(&mut p);
        let up: Vec<u32> = (0..4).map(|_| send_on(&mut s, &mut p, 0)).collect();
        let down: Vec<u32> = (0..6).map(|_| send_on(&mut s, &mut p, 1)).collect();
        assert_eq!(up, [40, 41, 42, 43]);
        assert_eq!(down, [49, 48, 47, 46, 45, 44]);
        assert!(s.chunks.is_empty());
        assert_eq!(p.direction(PathId(0)), Some(Direction::Ascending));
        assert_eq!(p.direction(PathId(1)), Some(Direction::Descending));
    }

    #[test]
    fn where_they_meet_may_be_fixed() {
        let mut p = Confluent { fixed_split: true, ..policy(2) };
        let mut s = begun(&mut p);
        // 0.158 of ten chunks are two.
        let up: Vec<u32> = (0..8).map(|_| send_on(&mut s, &mut p, 0)).collect();
        assert_eq!(up, [40, 41, 42, 43, 44, 45, 46, 47]);
        s.eligible = PathSet::only(PathId(0));
        s.paths[1].in_flight = 1_144;
        assert_eq!(s.ask(&p), Decision::Blocked, "48 and 49 are the other's");
        assert_eq!((send_on(&mut s, &mut p, 1), send_on(&mut s, &mut p, 1)), (49, 48));
        let mut s = begun(&mut p);
        s.paths[1].in_flight = 1_144;
        let mut q = Confluent { fixed_split: true, ..policy(2) };
        s.refilled(&mut q);
        (0..8).for_each(|_| assert!(send_on(&mut s, &mut q, 0) < 48));
        s.paths[1].in_flight = 0;
        assert_eq!(send_on(&mut s, &mut q, 0), 48, "nothing of the other would wake us");
    }

    #[test]
    fn in_an_open_window_the_first_chunk_leaves_however_the_split_is_fixed() {
        // A scheduler around this one opens the window whatever its own parameter says.
        for (variant, rounds, paths) in [(1, true, 2), (2, true, 3), (1, false, 3), (2, false, 2)] {
            let mut p = Confluent { fixed_split: true, rounds, ..policy(variant) };
            let mut s = Scene::new(paths, 10);
            s.rtt(0, 30);
            s.rtt(1, 160);
            s.refilled(&mut p);
            for i in 1..paths {
                s.paths[usize::from(i)].in_flight = 1_144;
            }
            for n in 40..140 {
                s.chunks.push(crate::view::ChunkView::waiting(Tsn(n + 10)));
                s.refilled(&mut p);
                assert_eq!(send_on(&mut s, &mut p, 0), n, "variant {variant}, {paths} paths");
            }
        }
    }

    #[test]
    fn one_path_ascends() {
        let mut p = policy(2);
        let mut s = Scene::new(1, 3);
        s.refilled(&mut p);
        assert_eq!((0..3).map(|_| send_on(&mut s, &mut p, 0)).collect::<Vec<_>>(), [40, 41, 42]);
    }

    #[test]
    fn a_descending_path_left_alone_ascends() {
        let mut p = policy(2);
        let mut s = begun(&mut p);
        assert_eq!(send_on(&mut s, &mut p, 1), 49);
        s.paths[0].state = crate::view::PathState::PotentiallyFailed;
        assert_eq!(send_on(&mut s, &mut p, 1), 40);
    }

    #[test]
    fn variants_with_three_paths() {
        let directions = |variant| {
            let mut p = policy(variant);
            let mut s = Scene::new(3, 4);
            for (i, rtt) in [90, 30, 160].into_iter().enumerate() {
                s.rtt(i as u8, rtt);
            }
            s.refilled(&mut p);
            (0..3).filter(|&i| p.direction(PathId(i)) == Some(Direction::Descending)).collect::<Vec<_>>()
        };
        assert_eq!(directions(1), [0, 2]);
        assert_eq!(directions(2), [2]);
    }

    #[test]
    fn directions_change_only_between_rounds() {
        let mut p = policy(2);
        let mut s = begun(&mut p);
        s.rtt(0, 500);
        s.refilled(&mut p);
        assert_eq!(p.direction(PathId(0)), Some(Direction::Ascending), "TSN 40 is still in this round");
        for c in &mut s.chunks {
            c.tsn = c.tsn.plus(10);
        }
        s.refilled(&mut p);
        assert_eq!(p.direction(PathId(0)), Some(Direction::Descending));
    }

    #[test]
    fn look_ahead_is_the_least_of_three_but_two_chunks() {
        let mut p = policy(2);
        let mut s = begun(&mut p);
        for v in &mut s.paths {
            v.cwnd = 10_000;
        }
        // 333333 + 62500 bytes/s for 200 ms would be 79166 bytes.
        assert_eq!(p.look_ahead(&s.cx()), LookAhead { bytes: 20_000, when_drained: true });
        s.peer_rwnd = 9_000;
        assert_eq!(p.look_ahead(&s.cx()).bytes, 9_000);
        s.peer_rwnd = 1;
        p.rounds = false;
        assert_eq!(p.look_ahead(&s.cx()), LookAhead { bytes: 2 * 1_172, when_drained: false });
    }
}
