//! What to do with something unknown (RFC 9260 §3.2 table 2, §3.2.1 table 3).

/// Treatment of an unknown chunk or parameter, given by the top two bits of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownAction {
    /// 00: drop it and everything behind it (in the packet, or in the chunk for a parameter).
    Stop,
    /// 01: as [`Stop`](Self::Stop), and report it to the sender.
    StopReport,
    /// 10: skip it.
    Skip,
    /// 11: skip it and report it to the sender.
    SkipReport,
}

impl UnknownAction {
    /// The action for a chunk type.
    pub const fn of_chunk(kind: u8) -> Self {
        match kind >> 6 {
            0 => UnknownAction::Stop,
            1 => UnknownAction::StopReport,
            2 => UnknownAction::Skip,
            _ => UnknownAction::SkipReport,
        }
    }
    /// The action for a parameter type.
    pub const fn of_parameter(kind: u16) -> Self {
        Self::of_chunk((kind >> 8) as u8)
    }
    /// Does processing end here?
    pub const fn stops(self) -> bool {
        matches!(self, UnknownAction::Stop | UnknownAction::StopReport)
    }
    /// Is it to be reported to the sender?
    pub const fn reports(self) -> bool {
        matches!(self, UnknownAction::StopReport | UnknownAction::SkipReport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_two_bits_decide() {
        assert_eq!(UnknownAction::of_chunk(0x3f), UnknownAction::Stop);
        assert_eq!(UnknownAction::of_chunk(0x40), UnknownAction::StopReport);
        assert_eq!(UnknownAction::of_chunk(0x80), UnknownAction::Skip);
        assert_eq!(UnknownAction::of_chunk(0xc0), UnknownAction::SkipReport);
        assert_eq!(UnknownAction::of_parameter(0x7fff), UnknownAction::StopReport);
        assert_eq!(UnknownAction::of_parameter(0x80ff), UnknownAction::Skip);
        assert!(UnknownAction::StopReport.stops() && UnknownAction::StopReport.reports());
        assert!(!UnknownAction::Skip.stops() && !UnknownAction::Skip.reports());
    }
}
