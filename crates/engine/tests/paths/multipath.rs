//! Several paths through NATs: joining, failing, taking over, coming back.

use crate::common::*;
use anabranch_base::{Duration, PathId};
use anabranch_engine::{AssocConfig, CloseReason, Event, LocalId, PathReason};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_sim::{Direction, LinkConfig};
use anabranch_wire::kind;

fn two() -> Vec<(LinkConfig, LinkConfig)> {
    vec![(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]
}

fn connected(profile: &str) -> Bench {
    connected_with(&assoc_config(profile))
}

fn connected_with(config: &AssocConfig) -> Bench {
    let mut b = Bench::connected(5, config, &two());
    b.strict = true;
    assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2]);
    assert_eq!(states(&mut b, Side::Server), [PathState::Active; 2]);
    b
}

fn states(b: &mut Bench, side: Side) -> Vec<PathState> {
    b.assoc(side).paths().map(|(_, p)| p.state).collect()
}

fn taken_over(b: &Bench, side: Side, path: usize) -> Option<Duration> {
    b.events(side).iter().find_map(|e| match e {
        Event::TakenOver { path: p, after } if p.index() == path => Some(*after),
        _ => None,
    })
}

const PROFILES: [&str; 4] = ["cmt", "live", "confluent", "low-latency"];

/// Shows: 9260/A33.
#[test]
fn a_second_path_joins_by_asconf_under_auth_and_carries_nothing_before_it_is_confirmed() {
    let config = assoc_config("cmt");
    let mut b = Bench::new(5, &config);
    for (f, r) in two() {
        b.paths.add(&format!("path{}", b.paths.len()), f, r);
    }
    b.strict = true;
    b.tap = Some(vec![]);
    b.connect(&config);
    b.run_for(ms(100));
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
    let mut back = Flow::new(Side::Server, 0, 900);
    back.transfer(&mut b, 500, ms(10_000)).expect("arrives");
    let allowed: [&[u8]; 5] = [
        &[kind::AUTH, kind::ASCONF],
        &[kind::AUTH, kind::ASCONF_ACK],
        &[kind::HEARTBEAT],
        &[kind::HEARTBEAT_ACK],
        &[kind::HEARTBEAT, kind::HEARTBEAT_ACK],
    ];
    let tap = b.tap.take().expect("tapped");
    for side in [Side::Client, Side::Server] {
        let on_path: Vec<_> = tap.iter().filter(|t| t.2 == 1 && t.1 == side).map(|t| kinds(&t.3)).collect();
        assert!(on_path.iter().any(|k| k.contains(&kind::DATA)), "no data on the second path");
        // A nonce that comes back, or the signed answer of a peer of ours to what asked from there.
        let proof = |k: &u8| [kind::HEARTBEAT_ACK, kind::ASCONF_ACK].contains(k);
        let nonce = tap.iter().find(|t| t.2 == 1 && t.1 != side && kinds(&t.3).iter().any(proof));
        let confirmed = nonce.expect("a nonce comes back").0 + ms(30);
        let before = tap.iter().filter(|t| t.2 == 1 && t.1 == side && t.0 < confirmed).count();
        assert!(before > 0);
        for k in &on_path[..before] {
            let mut sorted = k.clone();
            sorted.sort_unstable();
            let ok = allowed.contains(&k.as_slice()) || sorted == [kind::HEARTBEAT, kind::HEARTBEAT_ACK];
            assert!(ok, "{side:?} sent {k:?} on an unconfirmed path");
        }
    }
    let seen: Vec<_> = b.assoc(Side::Server).paths().map(|(_, p)| p.remote).collect();
    assert_eq!(seen, [nat_addr(0), nat_addr(1)], "the server sees what the NAT shows");
}

/// Shows: ext/E7.
#[test]
fn the_handshake_names_no_address() {
    let config = assoc_config("cmt");
    let mut b = Bench::new(5, &config);
    b.paths.add("path0", link(10, 20), link(10, 20));
    b.tap = Some(vec![]);
    b.connect(&config);
    b.run_for(ms(500));
    for t in b.tap.take().expect("tapped") {
        let p = anabranch_wire::Packet::parse(&t.3, anabranch_wire::Verify::Checksum).expect("a packet");
        for c in p.chunks().flatten() {
            let params = match c.decode() {
                Ok(anabranch_wire::Chunk::Init(i)) => i.params,
                Ok(anabranch_wire::Chunk::InitAck(i)) => i.params,
                _ => continue,
            };
            use anabranch_wire::Parameter as P;
            assert!(!params.iter().flatten().any(|p| matches!(p, P::Ipv4(_) | P::Ipv6(_))));
        }
    }
}

#[test]
fn a_peer_without_address_changes_keeps_one_path_and_never_hears_from_another() {
    let config = assoc_config("cmt");
    let server = changed(config.clone(), |c| c.extensions.dynamic_addresses = false);
    let mut b = Bench::pair(5, &config, &server);
    for (f, r) in two() {
        b.paths.add(&format!("path{}", b.paths.len()), f, r);
    }
    b.tap = Some(vec![]);
    b.connect(&config);
    b.run_for(ms(3_000));
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
    let now = b.now;
    b.assoc(Side::Client).interface_down(now, LocalId(1));
    b.assoc(Side::Client).interface_up(now, LocalId(1));
    b.run_for(ms(60_000));
    assert!(
        b.tap.take().expect("tapped").iter().all(|t| t.2 == 0),
        "a packet left from an address that the peer has not learnt"
    );
    assert_eq!(states(&mut b, Side::Client), [PathState::Active, PathState::Unconfirmed]);
    assert_eq!(b.assoc(Side::Server).paths().count(), 1);
}

#[test]
fn a_cut_path_is_taken_over_and_comes_back() {
    for profile in PROFILES {
        for dead in [0, 1] {
            for from in [Side::Client, Side::Server] {
                let mut b = connected(profile);
                let mut flow = Flow::new(from, 1, 1_000);
                flow.stream(&mut b, ms(2), ms(2_000));
                b.cut(dead);
                b.client_events.clear();
                b.server_events.clear();
                let carried = b.path(from, dead).counters.data_sent;
                flow.stream(&mut b, ms(2), ms(5_000));
                let what = format!("{profile}, path {dead}, data from {from:?}");
                assert!(flow.sent - flow.got < 400, "{what}: {} missing", flow.sent - flow.got);
                let used = b.path(from, dead).counters.data_sent > carried;
                assert!(used || dead == 1 && profile != "cmt", "{what}: nothing was sent");
                if used {
                    assert_ne!(states(&mut b, from)[dead], PathState::Active, "{what}");
                    assert!(taken_over(&b, from, dead).is_some(), "{what}: {:?}", b.events(from));
                }
                b.restore(dead);
                b.client_events.clear();
                b.server_events.clear();
                flow.stream(&mut b, ms(2), ms(20_000));
                assert_eq!(states(&mut b, from), [PathState::Active; 2], "{what}");
                let back = |e: &Event| matches!(e, Event::PathChanged { path, to: PathState::Active, reason: PathReason::Answered, .. } if path.index() == dead);
                assert!(!used || b.events(from).iter().any(back), "{what}: {:?}", b.events(from));
                flow.transfer(&mut b, 100, ms(5_000)).expect("all arrives");
            }
        }
    }
}

#[test]
fn the_association_outlives_its_first_path_and_ends_in_order() {
    for profile in PROFILES {
        let mut b = connected(profile);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        let mut back = Flow::new(Side::Server, 0, 1_000);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        b.cut(0);
        assert!(flow.transfer(&mut b, 2_000, ms(30_000)).is_some(), "{profile}: {} of {}", flow.got, flow.sent);
        assert!(back.transfer(&mut b, 2_000, ms(30_000)).is_some(), "{profile}: {} of {}", back.got, back.sent);
        b.run_for(ms(120_000));
        assert!(flow.transfer(&mut b, 100, ms(10_000)).is_some(), "{profile}");
        let now = b.now;
        b.assoc(Side::Client).shutdown(now);
        b.run_for(ms(20_000));
        let ended = Event::Closed(CloseReason::Shutdown);
        assert!(b.client_events.contains(&ended) && b.server_events.contains(&ended), "{profile}");
    }
}

#[test]
fn one_direction_dead_is_a_dead_path() {
    for profile in PROFILES {
        for dead in [0, 1] {
            for direction in Direction::BOTH {
                let mut b = connected(profile);
                let mut flow = Flow::new(Side::Client, 0, 1_000);
                let mut back = Flow::new(Side::Server, 0, 1_000);
                flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
                back.transfer(&mut b, 100, ms(5_000)).expect("arrives");
                b.set_up(dead, direction, false);
                let what = format!("{profile}, path {dead} {direction:?}");
                assert!(flow.transfer(&mut b, 2_000, ms(40_000)).is_some(), "{what}: {}", flow.got);
                assert!(back.transfer(&mut b, 2_000, ms(40_000)).is_some(), "{what}: {}", back.got);
                // Settled: the dead direction costs nothing any more.
                let t = flow.transfer(&mut b, 1_000, ms(10_000)).expect("arrives");
                assert!(t < ms(2_500), "{what}: {t:?}");
                b.set_up(dead, direction, true);
                b.run_for(ms(60_000));
                flow.transfer(&mut b, 100, ms(10_000)).expect("arrives");
                b.run_for(ms(40_000));
                assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2], "{what}");
                assert_eq!(states(&mut b, Side::Server), [PathState::Active; 2], "{what}");
            }
        }
    }
}

#[test]
fn an_interface_comes_back_with_another_address() {
    for profile in PROFILES {
        for i in [0usize, 1] {
            let mut b = connected(profile);
            let mut flow = Flow::new(Side::Client, 0, 1_000);
            let mut back = Flow::new(Side::Server, 0, 1_000);
            flow.stream(&mut b, ms(2), ms(1_000));
            let now = b.now;
            b.assoc(Side::Client).interface_down(now, LocalId(i as u16));
            b.cut(i);
            assert_ne!(states(&mut b, Side::Client)[i], PathState::Active);
            flow.stream(&mut b, ms(2), ms(3_000));
            assert!(flow.sent - flow.got < 100, "{profile}: {} missing", flow.sent - flow.got);
            b.nat[i] = ([203, 0, 113, 7], 1_234).into();
            b.restore(i);
            let now = b.now;
            b.client_events.clear();
            b.assoc(Side::Client).interface_up(now, LocalId(i as u16));
            flow.stream(&mut b, ms(2), ms(1_000));
            assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2], "{profile}, path {i}, after a second");
            let known = b.nat[i];
            let at_server = b.assoc(Side::Server).paths().find(|(_, p)| p.remote == known).map(|(_, p)| p.state);
            assert_eq!(at_server, Some(PathState::Active), "{profile}, path {i}");
            flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
            back.transfer(&mut b, 2_000, ms(40_000)).expect("arrives");
            let carried = b.path(Side::Client, i).counters.data_sent;
            flow.transfer(&mut b, 2_000, ms(10_000)).expect("arrives");
            assert!(b.path(Side::Client, i).counters.data_sent > carried, "{profile}: path {i} is used again");
        }
    }
}

/// Shows: ext/E3.
#[test]
fn a_port_that_changes_is_followed() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = Bench::connected(5, &assoc_config(profile), &two()[..1]);
        b.strict = true;
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        let mut back = Flow::new(Side::Server, 0, 1_000);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        b.nat[0].set_port(55_555);
        b.server_events.clear();
        let t = flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        assert!(t < ms(600), "{profile}: {t:?}");
        back.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        assert_eq!(b.path(Side::Server, 0).remote, b.nat[0]);
        assert!(!b.server_events.iter().any(|e| matches!(e, Event::PathAdded { .. })));
    }
}

#[test]
fn an_address_that_changes_is_learnt_again() {
    for profile in PROFILES {
        for i in [0, 1] {
            let mut b = connected(profile);
            let mut flow = Flow::new(Side::Client, 0, 1_000);
            flow.stream(&mut b, ms(2), ms(1_000));
            b.nat[i] = ([203, 0, 113, 9], 7_777).into();
            flow.stream(&mut b, ms(2), ms(25_000));
            assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2], "{profile}, path {i}");
            flow.transfer(&mut b, 1_000, ms(10_000)).expect("arrives");
        }
    }
}

#[test]
fn a_lone_path_whose_address_changes_is_learnt_again() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = Bench::connected(5, &assoc_config(profile), &two()[..1]);
        b.strict = true;
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        b.nat[0] = ([203, 0, 113, 9], 7_777).into();
        let t = flow.transfer(&mut b, 100, ms(60_000));
        assert!(t.is_some_and(|t| t < ms(15_000)), "{profile}: {t:?}");
    }
}

#[test]
fn a_request_heard_by_the_peer_but_never_answered_does_not_hold_up_the_other_paths() {
    let config = assoc_config("cmt");
    let mut b = Bench::new(5, &config);
    for i in 0..3 {
        b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
    }
    b.strict = true;
    b.set_up(1, Direction::Backward, false);
    b.connect(&config);
    b.run_for(ms(12_000));
    let s = states(&mut b, Side::Client);
    assert_eq!((s[0], s[2]), (PathState::Active, PathState::Active), "{s:?}");
    assert_ne!(s[1], PathState::Active);
    b.set_up(1, Direction::Backward, true);
    b.run_for(ms(60_000));
    assert_eq!(states(&mut b, Side::Client), [PathState::Active; 3]);
}

/// Shows: 9260/H6.
#[test]
fn when_all_paths_are_dead_the_peer_is_gone_and_not_before() {
    for profile in PROFILES.into_iter().chain(["sctp"]) {
        let mut b = connected(profile);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        let mut back = Flow::new(Side::Server, 0, 1_000);
        back.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        flow.send_to(&mut b, 300);
        back.send_to(&mut b, 300);
        b.cut(0);
        b.cut(1);
        let began = b.now;
        let gone = Event::Closed(CloseReason::PeerGone);
        let until = b.now + ms(3_600_000);
        b.run_until(until, |b| b.client_events.contains(&gone) && b.server_events.contains(&gone));
        assert!(b.client_events.contains(&gone), "{profile}: {:?}", b.client_events);
        assert!(b.server_events.contains(&gone), "{profile}: {:?}", b.server_events);
        assert!(b.now.since(began) > ms(10_000), "{profile}: given up after {:?}", b.now.since(began));
        assert!(b.now.since(began) < ms(1_200_000), "{profile}: only after {:?}", b.now.since(began));
        b.run_for(ms(1_000));
        assert_eq!(b.client.poll_timeout(), None, "nothing is left to do");
    }
}

#[test]
fn a_dead_peer_is_noticed_without_data_too() {
    let mut b = connected("cmt");
    b.cut(0);
    b.cut(1);
    let gone = Event::Closed(CloseReason::PeerGone);
    let until = b.now + ms(7_200_000);
    assert!(b.run_until(until, |b| b.client_events.contains(&gone)), "{:?}", b.client_events);
}

#[test]
fn a_blackout_shorter_than_the_limits_ends_no_association() {
    for profile in PROFILES.into_iter().chain(["sctp"]) {
        let mut b = connected(profile);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
        flow.send_to(&mut b, 300);
        b.cut(0);
        b.cut(1);
        b.run_for(ms(7_000));
        b.restore(0);
        b.restore(1);
        let t = flow.transfer(&mut b, 300, ms(120_000));
        assert!(t.is_some(), "{profile}: {} of {}, {:?}", flow.got, flow.sent, b.client_events);
        b.run_for(ms(60_000));
        assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2], "{profile}");
    }
}

#[test]
fn copies_on_all_paths_hide_the_death_of_one() {
    let mut config = assoc_config("cmt");
    config.profile.set(Hook::PathScheduler, "redundant").expect("registered");
    let mut b = connected_with(&config);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.stream(&mut b, ms(20), ms(1_000));
    let before: Vec<u64> = b.assoc(Side::Client).paths().map(|(_, p)| p.counters.data_sent).collect();
    assert_eq!(before, [50_000, 50_000]);
    b.cut(0);
    let until = b.now + ms(1_000);
    while b.now < until {
        flow.send_to(&mut b, flow.sent + 1);
        b.run_for(ms(20));
        flow.check(&mut b);
        assert!(flow.sent - flow.got <= 2, "{} behind at {:?}", flow.sent - flow.got, b.now);
    }
    flow.transfer(&mut b, 2_000, ms(20_000)).expect("arrives");
    assert_ne!(states(&mut b, Side::Client)[0], PathState::Active, "copies do not hide a dead path from us");
}

#[test]
fn nothing_is_sent_on_an_interface_that_is_down() {
    let mut b = connected("cmt");
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 100, ms(5_000)).expect("arrives");
    let now = b.now;
    b.assoc(Side::Client).interface_down(now, LocalId(1));
    b.tap = Some(vec![]);
    flow.stream(&mut b, ms(5), ms(60_000));
    assert!(b.tap.take().expect("tapped").iter().all(|t| t.1 == Side::Server || t.2 == 0));
    let reason = b.client_events.iter().any(|e| {
        matches!(
            e,
            Event::PathChanged { path: PathId(1), reason: PathReason::InterfaceGone, to: PathState::Inactive, .. }
        )
    });
    assert!(reason, "{:?}", b.client_events);
}

#[test]
fn the_end_is_reported_where_an_interface_is_left() {
    let mut b = connected("cmt");
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 10, ms(5_000)).expect("arrives");
    let now = b.now;
    // The server has not noticed: it still speaks to the address that the handshake was made with.
    b.assoc(Side::Client).interface_down(now, LocalId(0));
    b.assoc(Side::Client).shutdown(now);
    let closed = |b: &Bench| b.server_events.iter().any(|e| matches!(e, Event::Closed(_)));
    assert!(b.run_until(now + ms(500), closed), "{:?}", b.server_events);
}
