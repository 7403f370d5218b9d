//! One run with everything of it written down.

use super::build::{Live, Scene};
use super::one::{RunError, run_prepared};
use crate::node::SctpAgent;
use crate::results::Row;
use crate::scenario::{Flow, Plan, Point, Scenario, Transport};
use crate::trace::{Outputs, TraceError, TracedFlow, TracedRun, Tracer};
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
/// [`TracedError`]; what could be written is there.
pub fn run_traced(
    scenario: &Scenario,
    point: &Point,
    seed: u64,
    dir: &Path,
    outputs: Outputs,
) -> Result<(Row, Vec<PathBuf>), TracedError> {
    let names: Vec<String> = scenario.keys().into_iter().map(|k| k.0).collect();
    let words: Vec<String> = names.iter().zip(&point.values).map(|(k, v)| format!("{k} {v}")).collect();
    let about = TracedRun { scenario: scenario.name.clone(), point: words.join(", "), seed };
    let stem = stem(&scenario.name, &point.values, seed);
    let (row, tracer, _) = run_prepared(point, seed, |scene| {
        let flows = point.plan.flows.iter().zip(&scene.flows).map(|(f, live)| flow(f, live, scene)).collect();
        let tracer = Tracer::create(dir, &stem, outputs, &point.plan.topology, &about, flows);
        if let Ok(tracer) = &tracer {
            watch(tracer, &point.plan, scene);
        }
        tracer
    })?;
    let files = tracer?.finish()?;
    Ok((row, files))
}

fn flow(f: &Flow, live: &Live, scene: &Scene) -> TracedFlow {
    let transport = match f.transport {
        Transport::Sctp(_) => "sctp",
        Transport::Tcp(_) => "tcp",
        Transport::Udp(_) => "udp",
    };
    let agent = scene.network.agent::<SctpAgent>(live.sender);
    TracedFlow {
        name: f.name.clone(),
        transport: transport.to_owned(),
        sender: live.sender,
        receiver: live.receiver,
        pairs: agent.map(|a| a.pairs().iter().collect()).unwrap_or_default(),
    }
}

fn watch(tracer: &Tracer, plan: &Plan, scene: &mut Scene) {
    scene.network.observe(Box::new(tracer.watcher()));
    for (f, live) in plan.flows.iter().zip(&scene.flows) {
        if let (Some(agent), Some(probe)) = (scene.network.agent_mut::<SctpAgent>(live.sender), tracer.probe(&f.name)) {
            agent.watch(probe);
        }
    }
}

/// `e2-case1-16KB-1%-rtx_csi-seed1`, in letters that every file system takes.
fn stem(scenario: &str, values: &[String], seed: u64) -> String {
    let all = [scenario].into_iter().chain(values.iter().map(String::as_str));
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+') { c } else { '-' };
    let parts: Vec<String> = all.map(|p| p.chars().map(plain).collect()).collect();
    format!("{}-seed{seed}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run_one;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(stem("e2/x", &["16KB".into(), "1%".into(), "a:b=c d".into()], 3), "e2-x-16KB-1%-a-b-c-d-seed3");
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
