//! What counts as a report that a copy is missing.

use crate::view::{AssocView, CopyView, SackView};

/// Counts reports.
pub trait LossCount: Send {
    /// How many reports this SACK is against `copy` (whose `misses` does not contain them yet).
    fn reports(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> u8;
    /// Counts by send order on a path, so it stays right when TSNs leave permuted.
    fn by_send_order(&self) -> bool {
        true
    }
}
