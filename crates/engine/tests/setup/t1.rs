//! T1-init and T1-cookie: what is not answered is repeated, later and elsewhere (RFC 9260 §5.1, §5.1.4).

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_engine::{AssocId, CloseReason, LocalId, Phase};
use anabranch_wire::kind;

/// When each INIT or COOKIE ECHO left, from the first.
fn repetitions(r: &mut Raw, id: AssocId, what: u8) -> Vec<u64> {
    while r.phase(id) != Phase::Closed {
        r.run_for(ms(1_000));
    }
    let sent: Vec<_> = r.take().into_iter().filter(|s| s.kinds() == [what]).collect();
    let first = sent[0].at;
    sent.iter().map(|s| s.at.since(first).as_millis()).collect()
}

/// Shows: 9260/A6, 9260/A1.
#[test]
fn an_unanswered_init_is_repeated_eight_times_each_later() {
    let (mut r, id, first) = waiting();
    r.sent.push(first);
    let times = repetitions(&mut r, id, kind::INIT);
    // RTO.Initial doubled each time, up to RTO.Max.
    assert_eq!(times, [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000]);
    assert_eq!(closed(&r, id), Some(CloseReason::NoAnswer));
}

/// Shows: 9260/A6.
#[test]
fn the_cookie_waits_as_long_as_the_init_took() {
    // With a sample SRTT + 4 RTTVAR, without one RTO.Initial (§6.3.1).
    let (mut r, _, ours) = waiting();
    r.run_for(ms(900));
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    let first = r.take_one();
    let again = r.run_until_sent(kind::COOKIE_ECHO, ms(20_000)).expect("T1-cookie");
    assert_eq!(again.at.since(first.at), ms(900 + 4 * 450));
    let config = changed(assoc_config("sctp"), |c| c.timers.rto_initial = ms(300));
    let mut r = Raw::with(&config, |e| e.accept = false);
    r.connect(&config);
    let first = r.take_one();
    let again = r.run_until_sent(kind::INIT, ms(20_000)).expect("T1-init");
    assert_eq!(again.at.since(first.at), ms(300));
}

/// A handshake with an RTO.Initial of its own: what runs keeps its deadline, what follows has the other.
#[test]
fn another_rto_initial_holds_from_the_next_timeout_on() {
    let config = changed(assoc_config("sctp"), |c| c.timers.rto_initial = ms(300));
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let first = r.take_one();
    r.endpoint.association_mut(id).expect("alive").set_rto_initial(ms(1_000));
    let again = r.run_until_sent(kind::INIT, ms(20_000)).expect("T1-init");
    assert_eq!(again.at.since(first.at), ms(300));
    let third = r.run_until_sent(kind::INIT, ms(20_000)).expect("T1-init");
    assert_eq!(third.at.since(again.at), ms(2_000));
    let (here, there) = (LocalId(0), peer(1));
    let port = r.endpoint.association(id).expect("alive").peer_port();
    let taken = [(here, there, port), (LocalId(1), there, port), (here, peer(2), port), (here, there, port ^ 1)];
    let taken = taken.map(|(local, remote, port)| r.endpoint.is_taken(local, remote, port));
    assert_eq!(taken, [true, false, false, false], "another INIT would restart it");
}

/// Shows: 9260/A17, 9260/A6.
#[test]
fn an_unanswered_cookie_is_repeated_eight_times_each_later() {
    let (mut r, id, ours) = waiting();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    let times = repetitions(&mut r, id, kind::COOKIE_ECHO);
    assert_eq!(times, [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000]);
    assert_eq!(closed(&r, id), Some(CloseReason::NoAnswer));
}

/// Shows: 9260/A6.
#[test]
fn repetitions_go_round_the_peers_addresses() {
    let config = assoc_config("cmt");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").add_path(now, LocalId(1), peer(2));
    r.run_for(ms(20_000));
    let inits: Vec<_> = r.take().iter().map(|s| (s.local.0, s.remote)).collect();
    let (one, two) = ((0, peer(1)), (1, peer(2)));
    assert_eq!(inits, [one, two, one, two, one]);

    // Answered on the second interface, the association begins there.
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").add_path(now, LocalId(1), peer(2));
    let ours = r.take_one();
    r.run_for(ms(1_000));
    (r.to, r.from) = (LocalId(1), peer(2));
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    let echo = r.run_until_sent(kind::COOKIE_ECHO, ms(10)).expect("COOKIE ECHO");
    assert_eq!((echo.local.0, echo.remote), two);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    r.send(id, b"hello");
    let sent = r.take();
    assert!(!sent.is_empty() && sent.iter().all(|s| (s.local.0, s.remote) == two), "the first was never learnt");

    // The cookie goes round what the INIT ACK listed, with a probe where the address is not confirmed (§5.4).
    let (mut r, _, ours) = waiting();
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &listing(&[peer(1).ip(), peer(2).ip()]));
    r.run_for(ms(8_000));
    let echoes: Vec<_> = r.take().iter().map(|s| (s.remote, s.kinds())).collect();
    let (plain, probed) = (vec![kind::COOKIE_ECHO], vec![kind::COOKIE_ECHO, kind::HEARTBEAT]);
    assert_eq!(echoes[..3], [(peer(1), plain.clone()), (peer(2), probed), (peer(1), plain)]);
}
