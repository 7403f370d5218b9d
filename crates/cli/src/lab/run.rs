//! `anabranch lab run`.

use super::progress::Progress;
use super::selection::{Selected, Selection};
use super::show;
use crate::exit::{Failure, Outcome, print};
use anabranch_lab::experiment::{Experiment, SHIPPED};
use anabranch_lab::metrics::Fingerprint;
use anabranch_lab::report::{self, About};
use anabranch_lab::results::Results;
use anabranch_lab::run::{self, Journal, Options, Shard, StaleResults, folder};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const EXAMPLES: &str = "\
Examples:
  anabranch lab run rtx-csi --quick
  anabranch lab run rtx-csi/e1 --seeds 5
  anabranch lab run my-scenario.toml --out results/mine --jobs 1
  anabranch lab run my-scenario.toml --set topology.path1.up.loss=5% --set duration=60s
  anabranch lab run rtx-csi/e1 --points rbuf=16KB --points rbuf=64KB --seeds 31-60
  anabranch lab run rtx-csi --shard 3/8 --out part3

Stopped with Ctrl-C, the same command goes on where it was; what is running is finished first, unless Ctrl-C comes
again. Exit codes: 0 done; 2 a mistake in the scenario or a file that cannot be written; 130 stopped.";

/// Run an experiment: results.csv, claims.csv, manifest.json, report.html and figures in a folder
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    #[command(flatten)]
    selection: Selection,
    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Only the K-th of N parts of the runs, for several machines: 3/8; `lab merge` joins them
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Folder for results [default: results/NAME; results/NAME-quick with --quick, results/NAME-custom
    /// with other seeds or keys]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write results.parquet beside results.csv, with typed columns; needs a program built with the feature `parquet`
    #[arg(long)]
    parquet: bool,
    #[command(flatten)]
    traces: super::traces::TraceFlags,
}

/// Runs the command.
pub async fn run(args: RunArgs) -> Outcome {
    super::stoppable(move |stop| work(&args, stop)).await
}

pub(super) fn find(what: &str) -> Result<Experiment, Failure> {
    if let Some(shipped) = Experiment::shipped(what) {
        return shipped.map_err(Failure::usage);
    }
    let path = Path::new(what);
    if !path.exists() && !what.ends_with(".toml") {
        if let Some((e, scenario)) =
            what.split_once('/').and_then(|(e, s)| Some((SHIPPED.iter().find(|x| x.name == e)?, s)))
        {
            let scenarios: Vec<&str> = e.scenarios().map(|(name, _)| name).collect();
            let what = format!("`{}` has no scenario `{scenario}`; there are {}", e.name, scenarios.join(", "));
            return Err(Failure::usage(what));
        }
        let names: Vec<&str> = SHIPPED.iter().map(|s| s.name).collect();
        let what = format!("there is no experiment `{what}` and no such file; there are {}", names.join(", "));
        return Err(Failure::usage(what));
    }
    Experiment::load(path).map_err(Failure::usage)
}

/// Sets keys of every scenario, each written KEY=VALUE.
pub(super) fn set(e: &mut Experiment, pairs: &[String]) -> Outcome {
    for pair in pairs {
        let wrong = || Failure::usage(format!("--set {pair}: write KEY=VALUE, such as duration=60s"));
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        for s in &mut e.scenarios {
            s.set(key.trim(), value.trim()).map_err(Failure::usage)?;
        }
    }
    Ok(())
}

fn work(args: &RunArgs, stop: &AtomicBool) -> Outcome {
    let selected = args.selection.find()?;
    let e = &selected.experiment;
    args.traces.check(e)?;
    check_parquet(args.parquet)?;
    let dir = args.out.clone().unwrap_or_else(|| args.selection.folder(&selected));
    let manifest = args.selection.manifest(&selected)?;
    if let Some(what) = StaleResults::read(&dir).as_ref().and_then(|f| f.missing_from(&manifest)) {
        let dir = dir.display();
        crate::exit::warning(&format!(
            "{dir} holds other results ({what}); those of this command take their place once all runs are done, and \
             journal.jsonl keeps the runs of both"
        ));
    }
    let results = match all(&selected, &dir, jobs(args.jobs), args.shard, stop)? {
        Made::All(results) => results,
        Made::Part { done, total, .. } => {
            let (dir, what) = (dir.display(), &args.selection.what);
            return print(&format!(
                "{done} of {total} runs are in {dir}; `anabranch lab merge {what} --from {dir} --from ...` joins them \
                 with those of the other parts\n"
            ));
        }
    };
    finish(&args.selection, &selected, &dir, &results, args.parquet)?;
    args.traces.leave(e, &dir, stop)
}

fn check_parquet(wanted: bool) -> Outcome {
    if wanted && !cfg!(feature = "parquet") {
        let how = "cargo build --release -p anabranch";
        return Err(Failure::usage(format!("--parquet: this program was built without Parquet ({how})")));
    }
    Ok(())
}

/// Runs at a time.
pub(super) fn jobs(wanted: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    wanted.map_or_else(cores, usize::from)
}

/// What came of running.
pub(super) enum Made {
    /// Every run is there.
    All(Results),
    /// A shard is done.
    Part { done: usize, total: usize, missing: String },
}

pub(super) fn all(
    of: &Selected,
    dir: &Path,
    jobs: usize,
    shard: Option<Shard>,
    stop: &AtomicBool,
) -> Result<Made, Failure> {
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let program = program();
    let options = Options { jobs, program: &program, stop, shard, progress: &tell };
    let mut journal = Journal::open(dir).map_err(Failure::usage)?;
    let made = run::run_all(&of.experiment, of.form, &options, Some(&mut journal));
    progress.end();
    match made {
        Ok(results) => Ok(Made::All(results)),
        Err(run::Failure::Part { done, total, missing }) => Ok(Made::Part { done, total, missing }),
        Err(run::Failure::Stopped) => {
            eprintln!("anabranch: stopped; the same command goes on from here");
            Err(Failure::Interrupted)
        }
        Err(other) => Err(Failure::usage(other)),
    }
}

/// Which program this is: runs of another one do not count. Copies on other machines are the same program.
fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let file = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let mut hash = Fingerprint::default();
    let (words, rest) = file.as_chunks();
    words.iter().for_each(|w| hash.add(u64::from_be_bytes(*w)));
    hash.add(rest.iter().fold(0, |all, b| all << 8 | u64::from(*b)));
    format!("{version} {} {:016x}", file.len(), hash.value())
}

/// Writes what the folder holds once every run is there.
pub(super) fn finish(selection: &Selection, of: &Selected, dir: &Path, results: &Results, parquet: bool) -> Outcome {
    check_parquet(parquet)?;
    let (manifest, stale) = (selection.manifest(of)?, StaleResults::read(dir));
    folder::write(dir, &manifest, results).map_err(Failure::usage)?;
    #[cfg(feature = "parquet")]
    if parquet {
        run::parquet::write(dir, results).map_err(Failure::usage)?;
    }
    let about = About { settings: manifest.settings(), ..manifest.about.clone() };
    let written = report::write(dir, &about, results).map_err(Failure::usage)?;
    written.warnings.iter().for_each(|w| crate::exit::warning(w));
    let mut own = written.figures;
    own.extend(parquet.then(|| dir.join("results.parquet")));
    if let Some(Err((path, e))) = stale.map(|f| f.clear(dir, &of.experiment, &manifest, results, &own)) {
        let path = path.display();
        crate::exit::warning(&format!("cannot remove {path}, which belongs to the results before: {e}"));
    }
    print(&show::text(results, &written.judgements, &written.page))
}
