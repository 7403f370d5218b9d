//! The graceful end (RFC 9260 §9.2), from both sides and with both races.

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_base::Tsn;
use anabranch_engine::{AssocId, CloseReason, Event, Phase, SendError, SendOptions};
use anabranch_wire::{Chunk, Heartbeat, Shutdown, ShutdownComplete, kind};

fn connected() -> (Raw, AssocId) {
    Raw::connected(&assoc_config("sctp"))
}

pub(super) fn shutdown(cum: Tsn) -> Vec<u8> {
    bytes(&Shutdown { cum_tsn: cum })
}

pub(super) fn shutdown_ack() -> Vec<u8> {
    chunk(kind::SHUTDOWN_ACK, 0, &[])
}

fn complete(reflected: bool) -> Vec<u8> {
    bytes(&ShutdownComplete { tag_reflected: reflected })
}

fn try_send(r: &mut Raw, id: AssocId) -> Result<(), SendError> {
    let now = r.now;
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, SendOptions::default(), vec![1].into())
}

/// The cumulative TSN of a SHUTDOWN that was sent.
fn cum_of(s: &Sent) -> Tsn {
    let found = s.chunks().iter().find_map(|c| match c {
        Chunk::Shutdown(s) => Some(s.cum_tsn),
        _ => None,
    });
    found.expect("SHUTDOWN")
}

/// An endpoint in SHUTDOWN-SENT that has received nothing.
pub(super) fn shutdown_sent() -> (Raw, AssocId, Sent) {
    let (mut r, id) = connected();
    r.shutdown(id);
    let sent = r.take_one();
    (r, id, sent)
}

/// An endpoint in SHUTDOWN-ACK-SENT.
fn shutdown_ack_sent() -> (Raw, AssocId, Sent) {
    let (mut r, id) = connected();
    r.give(&[&shutdown(r.first_tsn.minus(1))]);
    let sent = r.take_one();
    (r, id, sent)
}

/// Shows: 9260/X3, 9260/X7.
#[test]
fn what_is_outstanding_is_delivered_first() {
    let (mut r, id) = connected();
    r.give(&[&data(PEER_TSN, 0, b"one")]);
    r.give(&[&data(PEER_TSN.plus(1), 1, b"two")]);
    r.take();
    r.send(id, b"outstanding");
    r.take();
    r.shutdown(id);
    assert_eq!(r.phase(id), Phase::Closing);
    assert_eq!(try_send(&mut r, id), Err(SendError::Closed), "nothing new is taken");
    // SHUTDOWN-PENDING: T3 brings the data again, SHUTDOWN waits, and the peer may still send.
    r.run_for(ms(1_500));
    let sent = r.take();
    assert!(sent.iter().any(|s| s.kinds().contains(&kind::DATA)));
    assert!(sent.iter().all(|s| !s.kinds().contains(&kind::SHUTDOWN)));
    r.give(&[&data(PEER_TSN.plus(2), 2, b"three")]);
    assert_eq!(r.read(id).len(), 3);
    r.give(&[&sack(r.first_tsn)]);
    let sent = r.take().pop().expect("SHUTDOWN");
    assert_eq!((cum_of(&sent), sent.vtag()), (PEER_TSN.plus(2), PEER_TAG));
    r.give(&[&shutdown_ack()]);
    let last = r.take_one();
    assert_eq!((last.kinds(), last.vtag(), last.flags() & 1), (vec![kind::SHUTDOWN_COMPLETE], PEER_TAG, 0));
    assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
    assert_eq!((r.endpoint.associations().count(), r.endpoint.poll_timeout()), (0, None));
}

/// pion, webrtc-rs and sctp-proto send a SHUTDOWN whose cumulative TSN is of the other direction.
#[test]
fn a_shutdown_that_acknowledges_what_was_never_sent_ends_the_association_and_acknowledges_nothing() {
    for outstanding in [false, true] {
        let (mut r, id) = connected();
        if outstanding {
            r.send(id, b"outstanding");
            r.take();
        }
        r.give(&[&shutdown(r.first_tsn.plus(1_000))]);
        if outstanding {
            assert!(r.take().is_empty(), "what is outstanding goes first");
            let again = r.run_until_sent(kind::DATA, ms(1_500)).expect("T3");
            assert!(!again.kinds().contains(&kind::SHUTDOWN_ACK));
            r.give(&[&sack(r.first_tsn)]);
        }
        assert_eq!(r.take_one().kinds(), [kind::SHUTDOWN_ACK]);
        r.give(&[&complete(false)]);
        assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
    }
}

/// Shows: 9260/X4.
#[test]
fn shutdown_is_repeated_with_what_has_arrived_meanwhile() {
    // Six, so that the guard (T5) does not come first.
    let config = changed(assoc_config("sctp"), |c| c.failure.max_association_retrans = 6);
    let (mut r, id) = Raw::connected(&config);
    r.shutdown(id);
    let first = r.take_one();
    assert_eq!(cum_of(&first), PEER_TSN.minus(1));
    r.give(&[&data(PEER_TSN, 0, b"late")]);
    r.take();
    let again = r.run_until_sent(kind::SHUTDOWN, ms(5_000)).expect("T2 fires");
    assert_eq!((cum_of(&again), again.at.since(first.at)), (PEER_TSN, ms(1_000)));
    // Unanswered, six times, each later than the one before; then the peer is gone.
    let mut times = vec![again.at];
    while let Some(s) = r.run_until_sent(kind::SHUTDOWN, ms(100_000)) {
        times.push(s.at);
    }
    let gaps: Vec<_> = times.windows(2).map(|w| w[1].since(w[0]).as_millis()).collect();
    assert_eq!(gaps, [2_000, 4_000, 8_000, 16_000, 32_000]);
    assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
}

/// Shows: 9260/X4.
#[test]
fn any_packet_of_the_peer_gives_it_all_its_time_again() {
    let config = changed(assoc_config("sctp"), |c| c.failure.max_association_retrans = 2);
    let (mut r, id) = Raw::connected(&config);
    r.shutdown(id);
    r.take();
    for _ in 0..20 {
        assert!(r.run_until_sent(kind::SHUTDOWN, ms(1_001)).is_some(), "after one RTO again");
        assert!(r.run_until_sent(kind::SHUTDOWN, ms(2_001)).is_some());
        r.give(&[&bytes(&Heartbeat::new(&[1; 8]))]);
        r.take();
        if r.phase(id) == Phase::Closed {
            break;
        }
    }
    // Sixty seconds have passed with three times the retransmissions; it is still there.
    assert_eq!(closed(&r, id), None);
    r.run_for(ms(8_000));
    assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
}

/// Shows: 9260/X5.
#[test]
fn the_other_side_delivers_what_it_has_and_takes_no_more() {
    let (mut r, id) = connected();
    r.send(id, b"outstanding");
    r.take();
    r.give(&[&shutdown(r.first_tsn.minus(1))]);
    assert!(r.events_of(id).contains(&Event::PeerShutdown));
    assert_eq!(try_send(&mut r, id), Err(SendError::Closed));
    r.shutdown(id);
    assert!(r.take().is_empty(), "the user's own shutdown is ignored");
    r.run_for(ms(1_500));
    let sent = r.take_kinds().concat();
    assert!(sent.contains(&kind::DATA), "sent again");
    assert!(!sent.contains(&kind::SHUTDOWN) && !sent.contains(&kind::SHUTDOWN_ACK));
    // The next SHUTDOWN acknowledges it, and is answered.
    r.give(&[&shutdown(r.first_tsn)]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_ACK]]);
    // And each one after that.
    r.give(&[&shutdown(r.first_tsn)]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_ACK]]);
    r.give(&[&complete(false)]);
    assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
    assert!(r.take().is_empty());
}

/// Shows: 9260/X5.
#[test]
fn a_sack_completes_the_other_side_too() {
    let (mut r, id) = connected();
    r.send(id, b"outstanding");
    r.take();
    r.give(&[&shutdown(r.first_tsn.minus(1))]);
    assert!(r.take().is_empty());
    r.give(&[&sack(r.first_tsn)]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_ACK]]);
    assert_eq!(r.phase(id), Phase::Closing);
}

/// Shows: 9260/X6.
#[test]
fn each_packet_with_data_is_answered_by_shutdown_at_once() {
    let (mut r, id, _) = shutdown_sent();
    for i in 0..5u32 {
        r.run_for(ms(700));
        r.give(&[
            &data(PEER_TSN.plus(2 * i), 2 * i as u16, b"a"),
            &data(PEER_TSN.plus(2 * i + 1), 2 * i as u16 + 1, b"b"),
        ]);
        let sent = r.take();
        assert_eq!(sent.iter().map(Sent::kinds).collect::<Vec<_>>(), [[kind::SHUTDOWN]], "one, and no SACK");
        assert_eq!((cum_of(&sent[0]), sent[0].at), (PEER_TSN.plus(2 * i + 1), r.now));
    }
    // T2 was restarted each time.
    let last = r.now;
    let again = r.run_until_sent(kind::SHUTDOWN, ms(5_000)).expect("T2");
    assert_eq!(again.at.since(last), ms(1_000));
    assert_eq!(r.read(id).len(), 10);
}

/// Shows: 9260/X6.
#[test]
fn gaps_and_duplicates_need_a_sack_beside_it() {
    let (mut r, _, _) = shutdown_sent();
    r.give(&[&data(PEER_TSN.plus(1), 1, b"behind a gap")]);
    let sent: Vec<u8> = r.take_kinds().concat();
    assert_eq!(sent, [kind::SHUTDOWN, kind::SACK]);
    r.give(&[&data(PEER_TSN, 0, b"the gap")]);
    assert_eq!(r.take_kinds().concat(), [kind::SHUTDOWN]);
    r.give(&[&data(PEER_TSN, 0, b"the gap")]);
    let sent = r.take();
    assert_eq!(sent.iter().flat_map(Sent::kinds).collect::<Vec<_>>(), [kind::SHUTDOWN, kind::SACK]);
    let duplicates_of = |c: &Chunk<'_>| if let Chunk::Sack(s) = c { s.duplicates().collect() } else { vec![] };
    let duplicates: Vec<Tsn> =
        sent.iter().flat_map(|s| s.chunks().iter().flat_map(duplicates_of).collect::<Vec<_>>()).collect();
    assert_eq!(duplicates, [PEER_TSN]);
}

/// Shows: 9260/X7.
#[test]
fn shutdown_ack_is_repeated_until_the_peer_is_given_up() {
    let (mut r, id, first) = shutdown_ack_sent();
    assert_eq!((first.kinds(), first.vtag()), (vec![kind::SHUTDOWN_ACK], PEER_TAG));
    let mut times = vec![first.at];
    while let Some(s) = r.run_until_sent(kind::SHUTDOWN_ACK, ms(100_000)) {
        times.push(s.at);
    }
    assert_eq!(times.len(), 11);
    assert_eq!(times[1].since(times[0]), ms(1_000));
    assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
}

/// Shows: 9260/X8, 9260/A5.
#[test]
fn shutdown_complete_counts_only_where_it_is_awaited_and_alone() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let ours = r.take_one();
    r.tag = init_of(&ours).0.tag;
    r.give(&[&complete(false)]);
    assert_eq!(r.phase(id), Phase::Connecting);
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
    r.take();
    r.give(&[&complete(false)]);
    assert_eq!(r.phase(id), Phase::Connecting);
    r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
    r.give(&[&complete(false)]);
    assert_eq!(r.phase(id), Phase::Established);
    r.shutdown(id);
    r.take();
    r.give(&[&complete(false)]);
    r.give_tagged(PEER_TAG, &[&complete(true)]);
    assert_eq!((r.phase(id), r.take().len()), (Phase::Closing, 0));

    let (mut r, id, _) = shutdown_ack_sent();
    r.give(&[&complete(false), &data(PEER_TSN, 0, b"x")]);
    r.give(&[&data(PEER_TSN, 0, b"x"), &complete(false)]);
    assert_eq!(closed(&r, id), None);
    r.give(&[&complete(false)]);
    assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
    assert_eq!(r.endpoint.poll_timeout(), None, "T2 is off");
}

/// Shows: 9260/X10, 9260/P2.
#[test]
fn the_end_of_an_association_of_before_does_not_disturb_the_handshake() {
    let config = assoc_config("sctp");
    for echoed in [false, true] {
        let mut r = Raw::with(&config, |e| e.accept = false);
        let id = r.connect(&config);
        let ours = r.take_one();
        r.tag = init_of(&ours).0.tag;
        if echoed {
            r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[]);
            r.take();
        }
        // With our tag of now and with one of before.
        for tag in [r.tag, 0x0bad_cafe] {
            r.give_tagged(tag, &[&shutdown_ack()]);
            let sent = r.take_one();
            assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::SHUTDOWN_COMPLETE], tag, 1));
        }
        r.give(&[&shutdown(Tsn(1))]);
        assert!(r.take().is_empty(), "SHUTDOWN is dropped");
        assert_eq!(r.phase(id), Phase::Connecting);
        let what = if echoed { kind::COOKIE_ECHO } else { kind::INIT };
        let again = r.run_until_sent(what, ms(1_001)).expect("T1 goes on");
        assert_eq!(again.at.since(ours.at), ms(1_000));
    }
}

/// Shows: 9260/X11.
#[test]
fn both_sides_end_at_once() {
    let (mut r, id, first) = shutdown_sent();
    r.run_for(ms(600));
    r.give(&[&shutdown(r.first_tsn.minus(1))]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_ACK]]);
    // T2 was restarted, and repeats the SHUTDOWN ACK now.
    let again = r.run_until_sent(kind::SHUTDOWN_ACK, ms(5_000)).expect("T2");
    assert_eq!(again.at.since(first.at), ms(1_600));
    // The peer did the same.
    r.give(&[&shutdown_ack()]);
    let last = r.take_one();
    assert_eq!((last.kinds(), last.vtag(), last.flags() & 1), (vec![kind::SHUTDOWN_COMPLETE], PEER_TAG, 0));
    assert_eq!(closed(&r, id), Some(CloseReason::Shutdown));
    assert_eq!(r.endpoint.poll_timeout(), None);
}

/// Shows: 9260/X11, 9260/X7.
#[test]
fn a_lost_shutdown_complete_is_made_up_for() {
    let (mut r, id, _) = shutdown_sent();
    r.give(&[&shutdown_ack()]);
    assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_COMPLETE]]);
    assert!(closed(&r, id).is_some());
    // The peer repeats itself to a host that has forgotten everything.
    r.give(&[&shutdown_ack()]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.vtag(), sent.flags() & 1), (vec![kind::SHUTDOWN_COMPLETE], r.tag, 1));
}

/// Shows: 9260/X12.
#[test]
fn a_peer_that_never_lets_us_finish_is_aborted() {
    let (mut r, id, first) = shutdown_sent();
    // It answers, so that T2 never gives up; but not with SHUTDOWN ACK.
    let mut tsn = PEER_TSN;
    let abort = loop {
        r.run_for(ms(500));
        if let Some(a) = r.take().into_iter().find(|s| s.kinds().contains(&kind::ABORT)) {
            break a;
        }
        r.give(&[&data(tsn, (tsn.0 - PEER_TSN.0) as u16, b"more")]);
        tsn = tsn.next();
        r.read(id);
        assert!(r.now.since(first.at) < ms(400_000), "for ever");
    };
    // T5 is five times RTO.Max.
    assert_eq!(abort.at.since(first.at), ms(300_000));
    assert_eq!((abort.vtag(), abort.kinds()), (PEER_TAG, vec![kind::ABORT]));
    assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
}

/// T5 is for a peer that stands still: data that flows slowly is not cut off, and not when the peer ends as well either.
#[test]
fn the_guard_leaves_a_slow_transfer_alone() {
    for ends_after in [None, Some(1), Some(100_000), Some(290_000), Some(350_000)] {
        let (mut r, id) = connected();
        for _ in 0..700 {
            r.send(id, &[1; 1_000]);
        }
        r.shutdown(id);
        let (began, mut ends) = (r.now, ends_after);
        let mut acked = r.first_tsn.minus(1);
        while r.phase(id) != Phase::Closed {
            r.run_for(ms(600));
            let newest = r.take().iter().flat_map(tsns).fold(acked, |a, t| if t.after(a) { t } else { a });
            if newest.after(acked) {
                acked = acked.next();
                r.give(&[&sack(acked)]);
                if ends.take_if(|after| r.now.since(began) > ms(*after)).is_some() {
                    r.give(&[&shutdown(acked)]);
                }
            } else if ends_after.is_none() {
                r.give(&[&shutdown_ack()]);
            } else {
                r.give(&[&complete(false)]);
            }
            assert!(r.now.since(began) < ms(2_000_000));
        }
        assert!(r.now.since(began) > ms(400_000), "longer than T5");
        assert_eq!(closed(&r, id), Some(CloseReason::Shutdown), "the peer ends after {ends_after:?} ms");
    }
}

fn tsns(s: &Sent) -> Vec<Tsn> {
    let of = |c: &Chunk<'_>| match c {
        Chunk::Data(d) => Some(d.header.tsn),
        _ => None,
    };
    s.chunks().iter().filter_map(of).collect()
}

/// Shows: 9260/D1, 9260/X5.
#[test]
fn what_comes_after_our_shutdown_ack_is_not_taken() {
    let (mut r, id, _) = shutdown_ack_sent();
    r.give(&[&data(PEER_TSN, 0, b"too late")]);
    assert!(r.read(id).is_empty());
    assert_eq!(try_send(&mut r, id), Err(SendError::Closed));
}
