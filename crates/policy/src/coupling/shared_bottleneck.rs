//! Couples only paths that share a queue; any other grows as if it were alone.
//!
//! Source: Hayes, Ferlin, Welzl, Hiorth 2018 (RFC 8382) for the statistics; the sender has the times that packets took
//! on all its paths by one clock, and compares these as well (ours). Once per interval of 350 ms each path's one-way
//! delays give their mean, their skewness (how many lay below and above the mean of the last 30 means), their mean
//! absolute deviation from the mean of the interval before, how often means of the last 50 intervals crossed the middle
//! by more than 0.7 of that deviation, and the part of packets lost.
//! With `by=statistics` (RFC 8382 §3.3) a path is at a bottleneck when its skewness is below 0.1 (0.3 once it is), or
//! more than 5 % is lost, and paths at one belong together whose crossings differ by less than 0.1, deviations by less
//! than a tenth, skewness by less than 0.15, and, above 5 %, losses by less than a tenth.
//! With `by=correlation` paths belong together when the changes of their means from interval to interval correlate: one
//! queue is longer or shorter for all that cross it at the same moment, while statistics of two queues may be alike
//! because the traffic is. `from` begins a group and `until` ends it.
//! Until something is known all paths belong together. Paths of a group grow by linked increases (RFC 6356) among
//! themselves. Deviations: delays are those of acknowledged packets that the engine takes a round trip from, not of
//! every packet; a path without a sample in an interval adds nothing to it.
//! Parameters: `by`; `interval` ms; `from`, `until` correlations; `least` intervals that both paths had before they may
//! be parted.

use super::lia::{self, ppm};
use super::{Coupling, Growth};
use crate::asks::Asks;
use crate::delays::Delays;
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, Ppm};

pub(super) const POLICY: Policy<dyn Coupling> = Policy {
    info: PolicyInfo {
        hook: Hook::Coupling,
        name: "shared_bottleneck",
        source: "RFC 8382; correlation ours; RFC 6356 within a group",
        file: file!(),
        summary: "Linked increases among paths whose delays show one queue; the others are uncoupled.",
        params: &[
            ParamInfo::word("by", &["correlation", "statistics"], "what shows that paths share a queue"),
            ParamInfo::millis("interval", 350, 20, 10_000, "over which delays are summed up (RFC 8382's T)"),
            ParamInfo::number("from", 0.5, "", 0.0, 1.0, "correlation from which on paths belong together"),
            ParamInfo::number("until", 0.3, "", -1.0, 1.0, "correlation below which they no longer do")
                .not_above("from"),
            ParamInfo::count("least", 10, "intervals", 2, 30, "least evidence before paths are parted"),
        ],
    },
    build: |p| Box::new(SharedBottleneck::new(p)),
};

pub(super) struct SharedBottleneck {
    by_statistics: bool,
    interval: Duration,
    from: f64,
    until: f64,
    least: usize,
    /// When the interval at hand ends.
    ends: Option<Instant>,
    paths: Vec<Delays>,
    /// The group of each path: the number of its first path.
    group: Vec<usize>,
}

impl SharedBottleneck {
    fn new(p: &Params) -> Self {
        SharedBottleneck {
            by_statistics: p.word("by") == "statistics",
            interval: p.millis("interval"),
            from: p.number("from"),
            until: p.number("until"),
            least: p.count("least") as usize,
            ends: None,
            paths: Vec::new(),
            group: Vec::new(),
        }
    }
    /// By the defaults of its parameters.
    pub(super) fn standard() -> Self {
        SharedBottleneck::new(&Params::defaults(&POLICY.info, 0))
    }
    /// What an acknowledgement shows.
    pub(super) fn acknowledged(&mut self, cx: &AssocView<'_>, g: &Growth) {
        self.follow(cx);
        let Some(me) = cx.path(g.path) else { return };
        if let Some(d) = self.paths.get_mut(g.path.index()) {
            d.acknowledged(g.acked);
            if me.sampled_at == Some(cx.now) {
                d.sample(me.last_one_way);
            }
        }
    }
    fn follow(&mut self, cx: &AssocView<'_>) {
        if self.paths.len() != cx.paths.len() {
            self.paths.resize_with(cx.paths.len(), Delays::default);
            // A new path belongs to the first until it is known better.
            self.group.resize(cx.paths.len(), 0);
        }
        let ends = *self.ends.get_or_insert(cx.now + self.interval);
        if cx.now < ends {
            return;
        }
        // Nothing was acknowledged in those that were missed.
        let missed = (cx.now.since(ends).as_nanos() / self.interval.as_nanos().max(1)).min(Delays::KEPT as u64);
        for _ in 0..=missed {
            self.paths.iter_mut().for_each(Delays::end_interval);
        }
        self.ends = Some(cx.now + self.interval);
        self.regroup();
    }
    fn regroup(&mut self) {
        if self.by_statistics { self.by_statistics() } else { self.by_correlation() }
    }
    /// Pairs that belong together, and with them all that hang together by pairs.
    fn join(&mut self, together: impl Fn(&Self, usize, usize) -> bool) {
        let n = self.paths.len();
        let mut group: Vec<usize> = (0..n).collect();
        for i in 0..n {
            for j in i + 1..n {
                if group[i] != group[j] && together(self, i, j) {
                    let (low, high) = (group[i].min(group[j]), group[i].max(group[j]));
                    group.iter_mut().filter(|g| **g == high).for_each(|g| *g = low);
                }
            }
        }
        self.group = group;
    }
    fn by_correlation(&mut self) {
        self.join(|s, i, j| {
            let were = s.group[i] == s.group[j];
            match s.paths[i].correlation(&s.paths[j]) {
                (_, n) if n < s.least => were,
                (r, _) => r >= if were { s.until } else { s.from },
            }
        });
    }
    /// RFC 8382 §3.3.1: those at a bottleneck, parted by one statistic after the other.
    fn by_statistics(&mut self) {
        self.paths.iter_mut().for_each(Delays::judge);
        let seen: Vec<_> = self.paths.iter().map(Delays::summary).collect();
        self.join(|s, i, j| {
            let (a, b) = (&seen[i], &seen[j]);
            if a.intervals.min(b.intervals) < s.least {
                return s.group[i] == s.group[j];
            }
            a.bottleneck && b.bottleneck && a.is_like(b)
        });
    }
    /// The paths of the group of `me`.
    pub(super) fn members<'a>(
        &'a self,
        cx: &AssocView<'a>,
        me: &PathView,
    ) -> impl Iterator<Item = &'a PathView> + use<'a> {
        let mine = self.group.get(me.id.index()).copied();
        cx.active().filter(move |p| self.group.get(p.id.index()).copied() == mine)
    }
}

impl Coupling for SharedBottleneck {
    fn asks(&self) -> Asks {
        Asks::NOTHING
    }
    fn scale(&mut self, cx: &AssocView<'_>, g: &Growth) -> Ppm {
        self.acknowledged(cx, g);
        let Some(me) = cx.path(g.path) else { return Ppm::ONE };
        match me.in_slow_start() || me.srtt.is_zero() {
            true => Ppm::ONE,
            false => ppm(lia::share(self.members(cx, me), me)),
        }
    }
    fn on_loss(&mut self, cx: &AssocView<'_>, e: &LossEvent, _cause: Cause) {
        self.follow(cx);
        if let Some(d) = self.paths.get_mut(e.path.index()) {
            d.lost(e.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, ms};
    use anabranch_base::{PathId, RandomStream};

    /// Shares of two equal paths after some seconds in which `delay` gave each path's delay in ms at each step of 10 ms.
    fn shares(spec: &str, seconds: u64, mut delay: impl FnMut(u64) -> [f64; 2]) -> [u32; 2] {
        let mut p = built(&POLICY, spec, 0);
        let mut s = Scene::new(2, 0);
        let mut out = [0; 2];
        for step in 0..seconds * 100 {
            s.now += ms(10);
            let delays = delay(step);
            for path in 0..2u8 {
                let now = s.now;
                let v = s.rtt(path, 100);
                (v.cwnd, v.ssthresh, v.sampled_at) = (10_000, 1, Some(now));
                v.last_one_way = Duration::from_secs_f64(delays[usize::from(path)] / 1e3);
                let g = Growth::of(PathId(path), 1_000);
                out[usize::from(path)] = p.scale(&s.cx(), &g).0;
            }
        }
        out
    }
    /// A queue that grows and is halved at random moments, ms.
    fn queue(seed: u64) -> impl FnMut(u64) -> f64 {
        let (mut r, mut q) = (RandomStream::named(seed, "queue"), 20.0);
        move |_| {
            q += 0.1;
            if r.chance(0.004) {
                q /= 2.0;
            }
            q
        }
    }

    #[test]
    fn until_something_is_known_paths_are_coupled() {
        assert_eq!(shares("", 1, |_| [50.0, 50.0]), [250_000; 2]);
    }

    #[test]
    fn a_path_that_starts_or_was_not_timed_grows_by_itself() {
        let scale = |change: fn(&mut crate::view::PathView)| {
            let mut s = Scene::new(2, 0);
            for path in 0..2 {
                let v = s.rtt(path, 100);
                (v.cwnd, v.ssthresh) = (10_000, 1);
            }
            change(&mut s.paths[0]);
            built(&POLICY, "", 0).scale(&s.cx(), &Growth::of(PathId(0), 1_000)).0
        };
        assert_eq!(scale(|_| ()), 250_000);
        assert_eq!(scale(|p| p.ssthresh = u64::MAX), 1_000_000, "slow start");
        assert_eq!(scale(|p| p.srtt = ms(0)), 1_000_000, "no round trip yet");
    }

    #[test]
    fn one_queue_couples_and_two_queues_do_not() {
        for seed in 0..5 {
            let mut one = queue(seed);
            let mut noise = RandomStream::named(seed, "noise");
            let shared = shares("", 30, |t| {
                let q = one(t);
                [q + 3.0 * noise.unit(), 40.0 + q + 3.0 * noise.unit()]
            });
            assert_eq!(shared, [250_000; 2], "{seed}");
            let (mut one, mut two) = (queue(seed + 100), queue(seed + 200));
            assert_eq!(shares("", 30, |t| [one(t), two(t)]), [1_000_000; 2], "{seed}");
        }
    }

    #[test]
    fn the_statistics_of_the_rfc_part_unlike_queues_and_join_alike_ones() {
        let spec = "by=statistics";
        let mut one = queue(7);
        let shared = shares(spec, 40, |t| {
            let q = one(t);
            [q, 40.0 + q]
        });
        assert_eq!(shared, [250_000; 2]);
        // A queue that stands and one that varies ten times as much.
        let (mut one, mut two) = (queue(7), queue(8));
        assert_eq!(shares(spec, 40, |t| [one(t), 10.0 * two(t)]), [1_000_000; 2]);
    }

    #[test]
    fn a_path_without_a_queue_is_alone() {
        let mut one = queue(3);
        let mut noise = RandomStream::named(1, "noise");
        assert_eq!(shares("", 30, |t| [one(t), 30.0 + noise.unit()]), [1_000_000; 2]);
    }

    #[test]
    fn a_pause_forgets() {
        let mut p = SharedBottleneck::new(&Params::defaults(&POLICY.info, 0));
        let mut s = Scene::new(2, 0);
        p.follow(&s.cx());
        s.now += Duration::from_secs(1 << 30);
        p.follow(&s.cx());
        assert_eq!(p.group, [0, 0], "nothing is known");
    }
}
