use super::*;
use crate::testing::{Scene, ms};
use anabranch_base::Technology;

const A: PathId = PathId(0);
const B: PathId = PathId(1);

fn policy(spec: &str) -> CrossLayer {
    let mut profile = crate::Profile::named("sctp").unwrap();
    profile.set(Hook::PathQuality, &format!("cross_layer:{spec}")).unwrap();
    CrossLayer::new(&Params::new(&profile.values(Hook::PathQuality)[..], 0))
}

/// Two paths of 100 ms with windows of 20000 bytes.
fn scene() -> Scene {
    let mut s = Scene::new(2, 1);
    for i in 0..2 {
        let p = s.rtt(i, 100);
        (p.cwnd, p.rttvar) = (20_000, ms(10));
    }
    s
}

/// Ticks and shows the board to the views, as the engine does.
fn tick(s: &mut Scene, q: &mut CrossLayer) -> (Board, PathSet) {
    let mut board = Board { signals: s.paths.iter().map(|p| p.signals).collect(), period: s.period };
    let probe = q.tick(&s.cx(), &mut board);
    for (p, signals) in s.paths.iter_mut().zip(&board.signals) {
        p.signals = *signals;
    }
    s.period = board.period;
    (board, probe)
}

/// For `time`, `bytes` leave path `p` every 10 ms and are acknowledged at once; ticks as it asks for them.
fn carry(s: &mut Scene, q: &mut CrossLayer, p: PathId, bytes: u64, time: Duration) -> PathSet {
    let end = s.now + time;
    let mut probes = PathSet::EMPTY;
    while s.now < end {
        q.observe(&s.cx(), Notice::Sent { path: p, bytes });
        q.observe(&s.cx(), Notice::Released { path: p, bytes });
        q.observe(&s.cx(), Notice::Acked { path: p, bytes, sent_at: s.now });
        s.now += ms(10);
        if q.wakeup().unwrap() <= s.now {
            probes = probes.or(tick(s, q).1);
        }
    }
    probes
}

#[test]
fn reports_of_links_are_asked_for() {
    assert!(policy("").asks().any(Asks::LINK_REPORTS));
}

#[test]
fn rates_and_residual_capacity_without_a_link_report() {
    let (mut s, mut q) = (scene(), policy(""));
    assert_eq!(q.wakeup(), Some(Instant::ZERO));
    let (board, probe) = tick(&mut s, &mut q);
    assert_eq!((board.period.serial, board.period.length, probe.len()), (1, ms(100), 2));
    assert_eq!(board.signals[0].spare_rate, None, "nothing is measured");
    // 20000 / 0.1 s until there is an interval with data.
    assert_eq!(board.signals[0].handling_rate.bytes_per_sec(), 200_000);
    carry(&mut s, &mut q, A, 1_000, ms(2_500));
    let rate = s.paths[0].signals.handling_rate.bytes_per_sec();
    assert!((99_000..103_000).contains(&rate), "{rate}");
    assert_eq!(q.send_rate(A).bytes_per_sec(), 100_000);
    assert_eq!(q.send_rate(B), Rate::ZERO);
    // The bandwidth is what it sends: nothing to spare; the window takes 200 ms of it.
    let spare = s.paths[0].signals.spare_rate.unwrap();
    assert!((-3_000..=1_000).contains(&spare), "{spare}");
    assert_eq!(s.period.length, ms(200));
    // It proved 100000 and now carries a quarter.
    carry(&mut s, &mut q, A, 250, ms(2_500));
    let spare = s.paths[0].signals.spare_rate.unwrap();
    assert!((70_000..78_000).contains(&spare), "{spare}");
}

#[test]
fn capacity_in_its_three_modes() {
    let air = |m, erroneous| {
        let (mut s, mut e) = (scene(), Estimate::default());
        for i in 1..40 {
            e.bandwidth.released(Instant::from_millis(10 * i), 1_000, ms(1_000));
        }
        s.paths[0].frame_errors =
            Some(FrameErrors { modulation: Modulation::Qpsk, ..FrameErrors::counted(erroneous, 1_000_000) });
        e.estimate(&s.paths[0], m);
        e
    };
    let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} and {b}");
    // log2(1 + ESNR) of QPSK at one error in a hundred and in ten: 4.581 and 4.281; 4.827 when clean.
    close(air(Capacity::Literal, 10_000).capacity(Capacity::Literal, 1.5), 100_000.0 / 1.5 * 4.581);
    close(air(Capacity::Literal, 100_000).capacity(Capacity::Literal, 3.0), 100_000.0 / 3.0 * 4.281);
    let e = air(Capacity::Calibrated, 100_000);
    close(e.capacity(Capacity::Calibrated, 1.5), 100_000.0 * 4.281 / 4.827);
    close(e.capacity(Capacity::Calibrated, 1.0), 100_000.0 * 4.281 / 4.827);
    close(e.capacity(Capacity::Calibrated, 3.0), 50_000.0 * 4.281 / 4.827);
    close(e.capacity(Capacity::Neutral, 1.5), 100_000.0);
    close(air(Capacity::Calibrated, 0).capacity(Capacity::Calibrated, 1.5), 100_000.0);
    let unreported = Estimate { air: None, ..air(Capacity::Calibrated, 0) };
    close(unreported.capacity(Capacity::Literal, 1.5), 100_000.0);
}

#[test]
fn frames_of_the_interval_count_by_the_modulation_of_the_path() {
    let mut e = Estimate::default();
    let report =
        |erroneous, total| FrameErrors { technology: Technology::Wimax, ..FrameErrors::counted(erroneous, total) };
    e.read(report(0, 0));
    assert!(e.air.is_none());
    e.read(report(9_999, 1_000_000));
    let first = e.air.unwrap().efficiency;
    assert!((first - 6.819).abs() < 0.002, "16-QAM for 802.16: {first}");
    e.read(report(59_999, 2_000_000));
    let second = e.air.unwrap().efficiency;
    assert!((second - 6.604).abs() < 0.002, "the newest million alone: {second}");
    assert_eq!(e.wrong, 50_000);
    e.read(report(59_999, 2_000_000));
    assert_eq!((e.wrong, e.air.unwrap().efficiency), (0, second), "no frames, no news");
    e.read(FrameErrors::counted(9_999, 1_000_000));
    assert!((e.air.unwrap().efficiency - 4.581).abs() < 0.002, "counts began anew; QPSK where nothing is known");
}

#[test]
fn reports_that_stop_lapse_and_those_of_an_idle_path_do_not() {
    // Intervals are a second long. A hundred frames of each until some second, then the counts stand still or are gone.
    for (until, carries, gone) in
        [(3, true, false), (3, true, true), (8, true, false), (3, false, false), (3, false, true), (99, true, false)]
    {
        let (mut s, mut q) = (scene(), policy(""));
        for second in 1..40 {
            let reported = second.min(until);
            let frames = FrameErrors::counted(10 * reported, 100 * reported);
            s.paths[0].frame_errors = Some(frames).filter(|_| !gone || second <= until);
            let bytes = if carries || second <= until { 1_000 } else { 0 };
            if bytes > 0 {
                carry(&mut s, &mut q, A, bytes, ms(1_000));
            } else {
                s.now += ms(1_000);
                tick(&mut s, &mut q);
            }
            // The report of a second is read when its interval ends, or the next one.
            let lapsed = carries && second >= until + 12;
            let fresh = second >= 2 && (!carries || second <= until + 9);
            let air = q.paths[0].air.is_some();
            assert!(if air { !lapsed } else { !fresh }, "{until} {carries} {gone}: {second} {air}");
            assert!(second < until + 3 || q.paths[0].wrong == 0, "{until} {carries} {gone}: {second}");
        }
        if !carries {
            continue;
        }
        // A report brings it back.
        s.paths[0].frame_errors = Some(FrameErrors::counted(2_000, 20_000));
        carry(&mut s, &mut q, A, 1_000, ms(2_000));
        assert!(q.paths[0].air.is_some(), "{until} {gone}");
    }
}

#[test]
fn penalties_of_a_period_weigh_on_capacity() {
    let (mut s, mut q) = (scene(), policy(""));
    tick(&mut s, &mut q);
    carry(&mut s, &mut q, A, 1_000, ms(2_500));
    s.aggregate_window = Some(20_000);
    s.paths[0].signals.penalty_events = 2;
    s.now = q.next;
    tick(&mut s, &mut q);
    // w = 1 + 2; a half of 100000.
    let spare = s.paths[0].signals.spare_rate.unwrap();
    assert!((-54_000..-48_000).contains(&spare), "{spare}");
    s.now = q.next;
    tick(&mut s, &mut q);
    let spare = s.paths[0].signals.spare_rate.unwrap();
    assert!((-4_000..=1_000).contains(&spare), "they are old: {spare}");
}

/// Losses every 120 ms, below SRTT + 4 RTTVAR = 140 ms.
fn losing(s: &mut Scene, q: &mut CrossLayer, p: PathId) {
    for _ in 0..12 {
        q.observe(&s.cx(), Notice::Lost { path: p });
        s.now += ms(120);
    }
    tick(s, q);
}

#[test]
fn a_path_that_loses_faster_than_its_timeout_is_left_out_until_a_pair_is_answered() {
    let (mut s, mut q) = (scene(), policy(""));
    tick(&mut s, &mut q);
    losing(&mut s, &mut q, A);
    assert!(s.paths[0].signals.sidelined && !s.paths[1].signals.sidelined);
    assert_eq!(q.counters(), [("sidelined", 1)]);
    // It is probed although it carries nothing.
    s.now += ms(10_000);
    let (_, probe) = tick(&mut s, &mut q);
    assert!(probe.has(A) && !probe.has(B) && s.paths[0].signals.sidelined);
    q.observe(&s.cx(), Notice::Reference { path: A, answers: 0 });
    tick(&mut s, &mut q);
    assert!(s.paths[0].signals.sidelined, "the pair was lost");
    q.observe(&s.cx(), Notice::Reference { path: A, answers: 1 });
    tick(&mut s, &mut q);
    assert!(!s.paths[0].signals.sidelined);
    tick(&mut s, &mut q);
    assert!(!s.paths[0].signals.sidelined, "it begins anew");
}

#[test]
fn an_answer_right_after_the_losses_is_too_early() {
    let (mut s, mut q) = (scene(), policy(""));
    tick(&mut s, &mut q);
    losing(&mut s, &mut q, A);
    q.observe(&s.cx(), Notice::Lost { path: A });
    q.observe(&s.cx(), Notice::Reference { path: A, answers: 2 });
    tick(&mut s, &mut q);
    assert!(s.paths[0].signals.sidelined);
    s.now += ms(150);
    tick(&mut s, &mut q);
    assert!(!s.paths[0].signals.sidelined);
}

#[test]
fn one_path_stays_whatever_it_loses() {
    let (mut s, mut q) = (scene(), policy(""));
    tick(&mut s, &mut q);
    for _ in 0..12 {
        [A, B].into_iter().for_each(|p| q.observe(&s.cx(), Notice::Lost { path: p }));
        s.now += ms(120);
    }
    s.paths[1].srtt = ms(110);
    tick(&mut s, &mut q);
    assert_eq!([0, 1].map(|i| s.paths[i].signals.sidelined), [false, true], "120 of 140, and 120 of 150");
}

#[test]
fn how_strict_activity_is_judged() {
    for (spec, sidelined) in [("activity=off", false), ("", false), ("activity=literal", true)] {
        let (mut s, mut q) = (scene(), policy(spec));
        tick(&mut s, &mut q);
        for _ in 0..5 {
            q.observe(&s.cx(), Notice::Lost { path: A });
            s.now += ms(900);
        }
        tick(&mut s, &mut q);
        assert_eq!(s.paths[0].signals.sidelined, sidelined, "{spec}: 900 ms beside a timeout of a second");
    }
    let (mut s, mut q) = (scene(), policy("activity=off"));
    tick(&mut s, &mut q);
    losing(&mut s, &mut q, A);
    assert!(!s.paths[0].signals.sidelined);
}

#[test]
fn a_path_that_carries_nothing_is_not_probed_and_an_idle_association_has_long_periods() {
    let (mut s, mut q) = (scene(), policy(""));
    s.unsent = 0;
    tick(&mut s, &mut q);
    s.now += ms(1_000);
    let (_, probe) = tick(&mut s, &mut q);
    assert_eq!((probe, q.wakeup()), (PathSet::EMPTY, Some(s.now + ms(1_000))));
    s.now += ms(30);
    q.observe(&s.cx(), Notice::Sent { path: A, bytes: 1_000 });
    assert_eq!(q.wakeup(), Some(s.now + ms(70)), "data ends the long period where it would have ended");
    let probes = carry(&mut s, &mut q, A, 1_000, ms(3_000));
    assert!(probes.has(A) && !probes.has(B));
}

#[test]
fn it_never_asks_for_a_tick_that_does_nothing() {
    let (mut s, mut q) = (scene(), policy(""));
    s.paths[1].state = crate::view::PathState::Inactive;
    tick(&mut s, &mut q);
    for _ in 0..50 {
        let at = q.wakeup().unwrap();
        assert!(at > s.now);
        s.now = at;
        tick(&mut s, &mut q);
    }
}
