//! Health of a path.

use crate::view::{AssocView, PathState, PathView};
use anabranch_base::{Duration, Instant};

/// Judges paths.
pub trait PathStatePolicy: Send {
    /// State after a T3 expiry or an unanswered heartbeat, errors already counted. `max_retrans` is Path.Max.Retrans.
    fn after_timeout(&self, p: &PathView, max_retrans: u16) -> PathState;
    /// Delay until the next HEARTBEAT of `p`; none switches them off. Jitter is the engine's.
    fn heartbeat(&self, p: &PathView, rto: Duration, interval: Duration) -> Option<Duration>;
    /// When an active path becomes suspected unless it is heard of before; none never suspects.
    fn suspect_at(&self, _cx: &AssocView<'_>, _p: &PathView) -> Option<Instant> {
        None
    }
}
