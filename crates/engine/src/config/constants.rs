//! Constants that go with a profile.

use super::AssocConfig;
use anabranch_base::Duration;
use anabranch_policy::registry::Profile;

/// Constants whose right value depends on what a profile is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Constants {
    /// SACK.Delay.
    pub sack_delay: Duration,
    /// RTO.Max.
    pub rto_max: Duration,
    /// HB.interval.
    pub heartbeat_interval: Duration,
    /// See [`Failure::peer_timeout`](super::Failure::peer_timeout).
    pub peer_timeout: Option<Duration>,
}

impl Constants {
    /// RFC 9260 §16.
    pub const RFC: Constants = Constants {
        sack_delay: Duration::from_millis(200),
        rto_max: Duration::from_secs(60),
        heartbeat_interval: Duration::from_secs(30),
        peer_timeout: None,
    };

    /// For networks that come and go. A small window stands still for SACK.Delay when its last packet is an odd one; that
    /// must be little against a latency. A path that was cut is asked every RTO.Max at least, so that its return is
    /// noticed; an idle one that dies is noticed by HEARTBEATs. All paths may be silent for a minute, as in a tunnel.
    pub const OURS: Constants = Constants {
        sack_delay: Duration::from_millis(20),
        rto_max: Duration::from_secs(3),
        heartbeat_interval: Duration::from_secs(1),
        peer_timeout: Some(Duration::from_secs(60)),
    };

    /// Those of a profile: ours where the profile is, otherwise the RFC's.
    pub fn of(profile: &Profile) -> Self {
        if profile.is_ours() { Self::OURS } else { Self::RFC }
    }

    pub(super) fn apply(self, config: &mut AssocConfig) {
        let Constants { sack_delay, rto_max, heartbeat_interval, peer_timeout } = self;
        config.timers.sack_delay = sack_delay;
        config.timers.rto_max = rto_max;
        config.timers.heartbeat_interval = heartbeat_interval;
        config.failure.peer_timeout = peer_timeout;
    }
}
