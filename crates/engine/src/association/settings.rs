//! What the sockets API shows of an association, and limits that its user changes while it lives (RFC 6458 §8).

use super::Association;
use crate::association::policies::facts;
use crate::config::AssocConfig;
use crate::path::{HeartbeatSetting, PathLimits};
use crate::settings::Nagle;
use anabranch_base::{Duration, Instant, PathId, PathSet, StreamId, Tsn};
use anabranch_policy::registry::{PolicyError, Profile};
use std::sync::Arc;

/// What both ends of an association announced, and so use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreed {
    /// PR-SCTP (RFC 3758).
    pub partial_reliability: bool,
    /// ASCONF (RFC 5061).
    pub dynamic_addresses: bool,
    /// AUTH (RFC 4895).
    pub authentication: bool,
    /// RE-CONFIG (RFC 6525).
    pub stream_reset: bool,
    /// I-DATA (RFC 8260).
    pub interleaving: bool,
    /// ECN.
    pub ecn: bool,
}

impl Association {
    /// What both ends can do; nothing before the handshake said it.
    pub fn agreed(&self) -> Agreed {
        Agreed {
            partial_reliability: self.peer.forward_tsn,
            dynamic_addresses: self.peer.asconf,
            authentication: self.handshake.auth().works(),
            stream_reset: self.peer.reconfig,
            interleaving: self.peer.interleaving,
            ecn: self.peer.ecn,
        }
    }

    /// Its configuration, with what was set since.
    pub fn config(&self) -> &AssocConfig {
        &self.config
    }

    /// What the peer's receive buffer still takes, bytes: its last a_rwnd without what is outstanding (RFC 9260 §6.2.1).
    pub fn peer_window(&self) -> u64 {
        self.sender.peer_rwnd(&self.policies)
    }

    /// Where new data goes while one path carries all.
    pub fn primary(&self) -> PathId {
        self.paths.primary()
    }

    /// Where new data may leave now: what the path scheduler would be offered.
    pub fn open_paths(&self, now: Instant) -> PathSet {
        facts::eligible(now, &self.paths, &self.sender, &self.policies)
    }

    /// DATA chunks that were given a TSN and are not acknowledged.
    pub fn outstanding_chunks(&self) -> u64 {
        self.sender.outstanding_chunks()
    }

    /// Highest TSN up to which everything was received.
    pub fn cumulative_tsn(&self) -> Tsn {
        self.receiver.cum()
    }

    /// Other limits of the RTO from now on: the timer policy of `profile`, RTO.Initial for the timers that no path policy
    /// governs, and RTO.Max for all. Timers that run keep their deadline.
    ///
    /// # Errors
    /// A policy that cannot be built; nothing changes.
    pub fn set_rto_limits(&mut self, profile: Profile, initial: Duration, max: Duration) -> Result<(), PolicyError> {
        let built = profile.build(self.config.seed)?.timer;
        self.policies.exchange(|set| set.timer = built);
        self.follow_tsns();
        let config = Arc::make_mut(&mut self.config);
        config.profile = profile;
        (config.timers.rto_initial, config.timers.rto_max) = (initial, max);
        self.policies.limit_rto(&config.timers);
        Ok(())
    }

    /// RTO.Initial from now on, for the timers that no path policy governs: a handshake may have had another. Timers that
    /// run keep their deadline.
    pub fn set_rto_initial(&mut self, initial: Duration) {
        Arc::make_mut(&mut self.config).timers.rto_initial = initial;
        self.policies.limit_rto(&self.config.timers);
    }

    /// Whether less than a packet waits while something is outstanding , from now on.
    pub fn set_nagle(&mut self, nagle: Nagle) {
        Arc::make_mut(&mut self.config).sending.nagle = nagle;
    }

    /// Another stream scheduler from now on, that of `profile` (RFC 8260 §4.3.2). What has a TSN keeps its place, and
    /// with DATA the message that is being cut ends first. Values of streams stay.
    ///
    /// # Errors
    /// A policy that cannot be built; nothing changes.
    pub fn set_stream_scheduler(&mut self, profile: Profile) -> Result<(), PolicyError> {
        let built = profile.build(self.config.seed)?.stream_scheduler;
        self.policies.exchange(|set| set.stream_scheduler = built);
        self.sender.rearrange();
        Arc::make_mut(&mut self.config).profile = profile;
        Ok(())
    }

    /// Does anything wait on `stream` that has not been given a TSN?
    pub fn has_unsent(&self, stream: StreamId) -> bool {
        self.sender.holds(stream)
    }

    /// Is a request to reset or to add streams under way, or waiting (RFC 6525 §5.1.1)?
    pub fn is_reconfiguring(&self) -> bool {
        !self.stream_reset.is_idle()
    }

    /// When user data left or came last; none before the first.
    pub fn last_user_data(&self) -> Option<Instant> {
        self.sender.user_data_at()
    }

    /// Other thresholds for the failure of paths from now on: the path state policy of `profile`, and
    /// [`Failure::primary_switchover`](crate::config::Failure::primary_switchover). States and counts stay until the next error.
    ///
    /// # Errors
    /// As [`AssocConfig::check`]; nothing changes.
    pub fn set_path_thresholds(&mut self, profile: Profile, switchover: Option<u16>) -> Result<(), PolicyError> {
        let mut wanted = self.config().clone();
        (wanted.profile, wanted.failure.primary_switchover) = (profile, switchover);
        wanted.check()?;
        let built = wanted.profile.build(wanted.seed)?.path_state;
        self.policies.exchange(|set| set.path_state = built);
        self.config = Arc::new(wanted);
        Ok(())
    }

    /// Limits that a path has of its own; none when there is no such path.
    pub fn path_limits(&self, path: PathId) -> Option<PathLimits> {
        self.paths.get(path.index()).map(|p| p.health.limits())
    }

    /// Limits that a path has of its own from now on. False when there is no such path.
    pub fn set_path_limits(&mut self, path: PathId, limits: PathLimits) -> bool {
        let Some(p) = self.paths.get_mut(path.index()) else { return false };
        p.health.limit(limits);
        true
    }

    /// How often a path is probed; none when there is no such path.
    pub fn heartbeat_setting(&self, path: PathId) -> Option<HeartbeatSetting> {
        self.paths.get(path.index()).map(|p| p.probing.setting())
    }

    /// Association.Max.Retrans and Path.Max.Retrans from now on; none leaves what was there. Paths that have limits of
    /// their own keep them.
    pub fn set_max_retrans(&mut self, association: Option<u16>, path: Option<u16>) {
        let config = Arc::make_mut(&mut self.config);
        if let Some(most) = association {
            // Who names a count wants it to end the association.
            (config.failure.max_association_retrans, config.failure.peer_timeout) = (most, None);
        }
        config.failure.max_path_retrans = path.unwrap_or(config.failure.max_path_retrans);
    }
}
