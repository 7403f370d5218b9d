//! How many reports, or how much time, make a copy lost.

use crate::asks::every_policy;
use crate::registry::Policy;
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
    every_policy!();
    /// The verdict on `copy`, whose `misses` contains this SACK's reports.
    fn judge(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> Verdict;
    /// May a chunk that was fast-retransmitted be judged lost again (time-based detection only)?
    fn repeats(&self) -> bool {
        false
    }
}

/// Reports a standard fast retransmit needs (RFC 9260 §7.2.4).
pub(crate) const STANDARD_REPORTS: u8 = 3;

/// Lost once `needed` reports are in, once per chunk (RFC 9260 §7.2.4 step 5).
pub(crate) fn after_reports(copy: &CopyView, needed: u8) -> Verdict {
    if copy.misses >= needed && !copy.chunk.fast_retransmitted { Verdict::Lost } else { Verdict::Waiting }
}

pub mod early_retransmit;
pub mod rack;
pub mod thin;
pub mod three;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossThreshold>] =
    &[three::POLICY, thin::POLICY, early_retransmit::POLICY, rack::POLICY];
