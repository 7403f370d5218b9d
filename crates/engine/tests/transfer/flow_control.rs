//! A receiver that does not read: the window closes, is probed with patience, opens again, and nothing is lost.

use crate::common::*;
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_engine::{AssocConfig, CloseReason, Event, SendOptions};
use anabranch_sim::LossConfig;
use anabranch_wire::{Chunk, Packet, Verify, kind};
use bytes::Bytes;

const BUFFER: usize = 100_000;

fn config(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| c.limits.receive_buffer = BUFFER)
}

/// One path of 10 Mbit/s and 40 ms there and back; the server does not read.
fn unread(profile: &str) -> Bench {
    let mut b = Bench::connected(21, &config(profile), &[(link(10, 20), link(10, 20))]);
    b.strict = true;
    b.auto_read = false;
    b
}

/// The server's user reads at most `n` messages.
fn read(b: &mut Bench, n: usize) -> usize {
    let mut got = Vec::new();
    {
        let mut a = b.assoc(Side::Server);
        while got.len() < n
            && let Some(m) = a.recv()
        {
            got.push(m);
        }
    }
    let len = got.len();
    b.at_server.append(&mut got);
    len
}

fn window_of(bytes: &Bytes) -> Option<u32> {
    let p = Packet::parse(bytes, Verify::Trusted).ok()?;
    p.chunks().flatten().find_map(|c| match c.decode() {
        Ok(Chunk::Sack(s)) => Some(s.a_rwnd),
        _ => None,
    })
}

fn last_window(b: &Bench) -> u32 {
    b.tapped(Side::Server, kind::SACK).last().and_then(|t| window_of(&t.3)).expect("a SACK")
}

/// Shows: 9260/D2.
#[test]
fn the_window_closes_and_stays_closed() {
    for size in [20, 300, 1_000, 5_000] {
        let mut b = unread("sctp");
        b.tap = Some(vec![]);
        let mut flow = Flow::new(Side::Client, 1, size);
        flow.send_to(&mut b, (400_000 / size) as u32);
        b.run_for(ms(30_000));
        assert_eq!(last_window(&b), 0, "messages of {size}");
        let first: u64 = b.tapped(Side::Client, kind::DATA).iter().map(|t| t.3.len() as u64).sum();
        assert!(
            b.path(Side::Client, 0).counters.data_sent - b.path(Side::Client, 0).counters.data_retransmitted <= 110_000
        );
        assert!(first < 160_000, "{first} bytes of packets");
        b.run_for(ms(600_000));
        let sent = b.tapped(Side::Client, kind::DATA);
        // Doubling from one second. An answered heartbeat ends the back-off, one every half minute.
        let times: Vec<Instant> = sent.iter().map(|t| t.0).filter(|t| t.as_secs_f64() > 40.0).collect();
        assert!(times.len() >= 5 && times.len() < 100, "messages of {size}: {} probes", times.len());
        let gaps: Vec<Duration> = times.windows(2).map(|w| w[1].since(w[0])).collect();
        assert!(gaps.iter().all(|g| *g >= ms(990) && *g <= ms(61_000)), "{gaps:?}");
        assert!(
            b.client_events.iter().all(|e| !matches!(e, Event::Closed(_) | Event::PathChanged { .. }))
                || b.client_events.iter().filter(|e| !matches!(e, Event::Writable)).count() == 2,
            "{:?}",
            b.client_events
        );
        // It was only asleep.
        b.auto_read = true;
        let began = b.now;
        let until = b.now + ms(60_000);
        let total = flow.sent;
        assert!(b.run_until(until, |b| b.at_server.len() as u32 == total), "messages of {size}: {}", b.at_server.len());
        assert!(b.now.since(began) < ms(3_000), "messages of {size}: awake after {:?}", b.now.since(began));
        flow.check(&mut b);
        assert_eq!(flow.got, flow.sent);
        b.check();
    }
}

#[test]
fn what_is_in_flight_never_exceeds_the_window_by_more_than_a_packet() {
    let mut b = unread("cmt");
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    flow.send_to(&mut b, 500);
    let mut window = BUFFER as u64;
    let mut seen = 0;
    let until = b.now + ms(20_000);
    while b.now < until {
        if !b.step(until) {
            break;
        }
        let tap = b.tap.as_ref().expect("tapped");
        for t in &tap[seen..] {
            // What the client has heard of: half a round trip ago.
            if t.1 == Side::Server
                && let Some(w) = window_of(&t.3)
            {
                window = u64::from(w);
            }
        }
        seen = tap.len();
        let s = b.assoc(Side::Client).stats();
        assert!(s.outstanding <= window.max(BUFFER as u64) + 1_200, "{} outstanding", s.outstanding);
        let held = b.assoc(Side::Server).stats().dropped_no_buffer;
        assert!(held <= 2, "{held} chunks dropped for lack of room");
    }
}

#[test]
fn reading_opens_the_window_within_a_round_trip() {
    let mut b = unread("sctp");
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    flow.send_to(&mut b, 300);
    b.run_for(ms(100_000));
    let before = b.assoc(Side::Client).stats().outstanding;
    assert!(before <= 1_200, "{before} outstanding while closed");
    b.tap = Some(vec![]);
    assert!(read(&mut b, 60) == 60);
    b.run_for(ms(150));
    let new = b.tapped(Side::Client, kind::DATA).len();
    assert!(new >= 4, "{new} packets");
    b.auto_read = true;
    b.run_for(ms(5_000));
    flow.check(&mut b);
    assert_eq!(flow.got, 300);
}

#[test]
fn a_lost_window_update_is_found_by_the_probe() {
    let mut b = unread("sctp");
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    flow.send_to(&mut b, 300);
    b.run_for(ms(5_000));
    b.filter = Some(Box::new(|l| l.from == Side::Client || l.has(kind::DATA)));
    read(&mut b, usize::MAX);
    b.run_for(ms(100));
    b.filter = None;
    let until = b.now + ms(20_000);
    b.auto_read = true;
    assert!(b.run_until(until, |b| b.at_server.len() == 300), "{}", b.at_server.len());
    flow.check(&mut b);
}

/// Shows: 9260/S3.
#[test]
fn slow_reading_causes_few_window_updates() {
    let mut b = unread("sctp");
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    flow.send_to(&mut b, 85);
    b.run_for(ms(5_000));
    assert!(flow.sent == 85);
    b.tap = Some(vec![]);
    // Nothing more to send: every SACK now is a window update.
    while read(&mut b, 1) == 1 {
        b.run_for(ms(10));
    }
    let updates = b.tapped(Side::Server, kind::SACK).len();
    assert!((1..=4).contains(&updates), "{updates} window updates");
    flow.check(&mut b);
    assert_eq!(flow.got, 85);
}

/// Shows: 9260/S10.
#[test]
fn no_window_smaller_than_a_packet_is_announced() {
    let mut b = unread("sctp");
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 1, 700);
    flow.send_to(&mut b, 400);
    b.run_for(ms(5_000));
    for _ in 0..200 {
        read(&mut b, 1);
        b.run_for(ms(5));
    }
    let windows: Vec<u32> = b.tapped(Side::Server, kind::SACK).iter().filter_map(|t| window_of(&t.3)).collect();
    assert!(windows.iter().all(|w| *w == 0 || *w >= 1_172), "{windows:?}");
}

#[test]
fn a_window_that_is_nearly_shut_for_long_ends_nothing() {
    // Sizes that leave an awkward rest of the buffer.
    for size in [333, 900, 1_100, 1_172] {
        for profile in ["sctp", "cmt", "live"] {
            let mut b = unread(profile);
            let mut flow = Flow::new(Side::Client, 1, size);
            flow.send_to(&mut b, (300_000 / size) as u32);
            b.client_events.clear();
            b.run_for(ms(1_800_000));
            assert!(b.client_events.is_empty(), "{profile}, {size}: {:?}", b.client_events);
            b.auto_read = true;
            b.run_for(ms(5_000));
            flow.check(&mut b);
            assert_eq!(flow.got, flow.sent, "{profile}, messages of {size}");
        }
    }
}

#[test]
fn a_peer_that_dies_with_its_window_shut_is_noticed() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = unread(profile);
        let mut flow = Flow::new(Side::Client, 1, 1_000);
        flow.send_to(&mut b, 300);
        b.run_for(ms(60_000));
        b.cut(0);
        let until = b.now + ms(3_600_000);
        let gone = Event::Closed(CloseReason::PeerGone);
        assert!(b.run_until(until, |b| b.client_events.contains(&gone)), "{profile}: {:?}", b.client_events);
    }
}

#[test]
fn nothing_is_lost_when_the_reader_comes_and_goes() {
    for profile in ["sctp", "cmt", "live", "confluent"] {
        let lossy = |d| link(10, d).with_loss(LossConfig::bernoulli(0.03));
        let mut b = Bench::connected(5, &config(profile), &[(lossy(10), lossy(10)), (lossy(30), lossy(30))]);
        b.strict = true;
        let mut r = anabranch_base::RandomStream::named(3, profile);
        let mut flow = Flow::new(Side::Client, 1, 1_300);
        for _ in 0..60 {
            flow.send_to(&mut b, 3_000);
            b.auto_read = r.chance(0.5);
            b.run_for(ms(r.below(900)));
            flow.check(&mut b);
        }
        b.auto_read = true;
        assert!(flow.transfer(&mut b, 100, ms(200_000)).is_some(), "{profile}: {} of {}", flow.got, flow.sent);
    }
}

#[test]
fn the_smallest_window_there_can_be_works() {
    let small = changed(assoc_config("sctp"), |c| c.limits.receive_buffer = 1_500);
    let mut b = Bench::connected_pair(5, &assoc_config("sctp"), &small, &[(link(10, 5), link(10, 5))]);
    b.strict = true;
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    assert!(flow.transfer(&mut b, 200, ms(60_000)).is_some(), "{}", flow.got);
}

#[test]
fn a_message_larger_than_the_receive_buffer_ends_with_a_reason() {
    let mut b = unread("sctp");
    b.auto_read = true;
    assert!(b.send(
        Side::Client,
        SendOptions { stream: StreamId(1), ..SendOptions::default() },
        numbered(1, 0, 300_000)
    ));
    b.run_for(ms(10_000));
    assert!(b.server_events.iter().any(|e| matches!(e, Event::Closed(CloseReason::ProtocolViolation(_)))));
    assert!(
        b.client_events.iter().any(|e| matches!(e, Event::Closed(CloseReason::PeerAborted(_)))),
        "{:?}",
        b.client_events
    );
}

#[test]
fn a_message_as_large_as_the_receive_buffer_arrives() {
    let mut b = unread("sctp");
    b.auto_read = true;
    let mut flow = Flow::new(Side::Client, 1, BUFFER);
    let t = flow.transfer(&mut b, 5, ms(10_000));
    assert!(t.is_some_and(|t| t < ms(4_000)), "{t:?}");
}

#[test]
fn the_send_buffer_refuses_and_tells_when_there_is_room() {
    let config = changed(config("sctp"), |c| c.limits.send_buffer = 50_000);
    let mut b = Bench::connected(21, &config, &[(link(10, 20), link(10, 20))]);
    let mut flow = Flow::new(Side::Client, 1, 1_000);
    flow.send_to(&mut b, 1_000);
    assert_eq!(flow.sent, 50);
    b.client_events.clear();
    b.run_for(ms(1_000));
    assert!(b.client_events.contains(&Event::Writable));
    flow.transfer(&mut b, 1_000, ms(20_000)).expect("arrives");
}

/// A small message costs 256 bytes, unless larger ones beside it make up for that.
#[test]
fn small_messages_cost_more_than_their_payload() {
    for (size, taken) in [(10, 196), (200, 196), (256, 196), (500, 100)] {
        let config = changed(config("sctp"), |c| c.limits.send_buffer = 50_000);
        let mut b = Bench::connected(21, &config, &[(link(10, 20), link(10, 20))]);
        let mut flow = Flow::new(Side::Client, 1, size);
        flow.send_to(&mut b, 1_000);
        assert!(flow.sent.abs_diff(taken) <= 1, "{} messages of {size} bytes", flow.sent);
    }
}

#[test]
fn who_was_refused_a_large_message_hears_of_room_for_it() {
    let config = changed(config("sctp"), |c| c.limits.send_buffer = 50_000);
    let mut b = Bench::connected(21, &config, &[(link(10, 20), link(10, 20))]);
    assert!(b.send(Side::Client, SendOptions::default(), vec![1; 20_000]));
    b.client_events.clear();
    assert!(b.assoc(Side::Client).is_writable(), "less than half the buffer is used");
    assert!(!b.send(Side::Client, SendOptions::default(), vec![2; 40_000]));
    assert!(!b.assoc(Side::Client).is_writable() && b.assoc(Side::Client).is_refusing());
    b.flush();
    assert!(!b.client_events.contains(&Event::Writable), "it would be refused again");
    while !b.client_events.contains(&Event::Writable) {
        b.run_for(ms(1));
        assert!(b.now < Instant::ZERO + ms(60_000), "never");
    }
    assert!(b.send(Side::Client, SendOptions::default(), vec![2; 40_000]));
    assert!(!b.assoc(Side::Client).is_refusing());
}

/// A server gives a peer that it has let in more room: announced at once, although nothing was read.
#[test]
fn a_buffer_that_grows_is_announced_at_once() {
    for (grows, window) in [(false, 0), (true, 3 * BUFFER as u32)] {
        let mut b = unread("sctp");
        b.tap = Some(vec![]);
        let mut flow = Flow::new(Side::Client, 1, 1_000);
        flow.send_to(&mut b, 400);
        b.run_for(ms(5_000));
        assert_eq!(last_window(&b), 0);
        if grows {
            b.assoc(Side::Server).set_receive_buffer(5 * BUFFER);
        }
        let came = b.tapped(Side::Server, kind::SACK).len();
        b.run_for(ms(100));
        let windows: Vec<u32> =
            b.tapped(Side::Server, kind::SACK)[came..].iter().filter_map(|t| window_of(&t.3)).collect();
        assert!(windows.iter().max().copied().unwrap_or(0) >= window, "{windows:?}");
        if grows {
            b.run_for(ms(10_000));
            b.auto_read = true;
            b.run_for(ms(10_000));
            flow.check(&mut b);
            assert_eq!(flow.got, flow.sent);
        }
        b.check();
    }
}
