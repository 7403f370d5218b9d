//! The registered policies of Xu et al. 2014, driven by the engine; a path that an estimator leaves out, and pairs of
//! HEARTBEATs that are lost.

use super::two_paths::*;
use anabranch_base::{Duration, Instant, PathId, PathSet};
use anabranch_engine::LocalId;
use anabranch_policy::path_quality::{Board, Notice, PathQuality};
use anabranch_policy::registry::{Hook, PolicySet};
use anabranch_policy::view::{AssocView, FrameErrors};
use anabranch_sim::{Limit, LinkConfig, LossConfig};
use anabranch_wire::kind;

const PROFILES: [&str; 3] = ["cmt-cl", "cmt-cl-fd", "cmt-qa"];

fn clean() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(10, 20)), both_ways(link(4, 50))]
}

/// Short queues, and radio losses besides.
fn lossy(share: f64) -> [(LinkConfig, LinkConfig); 2] {
    let forward = |mbit, delay, p| {
        (link(mbit, delay).with_limit(Limit::packets(20)).with_loss(LossConfig::bernoulli(p)), link(mbit, delay))
    };
    [forward(10, 20, share / 2.0), forward(4, 50, share)]
}

fn counted(b: &mut Bench, hook: Hook, name: &str) -> u64 {
    let a = b.assoc(Side::Client);
    a.policy_counters().find(|(h, (n, _))| *h == hook && *n == name).map(|(_, (_, n))| n).expect("a counter")
}

#[test]
fn every_profile_brings_all_there_is_whatever_happens_on_the_way() {
    for name in PROFILES {
        let mut b = connected_by(21, policies(&profile(name, &[]), 2), &lossy(0.02));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 2_000, ms(120_000)).unwrap_or_else(|| panic!("{name}: {} arrived", flow.got));
        b.cut(0);
        assert!(flow.transfer(&mut b, 300, ms(120_000)).is_some(), "{name}: on one path");
        b.restore(0);
        b.cut(1);
        assert!(flow.transfer(&mut b, 300, ms(120_000)).is_some(), "{name}: on the other one");
        b.restore(1);
        assert!(flow.transfer(&mut b, 1_000, ms(120_000)).is_some(), "{name}: on both again");
    }
}

#[test]
fn so_do_the_readings_and_the_printed_forms() {
    let schedulers = ["tick,cap=none", "tick,cap=window", "drain,cap=none", "opportunity,cap=none", "opportunity"];
    for (i, scheduler) in schedulers.into_iter().enumerate() {
        let capacity = ["literal", "calibrated", "neutral"][i % 3];
        let reward = ["at_once", "paced"][i % 2];
        let choices = [
            (Hook::PathScheduler, format!("residual_capacity:refresh={scheduler}")),
            (Hook::PathQuality, format!("cross_layer:capacity={capacity}")),
            (Hook::Coupling, format!("friendliness_window:reward={reward}")),
            (Hook::LossCause, "residual_capacity:guard=0".into()),
            (Hook::Window, "residual_capacity:rfc_strict=0".into()),
        ];
        let mut p = profile("cmt-cl-fd", &[]);
        choices.iter().for_each(|(hook, spec)| p.set(*hook, spec).expect("registered"));
        let mut b = connected_by(22, policies(&p, 2), &lossy(0.02));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        assert!(flow.transfer(&mut b, 1_500, ms(120_000)).is_some(), "{scheduler}: {} arrived", flow.got);
        b.run_for(ms(5_000));
        assert!(flow.transfer(&mut b, 1, ms(5_000)).is_some(), "{scheduler}: after a pause");
    }
}

/// Printed, a path is granted what its window is once a period, and the best path first.
#[test]
fn granting_at_every_opportunity_is_several_times_as_fast_as_once_a_period() {
    let time = |scheduler: &str| {
        let mut b = connected_by(23, policies(&profile("cmt-cl", &[(Hook::PathScheduler, scheduler)]), 2), &clean());
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 4_000, ms(120_000)).expect("arrives").as_secs_f64()
    };
    let (printed, ours) = (time("residual_capacity:refresh=tick,cap=none"), time("residual_capacity"));
    assert!(printed > 1.5 * ours, "{printed} s and {ours} s");
}

#[test]
fn both_paths_carry_their_share() {
    for name in PROFILES {
        let mut b = connected_by(24, policies(&profile(name, &[]), 2), &clean());
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        let time = flow.transfer(&mut b, 8_000, ms(60_000)).expect("arrives").as_secs_f64();
        // 14 Mbit/s less headers; a friendliness window grows by a packet a round trip over both.
        assert!((4.7..12.0).contains(&time), "{name}: {time} s");
        let sent: Vec<u64> = (0..2).map(|p| b.path(Side::Client, p).counters.packets_sent).collect();
        assert!(sent.iter().all(|n| *n > 800), "{name}: {sent:?}");
    }
}

/// Two HEARTBEATs in each interval of a path that carries something, and none while the association is idle.
#[test]
fn pairs_leave_once_an_interval() {
    let mut b = connected_by(25, policies(&profile("cmt-cl", &[]), 2), &clean());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(5), ms(5_000));
    let at: Vec<(Instant, usize)> =
        b.tapped(Side::Client, kind::HEARTBEAT).iter().map(|(at, _, p, _)| (*at, *p)).collect();
    let of = [0, 1].map(|path| at.iter().filter(|(_, p)| *p == path).count());
    // Without a loss the interval is a second; one in which a path carried nothing has none.
    assert!(of.iter().all(|n| *n <= 12 && n.is_multiple_of(2)) && of[0].max(of[1]) >= 6, "{of:?}");
    b.run_for(ms(2_000));
    b.tap = Some(vec![]);
    b.run_for(ms(10_000));
    assert_eq!(b.tapped(Side::Client, kind::HEARTBEAT).len(), 0);
}

/// The window may only be left alone where the link layer says that it was the air.
#[test]
fn losses_are_congestion_unless_the_link_layer_proves_frame_errors() {
    let time = |reports: bool| {
        let links = lossy(0.03).map(|(f, r)| (f.with_limit(Limit::packets(1_000)), r));
        let mut b = connected_by(26, policies(&profile("cmt-cl", &[]), 2), &links);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        let began = b.now;
        for step in 1..=2_000u64 {
            flow.send_to(&mut b, 4_000);
            b.run_for(ms(50));
            flow.check(&mut b);
            if reports {
                for path in 0..2 {
                    let counts = FrameErrors::counted(step * 2, step * 100);
                    b.assoc(Side::Client).link_report(LocalId(path), counts);
                }
            }
            if flow.got == 4_000 {
                return b.now.since(began).as_secs_f64();
            }
        }
        panic!("{} arrived", flow.got)
    };
    let (without, with) = (time(false), time(true));
    assert!(with < 0.8 * without, "{with} s and {without} s");
}

#[test]
fn the_friendliness_window_holds_the_windows_together() {
    let count = |choices: &[(Hook, &str)]| {
        let mut b = connected_by(27, policies(&profile("cmt-cl-fd", choices), 2), &lossy(0.02));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 2_500, ms(120_000)).expect("arrives");
        let causes = ["radio", "congestion"].map(|c| counted(&mut b, Hook::LossCause, c));
        assert!(causes.iter().sum::<u64>() > 20, "{causes:?}");
        ["penalties", "rewards"].map(|c| counted(&mut b, Hook::Coupling, c))
    };
    let printed = [
        (Hook::Coupling, "friendliness_window:reward=at_once"),
        (Hook::Window, "residual_capacity:rfc_strict=0"),
        (Hook::LossCause, "residual_capacity:guard=0"),
    ];
    let counts = count(&printed);
    assert!(counts[0] > 3, "{counts:?}");
    assert_eq!(count(&[])[1], 0, "no rewards unless asked for");
}

/// Leaves a path out between two instants.
struct Aside {
    path: usize,
    from: Instant,
    to: Instant,
    next: Instant,
}

impl PathQuality for Aside {
    fn wakeup(&self) -> Option<Instant> {
        Some(self.next)
    }
    fn tick(&mut self, cx: &AssocView<'_>, board: &mut Board) -> PathSet {
        let out = cx.now >= self.from && cx.now < self.to;
        if let Some(s) = board.signals.get_mut(self.path) {
            s.sidelined = out;
        }
        board.period.serial += 1;
        (board.period.start, board.period.length) = (cx.now, ms(50));
        self.next = cx.now + ms(50);
        PathSet::EMPTY
    }
}

fn with_quality(mut set: PolicySet, quality: impl PathQuality + 'static) -> PolicySet {
    set.path_quality = Box::new(quality);
    set
}

/// Whatever chooses paths: none of it chooses one that takes no part, and all of it does again afterwards.
#[test]
fn a_path_that_takes_no_part_carries_no_data_of_any_kind() {
    let schedulers = Hook::PathScheduler.policies().into_iter().map(|p| (Hook::PathScheduler, p.name));
    let targets = Hook::Retransmission.policies().into_iter().map(|p| (Hook::Retransmission, p.name));
    let extras = Hook::Redundancy.policies().into_iter().map(|p| (Hook::Redundancy, p.name));
    for (hook, name) in schedulers.chain(targets).chain(extras) {
        let mut p = profile("cmt", &[(Hook::PathQuality, "handling_rate"), (Hook::AckCredit, "sack_bytes")]);
        p.set(hook, name).expect("registered");
        let (from, to) = (Instant::from_millis(6_000), Instant::from_millis(9_000));
        let set = with_quality(policies(&p, 2), Aside { path: 1, from, to, next: Instant::ZERO });
        let mut b = connected_by(28, set, &lossy(0.02));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        while b.now < Instant::from_millis(12_000) {
            flow.send_to(&mut b, flow.sent + 200);
            b.run_for(ms(20));
            flow.check(&mut b);
        }
        let all = departures(&b);
        let of = |path: usize, from: u64, to: u64| {
            let (from, to) = (Instant::from_millis(from), Instant::from_millis(to));
            all.iter().filter(|d| d.path == path && d.at > from && d.at < to).count()
        };
        // The clock may tick up to 50 ms later.
        assert_eq!(of(1, 6_060, 9_000), 0, "{hook} {name}");
        assert!(of(0, 6_060, 9_000) > 100, "{hook} {name}: {} on the other path", of(0, 6_060, 9_000));
        if name != "primary_only" {
            assert!(of(1, 9_100, 12_000) > 20, "{hook} {name}: {} afterwards", of(1, 9_100, 12_000));
        }
    }
}

/// The path that carries all of it takes no part: the next one does, and a path that is alone is used whatever is said.
#[test]
fn what_one_path_carries_moves_to_the_next() {
    let (from, to) = (Instant::from_millis(5_000), Instant::from_millis(99_000));
    let aside = Aside { path: 0, from, to, next: Instant::ZERO };
    let set = with_quality(policies(&profile("sctp", &[]), 2), aside);
    let mut b = connected_by(29, set, &clean());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    let until = Instant::from_millis(6_000);
    b.run_until(until, |_| false);
    b.now = b.now.max(until);
    b.tap = Some(vec![]);
    assert!(flow.transfer(&mut b, 500, ms(30_000)).is_some());
    assert!(departures(&b).iter().all(|d| d.path == 1));
    b.cut(1);
    assert!(flow.transfer(&mut b, 500, ms(120_000)).is_some(), "the other path failed: it is needed");
}

/// Asks for pairs and writes down what became of them.
struct Pairs {
    next: Instant,
    seen: Notes<Vec<(PathId, u8)>>,
}

impl PathQuality for Pairs {
    fn observe(&mut self, _: &AssocView<'_>, n: Notice) {
        if let Notice::Reference { path, answers } = n {
            self.seen.get().push((path, answers));
        }
    }
    fn wakeup(&self) -> Option<Instant> {
        Some(self.next)
    }
    fn tick(&mut self, cx: &AssocView<'_>, _: &mut Board) -> PathSet {
        self.next = cx.now + Duration::from_secs(2);
        cx.paths.iter().map(|p| p.id).collect()
    }
}

#[test]
fn a_pair_that_is_lost_or_half_lost_is_reported() {
    let seen: Notes<Vec<(PathId, u8)>> = Notes::default();
    let set = with_quality(policies(&profile("cmt", &[]), 2), Pairs { next: Instant::ZERO, seen: seen.clone() });
    let mut b = connected_by(30, set, &clean());
    b.run_for(ms(4_000));
    assert!(seen.get().len() >= 4 && seen.get().iter().all(|(_, n)| *n == 2), "{:?}", seen.get());
    // Of each pair on the first path the first is lost, on the second path both.
    let mut newest = None;
    b.filter = Some(Box::new(move |l| {
        let probe = l.from == Side::Client && l.has(kind::HEARTBEAT);
        let first = probe && l.path == 0 && newest != Some(l.now);
        if first {
            newest = Some(l.now);
        }
        !(first || probe && l.path == 1)
    }));
    b.run_for(ms(3_000));
    seen.get().clear();
    b.run_for(ms(6_000));
    let of = |path| seen.get().iter().filter(|(p, _)| *p == path).map(|(_, n)| *n).collect::<Vec<_>>();
    assert!(of(PathId(0)).len() >= 2 && of(PathId(0)).iter().all(|n| *n == 1), "{:?}", of(PathId(0)));
    assert!(of(PathId(1)).len() >= 2 && of(PathId(1)).iter().all(|n| *n == 0), "{:?}", of(PathId(1)));
}

/// No link layer says anything: delays beside the losses do.
#[test]
fn delays_tell_radio_losses_from_those_of_a_queue() {
    let run = |cause: &str| {
        let links = lossy(0.03).map(|(f, r)| (f.with_limit(Limit::packets(200)), r));
        let chosen = profile("cmt-fair", &[(Hook::LossCause, cause), (Hook::Coupling, "uncoupled")]);
        let mut b = connected_by(28, policies(&chosen, 2), &links);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        let began = b.now;
        flow.transfer(&mut b, 4_000, ms(240_000)).expect("arrives");
        b.now.since(began).as_secs_f64()
    };
    let (by_delay, all_congestion) = (run("full_queue"), run("always_congestion"));
    assert!(by_delay < 0.8 * all_congestion, "{by_delay} s and {all_congestion} s");
}
