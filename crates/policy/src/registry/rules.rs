//! Compositions that are refused, each with its reason.
//!
//! What a policy is like is asked of the policy itself wherever its trait can tell.

use super::{Hook, ParamInfo, PolicyError, PolicySet, Profile, Value};
use crate::asks::Asks;

struct Case<'a> {
    profile: &'a Profile,
    set: &'a PolicySet,
    paths: usize,
}

impl Case<'_> {
    fn is(&self, hook: Hook, name: &str) -> bool {
        self.profile.get(hook) == name
    }
    fn inner_is(&self, name: &'static str) -> bool {
        self.profile.value(Hook::PathScheduler, "inner") == Some(Value::Word(name))
    }
    /// New data uses more than one path.
    fn spreads(&self) -> bool {
        self.paths > 1 && !self.is(Hook::PathScheduler, "primary_only") && !self.inner_is("primary_only")
    }
    /// A parameter that was given to the scheduler in between and is none of the wrapped one's.
    fn idle_param(&self) -> Option<&'static ParamInfo> {
        let Some(Value::Word(inner)) = self.profile.value(Hook::PathScheduler, "inner") else { return None };
        let inner = Hook::PathScheduler.policy(inner).ok()?;
        let outer = Hook::PathScheduler.policy(self.profile.get(Hook::PathScheduler)).ok()?;
        let own = |name: &str| name == "inner" || name == "estimate" || inner.params.iter().any(|p| p.name == name);
        let given = |p: &ParamInfo| self.profile.value(Hook::PathScheduler, p.name) != Some(p.default);
        outer.params.iter().find(|p| given(p) && !own(p.name))
    }
    /// A policy of one hook by its name.
    fn named(&self, hook: Hook) -> String {
        format!("{} {}", hook.name(), self.profile.get(hook))
    }
    /// The two that do not go together, where both are of the path scheduler: what wraps and what it wraps, or what it
    /// wraps and a parameter that is another's.
    fn within_scheduler(&self) -> (String, String) {
        let given = |name: &'static str| {
            let value = self.profile.value(Hook::PathScheduler, name);
            format!("{name}={}", value.map(|v| v.to_string()).unwrap_or_default())
        };
        let (outer, inner) = (self.named(Hook::PathScheduler), given("inner"));
        match self.idle_param() {
            Some(p) => (format!("{outer}:{inner}"), given(p.name)),
            None => (outer, inner),
        }
    }
    fn permutes(&self) -> bool {
        self.set.path_scheduler.permutes()
    }
    /// The hook whose policy lives on what an estimator publishes, where there is none.
    fn lacks_estimates(&self) -> Option<Hook> {
        let missing = !self.set.path_quality.asks().any(Asks::QUALITY);
        Hook::ALL.into_iter().find(|h| missing && self.profile.asks_of(*h).any(Asks::ESTIMATES))
    }
}

const NEEDS_ESTIMATES: &str =
    "it decides by what an estimator of path quality measures; use cross_layer or handling_rate";

struct Rule {
    hooks: (Hook, Hook),
    broken: fn(&Case<'_>) -> bool,
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        hooks: (Hook::LossCount, Hook::PathScheduler),
        broken: |c| c.set.loss_count.asks().any(Asks::ALL_COPIES) && c.paths > 1 && (c.spreads() || c.permutes()),
        reason: "reports counted by TSN are false as soon as several paths carry new data or TSNs leave permuted; \
                 count per path (loss_count=per_path)",
    },
    Rule {
        hooks: (Hook::AckCredit, Hook::PathScheduler),
        broken: |c| c.set.ack_credit.needs_order() && c.permutes(),
        reason: "the cumulative TSN stands still while TSNs leave permuted, so windows would starve; \
                 use cuc or sack_bytes",
    },
    Rule {
        hooks: (Hook::Redundancy, Hook::PathScheduler),
        broken: |c| copies_twice(c.profile),
        reason: "every chunk is already on every path, nothing is left to copy; leave redundancy out, or take \
                 redundancy=none",
    },
    Rule {
        hooks: (Hook::Coupling, Hook::Window),
        broken: |c| couples_nothing(c.set) && !(c.set.window)().controls_congestion(),
        reason: "without windows there is nothing to couple; use coupling=uncoupled",
    },
    Rule {
        hooks: (Hook::Coupling, Hook::Window),
        broken: |c| couples_nothing(c.set),
        reason: "this window sets itself by what it measures of its path, whatever a coupling says; \
                 use coupling=uncoupled, or another window",
    },
    Rule {
        hooks: (Hook::PathScheduler, Hook::PathScheduler),
        broken: |c| c.idle_param().is_some(),
        reason: "the parameter is that of a scheduler other than `inner`, and would do nothing; leave it out",
    },
    Rule {
        hooks: (Hook::PathScheduler, Hook::PathScheduler),
        broken: |c| c.is(Hook::PathScheduler, "delay_compensation") && c.inner_is("redundant"),
        reason: "a copy on every path has no single path whose delay could be compensated; take another inner \
                 scheduler, or redundant by itself (path_scheduler=redundant)",
    },
];

/// Are windows to be coupled that follow nothing but themselves?
pub(super) fn couples_nothing(set: &PolicySet) -> bool {
    set.coupling.couples() && (set.window)().sets_itself()
}

/// Is every chunk on every path already, and is more of it to be sent?
pub(super) fn copies_twice(profile: &Profile) -> bool {
    profile.asks_of(Hook::Redundancy).any(Asks::EXTRA) && profile.get(Hook::PathScheduler) == "redundant"
}

/// Refuses a profile that breaks a rule on `paths` paths.
pub(super) fn check(profile: &Profile, set: &PolicySet, paths: usize) -> Result<(), PolicyError> {
    let case = Case { profile, set, paths };
    let named = |h: Hook| format!("{} {}", h.name(), profile.spec(h));
    let refused =
        |(first, second), reason| Err(PolicyError::Refused { first: named(first), second: named(second), reason });
    if let Some(r) = RULES.iter().find(|r| (r.broken)(&case)) {
        if r.hooks.0 == r.hooks.1 {
            let (first, second) = case.within_scheduler();
            return Err(PolicyError::Refused { first, second, reason: r.reason });
        }
        return refused(r.hooks, r.reason);
    }
    case.lacks_estimates().map_or(Ok(()), |hook| refused((hook, Hook::PathQuality), NEEDS_ESTIMATES))
}
