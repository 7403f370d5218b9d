//! A peer that lies about what arrived: ahead of time, in crumbs, again and again, with windows of a byte.

use super::peer::*;
use crate::common::page::{count, figure, grouped, listed, memory};
use anabranch_base::{StreamId, Tsn};
use anabranch_engine::{CloseReason, Event, SendOptions};
use anabranch_wire::{Chunk, Packet, Verify, kind};
use bytes::Bytes;

/// TSN and payload bytes of each DATA chunk.
fn chunks(sent: &[Sent]) -> Vec<(Tsn, usize)> {
    let mut out = Vec::new();
    for (_, bytes) in sent {
        let p = Packet::parse(bytes, Verify::Trusted).expect("a packet");
        for c in p.chunks().flatten() {
            if let Ok(Chunk::Data(d)) = c.decode() {
                out.push((d.header.tsn, d.payload.len()));
            }
        }
    }
    out
}

/// Payload of a full packet.
const FULL: usize = 1_172;

fn send(s: &mut Server, n: usize, len: usize) {
    let now = s.now;
    let mut a = s.assoc();
    for _ in 0..n {
        let o = SendOptions { stream: StreamId(1), unordered: true, ..SendOptions::default() };
        a.send(now, o, Bytes::from(vec![1; len])).expect("room");
    }
}

fn window(s: &mut Server) -> u64 {
    s.assoc().paths().next().expect("a path").1.cwnd
}

/// What has left may have arrived: an acknowledgement that comes too early cannot be distinguished from a quick one. So
/// the window opens as for a path without delay, by no more than what was sent; and each SACK releases a burst at most.
#[test]
fn acknowledged_before_it_can_have_arrived() {
    let (mut s, p) = connected(assoc_config("cmt"));
    send(&mut s, 3_000, FULL);
    let before = window(&mut s);
    let mut out = s.drain();
    let (mut sent, mut sacks, mut most, mut acked) = (0, 0, 0, 0);
    loop {
        let list = chunks(&out);
        let Some((last, _)) = list.last().copied() else { break };
        sent += list.iter().map(|c| c.1).sum::<usize>();
        acked = sent;
        sacks += 1;
        out = s.answers(HOME, &p.packet(&[&sack(last, u32::MAX, &[])]));
        most = most.max(out.len());
    }
    let grown = window(&mut s) - before;
    println!(
        "{} bytes acknowledged the moment they leave: {sent} bytes sent in no time, {sacks} SACKs, {most} packets \
         at most for one, window {before} + {grown} bytes",
        3_000 * FULL
    );
    assert_eq!(sent, 3_000 * FULL, "nothing is sent twice");
    // As many as a burst has.
    assert!(most <= 4 && grown <= acked as u64);
    assert!(grown > 0 && grown <= sacks * FULL as u64, "a packet for each SACK (RFC 9260 §7.2.1)");
    figure(
        "acks::acknowledged_before_it_can_have_arrived",
        &format!("{} bytes in {sacks} SACKs, {} at most for one", grouped(sent), count(most, "packet")),
    );
    s.check();
}

/// Who does not see what leaves must guess how much did; one guess too far ends it.
#[test]
fn acknowledged_before_it_is_sent() {
    let (mut paces, mut ends, mut chunks_sent) = (vec![], vec![], vec![]);
    for pace in [1u32, 2, 4, 8] {
        let (mut s, p) = connected(assoc_config("cmt"));
        send(&mut s, 3_000, 1_000);
        let mut sent = chunks(&s.drain()).len();
        let mut cum = p.server_tsn.minus(1);
        let mut sacks = 0;
        while !s.events.iter().any(|e| matches!(e, Event::Closed(_))) && sacks < 10_000 {
            cum = cum.plus(pace);
            sacks += 1;
            let out = s.answers(HOME, &p.packet(&[&sack(cum, u32::MAX, &[])]));
            sent += chunks(&out).len();
        }
        let end = s.events.last();
        println!(
            "blind acknowledgements, {pace} packets further each: ended by SACK {sacks}, {sent} packets were sent"
        );
        assert!(matches!(end, Some(Event::Closed(CloseReason::ProtocolViolation(_)))), "{end:?}");
        assert!(sent <= 3_000);
        paces.push(pace.to_string());
        ends.push(grouped(sacks));
        chunks_sent.push(grouped(sent));
    }
    figure(
        "acks::acknowledged_before_it_is_sent",
        &format!(
            "{} chunks further each time: ended by SACK {}, with {} of 3,000 chunks sent",
            listed(&paces),
            listed(&ends),
            listed(&chunks_sent)
        ),
    );
}

/// Windows count bytes, so that many SACKs for little open them no further than one for all.
#[test]
fn acknowledged_in_crumbs() {
    let (mut growth, mut of) = (vec![], 0);
    for each in [1usize, 4, 1_000] {
        let (mut s, p) = connected(assoc_config("cmt"));
        send(&mut s, 16, 570);
        let before = window(&mut s);
        let list = chunks(&s.drain());
        let bytes: usize = list.iter().map(|c| c.1).sum();
        let mut sent = bytes;
        for group in list.chunks(each) {
            let one = p.packet(&[&sack(group.last().expect("one").0, 1 << 20, &[])]);
            for _ in 0..100 {
                sent += chunks(&s.answers(HOME, &one)).iter().map(|c| c.1).sum::<usize>();
            }
        }
        let grown = window(&mut s) - before;
        println!(
            "{bytes} bytes acknowledged {each} chunks at a time, each SACK 100 times: the window grew by {grown} bytes"
        );
        assert!(grown > 0 && grown <= bytes as u64 && sent <= 16 * 570);
        growth.push(grouped(grown));
        of = bytes;
        s.check();
    }
    figure(
        "acks::acknowledged_in_crumbs",
        &format!(
            "{} bytes: growth of {} bytes by one chunk, four and all at a time, each SACK 100 times",
            grouped(of),
            listed(&growth)
        ),
    );
}

/// Shows: 9260/C5.
#[test]
fn the_same_sack_again_and_again() {
    let (mut s, p) = connected(assoc_config("cmt"));
    send(&mut s, 1_000, 1_000);
    let list = chunks(&s.drain());
    let first = Bytes::from(p.packet(&[&sack(list[0].0.minus(1), 1 << 20, &[])]));
    let holes = Bytes::from(p.packet(&[&sack(list[0].0.minus(1), 1 << 20, &[(2, 4)])]));
    let before = window(&mut s);
    let mut packets = 0;
    let once = allocation_counter::measure(|| {
        for _ in 0..100_000 {
            s.handle(HOME, &first);
            while s.next_packet().is_some() {
                packets += 1;
            }
        }
    });
    let grown = window(&mut s) - before;
    assert_eq!(grown, 0);
    let same = format!("100,000 times: {}, {}", count(packets, "packet"), count(once.count_total, "allocation"));

    // Three chunks acknowledged and taken back in turns: credited once.
    let mut packets = 0;
    let back = allocation_counter::measure(|| {
        for n in 0..100_000 {
            s.handle(HOME, if n % 2 == 0 { &holes } else { &first });
            while s.next_packet().is_some() {
                packets += 1;
            }
        }
    });
    let grown = window(&mut s).saturating_sub(before);
    assert!(grown <= 3_000, "credited once: {grown}");
    figure(
        "acks::the_same_sack_again_and_again",
        &format!(
            "{same}; three chunks taken back 50,000 times: {}, {}, {} of growth",
            count(packets, "packet"),
            count(back.count_total, "allocation"),
            count(grown, "byte")
        ),
    );
    s.check();
}

/// Shows: 9260/D2, 9260/D3.
#[test]
fn windows_of_a_few_bytes() {
    let mut all = vec![];
    for a_rwnd in [0, 1, 100, 1_000] {
        let (mut s, p) = connected(assoc_config("cmt"));
        send(&mut s, 1_000, 1_000);
        let began = s.now;
        let (mut cum, mut packets, mut smallest, mut data_bytes) = (p.server_tsn.minus(1), 0, usize::MAX, 0);
        let mut out = s.drain();
        // The peer answers whatever comes, for ten minutes.
        while s.now.since(began) < ms(600_000) {
            for (tsn, len) in chunks(&out) {
                packets += 1;
                smallest = smallest.min(len);
                data_bytes += len;
                cum = cum.max(tsn);
            }
            out = s.answers(HOME, &p.packet(&[&sack(cum, a_rwnd, &[])]));
            out.extend(s.advance(ms(100)));
        }
        println!(
            "a window of {a_rwnd} bytes, answered ten times a second for ten minutes: {packets} DATA chunks with \
             {data_bytes} bytes, none below {smallest}"
        );
        assert_eq!((smallest, data_bytes), (1_000, 1_000 * packets), "never a crumb");
        assert_eq!(s.ids().len(), 1, "a peer that answers is not dead");
        all.push(grouped(packets));
        s.check();
    }
    figure(
        "acks::windows_of_a_few_bytes",
        &format!("0, 1, 100 and 1,000 bytes: {} of 1,000 chunks in ten minutes, none of them cut", listed(&all)),
    );
}

#[test]
fn a_peer_that_never_acknowledges_costs_the_send_buffer() {
    let (mut s, _) = connected(assoc_config("cmt"));
    let began = s.now;
    let mut taken = 0u64;
    let used = allocation_counter::measure(|| {
        let o = SendOptions { stream: StreamId(1), ..SendOptions::default() };
        let now = s.now;
        let mut a = s.assoc();
        while a.send(now, o, Bytes::from(vec![1; 1_000])).is_ok() {
            taken += 1_000;
        }
    });
    let (mut packets, mut bytes, mut kinds) = (0, 0, std::collections::BTreeMap::<u8, usize>::new());
    while !s.ids().is_empty() && s.now.since(began) < ms(7_200_000) {
        let out = s.advance(ms(1_000));
        packets += out.len();
        bytes += bytes_of(&out);
        chunks_of(&out).iter().flatten().for_each(|kind| *kinds.entry(*kind).or_default() += 1);
    }
    let end = s.now.since(began);
    println!(
        "never acknowledged: {taken} bytes taken from the user in {} of memory; {packets} packets with {bytes} bytes \
         sent, given up after {end:?}",
        used.bytes_max
    );
    assert!(s.events.contains(&Event::Closed(CloseReason::PeerGone)), "{:?}", s.events);
    // While T3 waits DATA leaves beyond the window twice a second (`probe` of the timer), and so does the ASCONF that
    // awaits its answer; the path, out of use, is probed once a second (path truth, `revisit`). All else backs off.
    let of = |kind| kinds.get(&kind).copied().unwrap_or(0);
    let (seconds, data) = (end.as_millis() as usize / 1_000, of(kind::DATA));
    assert!(data <= 2 * seconds + 4 && of(kind::ASCONF) <= 2 * seconds && of(kind::HEARTBEAT) <= seconds, "{kinds:?}");
    figure(
        "acks::a_peer_that_never_acknowledges_costs_the_send_buffer",
        &format!(
            "{} bytes of messages in {}; {} with {} bytes, {} kbit/s: {data} DATA, {} ASCONFs and {} HEARTBEATs; ended \
             after {seconds} s",
            grouped(taken),
            memory(used.bytes_max),
            count(packets, "packet"),
            grouped(bytes),
            bytes as u64 * 8 / end.as_millis(),
            of(kind::ASCONF),
            of(kind::HEARTBEAT)
        ),
    );
}

/// A peer that shuts its window lets what the user sends pile up: crumbs fill the buffer by what they cost.
#[test]
fn crumbs_in_the_send_buffer() {
    let (mut s, _) = connected(assoc_config("cmt"));
    let mut taken = 0u64;
    let used = allocation_counter::measure(|| {
        let o = SendOptions { stream: StreamId(1), ..SendOptions::default() };
        let now = s.now;
        let mut a = s.assoc();
        while a.send(now, o, Bytes::from(vec![b'x'])).is_ok() {
            taken += 1;
        }
        drop(a);
        s.drain();
    });
    // A list that grew by doubling is half empty at worst, and is copied once more while it grows.
    figure(
        "acks::crumbs_in_the_send_buffer",
        &format!(
            "4 MiB: {} messages of one byte in {}, {} while a list grows",
            grouped(taken),
            memory(used.bytes_current),
            memory(used.bytes_max)
        ),
    );
}
