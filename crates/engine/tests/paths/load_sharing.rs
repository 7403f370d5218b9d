//! Load sharing: what each path is judged, credited and timed by (draft-tuexen-tsvwg-sctp-multipath §3, §5).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::{Instant, PathId};
use anabranch_engine::{AssocConfig, TimerReason};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_wire::{CountedSack, GapBlock, SackOut, kind};

fn cmt(choices: &[(Hook, &str)]) -> AssocConfig {
    let mut c = changed(assoc_config("cmt"), |c| c.sending.max_burst = 0);
    c.profile.set(Hook::PathState, "rfc9260").expect("registered");
    choices.iter().for_each(|(hook, spec)| c.profile.set(*hook, spec).expect("registered"));
    c
}

fn two(config: &AssocConfig) -> Manual {
    Manual::new(config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))])
}

/// Hands over `n` full messages; offsets of what left on each path.
fn sent_by_path(m: &mut Manual, n: usize) -> [Vec<u32>; 2] {
    m.send(n, FULL);
    let seen = m.packets();
    [0, 1].map(|path| {
        let on: Vec<Seen> = seen.iter().filter(|p| p.path == path).cloned().collect();
        m.offsets(&on)
    })
}

/// Gap blocks of these offsets above the cumulative `next`.
fn gaps(next: u32, offsets: &[u32]) -> Vec<(u16, u16)> {
    let mut list: Vec<u32> = offsets.to_vec();
    list.sort_unstable();
    let mut out: Vec<(u16, u16)> = vec![];
    for o in list {
        let o = (o - next) as u16;
        match out.last_mut() {
            Some(last) if last.1 + 1 == o => last.1 = o,
            _ => out.push((o, o)),
        }
    }
    out
}

/// Split fast retransmit: only what was sent later on the same path says that something is missing, and only when it is
/// news.
///
/// Shows: ext/L1, ext/L2.
#[test]
fn a_path_is_judged_by_its_own_acknowledgements() {
    let mut m = two(&changed(cmt(&[]), |c| c.sending.initial_window = Some(9_000)));
    let [first, second] = sent_by_path(&mut m, 16);
    assert!(first.len() > 5 && second.len() > 5 && first[0] == 0, "{first:?} {second:?}");
    for n in 1..=second.len() {
        m.sack(0, &gaps(0, &second[..n]));
        assert_eq!(m.sent(), [], "the other path is only slower");
    }
    let heard = |n: usize| gaps(0, &[&second[..], &first[1..=n]].concat());
    for n in [1, 2] {
        m.sack(0, &heard(n));
        m.sack(0, &heard(n));
        m.sack(0, &heard(n));
        assert_eq!(m.sent(), [], "the same again is no further report");
    }
    m.sack(0, &heard(3));
    assert_eq!(m.sent(), [0], "the third that passed it");
    assert_eq!((m.path(0).counters.lost_by_report > 0, m.path(1).counters.lost_by_report), (true, 0));
}

/// Shows: ext/L3, ext/L4.
#[test]
fn a_window_grows_when_the_earliest_of_its_own_path_is_acknowledged() {
    let mut first = vec![];
    // The earliest of path 1: slow start by what is newly acknowledged, although the cumulative TSN of the association
    // stands. A later one: none.
    for (at, grown) in [(0, FULL as u64), (1, 0)] {
        let mut m = two(&cmt(&[]));
        let by_path = sent_by_path(&mut m, 20);
        assert!(by_path[0][0] == 0 && by_path[1].len() >= 3, "{by_path:?}");
        let before = (m.path(0).cwnd, m.path(1).cwnd);
        m.sack(0, &gaps(0, &by_path[1][at..=at]));
        assert_eq!((m.path(0).cwnd, m.path(1).cwnd), (before.0, before.1 + grown));
        first = by_path[0].clone();
    }
    // Likewise where the earliest has been sent again, after its timer: then it is what the path waits for.
    let mut m = two(&cmt(&[]));
    let [first_again, _] = sent_by_path(&mut m, 20);
    assert_eq!(first_again, first);
    let later = m.during(ms(1_500));
    let repeated: Vec<&Seen> = later.iter().filter(|p| m.offsets(core::slice::from_ref(p)).contains(&0)).collect();
    let path = repeated.first().expect("sent again").path;
    assert!(m.path(path).in_flight >= m.path(path).cwnd, "its window is full");
    let before = m.path(path).cwnd;
    m.sack(1, &[]);
    assert!(m.path(path).cwnd > before, "{} after {before}", m.path(path).cwnd);
}

/// A SACK that counts the packets it answers.
fn counted(m: &mut Manual, next: u32, gaps: &[(u16, u16)], packets: u8) {
    let gaps: Vec<_> = gaps.iter().map(|&(a, b)| GapBlock { start: a + 1, end: b + 1 }).collect();
    let cum_tsn = m.client_first.plus(next).minus(1);
    let sack = SackOut { cum_tsn, a_rwnd: ROOM, gaps: &gaps, duplicates: &[] };
    let sack = encoded(&CountedSack { sack, packets });
    m.receive(0, &[&sack]);
}

/// Shows: ext/L7.
#[test]
fn a_delayed_sack_is_as_many_reports_as_it_answers_packets_where_that_is_certain() {
    let dac = changed(cmt(&[(Hook::LossCount, "delayed_ack_cmt")]), |c| c.sending.initial_window = Some(9_000));
    // All newly acknowledged is of one path and above the hole: as many as counted.
    let mut m = two(&dac);
    let [first, second] = sent_by_path(&mut m, 16);
    counted(&mut m, 0, &gaps(0, &first[1..3]), 2);
    assert_eq!(m.sent(), []);
    counted(&mut m, 0, &gaps(0, &first[1..4]), 1);
    assert_eq!(m.sent(), [first[0]], "two and one are three");
    // Of both paths: one report, whatever it answers.
    let mut m = two(&dac);
    sent_by_path(&mut m, 16);
    for n in 1..=3 {
        assert_eq!(m.sent(), []);
        counted(&mut m, 0, &gaps(0, &[&first[1..=n], &second[..n]].concat()), 2);
    }
    assert_eq!(m.sent(), [first[0]]);
    // The hole lies between what is newly acknowledged: one report.
    let mut m = two(&dac);
    sent_by_path(&mut m, 16);
    counted(&mut m, 1, &gaps(1, &[first[2], first[3]]), 3);
    assert_eq!(m.sent(), [], "first[0] left before the hole, so the count is no proof");
    counted(&mut m, 1, &gaps(1, &first[2..6]), 2);
    assert_eq!(m.sent(), [first[1]], "one and two");
}

/// Shows: ext/L11.
#[test]
fn a_path_with_a_timeout_carries_nothing_while_others_work() {
    let mut config = cmt(&[(Hook::PathState, "potentially_failed")]);
    config.sending.max_burst = 4;
    let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(5), ms(1_000));
    b.cut(0);
    while b.path(Side::Client, 0).counters.timeouts == 0 {
        flow.stream(&mut b, ms(5), ms(5));
    }
    assert_eq!(b.path(Side::Client, 0).state, PathState::PotentiallyFailed);
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(5), ms(3_000));
    let on: Vec<usize> = b.tapped(Side::Client, kind::DATA).iter().map(|t| t.2).collect();
    assert!(on.len() > 200 && on.iter().all(|p| *p == 1));
    b.restore(0);
    b.run_for(ms(5_000));
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(5), ms(1_000));
    assert!(b.tapped(Side::Client, kind::DATA).iter().any(|t| t.2 == 0), "it answers again");
}

/// Payload bytes by which the windows of two equal paths grew over `rounds` of avoidance.
fn growth(coupling: &str) -> u64 {
    let avoiding = changed(cmt(&[(Hook::Coupling, coupling)]), |c| {
        c.sending.initial_window = Some(20_000);
        c.sending.initial_ssthresh = 10_000;
    });
    let mut b = Bench::connected(5, &avoiding, &[(link(100, 20), link(100, 20)), (link(100, 20), link(100, 20))]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 3_000, ms(60_000)).expect("arrives");
    [0, 1].map(|p| b.path(Side::Client, p).cwnd - 20_000).iter().sum()
}

/// Windows that grow as one: together no faster than one flow's.
///
/// Shows: ext/L15.
#[test]
fn coupled_windows_share_the_growth_of_one() {
    let (alone, coupled) = (growth("uncoupled"), growth("lia"));
    assert!(coupled > 0 && coupled * 3 / 2 < alone, "{coupled} of {alone}");
}

/// Shows: ext/L16.
#[test]
fn repairs_take_the_path_with_the_largest_window_or_threshold_and_each_path_recovers_alone() {
    for (policy, larger) in [("rtx_cwnd", 1), ("rtx_ssthresh", 1), ("rtx_same", 0)] {
        let mut m = two(&changed(cmt(&[(Hook::Retransmission, policy)]), |c| c.sending.initial_window = Some(16_000)));
        let [first, second] = sent_by_path(&mut m, 24);
        // Path 1 is acknowledged as a whole and grows; of path 0 the first is lost.
        m.sack(0, &gaps(0, &second));
        let mut again = vec![];
        for n in 1..=3 {
            m.packets();
            m.sack(0, &gaps(0, &[&second[..], &first[1..=n]].concat()));
            again.extend(m.packets());
        }
        let repair = again.iter().find(|p| p.data.iter().any(|d| d.tsn == m.client_first)).expect("sent again");
        assert_eq!(repair.path, larger, "{policy}");
        assert_eq!((m.path(0).counters.recoveries, m.path(1).counters.recoveries), (1, 0), "{policy}");
        assert!(m.path(0).cwnd < 16_000 && m.path(1).cwnd >= 16_000, "only the window of the lossy path is cut");
    }
}

fn t3(m: &Manual, path: u8) -> Option<Instant> {
    let of = |(at, why): &(Instant, TimerReason)| (*why == TimerReason::Retransmission(PathId(path))).then_some(*at);
    m.b.client.association(m.b.client_id)?.timers().iter().find_map(of)
}

/// Shows: ext/L17.
#[test]
fn round_trips_windows_and_timers_belong_to_one_path() {
    let mut m = Manual::new(&cmt(&[]), &[(link(10, 20), link(10, 20)), (link(10, 50), link(10, 50))]);
    let (near, far) = (m.path(0).srtt, m.path(1).srtt);
    assert!(near < ms(50) && far > ms(100), "{near} {far}");
    let [first, second] = sent_by_path(&mut m, 8);
    let began = (t3(&m, 0).expect("runs"), t3(&m, 1).expect("runs"));
    m.b.run_for(ms(150));
    // The earliest of path 1, and with it nothing of path 0.
    m.sack(0, &gaps(0, &second[..1]));
    assert_eq!(t3(&m, 0), Some(began.0), "path 0 waits on");
    assert_eq!(t3(&m, 1).expect("runs").since(began.1), ms(150), "and path 1 from now");
    assert_eq!(m.path(0).srtt, near, "its sample is not the other's");
    assert!(m.path(1).srtt > far);
    // Not the earliest: nothing restarts.
    let before = t3(&m, 1);
    m.b.run_for(ms(10));
    m.sack(0, &gaps(0, &[second[0], second[2]]));
    assert_eq!(t3(&m, 1), before);
    let windows = (m.path(0).cwnd, m.path(1).cwnd);
    m.sack(1, &gaps(1, &[second[0], second[2]]));
    assert_eq!(m.path(1).cwnd, windows.1, "{first:?}");
}

/// Two paths of which the second is far slower; small buffers.
fn unequal(choices: &[(Hook, &str)], send_buffer: usize, receive_buffer: usize) -> Bench {
    let c = changed(cmt(choices), |c| {
        c.limits.send_buffer = send_buffer;
        c.limits.receive_buffer = receive_buffer;
    });
    let mut b = Bench::connected(5, &c, &[(link(10, 10), link(10, 10)), (link(1, 100), link(1, 100))]);
    b.strict = true;
    b
}

/// The largest share of the send buffer that the slow path held while 2,000 messages were sent, in percent, and how long
/// that took.
fn held_by_the_slow(b: &mut Bench, buffer: usize) -> (u64, u64) {
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    let (began, mut most) = (b.now, 0);
    while flow.got < 2_000 {
        flow.send_to(b, 2_000);
        b.run_for(ms(2));
        flow.check(b);
        most = most.max(b.path(Side::Client, 1).in_flight);
        assert!(b.now.since(began) < ms(120_000));
    }
    (most * 100 / buffer as u64, b.now.since(began).as_millis())
}

/// Shows: ext/L12.
#[test]
fn a_slow_path_keeps_at_most_its_part_of_the_send_buffer() {
    const BUFFER: usize = 60_000;
    let run = |policy| held_by_the_slow(&mut unequal(&[(Hook::Buffer, policy)], BUFFER, 1 << 20), BUFFER);
    let (shared, split) = (run("shared"), run("sender_split"));
    assert!(shared.0 > 55 && split.0 <= 50, "{shared:?} {split:?}");
    assert!(split.1 < shared.1, "the fast path has its own part: {split:?} after {shared:?} ms");
}

/// Shows: ext/L13.
#[test]
fn a_slow_path_keeps_at_most_its_part_of_the_peers_buffer() {
    const BUFFER: usize = 60_000;
    for policy in ["receiver_split", "both_split"] {
        let run = |policy| held_by_the_slow(&mut unequal(&[(Hook::Buffer, policy)], 1 << 20, BUFFER), BUFFER);
        let (shared, split) = (run("shared"), run(policy));
        assert!(split.0 <= 50 && split.0 < shared.0, "{policy}: {shared:?} {split:?}");
    }
}

/// The chunk that holds up the peer's buffer moves to the other path, once; only that one is credited for it.
///
/// Shows: ext/L14.
#[test]
fn what_blocks_the_buffer_leaves_again_on_another_path() {
    let mut m = two(&cmt(&[(Hook::Redundancy, "chunk_rescheduling")]));
    let [first, second] = sent_by_path(&mut m, 8);
    assert!(first[0] == 0 && !second.is_empty());
    let before = (m.path(0), m.path(1));
    // The whole of path 1 arrived and fills the peer's buffer behind what is missing on path 0.
    m.sack_on(0, 0, 0, &gaps(0, &second));
    let moved = m.packets();
    let moved: Vec<(usize, Vec<u32>)> = moved.iter().map(|p| (p.path, m.offsets(core::slice::from_ref(p)))).collect();
    assert_eq!(moved, [(1, vec![0])], "the oldest, on the path with room");
    assert!(m.path(0).cwnd < before.0.cwnd || m.path(0).ssthresh < before.0.ssthresh, "the old path pays");
    assert_eq!(m.path(0).counters.recoveries, 1);
    let (windows, flights) = ((m.path(0).cwnd, m.path(1).cwnd), m.path(1).in_flight);
    assert_eq!(flights, FULL as u64);
    m.sack_on(0, 1, 0, &gaps(1, &second));
    assert_eq!(m.path(0).cwnd, windows.0, "no credit where it was given up");
    assert!(m.sent().iter().all(|o| *o != 0), "once");
}
