//! A network of one path: delay, loss, duplicates, packets that overtake each other, all seeded. It notes what passes.

use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_wire::{Packet, Verify, kind};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What one end has sent.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Chunks by type.
    pub chunks: BTreeMap<u8, u64>,
    pub packets: u64,
    /// Packets with a checksum of zero, beside those with INIT and COOKIE ECHO.
    pub unsummed: u64,
    pub lost: u64,
    pub doubled: u64,
    pub overtaken: u64,
}

impl Wire {
    pub fn count(&self, kind: u8) -> u64 {
        self.chunks.get(&kind).copied().unwrap_or(0)
    }
}

pub struct Network {
    pub delay: Duration,
    pub loss: f64,
    pub duplicate: f64,
    /// Share of packets that are up to twice the delay late.
    pub reorder: f64,
    pub wire: [Wire; 2],
    random: RandomStream,
    on_way: BTreeMap<(Instant, u64), (usize, Bytes)>,
    serial: u64,
    latest: [Option<Instant>; 2],
}

impl Network {
    /// Without faults, 10 ms each way.
    pub fn good(seed: u64) -> Self {
        Network {
            delay: Duration::from_millis(10),
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            wire: [Wire::default(), Wire::default()],
            random: RandomStream::named(seed, "interop network"),
            on_way: BTreeMap::new(),
            serial: 0,
            latest: [None; 2],
        }
    }

    /// 3 % loss, 2 % duplicates and 5 % late each way.
    pub fn bad(seed: u64) -> Self {
        Network { loss: 0.03, duplicate: 0.02, reorder: 0.05, ..Network::good(seed) }
    }

    /// A bad network with another loss.
    pub fn lossy(seed: u64, loss: f64) -> Self {
        Network { loss, ..Network::bad(seed) }
    }

    /// Takes a packet of end `from`, 0 or 1.
    pub fn carry(&mut self, now: Instant, from: usize, packet: Bytes) {
        self.note(from, &packet);
        if self.random.chance(self.loss) {
            self.wire[from].lost += 1;
            return;
        }
        if self.random.chance(self.duplicate) {
            self.wire[from].doubled += 1;
            self.put(now, from, packet.clone());
        }
        self.put(now, from, packet);
    }

    fn put(&mut self, now: Instant, from: usize, packet: Bytes) {
        let mut at = now + self.delay;
        if self.random.chance(self.reorder) {
            at += Duration::from_nanos(self.random.below(2 * self.delay.as_nanos()));
        }
        if self.latest[from].is_some_and(|l| at < l) {
            self.wire[from].overtaken += 1;
        }
        self.latest[from] = self.latest[from].max(Some(at));
        self.serial += 1;
        self.on_way.insert((at, self.serial), (1 - from, packet));
    }

    fn note(&mut self, from: usize, bytes: &Bytes) {
        let wire = &mut self.wire[from];
        wire.packets += 1;
        let packet = Packet::parse(bytes, Verify::Trusted).expect("what a stack sends is a packet");
        let mut begins = false;
        for c in packet.chunks() {
            let c = c.expect("whole chunks");
            *wire.chunks.entry(c.kind).or_default() += 1;
            begins |= matches!(c.kind, kind::INIT | kind::COOKIE_ECHO);
        }
        if bytes[8..12] == [0; 4] {
            assert!(!begins, "INIT and COOKIE ECHO are always summed (RFC 9653 §5.2)");
            wire.unsummed += 1;
        }
    }

    pub fn next(&self) -> Option<Instant> {
        self.on_way.keys().next().map(|(at, _)| *at)
    }

    /// The next packet that has arrived, and where.
    pub fn arrived(&mut self, now: Instant) -> Option<(usize, Bytes)> {
        let first = self.on_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Forgets what is on its way.
    pub fn clear(&mut self) {
        self.on_way.clear();
    }
}
