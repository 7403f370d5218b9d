//! Addresses that INIT and INIT ACK list: listed, taken as paths, probed (RFC 9260 §5.1.2, §5.4).

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_engine::{AssocConfig, AssocId, Event, ListedAddress, LocalId, PathStats, SendOptions};
use anabranch_policy::view::PathState;
use anabranch_wire::{Chunk, Parameter, Params, kind};
use std::net::IpAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn addresses_in(sent: &Sent) -> Vec<IpAddr> {
    let (_, params) = init_of(sent);
    Params::new(&params).iter().flatten().filter_map(|p| p.address()).collect()
}

fn paths(r: &Raw, id: AssocId) -> Vec<PathStats> {
    r.endpoint.association(id).expect("alive").paths().map(|(_, p)| p).collect()
}

/// Sockets of the test: interface `i` has 198.51.100.`i`.
fn ours(n: u16) -> Vec<ListedAddress> {
    (0..n).map(|i| ListedAddress { local: LocalId(i), ip: IpAddr::from([198, 51, 100, i as u8]) }).collect()
}

fn nonces(sent: &[Sent]) -> Vec<Vec<u8>> {
    let of = |s: &Sent| {
        s.chunks().iter().find_map(|c| match c {
            Chunk::Heartbeat(h) => Some(h.info.to_vec()),
            _ => None,
        })
    };
    sent.iter().filter_map(of).collect()
}

/// Connects to a peer that lists these addresses.
fn connected_to(config: &AssocConfig, listed: &[IpAddr]) -> (Raw, AssocId) {
    let mut r = Raw::with(config, |e| e.accept = false);
    let id = r.connect(config);
    let first = r.take_one();
    r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &listing(listed));
    assert_eq!(r.take_kinds(), [[kind::COOKIE_ECHO]]);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    (r, id)
}

#[test]
fn no_address_is_listed_unless_the_user_names_it() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    r.connect(&config);
    assert_eq!(addresses_in(&r.take_one()), Vec::<IpAddr>::new());
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(init_fields(1), &[])]);
    assert_eq!(addresses_in(&r.take_one()), Vec::<IpAddr>::new());

    let config = changed(config, |c| c.addresses.listed = ours(2));
    let named = [ip("198.51.100.0"), ip("198.51.100.1")];
    let mut r = Raw::with(&config, |_| {});
    r.connect(&config);
    assert_eq!(addresses_in(&r.take_one()), named);
    r.from = peer(9);
    r.give_tagged(0, &[&init(init_fields(1), &[])]);
    assert_eq!(addresses_in(&r.take_one()), named);
}

/// Shows: 9260/A11.
#[test]
fn without_a_list_the_source_is_the_only_address() {
    let mut r = Raw::accepted();
    let id = r.only();
    r.run_for(ms(120_000));
    assert_eq!(paths(&r, id).len(), 1);
    assert_eq!(paths(&r, id)[0].remote, peer(1));
    assert!(r.take().iter().all(|s| s.remote == peer(1)));
}

/// Shows: 9260/A12, 9260/A34.
#[test]
fn the_listed_addresses_and_the_source_are_the_peer() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &listing(&[peer(2).ip(), peer(3).ip(), peer(2).ip()]));
    r.echo(&cookie);
    let sent = r.take();
    assert_eq!(sent[0].remote, peer(1));
    assert_eq!(sent[0].kinds()[0], kind::COOKIE_ACK);
    let id = r.only();
    let remotes: Vec<_> = paths(&r, id).iter().map(|p| p.remote).collect();
    assert_eq!(remotes, [peer(1), peer(2), peer(3)]);
    let states: Vec<_> = paths(&r, id).iter().map(|p| p.state).collect();
    assert_eq!(states, [PathState::Active, PathState::Unconfirmed, PathState::Unconfirmed]);
    r.run_for(ms(100_000));
    for s in r.take() {
        assert!(remotes.contains(&s.remote), "{} was never listed", s.remote);
    }

    // The side that began: what the user named is confirmed, the rest of the list is not.
    let (r, id) = connected_to(&assoc_config("sctp"), &[peer(1).ip(), peer(2).ip()]);
    let seen: Vec<_> = paths(&r, id).iter().map(|p| (p.remote, p.state)).collect();
    assert_eq!(seen, [(peer(1), PathState::Active), (peer(2), PathState::Unconfirmed)]);
}

/// Shows: 9260/A12.
#[test]
fn addresses_that_reach_no_host_or_many_are_not_taken() {
    let bad = [ip("0.0.0.0"), ip("255.255.255.255"), ip("224.0.0.1"), ip("239.1.2.3")];
    let (r, id) = connected_to(&assoc_config("sctp"), &bad);
    assert_eq!(paths(&r, id).len(), 1);
}

/// Shows: 9260/A33, 9260/A35.
#[test]
fn unconfirmed_addresses_get_one_probe_per_rto_and_nothing_else() {
    for profile in ["sctp", "cmt", "low-latency", "live"] {
        probes_of_unconfirmed_addresses(profile);
    }
}

fn probes_of_unconfirmed_addresses(profile: &str) {
    let listed: Vec<IpAddr> = (2..8).map(|i| peer(i).ip()).collect();
    let (mut r, id) = connected_to(&assoc_config(profile), &listed);
    let began = r.now;
    let mut seen = vec![];
    for _ in 0..80 {
        let now = r.now;
        let mut a = r.endpoint.association_mut(id).expect("alive");
        let _ = a.send(now, SendOptions::default(), vec![1; 1_000].into());
        drop(a);
        r.drain();
        r.run_for(ms(100));
        for s in r.take() {
            if s.remote == peer(1) {
                continue;
            }
            assert_eq!(s.kinds(), [kind::HEARTBEAT], "to the unconfirmed {}", s.remote);
            let info = nonces(std::slice::from_ref(&s)).remove(0);
            assert!(info.len() >= 8, "a nonce has 64 bits");
            assert!(!seen.contains(&info), "the nonce is new each time");
            seen.push(info);
        }
    }
    let rounds = r.now.since(began).as_millis() / 1_000;
    assert!((4..=rounds as usize + 1).contains(&seen.len()), "{profile}: {} probes in {rounds} RTOs", seen.len());
    // They count on the paths only: the association lives although far more than its limit went unanswered.
    assert!(r.endpoint.association(id).is_some());
}

/// Shows: 9260/A33, 9260/A35.
#[test]
fn only_the_nonce_of_the_address_confirms_it() {
    let (mut r, id) = connected_to(&assoc_config("sctp"), &[peer(2).ip(), peer(3).ip()]);
    let probe = r.run_until_sent(kind::HEARTBEAT, ms(5_000)).expect("a probe");
    let target = probe.remote;
    assert_ne!(target, peer(1));
    let state = |r: &Raw| paths(r, id).iter().find(|p| p.remote == target).expect("a path").state;
    let mut info = nonces(std::slice::from_ref(&probe)).remove(0);
    let ack = |info: &[u8]| bytes(&anabranch_wire::HeartbeatAck { info, params_raw: &[] });
    for at in [0, info.len() - 1] {
        let mut wrong = info.clone();
        wrong[at] ^= 3;
        r.give(&[&ack(&wrong)]);
        assert_eq!(state(&r), PathState::Unconfirmed);
    }
    // The right one counts wherever it comes from: it was sent to that address only.
    r.give(&[&ack(&info)]);
    assert_eq!(state(&r), PathState::Active);
    info.rotate_left(1);
    r.give(&[&ack(&info)]);
    let confirmed = |e: &Event| matches!(e, Event::PathChanged { to: PathState::Active, .. });
    assert_eq!(r.events_of(id).iter().filter(|e| confirmed(e)).count(), 2, "the first and this one");
}

/// Shows: 9260/A35.
#[test]
fn an_address_that_never_answers_is_asked_less_often_and_costs_nothing_else() {
    let (mut r, id) = connected_to(&assoc_config("sctp"), &[peer(2).ip()]);
    // The address in use is answered all the time.
    let probes_of = |r: &mut Raw, seconds: u64| {
        let mut n = 0;
        for _ in 0..seconds {
            r.run_for(ms(1_000));
            for s in r.take().iter().filter(|s| s.kinds() == [kind::HEARTBEAT]) {
                match s.remote == peer(1) {
                    true => r.answer_heartbeat(s),
                    false => n += 1,
                }
            }
        }
        n
    };
    assert!(probes_of(&mut r, 10) >= 3);
    let late = probes_of(&mut r, 600);
    assert!((3..=25).contains(&late), "{late} probes in ten minutes");
    let p = &paths(&r, id)[1];
    assert!(p.errors > 5 && p.state == PathState::Unconfirmed, "{p:?}");
    assert_eq!(r.endpoint.association(id).expect("alive").phase(), anabranch_engine::Phase::Established);
}

/// Shows: 9260/A14.
#[test]
fn addresses_of_another_family_are_ignored() {
    let listed = [ip("2001:db8::1"), peer(2).ip(), ip("2001:db8::2"), peer(3).ip()];
    let (mut r, id) = connected_to(&assoc_config("sctp"), &listed);
    let remotes: Vec<_> = paths(&r, id).iter().map(|p| p.remote).collect();
    assert_eq!(remotes, [peer(1), peer(2), peer(3)]);
    r.run_for(ms(10_000));
    assert!(r.take().iter().all(|s| !s.kinds().contains(&kind::ERROR) && !s.kinds().contains(&kind::ABORT)));

    let mut r = Raw::new();
    r.handshake(PEER_TAG, &listing(&listed));
    assert_eq!(paths(&r, r.only()).len(), 3);
}

/// Shows: 9260/A15.
#[test]
fn a_family_that_the_peer_uses_is_supported_whatever_it_says() {
    let v6 = ip("2001:db8::7");
    let both = changed(assoc_config("sctp"), |c| {
        c.addresses.listed = [ours(1), vec![ListedAddress { local: LocalId(1), ip: v6 }]].concat()
    });
    let only = |family: u16| bytes(&Parameter::SupportedAddressTypes(&family.to_be_bytes()));
    let named = |params: &[u8]| {
        let mut r = Raw::with(&both, |_| {});
        r.give_tagged(0, &[&init(init_fields(1), params)]);
        addresses_in(&r.take_one())
    };
    let v4 = ip("198.51.100.0");
    // It sends from IPv4, and claims to know only IPv6, or only IPv4, or nothing.
    assert_eq!(named(&only(6)), [v4, v6]);
    assert_eq!(named(&only(5)), [v4]);
    assert_eq!(named(&[]), [v4, v6]);
    // Or lists an address of the family that it does not name.
    let list = [only(5), listing(&[ip("2001:db8::1")])].concat();
    assert_eq!(named(&list), [v4, v6]);
}

#[test]
fn each_interface_uses_one_pair_and_keeps_the_others_warm() {
    let config = changed(assoc_config("cmt"), |c| {
        c.addresses.listed = ours(2);
        c.timers.heartbeat_max_burst = 8;
    });
    let (mut r, id) = connected_to(&config, &[peer(1).ip(), peer(2).ip()]);
    let pairs: Vec<_> = paths(&r, id).iter().map(|p| (p.local, p.remote)).collect();
    assert_eq!(pairs, [(0, peer(1)), (1, peer(2)), (0, peer(2)), (1, peer(1))]);
    r.run_for(ms(1));
    let mut confirmed = vec![];
    for s in r.take().iter().filter(|s| s.kinds() == [kind::HEARTBEAT]) {
        r.answer_heartbeat(s);
        confirmed.push((s.local.0, s.remote));
    }
    assert_eq!(confirmed, pairs[1..]);
    assert!(paths(&r, id).iter().all(|p| p.state == PathState::Active));
    assert_eq!(paths(&r, id).iter().map(|p| p.standby).collect::<Vec<_>>(), [false, false, true, true]);
    r.take();
    let now = r.now;
    for _ in 0..20 {
        let mut a = r.endpoint.association_mut(id).expect("alive");
        a.send(now, SendOptions::default(), vec![1; 1_000].into()).expect("room");
    }
    r.drain();
    let used: std::collections::BTreeSet<_> = r.take().iter().map(|s| (s.local.0, s.remote)).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), [(0, peer(1)), (1, peer(2))]);
}

#[test]
fn an_interface_whose_pair_never_answers_uses_another() {
    let config = changed(assoc_config("cmt"), |c| {
        c.addresses.listed = ours(2);
        c.timers.heartbeat_max_burst = 8;
    });
    let (mut r, id) = connected_to(&config, &[peer(1).ip(), peer(2).ip()]);
    r.run_for(ms(1));
    // From interface 1 only the peer's first address is reached.
    for s in r.take().iter().filter(|s| s.local == LocalId(1) && s.remote == peer(1)) {
        r.answer_heartbeat(s);
    }
    r.take();
    let now = r.now;
    for _ in 0..20 {
        let mut a = r.endpoint.association_mut(id).expect("alive");
        a.send(now, SendOptions::default(), vec![1; 1_000].into()).expect("room");
    }
    r.drain();
    let used: std::collections::BTreeSet<_> = r.take().iter().map(|s| (s.local.0, s.remote)).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), [(0, peer(1)), (1, peer(1))]);
}

/// What the user named joins without ASCONF when our list tells of its interface.
#[test]
fn a_path_that_the_user_named_is_probed_at_once() {
    let config = changed(assoc_config("cmt"), |c| c.addresses.listed = ours(2));
    for listed in [vec![], vec![peer(1).ip(), peer(2).ip()]] {
        let mut r = Raw::with(&config, |e| e.accept = false);
        let id = r.connect(&config);
        let now = r.now;
        r.endpoint.association_mut(id).expect("alive").add_path(now, LocalId(1), peer(2));
        let first = r.take_one();
        r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &listing(&listed));
        r.take();
        r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
        let sent = r.take();
        let probe = sent.iter().find(|s| s.local == LocalId(1)).expect("a probe");
        assert_eq!((probe.remote, probe.kinds()), (peer(2), vec![kind::HEARTBEAT]));
        r.answer_heartbeat(probe);
        let used = paths(&r, id).into_iter().find(|p| p.local == 1 && p.remote == peer(2)).expect("a path");
        assert_eq!(used.state, PathState::Active);
    }
    // Later, too.
    let (mut r, id) = connected_to(&changed(assoc_config("cmt"), |c| c.addresses.listed = ours(3)), &[]);
    r.run_for(ms(1));
    r.take();
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").add_path(now, LocalId(2), peer(4));
    r.drain();
    let probe = r.take_one();
    assert_eq!((probe.local, probe.remote, probe.kinds()), (LocalId(2), peer(4), vec![kind::HEARTBEAT]));
}

/// A connected pair of addresses, both confirmed.
fn two_confirmed() -> (Raw, AssocId) {
    let (mut r, id) = connected_to(&assoc_config("sctp"), &[peer(1).ip(), peer(2).ip()]);
    let probe = r.run_until_sent(kind::HEARTBEAT, ms(5_000)).expect("a probe");
    assert_eq!(probe.remote, peer(2));
    r.answer_heartbeat(&probe);
    r.take();
    (r, id)
}

fn has_data(s: &Sent) -> bool {
    s.kinds().contains(&kind::DATA)
}

#[test]
fn data_leaves_for_the_first_address_and_moves_when_that_is_silent() {
    let (mut r, id) = two_confirmed();
    r.send(id, b"one");
    assert!(r.take().iter().filter(|s| has_data(s)).all(|s| s.remote == peer(1)));
    // Nothing comes back: what timed out is tried at the other address (§6.4.1).
    r.run_for(ms(1_100));
    let again = r.take().into_iter().find(has_data).expect("T3");
    assert_eq!(again.remote, peer(2));
    r.give_from(peer(2), r.tag, &[&sack(r.first_tsn)]);
    // Six losses in a row and the first is not used any more (Path.Max.Retrans).
    let mut newest = r.first_tsn;
    for _ in 0..6 {
        r.send(id, b"more");
        newest = newest.next();
        let moved = |r: &mut Raw| r.take().iter().any(|s| has_data(s) && s.remote == peer(2));
        while !moved(&mut r) {
            r.run_for(ms(100));
        }
        r.give_from(peer(2), r.tag, &[&sack(newest)]);
    }
    assert_ne!(paths(&r, id)[0].state, PathState::Active);
    r.send(id, b"elsewhere");
    let sent: Vec<_> = r.take().into_iter().filter(has_data).map(|s| s.remote).collect();
    assert_eq!(sent, [peer(2)]);
}

#[test]
fn acknowledgements_go_back_to_a_confirmed_address_only() {
    // From the second address while it is not confirmed: taken, and acknowledged to the first.
    let (mut r, id) = connected_to(&assoc_config("sctp"), &[peer(1).ip(), peer(2).ip()]);
    r.run_for(ms(1));
    r.take();
    r.give_from(peer(2), r.tag, &[&data(PEER_TSN, 0, b"one")]);
    assert_eq!(r.read(id), [b"one"]);
    let answer = r.take_one();
    assert_eq!((answer.remote, answer.kinds()), (peer(1), vec![kind::SACK]));
    // A HEARTBEAT is answered where it came from (§5.4).
    r.give_from(peer(2), r.tag, &[&bytes(&anabranch_wire::Heartbeat::new(&[1; 8]))]);
    let answer = r.take_one();
    assert_eq!((answer.remote, answer.kinds()), (peer(2), vec![kind::HEARTBEAT_ACK]));
    // Confirmed, it gets what it asked for.
    let (mut r, id) = two_confirmed();
    r.give_from(peer(2), r.tag, &[&data(PEER_TSN, 0, b"one")]);
    let answer = r.take_one();
    assert_eq!((answer.remote, answer.kinds()), (peer(2), vec![kind::SACK]));
    assert_eq!(r.read(id), [b"one"]);
}
