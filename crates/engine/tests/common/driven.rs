//! A connected pair whose every step is read from bytes: the fuzz target and the tests of what it found share it.
//!
//! The client gets forged chunks behind a valid tag between honest packets of a live peer, in any order, with any
//! losses, while both users send, read, and move between interfaces.

use crate::profiles::PROFILES;
use anabranch_base::{Duration, Instant, Mid, RandomStream, Ssn, StreamId, Tsn};
use anabranch_engine::{AssocConfig, AssocId, Association, Endpoint, EndpointConfig, LocalId, SendOptions, Transmit};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_wire::{
    AbortOut, Chunk, CommonHeader, Data, DataFlags, DataHeader, Ecne, Encode, ForwardTsnOut, GapBlock, Heartbeat,
    IData, IDataHeader, IForwardTsnOut, NrSackOut, Packet, Pad, Parameter, Parity, ReConfigOut, RepairedOut, SackOut,
    Skipped, Verify, kind,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

const PORT: u16 = 5_001;
const IFACES: u16 = 3;

fn server_addr() -> SocketAddr {
    ([198, 51, 100, 1], 9_899).into()
}
fn client_addr(local: u16) -> SocketAddr {
    ([192, 0, 2, local as u8], 40_000).into()
}

/// Packets that are kept to be sent again: setup, shutdown, address changes.
const KEPT: usize = 32;

/// Takes the input apart; zeros behind its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn u8(&mut self) -> u8 {
        let Some((b, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *b
    }
    fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (a, b) = self.0.split_at(n.min(self.0.len()));
        self.0 = b;
        a
    }
}

/// One end, the packets on their way to it, and the tag they carry.
struct End {
    endpoint: Endpoint,
    id: Option<AssocId>,
    inbox: VecDeque<(u16, Bytes)>,
    tag: u32,
    /// Newest TSN that the end sent.
    tsn: Tsn,
}

impl End {
    fn new(name: &str, life: u64, accept: bool, config: &AssocConfig, now: Instant) -> End {
        let mut c = EndpointConfig::new(PORT, config.clone());
        c.accept = accept;
        let endpoint = Endpoint::new(c, Box::new(RandomStream::named(life, name)), now);
        End { endpoint, id: None, inbox: VecDeque::new(), tag: 0, tsn: Tsn(0) }
    }
    fn with(&mut self, f: impl FnOnce(&mut Association)) {
        if let Some(id) = self.id.or_else(|| self.endpoint.associations().last()) {
            self.id = Some(id);
            match self.endpoint.association_mut(id) {
                Some(mut a) => f(&mut a),
                None => self.id = None,
            }
        }
    }
}

/// Chunks of which one packet may hold very many.
fn flooded(what: u8, input: &mut Input<'_>) -> Vec<u8> {
    let (times, n) = (1 + usize::from(input.u8()), usize::from(input.u8()));
    let one = match what {
        240..=243 => {
            let mut hb = Vec::new();
            Heartbeat::new(&vec![what; 4 * n]).encode(&mut hb);
            hb
        }
        244..=247 => {
            let len = (4 + n) as u16;
            let mut unknown = [&[0x3f | what << 6, 0][..], &len.to_be_bytes(), &vec![0; n]].concat();
            unknown.resize(unknown.len().next_multiple_of(4), 0);
            unknown
        }
        // AUTH and ASCONF, never with the right MAC.
        248..=251 => {
            [&[kind::AUTH, 0, 0, 40, 0, 0, 0, 3][..], &[what; 32], &[kind::ASCONF, 0, 0, 8, 0, 0, 0, 1]].concat()
        }
        252 => vec![kind::COOKIE_ACK, 0, 0, 4],
        253 => vec![kind::SHUTDOWN_ACK, 0, 0, 4],
        _ => [&[kind::ERROR, 0, 0, 12, 0, n as u8, 0, 8][..], &[0; 4]].concat(),
    };
    one.repeat(times)
}

/// Chunks of the extensions; `acked` is near what the receiver sent, `next` near what comes to it.
fn extension(what: u8, acked: Tsn, next: Tsn, input: &mut Input<'_>, out: &mut Vec<u8>) {
    let tsn = next.plus(u32::from(input.u8() % 40));
    match what % 6 {
        0 | 1 => {
            let (stream, mid) = (StreamId(u16::from(input.u8() % 70)), Mid(u32::from(input.u8() % 8)));
            let flags = DataFlags::from_bits(input.u8());
            let fsn = if flags.begin { 0 } else { u32::from(input.u8() % 6) };
            let payload = vec![7; usize::from(input.u16() % 1_300)];
            IData { header: IDataHeader { tsn, stream, mid, ppid: 0, fsn, flags }, payload: &payload }.encode(out);
        }
        2 => {
            let mut one = || Skipped {
                stream: StreamId(u16::from(input.u8() % 70)),
                unordered: input.u8() & 1 != 0,
                mid: Mid(u32::from(input.u16()) << (input.u8() % 17)),
            };
            let entries: Vec<_> = (0..4).map(|_| one()).collect();
            IForwardTsnOut { new_cum: tsn, entries: &entries }.encode(out);
        }
        3 => {
            let mut list = |n: u8| -> Vec<GapBlock> {
                (0..n).map(|_| GapBlock { start: u16::from(input.u8()), end: u16::from(input.u8()) }).collect()
            };
            let (gaps, kept) = (list(what % 3), list(what % 5));
            NrSackOut { cum_tsn: acked, a_rwnd: 100_000, gaps: &gaps, kept: &kept, duplicates: &[tsn] }.encode(out);
        }
        4 => {
            let mut params = Vec::new();
            for _ in 0..=input.u8() % 3 {
                // Initial TSNs are not known here, but those of the seeded streams are; so are small steps from them.
                let (request, streams) = (u32::from_be_bytes([input.u8(), 0, 0, input.u8()]), [0, input.u8() % 70]);
                let number = if input.u8() & 1 == 0 { next.0 } else { request };
                match input.u8() % 6 {
                    0 => Parameter::OutgoingReset {
                        request: number,
                        response: request,
                        last_tsn: tsn,
                        streams: &streams,
                    },
                    1 => Parameter::IncomingReset { request: number, streams: &streams },
                    2 => Parameter::TsnReset { request: number },
                    3 => {
                        Parameter::ReconfigResponse { response: number, result: u32::from(input.u8() % 8), tsns: None }
                    }
                    4 => Parameter::AddOutgoing { request: number, streams: input.u16() },
                    _ => Parameter::AddIncoming { request: number, streams: input.u16() },
                }
                .encode(&mut params);
            }
            ReConfigOut { params: &params }.encode(out);
        }
        _ => {
            let len = input.u8();
            Pad { len: usize::from(len) }.encode(out);
            Ecne { tsn, marked: u32::from(input.u8()) }.encode(out);
            if len & 1 == 1 {
                let (covers, back, mut record) = (input.u8() % 80, input.u8(), vec![len >> 1 & 1]);
                record.extend([covers, 0, back, 0, input.u8()]);
                record.extend_from_slice(input.take(usize::from(covers).div_ceil(8)));
                let len = usize::from(input.u8());
                record.extend_from_slice(input.take(len));
                Parity { tsn, record: &record }.encode(out);
                let tsns: Vec<Tsn> = (0..len % 7).map(|_| acked.plus(u32::from(input.u8()))).collect();
                RepairedOut { settled: len & 4 != 0, tsns: &tsns }.encode(out);
            }
        }
    }
}

pub struct Driven {
    config: AssocConfig,
    /// The client's interfaces as the server sees them.
    nat: [SocketAddr; IFACES as usize],
    /// Control packets of both ends, newest last: to the server?, path, bytes.
    kept: VecDeque<(bool, u16, Bytes)>,
    lives: u64,
    now: Instant,
    client: End,
    server: End,
    transmit: Transmit,
    sent: u64,
}

impl Driven {
    fn new(profile: u8, extensions: u8) -> Driven {
        let profile = Profile::named(PROFILES[usize::from(profile) % PROFILES.len()]).expect("registered");
        let mut config = AssocConfig::with(profile, anabranch_engine::Constants::RFC);
        config.limits.receive_buffer = 30_000;
        config.limits.send_buffer = 100_000;
        config.extensions.interleaving = extensions & 1 != 0;
        config.extensions.nr_sack = extensions & 2 != 0;
        config.extensions.stream_reconfiguration = extensions & 4 != 0;
        config.messages.partial_delivery = extensions & 8 != 0;
        if extensions & 16 != 0 {
            config.profile.set(Hook::Redundancy, "erasure:rate=1,latency=20").expect("registered");
            config.profile.set(Hook::Repair, "erasure").expect("registered");
        }
        config.mtu.discovery = None;
        let mut d = Driven {
            nat: [client_addr(0), client_addr(1), client_addr(2)],
            kept: VecDeque::new(),
            lives: 1,
            now: Instant::ZERO,
            client: End::new("client", 1, false, &config, Instant::ZERO),
            server: End::new("server", 1, true, &config, Instant::ZERO),
            transmit: Transmit::default(),
            sent: 0,
            config,
        };
        d.connect();
        for _ in 0..8 {
            d.exchange(usize::MAX, 0);
        }
        d
    }

    fn connect(&mut self) {
        let now = self.now;
        // Refused while there is an association with this peer.
        let Ok(id) = self.client.endpoint.connect(now, self.config.clone(), LocalId(0), server_addr(), PORT) else {
            return;
        };
        self.client.id = Some(id);
        for i in 1..IFACES {
            self.client.with(|a| {
                let _ = a.add_path(now, LocalId(i), server_addr());
            });
        }
    }

    /// One end loses its memory.
    fn restart(&mut self, server: bool) {
        self.lives += 1;
        if server {
            self.server = End::new("server", self.lives, true, &self.config, self.now);
        } else {
            self.client = End::new("client", self.lives, false, &self.config, self.now);
            self.connect();
        }
    }

    /// Collects what both ends have to send.
    fn flush(&mut self) {
        for to_server in [true, false] {
            let (from, to) =
                if to_server { (&mut self.client, &mut self.server) } else { (&mut self.server, &mut self.client) };
            let mut burst = 0;
            while from.endpoint.poll_transmit(self.now, &mut self.transmit) {
                burst += 1;
                assert!(burst < 3_000, "the packets never end");
                self.sent += 1;
                let mut bytes = Vec::new();
                self.transmit.packet.write_to(&mut bytes);
                assert!(bytes.len() <= 1_200, "a packet of {} bytes", bytes.len());
                let path = if to_server {
                    Some(self.transmit.local.0)
                } else {
                    (0..IFACES).find(|i| self.nat[usize::from(*i)] == self.transmit.remote)
                };
                let bytes = Bytes::from(bytes);
                if let Ok(p) = Packet::parse(&bytes, Verify::Trusted) {
                    if p.header.vtag != 0 {
                        to.tag = p.header.vtag;
                    }
                    let first = p.chunks().flatten().next().map_or(0, |c| c.kind);
                    if !matches!(first, kind::DATA | kind::SACK | kind::HEARTBEAT | kind::HEARTBEAT_ACK) {
                        self.kept.truncate(KEPT - 1);
                        self.kept.push_front((to_server, path.unwrap_or(0), bytes.clone()));
                    }
                    for c in p.chunks().flatten() {
                        match c.decode() {
                            Ok(Chunk::Data(d)) => from.tsn = d.header.tsn,
                            Ok(Chunk::IData(d)) => from.tsn = d.header.tsn,
                            _ => {}
                        }
                    }
                }
                if let Some(path) = path
                    && to.inbox.len() < 500
                {
                    to.inbox.push_back((path, bytes));
                }
            }
            while from.endpoint.poll_event().is_some() {}
        }
    }

    fn handle(&mut self, at_server: bool, path: u16, bytes: &Bytes) {
        if at_server {
            let from = self.nat.get(usize::from(path)).copied().unwrap_or(client_addr(path));
            self.server.endpoint.handle(self.now, LocalId(0), from, bytes, Verify::Trusted);
        } else {
            self.client.endpoint.handle(self.now, LocalId(path), server_addr(), bytes, Verify::Trusted);
        }
    }

    /// Up to `n` packets each way arrive; a set bit of `fate` loses one, so repeats every eight.
    fn exchange(&mut self, n: usize, fate: u8) {
        self.flush();
        for at_server in [true, false] {
            let end = if at_server { &mut self.server } else { &mut self.client };
            let batch: Vec<_> = end.inbox.drain(..n.min(end.inbox.len())).collect();
            for (i, (path, bytes)) in batch.into_iter().enumerate() {
                if fate >> (i % 8) & 1 == 0 {
                    self.handle(at_server, path, &bytes);
                }
            }
        }
        self.flush();
    }

    fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..50 {
            let due = |e: &End| e.endpoint.poll_timeout();
            let next = [due(&self.client), due(&self.server)].into_iter().flatten().min();
            let Some(next) = next.filter(|t| *t <= until) else { break };
            self.now = self.now.max(next);
            self.client.endpoint.handle_timeout(self.now);
            self.server.endpoint.handle_timeout(self.now);
            self.flush();
        }
        self.now = until;
    }

    fn check(&self) {
        for e in [&self.client.endpoint, &self.server.endpoint] {
            for id in e.associations() {
                if let Some(Err(why)) = e.association(id).map(Association::check_invariants) {
                    panic!("{why}");
                }
            }
        }
    }

    fn forged(&self, at_server: bool, input: &mut Input<'_>) -> Vec<u8> {
        let (me, other) = if at_server { (&self.server, &self.client) } else { (&self.client, &self.server) };
        let near = |t: Tsn, by: u16| t.plus(u32::from(by)).minus(32);
        let mut out = Vec::new();
        let what = input.u8();
        if what >= 240 {
            return flooded(what, input);
        }
        if what >= 200 {
            extension(what, near(me.tsn, u16::from(input.u8())), near(other.tsn, 33), input, &mut out);
            return out;
        }
        match what % 6 {
            0 => {
                let gaps: Vec<_> = (0..input.u8() % 6)
                    .map(|_| GapBlock { start: u16::from(input.u8()), end: u16::from(input.u8()) })
                    .collect();
                let duplicates = [near(me.tsn, 3)];
                let a_rwnd = u32::from(input.u16()) * if input.u8() > 200 { 65_537 } else { 1 };
                let cum_tsn = near(me.tsn, u16::from(input.u8()));
                SackOut { cum_tsn, a_rwnd, gaps: &gaps, duplicates: &duplicates }.encode(&mut out);
            }
            1 => {
                let flags = DataFlags::from_bits(input.u8());
                let tsn = near(other.tsn, u16::from(input.u8()));
                let (stream, ssn) = (StreamId(u16::from(input.u8() % 70)), Ssn(u16::from(input.u8())));
                let payload = vec![7; usize::from(input.u16() % 1_300)];
                Data { header: DataHeader { tsn, stream, ssn, ppid: 0, flags }, payload: &payload }.encode(&mut out);
            }
            2 => {
                let streams: Vec<_> =
                    (0..input.u8() % 5).map(|_| (StreamId(u16::from(input.u8())), Ssn(input.u16()))).collect();
                let by = if input.u8() > 240 { input.u16() } else { u16::from(input.u8()) };
                ForwardTsnOut { new_cum: near(other.tsn, by), streams: &streams }.encode(&mut out);
            }
            3 => {
                let kind = input.u8();
                let body = input.take(usize::from(kind % 40));
                out.extend_from_slice(&[kind, input.u8(), 0, (body.len() + 4) as u8]);
                out.extend_from_slice(body);
                out.resize(out.len().next_multiple_of(4), 0);
            }
            4 if input.u8() > 250 => AbortOut { tag_reflected: false, causes: &[] }.encode(&mut out),
            4 => out.extend_from_slice(&[7, 0, 0, 8, 0, 0, 0, input.u8()]),
            // As it comes.
            _ => {
                let n = usize::from(input.u8());
                out.extend_from_slice(input.take(n));
            }
        }
        out
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let at_server = op & 0x40 != 0;
        match op & 0x0f {
            0..=2 => self.exchange(1 + usize::from(input.u8() % 32), input.u8()),
            3 | 4 => {
                let b = input.u8();
                self.advance(Duration::from_micros((u64::from(b & 0x0f) * 97) << (b >> 4)));
            }
            5..=7 => {
                let (flags, len, now) = (input.u8(), input.u16() % 9_000, self.now);
                let life = Duration::from_millis(u64::from(flags >> 3) * 20);
                let options = SendOptions {
                    stream: StreamId(u16::from(flags & 3)),
                    unordered: flags & 4 != 0,
                    deadline: (!life.is_zero()).then_some(now + life),
                    ..SendOptions::default()
                };
                let end = if at_server { &mut self.server } else { &mut self.client };
                end.with(|a| {
                    let _ = a.send(now, options, Bytes::from(vec![op; usize::from(len)]));
                });
            }
            8..=11 => {
                let vtag = if at_server { self.server.tag } else { self.client.tag };
                let mut bytes = CommonHeader { src_port: PORT, dst_port: PORT, vtag }.to_bytes().to_vec();
                for _ in 0..=(op >> 4 & 3) {
                    bytes.extend_from_slice(&self.forged(at_server, input));
                }
                self.handle(at_server, u16::from(op >> 7), &Bytes::from(bytes));
            }
            12 => {
                let end = if at_server { &mut self.server } else { &mut self.client };
                let n = input.u8();
                end.with(|a| (0..n).for_each(|_| drop(a.recv())));
            }
            13 => {
                let (now, b) = (self.now, input.u8());
                let local = LocalId(u16::from(b) % IFACES);
                self.client.with(
                    |a| {
                        if b & 0x80 == 0 { a.interface_down(now, local) } else { a.interface_up(now, local) }
                    },
                );
            }
            14 => {
                let end = if at_server { &mut self.server } else { &mut self.client };
                end.inbox.rotate_left(usize::from(input.u8()).min(end.inbox.len()));
            }
            _ => {
                let (now, b) = (self.now, input.u8());
                let end = if at_server { &mut self.server } else { &mut self.client };
                match b {
                    0..=20 => end.with(|a| a.shutdown(now)),
                    21..=50 => end.with(|a| {
                        let streams = [StreamId(u16::from(b) % 4)];
                        let _ = a.reset_streams(now, &streams[..usize::from(b & 1)], b & 2 == 0, b & 4 == 0);
                    }),
                    51..=60 => end.with(|a| {
                        let _ = a.reset_association(now);
                    }),
                    61..=80 => end.with(|a| {
                        let _ = a.add_streams(now, u16::from(b & 3), u16::from(b & 4));
                    }),
                    100..=139 => self.nat[usize::from(b) % 3].set_port(40_000 + u16::from(b)),
                    140..=169 => self.nat[usize::from(b) % 3] = ([203, 0, 113, b], 40_000).into(),
                    170..=219 if !self.kept.is_empty() => {
                        let (to_server, path, bytes) = self.kept[usize::from(b) % self.kept.len()].clone();
                        self.handle(to_server, path, &bytes);
                    }
                    220..=235 => self.restart(false),
                    236..=245 => self.restart(true),
                    246..=250 => self.connect(),
                    255 => end.with(|a| a.abort(now, b"enough")),
                    _ => {}
                }
            }
        }
    }
}

/// Plays `data`; panics where an invariant does not hold.
pub fn drive(data: &[u8]) {
    let mut input = Input(data);
    let mut d = Driven::new(input.u8(), input.u8());
    d.check();
    for _ in 0..400 {
        if input.0.is_empty() {
            break;
        }
        d.step(&mut input);
        d.flush();
        d.check();
    }
    // Whatever state it is in, a minute of honest exchange brings no panic either.
    for _ in 0..60 {
        d.exchange(usize::MAX, 0);
        d.advance(Duration::from_secs(1));
    }
    d.check();
}
