//! How fast data leaves before policies decide, and what waits to fill a packet.

use crate::settings::Nagle;

/// First windows, bursts and Nagle's algorithm.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sending {
    /// First window of a path, payload bytes; none is RFC 9260 §7.2.1's.
    pub initial_window: Option<u64>,
    /// First slow-start threshold of a path, payload bytes; arbitrarily high by default (RFC 9260 §7.2.1).
    pub initial_ssthresh: u64,
    /// Max.Burst, packets per sending opportunity and path; 0 is unlimited.
    pub max_burst: u16,
    /// What less than a packet waits for while something is outstanding.
    pub nagle: Nagle,
}

impl Default for Sending {
    fn default() -> Self {
        Sending { initial_window: None, initial_ssthresh: u64::from(u32::MAX), max_burst: 4, nagle: Nagle::Off }
    }
}
