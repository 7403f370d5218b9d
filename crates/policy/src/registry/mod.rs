//! Names, parameters and profiles: everything that can be chosen, and what must not be chosen together.

mod docs;
mod error;
mod hooks;
mod info;
mod params;
mod presets;
mod profile;
mod rules;
#[cfg(test)]
mod tests;

pub use docs::algorithms_markdown;
pub use error::PolicyError;
pub use hooks::{Hook, PolicySet};
pub use info::{ParamInfo, Policy, PolicyInfo, Value};
pub use params::Params;
pub use profile::{Profile, Yielded};

use core::fmt;
use core::str::FromStr;

impl Hook {
    pub(crate) const fn index(self) -> usize {
        self as usize
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

/// The names of all counters of the policies of `hook`, policy by policy.
pub fn counters(hook: Hook) -> impl Iterator<Item = (&'static PolicyInfo, Vec<&'static str>)> {
    hook.policies().into_iter().enumerate().map(move |(at, info)| {
        let counted = hook.trial(at, &Params::defaults(info, 0)).map(|(_, c)| c).unwrap_or_default();
        (info, counted.into_iter().map(|(name, _)| name).collect())
    })
}
