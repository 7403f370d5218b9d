//! The client as it is, its peer played by the test: packets of both sides are seen and go nowhere.
//!
//! The handshake is a real one; then the server is cut off, and what it would say is written by hand.
#![allow(dead_code, reason = "each test file uses its part")]

use super::*;
use anabranch_base::{Ssn, Tsn};
use anabranch_wire::{Chunk, CommonHeader, Data, DataFlags, DataHeader, Encode, GapBlock, SackOut, kind};

/// A DATA chunk that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenData {
    pub tsn: Tsn,
    pub stream: u16,
    pub ssn: u16,
    pub flags: DataFlags,
    pub payload: Bytes,
}

/// A SACK that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenSack {
    pub cum: Tsn,
    pub a_rwnd: u32,
    pub gaps: Vec<(u16, u16)>,
    pub duplicates: Vec<Tsn>,
}

/// A packet of the client.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub path: usize,
    pub kinds: Vec<u8>,
    pub data: Vec<SeenData>,
    pub sack: Option<SeenSack>,
    pub len: usize,
}

impl Seen {
    pub fn read(at: Instant, path: usize, bytes: &Bytes) -> Seen {
        let p = Packet::parse(bytes, Verify::Checksum).expect("a packet");
        let mut seen = Seen { at, path, kinds: kinds(bytes), data: vec![], sack: None, len: bytes.len() };
        for c in p.chunks().flatten() {
            match c.decode() {
                Ok(Chunk::Data(d)) => seen.data.push(SeenData {
                    tsn: d.header.tsn,
                    stream: d.header.stream.0,
                    ssn: d.header.ssn.0,
                    flags: d.header.flags,
                    payload: Bytes::copy_from_slice(d.payload),
                }),
                Ok(Chunk::Sack(s)) => {
                    seen.sack = Some(SeenSack {
                        cum: s.cum_tsn,
                        a_rwnd: s.a_rwnd,
                        gaps: s.gaps().map(|g| (g.start, g.end)).collect(),
                        duplicates: s.duplicates().collect(),
                    });
                }
                _ => {}
            }
        }
        seen
    }
    pub fn has(&self, kind: u8) -> bool {
        self.kinds.contains(&kind)
    }
}

pub const WHOLE: DataFlags = DataFlags { immediate: false, unordered: false, begin: true, end: true };
/// What the peer announces unless a test says otherwise.
pub const ROOM: u32 = 1 << 20;
/// Payload of a full packet.
pub const FULL: usize = 1_172;

pub struct Manual {
    pub b: Bench,
    pub to_client: u32,
    pub to_server: u32,
    /// First TSN of each side.
    pub client_first: Tsn,
    pub server_first: Tsn,
}

impl Manual {
    /// Connected over these links; nothing passes from now on.
    pub fn new(config: &AssocConfig, links: &[(LinkConfig, LinkConfig)]) -> Manual {
        let mut b = Bench::new(3, config);
        for (i, (f, r)) in links.iter().enumerate() {
            b.paths.add(&format!("path{i}"), f.clone(), r.clone());
        }
        b.tap = Some(vec![]);
        b.connect(config);
        b.run_for(ms(3_000));
        let fields = |side, chunk| {
            let t = b.tapped(side, chunk)[0];
            let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
            let fields = p.chunks().flatten().find_map(|c| match c.decode() {
                Ok(Chunk::Init(i)) => Some(i.fields),
                Ok(Chunk::InitAck(i)) => Some(i.fields),
                _ => None,
            });
            fields.expect("INIT or INIT ACK")
        };
        let (client, server) = (fields(Side::Client, kind::INIT), fields(Side::Server, kind::INIT_ACK));
        b.filter = Some(Box::new(|_| false));
        b.tap = Some(vec![]);
        b.strict = true;
        Manual {
            b,
            to_client: client.tag,
            to_server: server.tag,
            client_first: client.initial_tsn,
            server_first: server.initial_tsn,
        }
    }

    /// One path with 40 ms there and back.
    pub fn single(profile: &str) -> Manual {
        Manual::new(&assoc_config(profile), &[(link(10, 20), link(10, 20))])
    }

    /// The client hands over `n` messages of `size` bytes on stream 0.
    pub fn send(&mut self, n: usize, size: usize) {
        for _ in 0..n {
            assert!(self.b.send(Side::Client, SendOptions::default(), vec![7; size]), "the send buffer is full");
        }
    }

    /// The client's packets since the last call, now included.
    pub fn packets(&mut self) -> Vec<Seen> {
        self.b.flush();
        let tap = self.b.tap.replace(vec![]).expect("tapped");
        tap.iter().filter(|t| t.1 == Side::Client).map(|t| Seen::read(t.0, t.2, &t.3)).collect()
    }

    /// Sends and acknowledges, packet by packet, until the window of path 0 is at least `cwnd` and nothing is in
    /// flight. Answers the offset of the next chunk.
    pub fn open_window(&mut self, cwnd: u64) -> u32 {
        let (mut next, mut waiting) = (0, std::collections::VecDeque::new());
        loop {
            let now = self.path(0).cwnd;
            if now < cwnd && self.b.assoc(Side::Client).stats().unsent < 2 * FULL as u64 {
                self.send(now as usize / FULL + 2, FULL);
            }
            waiting.extend(self.sent());
            let Some(o) = waiting.pop_front() else { break };
            next = o + 1;
            self.sack(next, &[]);
        }
        assert_eq!(self.path(0).in_flight, 0);
        next
    }

    /// The client's packets of the next `time`.
    pub fn during(&mut self, time: Duration) -> Vec<Seen> {
        self.b.run_for(time);
        self.packets()
    }

    /// Offsets of the DATA that leaves now.
    pub fn sent(&mut self) -> Vec<u32> {
        let seen = self.packets();
        self.offsets(&seen)
    }

    /// TSNs of the DATA among these, as offsets from the client's first.
    pub fn offsets(&self, seen: &[Seen]) -> Vec<u32> {
        seen.iter().flat_map(|p| &p.data).map(|d| d.tsn.distance(self.client_first)).collect()
    }

    /// Chunks from the peer arrive on `path`.
    pub fn receive(&mut self, path: usize, chunks: &[&[u8]]) {
        let mut out = CommonHeader { src_port: PORT, dst_port: PORT, vtag: self.to_client }.to_bytes().to_vec();
        chunks.iter().for_each(|c| out.extend_from_slice(c));
        self.b.inject(Side::Client, path, &out);
        self.b.check();
    }

    /// A SACK of everything before offset `next`, with gap blocks from there: `(1, 1)` is the chunk after `next`.
    pub fn sack_on(&mut self, path: usize, next: u32, a_rwnd: u32, gaps: &[(u16, u16)]) {
        let gaps: Vec<_> = gaps.iter().map(|&(a, b)| GapBlock { start: a + 1, end: b + 1 }).collect();
        let cum_tsn = self.client_first.plus(next).minus(1);
        let sack = encoded(&SackOut { cum_tsn, a_rwnd, gaps: &gaps, duplicates: &[] });
        self.receive(path, &[&sack]);
    }

    /// A SACK with an open window on path 0.
    pub fn sack(&mut self, next: u32, gaps: &[(u16, u16)]) {
        self.sack_on(0, next, ROOM, gaps);
    }

    /// DATA at an offset from the server's first TSN.
    pub fn data(&self, offset: u32, stream: u16, ssn: u16, flags: DataFlags, payload: &[u8]) -> Vec<u8> {
        let tsn = self.server_first.plus(offset);
        encoded(&Data { header: DataHeader { tsn, stream: StreamId(stream), ssn: Ssn(ssn), ppid: 0, flags }, payload })
    }

    /// One whole unordered message of `len` bytes in a packet of its own.
    pub fn message(&mut self, offset: u32, len: usize) {
        let chunk = self.data(offset, 0, 0, DataFlags { unordered: true, ..WHOLE }, &vec![1; len]);
        self.receive(0, &[&chunk]);
    }

    /// Messages the client's user read.
    pub fn read(&mut self) -> Vec<Message> {
        self.b.run_for(Duration::ZERO);
        core::mem::take(&mut self.b.at_client)
    }

    pub fn path(&mut self, path: usize) -> PathStats {
        self.b.path(Side::Client, path)
    }
}

pub fn encoded(c: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    c.encode(&mut out);
    out
}
