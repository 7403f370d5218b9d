//! Kinds of parity: what an end makes is of use where the other one reads the same.

use anabranch_policy::Asks;
use anabranch_wire::parity_kind;

/// A kind of parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParityKind {
    /// Sums of chunks.
    Sums,
    /// Check bits of packets.
    CheckBits,
}

impl ParityKind {
    /// What policies that ask for this make.
    pub const fn made(asks: Asks) -> Option<Self> {
        match (asks.any(Asks::PARITY), asks.any(Asks::WHOLE_PACKETS)) {
            (false, _) => None,
            (true, false) => Some(ParityKind::Sums),
            (true, true) => Some(ParityKind::CheckBits),
        }
    }
    /// What policies that ask for this read.
    pub const fn read(asks: Asks) -> Option<Self> {
        match (asks.any(Asks::REPAIR), asks.any(Asks::DAMAGED)) {
            (false, _) => None,
            (true, false) => Some(ParityKind::Sums),
            (true, true) => Some(ParityKind::CheckBits),
        }
    }
    /// What a peer reads by what its parameter says. One that says nothing, or what is not known here, reads sums: those
    /// before kinds were announced said nothing.
    pub const fn announced(said: Option<u8>) -> Option<Self> {
        match said {
            Some(parity_kind::NOTHING) => None,
            Some(parity_kind::CHECK_BITS) => Some(ParityKind::CheckBits),
            _ => Some(ParityKind::Sums),
        }
    }
    /// What the parameter says for it.
    pub const fn code(read: Option<Self>) -> u8 {
        match read {
            None => parity_kind::NOTHING,
            Some(ParityKind::Sums) => parity_kind::SUMS,
            Some(ParityKind::CheckBits) => parity_kind::CHECK_BITS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_understood() {
        for kind in [None, Some(ParityKind::Sums), Some(ParityKind::CheckBits)] {
            assert_eq!(ParityKind::announced(Some(ParityKind::code(kind))), kind);
        }
        for said in [None, Some(3), Some(255)] {
            assert_eq!(ParityKind::announced(said), Some(ParityKind::Sums));
        }
    }
}
