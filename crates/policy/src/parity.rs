//! What parity says of itself in front of its sum: for `redundancy/erasure.rs`, which writes it, and `repair/erasure.rs`.
//! Below, the records of check bits of `split_error_correction`, of which a PARITY chunk carries several: of each packet its
//! length (2 bytes), its checksum (4 bytes) and 7 check bits for each 15 bytes.
//!
//! Code (0 XOR, 1 RLC), number of TSNs from the first to the last one that is covered, distance of the first one back
//! from the parity's own TSN (2 bytes), seed (2 bytes), and one bit for each of those TSNs, from the lowest bit of the
//! first byte on. Integers in network order. The TSNs in between may be parity themselves, or acknowledged already.

use anabranch_code::{Code, hamming};

/// Chunks that one sum covers at most.
pub(crate) const MOST_COVERED: usize = 128;
/// Bytes in front of the bits.
const FIXED: usize = 6;
/// Most TSNs from the first to the last.
pub(crate) const MOST_SPAN: u64 = 255;

/// Bytes in front of a sum over so many TSNs.
pub(crate) const fn head_len(span: u64) -> usize {
    FIXED + (span as usize).div_ceil(8)
}

/// A record, read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub code: Code,
    pub seed: u16,
    /// The first TSN, extended.
    first: u64,
    bits: &'a [u8],
    pub sum: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record of the parity with this TSN; none when it cannot be one.
    pub fn read(number: u64, record: &'a [u8]) -> Option<Self> {
        let (&[code, span, b0, b1, s0, s1], rest) = record.split_first_chunk::<FIXED>()?;
        let code = match code {
            0 => Code::Xor,
            1 => Code::Rlc,
            _ => return None,
        };
        let (bits, sum) = rest.split_at_checked(usize::from(span).div_ceil(8))?;
        let back = u64::from(u16::from_be_bytes([b0, b1]));
        let first = number.checked_sub(back)?;
        // It covers what is before itself.
        let sound = span > 0 && u64::from(span) <= back && !sum.is_empty();
        sound.then_some(Record { code, seed: u16::from_be_bytes([s0, s1]), first, bits, sum })
    }

    /// Numbers of what it covers, lowest first.
    pub fn covers(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let (first, bits) = (self.first, self.bits);
        let bits = (0..)
            .zip(bits)
            .flat_map(|(at, byte)| (0..8u64).filter(move |b| byte >> b & 1 == 1).map(move |b| at * 8 + b));
        bits.map(move |at| first + at)
    }
}

/// Writes what precedes a sum for the parity `number` that covers these, lowest first; none when they are too far apart or
/// too far away.
pub(crate) fn write_head(number: u64, code: Code, seed: u16, covers: &[u64]) -> Option<Vec<u8>> {
    let (first, last) = (*covers.first()?, *covers.last()?);
    let (span, back) = (last.checked_sub(first)? + 1, u16::try_from(number.checked_sub(first)?).ok()?);
    if span > MOST_SPAN || last >= number {
        return None;
    }
    let mut out = vec![u8::from(code == Code::Rlc), span as u8];
    out.extend_from_slice(&back.to_be_bytes());
    out.extend_from_slice(&seed.to_be_bytes());
    out.resize(head_len(span), 0);
    for at in covers.iter().map(|n| (n - first) as usize) {
        if let Some(byte) = out.get_mut(FIXED + at / 8) {
            *byte |= 1 << (at % 8);
        }
    }
    Some(out)
}

/// The first byte of records of check bits, in place of a code.
pub(crate) const CHECKS: u8 = 2;
/// Bytes in front of the check bits of a packet: its length and its checksum.
const CHECKS_HEAD: usize = 6;
/// Where a packet's checksum is: in its first block.
const CHECKSUM: core::ops::Range<usize> = 8..12;
/// Bytes of the smallest packet with data.
const SHORTEST: usize = 32;

/// Bytes of the record of a packet of so many.
pub(crate) const fn record_len(packet: usize) -> usize {
    CHECKS_HEAD + hamming::check_len(packet)
}

/// The record of a packet with its checksum; none of one that is too short or too long.
pub(crate) fn write_checks(packet: &[u8]) -> Option<Vec<u8>> {
    let label = Label::of(packet)?;
    let mut out = Vec::with_capacity(record_len(packet.len()));
    out.extend_from_slice(&label.len.to_be_bytes());
    out.extend_from_slice(&label.sum.to_be_bytes());
    hamming::append_checks(packet, &mut out);
    Some(out)
}

/// By what check bits know their packet: its length and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    len: u16,
    sum: u32,
}

impl Label {
    /// That of a packet as it came; none of one that is too short to have data, or too long.
    pub fn of(packet: &[u8]) -> Option<Self> {
        let sum = packet.get(CHECKSUM)?.try_into().ok()?;
        let len = u16::try_from(packet.len()).ok().filter(|l| usize::from(*l) >= SHORTEST)?;
        Some(Label { len, sum: u32::from_be_bytes(sum) })
    }
    /// May this be that one once a block is corrected? That flips one bit at most.
    pub fn may_be(self, other: Label) -> bool {
        self.len == other.len && (self.sum ^ other.sum).count_ones() <= 1
    }
}

/// Check bits of a packet, read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks<'a> {
    pub label: Label,
    pub bits: &'a [u8],
}

impl<'a> Checks<'a> {
    /// Those of a PARITY's record, as far as they are whole; none when it has other things.
    pub fn read(record: &'a [u8]) -> Option<impl Iterator<Item = Checks<'a>>> {
        let (&CHECKS, mut rest) = record.split_first()? else { return None };
        let next = move || {
            let (&[l0, l1, s0, s1, s2, s3], behind) = rest.split_first_chunk::<CHECKS_HEAD>()?;
            let label = Label { len: u16::from_be_bytes([l0, l1]), sum: u32::from_be_bytes([s0, s1, s2, s3]) };
            let (bits, behind) = behind.split_at_checked(hamming::check_len(usize::from(label.len)))?;
            rest = behind;
            Some(Checks { label, bits })
        };
        // No packet with data is so short.
        Some(core::iter::from_fn(next).filter(|c| usize::from(c.label.len) >= SHORTEST))
    }
    /// Does this packet have the checksum that they name, once it is corrected? The first block has it, so that no more is
    /// looked at of what belongs to other packets.
    pub fn fit(&self, packet: &[u8]) -> bool {
        let Some(((first, _), bits)) = packet.split_first_chunk::<{ hamming::BLOCK }>().zip(self.bits.get(..1)) else {
            return false;
        };
        let mut first = *first;
        let sum = self.label.sum.to_be_bytes();
        hamming::correct(&mut first, bits).is_some() && first.get(CHECKSUM) == Some(sum.as_slice())
    }
    /// Corrects a packet that they fit, as far as it can be.
    pub fn correct(&self, mut packet: Vec<u8>) -> Vec<u8> {
        hamming::correct(&mut packet, self.bits);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(first in 0u64..1 << 40, steps in prop::collection::vec(1u64..20, 0..40), ahead in 1u64..400, seed: u16) {
            let covers: Vec<u64> = core::iter::once(0).chain(steps.iter().scan(0, |at, s| { *at += s; Some(*at) })).map(|n| first + n).collect();
            let number = covers.last().unwrap() + ahead;
            let written = write_head(number, Code::Rlc, seed, &covers);
            let span = covers.last().unwrap() - first + 1;
            prop_assert_eq!(written.is_some(), span <= MOST_SPAN);
            if let Some(mut record) = written {
                prop_assert_eq!(record.len(), head_len(span));
                record.extend_from_slice(b"sum");
                let read = Record::read(number, &record).unwrap();
                prop_assert_eq!((read.code, read.seed, read.sum), (Code::Rlc, seed, &b"sum"[..]));
                prop_assert_eq!(read.covers().collect::<Vec<_>>(), covers);
            }
        }

        #[test]
        fn whatever_is_read_covers_what_is_before_it(number in 0u64..100_000, record in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(r) = Record::read(number, &record) {
                prop_assert!(r.covers().all(|n| n < number + 8) && r.covers().count() <= 256);
            }
        }
    }
}
