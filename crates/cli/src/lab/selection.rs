//! Which runs of an experiment: form, seeds, points and changed keys.

use super::at;
use super::run::{find, set};
use crate::exit::Failure;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::report::About;
use anabranch_lab::results::Form;
use anabranch_lab::run::folder;
use anabranch_lab::scenario::{Choice, Scenario, Seeds};
use std::path::PathBuf;

/// Which runs of which experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Selection {
    /// An experiment of `lab list`, a scenario file, or a folder with an experiment.toml
    #[arg(value_name = "NAME|FILE")]
    pub what: String,
    /// Run with seeds 1 to N, or FIRST-LAST, and not the scenario's own
    #[arg(long, value_name = "N|FIRST-LAST")]
    pub seeds: Option<Seeds>,
    /// Few points and seeds, to see that it works; gives no verdicts
    #[arg(long)]
    pub quick: bool,
    /// Only where a sweep key has this value: rbuf=16KB; repeatable, also for several values of one key
    #[arg(long, value_name = "KEY=VALUE")]
    pub points: Vec<String>,
    /// Set a key of every scenario: flow.main.streams=4, topology.path1.delay=90ms, duration=60s; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Why scenarios lack a point that was asked for.
#[derive(Default)]
struct Others {
    /// Of the first that sweeps the key: it lacks the value.
    value: Option<String>,
    /// Of the first that does not, and of how many.
    key: Option<String>,
    count: usize,
    /// What all of them sweep.
    swept: Vec<String>,
}

impl Others {
    fn note(&mut self, s: &Scenario, key: &str, why: String) {
        let keys = s.keys();
        let of = if keys.iter().any(|(k, _)| k == key) { &mut self.value } else { &mut self.key };
        of.get_or_insert(format!("{}: {why}", s.name));
        self.count += 1;
        self.swept.extend(keys.into_iter().map(|(k, _)| k));
    }

    fn why(mut self, key: &str) -> String {
        self.swept.sort();
        self.swept.dedup();
        match (self.value, self.key) {
            (Some(value), _) => value,
            (None, Some(one)) if self.count == 1 || self.swept.is_empty() => one,
            (None, _) => format!("no scenario sweeps `{key}`; they sweep {}", self.swept.join(", ")),
        }
    }
}

/// What is to be run.
pub struct Selected {
    pub experiment: Experiment,
    pub form: Form,
}

impl Selection {
    /// Finds it.
    ///
    /// # Errors
    /// A mistake of the user's.
    pub fn find(&self) -> Result<Selected, Failure> {
        let mut e = find(&self.what)?;
        set(&mut e, &self.set)?;
        let choice = Choice { quick: self.quick, seeds: self.seeds };
        let forms: Vec<Form> = e.scenarios.iter().map(|s| s.form(choice)).collect();
        let changed = !self.set.is_empty() || !self.points.is_empty();
        let form = match forms.iter().find(|f| **f != Form::Full) {
            Some(form) => *form,
            // Another network than the one that claims speak of, or a part of it, gives no verdicts.
            None if changed => Form::Custom,
            None => Form::Full,
        };
        let mut experiment = e.chosen(choice).map_err(Failure::usage)?;
        self.keep_points(&mut experiment.scenarios)?;
        Ok(Selected { experiment, form })
    }

    /// Keeps the points that were asked for. A scenario that lacks one of the keys or values is left out.
    fn keep_points(&self, scenarios: &mut Vec<Scenario>) -> Result<(), Failure> {
        for (key, values) in &at::values("--points", &self.points)? {
            let mut others = Others::default();
            scenarios.retain_mut(|s| {
                let kept = s.keep(key, values);
                kept.map_err(|e| others.note(s, key, e)).is_ok()
            });
            if scenarios.is_empty() {
                let why = others.why(key);
                return Err(Failure::usage(format!("--points {key}={}: {why}", values.join(","))));
            }
        }
        Ok(())
    }

    /// The folder for its results where no other is named: what gives no verdicts must not take the place of what took
    /// hours.
    pub fn folder(&self, of: &Selected) -> PathBuf {
        let suffix = match of.form {
            Form::Full => "",
            Form::Quick => "-quick",
            Form::Custom => "-custom",
        };
        PathBuf::from(format!("results/{}{suffix}", of.experiment.name))
    }

    /// The manifest of its results.
    ///
    /// # Errors
    /// A scenario that makes no network.
    pub fn manifest(&self, of: &Selected) -> Result<folder::Manifest, Failure> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let about = About { command: self.command(), version, ..of.experiment.about.clone() };
        folder::Manifest::new(&of.experiment, of.form, env!("ANABRANCH_COMMIT"), about).map_err(Failure::usage)
    }

    /// The command that makes these results again, for a shell.
    fn command(&self) -> String {
        let quoted = |word: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
            if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        };
        let mut words = vec!["anabranch lab run".to_owned(), quoted(&self.what)];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.seeds.map(|n| format!("--seeds {n}")));
        words.extend(self.points.iter().map(|pair| format!("--points {}", quoted(pair))));
        words.extend(self.set.iter().map(|pair| format!("--set {}", quoted(pair))));
        words.join(" ")
    }
}
