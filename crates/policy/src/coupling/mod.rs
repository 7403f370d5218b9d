//! Limits and grants over all paths of an association.

use crate::asks::every_policy;
use crate::loss_cause::{Cause, LossEvent};
use crate::registry::Policy;
use crate::view::{AssocView, PathView, Signals};
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

impl Growth {
    /// `bytes` acknowledged on a path whose window was full and would grow by as much, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_base::{Instant, PathId, Ppm};
    /// use anabranch_policy::Profile;
    /// use anabranch_policy::coupling::Growth;
    /// use anabranch_policy::view::{AssocView, PathView};
    ///
    /// let paths = [0, 1].map(|i| PathView::idle(PathId(i)));
    /// let mut coupling = Profile::named("cmt")?.build(1)?.coupling;
    /// let granted = coupling.scale(&AssocView::of(Instant::ZERO, &paths), &Growth::of(PathId(1), 1_000));
    /// assert_eq!(granted, Ppm::ONE, "windows are not coupled in this profile");
    /// # Ok::<(), anabranch_policy::PolicyError>(())
    /// ```
    pub const fn of(path: PathId, bytes: u64) -> Self {
        Growth { path, acked: bytes, grow: bytes, fully_used: true }
    }
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
    /// Does it couple windows at all? What does is refused beside windows that it could not change.
    fn couples(&self) -> bool {
        true
    }
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

/// What windows were after the last event, by path: a policy that hears of a loss sees them cut already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before(Vec<u64>);

impl Before {
    /// Windows are these now.
    pub fn note(&mut self, cx: &AssocView<'_>) {
        self.0.clear();
        self.0.extend(cx.paths.iter().map(|p| p.cwnd));
    }
    /// One of them was set since.
    pub fn set(&mut self, to: &Adjust) {
        if let Some(w) = self.0.get_mut(to.path.index()) {
            *w = to.to.cwnd;
        }
    }
    /// The window of `p`, or the one it has where none was noted.
    pub fn of(&self, p: &PathView) -> u64 {
        self.0.get(p.id.index()).copied().unwrap_or(p.cwnd)
    }
    /// Window by round trip of a path in use, bytes a second; none without a round trip.
    pub fn rate(&self, p: &PathView) -> Option<f64> {
        (p.state.usable() && !p.srtt.is_zero()).then(|| self.of(p) as f64 / p.srtt.as_secs_f64())
    }
    /// The sum of those rates.
    pub fn rate_sum(&self, cx: &AssocView<'_>) -> f64 {
        cx.active().filter_map(|p| self.rate(p)).sum()
    }
}

pub mod balia;
pub mod friendliness_window;
pub mod lia;
pub mod olia;
pub mod one_flow;
pub mod resource_pooling;
pub mod shared_bottleneck;
pub mod uncoupled;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Coupling>] = &[
    uncoupled::POLICY,
    lia::POLICY,
    olia::POLICY,
    balia::POLICY,
    resource_pooling::POLICY,
    shared_bottleneck::POLICY,
    one_flow::POLICY,
    friendliness_window::POLICY,
];
