//! Paths and peers that fail (§6.4, §8.1, §8.2): where data goes then, and when it is over.

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::{PathId, RandomStream};
use anabranch_engine::{CloseReason, Endpoint, EndpointConfig, Event, LocalId};
use anabranch_policy::view::PathState;
use anabranch_sim::Direction;
use anabranch_wire::kind;

fn connected(profile: &str, paths: usize) -> Bench {
    let links: Vec<_> = (0..paths).map(|i| (link(10, 20 + 5 * i as u64), link(10, 20 + 5 * i as u64))).collect();
    let mut b = Bench::connected(5, &assoc_config(profile), &links);
    b.strict = true;
    b
}

/// Paths that carried DATA of the client since the tap was opened, each once.
fn carried(b: &mut Bench) -> Vec<usize> {
    let mut list: Vec<usize> = b.tapped(Side::Client, kind::DATA).iter().map(|t| t.2).collect();
    list.sort_unstable();
    list.dedup();
    b.tap = Some(vec![]);
    list
}

/// Shows: 9260/H1.
#[test]
fn new_data_takes_the_primary_path_and_the_user_chooses_it() {
    let mut b = connected("sctp", 3);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
    assert_eq!(carried(&mut b), [0], "the first one by default");
    for path in [2, 1, 0] {
        assert!(b.assoc(Side::Client).set_primary(PathId(path)));
        flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
        assert_eq!(carried(&mut b), [usize::from(path)]);
    }
    assert!(!b.assoc(Side::Client).set_primary(PathId(3)), "there is no such path");
}

/// Shows: 9260/H5.
#[test]
fn one_alternate_stands_in_while_the_primary_is_inactive() {
    let mut b = connected("sctp", 3);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
    b.cut(0);
    let until = b.now + ms(200_000);
    flow.send_to(&mut b, flow.sent + 100);
    let inactive = |e: &Event| matches!(e, Event::PathChanged { path: PathId(0), to: PathState::Inactive, .. });
    while !b.client_events.iter().any(inactive) {
        assert!(b.now < until, "{:?}", b.client_events);
        flow.stream(&mut b, ms(50), ms(1_000));
    }
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
    assert_eq!(carried(&mut b), [1], "one of them, not both");
    b.restore(0);
    b.run_for(ms(130_000));
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
    assert_eq!(carried(&mut b), [0], "and the primary again");
}

/// Shows: 9260/H6.
#[test]
fn more_errors_than_the_limit_end_it_and_nothing_is_sent_any_more() {
    let config = changed(assoc_config("sctp"), |c| c.failure.max_association_retrans = 4);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    m.send(3, 1_000);
    m.b.run_for(ms(14_999));
    assert!(!m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_))), "four expiries are allowed");
    m.b.run_for(ms(16_002));
    assert!(m.b.client_events.contains(&Event::Closed(CloseReason::PeerGone)), "{:?}", m.b.client_events);
    m.packets();
    assert!(m.during(ms(600_000)).is_empty());
}

/// Probes more often than T3 expires, as path truth sends them, do not make an association end sooner.
///
/// Shows: 9260/H6.
#[test]
fn probes_of_a_silent_path_count_no_faster_than_its_timer() {
    for profile in ["sctp", "cmt", "media"] {
        let mut m = Manual::new(&assoc_config(profile), &[(link(10, 20), link(10, 20))]);
        m.send(3, 1_000);
        // T3 expires after 1, 2, 4 to 32 s and 60 s from then on; the eleventh time is one too often: 363 s in all.
        m.b.run_for(ms(360_000));
        let closed = |m: &Manual| m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_)));
        assert!(!closed(&m), "{profile}: {:?}", m.b.client_events);
        m.b.run_for(ms(60_000));
        assert!(m.b.client_events.contains(&Event::Closed(CloseReason::PeerGone)), "{profile}");
    }
}

/// Shows: 9260/H7.
#[test]
fn each_acknowledgement_of_data_begins_the_count_again() {
    let config = changed(assoc_config("sctp"), |c| c.failure.max_association_retrans = 4);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    for round in 0..5 {
        m.send(1, 1_000);
        // Three expiries, one short of the limit.
        m.b.run_for(ms(7_500));
        m.sack(2 * round + 1, &[]);
        // Something sent once ends the back-off.
        m.send(1, 1_000);
        m.b.run_for(ms(50));
        m.sack(2 * round + 2, &[]);
    }
    assert!(!m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_))), "{:?}", m.b.client_events);
    assert_eq!(m.path(0).counters.timeouts, 15);
}

/// Another stack lost its association when only the way back of one path died: its acknowledgements kept leaving
/// into the dead direction.
#[test]
fn the_way_back_of_one_path_dies_and_the_association_goes_on() {
    for profile in ["sctp", "cmt", "live"] {
        for dead in [0, 1] {
            let mut b = connected(profile, 2);
            let mut flow = Flow::new(Side::Client, 0, 1_000);
            let mut back = Flow::new(Side::Server, 0, 1_000);
            flow.transfer(&mut b, 200, ms(10_000)).expect("arrives");
            back.transfer(&mut b, 200, ms(10_000)).expect("arrives");
            b.set_up(dead, Direction::Backward, false);
            let what = format!("{profile}, path {dead}");
            assert!(flow.transfer(&mut b, 1_000, ms(60_000)).is_some(), "{what}: {} of {}", flow.got, flow.sent);
            assert!(back.transfer(&mut b, 1_000, ms(60_000)).is_some(), "{what}: {} of {}", back.got, back.sent);
            b.run_for(ms(400_000));
            let closed = |e: &Event| matches!(e, Event::Closed(_));
            assert!(!b.client_events.iter().chain(&b.server_events).any(closed), "{what}");
            assert!(flow.transfer(&mut b, 500, ms(30_000)).is_some(), "{what}: still");
            // Once the path is known to be dead, acknowledgements leave on the other one.
            b.tap = Some(vec![]);
            flow.transfer(&mut b, 200, ms(20_000)).expect("arrives");
            let sacks: Vec<usize> = b.tapped(Side::Server, kind::SACK).iter().map(|t| t.2).collect();
            assert!(sacks.iter().any(|p| *p != dead), "{what}: {sacks:?}");
        }
    }
}

/// Shows: ext/Q3, ext/Q4.
#[test]
fn with_every_path_in_doubt_the_least_doubtful_carries_on_and_stays_in_doubt() {
    let mut b = connected("cmt", 2);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(5), ms(1_000));
    b.cut(0);
    // Path 1 dies later, so it was heard of last and has fewer errors.
    flow.stream(&mut b, ms(5), ms(2_500));
    b.cut(1);
    flow.stream(&mut b, ms(5), ms(1_500));
    let states: Vec<PathState> = b.assoc(Side::Client).paths().map(|(_, p)| p.state).collect();
    assert_eq!(states, [PathState::PotentiallyFailed; 2]);
    b.tap = Some(vec![]);
    b.client_events.clear();
    b.run_for(ms(2_000));
    let data: Vec<usize> = b.tapped(Side::Client, kind::DATA).iter().map(|t| t.2).collect();
    assert!(!data.is_empty() && data.iter().all(|p| *p == 1), "{data:?}");
    let active = |e: &Event| matches!(e, Event::PathChanged { to: PathState::Active, .. });
    assert!(!b.client_events.iter().any(active), "being chosen is no sign of health");
    b.restore(1);
    flow.transfer(&mut b, 100, ms(30_000)).expect("arrives");
}

#[test]
fn what_rtx_csi_sends_while_no_path_is_active_counts_as_dormant() {
    let mut b = connected("cmt-rtx-csi", 2);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(5), ms(1_000));
    b.cut(0);
    b.cut(1);
    flow.stream(&mut b, ms(5), ms(6_000));
    assert!(b.assoc(Side::Client).paths().all(|(_, p)| p.state != PathState::Active));
    let counts = |b: &mut Bench| {
        let sent_again = b.assoc(Side::Client).stats().retransmissions;
        (sent_again, counted(b))
    };
    let (sent, before) = counts(&mut b);
    b.run_for(ms(8_000));
    let (sent_again, after) = counts(&mut b);
    assert!(sent_again > sent);
    assert_eq!(after[..6], before[..6], "nothing to choose from");
    assert!(after[6] > before[6], "{after:?}");
}

/// RTX-CSI's counters: its five criteria, what had one path to choose from, and what had none.
fn counted(b: &mut Bench) -> [u64; 7] {
    let all: Vec<u64> = b.assoc(Side::Client).policy_counters().map(|(_, c)| c.1).collect();
    all.try_into().expect("RTX-CSI counts, and no other policy of its profile")
}

#[test]
fn the_cascade_of_rtx_csi_tells_where_its_decisions_fell() {
    use anabranch_sim::LossConfig;
    let lossy = || link(10, 20).with_loss(LossConfig::bernoulli(0.03));
    let mut b = Bench::connected(5, &assoc_config("cmt-rtx-csi"), &[(lossy(), lossy()), (lossy(), lossy())]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 3_000, ms(120_000)).expect("arrives");
    let s = b.assoc(Side::Client).stats();
    let stages = counted(&mut b);
    let contested: u64 = stages[..5].iter().sum();
    assert!(contested > 30 && stages[0] > contested / 2, "{stages:?}");
    // A message fills a packet, so each repetition was one decision, however often a full path was proposed before.
    assert_eq!(stages.iter().sum::<u64>(), s.retransmissions);
    let mut b = connected("cmt", 2);
    assert_eq!(b.assoc(Side::Client).policy_counters().count(), 0, "others do not");
}

/// A server that forgot its client while one way of the client was on its way to become known: AUTH and ASCONF of
/// those of no association are dropped silently (RFC 5061 §4.1.1), so that something else has to notice.
#[test]
fn an_interface_that_comes_back_during_the_handshake_hides_no_dead_peer() {
    // Down until before and until after the COOKIE ACK has come.
    for away in [5, 100] {
        let mut b = Bench::new(5, &assoc_config("cmt"));
        for i in 0..2 {
            b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
        }
        let config = assoc_config("cmt");
        b.connect(&config);
        // The COOKIE ECHO is on its way.
        b.run_for(ms(60));
        let now = b.now;
        b.client.association_mut(b.client_id).expect("begun").interface_down(now, LocalId(0));
        b.run_for(ms(away));
        let now = b.now;
        b.client.association_mut(b.client_id).expect("begun").interface_up(now, LocalId(0));
        b.run_for(ms(40));
        assert!(b.client_events.contains(&Event::Connected), "{:?}", b.client_events);
        b.server = Endpoint::new(EndpointConfig::new(PORT, config), Box::new(RandomStream::named(1, "restart")), b.now);
        b.run_for(ms(60_000));
        assert!(b.client_events.iter().any(|e| matches!(e, Event::Closed(_))), "{away}: {:?}", b.client_events);
    }
}
