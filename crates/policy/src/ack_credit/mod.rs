//! Which acknowledged bytes may open which window.

use crate::asks::every_policy;
use crate::registry::{ParamInfo, Policy};
use crate::view::AssocView;
use anabranch_base::PathId;

/// What a SACK acknowledged on one path.
#[derive(Clone, Copy, Debug)]
pub struct PathAck {
    /// Path the acknowledged bytes were sent on.
    pub path: PathId,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Those of them that the cumulative TSN acknowledged and no gap block.
    pub cumulative_bytes: u64,
    /// The window was full before.
    pub fully_used: bool,
    /// What was expected next of the path was among them (CUC's pseudo-cumulative progress).
    pub oldest_advanced: bool,
    /// The association's cumulative TSN advanced.
    pub cumulative_advanced: bool,
}

impl PathAck {
    /// `bytes` of gap blocks on a path whose window was full, as a starting point for tests.
    pub const fn of(path: PathId, bytes: u64) -> Self {
        PathAck {
            path,
            bytes,
            cumulative_bytes: 0,
            fully_used: true,
            oldest_advanced: false,
            cumulative_advanced: false,
        }
    }
}

/// Which chunk is expected next of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expects {
    /// What left first of all that is in flight on it.
    #[default]
    FirstSent,
    /// The lowest outstanding TSN that was sent once, which it stays when it is lost and repaired on its own path, or the
    /// lowest one that was sent again.
    LowestTsn,
}

/// Credits acknowledged bytes.
pub trait AckCredit: Send {
    every_policy!();
    /// Bytes credited to the path's window.
    fn credit(&self, cx: &AssocView<'_>, ack: &PathAck) -> u64;
    /// What [`PathAck::oldest_advanced`] is about; always the same.
    fn expects(&self) -> Expects {
        Expects::FirstSent
    }
    /// Does it need TSNs that leave in order?
    fn needs_order(&self) -> bool {
        false
    }
}

const WHEN_FULL: ParamInfo = ParamInfo::flag(
    "when_full",
    false,
    "beyond the threshold what is acknowledged cumulatively counts only when the window was full before",
);

/// What a policy with [`WHEN_FULL`] credits where acknowledged bytes count.
fn counted(when_full: bool, cx: &AssocView<'_>, ack: &PathAck) -> u64 {
    let avoidance = cx.path(ack.path).is_some_and(|p| !p.in_slow_start());
    let idle = when_full && avoidance && !ack.fully_used;
    if idle { ack.bytes.saturating_sub(ack.cumulative_bytes) } else { ack.bytes }
}

pub mod cuc;
pub mod cumulative;
pub mod sack_bytes;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn AckCredit>] = &[cumulative::POLICY, cuc::POLICY, sack_bytes::POLICY];
