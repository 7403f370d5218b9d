//! Reading big-endian integers without a way to panic.

/// The first `N` bytes and the rest.
pub(crate) fn split<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8])> {
    bytes.split_first_chunk::<N>()
}

/// A big-endian 16-bit integer at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk::<2>().map(|b| u16::from_be_bytes(*b))
}

/// A big-endian 32-bit integer at `at`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}

/// The two 16-bit halves of a 4-byte entry.
pub(crate) fn halves(entry: &[u8; 4]) -> (u16, u16) {
    let [a, b, c, d] = *entry;
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

/// `n` rounded up to the next multiple of 4.
pub(crate) const fn round4(n: usize) -> usize {
    n.saturating_add(3) & !3
}
