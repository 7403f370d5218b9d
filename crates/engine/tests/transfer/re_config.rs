//! Streams reset and added (RFC 6525).

mod again;
mod refused;

use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{StreamId, Tsn};
use anabranch_engine::{AssocConfig, AssocId, Event, Phase, ReconfigError, SendOptions};
use anabranch_wire::{
    Chunk, Data, DataFlags, DataHeader, Parameter, Params, ReConfigOut, cause_code, kind, reconfig_result as result,
};

fn config() -> AssocConfig {
    changed(assoc_config("sctp"), |c| {
        c.extensions.stream_reconfiguration = true;
        c.limits.max_streams = 40;
    })
}

fn offer() -> Vec<u8> {
    bytes(&Parameter::SupportedExtensions(&[kind::RE_CONFIG]))
}

/// 10 streams each way, the peer's request numbers begin at [`PEER_TSN`].
fn accepted() -> (Raw, AssocId) {
    accepted_with(&config())
}

fn accepted_with(config: &AssocConfig) -> (Raw, AssocId) {
    let mut r = Raw::with(config, |_| {});
    r.handshake(PEER_TAG, &offer());
    let id = r.only();
    r.take();
    r.events.clear();
    (r, id)
}

fn asking(params: &[Parameter<'_>]) -> Vec<u8> {
    let list: Vec<u8> = params.iter().flat_map(bytes).collect();
    bytes(&ReConfigOut { params: &list })
}

/// Parameters of the RE-CONFIGs in what was sent, chunk by chunk.
fn asked(sent: &[Sent]) -> Vec<Vec<u8>> {
    let of = |s: &Sent| {
        s.packet()
            .chunks()
            .flatten()
            .filter(|c| c.kind == kind::RE_CONFIG)
            .map(|c| c.value.to_vec())
            .collect::<Vec<_>>()
    };
    sent.iter().flat_map(of).collect()
}

fn responses(sent: &[Sent]) -> Vec<(u32, u32)> {
    let all = asked(sent).concat_padded();
    let of = |p| match p {
        Parameter::ReconfigResponse { response, result, .. } => Some((response, result)),
        _ => None,
    };
    Params::new(&all).iter().flatten().filter_map(of).collect()
}

trait ConcatPadded {
    fn concat_padded(&self) -> Vec<u8>;
}

impl ConcatPadded for Vec<Vec<u8>> {
    fn concat_padded(&self) -> Vec<u8> {
        let mut out = vec![];
        for v in self {
            out.extend_from_slice(v);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }
}

fn answer(number: u32, result: u32) -> Vec<u8> {
    asking(&[Parameter::ReconfigResponse { response: number, result, tsns: None }])
}

fn send_on(r: &mut Raw, id: AssocId, stream: u16, payload: &'static [u8]) {
    let now = r.now;
    let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
    let mut a = r.endpoint.association_mut(id).expect("alive");
    a.send(now, options, bytes::Bytes::from_static(payload)).expect("taken");
    drop(a);
    r.drain();
}

/// TSN, stream and SSN of the DATA that was sent.
fn numbers(sent: &[Sent]) -> Vec<(Tsn, u16, u16)> {
    let of = |s: &Sent| {
        let list = s.chunks().into_iter().filter_map(|c| match c {
            Chunk::Data(d) => Some((d.header.tsn, d.header.stream.0, d.header.ssn.0)),
            _ => None,
        });
        list.collect::<Vec<_>>()
    };
    sent.iter().flat_map(of).collect()
}

fn peer_data(tsn: Tsn, stream: u16, ssn: u16, payload: &[u8]) -> Vec<u8> {
    let flags = DataFlags { begin: true, end: true, ..DataFlags::default() };
    let header = DataHeader { tsn, stream: StreamId(stream), ssn: anabranch_base::Ssn(ssn), ppid: 0, flags };
    bytes(&Data { header, payload })
}

fn reset(r: &mut Raw, id: AssocId, streams: &[u16], outgoing: bool, incoming: bool) -> Result<(), ReconfigError> {
    let (now, streams) = (r.now, streams.iter().map(|s| StreamId(*s)).collect::<Vec<_>>());
    let out = r.endpoint.association_mut(id).expect("alive").reset_streams(now, &streams, outgoing, incoming);
    r.drain();
    out
}

/// Shows: ext/R1.
#[test]
fn without_the_peer_there_is_none() {
    for theirs in [vec![], offer()] {
        let ours = if theirs.is_empty() { config() } else { assoc_config("sctp") };
        let mut r = Raw::with(&ours, |_| {});
        r.handshake(PEER_TAG, &theirs);
        let id = r.only();
        assert_eq!(reset(&mut r, id, &[], true, false), Err(ReconfigError::NotSupported));
        r.give(&[&asking(&[Parameter::TsnReset { request: PEER_TSN.0 }])]);
        assert!(asked(&r.take()).is_empty());
    }
}

/// Shows: ext/R3, ext/R5.
#[test]
fn an_outgoing_reset_says_the_last_tsn_and_holds_what_comes_later() {
    let (mut r, id) = accepted();
    send_on(&mut r, id, 1, b"a");
    send_on(&mut r, id, 2, b"a");
    assert_eq!(reset(&mut r, id, &[1], true, false), Ok(()));
    let sent = r.take();
    let first = r.first_tsn;
    assert_eq!(numbers(&sent), [(first, 1, 0), (first.next(), 2, 0)]);
    let params = asked(&sent).concat();
    let wanted = Parameter::OutgoingReset {
        request: first.0,
        response: PEER_TSN.0.wrapping_sub(1),
        last_tsn: first.next(),
        streams: &[0, 1],
    };
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(wanted)]);
    r.give(&[&sack(first.next())]);
    send_on(&mut r, id, 1, b"b");
    send_on(&mut r, id, 2, b"b");
    assert_eq!(numbers(&r.take()), [(first.plus(2), 2, 1)], "stream 1 waits");
    r.give(&[&sack(first.plus(2)), &answer(first.0, result::PERFORMED)]);
    assert_eq!(numbers(&r.take()), [(first.plus(3), 1, 0)], "and begins with 0");
    assert!(r.events_of(id).contains(&Event::StreamsReset { streams: vec![StreamId(1)], incoming: false }));
    // The next request has the next number.
    assert_eq!(reset(&mut r, id, &[], true, false), Ok(()));
    let params = asked(&r.take()).concat();
    assert!(
        matches!(Params::new(&params).iter().next(), Some(Ok(Parameter::OutgoingReset { request, streams: [], .. })) if request == first.0.wrapping_add(1))
    );
}

/// Shows: ext/R13.
#[test]
fn a_refusal_leaves_the_numbers_as_they_were() {
    for what in [result::DENIED, result::WRONG_SSN, result::BAD_SEQUENCE] {
        let (mut r, id) = accepted();
        send_on(&mut r, id, 1, b"a");
        reset(&mut r, id, &[1], true, false).expect("taken");
        send_on(&mut r, id, 1, b"b");
        r.take();
        let first = r.first_tsn;
        r.give(&[&sack(first), &answer(first.0, what)]);
        assert_eq!(numbers(&r.take()), [(first.next(), 1, 1)]);
        assert!(r.events_of(id).contains(&Event::ReconfigFailed { result: what }));
        r.give(&[&sack(first.next())]);
        r.run_for(ms(20_000));
        assert!(asked(&r.take()).is_empty(), "it is over");
    }
}

/// Shows: ext/R2.
#[test]
fn without_an_answer_the_same_comes_again_later_and_later_and_counts() {
    let (mut r, id) = accepted();
    let start = r.now;
    reset(&mut r, id, &[3], true, true).expect("taken");
    reset(&mut r, id, &[4], true, false).expect("taken");
    r.run_for(ms(16_000));
    let sent = r.take();
    let list = asked(&sent);
    assert!(list.len() >= 4 && list.iter().all(|p| *p == list[0]), "one request at a time: {list:?}");
    let times: Vec<u64> =
        sent.iter().filter(|s| s.kinds().contains(&kind::RE_CONFIG)).map(|s| s.at.since(start).as_millis()).collect();
    assert_eq!(times[..4], [0, 1_000, 3_000, 7_000]);
    // Nothing is answered at all: the association ends as it does without acknowledgements.
    r.run_for(ms(2_000_000));
    assert_eq!(r.phase(id), Phase::Closed);
}

/// Shows: ext/R13.
#[test]
fn in_progress_is_no_error() {
    let (mut r, id) = accepted();
    reset(&mut r, id, &[3], true, false).expect("taken");
    let first = r.first_tsn;
    for _ in 0..30 {
        r.give(&[&answer(first.0, result::IN_PROGRESS)]);
        let sent = r.run_until_sent(kind::RE_CONFIG, ms(2_500)).expect("asked again");
        assert_eq!(asked(&[sent]).len(), 1);
    }
    assert_eq!(r.phase(id), Phase::Established);
    let a = r.endpoint.association(id).expect("alive");
    assert!(a.paths().all(|(_, p)| p.errors == 0));
    r.give(&[&answer(first.0, result::PERFORMED)]);
    assert!(r.events_of(id).contains(&Event::StreamsReset { streams: vec![StreamId(3)], incoming: false }));
}

/// Shows: ext/R4.
#[test]
fn only_some_may_stand_together() {
    let n = PEER_TSN.0;
    let out = |request| Parameter::OutgoingReset { request, response: n, last_tsn: PEER_TSN.minus(1), streams: &[] };
    let pairs = [
        vec![Parameter::TsnReset { request: n }, out(n.wrapping_add(1))],
        vec![out(n), Parameter::AddOutgoing { request: n + 1, streams: 1 }],
        vec![out(n), out(n + 1), out(n + 2)],
        vec![Parameter::AddOutgoing { request: n, streams: 1 }, Parameter::AddOutgoing { request: n + 1, streams: 1 }],
        vec![],
    ];
    for pair in pairs {
        let (mut r, id) = accepted();
        r.give(&[&asking(&pair)]);
        let answer = r.take_one();
        assert_eq!((answer.kinds(), causes_of(&answer)[0].0), (vec![kind::ERROR], cause_code::PROTOCOL_VIOLATION));
        assert_eq!(r.phase(id), Phase::Established);
    }
    let (mut r, id) = accepted();
    reset(&mut r, id, &[], true, true).expect("taken");
    let both = asked(&r.take()).concat_padded();
    let kinds: Vec<u16> = Params::new(&both).iter_raw().flatten().map(|p| p.kind).collect();
    assert_eq!(kinds, [13, 14]);
}

/// Shows: ext/R6, ext/R7.
#[test]
fn the_peers_streams_begin_again() {
    let (mut r, id) = accepted();
    let (n, t) = (PEER_TSN.0, PEER_TSN);
    r.give(&[&peer_data(t, 1, 0, b"a"), &peer_data(t.plus(1), 2, 0, b"a")]);
    let ask = asking(&[Parameter::OutgoingReset { request: n, response: 0, last_tsn: t.plus(1), streams: &[0, 1] }]);
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::PERFORMED)]);
    assert!(r.events_of(id).contains(&Event::StreamsReset { streams: vec![StreamId(1)], incoming: true }));
    r.give(&[&peer_data(t.plus(2), 1, 0, b"b"), &peer_data(t.plus(3), 2, 1, b"b")]);
    assert_eq!(r.read(id).len(), 4);
    // A repeated request gets an equal answer, and nothing is done twice.
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::PERFORMED)]);
    r.give(&[&peer_data(t.plus(4), 1, 1, b"c")]);
    assert_eq!(r.read(id).len(), 1);
    for wrong in [n.wrapping_sub(1), n + 2, n + 1_000] {
        r.take();
        r.give(&[&asking(&[Parameter::OutgoingReset { request: wrong, response: 0, last_tsn: t, streams: &[] }])]);
        assert_eq!(responses(&r.take()), [(wrong, result::BAD_SEQUENCE)]);
    }
    r.give(&[&asking(&[Parameter::OutgoingReset { request: n + 1, response: 0, last_tsn: t, streams: &[0, 99] }])]);
    assert_eq!(responses(&r.take()), [(n + 1, result::WRONG_SSN)]);
}

/// Shows: ext/R7.
#[test]
fn a_reset_waits_for_the_last_of_the_old_data() {
    let (mut r, id) = accepted();
    let (n, t) = (PEER_TSN.0, PEER_TSN);
    r.give(&[&peer_data(t, 1, 0, b"first")]);
    let ask = asking(&[Parameter::OutgoingReset { request: n, response: 0, last_tsn: t.plus(1), streams: &[0, 1] }]);
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::IN_PROGRESS)]);
    // New data of the stream is early, that of others is not.
    r.give(&[&peer_data(t.plus(2), 1, 0, b"new")]);
    r.give(&[&peer_data(t.plus(3), 1, 1, b"newer"), &peer_data(t.plus(4), 2, 0, b"other")]);
    let read = r.read(id);
    assert_eq!(read, [b"first".to_vec(), b"other".to_vec()]);
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::IN_PROGRESS)]);
    r.give(&[&peer_data(t.plus(1), 1, 1, b"last")]);
    assert_eq!(r.read(id), [b"last".to_vec(), b"new".to_vec(), b"newer".to_vec()]);
    assert_eq!(responses(&r.take()), [(n, result::PERFORMED)]);
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::PERFORMED)]);
    r.endpoint.association(id).expect("alive").check_invariants().expect("the books agree");
}

/// Shows: ext/R8.
#[test]
fn an_incoming_request_is_met_by_an_outgoing_one() {
    let (mut r, id) = accepted();
    send_on(&mut r, id, 1, b"a");
    let (n, first) = (PEER_TSN.0, r.first_tsn);
    r.give(&[&sack(first)]);
    r.take();
    let ask = asking(&[Parameter::IncomingReset { request: n, streams: &[0, 1] }]);
    r.give(&[&ask]);
    let params = asked(&r.take()).concat();
    let wanted = Parameter::OutgoingReset { request: first.0, response: n, last_tsn: first, streams: &[0, 1] };
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(wanted)]);
    // Repeated while ours is under way: ours again. Another one that ours covers has nothing to do.
    r.give(&[&ask]);
    assert_eq!(asked(&r.take()).concat(), params);
    r.give(&[&asking(&[Parameter::IncomingReset { request: n + 1, streams: &[0, 1] }])]);
    assert_eq!(responses(&r.take()), [(n + 1, result::NOTHING_TO_DO)]);
    // One that ours does not cover has to wait.
    let other = asking(&[Parameter::IncomingReset { request: n + 2, streams: &[0, 2] }]);
    r.give(&[&other]);
    assert_eq!(responses(&r.take()), [(n + 2, result::IN_PROGRESS)]);
    r.give(&[&answer(first.0, result::PERFORMED)]);
    r.take();
    r.give(&[&other]);
    let params = asked(&r.take()).concat();
    assert!(
        matches!(Params::new(&params).iter().next(), Some(Ok(Parameter::OutgoingReset { response, .. })) if response == n + 2)
    );
}

/// Shows: ext/R9, ext/R10.
#[test]
fn tsns_begin_anew_when_the_peer_asks() {
    let (mut r, id) = accepted();
    let (n, t, first) = (PEER_TSN.0, PEER_TSN, r.first_tsn);
    send_on(&mut r, id, 1, b"a");
    r.give(&[&peer_data(t, 1, 0, b"a"), &peer_data(t.plus(2), 1, 2, b"c")]);
    r.take();
    let ask = asking(&[Parameter::TsnReset { request: n }]);
    // Something of ours is outstanding yet.
    r.give(&[&ask]);
    assert_eq!(responses(&r.take()), [(n, result::IN_PROGRESS)]);
    r.give(&[&sack(first)]);
    r.take();
    r.give(&[&ask]);
    let theirs = t.plus(1).plus(1 << 31);
    let params = asked(&r.take()).concat();
    let tsns = Some((first.next(), theirs));
    let wanted = Parameter::ReconfigResponse { response: n, result: result::PERFORMED, tsns };
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(wanted)]);
    // The peer had given up what was missing: what waited behind it is for the user.
    assert_eq!(r.read(id), [b"a", b"c"]);
    r.give(&[&peer_data(theirs, 1, 0, b"new")]);
    assert_eq!(r.read(id), [b"new"]);
    send_on(&mut r, id, 1, b"b");
    assert_eq!(numbers(&r.take()), [(first.next(), 1, 0)]);
    r.give(&[&ask]);
    assert_eq!(asked(&r.take()).concat(), params, "the same again");
    assert!(r.events_of(id).contains(&Event::AssociationReset));
}

/// Shows: ext/R9, ext/R10.
#[test]
fn our_own_tsns_begin_anew() {
    let (mut r, id) = accepted();
    let first = r.first_tsn;
    send_on(&mut r, id, 1, b"a");
    let now = r.now;
    r.endpoint.association_mut(id).expect("alive").reset_association(now).expect("taken");
    r.drain();
    assert!(asked(&r.take()).is_empty(), "something is outstanding");
    r.give(&[&sack(first)]);
    let params = asked(&r.take()).concat();
    assert_eq!(Params::new(&params).iter().collect::<Vec<_>>(), [Ok(Parameter::TsnReset { request: first.0 })]);
    send_on(&mut r, id, 1, b"b");
    assert!(numbers(&r.take()).is_empty(), "it waits");
    let (theirs, ours) = (PEER_TSN.plus(500), first.next().plus(1 << 31));
    let done = Parameter::ReconfigResponse { response: first.0, result: result::PERFORMED, tsns: Some((theirs, ours)) };
    r.give(&[&asking(&[done])]);
    assert_eq!(numbers(&r.take()), [(ours, 1, 0)]);
    r.give(&[&sack(ours), &peer_data(theirs, 1, 0, b"new")]);
    assert_eq!(r.read(id), [b"new"]);
    send_on(&mut r, id, 1, b"c");
    assert_eq!(numbers(&r.take()), [(ours.next(), 1, 1)]);
    r.endpoint.association(id).expect("alive").check_invariants().expect("the books agree");
}

/// Shows: ext/R11.
#[test]
fn added_streams_may_be_used_after_the_answer() {
    let (mut r, id) = accepted();
    let now = r.now;
    let add = |r: &mut Raw, o, i| {
        let out = r.endpoint.association_mut(id).expect("alive").add_streams(now, o, i);
        r.drain();
        out
    };
    assert_eq!(add(&mut r, u16::MAX - 9, 0), Err(ReconfigError::TooMany));
    assert_eq!(add(&mut r, 0, u16::MAX - 9), Err(ReconfigError::TooMany));
    add(&mut r, 5, 0).expect("taken");
    let first = r.first_tsn;
    let params = asked(&r.take()).concat();
    assert_eq!(
        Params::new(&params).iter().collect::<Vec<_>>(),
        [Ok(Parameter::AddOutgoing { request: first.0, streams: 5 })]
    );
    let on_11 = SendOptions { stream: StreamId(11), ..SendOptions::default() };
    let send =
        |r: &mut Raw| r.endpoint.association_mut(id).expect("alive").send(now, on_11, bytes::Bytes::from_static(b"x"));
    assert!(send(&mut r).is_err());
    r.give(&[&answer(first.0, result::PERFORMED)]);
    assert_eq!(r.endpoint.association(id).expect("alive").streams(), (15, 10));
    assert!(send(&mut r).is_ok());
    r.drain();
    assert_eq!(numbers(&r.take()), [(first, 11, 0)]);
    // Refused: as many as before.
    add(&mut r, 5, 0).expect("taken");
    r.give(&[&sack(first), &answer(first.0.wrapping_add(1), result::DENIED)]);
    assert_eq!(r.endpoint.association(id).expect("alive").streams(), (15, 10));
}

/// Shows: ext/R11, ext/R12.
#[test]
fn the_peer_may_have_more_streams_up_to_the_limit() {
    let (mut r, id) = accepted();
    let (n, t) = (PEER_TSN.0, PEER_TSN);
    r.give(&[&asking(&[Parameter::AddOutgoing { request: n, streams: 30 }])]);
    assert_eq!(responses(&r.take()), [(n, result::PERFORMED)]);
    r.give(&[&peer_data(t, 39, 0, b"x")]);
    assert_eq!(r.read(id), [b"x"]);
    r.give(&[&asking(&[Parameter::AddOutgoing { request: n + 1, streams: 1 }])]);
    assert_eq!(responses(&r.take()), [(n + 1, result::DENIED)]);
    // More of ours: done, and asked for.
    r.give(&[&asking(&[Parameter::AddIncoming { request: n + 2, streams: 30 }])]);
    let first = r.first_tsn;
    let sent = r.take();
    assert_eq!(responses(&sent), [(n + 2, result::PERFORMED)]);
    let all = asked(&sent).concat_padded();
    assert!(Params::new(&all).iter().flatten().any(|p| p == Parameter::AddOutgoing { request: first.0, streams: 30 }));
    r.give(&[&answer(first.0, result::PERFORMED)]);
    r.give(&[&asking(&[Parameter::AddIncoming { request: n + 3, streams: 1 }])]);
    assert_eq!(responses(&r.take()), [(n + 3, result::DENIED)]);
    assert_eq!(r.endpoint.association(id).expect("alive").streams(), (40, 40));
}

/// Two of us, with loss: everything is reset again and again while data flows both ways.
#[test]
fn resets_under_loss_lose_nothing() {
    let config = changed(assoc_config("cmt"), |c| c.extensions.stream_reconfiguration = true);
    let mut b = Bench::connected(6, &config, &[(link(10, 20), link(10, 20)), (link(5, 40), link(5, 40))]);
    b.strict = true;
    let mut n = 0u32;
    b.filter = Some(Box::new(move |_| {
        n += 1;
        !n.is_multiple_of(7)
    }));
    let mut flow = Flow::new(Side::Client, 3, 900);
    let mut back = Flow::new(Side::Server, 3, 900);
    for round in 1..=12 {
        flow.send_to(&mut b, flow.sent + 10);
        back.send_to(&mut b, back.sent + 10);
        let (now, id) = (b.now, b.client_id);
        let _ = b.client.association_mut(id).expect("alive").reset_streams(now, &[], true, round % 2 == 0);
        if round % 4 == 0 {
            let _ = b.client.association_mut(id).expect("alive").add_streams(now, 3, 2);
        }
        b.run_for(ms(2_000));
    }
    b.filter = None;
    flow.transfer(&mut b, 10, ms(60_000)).expect("arrives");
    back.transfer(&mut b, 10, ms(60_000)).expect("arrives");
    b.run_for(ms(30_000));
    let resets = |e: &[Event], incoming: bool| {
        e.iter().filter(|e| matches!(e, Event::StreamsReset { incoming: i, .. } if *i == incoming)).count()
    };
    assert!(resets(&b.client_events, false) >= 10 && resets(&b.server_events, true) >= 10, "{:?}", b.client_events);
    assert!(resets(&b.client_events, true) >= 4, "{:?}", b.client_events);
    let ours = b.assoc(Side::Client).streams();
    let theirs = b.assoc(Side::Server).streams();
    assert_eq!((ours.0, ours.1), (theirs.1, theirs.0));
    assert_eq!(ours, (64 + 9, 64 + 6));
}
