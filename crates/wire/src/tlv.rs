//! The type-length-value walk that parameters and error causes share (RFC 9260 §3.2.1, §3.3.10).

use crate::bits::{be16, halves, round4};
use crate::error::{Item, WireError};

/// One framed item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlv<'a> {
    pub(crate) kind: u16,
    pub(crate) value: &'a [u8],
    /// Header and value, no padding.
    pub(crate) whole: &'a [u8],
}

/// Takes the first item off `rest`. Padding that the enclosing length did not count may be missing.
pub(crate) fn take<'a>(item: Item, rest: &mut &'a [u8]) -> Option<Result<Tlv<'a>, WireError>> {
    let all = *rest;
    if all.is_empty() {
        return None;
    }
    *rest = &[];
    let Some((head, _)) = all.split_first_chunk::<4>() else {
        return Some(Err(WireError::Header { item, left: all.len() }));
    };
    let (kind, length) = halves(head);
    if length < 4 {
        return Some(Err(WireError::Length { item, kind, length }));
    }
    let len = usize::from(length);
    let (Some(whole), Some(value)) = (all.get(..len), all.get(4..len)) else {
        return Some(Err(WireError::Overrun { item, kind, length, left: all.len() }));
    };
    *rest = all.get(round4(len)..).unwrap_or(&[]);
    Some(Ok(Tlv { kind, value, whole }))
}

/// `bytes` without the padding of its last item; all of it where the walk fails.
pub(crate) fn without_final_padding(bytes: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(length) = be16(bytes, at + 2) {
        let end = at + usize::from(length);
        if length < 4 || end > bytes.len() {
            return bytes;
        }
        let next = round4(end);
        if next >= bytes.len() {
            return bytes.get(..end).unwrap_or(bytes);
        }
        at = next;
    }
    bytes
}

/// A list of big-endian 16-bit integers, as in Supported Address Types (RFC 9260 §3.3.2.1.5), HMAC-ALGO
/// (RFC 4895 §3.3) and "Missing Mandatory Parameter" (RFC 9260 §3.3.10.2). An odd last byte is left out.
pub fn list_u16(bytes: &[u8]) -> impl ExactSizeIterator<Item = u16> + DoubleEndedIterator + Clone + '_ {
    bytes.as_chunks::<2>().0.iter().map(|b| u16::from_be_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_padding_goes() {
        assert_eq!(without_final_padding(&[0, 1, 0, 5, 9, 0, 0, 0]), [0, 1, 0, 5, 9]);
        let two = [0, 1, 0, 5, 9, 0, 0, 0, 0, 2, 0, 6, 1, 2, 0, 0];
        assert_eq!(without_final_padding(&two), &two[..14]);
        assert_eq!(without_final_padding(&two[..14]), &two[..14]);
        assert_eq!(without_final_padding(&[]), []);
        assert_eq!(without_final_padding(&[0, 1, 0, 0]), [0, 1, 0, 0]);
        assert_eq!(without_final_padding(&[0, 1, 0, 9, 1]), [0, 1, 0, 9, 1]);
        assert_eq!(without_final_padding(&[0, 1, 0]), [0, 1, 0]);
    }

    #[test]
    fn lists() {
        assert_eq!(list_u16(&[0, 1, 0x80, 2, 7]).collect::<Vec<_>>(), [1, 0x8002]);
    }
}
