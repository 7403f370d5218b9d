//! Runs all points and seeds of an experiment.

use super::journal::About;
use super::parts::{DISTRIBUTIONS, Parts, SERIES};
use super::single_run::run_with_parts;
use super::{Journal, JournalError, folder};
use crate::experiment::Experiment;
use crate::metrics::Fingerprint;
use crate::results::{Form, Metric, Results, Row, Table};
use crate::scenario::{Point, Scenario, ScenarioError};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How to run.
pub struct Options<'o> {
    /// Number of threads.
    pub jobs: usize,
    /// Which program this is: runs of another one are not taken from the journal.
    pub program: &'o str,
    /// Set to stop; what is running is finished.
    pub stop: &'o AtomicBool,
    /// Only these runs. Where others are not in the journal the end is [`Failure::Part`].
    pub shard: Option<Shard>,
    /// Called after each run: how many are done, of how many. The first call has what the journal had.
    pub progress: &'o (dyn Fn(usize, usize) + Sync),
}

/// A part of the runs of an experiment, for one of several machines. Each has runs of all scenarios and points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// The part that is run, from 1 to `of`.
    pub number: usize,
    /// Number of parts.
    pub of: usize,
}

impl Shard {
    /// No run at all: what the journal lacks is missing.
    pub const NONE: Shard = Shard { number: 0, of: 1 };

    fn has(self, n: usize) -> bool {
        n % self.of.max(1) + 1 == self.number
    }
}

impl core::fmt::Display for Shard {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl core::str::FromStr for Shard {
    type Err = String;

    /// `3/8`.
    fn from_str(text: &str) -> Result<Shard, String> {
        let number = |t: &str| t.parse::<usize>().ok().filter(|n| (1..=10_000).contains(n));
        let made = text.split_once('/').and_then(|(n, of)| Some(Shard { number: number(n)?, of: number(of)? }));
        made.filter(|s| s.number <= s.of).ok_or_else(|| "write 3/8 for the third of eight parts".to_owned())
    }
}

/// Why not all runs were done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
    /// The shard is done, and the other runs are not there.
    #[error("{done} of {total} runs are there")]
    Part {
        /// Runs in the journal.
        done: usize,
        /// Runs of the experiment.
        total: usize,
        /// The first one that is not: its scenario, point and seed.
        missing: String,
    },
    /// A mistake in a scenario that only shows at a point.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run failed.
    #[error("{scenario}, seed {seed}{at}: {what}")]
    Run {
        /// The scenario.
        scenario: String,
        /// The seed.
        seed: u64,
        /// The point: ", rbuf = 16KB".
        at: String,
        /// Why the run failed.
        what: String,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// One scenario's points and where its rows go.
struct Work<'s> {
    scenario: &'s Scenario,
    points: Vec<Point>,
    first: usize,
}

/// Runs all points of all scenarios with all seeds, or a shard of them. The results do not depend on the number of threads, nor
/// on what the journal had.
///
/// # Errors
/// [`Failure`]; what was done is in the journal.
pub fn run_all(
    e: &Experiment,
    form: Form,
    options: &Options<'_>,
    journal: Option<&mut Journal>,
) -> Result<Results, Failure> {
    let mut total = 0;
    let mut work = Vec::new();
    for scenario in &e.scenarios {
        let points = scenario.points()?;
        let runs = points.len() * scenario.seeds as usize;
        work.push(Work { scenario, points, first: total });
        total += runs;
    }
    let all = Pool {
        work: &work,
        options,
        next: AtomicUsize::new(0),
        rows: Mutex::new(vec![None; total]),
        journal: Mutex::new(journal),
        failure: Mutex::new(None),
    };
    all.recall();
    std::thread::scope(|s| {
        for _ in 0..options.jobs.clamp(1, 1_024) {
            s.spawn(|| all.serve());
        }
    });
    let part = all.part();
    let joined = if part.is_none() && lock(&all.failure).is_none() { all.join() } else { Ok(()) };
    let Pool { rows, journal, failure, .. } = all;
    if let Some(journal) = inner(journal) {
        journal.sync()?;
    }
    if let Some(failure) = inner(failure) {
        return Err(failure);
    }
    joined?;
    if let Some(part) = part {
        return Err(part);
    }
    let mut rows = inner(rows).into_iter();
    let mut tables = Vec::new();
    for w in &work {
        let n = w.points.len() * w.scenario.seeds as usize;
        let own: Option<Vec<Row>> = rows.by_ref().take(n).collect();
        tables.push(table(w.scenario, own.ok_or(Failure::Stopped)?));
    }
    Ok(Results { experiment: e.name.clone(), form, tables })
}

/// The values of a point: ", rbuf = 16KB".
fn at(scenario: &Scenario, point: &Point) -> String {
    scenario.keys().iter().zip(&point.values).map(|(k, v)| format!(", {} = {v}", k.0)).collect()
}

fn table(s: &Scenario, rows: Vec<Row>) -> Table {
    let metrics = s.measures.iter().map(|m| Metric { name: m.name.clone(), unit: m.unit.to_string() }).collect();
    Table { scenario: s.name.clone(), keys: s.keys().into_iter().map(|k| k.0).collect(), metrics, rows }
}

/// What the threads share.
struct Pool<'a, 'j> {
    work: &'a [Work<'a>],
    options: &'a Options<'a>,
    next: AtomicUsize,
    rows: Mutex<Vec<Option<Row>>>,
    journal: Mutex<Option<&'j mut Journal>>,
    failure: Mutex<Option<Failure>>,
}

impl Pool<'_, '_> {
    /// The run of this number: its scenario, point and seed.
    fn run(&self, n: usize) -> Option<(&Scenario, &Point, u64)> {
        let w = self.work.iter().rev().find(|w| w.first <= n && !w.points.is_empty())?;
        let (seeds, at) = (w.scenario.seeds as usize, n - w.first);
        Some((w.scenario, w.points.get(at / seeds)?, (at % seeds) as u64 + w.scenario.first_seed))
    }

    /// What is there, where the runs of other shards are not.
    fn part(&self) -> Option<Failure> {
        self.options.shard?;
        let rows = lock(&self.rows);
        let (total, done) = (rows.len(), rows.iter().flatten().count());
        let missing = rows.iter().position(Option::is_none).and_then(|n| self.run(n))?;
        let (scenario, point, seed) = missing;
        Some(Failure::Part { done, total, missing: format!("{}{}, seed {seed}", scenario.name, at(scenario, point)) })
    }

    /// What a run is called in the journal.
    fn key(&self, scenario: &Scenario, point: &Point, seed: u64) -> u64 {
        let mut f = Fingerprint::default();
        let text = scenario.name.bytes().chain([0]).chain(self.options.program.bytes());
        text.for_each(|b| f.add(u64::from(b)));
        f.add(point.hash);
        f.add(seed);
        // A run that did not keep them has to be done again.
        scenario.distributions.iter().flat_map(|m| m.bytes().chain([0])).for_each(|b| f.add(u64::from(b)));
        f.value()
    }

    /// Takes from the journal what it has.
    fn recall(&self) {
        let (journal, mut rows) = (lock(&self.journal), lock(&self.rows));
        let mut had = 0;
        for (n, slot) in rows.iter_mut().enumerate() {
            let Some((scenario, point, seed)) = self.run(n) else { continue };
            let run = self.key(scenario, point, seed);
            let whole = |j: &&&mut Journal| parts(scenario).iter().all(|p| p.of_run(j.folder(), run).exists());
            let row = journal.as_ref().filter(whole).and_then(|j| j.get(run));
            // Names of values may change without the network.
            *slot = row.cloned().map(|row| Row { point: point.values.clone(), seed, ..row });
            had += usize::from(slot.is_some());
        }
        (self.options.progress)(had, rows.len());
    }

    /// Writes the series and distributions of all runs of each scenario that has some.
    fn join(&self) -> Result<(), JournalError> {
        let journal = lock(&self.journal);
        let Some(dir) = journal.as_ref().map(|j| j.folder()) else { return Ok(()) };
        for w in self.work.iter().filter(|w| !parts(w.scenario).is_empty()) {
            let head: String = w.scenario.keys().iter().map(|k| format!("{},", folder::quoted(&k.0))).collect();
            let name = &w.scenario.name;
            let runs: Vec<(u64, String)> = (w.first..w.first + w.points.len() * w.scenario.seeds as usize)
                .filter_map(|n| self.run(n))
                .map(|(scenario, point, seed)| {
                    let keys: String = point.values.iter().map(|v| format!("{},", folder::quoted(v))).collect();
                    (self.key(scenario, point, seed), format!("{},{keys}{seed},", folder::quoted(name)))
                })
                .collect();
            for p in parts(w.scenario) {
                let fail = |source| JournalError::Write { path: p.of_scenario(dir, name), source };
                p.join(dir, name, &format!("scenario,{head}seed,"), &runs).map_err(fail)?;
            }
        }
        Ok(())
    }

    fn serve(&self) {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let total = {
                let rows = lock(&self.rows);
                match rows.get(n) {
                    None => return,
                    Some(Some(_)) => continue,
                    Some(None) if self.options.shard.is_some_and(|s| !s.has(n)) => continue,
                    Some(None) => rows.len(),
                }
            };
            if self.options.stop.load(Ordering::Relaxed) {
                return self.fail(Failure::Stopped);
            }
            if lock(&self.failure).is_some() {
                return;
            }
            if let Err(failure) = self.one(n, total) {
                return self.fail(failure);
            }
        }
    }

    fn one(&self, n: usize, total: usize) -> Result<(), Failure> {
        let Some((scenario, point, seed)) = self.run(n) else { return Ok(()) };
        let (row, beside) = run_with_parts(point, seed).map_err(|e| Failure::Run {
            scenario: scenario.name.clone(),
            seed,
            at: at(scenario, point),
            what: e.0,
        })?;
        if let Some(journal) = lock(&self.journal).as_mut() {
            let run = self.key(scenario, point, seed);
            for (p, lines) in [(SERIES, &beside.series), (DISTRIBUTIONS, &beside.distributions)] {
                if parts(scenario).iter().any(|own| own == &p) {
                    let path = || p.of_run(journal.folder(), run);
                    p.keep(journal.folder(), run, lines)
                        .map_err(|source| JournalError::Write { path: path(), source })?;
                }
            }
            let keys: Vec<String> = scenario.keys().into_iter().map(|k| k.0).collect();
            let metrics: Vec<String> = scenario.measures.iter().map(|m| m.name.clone()).collect();
            journal.add(run, &About { scenario: &scenario.name, keys: &keys, metrics: &metrics }, &row)?;
        }
        let mut rows = lock(&self.rows);
        if let Some(slot) = rows.get_mut(n) {
            *slot = Some(row);
        }
        let done = rows.iter().flatten().count();
        drop(rows);
        (self.options.progress)(done, total);
        Ok(())
    }

    fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
    }
}

/// What the runs of a scenario leave beside their rows.
fn parts(scenario: &Scenario) -> Vec<Parts> {
    let series = (!scenario.series.is_empty()).then_some(SERIES);
    series.into_iter().chain((!scenario.distributions.is_empty()).then_some(DISTRIBUTIONS)).collect()
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inner<T>(m: Mutex<T>) -> T {
    m.into_inner().unwrap_or_else(PoisonError::into_inner)
}
