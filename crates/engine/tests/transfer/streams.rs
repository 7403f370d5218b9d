//! Streams (§6.5, §6.6): numbers, order, and when DATA may leave at all (§6).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{SendError, SendOptions};
use anabranch_wire::{DataFlags, kind};
use bytes::Bytes;

/// Shows: 9260/D11.
#[test]
fn numbers_rise_by_one_wrap_and_are_not_touched_by_what_is_unordered() {
    let config = assoc_config("sctp");
    let mut b = Bench::connected(7, &config, &[(link(1_000, 1), link(1_000, 1))]);
    b.tap = Some(vec![]);
    let mut sent = 0u32;
    while sent < 66_000 {
        let options = SendOptions { stream: StreamId(5), unordered: sent % 3 == 1, ..SendOptions::default() };
        if b.send(Side::Client, options, numbered(5, sent, 10)) {
            sent += 1;
        } else {
            b.run_for(ms(10));
        }
        if sent.is_multiple_of(2_000) {
            b.run_for(ms(5));
        }
    }
    while sent < 100_000 {
        if b.send(Side::Client, SendOptions { stream: StreamId(5), ..SendOptions::default() }, numbered(5, sent, 10)) {
            sent += 1;
        } else {
            b.run_for(ms(10));
        }
    }
    b.run_for(ms(60_000));
    assert_eq!(b.at_server.len() as u32, sent);
    let tap = b.tap.take().expect("tapped");
    let mut next = 0u16;
    let mut wraps = 0;
    for t in tap.iter().filter(|t| t.1 == Side::Client) {
        for d in Seen::read(t.0, t.2, &t.3).data.iter().filter(|d| !d.flags.unordered) {
            assert_eq!((d.stream, d.ssn), (5, next));
            wraps += u32::from(next == u16::MAX);
            next = next.wrapping_add(1);
        }
    }
    assert_eq!(wraps, 1);
    let ordered: Vec<u32> = b.at_server.iter().filter(|m| m.ssn.is_some()).map(|m| number_of(m).1).collect();
    assert!(ordered.is_sorted() && ordered.len() == 78_000, "{}", ordered.len());
}

/// Shows: 9260/D12.
#[test]
fn a_hole_holds_up_its_stream_and_nothing_unordered() {
    let mut m = Manual::single("sctp");
    let unordered = DataFlags { unordered: true, ..WHOLE };
    let list = [
        m.data(1, 1, 1, WHOLE, b"second of 1"),
        m.data(2, 2, 0, WHOLE, b"first of 2"),
        m.data(3, 1, 9, unordered, b"at once"),
        m.data(4, 1, 9, DataFlags { end: false, ..unordered }, b"whole "),
        m.data(6, 1, 2, WHOLE, b"third of 1"),
    ];
    for chunk in &list {
        m.receive(0, &[chunk]);
    }
    let texts = |m: &mut Manual| -> Vec<String> {
        m.read().into_iter().map(|m| String::from_utf8_lossy(&m.payload.into_bytes()).into_owned()).collect()
    };
    assert_eq!(texts(&mut m), ["first of 2", "at once"]);
    let rest = m.data(5, 1, 9, DataFlags { begin: false, ..unordered }, b"first");
    m.receive(0, &[&rest]);
    assert_eq!(texts(&mut m), ["whole first"], "as soon as it is complete");
    let first = m.data(0, 1, 0, WHOLE, b"first of 1");
    m.receive(0, &[&first]);
    assert_eq!(texts(&mut m), ["first of 1", "second of 1", "third of 1"]);
}

/// Shows: 9260/D14.
#[test]
fn without_fragmentation_what_does_not_fit_a_packet_is_refused() {
    let config = changed(assoc_config("sctp"), |c| c.messages.fragmentation = false);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    let now = m.b.now;
    let too_long = Bytes::from(vec![1; FULL + 1]);
    let one_packet = SendError::TooLarge { most: FULL as u64, limit: "one packet, as `messages.fragmentation` is off" };
    assert_eq!(m.b.assoc(Side::Client).send(now, SendOptions::default(), too_long), Err(one_packet));
    m.send(1, FULL);
    let seen = m.packets();
    assert!(seen[0].data[0].flags.begin && seen[0].data[0].flags.end && seen.len() == 1);
}

/// Shows: 9260/D1.
#[test]
fn data_leaves_and_is_taken_in_the_states_for_it_only() {
    // Handed over before the handshake ends, it waits for that.
    let config = assoc_config("sctp");
    let mut b = Bench::new(3, &config);
    b.paths.add("path0", link(10, 20), link(10, 20));
    b.tap = Some(vec![]);
    b.connect(&config);
    assert!(b.send(Side::Client, SendOptions::default(), &b"early"[..]));
    b.run_for(ms(1_000));
    let data = b.tapped(Side::Client, kind::DATA);
    let ack = b.tapped(Side::Server, kind::COOKIE_ACK)[0].0;
    assert!(data.len() == 1 && data[0].0 >= ack + ms(20), "{data:?}");
    // SHUTDOWN-PENDING: what is left still leaves, and what comes is taken.
    let shutdown =
        |m: &Manual, next: u32| encoded(&anabranch_wire::Shutdown { cum_tsn: m.client_first.plus(next).minus(1) });
    let mut m = Manual::single("sctp");
    m.send(10, FULL);
    assert_eq!(m.sent(), [0, 1, 2, 3]);
    let now = m.b.now;
    m.b.assoc(Side::Client).shutdown(now);
    m.sack(4, &[]);
    assert_eq!(m.sent()[..2], [4, 5]);
    assert!(!m.packets().iter().any(|p| p.has(kind::SHUTDOWN)));
    m.message(0, 10);
    assert_eq!(m.read().len(), 1);
    m.sack(6, &[]);
    while let Some(last) = m.sent().last().copied() {
        m.sack(last + 1, &[]);
    }
    // SHUTDOWN-SENT: still taken.
    let phase = m.b.client.association(m.b.client_id).expect("alive").phase();
    assert_eq!(phase, anabranch_engine::Phase::Closing);
    m.message(1, 10);
    assert_eq!(m.read().len(), 1);
    // SHUTDOWN-ACK-SENT: not any more.
    let bytes = shutdown(&m, 10);
    m.receive(0, &[&bytes]);
    assert!(m.packets().iter().any(|p| p.has(kind::SHUTDOWN_ACK)));
    m.message(2, 10);
    assert!(m.read().is_empty());
    // SHUTDOWN-RECEIVED: what is left leaves, nothing is taken.
    let mut m = Manual::single("sctp");
    m.send(10, FULL);
    m.sent();
    let bytes = shutdown(&m, 2);
    m.receive(0, &[&bytes]);
    assert!(!m.sent().is_empty());
    m.message(0, 10);
    assert!(m.read().is_empty());
}

/// Shows: 9260/D9.
#[test]
fn a_peer_that_never_moves_on_stops_us_in_time() {
    let config = changed(assoc_config("sctp"), |c| {
        c.sending.max_burst = 0;
        c.limits.send_buffer = 64 << 20;
    });
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    let mut highest = 0;
    for _ in 0..400 {
        let now = m.b.now;
        while m.b.assoc(Side::Client).stats().unsent < 20_000 {
            m.b.assoc(Side::Client).send(now, SendOptions::default(), Bytes::from_static(b"x")).expect("room");
        }
        let sent = m.sent();
        let new = sent.iter().copied().max().unwrap_or(0);
        if sent.is_empty() {
            break;
        }
        highest = highest.max(new);
        // All but the first arrived.
        m.sack(0, &[(1, highest as u16)]);
    }
    // One stream: ordered messages and TSNs alike.
    assert!(highest > 20_000 && highest < u32::from(u16::MAX), "{highest}");
    assert!(m.sent().is_empty());
    m.sack(highest + 1, &[]);
    assert!(!m.sent().is_empty(), "and goes on");
}

/// The I bit is set when the user asks for it, and on the last chunk of an association that ends (RFC 7053 §5.1).
///
/// Shows: ext/B2, ext/B4.
#[test]
fn an_acknowledgement_at_once_is_asked_for_by_the_user_and_at_the_end() {
    let immediate =
        |m: &mut Manual| -> Vec<bool> { m.packets().iter().flat_map(|p| &p.data).map(|d| d.flags.immediate).collect() };
    let mut m = Manual::single("sctp");
    let urgent = SendOptions { immediate_ack: true, ..SendOptions::default() };
    assert!(m.b.send(Side::Client, urgent, vec![1; FULL + 10]));
    assert_eq!(immediate(&mut m), [false, true], "its last chunk");
    m.send(1, 10);
    assert_eq!(immediate(&mut m), [false]);
    m.send(2, FULL);
    m.sack(3, &[]);
    let now = m.b.now;
    m.b.assoc(Side::Client).shutdown(now);
    assert_eq!(immediate(&mut m), [false, true], "the last of all");
}
