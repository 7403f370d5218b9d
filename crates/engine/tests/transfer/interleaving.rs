//! Messages that interleave: I-DATA and I-FORWARD-TSN (RFC 8260).

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{Mid, StreamId, Tsn};
use anabranch_engine::{AssocConfig, AssocId, CloseReason, Part, Phase, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_wire::{
    Chunk, DataFlags, ForwardTsnOut, IData, IDataHeader, IForwardTsnOut, Parameter, Params, Shutdown, Skipped, kind,
};
use bytes::Bytes;

fn config(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| c.extensions.interleaving = true)
}

const ALL: &[u8] = &[kind::I_DATA, kind::I_FORWARD_TSN, kind::FORWARD_TSN];

fn offer(list: &[u8]) -> Vec<u8> {
    [bytes(&Parameter::ForwardTsnSupported), bytes(&Parameter::SupportedExtensions(list))].concat()
}

fn accepted_with(ours: &AssocConfig, theirs: &[u8]) -> (Raw, AssocId) {
    let mut r = Raw::with(ours, |_| {});
    r.handshake(PEER_TAG, &offer(theirs));
    let id = r.only();
    r.take();
    r.events.clear();
    (r, id)
}

fn accepted() -> (Raw, AssocId) {
    accepted_with(&config("sctp"), ALL)
}

#[derive(Clone, Copy)]
struct Piece {
    stream: u16,
    unordered: bool,
    mid: u32,
    fsn: u32,
    end: bool,
}

/// Fragment `fsn` of an ordered message.
fn piece(stream: u16, mid: u32, fsn: u32, end: bool) -> Piece {
    Piece { stream, unordered: false, mid, fsn, end }
}

/// The I-DATA chunk of a piece at the peer's TSN number `n`.
fn i_data(n: u32, p: Piece, payload: &[u8]) -> Vec<u8> {
    let flags = DataFlags { unordered: p.unordered, begin: p.fsn == 0, end: p.end, immediate: false };
    let (tsn, stream, mid) = (PEER_TSN.plus(n), StreamId(p.stream), Mid(p.mid));
    bytes(&IData { header: IDataHeader { tsn, stream, mid, ppid: 7, fsn: p.fsn, flags }, payload })
}

fn skipping(n: u32, list: &[(u16, bool, u32)]) -> Vec<u8> {
    let entries: Vec<_> =
        list.iter().map(|&(s, unordered, mid)| Skipped { stream: StreamId(s), unordered, mid: Mid(mid) }).collect();
    bytes(&IForwardTsnOut { new_cum: PEER_TSN.plus(n), entries: &entries })
}

fn send(r: &mut Raw, id: AssocId, options: SendOptions, len: usize) {
    let now = r.now;
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, options, Bytes::from(vec![9; len])).expect("taken");
    drop(a);
    r.drain();
}

fn on(stream: u16) -> SendOptions {
    SendOptions { stream: StreamId(stream), ..SendOptions::default() }
}

/// The I-DATA headers of what was sent.
fn headers(sent: &[Sent]) -> Vec<IDataHeader> {
    let of = |s: &Sent| {
        let list = s.chunks().into_iter().filter_map(|c| match c {
            Chunk::IData(d) => Some(d.header),
            Chunk::Data(_) => panic!("DATA"),
            _ => None,
        });
        list.collect::<Vec<_>>()
    };
    sent.iter().flat_map(of).collect()
}

/// All that the endpoint has to send while everything is acknowledged at once.
fn sent_out(r: &mut Raw) -> Vec<IDataHeader> {
    let mut out = vec![];
    for _ in 0..200 {
        let list = headers(&r.take());
        let Some(last) = list.iter().map(|h| h.tsn).reduce(Tsn::max) else { break };
        out.extend(list);
        r.give(&[&sack(last)]);
    }
    out
}

/// Shows: ext/I1, ext/I2.
#[test]
fn it_is_used_when_both_announced_it_and_never_else() {
    for (ours, theirs, wanted) in [
        (true, ALL, kind::I_DATA),
        (true, &[kind::I_DATA][..], kind::I_DATA),
        (true, &[kind::FORWARD_TSN], kind::DATA),
        (true, &[kind::I_FORWARD_TSN], kind::DATA),
        (false, ALL, kind::DATA),
    ] {
        let c = changed(assoc_config("sctp"), |c| c.extensions.interleaving = ours);
        let mut r = Raw::with(&c, |_| {});
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &offer(theirs))]);
        let answer = r.take_one();
        let params = init_of(&answer).1;
        let listed = Params::new(&params).iter().flatten().any(|p| match p {
            Parameter::SupportedExtensions(l) => l.contains(&kind::I_DATA),
            _ => false,
        });
        assert_eq!(listed, wanted == kind::I_DATA, "{theirs:?}");
        r.tag = init_of(&answer).0.tag;
        r.echo(&cookie_of(&answer));
        let id = r.only();
        r.take();
        r.send(id, b"x");
        assert_eq!(r.take_one().kinds(), [wanted], "{ours} {theirs:?}");
    }
    let mut r = Raw::with(&config("sctp"), |e| e.accept = false);
    r.connect(&config("sctp"));
    let params = init_of(&r.take_one()).1;
    let list = Params::new(&params).iter().flatten().find_map(|p| match p {
        Parameter::SupportedExtensions(l) => Some(l.to_vec()),
        _ => None,
    });
    assert!(list.is_some_and(|l| ALL.iter().all(|k| l.contains(k))));
}

/// Shows: ext/I3, ext/I4.
#[test]
fn the_wrong_kind_ends_it() {
    let plain = changed(assoc_config("sctp"), |c| c.extensions.interleaving = true);
    let forward = bytes(&ForwardTsnOut { new_cum: PEER_TSN, streams: &[] });
    let cases = [
        (ALL, data(PEER_TSN, 0, b"x")),
        (ALL, forward),
        (&[kind::FORWARD_TSN][..], i_data(0, piece(0, 0, 0, true), b"x")),
        (&[kind::FORWARD_TSN], skipping(0, &[])),
    ];
    for (theirs, wrong) in cases {
        let (mut r, id) = accepted_with(&plain, theirs);
        r.give(&[&wrong]);
        assert_eq!(r.take_kinds(), [[kind::ABORT]], "{}", wrong[0]);
        assert!(matches!(closed(&r, id), Some(CloseReason::ProtocolViolation(_))));
    }
}

/// Shows: ext/I5, ext/I6, ext/I7, ext/I9.
#[test]
fn each_kind_of_message_counts_by_itself_and_fragments_from_0() {
    let (mut r, id) = accepted();
    let unordered = |stream| SendOptions { unordered: true, ppid: 51, ..on(stream) };
    send(&mut r, id, SendOptions { ppid: 50, ..on(1) }, 10);
    send(&mut r, id, unordered(1), 10);
    send(&mut r, id, SendOptions { ppid: 50, ..on(1) }, 3_000);
    send(&mut r, id, unordered(1), 10);
    send(&mut r, id, on(2), 10);
    let all = sent_out(&mut r);
    let of = |s: u16, u: bool| all.iter().filter(|h| (h.stream.0, h.flags.unordered) == (s, u)).collect::<Vec<_>>();
    assert_eq!(of(1, false).iter().map(|h| (h.mid.0, h.fsn)).collect::<Vec<_>>(), [(0, 0), (1, 0), (1, 1), (1, 2)]);
    assert_eq!(of(1, true).iter().map(|h| (h.mid.0, h.fsn)).collect::<Vec<_>>(), [(0, 0), (1, 0)]);
    assert_eq!(of(2, false).iter().map(|h| h.mid.0).collect::<Vec<_>>(), [0]);
    let long: Vec<_> = of(1, false)[1..].iter().map(|h| (h.flags.begin, h.flags.end, h.ppid)).collect();
    assert_eq!(long, [(true, false, 50), (false, false, 0), (false, true, 0)]);
    assert!(of(1, false).windows(2).all(|w| w[0].tsn.before(w[1].tsn)), "rising");
    // The two reserved bytes and flags.
    send(&mut r, id, on(3), 1);
    let sent = r.take_one();
    let chunk = sent.packet().chunks().next().expect("one").expect("framed");
    assert_eq!((&chunk.value[6..8], chunk.flags & 0xf0), (&[0u8, 0][..], 0));
}

/// Shows: ext/I5.
#[test]
fn reserved_bits_are_ignored() {
    let (mut r, id) = accepted();
    let mut odd = i_data(0, piece(1, 0, 0, true), b"abcd");
    odd[1] |= 0xf0;
    odd[10..12].fill(0xff);
    r.give(&[&odd]);
    assert_eq!(r.read(id), [b"abcd"]);
}

/// Shows: ext/I10.
#[test]
fn fragments_join_whatever_stands_between_them() {
    let pieces = [
        (0, piece(1, 0, 0, false), "a0"),
        (1, piece(2, 0, 0, false), "b0"),
        (2, Piece { stream: 1, unordered: true, mid: 0, fsn: 0, end: false }, "u0"),
        (3, piece(1, 0, 1, true), "a1"),
        (4, Piece { stream: 1, unordered: true, mid: 0, fsn: 1, end: true }, "u1"),
        (5, piece(2, 0, 1, false), "b1"),
        (6, piece(2, 0, 2, true), "b2"),
    ];
    // In order, and in an order that is none: TSNs say nothing about what belongs together.
    for order in [[0, 1, 2, 3, 4, 5, 6], [6, 4, 2, 0, 5, 3, 1]] {
        let (mut r, id) = accepted();
        for i in order {
            let (n, p, text) = pieces[i];
            r.give(&[&i_data(n, p, text.as_bytes())]);
        }
        let mut read = r.read(id);
        read.sort();
        assert_eq!(read, [b"a0a1".to_vec(), b"b0b1b2".to_vec(), b"u0u1".to_vec()]);
        let a = r.endpoint.association(id).expect("alive");
        assert_eq!((a.held_for_reading(), a.gaps()), (0, 0));
    }
}

/// Ordered messages wait for each other in their stream and for nothing else; MIDs pass 65535 and wrap at 2^32.
#[test]
fn order_is_by_mid() {
    let (mut r, id) = accepted();
    r.give(&[&i_data(0, piece(1, 1, 0, true), b"second"), &i_data(1, piece(2, 0, 0, true), b"other")]);
    assert_eq!(r.read(id), [b"other"]);
    r.give(&[&i_data(2, piece(1, 0, 0, true), b"first")]);
    assert_eq!(r.read(id), [b"first".to_vec(), b"second".to_vec()]);
    // Far on, by what the peer gave up.
    for (n, last) in [(3, 70_000), (6, 70_001 + (1 << 31) - 1), (9, u32::MAX)] {
        r.give(&[&skipping(n, &[(1, false, last)])]);
        let next = last.wrapping_add(1);
        r.give(&[&i_data(n + 2, piece(1, next.wrapping_add(1), 0, true), b"2")]);
        r.give(&[&i_data(n + 1, piece(1, next, 0, true), b"1")]);
        assert_eq!(r.read(id), [b"1", b"2"], "{last}");
        r.give(&[&skipping(n + 2, &[])]);
    }
}

#[test]
fn what_no_honest_peer_sends_ends_it() {
    let u = |mid, fsn, end| Piece { stream: 1, unordered: true, mid, fsn, end };
    let cases: [&[(u32, Piece)]; 6] = [
        &[(0, piece(1, 0, 0, true)), (1, piece(1, 0, 0, true))],
        &[(0, piece(1, 0, 0, false)), (1, piece(1, 0, 0, false))],
        &[(0, piece(1, 0, 2, true)), (1, piece(1, 0, 3, false))],
        &[(0, piece(1, 0, 3, false)), (1, piece(1, 0, 2, true))],
        &[(0, piece(1, 0, 2, true)), (1, piece(1, 0, 3, true))],
        &[(0, u(5, 1, false)), (1, u(5, 1, false))],
    ];
    for case in cases {
        let (mut r, id) = accepted();
        for (n, p) in case {
            r.give(&[&i_data(*n, *p, b"x")]);
        }
        assert_eq!(r.phase(id), Phase::Closed);
        assert!(r.take_kinds().concat().contains(&kind::ABORT));
    }
    // FSN 0 belongs to the first fragment.
    let (mut r, id) = accepted();
    let mut wrong = i_data(0, piece(1, 0, 1, false), b"x");
    wrong[16..20].fill(0);
    r.give(&[&wrong]);
    assert_eq!(r.phase(id), Phase::Closed);
}

/// Shows: ext/I11.
#[test]
fn what_the_peer_gave_up_is_passed() {
    let (mut r, id) = accepted();
    let u = |mid, fsn, end| Piece { stream: 1, unordered: true, mid, fsn, end };
    r.give(&[&i_data(0, piece(1, 0, 0, false), b"lost"), &i_data(1, u(0, 0, false), b"lost")]);
    r.give(&[&i_data(4, piece(1, 1, 0, true), b"waits"), &i_data(5, piece(2, 0, 1, true), b"kept")]);
    assert!(r.read(id).is_empty());
    // Ordered only, then unordered only.
    r.give(&[&skipping(2, &[(1, false, 0)])]);
    assert_eq!(r.read(id), [b"waits"]);
    assert!(r.endpoint.association(id).expect("alive").held_for_reading() > 0);
    r.give(&[&skipping(3, &[(1, true, 0)])]);
    r.give(&[&i_data(6, piece(2, 0, 0, false), b"is ")]);
    assert_eq!(r.read(id), [b"is kept"]);
    assert_eq!(r.endpoint.association(id).expect("alive").held_for_reading(), 0);
    // Late arrivals of what was skipped belong to no message.
    r.give(&[&i_data(7, piece(1, 0, 1, true), b"late"), &i_data(8, piece(1, 2, 0, true), b"next")]);
    assert_eq!(r.read(id), [b"next"]);
}

/// I-FORWARD-TSN passes nothing for a peer that announced no partial reliability, nor once the peer has nothing left to
/// send.
#[test]
fn what_was_not_agreed_on_passes_nothing() {
    let interleaving = bytes(&Parameter::SupportedExtensions(&[kind::I_DATA]));
    for (announced, ends, passes) in
        [(offer(ALL), false, true), (interleaving, false, false), (offer(ALL), true, false)]
    {
        let mut r = Raw::with(&config("sctp"), |_| {});
        r.handshake(PEER_TAG, &announced);
        let id = r.only();
        r.give(&[&i_data(1, piece(1, 1, 0, true), b"waits")]);
        if ends {
            r.send(id, b"keeps it open");
            r.give(&[&bytes(&Shutdown { cum_tsn: r.first_tsn.minus(1) })]);
            assert_eq!(r.phase(id), Phase::Closing);
        }
        r.give(&[&skipping(0, &[(1, false, 0)])]);
        assert_eq!(r.read(id) == [b"waits"], passes, "announced {announced:?}, ends {ends}");
    }
}

/// Shows: ext/I11, ext/I4.
#[test]
fn what_we_give_up_is_named_by_stream_kind_and_mid() {
    let (mut r, id) = accepted();
    let deadline = Some(r.now + ms(300));
    for options in [on(1), SendOptions { unordered: true, ..on(1) }, on(2)] {
        send(&mut r, id, SendOptions { deadline, ..options }, 1_100);
    }
    assert_eq!(headers(&r.take()).len(), 3);
    let sent = r.run_until_sent(kind::I_FORWARD_TSN, ms(5_000)).expect("given up");
    let found = sent.chunks().into_iter().find_map(|c| match c {
        Chunk::IForwardTsn(f) => Some((f.new_cum, f.entries().collect::<Vec<_>>())),
        _ => None,
    });
    let entry = |stream, unordered| Skipped { stream: StreamId(stream), unordered, mid: Mid(0) };
    assert_eq!(found, Some((r.first_tsn.plus(2), vec![entry(1, false), entry(1, true), entry(2, false)])));
    assert!(!sent.kinds().contains(&kind::FORWARD_TSN));
}

/// Shows: ext/I12.
#[test]
fn a_reset_takes_both_counters_to_0() {
    let ours = changed(config("sctp"), |c| c.extensions.stream_reconfiguration = true);
    let (mut r, id) = accepted_with(&ours, &[kind::I_DATA, kind::RE_CONFIG]);
    let unordered = SendOptions { unordered: true, ..on(1) };
    for options in [on(1), unordered, on(1), unordered, on(2)] {
        send(&mut r, id, options, 1);
    }
    let last = sent_out(&mut r).last().expect("sent").tsn;
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").reset_streams(now, &[StreamId(1)], true, false).expect("taken");
    r.drain();
    let done = Parameter::ReconfigResponse { response: r.first_tsn.0, result: 1, tsns: None };
    r.give(&[&sack(last), &bytes(&anabranch_wire::ReConfigOut { params: &bytes(&done) })]);
    r.take();
    for options in [on(1), unordered, on(2)] {
        send(&mut r, id, options, 1);
    }
    let mids: Vec<_> = sent_out(&mut r).iter().map(|h| (h.stream.0, h.flags.unordered, h.mid.0)).collect();
    assert_eq!(mids, [(1, false, 0), (1, true, 0), (2, false, 1)]);
    // And those of the peer.
    let t = PEER_TSN;
    r.give(&[&i_data(0, piece(1, 0, 0, true), b"a"), &i_data(1, piece(2, 0, 0, true), b"a")]);
    let ask = Parameter::OutgoingReset { request: t.0, response: 0, last_tsn: t.plus(1), streams: &[0, 1] };
    r.give(&[&bytes(&anabranch_wire::ReConfigOut { params: &bytes(&ask) })]);
    r.give(&[&i_data(2, piece(1, 0, 0, true), b"b"), &i_data(3, piece(2, 1, 0, true), b"b")]);
    assert_eq!(r.read(id).len(), 4);
}

/// Shows: ext/I8, ext/I14.
#[test]
fn an_urgent_message_overtakes_one_that_is_half_sent() {
    for interleaving in [true, false] {
        let mut profile = assoc_config("sctp").profile;
        profile.set(Hook::StreamScheduler, "priority").expect("registered");
        // A window that does not outgrow the path's queue: what is queued there cannot be overtaken.
        let c = changed(assoc_config("sctp"), |c| {
            c.extensions.interleaving = interleaving;
            c.profile = profile;
            c.sending.initial_ssthresh = 15_000;
        });
        let mut b = Bench::connected(3, &c, &[(link(2, 20), link(2, 20))]);
        b.strict = true;
        assert!(b.send(Side::Client, on(1), pattern(1, 300_000)));
        b.run_for(ms(300));
        let asked = b.now;
        assert!(b.send(Side::Client, on(0), &b"urgent"[..]));
        let until = asked + ms(10_000);
        b.run_until(until, |b| !b.at_server.is_empty());
        let m = b.at_server.remove(0);
        assert_eq!(m.stream.0 == 0, interleaving, "who comes first");
        let took = b.now.since(asked);
        assert_eq!(took < ms(400), interleaving, "{took:?}");
        b.run_for(ms(10_000));
        assert_eq!(b.at_server.len(), 1);
    }
}

/// A message larger than the receive buffer comes in parts, and another beside it.
#[test]
fn messages_larger_than_the_buffer_come_in_parts() {
    let c = changed(config("sctp"), |c| {
        c.messages.partial_delivery = true;
        c.limits.receive_buffer = 30_000;
    });
    let mut b = Bench::connected(3, &c, &[(link(10, 20), link(10, 20))]);
    b.strict = true;
    let (one, two) = (pattern(1, 200_000), pattern(2, 150_000));
    assert!(b.send(Side::Client, on(1), one.clone()) && b.send(Side::Client, on(2), two.clone()));
    b.run_for(ms(20_000));
    for (stream, wanted) in [(1, one), (2, two)] {
        let parts: Vec<_> = b.at_server.iter().filter(|m| m.stream.0 == stream).collect();
        let all: Vec<u8> = parts.iter().flat_map(|m| m.payload.clone().into_bytes().to_vec()).collect();
        assert!(all == wanted, "stream {stream}: {} of {}", all.len(), wanted.len());
        assert_eq!(parts.last().map(|m| m.part), Some(Part::Last));
    }
}

/// Everything arrives once and in order, on two paths that lose, with messages of all sizes on many streams.
#[test]
fn nothing_is_lost_under_loss() {
    for profile in ["sctp", "cmt", "live", "confluent"] {
        let mut b = Bench::connected(8, &config(profile), &[(link(8, 15), link(8, 15)), (link(4, 40), link(4, 40))]);
        b.strict = true;
        let mut n = 0u32;
        b.filter = Some(Box::new(move |_| {
            n += 1;
            !n.is_multiple_of(11)
        }));
        let flows = [(1, 300), (2, 5_000), (3, 20_000), (4, 40)];
        let mut sent = std::collections::BTreeMap::new();
        for round in 0..30u32 {
            for (stream, size) in flows {
                assert!(b.send(Side::Client, on(stream), numbered(stream, round, size)));
                sent.insert((stream, round), size);
            }
        }
        b.run_for(ms(60_000));
        let mut next = [0u32; 5];
        for m in b.at_server.drain(..) {
            let (stream, i) = number_of(&m);
            assert_eq!(i, next[usize::from(stream)], "{profile}");
            next[usize::from(stream)] += 1;
            assert_eq!(m.payload.len(), sent[&(stream, i)]);
        }
        assert_eq!(next[1..], [30; 4], "{profile}");
        b.check();
    }
}

/// RFC 8260 §2.1: unordered messages have an identifier too.
#[test]
fn every_message_comes_with_its_identifier() {
    let (mut r, id) = accepted();
    let unordered = Piece { unordered: true, ..piece(1, 70_000, 0, true) };
    r.give(&[&i_data(0, piece(1, 0, 0, true), b"a"), &i_data(1, unordered, b"b")]);
    let mut a = r.endpoint.association_mut(id).expect("alive");
    let got: Vec<_> = std::iter::from_fn(|| a.recv()).map(|m| (m.mid, m.ssn.is_some())).collect();
    assert_eq!(got, [(Some(Mid(0)), true), (Some(Mid(70_000)), false)]);
}
