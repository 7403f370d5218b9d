//! The peer loses its memory and begins anew (RFC 9260 §5.2.2, §5.2.4 A).

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_base::{Ssn, StreamId, Tsn};
use anabranch_engine::{AssocId, CloseReason, Event, ListedAddress, LocalId, Part, PathStats, Phase};
use anabranch_policy::view::PathState;
use anabranch_wire::{Data, DataFlags, DataHeader, InitFields, cause_code, kind};

/// The restarted peer's tag.
const NEW_TAG: u32 = 0x7e57_0002;

/// An association that carried data both ways and whose congestion window has moved.
fn used() -> (Raw, AssocId) {
    let mut r = Raw::accepted();
    let id = r.only();
    for i in 0..3 {
        r.give(&[&data(PEER_TSN.plus(i), i as u16, b"from the peer")]);
        r.run_for(ms(300));
    }
    for _ in 0..8 {
        r.send(id, &[7; 1_000]);
    }
    r.run_for(ms(50));
    for _ in 0..20 {
        let newest = r.take().iter().flat_map(tsns).max_by_key(|t| t.0);
        if let Some(t) = newest {
            r.give(&[&sack(t)]);
        }
        r.run_for(ms(20));
    }
    r.read(id);
    r.take();
    r.events.clear();
    (r, id)
}

fn tsns(s: &Sent) -> Vec<Tsn> {
    let of = |c: &anabranch_wire::Chunk<'_>| match c {
        anabranch_wire::Chunk::Data(d) => Some(d.header.tsn),
        _ => None,
    };
    s.chunks().iter().filter_map(of).collect()
}

fn path(r: &Raw, id: AssocId) -> PathStats {
    r.endpoint.association(id).expect("alive").paths().next().expect("a path").1
}

/// An INIT of the restarted peer; its answer.
fn begin_anew(r: &mut Raw) -> Sent {
    let fields = InitFields { initial_tsn: Tsn(500_000), ..init_fields(NEW_TAG) };
    r.give_tagged(0, &[&init(fields, &[])]);
    r.take_one()
}

/// Shows: 9260/A23, 9260/A26, 9260/A32.
#[test]
fn a_restart_takes_the_association_back_to_its_beginning() {
    let (mut r, id) = used();
    let (old_tag, before) = (r.tag, path(&r, id));
    assert!(before.srtt > ms(0) && before.counters.data_sent > 0);
    let answer = begin_anew(&mut r);
    assert_eq!((answer.kinds(), answer.vtag()), (vec![kind::INIT_ACK], NEW_TAG));
    let ours = init_of(&answer).0;
    assert_ne!(ours.tag, old_tag, "a new tag");
    // The association is as it was: it takes and sends with the old tags.
    assert!(r.events.is_empty());
    r.give(&[&data(PEER_TSN.plus(3), 3, b"the old one lives")]);
    r.run_for(ms(300));
    assert_eq!(r.read(id), [b"the old one lives"]);
    r.send(id, b"on its way");
    assert!(r.take().iter().all(|s| s.vtag() == PEER_TAG));

    r.tag = ours.tag;
    r.echo(&cookie_of(&answer));
    let sent = r.take();
    assert_eq!((sent[0].kinds(), sent[0].vtag()), (vec![kind::COOKIE_ACK], NEW_TAG));
    assert_eq!((r.only(), r.phase(id)), (id, Phase::Established));
    assert_eq!(r.events_of(id).iter().filter(|e| **e == Event::Restarted).count(), 1);
    assert!(!r.events.iter().any(|(_, e)| matches!(e, Event::Closed(_) | Event::Connected)));
    let after = path(&r, id);
    assert_eq!((after.srtt, after.ssthresh), (ms(0), u64::from(u32::MAX)));
    assert_eq!((after.in_flight, after.errors), (0, 0));

    // Numbers begin again, both ways.
    r.give(&[&data(Tsn(500_000), 0, b"new")]);
    assert_eq!(r.take_one().kinds(), [kind::SACK], "the first DATA is acknowledged at once");
    assert_eq!(r.read(id), [b"new"]);
    r.send(id, b"anew");
    let first = r.take_one();
    assert_eq!((tsns(&first), first.vtag()), (vec![ours.initial_tsn], NEW_TAG));
    // The old tag is a wrong one, which is dropped without a word: an ABORT could end what has just begun (§8.5).
    r.give_tagged(old_tag, &[&data(PEER_TSN.plus(4), 4, b"late")]);
    assert!(r.take().is_empty());
}

/// Shows: 9260/A26.
#[test]
fn the_window_after_a_restart_is_the_initial_one() {
    let fresh = {
        let r = Raw::accepted();
        path(&r, r.only()).cwnd
    };
    let (mut r, id) = used();
    assert_ne!(path(&r, id).cwnd, fresh, "the window has moved");
    let answer = begin_anew(&mut r);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    assert_eq!(path(&r, id).cwnd, fresh);
}

#[test]
fn what_waits_to_be_read_survives_and_what_was_never_acknowledged_does_not() {
    let (mut r, id) = used();
    r.give(&[&data(PEER_TSN.plus(3), 3, b"unread")]);
    r.send(id, b"lost");
    r.take();
    let answer = begin_anew(&mut r);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    r.give(&[&data(Tsn(500_000), 0, b"new")]);
    assert_eq!(r.read(id), [b"unread".to_vec(), b"new".to_vec()]);
    r.take();
    r.run_for(ms(10_000));
    assert!(r.take().iter().all(|s| tsns(s).is_empty()), "nothing old is sent again");
}

#[test]
fn of_a_message_that_came_in_parts_no_more_comes() {
    let config = changed(assoc_config("sctp"), |c| {
        c.limits.receive_buffer = 10_000;
        c.messages.partial_delivery = true;
    });
    let mut r = Raw::with(&config, |_| {});
    r.handshake(PEER_TAG, &[]);
    let id = r.only();
    for i in 0..20 {
        let flags = DataFlags { immediate: false, unordered: false, begin: i == 0, end: false };
        let header = DataHeader { tsn: PEER_TSN.plus(i), stream: StreamId(0), ssn: Ssn(0), ppid: 0, flags };
        r.give(&[&bytes(&Data { header, payload: &[7; 1_000] })]);
    }
    r.take();
    let answer = begin_anew(&mut r);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    r.give(&[&data(Tsn(500_000), 0, b"new")]);
    let mut a = r.endpoint.association_mut(id).expect("alive");
    let parts: Vec<_> = std::iter::from_fn(|| a.recv()).map(|m| m.part).collect();
    assert_eq!(parts, [Part::More, Part::Abandoned, Part::Whole]);
}

/// Shows: 9260/A23, 9260/V6.
#[test]
fn a_restart_must_not_add_addresses() {
    let (mut r, id) = used();
    let list = listing(&[peer(1).ip(), peer(8).ip(), peer(9).ip()]);
    r.give_tagged(0, &[&init(init_fields(NEW_TAG), &list)]);
    let answer = r.take_one();
    assert_eq!((answer.kinds(), answer.vtag(), answer.flags() & 1), (vec![kind::ABORT], NEW_TAG, 0));
    assert_eq!(causes_of(&answer), [(cause_code::RESTART_NEW_ADDRESSES, listing(&[peer(8).ip(), peer(9).ip()]))]);
    assert!(r.events.is_empty());
    r.give(&[&data(PEER_TSN.plus(3), 3, b"untouched")]);
    assert_eq!(r.read(id), [b"untouched"]);
}

/// Shows: 9260/A13.
#[test]
fn any_listed_address_finds_the_association() {
    let (mut r, id) = used();
    // From elsewhere, but naming the association's address: a restart that would add the source.
    let list = listing(&[peer(1).ip()]);
    r.give_from(peer(9), 0, &[&init(init_fields(NEW_TAG), &list)]);
    let answer = r.take_one();
    assert_eq!((answer.remote, answer.kinds()), (peer(9), vec![kind::ABORT]));
    assert_eq!(causes_of(&answer), [(cause_code::RESTART_NEW_ADDRESSES, listing(&[peer(9).ip()]))]);
    assert_eq!(r.phase(id), Phase::Established);
    // Without the list it is a stranger.
    r.give_from(peer(9), 0, &[&init(init_fields(NEW_TAG), &[])]);
    assert_eq!(r.take_one().kinds(), [kind::INIT_ACK]);

    // Both sides in the process of being connected: the INIT of the other one names the address we call.
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |_| {});
    r.connect(&config);
    let ours = init_of(&r.take_one()).0;
    r.give_from(peer(2), 0, &[&init(init_fields(PEER_TAG), &list)]);
    assert_eq!(init_of(&r.take_one()).0.tag, ours.tag, "answered as a collision");
}

/// Shows: 9260/A13, 9260/A23.
#[test]
fn a_restart_from_another_known_address_is_one() {
    let mut r = Raw::new();
    r.handshake(PEER_TAG, &listing(&[peer(2).ip()]));
    let id = r.only();
    r.take();
    r.from = peer(2);
    let answer = begin_anew(&mut r);
    assert_eq!((answer.remote, answer.kinds()), (peer(2), vec![kind::INIT_ACK]));
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    assert_eq!(r.take()[0].remote, peer(2));
    assert!(r.events_of(id).contains(&Event::Restarted));
    let paths: Vec<_> = r.endpoint.association(id).expect("alive").paths().map(|(_, p)| p.remote).collect();
    assert_eq!(paths, [peer(2)], "the INIT named no other");
}

/// Shows: 9260/X9.
#[test]
fn an_init_while_we_wait_for_shutdown_complete_is_dropped() {
    let (mut r, id) = used();
    let cum_tsn = newest(&mut r, id);
    r.give(&[&bytes(&anabranch_wire::Shutdown { cum_tsn })]);
    assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_ACK]);
    r.give_tagged(0, &[&init(init_fields(NEW_TAG), &[])]);
    let again = r.take_one();
    assert_eq!((again.kinds(), again.vtag()), (vec![kind::SHUTDOWN_ACK], PEER_TAG));
    assert_eq!(r.phase(id), Phase::Closing);
    // Also when another address is the source and the list names this one.
    let list = listing(&[peer(1).ip()]);
    r.give_from(peer(9), 0, &[&init(init_fields(NEW_TAG), &list)]);
    assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_ACK]);
}

/// The newest TSN the endpoint used: the one before its next.
fn newest(r: &mut Raw, id: AssocId) -> Tsn {
    r.send(id, b"probe");
    let last = r.take().iter().flat_map(tsns).last().expect("DATA");
    r.give(&[&sack(last)]);
    r.take();
    last
}

/// Shows: 9260/A26.
#[test]
fn no_restart_while_we_wait_for_shutdown_complete() {
    let (mut r, id) = used();
    let answer = begin_anew(&mut r);
    let last = newest(&mut r, id);
    r.give(&[&bytes(&anabranch_wire::Shutdown { cum_tsn: last })]);
    assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_ACK]);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    let sent = r.take_one();
    assert_eq!(sent.kinds(), [kind::SHUTDOWN_ACK, kind::ERROR]);
    assert_eq!(causes_of(&sent), [(cause_code::COOKIE_WHILE_SHUTTING_DOWN, vec![])]);
    assert_eq!((r.only(), r.phase(id)), (id, Phase::Closing));
    assert!(!r.events_of(id).contains(&Event::Restarted));
    // The peer answers as §8.4 says, and then its cookie begins a new association.
    let complete = bytes(&anabranch_wire::ShutdownComplete { tag_reflected: true });
    r.give_tagged(PEER_TAG, &[&complete]);
    assert_eq!(r.phase(id), Phase::Closed);
    r.echo(&cookie_of(&answer));
    assert_eq!(r.take()[0].kinds(), [kind::COOKIE_ACK]);
}

/// Shows: 9260/A26.
#[test]
fn a_restart_ends_a_shutdown_that_is_under_way() {
    for which in ["pending", "sent", "received"] {
        let (mut r, id) = used();
        let cookie = cookie_of(&{
            let answer = begin_anew(&mut r);
            r.take();
            answer
        });
        let old = r.tag;
        match which {
            "pending" => {
                r.send(id, b"outstanding");
                r.shutdown(id);
            }
            "sent" => r.shutdown(id),
            _ => {
                let last = newest(&mut r, id);
                r.send(id, b"outstanding");
                r.give(&[&bytes(&anabranch_wire::Shutdown { cum_tsn: last })]);
            }
        }
        assert_eq!(r.phase(id), Phase::Closing, "{which}");
        r.take();
        r.tag = u32::from_be_bytes([cookie[18], cookie[19], cookie[20], cookie[21]]);
        assert_ne!(r.tag, old);
        r.echo(&cookie);
        assert_eq!(r.take()[0].kinds(), [kind::COOKIE_ACK], "{which}");
        assert_eq!(r.phase(id), Phase::Established, "{which}");
        r.send(id, b"new");
        assert_eq!(r.take()[0].vtag(), NEW_TAG);
    }
}

#[test]
fn a_cookie_restarts_once() {
    let (mut r, id) = used();
    let (one, two) = (begin_anew(&mut r), begin_anew(&mut r));
    r.tag = init_of(&one).0.tag;
    r.echo(&cookie_of(&one));
    assert_eq!(r.take()[0].kinds(), [kind::COOKIE_ACK]);
    let tag = r.tag;
    // The other INIT came while the association of before lived: its Tie-Tags are gone.
    r.tag = init_of(&two).0.tag;
    r.echo(&cookie_of(&two));
    assert!(r.take().is_empty());
    r.tag = tag;
    assert_eq!(r.events_of(id).iter().filter(|e| **e == Event::Restarted).count(), 1);
    // The first one again is a repetition.
    r.echo(&cookie_of(&one));
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    assert_eq!(r.events_of(id).iter().filter(|e| **e == Event::Restarted).count(), 1);
}

/// For users to whom an association is a session.
#[test]
fn a_restart_may_end_the_association_and_begin_another() {
    let mut r = Raw::with(&assoc_config("sctp"), |e| e.restart_keeps_id = false);
    r.handshake(PEER_TAG, &[]);
    let id = r.only();
    r.give(&[&data(PEER_TSN, 0, b"unread")]);
    r.take();
    let answer = begin_anew(&mut r);
    let old_tag = r.tag;
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    let sent = r.take();
    assert_eq!(sent.iter().flat_map(Sent::kinds).collect::<Vec<_>>(), [kind::COOKIE_ACK], "and no ABORT");
    assert!(r.events_of(id).contains(&Event::Closed(CloseReason::PeerRestarted)));
    assert_eq!(r.read(id), [b"unread"], "what had arrived can still be read");
    r.drain();
    let other = r.only();
    assert_ne!(other, id);
    assert!(r.events_of(other).contains(&Event::Connected));
    r.give(&[&data(Tsn(500_000), 0, b"new")]);
    assert_eq!(r.read(other), [b"new"]);
    r.take();
    r.give_tagged(old_tag, &[&data(PEER_TSN.plus(1), 1, b"late")]);
    assert!(r.take().is_empty(), "the peer is known, its tag is wrong");
    // And once more: the new one is as good as the old.
    let cookie = r.ask(NEW_TAG + 1, &[]);
    r.echo(&cookie);
    assert!(r.events_of(other).contains(&Event::Closed(CloseReason::PeerRestarted)));
}

#[test]
fn our_other_interfaces_join_again_after_a_restart() {
    let addresses = (0..2).map(|i| ListedAddress { local: LocalId(i), ip: [198, 51, 100, i as u8].into() }).collect();
    let config = changed(assoc_config("cmt"), |c| {
        c.addresses.listed = addresses;
        c.timers.heartbeat_max_burst = 4;
    });
    let mut r = Raw::with(&config, |_| {});
    r.handshake(PEER_TAG, &[]);
    let id = r.only();
    let answer = begin_anew(&mut r);
    r.tag = init_of(&answer).0.tag;
    r.echo(&cookie_of(&answer));
    let probe = r.take().into_iter().find(|s| s.local == LocalId(1));
    let probe = match probe {
        Some(p) => p,
        None => r.run_until_sent(kind::HEARTBEAT, ms(2_000)).expect("a probe"),
    };
    assert_eq!((probe.local, probe.kinds()), (LocalId(1), vec![kind::HEARTBEAT]));
    r.answer_heartbeat(&probe);
    let states: Vec<_> = r.endpoint.association(id).expect("alive").paths().map(|(_, p)| (p.local, p.state)).collect();
    assert_eq!(states, [(0, PathState::Active), (1, PathState::Active)]);
}

/// Both ends are ours, and one of them is started again.
#[test]
fn a_program_that_starts_again_reaches_its_peer_at_once() {
    use anabranch_base::{Instant, RandomStream};
    use anabranch_engine::{Endpoint, EndpointConfig, SendOptions, Transmit};
    use anabranch_wire::Verify;
    use bytes::Bytes;
    let config = assoc_config("cmt");
    let make = |seed| {
        let mut c = EndpointConfig::new(crate::common::PORT, config.clone());
        c.accept = true;
        Endpoint::new(c, Box::new(RandomStream::named(seed, "end")), Instant::from_millis(1_000))
    };
    let at = |i: usize| std::net::SocketAddr::from(([192, 0, 2, i as u8], 9_899));
    let mut now = Instant::from_millis(1_000);
    let mut server = make(1);
    let mut events = vec![];
    for run in 0..3u8 {
        let mut client = make(2 + u64::from(run));
        let id = client.connect(now, config.clone(), LocalId(0), at(2), crate::common::PORT).expect("a profile");
        let mut connected = false;
        for _ in 0..10 {
            for side in 0..2 {
                let mut t = Transmit::default();
                let e = if side == 0 { &mut client } else { &mut server };
                let mut out = vec![];
                while e.poll_transmit(now, &mut t) {
                    let mut bytes = vec![];
                    t.packet.write_to(&mut bytes);
                    out.push(Bytes::from(bytes));
                }
                let to = if side == 0 { &mut server } else { &mut client };
                out.iter().for_each(|b| to.handle(now, LocalId(0), at(1 + side), b, Verify::Checksum));
            }
            while let Some((_, e)) = client.poll_event() {
                connected |= e == Event::Connected;
            }
            while let Some((_, e)) = server.poll_event() {
                events.push(e);
            }
            if connected {
                let mut a = client.association_mut(id).expect("alive");
                a.send(now, SendOptions::default(), Bytes::from(vec![run; 10])).expect("taken");
                connected = false;
            }
            now += ms(10);
        }
        assert_eq!(server.associations().count(), 1, "run {run}");
    }
    assert_eq!(events.iter().filter(|e| **e == Event::Connected).count(), 1);
    assert_eq!(events.iter().filter(|e| **e == Event::Restarted).count(), 2);
    let id = server.associations().next().expect("one");
    let mut a = server.association_mut(id).expect("alive");
    let got: Vec<_> = std::iter::from_fn(|| a.recv()).map(|m| m.payload.into_bytes()[0]).collect();
    assert_eq!(got, [0, 1, 2], "one message of each run");
}
