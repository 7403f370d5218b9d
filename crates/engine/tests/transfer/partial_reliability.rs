//! Messages with deadlines: what is late is given up, whole messages at a time, and nothing waits for it.

use crate::common::*;
use anabranch_base::{StreamId, Tsn};
use anabranch_engine::{CloseReason, Event, SendOptions};
use anabranch_policy::Hook;
use anabranch_sim::{LinkConfig, LossConfig};
use anabranch_wire::{Chunk, Packet, Verify, kind};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

fn cmt_over(links: &[(LinkConfig, LinkConfig)]) -> Bench {
    let mut b = Bench::connected(11, &assoc_config("cmt"), links);
    b.strict = true;
    b
}

fn one() -> Vec<(LinkConfig, LinkConfig)> {
    vec![(link(10, 20), link(10, 20))]
}

/// Ordered on `stream`, worthless after `life` ms; 0 is reliable.
fn options(b: &Bench, stream: u16, life: u64) -> SendOptions {
    SendOptions { stream: StreamId(stream), deadline: (life > 0).then(|| b.now + ms(life)), ..SendOptions::default() }
}

/// TSNs, streams and messages of the DATA chunks of a packet.
fn data_of(bytes: &Bytes) -> Vec<(Tsn, StreamId, Bytes)> {
    let Ok(p) = Packet::parse(bytes, Verify::Trusted) else { return vec![] };
    let data = p.chunks().flatten().filter_map(|c| match c.decode() {
        Ok(Chunk::Data(d)) => Some((d.header.tsn, d.header.stream, Bytes::copy_from_slice(d.payload))),
        _ => None,
    });
    data.collect()
}

/// The FORWARD-TSNs a side sent: new cumulative TSN and skipped streams.
fn forwards(b: &Bench, side: Side) -> Vec<(Tsn, Vec<(u16, u16)>)> {
    let mut out = vec![];
    for t in b.tapped(side, kind::FORWARD_TSN) {
        let p = Packet::parse(&t.3, Verify::Trusted).expect("a packet");
        for c in p.chunks().flatten() {
            if let Ok(Chunk::ForwardTsn(f)) = c.decode() {
                out.push((f.new_cum, f.streams().map(|(s, n)| (s.0, n.0)).collect()));
            }
        }
    }
    out
}

/// Drops every packet of the client that carries DATA of which `lost` says so.
fn drop_data(mut lost: impl FnMut(&[u8]) -> bool + 'static) -> Option<Filter> {
    Some(Box::new(move |l| l.from != Side::Client || !data_of(l.bytes).iter().any(|d| lost(&d.2))))
}

/// Nothing left at the client, not a byte held at the server.
fn assert_settled(b: &mut Bench) {
    b.run_for(ms(5_000));
    let s = b.assoc(Side::Client).stats();
    assert_eq!((s.unsent, s.outstanding), (0, 0), "{s:?}");
    b.check();
    b.tap = Some(vec![]);
    assert!(b.send(Side::Client, SendOptions { stream: StreamId(60), ..SendOptions::default() }, &b"last"[..]));
    b.run_for(ms(1_000));
    let sacks = b.tapped(Side::Server, kind::SACK);
    let p = Packet::parse(&sacks.last().expect("a SACK").3, Verify::Trusted).expect("a packet");
    let Some(Ok(Chunk::Sack(s))) = p.chunks().flatten().map(|c| c.decode()).find(|c| matches!(c, Ok(Chunk::Sack(_))))
    else {
        panic!("no SACK")
    };
    // The last message is still charged when it is acknowledged at once.
    assert!(s.a_rwnd as usize + 1_000 > 4 << 20, "the receiver holds something: {}", s.a_rwnd);
    assert_eq!(s.gaps().len(), 0);
}

/// Shows: ext/F14.
#[test]
fn what_expires_before_it_is_sent_takes_no_tsn() {
    // What a scheduler looks ahead at has a TSN.
    let mut in_turn = assoc_config("cmt");
    in_turn.profile.set(Hook::PathScheduler, "round_robin").expect("a policy");
    let mut b = Bench::connected(11, &in_turn, &[(link(1, 20), link(1, 20))]);
    b.strict = true;
    b.tap = Some(vec![]);
    for i in 0..300 {
        let o = options(&b, 1, 200);
        assert!(b.send(Side::Client, o, numbered(1, i, 1_000)));
    }
    let last = options(&b, 1, 0);
    assert!(b.send(Side::Client, last, numbered(1, 300, 1_000)));
    b.run_for(ms(5_000));
    let got = b.at_server.len();
    assert!(got > 5 && got < 100, "{got} arrived");
    assert_eq!(number_of(b.at_server.last().expect("the last")), (1, 300));
    let s = b.assoc(Side::Client).stats();
    assert_eq!(s.abandoned_unsent + s.abandoned_sent + got as u64, 301);
    assert!(s.abandoned_unsent > 200, "{s:?}");
    let tap = b.tap.take().expect("tapped");
    let tsns: BTreeSet<u32> =
        tap.iter().filter(|t| t.1 == Side::Client).flat_map(|t| data_of(&t.3)).map(|d| d.0.0).collect();
    // What was sent and what expired in the look-ahead, nothing else.
    assert!(tsns.len() <= got + s.abandoned_sent as usize, "{} TSNs for {got} messages, {s:?}", tsns.len());
    let span = tsns.last().expect("some") - tsns.first().expect("some") + 1;
    assert!((span as usize) < tsns.len() + 3, "{span} TSNs taken, {} sent", tsns.len());
    assert!(b.client_events.iter().any(|e| matches!(e, Event::Abandoned { .. })));
    assert_settled(&mut b);
}

/// Shows: ext/F5, ext/F13, ext/F14.
#[test]
fn a_lost_message_is_skipped_when_late_and_its_stream_goes_on() {
    let mut b = cmt_over(&one());
    b.tap = Some(vec![]);
    let bad = numbered(1, 3, 500);
    let seen = Rc::new(RefCell::new(0));
    let count = seen.clone();
    b.filter = drop_data(move |d| {
        let hit = d == bad;
        *count.borrow_mut() += u32::from(hit);
        hit
    });
    for i in 0..8 {
        let (o, q) = (options(&b, 1, if i == 3 { 150 } else { 0 }), options(&b, 2, 0));
        assert!(b.send(Side::Client, o, numbered(1, i, 500)));
        b.run_for(ms(2));
        assert!(b.send(Side::Client, q, numbered(2, i, 500)));
        b.run_for(ms(2));
    }
    b.run_for(ms(100));
    let got: Vec<_> = b.at_server.iter().map(number_of).collect();
    assert_eq!(got.iter().filter(|g| g.0 == 2).count(), 8, "the other stream does not wait");
    assert_eq!(got.iter().filter(|g| g.0 == 1).count(), 3, "order is kept");
    b.run_for(ms(3_000));
    let got: Vec<_> = b.at_server.iter().map(number_of).filter(|g| g.0 == 1).map(|g| g.1).collect();
    assert_eq!(got, [0, 1, 2, 4, 5, 6, 7]);
    let tries = *seen.borrow();
    assert!((1..=2).contains(&tries), "sent {tries} times");
    assert_eq!(b.assoc(Side::Client).stats().abandoned_sent, 1);
    let f = forwards(&b, Side::Client);
    assert!(!f.is_empty() && f.len() <= 3 && f.iter().all(|f| f.1 == [(1, 3)]), "{f:?}");
    assert_settled(&mut b);
}

/// Shows: ext/F4.
#[test]
fn fragments_are_given_up_together() {
    let mut b = cmt_over(&one());
    let whole = numbered(1, 1, 6_000);
    let piece: Bytes = whole.slice(2_400..2_420);
    b.filter = drop_data(move |d| d.windows(20).any(|w| w == piece));
    for (i, len) in [(0, 100), (1, 6_000), (2, 3_000)] {
        let o = options(&b, 1, if i == 1 { 300 } else { 0 });
        assert!(b.send(Side::Client, o, numbered(1, i, len)));
        b.run_for(ms(10));
    }
    b.run_for(ms(5_000));
    let got: Vec<_> = b.at_server.iter().map(number_of).collect();
    assert_eq!(got, [(1, 0), (1, 2)]);
    assert_eq!(b.assoc(Side::Client).stats().abandoned_sent, 1);
    assert_settled(&mut b);
}

/// Shows: ext/F4.
#[test]
fn a_message_that_is_late_half_sent_is_not_finished() {
    // A megabyte on a megabit: eight seconds, of which it has one.
    let mut b = cmt_over(&[(link(1, 20).with_loss(LossConfig::bernoulli(0.02)), link(1, 20))]);
    let o = options(&b, 1, 1_000);
    assert!(b.send(Side::Client, o, numbered(1, 0, 1_000_000)));
    let o = options(&b, 1, 0);
    assert!(b.send(Side::Client, o, numbered(1, 1, 1_000)));
    b.run_for(ms(4_000));
    let got: Vec<_> = b.at_server.iter().map(number_of).collect();
    assert_eq!(got, [(1, 1)]);
    assert!(b.path(Side::Client, 0).counters.data_sent < 300_000);
    assert_settled(&mut b);
}

/// The peer holds the first fragments, and the next message arrives before it learns that the rest never will.
#[test]
fn the_next_message_may_overtake_the_news_that_one_was_given_up() {
    let mut b = cmt_over(&[(link(1, 20), link(1, 20))]);
    let o = options(&b, 1, 400);
    assert!(b.send(Side::Client, o, numbered(1, 0, 1_000_000)));
    b.run_for(ms(300));
    let mut lose = 3;
    let deaf = b.now + ms(1_500);
    b.filter = Some(Box::new(move |l| {
        let forward = l.has(kind::FORWARD_TSN) && lose > 0;
        lose -= i32::from(forward);
        !forward && (l.from == Side::Client || l.now > deaf)
    }));
    b.run_for(ms(50));
    let o = options(&b, 1, 0);
    assert!(b.send(Side::Client, o, numbered(1, 1, 1_000)));
    b.run_for(ms(30_000));
    let got: Vec<_> = b.at_server.iter().map(number_of).collect();
    assert_eq!(got, [(1, 1)], "{:?}", b.server_events);
    assert_eq!(b.assoc(Side::Client).stats().abandoned_sent, 1);
    assert_settled(&mut b);
}

/// Shows: ext/F7.
#[test]
fn a_lost_forward_tsn_is_repeated() {
    let mut b = cmt_over(&one());
    let bad = numbered(1, 0, 500);
    let mut lose = 3;
    b.filter = Some(Box::new(move |l| {
        let forward = l.from == Side::Client && l.has(kind::FORWARD_TSN) && lose > 0;
        lose -= i32::from(forward);
        !forward && !data_of(l.bytes).iter().any(|d| d.2 == bad)
    }));
    for i in 0..5 {
        let o = options(&b, 1, if i == 0 { 50 } else { 0 });
        assert!(b.send(Side::Client, o, numbered(1, i, 500)));
        b.run_for(ms(5));
    }
    b.run_for(ms(8_000));
    assert_eq!(b.at_server.len(), 4);
    assert_settled(&mut b);
}

/// Shows: ext/F6.
#[test]
fn forward_tsn_names_each_ordered_stream_once_and_no_unordered_one() {
    let mut b = cmt_over(&one());
    b.tap = Some(vec![]);
    b.cut(0);
    for i in 0..30u32 {
        let stream = (i % 3) as u16;
        let o = SendOptions { unordered: stream == 2, ..options(&b, stream, 30) };
        // All fit the first window, so all have TSNs.
        assert!(b.send(Side::Client, o, numbered(stream, i, 100)));
    }
    b.run_for(ms(200));
    b.restore(0);
    let o = options(&b, 0, 0);
    assert!(b.send(Side::Client, o, numbered(0, 99, 100)));
    b.run_for(ms(5_000));
    assert_eq!(b.at_server.iter().map(number_of).collect::<Vec<_>>(), [(0, 99)]);
    let f = forwards(&b, Side::Client);
    assert!(f.iter().any(|f| f.1 == [(0, 9), (1, 9)]), "{f:?}");
    assert!(f.iter().all(|f| f.1.iter().all(|s| s.0 != 2)), "{f:?}");
    assert_settled(&mut b);
}

/// Shows: ext/F10.
#[test]
fn losses_are_congestion_although_the_data_are_given_up() {
    let mut b = cmt_over(&one());
    let mut flow = Flow::new(Side::Client, 5, 1_000);
    flow.transfer(&mut b, 400, ms(20_000)).expect("arrives");
    let before = b.path(Side::Client, 0).cwnd;
    let lost = numbered(1, 0, 1_000);
    b.filter = drop_data(move |d| d == lost);
    let o = options(&b, 1, 10);
    assert!(b.send(Side::Client, o, numbered(1, 0, 1_000)));
    flow.stream(&mut b, ms(2), ms(200));
    let p = b.path(Side::Client, 0);
    assert_eq!(p.counters.recoveries, 1);
    assert!(p.cwnd < before, "{} of {before}", p.cwnd);
    assert_eq!(b.assoc(Side::Client).stats().abandoned_sent, 1);
}

/// Shows: ext/F1.
#[test]
fn a_peer_without_partial_reliability_gets_everything() {
    let config = assoc_config("cmt");
    let server = changed(config.clone(), |c| c.extensions.partial_reliability = false);
    let lossy = link(2, 20).with_loss(LossConfig::bernoulli(0.1));
    let mut b = Bench::connected_pair(3, &config, &server, &[(lossy, link(2, 20))]);
    b.strict = true;
    b.tap = Some(vec![]);
    for i in 0..100 {
        let o = options(&b, 1, 20);
        assert!(b.send(Side::Client, o, numbered(1, i, 1_000)));
    }
    b.run_for(ms(60_000));
    let got: Vec<_> = b.at_server.iter().map(|m| number_of(m).1).collect();
    assert_eq!(got, (0..100).collect::<Vec<_>>());
    assert!(forwards(&b, Side::Client).is_empty());
}

/// Shows: ext/F2.
#[test]
fn a_peer_that_forgets_forward_tsn_is_sent_no_more_of_it() {
    for pending in [false, true] {
        let mut b = cmt_over(&one());
        let tag = tag_of(&mut b);
        if pending {
            b.cut(0);
            let o = options(&b, 1, 10);
            assert!(b.send(Side::Client, o, numbered(1, 0, 500)));
            b.run_for(ms(1_500));
            assert_eq!(b.assoc(Side::Client).stats().abandoned_sent, 1);
            b.restore(0);
        }
        // ERROR: unrecognised chunk type 192, length 4.
        let mut error = vec![0x13, 0x89, 0x13, 0x89];
        error.extend_from_slice(&tag.to_be_bytes());
        error.extend_from_slice(&[0, 0, 0, 0, 9, 0, 0, 12, 0, 6, 0, 8, 192, 0, 0, 4]);
        b.inject(Side::Client, 0, &error);
        if pending {
            b.run_for(ms(10));
            let broken = |e: &Event| matches!(e, Event::Closed(CloseReason::ProtocolViolation(_)));
            assert!(b.client_events.iter().any(broken), "{:?}", b.client_events);
            continue;
        }
        b.tap = Some(vec![]);
        b.filter = drop_first(Side::Client, kind::DATA, 2);
        let o = options(&b, 1, 10);
        assert!(b.send(Side::Client, o, numbered(1, 0, 500)));
        b.run_for(ms(10_000));
        assert_eq!(b.at_server.len(), 1, "reliable from now on");
        assert!(forwards(&b, Side::Client).is_empty());
    }
}

/// The tag the server puts into its packets.
fn tag_of(b: &mut Bench) -> u32 {
    b.tap = Some(vec![]);
    assert!(b.send(Side::Client, SendOptions::default(), &b"x"[..]));
    b.run_for(ms(500));
    b.at_server.clear();
    let tap = b.tap.take().expect("tapped");
    let p = tap.iter().rfind(|t| t.1 == Side::Server).expect("a SACK");
    Packet::parse(&p.3, Verify::Trusted).expect("a packet").header.vtag
}

/// Two paths, one dies; every second message was on it. The ordered stream behind them must not pay a round trip for
/// each island.
#[test]
fn many_holes_between_acknowledged_messages_close_at_once() {
    for profile in ["cmt", "live"] {
        let mut b =
            Bench::connected(4, &assoc_config(profile), &[(link(20, 30), link(20, 30)), (link(20, 30), link(20, 30))]);
        b.strict = true;
        let mut turn = 0u32;
        b.filter = Some(Box::new(move |l| {
            if l.from != Side::Client || !l.has(kind::DATA) || l.now.as_secs_f64() > 4.5 {
                return true;
            }
            turn += 1;
            turn.is_multiple_of(2)
        }));
        let end = b.now + ms(500);
        let mut n = 0;
        while b.now < end {
            let o = options(&b, 1, 100);
            b.send(Side::Client, o, numbered(1, n, 1_000));
            n += 1;
            b.run_for(ms(2));
        }
        b.run_for(ms(200));
        let o = options(&b, 1, 0);
        assert!(b.send(Side::Client, o, numbered(1, n, 1_000)));
        let began = b.now;
        let until = b.now + ms(20_000);
        assert!(b.run_until(until, |b| b.at_server.last().is_some_and(|m| number_of(m).1 == n)));
        assert!(b.now.since(began) < ms(1_500), "{profile}: {:?}", b.now.since(began));
        let got: Vec<_> = b.at_server.iter().map(|m| number_of(m).1).collect();
        assert!(got.windows(2).all(|w| w[0] < w[1]), "{profile}: out of order");
        assert_settled(&mut b);
    }
}

#[test]
fn nothing_sticks_under_loss() {
    for profile in ["sctp", "cmt", "live", "confluent", "low-latency"] {
        for seed in 0..4 {
            nothing_sticks(profile, seed);
        }
    }
}

fn nothing_sticks(profile: &str, seed: u64) {
    let lossy = |ms| link(3, ms).with_loss(LossConfig::bernoulli(0.2));
    let mut b = Bench::connected(seed, &assoc_config(profile), &[(lossy(10), lossy(10)), (lossy(40), lossy(40))]);
    b.strict = true;
    let mut r = anabranch_base::RandomStream::named(seed, "messages");
    let mut sent: BTreeMap<(u16, u32), (bool, bool)> = BTreeMap::new();
    let mut next = [0u32; 6];
    for _ in 0..600 {
        let stream = r.below(6) as u16;
        let life = if r.chance(0.3) { 0 } else { 1 + r.below(600) };
        let unordered = stream >= 4;
        let o = SendOptions { unordered, ..options(&b, stream, life) };
        let number = next[usize::from(stream)];
        if b.send(Side::Client, o, numbered(stream, number, 10 + r.below(4_000) as usize)) {
            next[usize::from(stream)] += 1;
            sent.insert((stream, number), (life == 0, unordered));
        }
        b.run_for(ms(r.below(12)));
    }
    let until = b.now + ms(300_000);
    let done = |b: &Bench| {
        let s = b.client.association(b.client_id).map(|a| a.stats()).unwrap_or_default();
        s.unsent == 0 && s.outstanding == 0
    };
    while b.now < until && !done(&b) {
        b.run_for(ms(500));
    }
    assert!(done(&b), "{profile} {seed}: {:?}", b.assoc(Side::Client).stats());
    b.filter = None;
    b.run_for(ms(30_000));
    let mut last = [None; 6];
    let mut got = BTreeSet::new();
    for m in b.at_server.iter() {
        let id = number_of(m);
        assert!(got.insert(id), "{profile} {seed}: {id:?} twice");
        if id.0 < 4 {
            assert!(last[usize::from(id.0)] < Some(id.1), "{profile} {seed}: {id:?} out of order");
            last[usize::from(id.0)] = Some(id.1);
        }
    }
    for (id, (reliable, _)) in &sent {
        assert!(!reliable || got.contains(id), "{profile} {seed}: {id:?} lost");
    }
    let s = b.assoc(Side::Client).stats();
    let given_up = (s.abandoned_sent + s.abandoned_unsent) as usize;
    // A given-up message may have arrived all the same: its acknowledgement was lost.
    assert!(
        got.len() + given_up >= sent.len() && got.len() <= sent.len(),
        "{} + {given_up} of {}",
        got.len(),
        sent.len()
    );
    assert!(got.len() < sent.len(), "{profile} {seed}: nothing was ever late");
}

#[test]
fn shutdown_does_not_wait_for_what_is_late() {
    let mut b = cmt_over(&[(link(1, 20), link(1, 20))]);
    for i in 0..200 {
        let o = options(&b, 1, 300);
        assert!(b.send(Side::Client, o, numbered(1, i, 1_000)));
    }
    let now = b.now;
    b.assoc(Side::Client).shutdown(now);
    b.run_for(ms(1_500));
    assert!(b.client_events.contains(&Event::Closed(CloseReason::Shutdown)), "{:?}", b.client_events);
    assert!(b.server_events.contains(&Event::Closed(CloseReason::Shutdown)));
}

#[test]
fn a_buffer_full_of_late_messages_makes_room() {
    let config = changed(assoc_config("cmt"), |c| c.limits.send_buffer = 100_000);
    let mut b = Bench::connected(2, &config, &one());
    b.strict = true;
    b.cut(0);
    let mut n = 0;
    loop {
        let o = options(&b, 1, 200);
        if !b.send(Side::Client, o, numbered(1, n, 1_000)) {
            break;
        }
        n += 1;
    }
    b.client_events.clear();
    b.run_for(ms(3_000));
    assert!(b.client_events.contains(&Event::Writable), "{:?}", b.client_events);
    let o = options(&b, 1, 200);
    assert!(b.send(Side::Client, o, numbered(1, n, 1_000)));
    b.restore(0);
    b.run_for(ms(10_000));
    assert_settled(&mut b);
}
