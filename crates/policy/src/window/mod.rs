//! Congestion window and threshold of one path. Growth is proposed; coupling scales it; the engine applies it.

use crate::asks::every_policy;
use crate::loss_cause::{Cause, LossEvent, LossKind};
use crate::registry::Policy;
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant, PathId, Rate};

/// Window variables after a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowState {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// `partial_bytes_acked`, bytes.
    pub partial_bytes_acked: u64,
}

/// What an acknowledgement brought to a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckOnPath {
    /// Credited payload bytes (after [`crate::ack_credit`]).
    pub bytes: u64,
    /// Payload bytes newly acknowledged, credited or not.
    pub acked: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The window was full before this acknowledgement.
    pub fully_used: bool,
    /// Largest packet serial newly acknowledged.
    pub newest_seq: Option<u64>,
    /// RTT sample, if this acknowledgement gave one.
    pub rtt: Option<Duration>,
    /// The sender had less to send than the path would have taken while what is acknowledged was under way.
    pub app_limited: bool,
}

impl AckOnPath {
    /// `bytes` of one packet on a path whose window was full, all of them credited, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_base::{Duration, Instant, PathId};
    /// use anabranch_policy::Profile;
    /// use anabranch_policy::view::{AssocView, PathView};
    /// use anabranch_policy::window::AckOnPath;
    ///
    /// let paths = [PathView::idle(PathId(0))];
    /// let mut window = (Profile::named("sctp")?.build(1)?.window)();
    /// let ack = AckOnPath { rtt: Some(Duration::from_millis(40)), ..AckOnPath::of(1_000) };
    /// let change = window.on_ack(&AssocView::of(Instant::ZERO, &paths), PathId(0), &ack);
    /// assert_eq!(change.grow, 1_000, "slow start");
    /// # Ok::<(), anabranch_policy::PolicyError>(())
    /// ```
    pub const fn of(bytes: u64) -> Self {
        AckOnPath { bytes, acked: bytes, packets: 1, fully_used: true, newest_seq: None, rtt: None, app_limited: false }
    }
}

/// A proposed change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowChange {
    /// Bytes to add to cwnd, before coupling.
    pub grow: u64,
    /// New `partial_bytes_acked`.
    pub partial_bytes_acked: u64,
    /// New threshold.
    pub ssthresh: u64,
    /// The window itself, for those that follow a model of the path and neither grow nor recover; `grow` and coupling's
    /// share say nothing then.
    pub set: Option<u64>,
}

/// The window of a path without congestion control, bytes: more than any peer has room for.
pub const UNLIMITED: u64 = 1 << 40;

/// Controls the window of one path; one instance per path.
pub trait Window: Send {
    every_policy!();
    /// Does it control congestion? Without, the window is [`UNLIMITED`] from the beginning, an expiry of T3 holds nothing
    /// back (RFC 9260 §7.2.3), and a path is not left for having been silent.
    fn controls_congestion(&self) -> bool {
        true
    }
    /// Does it set the window itself with every acknowledgement ([`WindowChange::set`])? Then a coupling would change
    /// nothing, and is refused beside it.
    fn sets_itself(&self) -> bool {
        false
    }
    /// A packet with DATA left; `tx_seq` is its serial on this path.
    fn on_sent(&mut self, _now: Instant, _tx_seq: u64, _me: &PathView) {}
    /// Something was acknowledged.
    fn on_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> WindowChange;
    /// Something was lost. Called at every loss; `e.new_episode` tells whether the window may be cut.
    fn on_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState;
    /// May it grow in fast recovery? RFC 9260 §7.2.2 says no.
    fn grows_in_recovery(&self) -> bool {
        false
    }
    /// Is the window halved for each timeout without DATA (RFC 9260 §7.2.1)? The engine keeps the clock.
    fn decays_while_idle(&self) -> bool {
        true
    }
    /// Threshold after that decay, where it was `ssthresh` and the window `cwnd` before: RFC 9260 §7.2.1 sets it to the
    /// window.
    fn idle_threshold(&self, cwnd: u64, _ssthresh: u64) -> u64 {
        cwnd
    }
    /// Does it want to know what a path carries before it sends on it, by a train of padded HEARTBEATs?
    fn wants_train(&self) -> bool {
        false
    }
    /// The train was answered: [`PathView::capacity`] is what it showed, or the least of it where
    /// [`PathView::capacity_may_be_more`]. The window to begin with, bytes.
    fn on_train(&mut self, _now: Instant, _me: &PathView) -> Option<u64> {
        None
    }
    /// Does it pace at all?
    fn paces(&self) -> bool {
        false
    }
    /// Pace at which packets may leave; none means bursts up to Max.Burst.
    fn pace(&self, _me: &PathView) -> Option<Rate> {
        None
    }
}

/// Growth of RFC 9260 §7.2.1 and §7.2.2 from the credited bytes.
pub(crate) fn standard_growth(p: &PathView, ack: &AckOnPath) -> WindowChange {
    if p.in_recovery {
        return WindowChange {
            partial_bytes_acked: p.partial_bytes_acked,
            ssthresh: p.ssthresh,
            ..WindowChange::default()
        };
    }
    growth(p, ack)
}

/// [`standard_growth`], in recovery or not.
pub(crate) fn growth(p: &PathView, ack: &AckOnPath) -> WindowChange {
    let mut change =
        WindowChange { partial_bytes_acked: p.partial_bytes_acked, ssthresh: p.ssthresh, ..WindowChange::default() };
    if p.in_slow_start() {
        if ack.fully_used {
            change.grow = ack.bytes.min(p.mtu);
        }
    } else {
        let partial = p.partial_bytes_acked.saturating_add(ack.bytes);
        change.partial_bytes_acked = match ack.fully_used {
            true if partial >= p.cwnd && ack.bytes > 0 => {
                change.grow = p.mtu;
                partial - p.cwnd
            }
            true => partial,
            false => partial.min(p.cwnd),
        };
    }
    if p.in_flight == 0 {
        change.partial_bytes_acked = 0;
    }
    change
}

/// The variables as they are.
pub(crate) fn unchanged(p: &PathView) -> WindowState {
    WindowState { cwnd: p.cwnd, ssthresh: p.ssthresh, partial_bytes_acked: p.partial_bytes_acked }
}

/// What a loss calls for, before a policy says how far the window falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: inside an episode, or not a sign of congestion.
    Keep,
    /// One cut for the episode.
    Cut,
    /// Start over with one packet. A timeout leaves nothing in flight to clock the path by, whatever its cause.
    Restart,
}

/// Sorts a loss.
pub(crate) fn reaction(e: &LossEvent, cause: Cause) -> Reaction {
    match (e.kind, cause) {
        (LossKind::Timeout, _) => Reaction::Restart,
        (LossKind::FastRetransmit, Cause::Congestion | Cause::PathFailure) if e.new_episode => Reaction::Cut,
        (LossKind::FastRetransmit, _) => Reaction::Keep,
    }
}

/// Window variables after `r` with a threshold computed by the policy.
pub(crate) fn after(r: Reaction, p: &PathView, ssthresh: u64, cwnd_after_cut: u64) -> WindowState {
    match r {
        Reaction::Keep => unchanged(p),
        Reaction::Cut => WindowState { cwnd: cwnd_after_cut, ssthresh, partial_bytes_acked: 0 },
        Reaction::Restart => WindowState { cwnd: p.mtu, ssthresh, partial_bytes_acked: 0 },
    }
}

/// `max(cwnd / 2, 4 PMDCS)` of RFC 9260 §7.2.3.
pub(crate) fn half(p: &PathView) -> u64 {
    half_above(p, 4)
}

/// `max(cwnd / 2, floor PMDCS)`.
pub(crate) fn half_above(p: &PathView, floor: u64) -> u64 {
    (p.cwnd / 2).max(floor * p.mtu)
}

pub mod bandwidth_estimate;
pub mod bbr;
pub mod bbr3;
pub mod bbr_yielding;
pub mod cubic;
pub mod none;
pub mod residual_capacity;
pub mod rfc9260;
pub mod westwood;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Window>] = &[
    rfc9260::POLICY,
    bandwidth_estimate::POLICY,
    bbr::POLICY,
    bbr3::POLICY,
    bbr_yielding::POLICY,
    westwood::POLICY,
    cubic::POLICY,
    none::POLICY,
    residual_capacity::POLICY,
];
