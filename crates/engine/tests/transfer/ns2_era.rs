//! Rules of older implementations, each beside what happens without it.

use crate::common::manual::*;
use crate::common::*;
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::{Hook, Profile};
use anabranch_wire::kind;

#[test]
fn limits_come_with_their_profile_and_with_no_other() {
    for name in Profile::names() {
        let c = AssocConfig::new(Profile::named(name).expect("a profile"));
        let s = &c.sending;
        let limits = (s.initial_window, s.initial_ssthresh, c.mtu.packet_size, c.limits.peer_chunk_overhead);
        let era = name.starts_with("ns2-era");
        assert_eq!(limits == (Some(4_332), 64_821, 1_480, 16), era, "{name}");
        assert_eq!(s.initial_window.is_some(), era, "{name}");
    }
}

fn config(rule: &str, on: bool) -> AssocConfig {
    let mut c = changed(assoc_config("sctp"), |c| c.sending.max_burst = 0);
    choose(&mut c, rule, on);
    c
}

fn with(rule: &str, on: bool) -> Manual {
    Manual::new(&config(rule, on), &[(link(10, 20), link(10, 20))])
}

/// Ten packets in flight from an offset on, which is answered.
fn ten_in_flight(m: &mut Manual) -> u32 {
    let next = m.open_window(10 * FULL as u64);
    m.send(10, FULL);
    assert!(m.sent().len() >= 10);
    next
}

#[test]
fn t3_of_a_fast_retransmission_is_not_put_off() {
    for on in [false, true] {
        let mut m = with("timer=rfc9260:by_tsn=1", on);
        let next = ten_in_flight(&mut m);
        (1..=3).for_each(|i| m.sack(next, &[(1, i)]));
        assert!(m.sent().contains(&next));
        m.during(ms(500));
        m.sack(next, &[(1, 9)]);
        m.sent();
        let again = m.during(ms(600));
        assert_eq!(m.offsets(&again).contains(&next), on, "a second after it left");
    }
}

/// Not ns-2 but Linux: only an acknowledgement starts T3 anew, also where the one that was lost is all that was in flight,
/// as between sparse messages.
#[test]
fn t3_runs_on_where_a_fast_retransmission_leaves() {
    for (rule, soon) in [("timer=rfc9260:by_tsn=1", false), ("timer=rfc9260:runs_on=1", true)] {
        for reports in [1..=3, 7..=9] {
            let mut m = with(rule, true);
            let next = ten_in_flight(&mut m);
            m.during(ms(600));
            reports.clone().for_each(|i| m.sack(next, &[(1, i)]));
            assert!(m.sent().contains(&next), "{rule} {reports:?}");
            let again = m.during(ms(500));
            assert_eq!(m.offsets(&again).contains(&next), soon, "{rule} {reports:?}: a second after the last progress");
            let later = m.during(ms(3_000));
            assert!(soon || m.offsets(&later).contains(&next), "{rule} {reports:?}: it is not forgotten");
        }
    }
}

#[test]
fn a_timeout_does_not_end_a_recovery_that_follows_tsns() {
    for on in [false, true] {
        let mut m = with("recovery=ns2_sctp", on);
        let next = ten_in_flight(&mut m);
        (1..=3).for_each(|i| m.sack(next, &[(1, i)]));
        m.during(ms(1_100));
        assert_eq!(m.path(0).cwnd, FULL as u64, "timed out");
        m.sack(next + 4, &[]);
        let grown = m.path(0).cwnd > FULL as u64;
        assert_eq!(grown, !on, "the window before everything of then is acknowledged");
    }
}

#[test]
fn reports_that_stick() {
    for on in [false, true] {
        let mut m = with("loss_count=tsn:remember=1", on);
        m.send(20, FULL);
        m.sent();
        for _ in 0..5 {
            m.sack(0, &[(2, 2)]);
        }
        assert_eq!(m.sent().contains(&0), on, "the same block again and again");
    }
}

#[test]
fn a_pass_for_each_report() {
    for on in [false, true] {
        let mut m = with("recovery=ns2_sctp", on);
        let next = m.open_window(20 * FULL as u64);
        m.send(20, FULL);
        m.sent();
        m.sack(next, &[(1, 1)]);
        m.sack(next, &[(1, 1), (3, 3)]);
        m.sack(next, &[(1, 1), (3, 4)]);
        assert_eq!(m.sent()[0], next, "the first of the episode");
        m.sack(next, &[(1, 1), (3, 5)]);
        assert_eq!(m.sent().contains(&(next + 2)), on, "the window is full");
    }
}

#[test]
fn the_threshold_of_an_idle_path() {
    for on in [false, true] {
        let mut m = with("window=rfc9260:idle_keeps=1", on);
        m.open_window(10 * FULL as u64);
        let before = m.path(0).ssthresh;
        m.during(ms(5_000));
        m.send(1, FULL);
        m.sent();
        assert!(m.path(0).cwnd < 10 * FULL as u64, "decayed");
        assert_eq!(m.path(0).ssthresh == before, on);
    }
}

#[test]
fn the_first_data_may_wait() {
    for on in [false, true] {
        let mut m = with("first_data_waits", on);
        m.message(0, 100);
        let sacks = |seen: &[Seen]| seen.iter().filter(|p| p.sack.is_some()).count();
        let at_once = m.packets();
        assert_eq!(sacks(&at_once), usize::from(!on));
        let later = m.during(ms(250));
        assert_eq!(sacks(&later), usize::from(on));
    }
}

#[test]
fn data_waits_until_every_path_has_answered() {
    for on in [false, true] {
        let c = config("confirm_first", on);
        let mut b = Bench::new(3, &c);
        b.paths.add("path0", link(10, 20), link(10, 20));
        b.tap = Some(vec![]);
        b.connect(&c);
        b.send(Side::Client, Default::default(), vec![1; 100]);
        b.run_for(ms(1_000));
        let first = |side, chunk| b.tapped(side, chunk).first().map(|t| t.0);
        let data = first(Side::Client, kind::DATA).expect("sent in the end");
        let answered = first(Side::Server, kind::HEARTBEAT_ACK);
        assert_eq!(answered.is_some_and(|t| t < data), on);
    }
}

#[test]
fn bursts_are_limited_from_the_first_repair_on() {
    for (rule, first, repaired) in [("rfc9260", 4, 4), ("ns2_cmt", 10, 4)] {
        let mut c = assoc_config("sctp");
        c.profile.set(Hook::Recovery, rule).expect("registered");
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        let next = m.open_window(12 * FULL as u64);
        m.send(40, FULL);
        let sent = m.sent();
        assert!(if first == 4 { sent.len() == 4 } else { sent.len() >= 10 }, "{rule}: {}", sent.len());
        let last = *sent.last().expect("some");
        (1..=3).for_each(|i| m.sack(next, &[(1, i)]));
        m.sent();
        m.sack(last + 1, &[]);
        assert!(m.sent().len() <= repaired, "{rule}");
    }
}

#[test]
fn windows_may_begin_elsewhere() {
    let c = changed(assoc_config("sctp"), |c| {
        c.sending.initial_window = Some(3_000);
        c.sending.initial_ssthresh = 9_000;
    });
    let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
    assert_eq!((m.path(0).cwnd, m.path(0).ssthresh), (3_000, 9_000));
}

#[test]
fn what_a_chunk_costs_the_peer_beside_its_payload() {
    for (overhead, fit) in [(0, 3), (16, 2)] {
        let c = changed(assoc_config("sctp"), |c| {
            c.limits.peer_chunk_overhead = overhead;
            c.sending.max_burst = 0;
        });
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        let next = m.open_window(8 * FULL as u64);
        m.sack_on(0, next, 3 * FULL as u32, &[]);
        m.send(8, FULL);
        assert_eq!(m.sent().len(), fit);
    }
}

#[test]
fn what_was_sent_again_is_not_fast_retransmitted() {
    for on in [false, true] {
        let mut m = with("loss_threshold=three:once=1", on);
        m.open_window(10 * FULL as u64);
        m.send(10, FULL);
        m.sent();
        // A timeout; then answers until several repairs are in flight.
        let mut waiting: Vec<u32> = {
            let seen = m.during(ms(1_100));
            m.offsets(&seen)
        };
        while waiting.len() < 4 {
            m.sack(waiting.remove(0) + 1, &[]);
            waiting.extend(m.sent());
        }
        let first = waiting[0];
        (1..=3).for_each(|i| m.sack(first, &[(1, i)]));
        assert_eq!(m.sent().contains(&first), !on, "three reports that a repair is missing");
        let late = m.during(ms(2_500));
        assert!(m.offsets(&late).contains(&first), "left to the timer");
    }
}

#[test]
fn one_chunk_is_timed() {
    for on in [false, true] {
        let mut m = with("timer=rfc9260:one_timed=1", on);
        let next = m.open_window(4 * FULL as u64);
        let before = m.path(0).last_rtt;
        m.send(3, FULL);
        m.sent();
        m.during(ms(150));
        m.sack(next, &[(1, 1)]);
        assert_eq!(m.path(0).last_rtt == before, on, "the second of three was acknowledged");
        m.during(ms(30));
        m.sack(next + 1, &[]);
        assert_eq!(m.path(0).last_rtt, ms(180), "and then the first");
    }
}

#[test]
fn what_left_while_the_window_was_closed() {
    for on in [false, true] {
        let mut m = with("resend_probes", !on);
        let next = m.open_window(10 * FULL as u64);
        m.send(5, FULL);
        m.sent();
        m.send(5, FULL);
        m.sent();
        m.sack_on(0, next + 10, 0, &[]);
        m.send(5, FULL);
        let probe = m.during(ms(1_100));
        assert_eq!(m.offsets(&probe), [next + 10], "a probe");
        m.sack(next + 10, &[]);
        let sent = m.sent();
        assert!(sent.contains(&(next + 11)), "new data leave: {sent:?}");
        assert_eq!(sent.contains(&(next + 10)), !on);
    }
}

#[test]
fn the_peer_does_not_learn_that_the_window_opened() {
    for on in [false, true] {
        let mut c = config("window_updates", !on);
        c.limits.receive_buffer = 10_000;
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        m.b.auto_read = false;
        for i in 0..8 {
            m.message(i, 1_000);
        }
        m.during(ms(300));
        let got = core::iter::from_fn(|| m.b.assoc(Side::Client).recv()).count();
        let answers: Vec<_> = m.during(ms(300)).into_iter().filter_map(|p| p.sack).collect();
        assert_eq!(got, 8);
        assert_eq!(answers.len(), usize::from(!on), "{answers:?}");
    }
}

#[test]
fn a_burst_is_limited_once_after_each_repair() {
    let mut c = assoc_config("sctp");
    c.profile.set(Hook::Recovery, "ns2_sctp").expect("registered");
    let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
    let next = m.open_window(16 * FULL as u64);
    m.send(60, FULL);
    let sent = m.sent();
    assert!(sent.len() >= 10, "not limited before a repair: {}", sent.len());
    let last = *sent.last().expect("some");
    (1..=3).for_each(|i| m.sack(next, &[(1, i)]));
    m.sent();
    m.sack(last, &[]);
    let after = m.sent();
    assert_eq!(after.len(), 4, "the SACK that acknowledges a repair");
    m.sack(after[3], &[]);
    assert!(m.sent().len() > 4, "and no longer");
}

#[test]
fn what_leaves_the_window_half_used_may_count_for_nothing() {
    for on in [false, true] {
        let c =
            changed(config("ack_credit=cumulative:when_full=1", on), |c| c.sending.initial_ssthresh = 2 * FULL as u64);
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        m.send(2, FULL);
        m.sent();
        for next in 1..=6 {
            m.sack(next, &[]);
            m.send(1, FULL);
            m.sent();
        }
        let before = m.path(0).cwnd;
        m.send(10, FULL);
        m.sent();
        assert!(m.path(0).in_flight >= before && before > 2 * FULL as u64, "full, and beyond the threshold");
        m.sack(7, &[]);
        assert_eq!(m.path(0).cwnd > before, !on, "seven packets were acknowledged, one of them in a full window");
    }
}
