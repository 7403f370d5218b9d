//! Acknowledgements that will not be taken back (draft-tuexen-tsvwg-sctp-multipath-29 §4).

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Mid, Ssn, StreamId};
use anabranch_engine::{AssocConfig, AssocId, CloseReason, Event, Phase, SendOptions};
use anabranch_wire::{
    Chunk, Data, DataFlags, DataHeader, GapBlock, IData, IDataHeader, NrSackOut, Parameter, Params, kind,
};

fn config() -> AssocConfig {
    changed(assoc_config("sctp"), |c| c.extensions.nr_sack = true)
}

fn offer() -> Vec<u8> {
    bytes(&Parameter::SupportedExtensions(&[kind::NR_SACK]))
}

fn accepted(ours: &AssocConfig, theirs: &[u8]) -> (Raw, AssocId) {
    let mut r = Raw::with(ours, |_| {});
    r.handshake(PEER_TAG, theirs);
    let id = r.only();
    r.take();
    (r, id)
}

fn blocks(list: &[(u16, u16)]) -> Vec<GapBlock> {
    list.iter().map(|&(start, end)| GapBlock { start, end }).collect()
}

/// Relative to the TSN before the endpoint's first.
fn nr_sack(r: &Raw, cum: u32, gaps: &[(u16, u16)], kept: &[(u16, u16)]) -> Vec<u8> {
    let cum_tsn = r.first_tsn.minus(1).plus(cum);
    bytes(&NrSackOut { cum_tsn, a_rwnd: 100_000, gaps: &blocks(gaps), kept: &blocks(kept), duplicates: &[] })
}

fn held(r: &Raw, id: AssocId) -> u64 {
    let a = r.endpoint.association(id).expect("alive");
    a.check_invariants().expect("the books agree");
    a.held_for_reneging()
}

/// Shows: ext/L8.
#[test]
fn it_is_used_throughout_when_both_announced_it_and_never_else() {
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let c = changed(assoc_config("sctp"), |c| c.extensions.nr_sack = ours);
        let mut r = Raw::with(&c, |_| {});
        let theirs = if theirs { offer() } else { vec![] };
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &theirs)]);
        let answer = r.take_one();
        let params = init_of(&answer).1;
        let both = ours && !theirs.is_empty();
        let listed = Params::new(&params)
            .iter()
            .flatten()
            .any(|p| matches!(p, Parameter::SupportedExtensions(l) if l.contains(&kind::NR_SACK)));
        assert_eq!(listed, both);
        r.tag = init_of(&answer).0.tag;
        r.echo(&cookie_of(&answer));
        r.take();
        let wanted = if both { kind::NR_SACK } else { kind::SACK };
        for i in 0..6 {
            r.give(&[&data(PEER_TSN.plus(2 * i), 2 * i as u16, b"x")]);
            assert!(r.take_kinds().iter().all(|k| *k == [wanted]));
        }
        // One that was not agreed on is an unknown chunk of the kind that ends its packet in silence.
        let id = r.only();
        r.send(id, b"x");
        r.take();
        let first = init_of(&answer).0.initial_tsn;
        r.first_tsn = first;
        let chunk = nr_sack(&r, 1, &[], &[]);
        r.give(&[&chunk]);
        let outstanding = r.endpoint.association(id).expect("alive").stats().outstanding;
        assert_eq!((outstanding == 0, r.take_kinds()), (both, Vec::<Vec<u8>>::new()));
    }
    let mut r = Raw::with(&config(), |e| e.accept = false);
    r.connect(&config());
    let params = init_of(&r.take_one()).1;
    assert!(
        Params::new(&params)
            .iter()
            .flatten()
            .any(|p| matches!(p, Parameter::SupportedExtensions(l) if l.contains(&kind::NR_SACK)))
    );
}

/// What we take we never give up, so all that is reported is reported for good: delivered or not.
///
/// Shows: ext/L9, ext/L10.
#[test]
fn what_arrived_is_reported_for_good_and_stays_so() {
    let (mut r, _) = accepted(&config(), &offer());
    let mut reported = vec![];
    for n in [0, 2, 3, 5, 7, 5] {
        r.give(&[&data(PEER_TSN.plus(n), n as u16, b"x")]);
        for s in r.take() {
            for c in s.chunks() {
                let Chunk::NrSack(n) = c else { panic!("{c:?}") };
                let of = |b: GapBlock| (b.start, b.end);
                assert_eq!(n.sack.gaps().len(), 0);
                reported.push((n.sack.cum_tsn, n.kept().map(of).collect::<Vec<_>>(), n.sack.duplicates().len()));
            }
        }
    }
    let last = reported.last().cloned();
    assert_eq!(last, Some((PEER_TSN, vec![(2, 3), (5, 5), (7, 7)], 1)));
    // With more holes than fit a packet the lowest are reported, and duplicates only beside them.
    for n in 0..700 {
        r.give(&[&data(PEER_TSN.plus(10 + 2 * n), 10 + n as u16, b"x"), &data(PEER_TSN, 0, b"x")]);
    }
    let sent = r.take();
    let newest = sent.last().expect("an acknowledgement");
    assert!(newest.bytes.len() <= 1_200 && newest.bytes.len() > 1_190);
    let chunks = newest.chunks();
    let Chunk::NrSack(n) = chunks[0] else { panic!() };
    assert_eq!(n.kept().next(), Some(GapBlock { start: 2, end: 3 }));
    assert_eq!(n.sack.duplicates().len(), 0);
}

/// Shows: ext/L9.
#[test]
fn what_is_kept_is_freed_and_never_sent_again() {
    let (mut r, id) = accepted(&config(), &offer());
    for _ in 0..4 {
        r.send(id, &[1; 1_000]);
    }
    r.take();
    // 2 may be taken back, 3 and 4 may not; 3 is named in both.
    let chunk = nr_sack(&r, 0, &[(2, 3)], &[(3, 4)]);
    r.give(&[&chunk]);
    assert_eq!(held(&r, id), 1_000);
    // All are withdrawn: only the one that might be counts, and is sent again with the lost one.
    let chunk = nr_sack(&r, 0, &[], &[]);
    r.give(&[&chunk]);
    assert_eq!(held(&r, id), 1_000);
    r.take();
    r.run_for(ms(2_000));
    let chunk = nr_sack(&r, 1, &[], &[]);
    r.give(&[&chunk]);
    let tsn = |c: &Chunk<'_>| match c {
        Chunk::Data(d) => Some(d.header.tsn.distance(r.first_tsn)),
        _ => None,
    };
    let mut again: Vec<u32> = vec![];
    for s in r.sent.drain(..) {
        again.extend(s.chunks().iter().filter_map(tsn));
    }
    again.sort_unstable();
    again.dedup();
    assert_eq!(again, [0, 1]);
    let chunk = nr_sack(&r, 4, &[], &[]);
    r.give(&[&chunk]);
    assert_eq!((held(&r, id), r.endpoint.association(id).expect("alive").stats().outstanding), (0, 0));
    r.send(id, b"goes on");
    assert_eq!(r.take_kinds(), [[kind::DATA]]);
}

#[test]
fn nonsense_and_lies_are_those_of_a_sack() {
    for (gaps, kept) in [(&[][..], &[(3, 2)][..]), (&[], &[(0, 1)]), (&[], &[(3, 3), (2, 2)]), (&[(2, 2), (1, 1)], &[])]
    {
        let (mut r, id) = accepted(&config(), &offer());
        for _ in 0..4 {
            r.send(id, &[1; 1_000]);
        }
        let chunk = nr_sack(&r, 0, gaps, kept);
        r.give(&[&chunk]);
        assert_eq!(r.endpoint.association(id).expect("alive").stats().outstanding, 4_000, "{gaps:?} {kept:?}");
    }
    for (cum, kept) in [(2, &[][..]), (0, &[(2, 2)]), (0, &[(1, 1), (9, 60_000)])] {
        let (mut r, id) = accepted(&config(), &offer());
        r.send(id, b"x");
        let chunk = nr_sack(&r, cum, &[], kept);
        r.give(&[&chunk]);
        assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))), "{cum} {kept:?}");
        assert_eq!(r.phase(id), Phase::Closed);
    }
}

#[test]
fn nothing_is_lost_under_loss() {
    for profile in ["sctp", "cmt", "live"] {
        let c = changed(assoc_config(profile), |c| {
            c.extensions.nr_sack = true;
            c.extensions.interleaving = true;
        });
        let mut b = Bench::connected(8, &c, &[(link(8, 15), link(8, 15)), (link(4, 40), link(4, 40))]);
        b.strict = true;
        b.tap = Some(vec![]);
        let mut n = 0u32;
        b.filter = Some(Box::new(move |_| {
            n += 1;
            !n.is_multiple_of(9)
        }));
        for from in [Side::Client, Side::Server] {
            let mut flow = Flow::new(from, 3, 2_000);
            flow.transfer(&mut b, 200, ms(120_000)).expect("arrives");
        }
        let tap = b.tap.take().expect("tapped");
        assert!(tap.iter().all(|t| !kinds(&t.3).contains(&kind::SACK)), "{profile}");
        assert!(tap.iter().any(|t| kinds(&t.3).contains(&kind::NR_SACK)));
        assert!(!b.client_events.iter().any(|e| matches!(e, Event::Closed(_))));
    }
}

const WHOLE: DataFlags = DataFlags { immediate: false, unordered: false, begin: true, end: true };
const UNORDERED: DataFlags = DataFlags { unordered: true, ..WHOLE };

fn piece(n: u32, stream: u16, ssn: u16, flags: DataFlags) -> Vec<u8> {
    let header = DataHeader { tsn: PEER_TSN.plus(n), stream: StreamId(stream), ssn: Ssn(ssn), ppid: 0, flags };
    bytes(&Data { header, payload: b"x" })
}

type Blocks = Vec<(u16, u16)>;
/// A chunk, and what the NR-SACK for it says.
type Step<'a> = (Vec<u8>, u32, &'a [(u16, u16)], &'a [(u16, u16)]);

/// The newest NR-SACK: cumulative TSN as the peer counts, renegable and other blocks.
fn newest(r: &mut Raw) -> Option<(u32, Blocks, Blocks)> {
    let sent = r.take();
    let chunks = sent.last()?.chunks();
    let Some(Chunk::NrSack(n)) = chunks.first() else { panic!("{chunks:?}") };
    let of = |b: GapBlock| (b.start, b.end);
    Some((n.sack.cum_tsn.distance(PEER_TSN), n.sack.gaps().map(of).collect(), n.kept().map(of).collect()))
}

/// The draft's case 2 (§4.4.1): what the user has, or could have at once.
///
/// Shows: ext/L9.
#[test]
fn only_what_can_be_delivered_is_reported_for_good_where_that_is_wanted() {
    let c = changed(config(), |c| c.extensions.nr_sack_covers_undelivered = false);
    let (mut r, id) = accepted(&c, &offer());
    let (begin, end) = (DataFlags { end: false, ..UNORDERED }, DataFlags { begin: false, ..UNORDERED });
    let steps: [Step<'_>; 9] = [
        (piece(0, 0, 0, WHOLE), 0, &[], &[]),
        (piece(2, 0, 0, UNORDERED), 0, &[], &[(2, 2)]),
        (piece(3, 0, 2, WHOLE), 0, &[(3, 3)], &[(2, 2)]),
        (piece(4, 1, 0, WHOLE), 0, &[(3, 3)], &[(2, 2), (4, 4)]),
        (piece(6, 0, 0, begin), 0, &[(3, 3), (6, 6)], &[(2, 2), (4, 4)]),
        (piece(7, 0, 0, end), 0, &[(3, 3)], &[(2, 2), (4, 4), (6, 7)]),
        (piece(9, 1, 2, WHOLE), 0, &[(3, 3), (9, 9)], &[(2, 2), (4, 4), (6, 7)]),
        (piece(10, 1, 1, WHOLE), 0, &[(3, 3)], &[(2, 2), (4, 4), (6, 7), (9, 10)]),
        (piece(1, 0, 1, WHOLE), 4, &[], &[(2, 3), (5, 6)]),
    ];
    for (i, (chunk, cum, renegable, kept)) in steps.into_iter().enumerate() {
        r.give(&[&chunk]);
        assert_eq!(newest(&mut r), Some((cum, renegable.to_vec(), kept.to_vec())), "step {i}");
        r.read(id);
    }
}

/// The fragments of a message in I-DATA need not follow each other.
#[test]
fn the_same_for_messages_that_interleave() {
    let c = changed(config(), |c| {
        c.extensions.nr_sack_covers_undelivered = false;
        c.extensions.interleaving = true;
    });
    let theirs = bytes(&Parameter::SupportedExtensions(&[kind::NR_SACK, kind::I_DATA]));
    let (mut r, id) = accepted(&c, &theirs);
    let piece = |n: u32, stream: u16, fsn: u32, end: bool| {
        let flags = DataFlags { begin: fsn == 0, end, ..WHOLE };
        let (tsn, stream, mid) = (PEER_TSN.plus(n), StreamId(stream), Mid(0));
        bytes(&IData { header: IDataHeader { tsn, stream, mid, ppid: 7, fsn, flags }, payload: b"x" })
    };
    let steps: [Step<'_>; 4] = [
        (piece(1, 0, 0, false), u32::MAX, &[(2, 2)], &[]),
        (piece(2, 1, 0, false), u32::MAX, &[(2, 3)], &[]),
        (piece(4, 1, 1, true), u32::MAX, &[(2, 2)], &[(3, 3), (5, 5)]),
        (piece(3, 0, 1, true), u32::MAX, &[], &[(2, 5)]),
    ];
    for (i, (chunk, cum, renegable, kept)) in steps.into_iter().enumerate() {
        r.give(&[&chunk]);
        assert_eq!(newest(&mut r), Some((cum, renegable.to_vec(), kept.to_vec())), "step {i}");
    }
    assert_eq!(r.read(id), [b"xx", b"xx"]);
}

/// A FORWARD-TSN passes what the peer keeps and needs nothing else for; what waits for its turn it might drop.
#[test]
fn unordered_messages_that_stay_are_passed() {
    for unordered in [true, false] {
        let (mut r, id) = accepted(&config(), &[bytes(&Parameter::ForwardTsnSupported), offer()].concat());
        let now = r.now;
        for life in [Some(100), None, Some(100)] {
            let deadline = life.map(|l| now + ms(l));
            let options = SendOptions { unordered, deadline, ..SendOptions::default() };
            let mut a = r.endpoint.association_mut(id).expect("alive");
            a.send(now, options, bytes::Bytes::from_static(&[1; 900])).expect("taken");
            drop(a);
            r.drain();
        }
        let chunk = nr_sack(&r, 0, &[], &[(2, 2)]);
        r.give(&[&chunk]);
        let sent = r.run_until_sent(kind::FORWARD_TSN, ms(5_000)).expect("given up");
        let chunks = sent.chunks();
        let Chunk::ForwardTsn(f) = &chunks[0] else { panic!("{chunks:?}") };
        assert_eq!(f.new_cum.distance(r.first_tsn), if unordered { 2 } else { 0 });
        r.endpoint.association(id).expect("alive").check_invariants().expect("the books agree");
    }
}
