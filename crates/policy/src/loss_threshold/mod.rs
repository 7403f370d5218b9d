//! How many reports, or how much time, make a copy lost.

use crate::view::{AssocView, CopyView, SackView};
use anabranch_base::Instant;

/// Is it lost?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not yet.
    Waiting,
    /// Lost: mark it.
    Lost,
    /// Lost at this instant unless acknowledged before.
    LostAt(Instant),
}

/// Judges a copy with at least one report.
pub trait LossThreshold: Send {
    /// The verdict on `copy`, whose `misses` contains this SACK's reports.
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict;
}
