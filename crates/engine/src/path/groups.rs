//! What belongs together of a [`Path`](super::Path).

use super::*;

/// The congestion window and what governs it (RFC 9260 §7).
pub(crate) struct Congestion {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub partial_bytes_acked: u64,
    /// Growth that coupling granted only in part, in millionths of a byte.
    pub growth_carry: u64,
    pub window: Box<dyn Window>,
    pub reference_rtt: Duration,
    /// Fast recovery ends when nothing sent at or before this serial is in flight.
    pub recovery_exit: Option<u64>,
    /// Highest TSN sent when the last recovery episode began.
    pub recover_tsn: u64,
    /// One packet may ignore the window (RFC 9260 §7.2.4 step 3, §6.3.3 E3).
    pub free_pass: bool,
    pub burst_left: u16,
    /// Until when the window's decay while idle is accounted for.
    pub decayed_until: Instant,
}
