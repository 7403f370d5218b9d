//! Choices that the standards leave open and older rules, as the kernels have them: each by its switch, and not without.

mod common;

use anabranch_engine::{AssocConfig, CloseReason, Phase};
use anabranch_wire::{Encode, InitFields, Parameter, Params, SackOut, kind, parameter_kind};
use common::raw::*;
use common::*;

fn config(change: impl FnOnce(&mut AssocConfig)) -> AssocConfig {
    let mut c = assoc_config("sctp");
    change(&mut c);
    c
}

/// RFC 4960 §6.1 A against RFC 9260 §6.1 A.
#[test]
fn a_closed_window_is_probed_at_once_or_after_an_rto() {
    for at_once in [false, true] {
        let (mut r, id) = Raw::connected(&config(|c| c.quirks.probe_at_once = at_once));
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

/// RFC 9260 §8.1 leaves open whether the peer is told.
#[test]
fn a_peer_that_is_given_up_may_be_told() {
    for told in [false, true] {
        let few = |c: &mut AssocConfig| {
            c.max_association_retrans = 2;
            c.abort_when_given_up = told;
        };
        let (mut r, id) = Raw::connected(&config(few));
        r.send(id, b"into the void");
        let abort = r.run_until_sent(kind::ABORT, ms(60_000));
        assert_eq!(abort.is_some(), told);
        assert_eq!(closed(&r, id), Some(CloseReason::PeerGone));
    }
}

/// RFC 5062 §9.3 has answers small; kernels name all they can do.
#[test]
fn an_init_ack_may_name_what_was_not_asked_for() {
    for unasked in [false, true] {
        let mut r = Raw::with(&config(|c| c.announce_unasked = unasked), |e| e.accept = true);
        r.give_tagged(0, &[&init(init_fields(7), &[])]);
        let (_, params) = init_of(&r.take_one());
        let kinds: Vec<u16> = Params::new(&params).iter_raw().flatten().map(|p| p.kind).collect();
        assert_eq!(kinds.contains(&parameter_kind::FORWARD_TSN_SUPPORTED), unasked, "{kinds:?}");
        assert_eq!(kinds.last(), Some(&parameter_kind::COOKIE), "the cookie comes last: {kinds:?}");
    }
}

/// RFC 9260 §3.3.2.1.5.
#[test]
fn address_types_are_told_in_init_only() {
    let mut r = Raw::new();
    r.connect(&config(|c| c.address_types = vec![6, 5]));
    let (_, params) = init_of(&r.take_one());
    let mut wanted = Vec::new();
    Parameter::SupportedAddressTypes(&[0, 6, 0, 5]).encode(&mut wanted);
    assert!(params.ends_with(&wanted), "{params:?}");
    let (_, params) = init_of(&waiting().2);
    assert!(Params::new(&params).iter_raw().flatten().all(|p| p.kind != parameter_kind::SUPPORTED_ADDRESS_TYPES));
}

/// RFC 9260 §3.3.3: an INIT ACK without a tag is answered under our own one, and says why.
#[test]
fn an_init_ack_without_a_tag_is_told_why() {
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
