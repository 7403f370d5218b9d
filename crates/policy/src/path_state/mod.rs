//! Health of a path.

use crate::asks::{Asks, every_policy};
use crate::registry::Policy;
use crate::view::{AssocView, PathState, PathView};
use anabranch_base::{Duration, Instant};

/// Judges paths.
pub trait PathStatePolicy: Send {
    every_policy!(SUSPECT);
    /// State after a T3 expiry or an unanswered heartbeat, errors already counted. `max_retrans` is Path.Max.Retrans.
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState;
    /// Errors above which data leaves a path: PFMR, or Path.Max.Retrans where nothing comes before it.
    fn leaves_above(&self, max_retrans: u16) -> u16;
    /// Is a path potentially failed even when there is no other (RFC 7829 §3.2)? A policy that acts long before a
    /// timeout waits for one that says more.
    fn doubts_the_only_path(&self) -> bool {
        !self.asks().any(Asks::SUSPECT)
    }
    /// Delay until the next HEARTBEAT of `p`; none switches them off. Jitter is the engine's.
    fn heartbeat(&self, p: &PathView, rto: Duration, interval: Duration) -> Option<Duration>;
    /// When an active path becomes suspected unless it is heard of before; none never suspects.
    fn suspect_at(&self, _cx: &AssocView<'_>, _p: &PathView) -> Option<Instant> {
        None
    }
    /// Does what is in flight on an active path say too little, so that a HEARTBEAT has to be unanswered too?
    fn needs_probe(&self, _p: &PathView) -> bool {
        false
    }
    /// When that HEARTBEAT leaves, if it should before the path would be suspected.
    fn ask_at(&self, _p: &PathView) -> Option<Instant> {
        None
    }
    /// When the engine should look at an active path, unless it is heard of before.
    fn look_at(&self, cx: &AssocView<'_>, p: &PathView) -> Option<Instant> {
        let suspect_at = self.suspect_at(cx, p)?;
        let ask_at = if p.asked_at.is_none() { self.ask_at(p) } else { None };
        Some(ask_at.map_or(suspect_at, |t| t.min(suspect_at)))
    }
    /// Packets that the window of an idle path holds at least when it takes over what another one held; 0 leaves it.
    fn takeover_packets(&self) -> u32 {
        0
    }
}

/// Heartbeats of RFC 9260 §8.3: once per interval plus timeout; once per timeout while a path is unconfirmed
/// (§5.4) or potentially failed (RFC 7829 §3).
pub(crate) fn standard_heartbeat(p: &PathView, rto: Duration, interval: Duration) -> Duration {
    match p.state {
        PathState::Unconfirmed | PathState::PotentiallyFailed | PathState::Suspected => rto,
        PathState::Active | PathState::Inactive => interval + rto,
    }
}

/// RFC 7829 §3: above `pfmr` errors potentially failed, above `max_retrans` inactive.
pub(crate) fn with_potential_failure(p: &PathView, pfmr: u16, max_retrans: u16) -> PathState {
    match p.errors {
        e if e > max_retrans => PathState::Inactive,
        e if e > pfmr && p.state != PathState::Unconfirmed && p.state != PathState::Inactive => {
            PathState::PotentiallyFailed
        }
        _ => p.state,
    }
}

pub mod path_truth;
pub mod potentially_failed;
pub mod rfc9260;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn PathStatePolicy>] =
    &[rfc9260::POLICY, potentially_failed::POLICY, path_truth::POLICY];
