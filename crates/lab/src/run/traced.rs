//! One run with everything of it written down.

use super::build::{Live, Scene, with_associations};
use super::single_run::{RunError, run_prepared};
use crate::node::SctpAgent;
use crate::results::Row;
use crate::scenario::{Flow, Plan, Point, Scenario, ScenarioError, Transport};
use crate::trace::{Outputs, TraceError, TracedFlow, TracedRun, Tracer};
use anabranch_sim::transport::tcp::TcpSource;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Why a run left no trace.
#[derive(Debug, thiserror::Error)]
pub enum TracedError {
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Runs a point with a seed as [`run_one`](super::run_one) does, with the same result, and leaves `outputs` in `dir`.
/// The files begin with the scenario's name, the values of the point and the seed.
///
/// # Errors
/// [`TracedError`]; no file is left then.
pub fn run_traced(
    scenario: &Scenario,
    point: &Point,
    seed: u64,
    dir: &Path,
    outputs: Outputs,
) -> Result<(Row, Vec<PathBuf>), TracedError> {
    let names = TraceNames::new([scenario]).map_err(|e| RunError(e.to_string()))?;
    run_traced_as(&names, scenario, point, seed, dir, outputs)
}

/// [`run_traced`] beside the runs of other scenarios, with names that are none of theirs.
///
/// # Errors
/// As [`run_traced`].
pub fn run_traced_as(
    names: &TraceNames,
    scenario: &Scenario,
    point: &Point,
    seed: u64,
    dir: &Path,
    outputs: Outputs,
) -> Result<(Row, Vec<PathBuf>), TracedError> {
    let stem = names.stem(&scenario.name, &point.values, seed);
    let names: Vec<String> = scenario.keys().into_iter().map(|k| k.0).collect();
    let words: Vec<String> = names.iter().zip(&point.values).map(|(k, v)| format!("{k} {v}")).collect();
    let about = TracedRun { scenario: scenario.name.clone(), point: words.join(", "), seed };
    let plan = point.of_seed(seed).map_err(|e| RunError(e.to_string()))?;
    let (row, (tracer, watched), _) = run_prepared(point, seed, |scene| {
        let flows = with_associations(&plan, scene).map(|(f, live)| flow(f, live, scene)).collect();
        let tracer = Tracer::create(dir, &stem, outputs, &plan.topology, &about, flows);
        if let Ok(tracer) = &tracer {
            watch(tracer, &plan, scene);
        }
        let watched = plan.flows.iter().zip(&scene.flows).filter(|(f, _)| f.playout.is_some());
        let watched: Vec<_> = watched.map(|(f, live)| (f.name.clone(), live.record.clone())).collect();
        (tracer, watched)
    })?;
    let tracer = tracer?;
    for (name, record) in watched {
        let record = record.borrow();
        if let Some(video) = record.video() {
            tracer.frames(&name, video.rows(plan.end()));
        }
    }
    let files = tracer.finish()?;
    Ok((row, files))
}

fn flow(f: &Flow, live: &Live, scene: &Scene) -> TracedFlow {
    let agents = (live.sender, live.receiver);
    let flow = TracedFlow::new(&scene.network, (&f.name, f.transport.name()), agents, live.pairs.clone());
    match &f.transport {
        Transport::Sctp(s) => flow.choosing(&s.profile),
        _ => flow,
    }
}

fn watch(tracer: &Tracer, plan: &Plan, scene: &mut Scene) {
    scene.network.observe(Box::new(tracer.watcher()));
    for (f, live) in plan.flows.iter().zip(&scene.flows).filter(|(f, _)| f.association.is_none()) {
        if let (Some(agent), Some(probe)) = (scene.network.agent_mut::<SctpAgent>(live.sender), tracer.probe(&f.name)) {
            agent.watch(probe);
        }
        if let Transport::Tcp(config) = &f.transport
            && let Some(source) = scene.network.agent_mut::<TcpSource>(live.sender)
            && let Some(mut probe) = tracer.tcp_probe(&f.name, config)
        {
            source.watch(Box::new(move |now, sender| probe.noted(now, sender)));
        }
    }
}

/// What the files of traced runs begin with, in letters that every file system takes. Points that differ in other
/// letters alone would have one name: all but the first of them get a number.
#[derive(Clone, Debug, Default)]
pub struct TraceNames(BTreeMap<(String, Vec<String>), String>);

impl TraceNames {
    /// The names for all points of these scenarios; which of them are traced does not change a name.
    ///
    /// # Errors
    /// A point that makes no network.
    pub fn new<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>) -> Result<TraceNames, ScenarioError> {
        let mut all = Vec::new();
        for s in scenarios {
            all.extend(s.points()?.into_iter().map(|p| (s.name.clone(), p.values)));
        }
        Ok(TraceNames::of(all))
    }

    /// The names from the scenario and the values of each point, in their order.
    pub(super) fn of(points: impl IntoIterator<Item = (String, Vec<String>)>) -> TraceNames {
        let mut names = TraceNames::default();
        // Some file systems take large letters for small ones.
        let mut taken = BTreeSet::new();
        for (scenario, values) in points {
            let name = plain(&scenario, &values);
            let numbered = (2..).map(|n| format!("{name}-{n}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|n| taken.insert(n.to_lowercase()));
            names.0.insert((scenario, values), free.unwrap_or(name));
        }
        names
    }

    /// `e2-case1-16KB-1%-rtx_csi-seed1`.
    pub(super) fn stem(&self, scenario: &str, values: &[String], seed: u64) -> String {
        let known = self.0.get(&(scenario.to_owned(), values.to_vec()));
        format!("{}-seed{seed}", known.cloned().unwrap_or_else(|| plain(scenario, values)))
    }
}

fn plain(scenario: &str, values: &[String]) -> String {
    let all = [scenario].into_iter().chain(values.iter().map(String::as_str));
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+') { c } else { '-' };
    let parts: Vec<String> = all.map(|p| p.chars().map(plain).collect()).collect();
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run_one;

    #[test]
    fn names_of_files_are_plain() {
        let values = ["16KB".into(), "1%".into(), "a:b=c d".into()];
        assert_eq!(TraceNames::default().stem("e2/x", &values, 3), "e2-x-16KB-1%-a-b-c-d-seed3");
    }

    #[test]
    fn points_that_differ_have_names_that_differ() {
        let text = |name: &str, labels: &str| {
            format!(
                r#"
name = "{name}"
duration = "1s"
seeds = 1
metrics = ["main.goodput"]
topology = {{ kind = "single-path", rate = "2mbit", delay = "10ms" }}
[[flow]]
name = "main"
transport = "sctp"
[[sweep]]
name = "what"
sets = "flow.main.retransmission"
values = {labels}
as = ["rtx_csi:tau=1", "rtx_csi:tau=2", "rtx_csi:tau=3"]
"#
            )
        };
        let read = |name: &str, labels: &str| {
            Scenario::parse("a.toml", &text(name, labels), &|_| Err(String::new())).expect("a scenario")
        };
        let (a, b) = (read("a", r#"["b:x=1", "b x 1", "B-x-1"]"#), read("a-b", r#"["x=1", "x 2", "y"]"#));
        let names = TraceNames::new([&a, &b]).unwrap();
        let of = |s: &Scenario| -> Vec<String> {
            s.points().unwrap().iter().map(|p| names.stem(&s.name, &p.values, 1)).collect()
        };
        assert_eq!(of(&a), ["a-b-x-1-seed1", "a-b-x-1-2-seed1", "a-B-x-1-3-seed1"]);
        assert_eq!(of(&b), ["a-b-x-1-4-seed1", "a-b-x-2-seed1", "a-b-y-seed1"]);
        let dir = tempfile::tempdir().unwrap();
        let log = Outputs { log: true, ..Outputs::default() };
        let points = a.points().unwrap();
        for point in &points {
            run_traced(&a, point, 1, dir.path(), log).unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), points.len());
    }

    #[test]
    fn a_traced_run_is_the_same_run() {
        let e = crate::experiment::Experiment::shipped("rtx-csi").unwrap().unwrap();
        let mut scenario = e.scenarios.into_iter().next().unwrap();
        scenario.set("duration", "2s").unwrap();
        let points = scenario.points().unwrap();
        let point = points.last().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (row, files) = run_traced(&scenario, point, 1, dir.path(), Outputs::ALL).unwrap();
        assert_eq!(row, run_one(point, 1).unwrap());
        let names: Vec<String> = files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
        let stem = "e1-256KB-with-seed1";
        let wanted = ["csv", "jsonl", "receiver.pcapng", "sender.pcapng"];
        for ending in wanted {
            assert!(names.iter().any(|n| n.starts_with(stem) && n.ends_with(ending)), "{ending}: {names:?}");
        }
    }
}
