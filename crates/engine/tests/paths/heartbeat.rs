//! HEARTBEATs (§8.3): when they leave, who answers, what an answer tells, what the user may set.

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::{Duration, PathId};
use anabranch_engine::{Event, HeartbeatSetting, PathReason};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_wire::{Heartbeat, kind};

fn two(profile: &str) -> Bench {
    Bench::connected(5, &assoc_config(profile), &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))])
}

/// Times between the HEARTBEATs of the client on `path` during `time`.
fn gaps(b: &mut Bench, path: usize, time: Duration) -> Vec<u64> {
    b.tap = Some(vec![]);
    b.run_for(time);
    let sent: Vec<_> = b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == path).map(|t| t.0).collect();
    b.tap = None;
    sent.windows(2).map(|w| w[1].since(w[0]).as_millis()).collect()
}

/// Shows: 9260/H9.
#[test]
fn an_idle_path_is_probed_once_per_interval_with_jitter() {
    let mut b = two("sctp");
    for path in [0, 1] {
        let list = gaps(&mut b, path, Duration::from_secs(1_000));
        assert!(list.len() > 25, "{list:?}");
        assert!(list.iter().all(|g| (29_500..=31_700).contains(g)), "{list:?}");
        let mut different = list.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 10, "jitter: {list:?}");
    }
}

/// Shows: 9260/H9, 9260/H8.
#[test]
fn an_unanswered_one_backs_off_and_an_inactive_path_is_still_probed() {
    let mut b = two("sctp");
    b.run_for(ms(1_000));
    b.cut(1);
    b.client_events.clear();
    let list = gaps(&mut b, 1, Duration::from_secs(900));
    // Never more often than once per interval while it is in use, and each is one error.
    assert!(list[..4].iter().all(|g| *g >= 29_500), "{list:?}");
    let inactive = |e: &Event| {
        matches!(
            e,
            Event::PathChanged { path: PathId(1), to: PathState::Inactive, reason: PathReason::HeartbeatLost, .. }
        )
    };
    assert_eq!(b.client_events.iter().filter(|e| inactive(e)).count(), 1, "reported once: {:?}", b.client_events);
    assert!(b.path(Side::Client, 1).errors > 5);
    assert!(list.len() > 8 && list.iter().all(|g| *g <= 125_000), "it goes on: {list:?}");
    b.restore(1);
    let until = b.now + ms(125_000);
    let back = |e: &Event| {
        matches!(e, Event::PathChanged { path: PathId(1), to: PathState::Active, reason: PathReason::Answered, .. })
    };
    assert!(b.run_until(until, |b| b.client_events.iter().any(back)), "{:?}", b.client_events);
    assert_eq!(b.path(Side::Client, 1).errors, 0, "cleared by the answer");
    assert_eq!(b.path(Side::Client, 0).state, PathState::Active, "the other one had nothing to do with it");
}

/// Shows: 9260/H8.
#[test]
fn timeouts_count_up_to_path_max_retrans_and_an_acknowledgement_clears_them() {
    let config = changed(assoc_config("sctp"), |c| c.failure.max_path_retrans = 3);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    m.b.client_events.clear();
    m.send(1, 100);
    m.packets();
    m.b.run_for(ms(1_001));
    assert_eq!((m.path(0).errors, m.path(1).errors), (1, 0));
    m.send(1, 100);
    m.packets();
    m.sack(0, &[(1, 1)]);
    assert_eq!(m.path(0).errors, 0, "something of that path was acknowledged");
    // It expires again and again, on both paths in turn.
    m.b.run_for(ms(30_000));
    let gone: Vec<usize> =
        m.b.client_events
            .iter()
            .filter_map(|e| match e {
                Event::PathChanged { path, to: PathState::Inactive, .. } => Some(path.index()),
                _ => None,
            })
            .collect();
    assert!(gone.contains(&0) || gone.contains(&1), "{:?}", m.b.client_events);
    assert!(m.path(gone[0]).errors > 3);
}

/// Shows: 9260/H2, 9260/P15.
#[test]
fn an_answer_goes_back_where_the_question_came_from_and_says_the_same() {
    let mut m = Manual::new(&assoc_config("sctp"), &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    for path in [1, 0, 1] {
        let asked = encoded(&Heartbeat::new(b"anything at all"));
        m.receive(path, &[&asked]);
        m.b.flush();
        let tap = m.b.tap.replace(vec![]).expect("tapped");
        let answers: Vec<_> = tap.iter().filter(|t| t.1 == Side::Client).collect();
        assert_eq!((answers.len(), answers[0].2), (1, path));
        let (chunk, question) = (&answers[0].3[12..], &asked[..]);
        assert_eq!((chunk[0], &chunk[1..]), (kind::HEARTBEAT_ACK, &question[1..]));
    }
}

/// Shows: 9260/H10.
#[test]
fn answered_from_the_cookie_to_the_last_chunk() {
    let heartbeat = encoded(&Heartbeat::new(&[5; 8]));
    let answered = |m: &mut Manual| {
        m.packets();
        m.receive(0, &[&heartbeat]);
        m.packets().iter().any(|p| p.has(kind::HEARTBEAT_ACK))
    };
    let mut m = Manual::single("sctp");
    assert!(answered(&mut m), "ESTABLISHED");
    m.send(1, 100);
    let now = m.b.now;
    m.b.assoc(Side::Client).shutdown(now);
    assert!(answered(&mut m), "SHUTDOWN-PENDING");
    m.sack(1, &[]);
    assert!(m.packets().iter().any(|p| p.has(kind::SHUTDOWN)));
    assert!(answered(&mut m), "SHUTDOWN-SENT");
    let shutdown =
        |m: &Manual, next: u32| encoded(&anabranch_wire::Shutdown { cum_tsn: m.client_first.plus(next).minus(1) });
    let bytes = shutdown(&m, 1);
    m.receive(0, &[&bytes]);
    assert!(answered(&mut m), "SHUTDOWN-ACK-SENT");
    let mut m = Manual::single("sctp");
    m.send(1, 100);
    m.packets();
    let bytes = shutdown(&m, 0);
    m.receive(0, &[&bytes]);
    assert!(answered(&mut m), "SHUTDOWN-RECEIVED");
    // COOKIE ACK is lost: COOKIE-ECHOED.
    let config = assoc_config("sctp");
    let mut b = Bench::new(3, &config);
    b.paths.add("path0", link(10, 20), link(10, 20));
    b.filter = Some(Box::new(|l| !l.has(kind::COOKIE_ACK)));
    b.tap = Some(vec![]);
    b.connect(&config);
    b.run_for(ms(200));
    let init = b.tapped(Side::Client, kind::INIT)[0].3.clone();
    let mut packet = vec![0; 12];
    packet[..4].copy_from_slice(&init[..4]);
    packet[4..8].copy_from_slice(&init[16..20]);
    packet.extend_from_slice(&heartbeat);
    b.inject(Side::Client, 0, &packet);
    b.flush();
    assert_eq!(b.tapped(Side::Client, kind::HEARTBEAT_ACK).len(), 1, "COOKIE-ECHOED");
}

/// Shows: 9260/H11, 9260/H7.
#[test]
fn an_answer_measures_the_path_and_clears_the_errors() {
    let mut b = two("sctp");
    b.cut(0);
    b.cut(1);
    let mut flow = Flow::new(Side::Client, 0, 500);
    flow.send_to(&mut b, 1);
    b.run_for(ms(20_000));
    assert!(b.path(Side::Client, 0).errors > 0);
    b.restore(0);
    let before = b.path(Side::Client, 0);
    let now = b.now;
    b.filter = Some(Box::new(|l| !l.has(kind::DATA)));
    assert!(b.assoc(Side::Client).request_heartbeat(now, PathId(0)));
    b.run_for(ms(100));
    let p = b.path(Side::Client, 0);
    assert_eq!(p.counters.heartbeats_answered, before.counters.heartbeats_answered + 1);
    assert_eq!(p.errors, 0);
    assert!(p.last_rtt >= ms(40) && p.last_rtt < ms(45), "{}", p.last_rtt);
}

/// Any HEARTBEAT that is answered shows that the path works, and by its own time how long it takes, though another one
/// has left since. The newest is still waited for.
///
/// Shows: 9260/H11, 9260/H8.
#[test]
fn an_answer_counts_though_another_question_has_left_since() {
    for newest_lost in [false, true] {
        let mut b = two("sctp");
        let before = b.path(Side::Client, 1);
        for _ in 0..4 {
            let now = b.now;
            assert!(b.assoc(Side::Client).request_heartbeat(now, PathId(1)));
            b.run_for(ms(10));
        }
        if newest_lost {
            // The first one is answered by now; the answer to the last one has not left.
            b.run_for(ms(5));
            b.cut(1);
        }
        b.run_for(ms(200));
        let p = b.path(Side::Client, 1);
        let answered = p.counters.heartbeats_answered - before.counters.heartbeats_answered;
        assert!(if newest_lost { (1..4).contains(&answered) } else { answered == 4 }, "{answered}");
        assert!(p.last_rtt >= ms(60) && p.last_rtt < ms(65), "{}", p.last_rtt);
        b.run_for(ms(5_000));
        let errors = b.path(Side::Client, 1).errors;
        assert_eq!(errors > 0, newest_lost, "{errors}");
    }
}

/// A path that answers more slowly than its user asks is confirmed all the same.
#[test]
fn asking_again_and_again_does_not_keep_a_path_unconfirmed() {
    let mut b = Bench::new(3, &assoc_config("sctp"));
    b.paths.add("first", link(10, 20), link(10, 20));
    b.paths.add("slow", link(10, 200), link(10, 200));
    b.connect(&assoc_config("sctp"));
    b.run_for(ms(150));
    let mut confirmed = false;
    for _ in 0..100 {
        let now = b.now;
        b.assoc(Side::Client).request_heartbeat(now, PathId(1));
        b.run_for(ms(100));
        confirmed |= b.path(Side::Client, 1).state == PathState::Active;
    }
    assert!(confirmed);
}

/// Shows: 9260/H11.
#[test]
fn the_user_sets_the_interval_switches_off_and_asks() {
    let mut b = two("sctp");
    let now = b.now;
    assert!(b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Every(ms(5_000))));
    let list = gaps(&mut b, 1, ms(100_000));
    assert!(list.len() >= 15 && list.iter().all(|g| (4_500..=6_700).contains(g)), "{list:?}");
    let list = gaps(&mut b, 0, ms(100_000));
    assert!(list.iter().all(|g| *g > 29_000), "the other path is as it was: {list:?}");
    let now = b.now;
    b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Off);
    b.tap = Some(vec![]);
    b.cut(1);
    b.run_for(ms(200_000));
    assert!(b.tapped(Side::Client, kind::HEARTBEAT).iter().all(|t| t.2 == 0), "none at all");
    b.restore(1);
    let now = b.now;
    assert!(b.assoc(Side::Client).request_heartbeat(now, PathId(1)));
    b.run_for(ms(100));
    assert_eq!(b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count(), 1, "on demand");
    b.run_for(ms(100_000));
    assert_eq!(b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count(), 1, "and only then");
    let now = b.now;
    b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Configured);
    assert!(!gaps(&mut b, 1, ms(100_000)).is_empty());
    assert!(!b.assoc(Side::Client).set_heartbeat(now, PathId(9), HeartbeatSetting::Off), "no such path");
}

/// A path in doubt, suspected or potentially failed, is probed at once and again after each timeout, unless HEARTBEATs are off.
///
/// Shows: ext/Q5.
#[test]
fn a_path_in_doubt_is_probed_without_waiting_for_the_interval() {
    for off in [false, true] {
        let mut b = two("cmt");
        let now = b.now;
        if off {
            b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Off);
        }
        b.tap = Some(vec![]);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.stream(&mut b, ms(5), ms(500));
        b.cut(1);
        flow.stream(&mut b, ms(5), ms(3_000));
        let state = b.path(Side::Client, 1).state;
        assert!(matches!(state, PathState::Suspected | PathState::PotentiallyFailed), "{state:?}");
        let probes = b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count();
        assert!(if off { probes == 0 } else { probes >= 3 }, "off: {off}, {probes} probes");
    }
}

/// New data leave on path 0 and what is sent again on path 1, where nothing gives an RTT. HEARTBEATs do, and end the
/// back-off that an outage left behind.
///
/// Shows: 9260/H9.
#[test]
fn a_path_that_carries_only_repairs_is_idle() {
    let mut c = assoc_config("sctp");
    c.profile.set(Hook::Retransmission, "rfc9260:reports_move=1").expect("registered");
    // Back it is as quick on one as on the other: a SACK for what path 1 carried is news of it, whichever way it takes.
    let mut b = Bench::connected(5, &c, &[(link(10, 5), link(10, 5)), (link(10, 200), link(10, 5))]);
    let mut packets = 0;
    b.filter = Some(Box::new(move |l| {
        packets += u32::from(l.path == 0 && l.has(kind::DATA));
        l.path != 0 || !l.has(kind::DATA) || !packets.is_multiple_of(5)
    }));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(5), ms(1_000));
    b.cut(1);
    flow.stream(&mut b, ms(5), ms(1_000));
    b.restore(1);
    flow.stream(&mut b, ms(5), ms(2_000));
    assert_eq!(b.path(Side::Client, 1).rto, ms(2_000), "backed off");
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(5), ms(100_000));
    let p = b.path(Side::Client, 1);
    let data: Vec<_> = b.tapped(Side::Client, kind::DATA).into_iter().filter(|t| t.2 == 1).collect();
    let longest = data.windows(2).map(|w| w[1].0.since(w[0].0)).max();
    assert!(longest.is_some_and(|d| d < ms(300)), "hardly ever is nothing in flight there: {longest:?}");
    assert_eq!(p.counters.data_sent, p.counters.data_retransmitted, "nothing new");
    let probes = b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count();
    assert!((3..=4).contains(&probes), "{probes}");
    assert_eq!(p.rto, ms(1_000));
}

/// A path in full use has RTTs all the time, however long they are.
///
/// Shows: 9260/H9.
#[test]
fn a_long_way_in_use_is_not_idle() {
    let c = changed(assoc_config("sctp"), |c| c.timers.heartbeat_interval = ms(1_000));
    let mut b = Bench::connected(5, &c, &[(link(10, 800), link(10, 800))]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(20), ms(10_000));
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(20), ms(30_000));
    assert!(b.path(Side::Client, 0).srtt > ms(1_500), "more than HB.interval");
    assert_eq!(b.tapped(Side::Client, kind::HEARTBEAT).len(), 0);
}

/// A lost HEARTBEAT is no error of a path by which something arrived meanwhile.
#[test]
fn a_path_that_answers_data_is_not_silent() {
    let mut c = assoc_config("sctp");
    c.profile.set(Hook::PathState, "potentially_failed:pfmr=0").expect("registered");
    c.profile.set(Hook::Retransmission, "rfc9260:reports_move=1").expect("registered");
    let mut b = Bench::connected(5, &c, &[(link(10, 5), link(10, 5)), (link(10, 20), link(10, 5))]);
    let mut packets = 0;
    b.filter = Some(Box::new(move |l| {
        packets += u32::from(l.path == 0 && l.has(kind::DATA));
        let lost = l.path == 0 && l.has(kind::DATA) && packets.is_multiple_of(5);
        !(lost || l.path == 1 && l.has(kind::HEARTBEAT))
    }));
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(5), ms(100_000));
    let probes = b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == 1).count();
    let p = b.path(Side::Client, 1);
    assert!(probes >= 2 && p.counters.data_retransmitted > 0, "{probes}");
    let left = |e: &&Event| matches!(e, Event::PathChanged { reason: PathReason::HeartbeatLost, .. });
    let doubts = b.client_events.iter().filter(left).count();
    assert_eq!(doubts, 0, "of {probes} that were lost");
}
