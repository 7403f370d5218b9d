//! Xu et al. 2014 whole, driven by the engine: quality, budgets, causes, windows and friendliness together.

use super::two_paths::*;
use super::{cmt_cl_fd_distribution, cmt_cl_fd_quality, cmt_cl_fd_window};
use anabranch_base::{Duration, Instant, PathId, PathSet};
use anabranch_engine::{Association, LocalId};
use anabranch_policy::loss_cause::Cause;
use anabranch_policy::path_quality::{Board, PathQuality};
use anabranch_policy::registry::{Hook, PolicySet};
use anabranch_policy::view::{AssocView, FrameErrors, PathState};
use anabranch_sim::{Direction, Limit, LinkConfig, LossConfig, Setting};
use anabranch_wire::kind;
use cmt_cl_fd_distribution::Budgets;
use cmt_cl_fd_quality::{BETA, CrossLayer};
use cmt_cl_fd_window::{ALPHA, ByRate, BySpareRate, Friendliness};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Seen {
    quality: Notes<cmt_cl_fd_quality::Seen>,
    budgets: Notes<cmt_cl_fd_distribution::Seen>,
    windows: Notes<cmt_cl_fd_window::Seen>,
}

/// CMT with all five hooks of Xu et al. 2014 exchanged.
fn p1(enforce: bool) -> (PolicySet, Seen) {
    let seen = Seen::default();
    let set = policies(&profile("cmt", &[(Hook::AckCredit, "sack_bytes")]), 2);
    (install(set, &seen, enforce, 0b1_1111), seen)
}

/// Exchanges the hooks of Xu et al. 2014 whose bit is set.
pub fn install(mut set: PolicySet, seen: &Seen, enforce: bool, hooks: u8) -> PolicySet {
    let chosen = |bit: u8| hooks >> bit & 1 == 1;
    if chosen(0) {
        set.path_quality = Box::new(CrossLayer::new(seen.quality.clone()));
    }
    if chosen(1) {
        set.path_scheduler = Box::new(Budgets::new(seen.budgets.clone()));
    }
    if chosen(2) {
        set.loss_cause = Box::new(BySpareRate(seen.windows.clone()));
    }
    if chosen(3) {
        set.coupling = Box::new(Friendliness::new(enforce, seen.windows.clone()));
    }
    if chosen(4) {
        let (make, notes) = (set.window, seen.windows.clone());
        set.window = Box::new(move || Box::new(ByRate { inner: make(), seen: notes.clone() }));
    }
    set
}

fn clean() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(10, 20)), both_ways(link(4, 50))]
}

/// Short queues, and radio losses besides.
fn lossy() -> [(LinkConfig, LinkConfig); 2] {
    let forward = |mbit, delay, p| {
        (link(mbit, delay).with_limit(Limit::packets(20)).with_loss(LossConfig::bernoulli(p)), link(mbit, delay))
    };
    [forward(10, 20, 0.005), forward(4, 50, 0.01)]
}

/// How many paths are active, and the sum of their windows.
fn active_windows(a: &Association) -> (usize, u64) {
    let active = || a.paths().filter(|(_, p)| p.state == PathState::Active);
    (active().count(), active().map(|(_, p)| p.cwnd).sum())
}

#[test]
fn quality_ticks_on_its_own_clock_and_publishes_to_the_board() {
    let (set, seen) = p1(true);
    let mut b = connected_by(1, set, &clean());
    let began = b.now;
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 4_000, ms(30_000)).expect("arrives");
    let ended = b.now;

    let q = seen.quality.get();
    assert_eq!(q.stale, Vec::<String>::new());
    let ticks: BTreeMap<u64, (Instant, Duration)> = q.published.iter().map(|p| (p.serial, (p.at, p.length))).collect();
    assert!(ticks.len() > 20, "{} ticks", ticks.len());
    for ((s, (at, length)), (next, (then, _))) in ticks.iter().zip(ticks.iter().skip(1)) {
        assert_eq!((*next, *then), (s + 1, *at + *length), "the engine wakes it when it asked");
        assert!(*length >= ms(10) && *length <= ms(2_000));
    }
    // Every period reached the scheduler with what was published for it.
    let budgets = seen.budgets.get();
    for p in q.published.iter().filter(|p| p.at >= began) {
        let grant = budgets.grants.iter().find(|g| (g.serial, g.path) == (p.serial, p.path));
        let grant = grant.unwrap_or_else(|| panic!("period {} of {:?} was not granted", p.serial, p.path));
        assert_eq!((grant.at, grant.spare), (p.at, p.spare));
        assert_eq!(p.shown_rate.bytes_per_sec(), p.bandwidth, "views show the estimator's send rate");
    }
    // While the transfer ran, the two paths together handled about what arrived.
    let handled: u64 = q
        .published
        .iter()
        .filter(|p| p.at > began && p.at <= ended)
        .map(|p| p.handled * p.length.as_nanos() / 1_000_000_000)
        .sum();
    assert!((2_000_000..8_000_000).contains(&handled), "{handled} of 4000000 bytes");
}

#[test]
fn releases_are_reported_once_per_opportunity() {
    let (set, seen) = p1(true);
    let mut b = connected_by(2, set, &clean());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 2_000, ms(30_000)).expect("arrives");
    b.run_for(ms(200));
    let q = seen.quality.get();
    let released: u64 = q.released.iter().map(|(_, _, bytes)| bytes).sum();
    assert_eq!(released, q.sent);
    assert_eq!(q.acked, 2_000_000, "each byte is acknowledged once");
    assert!(q.released.iter().any(|(_, _, bytes)| *bytes > 2_000), "several packets left at once");
    assert!(seen.budgets.get().opportunities > 100);
}

#[test]
fn heartbeat_pairs_set_the_reference_round_trip() {
    let (set, seen) = p1(true);
    let mut b = connected_by(3, set, &clean());
    b.run_for(ms(3_000));
    let mut pairs: BTreeMap<(Instant, usize), usize> = BTreeMap::new();
    for (at, _, path, bytes) in b.tapped(Side::Client, kind::HEARTBEAT) {
        assert_eq!(kinds(bytes).iter().filter(|k| **k == kind::HEARTBEAT).count(), 1, "one probe a packet");
        *pairs.entry((*at, *path)).or_default() += 1;
    }
    let tapped_from = b.now - ms(3_000);
    let asked = |s: &Seen| s.quality.get().published.iter().filter(|p| p.probed && p.at > tapped_from).count();
    assert_eq!(pairs.len(), asked(&seen), "a pair for each request");
    assert!(pairs.len() >= 8 && pairs.values().all(|n| *n == 2), "{pairs:?}");
    let reference =
        |path: u8| seen.quality.get().published.iter().rfind(|p| p.path == PathId(path)).unwrap().reference_rtt;
    assert!(reference(0) >= ms(40) && reference(0) < ms(42), "{:?}", reference(0));
    assert!(reference(1) >= ms(100) && reference(1) < ms(104), "{:?}", reference(1));

    // The delay changes and the first probe of every pair is lost: the second one suffices.
    let now = b.now;
    b.paths.get_mut(0).unwrap().apply(now, Direction::Forward, Setting::Delay(ms(70)));
    let mut newest = None;
    b.filter = Some(Box::new(move |l| {
        let first = l.from == Side::Client && l.path == 0 && l.has(kind::HEARTBEAT) && newest != Some(l.now);
        if first {
            newest = Some(l.now);
        }
        !first
    }));
    b.run_for(ms(2_000));
    assert!(reference(0) >= ms(90) && reference(0) < ms(92), "{:?}", reference(0));
}

#[test]
fn the_scheduler_spends_the_budgets_of_its_periods_and_no_more() {
    let (set, seen) = p1(true);
    let mut b = connected_by(4, set, &lossy());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 4_000, ms(120_000)).expect("arrives");
    let d = seen.budgets.get();
    for path in [PathId(0), PathId(1)] {
        let mut grants = d.grants.iter().filter(|g| g.path == path).peekable();
        let (mut granted, mut spent) = (0, 0);
        for s in d.spent.iter().filter(|s| s.path == path) {
            while let Some(g) = grants.next_if(|g| g.serial <= s.serial) {
                granted += g.bytes;
            }
            spent += s.bytes;
            assert!(spent <= granted, "{path:?} spent {spent} of {granted} in period {}", s.serial);
        }
        assert!(spent > 200_000, "{path:?} carried {spent}");
    }
    assert_eq!(d.refused, 0);
    assert!(d.bound_on_board > 1_000, "the board shows what is bound to a path");
    assert!(seen.quality.get().stale.is_empty(), "{:?}", seen.quality.get().stale.first());
}

/// Runs a lossy transfer with a blackout in it and looks at the windows after every event; how often their sum was
/// out of bounds.
fn out_of_bounds(enforce: bool) -> (u32, Seen) {
    let (set, seen) = p1(enforce);
    let mut b = connected_by(5, set, &lossy());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    let mut broken = 0;
    for step in 0..300 {
        match step {
            100 => (0..2).for_each(|p| b.cut(p)),
            115 => (0..2).for_each(|p| b.restore(p)),
            _ => {}
        }
        flow.send_to(&mut b, 100 * (step + 1));
        let until = b.now + ms(100);
        let windows = seen.windows.clone();
        b.run_until(until, |b| {
            let w = windows.get();
            let (active, sum) = active_windows(b.client.association(b.client_id).unwrap());
            let most = ((BETA * w.fwnd as f64) as u64).max(w.floor);
            // A path left alone after a timeout is not lifted: its window would be back at once.
            let least = if active > 1 { (ALPHA * w.fwnd as f64) as u64 } else { 0 };
            broken += u32::from(sum > most || sum < least);
            false
        });
        b.now = until;
        flow.check(&mut b);
    }
    assert!(flow.transfer(&mut b, 1, ms(300_000)).is_some(), "everything arrives in the end");
    (broken, seen)
}

#[test]
fn reward_and_penalty_keep_the_windows_within_bounds() {
    let (broken, seen) = out_of_bounds(true);
    let w = seen.windows.get();
    assert_eq!(broken, 0);
    assert!(w.rewards > 0 && w.penalties.len() > 3, "{} rewards, {} penalties", w.rewards, w.penalties.len());
    assert!(w.timeouts > 0 && w.scaled_down > 0 && w.in_recovery > 0);
    // A penalty blocks its path until the next period, unless it is the only one left.
    let d = seen.budgets.get();
    assert!(!d.penalised_periods.is_empty());
    assert!(d.spent.iter().all(|s| !s.blocked), "{:?}", d.spent.iter().find(|s| s.blocked));
}

#[test]
fn without_reward_and_penalty_the_bounds_are_broken() {
    let (broken, seen) = out_of_bounds(false);
    assert!(broken > 0 && seen.windows.get().penalties.is_empty());
}

#[test]
fn the_window_follows_the_cause() {
    let (_, seen) = out_of_bounds(true);
    let w = seen.windows.get();
    let of = |cause| w.cuts.iter().filter(move |c| c.cause == cause && c.measured);
    assert!(of(Cause::Radio).count() > 3 && of(Cause::Congestion).count() > 3, "{:?}", w.cuts);
    for c in of(Cause::Radio) {
        assert!(c.spare.is_some_and(|s| s > 0) && c.after == c.before, "{c:?}");
    }
    for c in of(Cause::Congestion) {
        assert!(c.spare.is_none_or(|s| s <= 0) && c.after <= c.before, "{c:?}");
    }
    assert!(of(Cause::Congestion).any(|c| c.after < c.before), "the view after the loss shows the cut");
}

#[test]
fn reports_of_the_link_layer_lower_the_capacity() {
    let (set, seen) = p1(true);
    let mut b = connected_by(6, set, &clean());
    Flow::new(Side::Client, 0, 1_000).transfer(&mut b, 1_000, ms(30_000)).expect("arrives");
    b.run_for(ms(3_000));
    let capacity = |path: u8| {
        let q = seen.quality.get();
        let p = q.published.iter().rfind(|p| p.path == PathId(path)).unwrap();
        p.spare + p.handled as i64
    };
    let before = [capacity(0), capacity(1)];
    b.assoc(Side::Client).link_report(LocalId(1), FrameErrors::counted(300, 1_000));
    b.run_for(ms(3_000));
    let after = [capacity(0), capacity(1)];
    assert_eq!(after[0], before[0]);
    let share = after[1] as f64 / before[1] as f64;
    assert!((0.69..0.71).contains(&share), "{share}");
}

/// Always wants to tick in the past.
struct Impatient(Notes<u64>);

impl PathQuality for Impatient {
    fn wakeup(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
    fn tick(&mut self, cx: &AssocView<'_>, _board: &mut Board) -> PathSet {
        *self.0.get() += 1;
        cx.paths.iter().map(|p| p.id).collect::<PathSet>().with(PathId(31))
    }
}

#[test]
fn an_impatient_estimator_cannot_stop_the_time() {
    let ticks = Notes::default();
    let mut set = policies(&profile("cmt", &[]), 2);
    set.path_quality = Box::new(Impatient(ticks.clone()));
    let mut b = connected_by(7, set, &clean());
    let before = *ticks.get();
    b.run_for(ms(500));
    let n = *ticks.get() - before;
    assert!((100..=501).contains(&n), "{n} ticks in 500 ms");
    Flow::new(Side::Client, 0, 1_000).transfer(&mut b, 100, ms(5_000)).expect("arrives");
}
