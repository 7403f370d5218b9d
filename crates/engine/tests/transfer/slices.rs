//! Packets that are handed over as slices do what their bytes would do, and need no allocation each.

mod found;

use crate::common::changed;
use anabranch_base::{Duration, Instant, RandomStream, StreamId};
use anabranch_engine::{AssocConfig, AssocId, Association, Endpoint, EndpointConfig, LocalId, SendOptions, Transmit};
use anabranch_policy::registry::Profile;
use anabranch_wire::{PacketSlices, Verify, kind};
use bytes::Bytes;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

const PORT: u16 = 9_899;

#[derive(Clone, Debug)]
enum Op {
    /// By client or server, on a stream.
    Send {
        server: bool,
        stream: u16,
        len: usize,
        unordered: bool,
        lifetime_ms: Option<u64>,
    },
    /// One of the packets that are under way to client or server arrives, is lost, or arrives and stays. Which one: its
    /// place among them, as a share of 2^64.
    Deliver {
        server: bool,
        which: u64,
    },
    Lose {
        server: bool,
        which: u64,
    },
    Repeat {
        server: bool,
        which: u64,
    },
    Pass {
        ms: u64,
    },
    Read,
    AddPath,
    Shutdown {
        server: bool,
    },
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    let which = any::<u64>;
    prop_oneof![
        6 => (any::<bool>(), 0..3_u16, 1..6_000_usize, any::<bool>(), prop::option::of(1..400_u64)).prop_map(
            |(server, stream, len, unordered, lifetime_ms)| Op::Send { server, stream, len, unordered, lifetime_ms }
        ),
        20 => (any::<bool>(), which()).prop_map(|(server, which)| Op::Deliver { server, which }),
        2 => (any::<bool>(), which()).prop_map(|(server, which)| Op::Lose { server, which }),
        2 => (any::<bool>(), which()).prop_map(|(server, which)| Op::Repeat { server, which }),
        6 => (1..1_500_u64).prop_map(|ms| Op::Pass { ms }),
        3 => Just(Op::Read),
        1 => Just(Op::AddPath),
        1 => any::<bool>().prop_map(|server| Op::Shutdown { server }),
        1 => Just(Op::Forget),
    ]
}

fn config() -> AssocConfig {
    changed(AssocConfig::with(Profile::named("cmt").unwrap(), anabranch_engine::Constants::RFC), |c| {
        c.limits.send_buffer = 64 << 10;
        c.limits.receive_buffer = 32 << 10;
    })
}

/// A packet under way: the interface it left from, and as what it is carried.
#[derive(Clone)]
enum Load {
    Bytes(Bytes),
    Slices(PacketSlices),
}

/// Packets that were delivered, to be built in again.
#[derive(Default)]
struct SlicesPool(Vec<PacketSlices>);

impl SlicesPool {
    /// What `packet` holds, which it leaves empty and with buffers for the next one.
    fn swap(&mut self, packet: &mut PacketSlices) -> PacketSlices {
        core::mem::replace(packet, self.0.pop().unwrap_or_default())
    }
    fn put(&mut self, mut packet: PacketSlices) {
        packet.clear();
        self.0.push(packet);
    }
}

struct World {
    /// Client and server.
    ends: [Endpoint; 2],
    id: [Option<AssocId>; 2],
    /// To the client, to the server.
    under_way: [Vec<(LocalId, Load)>; 2],
    now: Instant,
    slices: bool,
    /// The ends are asked for packets even where they know that there is none.
    presses: bool,
    /// Of whom, and how many had come and gone.
    packets: [(Option<AssocId>, u64); 2],
    pool: SlicesPool,
    transmit: Transmit,
    /// Everything there is to be seen from outside.
    trace: Vec<String>,
}

impl World {
    fn new(slices: bool) -> World {
        let now = Instant::from_millis(5_000);
        let end = |accept, name| {
            let mut c = EndpointConfig::new(PORT, config());
            c.accept = accept;
            Endpoint::new(c, Box::new(RandomStream::named(7, name)), now)
        };
        World {
            ends: [end(false, "client"), end(true, "server")],
            id: [None; 2],
            under_way: Default::default(),
            now,
            slices,
            presses: false,
            packets: [(None, 0); 2],
            pool: SlicesPool::default(),
            transmit: Transmit::default(),
            trace: Vec::new(),
        }
    }

    /// Addresses of the client's interface `local` and of the server.
    fn addresses(local: LocalId) -> (SocketAddr, SocketAddr) {
        (([10, 0, local.0 as u8, 1], 40_000).into(), ([10, 9, 9, 9], PORT).into())
    }

    fn connect(&mut self) {
        let to = Self::addresses(LocalId(0)).1;
        self.id[0] = self.ends[0].connect(self.now, config(), LocalId(0), to, PORT).ok();
        self.settle();
    }

    /// Fetches all there is to send and to tell.
    fn settle(&mut self) {
        for side in 0..2 {
            while self.ends[side].poll_transmit(self.now, &mut self.transmit) {
                self.press(side, true);
                let mut bytes = Vec::new();
                self.transmit.packet.write_to(&mut bytes);
                self.trace.push(format!("{side} {:?} {} {bytes:?}", self.transmit.local, self.transmit.remote));
                // The server answers to where the client's interface is.
                let IpAddr::V4(ip) = self.transmit.remote.ip() else { unreachable!("all addresses here are IPv4") };
                let client = if side == 0 { self.transmit.local } else { LocalId(u16::from(ip.octets()[2])) };
                let load = match self.slices {
                    true => Load::Slices(self.pool.swap(&mut self.transmit.packet)),
                    false => Load::Bytes(bytes.into()),
                };
                self.under_way[1 - side].push((client, load));
            }
            while let Some((id, e)) = self.ends[side].poll_event() {
                self.trace.push(format!("{side} {e:?}"));
                self.id[side] = Some(id);
            }
            self.trace.push(format!("{side} {:?}", self.ends[side].poll_timeout()));
        }
    }

    /// Where packets have come to an association or left it since, it is taken in hand, so that it is asked for more;
    /// not for one that was none of `its`.
    fn press(&mut self, side: usize, its: bool) {
        if !self.presses {
            return;
        }
        if let Some(mut a) = self.id[side].and_then(|id| self.ends[side].association_mut(id)) {
            let packets = a.paths().map(|(_, p)| p.counters.packets_sent + p.counters.packets_received).sum();
            let before = core::mem::replace(&mut self.packets[side], (self.id[side], packets));
            // Not one of which another was looked at: time has passed since its own packets.
            if its && before.0 == self.id[side] && before.1 != packets {
                let _: &mut Association = &mut a;
            }
        }
    }

    fn arrive(&mut self, to: usize, (client, load): (LocalId, Load)) {
        let (ours, servers) = Self::addresses(client);
        let mut bytes = Vec::new();
        if let (true, Load::Slices(p)) = (self.presses, &load) {
            p.write_to(&mut bytes);
        }
        // The endpoint answers an INIT by itself: time may have passed since the association's own packets.
        let its = bytes.get(12) != Some(&kind::INIT);
        let (local, from) = if to == 0 { (client, servers) } else { (LocalId(0), ours) };
        match load {
            Load::Bytes(b) => self.ends[to].handle(self.now, local, from, &b, Verify::Checksum),
            Load::Slices(p) => {
                self.ends[to].handle_slices(self.now, local, from, &p);
                self.pool.put(p);
            }
        }
        self.press(to, its);
    }

    fn take(&mut self, server: bool, which: u64) -> Option<(LocalId, Load)> {
        let list = &mut self.under_way[usize::from(server)];
        // Mostly the oldest, as on a network.
        let of = |size: usize| ((u128::from(which) * size as u128) >> 64) as usize;
        let at = if of(4) == 0 { of(list.len().max(1)) } else { 0 };
        (at < list.len()).then(|| list.remove(at))
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Send { server, stream, len, unordered, lifetime_ms } => {
                let side = usize::from(*server);
                let payload: Vec<u8> = (0..*len).map(|i| (i * 7 + len) as u8).collect();
                let now = self.now;
                let options = SendOptions {
                    stream: StreamId(*stream),
                    unordered: *unordered,
                    deadline: lifetime_ms.map(|ms| now + Duration::from_millis(ms)),
                    ..SendOptions::default()
                };
                if let Some(mut a) = self.id[side].and_then(|id| self.ends[side].association_mut(id)) {
                    let taken = a.send(now, options, payload.into());
                    self.trace.push(format!("{taken:?}"));
                }
            }
            Op::Deliver { server, which } => {
                if let Some(p) = self.take(*server, *which) {
                    self.arrive(usize::from(*server), p);
                }
            }
            Op::Lose { server, which } => drop(self.take(*server, *which)),
            Op::Repeat { server, which } => {
                if let Some(p) = self.take(*server, *which) {
                    self.under_way[usize::from(*server)].push(p.clone());
                    self.arrive(usize::from(*server), p);
                }
            }
            Op::Pass { ms } => {
                self.now += Duration::from_millis(*ms);
                self.ends.iter_mut().for_each(|e| e.handle_timeout(self.now));
            }
            Op::Read => self.read(),
            Op::AddPath => {
                let now = self.now;
                if let Some(mut a) = self.id[0].and_then(|id| self.ends[0].association_mut(id)) {
                    a.add_path(now, LocalId(1), Self::addresses(LocalId(1)).1);
                }
            }
            Op::Shutdown { server } => {
                let (side, now) = (usize::from(*server), self.now);
                if let Some(mut a) = self.id[side].and_then(|id| self.ends[side].association_mut(id)) {
                    a.shutdown(now);
                }
            }
            // The client's host starts anew: what is under way is out of the blue.
            Op::Forget => {
                let fresh = World::new(self.slices);
                let [client, _] = fresh.ends;
                self.ends[0] = client;
                self.connect();
            }
        }
        self.settle();
    }

    fn read(&mut self) {
        for side in 0..2 {
            let Some(mut a) = self.id[side].and_then(|id| self.ends[side].association_mut(id)) else { continue };
            while let Some(m) = a.recv() {
                self.trace.push(format!("{side} {m:?}"));
            }
            let seen = format!("{side} {:?} {:?}", a.stats(), a.paths().collect::<Vec<_>>());
            drop(a);
            self.trace.push(seen);
        }
    }
}

fn life(ops: &[Op], slices: bool, presses: bool) -> Vec<String> {
    let mut w = World { presses, ..World::new(slices) };
    w.connect();
    for op in ops {
        w.apply(op);
    }
    w.read();
    w.trace
}

fn same(one: &[String], other: &[String]) -> Result<(), TestCaseError> {
    for (i, (a, b)) in one.iter().zip(other).enumerate() {
        prop_assert_eq!(a, b, "at {}", i);
    }
    prop_assert_eq!(one.len(), other.len());
    Ok(())
}

fn same_as_bytes(ops: &[Op]) -> Result<(), TestCaseError> {
    same(&life(ops, false, false), &life(ops, true, false))
}

/// An end that was not asked, because it has nothing to send, would have had nothing and noted nothing.
fn need_not_be_asked(ops: &[Op]) -> Result<(), TestCaseError> {
    same(&life(ops, true, false), &life(ops, true, true))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn slices_do_what_their_bytes_do(ops in prop::collection::vec(op(), 1..250)) {
        same_as_bytes(&ops)?;
    }

    #[test]
    fn who_has_nothing_to_send_need_not_be_asked(ops in prop::collection::vec(op(), 1..250)) {
        need_not_be_asked(&ops)?;
    }
}

/// Full packets one way and acknowledgements back, without a word to the allocator once all buffers are there.
#[test]
fn packets_are_carried_without_allocations() {
    let mut w = World::new(true);
    w.connect();
    for side in [1, 0, 1, 0] {
        let p = w.under_way[side].remove(0);
        w.arrive(side, p);
        w.settle();
    }
    let payload = Bytes::from(vec![9; 1_100]);
    let mut under_way = std::collections::VecDeque::new();
    let (mut packets, mut messages) = (0, 0);
    let mut carry = |w: &mut World, rounds: usize| {
        for _ in 0..rounds {
            w.now += Duration::from_millis(1);
            if let Some(mut a) = w.id[0].and_then(|id| w.ends[0].association_mut(id)) {
                a.send(w.now, SendOptions::default(), payload.clone()).unwrap();
            }
            for (side, other) in [(0, 1), (1, 0)] {
                w.ends.iter_mut().for_each(|e| e.handle_timeout(w.now));
                while w.ends[side].poll_transmit(w.now, &mut w.transmit) {
                    under_way.push_back(w.pool.swap(&mut w.transmit.packet));
                }
                let (ours, servers) = World::addresses(LocalId(0));
                for p in under_way.drain(..) {
                    packets += 1;
                    w.ends[other].handle_slices(w.now, LocalId(0), if other == 0 { servers } else { ours }, &p);
                    w.pool.put(p);
                }
                while w.ends[other].poll_event().is_some() {}
            }
            if let Some(mut a) = w.id[1].and_then(|id| w.ends[1].association_mut(id)) {
                messages += std::iter::from_fn(|| a.recv()).count();
            }
        }
    };
    carry(&mut w, 1_000);
    let used = allocation_counter::measure(|| carry(&mut w, 1_000));
    assert_eq!(messages, 2_000);
    assert!(packets >= 3_000, "{packets}");
    // RareCounters a list grows or a timer is kept elsewhere in its tree.
    assert!(used.count_total < 20, "{} allocations", used.count_total);
}
