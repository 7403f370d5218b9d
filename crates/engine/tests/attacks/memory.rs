//! What a peer can make us hold: crumbs, holes, jumps.

use super::peer::*;
use crate::common::changed;
use crate::common::page::{figure, memory};
use anabranch_base::{Ssn, StreamId};
use anabranch_engine::AssocConfig;
use anabranch_wire::{DataFlags, ForwardTsnOut, InitFields, Packet, Verify};
use bytes::Bytes;

const BUFFER: usize = 1 << 20;

fn config() -> AssocConfig {
    changed(assoc_config("cmt"), |c| {
        c.limits.receive_buffer = BUFFER;
        c.limits.inbound_streams = u16::MAX;
    })
}

/// A packet for the n-th crumb: its flags, stream, SSN and offset from the first TSN.
type Crumb = fn(u32) -> (DataFlags, u16, u16, u32);

const FIRST: DataFlags = DataFlags { end: false, ..WHOLE };
const MIDDLE: DataFlags = DataFlags { begin: false, end: false, ..WHOLE };

/// The most memory that was held.
fn crumbs(name: &str, payload: usize, padding: usize, crumb: Crumb) -> u64 {
    let mut s = Server::new(config());
    let p = s.connect(HOME, InitFields { outbound_streams: u16::MAX, ..fields() }, &[]);
    let filler = match padding {
        0 => vec![],
        n => [&[0x84, 0][..], &(n as u16).to_be_bytes(), &vec![0; n - 4]].concat(),
    };
    let payload = vec![7; payload];
    let (mut held, mut sent, mut refused) = (0, 0, 0);
    let used = allocation_counter::measure(|| {
        for n in 0..20_000 {
            let (flags, stream, ssn, offset) = crumb(n);
            let chunk = data(p.tsn.plus(offset), stream, ssn, flags, &payload);
            let bytes = Bytes::from(p.packet(&[&chunk, &filler]));
            sent += 1;
            s.handle(HOME, &bytes);
            while s.next_packet().is_some() || s.endpoint.poll_event().is_some() {}
            let Some(a) = s.ids().first().and_then(|id| s.endpoint.association(*id)) else { break };
            refused = a.stats().dropped_no_buffer;
            held += u64::from(refused == 0);
        }
    });
    let end = if s.ids().is_empty() { "then ended" } else { "the rest refused" };
    println!(
        "{name:<44} {held:>5} of {sent:>5} chunks kept, {end:<16}; at most {:>7} bytes of memory, {:>4} for each",
        used.bytes_max,
        used.bytes_max / held
    );
    assert!(held < 20_000 && (refused > 0 || s.ids().is_empty()), "{name}: no end");
    s.check();
    used.bytes_max
}

#[test]
fn crumbs_fill_the_buffer_by_what_they_cost() {
    // The buffer, its margin for holes (a quarter), and the packet at hand.
    let most = [
        crumbs("fragments of 1 byte, one run", 1, 0, |n| (if n == 0 { FIRST } else { MIDDLE }, 0, 0, n)),
        crumbs("fragments of 1 byte, each alone", 1, 0, |n| (MIDDLE, 0, 0, 1 + 2 * n)),
        crumbs("messages of 1 byte, never read", 1, 0, |n| (WHOLE, 0, n as u16, n)),
        crumbs("messages of 1 byte that wait for another", 1, 0, |n| (WHOLE, 0, 1 + n as u16, n)),
        crumbs("messages of 1 byte on streams of their own", 1, 0, |n| (WHOLE, n as u16, 1, n)),
        crumbs("fragments of 255 bytes, each alone", 255, 0, |n| (MIDDLE, 0, 0, 1 + 2 * n)),
        crumbs("messages of 300 bytes in packets of 1,200", 300, 868, |n| (WHOLE, 0, n as u16, n)),
        crumbs("messages of 300 bytes in packets of 60,000", 300, 59_668, |n| (WHOLE, 0, n as u16, n)),
        crumbs("messages of 1,172 bytes that wait", 1_172, 0, |n| (WHOLE, 0, 1 + n as u16, n)),
    ];
    let most = most.into_iter().max().unwrap_or(0);
    let text = format!("a buffer of 1 MiB holds at most {}: its margin for holes is a quarter", memory(most));
    figure("memory::crumbs_fill_the_buffer_by_what_they_cost", &text);
}

/// Each association has a buffer of its own: what one peer can make us hold, many hold as many times.
#[test]
fn many_associations_fill_as_many_buffers() {
    const EACH: usize = 64 << 10;
    let mut s = Server::new(changed(assoc_config("cmt"), |c| c.limits.receive_buffer = EACH));
    let before = allocation_counter::measure(|| ()).bytes_current;
    let mut fill = |n: u32| {
        let used = allocation_counter::measure(|| {
            for i in 0..n {
                let home = source(i);
                let p = s.connect(home, InitFields { tag: 1 + i, ..fields() }, &[]);
                for k in 0..200 {
                    let one = data(p.tsn.plus(1 + 2 * k), 0, 0, MIDDLE, &[7; 1_000]);
                    s.answers(home, &p.packet(&[&one]));
                }
            }
        });
        used.bytes_current - before
    };
    let held = fill(64);
    assert_eq!(s.ids().len(), 64);
    assert!(held > 64 * EACH as i64, "they are filled: {held} bytes");
    figure("memory::many_associations_fill_as_many_buffers", &format!("64 with 64 KiB each: {}", memory(held)));
}

/// Shows: 9260/S7.
#[test]
fn gaps_without_end() {
    let (mut s, p) = connected(config());
    let unordered = DataFlags { unordered: true, ..WHOLE };
    let (mut packets, mut most, mut largest, mut blocks) = (0, 0, 0, 0);
    let used = allocation_counter::measure(|| {
        for n in 0..32_000 {
            let one = p.packet(&[&data(p.tsn.plus(1 + 2 * n), 0, 0, unordered, b"x")]);
            s.handle(HOME, &Bytes::from(one));
            let mut now = 0;
            while let Some((_, len)) = s.next_packet() {
                now += 1;
                largest = largest.max(len);
            }
            packets += now;
            most = most.max(now);
            let a = s.ids()[0];
            if let Some(mut a) = s.endpoint.association_mut(a) {
                while a.recv().is_some() {}
            }
        }
    });
    let last = s.answers(HOME, &p.packet(&[&data(p.tsn.plus(1), 0, 0, unordered, b"x")]));
    let sack = Packet::parse(&last[0].1, Verify::Trusted).expect("a packet");
    if let Some(Ok(anabranch_wire::Chunk::Sack(k))) = sack.chunks().next().map(|c| c.expect("a chunk").decode()) {
        blocks = k.gaps().count();
    }
    println!(
        "every second TSN of 64,000: {packets} SACKs, {most} at most for one packet, {largest} bytes at most, {blocks} \
         gap blocks; {} bytes of memory",
        used.bytes_max
    );
    assert!(most == 1 && largest <= 1_200);
    figure(
        "memory::gaps_without_end",
        &format!("64,000 TSNs: {}; a SACK has {blocks} gap blocks at most", memory(used.bytes_max)),
    );
    s.check();
}

#[test]
fn jumps_by_forward_tsn() {
    let (mut s, mut p) = connected(config());
    // What waits is released or dropped by the jumps, not kept.
    for n in 0..1_000u16 {
        let tsn = p.tsn.plus(10 + 2 * u32::from(n));
        s.answers(HOME, &p.packet(&[&data(tsn, n, 5, WHOLE, &[1; 100])]));
    }
    let (mut packets, mut bytes_in, mut bytes_out) = (0, 0, 0);
    let used = allocation_counter::measure(|| {
        for n in 0..100_000u32 {
            p.tsn = p.tsn.plus(if n % 2 == 0 { 70_000 } else { (1 << 31) - 2 });
            let streams: Vec<_> = (0..40).map(|i| (StreamId((n + i * 1_600) as u16), Ssn(n as u16))).collect();
            let bytes = p.packet(&[&encoded(&ForwardTsnOut { new_cum: p.tsn, streams: &streams })]);
            bytes_in += bytes.len();
            s.handle(HOME, &Bytes::from(bytes));
            while let Some((_, len)) = s.next_packet() {
                packets += 1;
                bytes_out += len;
            }
        }
    });
    let read = std::iter::from_fn(|| s.assoc().recv()).count();
    println!(
        "100,000 jumps by FORWARD-TSN: {bytes_in} bytes in, {packets} packets with {bytes_out} out, {read} messages \
         released; {} bytes of memory",
        used.bytes_max
    );
    assert!(bytes_out < bytes_in && read <= 1_000);
    figure("memory::jumps_by_forward_tsn", &format!("100,000: {}", memory(used.bytes_max)));
    s.check();
}
