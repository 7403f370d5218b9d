//! How long timers run.

use super::Constants;
use anabranch_base::Duration;

/// Retransmission, acknowledgement and heartbeat timers. RTO.Min, RTO.Alpha and RTO.Beta are the timer policy's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timers {
    /// RTO.Initial, for timers that no path policy governs (T1).
    pub rto_initial: Duration,
    /// RTO.Max: the longest that any timer waits for an answer, T3 included, whatever the timer policy has as its own.
    pub rto_max: Duration,
    /// The largest timeout of INIT and COOKIE ECHO (RFC 6458 §8.1.3, `sinit_max_init_timeo`); none is `rto_max`.
    pub max_init_timeout: Option<Duration>,
    /// SACK.Delay, at most 500 ms.
    pub sack_delay: Duration,
    /// HB.interval. Zero sends none on a path that is confirmed, as [`HeartbeatSetting::Off`](crate::HeartbeatSetting) does
    /// path by path: an idle path that dies goes unnoticed then, and one that failed is tried again only
    /// by what is sent when no other is left. Paths are still confirmed, and a path state policy may still ask a path in
    /// use that falls silent.
    pub heartbeat_interval: Duration,
    /// HB.Max.Burst: probes of unconfirmed addresses per RTO (RFC 9260 §5.4), at least 1.
    pub heartbeat_max_burst: u16,
}

/// Doublings beyond which every timeout is at its ceiling.
const MAX_DOUBLINGS: u32 = 16;

impl Timers {
    /// `base` doubled so many times (RFC 9260 §6.3.3 E2).
    pub(crate) fn doubled(&self, base: Duration, times: u32) -> Duration {
        double(base, times).min(self.rto_max)
    }

    /// `base` doubled for the chunk that the control timer repeats: INIT and COOKIE ECHO, which are of the `setup`, may
    /// have a ceiling of their own.
    pub(crate) fn doubled_for_control(&self, base: Duration, times: u32, setup: bool) -> Duration {
        double(base, times).min(self.max_init_timeout.filter(|_| setup).unwrap_or(self.rto_max))
    }
}

fn double(base: Duration, times: u32) -> Duration {
    Duration::from_nanos(base.as_nanos().saturating_mul(1 << times.min(MAX_DOUBLINGS)))
}

impl Default for Timers {
    /// RFC 9260 §16.
    fn default() -> Self {
        Timers {
            rto_initial: Duration::from_secs(1),
            rto_max: Constants::RFC.rto_max,
            max_init_timeout: None,
            sack_delay: Constants::RFC.sack_delay,
            heartbeat_interval: Constants::RFC.heartbeat_interval,
            heartbeat_max_burst: 1,
        }
    }
}
