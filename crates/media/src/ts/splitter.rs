//! Cuts a byte stream into packets without losing a byte, whatever the bytes are.

use super::{PACKET_LEN, Packet, SYNC_BYTE};
use bytes::{Buf, Bytes, BytesMut};

/// Sync bytes at packet distance that must agree before bytes count as packets.
const CONFIRM: usize = 3;

/// A piece of the input. Pieces in the order they come out are the input, byte for byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// One packet: 188 bytes that begin with the sync byte.
    Packet(Bytes),
    /// Bytes that are not part of an aligned packet.
    Raw(Bytes),
}

impl Piece {
    /// The bytes of the piece.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Piece::Packet(b) | Piece::Raw(b) => b,
        }
    }

    /// A view of the packet, for a packet.
    pub fn packet(&self) -> Option<Packet<'_>> {
        match self {
            Piece::Packet(b) => Packet::new(b),
            Piece::Raw(_) => None,
        }
    }
}

/// Finds packets in pieces of input of any size.
///
/// While aligned, every 188 bytes that begin with the sync byte are a packet. At a wrong sync byte, and at
/// the start, the next position is searched from which three sync bytes follow at packet distance;
/// what lies before it is raw. So one damaged sync byte costs one packet's place in the classes and nothing
/// else. Packets of 192 or 204 bytes are not recognised and pass as raw bytes.
#[derive(Default, Debug)]
pub struct Splitter {
    buf: BytesMut,
    aligned: bool,
}

impl Splitter {
    /// A splitter that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes of the input.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// Bytes taken in and not yet given out.
    pub fn pending(&self) -> usize {
        self.buf.len()
    }

    /// True when something waits that [`Splitter::poll_now`] would give out.
    pub fn has_waiting(&self) -> bool {
        !(self.buf.is_empty() || self.aligned && self.buf.len() < PACKET_LEN)
    }

    /// The next piece that is certain.
    pub fn poll(&mut self) -> Option<Piece> {
        if self.aligned {
            let first = *self.buf.first()?;
            if first == SYNC_BYTE {
                return (self.buf.len() >= PACKET_LEN).then(|| Piece::Packet(self.buf.split_to(PACKET_LEN).freeze()));
            }
            self.aligned = false;
        }
        // Positions from here on have too few bytes behind them to be judged.
        let end = self.buf.len().saturating_sub((CONFIRM - 1) * PACKET_LEN);
        let found = (0..end).find(|at| self.syncs_from(*at));
        self.aligned = found.is_some();
        match found {
            Some(0) => self.poll(),
            Some(at) => Some(Piece::Raw(self.buf.split_to(at).freeze())),
            None if end > 0 => Some(Piece::Raw(self.buf.split_to(end).freeze())),
            None => None,
        }
    }

    /// The next piece, for when waiting for more input would delay what is there: fewer sync bytes are
    /// enough, and what is no packet goes out raw. Only the beginning of a packet of an aligned stream is
    /// still kept, because no receiver could use it.
    pub fn poll_now(&mut self) -> Option<Piece> {
        if let Some(piece) = self.poll() {
            return Some(piece);
        }
        if self.aligned || self.buf.is_empty() {
            return None;
        }
        let whole = self.buf.len() >= PACKET_LEN && self.syncs_from(0);
        if whole {
            // Whole packets to the end of the buffer, as a datagram holds them.
            self.aligned = true;
            return self.poll();
        }
        let next = (1..=self.buf.len().saturating_sub(PACKET_LEN)).find(|at| self.syncs_from(*at));
        let at = next.unwrap_or(self.buf.len());
        Some(Piece::Raw(self.buf.split_to(at).freeze()))
    }

    /// Everything that is left, at the end of the input.
    pub fn finish(&mut self) -> Option<Piece> {
        if let Some(piece) = self.poll_now() {
            return Some(piece);
        }
        self.aligned = false;
        (self.buf.has_remaining()).then(|| Piece::Raw(self.buf.split().freeze()))
    }

    /// Is there a sync byte at `at` and at every packet distance behind it, up to [`CONFIRM`] of them?
    fn syncs_from(&self, at: usize) -> bool {
        self.buf.iter().skip(at).step_by(PACKET_LEN).take(CONFIRM).all(|b| *b == SYNC_BYTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(n: usize) -> Vec<u8> {
        (0..n)
            .flat_map(|i| {
                let mut p = [i as u8 | 0x80; PACKET_LEN];
                p[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10]);
                p
            })
            .collect()
    }

    fn split(pieces: &[&[u8]]) -> Vec<Piece> {
        let mut s = Splitter::new();
        let mut out = Vec::new();
        for p in pieces {
            s.push(p);
            while let Some(x) = s.poll() {
                out.push(x);
            }
        }
        while let Some(x) = s.finish() {
            out.push(x);
        }
        out
    }

    fn count(pieces: &[Piece]) -> (usize, usize) {
        let packets = pieces.iter().filter(|p| p.packet().is_some()).count();
        (packets, pieces.iter().filter(|p| p.packet().is_none()).map(|p| p.bytes().len()).sum())
    }

    #[test]
    fn aligned_input_is_all_packets() {
        let ts = packets(10);
        assert_eq!(count(&split(&[&ts])), (10, 0));
        let bytes: Vec<&[u8]> = ts.chunks(1).collect();
        assert_eq!(count(&split(&bytes)), (10, 0));
        assert_eq!(count(&split(&[&ts[..188]])), (1, 0), "a single packet");
    }

    #[test]
    fn garbage_in_front_and_behind_is_raw() {
        let mut ts = vec![0x47, 1, 2];
        ts.extend(packets(5));
        ts.extend([0x47; 100]);
        assert_eq!(count(&split(&[&ts])), (5, 103));
    }

    #[test]
    fn one_damaged_sync_byte_costs_one_packet() {
        let mut ts = packets(10);
        ts[188 * 4] = 0x46;
        let pieces = split(&[&ts]);
        assert_eq!(count(&pieces), (9, 188));
        assert!(pieces[4].packet().is_none());
    }

    #[test]
    fn a_lost_byte_is_resynchronised() {
        let mut ts = packets(10);
        ts.remove(188 * 3 + 50);
        assert_eq!(count(&split(&[&ts])), (9, 187));
    }

    #[test]
    fn a_slow_start_does_not_wait_for_confirmation() {
        let mut s = Splitter::new();
        s.push(&packets(2));
        assert_eq!(s.poll(), None);
        assert!(s.has_waiting());
        assert!(s.poll_now().unwrap().packet().is_some());
        assert!(s.poll_now().unwrap().packet().is_some());
        assert_eq!(s.poll_now(), None);
        s.push(&packets(1)[..100]);
        assert!(!s.has_waiting());
        assert_eq!(s.poll_now(), None, "half a packet of an aligned stream is kept");
        assert_eq!(s.finish().unwrap().bytes().len(), 100);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(
            chunks in proptest::collection::vec(prop_oneof![
                proptest::collection::vec(prop_oneof![Just(0x47u8), any::<u8>()], 0..400),
                (1usize..6).prop_map(packets),
            ], 0..20),
            now in any::<u64>(),
        ) {
            let mut s = Splitter::new();
            let mut out = Vec::new();
            for (i, c) in chunks.iter().enumerate() {
                s.push(c);
                while let Some(p) = if now >> (i % 64) & 1 == 1 { s.poll_now() } else { s.poll() } {
                    prop_assert!(!p.bytes().is_empty());
                    out.extend_from_slice(p.bytes());
                }
            }
            while let Some(p) = s.finish() {
                out.extend_from_slice(p.bytes());
            }
            prop_assert_eq!(out, chunks.concat());
        }
    }
}
