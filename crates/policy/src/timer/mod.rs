//! Retransmission timer: floor, restart, back-off.

use crate::asks::every_policy;
use crate::registry::{ParamInfo, Params, Policy};
pub use crate::thin::Needless;
use crate::view::{AssocView, PathView};
use anabranch_base::{Duration, Instant};

/// Why T3 is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// It was not running.
    Started,
    /// The earliest outstanding chunk was acknowledged and others remain.
    Progress {
        /// Transmission of the chunk that is now the earliest.
        oldest_sent: Instant,
        /// When the timer would have fired.
        old_deadline: Option<Instant>,
    },
}

/// Which outstanding chunk of a path T3 is for: the "earliest" of RFC 9260 §6.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earliest {
    /// What left first. A chunk that is sent again is among the last.
    #[default]
    FirstSent,
    /// The lowest TSN. One that is sent again starts T3 anew, and nothing but its acknowledgement does after that.
    LowestTsn,
    /// The lowest TSN, and T3 runs on where that is sent again: only its acknowledgement starts it anew. What is sent again
    /// and lost again is repeated a timeout after the last progress, not after it left.
    Acknowledged,
}

/// Which chunks give RTT samples and end the back-off (RFC 9260 §6.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timed {
    /// All that were sent once: the newest acknowledged by each SACK.
    #[default]
    Every,
    /// One at a time on each path, and none any more once it was sent again or the window was cut.
    OneAtATime,
    /// Those sent again as well, from when they left last: an answer to an earlier copy is taken for a short round trip,
    /// which Karn's algorithm forbids (RFC 9260 §6.3.1 C5).
    Repeated,
}

/// Rules of T3.
pub trait TimerPolicy: Send {
    every_policy!();
    /// Timeout of `p`, back-off included.
    fn rto(&self, p: &PathView) -> Duration;
    /// When T3 is to fire.
    fn arm(&self, cx: &AssocView<'_>, p: &PathView, _why: Arm) -> Instant {
        cx.now + self.rto(p)
    }
    /// T3 fired; asked before anything leaves the path. Answers the new back-off exponent.
    fn expired(&mut self, p: &PathView) -> u8 {
        p.backoff.saturating_add(1).min(16)
    }
    /// Which chunk it is for; always the same.
    fn earliest(&self) -> Earliest {
        Earliest::FirstSent
    }
    /// What is timed; always the same.
    fn timed(&self) -> Timed {
        Timed::Every
    }
    /// Should what leaves on `p` now be answered without delay (RFC 7053)? `last` says that nothing waits behind it. A
    /// peer that delays its SACKs while little is in flight makes every timeout a guess.
    fn asks_at_once(&self, _p: &PathView, _last: bool) -> bool {
        false
    }
    /// At least how old is what an expiry on `p` gives up beside the oldest packet? An answer to younger ones may be on its
    /// way (RFC 8985 §6.3). None gives up everything (RFC 9260 §6.3.3).
    fn overdue(&self, _p: &PathView) -> Option<Duration> {
        None
    }
    /// The peer had what an expiry repeated on `p`: the timeout was too short.
    fn was_needless(&mut self, _p: &PathView, _needless: Needless) {}
    /// Is a path used at once when it answers after an expiry? What it was overtaken by is then repaired and the rest
    /// timed without back-off. Otherwise T3 stays as it was set (RFC 9260 §6.3.2).
    fn resumes(&self) -> bool {
        false
    }
    /// Does the handshake give both ends a round trip, and the first one that is measured shorten a T3 that runs? A path
    /// without any waits for RTO.Initial (RFC 9260 §6.3.1 C1).
    fn early(&self) -> bool {
        false
    }
    /// While an expiry is not answered one packet may leave beyond the window so long after the last one; none where
    /// T3 alone decides (RFC 9260 §6.3.3, §7.2.3).
    fn probe_interval(&self, _p: &PathView) -> Option<Duration> {
        None
    }
}

/// What a timer's clock and its samples are, where an old stack had others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    tick: Duration,
    pub timed: Timed,
}

impl Clock {
    pub const TICK: ParamInfo =
        ParamInfo::millis("tick", 0, 0, 1_000, "T3 fires on whole ticks of a clock of so long; 0: at any time");
    pub const KARN: ParamInfo =
        ParamInfo::flag("karn", true, "what was sent again gives no round-trip time (Karn's algorithm)");

    pub fn new(p: &Params) -> Self {
        Clock { tick: p.millis("tick"), timed: if p.flag("karn") { Timed::Every } else { Timed::Repeated } }
    }
    /// The first tick at or after `at`.
    pub fn up(&self, at: Instant) -> Instant {
        match self.tick.as_nanos() {
            0 => at,
            tick => Instant::from_nanos(at.as_nanos().div_ceil(tick) * tick),
        }
    }
}

/// Least time ahead that a timer is set.
pub(crate) const TICK: Duration = Duration::from_millis(1);

pub(crate) const RTO_MIN: ParamInfo = ParamInfo::millis("rto_min", 1_000, 10, 60_000, "RTO.Min").not_above("rto_max");
pub(crate) const RTO_INITIAL: ParamInfo =
    ParamInfo::millis("rto_initial", 1_000, 10, 60_000, "RTO.Initial, without a sample");
pub(crate) const RTO_MAX: ParamInfo = ParamInfo::millis("rto_max", 60_000, 100, 3_600_000, "RTO.Max");

pub(crate) const RESUME: ParamInfo =
    ParamInfo::flag("resume", false, "a path that answers after an expiry is used at once, not when T3 fires again");

pub(crate) const PROBE: ParamInfo = ParamInfo::millis(
    "probe",
    0,
    0,
    1_000,
    "after an expiry a packet may leave each two round trips, at least this and at most 1 s; 0: none",
);

pub(crate) const EARLY: ParamInfo = ParamInfo::flag(
    "early",
    false,
    "an end that was connected to has its first round trip from its cookie, and a first one shortens a T3 that runs",
);

/// What our own profiles do beyond the standard after an expiry, and before there is a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Revival {
    pub resume: bool,
    pub probe: Duration,
    pub early: bool,
}

impl Revival {
    const LONGEST: Duration = Duration::from_secs(1);

    pub fn new(p: &Params) -> Self {
        Revival { resume: p.flag("resume"), probe: p.millis("probe"), early: p.flag("early") }
    }
    pub fn probe_interval(&self, p: &PathView) -> Option<Duration> {
        // A spike that is over stays in the smoothed round trip for many of its own length.
        let rtt = if p.mean_rtt.is_zero() { p.srtt } else { p.srtt.min(p.mean_rtt) };
        (!self.probe.is_zero()).then(|| (rtt * 2).max(self.probe).min(Self::LONGEST))
    }
}

/// RTO.Min, RTO.Initial and RTO.Max (RFC 9260 §16).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub min: Duration,
    pub initial: Duration,
    pub max: Duration,
}

impl Limits {
    pub fn new(p: &Params) -> Self {
        Limits { min: p.millis("rto_min"), initial: p.millis("rto_initial"), max: p.millis("rto_max") }
    }
    /// SRTT + 4 RTTVAR with this floor, before back-off (RFC 9260 §6.3.1). A variation of zero counts as one
    /// clock tick (rule G1).
    pub fn base(&self, p: &PathView, floor: Duration) -> Duration {
        if p.srtt.is_zero() {
            return self.initial.min(self.max);
        }
        let variation = if p.rttvar.is_zero() { TICK } else { p.rttvar };
        (p.srtt + variation * 4).max(floor).min(self.max)
    }
    /// Doubled `backoff` times, at most the ceiling.
    pub fn backed_off(&self, base: Duration, backoff: u8) -> Duration {
        (base * (1 << backoff.min(32))).min(self.max)
    }
}

pub mod rfc9260;
pub mod rto_restart;
pub mod thin;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn TimerPolicy>] = &[rfc9260::POLICY, thin::POLICY, rto_restart::POLICY];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};

    #[test]
    fn a_silent_path_is_probed_every_two_round_trips_within_bounds() {
        let revival = Revival { resume: true, probe: ms(50), early: false };
        let mut s = Scene::new(1, 0);
        let mut interval = |srtt, mean, revival: &Revival| {
            (s.paths[0].srtt, s.paths[0].mean_rtt) = (ms(srtt), ms(mean));
            revival.probe_interval(&s.paths[0])
        };
        assert_eq!(interval(200, 100, &revival), Some(ms(200)), "the mean, where a spike is over");
        assert_eq!(interval(200, 0, &revival), Some(ms(400)));
        assert_eq!(interval(10, 10, &revival), Some(ms(50)), "no more often than asked");
        assert_eq!(interval(900, 900, &revival), Some(ms(1_000)), "no more seldom than each second");
        assert_eq!(interval(100, 100, &Revival { probe: ms(0), ..revival }), None);
    }
}
