//! Packets as they would be on a wire. Those of SCTP are there whole; the simulator's own TCP and UDP have no bytes,
//! so they get the headers that a host would send, and their payload is only counted.

use crate::node::{SctpPacket, ip};
use anabranch_sim::damage::flip;
use anabranch_sim::network::{AgentId, Body, Ecn, Packet};
use anabranch_sim::transport::mptcp::MptcpSegment;
use anabranch_sim::transport::tcp::{AckSegment, DataSegment, Segment};
use anabranch_wire::Encapsulation;
use std::collections::BTreeMap;
use std::net::IpAddr;

const IP: usize = 20;
const TCP: usize = 20;
const UDP: usize = 8;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;
const NOP: u8 = 1;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;

/// Writes packets; knows what of each TCP connection has been sent, to count bytes where the simulator counts segments.
#[derive(Default)]
pub(super) struct Headers {
    connections: BTreeMap<(AgentId, u32), Connection>,
}

struct Connection {
    /// Sequence number of each segment sent so far, and of the next one.
    starts: Vec<u32>,
    /// Numbers of the packets that answer a SYN.
    syn_acks: Vec<u64>,
}

/// What goes into a TCP header.
struct Tcp {
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
    options: Vec<u8>,
    payload: u32,
}

/// Flips the bits of a packet of `size` bytes where it is written with `length`: headers that are not shown are in front.
fn flip_in(out: &mut [u8], length: u32, size: u32, flips: &[u32]) {
    let hidden = size.saturating_sub(length) * 8;
    let shown: Vec<u32> = flips.iter().map(|bit| bit.saturating_sub(hidden)).collect();
    flip(out, &shown);
}

impl Headers {
    /// Writes to `out` what there is of a packet; its length on the wire. `leaves` says that it is just being sent.
    pub(super) fn write(&mut self, p: &Packet<SctpPacket>, leaves: bool, out: &mut Vec<u8>) -> u32 {
        let length = self.write_whole(p, leaves, out);
        if let Body::Damaged(d) = &p.body {
            flip_in(out, length, p.size, &d.flips);
        }
        length
    }

    fn write_whole(&mut self, p: &Packet<SctpPacket>, leaves: bool, out: &mut Vec<u8>) -> u32 {
        out.clear();
        let tcp = match p.body.as_sent().0 {
            Body::Other(sctp) => {
                Encapsulation::ip(ip(p.source), ip(p.destination)).wrap(&sctp.bytes(), out);
                return out.len() as u32;
            }
            Body::Datagram { .. } => {
                let len = (p.size as usize).max(IP + UDP);
                put_ip(p, 17, len, out);
                let udp = (len - IP).min(usize::from(u16::MAX)) as u16;
                [port(p.from.0), port(p.to.0), udp, 0].iter().for_each(|n| out.extend(n.to_be_bytes()));
                put_checksum(out, 17, len, IP + 6);
                return len as u32;
            }
            Body::Tcp(Segment::Data(d)) => self.data(p, d),
            Body::Tcp(Segment::Ack(a)) => self.ack(p, a, leaves),
            // Each subflow is a connection; the options of Multipath TCP are padding.
            Body::Mptcp(parcel) => match parcel.segment() {
                Some(MptcpSegment::Data(d)) => self.data(p, &d.segment),
                Some(MptcpSegment::Ack(a)) => self.ack(p, &a.segment, leaves),
                None => return 0,
            },
            // No body is damaged within another.
            Body::Damaged(_) => return 0,
        };
        let len = IP + TCP + tcp.options.len() + tcp.payload as usize;
        put_ip(p, 6, len, out);
        let header = ((TCP + tcp.options.len()) / 4 * 16) as u8;
        out.extend(tcp.ports.0.to_be_bytes());
        out.extend(tcp.ports.1.to_be_bytes());
        out.extend(tcp.seq.to_be_bytes());
        out.extend(tcp.ack.to_be_bytes());
        // The window is the largest there is: the simulator's receivers take everything.
        out.extend([header, tcp.flags, 255, 255, 0, 0, 0, 0]);
        out.extend(&tcp.options);
        put_checksum(out, 6, len, IP + 16);
        len as u32
    }

    fn data(&mut self, p: &Packet<SctpPacket>, d: &DataSegment) -> Tcp {
        let c = self.connections.entry((p.from, d.flow)).or_default();
        let seq = c.starts.get(d.number as usize).copied().unwrap_or(0);
        let flags = [(d.number == 0, SYN), (d.number > 0, ACK), (d.last, FIN)];
        if d.number as usize + 1 == c.starts.len() {
            c.starts.push(seq.wrapping_add(d.bytes + u32::from(d.number == 0) + u32::from(d.last)));
        }
        let options = options(p.size.saturating_sub(d.bytes), d.number == 0, &[]);
        let flags = flags.iter().filter(|f| f.0).map(|f| f.1).sum();
        let ports = (port(d.flow), port(p.to.0));
        Tcp { ports, seq, ack: u32::from(d.number > 0), flags, options, payload: d.bytes }
    }

    fn ack(&mut self, p: &Packet<SctpPacket>, a: &AckSegment, leaves: bool) -> Tcp {
        let c = self.connections.entry((p.to, a.flow)).or_default();
        // Only the SYN has left: this is the other one.
        if leaves && a.next == 1 && c.starts.len() == 2 {
            c.syn_acks.push(p.number);
        }
        let syn = c.syn_acks.contains(&p.number);
        let at = |n: u64| c.starts.get(n.min(c.starts.len() as u64 - 1) as usize).copied().unwrap_or(0);
        let duplicate = a.duplicate().filter(|n| *n < a.next).map(|n| (n, n + 1));
        let blocks: Vec<(u32, u32)> =
            duplicate.into_iter().chain(a.sacked()).map(|(first, end)| (at(first), at(end))).collect();
        let options = options(p.size - 8 * blocks.len() as u32, syn, &blocks);
        let ports = (port(p.from.0), port(a.flow));
        Tcp {
            ports,
            seq: u32::from(!syn),
            ack: at(a.next),
            flags: if syn { SYN | ACK } else { ACK },
            options,
            payload: 0,
        }
    }
}

impl Default for Connection {
    fn default() -> Self {
        Connection { starts: vec![0], syn_acks: Vec::new() }
    }
}

/// Ports of no known use: of a receiving agent its number, of a TCP source the number of its connection.
fn port(number: u32) -> u16 {
    49_152 + (number % 16_384) as u16
}

/// As many bytes of options as the simulator counts, `header` being those of IP and TCP together, or as SACK blocks
/// need: what it does not say anything about is NOPs.
fn options(header: u32, syn: bool, blocks: &[(u32, u32)]) -> Vec<u8> {
    let counted = (header as usize).saturating_sub(IP + TCP).min(40) / 4 * 4 + 8 * blocks.len();
    let mut all = Vec::with_capacity(40);
    if syn && counted >= 12 {
        all.extend([NOP, WINDOW_SCALE, 3, 14, NOP, NOP, SACK_PERMITTED, 2]);
    }
    if !blocks.is_empty() {
        all.extend([NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
        blocks.iter().for_each(|b| all.extend([b.0.to_be_bytes(), b.1.to_be_bytes()].as_flattened()));
    }
    all.resize(all.len().max(counted).min(40), NOP);
    all
}

fn put_ip(p: &Packet<SctpPacket>, protocol: u8, len: usize, out: &mut Vec<u8>) {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (ip(p.source), ip(p.destination)) else { return };
    let ecn = match p.ecn {
        Ecn::No => 0,
        Ecn::Able => 2,
        Ecn::Marked => 3,
    };
    let [l0, l1] = (len.min(usize::from(u16::MAX)) as u16).to_be_bytes();
    let [n0, n1] = (p.number as u16).to_be_bytes();
    out.extend([0x45, ecn, l0, l1, n0, n1, 0x40, 0, 64, protocol, 0, 0]);
    out.extend(from.octets());
    out.extend(to.octets());
    let sum = !fold(sum(out));
    out.get_mut(10..12).into_iter().for_each(|s| s.copy_from_slice(&sum.to_be_bytes()));
}

/// The checksum of TCP or UDP at `at`, over a payload of zeros.
fn put_checksum(out: &mut [u8], protocol: u8, len: usize, at: usize) {
    let pseudo = out.get(12..IP).map_or(0, sum) + u64::from(protocol) + (len - IP) as u64;
    let checksum = !fold(pseudo + out.get(IP..).map_or(0, sum));
    // UDP's zero says that there is none.
    let checksum = if checksum == 0 { u16::MAX } else { checksum };
    out.get_mut(at..at + 2).into_iter().for_each(|s| s.copy_from_slice(&checksum.to_be_bytes()));
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|c| u64::from(c[0]) << 8 | c.get(1).map_or(0, |b| u64::from(*b))).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
