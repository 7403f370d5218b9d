//! A named set of policies with their parameters, and the set of policies built from it.

use super::presets::{PRESETS, Preset};
use super::{Hook, ParamInfo, Params, Policy, PolicyError, PolicyInfo, PolicySet, Value, rules};
use crate::asks::Asks;
use std::sync::Arc;

/// A policy and its parameters, all of them.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    policy: &'static PolicyInfo,
    /// Row in the table of its hook.
    at: usize,
    values: Values,
    /// What the policy wants to be asked, which is constant for its life.
    asks: Asks,
}

/// Parameters by name.
pub(crate) type Values = Arc<[(&'static str, Value)]>;

/// A choice for every hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What it started from.
    preset: &'static Preset,
    /// Shared by all associations that are configured alike.
    choices: Arc<Vec<Choice>>,
}

/// A choice of a profile that was switched off for what the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Yielded {
    /// The hook whose policy was switched off.
    pub hook: Hook,
    /// The policy that was chosen, with its parameters, as [`Profile::spec`] writes it.
    pub was: String,
    /// The hook whose policy leaves it nothing to do.
    pub to: Hook,
}

impl Profile {
    /// The profile called `name`.
    pub fn named(name: &str) -> Result<Profile, PolicyError> {
        let folded = name.replace('_', "-");
        let preset = PRESETS
            .iter()
            .find(|p| p.name == folded)
            .ok_or_else(|| PolicyError::UnknownProfile { name: name.to_owned(), known: Profile::names() })?;
        let base =
            Hook::ALL.iter().map(|&hook| Choice::parse(hook, hook.default_policy())).collect::<Result<_, _>>()?;
        let mut profile = Profile { preset, choices: Arc::new(base) };
        for (hook, spec) in preset.choices {
            profile.set(*hook, spec)?;
        }
        Ok(profile)
    }
    /// The names of all profiles.
    pub fn names() -> Vec<&'static str> {
        PRESETS.iter().map(|p| p.name).collect()
    }
    /// Names and one sentence each.
    pub fn summaries() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|p| (p.name, p.summary))
    }
    /// The profile it started from.
    pub fn name(&self) -> &'static str {
        self.preset.name
    }
    /// Is it one of ours, rather than that of a standard, a paper or another implementation?
    pub fn is_ours(&self) -> bool {
        self.preset.ours
    }
    /// Limits and settings of the association that come with it, by name; a later value of one name replaces an earlier.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.preset.settings.iter().flat_map(|settings| settings.iter().copied())
    }
    /// Does the profile find out by itself how large a packet each path carries (RFC 8899)?
    pub fn finds_packet_size(&self) -> bool {
        self.preset.finds_packet_size
    }
    /// Does its sender say in the handshake when what it sends is a film, each class on a stream of its own?
    pub fn announces_film(&self) -> bool {
        self.preset.announces_film
    }
    /// Chooses `spec`, such as `thin` or `thin:rto_min=200,linear=0`, for `hook`. Nothing changes on an error.
    pub fn set(&mut self, hook: Hook, spec: &str) -> Result<(), PolicyError> {
        let choice = Choice::parse(hook, spec)?;
        Arc::make_mut(&mut self.choices)[hook.index()] = choice;
        Ok(())
    }
    /// Gives a parameter of the policy chosen for `hook` a value. Nothing changes on an error, which it also is where the
    /// parameter has another value than its default already.
    pub fn add(&mut self, hook: Hook, param: &str, value: impl core::fmt::Display) -> Result<(), PolicyError> {
        let spec = self.spec(hook);
        let separator = if spec.contains(':') { ',' } else { ':' };
        self.set(hook, &format!("{spec}{separator}{param}={value}"))
    }
    /// What the user named wins over what only comes with the profile, and would do nothing beside it. Where a scheduler
    /// among the `named` hooks puts every chunk on every path, the profile's redundancy has nothing left to copy; where a
    /// window among them sets itself, the profile's coupling has nothing left to say: either is switched off. Returns what
    /// was. What the user named both of stays, to be refused by [`Profile::check`].
    pub fn yield_to(&mut self, named: &[Hook]) -> Vec<Yielded> {
        let mut yielded = Vec::new();
        let is_only_profiles = |hook, to| named.contains(&to) && !named.contains(&hook);
        let copies = is_only_profiles(Hook::Redundancy, Hook::PathScheduler) && rules::copies_twice(self);
        let couples = is_only_profiles(Hook::Coupling, Hook::Window)
            && self.build(0).is_ok_and(|set| rules::couples_nothing(&set));
        for (yields, hook, to, off) in [
            (copies, Hook::Redundancy, Hook::PathScheduler, "none"),
            (couples, Hook::Coupling, Hook::Window, "uncoupled"),
        ] {
            let was = self.spec(hook);
            if yields && self.set(hook, off).is_ok() {
                yielded.push(Yielded { hook, was, to });
            }
        }
        yielded
    }
    /// The name of the policy chosen for `hook`.
    pub fn get(&self, hook: Hook) -> &'static str {
        self.choices[hook.index()].policy.name
    }
    /// A parameter of the policy chosen for `hook`.
    pub fn value(&self, hook: Hook, param: &str) -> Option<Value> {
        self.choices[hook.index()].values.iter().find(|(n, _)| *n == param).map(|&(_, v)| v)
    }
    /// The choice for `hook` as [`Profile::set`] takes it, with the parameters that differ from their defaults.
    pub fn spec(&self, hook: Hook) -> String {
        let choice = &self.choices[hook.index()];
        let mut out = String::from(choice.policy.name);
        let mut separator = ':';
        for (info, (name, value)) in choice.policy.params.iter().zip(choice.values.iter()) {
            if info.default != *value {
                out.push_str(&format!("{separator}{name}={value}"));
                separator = ',';
            }
        }
        out
    }
    /// The choice for `hook` with all its parameters.
    pub fn spec_in_full(&self, hook: Hook) -> String {
        let choice = &self.choices[hook.index()];
        let params: Vec<String> = choice.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let separator = if params.is_empty() { "" } else { ":" };
        format!("{}{separator}{}", choice.policy.name, params.join(","))
    }
    /// Does it control congestion? A profile that does not belongs in the simulator and the emulator alone.
    pub fn controls_congestion(&self) -> bool {
        self.build(0).is_ok_and(|set| (set.window)().controls_congestion())
    }
    /// Refuses what makes no sense on `paths` paths, with a reason.
    pub fn check(&self, paths: usize) -> Result<(), PolicyError> {
        rules::check(self, &self.build(0)?, paths)
    }
    /// Builds the policies of one association. Each draws from its own random stream of `seed`.
    pub fn build(&self, seed: u64) -> Result<PolicySet, PolicyError> {
        PolicySet::of(self, seed)
    }

    /// What its policies want to be asked, together: [`PolicySet::asks`] of every set that is built from it.
    pub fn asks(&self) -> Asks {
        self.choices.iter().fold(Asks::NOTHING, |all, c| all.and(c.asks))
    }
    /// What the policy chosen for `hook` wants to be asked.
    pub(super) fn asks_of(&self, hook: Hook) -> Asks {
        self.choices[hook.index()].asks
    }

    pub(super) fn entry<T: ?Sized>(
        &self,
        hook: Hook,
        table: &'static [Policy<T>],
    ) -> Result<&'static Policy<T>, PolicyError> {
        // The place was found in this very table.
        table.get(self.choices[hook.index()].at).ok_or_else(|| PolicyError::UnknownPolicy {
            hook,
            name: self.get(hook).to_owned(),
            known: table.iter().map(|p| p.info.name).collect(),
        })
    }
    /// The parameters of the policy chosen for `hook`, by name.
    pub(crate) fn values(&self, hook: Hook) -> &Values {
        &self.choices[hook.index()].values
    }
}

impl Choice {
    fn parse(hook: Hook, spec: &str) -> Result<Choice, PolicyError> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let policy = hook.policy(name.trim())?;
        let at = hook.policies().iter().position(|p| p.name == policy.name).unwrap_or(0);
        let mut values: Vec<_> = policy.params.iter().map(|p| (p.name, p.default)).collect();
        let mut given = Vec::new();
        for item in rest.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (key, text) = item
                .split_once('=')
                .ok_or_else(|| PolicyError::Malformed { policy: policy.name, text: item.to_owned() })?;
            let key = key.trim().replace('-', "_");
            let at = policy.params.iter().position(|p| p.name == key).ok_or_else(|| PolicyError::UnknownParam {
                policy: policy.name,
                name: key.clone(),
                known: policy.params.iter().map(|p| p.name).collect(),
            })?;
            if given.contains(&at) {
                return Err(PolicyError::Twice { policy: policy.name, param: policy.params[at].name });
            }
            given.push(at);
            values[at].1 = value_of(policy, &policy.params[at], text.trim())?;
        }
        check_order(policy, &values)?;
        let asks = hook.trial(at, &Params::new(&values[..], 0)).map_or(Asks::NOTHING, |(asks, _)| asks);
        Ok(Choice { policy, at, values: values.into(), asks })
    }
}

/// Refuses numbers in the wrong order.
fn check_order(policy: &'static PolicyInfo, values: &[(&'static str, Value)]) -> Result<(), PolicyError> {
    let of = |name| values.iter().find(|v| v.0 == name).map(|v| v.1);
    for p in policy.params {
        if let (Some(other), Some(value @ Value::Number(n))) = (p.below, of(p.name))
            && let Some(most @ Value::Number(m)) = of(other)
            && n > m
        {
            return Err(PolicyError::Above { policy: policy.name, param: p.name, value, other, most });
        }
    }
    Ok(())
}

/// Reads `text` as a value of `p`.
fn value_of(policy: &'static PolicyInfo, p: &'static ParamInfo, text: &str) -> Result<Value, PolicyError> {
    let bad = |expected| PolicyError::BadValue { policy: policy.name, param: p.name, value: text.to_owned(), expected };
    if !p.words.is_empty() {
        let folded = text.replace('-', "_");
        let word = p.words.iter().find(|w| **w == folded);
        return word.map(|w| Value::Word(w)).ok_or_else(|| bad(format!("one of {}", p.words.join(", "))));
    }
    let kind = if p.whole { "a whole number" } else { "a number" };
    let expected = || {
        let unit = if p.unit.is_empty() { String::new() } else { format!(" ({})", p.unit) };
        format!("{kind} from {} to {}{unit}", p.min, p.max)
    };
    match text.parse::<f64>() {
        Ok(n) if n >= p.min && n <= p.max && (!p.whole || n as u64 as f64 == n) => Ok(Value::Number(n)),
        _ => Err(bad(expected())),
    }
}
