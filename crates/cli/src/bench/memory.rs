//! In memory: what the engine alone costs.

use super::cpu;
use super::pair::{PORT, Pair, config};
use super::row::Row;
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_engine::{AssocId, Endpoint, EndpointConfig, Event, LocalId, Transmit};
use anabranch_wire::Verify;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;

/// Packets handed over at a time.
const BATCH: usize = 16;
/// Rounds without anything moving after which a run is given up.
const PATIENCE: usize = 10_000;

/// `total` bytes one way in messages of `size`.
pub(super) fn bulk(profile: &str, window: usize, size: usize, total: usize) -> Result<Vec<Row>, String> {
    let config = config(profile, window)?;
    let mut p = Pair::connected(&config, 1)?;
    let message = Bytes::from(vec![0x5a_u8; size]);
    let n = total / size;
    let (mut queued, mut got, mut bytes, mut idle) = (0, 0, 0, 0);
    let before = cpu::seconds();
    let packets = p.packets;
    while got < n {
        queued += p.client.send(p.now, &message, n - queued);
        let moved = p.exchange(BATCH);
        let (m, b) = p.server.recv();
        got += m;
        bytes += b;
        idle = if moved == 0 { idle + 1 } else { 0 };
        if idle > PATIENCE {
            return Err(format!("stalled after {got} of {n} messages"));
        }
        p.advance(Duration::from_micros(20), moved == 0);
    }
    let cpu = cpu::seconds() - before;
    if bytes != n * size {
        return Err(format!("{bytes} bytes arrived of {}", n * size));
    }
    Ok(vec![
        Row::new("cpu_s_per_GB", cpu / (bytes as f64 / 1e9)),
        Row::new("msgs_per_cpu_s", got as f64 / cpu),
        Row::new("payload_per_packet", bytes as f64 / (p.packets - packets) as f64),
    ])
}

/// Request and answer, one at a time.
pub(super) fn ping_pong(profile: &str, window: usize, size: usize, rounds: usize) -> Result<Vec<Row>, String> {
    let config = config(profile, window)?;
    let mut p = Pair::connected(&config, 1)?;
    let message = Bytes::from(vec![1_u8; size]);
    let before = cpu::seconds();
    for round in 0..rounds {
        p.client.send(p.now, &message, 1);
        let mut tries = 0;
        loop {
            p.exchange(usize::MAX);
            for _ in 0..p.server.recv().0 {
                p.server.send(p.now, &message, 1);
            }
            if p.client.recv().0 > 0 {
                break;
            }
            p.advance(Duration::from_micros(10), false);
            tries += 1;
            if tries > PATIENCE {
                return Err(format!("stalled in round {round}"));
            }
        }
    }
    let cpu = cpu::seconds() - before;
    Ok(vec![Row::new("cpu_us_per_round", cpu * 1e6 / rounds as f64)])
}

/// `n` associations between one client endpoint and one server endpoint, then idle: with one path each, and with a
/// second one that joined by ASCONF under AUTH.
pub(super) fn setup(profile: &str, n: usize) -> Result<Vec<Row>, String> {
    let warm = Crowd::connected(profile, 100)?;
    let (memory, before) = (cpu::resident(), cpu::seconds());
    let mut kept = Crowd::connected(profile, n)?;
    let cpu = cpu::seconds() - before;
    let held = |memory: u64| cpu::resident().saturating_sub(memory) as f64 / (2 * n) as f64;
    let with_one = held(memory);
    kept.add_second_paths()?;
    let with_two = held(memory);
    drop((warm, kept));
    Ok(vec![
        Row::new("setups_per_cpu_s", n as f64 / cpu),
        Row::new("rss_bytes_per_endpoint", with_one),
        Row::new("rss_bytes_per_endpoint_two_paths", with_two),
    ])
}

/// Many associations between two endpoints.
struct Crowd {
    /// Client and server.
    ends: [Endpoint; 2],
    ids: Vec<AssocId>,
    now: Instant,
    transmit: Transmit,
    buffer: Vec<u8>,
}

/// Rounds in which a handshake, or the joining of a path, is over.
const ROUNDS: usize = 6;

impl Crowd {
    fn connected(profile: &str, n: usize) -> Result<Crowd, String> {
        let config = Arc::new(config(profile, 1 << 20)?);
        let now = Instant::from_millis(1_000);
        let ends = [false, true].map(|accept| {
            let mut c = EndpointConfig::new(PORT, (*config).clone());
            c.accept = accept;
            c.max_associations = n;
            Endpoint::new(c, Box::new(RandomStream::named(3, if accept { "server" } else { "client" })), now)
        });
        let ids = Vec::with_capacity(n);
        let mut crowd = Crowd { ends, ids, now, transmit: Transmit::to_be_written(), buffer: Vec::new() };
        let mut up = 0;
        for i in 0..n {
            let (_, server) = addresses(i, LocalId(0));
            let id = crowd.ends[0].connect(now, config.clone(), LocalId(0), server, PORT).map_err(|e| e.to_string())?;
            crowd.ids.push(id);
            up += crowd.exchange(i, |e| matches!(e, Event::Connected));
        }
        if up != 2 * n {
            return Err(format!("{up} of {} ends are connected", 2 * n));
        }
        Ok(crowd)
    }

    /// A second path for each association, confirmed at both ends.
    fn add_second_paths(&mut self) -> Result<(), String> {
        let mut active = 0;
        for (i, id) in self.ids.clone().into_iter().enumerate() {
            let (_, server) = addresses(i, LocalId(1));
            if let Some(mut a) = self.ends[0].association_mut(id) {
                a.add_path(self.now, LocalId(1), server);
            }
            self.exchange(i, |_| false);
            let paths = self.ends[0]
                .association(id)
                .map_or(0, |a| a.paths().filter(|(_, p)| p.state == anabranch_policy::view::PathState::Active).count());
            active += paths;
        }
        let wanted = 2 * self.ids.len();
        if active == wanted { Ok(()) } else { Err(format!("{active} of {wanted} paths are active")) }
    }

    /// Lets the `i`-th association say all it has to say; how many events are as `counts`.
    fn exchange(&mut self, i: usize, counts: impl Fn(&Event) -> bool) -> usize {
        let mut counted = 0;
        for side in [0, 1].repeat(ROUNDS) {
            while self.ends[side].poll_transmit(self.now, &mut self.transmit) {
                self.buffer.clear();
                self.transmit.packet.write_to(&mut self.buffer);
                let datagram = Bytes::copy_from_slice(&self.buffer);
                // The client's interfaces differ in their ports.
                let back = LocalId(self.transmit.remote.port().wrapping_sub(CLIENT_PORT));
                let (at, from) = match side {
                    0 => (LocalId(0), addresses(i, self.transmit.local).0),
                    _ => (back, addresses(i, LocalId(0)).1),
                };
                self.ends[1 - side].handle(self.now, at, from, &datagram, Verify::Checksum);
            }
        }
        for end in &mut self.ends {
            while let Some((_, e)) = end.poll_event() {
                counted += usize::from(counts(&e));
            }
        }
        counted
    }
}

/// UDP port of a client's first interface.
const CLIENT_PORT: u16 = 40_000;

/// Client, on the interface `local`, and server of the `i`-th association: two between the same addresses and ports
/// could not be distinguished.
fn addresses(i: usize, local: LocalId) -> (SocketAddr, SocketAddr) {
    let [_, b, c, d] = (i as u32).to_be_bytes();
    (([10, b, c, d], CLIENT_PORT + local.0).into(), ([11, b, c, d], PORT).into())
}
