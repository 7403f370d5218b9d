//! When a SACK leaves.

use crate::asks::every_policy;
use crate::registry::Policy;
use anabranch_base::{Duration, Instant, Ppm};

/// The receiver's state after a packet with DATA was processed.
#[derive(Clone, Copy, Debug)]
pub struct ReceiveView {
    /// Current time.
    pub now: Instant,
    /// DATA packets since the last SACK, this one included.
    pub packets_since_sack: u32,
    /// Bytes of payload in this packet.
    pub bytes: u32,
    /// Bytes of SACKs as a share of the payload that came, lately.
    pub way_back: Ppm,
    /// There is a gap, or this packet closed one.
    pub gap: bool,
    /// There is a gap still.
    pub gap_left: bool,
    /// This packet held only duplicates.
    pub duplicates_only: bool,
    /// The peer reads how many packets a SACK answers.
    pub counted: bool,
    /// A chunk asked for it (RFC 9260 §3.3.1 I bit), or it is the association's first DATA.
    pub immediate: bool,
    /// When the last SACK left that answered data by this packet's path.
    pub last_sack: Option<Instant>,
    /// When the association's first DATA came.
    pub first_data: Option<Instant>,
    /// The user's delay bound, at most 500 ms (RFC 9260 §6.2).
    pub delay: Duration,
}

impl ReceiveView {
    /// After the `n`th packet in order since the last SACK, with the delay of RFC 9260 §6.2, as a starting point for tests.
    pub const fn in_order(now: Instant, n: u32) -> Self {
        ReceiveView {
            now,
            packets_since_sack: n,
            bytes: 100,
            way_back: Ppm(0),
            gap: false,
            gap_left: false,
            duplicates_only: false,
            counted: false,
            immediate: false,
            last_sack: None,
            first_data: None,
            delay: Duration::from_millis(200),
        }
    }
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckWhen {
    /// With this packet's answer.
    Now,
    /// At this instant at the latest.
    By(Instant),
}

/// Decides when a SACK leaves.
pub trait Acknowledge: Send {
    every_policy!();
    /// The decision.
    fn decide(&self, v: &ReceiveView) -> AckWhen;
}

pub mod at_intervals;
pub mod delayed_ack_cmt;
pub mod immediate;
pub mod rfc9260;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Acknowledge>] =
    &[rfc9260::POLICY, delayed_ack_cmt::POLICY, immediate::POLICY, at_intervals::POLICY];
