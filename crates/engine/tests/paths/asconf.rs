//! Addresses come and go (RFC 5061): what the peer asks for, and what we ask.

use crate::common::page::figure;
use crate::common::raw::*;
use crate::common::signed::*;
use crate::common::*;
use anabranch_engine::{AddressError, CloseReason, Event, ListedAddress, LocalId, PathReason, Phase};
use anabranch_policy::view::PathState;
use anabranch_wire::{AsconfAckOut, Cause, Chunk, Parameter, Params, cause_code, kind};

/// Shows: ext/G1.
#[test]
fn the_three_chunks_are_listed_together() {
    let mut r = Raw::new();
    r.connect(&assoc_config("sctp"));
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &offer(&[]))]);
    for sent in r.take() {
        let params = init_of(&sent).1;
        let all = [kind::AUTH, kind::ASCONF, kind::ASCONF_ACK];
        let lists = |p| matches!(p, Parameter::SupportedExtensions(l) if all.iter().all(|k| l.contains(k)));
        assert!(Params::new(&params).iter().flatten().any(lists), "{:?}", sent.kinds());
    }
}

/// Shows: ext/G2.
#[test]
fn unsigned_it_is_dropped_with_all_behind_it() {
    let mut s = Signed::new(&[]);
    let ask = s.chunk(s.serial, &[add(1, WILDCARD)]);
    let ack = bytes(&AsconfAckOut { serial: s.r.first_tsn.0, params: &[] });
    for chunk in [ask, ack] {
        s.r.give(&[&chunk, &data(PEER_TSN, 0, b"behind")]);
        assert!(s.r.take().is_empty() && s.r.read(s.id).is_empty());
    }
    assert_eq!(s.r.phase(s.id), Phase::Established);
}

/// Shows: ext/G7, ext/G8, ext/G9.
#[test]
fn each_serial_is_answered_once_and_the_last_one_again() {
    let mut s = Signed::new(&listing(&[peer(2).ip()]));
    let first =
        s.chunk(PEER_TSN.0, &[prefer(77, peer(2).ip()), prefer(0xdead_beef, peer(9).ip()), prefer(5, WILDCARD)]);
    let sent = s.give(2, &first);
    assert_eq!(answers(&sent), [(77, None), (0xdead_beef, Some(cause_code::UNRESOLVABLE_ADDRESS)), (5, None)]);
    assert_eq!(sent[0].remote, peer(2), "where it came from");
    assert!(sent[0].bytes.len() <= 1_200);
    // Again: the same, and nothing is done a second time.
    s.r.events.clear();
    let again = s.give(1, &first);
    assert_eq!((answers(&again), again[0].remote), (answers(&sent), peer(1)));
    assert!(s.r.events.is_empty());
    for wrong in [PEER_TSN.0.wrapping_sub(1), PEER_TSN.0 + 2, PEER_TSN.0 + 1_000] {
        let chunk = s.chunk(wrong, &[delete(1, peer(2).ip())]);
        assert!(s.give(1, &chunk).is_empty(), "{wrong}");
    }
    let next = s.chunk(PEER_TSN.0 + 1, &[delete(1, peer(2).ip())]);
    assert_eq!(answers(&s.give(1, &next)), [(1, None)]);
    assert!(s.give(1, &first).is_empty(), "no longer remembered");
}

/// Shows: ext/G11, ext/G16.
#[test]
fn an_address_is_added_and_carries_nothing_before_it_is_confirmed() {
    for (from, address) in [(5, WILDCARD), (5, peer(5).ip()), (1, peer(5).ip())] {
        let mut s = Signed::new(&[]);
        let sent = s.ask(from, &[add(1, address)]);
        assert_eq!(answers(&sent), [(1, None)]);
        let mut to_it: Vec<_> = sent.into_iter().filter(|x| x.remote == peer(5)).collect();
        for _ in 0..50 {
            s.r.send(s.id, &[1; 500]);
            to_it.extend(s.r.take().into_iter().filter(|x| x.remote == peer(5)));
        }
        s.r.run_for(ms(900));
        to_it.extend(s.r.take().into_iter().filter(|x| x.remote == peer(5)));
        let kinds: Vec<u8> =
            to_it.iter().flat_map(Sent::kinds).filter(|k| !matches!(*k, kind::AUTH | kind::ASCONF_ACK)).collect();
        assert_eq!(kinds, [kind::HEARTBEAT], "one per RTO");
        let probe = to_it.iter().find(|x| x.kinds().contains(&kind::HEARTBEAT)).expect("a probe").clone();
        s.r.answer_heartbeat(&probe);
        assert!(s.paths().contains(&(peer(5).ip(), PathState::Active)), "{:?}", s.paths());
    }
    // Those that stand for many hosts or none.
    let mut s = Signed::new(&[]);
    for n in ["224.0.0.1", "255.255.255.255"] {
        let sent = s.ask(1, &[add(9, n.parse().expect("an address"))]);
        assert_eq!(answers(&sent), [(9, Some(cause_code::NOT_AUTHORIZED))]);
    }
    assert_eq!(s.paths().len(), 1);
}

/// Shows: ext/G15.
#[test]
fn without_room_it_is_refused_and_so_is_all_behind_it() {
    let mut s = Signed::with(&changed(assoc_config("sctp"), |c| c.limits.max_paths = 3), &listing(&[peer(2).ip()]));
    let sent = s.ask(1, &[add(1, peer(3).ip())]);
    assert_eq!(answers(&sent), [(1, None)]);
    let probe = s.r.run_until_sent(kind::HEARTBEAT, ms(1_000));
    let probe = sent.into_iter().chain(probe).find(|x| x.kinds().contains(&kind::HEARTBEAT)).expect("a probe");
    s.r.answer_heartbeat(&probe);
    let sent = s.ask(1, &[add(2, peer(4).ip()), delete(3, peer(2).ip()), prefer(4, peer(2).ip())]);
    let shortage = Some(cause_code::RESOURCE_SHORTAGE);
    assert_eq!(answers(&sent), [(2, shortage), (3, shortage), (4, None)]);
    assert!(s.paths().iter().any(|p| *p == (peer(2).ip(), PathState::Active)));
}

/// Shows: ext/G13, ext/G14, ext/G16.
#[test]
fn an_address_is_deleted_but_not_the_last_and_not_the_source() {
    let mut s = Signed::new(&[]);
    assert_eq!(answers(&s.ask(1, &[delete(1, peer(1).ip())])), [(1, Some(cause_code::DELETE_LAST_ADDRESS))]);
    let mut s = Signed::new(&listing(&[peer(2).ip(), peer(3).ip()]));
    assert_eq!(answers(&s.ask(1, &[delete(1, peer(1).ip())])), [(1, Some(cause_code::DELETE_SOURCE_ADDRESS))]);
    assert_eq!(answers(&s.ask(1, &[delete(2, peer(2).ip())])), [(2, None)]);
    let gone = |s: &Signed, i: u8| s.paths().contains(&(peer(i).ip(), PathState::Inactive));
    assert!(gone(&s, 2) && !gone(&s, 3) && !gone(&s, 1));
    // Nothing goes there and nothing from there counts.
    let tag = s.r.tag;
    s.r.give_from(peer(2), tag, &[&data(PEER_TSN, 0, b"x")]);
    assert!(s.r.read(s.id).is_empty());
    s.r.run_for(ms(120_000));
    assert!(s.r.take().iter().all(|x| x.remote != peer(2)));
    // The wildcard deletes all but the source, and then that is the last one.
    let mut s = Signed::new(&listing(&[peer(2).ip(), peer(3).ip()]));
    assert_eq!(
        answers(&s.ask(3, &[delete(1, WILDCARD), delete(2, peer(3).ip())])),
        [(1, None), (2, Some(cause_code::DELETE_LAST_ADDRESS))]
    );
    assert!(gone(&s, 1) && gone(&s, 2) && !gone(&s, 3));
}

#[test]
fn the_peers_preference_is_taken() {
    let mut s = Signed::new(&listing(&[peer(2).ip()]));
    s.ask(1, &[prefer(1, peer(2).ip())]);
    assert!(s.r.events_of(s.id).iter().any(|e| matches!(e, Event::PrimaryWanted { .. })));
    s.r.send(s.id, b"x");
    assert_eq!(s.r.take_one().remote, peer(2));
}

/// Shows: ext/G10.
#[test]
fn an_answer_to_nothing_ends_it() {
    for (ahead, ends) in [(0, true), (5, true), ((1 << 31) - 1, true), (1 << 31, false), (u32::MAX, false)] {
        let mut s = Signed::new(&[]);
        let serial = s.r.first_tsn.0.wrapping_add(ahead);
        s.answer_asconf(serial, &[]);
        assert_eq!(s.r.phase(s.id) == Phase::Closed, ends, "{ahead}");
        if ends {
            let sent = s.r.take_one();
            assert!(
                matches!(sent.chunks()[..], [Chunk::Abort(a)] if a.causes.iter().next() == Some(Ok(Cause::IllegalAsconfAck)))
            );
            assert!(matches!(closed(&s.r, s.id), Some(CloseReason::ProtocolViolation(_))));
        }
    }
}

/// Shows: ext/G3, ext/G4, ext/G12, ext/G17.
#[test]
fn our_address_goes_and_the_request_is_repeated_until_it_is_answered() {
    let mut s = Signed::new(&listing(&[peer(2).ip()]));
    let (now, start) = (s.r.now, s.r.now);
    let id = s.id;
    let mut a = s.r.endpoint.association_mut(id).expect("alive");
    assert_eq!(a.delete_address(now, ours(7)), Err(AddressError::Unknown));
    assert_eq!(a.delete_address(now, ours(0)), Ok(()));
    assert_eq!(a.delete_address(now, ours(1)), Err(AddressError::Last));
    assert_eq!(a.prefer_address(now, ours(1)), Ok(()));
    drop(a);
    s.r.drain();
    s.r.run_for(ms(8_000));
    let list = asked(&s.r.take());
    let first = s.r.first_tsn.0;
    assert!(list.len() >= 3 && list.iter().all(|a| (a.1, &a.2) == (first, &list[0].2)), "one at a time, unchanged");
    assert!(list.iter().all(|a| a.0.local == LocalId(1)), "never from what goes");
    let times: Vec<u64> = list.iter().map(|a| a.0.at.since(start).as_millis()).collect();
    assert_eq!(times[..4], [0, 1_000, 3_000, 7_000]);
    assert!(list[0].0.remote != list[1].0.remote, "by another address");
    assert_eq!(Params::new(&list[0].2).iter().collect::<Vec<_>>(), [Ok(delete(first, ours(0)))]);
    let ends =
        |s: &Signed| s.r.endpoint.association(s.id).expect("alive").paths().filter(|(_, p)| p.errors > 0).count();
    assert!(ends(&s) > 0, "errors are counted");
    // An ABORT that comes to it answers something of before.
    let tag = s.r.tag;
    s.r.give_to(LocalId(0), peer(1), tag, &[&chunk(kind::ABORT, 0, &[])]);
    assert_eq!(s.r.phase(s.id), Phase::Established);
    // DATA to it counts until the answer.
    s.r.give_to(LocalId(0), peer(1), tag, &[&data(PEER_TSN, 0, b"late")]);
    assert_eq!(s.r.read(s.id), [b"late"]);
    s.r.take();
    s.answer_asconf(first, &[]);
    let next = asked(&s.r.take());
    assert_eq!(next.len(), 1);
    assert_eq!(
        (next[0].1, Params::new(&next[0].2).iter().next()),
        (first.wrapping_add(1), Some(Ok(prefer(first.wrapping_add(1), ours(1)))))
    );
    s.answer_asconf(first.wrapping_add(1), &[]);
    s.r.run_for(ms(20_000));
    assert!(asked(&s.r.take()).is_empty());
    assert!(s.r.events_of(s.id).iter().any(|e| matches!(e, Event::PathChanged { reason: PathReason::Removed, .. })));
}

/// Shows: ext/G5.
#[test]
fn a_peer_that_lost_its_memory_of_it_is_asked_no_more() {
    let mut s = Signed::new(&[]);
    let now = s.r.now;
    s.r.endpoint.association_mut(s.id).expect("alive").prefer_address(now, ours(1)).expect("taken");
    s.r.drain();
    assert_eq!(asked(&s.r.take()).len(), 1);
    s.r.give(&[&bytes(&anabranch_wire::ErrorOut {
        causes: &bytes(&Cause::UnrecognizedChunk(&[kind::ASCONF, 0, 0, 4])),
    })]);
    s.r.run_for(ms(30_000));
    assert!(asked(&s.r.take()).is_empty());
    let now = s.r.now;
    let again = s.r.endpoint.association_mut(s.id).expect("alive").prefer_address(now, ours(1));
    assert_eq!(again, Err(AddressError::NotSupported));
}

/// Shows: ext/G6.
#[test]
fn nothing_is_asked_before_and_after_its_time() {
    let addresses = vec![ListedAddress { local: LocalId(0), ip: ours(0) }];
    let config = changed(assoc_config("sctp"), |c| c.addresses.listed = addresses);
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let now = r.now;
    let early = r.endpoint.association_mut(id).expect("alive").prefer_address(now, ours(0));
    assert_eq!(early, Err(AddressError::Closed));
    let mut s = Signed::new(&[]);
    s.r.give(&[&chunk(kind::SHUTDOWN, 0, &s.r.first_tsn.minus(1).0.to_be_bytes())]);
    assert!(s.r.take_kinds().concat().contains(&kind::SHUTDOWN_ACK));
    let now = s.r.now;
    let late = s.r.endpoint.association_mut(s.id).expect("alive").prefer_address(now, ours(0));
    assert_eq!(late, Err(AddressError::Closed));
}

/// Shows: ext/G11.
#[test]
fn an_address_of_ours_is_announced_by_a_path_that_the_peer_knows() {
    let own = ours(2);
    for agrees in [true, false] {
        let mut s = Signed::new(&listing(&[peer(2).ip()]));
        let now = s.r.now;
        let added = s.r.endpoint.association_mut(s.id).expect("alive").add_address(now, LocalId(2), own, peer(2));
        let path = added.expect("taken");
        s.r.drain();
        let sent = s.r.take();
        let list = asked(&sent);
        let first = s.r.first_tsn.0;
        assert!(sent.iter().all(|x| x.local != LocalId(2)), "nothing leaves from it before the answer");
        assert_eq!((list.len(), list[0].1), (1, first));
        assert_eq!(Params::new(&list[0].2).iter().collect::<Vec<_>>(), [Ok(add(first, own))]);
        let causes = bytes(&Cause::ResourceShortage(&list[0].2));
        let refusal = bytes(&Parameter::AsconfErrorCause { correlation: first, causes: &causes });
        s.answer_asconf(first, if agrees { &[] } else { &refusal });
        let probe = s.r.take().into_iter().find(|x| x.local == LocalId(2));
        assert_eq!(probe.as_ref().map(|x| (x.remote, x.kinds())), agrees.then(|| (peer(2), vec![kind::HEARTBEAT])));
        if let Some(probe) = probe {
            s.r.answer_heartbeat(&probe);
            let state = s.r.endpoint.association(s.id).expect("alive").paths().find(|p| p.0 == path);
            assert_eq!(state.map(|p| p.1.state), Some(PathState::Active));
        }
        // It can be taken away again, as those of the handshake.
        let now = s.r.now;
        assert_eq!(s.r.endpoint.association_mut(s.id).expect("alive").delete_address(now, own), Ok(()));
    }
}

/// Shows: ext/G12.
#[test]
fn no_address_goes_while_no_other_one_is_confirmed() {
    let mut s = Signed::new(&[]);
    let now = s.r.now;
    let mut a = s.r.endpoint.association_mut(s.id).expect("alive");
    assert!(a.add_address(now, LocalId(2), ours(2), peer(1)).is_ok());
    assert_eq!((a.delete_address(now, ours(1)), a.delete_address(now, ours(0))), (Ok(()), Err(AddressError::Last)));
}

/// Shows: ext/G11.
#[test]
fn an_added_address_is_tried_from_all_our_interfaces() {
    let mut s = Signed::new(&[]);
    let sent = s.ask(1, &[add(1, peer(5).ip())]);
    assert_eq!(answers(&sent), [(1, None)]);
    let mut from = Vec::new();
    for _ in 0..30 {
        s.r.run_for(ms(100));
        for probe in s.r.take().into_iter().filter(|x| x.remote == peer(5)) {
            assert_eq!(probe.kinds(), [kind::HEARTBEAT]);
            // Only the second interface reaches it.
            if probe.local == LocalId(1) {
                s.r.answer_heartbeat(&probe);
            }
            from.push(probe.local);
        }
    }
    assert!(from.contains(&LocalId(0)) && from.contains(&LocalId(1)), "{from:?}");
    let a = s.r.endpoint.association(s.id).expect("alive");
    let state = |local| a.paths().find(|(_, p)| (LocalId(p.local), p.remote) == (local, peer(5))).map(|(_, p)| p.state);
    assert_eq!((state(LocalId(0)), state(LocalId(1))), (Some(PathState::Unconfirmed), Some(PathState::Active)));
    // The next answer goes by the interface that reaches it, whichever the request came by.
    let sent = s.ask(5, &[delete(2, peer(9).ip())]);
    assert_eq!(sent.iter().find(|x| x.kinds().contains(&kind::ASCONF_ACK)).map(|x| x.local), Some(LocalId(1)));
}

/// Deleted and added again, an address is new: what was sent there before proves nothing.
#[test]
fn an_address_that_comes_back_has_to_be_confirmed_again() {
    for confirmed in [false, true] {
        let victim = peer(9).ip();
        let mut s = Signed::new(&if confirmed { listing(&[victim]) } else { Vec::new() });
        s.ask(1, &[add(1, victim), delete(2, victim), add(3, victim)]);
        // The rest goes too, from an address that never answers.
        let sent = s.ask(7, &[add(4, WILDCARD), delete(5, peer(1).ip())]);
        assert_eq!(answers(&sent), [(4, None), (5, None)]);
        s.r.send(s.id, &[1; 1_000]);
        for _ in 0..200 {
            s.r.run_for(ms(100));
            for x in s.r.take() {
                assert!(!x.kinds().contains(&kind::DATA), "{confirmed}: DATA to {}, which never answered", x.remote);
            }
        }
    }
    figure("paths/asconf.rs::an_address_that_comes_back_has_to_be_confirmed_again", "no DATA in 20 s");
}

/// A source that is no path does not take the last one away, and one that adds itself has to answer in time.
#[test]
fn neither_end_is_left_without_an_address_for_good() {
    let mut s = Signed::new(&[]);
    let sent = s.ask(7, &[delete(1, WILDCARD)]);
    assert_eq!(answers(&sent), [(1, Some(cause_code::DELETE_LAST_ADDRESS))]);
    s.ask(7, &[add(2, WILDCARD), delete(3, WILDCARD)]);
    let ended = |s: &Signed| s.r.events.iter().any(|(_, e)| matches!(e, Event::Closed(CloseReason::PeerGone)));
    let mut seconds = 0;
    while !ended(&s) {
        assert!(seconds < 1_000, "{:?}", s.r.events);
        s.r.run_for(ms(1_000));
        seconds += 1;
    }
    let text = format!("closed within {seconds} s");
    figure("paths/asconf.rs::neither_end_is_left_without_an_address_for_good", &text);
}
