use super::super::tests::{T0, put};
use super::super::{CHUNK_CHARGE, Reassembly};
use crate::message::Part;
use anabranch_base::{Mid, StreamId, Tsn};
use anabranch_wire::{DataFlags, IDataHeader, Skipped};
use bytes::Bytes;

/// At offset, of stream, with SSN, flags.
type Chunk = (u64, u16, u16, &'static str);

/// The user has the first two fragments of a message; stream 1 and SSN 0 when it is ordered.
fn half(gives_up: bool, unordered: &str) -> Reassembly {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    r.peer_gives_up(gives_up);
    put(&mut r, 0, 1, 0, &format!("B{unordered}")).unwrap();
    put(&mut r, 1, 1, 0, unordered).unwrap();
    assert!(r.deliver_part(T0 + 1));
    assert_eq!(r.pop().map(|m| m.part), Some(Part::More));
    r
}

fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![vec![]];
    for n in 0..n {
        let more = |o: Vec<usize>| (0..=n).map(move |at| [&o[..at], &[n], &o[at..]].concat());
        orders = orders.into_iter().flat_map(more).collect();
    }
    orders
}

/// Inserts them in this order behind offset 1; what the user gets, or whether it is a violation.
fn of(r: &mut Reassembly, chunks: &[Chunk], order: &[usize]) -> Option<Vec<(u16, Part, String)>> {
    let (mut here, mut got) = (vec![], vec![]);
    for &i in order {
        let (at, stream, ssn, flags) = chunks[i];
        here.push(at);
        put(r, at, stream, ssn, flags).ok()?;
        let cum = (2..).take_while(|at| here.contains(at)).last().unwrap_or(1);
        r.check_cum(T0 + cum).ok()?;
        let text = |m: crate::message::Message| String::from_utf8(m.payload.into_bytes().to_vec()).unwrap();
        got.extend(std::iter::from_fn(|| r.pop()).map(|m| (m.stream.0, m.part, text(m))));
    }
    Some(got)
}

/// Two more fragments of the half delivered message and no end; then messages of its stream and of another one.
const NO_END: [(&str, [Chunk; 6]); 3] = [
    ("", [(2, 1, 0, ""), (3, 1, 0, ""), (4, 1, 1, "B"), (5, 1, 1, "E"), (6, 2, 0, "BE"), (7, 1, 2, "BE")]),
    ("", [(2, 1, 0, ""), (3, 1, 0, ""), (4, 2, 0, "BE"), (5, 1, 1, "BE"), (6, 1, 2, "B"), (7, 1, 2, "E")]),
    ("U", [(2, 1, 0, "U"), (3, 1, 0, "U"), (4, 1, 0, "BU"), (5, 1, 0, "EU"), (6, 2, 0, "BE"), (7, 1, 0, "BE")]),
];

/// Shows: ext/F13.
#[test]
fn a_half_delivered_message_without_an_end_is_passed_in_every_order() {
    for (unordered, chunks) in NO_END {
        for order in orders(chunks.len()) {
            let mut r = half(true, unordered);
            let got = of(&mut r, &chunks, &order).unwrap_or_else(|| panic!("{order:?}: a violation"));
            let ends: Vec<usize> = (0..got.len()).filter(|i| got[*i].1 == Part::Abandoned).collect();
            assert_eq!(ends.len(), 1, "{order:?}: {got:?}");
            let parts = |from: &[(u16, Part, String)]| from.iter().filter(|m| m.1 == Part::More).count();
            assert_eq!(parts(&got[ends[0]..]), 0, "{order:?}: more of it behind its end: {got:?}");
            let whole = |stream| got.iter().filter(move |m| m.0 == stream && m.1 == Part::Whole).map(|m| m.2.as_str());
            assert_eq!((whole(1).count(), whole(2).count()), (2, 1), "{order:?}: {got:?}");
            if unordered.is_empty() {
                assert!(whole(1).is_sorted(), "{order:?}: {got:?}");
                let first = got.iter().position(|m| m.0 == 1 && m.1 == Part::Whole);
                assert!(first > Some(ends[0]), "{order:?}: another one before its end: {got:?}");
            }
            assert_eq!(r.held_bytes(), 0, "{order:?}");
        }
    }
}

/// What a peer may do with PR-SCTP only.
#[test]
fn without_giving_up_no_order_is_allowed() {
    for (unordered, chunks) in NO_END {
        for order in orders(chunks.len()) {
            assert_eq!(of(&mut half(false, unordered), &chunks, &order), None, "{order:?}");
        }
    }
}

/// Its stream begins again, so the number it had may come again.
#[test]
fn a_reset_ends_what_is_half_delivered() {
    let mut r = half(true, "");
    put(&mut r, 3, 2, 0, "BE").unwrap();
    r.reset_streams(&[StreamId(1)]);
    let chunks = [(2, 2, 1, "BE"), (4, 1, 0, "BE"), (5, 1, 1, "BE")];
    let got = of(&mut r, &chunks, &[0, 1, 2]).unwrap();
    let parts: Vec<_> = got.iter().map(|m| (m.0, m.1)).collect();
    let whole = |stream| (stream, Part::Whole);
    assert_eq!(parts, [whole(2), (1, Part::Abandoned), whole(2), whole(1), whole(1)]);
}

/// I-DATA names message and fragment, so that no TSN says where one ends: the same goes on until it is skipped.
#[test]
fn interleaved_messages_without_an_end_wait_to_be_skipped() {
    let mut r = Reassembly::new(4, CHUNK_CHARGE);
    r.peer_gives_up(true);
    let put = |r: &mut Reassembly, at: u32, mid: u32, fsn: u32, begin: bool, end: bool| {
        let flags = DataFlags { immediate: false, unordered: false, begin, end };
        let h = IDataHeader { tsn: Tsn(at), stream: StreamId(1), mid: Mid(mid), ppid: 0, fsn, flags };
        r.insert_interleaved(&h, Bytes::from_static(b"x")).unwrap();
    };
    put(&mut r, 0, 0, 0, true, false);
    assert!(r.deliver_parts_interleaved());
    put(&mut r, 3, 1, 0, true, false);
    put(&mut r, 2, 0, 2, false, false);
    put(&mut r, 1, 0, 1, false, false);
    put(&mut r, 4, 1, 1, false, true);
    r.check_cum(T0 + 4).unwrap();
    r.forward_interleaved(&mut [Skipped { stream: StreamId(1), unordered: false, mid: Mid(0) }].into_iter());
    let got: Vec<_> = std::iter::from_fn(|| r.pop()).map(|m| (m.mid, m.part)).collect();
    let (half, next) = (Some(Mid(0)), Some(Mid(1)));
    let (more, abandoned) = ((half, Part::More), (half, Part::Abandoned));
    assert_eq!(got, [more, more, abandoned, (next, Part::Whole)]);
    assert_eq!(r.held_bytes(), 0);
}
