//! Tests of [`super`].

use super::*;
use crate::loss_cause::LossKind;
use crate::testing::{Scene, loss, ms};

const MTU: u64 = 1_172;

fn policy() -> Bbr {
    Bbr::new(&Params::defaults(&POLICY.info, 1))
}
/// 1 byte per microsecond over 50 ms.
fn scene() -> Scene {
    let mut s = Scene::new(1, 0);
    let p = s.rtt(0, 50);
    (p.mean_rtt, p.unloaded_rtt) = (ms(50), ms(50));
    p.capacity = Rate::from_bytes_per_sec(1_000_000);
    s
}
/// One round of `packets`, whose last acknowledgement shows `rtt` ms.
fn round(s: &mut Scene, w: &mut Bbr, packets: u64, rtt: u64, app_limited: bool) {
    let first = w.newest_sent + 1;
    (first..first + packets).for_each(|seq| w.on_sent(s.now, seq, &s.paths[0]));
    s.now += ms(rtt);
    s.paths[0].last_rtt = ms(rtt);
    for seq in first..first + packets {
        let ack = AckOnPath {
            acked: 1_000,
            bytes: 1_000,
            newest_seq: Some(seq),
            rtt: Some(ms(rtt)),
            app_limited,
            ..AckOnPath::default()
        };
        let change = w.on_ack(&s.cx(), PathId(0), &ack);
        (s.paths[0].cwnd, s.paths[0].ssthresh) = (change.set.unwrap(), change.ssthresh);
    }
}
fn started() -> (Scene, Bbr) {
    let (mut s, mut w) = (scene(), policy());
    (0..6).for_each(|_| round(&mut s, &mut w, 50, 50, false));
    (s, w)
}
fn share(s: &Scene, w: &Bbr) -> f64 {
    w.pace(&s.paths[0]).unwrap().bytes_per_sec() as f64 / 1e6
}

#[test]
fn the_start_ends_when_the_rate_stops_growing_and_the_window_is_twice_the_pipe() {
    let (mut s, mut w) = (scene(), policy());
    round(&mut s, &mut w, 10, 50, false);
    assert_eq!((w.phase, s.paths[0].ssthresh), (Phase::Startup, u64::MAX));
    assert!(share(&s, &w) > 2.5);
    (0..6).for_each(|_| round(&mut s, &mut w, 50, 50, false));
    assert_eq!((w.phase, s.paths[0].cwnd, s.paths[0].ssthresh), (Phase::Cruise, 100_000 + 3 * MTU, 50_000));
    assert_eq!(share(&s, &w), 1.0);
}

#[test]
fn a_source_that_offers_less_does_not_end_the_start() {
    let (mut s, mut w) = (scene(), policy());
    (0..20).for_each(|_| round(&mut s, &mut w, 10, 50, true));
    assert_eq!(w.phase, Phase::Startup);
    assert!(s.paths[0].cwnd <= 139_000 + 3 * MTU, "bounded all the same: {}", s.paths[0].cwnd);
}

/// What a train shows exactly ends the start; the least of it is where the start goes on.
#[test]
fn a_train_that_shows_the_least_does_not_end_the_start() {
    for (least, phase) in [(false, Phase::Up), (true, Phase::Startup)] {
        let (mut s, mut w) = (scene(), policy());
        s.paths[0].capacity_may_be_more = least;
        assert_eq!(w.on_train(s.now, &s.paths[0]), Some(100_000 + 3 * MTU));
        assert_eq!(w.phase, phase);
    }
}

#[test]
fn random_loss_costs_nothing_and_much_loss_does() {
    let (mut s, mut w) = started();
    let before = s.paths[0].cwnd;
    for _ in 0..40 {
        round(&mut s, &mut w, 50, 50, true);
        let e = LossEvent { bytes: 2_500, ..loss(0) };
        assert_eq!(w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion).cwnd, s.paths[0].cwnd);
    }
    assert_eq!((s.paths[0].cwnd, w.ceiling), (before, None), "5 % of each round");
    s.paths[0].in_flight = 80_000;
    for _ in 0..3 {
        let e = LossEvent { bytes: 20_000, ..loss(0) };
        w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion);
        round(&mut s, &mut w, 50, 50, true);
    }
    assert!(s.paths[0].cwnd < 90_000 && s.paths[0].cwnd >= 50_000, "{}", s.paths[0].cwnd);
    (0..40).for_each(|_| round(&mut s, &mut w, 50, 50, true));
    assert_eq!(s.paths[0].cwnd, before, "what does not hurt is allowed again");
    let radio = LossEvent { bytes: 50_000, ..loss(0) };
    w.on_loss(&s.cx(), PathId(0), &radio, Cause::Radio);
    assert_eq!(w.ceiling, None);
}

#[test]
fn what_was_lost_where_packets_overtake_each_other_counts_for_less_long() {
    let rounds_until_open = |reorders: bool, rtt: u64| {
        let (mut s, mut w) = started();
        let before = s.paths[0].cwnd;
        s.paths[0].in_flight = 60_000;
        for _ in 0..3 {
            let e = LossEvent { bytes: 20_000, ..loss(0) };
            w.on_loss(&s.cx(), PathId(0), &e, Cause::Congestion);
        }
        (1..200).find(|_| {
            s.paths[0].overtaken_at = reorders.then_some(s.now);
            round(&mut s, &mut w, 50, rtt, true);
            s.paths[0].cwnd == before
        })
    };
    let (in_order, overtaking) = (rounds_until_open(false, 50), rounds_until_open(true, 50));
    assert!(overtaking.unwrap() * 2 < in_order.unwrap(), "{overtaking:?} rounds and {in_order:?}");
    assert_eq!(rounds_until_open(true, 90), rounds_until_open(false, 90), "not with a queue");
}

#[test]
fn probing_goes_on_while_the_rate_grows_and_ends_with_a_queue() {
    let (mut s, mut w) = started();
    let begun = s.now;
    while w.phase != Phase::Up {
        round(&mut s, &mut w, 10, 50, false);
        assert!(s.now - begun < ms(1_100), "after a second");
    }
    for _ in 0..8 {
        let grown = s.paths[0].capacity.bytes_per_sec() * 5 / 4;
        s.paths[0].capacity = Rate::from_bytes_per_sec(grown);
        round(&mut s, &mut w, 10, 50, false);
    }
    assert_eq!(w.phase, Phase::Up);
    assert!(s.paths[0].cwnd > 300_000, "{}", s.paths[0].cwnd);
    let (pace, capacity) = (share(&s, &w) * 1e6, s.paths[0].capacity.bytes_per_sec() as f64);
    assert!((pace / capacity - 2.0).abs() < 0.01, "far more is there: twice as fast as the last round");
    s.paths[0].in_flight = 2_000_000;
    s.paths[0].recent_rtt = ms(90);
    (0..2).for_each(|_| round(&mut s, &mut w, 10, 90, false));
    assert_eq!(w.phase, Phase::Down);
    s.paths[0].in_flight = 0;
    round(&mut s, &mut w, 10, 50, false);
    assert_eq!(w.phase, Phase::Cruise);
}

/// A queue that stands before a probe's round is over, by how long it is, how many paths there are and on which of them
/// packets overtake each other.
#[test]
fn beside_a_path_that_reorders_or_alone_on_one_a_probe_ends_with_its_first_queue() {
    let phase = |paths: usize, reorders: Option<usize>, rtt: u64| {
        let (mut s, mut w) = started();
        (1..paths).for_each(|i| s.paths.push(PathView { id: PathId(i as u8), ..s.paths[0] }));
        while w.phase != Phase::Up {
            round(&mut s, &mut w, 10, 50, false);
        }
        if let Some(i) = reorders {
            s.paths[i].overtaken_at = Some(s.now);
        }
        s.paths[0].in_flight = 2_000_000;
        s.paths[0].last_rtt = ms(rtt);
        w.on_sent(s.now, w.newest_sent + 1, &s.paths[0]);
        let early = AckOnPath { acked: 1_000, bytes: 1_000, rtt: Some(ms(rtt)), ..AckOnPath::default() };
        w.on_ack(&s.cx(), PathId(0), &early);
        w.phase
    };
    for (rtt, first_queue) in [(50, Phase::Up), (60, Phase::Up), (65, Phase::Down), (120, Phase::Down)] {
        for (paths, reorders, then) in [
            (1, None, Phase::Up),
            (1, Some(0), first_queue),
            (2, None, Phase::Up),
            (2, Some(0), Phase::Up),
            (2, Some(1), first_queue),
            (3, Some(2), first_queue),
        ] {
            assert_eq!(phase(paths, reorders, rtt), then, "{rtt} ms of 50, {paths} paths, {reorders:?}");
        }
    }
}

/// The path carries a tenth of what it carried, and the window has noticed.
fn fallen() -> (Scene, Bbr) {
    let (mut s, mut w) = started();
    s.paths[0].capacity = Rate::from_bytes_per_sec(100_000);
    s.paths[0].in_flight = 0;
    round(&mut s, &mut w, 5, 50, true);
    assert_eq!(w.phase, Phase::Cruise);
    (s, w)
}

#[test]
fn a_rate_that_fell_is_asked_for_after_each_round_without_a_queue() {
    let (mut s, mut w) = fallen();
    let begun = s.now;
    (0..2).for_each(|_| round(&mut s, &mut w, 5, 50, false));
    assert!(w.phase == Phase::Up && s.now - begun < ms(150), "{:?}", w.phase);
    assert_eq!(share(&s, &w), 0.175);
    s.paths[0].capacity = Rate::from_bytes_per_sec(125_000);
    round(&mut s, &mut w, 5, 50, false);
    assert_eq!(share(&s, &w), 0.25, "the path follows");
    s.paths[0].capacity = Rate::from_bytes_per_sec(250_000);
    (s.paths[0].in_flight, s.paths[0].recent_rtt) = (100_000, ms(80));
    round(&mut s, &mut w, 1, 80, false);
    assert_eq!(w.phase, Phase::Down, "at the first sight of a queue");
}

#[test]
fn a_rate_that_fell_long_ago_is_what_the_path_carries() {
    for (after, asks) in [(5_000, true), (16_000, false)] {
        let (mut s, mut w) = fallen();
        for _ in 0..2 {
            s.now += ms(after);
            round(&mut s, &mut w, 5, 50, true);
        }
        assert_eq!(w.has_fallen(&s.paths[0]), asks, "{after} ms");
    }
}

#[test]
fn a_source_that_offers_less_asks_for_nothing_more() {
    let (mut s, mut w) = fallen();
    for _ in 0..15 {
        round(&mut s, &mut w, 5, 50, true);
        assert_eq!(w.phase, Phase::Cruise);
    }
}

#[test]
fn a_queue_does_not_let_a_probe_grow() {
    let (mut s, mut w) = started();
    while w.phase != Phase::Up {
        round(&mut s, &mut w, 10, 50, false);
    }
    // The rate fell to a tenth, and nothing says so yet but the round trips.
    s.paths[0].mean_rtt = ms(500);
    round(&mut s, &mut w, 10, 50, false);
    assert!(s.paths[0].cwnd <= 160_000, "what two round trips hold while probing, not ten: {}", s.paths[0].cwnd);
}

#[test]
fn a_mark_lowers_the_window() {
    let (mut s, mut w) = started();
    let before = s.paths[0].cwnd;
    let mark = LossEvent { bytes: 0, ..loss(0) };
    let state = w.on_loss(&s.cx(), PathId(0), &mark, Cause::Congestion);
    assert_eq!((state.cwnd, w.phase), (before - before / 8, Phase::Down));
    s.paths[0].cwnd = state.cwnd;
    round(&mut s, &mut w, 10, 50, false);
    assert!(s.paths[0].cwnd < before);
}

#[test]
fn after_a_timeout_the_first_answer_brings_the_window_back() {
    let (mut s, mut w) = started();
    let timeout = LossEvent { kind: LossKind::Timeout, ..loss(0) };
    let state = w.on_loss(&s.cx(), PathId(0), &timeout, Cause::Congestion);
    assert_eq!(state.cwnd, MTU);
    s.paths[0].cwnd = state.cwnd;
    round(&mut s, &mut w, 1, 50, true);
    assert!(s.paths[0].cwnd >= 5 * MTU);
    round(&mut s, &mut w, 25, 50, true);
    assert_eq!(s.paths[0].cwnd, 100_000 + 3 * MTU);
}

#[test]
fn a_path_that_never_empties_runs_dry_now_and_then() {
    let (mut s, mut w) = started();
    s.paths[0].in_flight = 100_000;
    for _ in 0..130 {
        round(&mut s, &mut w, 10, 90, false);
        if matches!(w.phase, Phase::Dry(_)) {
            assert_eq!(s.paths[0].cwnd, 25_000);
            return;
        }
    }
    panic!("ten seconds with a queue: {:?}", w.phase);
}
