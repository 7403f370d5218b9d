//! Which runs of a scenario to make: all of them, a few, or a choice.

use super::sweep::{self, Quick, Sweep};
use super::{Plan, Scenario, ScenarioError};
use crate::document::{By, Entry, Problem};
use crate::metrics::Fingerprint;
use crate::results::Form;
use toml::Table;

/// What to run of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The quick form: few points, few seeds, no verdicts.
    pub quick: bool,
    /// This many seeds and not the scenario's.
    pub seeds: Option<u64>,
}

/// A point of the sweep, ready to run with any seed.
#[derive(Clone, Debug)]
pub struct Point {
    /// The value of each key, as written.
    pub values: Vec<String>,
    /// What runs there.
    pub plan: Plan,
    /// Changes when anything of the network at this point does.
    pub hash: u64,
    /// The network's keys, resolved.
    pub keys: Table,
}

impl Scenario {
    /// The scenario as the choice has it.
    ///
    /// # Errors
    /// Keys of `[quick.set]` that cannot be.
    pub fn chosen(&self, choice: Choice) -> Result<Scenario, ScenarioError> {
        let mut s = self.clone();
        if choice.quick
            && let Some(quick) = &self.quick
        {
            s = self.quickened(quick)?;
        }
        s.seeds = choice.seeds.unwrap_or(s.seeds);
        Ok(s)
    }

    /// The scenario as this quick form has it.
    pub(super) fn quickened(&self, quick: &Quick) -> Result<Scenario, Problem> {
        let mut s = self.clone();
        s.seeds = quick.seeds.unwrap_or(s.seeds);
        for sweep in &mut s.sweeps {
            if let Some(kept) = quick.sweep.get(&sweep.name) {
                let kept = kept.as_list().unwrap_or_default();
                sweep.keep(kept).map_err(|what| quick.sweep_part().at(&sweep.name, what))?;
            }
        }
        for (key, node) in quick.set.iter() {
            let node = node.clone().put_by(By::Quick);
            let entry = Entry { key: node.at.clone(), node };
            sweep::set(&mut s.base, key, &entry).map_err(|what| quick.set_part().about(key, what))?;
        }
        Ok(s)
    }

    /// How many runs it is.
    pub fn runs(&self) -> usize {
        self.sweeps.iter().map(|s| s.values.len()).product::<usize>() * self.seeds as usize
    }

    /// Which form a choice makes of this scenario.
    pub fn form(&self, choice: Choice) -> Form {
        match choice {
            Choice { quick: true, .. } => Form::Quick,
            Choice { seeds: Some(n), .. } if n != self.seeds => Form::Custom,
            _ => Form::Full,
        }
    }

    /// All points in the order of the sweeps, the last sweep fastest.
    ///
    /// # Errors
    /// A point that makes no network.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        let point = |at: Vec<usize>| {
            let plan = self.plan(&at)?;
            let label = |(s, i): (&Sweep, &usize)| s.labels().get(*i).cloned().unwrap_or_default();
            let values = self.sweeps.iter().zip(&at).map(label).collect();
            let keys = self.table(&at)?.plain();
            let hash = hash_of(
                &keys,
                self.measures.iter().map(|m| m.name.as_str()).chain(self.series.iter().map(|s| s.name.as_str())),
            );
            Ok(Point { values, plan, hash, keys })
        };
        sweep::product(&self.sweeps).into_iter().map(point).collect()
    }
}

/// Hash of the resolved keys and of what is measured.
fn hash_of<'m>(keys: &Table, measures: impl Iterator<Item = &'m str>) -> u64 {
    let mut f = Fingerprint::default();
    // Tables are sorted by key: the order in the file does not matter.
    keys.to_string().bytes().for_each(|b| f.add(u64::from(b)));
    measures.for_each(|m| m.bytes().chain([0]).for_each(|b| f.add(u64::from(b))));
    f.value()
}
