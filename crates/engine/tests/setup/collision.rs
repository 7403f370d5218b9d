//! Both sides begin at the same time (RFC 9260 §5.2.1, §5.2.4 B to D).

use crate::common::raw::*;
use crate::common::{PORT, assoc_config, ms};
use anabranch_base::{Instant, RandomStream, Tsn};
use anabranch_engine::{AssocId, Endpoint, EndpointConfig, Event, LocalId, Phase, SendOptions, Transmit};
use anabranch_wire::{Verify, cause_code, kind};
use bytes::Bytes;
use std::net::SocketAddr;

/// An endpoint in COOKIE-WAIT, and its INIT.
fn waiting() -> (Raw, AssocId, Sent) {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let sent = r.take_one();
    (r, id, sent)
}

/// One in COOKIE-ECHOED.
fn echoed() -> (Raw, AssocId, Sent) {
    let (mut r, id, ours) = waiting();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ECHO]);
    (r, id, ours)
}

fn connected(r: &Raw, id: AssocId) -> usize {
    r.events_of(id).iter().filter(|e| **e == Event::Connected).count()
}

/// Shows: 9260/A21, 9260/A27.
#[test]
fn an_init_in_cookie_wait_is_answered_with_what_ours_said() {
    let (mut r, id, ours) = waiting();
    let mine = init_of(&ours).0;
    r.run_for(ms(300));
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[])]);
    let answer = r.take_one();
    assert_eq!((answer.remote, answer.kinds(), answer.vtag()), (peer(1), vec![kind::INIT_ACK], PEER_TAG));
    let theirs = init_of(&answer).0;
    assert_eq!((theirs.tag, theirs.initial_tsn, theirs.a_rwnd), (mine.tag, mine.initial_tsn, mine.a_rwnd));
    assert_eq!(theirs.inbound_streams, mine.inbound_streams);
    // T1-init fires when it would have: a second after our INIT.
    let again = r.run_until_sent(kind::INIT, ms(5_000)).expect("T1-init runs");
    assert_eq!(again.at.since(ours.at), ms(1_000));
    assert_eq!(again.bytes, ours.bytes);
    // The cookie leads to one association, with the tag the cookie was made for.
    r.tag = theirs.tag;
    r.echo(&cookie_of(&answer));
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    assert_eq!((connected(&r, id), r.phase(id), r.only()), (1, Phase::Established, id));
    r.send(id, b"hello");
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag()), (vec![kind::DATA], PEER_TAG));
    // T1-init is off.
    r.give(&[&sack(mine.initial_tsn)]);
    r.run_for(ms(20_000));
    assert!(r.take().iter().all(|s| !s.kinds().contains(&kind::INIT)));
}

/// Shows: 9260/A22, 9260/A27.
#[test]
fn an_init_in_cookie_echoed_is_answered_with_what_ours_said() {
    let (mut r, id, ours) = echoed();
    let mine = init_of(&ours).0;
    r.give_tagged(0, &[&init(init_fields(PEER_TAG + 1), &[])]);
    let answer = r.take_one();
    assert_eq!((answer.kinds(), answer.vtag()), (vec![kind::INIT_ACK], PEER_TAG + 1));
    assert_eq!(init_of(&answer).0.tag, mine.tag);
    assert_eq!(init_of(&answer).0.initial_tsn, mine.initial_tsn);
    // COOKIE-ECHOED still: the cookie leaves again when T1-cookie says so, with the tag of the INIT ACK.
    let again = r.run_until_sent(kind::COOKIE_ECHO, ms(5_000)).expect("T1-cookie runs");
    assert_eq!(again.vtag(), PEER_TAG);
    // B: the peer's tag is the one in the cookie.
    r.echo(&cookie_of(&answer));
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    assert_eq!((connected(&r, id), r.phase(id)), (1, Phase::Established));
    r.send(id, b"hello");
    assert_eq!(r.take_one().vtag(), PEER_TAG + 1);
    r.run_for(ms(900));
    assert!(r.take_kinds().iter().flatten().all(|k| *k != kind::COOKIE_ECHO), "T1-cookie is off");
}

/// Shows: 9260/A22.
#[test]
fn an_init_in_cookie_echoed_must_not_add_addresses() {
    let (mut r, id, _) = echoed();
    let list = listing(&[peer(1).ip(), peer(2).ip(), peer(3).ip()]);
    r.give_tagged(0, &[&init(init_fields(PEER_TAG + 1), &list)]);
    let answer = r.take_one();
    assert_eq!((answer.kinds(), answer.vtag(), answer.flags() & 1), (vec![kind::ABORT], PEER_TAG + 1, 0));
    let added = listing(&[peer(2).ip(), peer(3).ip()]);
    assert_eq!(causes_of(&answer), [(cause_code::RESTART_NEW_ADDRESSES, added)]);
    assert_eq!(r.phase(id), Phase::Connecting);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    assert_eq!(connected(&r, id), 1, "nothing changed");
}

/// Shows: 9260/A29.
#[test]
fn the_same_tags_from_the_other_side_complete_the_handshake() {
    let (mut r, id, _) = echoed();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[])]);
    let cookie = cookie_of(&r.take_one());
    r.echo(&cookie);
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    assert_eq!((connected(&r, id), r.phase(id)), (1, Phase::Established));
    r.run_for(ms(5_000));
    assert!(r.take().is_empty(), "T1-cookie is off");
    // And again: our COOKIE ACK was lost.
    r.echo(&cookie);
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    assert_eq!(connected(&r, id), 1);
}

/// Shows: 9260/A28.
#[test]
fn a_cookie_that_comes_late_changes_nothing() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |_| {});
    // The endpoint answered an INIT before it began itself; the peer kept its tag.
    let late = r.ask(PEER_TAG, &[]);
    let late_tag = r.tag;
    let id = r.connect(&config);
    let ours = r.take_one();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    let tag = r.tag;
    let give_late = |r: &mut Raw| {
        r.tag = late_tag;
        r.echo(&late);
        r.tag = tag;
    };
    give_late(&mut r);
    assert!(r.take().is_empty());
    assert_eq!((r.phase(id), r.only()), (Phase::Connecting, id));
    assert!(r.run_until_sent(kind::COOKIE_ECHO, ms(2_000)).is_some(), "T1-cookie goes on");
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    give_late(&mut r);
    assert!(r.take().is_empty());
    assert_eq!((r.phase(id), r.only(), connected(&r, id)), (Phase::Established, id, 1));
}

#[test]
fn a_cookie_that_no_row_of_the_table_knows_is_dropped() {
    let mut r = Raw::new();
    // Two INITs of a peer that restarted in between, both answered when there was no association.
    let first = r.ask(PEER_TAG, &[]);
    let first_tag = r.tag;
    let second = r.ask(PEER_TAG + 1, &[]);
    r.echo(&second);
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ACK]);
    let (id, tag) = (r.only(), r.tag);
    r.tag = first_tag;
    r.echo(&first);
    assert!(r.take().is_empty());
    r.tag = tag;
    assert_eq!((r.only(), r.phase(id)), (id, Phase::Established));
    r.give(&[&data(PEER_TSN, 0, b"still here")]);
    assert_eq!(r.read(id), [b"still here"]);
}

/// Shows: 9260/A25.
#[test]
fn an_unexpected_init_ack_is_dropped() {
    let (mut r, id, ours) = echoed();
    let fields = init_fields(PEER_TAG + 9);
    r.answer_init(&ours, fields, b"another", &[]);
    assert!(r.take().is_empty());
    let again = r.run_until_sent(kind::COOKIE_ECHO, ms(2_000)).expect("T1-cookie");
    assert_eq!((again.vtag(), again.value()), (PEER_TAG, b"cookie".to_vec()));
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    r.answer_init(&ours, fields, b"another", &[]);
    // Values for which one in COOKIE-WAIT would have been ended.
    r.answer_init(&ours, anabranch_wire::InitFields { outbound_streams: 0, ..fields }, b"another", &[]);
    r.answer_init(&ours, anabranch_wire::InitFields { tag: 0, ..fields }, b"another", &[]);
    assert!(r.take().is_empty());
    assert_eq!((r.phase(id), connected(&r, id)), (Phase::Established, 1));
}

/// Two endpoints that call each other, every packet the same time under way.
struct Mutual {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [AssocId; 2],
    under_way: Vec<(Instant, usize, Bytes)>,
    connected: [usize; 2],
}

fn end(i: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + i as u8], 9_899))
}

impl Mutual {
    /// The second begins `later` milliseconds after the first.
    fn new(later: u64) -> Mutual {
        let config = assoc_config("cmt");
        let now = Instant::from_millis(1_000);
        let make = |name: &str| {
            let mut c = EndpointConfig::new(PORT, config.clone());
            c.accept = true;
            Endpoint::new(c, Box::new(RandomStream::named(later, name)), now)
        };
        let mut m = Mutual {
            now,
            ends: [make("one"), make("two")],
            ids: [AssocId(0); 2],
            under_way: vec![],
            connected: [0; 2],
        };
        m.ids[0] = m.ends[0].connect(now, config.clone(), LocalId(0), end(1), PORT).expect("a profile");
        m.run_for(later);
        let now = m.now;
        let second = m.ends[1].connect(now, config, LocalId(0), end(0), PORT);
        // The first one's association may be there already.
        let expected = m.ends[1].associations().next();
        assert_eq!(second.is_ok(), later < 60, "{second:?}");
        m.ids[1] = expected.expect("one");
        m
    }

    fn run_for(&mut self, millis: u64) {
        for _ in 0..millis {
            for i in 0..2 {
                let mut t = Transmit::default();
                self.ends[i].handle_timeout(self.now);
                while self.ends[i].poll_transmit(self.now, &mut t) {
                    let mut out = Vec::new();
                    t.packet.write_to(&mut out);
                    self.under_way.push((self.now + ms(20), 1 - i, out.into()));
                }
                while let Some((_, e)) = self.ends[i].poll_event() {
                    assert!(!matches!(e, Event::Closed(_)), "{e:?}");
                    self.connected[i] += usize::from(e == Event::Connected);
                }
            }
            self.now += ms(1);
            let now = self.now;
            let (due, later) = core::mem::take(&mut self.under_way).into_iter().partition(|(t, ..)| *t <= now);
            self.under_way = later;
            let due: Vec<(Instant, usize, Bytes)> = due;
            for (_, to, b) in due {
                self.ends[to].handle(now, LocalId(0), end(1 - to), &b, Verify::Checksum);
            }
        }
    }
}

/// Shows: 9260/A21, 9260/A22.
#[test]
fn two_that_call_each_other_get_one_association() {
    for later in 0..90 {
        let mut m = Mutual::new(later);
        m.run_for(3_000);
        for i in 0..2 {
            assert_eq!(m.ends[i].associations().count(), 1, "{later} ms later, side {i}");
            assert_eq!(m.connected[i], 1, "{later} ms later, side {i}");
        }
        for i in 0..2 {
            let id = m.ends[i].associations().next().expect("one");
            let now = m.now;
            let mut a = m.ends[i].association_mut(id).expect("one");
            assert!(a.phase() == Phase::Established);
            a.send(now, SendOptions::default(), Bytes::from(vec![i as u8; 5_000])).expect("taken");
        }
        m.run_for(500);
        for i in 0..2 {
            let id = m.ends[i].associations().next().expect("one");
            let got = m.ends[i].association_mut(id).expect("one").recv().expect("a message");
            assert_eq!(got.payload.into_bytes(), vec![1 - i as u8; 5_000], "{later} ms later");
        }
    }
}

#[test]
fn tsns_of_a_collision_start_where_the_cookie_says() {
    let (mut r, id, _) = echoed();
    let fields = anabranch_wire::InitFields { initial_tsn: Tsn(77), ..init_fields(PEER_TAG + 1) };
    r.give_tagged(0, &[&init(fields, &[])]);
    let cookie = cookie_of(&r.take_one());
    r.echo(&cookie);
    r.take();
    r.give(&[&data(Tsn(77), 0, b"first")]);
    assert_eq!(r.read(id), [b"first"]);
}
