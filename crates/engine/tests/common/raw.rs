//! A peer of one endpoint that is made of raw packets: the test writes each chunk and reads each answer, in virtual
//! time.

use super::{PORT, assoc_config, ms};
use anabranch_base::{Duration, Instant, RandomStream, Ssn, StreamId, Tsn};
use anabranch_engine::{
    AssocConfig, AssocId, CloseReason, Endpoint, EndpointConfig, Event, LocalId, Phase, SendOptions, Transmit,
};
use anabranch_wire::{
    Chunk, CommonHeader, CookieEcho, Data, DataFlags, DataHeader, Encode, InitFields, InitOut, Packet, PacketSlices,
    Parameter, SackOut, Verify, kind,
};
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

/// The peer's SCTP port.
pub const PEER_PORT: u16 = 7_000;
/// The peer's tag in a handshake of [`Raw`].
pub const PEER_TAG: u32 = 0x7e57_0001;
/// The peer's first TSN.
pub const PEER_TSN: Tsn = Tsn(1_000);

/// The peer's address `i`.
pub fn peer(i: u8) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, i], 9_899))
}

/// A packet that the endpoint sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub local: LocalId,
    pub remote: SocketAddr,
    pub bytes: Bytes,
}

impl Sent {
    pub fn packet(&self) -> Packet<'_> {
        // A checksum of zero is the test's to judge (RFC 9653).
        let verify = if self.bytes[8..12] == [0; 4] { Verify::Trusted } else { Verify::Checksum };
        Packet::parse(&self.bytes, verify).expect("a packet")
    }
    pub fn vtag(&self) -> u32 {
        self.packet().header.vtag
    }
    pub fn kinds(&self) -> Vec<u8> {
        super::kinds(&self.bytes)
    }
    pub fn chunks(&self) -> Vec<Chunk<'_>> {
        self.packet().chunks().map(|c| c.expect("framed").decode().expect("decoded")).collect()
    }
    /// Flags of the first chunk.
    pub fn flags(&self) -> u8 {
        self.packet().chunks().next().expect("a chunk").expect("framed").flags
    }
    /// The first chunk's bytes without its header.
    pub fn value(&self) -> Vec<u8> {
        self.packet().chunks().next().expect("a chunk").expect("framed").value.to_vec()
    }
}

/// Encoded bytes of anything.
pub fn bytes(c: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    c.encode(&mut out);
    out
}

/// A chunk of any type from raw bytes, padded.
pub fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, flags];
    out.extend_from_slice(&(value.len() as u16 + 4).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// An INIT with sane values.
pub fn init_fields(tag: u32) -> InitFields {
    InitFields { tag, a_rwnd: 100_000, outbound_streams: 10, inbound_streams: 10, initial_tsn: PEER_TSN }
}

pub fn init(fields: InitFields, params: &[u8]) -> Vec<u8> {
    bytes(&InitOut { ack: false, fields, params })
}

/// The fields and parameters of an INIT or INIT ACK that was sent.
pub fn init_of(sent: &Sent) -> (InitFields, Vec<u8>) {
    match sent.chunks().first() {
        Some(Chunk::Init(i)) => (i.fields, i.params.raw().to_vec()),
        Some(Chunk::InitAck(i)) => (i.fields, i.params.raw().to_vec()),
        other => panic!("no INIT: {other:?}"),
    }
}

/// An endpoint in COOKIE-WAIT, and its INIT.
pub fn waiting() -> (Raw, AssocId, Sent) {
    let config = assoc_config("sctp");
    let mut r = Raw::with(&config, |e| e.accept = false);
    let id = r.connect(&config);
    let sent = r.take_one();
    r.tag = init_of(&sent).0.tag;
    (r, id, sent)
}

/// Why the association of an endpoint ended; none while it lives.
pub fn closed(r: &Raw, id: AssocId) -> Option<CloseReason> {
    r.events_of(id).into_iter().find_map(|e| match e {
        Event::Closed(why) => Some(why),
        _ => None,
    })
}

/// The cookie of an INIT ACK.
pub fn cookie_of(sent: &Sent) -> Vec<u8> {
    let (_, params) = init_of(sent);
    let found = anabranch_wire::Params::new(&params).iter().flatten().find_map(|p| match p {
        Parameter::Cookie(c) => Some(c.to_vec()),
        _ => None,
    });
    found.expect("a cookie")
}

pub struct Raw {
    pub now: Instant,
    pub endpoint: Endpoint,
    /// What the endpoint sent and the test has not taken yet.
    pub sent: Vec<Sent>,
    pub events: Vec<(AssocId, Event)>,
    /// Tag of packets to the endpoint, as the last handshake left it.
    pub tag: u32,
    /// The endpoint's first TSN in its newest handshake.
    pub first_tsn: Tsn,
    /// Where [`Raw::give`] comes from and to.
    pub from: SocketAddr,
    pub to: LocalId,
}

impl Raw {
    /// An endpoint that accepts.
    pub fn new() -> Raw {
        Raw::with(&assoc_config("sctp"), |_| {})
    }

    pub fn with(config: &AssocConfig, change: impl FnOnce(&mut EndpointConfig)) -> Raw {
        let mut e = EndpointConfig::new(PORT, config.clone());
        e.accept = true;
        change(&mut e);
        let now = Instant::from_millis(1_000);
        let endpoint = Endpoint::new(e, Box::new(RandomStream::named(1, "raw")), now);
        Raw { now, endpoint, sent: vec![], events: vec![], tag: 0, first_tsn: Tsn(0), from: peer(1), to: LocalId(0) }
    }

    /// Accepted by the endpoint: the peer's INIT was answered and its cookie taken.
    pub fn accepted() -> Raw {
        let mut r = Raw::new();
        r.handshake(PEER_TAG, &[]);
        r
    }

    /// The peer's side of a whole handshake.
    pub fn handshake(&mut self, tag: u32, params: &[u8]) {
        let cookie = self.ask(tag, params);
        self.echo(&cookie);
        assert!(self.take().iter().any(|s| s.kinds().first() == Some(&kind::COOKIE_ACK)), "COOKIE ACK");
    }

    /// INIT, and the cookie of its answer.
    pub fn ask(&mut self, tag: u32, params: &[u8]) -> Vec<u8> {
        self.give_tagged(0, &[&init(init_fields(tag), params)]);
        let answer = self.take_one();
        assert_eq!(answer.kinds(), [kind::INIT_ACK]);
        (self.tag, self.first_tsn) = (init_of(&answer).0.tag, init_of(&answer).0.initial_tsn);
        cookie_of(&answer)
    }

    pub fn echo(&mut self, cookie: &[u8]) {
        self.give(&[&bytes(&CookieEcho { cookie })]);
    }

    /// The endpoint connects to the peer's first address; INIT is not answered yet.
    pub fn connect(&mut self, config: &AssocConfig) -> AssocId {
        let id = self.endpoint.connect(self.now, config.clone(), self.to, self.from, PEER_PORT).expect("a profile");
        self.drain();
        id
    }

    /// The INIT ACK of a peer without extensions to an INIT that was sent, with `cookie`.
    pub fn answer_init(&mut self, to: &Sent, fields: InitFields, cookie: &[u8], more: &[u8]) {
        let mut params = bytes(&Parameter::Cookie(cookie));
        params.extend_from_slice(more);
        (self.tag, self.first_tsn) = (init_of(to).0.tag, init_of(to).0.initial_tsn);
        self.give(&[&bytes(&InitOut { ack: true, fields, params: &params })]);
    }

    /// The endpoint connects, and the peer goes along until COOKIE ACK.
    pub fn connected(config: &AssocConfig) -> (Raw, AssocId) {
        let mut r = Raw::with(config, |e| e.accept = false);
        let id = r.connect(config);
        let first = r.take_one();
        r.answer_init(&first, init_fields(PEER_TAG), b"cookie", &[]);
        assert_eq!(r.take_one().kinds(), [kind::COOKIE_ECHO]);
        r.give(&[&chunk(kind::COOKIE_ACK, 0, &[])]);
        assert!(r.events.contains(&(id, Event::Connected)));
        (r, id)
    }

    /// Chunks in one packet to the endpoint, with the tag of the handshake.
    pub fn give(&mut self, chunks: &[&[u8]]) {
        self.give_tagged(self.tag, chunks);
    }

    pub fn give_tagged(&mut self, vtag: u32, chunks: &[&[u8]]) {
        self.give_from(self.from, vtag, chunks);
    }

    pub fn give_from(&mut self, from: SocketAddr, vtag: u32, chunks: &[&[u8]]) {
        self.give_to(self.to, from, vtag, chunks);
    }

    pub fn give_to(&mut self, to: LocalId, from: SocketAddr, vtag: u32, chunks: &[&[u8]]) {
        let mut out = CommonHeader { src_port: PEER_PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
        chunks.iter().for_each(|c| out.extend_from_slice(c));
        let sum = anabranch_wire::packet_checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        self.give_bytes(to, from, &out);
    }

    /// A datagram as it is.
    pub fn give_bytes(&mut self, to: LocalId, from: SocketAddr, datagram: &[u8]) {
        self.endpoint.handle(self.now, to, from, &Bytes::copy_from_slice(datagram), Verify::Checksum);
        self.drain();
    }

    /// Takes packets and events from the endpoint.
    pub fn drain(&mut self) {
        let mut t = Transmit::default();
        loop {
            while self.endpoint.poll_transmit(self.now, &mut t) {
                let mut out = Vec::new();
                PacketSlices::write_to(&t.packet, &mut out);
                self.sent.push(Sent { at: self.now, local: t.local, remote: t.remote, bytes: Bytes::from(out) });
                assert!(self.sent.len() < 10_000, "the packets never end");
            }
            let Some(e) = self.endpoint.poll_event() else { break };
            self.events.push(e);
        }
    }

    /// What was sent since the last time.
    pub fn take(&mut self) -> Vec<Sent> {
        core::mem::take(&mut self.sent)
    }

    /// The only packet that was sent.
    pub fn take_one(&mut self) -> Sent {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{:?}", all.iter().map(Sent::kinds).collect::<Vec<_>>());
        all.remove(0)
    }

    /// Chunk types of what was sent, packet by packet.
    pub fn take_kinds(&mut self) -> Vec<Vec<u8>> {
        self.take().iter().map(Sent::kinds).collect()
    }

    /// Time passes, timers fire.
    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(t) = self.endpoint.poll_timeout().filter(|t| *t <= until) {
            self.now = self.now.max(t);
            self.endpoint.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Runs until the endpoint sends a chunk of type `kind`, and takes that packet; what left before is dropped.
    pub fn run_until_sent(&mut self, kind: u8, limit: Duration) -> Option<Sent> {
        let until = self.now + limit;
        loop {
            if let Some(i) = self.sent.iter().position(|s| s.kinds().contains(&kind)) {
                let found = self.sent.remove(i);
                self.sent.clear();
                return Some(found);
            }
            if self.now >= until {
                return None;
            }
            let next = self.endpoint.poll_timeout().unwrap_or(until).min(until);
            self.run_for(next.since(self.now).max(ms(1)));
        }
    }

    /// Answers a HEARTBEAT that was sent.
    pub fn answer_heartbeat(&mut self, to: &Sent) {
        let found = to.chunks().iter().find_map(|c| match c {
            Chunk::Heartbeat(h) => Some(h.params_raw.to_vec()),
            _ => None,
        });
        let ack = chunk(kind::HEARTBEAT_ACK, 0, &found.expect("a HEARTBEAT"));
        self.give_to(to.local, to.remote, self.tag, &[&ack]);
    }

    /// The user hands a message over.
    pub fn send(&mut self, id: AssocId, payload: &[u8]) {
        let now = self.now;
        let mut a = self.endpoint.association_mut(id).expect("alive");
        a.send(now, SendOptions::default(), Bytes::copy_from_slice(payload)).expect("taken");
        drop(a);
        self.drain();
    }

    /// What the user can read.
    pub fn read(&mut self, id: AssocId) -> Vec<Vec<u8>> {
        let mut a = self.endpoint.association_mut(id).expect("alive");
        std::iter::from_fn(|| a.recv()).map(|m| m.payload.into_bytes().to_vec()).collect()
    }

    pub fn shutdown(&mut self, id: AssocId) {
        let now = self.now;
        self.endpoint.association_mut(id).expect("alive").shutdown(now);
        self.drain();
    }

    pub fn abort(&mut self, id: AssocId, reason: &[u8]) {
        let now = self.now;
        self.endpoint.association_mut(id).expect("alive").abort(now, reason);
        self.drain();
    }

    /// Closed when it is forgotten.
    pub fn phase(&self, id: AssocId) -> Phase {
        self.endpoint.association(id).map_or(Phase::Closed, |a| a.phase())
    }

    pub fn only(&self) -> AssocId {
        let all: Vec<_> = self.endpoint.associations().collect();
        assert_eq!(all.len(), 1, "associations");
        all[0]
    }

    /// Events of an association, newest last.
    pub fn events_of(&self, id: AssocId) -> Vec<Event> {
        self.events.iter().filter(|(i, _)| *i == id).map(|(_, e)| e.clone()).collect()
    }
}

/// The causes of an ABORT or ERROR that was sent.
pub fn causes_of(sent: &Sent) -> Vec<(u16, Vec<u8>)> {
    let mut out = vec![];
    for c in sent.packet().chunks().flatten().filter(|c| matches!(c.kind, kind::ABORT | kind::ERROR)) {
        let mut rest = c.value;
        while let Some((head, _)) = rest.split_first_chunk::<4>() {
            let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
            out.push((u16::from_be_bytes([head[0], head[1]]), rest[4..len].to_vec()));
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }
    out
}

/// One whole message.
pub fn data(tsn: Tsn, ssn: u16, payload: &[u8]) -> Vec<u8> {
    let flags = DataFlags { immediate: false, unordered: false, begin: true, end: true };
    bytes(&Data { header: DataHeader { tsn, stream: StreamId(0), ssn: Ssn(ssn), ppid: 0, flags }, payload })
}

pub fn sack(cum: Tsn) -> Vec<u8> {
    bytes(&SackOut { cum_tsn: cum, a_rwnd: 100_000, gaps: &[], duplicates: &[] })
}

/// Parameters that list these addresses.
pub fn listing(list: &[IpAddr]) -> Vec<u8> {
    list.iter().flat_map(|a| bytes(&Parameter::from(*a))).collect()
}
