//! A peer made by hand: it does what the engine would never do.

use crate::common::keys::{association_key, key_vector, signed};
pub use crate::common::{PORT, assoc_config, ms};
pub use crate::scene::{WHOLE, data, encoded, packet, sack};
use anabranch_base::{Duration, Instant, RandomStream, Tsn};
use anabranch_engine::{AssocConfig, AssocId, AssocMut, Endpoint, EndpointConfig, Event, LocalId, Transmit};
use anabranch_wire::{
    AsconfOut, Chunk, CookieEcho, Encode, HeartbeatAck, InitFields, InitOut, Packet, Parameter, Verify, kind,
};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where a packet went, and the packet.
pub type Sent = (SocketAddr, Bytes);

/// An honest server, and everything it ever sent since it was last asked.
pub struct Server {
    pub endpoint: Endpoint,
    pub now: Instant,
    pub events: Vec<Event>,
    transmit: Transmit,
}

/// What a peer made by hand knows of its association.
pub struct Peer {
    /// The tag that the server wants.
    pub tag: u32,
    pub cookie: Bytes,
    /// Next TSN towards the server.
    pub tsn: Tsn,
    /// First TSN of the server.
    pub server_tsn: Tsn,
    key: Vec<u8>,
    serial: u32,
}

pub const HOME: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 40_000);
const OUR_TAG: u32 = 0x5eed_5eed;
const OUR_TSN: Tsn = Tsn(1_000);

/// An address of its own for each number.
pub fn source(n: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n)), 40_000)
}

pub fn fields() -> InitFields {
    InitFields { tag: OUR_TAG, a_rwnd: 1 << 20, outbound_streams: 64, inbound_streams: 64, initial_tsn: OUR_TSN }
}

pub fn init(fields: InitFields, params: &[u8]) -> Vec<u8> {
    packet(0, &[&encoded(&InitOut { ack: false, fields, params })])
}

/// What the engine itself announces.
pub fn all_extensions() -> Vec<u8> {
    let mut p = Vec::new();
    Parameter::ForwardTsnSupported.encode(&mut p);
    Parameter::Random(&[0x55; 32]).encode(&mut p);
    Parameter::ChunkList(&[kind::ASCONF, kind::ASCONF_ACK]).encode(&mut p);
    Parameter::HmacAlgo(&[0, 3, 0, 1]).encode(&mut p);
    Parameter::SupportedExtensions(&[kind::FORWARD_TSN, kind::AUTH, kind::ASCONF, kind::ASCONF_ACK]).encode(&mut p);
    p
}

pub fn bytes_of(sent: &[Sent]) -> usize {
    sent.iter().map(|s| s.1.len()).sum()
}

/// Chunk types, packet by packet.
pub fn chunks_of(sent: &[Sent]) -> Vec<Vec<u8>> {
    sent.iter().map(|s| crate::common::kinds(&s.1)).collect()
}

/// HEARTBEAT ACKs for the HEARTBEATs in what was sent.
pub fn answers_to_heartbeats(sent: &[Sent]) -> Vec<u8> {
    let mut out = Vec::new();
    for (_, bytes) in sent {
        let p = Packet::parse(bytes, Verify::Trusted).expect("a packet");
        for c in p.chunks().flatten() {
            if let Ok(Chunk::Heartbeat(h)) = c.decode() {
                HeartbeatAck::to(&h).encode(&mut out);
            }
        }
    }
    out
}

impl Server {
    pub fn new(config: AssocConfig) -> Server {
        let now = Instant::from_millis(1_000);
        let mut c = EndpointConfig::new(PORT, config);
        c.accept = true;
        let endpoint = Endpoint::new(c, Box::new(RandomStream::named(1, "server")), now);
        Server { endpoint, now, events: vec![], transmit: Transmit::default() }
    }

    /// A packet arrives; nothing is fetched yet.
    pub fn handle(&mut self, from: SocketAddr, bytes: &Bytes) {
        self.endpoint.handle(self.now, LocalId(0), from, bytes, Verify::Trusted);
    }

    /// Fetches the next packet; where it goes and how long it is.
    pub fn next_packet(&mut self) -> Option<(SocketAddr, usize)> {
        let some = self.endpoint.poll_transmit(self.now, &mut self.transmit);
        some.then(|| (self.transmit.remote, self.transmit.packet.len()))
    }

    /// Fetches everything that waits.
    pub fn drain(&mut self) -> Vec<Sent> {
        let mut out = Vec::new();
        while self.endpoint.poll_transmit(self.now, &mut self.transmit) {
            let mut bytes = Vec::new();
            self.transmit.packet.write_to(&mut bytes);
            out.push((self.transmit.remote, Bytes::from(bytes)));
        }
        while let Some((_, e)) = self.endpoint.poll_event() {
            self.events.push(e);
        }
        out
    }

    /// A packet arrives; what is sent for it.
    pub fn answers(&mut self, from: SocketAddr, packet: &[u8]) -> Vec<Sent> {
        self.handle(from, &Bytes::copy_from_slice(packet));
        self.drain()
    }

    /// Time passes; what is sent meanwhile.
    pub fn advance(&mut self, time: Duration) -> Vec<Sent> {
        let (until, mut out) = (self.now + time, self.drain());
        while let Some(next) = self.endpoint.poll_timeout().filter(|t| *t <= until) {
            self.now = self.now.max(next);
            self.endpoint.handle_timeout(self.now);
            out.extend(self.drain());
        }
        self.now = until;
        out
    }

    pub fn ids(&self) -> Vec<AssocId> {
        self.endpoint.associations().collect()
    }

    /// The only association.
    pub fn assoc(&mut self) -> AssocMut<'_> {
        let ids = self.ids();
        assert_eq!(ids.len(), 1, "{:?}", self.events);
        self.endpoint.association_mut(ids[0]).expect("alive")
    }

    pub fn check(&self) {
        for id in self.endpoint.associations() {
            let a = self.endpoint.association(id).expect("listed");
            a.check_invariants().expect("the books agree");
        }
    }

    /// The whole handshake.
    pub fn connect(&mut self, from: SocketAddr, f: InitFields, params: &[u8]) -> Peer {
        let answer = self.answers(from, &init(f, params));
        assert_eq!(answer.len(), 1, "an INIT ACK");
        let p = Packet::parse(&answer[0].1, Verify::Trusted).expect("a packet");
        let first = p.chunks().next().expect("a chunk").expect("well made");
        let Ok(Chunk::InitAck(ack)) = first.decode() else { panic!("not an INIT ACK: {answer:?}") };
        let theirs: Vec<_> = ack.params.iter().flatten().collect();
        let cookie = theirs.iter().find_map(|p| if let Parameter::Cookie(c) = p { Some(*c) } else { None });
        let mut peer = Peer {
            tag: ack.fields.tag,
            cookie: Bytes::copy_from_slice(cookie.expect("a cookie")),
            tsn: f.initial_tsn,
            server_tsn: ack.fields.initial_tsn,
            key: association_key(&[], &key_vector(params), &key_vector(ack.params.raw())),
            serial: f.initial_tsn.0,
        };
        let echo = peer.packet(&[&encoded(&CookieEcho { cookie: &peer.cookie })]);
        let answer = chunks_of(&self.answers(from, &echo));
        assert!(answer.iter().flatten().any(|k| *k == kind::COOKIE_ACK), "{answer:?}");
        peer.tsn = f.initial_tsn;
        peer
    }
}

/// A server with one association, and its peer.
pub fn connected(config: AssocConfig) -> (Server, Peer) {
    let mut s = Server::new(config);
    let p = s.connect(HOME, fields(), &all_extensions());
    (s, p)
}

impl Peer {
    pub fn packet(&self, chunks: &[&[u8]]) -> Vec<u8> {
        packet(self.tag, chunks)
    }

    /// A packet with one DATA chunk of the next TSN.
    pub fn data(&mut self, stream: u16, ssn: u16, flags: anabranch_wire::DataFlags, payload: &[u8]) -> Vec<u8> {
        let tsn = self.tsn;
        self.tsn = tsn.next();
        self.packet(&[&data(tsn, stream, ssn, flags, payload)])
    }

    /// AUTH over `chunks`, as an attacker that saw the handshake can make it.
    pub fn authenticated(&self, chunks: &[&[u8]]) -> Vec<u8> {
        self.packet(&[&signed(0, &self.key, chunks)])
    }

    /// The next ASCONF.
    pub fn asconf(&mut self, params: &[u8]) -> Vec<u8> {
        let serial = self.serial;
        self.serial = serial.wrapping_add(1);
        encoded(&AsconfOut { serial, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), params })
    }

    /// Asks for the source address of its packet.
    pub fn asconf_add(&mut self) -> Vec<u8> {
        let mut p = Vec::new();
        let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Parameter::AsconfAdd { correlation: 1, address }.encode(&mut p);
        self.asconf(&p)
    }
}
