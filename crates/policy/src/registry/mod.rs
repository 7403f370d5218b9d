//! Names, parameters and profiles: everything that can be chosen, and what must not be chosen together.

mod docs;
mod error;
mod info;
mod params;
mod presets;
mod profile;
mod rules;
#[cfg(test)]
mod tests;

pub use docs::algorithms_markdown;
pub use error::PolicyError;
pub use info::{ParamInfo, Policy, PolicyInfo, Value};
pub use params::Params;
pub use profile::{PolicySet, Profile};

use core::fmt;
use core::str::FromStr;

/// A decision that can be exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Which chunk of new data leaves on which path.
    PathScheduler,
    /// Path of a retransmission.
    Retransmission,
    /// Which marked chunk first.
    RetransmissionOrder,
    /// What counts as a report.
    LossCount,
    /// How many reports, or how much time.
    LossThreshold,
    /// Probes before T3.
    LossTimer,
    /// Why it was lost.
    LossCause,
    /// Congestion window of a path.
    Window,
    /// Limits and grants over all paths.
    Coupling,
    /// Which acknowledged bytes open which window.
    AckCredit,
    /// Retransmission timer.
    Timer,
    /// Which message next.
    StreamScheduler,
    /// When to give up on a message.
    Abandon,
    /// When to send a SACK.
    Acknowledge,
    /// Health of a path.
    PathState,
    /// Copies in spare window.
    Redundancy,
    /// Estimates on their own clock.
    PathQuality,
    /// Parts of the buffers.
    Buffer,
}

impl Hook {
    /// All of them, in the order of the documentation.
    pub const ALL: [Hook; 18] = [
        Hook::PathScheduler,
        Hook::Retransmission,
        Hook::RetransmissionOrder,
        Hook::LossCount,
        Hook::LossThreshold,
        Hook::LossTimer,
        Hook::LossCause,
        Hook::Window,
        Hook::Coupling,
        Hook::AckCredit,
        Hook::Timer,
        Hook::StreamScheduler,
        Hook::Abandon,
        Hook::Acknowledge,
        Hook::PathState,
        Hook::Redundancy,
        Hook::PathQuality,
        Hook::Buffer,
    ];

    /// Its name, which is also its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::PathScheduler => "path_scheduler",
            Hook::Retransmission => "retransmission",
            Hook::RetransmissionOrder => "retransmission_order",
            Hook::LossCount => "loss_count",
            Hook::LossThreshold => "loss_threshold",
            Hook::LossTimer => "loss_timer",
            Hook::LossCause => "loss_cause",
            Hook::Window => "window",
            Hook::Coupling => "coupling",
            Hook::AckCredit => "ack_credit",
            Hook::Timer => "timer",
            Hook::StreamScheduler => "stream_scheduler",
            Hook::Abandon => "abandon",
            Hook::Acknowledge => "acknowledge",
            Hook::PathState => "path_state",
            Hook::Redundancy => "redundancy",
            Hook::PathQuality => "path_quality",
            Hook::Buffer => "buffer",
        }
    }
    /// What it decides.
    pub const fn decides(self) -> &'static str {
        match self {
            Hook::PathScheduler => "which chunk of new data leaves on which path, now",
            Hook::Retransmission => "the path of a retransmission",
            Hook::RetransmissionOrder => "which marked chunk is sent again first, and what shares its packet",
            Hook::LossCount => "what counts as a report that a copy is missing",
            Hook::LossThreshold => "how many reports, or how much time, make a copy lost",
            Hook::LossTimer => "probes before the retransmission timer",
            Hook::LossCause => "why a copy was lost",
            Hook::Window => "congestion window and threshold of a path",
            Hook::Coupling => "limits and grants over the windows of all paths",
            Hook::AckCredit => "which acknowledged bytes open which window",
            Hook::Timer => "floor, restart and back-off of the retransmission timer",
            Hook::StreamScheduler => "which stream's message is cut into chunks next",
            Hook::Abandon => "when a message is given up",
            Hook::Acknowledge => "when a SACK leaves",
            Hook::PathState => "the health of a path, and how often it is probed",
            Hook::Redundancy => "copies or moves in window that new data left free",
            Hook::PathQuality => "estimates on their own clock, published for the others",
            Hook::Buffer => "how paths share the send buffer and the peer's receive buffer",
        }
    }
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
    /// Its policies.
    pub fn policies(self) -> Vec<&'static PolicyInfo> {
        fn infos<T: ?Sized>(table: &'static [Policy<T>]) -> Vec<&'static PolicyInfo> {
            table.iter().map(|p| &p.info).collect()
        }
        match self {
            Hook::PathScheduler => infos(crate::path_scheduler::POLICIES),
            Hook::Retransmission => infos(crate::retransmission::POLICIES),
            Hook::RetransmissionOrder => infos(crate::retransmission_order::POLICIES),
            Hook::LossCount => infos(crate::loss_count::POLICIES),
            Hook::LossThreshold => infos(crate::loss_threshold::POLICIES),
            Hook::LossTimer => infos(crate::loss_timer::POLICIES),
            Hook::LossCause => infos(crate::loss_cause::POLICIES),
            Hook::Window => infos(crate::window::POLICIES),
            Hook::Coupling => infos(crate::coupling::POLICIES),
            Hook::AckCredit => infos(crate::ack_credit::POLICIES),
            Hook::Timer => infos(crate::timer::POLICIES),
            Hook::StreamScheduler => infos(crate::stream_scheduler::POLICIES),
            Hook::Abandon => infos(crate::abandon::POLICIES),
            Hook::Acknowledge => infos(crate::acknowledge::POLICIES),
            Hook::PathState => infos(crate::path_state::POLICIES),
            Hook::Redundancy => infos(crate::redundancy::POLICIES),
            Hook::PathQuality => infos(crate::path_quality::POLICIES),
            Hook::Buffer => infos(crate::buffer::POLICIES),
        }
    }
    /// Its policy called `name`; `-` and `_` are the same.
    pub fn policy(self, name: &str) -> Result<&'static PolicyInfo, PolicyError> {
        let folded = name.replace('-', "_");
        let all = self.policies();
        all.iter().find(|p| p.name == folded).copied().ok_or_else(|| PolicyError::UnknownPolicy {
            hook: self,
            name: name.to_owned(),
            known: all.iter().map(|p| p.name).collect(),
        })
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Hook {
    type Err = PolicyError;
    fn from_str(s: &str) -> Result<Self, PolicyError> {
        let folded = s.replace('-', "_");
        Hook::ALL.into_iter().find(|h| h.name() == folded).ok_or_else(|| PolicyError::UnknownHook {
            name: s.to_owned(),
            known: Hook::ALL.iter().map(|h| h.name()).collect(),
        })
    }
}

/// Every registered policy, hook by hook.
pub fn policies() -> impl Iterator<Item = &'static PolicyInfo> {
    Hook::ALL.into_iter().flat_map(Hook::policies)
}
