//! When a recovery episode begins and ends, and what may leave during it.

use crate::asks::every_policy;
use crate::registry::Policy;

/// A loss by reports on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The path is in an episode.
    pub in_episode: bool,
    /// Something lost has a higher TSN than all that had been sent when the last episode began.
    pub beyond: bool,
}

/// What has been acknowledged since an episode began on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// All that had left on the path by then.
    pub own: bool,
    /// All that had been sent by then on any path, cumulatively.
    pub all: bool,
}

/// The one packet that may leave whatever the window says (RFC 9260 §7.2.4 step 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// No packet.
    No,
    /// On any path, until it was used.
    Anywhere,
    /// On any path, until the next SACK.
    BeforeNextSack,
    /// On the path that lost something or not at all, until the next SACK.
    OnItsPath,
}

/// When Max.Burst applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bursts {
    /// At every sending opportunity (RFC 9260 §6.1 D).
    Always,
    /// From the first SACK on that acknowledges what was sent again.
    OnceRepaired,
    /// From a SACK that acknowledges a fast retransmission until the limit was met once, for all paths together.
    AfterRepair,
}

/// Rules of recovery.
pub trait Recovery: Send {
    every_policy!();
    /// Does a loss by reports begin an episode, for which the window is cut? A timeout always does.
    fn begins(&self, l: &Loss) -> bool;
    /// Does one that the cause hook puts down to radio? Where it does, the window does not grow, and what a queue drops
    /// before the episode is over cuts nothing.
    fn radio_begins(&self) -> bool {
        true
    }
    /// Is the episode of a path over?
    fn over(&self, p: &Progress) -> bool;
    /// Does an expiry of T3 end it?
    fn timeout_ends(&self) -> bool {
        true
    }
    /// What a SACK that declares something lost lets leave; `begins` says that an episode began.
    fn pass(&self, begins: bool) -> Pass;
    /// No new data leave on any path while something waits to be sent again.
    fn repairs_first(&self) -> bool {
        false
    }
    /// What was declared lost keeps its place in the window of its path and in the peer's, as far as new data are
    /// concerned, until it was sent again.
    fn holds_place(&self) -> bool {
        false
    }
    /// When Max.Burst applies.
    fn bursts(&self) -> Bursts {
        Bursts::Always
    }
}

pub mod ns2_cmt;
pub mod ns2_sctp;
pub mod rfc9260;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn Recovery>] = &[rfc9260::POLICY, ns2_sctp::POLICY, ns2_cmt::POLICY];
