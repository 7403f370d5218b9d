//! Floods from a peer: what one packet can make us send, and what it costs to read it.

use super::peer::*;
use crate::common::page::{count, figure, grouped, listed, memory};
use anabranch_base::{Ssn, StreamId};
use anabranch_wire::{Cause, DataFlags, ErrorOut, ForwardTsnOut, Heartbeat, HeartbeatAck, kind};
use bytes::Bytes;

const FLOOD: usize = 20_000;

struct Flood {
    name: &'static str,
    packet: Vec<u8>,
    /// Bytes out may be this share of bytes in, in percent.
    percent: usize,
    /// Allocations one packet may cost.
    allocations: f64,
}

fn many(chunk: &[u8], room: usize) -> Vec<u8> {
    chunk.repeat(room / chunk.len())
}

fn error(causes: &[Cause<'_>]) -> Vec<u8> {
    let mut c = Vec::new();
    causes.iter().for_each(|x| anabranch_wire::Encode::encode(x, &mut c));
    encoded(&ErrorOut { causes: &c })
}

/// One packet again and again; its answers are fetched each time. Its bytes, those of its answer, and how many packets
/// came for one at most.
fn measure(f: &Flood) -> (usize, usize, usize) {
    let (mut s, p) = connected(assoc_config("cmt"));
    // So that no SACK is the first one, which is always at once.
    s.answers(HOME, &p.packet(&[&data(p.tsn, 0, 0, WHOLE, b"first")]));
    let tag = p.tag.to_be_bytes();
    let mut bytes = f.packet.clone();
    bytes[4..8].copy_from_slice(&tag);
    let bytes = Bytes::from(bytes);
    let (mut out, mut most, mut largest) = (0, 0, 0);
    let n = if bytes.len() > 1_200 { FLOOD / 50 } else { FLOOD };
    let used = allocation_counter::measure(|| {
        for _ in 0..n {
            s.handle(HOME, &bytes);
            let mut packets = 0;
            while let Some((to, len)) = s.next_packet() {
                assert_eq!(to, HOME);
                packets += 1;
                out += len;
                largest = largest.max(len);
            }
            most = most.max(packets);
        }
    });
    let (share, each) = (100 * out / (bytes.len() * n), used.count_total as f64 / n as f64);
    println!(
        "{:<34} {:>6} bytes in, {:>6} out ({share} %), {most} packets at most, {each:>5.1} allocations, {:>6} bytes held",
        f.name,
        bytes.len(),
        out / n,
        used.bytes_current
    );
    assert_eq!(s.ids().len(), 1, "{}: {:?}", f.name, s.events);
    assert!(most <= 1 && largest <= 1_200, "{}", f.name);
    assert!(share <= f.percent, "{}: {share} %", f.name);
    assert!(each <= f.allocations + 0.01 && used.bytes_current < 20_000, "{}", f.name);
    s.check();
    (bytes.len(), out / n, most)
}

/// Shows: 9260/V6.
#[test]
fn one_packet_makes_at_most_one() {
    let p = |chunks: &[&[u8]]| packet(1, chunks);
    let hb = |n| encoded(&Heartbeat::new(&vec![7; n]));
    let d = |n: u32, stream| data(fields().initial_tsn.plus(n), stream, 0, WHOLE, b"x");
    let skip = [0x84, 0, 0, 4];
    let report = [0xff, 0, 0, 4];
    let long_report = [&[0xff, 0, 0, 100][..], &[0; 96]].concat();
    let ack = encoded(&HeartbeatAck::to(&Heartbeat::new(&[0; 9])));
    let fragment = DataFlags { begin: true, end: false, ..WHOLE };
    let floods = [
        ("HEARTBEAT, small", p(&[&hb(4)]), 100, 2.0),
        ("HEARTBEAT, large", p(&[&hb(1_100)]), 100, 2.0),
        ("HEARTBEAT, 65 in a packet", p(&[&many(&hb(12), 1_188)]), 100, 70.0),
        ("HEARTBEAT, 64 KB of them", p(&[&many(&hb(1_000), 64_000)]), 2, 3.0),
        ("HEARTBEAT ACK, forged", p(&[&ack]), 0, 0.0),
        ("unknown, skipped", p(&[&many(&skip, 1_188)]), 0, 0.0),
        ("unknown, skipped, 64 KB", p(&[&many(&skip, 64_000)]), 0, 0.0),
        ("unknown, reported, alone", p(&[&report]), 150, 3.0),
        ("unknown, reported, 297 in a packet", p(&[&many(&report, 1_188)]), 100, 400.0),
        ("unknown, reported, long", p(&[&many(&long_report, 1_188)]), 110, 25.0),
        ("unknown, reported, 64 KB", p(&[&many(&report, 64_000)]), 2, 400.0),
        ("ERROR", p(&[&error(&[Cause::InvalidParameter])]), 0, 0.0),
        ("ERROR, 290 causes", p(&[&error(&[Cause::OutOfResource; 290])]), 0, 0.0),
        ("DATA, duplicate", p(&[&d(0, 0)]), 100, 0.0),
        ("DATA, 59 duplicates", p(&[&many(&d(0, 0), 1_188)]), 100, 0.0),
        ("DATA, out of the window", p(&[&d(1 << 20, 0)]), 100, 0.0),
        ("FORWARD-TSN, old", p(&[&encoded(&ForwardTsnOut { new_cum: fields().initial_tsn, streams: &[] })]), 100, 0.0),
        (
            "FORWARD-TSN, old, 290 streams",
            p(&[&encoded(&ForwardTsnOut { new_cum: fields().initial_tsn, streams: &[(StreamId(1), Ssn(1)); 290] })]),
            100,
            0.0,
        ),
        ("SACK, again", p(&[&sack(fields().initial_tsn.minus(500), 1 << 20, &[])]), 0, 0.0),
        ("SACK, nonsense, 290 gaps", p(&[&sack(fields().initial_tsn, 1 << 20, &[(9, 3); 290])]), 0, 0.0),
        ("fragments of nothing", p(&[&data(fields().initial_tsn, 0, 0, fragment, b"x")]), 100, 0.0),
        ("COOKIE ACK", p(&[&[kind::COOKIE_ACK, 0, 0, 4]]), 0, 0.0),
        ("SHUTDOWN COMPLETE", p(&[&[kind::SHUTDOWN_COMPLETE, 0, 0, 4]]), 0, 0.0),
        ("INIT ACK", p(&[&[kind::INIT_ACK, 0, 0, 20], &[1; 16]]), 0, 0.0),
        ("AUTH, forged", p(&[&[kind::AUTH, 0, 0, 40, 0, 0, 0, 3], &[1; 32]]), 0, 2.0),
        (
            "AUTH, forged, 29 in a packet",
            p(&[&many(&[&[kind::AUTH, 0, 0, 40, 0, 0, 0, 3][..], &[1; 32]].concat(), 1_188)]),
            0,
            2.0,
        ),
    ];
    let (mut kinds, mut most, mut larger) = (0, 0, vec![]);
    for (name, packet, percent, allocations) in floods {
        let (bytes, out, packets) = measure(&Flood { name, packet, percent, allocations });
        (kinds, most) = (kinds + 1, most.max(packets));
        if out > bytes {
            larger.push(format!("{} bytes for {}", grouped(out), grouped(bytes)));
        }
    }
    let packets = count(most, "packet");
    let larger = listed(&larger);
    figure(
        "floods::one_packet_makes_at_most_one",
        &format!("{kinds} kinds: {packets} at most for one; bytes out are at most bytes in, but for {larger}"),
    );
}

/// Nothing is fetched: a driver that is late, or a socket that is full.
#[test]
fn answers_that_are_never_fetched() {
    let (mut s, p) = connected(assoc_config("cmt"));
    let hb = encoded(&Heartbeat::new(&[7; 1_000]));
    let bytes = Bytes::from(p.packet(&[&many(&hb, 64_000)]));
    let used = allocation_counter::measure(|| (0..10_000).for_each(|_| s.handle(HOME, &bytes)));
    let waiting = s.drain().len();
    figure(
        "floods::answers_that_are_never_fetched",
        &format!(
            "{waiting} answers in {} after 10,000 packets of {} bytes",
            memory(used.bytes_current),
            grouped(bytes.len())
        ),
    );
}

/// New invalid streams are acknowledged and reported (RFC 9260 §6.5): both in one packet, not larger than what came.
#[test]
fn data_for_streams_that_do_not_exist() {
    let (mut s, mut p) = connected(assoc_config("cmt"));
    let (mut bytes_in, mut bytes_out, mut most) = (0, 0, 0);
    for _ in 0..FLOOD / 50 {
        let chunks: Vec<u8> = (0..50)
            .flat_map(|_| {
                let tsn = p.tsn;
                p.tsn = tsn.next();
                data(tsn, 60_000, 0, WHOLE, b"x")
            })
            .collect();
        let bytes = p.packet(&[&chunks]);
        let out = s.answers(HOME, &bytes);
        bytes_in += bytes.len();
        bytes_out += bytes_of(&out);
        most = most.max(out.len());
    }
    assert!(bytes_out <= bytes_in && most <= 1);
    figure(
        "floods::data_for_streams_that_do_not_exist",
        &format!("{} bytes in, {} out", grouped(bytes_in), grouped(bytes_out)),
    );
}

/// A SACK names what is missing however small the packet is that it answers: leaving runs out would take back what was
/// acknowledged. So who has punched holes gets a packet for a packet, at most a whole one, at its confirmed address.
#[test]
fn duplicates_beside_holes() {
    let (mut came, mut sizes) = (0, vec![]);
    for holes in [0u32, 50, 140, 291, 292, 2_000] {
        let (mut s, p) = connected(assoc_config("cmt"));
        for i in 0..=holes {
            s.answers(HOME, &p.packet(&[&data(p.tsn.plus(2 * i), 0, (2 * i) as u16, WHOLE, b"x")]));
        }
        let again = p.packet(&[&data(p.tsn, 0, 0, WHOLE, b"x")]);
        let (mut bytes_out, mut most) = (0, 0);
        for _ in 0..1_000 {
            let out = s.answers(HOME, &again);
            assert!(out.len() <= 1 && out.iter().all(|(to, _)| *to == HOME));
            bytes_out += bytes_of(&out);
            most = most.max(bytes_of(&out));
        }
        println!(
            "1,000 duplicates of {} bytes beside {holes} holes: {bytes_out} bytes out, {most} at most for one",
            again.len()
        );
        assert!(most <= 1_200 && most <= 32 + 4 * holes as usize);
        came = again.len();
        sizes.push(format!("{} beside {}", grouped(most), count(holes, "hole")));
        s.check();
    }
    figure("floods::duplicates_beside_holes", &format!("{came} bytes in; out {}", listed(&sizes)));
}
