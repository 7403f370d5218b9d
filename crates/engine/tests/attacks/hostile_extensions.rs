//! The chunks of the extensions from a peer who breaks their rules: no panic, no memory, no answer that amplifies, and
//! an association that goes on or ends in order.

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Mid, StreamId};
use anabranch_engine::{AssocId, Phase};
use anabranch_wire::{
    Cwr, DataFlags, Ecne, GapBlock, IData, IDataHeader, IForwardTsnOut, NrSackOut, Pad, Parameter, ReConfigOut,
    Skipped, kind,
};

const BUFFER: usize = 100_000;

/// Everything on, and the same announced by the peer.
fn accepted() -> (Raw, AssocId) {
    let config = changed(assoc_config("sctp"), |c| {
        c.extensions.interleaving = true;
        c.extensions.nr_sack = true;
        c.extensions.stream_reconfiguration = true;
        c.limits.receive_buffer = BUFFER;
    });
    let mut r = Raw::with(&config, |_| {});
    let list = [kind::FORWARD_TSN, kind::I_DATA, kind::I_FORWARD_TSN, kind::RE_CONFIG, kind::NR_SACK];
    r.handshake(PEER_TAG, &bytes(&Parameter::SupportedExtensions(&list)));
    let id = r.only();
    r.take();
    (r, id)
}

fn check(r: &Raw, id: AssocId) -> usize {
    let a = r.endpoint.association(id).expect("alive");
    a.check_invariants().expect("the books agree");
    a.held_for_reading() as usize
}

fn i_data(n: u32, stream: u16, mid: u32, fsn: u32, len: usize) -> Vec<u8> {
    let flags = DataFlags { begin: fsn == 0, ..DataFlags::default() };
    let header = IDataHeader { tsn: PEER_TSN.plus(n), stream: StreamId(stream), mid: Mid(mid), ppid: 0, fsn, flags };
    bytes(&IData { header, payload: &vec![1; len] })
}

fn re_config(params: &[Parameter<'_>]) -> Vec<u8> {
    let list: Vec<u8> = params.iter().flat_map(bytes).collect();
    bytes(&ReConfigOut { params: &list })
}

/// The beginnings of more messages than anybody needs: what is held is what the window allows.
#[test]
fn a_thousand_messages_that_never_end() {
    for spread in [1, 7, 1 << 20] {
        let (mut r, id) = accepted();
        for n in 0..3_000 {
            r.give(&[&i_data(n, (n % 10) as u16, (n / 10).wrapping_mul(spread), n % 2, 900)]);
            if r.phase(id) == Phase::Closed {
                break;
            }
            // The very next piece has room when there is nothing to read, as with DATA.
            assert!(check(&r, id) <= 2 * BUFFER + 2_000);
        }
        let answered: usize = r.take().iter().map(|s| s.bytes.len()).sum();
        assert!(answered < 3_000 * 60, "{answered}");
    }
}

/// Skipping to any identifier costs nothing but what is skipped.
#[test]
fn skips_to_anywhere() {
    let (mut r, id) = accepted();
    for n in 0..1_000u32 {
        let wild = n.wrapping_mul(0x9e37_79b9);
        let entries: Vec<_> = (0..40)
            .map(|i| Skipped {
                stream: StreamId(i * 1_600),
                unordered: i % 2 == 0,
                mid: Mid(wild.rotate_left(i.into())),
            })
            .collect();
        let skip = bytes(&IForwardTsnOut { new_cum: PEER_TSN.plus(3 * n), entries: &entries });
        r.give(&[&skip, &i_data(3 * n + 2, 0, wild, 0, 100)]);
        if r.phase(id) == Phase::Closed {
            return;
        }
        assert!(check(&r, id) <= BUFFER);
    }
    assert_eq!(r.phase(id), Phase::Established);
}

/// Requests by the thousand in a packet and in many: one packet of answers for each, whatever they ask for.
#[test]
fn requests_without_end() {
    let (mut r, id) = accepted();
    let mut number = PEER_TSN.0;
    for round in 0..2_000u32 {
        let ask = match round % 6 {
            0 => Parameter::OutgoingReset {
                request: number,
                response: round,
                last_tsn: PEER_TSN.plus(1 << 20),
                streams: &[],
            },
            1 => Parameter::IncomingReset { request: number, streams: &[] },
            2 => Parameter::TsnReset { request: number.wrapping_add(7) },
            3 => Parameter::AddOutgoing { request: number, streams: u16::MAX },
            4 => Parameter::AddIncoming { request: number, streams: u16::MAX },
            _ => Parameter::ReconfigResponse { response: r.first_tsn.0.wrapping_add(round), result: round, tsns: None },
        };
        let chunk = re_config(&[ask]);
        r.give(&[&chunk, &chunk, &chunk, &chunk]);
        let sent = r.take();
        let bytes: usize = sent.iter().map(|s| s.bytes.len()).sum();
        assert!(sent.len() <= 3 && bytes <= 200, "{} packets, {bytes} bytes for {ask:?}", sent.len());
        number = number.wrapping_add(round % 2);
        check(&r, id);
        let (out, inn) = r.endpoint.association(id).expect("alive").streams();
        assert!(out <= 2_048 && inn <= 2_048);
    }
    assert_eq!(r.phase(id), Phase::Established);
}

/// A reset that waits for data that never comes holds what comes instead within the window.
#[test]
fn a_reset_for_ever_deferred_holds_no_more_than_the_window() {
    let (mut r, id) = accepted();
    let streams = [0, 1];
    let ask =
        Parameter::OutgoingReset { request: PEER_TSN.0, response: 0, last_tsn: PEER_TSN.plus(5), streams: &streams };
    r.give(&[&re_config(&[ask])]);
    for n in 6..3_000 {
        r.give(&[&i_data(n, 1, n, 0, 900)]);
        assert!(check(&r, id) <= BUFFER + 2_000);
    }
    assert_eq!(r.phase(id), Phase::Established);
}

/// Kept, taken back, kept again, in blocks of any shape.
#[test]
fn acknowledgements_kept_and_taken_back() {
    let (mut r, id) = accepted();
    for _ in 0..3 {
        r.send(id, &[1; 1_000]);
    }
    let shapes: [&[(u16, u16)]; 6] = [&[(2, 3)], &[], &[(2, 2)], &[(3, 3)], &[(2, 2), (3, 3)], &[(3, 2)]];
    for round in 0..2_000usize {
        let list = |i: usize| shapes[i % 6].iter().map(|&(start, end)| GapBlock { start, end }).collect::<Vec<_>>();
        let (gaps, kept) = (list(round), list(round / 6));
        let chunk = bytes(&NrSackOut {
            cum_tsn: r.first_tsn.minus(1),
            a_rwnd: 100_000,
            gaps: &gaps,
            kept: &kept,
            duplicates: &[],
        });
        r.give(&[&chunk]);
        check(&r, id);
    }
    assert!(r.take().len() < 50);
    assert_eq!(r.phase(id), Phase::Established);
}

/// Filler and what was not agreed on says nothing and changes nothing.
#[test]
fn filler_and_marks_that_were_not_asked_for() {
    let (mut r, id) = accepted();
    r.give(&[&bytes(&Pad { len: 1_000 }), &i_data(0, 1, 0, 0, 10)]);
    assert!(check(&r, id) > 0, "behind the filler");
    r.take();
    for (chunk, _) in [(bytes(&Ecne { tsn: r.first_tsn, marked: 9 }), 0), (bytes(&Cwr { flags: 0, tsn: PEER_TSN }), 0)]
    {
        r.give(&[&chunk, &i_data(1, 1, 1, 0, 10)]);
        assert!(r.take().is_empty(), "an unknown chunk of the kind that ends its packet in silence");
    }
    assert_eq!(r.phase(id), Phase::Established);
}
