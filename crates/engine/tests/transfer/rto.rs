//! Round trips and the retransmission timer (§6.3), and what once froze other stacks.

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::{AssocConfig, EndpointConfig, Event, TimerReason};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_sim::{Direction, Setting};
use anabranch_wire::kind;

fn two(config: &AssocConfig) -> Manual {
    Manual::new(config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))])
}

/// When T3 of path 0 fires next, from now.
fn t3(m: &Manual) -> Option<Duration> {
    let client = m.b.client.association(m.b.client_id).expect("alive");
    let (at, why) = client.poll_timeout()?;
    (why == TimerReason::Retransmission(anabranch_base::PathId(0))).then(|| at.since(m.b.now))
}

/// Shows: 9260/T1.
#[test]
fn smoothed_as_the_rule_says_within_its_limits() {
    let mut m = Manual::single("sctp");
    let before = m.path(0);
    assert!(before.srtt >= ms(40) && before.srtt < ms(45), "the handshake was the first sample");
    assert_eq!(before.rttvar, before.srtt / 2);
    assert_eq!(before.rto, ms(1_000), "RTO.Min");
    m.send(1, 100);
    m.packets();
    m.b.run_for(ms(900));
    m.sack(1, &[]);
    let p = m.path(0);
    let srtt = (before.srtt * 7 + ms(900)) / 8;
    let rttvar = (before.rttvar * 3 + (ms(900) - before.srtt)) / 4;
    assert_eq!((p.srtt, p.rttvar), (srtt, rttvar));
    assert_eq!(p.rto, srtt + rttvar * 4);
    assert!(p.rto > ms(1_000));
    // Before anything is measured it is RTO.Initial.
    let mut config = assoc_config("sctp");
    config.profile.set(Hook::Timer, "rfc9260:rto_initial=3000").expect("registered");
    let mut b = Bench::new(3, &config);
    for i in 0..2 {
        b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
    }
    b.cut(1);
    b.connect(&config);
    b.run_for(ms(500));
    assert_eq!((b.path(Side::Client, 1).srtt, b.path(Side::Client, 1).rto), (Duration::ZERO, ms(3_000)));
}

/// Shows: 9260/T2.
#[test]
fn one_sample_for_each_round_trip_and_none_from_what_was_sent_twice() {
    let mut m = Manual::single("sctp");
    m.send(8, FULL);
    assert_eq!(m.sent().len(), 4);
    m.b.run_for(ms(100));
    m.sack(1, &[]);
    let first = m.path(0);
    for o in 2..=4 {
        m.b.run_for(ms(10));
        m.sack(o, &[]);
        assert_eq!((m.path(0).srtt, m.path(0).rttvar), (first.srtt, first.rttvar), "the same round trip");
    }
    let next = 8;
    m.b.run_for(ms(50));
    m.sack(next, &[]);
    m.packets();
    let before = m.path(0);
    m.send(2, 100);
    m.packets();
    // Lost, sent again, acknowledged: of which transmission is not known.
    let again = m.during(before.rto + ms(1));
    assert_eq!(m.offsets(&again), [next, next + 1]);
    m.b.run_for(ms(5));
    m.sack(next + 2, &[]);
    assert_eq!((m.path(0).srtt, m.path(0).rttvar), (before.srtt, before.rttvar));
}

/// Shows: 9260/T3, 9260/D8.
#[test]
fn the_timer_runs_from_the_first_and_begins_again_with_the_earliest() {
    let mut m = Manual::single("sctp");
    assert_eq!(t3(&m), None);
    m.send(1, 100);
    m.packets();
    assert_eq!(t3(&m), Some(ms(1_000)));
    m.b.run_for(ms(400));
    m.send(1, 100);
    m.packets();
    assert_eq!(t3(&m), Some(ms(600)), "it ran already");
    // Not the earliest: nothing changes.
    m.send(1, 100);
    m.packets();
    m.sack(0, &[(1, 1)]);
    assert_eq!(t3(&m), Some(ms(600)));
    m.b.run_for(ms(100));
    m.sack(2, &[]);
    let rto = m.path(0).rto;
    assert_eq!(t3(&m), Some(rto), "again, by the timeout of now");
    m.sack(3, &[]);
    assert_eq!(t3(&m), None, "all acknowledged");
    // The lowest is sent again: from there.
    m.send(4, 100);
    m.packets();
    m.b.run_for(ms(300));
    for i in 1..=3 {
        m.sack(3, &[(1, i)]);
    }
    assert_eq!(m.sent()[..1], [3]);
    let rto = m.path(0).rto;
    assert_eq!(t3(&m), Some(rto));
}

/// Shows: 9260/T4.
#[test]
fn each_expiry_doubles_the_timeout_to_its_ceiling_and_resends_the_lowest() {
    let config = changed(assoc_config("sctp"), |c| c.failure.max_association_retrans = 100);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    m.send(30, 400);
    let first = m.packets();
    assert_eq!(m.offsets(&first).len(), 8);
    let seen = m.during(ms(300_000));
    let again: Vec<&Seen> = seen.iter().filter(|p| !p.data.is_empty()).collect();
    for p in &again {
        assert_eq!(m.offsets(&[(*p).clone()]), [0, 1], "what fits one packet of the lowest");
    }
    let times: Vec<u64> = core::iter::once(first[0].at)
        .chain(again.iter().map(|p| p.at))
        .collect::<Vec<_>>()
        .windows(2)
        .map(|w| w[1].since(w[0]).as_millis())
        .collect();
    assert_eq!(times[..8], [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
}

/// Shows: 9260/T5.
#[test]
fn a_retransmission_is_timed_by_the_path_it_leaves_on() {
    let links = [(link(10, 20), link(10, 20)), (link(10, 450), link(10, 450))];
    let mut m = Manual::new(&assoc_config("sctp"), &links);
    let slow = m.path(1).rto;
    assert!(slow > ms(2_000), "{slow}");
    m.send(1, 100);
    m.packets();
    let seen = m.during(ms(8_000));
    let data: Vec<(usize, u64)> =
        seen.iter().filter(|p| !p.data.is_empty()).map(|p| (p.path, p.at.as_nanos() / 1_000_000)).collect();
    assert_eq!((data[0].0, data[1].0), (1, 0));
    assert_eq!(data[1].1 - data[0].1, slow.as_millis(), "the other path's timeout");
}

/// Shows: 9260/T6.
#[test]
fn the_parameters_are_the_recommended_ones() {
    let c = assoc_config("sctp");
    assert_eq!((c.timers.rto_initial, c.timers.rto_max), (ms(1_000), ms(60_000)));
    assert_eq!(
        (
            c.sending.max_burst,
            c.failure.max_association_retrans,
            c.failure.max_path_retrans,
            c.failure.max_init_retrans
        ),
        (4, 10, 5, 8)
    );
    assert_eq!((c.timers.heartbeat_interval, c.timers.sack_delay), (ms(30_000), ms(200)));
    assert_eq!(c.timers.heartbeat_max_burst, 1);
    assert_eq!(EndpointConfig::new(1, c).cookie_life, ms(60_000));
    // Minimum, ceiling and smoothing: see the tests above.
}

/// A HEARTBEAT that gets lost once kept Linux 6.1 from measuring DATA ever after: its timeout stayed where the
/// back-off had left it.
#[test]
fn a_lost_heartbeat_stops_no_measurement() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = Bench::connected(8, &assoc_config(profile), &[(link(10, 20), link(10, 20))]);
        b.strict = true;
        b.filter = Some(Box::new(|l| l.from == Side::Server || !l.has(kind::HEARTBEAT)));
        let mut flow = Flow::new(Side::Client, 1, 500);
        // Long enough for several of them.
        flow.stream(&mut b, ms(2_000), ms(100_000));
        assert!(b.path(Side::Client, 0).counters.heartbeats_sent > 0, "{profile}: none was lost");
        let now = b.now;
        for direction in Direction::BOTH {
            b.paths.get_mut(0).expect("a path").apply(now, direction, Setting::Delay(ms(150)));
        }
        flow.stream(&mut b, ms(2_000), ms(60_000));
        let p = b.path(Side::Client, 0);
        assert!(p.srtt >= ms(250) && p.srtt < ms(500), "{profile}: {}", p.srtt);
        assert!(p.rto <= ms(1_500), "{profile}: {}", p.rto);
        assert_eq!(p.state, PathState::Active, "{profile}");
        assert_eq!(flow.got, flow.sent, "{profile}");
    }
}

#[test]
fn the_back_off_ends_with_the_first_acknowledgement_of_something_sent_once() {
    for profile in ["sctp", "cmt", "live"] {
        let mut m = Manual::new(&assoc_config(profile), &[(link(10, 20), link(10, 20))]);
        m.send(1, 100);
        m.packets();
        m.b.run_for(ms(7_500));
        let backed_off = m.path(0).rto;
        assert!(backed_off >= ms(1_200), "{profile}: {backed_off}");
        m.sack(1, &[]);
        m.send(1, 100);
        m.packets();
        m.b.run_for(ms(60));
        m.sack(2, &[]);
        assert!(m.path(0).rto <= ms(1_000), "{profile}: {}", m.path(0).rto);
    }
}

#[test]
fn a_lone_path_is_never_potentially_failed() {
    for profile in ["cmt", "live", "confluent", "low-latency"] {
        let mut b = Bench::connected(8, &assoc_config(profile), &[(link(10, 20), link(10, 20))]);
        let mut flow = Flow::new(Side::Client, 1, 500);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        b.client_events.clear();
        b.cut(0);
        flow.send_to(&mut b, 120);
        b.run_for(ms(4_000));
        assert!(b.path(Side::Client, 0).counters.timeouts > 0);
        let failed = |e: &Event| matches!(e, Event::PathChanged { to: PathState::PotentiallyFailed, .. });
        assert!(!b.client_events.iter().any(failed), "{profile}: {:?}", b.client_events);
        b.restore(0);
        let t = flow.transfer(&mut b, 100, ms(20_000));
        assert!(t.is_some_and(|t| t < ms(6_000)), "{profile}: {t:?}");
    }
}

/// Shows: 9260/T4, 9260/H4.
#[test]
fn what_expires_on_one_path_goes_on_on_the_other() {
    let mut m = two(&assoc_config("sctp"));
    m.send(4, FULL);
    assert!(m.packets().iter().all(|p| p.path == 0));
    m.b.run_for(ms(1_001));
    assert_eq!((m.path(0).in_flight, m.path(1).in_flight), (0, 4 * FULL as u64));
    let moved = m.packets();
    assert_eq!(moved.iter().filter(|p| p.path == 1 && !p.data.is_empty()).count(), 4);
    // The lowest first, and all of them count on their new path only.
    m.sack_on(1, 4, ROOM, &[]);
    assert_eq!((m.path(0).in_flight, m.path(1).in_flight), (0, 0));
}
