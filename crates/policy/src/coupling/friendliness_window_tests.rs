use super::*;
use crate::testing::{Scene, loss, ms};
use anabranch_base::{PathSet, Rate};

const MTU: u64 = 1_172;
const A: PathId = PathId(0);
const B: PathId = PathId(1);

fn policy(reward: Reward) -> FriendlinessWindow {
    let p = Params::defaults(&POLICY.info, 0);
    FriendlinessWindow { reward, ..FriendlinessWindow::new(&p) }
}

/// Windows of 40000 and 20000, with twice the rate on the first.
fn scene() -> Scene {
    let mut s = Scene::new(2, 0);
    for (p, cwnd) in s.paths.iter_mut().zip([40_000, 20_000]) {
        (p.cwnd, p.ssthresh, p.srtt) = (cwnd, 1, ms(100));
        p.signals.handling_rate = Rate::from_bytes_per_sec(cwnd * 10);
    }
    s
}

fn acked(f: &mut FriendlinessWindow, s: &Scene, bytes: u64) -> Ppm {
    f.scale(&s.cx(), &Growth { path: A, acked: bytes, grow: MTU, fully_used: true })
}

fn adjusted(f: &mut FriendlinessWindow, s: &mut Scene) -> Vec<(PathId, u64)> {
    let mut out = Vec::new();
    f.adjust(&s.cx(), &mut out);
    for a in &out {
        let p = &mut s.paths[a.path.index()];
        (p.cwnd, p.ssthresh) = (a.to.cwnd, a.to.ssthresh);
    }
    out.iter().map(|a| (a.path, a.to.cwnd)).collect()
}

#[test]
fn grows_as_one_flow() {
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    s.paths.iter_mut().for_each(|p| p.ssthresh = 9_980);
    assert_eq!(f.aggregate_window(), None);
    assert_eq!(acked(&mut f, &s, 5_000), Ppm::ONE, "slow start");
    assert_eq!(f.fwnd, 2 * 4_404 + MTU);
    assert_eq!(acked(&mut f, &s, 5_000), Ppm(500_000), "half of what each path would grow by");
    assert_eq!((f.fwnd, f.partial), (9_980, 5_000));
    acked(&mut f, &s, 5_000);
    assert_eq!((f.fwnd, f.partial), (9_980 + MTU, 20), "a packet for a window");
}

/// From what a policy is built as: no test sets the threshold by hand.
#[test]
fn it_begins_with_the_threshold_of_its_paths() {
    for thresholds in [[64_000, 64_000], [20_000, 12_000], [9_000, 30_000], [8_808, 5_000]] {
        let (mut s, mut f) = (scene(), policy(Reward::Off));
        for (p, ssthresh) in s.paths.iter_mut().zip(thresholds) {
            p.ssthresh = ssthresh;
        }
        let (most, mut granted) = (*thresholds.iter().max().unwrap(), Ppm::ONE);
        for _ in 0..200 {
            let before = f.fwnd.max(2 * 4_404);
            granted = acked(&mut f, &s, MTU);
            assert_eq!(granted == Ppm::ONE, before < most, "{thresholds:?}: {before}");
            // Losses that leave the window move the paths' thresholds, not its own.
            s.paths.iter_mut().for_each(|p| p.ssthresh = 1_000_000);
        }
        assert_eq!(granted, Ppm(500_000), "{thresholds:?}");
        // 200 packets are a few windows of them, each of which opens it by one.
        assert!(f.fwnd >= most && f.fwnd < most + 25 * MTU, "{thresholds:?}: {}", f.fwnd);
    }
    // Without a threshold of any path it has none either.
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    s.paths.iter_mut().for_each(|p| p.ssthresh = u64::MAX);
    (0..1_000).for_each(|_| assert_eq!(acked(&mut f, &s, MTU), Ppm::ONE));
    assert_eq!(f.fwnd, 2 * 4_404 + 1_000 * MTU);
}

#[test]
fn an_acknowledgement_that_opens_no_path_opens_it_by_no_packet() {
    for (threshold, partial) in [(64_000, 0), (1, 5_000)] {
        let (mut s, mut f) = (scene(), policy(Reward::Off));
        s.paths.iter_mut().for_each(|p| p.ssthresh = threshold);
        f.scale(&s.cx(), &Growth { path: A, acked: 5_000, grow: 0, fully_used: true });
        // Above the threshold the bytes of a full window add up whatever becomes of them.
        assert_eq!((f.fwnd, f.partial), (2 * 4_404, partial), "{threshold}");
    }
}

#[test]
fn what_was_late_is_no_loss() {
    let (s, mut f) = (scene(), policy(Reward::AtOnce));
    f.fwnd = 60_000;
    f.on_loss(&s.cx(), &loss(0), Cause::Reordering);
    assert_eq!((f.fwnd, f.paths[0].penalties, f.paths[0].events), (60_000, 0, 0));
    for (cause, fwnd) in [(Cause::Radio, 60_000), (Cause::Congestion, 30_000)] {
        f.on_loss(&s.cx(), &loss(0), cause);
        assert_eq!(f.fwnd, fwnd, "{cause:?}");
    }
    assert_eq!(f.paths[0].penalties, 2);
}

#[test]
fn what_grows_no_window_counts_for_nothing() {
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    f.scale(&s.cx(), &Growth { path: A, acked: 5_000, grow: 0, fully_used: false });
    s.paths[0].in_recovery = true;
    acked(&mut f, &s, 5_000);
    assert_eq!(f.fwnd, 2 * 4_404);
}

#[test]
fn losses() {
    let (s, mut f) = (scene(), policy(Reward::Off));
    f.fwnd = 60_000;
    f.on_loss(&s.cx(), &loss(0), Cause::Radio);
    assert_eq!((f.fwnd, f.paths[0].penalties), (60_000, 1), "a radio loss counts, and leaves the window");
    f.on_loss(&s.cx(), &LossEvent { new_episode: false, ..loss(0) }, Cause::Congestion);
    assert_eq!((f.fwnd, f.paths[0].penalties), (60_000, 1), "once an episode");
    f.on_loss(&s.cx(), &loss(0), Cause::Congestion);
    assert_eq!((f.fwnd, f.fthresh, f.paths[0].penalties), (30_000, 30_000, 2));
    f.on_loss(&s.cx(), &LossEvent { kind: LossKind::Timeout, ..loss(1) }, Cause::Congestion);
    assert_eq!((f.fwnd, f.fthresh, f.paths[1].penalties), (8_808, 15_000, 2));
    let mut board = Signals::default();
    f.publish(B, &mut board);
    assert_eq!((board.penalties, board.penalty_events, board.penalised_at), (2, 2, None));
}

#[test]
fn the_path_with_most_penalties_is_halved_until_the_sum_is_in_order() {
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    f.fwnd = 20_000;
    f.paths = vec![Record { penalties: 3, ..Record::default() }, Record { penalties: 2, ..Record::default() }];
    // 60000 against 30000: 40000 -> 20000 (2 penalties left, as the other path, which handles less): 20000 -> 10000.
    assert_eq!(adjusted(&mut f, &mut s), [(A, 20_000), (B, 10_000)]);
    assert_eq!(f.paths.iter().map(|r| r.penalties).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(f.counters[0].1, 2);
    let mut board = Signals::default();
    f.publish(A, &mut board);
    assert_eq!(board.penalised_at, Some(s.now));
    assert_eq!(adjusted(&mut f, &mut s), []);
}

#[test]
fn without_penalties_the_path_that_handled_least_is_halved_and_four_packets_stay() {
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    f.fwnd = 1;
    // The friendliness window is two initial ones, 8808, and the sum may be 13212; 20000 falls to 10000 and 5000, then
    // four packets, and so does the other.
    adjusted(&mut f, &mut s);
    assert_eq!([s.paths[0].cwnd, s.paths[1].cwnd], [5_000, 4 * MTU]);
    assert!(s.paths[0].cwnd + s.paths[1].cwnd <= (BETA * 8_808.0) as u64);
    // Not below what four packets each come to.
    s.paths.iter_mut().for_each(|p| p.cwnd = 4 * MTU);
    (s.paths[0].mtu, s.paths[1].mtu) = (9_000, 9_000);
    assert_eq!(adjusted(&mut f, &mut s), [], "the bound is what cannot fall");
}

#[test]
fn a_reward_raises_the_sum_to_the_window_by_rates() {
    let (mut s, mut f) = (scene(), policy(Reward::AtOnce));
    f.fwnd = 180_000;
    // 120000 are missing, two thirds for the first path.
    assert_eq!(adjusted(&mut f, &mut s), [(A, 120_000), (B, 60_000)]);
    assert_eq!(adjusted(&mut f, &mut s), []);
    let (mut s, mut f) = (scene(), policy(Reward::AtOnce));
    f.fwnd = 180_000;
    s.paths.iter_mut().for_each(|p| p.signals.handling_rate = Rate::ZERO);
    assert_eq!(adjusted(&mut f, &mut s), [(A, 100_000), (B, 80_000)], "equal parts without rates");
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    f.fwnd = 180_000;
    assert_eq!(adjusted(&mut f, &mut s), []);
}

#[test]
fn a_paced_reward_takes_a_round_trip_and_four_packets_an_event() {
    let (mut s, mut f) = (scene(), policy(Reward::Paced));
    f.fwnd = 180_000;
    assert_eq!(adjusted(&mut f, &mut s), [], "no time has passed");
    s.now += ms(1);
    assert_eq!(adjusted(&mut f, &mut s), [(A, 40_800), (B, 20_400)], "a hundredth of the reward");
    for _ in 0..60 {
        s.now += ms(10);
        adjusted(&mut f, &mut s);
        assert!(s.paths[0].cwnd + s.paths[1].cwnd <= 180_000);
    }
    assert_eq!([s.paths[0].cwnd, s.paths[1].cwnd], [120_000, 60_000]);
    let before = s.paths[0].cwnd;
    f.fwnd = 900_000;
    adjusted(&mut f, &mut s);
    s.now += ms(90);
    adjusted(&mut f, &mut s);
    assert_eq!(s.paths[0].cwnd - before, 4 * MTU);
    // A loss ends it.
    f.on_loss(&s.cx(), &loss(0), Cause::Radio);
    assert!(f.paths[0].lift.is_none());
}

#[test]
fn a_path_alone_after_a_timeout_waits_for_an_acknowledgement() {
    let mut s = scene();
    s.paths.truncate(1);
    let mut f = policy(Reward::AtOnce);
    f.fwnd = 90_000;
    f.on_loss(&s.cx(), &LossEvent { kind: LossKind::Timeout, ..loss(0) }, Cause::Congestion);
    (f.fwnd, s.paths[0].cwnd) = (90_000, MTU);
    assert_eq!(adjusted(&mut f, &mut s), []);
    f.scale(&s.cx(), &Growth { path: A, acked: MTU, grow: MTU, fully_used: false });
    assert_eq!(adjusted(&mut f, &mut s), [(A, 90_000)]);
}

#[test]
fn a_path_that_comes_back_begins_anew() {
    let (mut s, mut f) = (scene(), policy(Reward::Off));
    f.fwnd = 60_000;
    assert_eq!(adjusted(&mut f, &mut s), []);
    s.aside = PathSet::only(B);
    assert_eq!(adjusted(&mut f, &mut s), []);
    assert_eq!(acked(&mut f, &s, 1), Ppm::ONE, "one path is left");
    s.aside = PathSet::EMPTY;
    assert_eq!(adjusted(&mut f, &mut s), [(B, 4_404)]);
    assert_eq!(adjusted(&mut f, &mut s), []);
}
