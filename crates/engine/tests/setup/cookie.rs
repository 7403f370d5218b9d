//! The State Cookie: whole, ours, fresh, or nothing happens (RFC 9260 §5.1.3 to §5.1.5, §5.2.4 to §5.2.6).

use crate::common::raw::*;
use crate::common::{PORT, assoc_config, ms};
use anabranch_engine::{AssocId, CloseReason, Event, Phase};
use anabranch_wire::{CookieEcho, Parameter, Params, cause_code, kind};

fn echo_and_data(cookie: &[u8]) -> [Vec<u8>; 2] {
    [bytes(&CookieEcho { cookie }), data(PEER_TSN, 0, b"bundled")]
}

fn give_both(r: &mut Raw, cookie: &[u8]) {
    let [echo, data] = echo_and_data(cookie);
    r.give(&[&echo, &data]);
}

fn nothing_came_of_it(r: &mut Raw, why: &str) {
    assert!(r.take().is_empty(), "{why}: answered");
    assert_eq!(r.endpoint.associations().count(), 0, "{why}: an association");
    assert!(r.events.is_empty(), "{why}: events");
}

/// Shows: 9260/A18, 9260/A16, 9260/V6.
#[test]
fn a_cookie_with_any_bit_changed_is_dropped_with_its_packet() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    for bit in 0..cookie.len() * 8 {
        let mut wrong = cookie.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        give_both(&mut r, &wrong);
        nothing_came_of_it(&mut r, "a changed bit");
    }
    for len in 0..cookie.len() {
        give_both(&mut r, &cookie[..len]);
        nothing_came_of_it(&mut r, "cut short");
    }
    give_both(&mut r, &cookie);
    assert_eq!(r.take()[0].kinds()[0], kind::COOKIE_ACK);
}

/// Shows: 9260/A18, 9260/A16.
#[test]
fn ports_tags_and_address_must_be_those_of_the_cookie() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    let [echo, more] = echo_and_data(&cookie);
    let packet = |src: u16, dst: u16, vtag: u32| {
        let mut out = anabranch_wire::CommonHeader { src_port: src, dst_port: dst, vtag }.to_bytes().to_vec();
        out.extend_from_slice(&echo);
        out.extend_from_slice(&more);
        let sum = anabranch_wire::packet_checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        out
    };
    for wrong in [
        packet(PEER_PORT + 1, PORT, r.tag),
        packet(PEER_PORT, PORT + 1, r.tag),
        packet(PEER_PORT, PORT, r.tag ^ 1),
        packet(PEER_PORT, PORT, PEER_TAG),
    ] {
        r.give_bytes(r.to, r.from, &wrong);
        nothing_came_of_it(&mut r, "another port or tag");
    }
    let right = packet(PEER_PORT, PORT, r.tag);
    r.give_bytes(r.to, peer(2), &right);
    nothing_came_of_it(&mut r, "another host");
    r.give_bytes(r.to, r.from, &right);
    assert_eq!(r.take()[0].kinds()[0], kind::COOKIE_ACK);
}

/// Shows: 9260/A18.
#[test]
fn a_cookie_whose_secret_is_gone_is_dropped() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    let tag = r.tag;
    // Secrets change each hour, and the one before still opens: after that not even "stale" is said.
    for _ in 0..2 {
        r.run_for(ms(3_601_000));
        let now = r.now;
        r.endpoint.handle_timeout(now);
    }
    r.tag = tag;
    give_both(&mut r, &cookie);
    nothing_came_of_it(&mut r, "an old secret");
}

/// Shows: 9260/A16.
#[test]
fn cookies_differ_and_say_nothing_that_the_handshake_did_not() {
    let mut r = Raw::new();
    let one = r.ask(PEER_TAG, &[]);
    let two = r.ask(PEER_TAG, &[]);
    assert_ne!(one, two);
    assert!(one.len() <= 128, "{} bytes", one.len());
    // At that moment another endpoint has another secret: its cookies are not valid here.
    let mut other = Raw::new();
    let mut config = anabranch_engine::EndpointConfig::new(PORT, assoc_config("sctp"));
    config.accept = true;
    other.endpoint = anabranch_engine::Endpoint::new(
        config,
        Box::new(anabranch_base::RandomStream::named(99, "another")),
        other.now,
    );
    let foreign = other.ask(PEER_TAG, &[]);
    r.tag = other.tag;
    r.echo(&foreign);
    nothing_came_of_it(&mut r, "another endpoint's cookie");
    // Of an association that lives its tags are not disclosed.
    let cookie = r.ask(PEER_TAG, &[]);
    r.echo(&cookie);
    r.take();
    let living = r.tag;
    let beside = r.ask(PEER_TAG + 1, &[]);
    assert!(!beside.windows(4).any(|w| w == living.to_be_bytes()), "its tag is in the cookie");
}

/// Shows: 9260/A2, 9260/V6.
#[test]
fn answering_inits_keeps_nothing() {
    let mut r = Raw::new();
    for i in 0..2_000u32 {
        r.give_tagged(0, &[&init(init_fields(i + 1), &[])]);
        let answer = r.take_one();
        assert_eq!((answer.kinds(), answer.vtag(), answer.remote), (vec![kind::INIT_ACK], i + 1, peer(1)));
        assert_ne!(init_of(&answer).0.tag, 0);
        assert!(!cookie_of(&answer).is_empty());
    }
    assert_eq!(r.endpoint.associations().count(), 0);
    assert_eq!(r.endpoint.poll_timeout(), None);
}

/// Shows: 9260/A19.
#[test]
fn a_stale_cookie_is_named_and_nothing_else_happens() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    r.run_for(ms(60_000));
    r.run_for(ms(1_500));
    give_both(&mut r, &cookie);
    let error = r.take_one();
    assert_eq!((error.kinds(), error.vtag(), error.remote), (vec![kind::ERROR], PEER_TAG, peer(1)));
    let measure = 1_500_000u32.to_be_bytes().to_vec();
    assert_eq!(causes_of(&error), [(cause_code::STALE_COOKIE, measure)]);
    assert_eq!(r.endpoint.associations().count(), 0);
}

#[test]
fn a_cookie_lives_as_long_as_its_life_says() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    r.run_for(ms(60_000));
    r.echo(&cookie);
    assert_eq!(r.take()[0].kinds()[0], kind::COOKIE_ACK);
    // And longer when the peer asked, at most twice as long.
    for (wish, lives) in [(30_000u32, 90_000), (3_000_000, 120_000)] {
        let mut r = Raw::new();
        let cookie = r.ask(PEER_TAG, &bytes(&Parameter::CookiePreservative(wish)));
        r.run_for(ms(lives + 1));
        r.echo(&cookie);
        assert_eq!(r.take_one().kinds(), [kind::ERROR], "{wish}");
        let cookie = r.ask(PEER_TAG, &bytes(&Parameter::CookiePreservative(wish)));
        r.run_for(ms(lives));
        r.echo(&cookie);
        assert_eq!(r.take()[0].kinds()[0], kind::COOKIE_ACK, "{wish}");
    }
}

/// Shows: 9260/A29.
#[test]
fn the_cookie_of_a_living_association_is_never_stale() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    r.echo(&cookie);
    r.take();
    let id = r.only();
    r.run_for(ms(61_000));
    r.take();
    r.echo(&cookie);
    let answer = r.take_one();
    assert_eq!((answer.kinds(), answer.vtag()), (vec![kind::COOKIE_ACK], PEER_TAG));
    assert_eq!(r.only(), id);
    // Another one of the same peer is.
    let beside = r.ask(PEER_TAG + 1, &[]);
    r.run_for(ms(61_000));
    r.take();
    r.echo(&beside);
    let error = r.take_one();
    assert_eq!((error.kinds(), error.vtag()), (vec![kind::ERROR], PEER_TAG + 1));
    assert!(!r.events_of(id).contains(&Event::Restarted));
}

/// Shows: 9260/A20, 9260/A4, 9260/A8.
#[test]
fn data_beside_the_cookie_is_acknowledged_at_once() {
    let mut r = Raw::new();
    let cookie = r.ask(PEER_TAG, &[]);
    give_both(&mut r, &cookie);
    let sent = r.take();
    let order: Vec<u8> = sent.iter().flat_map(Sent::kinds).collect();
    assert_eq!(order, [kind::COOKIE_ACK, kind::SACK]);
    assert_eq!(sent[0].kinds()[0], kind::COOKIE_ACK, "first in its packet");
    assert_eq!(r.read(r.only()), [b"bundled"]);
}

/// Shows: 9260/A30.
#[test]
fn a_cookie_ack_without_a_cookie_echo_is_dropped() {
    let ack = chunk(kind::COOKIE_ACK, 0, &[]);
    // COOKIE-WAIT: the peer's tag is not known, and ours is guessed right.
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    r.tag = init_of(&r.take_one()).0.tag;
    r.give(&[&ack]);
    assert_eq!((r.phase(id), r.take().len()), (Phase::Connecting, 0));
    assert!(r.run_until_sent(kind::INIT, ms(2_000)).is_some());
    // ESTABLISHED and after.
    let mut r = Raw::accepted();
    let id = r.only();
    r.events.clear();
    r.give(&[&ack]);
    assert_eq!((r.phase(id), r.take().len()), (Phase::Established, 0));
    r.shutdown(id);
    r.take();
    r.give(&[&ack]);
    assert_eq!((r.phase(id), r.take().len()), (Phase::Closing, 0));
    assert!(r.events.is_empty());
}

fn stale(us: u32) -> Vec<u8> {
    let mut causes = vec![0, 3, 0, 8];
    causes.extend_from_slice(&us.to_be_bytes());
    chunk(kind::ERROR, 0, &causes)
}

fn wish_of(init: &Sent) -> Option<u32> {
    let (_, params) = init_of(init);
    Params::new(&params).iter().flatten().find_map(|p| match p {
        Parameter::CookiePreservative(ms) => Some(ms),
        _ => None,
    })
}

/// An endpoint in COOKIE-ECHOED.
fn echoed() -> (Raw, AssocId, Sent) {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let ours = r.take_one();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    (r, id, ours)
}

/// Shows: 9260/A31.
#[test]
fn a_stale_cookie_begins_the_handshake_again_with_more_time() {
    let (mut r, id, ours) = echoed();
    assert_eq!(wish_of(&ours), None);
    r.run_for(ms(120));
    r.give(&[&stale(5_000_000)]);
    let again = r.take_one();
    assert_eq!((again.kinds(), again.vtag()), (vec![kind::INIT], 0));
    let wish = wish_of(&again).expect("Cookie Preservative");
    assert!((1_000..=1_120).contains(&wish), "{wish} ms: the round trip and a second at most");
    r.answer_init(&again, init_fields(PEER_TAG + 1), b"fresh", &[]);
    let echo = r.take_one();
    assert_eq!((echo.kinds(), echo.vtag(), echo.value()), (vec![kind::COOKIE_ECHO], PEER_TAG + 1, b"fresh".to_vec()));
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    assert_eq!(r.phase(id), Phase::Established);
}

/// Shows: 9260/A31.
#[test]
fn stale_cookies_do_not_go_on_for_ever() {
    let (mut r, id, ours) = echoed();
    for _ in 0..100 {
        r.give(&[&stale(1)]);
        if r.take().is_empty() {
            break;
        }
        r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
        r.take();
    }
    assert_eq!(r.phase(id), Phase::Closed);
    assert!(r.events_of(id).contains(&Event::Closed(CloseReason::NoAnswer)), "{:?}", r.events);
}

/// Shows: 9260/A31.
#[test]
fn a_stale_cookie_error_elsewhere_means_nothing() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    r.tag = init_of(&r.take_one()).0.tag;
    r.give(&[&stale(1)]);
    assert_eq!((r.take().len(), r.phase(id)), (0, Phase::Connecting));
    let (mut r, id) = Raw::connected(&config);
    r.give(&[&stale(1)]);
    assert_eq!((r.take().len(), r.phase(id)), (0, Phase::Established));
    r.shutdown(id);
    r.take();
    r.give(&[&stale(1)]);
    assert_eq!((r.take().len(), r.phase(id)), (0, Phase::Closing));
}

/// Shows: 9260/A7.
#[test]
fn without_room_both_chunks_of_a_handshake_are_refused() {
    let mut r = Raw::with(&assoc_config("sctp"), |e| e.max_associations = 1);
    let cookie = r.ask(PEER_TAG + 5, &[]);
    let tag = r.tag;
    r.from = peer(2);
    r.handshake(PEER_TAG, &[]);
    r.from = peer(1);
    r.tag = tag;
    r.echo(&cookie);
    let abort = r.take_one();
    assert_eq!((abort.kinds(), abort.vtag()), (vec![kind::ABORT], PEER_TAG + 5));
    assert_eq!(causes_of(&abort), [(cause_code::OUT_OF_RESOURCE, vec![])]);
    r.give_tagged(0, &[&init(init_fields(77), &[])]);
    let abort = r.take_one();
    assert_eq!((abort.kinds(), abort.vtag(), abort.flags() & 1), (vec![kind::ABORT], 77, 0));
    assert_eq!(causes_of(&abort), [(cause_code::OUT_OF_RESOURCE, vec![])]);
}

/// The two Tie-Tags in a cookie of ours: behind version, secret, time, life and the two tags.
fn ties(cookie: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes([cookie[at], cookie[at + 1], cookie[at + 2], cookie[at + 3]]);
    assert_ne!(word(18), 0, "the local tag stands where it is looked for");
    (word(26), word(30))
}

/// Shows: 9260/A24, 9260/A22, 9260/A23.
#[test]
fn tie_tags_are_0_until_there_is_an_association() {
    // CLOSED.
    let mut r = Raw::new();
    let normal = r.ask(PEER_TAG, &[]);
    assert_eq!(normal[22..26], PEER_TAG.to_be_bytes());
    assert_eq!(ties(&normal), (0, 0));
    // ESTABLISHED: random values that are not its tags, the same for each INIT.
    r.echo(&normal);
    r.take();
    let living = r.tag;
    let (one, two) = (ties(&r.ask(PEER_TAG + 1, &[])), ties(&r.ask(PEER_TAG + 1, &[])));
    assert_eq!(one, two);
    assert!(one.0 != 0 && one.1 != 0);
    assert!(![one.0, one.1].contains(&living) && ![one.0, one.1].contains(&PEER_TAG));
    // COOKIE-WAIT and COOKIE-ECHOED.
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    r.connect(&config);
    let ours = r.take_one();
    assert_eq!(ties(&r.ask(PEER_TAG + 1, &[])), (0, 0));
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    let echoed = ties(&r.ask(PEER_TAG + 1, &[]));
    assert!(echoed.0 != 0 && echoed.1 != 0);
}
