//! Runs one point of a scenario with one seed.

use super::build::{Live, Scene, scene};
use super::measure::Measured;
use super::samples::Samples;
use super::{distributions, series};
use crate::metrics::Fingerprint;
use crate::node::SctpAgent;
use crate::results::Row;
use crate::scenario::{Plan, Point};
use anabranch_base::Duration;
use anabranch_engine::SendError;

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

/// Runs a point with a seed. A point and a seed give one and the same row on every machine.
///
/// # Errors
/// A network that cannot be built, or an association that never came to be.
pub fn run_one(point: &Point, seed: u64) -> Result<Row, RunError> {
    run_prepared(point, seed, |_| ()).map(|r| r.0)
}

/// What a run leaves beside its row, as lines of CSV.
pub(super) struct Beside {
    pub series: String,
    pub distributions: String,
}

/// [`run_one`] with what it leaves beside the row.
pub(super) fn run_with_parts(point: &Point, seed: u64) -> Result<(Row, Beside), RunError> {
    run_prepared(point, seed, |_| ()).map(|r| (r.0, r.2))
}

/// [`run_one`] with something done to the network before it runs.
pub(super) fn run_prepared<T>(
    point: &Point,
    seed: u64,
    prepare: impl FnOnce(&mut Scene) -> T,
) -> Result<(Row, T, Beside), RunError> {
    let plan = &*point.of_seed(seed).map_err(|e| RunError(e.to_string()))?;
    let mut scene = scene(plan, seed)?;
    let made = prepare(&mut scene);
    let (samples, snapshots) = Samples::of_a_run(plan, &mut scene);
    scene.network.settle();
    refused(plan, &scene)?;
    scene.tell_fates();
    scene.tell_unsent(plan);
    let measured = Measured::new(plan, &scene, seed, &snapshots);
    let values = plan.measures.iter().map(|m| measured.value(m)).collect();
    let row = Row { point: point.values.clone(), seed, values, fingerprint: fingerprint(&scene.flows) };
    let series = series::lines(plan, &scene, &samples);
    Ok((row, made, Beside { series, distributions: distributions::lines(plan, &measured) }))
}

/// An association whose policies do not fit is a mistake in the scenario, and so are messages that it cannot take.
fn refused(plan: &Plan, scene: &Scene) -> Result<(), RunError> {
    for (f, live) in plan.flows.iter().zip(&scene.flows) {
        let Some(agent) = scene.network.agent::<SctpAgent>(live.sender) else { continue };
        let wrong = |what: String| Err(RunError(format!("flow `{}`: {what}", f.name)));
        if let Some(e) = agent.refused() {
            return wrong(e.to_string());
        }
        // Those that share its association follow it.
        let sharing = plan.flows.iter().zip(&scene.flows).filter(|(_, l)| l.sender == live.sender);
        if let Some((i, e)) = agent.unsendable() {
            let name = sharing.map(|(f, _)| f.name.as_str()).nth(i).unwrap_or(&f.name);
            let wrong = |what: String| Err(RunError(format!("flow `{name}`: {what}")));
            let hint = if matches!(e.why, SendError::TooLarge { .. }) { ": raise `send-buffer`" } else { "" };
            return wrong(format!("{e}{hint}"));
        }
    }
    Ok(())
}

/// All deliveries of all flows.
fn fingerprint(flows: &[Live]) -> u64 {
    let mut f = Fingerprint::default();
    for live in flows {
        f.add(live.record.borrow().fingerprint());
    }
    f.value()
}

/// How long from the start until throughput stays within a tenth of where it ends: the mean of its second half.
/// `bins` are bytes; smoothed over five.
pub(super) fn convergence(bins: &[f64], bin: Duration) -> Option<f64> {
    const WIDTH: usize = 5;
    if bins.len() < 2 * WIDTH {
        return None;
    }
    let smooth: Vec<f64> = bins.windows(WIDTH).map(|w| w.iter().sum::<f64>() / WIDTH as f64).collect();
    let half = bins.get(bins.len() / 2..)?;
    let settled = half.iter().sum::<f64>() / half.len() as f64;
    let off = |v: &f64| (v - settled).abs() > settled / 10.0;
    let after = smooth.iter().rposition(off).map_or(0, |i| i + 1);
    (settled > 0.0 && after < smooth.len()).then(|| after as f64 * bin.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convergence_is_where_it_stays() {
        let bin = Duration::from_millis(500);
        let mut bins = vec![100.0; 40];
        assert_eq!(convergence(&bins, bin), Some(0.0));
        bins[..6].fill(0.0);
        // The window that begins in bin 5 holds one empty bin of five; the next holds none.
        assert_eq!(convergence(&bins, bin), Some(3.0));
        bins[39] = 500.0;
        assert_eq!(convergence(&bins, bin), None, "it never settles");
        assert_eq!(convergence(&[0.0; 40], bin), None);
    }
}
