//! What parity covers of a chunk beside its payload, so that a restored one is a whole chunk.
//!
//! Of DATA: length of the payload (2 bytes), flags, a zero, stream, SSN, PPID: 12 bytes. Of I-DATA: the same up to the
//! stream, two zeros, MID, and PPID or FSN as on the wire: 16 bytes. The flag that asks for a SACK at once is no part of
//! it: each transmission has its own.

use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use anabranch_policy::redundancy::SourceHead;
use anabranch_wire::{DataFlags, DataHeader, IDataHeader};

fn flags(f: DataFlags) -> u8 {
    DataFlags { immediate: false, ..f }.to_bits()
}

/// Of a DATA chunk with so much payload.
pub(crate) fn of_data(h: &DataHeader, payload: usize) -> SourceHead {
    let [l0, l1] = (payload as u16).to_be_bytes();
    let [i0, i1] = h.stream.0.to_be_bytes();
    let [s0, s1] = h.ssn.0.to_be_bytes();
    let [p0, p1, p2, p3] = h.ppid.to_be_bytes();
    SourceHead::new(&[l0, l1, flags(h.flags), 0, i0, i1, s0, s1, p0, p1, p2, p3])
}

/// Of an I-DATA chunk.
pub(crate) fn of_i_data(h: &IDataHeader, payload: usize) -> SourceHead {
    let [l0, l1] = (payload as u16).to_be_bytes();
    let [i0, i1] = h.stream.0.to_be_bytes();
    let [m0, m1, m2, m3] = h.mid.0.to_be_bytes();
    let [p0, p1, p2, p3] = if h.flags.begin { h.ppid } else { h.fsn }.to_be_bytes();
    SourceHead::new(&[l0, l1, flags(h.flags), 0, i0, i1, 0, 0, m0, m1, m2, m3, p0, p1, p2, p3])
}

/// The payload that has `len` bytes, with nothing but zeros behind it.
fn payload(rest: &[u8], len: [u8; 2]) -> Option<&[u8]> {
    let (payload, filling) = rest.split_at_checked(usize::from(u16::from_be_bytes(len)))?;
    (!payload.is_empty() && filling.iter().all(|b| *b == 0)).then_some(payload)
}

/// The DATA chunk with this TSN that a symbol holds; none when it cannot be one.
pub(crate) fn data(tsn: Tsn, symbol: &[u8]) -> Option<(DataHeader, &[u8])> {
    let (&[l0, l1, flags, 0, i0, i1, s0, s1, p0, p1, p2, p3], rest) = symbol.split_first_chunk::<12>()? else {
        return None;
    };
    let header = DataHeader {
        tsn,
        stream: StreamId(u16::from_be_bytes([i0, i1])),
        ssn: Ssn(u16::from_be_bytes([s0, s1])),
        ppid: u32::from_be_bytes([p0, p1, p2, p3]),
        flags: DataFlags::from_bits(flags),
    };
    Some((header, payload(rest, [l0, l1])?)).filter(|_| flags < 8)
}

/// The I-DATA chunk.
pub(crate) fn i_data(tsn: Tsn, symbol: &[u8]) -> Option<(IDataHeader, &[u8])> {
    let (&[l0, l1, flags, 0, i0, i1, 0, 0, m0, m1, m2, m3, p0, p1, p2, p3], rest) = symbol.split_first_chunk::<16>()?
    else {
        return None;
    };
    let (either, bits) = (u32::from_be_bytes([p0, p1, p2, p3]), DataFlags::from_bits(flags));
    let header = IDataHeader {
        tsn,
        stream: StreamId(u16::from_be_bytes([i0, i1])),
        mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
        ppid: if bits.begin { either } else { 0 },
        fsn: if bits.begin { 0 } else { either },
        flags: bits,
    };
    Some((header, payload(rest, [l0, l1])?)).filter(|_| flags < 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_nothing_else() {
        let flags = DataFlags { immediate: true, unordered: true, begin: true, end: false };
        let h = DataHeader { tsn: Tsn(9), stream: StreamId(3), ssn: Ssn(700), ppid: 51, flags };
        let mut symbol = of_data(&h, 5).bytes().to_vec();
        symbol.extend_from_slice(b"bytes\0\0\0");
        let expected = DataHeader { flags: DataFlags { immediate: false, ..flags }, ..h };
        assert_eq!(data(Tsn(9), &symbol), Some((expected, &b"bytes"[..])));
        for first in [false, true] {
            let flags = DataFlags { immediate: false, begin: first, ..flags };
            let (ppid, fsn) = if first { (51, 0) } else { (0, 7) };
            let h = IDataHeader { tsn: Tsn(9), stream: StreamId(3), mid: Mid(70_000), ppid, fsn, flags };
            let mut symbol = of_i_data(&h, 5).bytes().to_vec();
            symbol.extend_from_slice(b"bytes");
            assert_eq!(i_data(Tsn(9), &symbol), Some((h, &b"bytes"[..])));
        }
        // More payload than there is, none at all, something behind it, a field that is zero.
        for (at, value) in [(1, 9), (1, 0), (19, 1), (3, 1), (2, 8)] {
            let mut wrong = symbol.clone();
            wrong[at] = value;
            assert_eq!(data(Tsn(9), &wrong), None, "{at}");
        }
        assert_eq!(data(Tsn(9), &symbol[..11]), None);
    }
}
