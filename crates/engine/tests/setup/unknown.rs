//! Chunks and parameters of unknown types (RFC 9260 §3.2, §3.2.1, §3.2.2), padding (§3.2), and what
//! HEARTBEATs carry (§3.3.5).

use crate::common::raw::*;
use crate::common::{assoc_config, changed, ms};
use anabranch_engine::Phase;
use anabranch_wire::{Parameter, Params, cause_code, kind};

/// A type for each meaning of the two high bits: goes on, reports.
const TYPES: [(u8, bool, bool); 4] =
    [(0x3f, false, false), (0x7f, false, true), (0xbf, true, false), (0xfe, true, true)];

/// A parameter of type `high` << 8 | 0x0e with a value, padded.
fn parameter(high: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![high, 0x0e];
    out.extend_from_slice(&(value.len() as u16 + 4).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn unpadded(p: &[u8]) -> Vec<u8> {
    p[..usize::from(u16::from_be_bytes([p[2], p[3]]))].to_vec()
}

/// Shows: 9260/P4.
#[test]
fn an_unknown_chunk_by_its_two_high_bits() {
    for (kind_of, goes_on, reports) in TYPES {
        let mut r = Raw::accepted();
        let id = r.only();
        r.give(&[&data(PEER_TSN, 0, b"before")]);
        r.take();
        let unknown = chunk(kind_of, 0x5a, b"12345");
        r.give(&[&data(PEER_TSN.plus(1), 1, b"in front"), &unknown, &data(PEER_TSN.plus(2), 2, b"behind")]);
        let read = r.read(id);
        assert_eq!(read.iter().any(|m| m == b"behind"), goes_on, "{kind_of:#x}");
        assert!(read.iter().any(|m| m == b"in front"), "{kind_of:#x}: what stood before is not undone");
        let errors: Vec<_> = r.take().iter().flat_map(causes_of).collect();
        let wanted = if reports { vec![(cause_code::UNRECOGNIZED_CHUNK, unknown.clone())] } else { vec![] };
        assert_eq!(errors, wanted, "{kind_of:#x}");
        assert_eq!(r.phase(id), Phase::Established);
    }
}

/// Shows: 9260/P4.
#[test]
fn the_same_in_every_state_that_hears_chunks() {
    for (kind_of, _, reports) in TYPES {
        let unknown = chunk(kind_of, 0, &[]);
        let (mut r, id) = Raw::connected(&assoc_config("sctp"));
        r.shutdown(id);
        r.take();
        r.give(&[&unknown]);
        let has_error = r.take_kinds().concat().contains(&kind::ERROR);
        assert_eq!(has_error, reports, "{kind_of:#x} in SHUTDOWN-SENT");
    }
}

/// Unknown parameters, one of each kind, a known one in front and behind. Which of them are reported, and whether the
/// one behind counts.
fn cases() -> Vec<(Vec<u8>, Vec<Vec<u8>>, bool)> {
    let of = |high: u8| parameter(high, b"value");
    let (stop, stop_report, skip, skip_report) = (of(0x3f), of(0x7f), of(0xbf), of(0xff));
    vec![
        (stop.clone(), vec![], false),
        (stop_report.clone(), vec![stop_report.clone()], false),
        (skip.clone(), vec![], true),
        (skip_report.clone(), vec![skip_report.clone()], true),
        (
            [skip_report.clone(), skip, skip_report.clone()].concat(),
            vec![skip_report.clone(), skip_report.clone()],
            true,
        ),
        (
            [skip_report.clone(), stop_report.clone(), skip_report.clone()].concat(),
            vec![skip_report, stop_report],
            false,
        ),
    ]
}

/// Shows: 9260/P5, 9260/P6.
#[test]
fn unknown_parameters_of_an_init() {
    for (i, (unknown, reported, goes_on)) in cases().into_iter().enumerate() {
        let mut r = Raw::new();
        // An address before and one behind show how far the list was read.
        let params = [listing(&[peer(2).ip()]), unknown, listing(&[peer(3).ip()])].concat();
        r.give_tagged(0, &[&init(init_fields(PEER_TAG), &params)]);
        let answer = r.take_one();
        assert_eq!(answer.kinds(), [kind::INIT_ACK], "case {i}");
        let (_, list) = init_of(&answer);
        let causes: Vec<_> = Params::new(&list)
            .iter()
            .flatten()
            .filter_map(|p| match p {
                Parameter::Unrecognized(u) => Some(u.to_vec()),
                _ => None,
            })
            .collect();
        let wanted: Vec<_> = reported.iter().map(|p| unpadded(p)).collect();
        assert_eq!(causes, wanted, "case {i}");
        r.tag = init_of(&answer).0.tag;
        r.echo(&cookie_of(&answer));
        let id = r.only();
        let paths = r.endpoint.association(id).expect("alive").paths().count();
        assert_eq!(paths, if goes_on { 3 } else { 2 }, "case {i}");
    }
}

/// Shows: 9260/P5, 9260/P7.
#[test]
fn unknown_parameters_of_an_init_ack() {
    for (i, (unknown, reported, goes_on)) in cases().into_iter().enumerate() {
        let config = assoc_config("sctp");
        let mut r = Raw::with(&config, |e| e.accept = false);
        let id = r.connect(&config);
        let ours = r.take_one();
        let more = [listing(&[peer(1).ip(), peer(2).ip()]), unknown, listing(&[peer(3).ip()])].concat();
        r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &more);
        let echo = r.take_one();
        let mut wanted = vec![kind::COOKIE_ECHO];
        if !reported.is_empty() {
            wanted.push(kind::ERROR);
        }
        assert_eq!(echo.kinds(), wanted, "case {i}");
        let causes: Vec<_> = causes_of(&echo);
        if !reported.is_empty() {
            assert_eq!(causes[0].0, cause_code::UNRECOGNIZED_PARAMETERS);
            let mut all = reported.concat();
            all.truncate(causes[0].1.len().max(all.len() - 3));
            assert_eq!(causes[0].1[..], all[..causes[0].1.len()], "case {i}");
        }
        assert_eq!(r.endpoint.association(id).expect("alive").paths().count(), if goes_on { 3 } else { 2 });
        r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
        assert_eq!(r.phase(id), Phase::Established);
        assert!(!r.take_kinds().concat().contains(&kind::ERROR), "said once");
    }
}

/// Shows: 9260/P7.
#[test]
fn a_report_that_does_not_fit_beside_the_cookie_is_not_sent_before_its_acknowledgement() {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    r.connect(&config);
    let ours = r.take_one();
    r.answer_init(&ours, init_fields(PEER_TAG), &[1; 1_180], &parameter(0xff, &[2; 100]));
    assert_eq!(r.take_one().kinds(), [kind::COOKIE_ECHO]);
    r.run_for(ms(3_000));
    assert!(r.take_kinds().iter().all(|k| *k == [kind::COOKIE_ECHO]));
}

/// Shows: 9260/P5, 9260/P7, 9260/P15.
#[test]
fn a_heartbeat_comes_back_unchanged_with_a_word_about_what_we_do_not_know() {
    let info = [0, 1, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0].to_vec();
    for (i, (unknown, reported, _)) in cases().into_iter().enumerate() {
        let mut r = Raw::accepted();
        let params = [info.clone(), unknown].concat();
        r.give(&[&chunk(kind::HEARTBEAT, 0, &params)]);
        let answer = r.take_one();
        assert_eq!((answer.remote, answer.kinds()[0]), (peer(1), kind::HEARTBEAT_ACK));
        assert_eq!(answer.value(), params, "case {i}: unchanged");
        let causes = causes_of(&answer);
        assert_eq!(causes.len(), usize::from(!reported.is_empty()), "case {i}");
        if let Some((code, list)) = causes.first() {
            assert_eq!(*code, cause_code::UNRECOGNIZED_PARAMETERS);
            let mut all = reported.concat();
            all.truncate(list.len());
            assert_eq!(*list, all, "case {i}");
        }
    }
}

/// Shows: 9260/P15.
#[test]
fn heartbeats_have_their_info_and_one_without_is_not_answered() {
    let (mut r, id) = Raw::connected(&assoc_config("sctp"));
    let probe = r.run_until_sent(kind::HEARTBEAT, ms(60_000)).expect("an idle path is probed");
    let value = probe.value();
    assert_eq!(value[..2], [0, 1], "Heartbeat Info");
    assert_eq!(usize::from(u16::from_be_bytes([value[2], value[3]])), value.len());
    r.answer_heartbeat(&probe);
    r.take();
    r.give(&[&chunk(kind::HEARTBEAT, 0, &[])]);
    r.give(&[&chunk(kind::HEARTBEAT, 0, &parameter(0xbf, b"x"))]);
    assert!(r.take().is_empty());
    assert_eq!(r.phase(id), Phase::Established);
}

/// Shows: 9260/P3.
#[test]
fn padding_is_ignored_whatever_it_holds() {
    for len in 1..=9usize {
        let payload = vec![b'p'; len];
        let plain = data(PEER_TSN, 0, &payload);
        let mut dirty = plain.clone();
        for b in dirty.iter_mut().skip(16 + len) {
            *b = 0xff;
        }
        let cut = plain[..16 + len].to_vec();
        for last in [&plain, &dirty, &cut] {
            let mut r = Raw::accepted();
            let id = r.only();
            r.give(&[last]);
            assert_eq!(r.read(id), std::slice::from_ref(&payload), "length {len}");
        }
        // In the middle of a packet it is there, and the next chunk begins behind it.
        let mut r = Raw::accepted();
        let id = r.only();
        r.give(&[&dirty, &data(PEER_TSN.plus(1), 1, b"next")]);
        assert_eq!(r.read(id), [payload, b"next".to_vec()]);
    }
    // A cookie whose final padding is counted in is the same cookie, as with any chunk of parameters.
    let mut r = Raw::new();
    let mut params = bytes(&Parameter::SupportedExtensions(&[kind::FORWARD_TSN]));
    assert_eq!(params.len(), 8);
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &params)]);
    assert_eq!(r.take_one().kinds(), [kind::INIT_ACK]);
    params.truncate(5);
    r.give_tagged(0, &[&chunk(kind::INIT, 0, &[bytes_of_fields(), params].concat())]);
    assert_eq!(r.take_one().kinds(), [kind::INIT_ACK]);
}

fn bytes_of_fields() -> Vec<u8> {
    init(init_fields(PEER_TAG), &[])[4..].to_vec()
}

/// Shows: 9260/P3.
#[test]
fn what_we_send_is_padded_with_zeros_to_four_bytes() {
    let (mut r, id) = Raw::connected(&assoc_config("sctp"));
    for len in 1..=9usize {
        r.send(id, &vec![0xff; len]);
        let sent = r.take().pop().expect("DATA");
        assert_eq!(sent.bytes.len() % 4, 0);
        let raw = sent.packet().chunks().last().expect("a chunk").expect("framed");
        assert_eq!(raw.value.len(), 12 + len, "padding is not counted");
        let padding = &raw.whole[4 + raw.value.len()..];
        assert!(padding.len() <= 3 && padding.iter().all(|b| *b == 0));
        let newest = r.first_tsn.plus(len as u32 - 1);
        r.give(&[&sack(newest)]);
    }
}

/// Shows: 9260/P14.
#[test]
fn gap_blocks_are_offsets_from_the_cumulative_tsn_in_order_and_apart() {
    let mut r = Raw::accepted();
    // 0, then 2-3, 5, 8-9 in a muddled order.
    for (n, ssn) in [(0, 0), (8, 8), (3, 3), (5, 5), (9, 9), (2, 2)] {
        r.give(&[&data(PEER_TSN.plus(n), ssn, b"x")]);
    }
    let last = r.take().pop().expect("a SACK");
    let value = last.value();
    assert_eq!(last.kinds(), [kind::SACK]);
    assert_eq!(value[..4], PEER_TSN.0.to_be_bytes());
    let word = |i: usize| u16::from_be_bytes([value[i], value[i + 1]]);
    assert_eq!((word(8), word(10)), (3, 0), "three blocks, no duplicates");
    let blocks: Vec<_> = (0..3).map(|i| (word(12 + 4 * i), word(14 + 4 * i))).collect();
    assert_eq!(blocks, [(2, 3), (5, 5), (8, 9)]);
}

/// Shows: 9260/P14.
#[test]
fn with_more_gaps_than_fit_the_lowest_are_reported() {
    let mut r = Raw::accepted();
    for n in 0..1_000u32 {
        r.give(&[&data(PEER_TSN.plus(2 * n), 2 * n as u16, b"x")]);
        if n % 50 == 0 {
            r.run_for(ms(1));
        }
    }
    let last = r.take().pop().expect("a SACK");
    assert!(last.bytes.len() <= 1_200 && last.bytes.len() > 1_150, "{} bytes", last.bytes.len());
    let value = last.value();
    let word = |i: usize| u16::from_be_bytes([value[i], value[i + 1]]);
    for i in 0..usize::from(word(8)) {
        let offset = 2 * (i as u16 + 1);
        assert_eq!((word(12 + 4 * i), word(14 + 4 * i)), (offset, offset));
    }
}

#[test]
fn a_known_parameter_where_it_has_no_meaning_is_ignored() {
    let mut r = Raw::new();
    let odd = [
        bytes(&Parameter::EcnCapable),
        bytes(&Parameter::AdaptationIndication(7)),
        bytes(&Parameter::Padding),
        bytes(&Parameter::Cookie(b"not here")),
    ];
    r.handshake(PEER_TAG, &odd.concat());
    assert_eq!(r.phase(r.only()), Phase::Established);
}

/// The padding of the last one is no part of it (RFC 9260 §3.2.1), in the ERROR beside the COOKIE ECHO too.
#[test]
fn what_an_init_ack_had_is_reported_padded_in_between() {
    let (mut r, _, ours) = waiting();
    let p = parameter(0xff, b"value");
    r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &[p.clone(), p.clone()].concat());
    let sent = r.take_one();
    assert_eq!(sent.kinds(), [kind::COOKIE_ECHO, kind::ERROR]);
    assert_eq!(causes_of(&sent), [(cause_code::UNRECOGNIZED_PARAMETERS, [p.clone(), unpadded(&p)].concat())]);
}

/// RFC 3758 §3.3.1.
#[test]
fn pr_sctp_that_is_switched_off_is_reported_to_who_announces_it() {
    for on in [false, true] {
        let c = changed(assoc_config("sctp"), |c| c.extensions.partial_reliability = on);
        let mut r = Raw::with(&c, |_| {});
        r.connect(&c);
        let ours = r.take_one();
        let theirs = bytes(&Parameter::ForwardTsnSupported);
        r.answer_init(&ours, init_fields(PEER_TAG), b"cookie", &theirs);
        let reported = if on { vec![] } else { vec![(cause_code::UNRECOGNIZED_PARAMETERS, theirs)] };
        assert_eq!(causes_of(&r.take_one()), reported);
    }
}

/// RFC 3758 §3.1: it has no value.
#[test]
fn the_parameter_of_pr_sctp_with_a_value_is_a_violation() {
    let mut r = Raw::new();
    r.give_tagged(0, &[&init(init_fields(PEER_TAG), &[0xc0, 0, 0, 8, 1, 2, 3, 4])]);
    let sent = r.take_one();
    assert_eq!((sent.kinds(), causes_of(&sent)[0].0), (vec![kind::ABORT], cause_code::PROTOCOL_VIOLATION));
}
