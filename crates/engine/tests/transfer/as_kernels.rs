//! Choices that the standards leave open and older rules, as the kernels have them: each by its switch, and not without.

use crate::common::raw::*;
use crate::common::*;
use anabranch_engine::{AssocConfig, AssocId, CloseReason, Nagle, Phase, SendOptions};
use anabranch_wire::{Encode, GapBlock, InitFields, Parameter, Params, SackOut, kind, parameter_kind};

fn config(change: impl FnOnce(&mut AssocConfig)) -> AssocConfig {
    let mut c = assoc_config("sctp");
    change(&mut c);
    c
}

/// RFC 4960 §6.1 A against RFC 9260 §6.1 A.
#[test]
fn a_closed_window_is_probed_at_once_or_after_an_rto() {
    for at_once in [false, true] {
        let (mut r, id) = Raw::connected(&config(|c| c.compatibility.probe_at_once = at_once));
        r.send(id, &[1; 500]);
        let first = r.take_one();
        assert_eq!(first.kinds(), [kind::DATA]);
        let tsn = data_tsn(&first);
        let closed = SackOut { cum_tsn: tsn, a_rwnd: 0, gaps: &[], duplicates: &[] };
        r.give(&[&bytes(&closed)]);
        r.send(id, &[2; 500]);
        r.send(id, &[3; 500]);
        r.drain();
        let left = r.take();
        assert_eq!(left.len(), usize::from(at_once), "one probe, or none before an RTO");
        let probe = left.into_iter().next().or_else(|| r.run_until_sent(kind::DATA, ms(5_000)));
        assert_eq!(probe.map(|p| data_tsn(&p)), Some(tsn.plus(1)));
    }
}

fn data_tsn(sent: &Sent) -> anabranch_base::Tsn {
    let of = |c: &anabranch_wire::Chunk<'_>| match c {
        anabranch_wire::Chunk::Data(d) => Some(d.header.tsn),
        _ => None,
    };
    sent.chunks().iter().find_map(of).expect("a DATA chunk")
}

/// RFC 9260 §8.1 leaves open whether the peer gets an ABORT.
#[test]
fn a_peer_that_is_given_up_may_get_an_abort() {
    for aborts in [false, true] {
        let few = |c: &mut AssocConfig| {
            c.failure.max_association_retrans = 2;
            c.failure.abort_when_given_up = aborts;
        };
        let (mut r, id) = Raw::connected(&config(few));
        r.send(id, b"into the void");
        let abort = r.run_until_sent(kind::ABORT, ms(60_000));
        assert_eq!(abort.is_some(), aborts);
        assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
    }
}

/// RFC 5062 §9.3 has answers small; kernels name all they can do.
#[test]
fn an_init_ack_may_name_what_was_not_asked_for() {
    for unasked in [false, true] {
        let mut r =
            Raw::with(&config(|c| c.compatibility.advertise_unrequested_extensions = unasked), |e| e.accept = true);
        r.give_tagged(0, &[&init(init_fields(7), &[])]);
        let (_, params) = init_of(&r.take_one());
        let kinds: Vec<u16> = Params::new(&params).iter_raw().flatten().map(|p| p.kind).collect();
        assert_eq!(kinds.contains(&parameter_kind::FORWARD_TSN_SUPPORTED), unasked, "{kinds:?}");
        assert_eq!(kinds.last(), Some(&parameter_kind::COOKIE), "the cookie comes last: {kinds:?}");
    }
}

/// RFC 9260 §3.3.2.1.5.
#[test]
fn address_types_are_in_init_only() {
    let mut r = Raw::new();
    r.connect(&config(|c| c.addresses.types = vec![6, 5]));
    let (_, params) = init_of(&r.take_one());
    let mut wanted = Vec::new();
    Parameter::SupportedAddressTypes(&[0, 6, 0, 5]).encode(&mut wanted);
    assert!(params.ends_with(&wanted), "{params:?}");
    let (_, params) = init_of(&waiting().2);
    assert!(Params::new(&params).iter_raw().flatten().all(|p| p.kind != parameter_kind::SUPPORTED_ADDRESS_TYPES));
}

/// RFC 9260 §3.3.3: an INIT ACK without a tag is answered under our own one, and says why.
#[test]
fn an_init_ack_without_a_tag_learns_why() {
    let (mut r, id, ours) = waiting();
    r.answer_init(&ours, InitFields { tag: 0, ..init_fields(0) }, b"cookie", &[]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), sent.flags()), (vec![kind::ABORT], 1), "with the T bit");
    assert_eq!(causes_of(&sent), [(anabranch_wire::cause_code::INVALID_PARAMETER, vec![])]);
    assert!(closed(&r, id).is_some());
}

/// RFC 9260 §8.5: the exception for SHUTDOWN ACK is for handshakes under way.
#[test]
fn a_shutdown_ack_under_a_wrong_tag_ends_nothing() {
    let (mut r, id) = Raw::connected(&config(|_| {}));
    r.shutdown(id);
    r.take();
    r.give_tagged(r.tag ^ 1, &[&chunk(kind::SHUTDOWN_ACK, 0, &[])]);
    assert!(r.take().is_empty());
    assert_eq!(r.phase(id), Phase::Closing);
}

fn sack_with(r: &Raw, cum: u32, blocks: &[(u16, u16)]) -> Vec<u8> {
    let gaps: Vec<_> = blocks.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    let cum_tsn = r.first_tsn.minus(1).plus(cum);
    bytes(&SackOut { cum_tsn, a_rwnd: 100_000, gaps: &gaps, duplicates: &[] })
}

/// RFC 9260 §3.3.4 says how blocks are formed and not what becomes of others.
#[test]
fn gap_blocks_may_count_each_for_itself() {
    for alone in [false, true] {
        let (mut r, id) = Raw::connected(&config(|c| c.compatibility.gap_blocks_alone = alone));
        for _ in 0..4 {
            r.send(id, &[1; 1_000]);
        }
        r.take();
        let chunk = sack_with(&r, 0, &[(3, 2), (4, 4), (2, 2), (2, 2), (0, 0)]);
        r.give(&[&chunk]);
        let a = r.endpoint.association(id).expect("alive");
        a.check_invariants().expect("the books agree");
        assert_eq!(a.stats().outstanding, if alone { 2_000 } else { 4_000 });
        // What was never sent is a lie all the same.
        let chunk = sack_with(&r, 0, &[(2, 2), (9, 9)]);
        r.give(&[&chunk]);
        assert!(closed(&r, id).is_some());
    }
}

/// RFC 6458 §8.1.5.
#[test]
fn a_little_may_wait_for_more_or_for_an_answer() {
    let ends: [fn(&mut Raw, AssocId); 4] = [
        |r, _| {
            let chunk = sack(r.first_tsn.minus(1));
            r.give(&[&chunk]);
        },
        |r, id| r.send(id, &[3; 1_100]),
        |r, id| r.shutdown(id),
        |r, id| {
            r.endpoint.association_mut(id).expect("alive").set_nagle(Nagle::Off);
            r.drain();
        },
    ];
    for (n, end) in ends.into_iter().enumerate() {
        for on in [false, true] {
            let (mut r, id) =
                Raw::connected(&config(|c| c.sending.nagle = if on { Nagle::NotLastFragment } else { Nagle::Off }));
            r.send(id, &[1; 100]);
            r.send(id, &[2; 100]);
            assert_eq!(r.take().len(), if on { 1 } else { 2 }, "{n}");
            end(&mut r, id);
            let left = r.take();
            assert_eq!(left.iter().any(|s| s.bytes.windows(100).any(|w| w == [2; 100])), on, "{n}");
        }
    }
    // With nothing outstanding it does not wait.
    let (mut r, id) = Raw::connected(&config(|c| c.sending.nagle = Nagle::NotLastFragment));
    for n in 0..3 {
        r.send(id, &[1; 100]);
        assert_eq!(r.take().len(), 1);
        let chunk = sack(r.first_tsn.plus(n));
        r.give(&[&chunk]);
    }
}

/// Linux sends the end of a message that takes several packets, FreeBSD keeps it for the answer.
#[test]
fn the_end_of_a_message_may_wait_as_well() {
    for nagle in [Nagle::Off, Nagle::NotLastFragment, Nagle::All] {
        let (mut r, id) = Raw::connected(&config(|c| c.sending.nagle = nagle));
        r.send(id, &[1; 1_500]);
        assert_eq!(r.take().len(), if nagle == Nagle::All { 1 } else { 2 }, "{nagle:?}");
        let chunk = sack(r.first_tsn);
        r.give(&[&chunk]);
        assert_eq!(r.take().len(), usize::from(nagle == Nagle::All), "{nagle:?}");
    }
}

/// RFC 3758 §3.5 leaves open when a message whose lifetime is over is given up.
#[test]
fn what_is_late_may_be_given_up_as_soon_as_it_is_missing() {
    for (at_once, wait) in [(false, 150), (true, 150), (true, 50)] {
        let mut r = Raw::with(&config(|c| c.compatibility.give_up_late_holes = at_once), |_| {});
        r.handshake(PEER_TAG, &bytes(&Parameter::ForwardTsnSupported));
        let id = r.only();
        let now = r.now;
        let life = SendOptions { deadline: Some(now + ms(100)), ..SendOptions::default() };
        for options in [life, SendOptions::default()] {
            let mut a = r.endpoint.association_mut(id).expect("alive");
            a.send(now, options, bytes::Bytes::from_static(&[1; 500])).expect("taken");
            drop(a);
            r.drain();
        }
        r.run_for(ms(wait));
        r.take();
        let chunk = sack_with(&r, 0, &[(2, 2)]);
        r.give(&[&chunk]);
        let gone = r.take_kinds().concat().contains(&kind::FORWARD_TSN);
        assert_eq!(gone, at_once && wait > 100, "{at_once} {wait}");
        // For the window it is a loss like any other (RFC 3758 §3.5 F5).
        let path = r.endpoint.association(id).expect("alive").paths().next().expect("one").1;
        assert_eq!(path.counters.recoveries, u64::from(gone));
    }
}

/// RFC 7053 §4: whoever has no more to send may ask for a SACK at once.
#[test]
fn what_is_sent_again_may_ask_for_nothing() {
    for silent in [false, true] {
        let (mut r, id) = Raw::connected(&config(|c| c.compatibility.retransmissions_ask = !silent));
        r.send(id, b"lost");
        r.take();
        r.shutdown(id);
        let again = r.run_until_sent(kind::DATA, ms(5_000)).expect("sent again");
        assert_eq!(asks(&again), !silent);
    }
}

/// RFC 7053 §4: a peer that began to end acknowledges at once anyhow.
#[test]
fn only_our_own_end_asks() {
    let (mut r, id) = Raw::connected(&config(|_| {}));
    r.send(id, b"lost");
    r.take();
    let end = bytes(&anabranch_wire::Shutdown { cum_tsn: r.first_tsn.minus(1) });
    r.give(&[&end]);
    let again = r.run_until_sent(kind::DATA, ms(5_000)).expect("sent again");
    assert!(!asks(&again));
}

fn asks(sent: &Sent) -> bool {
    let of = |c: &anabranch_wire::Chunk<'_>| matches!(c, anabranch_wire::Chunk::Data(d) if d.header.flags.immediate);
    sent.chunks().iter().any(of)
}
