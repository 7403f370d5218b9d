//! Messages larger than the receive buffer: partial delivery (§6.9).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocConfig, Event, Message, Part, SendOptions};
use anabranch_wire::{DataFlags, ForwardTsnOut};

const BUFFER: usize = 50_000;

fn config() -> AssocConfig {
    changed(assoc_config("sctp"), |c| {
        c.limits.receive_buffer = BUFFER;
        c.messages.partial_delivery = true;
    })
}

fn joined(parts: &[Message]) -> Vec<u8> {
    parts.iter().flat_map(|m| m.payload.clone().into_bytes()).collect()
}

/// Shows: 9260/D16.
#[test]
fn a_message_larger_than_the_buffer_comes_in_parts() {
    for unordered in [false, true] {
        let mut b = Bench::connected(21, &config(), &[(link(10, 20), link(10, 20))]);
        b.strict = true;
        let o = SendOptions { stream: StreamId(1), unordered, ..SendOptions::default() };
        let before = numbered(1, 0, 3_000);
        let large = pattern(9, 400_000);
        let after = numbered(1, 1, 3_000);
        for payload in [&before, &large, &after] {
            assert!(b.send(Side::Client, o, payload.clone()));
        }
        b.run_for(ms(30_000));
        let got = core::mem::take(&mut b.at_server);
        assert!(!b.server_events.iter().any(|e| matches!(e, Event::Closed(_))), "{:?}", b.server_events);
        assert_eq!((got[0].part, joined(&got[..1])), (Part::Whole, before.to_vec()));
        let end = got.iter().position(|m| m.part == Part::Last).expect("an end");
        assert!(got[1..end].iter().all(|m| m.part == Part::More && m.stream == StreamId(1)) && end > 2);
        assert!(joined(&got[1..=end]) == large, "the parts are the message");
        assert_eq!((got[end + 1].part, got.len()), (Part::Whole, end + 2));
        assert_eq!(joined(&got[end + 1..]), after);
        assert_eq!(b.assoc(Side::Server).stats().messages_received, 3);
    }
}

/// Shows: 9260/D16.
#[test]
fn a_user_that_does_not_read_loses_nothing_and_nothing_grows() {
    let mut b = Bench::connected(21, &config(), &[(link(10, 20), link(10, 20))]);
    b.strict = true;
    b.auto_read = false;
    let large = pattern(9, 300_000);
    assert!(b.send(Side::Client, SendOptions::default(), large.clone()));
    b.run_for(ms(60_000));
    let sent = b.path(Side::Client, 0).counters;
    assert!(sent.data_sent - sent.data_retransmitted < 2 * BUFFER as u64, "{} bytes let in", sent.data_sent);
    b.auto_read = true;
    b.run_for(ms(30_000));
    assert!(joined(&b.at_server) == large);
}

#[test]
fn what_fits_comes_whole_and_off_is_off() {
    let mut b = Bench::connected(21, &config(), &[(link(10, 20), link(10, 20))]);
    assert!(b.send(Side::Client, SendOptions::default(), pattern(1, 40_000)));
    b.run_for(ms(5_000));
    assert_eq!(b.at_server.iter().map(|m| m.part).collect::<Vec<_>>(), [Part::Whole]);
    assert!(!assoc_config("sctp").messages.partial_delivery, "not unless asked for");
}

/// A client that has the first 30 fragments of a message and no room for more.
fn half() -> (Manual, u32) {
    half_of(&config())
}

fn half_of(config: &AssocConfig) -> (Manual, u32) {
    let config = changed(config.clone(), |c| c.limits.receive_buffer = 20_000);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    let mut offset = 0;
    while m.b.at_client.is_empty() {
        assert!(offset < 60);
        let chunk = m.data(offset, 2, 0, DataFlags { begin: offset == 0, end: false, ..WHOLE }, &[3; 1_000]);
        m.receive(0, &[&chunk]);
        m.b.run_for(ms(1));
        offset += 1;
    }
    (m, offset)
}

#[test]
fn the_rest_may_be_given_up() {
    let (mut m, offset) = half();
    assert_eq!(m.read()[0].part, Part::More);
    let forward = encoded(&ForwardTsnOut {
        new_cum: m.server_first.plus(offset + 3),
        streams: &[(StreamId(2), anabranch_base::Ssn(0))],
    });
    m.receive(0, &[&forward]);
    let next = m.data(offset + 4, 2, 1, WHOLE, b"next");
    m.receive(0, &[&next]);
    let got = m.read();
    assert_eq!(got.iter().map(|m| m.part).collect::<Vec<_>>(), [Part::Abandoned, Part::Whole]);
    assert!(got[0].payload.is_empty());
}

#[test]
fn what_does_not_continue_it_ends_the_association() {
    let strict = changed(config(), |c| c.extensions.partial_reliability = false);
    for (flags, stream) in [
        (WHOLE, 2),
        (DataFlags { end: false, ..WHOLE }, 2),
        (DataFlags { begin: false, end: false, ..WHOLE }, 3),
        (DataFlags { begin: false, end: false, unordered: true, ..WHOLE }, 2),
    ] {
        let (mut m, offset) = half_of(&strict);
        let chunk = m.data(offset, stream, 0, flags, b"wrong");
        m.receive(0, &[&chunk]);
        m.b.run_for(ms(1));
        assert!(m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_))), "{flags:?}");
    }
}

/// Linux and dcsctp leave a message that they give up half sent without an end, so another one may begin there.
#[test]
fn another_may_begin_where_messages_may_be_given_up() {
    for (flags, stream, ends) in [(WHOLE, 2, false), (WHOLE, 3, false), (DataFlags { begin: false, ..WHOLE }, 3, true)]
    {
        let (mut m, offset) = half();
        m.read();
        // The number of the message that has no end is passed.
        let chunk = m.data(offset, stream, u16::from(stream == 2), flags, b"next");
        m.receive(0, &[&chunk]);
        m.b.run_for(ms(1));
        let closed = m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_)));
        assert_eq!(closed, ends, "{flags:?} on stream {stream}");
        if !ends {
            let parts: Vec<_> = m.read().iter().map(|m| m.part).collect();
            assert_eq!(parts, [Part::Abandoned, Part::Whole], "{flags:?} on stream {stream}");
        }
    }
}

/// Likewise when what it had last comes behind the beginning of the next one, or behind all of it.
#[test]
fn another_may_have_begun_before_what_is_given_up_was_here() {
    let strict = changed(config(), |c| c.extensions.partial_reliability = false);
    let (begin, middle, end) = (
        DataFlags { end: false, ..WHOLE },
        DataFlags { begin: false, end: false, ..WHOLE },
        DataFlags { begin: false, ..WHOLE },
    );
    for next in [&[begin, end][..], &[WHOLE][..]] {
        for (config, ends) in [(config(), false), (strict.clone(), true)] {
            let (mut m, offset) = half_of(&config);
            m.read();
            let mut chunks = vec![m.data(offset + 1, 2, 1, next[0], b"ne"), m.data(offset, 2, 0, middle, b"last")];
            chunks.extend(next.get(1).map(|f| m.data(offset + 2, 2, 1, *f, b"xt")));
            chunks.iter().for_each(|c| m.receive(0, &[c]));
            m.b.run_for(ms(1));
            let closed = m.b.client_events.iter().any(|e| matches!(e, Event::Closed(_)));
            assert_eq!(closed, ends, "{next:?}");
            let parts: Vec<_> = m.read().iter().map(|m| m.part).filter(|p| *p != Part::More).collect();
            assert_eq!(parts, if ends { vec![] } else { vec![Part::Abandoned, Part::Whole] }, "{next:?}");
        }
    }
}

#[test]
fn pieces_out_of_order_join_the_parts() {
    let (mut m, offset) = half();
    m.read();
    let middle = DataFlags { begin: false, end: false, ..WHOLE };
    let last = m.data(offset + 2, 2, 0, DataFlags { begin: false, ..WHOLE }, b"c");
    let second = m.data(offset + 1, 2, 0, middle, b"b");
    let first = m.data(offset, 2, 0, middle, b"a");
    for chunk in [&last, &second] {
        m.receive(0, &[chunk]);
    }
    assert!(m.read().is_empty());
    m.receive(0, &[&first]);
    let got = m.read();
    assert_eq!((got.len(), got[0].part, joined(&got)), (1, Part::Last, b"abc".to_vec()));
}
