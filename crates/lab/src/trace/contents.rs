//! What a packet carries, as far as a trace shows it.

use crate::node::SctpPacket;
use anabranch_sim::network::Body;
use anabranch_sim::transport::mptcp::MptcpSegment;
use anabranch_sim::transport::tcp::Segment;
use anabranch_wire::{Chunk, Packet, Verify, kind};

/// What a trace shows of a packet.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Contents {
    /// The most telling chunk: `DATA`, `SACK`, `TCP`, …
    pub kind: &'static str,
    /// TSNs of DATA chunks, or the number of a segment or datagram.
    pub numbers: Vec<u64>,
    /// An acknowledgement.
    pub sack: Option<Sack>,
}

/// What a SACK says.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sack {
    pub cumulative: u32,
    pub window: u32,
    /// First and last TSN of each block.
    pub gaps: Vec<(u32, u32)>,
}

impl Contents {
    pub(super) fn of(body: &Body<SctpPacket>) -> Self {
        match body {
            Body::Datagram { number, .. } => Contents { kind: "UDP", numbers: vec![*number], sack: None },
            Body::Tcp(Segment::Data(d)) => Contents { kind: "TCP", numbers: vec![d.number], sack: None },
            Body::Tcp(Segment::Ack(a)) => Contents { kind: "TCP-ACK", numbers: vec![a.next], sack: None },
            Body::Mptcp(p) => match p.segment() {
                Some(MptcpSegment::Data(d)) => Contents { kind: "MPTCP", numbers: vec![d.segment.number], sack: None },
                Some(MptcpSegment::Ack(a)) => Contents { kind: "MPTCP-ACK", numbers: vec![a.segment.next], sack: None },
                None => Contents::default(),
            },
            Body::Other(p) => Contents::sctp(&p.bytes()),
            Body::Damaged(d) => Contents::of(&d.body),
        }
    }

    fn sctp(bytes: &[u8]) -> Self {
        let mut c = Contents { kind: "SCTP", ..Contents::default() };
        let Ok(packet) = Packet::parse(bytes, Verify::Trusted) else { return c };
        for raw in packet.chunks().flatten() {
            let name = name(raw.kind);
            // DATA tells more than a SACK beside it, and a SACK more than the rest.
            if c.kind != "DATA" && (c.kind != "SACK" || name == "DATA") {
                c.kind = name;
            }
            match raw.decode() {
                Ok(Chunk::Data(d)) => c.numbers.push(u64::from(d.header.tsn.0)),
                Ok(Chunk::Sack(s)) => {
                    let at = |offset: u16| s.cum_tsn.0.wrapping_add(u32::from(offset));
                    let gaps = s.gaps().map(|g| (at(g.start), at(g.end))).collect();
                    c.sack = Some(Sack { cumulative: s.cum_tsn.0, window: s.a_rwnd, gaps });
                }
                _ => {}
            }
        }
        c
    }

    /// TSNs or the number of a segment, of what carries them.
    pub(super) fn sent(&self) -> &[u64] {
        if matches!(self.kind, "DATA" | "TCP") { &self.numbers } else { &[] }
    }

    /// The number of a segment of TCP.
    pub(super) fn segment(&self) -> Option<u64> {
        self.numbers.first().copied().filter(|_| self.kind == "TCP")
    }

    /// The numbers as TSNs; empty for what is not SCTP's DATA.
    pub(super) fn tsns(&self) -> Vec<u32> {
        if self.kind == "DATA" { self.numbers.iter().map(|n| *n as u32).collect() } else { Vec::new() }
    }
}

fn name(kind: u8) -> &'static str {
    match kind {
        kind::DATA => "DATA",
        kind::SACK => "SACK",
        kind::INIT => "INIT",
        kind::INIT_ACK => "INIT-ACK",
        kind::COOKIE_ECHO => "COOKIE-ECHO",
        kind::COOKIE_ACK => "COOKIE-ACK",
        kind::HEARTBEAT => "HEARTBEAT",
        kind::HEARTBEAT_ACK => "HEARTBEAT-ACK",
        kind::ABORT => "ABORT",
        kind::SHUTDOWN => "SHUTDOWN",
        _ => "SCTP",
    }
}
