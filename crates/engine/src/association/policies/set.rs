//! The policies of an association, and what they want to be asked.

use super::timeouts::RtoLimits;
use crate::config::{AssocConfig, Timers};
use anabranch_base::{Duration, Instant};
use anabranch_policy::Asks;
use anabranch_policy::ack_credit::Expects;
use anabranch_policy::registry::{PolicyError, PolicySet};
use anabranch_policy::timer::{Earliest, Timed};
use core::ops::{Deref, DerefMut};

/// Least time between two ticks of the quality estimator.
const QUALITY_TICK: Duration = Duration::from_millis(1);

/// Answers that are always the same, and that packets and acknowledgements depend on.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Rules {
    earliest: Earliest,
    timed: Timed,
    expects: Expects,
}

impl Rules {
    fn of(set: &PolicySet) -> Rules {
        Rules { earliest: set.timer.earliest(), timed: set.timer.timed(), expects: set.ack_credit.expects() }
    }
}

/// A set of policies. Most have no use for most questions, and asking costs.
pub(crate) struct Policies {
    set: PolicySet,
    asks: Asks,
    rules: Rules,
    /// Built by the user and not from the profile.
    users_own: bool,
    /// Least time of the quality estimator's next tick.
    quality_floor: Instant,
    pub(super) rto: RtoLimits,
}

impl Policies {
    /// A set that the user built.
    pub fn of_user(set: PolicySet, timers: &Timers) -> Policies {
        Policies { users_own: true, ..Policies::new(set.asks(), set, timers) }
    }

    /// The set of the profile of `config`.
    ///
    /// # Errors
    /// A policy that cannot be built.
    pub fn of_profile(config: &AssocConfig) -> Result<Policies, PolicyError> {
        let set = config.profile.build(config.seed)?;
        Ok(Policies::new(config.profile.asks(), set, &config.timers))
    }

    /// `asks` are those of the set.
    fn new(asks: Asks, set: PolicySet, timers: &Timers) -> Policies {
        debug_assert_eq!(asks, set.asks(), "constant for the life of a policy");
        Policies {
            asks,
            rules: Rules::of(&set),
            set,
            users_own: false,
            quality_floor: Instant::ZERO,
            rto: RtoLimits::of(timers),
        }
    }

    /// Does any policy want to be asked one of these?
    #[inline]
    pub fn ask(&self, what: Asks) -> bool {
        self.asks.any(what)
    }

    /// What they want to be asked.
    pub fn asks(&self) -> Asks {
        self.asks
    }

    /// Were they built by the user, and not from the profile?
    pub fn are_users_own(&self) -> bool {
        self.users_own
    }

    /// Policies of the set were exchanged.
    pub fn exchange(&mut self, with: impl FnOnce(&mut PolicySet)) {
        with(&mut self.set);
        self.asks = self.set.asks();
        self.rules = Rules::of(&self.set);
    }

    /// T3 is for the lowest TSN of a path, not for what left first.
    #[inline]
    pub fn times_lowest_tsn(&self) -> bool {
        self.rules.earliest != Earliest::FirstSent
    }

    /// T3 starts anew where the lowest TSN of a path is sent again.
    #[inline]
    pub fn repeats_restart_t3(&self) -> bool {
        self.rules.earliest == Earliest::LowestTsn
    }

    /// Only an acknowledgement stops T3 or starts it anew, also where all that is in flight was given as lost.
    #[inline]
    pub fn t3_runs_on(&self) -> bool {
        self.rules.earliest == Earliest::Acknowledged
    }

    /// One chunk of a path is timed at a time.
    #[inline]
    pub fn times_one(&self) -> bool {
        self.rules.timed == Timed::OneAtATime
    }

    /// What was sent again is timed, too.
    #[inline]
    pub fn times_repeated(&self) -> bool {
        self.rules.timed == Timed::Repeated
    }

    /// The next progress of a path is its lowest TSN, not what left first.
    #[inline]
    pub fn expects_lowest_tsn(&self) -> bool {
        self.rules.expects == Expects::LowestTsn
    }

    /// Is something of each path followed by its TSN?
    pub fn follow_tsns(&self) -> bool {
        self.rules != Rules::default()
    }

    /// For an association that takes the place of this one.
    pub fn begin_anew(self, timers: &Timers) -> Policies {
        Policies { users_own: self.users_own, ..Policies::new(self.asks, self.set, timers) }
    }

    /// When the quality estimator ticks next. One that always asks for the past must not stop the time.
    pub fn quality_wakeup(&self) -> Option<Instant> {
        self.set.path_quality.wakeup().map(|t| t.max(self.quality_floor))
    }

    /// The quality estimator ticks now.
    pub fn begin_quality_tick(&mut self, now: Instant) {
        self.quality_floor = now + QUALITY_TICK;
    }
}

impl Deref for Policies {
    type Target = PolicySet;
    fn deref(&self) -> &PolicySet {
        &self.set
    }
}

impl DerefMut for Policies {
    fn deref_mut(&mut self) -> &mut PolicySet {
        &mut self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::path_quality::PathQuality;
    use anabranch_policy::registry::Profile;

    fn policies(profile: &str) -> Policies {
        Policies::of_profile(&AssocConfig::new(Profile::named(profile).expect("a profile"))).expect("policies")
    }

    /// One that wants its tick for ever.
    struct Hasty;

    impl PathQuality for Hasty {
        fn wakeup(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
    }

    #[test]
    fn what_is_exchanged_is_asked_from_then_on() {
        let mut p = policies("sctp");
        assert!(!p.ask(Asks::QUALITY));
        p.exchange(|set| set.path_quality = Box::new(Hasty));
        assert!(p.ask(Asks::QUALITY));
        let former = policies("sctp").set.path_quality;
        p.exchange(|set| set.path_quality = former);
        assert!(!p.ask(Asks::QUALITY));
    }

    /// Or an endpoint would be woken for the time that it is, without end.
    #[test]
    fn an_estimator_that_asks_for_the_past_does_not_stop_the_time() {
        let mut p = policies("sctp");
        p.exchange(|set| set.path_quality = Box::new(Hasty));
        let now = Instant::from_millis(1_000);
        p.begin_quality_tick(now);
        assert!(p.quality_wakeup().is_some_and(|t| t > now), "{:?}", p.quality_wakeup());
    }
}
