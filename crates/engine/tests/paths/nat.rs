//! NATs and what is behind them: ports that are rewritten and change under way, clients that share an address,
//! peers that know no address changes or misunderstand them.

use crate::common::raw::{PEER_TAG, PEER_TSN, Raw, chunk, peer};
use crate::common::*;
use anabranch_engine::{AssocConfig, AssocId, CloseReason, Event};
use anabranch_policy::view::PathState;
use anabranch_sim::LinkConfig;
use anabranch_wire::{AbortOut, CommonHeader, Packet, Verify, kind};
use bytes::Bytes;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

fn two() -> Vec<(LinkConfig, LinkConfig)> {
    vec![(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]
}

/// Two ends with two paths, not run yet.
fn two_ends(config: &AssocConfig, server: &AssocConfig) -> Bench {
    let mut b = Bench::pair(5, config, server);
    for (f, r) in two() {
        b.paths.add(&format!("path{}", b.paths.len()), f, r);
    }
    b.strict = true;
    b.tap = Some(vec![]);
    b
}

fn states(b: &mut Bench, side: Side) -> Vec<PathState> {
    b.assoc(side).paths().map(|(_, p)| p.state).collect()
}

/// Packets of the server with this chunk on path 1 do not arrive there; they are collected.
fn catch(b: &mut Bench, chunk: u8) -> Rc<RefCell<Vec<Bytes>>> {
    let caught = Rc::new(RefCell::new(Vec::new()));
    let into = caught.clone();
    b.filter = Some(Box::new(move |l| {
        let hit = l.from == Side::Server && l.path == 1 && l.has(chunk);
        if hit {
            into.borrow_mut().push(l.bytes.clone());
        }
        !hit
    }));
    caught
}

/// A reflected ABORT, as a host sends it that knows no association for `packet` (RFC 9260 §8.4).
fn abort_for(packet: &[u8]) -> Vec<u8> {
    let h = Packet::parse(packet, Verify::Trusted).expect("a packet").header;
    let mut out = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: h.vtag }.to_bytes().to_vec();
    anabranch_wire::Encode::encode(&AbortOut { tag_reflected: true, causes: &[] }, &mut out);
    out
}

/// usrsctp answers ASCONF towards its primary address, not to where it came from (against RFC 5061 §5.2 E6).
#[test]
fn an_answer_that_comes_by_another_path_counts_for_the_one_that_asked() {
    let config = assoc_config("cmt");
    let mut b = two_ends(&config, &config);
    let caught = catch(&mut b, kind::ASCONF_ACK);
    b.connect(&config);
    let until = b.now + ms(3_000);
    while b.now < until {
        b.run_for(ms(1));
        let all: Vec<Bytes> = caught.borrow_mut().drain(..).collect();
        for packet in all {
            b.inject(Side::Client, 0, &packet);
        }
    }
    assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2]);
    assert_eq!(b.tapped(Side::Client, kind::ASCONF).len(), 1, "asked once");
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
    assert!(b.path(Side::Client, 1).counters.data_sent > 0);
}

/// Likewise when the request was repeated from several paths, so that it is not known which one the answer means.
#[test]
fn answers_that_come_by_another_path_never_make_a_storm() {
    let config = assoc_config("cmt");
    let mut b = Bench::pair(5, &config, &config);
    for i in 0..3 {
        b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
    }
    b.tap = Some(vec![]);
    let caught = Rc::new(RefCell::new(Vec::new()));
    let into = caught.clone();
    b.filter = Some(Box::new(move |l| {
        let hit = l.from == Side::Server && l.has(kind::ASCONF_ACK);
        if hit {
            into.borrow_mut().push((l.now, l.bytes.clone()));
        }
        !hit
    }));
    b.connect(&config);
    let until = b.now + ms(60_000);
    while b.now < until {
        b.run_for(ms(10));
        let now = b.now;
        // Late: each request has left from both paths by then.
        while caught.borrow().first().is_some_and(|(at, _)| now.since(*at) > ms(1_500)) {
            let (_, packet) = caught.borrow_mut().remove(0);
            b.inject(Side::Client, 0, &packet);
        }
    }
    let asked = b.tapped(Side::Client, kind::ASCONF).len();
    assert!(asked < 60, "{asked} requests in a minute");
    assert_eq!(states(&mut b, Side::Client)[0], PathState::Active);
}

/// A peer may say that it learnt an address and not know it afterwards; and at an address that a peer lists there may
/// be a stranger. Both answer a probe with a reflected ABORT.
#[test]
fn an_abort_of_a_host_that_does_not_know_a_path_on_trial_costs_that_path_only() {
    let config = assoc_config("sctp");
    let mut b = two_ends(&config, &config);
    // The nonce never comes back, so the path stays on trial.
    let _caught = catch(&mut b, kind::HEARTBEAT_ACK);
    b.connect(&config);
    let probe = |b: &Bench| b.tapped(Side::Client, kind::HEARTBEAT).into_iter().find(|t| t.2 == 1).map(|t| t.3.clone());
    let until = b.now + ms(3_000);
    assert!(b.run_until(until, |b| probe(b).is_some()), "the second path is probed");
    let abort = abort_for(&probe(&b).expect("a probe"));
    b.inject(Side::Client, 1, &abort);
    b.run_for(ms(10));
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
    b.run_for(ms(60_000));
    assert_eq!(states(&mut b, Side::Client), [PathState::Active, PathState::Unconfirmed]);
    // The server of this test does know it, and its probes are answered; of our own will nothing leaves from there.
    let asked = |t: &&(_, _, _, Bytes)| kinds(&t.3).iter().any(|k| *k != kind::HEARTBEAT_ACK);
    let tap = b.tap.take().expect("tapped");
    assert_eq!(tap.iter().filter(|t| t.1 == Side::Client && t.2 == 1).filter(asked).count(), 0);
}

/// Likewise on a path that answers no more: its address may have changed, or been taken by another host.
#[test]
fn an_abort_on_a_dead_path_ends_the_association_only_when_no_other_answers() {
    let config = assoc_config("cmt");
    for others_live in [true, false] {
        let mut b = two_ends(&config, &config);
        b.connect(&config);
        b.run_for(ms(3_000));
        let mut flow = Flow::new(Side::Client, 0, 900);
        b.cut(1);
        if !others_live {
            b.cut(0);
        }
        flow.stream(&mut b, ms(5), ms(8_000));
        assert_ne!(states(&mut b, Side::Client)[1], PathState::Active);
        let abort = abort_for(&b.tapped(Side::Client, kind::COOKIE_ECHO)[0].3);
        b.inject(Side::Client, 1, &abort);
        b.run_for(ms(1));
        let ended = b.client_events.iter().any(|e| matches!(e, Event::Closed(CloseReason::PeerAborted(_))));
        assert_eq!(ended, !others_live);
        if others_live {
            b.restore(1);
            flow.stream(&mut b, ms(5), ms(20_000));
            assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2]);
        }
    }
}

/// On a path in use it means what it says.
#[test]
fn an_abort_on_a_path_in_use_ends_the_association() {
    let config = assoc_config("cmt");
    for path in [0, 1] {
        let mut b = two_ends(&config, &config);
        b.connect(&config);
        b.run_for(ms(3_000));
        assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2]);
        let abort = abort_for(&b.tapped(Side::Client, kind::COOKIE_ECHO)[0].3);
        b.inject(Side::Client, path, &abort);
        b.run_for(ms(1));
        assert!(
            b.client_events.iter().any(|e| matches!(e, Event::Closed(CloseReason::PeerAborted(_)))),
            "path {path}: {:?}",
            b.client_events
        );
    }
}

/// A relay that gives each of our packets another port, as some load balancers do: the answer goes to the newest.
///
/// Shows: ext/E3.
#[test]
fn a_relay_that_rewrites_the_port_of_every_packet_is_followed() {
    for profile in ["sctp", "live"] {
        let config = assoc_config(profile);
        let mut b = Bench::connected(5, &config, &two()[..1]);
        b.strict = true;
        let mut flow = Flow::new(Side::Client, 0, 900);
        let mut back = Flow::new(Side::Server, 0, 900);
        for round in 0..50 {
            b.nat[0].set_port(20_000 + round);
            flow.send_to(&mut b, flow.sent + 20);
            back.send_to(&mut b, back.sent + 20);
            b.run_for(ms(40));
        }
        flow.transfer(&mut b, 1, ms(20_000)).expect("arrives");
        back.transfer(&mut b, 1, ms(20_000)).expect("arrives");
        let paths: Vec<_> = b.assoc(Side::Server).paths().map(|(_, p)| p.remote).collect();
        assert_eq!(paths, [b.nat[0]], "{profile}: one path all the time");
    }
}

/// Both our paths leave through one NAT and share its address: their ports tell them apart, and a port that changes
/// under way costs one of them a moment, never the other.
#[test]
fn two_paths_behind_one_address_keep_apart_when_a_port_changes() {
    for profile in ["cmt", "live"] {
        let config = assoc_config(profile);
        let mut b = two_ends(&config, &config);
        b.nat[1] = (b.nat[0].ip(), 41_111).into();
        b.connect(&config);
        b.run_for(ms(3_000));
        assert_eq!(states(&mut b, Side::Server), [PathState::Active; 2], "{profile}");
        let mut flow = Flow::new(Side::Client, 0, 900);
        let mut back = Flow::new(Side::Server, 0, 900);
        flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
        b.nat[1].set_port(42_222);
        flow.stream(&mut b, ms(5), ms(20_000));
        back.stream(&mut b, ms(5), ms(20_000));
        flow.transfer(&mut b, 500, ms(20_000)).expect("arrives");
        back.transfer(&mut b, 500, ms(20_000)).expect("arrives");
        // Where the scheduler had no use for the old port, its HEARTBEATs tell.
        b.run_for(ms(120_000));
        assert_eq!(states(&mut b, Side::Client), [PathState::Active; 2], "{profile}");
        let mut active: Vec<_> = b.assoc(Side::Server).paths().map(|(_, p)| (p.state, p.remote)).collect();
        active.retain(|(s, _)| *s == PathState::Active);
        let mut remotes: Vec<_> = active.into_iter().map(|(_, r)| r).collect();
        remotes.sort();
        assert_eq!(remotes, [b.nat[0], b.nat[1]], "{profile}");
    }
}

/// A rebinding NAT while nothing is sent but heartbeats: the next one carries the news.
#[test]
fn an_idle_path_whose_port_changes_is_found_again_by_its_heartbeats() {
    let mut config = assoc_config("cmt");
    config.timers.heartbeat_interval = ms(1_000);
    let mut b = Bench::connected(5, &config, &two()[..1]);
    b.nat[0].set_port(60_001);
    b.run_for(ms(5_000));
    assert_eq!(b.path(Side::Server, 0).remote, b.nat[0]);
    b.to_nowhere = 0;
    let mut back = Flow::new(Side::Server, 0, 900);
    back.transfer(&mut b, 100, ms(5_000)).expect("arrives");
    assert_eq!(b.to_nowhere, 0, "nothing was sent to the port that is gone");
}

/// Two hosts behind one NAT: one address, one SCTP port, distinguished by the UDP ports that the NAT gave them. A port
/// that changes under way is found by the tag and never taken for the neighbour's or for a restart.
#[test]
fn two_clients_behind_one_address_are_two_associations() {
    let port = |p: u16| SocketAddr::new(peer(1).ip(), p);
    let mut r = Raw::new();
    let mut tags = vec![];
    for (i, udp) in [1_001, 1_002].into_iter().enumerate() {
        r.from = port(udp);
        r.handshake(PEER_TAG + i as u32, &[]);
        tags.push(r.tag);
    }
    let ids: Vec<AssocId> = r.endpoint.associations().collect();
    assert_eq!(ids.len(), 2);
    let data = |tsn: u32, ssn: u16| {
        let mut value = tsn.to_be_bytes().to_vec();
        value.extend([0, 0]);
        value.extend(ssn.to_be_bytes());
        value.extend([0; 4]);
        value.extend(b"x");
        chunk(kind::DATA, 3, &value)
    };
    // In turn; then the first NAT entry is made anew, and then the second takes the port that the first had.
    for (round, ports) in [[1_001, 1_002], [1_003, 1_002], [1_003, 1_001]].into_iter().enumerate() {
        for (i, udp) in ports.into_iter().enumerate() {
            r.give_from(port(udp), tags[i], &[&data(PEER_TSN.0 + round as u32, round as u16)]);
            let read = |r: &mut Raw, id| r.endpoint.association_mut(id).expect("alive").recv().is_some();
            assert!(read(&mut r, ids[i]), "round {round}, client {i}");
            assert!(!read(&mut r, ids[1 - i]));
            let remotes: Vec<_> =
                r.endpoint.association(ids[i]).expect("alive").paths().map(|(_, p)| p.remote).collect();
            assert_eq!(remotes, [port(udp)], "round {round}, client {i}");
            r.run_for(ms(300));
            assert!(r.take().iter().all(|s| s.remote == port(udp) && s.vtag() == PEER_TAG + i as u32));
        }
    }
    let ended = |e: &(AssocId, Event)| matches!(e.1, Event::Closed(_) | Event::Restarted);
    assert!(!r.events.iter().any(ended), "{:?}", r.events);
}

/// Without ASCONF, AUTH or both the association lives on its one path, whatever becomes of the others.
#[test]
fn a_peer_without_address_changes_keeps_its_association_and_one_path() {
    let config = assoc_config("cmt");
    let server = changed(config.clone(), |c| c.extensions.dynamic_addresses = false);
    let mut b = two_ends(&config, &server);
    b.connect(&config);
    b.run_for(ms(3_000));
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.stream(&mut b, ms(5), ms(2_000));
    b.cut(1);
    flow.stream(&mut b, ms(5), ms(2_000));
    b.restore(1);
    // The NAT of the one path rebinds: the port may change even towards such a peer.
    b.nat[0].set_port(50_505);
    flow.stream(&mut b, ms(5), ms(2_000));
    // A blackout of the one path cannot be helped by the other, and is survived.
    b.cut(0);
    b.run_for(ms(4_000));
    b.restore(0);
    flow.transfer(&mut b, 100, ms(60_000)).expect("arrives");
    assert_eq!(states(&mut b, Side::Client), [PathState::Active, PathState::Unconfirmed]);
    assert_eq!(b.assoc(Side::Server).paths().count(), 1);
    assert!(b.tap.take().expect("tapped").iter().all(|t| t.2 == 0), "nothing left from the other address");
}

/// A handover: what a further path asks is lost for as long as its network is dead, and its network comes as the one in use
/// goes. The request leaves again as often as a silent path is looked after, whatever its back-off.
#[test]
fn a_path_that_could_not_join_is_used_as_the_others_die() {
    let mut late = vec![];
    for profile in ["live", "low-latency"] {
        for dead in [500, 1_000, 3_000, 7_000, 16_000, 45_000] {
            for paths in [2, 3] {
                let config = changed(assoc_config(profile), |c| c.failure.max_association_retrans = 100);
                let mut b = two_ends(&config, &config);
                for _ in 2..paths {
                    b.paths.add("path2", link(10, 40), link(10, 40));
                }
                (1..paths).for_each(|i| b.cut(i));
                b.connect(&config);
                let mut flow = Flow::new(Side::Client, 0, 900);
                flow.stream(&mut b, ms(20), ms(dead));
                assert_eq!(
                    states(&mut b, Side::Client)[1..],
                    [PathState::Unconfirmed, PathState::Unconfirmed][..paths - 1]
                );
                // The last one comes; a path between stays dead.
                b.restore(paths - 1);
                b.cut(0);
                let from = b.now;
                let took = loop {
                    flow.stream(&mut b, ms(20), ms(20));
                    let took = b.now.since(from);
                    if took > ms(5_000) || b.path(Side::Client, paths - 1).counters.data_sent > 0 {
                        break took;
                    }
                };
                // Until the silence of the one in use is noticed, a round for each path that waits, and its HEARTBEAT.
                if took > ms(1_000) {
                    late.push(format!("{profile} dead {dead} of {paths}: {took}"));
                }
            }
        }
    }
    assert!(late.is_empty(), "{} late:\n{}", late.len(), late.join("\n"));
}

/// A network that wakes up while others carry joins within two seconds and its round trips.
#[test]
fn a_path_whose_network_wakes_joins_within_two_seconds() {
    for profile in ["live", "low-latency", "cmt", "sctp"] {
        for dead in [500, 3_000, 16_000, 45_000] {
            let config = assoc_config(profile);
            let mut b = two_ends(&config, &config);
            b.cut(1);
            b.connect(&config);
            let mut flow = Flow::new(Side::Client, 0, 900);
            flow.stream(&mut b, ms(20), ms(dead));
            b.restore(1);
            flow.stream(&mut b, ms(20), ms(2_200));
            assert_eq!(states(&mut b, Side::Client)[1], PathState::Active, "{profile} {dead}");
        }
    }
}
