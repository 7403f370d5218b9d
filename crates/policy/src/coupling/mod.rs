//! Limits and grants over all paths of an association.

use crate::asks::every_policy;
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::Policy;
use crate::view::{AssocView, Signals};
use crate::window::WindowState;
use anabranch_base::{PathId, Ppm};

/// A credited acknowledgement, with the growth the path's window proposed.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Path the acknowledged bytes were sent on.
    pub path: PathId,
    /// Credited bytes.
    pub acked: u64,
    /// Proposed growth, bytes.
    pub grow: u64,
    /// The window was full before the acknowledgement.
    pub fully_used: bool,
}

/// A window set from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjust {
    /// Path whose window is set.
    pub path: PathId,
    /// New values of the window variables.
    pub to: WindowState,
}

/// Couples the windows of all paths. Sees views, never a sibling's controller.
pub trait Coupling: Send {
    every_policy!(ADJUST, PUBLISH);
    /// Share of the proposed growth that is granted, for every credited acknowledgement, also with growth 0.
    /// The engine keeps the remainder.
    fn scale(&mut self, _cx: &AssocView<'_>, _g: &Growth) -> Ppm {
        Ppm::ONE
    }
    /// A loss, after the path's window reacted.
    fn on_loss(&mut self, _cx: &AssocView<'_>, _e: &LossEvent, _cause: Cause) {}
    /// Once per SACK or timer event, and when a path came or went: windows to set.
    fn adjust(&mut self, _cx: &AssocView<'_>, _out: &mut Vec<Adjust>) {}
    /// Association-wide window for the board.
    fn aggregate_window(&self) -> Option<u64> {
        None
    }
    /// Facts for the board.
    fn publish(&self, _p: PathId, _board: &mut Signals) {}
}

pub mod friendliness_window;
pub mod lia;
pub mod uncoupled;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Coupling>] = &[uncoupled::POLICY, lia::POLICY, friendliness_window::POLICY];
