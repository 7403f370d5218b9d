//! What is in flight on one path, by send order.
//!
//! Packets carry a serial (`tx_seq`) that rises by one per packet with DATA. Detection, recovery exit, the
//! earliest outstanding and the thin packet list all follow it, never the TSN (ARCHITECTURE decision 3).

use super::rate::DeliveredAtSend;
use crate::work;
use anabranch_base::{Duration, Instant, Ppm};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub sent_at: Instant,
    /// Copies of it that still count.
    pub live: u16,
    /// Counted by the loss estimator.
    pub counted_lost: bool,
    /// What is in it is a sum of others.
    pub parity: bool,
    /// Bytes of the packet where path MTU discovery asks for them and it may not be divided; zero elsewhere.
    pub size: u16,
    pub at_send: DeliveredAtSend,
}

/// A copy of a chunk in send order; dead ones are skipped when met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyRef {
    pub tx_seq: u64,
    /// Extended TSN.
    pub tsn: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Flight {
    first_seq: u64,
    packets: VecDeque<Packet>,
    copies: VecDeque<CopyRef>,
    live_packets: u32,
    bytes: u64,
    /// Of these, parity.
    parity: u64,
    history: LossHistory,
}

/// Fate of the last 128 packets (Petlund et al. 2009 §2.2).
#[derive(Debug, Default)]
struct LossHistory {
    /// The upper half first; in one piece it would widen whatever holds it.
    bits: [u64; 2],
    seen: u32,
    /// Those of them that were lost.
    lost: u32,
    /// Zero while fewer than 20 packets have met their fate; at most one half.
    share: Ppm,
}

impl LossHistory {
    fn push(&mut self, lost: bool) {
        let before = (self.lost, self.seen);
        let [upper, lower] = self.bits;
        self.lost = self.lost + u32::from(lost) - (upper >> 63) as u32;
        self.bits = [upper << 1 | lower >> 63, lower << 1 | u64::from(lost)];
        self.seen = (self.seen + 1).min(128);
        if self.seen >= 20 && (self.lost > 0 || before.0 > 0) && before != (self.lost, self.seen) {
            self.share = Ppm((self.lost * 1_000_000 / self.seen).min(500_000));
        }
    }
}

impl Flight {
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.packets.len() as u64
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Bytes in flight that are no parity.
    pub fn data(&self) -> u64 {
        self.bytes.saturating_sub(self.parity)
    }
    pub fn packets(&self) -> u32 {
        self.live_packets
    }
    pub fn loss(&self) -> Ppm {
        self.history.share
    }

    /// A packet leaves; its chunks follow by [`Self::add_copy`].
    pub fn begin_packet(&mut self, now: Instant, at_send: DeliveredAtSend) -> u64 {
        self.packets.push_back(Packet { sent_at: now, live: 0, counted_lost: false, parity: false, size: 0, at_send });
        self.live_packets += 1;
        self.next_seq() - 1
    }

    /// The newest packet has so many bytes.
    pub fn note_size(&mut self, bytes: usize) {
        if let Some(p) = self.packets.back_mut() {
            p.size = u16::try_from(bytes).unwrap_or(u16::MAX);
        }
    }

    /// Is a packet above `size` bytes in flight?
    pub fn has_above(&self, size: usize) -> bool {
        self.packets.iter().any(|p| usize::from(p.size) > size && p.live > 0)
    }

    /// A chunk of the newest packet.
    pub fn add_copy(&mut self, tsn: u64, len: u64) {
        if let Some(p) = self.packets.back_mut() {
            p.live += 1;
            let tx_seq = self.first_seq + self.packets.len() as u64 - 1;
            self.copies.push_back(CopyRef { tx_seq, tsn });
            self.bytes += len;
        }
    }

    /// The newest packet, which has one chunk, is parity.
    pub fn note_parity(&mut self, len: u64) {
        if let Some(p) = self.packets.back_mut() {
            p.parity = true;
            self.parity += len;
        }
    }

    pub fn packet(&self, tx_seq: u64) -> Option<&Packet> {
        self.packets.get(usize::try_from(tx_seq.checked_sub(self.first_seq)?).ok()?)
    }

    /// How long ago a copy left; one whose packet is not known is as old as can be.
    pub fn age(&self, c: &CopyRef, now: Instant) -> Duration {
        self.packet(c.tx_seq).map_or(Duration::MAX, |p| now.since(p.sent_at))
    }

    /// A copy no longer counts: acknowledged (`lost` false), or given up as lost.
    #[inline]
    pub fn remove_copy(&mut self, tx_seq: u64, len: u64, lost: bool) {
        self.bytes = self.bytes.saturating_sub(len);
        let Some(i) = tx_seq.checked_sub(self.first_seq).and_then(|i| usize::try_from(i).ok()) else { return };
        let Some(p) = self.packets.get_mut(i) else { return };
        p.live = p.live.saturating_sub(1);
        p.counted_lost |= lost;
        if p.parity {
            self.parity = self.parity.saturating_sub(len);
        }
        if p.live == 0 {
            self.live_packets = self.live_packets.saturating_sub(1);
            self.history.push(p.counted_lost);
        }
        while self.packets.front().is_some_and(|p| p.live == 0) {
            self.packets.pop_front();
            self.first_seq += 1;
        }
        while self.copies.front().is_some_and(|c| c.tx_seq < self.first_seq) {
            self.copies.pop_front();
        }
    }

    /// Serial of the oldest packet in flight.
    pub fn oldest_seq(&self) -> Option<u64> {
        (!self.packets.is_empty()).then_some(self.first_seq)
    }
    /// Serial of the oldest packet in flight, or of the next one to leave.
    pub fn expected_seq(&self) -> u64 {
        if self.packets.is_empty() { self.next_seq() } else { self.first_seq }
    }

    /// When the oldest packet in flight left.
    pub fn oldest_sent(&self) -> Option<Instant> {
        self.packets.front().map(|p| p.sent_at)
    }

    /// When the packet after that one left, whatever became of it.
    pub fn second_sent(&self) -> Option<Instant> {
        self.packets.get(1).map(|p| p.sent_at)
    }

    /// The oldest copy; it may be dead.
    pub fn first_copy(&self) -> Option<&CopyRef> {
        self.copies.front()
    }

    /// Copies in send order; some may be dead.
    pub fn copies(&self) -> impl DoubleEndedIterator<Item = CopyRef> + '_ {
        self.copies.iter().copied().inspect(|_| work::steps(1))
    }

    /// Copies that left at `since` or later, some of them dead.
    pub fn copies_since(&self, since: Instant) -> impl Iterator<Item = CopyRef> + '_ {
        let before = |c: &CopyRef| self.packet(c.tx_seq).is_none_or(|p| p.sent_at < since);
        self.copies.range(self.copies.partition_point(before)..).copied().inspect(|_| work::steps(1))
    }

    /// Copies sent before `tx_seq`, collected so that the caller may change the flight; some may be dead.
    pub fn copies_before(&self, tx_seq: u64, out: &mut Vec<CopyRef>) {
        out.clear();
        out.extend(self.copies.iter().take_while(|c| c.tx_seq < tx_seq));
        work::steps(out.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_bytes_follow_their_copies() {
        let mut f = Flight::default();
        let t = |ms| Instant::from_millis(ms);
        let a = f.begin_packet(t(1), DeliveredAtSend::default());
        f.add_copy(10, 100);
        f.add_copy(11, 50);
        let b = f.begin_packet(t(2), DeliveredAtSend::default());
        f.add_copy(12, 30);
        assert_eq!((a, b, f.bytes(), f.packets()), (0, 1, 180, 2));
        assert_eq!((f.oldest_sent(), f.second_sent()), (Some(t(1)), Some(t(2))));
        f.remove_copy(b, 30, false);
        assert_eq!((f.bytes(), f.packets(), f.oldest_sent()), (150, 1, Some(t(1))));
        f.remove_copy(a, 100, false);
        f.remove_copy(a, 50, false);
        assert_eq!((f.bytes(), f.packets(), f.oldest_seq(), f.next_seq()), (0, 0, None, 2));
        assert_eq!((f.oldest_sent(), f.second_sent()), (None, None));
        assert_eq!(f.copies().count(), 0);
        f.remove_copy(0, 5, true); // long gone: no effect, no panic
        assert_eq!(f.bytes(), 0);
    }

    #[test]
    fn what_fits_is_not_above_and_what_was_answered_is_gone() {
        let mut f = Flight::default();
        let seq = f.begin_packet(Instant::ZERO, DeliveredAtSend::default());
        f.add_copy(1, 900);
        f.note_size(1_000);
        assert_eq!([999, 1_000, 1_001].map(|size| f.has_above(size)), [true, false, false]);
        f.begin_packet(Instant::ZERO, DeliveredAtSend::default());
        f.add_copy(2, 400);
        f.note_size(500);
        f.remove_copy(seq, 900, false);
        assert_eq!([499, 500, 999].map(|size| f.has_above(size)), [true, false, false]);
    }

    #[test]
    fn loss_needs_twenty_packets() {
        let mut f = Flight::default();
        for i in 0..40u64 {
            let s = f.begin_packet(Instant::ZERO, DeliveredAtSend::default());
            f.add_copy(i, 1);
            f.remove_copy(s, 1, i % 4 == 0);
            if i == 10 {
                assert_eq!(f.loss(), Ppm(0));
            }
        }
        assert_eq!(f.loss(), Ppm(250_000));
    }
}
