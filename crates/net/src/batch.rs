//! Packets gathered for segmentation offload: one buffer for each run of equal packets to one destination.

use crate::locals::{LocalSide, Slot};
use anabranch_engine::{LocalId, Transmit};
use std::net::{IpAddr, SocketAddr};

/// Packets of one batch: the kernel's limit (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;
/// Bytes of one batch: with headers it must stay within one IP datagram.
const MAX_BYTES: usize = 65_000;
/// Buffers kept for later.
const SPARE: usize = 64;

/// How packets leave; those of a batch are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IpBits {
    /// IP may divide them.
    pub divisible: bool,
    /// Too large for the interface is no error.
    pub probe: bool,
    /// ECT(0): queues may mark them.
    pub markable: bool,
}

impl IpBits {
    fn of(t: &Transmit) -> IpBits {
        IpBits { divisible: t.may_divide, probe: t.probe, markable: t.may_be_marked }
    }
    /// Goes past the rules of the socket, which only the driver may change.
    pub fn is_special(self) -> bool {
        self.divisible || self.probe
    }
}

/// Packets of `segment` bytes each (the last may be shorter) to one destination.
#[derive(Debug)]
pub struct Batch {
    pub(crate) slot: Slot,
    pub(crate) local: LocalId,
    pub(crate) source: Option<IpAddr>,
    pub(crate) remote: SocketAddr,
    pub(crate) segment: usize,
    pub(crate) contents: Vec<u8>,
    /// What the IP header says of them.
    pub(crate) bits: IpBits,
    /// A shorter packet ended it.
    complete: bool,
}

impl Batch {
    /// The socket it leaves by, as given to [`Batches::push_by`].
    pub fn slot(&self) -> usize {
        self.slot.0
    }

    /// How many packets.
    pub(crate) fn count(&self) -> usize {
        self.contents.len().div_ceil(self.segment.max(1))
    }

    /// The packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.contents.chunks(self.segment.max(1))
    }

    fn takes(&self, len: usize, bits: IpBits) -> bool {
        !self.complete
            && self.bits == bits
            && len <= self.segment
            && self.contents.len() + len <= MAX_BYTES
            && self.contents.len() < self.segment * MAX_SEGMENTS
    }
}

/// Batches in the order of their first packets. Packets of one destination keep their order.
#[derive(Debug, Default)]
pub struct Batches {
    open: Vec<Batch>,
    spare: Vec<Vec<u8>>,
}

impl Batches {
    /// Adds a packet that leaves at `side`.
    pub(crate) fn push(&mut self, t: &Transmit, side: &LocalSide) {
        self.add(t, side.slot, side.source);
    }

    /// Adds a packet that leaves by the socket numbered `slot`, with `source` where the socket is bound to no address.
    pub fn push_by(&mut self, t: &Transmit, slot: usize, source: Option<IpAddr>) {
        self.add(t, Slot(slot), source);
    }

    fn add(&mut self, t: &Transmit, slot: Slot, source: Option<IpAddr>) {
        let (len, bits) = (t.packet.len(), IpBits::of(t));
        let last = self.open.iter_mut().rev().find(|b| b.local == t.local && b.remote == t.remote);
        if let Some(b) = last.filter(|b| b.takes(len, bits)) {
            b.complete = len < b.segment;
            t.packet.write_to(&mut b.contents);
            return;
        }
        let mut contents = self.spare.pop().unwrap_or_default();
        t.packet.write_to(&mut contents);
        self.open.push(Batch {
            slot,
            local: t.local,
            source,
            remote: t.remote,
            segment: len,
            contents,
            bits,
            complete: false,
        });
    }

    /// All batches; give them back with [`Batches::recycle`].
    pub fn take(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.open)
    }

    /// Returns the list that [`Batches::take`] gave, once it is empty.
    pub fn give_back(&mut self, list: Vec<Batch>) {
        if self.open.is_empty() && list.is_empty() {
            self.open = list;
        }
    }

    /// Takes a buffer back.
    pub fn recycle(&mut self, batch: Batch) {
        if self.spare.len() < SPARE {
            let mut b = batch.contents;
            b.clear();
            self.spare.push(b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{CommonHeader, CookieEcho};

    fn side() -> LocalSide {
        LocalSide {
            name: "lo".into(),
            slot: Slot(0),
            source: None,
            address: "127.0.0.1:1".parse().unwrap(),
            trouble: None,
            up: true,
        }
    }

    /// A packet of `len` bytes (a multiple of 4) with the given mark.
    fn packet(local: u16, port: u16, len: usize, mark: u8) -> Transmit {
        let mut t = Transmit { local: LocalId(local), remote: ([127, 0, 0, 1], port).into(), ..Transmit::default() };
        t.packet.start(CommonHeader { src_port: 1, dst_port: 2, vtag: 3 });
        t.packet.push(&CookieEcho { cookie: &vec![mark; len - 16] });
        assert_eq!(t.packet.len(), len);
        t
    }

    fn shapes(b: &Batches) -> Vec<(u16, usize, usize)> {
        b.open.iter().map(|b| (b.remote.port(), b.segment, b.count())).collect()
    }

    #[test]
    fn equal_packets_share_a_batch_although_paths_alternate() {
        let mut b = Batches::default();
        for i in 0..6 {
            b.push(&packet(i % 2, 10 + i % 2, 1_200, i as u8), &side());
        }
        assert_eq!(shapes(&b), [(10, 1_200, 3), (11, 1_200, 3)]);
        let marks: Vec<u8> = b.open[0].packets().map(|p| p[20]).collect();
        assert_eq!(marks, [0, 2, 4]);
    }

    #[test]
    fn a_shorter_packet_ends_a_batch_and_a_longer_begins_one() {
        let mut b = Batches::default();
        for len in [1_200, 1_200, 100, 1_200, 1_204, 1_204] {
            b.push(&packet(0, 10, len, 0), &side());
        }
        assert_eq!(shapes(&b), [(10, 1_200, 3), (10, 1_200, 1), (10, 1_204, 2)]);
    }

    #[test]
    fn limits_of_the_kernel_hold() {
        let mut b = Batches::default();
        for _ in 0..130 {
            b.push(&packet(0, 10, 100, 0), &side());
        }
        assert_eq!(shapes(&b), [(10, 100, 64), (10, 100, 64), (10, 100, 2)]);
        let mut b = Batches::default();
        for _ in 0..60 {
            b.push(&packet(0, 10, 1_200, 0), &side());
        }
        assert_eq!(shapes(&b), [(10, 1_200, 54), (10, 1_200, 6)]);
    }
}
