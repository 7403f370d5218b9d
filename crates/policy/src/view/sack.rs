//! A SACK, as loss detection sees it.

use anabranch_base::{PathSet, Tsn};

/// What a SACK says, before losses are detected.
#[derive(Clone, Copy)]
pub struct SackView<'a> {
    /// Per path: largest packet serial newly acknowledged by unambiguous evidence.
    pub newest_seq: &'a [Option<u64>],
    /// Per path: smallest packet serial newly acknowledged.
    pub oldest_seq: &'a [Option<u64>],
    /// Highest TSN newly acknowledged (RFC 9260's HTNA).
    pub highest_newly_acked: Option<Tsn>,
    /// Highest TSN newly acknowledged by this SACK or another one since the cumulative TSN advanced last.
    pub highest_since_advance: Option<Tsn>,
    /// Paths of which gap blocks newly acknowledged something.
    pub gapped: PathSet,
    /// Did the cumulative TSN advance?
    pub cumulative_advanced: bool,
    /// Packets in flight per path before this SACK was accounted.
    pub flight_before: &'a [u32],
    /// DATA packets the peer counted since its last SACK (DAC); 1 without DAC.
    pub packets_reported: u8,
}

impl SackView<'_> {
    /// A SACK of one packet that acknowledged TSNs up to `highest`, as a starting point for tests.
    pub const fn up_to(highest: Option<Tsn>) -> Self {
        SackView {
            newest_seq: &[],
            oldest_seq: &[],
            highest_newly_acked: highest,
            highest_since_advance: highest,
            gapped: PathSet::EMPTY,
            cumulative_advanced: false,
            flight_before: &[],
            packets_reported: 1,
        }
    }
}
