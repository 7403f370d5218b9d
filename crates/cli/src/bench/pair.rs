//! Two engines in one thread. Packets are written, summed and checked as on a socket, but nothing is sent.

use anabranch_base::{Duration, Instant, RandomStream, StreamId};
use anabranch_engine::{
    AssocConfig, AssocId, AssocMut, Endpoint, EndpointConfig, Event, LocalId, SendOptions, Transmit,
};
use anabranch_policy::registry::Profile;
use anabranch_wire::Verify;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// SCTP port of both ends.
pub(super) const PORT: u16 = 9_899;
/// Packets written into one buffer.
const PACKETS_PER_BUFFER: usize = 16;

/// Configuration of both ends.
pub(super) fn config(profile: &str, window: usize) -> Result<AssocConfig, String> {
    let profile = Profile::named(profile).map_err(|e| e.to_string())?;
    let mut c = AssocConfig::new(profile);
    c.mtu.packet_size = 1_200;
    c.limits.receive_buffer = window;
    c.limits.send_buffer = window;
    c.sending.max_burst = 0; // as the peers have it: packets are handed over in batches
    Ok(c)
}

/// One end, and the packets that wait to leave it.
pub(super) struct End {
    pub engine: Endpoint,
    pub id: Option<AssocId>,
    pub established: bool,
    address: SocketAddr,
    transmit: Transmit,
    buffer: Vec<u8>,
    lengths: Vec<usize>,
}

impl End {
    pub fn new(config: &AssocConfig, port: u16, accept: bool, seed: u64, now: Instant) -> End {
        let mut c = EndpointConfig::new(PORT, config.clone());
        c.accept = accept;
        End {
            engine: Endpoint::new(c, Box::new(RandomStream::named(seed, "bench")), now),
            id: None,
            established: false,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            transmit: Transmit::to_be_written(),
            buffer: Vec::new(),
            lengths: Vec::new(),
        }
    }

    pub fn association(&mut self) -> Option<AssocMut<'_>> {
        self.engine.association_mut(self.id?)
    }

    /// Hands over copies of `message` until `n` or the send buffer is full; how many were taken.
    pub fn send(&mut self, now: Instant, message: &Bytes, n: usize) -> usize {
        let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
        let Some(mut a) = self.association() else { return 0 };
        (0..n).take_while(|_| a.send(now, options, message.clone()).is_ok()).count()
    }

    /// Reads everything; messages and bytes.
    pub fn recv(&mut self) -> (usize, usize) {
        let Some(mut a) = self.association() else { return (0, 0) };
        let (mut messages, mut bytes) = (0, 0);
        while let Some(m) = a.recv() {
            messages += 1;
            bytes += m.payload.len();
        }
        (messages, bytes)
    }

    pub fn events(&mut self) {
        while let Some((id, e)) = self.engine.poll_event() {
            if matches!(e, Event::Connected) {
                self.id = Some(id);
                self.established = true;
            }
        }
    }

    /// Everything there is to send, as datagrams.
    pub fn outputs(&mut self, now: Instant, out: &mut VecDeque<Bytes>) {
        loop {
            while self.lengths.len() < PACKETS_PER_BUFFER && self.engine.poll_transmit(now, &mut self.transmit) {
                let before = self.buffer.len();
                self.transmit.packet.write_to(&mut self.buffer);
                self.lengths.push(self.buffer.len() - before);
            }
            let full = self.lengths.len() == PACKETS_PER_BUFFER;
            if !self.lengths.is_empty() {
                let room = if full { self.buffer.len() } else { 0 };
                let mut rest = Bytes::from(core::mem::replace(&mut self.buffer, Vec::with_capacity(room)));
                out.extend(self.lengths.drain(..).map(|n| rest.split_to(n)));
            }
            if !full {
                break;
            }
        }
        self.transmit.packet.clear();
        self.events();
    }

    pub fn input(&mut self, now: Instant, from: SocketAddr, datagram: &Bytes) {
        self.engine.handle(now, LocalId(0), from, datagram, Verify::Checksum);
    }

    pub fn serve_timers(&mut self, now: Instant) {
        if self.engine.poll_timeout().is_some_and(|t| t <= now) {
            self.engine.handle_timeout(now);
        }
    }
}

/// A client and a server with one association.
pub(super) struct Pair {
    pub client: End,
    pub server: End,
    pub now: Instant,
    to_server: VecDeque<Bytes>,
    to_client: VecDeque<Bytes>,
    /// Packets that reached the server.
    pub packets: usize,
}

impl Pair {
    /// Connected, nothing in flight.
    pub fn connected(config: &AssocConfig, seed: u64) -> Result<Pair, String> {
        let now = Instant::from_millis(1_000);
        let mut p = Pair {
            client: End::new(config, 40_000, false, seed, now),
            server: End::new(config, 40_001, true, seed + 1, now),
            now,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            packets: 0,
        };
        p.connect(config)?;
        Ok(p)
    }

    fn connect(&mut self, config: &AssocConfig) -> Result<(), String> {
        let to = self.server.address;
        let id = self.client.engine.connect(self.now, config.clone(), LocalId(0), to, PORT);
        self.client.id = Some(id.map_err(|e| e.to_string())?);
        for _ in 0..16 {
            self.exchange(usize::MAX);
            if self.client.established && self.server.established && self.to_client.is_empty() {
                return Ok(());
            }
        }
        Err("the handshake did not end".to_owned())
    }

    /// Moves at most `batch` packets each way; how many moved.
    pub fn exchange(&mut self, batch: usize) -> usize {
        let Pair { client, server, now, to_server, to_client, packets } = self;
        client.outputs(*now, to_server);
        let forward = to_server.len().min(batch);
        for datagram in to_server.drain(..forward) {
            server.input(*now, client.address, &datagram);
        }
        *packets += forward;
        server.outputs(*now, to_client);
        let back = to_client.len().min(batch);
        for datagram in to_client.drain(..back) {
            client.input(*now, server.address, &datagram);
        }
        client.events();
        forward + back
    }

    /// Time goes on by `step`, or to the next timer when nothing moves.
    pub fn advance(&mut self, step: Duration, idle: bool) {
        self.now += step;
        if idle {
            let next = [self.client.engine.poll_timeout(), self.server.engine.poll_timeout()];
            self.now = next.into_iter().flatten().min().map_or(self.now, |t| t.max(self.now));
        }
        self.client.serve_timers(self.now);
        self.server.serve_timers(self.now);
    }
}
