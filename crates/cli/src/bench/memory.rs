//! In memory: what the engine alone costs.

use super::cpu;
use super::pair::{PORT, Pair, config};
use super::row::Row;
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_engine::{Endpoint, EndpointConfig, Event, LocalId, Transmit};
use anabranch_wire::Verify;
use bytes::Bytes;

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

/// `n` associations between one client endpoint and one server endpoint, with `paths` paths each, then idle.
pub(super) fn setup(profile: &str, n: usize) -> Result<Vec<Row>, String> {
    let warm = associations(profile, 100)?;
    let (memory, before) = (cpu::resident(), cpu::seconds());
    let kept = associations(profile, n)?;
    let (memory, cpu) = (cpu::resident().saturating_sub(memory), cpu::seconds() - before);
    drop((warm, kept));
    Ok(vec![
        Row::new("setups_per_cpu_s", n as f64 / cpu),
        Row::new("rss_bytes_per_endpoint", memory as f64 / (2 * n) as f64),
    ])
}

fn associations(profile: &str, n: usize) -> Result<(Endpoint, Endpoint), String> {
    let config = config(profile, 1 << 20)?;
    let now = Instant::from_millis(1_000);
    let mut ends = [false, true].map(|accept| {
        let mut c = EndpointConfig::new(PORT, config.clone());
        c.accept = accept;
        c.max_associations = n;
        Endpoint::new(c, Box::new(RandomStream::named(3, if accept { "server" } else { "client" })), now)
    });
    let (mut up, mut transmit, mut buffer) = (0, Transmit::default(), Vec::new());
    for i in 0..n {
        let [_, b, c, d] = (i as u32).to_be_bytes();
        // Two associations between the same addresses and ports could not be told apart.
        let (client_addr, server_addr) = (([10, b, c, d], 40_000).into(), ([11, b, c, d], PORT).into());
        ends[0].connect(now, config.clone(), LocalId(0), server_addr, PORT).map_err(|e| e.to_string())?;
        for _ in 0..4 {
            for side in [0, 1] {
                while ends[side].poll_transmit(now, &mut transmit) {
                    buffer.clear();
                    transmit.packet.write_to(&mut buffer);
                    let datagram = Bytes::copy_from_slice(&buffer);
                    let from = if side == 0 { client_addr } else { server_addr };
                    ends[1 - side].handle(now, LocalId(0), from, &datagram, Verify::Checksum);
                }
            }
        }
        for end in &mut ends {
            while let Some((_, e)) = end.poll_event() {
                up += usize::from(matches!(e, Event::Connected));
            }
        }
    }
    if up != 2 * n {
        return Err(format!("{up} of {} ends are connected", 2 * n));
    }
    let [client, server] = ends;
    Ok((client, server))
}
