//! A connected pair and forged packets, for tests of what a hostile peer or an eavesdropper can do.
#![allow(dead_code, reason = "each test file uses its part")]

use crate::common::*;
use anabranch_base::{Ssn, StreamId, Tsn};
use anabranch_engine::{AssocConfig, CloseReason, Event, SendOptions};
use anabranch_wire::{
    Chunk, CommonHeader, Data, DataFlags, DataHeader, Encode, GapBlock, Packet, SackOut, Verify, kind,
};

/// A connected pair, and what an eavesdropper knows.
pub struct Scene {
    pub b: Bench,
    /// Tags of the packets to each side.
    pub to_client: u32,
    pub to_server: u32,
    /// Newest TSN the client sent, and the next one the server would.
    pub client_tsn: Tsn,
    pub server_next: Tsn,
}

pub fn scene() -> Scene {
    scene_of(&assoc_config("cmt"))
}

pub fn scene_of(config: &AssocConfig) -> Scene {
    let mut b = Bench::connected(9, config, &[(link(10, 20), link(10, 20))]);
    b.strict = true;
    b.tap = Some(vec![]);
    assert!(b.send(Side::Client, SendOptions::default(), &b"one"[..]));
    assert!(b.send(Side::Server, SendOptions::default(), &b"two"[..]));
    b.run_for(ms(1_000));
    let tap = b.tap.take().expect("tapped");
    let newest = |side: Side| {
        let t = tap.iter().rfind(|t| t.1 == side && kinds(&t.3).contains(&kind::DATA)).expect("DATA");
        let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
        let tsn = p.chunks().flatten().find_map(|c| match c.decode() {
            Ok(Chunk::Data(d)) => Some(d.header.tsn),
            _ => None,
        });
        (p.header.vtag, tsn.expect("DATA"))
    };
    let ((to_server, client_tsn), (to_client, server_tsn)) = (newest(Side::Client), newest(Side::Server));
    b.at_client.clear();
    b.at_server.clear();
    Scene { b, to_client, to_server, client_tsn, server_next: server_tsn.next() }
}

pub fn packet(vtag: u32, chunks: &[&[u8]]) -> Vec<u8> {
    let mut out = CommonHeader { src_port: PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
    chunks.iter().for_each(|c| out.extend_from_slice(c));
    out
}

pub fn encoded(c: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    c.encode(&mut out);
    out
}

pub fn data(tsn: Tsn, stream: u16, ssn: u16, flags: DataFlags, payload: &[u8]) -> Vec<u8> {
    encoded(&Data { header: DataHeader { tsn, stream: StreamId(stream), ssn: Ssn(ssn), ppid: 0, flags }, payload })
}

pub const WHOLE: DataFlags = DataFlags { immediate: false, unordered: false, begin: true, end: true };

impl Scene {
    /// Chunks to the client, tag right.
    pub fn client_gets(&mut self, chunks: &[&[u8]]) {
        let p = packet(self.to_client, chunks);
        self.b.inject(Side::Client, 0, &p);
        self.b.check();
    }

    /// Chunk types the client sends within 10 ms, one list for each packet.
    pub fn answers(&mut self) -> Vec<Vec<u8>> {
        self.b.tap = Some(vec![]);
        self.b.run_for(ms(10));
        let tap = self.b.tap.take().expect("tapped");
        tap.iter().filter(|t| t.1 == Side::Client).map(|t| kinds(&t.3)).collect()
    }

    pub fn still_works(mut self) {
        for from in [Side::Client, Side::Server] {
            let mut flow = Flow::new(from, 7, 1_500);
            assert!(flow.transfer(&mut self.b, 100, ms(20_000)).is_some(), "{:?}", self.b.client_events);
        }
    }

    pub fn client_is_closed(&mut self) -> Option<CloseReason> {
        self.b.run_for(ms(100));
        self.b.client_events.iter().find_map(|e| match e {
            Event::Closed(why) => Some(why.clone()),
            _ => None,
        })
    }
}

pub fn sack(cum: Tsn, a_rwnd: u32, gaps: &[(u16, u16)]) -> Vec<u8> {
    let gaps: Vec<_> = gaps.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    encoded(&SackOut { cum_tsn: cum, a_rwnd, gaps: &gaps, duplicates: &[] })
}
