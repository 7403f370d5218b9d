//! When paths and peers are given up (RFC 9260 §8, RFC 7829).

use super::Constants;
use anabranch_base::Duration;
use anabranch_policy::view::PathState;

/// Errors that a path, the peer and the handshake may make before they are given up, and what follows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// Association.Max.Retrans.
    pub max_association_retrans: u16,
    /// A peer that leaves what it is sent unanswered, HEARTBEATs at least, is given up so long after the first packet
    /// that it did not answer, and Association.Max.Retrans then counts for the handshake and the shutdown alone: how soon
    /// errors add up depends on round trips, how long an outage lasts does not. An association that has nothing to send
    /// and no HEARTBEATs asks nothing, so it is never given up. None counts (RFC 9260 §8.1).
    pub peer_timeout: Option<Duration>,
    /// Path.Max.Retrans.
    pub max_path_retrans: u16,
    /// Max.Init.Retransmits.
    pub max_init_retrans: u16,
    /// Primary.Switchover.Max.Retrans (RFC 7829 §5): more errors than this on the primary path make the path that is used
    /// in its place the primary one, so that traffic stays there. At least what makes data leave a path, see
    /// [`AssocConfig::check`](crate::AssocConfig::check). None gives the old primary its traffic back.
    pub primary_switchover: Option<u16>,
    /// Users see which paths are potentially failed, or suspected. Otherwise those are active to them until they are
    /// inactive (RFC 7829 §3.2, rule 12).
    pub expose_potentially_failed: bool,
    /// A peer that does not answer any more gets an ABORT when we give up (RFC 9260 §8.1 leaves that open): it may hear
    /// us although we do not hear it.
    pub abort_when_given_up: bool,
}

impl Failure {
    /// What the user sees of a path's state.
    pub(crate) fn shown(&self, state: PathState) -> PathState {
        match state {
            PathState::PotentiallyFailed | PathState::Suspected if !self.expose_potentially_failed => PathState::Active,
            s => s,
        }
    }
}

impl Default for Failure {
    /// RFC 9260 §16.
    fn default() -> Self {
        Failure {
            max_association_retrans: 10,
            peer_timeout: Constants::RFC.peer_timeout,
            max_path_retrans: 5,
            max_init_retrans: 8,
            primary_switchover: None,
            expose_potentially_failed: true,
            abort_when_given_up: false,
        }
    }
}
