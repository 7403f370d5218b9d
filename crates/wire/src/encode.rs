//! Writing items with their length fields and padding.

use crate::bits::round4;

/// Something that can be written in wire format.
///
/// What is appended is a multiple of 4 bytes: zero padding is included, but not counted in the item's length field
/// (RFC 9260 §3.2, §3.2.1). A length field holds 16 bits, so an item whose content is longer is cut to fit; callers
/// keep within the path MTU anyway.
pub trait Encode {
    /// Appends the item to `out`.
    fn encode(&self, out: &mut Vec<u8>);
}

/// Longest item, padding not counted.
pub(crate) const MAX_ITEM: usize = u16::MAX as usize;

/// Writes a chunk: header, what `value` appends, padding.
pub(crate) fn put_chunk(out: &mut Vec<u8>, kind: u8, flags: u8, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, flags, 0, 0]);
    value(out);
    finish(out, start);
}

/// Writes a parameter or an error cause: header, what `value` appends, padding.
pub(crate) fn put_tlv(out: &mut Vec<u8>, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put16(out, kind);
    put16(out, 0);
    value(out);
    finish(out, start);
}

/// Cuts, sets the length field and pads the item that starts at `start`.
fn finish(out: &mut Vec<u8>, start: usize) {
    out.truncate(start + MAX_ITEM);
    let len = out.len() - start;
    if let Some(field) = out.get_mut(start + 2..start + 4) {
        field.copy_from_slice(&(len as u16).to_be_bytes());
    }
    out.resize(start + round4(len), 0);
}

/// Appends a big-endian 16-bit integer.
pub(crate) fn put16(out: &mut Vec<u8>, v: u16) {
    out.extend_from_slice(&v.to_be_bytes());
}

/// Appends a big-endian 32-bit integer.
pub(crate) fn put32(out: &mut Vec<u8>, v: u32) {
    out.extend_from_slice(&v.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_not_counted() {
        let mut out = vec![9; 3];
        put_tlv(&mut out, 0x0102, |o| o.extend_from_slice(&[7; 5]));
        assert_eq!(out, [9, 9, 9, 1, 2, 0, 9, 7, 7, 7, 7, 7, 0, 0, 0]);
    }

    #[test]
    fn what_no_length_field_can_hold_is_cut() {
        let mut out = Vec::new();
        put_chunk(&mut out, 10, 0, |o| o.resize(4 + 70_000, 1));
        assert_eq!(out.len(), 65_536);
        assert_eq!(out[2..4], [0xff, 0xff]);
        assert_eq!(out[65_534..], [1, 0]);
    }
}
