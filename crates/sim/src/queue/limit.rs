//! How much a queue holds.

use crate::link::Tally;

/// How much may be held, waiting or in transmission. `None` means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limit {
    /// Number of packets.
    pub packets: Option<u64>,
    /// Number of bytes, overhead included.
    pub bytes: Option<u64>,
    /// Is the packet in transmission left out of the count? So it is in ns-2's RED. Here it counts
    /// by default, as in ns-2's drop-tail: a `limit_` of 50 packets holds 50 with the one in transmission (it refuses
    /// what would be the 50th to wait).
    pub waiting_only: bool,
}

impl Limit {
    /// Everything is held.
    pub const NONE: Limit = Limit { packets: None, bytes: None, waiting_only: false };

    /// At most `n` packets.
    pub const fn packets(n: u64) -> Self {
        Limit { packets: Some(n), ..Limit::NONE }
    }
    /// At most `n` bytes.
    pub const fn bytes(n: u64) -> Self {
        Limit { bytes: Some(n), ..Limit::NONE }
    }
    /// This limit without the packet in transmission.
    #[must_use]
    pub const fn waiting_only(self) -> Self {
        Limit { waiting_only: true, ..self }
    }
    /// Does a packet of `bytes` still fit beside what is `waiting` and in transmission (`serving`)?
    #[inline]
    pub const fn admits(self, waiting: Tally, serving: Tally, bytes: u64) -> bool {
        let held = if self.waiting_only { waiting } else { waiting.plus(serving) };
        let packets = match self.packets {
            Some(limit) => held.packets < limit,
            None => true,
        };
        packets
            && match self.bytes {
                Some(limit) => held.bytes.saturating_add(bytes) <= limit,
                None => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_transmission_counts_by_default() {
        let (waiting, serving) = (Tally { packets: 2, bytes: 300 }, Tally { packets: 1, bytes: 100 });
        let admits = |l: Limit, bytes| l.admits(waiting, serving, bytes);
        assert!(!admits(Limit::packets(3), 0) && admits(Limit::packets(4), 0));
        assert!(admits(Limit::packets(3).waiting_only(), 0) && !admits(Limit::packets(2).waiting_only(), 0));
        assert!(admits(Limit::bytes(450), 50) && !admits(Limit::bytes(450), 51));
        assert!(admits(Limit::bytes(450).waiting_only(), 150) && !admits(Limit::bytes(450).waiting_only(), 151));
    }
}
