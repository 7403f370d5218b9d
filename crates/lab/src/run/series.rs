//! Throughput over time, as lines of CSV: one file for each run, and one of a scenario's runs in order.

use super::build::{Live, Scene};
use super::folder::quoted;
use crate::scenario::Plan;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// What a scenario asked for of one run: time (s, of the bin's beginning), flow, path, byte/s, share.
pub(super) fn lines(plan: &Plan, scene: &Scene) -> String {
    let mut out = String::new();
    if plan.series.is_empty() {
        return out;
    }
    let bins = (plan.duration.as_nanos() / plan.bin.as_nanos().max(1)) as usize;
    let mut all = vec![0u64; bins];
    for l in &scene.flows {
        add(&mut all, l.record.lock().unwrap_or_else(PoisonError::into_inner).bins());
    }
    for (f, l) in plan.flows.iter().zip(&scene.flows) {
        let asked = |paths: bool| plan.series.iter().any(|s| s.paths == paths && s.covers(&f.group));
        if asked(false) {
            flow(&mut out, plan, &f.name, l, &all);
        }
        if asked(true) {
            paths(&mut out, plan, &f.name, l, bins);
        }
    }
    out
}

fn add(sum: &mut [u64], bins: &[u64]) {
    sum.iter_mut().zip(bins).for_each(|(s, b)| *s += b);
}

fn flow(out: &mut String, plan: &Plan, name: &str, l: &Live, all: &[u64]) {
    let record = l.record.lock().unwrap_or_else(PoisonError::into_inner);
    let width = plan.bin.as_secs_f64();
    for (i, all) in all.iter().enumerate() {
        let bytes = record.bins().get(i).copied().unwrap_or(0);
        let share = if *all > 0 { (bytes as f64 / *all as f64).to_string() } else { String::new() };
        let _ = writeln!(out, "{},{},,{},{share}", i as f64 * width, quoted(name), bytes as f64 / width);
    }
}

fn paths(out: &mut String, plan: &Plan, name: &str, l: &Live, bins: usize) {
    let record = l.record.lock().unwrap_or_else(PoisonError::into_inner);
    let width = plan.bin.as_secs_f64();
    let by_path = record.path_bins();
    for i in 0..bins {
        let at = |b: &Vec<u64>| b.get(i).copied().unwrap_or(0);
        let all: u64 = by_path.iter().map(at).sum();
        for (path, b) in by_path.iter().enumerate() {
            let share = if all > 0 { (at(b) as f64 / all as f64).to_string() } else { String::new() };
            let (time, name) = (i as f64 * width, quoted(name));
            let _ = writeln!(out, "{time},{name},{},{},{share}", path + 1, at(b) as f64 / width);
        }
    }
}

/// Where the lines of a run are kept.
pub(super) fn part(dir: &Path, run: u64) -> PathBuf {
    dir.join("series").join("runs").join(format!("{run:016x}.csv"))
}

/// Keeps the lines of a run.
pub(super) fn keep(dir: &Path, run: u64, lines: &str) -> io::Result<()> {
    let (path, new) = (part(dir, run), part(dir, run).with_extension("new"));
    std::fs::create_dir_all(dir.join("series").join("runs"))?;
    std::fs::write(&new, lines)?;
    std::fs::rename(new, path)
}

/// Writes one scenario's file from those of its runs, each with what stands before its lines.
pub(super) fn join(dir: &Path, scenario: &str, head: &str, runs: &[(u64, String)]) -> io::Result<()> {
    let path = dir.join("series").join(format!("{scenario}.csv"));
    let new = path.with_extension("new");
    let mut out = BufWriter::new(File::create(&new)?);
    writeln!(out, "{head}time,flow,path,byte/s,share")?;
    for (run, before) in runs {
        for line in std::fs::read_to_string(part(dir, *run))?.lines() {
            writeln!(out, "{before}{line}")?;
        }
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    std::fs::rename(new, path)
}
