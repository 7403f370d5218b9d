//! Which runs of a scenario to make: all of them, a few, or a choice.

use super::drawn::{self, Take};
use super::names::SEEDS;
use super::phases::Asked;
use super::plan;
use super::set;
use super::sweep::{self, Quick, Sweep};
use super::{Measure, Plan, Scenario, ScenarioError};
use crate::document::{self, By, Entry, Part, Problem};
use crate::metrics::Fingerprint;
use crate::results::Form;
use std::borrow::Cow;
use std::sync::Arc;
use toml::Table;

/// Seeds that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// The lowest seed, at least 1.
    pub first: u64,
    /// Number of seeds from `first` on.
    pub count: u64,
}

impl Seeds {
    /// Seeds 1 to this.
    pub const fn up_to(count: u64) -> Seeds {
        Seeds { first: 1, count }
    }

    /// The last one.
    pub const fn last(self) -> u64 {
        self.first + self.count - 1
    }
}

impl core::fmt::Display for Seeds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.first == 1 { write!(f, "{}", self.count) } else { write!(f, "{}-{}", self.first, self.last()) }
    }
}

impl core::str::FromStr for Seeds {
    type Err = String;

    /// `30` for seeds 1 to 30, `31-60` for those.
    fn from_str(text: &str) -> Result<Seeds, String> {
        let number = |t: &str| t.parse::<u64>().ok().filter(|n| (1..=SEEDS).contains(n));
        let made = match text.split_once('-') {
            None => number(text).map(Seeds::up_to),
            Some((first, last)) => number(first)
                .zip(number(last))
                .filter(|(first, last)| first <= last)
                .map(|(first, last)| Seeds { first, count: last - first + 1 }),
        };
        made.ok_or_else(|| format!("write 30 for seeds 1 to 30, or 31-60; they lie between 1 and {SEEDS}"))
    }
}

/// What to run of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The quick form: few points, few seeds, no verdicts.
    pub quick: bool,
    /// These seeds and not the scenario's.
    pub seeds: Option<Seeds>,
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
    /// What the plans of single seeds are made of, where they differ.
    drawn: Option<Arc<Ranges>>,
}

/// Keys of a network of which some have ranges.
#[derive(Debug)]
struct Ranges {
    network: document::Table,
    head: document::Table,
    asked: Asked,
}

impl Point {
    /// What runs with this seed.
    ///
    /// # Errors
    /// Values that were drawn for it do not fit each other.
    pub fn of_seed(&self, seed: u64) -> Result<Cow<'_, Plan>, ScenarioError> {
        let plan = self.taken(Take::OfSeed(seed)).map_err(|p| p.with(&format!(" (with seed {seed})")))?;
        Ok(plan.map_or(Cow::Borrowed(&self.plan), Cow::Owned))
    }

    /// The plans with the lowest and the highest value of each range, if there are any.
    pub(crate) fn extremes(&self) -> Result<Option<[Plan; 2]>, ScenarioError> {
        Ok(self.taken(Take::Lowest)?.zip(self.taken(Take::Highest)?).map(|(low, high)| [low, high]))
    }

    fn taken(&self, values: Take) -> Result<Option<Plan>, Problem> {
        let Some(ranges) = &self.drawn else { return Ok(None) };
        let head = Part::new("", &ranges.head);
        let made = plan::read(&ranges.network, values, head, (&self.plan.measures, &ranges.asked), &self.plan.series)?;
        Ok(Some(Plan { distributions: self.plan.distributions.clone(), ..made }))
    }
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
        if let Some(seeds) = choice.seeds {
            (s.first_seed, s.seeds) = (seeds.first, seeds.count);
        }
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
            set::set(&mut s.base, key, &entry).map_err(|what| quick.set_part().about(key, what))?;
        }
        Ok(s)
    }

    /// Keeps the values of a sweep that have these labels in results.
    ///
    /// # Errors
    /// There is no such sweep, or it has no such value; in words.
    pub fn keep(&mut self, key: &str, labels: &[&str]) -> Result<(), String> {
        let names: Vec<String> = self.sweeps.iter().map(|s| s.name.clone()).collect();
        let none = || match names.as_slice() {
            [] => format!("it sweeps nothing, and no `{key}`"),
            [one] => format!("it sweeps no `{key}`; there is {one}"),
            all => format!("it sweeps no `{key}`; there are {}", all.join(", ")),
        };
        let sweep = self.sweeps.iter_mut().find(|s| s.name == key).ok_or_else(none)?;
        sweep.keep_labels(labels)
    }

    /// Its seeds.
    pub fn all_seeds(&self) -> Seeds {
        Seeds { first: self.first_seed, count: self.seeds }
    }

    /// How many runs it is.
    pub fn runs(&self) -> usize {
        self.sweeps.iter().map(|s| s.values.len()).product::<usize>() * self.seeds as usize
    }

    /// Which form a choice makes of this scenario.
    pub fn form(&self, choice: Choice) -> Form {
        match choice {
            Choice { quick: true, .. } => Form::Quick,
            Choice { seeds: Some(n), .. } if n != self.all_seeds() => Form::Custom,
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
            let table = self.table(&at)?;
            let keys = table.plain();
            let hash = hash_of(
                &keys,
                self.measures
                    .iter()
                    .flat_map(Measure::words)
                    .filter(|w| !w.is_empty())
                    .chain(self.series.iter().map(|s| s.name.as_str())),
            );
            let ranges = || {
                let (network, head, asked) = (table.clone(), self.head.clone(), self.asked.clone());
                Arc::new(Ranges { network, head, asked })
            };
            let drawn = drawn::any(&table).then(ranges);
            Ok(Point { values, plan, hash, keys, drawn })
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
