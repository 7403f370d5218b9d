use super::*;
use crate::loss_cause::LossKind;
use crate::testing::{Scene, loss, ms};

const MTU: u64 = 1_172;

fn policy() -> Cubic {
    Cubic::new(&Params::defaults(&POLICY.info, 0))
}
fn scene(packets: u64, rtt: u64) -> Scene {
    let mut s = Scene::new(1, 0);
    let p = s.rtt(0, rtt);
    (p.cwnd, p.ssthresh, p.in_flight) = (packets * MTU, packets * MTU - 1, 1);
    s
}
/// One packet acknowledged; the window that follows, as the engine carries it out.
fn ack(s: &mut Scene, c: &mut Cubic, fully_used: bool) -> f64 {
    let a = AckOnPath { bytes: MTU, acked: MTU, packets: 1, fully_used, ..AckOnPath::default() };
    let change = c.on_ack(&s.cx(), PathId(0), &a);
    s.paths[0].cwnd += change.grow;
    s.paths[0].ssthresh = change.ssthresh;
    s.paths[0].cwnd as f64 / MTU as f64
}
/// Windows after each of `count` rounds in which all packets are acknowledged one by one.
fn rounds(s: &mut Scene, c: &mut Cubic, rtt: u64, count: u64) -> Vec<f64> {
    (0..count)
        .map(|_| {
            let (began, n) = (s.now, s.paths[0].cwnd / MTU);
            let last = (0..n).map(|i| {
                s.now = began + ms(rtt) * (i + 1) / n;
                ack(s, c, true)
            });
            last.last().unwrap()
        })
        .collect()
}
fn lose(s: &mut Scene, c: &mut Cubic, kind: LossKind) -> WindowState {
    let to = c.on_loss(&s.cx(), PathId(0), &LossEvent { kind, ..loss(0) }, Cause::Congestion);
    (s.paths[0].cwnd, s.paths[0].ssthresh) = (to.cwnd, to.ssthresh);
    to
}

#[test]
fn a_cut_leaves_seven_tenths_and_the_window_is_back_after_k() {
    let (mut s, mut c) = (scene(1_000, 100), policy());
    assert_eq!(lose(&mut s, &mut c, LossKind::FastRetransmit).cwnd, 700 * MTU);
    s.paths[0].ssthresh -= 1;
    let all = rounds(&mut s, &mut c, 100, 150);
    // C (t - K)^3 + W_max with K the cube root of 300 / 0.4, 9.09 s; what is set is a target one round trip ahead.
    for t in [1.0, 3.0, 6.0, 9.0, 12.0] {
        let d = t - cube_root(300.0 / 0.4);
        let w = 0.4 * d * d * d + 1_000.0;
        let at = all[(t * 10.0) as usize - 1];
        assert!((at - w).abs() < 0.01 * w, "{t}: {at} {w}");
    }
    assert!(all.windows(2).all(|w| w[1] >= w[0]));
}

#[test]
fn cube_roots() {
    for x in [1e-12, 0.001, 0.5, 1.0, 27.0, 750.0, 1e12] {
        let r = cube_root(x);
        assert!((r * r * r / x - 1.0).abs() < 1e-14, "{x}: {r}");
    }
    assert_eq!(cube_root(0.0), 0.0);
}

#[test]
fn where_reno_has_more_it_has_that() {
    let (mut s, mut c) = (scene(20, 10), policy());
    assert_eq!(lose(&mut s, &mut c, LossKind::FastRetransmit).cwnd, 14 * MTU);
    s.paths[0].ssthresh -= 1;
    let all = rounds(&mut s, &mut c, 10, 30);
    // 9/17 of a packet a round below the window of before, then a whole one.
    let slope = |w: Vec<f64>| (w[w.len() - 1] - w[0]) / (w.len() - 1) as f64;
    let below = slope(all.iter().copied().filter(|w| *w < 20.0).collect());
    let above = slope(all.iter().copied().filter(|w| *w > 21.0).collect());
    assert!((below - 9.0 / 17.0).abs() < 0.04, "{below}");
    assert!((above - 1.0).abs() < 0.06, "{above}");
}

/// RFC 9438 §5.1: the mean window is `((C (3 + β)) / (4 (1 - β)))^(1/4) · (rtt / p)^(3/4)` where every 1/p-th packet is
/// lost, as long as that is more than Reno's.
#[test]
fn the_response_function() {
    for (rtt, p) in [(100u64, 1e-4f64), (200, 1e-4), (200, 4e-4)] {
        let (mut s, mut c) = (scene(100, rtt), policy());
        let (mut acked, mut sum, mut count) = (0u64, 0.0, 0u64);
        for round in 0..16_000 {
            let (began, n) = (s.now, s.paths[0].cwnd / MTU);
            for i in 0..n {
                s.now = began + ms(rtt) * (i + 1) / n;
                ack(&mut s, &mut c, true);
                acked += 1;
                if acked as f64 * p >= 1.0 {
                    acked = 0;
                    lose(&mut s, &mut c, LossKind::FastRetransmit);
                    s.paths[0].ssthresh -= 1;
                    break;
                }
            }
            if round > 4_000 {
                (sum, count) = (sum + s.paths[0].cwnd as f64 / MTU as f64, count + 1);
            }
        }
        let (root, x) = (f64::sqrt, rtt as f64 / 1e3 / p);
        let expected = root(root(0.4 * 3.7 / 1.2)) * root(x) * root(root(x));
        let mean = sum / count as f64;
        assert!((mean / expected - 1.0).abs() < 0.06, "rtt {rtt}, loss {p}: {mean} {expected}");
    }
}

#[test]
fn fast_convergence_gives_way() {
    for (spec, left) in [(true, 80.0 * 1.7 / 2.0), (false, 80.0)] {
        let mut c = Cubic { fast_convergence: spec, ..policy() };
        let mut s = scene(100, 100);
        lose(&mut s, &mut c, LossKind::FastRetransmit);
        s.paths[0].cwnd = 80 * MTU;
        lose(&mut s, &mut c, LossKind::FastRetransmit);
        assert_eq!(c.w_max, left);
    }
    let (mut s, mut c) = (scene(2, 100), policy());
    assert_eq!(lose(&mut s, &mut c, LossKind::FastRetransmit).cwnd, 2 * MTU, "no less than two packets");
}

#[test]
fn radio_and_losses_within_an_episode_change_nothing() {
    let (s, mut c) = (scene(100, 100), policy());
    for (e, cause) in [(loss(0), Cause::Radio), (LossEvent { new_episode: false, ..loss(0) }, Cause::Congestion)] {
        assert_eq!(c.on_loss(&s.cx(), PathId(0), &e, cause).cwnd, 100 * MTU);
        assert_eq!(c.w_max, 0.0);
    }
}

#[test]
fn after_a_timeout_growth_begins_where_slow_start_ends() {
    let (mut s, mut c) = (scene(300, 100), policy());
    let to = lose(&mut s, &mut c, LossKind::Timeout);
    assert_eq!((to.cwnd, to.ssthresh), (MTU, 210 * MTU));
    s.paths[0].cwnd = 211 * MTU;
    assert!(ack(&mut s, &mut c, true) > 211.0);
    let stage = c.stage.unwrap();
    assert_eq!((stage.k, stage.w_max, c.prior), (0.0, 211.0, 300.0));
}

#[test]
fn a_window_that_is_no_limit_stands() {
    let (mut s, mut c) = (scene(1_000, 100), policy());
    lose(&mut s, &mut c, LossKind::FastRetransmit);
    s.paths[0].ssthresh -= 1;
    let before = rounds(&mut s, &mut c, 100, 10)[9];
    let stage = c.stage.unwrap();
    for _ in 0..600 {
        s.now += ms(100);
        assert_eq!(ack(&mut s, &mut c, false), before);
    }
    assert_eq!(c.stage.unwrap().elapsed, stage.elapsed);
    assert!(ack(&mut s, &mut c, true) - before < 1.0, "and goes on from there");
}

#[test]
fn never_more_than_half_a_window_for_a_window() {
    let (mut s, mut c) = (scene(10, 10), policy());
    ack(&mut s, &mut c, true);
    c.stage.as_mut().unwrap().elapsed = Duration::from_secs(60);
    let before = s.paths[0].cwnd as f64 / MTU as f64;
    assert!((ack(&mut s, &mut c, true) - before - 0.5).abs() < 1e-3);
}

#[test]
fn the_first_slow_start_ends_by_longer_round_trips() {
    let mut s = scene(100, 50);
    s.paths[0].ssthresh = u64::MAX;
    let mut c = policy();
    let (mut seq, mut grown) = (0, Vec::new());
    for round in 0..9u64 {
        // 50 ms for two rounds, then 60.
        let rtt = ms(if round < 2 { 50 } else { 60 });
        for _ in 0..10 {
            seq += 1;
            c.on_sent(s.now, seq + 9, &s.paths[0]);
            let a = AckOnPath {
                bytes: MTU,
                fully_used: true,
                rtt: Some(rtt),
                newest_seq: Some(seq),
                ..AckOnPath::default()
            };
            let change = c.on_ack(&s.cx(), PathId(0), &a);
            grown.push((change.grow, change.ssthresh));
        }
    }
    let full = grown.iter().filter(|g| **g == (MTU, u64::MAX)).count();
    let quarter = grown.iter().filter(|g| **g == (MTU / 4, u64::MAX)).count();
    assert!((20..40).contains(&full) && (30..60).contains(&quarter), "{full} {quarter}");
    assert_eq!(grown.last().unwrap().1, 100 * MTU - 1, "over");
}
