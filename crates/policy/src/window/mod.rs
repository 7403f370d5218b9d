//! Congestion window and threshold of one path. Growth is proposed; coupling scales it; the engine applies it.

use crate::loss_cause::{Cause, LossEvent};
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Rate};

/// Window variables after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowState {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// `partial_bytes_acked`, bytes.
    pub partial_bytes_acked: u64,
}

/// What an acknowledgement brought to a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckOnPath {
    /// Credited payload bytes (after [`crate::ack_credit`]).
    pub bytes: u64,
    /// Payload bytes newly acknowledged, credited or not.
    pub acked: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The window was full before this acknowledgement.
    pub fully_used: bool,
    /// Largest packet serial newly acknowledged.
    pub newest_seq: Option<u64>,
    /// RTT sample, if this acknowledgement gave one.
    pub rtt: Option<Duration>,
}

/// A proposed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowChange {
    /// Bytes to add to cwnd, before coupling.
    pub grow: u64,
    /// New `partial_bytes_acked`.
    pub partial_bytes_acked: u64,
    /// New threshold.
    pub ssthresh: u64,
}

/// Controls the window of one path; one instance per path.
pub trait Window: Send {
    /// A packet with DATA left; `tx_seq` is its serial on this path.
    fn on_sent(&mut self, _now: Instant, _tx_seq: u64, _me: &PathView) {}
    /// Something was acknowledged.
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange;
    /// Something was lost. Called at every loss; `e.new_episode` tells whether the window may be cut.
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState;
    /// Pace at which packets may leave; none means bursts up to Max.Burst.
    fn pace(&self, _me: &PathView) -> Option<Rate> {
        None
    }
}
