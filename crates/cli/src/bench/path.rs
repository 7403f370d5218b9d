//! One bottleneck in virtual time: how much of it the payload fills.

use super::cpu;
use super::pair::{PORT, config};
use super::row::Row;
use anabranch_base::{Duration, Instant, RandomStream, Rate, StreamId};
use anabranch_engine::{Endpoint, EndpointConfig, LocalId, SendOptions, Transmit};
use anabranch_sim::{Direction, DuplexPath, Limit, LinkConfig, LossConfig};
use anabranch_wire::Verify;
use bytes::Bytes;
use std::net::SocketAddr;

/// IPv4 and UDP header, bytes.
const UDP_HEADERS: usize = 28;
/// Left out at the beginning: slow start and its end.
const LEAD_IN: Duration = Duration::from_secs(5);

/// A path both ways.
pub(super) struct Path {
    /// Mbit/s.
    pub rate: f64,
    /// Both ways, ms.
    pub rtt: f64,
    /// Bytes of queue.
    pub queue: u64,
    /// Share of packets lost.
    pub loss: f64,
}

/// The most payload per second that messages of `size` can fill the path with, whole packets of `packet` bytes.
///
/// A message that fits is never cut, and as many whole ones as fit share a packet; a larger one is cut into full
/// packets and a rest of its own or one shared with its neighbours, whichever is denser.
fn payload_bound(rate: f64, size: usize, packet: usize) -> f64 {
    let round4 = |n: usize| n.div_ceil(4) * 4;
    let most = packet - 12 - 16;
    let per_payload = if size <= most {
        let whole = (packet - 12) / (16 + round4(size));
        (12 + UDP_HEADERS + whole * (16 + round4(size))) as f64 / (whole * size) as f64
    } else {
        (packet + UDP_HEADERS) as f64 / most as f64
    };
    rate * 1e6 / 8.0 / per_payload
}

/// Streams for `seconds` of virtual time.
pub(super) fn run(
    profile: &str,
    window: usize,
    size: usize,
    seconds: u64,
    path: &Path,
    seed: u64,
) -> Result<Vec<Row>, String> {
    let mut config = config(profile, window)?;
    config.sending.max_burst = 4;
    let mut now = Instant::from_millis(1_000);
    let mut ends = [false, true].map(|accept| {
        let mut c = EndpointConfig::new(PORT, config.clone());
        c.accept = accept;
        Endpoint::new(c, Box::new(RandomStream::named(seed, if accept { "server" } else { "client" })), now)
    });
    let addresses = [SocketAddr::from(([192, 0, 2, 1], 40_000)), SocketAddr::from(([192, 0, 2, 2], PORT))];
    let rate = Rate::from_bits_per_sec((path.rate * 1e6) as u64);
    let link = LinkConfig::fixed(Some(rate), Duration::from_micros((path.rtt * 500.0) as u64))
        .with_limit(Limit::bytes(path.queue))
        .with_loss(LossConfig::bernoulli(path.loss));
    let mut net: DuplexPath<Bytes> = DuplexPath::new("path", seed, link.clone(), link);
    let id = ends[0].connect(now, config, LocalId(0), addresses[1], PORT).map_err(|e| e.to_string())?;
    let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
    let message = Bytes::from(vec![0x5a_u8; size]);
    let (mut transmit, mut buffer) = (Transmit::to_be_written(), Vec::new());
    let begin = now + LEAD_IN;
    let end = begin + Duration::from_secs(seconds);
    let (mut counted, before) = (0_usize, cpu::seconds());
    let mut everything = 0_usize;
    let mut server_id = None;
    while now < end {
        if let Some(mut a) = ends[0].association_mut(id) {
            while a.send(now, options, message.clone()).is_ok() {}
        }
        for (side, direction) in [(0, Direction::Forward), (1, Direction::Backward)] {
            while ends[side].poll_transmit(now, &mut transmit) {
                buffer.clear();
                transmit.packet.write_to(&mut buffer);
                let datagram = Bytes::copy_from_slice(&buffer);
                let _ = net.send(now, direction, (datagram.len() + UDP_HEADERS) as u32, datagram);
            }
            while let Some((who, _)) = ends[side].poll_event() {
                if side == 1 {
                    server_id = Some(who);
                }
            }
        }
        let timers = [ends[0].poll_timeout(), ends[1].poll_timeout(), net.next_event()];
        let Some(next) = timers.into_iter().flatten().min() else { return Err("nothing to wait for".to_owned()) };
        now = next.max(now);
        for end in &mut ends {
            if end.poll_timeout().is_some_and(|t| t <= now) {
                end.handle_timeout(now);
            }
        }
        if let Some((direction, datagram)) = net.poll(now) {
            let side = usize::from(direction == Direction::Forward);
            ends[side].handle(now, LocalId(0), addresses[1 - side], &datagram, Verify::Checksum);
        }
        if let Some(mut a) = server_id.and_then(|id| ends[1].association_mut(id)) {
            while let Some(m) = a.recv() {
                everything += m.payload.len();
                counted += if now >= begin { m.payload.len() } else { 0 };
            }
        }
    }
    let goodput = counted as f64 / seconds as f64;
    let bound = payload_bound(path.rate, size, 1_200);
    Ok(vec![
        Row::new("goodput_bytes_s", goodput),
        Row::new("share_of_bound", goodput / bound),
        Row::new("cpu_s_per_GB", (cpu::seconds() - before) / (everything as f64 / 1e9)),
    ])
}
