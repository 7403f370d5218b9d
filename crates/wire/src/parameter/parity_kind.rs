//! What [`Parameter::Parity`](crate::Parameter::Parity) says of what its sender reads.

/// No parity: it makes some, or lets it pass.
pub const NOTHING: u8 = 0;
/// Sums of chunks.
pub const SUMS: u8 = 1;
/// Check bits of packets.
pub const CHECK_BITS: u8 = 2;
