//! Paths that are potentially failed, and the primary path that follows the traffic (RFC 7829).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::PathId;
use anabranch_engine::{AssocConfig, Event, PathReason};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState::{self, Active, Inactive, PotentiallyFailed};
use anabranch_wire::kind;

/// One primary path and potential failure above `pfmr` errors; inactive above `pmr`.
fn config(pfmr: u16, pmr: u16) -> AssocConfig {
    let mut c = assoc_config("sctp");
    c.profile.set(Hook::PathState, &format!("potentially_failed:pfmr={pfmr}")).expect("a policy");
    c.failure.max_path_retrans = pmr;
    c
}

fn two(config: &AssocConfig) -> Bench {
    let mut b = Bench::connected(5, config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    b.strict = true;
    b.client_events.clear();
    b
}

fn manual(config: &AssocConfig) -> Manual {
    let mut m = Manual::new(config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    m.b.client_events.clear();
    m
}

/// Changes of path `path` that the client reported.
fn changes(b: &Bench, path: u8) -> Vec<(PathState, PathState)> {
    let of_path = |e: &Event| match e {
        Event::PathChanged { path: PathId(p), from, to, .. } if *p == path => Some((*from, *to)),
        _ => None,
    };
    b.client_events.iter().filter_map(of_path).collect()
}

/// Streams over path 0 after it was cut, until `done`.
fn until(b: &mut Bench, flow: &mut Flow, done: impl Fn(&mut Bench) -> bool) {
    let limit = b.now + ms(120_000);
    while !done(b) {
        assert!(b.now < limit, "{:?}", b.client_events);
        flow.stream(b, ms(10), ms(10));
    }
}

/// Paths of the client's DATA and HEARTBEATs since the tap was opened.
fn carried(b: &mut Bench) -> (Vec<usize>, Vec<usize>) {
    let of = |kind| b.tapped(Side::Client, kind).iter().map(|t| t.2).collect();
    let out = (of(kind::DATA), of(kind::HEARTBEAT));
    b.tap = Some(vec![]);
    out
}

/// Shows: ext/Q1, ext/Q2, ext/Q7, ext/Q10.
#[test]
fn above_its_own_limit_a_path_carries_no_data_and_above_the_other_it_is_inactive() {
    for pfmr in [0, 1] {
        let mut b = two(&config(pfmr, 3));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.stream(&mut b, ms(10), ms(500));
        b.cut(0);
        until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state != Active);
        let p = b.path(Side::Client, 0);
        assert_eq!((p.state, p.errors), (PotentiallyFailed, pfmr + 1), "on the error above the limit");
        b.tap = Some(vec![]);
        until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state != PotentiallyFailed);
        assert_eq!(b.path(Side::Client, 0).errors, 4);
        assert_eq!(changes(&b, 0), [(Active, PotentiallyFailed), (PotentiallyFailed, Inactive)]);
        let (data, probes) = carried(&mut b);
        assert!(data.len() > 50 && data.iter().all(|p| *p == 1), "new data and repetitions alike");
        let probes = probes.iter().filter(|p| **p == 0).count();
        assert_eq!(probes, usize::from(3 - pfmr), "one for each error");
        // Inactive it is probed as any other: at the interval.
        b.run_for(ms(300_000));
        let (_, probes) = carried(&mut b);
        let probes = probes.iter().filter(|p| **p == 0).count();
        assert!((4..=10).contains(&probes), "{probes}");
    }
}

/// Shows: ext/Q1.
#[test]
fn a_limit_that_is_not_below_the_other_turns_it_off() {
    let mut b = two(&config(3, 3));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(10), ms(500));
    b.cut(0);
    until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state != Active);
    assert_eq!(changes(&b, 0), [(Active, Inactive)]);
}

/// The only path of an association is in doubt like any other, and goes on carrying all.
///
/// Shows: ext/Q1.
#[test]
fn the_only_path_fails_too_and_is_used_all_the_same() {
    let mut b = Bench::connected(5, &config(0, 5), &[(link(10, 20), link(10, 20))]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(10), ms(500));
    b.cut(0);
    flow.stream(&mut b, ms(10), ms(1_500));
    assert_eq!(b.path(Side::Client, 0).state, PotentiallyFailed);
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(10), ms(5_000));
    let (data, probes) = carried(&mut b);
    assert!(!data.is_empty() && !probes.is_empty(), "{data:?} {probes:?}");
    b.restore(0);
    flow.transfer(&mut b, 100, ms(20_000)).expect("arrives");
}

/// Shows: ext/Q6.
#[test]
fn an_answered_heartbeat_clears_the_count_and_data_begins_with_a_small_window() {
    let mut b = two(&config(0, 5));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
    let before = b.path(Side::Client, 0).cwnd;
    b.cut(0);
    until(&mut b, &mut flow, |b| b.path(Side::Client, 0).errors >= 2);
    b.restore(0);
    b.client_events.clear();
    until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state == Active);
    let back = |e: &Event| {
        matches!(
            e,
            Event::PathChanged { path: PathId(0), from: PotentiallyFailed, to: Active, reason: PathReason::Answered }
        )
    };
    assert!(b.client_events.iter().any(back), "{:?}", b.client_events);
    let p = b.path(Side::Client, 0);
    assert_eq!(p.errors, 0);
    assert!(p.cwnd <= 4_404 && p.cwnd < before, "{} after {before}", p.cwnd);
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 100, ms(20_000)).expect("arrives");
    assert!(carried(&mut b).0.iter().all(|p| *p == 0), "the primary has its traffic back");
}

/// A chunk that left on both paths may have come by either.
///
/// Shows: ext/Q8, ext/Q9.
#[test]
fn only_what_left_on_one_path_alone_speaks_for_it() {
    let mut m = manual(&config(0, 5));
    m.send(1, FULL);
    assert_eq!(m.packets().iter().map(|p| p.path).collect::<Vec<_>>(), [0]);
    let again = m.during(ms(1_100));
    assert!(again.iter().any(|p| p.path == 1 && !p.data.is_empty()), "repeated on the other path");
    assert_eq!((m.path(0).state, m.path(0).errors), (PotentiallyFailed, 1));
    // That one fails too before anything is acknowledged.
    m.b.run_for(ms(1_100));
    assert_eq!((m.path(1).state, m.path(1).errors), (PotentiallyFailed, 1));
    let errors = (m.path(0).errors, m.path(1).errors);
    m.sack(1, &[]);
    assert_eq!((m.path(0).state, m.path(1).state), (PotentiallyFailed, PotentiallyFailed));
    assert_eq!((m.path(0).errors, m.path(1).errors), errors);
    assert!(changes(&m.b, 0).len() == 1 && changes(&m.b, 1).len() == 1);
    // Sent once, on the one that was chosen.
    m.packets();
    m.send(1, FULL);
    let on: Vec<usize> = m.packets().iter().filter(|p| !p.data.is_empty()).map(|p| p.path).collect();
    assert_eq!(on.len(), 1);
    m.b.run_for(ms(60));
    m.sack(2, &[]);
    let (this, other) = (m.path(on[0]), m.path(1 - on[0]));
    assert_eq!((this.state, this.errors), (Active, 0));
    assert_eq!(other.state, PotentiallyFailed);
}

/// The timer was too quick: what it declared lost is acknowledged before it was sent again.
///
/// Shows: ext/Q9.
#[test]
fn an_acknowledgement_that_was_only_late_restores_the_path() {
    let mut m = manual(&changed(config(0, 5), |c| c.sending.max_burst = 0));
    let next = m.open_window(12 * FULL as u64);
    m.send(10, FULL);
    assert_eq!(m.sent().len(), 10);
    let again = m.during(ms(1_100));
    let again: Vec<u32> = m.offsets(&again);
    assert_eq!(m.path(0).state, PotentiallyFailed);
    // The other path's window has no room for the last of them.
    assert!(again.len() < 9, "{again:?}");
    m.sack(next, &[(9, 9)]);
    assert_eq!((m.path(0).state, m.path(0).errors), (Active, 0));
}

/// Shows: ext/Q11.
#[test]
fn with_every_path_inactive_the_one_with_fewest_errors_is_tried_and_stays_inactive() {
    let mut b = two(&changed(config(0, 1), |c| c.failure.max_association_retrans = 100));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(10), ms(500));
    b.cut(0);
    flow.stream(&mut b, ms(10), ms(20_000));
    b.cut(1);
    until(&mut b, &mut flow, |b| b.path(Side::Client, 1).state == Inactive);
    assert_eq!(b.path(Side::Client, 0).state, Inactive);
    b.client_events.clear();
    for _ in 0..5 {
        let before = [0, 1].map(|i| b.path(Side::Client, i));
        let fewest = usize::from(before[1].errors < before[0].errors);
        b.tap = Some(vec![]);
        flow.stream(&mut b, ms(10), ms(10_000));
        let (data, _) = carried(&mut b);
        if before[0].errors != before[1].errors
            && let Some(first) = data.first()
        {
            assert_eq!(*first, fewest);
        }
        let after = [0, 1].map(|i| b.path(Side::Client, i).errors);
        assert!(after[0] >= before[0].errors && after[1] >= before[1].errors, "being chosen clears nothing");
    }
    assert!(changes(&b, 0).is_empty() && changes(&b, 1).is_empty(), "{:?}", b.client_events);
    b.restore(1);
    flow.transfer(&mut b, 100, ms(120_000)).expect("arrives");
}

/// Shows: ext/Q10.
#[test]
fn users_who_want_no_doubt_see_none() {
    let mut b = two(&changed(config(0, 2), |c| c.failure.expose_potentially_failed = false));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(10), ms(500));
    b.cut(0);
    b.tap = Some(vec![]);
    until(&mut b, &mut flow, |b| b.path(Side::Client, 0).errors == 2);
    assert_eq!(b.path(Side::Client, 0).state, Active);
    flow.stream(&mut b, ms(10), ms(500));
    assert!(carried(&mut b).0.iter().rev().take(40).all(|p| *p == 1), "it is treated as what it is");
    until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state != Active);
    assert_eq!(changes(&b, 0), [(Active, Inactive)]);
    b.restore(0);
    b.run_for(ms(120_000));
    assert_eq!(changes(&b, 0), [(Active, Inactive), (Inactive, Active)]);
}

/// Shows: ext/Q12.
#[test]
fn the_path_in_use_becomes_the_primary_above_the_switchover_limit() {
    for (switchover, stays) in [(None, false), (Some(0), true), (Some(2), true), (Some(3), true)] {
        let mut b = two(&changed(config(0, 5), |c| c.failure.primary_switchover = switchover));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.stream(&mut b, ms(10), ms(500));
        b.cut(0);
        let limit = switchover.unwrap_or(3);
        until(&mut b, &mut flow, |b| b.path(Side::Client, 0).errors == limit.max(1));
        let primary = b.assoc(Side::Client).primary();
        assert_eq!(primary, PathId(u8::from(limit == 0)), "{switchover:?}");
        until(&mut b, &mut flow, |b| b.path(Side::Client, 0).errors == limit + 1);
        assert_eq!(b.assoc(Side::Client).primary(), PathId(u8::from(stays)), "{switchover:?}");
        let switched =
            b.client_events.iter().filter(|e| matches!(e, Event::PrimarySwitched { path: PathId(1) })).count();
        assert_eq!(switched, usize::from(stays), "reported once");
        b.restore(0);
        until(&mut b, &mut flow, |b| b.path(Side::Client, 0).state == Active);
        flow.stream(&mut b, ms(10), ms(500));
        b.tap = Some(vec![]);
        flow.stream(&mut b, ms(10), ms(2_000));
        let on = carried(&mut b).0;
        assert!(on.iter().all(|p| *p == usize::from(stays)), "{switchover:?}: {on:?}");
    }
}

/// Shows: ext/Q12.
#[test]
fn a_switchover_before_data_leaves_the_path_is_refused() {
    let plain = |n| changed(assoc_config("sctp"), |c| c.failure.primary_switchover = Some(n));
    let doubting = |n| changed(config(2, 5), |c| c.failure.primary_switchover = Some(n));
    assert!(plain(5).check().is_ok() && doubting(2).check().is_ok() && doubting(9).check().is_ok());
    for refused in [plain(4), doubting(1)] {
        let why = refused.check().expect_err("too low").to_string();
        assert!(why.contains("primary_switchover") && why.contains("path_state"), "{why}");
        let mut b = Bench::new(5, &assoc_config("sctp"));
        let tried = b.client.connect(b.now, refused, anabranch_engine::LocalId(0), server_addr(0), PORT);
        assert!(tried.is_err(), "nor can an association begin with it");
    }
    let mut b = two(&assoc_config("sctp"));
    let mut a = b.assoc(Side::Client);
    assert!(a.set_path_thresholds(config(3, 5).profile, Some(2)).is_err());
    assert_eq!(a.config().failure.primary_switchover, None, "nothing changed");
    assert!(a.set_path_thresholds(config(0, 5).profile, Some(0)).is_ok(), "while it lives");
    drop(a);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    b.cut(0);
    until(&mut b, &mut flow, |b| b.assoc(Side::Client).primary() == PathId(1));
    assert_eq!(b.path(Side::Client, 0).errors, 1);
}
