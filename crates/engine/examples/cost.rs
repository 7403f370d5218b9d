//! What the engine costs, apart from checksums, copies and sockets: two endpoints hand each other packets as slices,
//! one at a time.
//!
//! ```text
//! cargo build --release -p anabranch-engine --example cost
//! valgrind --tool=callgrind target/release/examples/cost TEST COUNT [PROFILE]
//! ```
//! `TEST` is `pingpong` (100 bytes there and back, `COUNT` rounds), `small` (`COUNT` messages of 100 bytes) or `bulk`
//! (`COUNT` messages that fill a packet of 1480 bytes, over a link with 32 packets under way). What one more costs is
//! the difference between two counts: instructions do not depend on what else the machine does.

use anabranch_base::{Duration, Instant, RandomStream, StreamId};
use anabranch_engine::{
    AssocConfig, AssocId, AssocMut, Endpoint, EndpointConfig, Event, LocalId, SendOptions, Transmit,
};
use anabranch_policy::registry::Profile;
use anabranch_wire::PacketSlices;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

const PORT: u16 = 9_899;
/// Between two packets of a link.
const STEP: Duration = Duration::from_micros(12);
/// Steps from one end to the other.
const STEPS: u64 = 16;

struct World {
    /// Client and server.
    ends: [Endpoint; 2],
    id: [Option<AssocId>; 2],
    /// To the client, to the server: when each packet arrives.
    under_way: [VecDeque<(Instant, PacketSlices)>; 2],
    /// Empty packets with room.
    pool: Vec<PacketSlices>,
    transmit: Transmit,
    now: Instant,
    delay: Duration,
}

impl World {
    fn connected(profile: &str, delay: Duration) -> World {
        let now = Instant::from_millis(1_000);
        let mut config = AssocConfig::new(Profile::named(profile).expect("the name of a profile"));
        config.mtu.packet_size = 1_480;
        let end = |accept, name| {
            let mut c = EndpointConfig::new(PORT, config.clone());
            c.accept = accept;
            Endpoint::new(c, Box::new(RandomStream::named(1, name)), now)
        };
        let mut w = World {
            ends: [end(false, "client"), end(true, "server")],
            id: [None; 2],
            under_way: Default::default(),
            pool: Vec::new(),
            transmit: Transmit::default(),
            now,
            delay,
        };
        w.id[0] = w.ends[0].connect(now, config, LocalId(0), address(1), PORT).ok();
        w.serve(0);
        while w.id[1].is_none() {
            w.step();
        }
        w
    }

    fn association(&mut self, side: usize) -> AssocMut<'_> {
        let a = self.id[side].and_then(|id| self.ends[side].association_mut(id));
        a.expect("both ends are connected")
    }

    fn send(&mut self, side: usize, message: &Bytes) -> bool {
        let (now, options) = (self.now, SendOptions { stream: StreamId(1), ..SendOptions::default() });
        self.association(side).send(now, options, message.clone()).is_ok()
    }

    fn received(&mut self, side: usize) -> usize {
        let mut a = self.association(side);
        std::iter::from_fn(|| a.recv()).count()
    }

    /// Fetches what an end has to say.
    fn serve(&mut self, side: usize) {
        while self.ends[side].poll_transmit(self.now, &mut self.transmit) {
            let packet = core::mem::replace(&mut self.transmit.packet, self.pool.pop().unwrap_or_default());
            self.under_way[1 - side].push_back((self.now + self.delay, packet));
        }
        while let Some((id, e)) = self.ends[side].poll_event() {
            if e == Event::Connected {
                self.id[side] = Some(id);
            }
        }
    }

    /// Delivers what arrives by now; each packet is an event of its own. True when there was something.
    fn deliver(&mut self) -> bool {
        let mut moved = false;
        for to in [1, 0] {
            while self.under_way[to].front().is_some_and(|(at, _)| *at <= self.now)
                && let Some((_, mut packet)) = self.under_way[to].pop_front()
            {
                moved = true;
                self.ends[to].handle_slices(self.now, LocalId(0), address(1 - to), &packet);
                packet.clear();
                self.pool.push(packet);
                self.serve(to);
            }
        }
        moved
    }

    fn step(&mut self) {
        self.now += STEP;
        for side in [0, 1] {
            if self.ends[side].poll_timeout().is_some_and(|t| t <= self.now) {
                self.ends[side].handle_timeout(self.now);
                self.serve(side);
            }
        }
        self.deliver();
    }
}

fn address(side: usize) -> SocketAddr {
    ([10, 0, 0, side as u8 + 1], 40_000).into()
}

fn ping_pong(profile: &str, rounds: usize) {
    let mut w = World::connected(profile, Duration::ZERO);
    let message = Bytes::from(vec![1; 100]);
    for _ in 0..rounds {
        assert!(w.send(0, &message), "there is room");
        w.serve(0);
        while w.received(0) == 0 {
            if !w.deliver() {
                w.step();
            }
            for _ in 0..w.received(1) {
                assert!(w.send(1, &message), "there is room");
                w.serve(1);
            }
        }
    }
}

fn one_way(profile: &str, size: usize, messages: usize) {
    let mut w = World::connected(profile, STEP * STEPS);
    let message = Bytes::from(vec![1; size]);
    let (mut sent, mut received) = (0, 0);
    while received < messages {
        while sent < messages && w.send(0, &message) {
            sent += 1;
        }
        w.serve(0);
        w.step();
        received += w.received(1);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |i: usize| arguments.get(i).map(String::as_str);
    let count = word(1).and_then(|c| c.parse().ok()).unwrap_or(10_000);
    let profile = word(2).unwrap_or("sctp");
    match word(0) {
        Some("pingpong") => ping_pong(profile, count),
        Some("small") => one_way(profile, 100, count),
        Some("bulk") => one_way(profile, 1_452, count),
        _ => eprintln!("TEST is pingpong, small or bulk"),
    }
}
