//! Check bits from a peer that lies, and damaged packets for them: what they make us compare, copy and keep.

use super::peer::*;
use crate::common::changed;
use crate::common::page::{count, figure, grouped, memory};
use anabranch_base::{PathId, Tsn};
use anabranch_engine::{AssocConfig, LocalId};
use anabranch_policy::redundancy::{Redundancy, Source, Sources};
use anabranch_policy::registry::Hook;
use anabranch_wire::{Encode, Parameter, Parity, Verify};
use bytes::Bytes;

/// Comparisons that each byte of what comes pays for, and that are saved up.
const PER_BYTE: u64 = 4;
const SAVED: u64 = 16_384;
/// Bytes of records in a packet.
const ROOM: usize = 1_160;

fn config(packets: usize) -> AssocConfig {
    changed(assoc_config("cmt"), |c| {
        c.profile.set(Hook::Redundancy, "split_error_correction").expect("registered");
        c.profile.set(Hook::Repair, &format!("split_error_correction:packets={packets}")).expect("registered");
    })
}

struct Nothing;

impl Sources for Nothing {
    fn source(&self, _tsn: Tsn) -> Option<Source<'_>> {
        None
    }
}

/// The record of a packet, as an honest peer writes it.
fn record_of(writer: &mut dyn Redundancy, packet: &[u8], s: &Server) -> Vec<u8> {
    writer.packet(PathId(0), packet, s.now);
    writer.write(0, 9_000, &Nothing).expect("a record")[1..].to_vec()
}

/// A record of a packet of so many bytes that never was.
fn made_up(len: usize, sum: u32) -> Vec<u8> {
    let bits = (len.div_ceil(15) * 7).div_ceil(8);
    [&(len as u16).to_be_bytes()[..], &sum.to_be_bytes(), &vec![0x55; bits]].concat()
}

/// A packet of so many bytes with this in place of its checksum.
fn damaged(p: &Peer, len: usize, sum: u32) -> Vec<u8> {
    let mut out = p.packet(&[&vec![0x5a; len - 12]]);
    out[8..12].copy_from_slice(&sum.to_be_bytes());
    out
}

/// A packet with these records in PARITY.
fn parity(p: &mut Peer, records: &[Vec<u8>]) -> Vec<u8> {
    let record = [vec![2], records.concat()].concat();
    let tsn = p.tsn;
    p.tsn = tsn.next();
    p.packet(&[&encoded(&Parity { tsn, record: &record })])
}

#[derive(Clone, Copy, PartialEq)]
enum Attack {
    /// Records of packets that never were.
    NoPacket,
    /// Records with the checksum of all that is kept, and check bits that say of each that it is another one.
    WrongBits,
    /// Each record fits a packet, which has the wrong checksum nevertheless.
    WrongSum,
}

/// What the attacker sends, and whether it is damaged.
fn packets(s: &Server, p: &mut Peer, attack: Attack, kept: usize, len: usize) -> Vec<(bool, Bytes)> {
    let mut writer = config(kept).profile.build(1).expect("registered").redundancy;
    let mut all = vec![];
    let (sum, mut n) = (|n: u32| (n + 1).wrapping_mul(0x9e37_79b9), 0);
    let fit = (ROOM / made_up(len, 0).len()).max(1);
    if attack != Attack::WrongSum {
        let sum = |n: u32| if attack == Attack::WrongBits { sum(0) } else { sum(n) };
        all.extend((0..kept as u32).map(|n| (true, damaged(p, len, sum(n)))));
    }
    for _ in 0..200 {
        let mut records = vec![];
        for _ in 0..fit {
            n += 1;
            let one = match attack {
                Attack::NoPacket => made_up(len, !sum(n)),
                Attack::WrongBits => {
                    let mut record = record_of(&mut *writer, &damaged(p, len, sum(0) ^ 1), s);
                    record[2..6].copy_from_slice(&sum(0).to_be_bytes());
                    record
                }
                Attack::WrongSum => {
                    let packet = damaged(p, len, sum(n));
                    let record = record_of(&mut *writer, &packet, s);
                    all.push((true, packet));
                    record
                }
            };
            records.push(one);
        }
        all.push((false, parity(p, &records)));
    }
    all.into_iter().map(|(damaged, bytes)| (damaged, Bytes::from(bytes))).collect()
}

/// An honest packet with a wrong bit is still corrected.
fn honest_one_is_corrected(s: &mut Server, p: &mut Peer) {
    let mut writer = config(64).profile.build(1).expect("registered").redundancy;
    let mut packet = p.data(0, 0, WHOLE, b"as it was sent");
    let sum = anabranch_wire::packet_checksum(&packet);
    packet[8..12].copy_from_slice(&sum.to_le_bytes());
    let record = record_of(&mut *writer, &packet, s);
    packet[30] ^= 4;
    s.endpoint.handle(s.now, LocalId(0), HOME, &Bytes::from(packet), Verify::Checksum);
    let parity = Bytes::from(parity(p, &[record]));
    s.handle(HOME, &parity);
    let m = s.assoc().recv().expect("corrected and read");
    assert_eq!(m.payload.into_bytes(), &b"as it was sent"[..]);
}

/// What a flood cost.
struct Cost {
    kept: usize,
    bytes_in: usize,
    /// For each byte that came. Without a limit each record would make a copy of each packet of its length.
    compared: f64,
    copied: f64,
    /// Bytes at most.
    held: u64,
    /// Packets for one, at most.
    most: usize,
}

fn measure(name: &str, attack: Attack, kept: usize, len: usize) -> Cost {
    let mut s = Server::new(config(kept));
    let mut params = all_extensions();
    Parameter::Parity(None).encode(&mut params);
    let mut p = s.connect(HOME, fields(), &params);
    let all = packets(&s, &mut p, attack, kept, len);
    let bytes_in: usize = all.iter().map(|a| a.1.len()).sum();
    let (mut out, mut most) = (0, 0);
    let used = allocation_counter::measure(|| {
        for (damaged, bytes) in &all {
            let verify = if *damaged { Verify::Checksum } else { Verify::Trusted };
            s.endpoint.handle(s.now, LocalId(0), HOME, bytes, verify);
            let mut packets = 0;
            while let Some((_, len)) = s.next_packet() {
                (packets, out) = (packets + 1, out + len);
            }
            most = most.max(packets);
        }
    });
    let counted = |s: &mut Server, name: &str| {
        let a = s.assoc();
        a.policy_counters().find(|(h, c)| *h == Hook::Repair && c.0 == name).map_or(0, |c| c.1.1)
    };
    let copied = used.bytes_total as f64 / bytes_in as f64;
    let compared = counted(&mut s, "check-compared") as f64 / bytes_in as f64;
    println!(
        "{name:<34} {kept:>4} kept, {bytes_in:>7} bytes in, {out:>6} out: {compared:.2} comparisons and {copied:.2} bytes \
         allocated for each, {} corrected, {} bytes held at most",
        counted(&mut s, "damaged-matched"),
        used.bytes_max
    );
    assert!(counted(&mut s, "check-compared") <= PER_BYTE * bytes_in as u64 + SAVED, "{name}");
    assert!(counted(&mut s, "damaged-matched") <= all.iter().filter(|a| a.0).count() as u64, "{name}");
    assert_eq!(s.assoc().stats().repaired, 0, "{name}");
    honest_one_is_corrected(&mut s, &mut p);
    s.check();
    Cost { kept, bytes_in, compared, copied, held: used.bytes_max, most }
}

#[test]
fn check_bits_cost_no_more_than_their_bytes_pay_for() {
    let mut all = vec![];
    for kept in [64, 1_024] {
        all.push(measure("of packets that never were", Attack::NoPacket, kept, 1_200));
        all.push(measure("of small ones that never were", Attack::NoPacket, kept, 32));
        all.push(measure("that are of another one each", Attack::WrongBits, kept, 32));
        all.push(measure("that correct and do not repair", Attack::WrongSum, kept, 1_200));
    }
    all.push(measure("of packets of 64 KB", Attack::NoPacket, 64, 65_000));
    let bytes = || all.iter().map(|c| c.bytes_in);
    let most = |of: fn(&Cost) -> f64| all.iter().map(of).fold(0.0, f64::max);
    // Packets and check bits beside them.
    let held = |kept| all.iter().filter(|c| c.kept == kept).map(|c| c.held).max().unwrap_or(0);
    figure(
        "check_bits::check_bits_cost_no_more_than_their_bytes_pay_for",
        &format!(
            "{} floods of {} to {} bytes: at most {:.2} comparisons and {:.2} bytes copied for each byte, {} held ({} with \
             `packets=1024`), {} out for one; a damaged packet with the right check bits behind them is corrected",
            all.len(),
            grouped(bytes().min().unwrap_or(0)),
            grouped(bytes().max().unwrap_or(0)),
            most(|c| c.compared),
            most(|c| c.copied),
            memory(held(64)),
            memory(held(1_024)),
            count(all.iter().map(|c| c.most).max().unwrap_or(0), "packet")
        ),
    );
}
