//! The switches of how two paths recover together, each beside what happens without it. New data take the primary path
//! only, and what is sent again takes the other one.

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::{Instant, PathId};
use anabranch_engine::{AssocConfig, HeartbeatSetting, LocalId, TimerReason};
use anabranch_policy::registry::Hook;
use anabranch_wire::{Packet, Verify, kind};

/// Packets in the window of each path at first.
const WINDOW: u32 = 20;

fn config(others: &[&str], quirk: &str, on: bool) -> AssocConfig {
    let initial_window = Some(u64::from(WINDOW) * FULL as u64);
    let mut c = AssocConfig { max_burst: 0, initial_window, ..assoc_config("sctp") };
    c.profile.set(Hook::Retransmission, "rfc9260:reports_move=1").expect("registered");
    for (quirk, on) in others.iter().map(|q| (*q, true)).chain([(quirk, on)]) {
        choose(&mut c, quirk, on);
    }
    c
}

fn two(others: &[&str], quirk: &str, on: bool) -> Manual {
    Manual::new(&config(others, quirk, on), &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))])
}

/// What leaves now: offsets on each path.
fn split(m: &mut Manual) -> [Vec<u32>; 2] {
    let seen = m.packets();
    [0, 1].map(|path| m.offsets(&seen.iter().filter(|p| p.path == path).cloned().collect::<Vec<_>>()))
}

/// New data, on `path`, which is the primary one from now on.
fn fill(m: &mut Manual, path: u8, n: usize) {
    assert!(m.b.assoc(Side::Client).set_primary(PathId(path)));
    m.send(n, FULL);
    let sent = split(m);
    assert_eq!(sent.map(|s| s.len()), if path == 0 { [n, 0] } else { [0, n] });
}

/// Twenty packets on each path: offsets 0 to 19 and 20 to 39.
fn both_full(m: &mut Manual) {
    fill(m, 0, WINDOW as usize);
    fill(m, 1, WINDOW as usize);
}

/// When T3 of a path fires.
fn t3(m: &Manual, path: u8) -> Option<Instant> {
    let timers = m.b.client.association(m.b.client_id).expect("alive").timers();
    timers.iter().find(|(_, why)| *why == TimerReason::Retransmission(PathId(path))).map(|(at, _)| *at)
}

#[test]
fn a_recovery_is_one_of_all_paths() {
    for on in [false, true] {
        let mut m = two(&["recovery=ns2_sctp"], "one_recovery", on);
        both_full(&mut m);
        (1..=3).for_each(|i| m.sack(0, &[(1, i)]));
        assert_eq!(split(&mut m), [vec![], vec![0]]);
        assert_eq!([0, 1].map(|p| m.path(p).counters.recoveries), [1, 0], "path 0 lost");
        let before = m.path(1).cwnd;
        m.sack(4, &[]);
        assert_eq!(m.path(1).cwnd > before, !on, "the full window of path 1, by the repair that it carried");
        (1..=3).for_each(|i| m.sack(20, &[(1, i)]));
        assert_eq!(split(&mut m), [vec![20], vec![]], "path 1 lost what left before the recovery");
        assert_eq!(m.path(1).counters.recoveries, u64::from(!on));
        m.sack(40, &[]);
        m.send(40, FULL);
        m.sent();
        let before = m.path(1).cwnd;
        m.sack(41, &[]);
        assert!(!on || m.path(1).cwnd > before, "everything of then is acknowledged");
        (1..=3).for_each(|i| m.sack(41, &[(1, i)]));
        assert_eq!(m.path(1).counters.recoveries, 1 + u64::from(!on), "and this has a higher TSN");
    }
}

#[test]
fn in_a_recovery_of_one_path_a_hole_that_is_filled_reports_those_of_the_other() {
    for on in [false, true] {
        let mut m = two(&["recovery=ns2_sctp"], "one_recovery", on);
        both_full(&mut m);
        m.sack(0, &[(1, 1)]);
        (21..=22).for_each(|i| m.sack(0, &[(1, 19), (21, i)]));
        assert_eq!(split(&mut m), [vec![], vec![0]], "two reports of 20");
        m.sack(20, &[(1, 2)]);
        assert_eq!(split(&mut m)[0], if on { vec![20] } else { vec![] }, "and a third one");
    }
}

#[test]
fn what_timed_out_and_waits_is_reported_too() {
    for on in [false, true] {
        let mut m = two(&["recovery=ns2_sctp"], "one_recovery", on);
        fill(&mut m, 0, 20);
        m.b.run_for(ms(500));
        fill(&mut m, 1, 20);
        m.b.run_for(ms(550));
        assert_eq!(split(&mut m), [vec![], vec![0]], "path 1 is full, the others wait");
        m.sack(1, &[(19, 19)]);
        assert!(split(&mut m)[1].starts_with(&[1]), "these are in flight and will be reported twice");
        m.sack(1, &[(19, 20)]);
        m.sent();
        assert_eq!([0, 1].map(|p| m.path(p).counters.recoveries), [1, 0], "the timeout");
        m.sack(1, &[(19, 21)]);
        let by_reports = u64::from(on);
        assert_eq!([0, 1].map(|p| m.path(p).counters.recoveries), [1 + by_reports, 0], "three reports, a loss");
    }
}

#[test]
fn one_packet_of_repairs_for_each_loss() {
    for on in [false, true] {
        let mut m = two(&[], "one_repair_per_loss", on);
        m.send(60, FULL);
        assert_eq!(m.sent().len(), 20);
        (3..=4).for_each(|i| m.sack(0, &[(3, i)]));
        m.sent();
        m.sack(0, &[(3, 15)]);
        let [new, again] = split(&mut m);
        assert_eq!(again, if on { vec![0] } else { vec![0, 1, 2] });
        assert!(!new.is_empty(), "new data are free");
        m.sack(0, &[(3, 15)]);
        assert_eq!(split(&mut m)[1], if on { vec![1, 2] } else { vec![] }, "another SACK");
    }
}

#[test]
fn one_packet_of_repairs_and_no_new_data_for_each_timeout() {
    for on in [false, true] {
        let mut m = two(&[], "one_repair_per_loss", on);
        m.send(60, FULL);
        assert_eq!(m.sent().len(), 20);
        m.b.run_for(ms(1_050));
        let sent = split(&mut m);
        let all: Vec<u32> = (0..20).collect();
        assert_eq!(sent, if on { [vec![], vec![0]] } else { [vec![20], all.clone()] });
        // Says nothing new.
        m.sack(0, &[]);
        let sent = split(&mut m);
        assert_eq!(sent[0], if on { vec![20] } else { vec![] });
        // Path 1 times out too. One packet of path 0 is in flight, all that it may have after a timeout.
        m.b.run_for(ms(1_000));
        assert_eq!([0, 1].map(|p| m.path(p).counters.timeouts), [1, 1]);
        assert_eq!(split(&mut m)[0], if on { vec![0] } else { vec![] }, "whatever the window says");
    }
}

#[test]
fn a_repair_whose_path_went_leaves_again() {
    let mut m = two(&[], "one_repair_per_loss", true);
    m.send(60, FULL);
    assert_eq!(m.sent().len(), 20);
    m.b.run_for(ms(1_050));
    assert_eq!(split(&mut m), [vec![], vec![0]], "the one repair");
    let now = m.b.now;
    m.b.assoc(Side::Client).interface_down(now, LocalId(1));
    m.b.run_for(ms(50));
    assert_eq!(split(&mut m), [vec![0], vec![]], "no SACK will come of it");
}

#[test]
fn all_repairs_that_leave_at_once_take_one_path() {
    for on in [false, true] {
        let mut m = two(&[], "repairs_together", on);
        both_full(&mut m);
        [21, 22, 35].into_iter().for_each(|i| m.sack(0, &[(1, 19), (21, i)]));
        let sent = split(&mut m);
        assert_eq!(sent, if on { [vec![], vec![0, 20]] } else { [vec![20], vec![0]] }, "each path lost one");
        (37..=39).for_each(|i| m.sack(0, &[(1, 19), (21, 35), (37, i)]));
        assert_eq!(split(&mut m), [vec![36], vec![]], "later, another one of path 1");
    }
}

/// The first two chunks of path 0 are lost and everything else of it is acknowledged. Path 1 is full: one is sent again,
/// one waits.
fn one_waits(m: &mut Manual) {
    both_full(m);
    [2, 3, 19].into_iter().for_each(|i| m.sack(0, &[(2, i)]));
    assert_eq!(split(m), [vec![], vec![0]]);
    assert_eq!(m.path(0).in_flight, 0);
}

#[test]
fn what_waits_to_be_sent_again_keeps_t3_going() {
    for others in [&[][..], &["t3_by_tsn"]] {
        for on in [false, true] {
            let mut m = two(others, "marked_are_outstanding", on);
            one_waits(&mut m);
            assert_eq!(t3(&m, 0).is_some(), on, "{others:?}");
            m.sack(0, &[(2, 29)]);
            assert_eq!(split(&mut m), [vec![], vec![1]]);
            m.sack(0, &[(2, 30)]);
            assert_eq!(t3(&m, 0), None, "it was sent again: {on} {others:?}");
        }
    }
}

#[test]
fn the_path_that_lost_its_earliest_chunk_to_another_starts_t3_anew() {
    for on in [false, true] {
        let mut m = two(&["t3_by_tsn"], "marked_are_outstanding", on);
        fill(&mut m, 0, 10);
        let before = t3(&m, 0).expect("ten are in flight");
        m.b.run_for(ms(300));
        (1..=3).for_each(|i| m.sack(0, &[(1, i)]));
        assert_eq!(split(&mut m), [vec![], vec![0]]);
        let later = if on { ms(300) } else { ms(0) };
        assert_eq!(t3(&m, 0), Some(before + later));
    }
}

#[test]
fn what_waits_to_be_sent_again_fills_the_window() {
    for on in [false, true] {
        let mut m = two(&[], "marked_are_outstanding", on);
        one_waits(&mut m);
        let fit = m.path(0).cwnd as usize / FULL;
        fill(&mut m, 0, fit);
        let before = m.path(0);
        assert!((before.cwnd - FULL as u64..before.cwnd).contains(&before.in_flight), "{before:?}");
        m.sack(0, &[(2, 19), (40, 40)]);
        assert_eq!(m.path(0).cwnd > before.cwnd, on);
    }
}

#[test]
fn what_is_acknowledged_again_cumulatively_restarts_t3() {
    for on in [false, true] {
        let mut m = two(&["t3_by_tsn"], "cumulative_restarts_t3", on);
        fill(&mut m, 0, 10);
        [1, 2, 4].into_iter().for_each(|i| m.sack(0, &[(1, i)]));
        assert_eq!(split(&mut m), [vec![], vec![0]]);
        m.sack(0, &[(1, 4)]);
        let before = t3(&m, 0).expect("five are in flight");
        m.b.run_for(ms(300));
        m.sack(5, &[]);
        let later = if on { ms(300) } else { ms(0) };
        assert_eq!(t3(&m, 0), Some(before + later), "nothing that was in flight on path 0");
        assert_eq!(t3(&m, 1), None);
    }
}

#[test]
fn a_sack_that_was_overtaken_reports_what_it_does_not_know_of() {
    for on in [false, true] {
        let mut m = two(&["stale_sacks_count"], "sticky_reports", on);
        fill(&mut m, 0, 10);
        m.sack(0, &[(1, 3)]);
        m.sack(0, &[(1, 1)]);
        m.sack(0, &[(1, 1)]);
        assert_eq!(split(&mut m)[1], if on { vec![0] } else { vec![] }, "three SACKs");
        m.sack(0, &[(1, 1)]);
        assert_eq!(split(&mut m)[1], if on { vec![2] } else { vec![] }, "three that do not know of chunk 2");
        m.sack(0, &[(1, 1)]);
        assert_eq!(split(&mut m), [vec![], vec![]], "and nothing beyond the highest that was acknowledged");
    }
}

#[test]
fn the_limit_of_bursts_is_one_of_all_paths() {
    for (rule, sent) in [("ns2_cmt", [4, 4]), ("ns2_sctp", [0, 4])] {
        let mut c = config(&[], "one_recovery", false);
        c.max_burst = 4;
        c.profile.set(Hook::Recovery, rule).expect("registered");
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
        m.send(60, FULL);
        assert_eq!(m.sent().len(), 20, "no repair yet");
        m.sack(0, &[(1, 9)]);
        m.sack(0, &[(1, 9), (15, 15)]);
        m.sack(0, &[(1, 9), (15, 16)]);
        assert!(split(&mut m)[1].starts_with(&[0]));
        // Acknowledges the repair and gives five more as lost.
        m.sack(10, &[(5, 9)]);
        assert_eq!(split(&mut m).map(|s| s.len()), sent, "{rule}");
    }
}

#[test]
fn a_heartbeat_waits_as_long_as_t3() {
    for on in [false, true] {
        let c = config(&[], "heartbeat_by_t3", on);
        let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
        // The server asks: the client would have its address learnt anew after two errors.
        let ask = |b: &mut Bench| {
            let now = b.now;
            assert!(b.assoc(Side::Server).request_heartbeat(now, PathId(1)));
        };
        // From here on the other path had no RTT for longer.
        ask(&mut b);
        b.run_for(ms(1_000));
        let began = b.now;
        b.tap = Some(vec![]);
        b.cut(1);
        ask(&mut b);
        b.run_for(ms(6_000));
        assert_eq!(b.path(Side::Server, 1).rto, ms(if on { 4_000 } else { 1_000 }));
        b.restore(1);
        b.run_for(ms(70_000));
        let sent = b.tapped(Side::Server, kind::HEARTBEAT).into_iter().filter(|t| t.2 == 1);
        let sent: Vec<u64> = sent.map(|t| t.0.since(began).as_millis()).collect();
        let pauses: Vec<u64> = sent.windows(2).map(|w| w[1] - w[0]).collect();
        if on {
            assert_eq!(sent[..4], [0, 1_000, 3_000, 7_000], "each at once after the one before");
            assert!((34_000..=42_000).contains(&pauses[3]), "eight seconds more than HB.interval, jitter: {sent:?}");
        } else {
            assert!(sent.len() >= 3 && pauses.iter().all(|p| (29_000..=32_000).contains(p)), "{sent:?}");
        }
        assert_eq!(b.path(Side::Server, 1).rto, ms(1_000), "answered");
    }
}

#[test]
fn only_the_path_that_had_no_rtt_the_longest_is_asked() {
    for on in [false, true] {
        let c = config(&[], "heartbeat_by_t3", on);
        let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
        let now = b.now;
        assert!(b.assoc(Side::Client).set_heartbeat(now, PathId(0), HeartbeatSetting::Every(ms(100_000))));
        b.tap = Some(vec![]);
        b.run_for(ms(400_000));
        let asked = b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count();
        assert!(if on { (2..=5).contains(&asked) } else { asked >= 11 }, "{on}: {asked}");
    }
}

#[test]
fn what_came_before_remains_the_first_of_two() {
    for on in [false, true] {
        let mut c = assoc_config("sctp");
        choose(&mut c, "repeats_wait_too", on);
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        let mut sacks = |numbers: &[u32]| {
            numbers.iter().for_each(|i| m.message(*i, 100));
            m.b.run_for(ms(100));
            let tap = m.b.tap.replace(vec![]).expect("tapped");
            let of = |bytes: &bytes::Bytes| {
                let p = Packet::parse(bytes, Verify::Checksum).expect("a packet");
                p.chunks().flatten().filter(|c| c.kind == kind::SACK).count()
            };
            tap.iter().map(|t| of(&t.3)).sum::<usize>()
        };
        assert_eq!((sacks(&[0]), sacks(&[1, 2])), (1, 1), "the first of all, then each second");
        assert_eq!(sacks(&[2]), 1, "a repetition at once");
        assert_eq!(sacks(&[3]), usize::from(on), "the second, or the first of the next two");
    }
}
