//! What counts as a report that a copy is missing.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, CopyView, SackView};

/// Counts reports.
pub trait LossCount: Send {
    every_policy!();
    /// How many reports this SACK is against `copy` (whose `misses` does not contain them yet).
    fn reports(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> u8;
}

/// In fast recovery a SACK that advances the cumulative TSN is a report against every hole (RFC 9260 §7.2.4). What
/// was reported before is a hole; what nothing newer has overtaken yet is merely on its way.
pub(crate) fn hole_in_recovery(cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> bool {
    sack.cumulative_advanced && copy.misses > 0 && cx.path(copy.path).is_some_and(|p| p.in_recovery)
}

pub mod delayed_ack_cmt;
pub mod per_path;
pub mod tsn;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossCount>] = &[tsn::POLICY, per_path::POLICY, delayed_ack_cmt::POLICY];
