//! `anabranch lab run`.

use super::progress::Progress;
use super::show;
use crate::exit::{Failure, Outcome, print};
use anabranch_lab::experiment::{Experiment, SHIPPED};
use anabranch_lab::report::{self, About};
use anabranch_lab::results::{Form, Results};
use anabranch_lab::run::{self, Journal, Options, StaleResults, folder};
use anabranch_lab::scenario::Choice;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const EXAMPLES: &str = "\
Examples:
  anabranch lab run rtx-csi --quick
  anabranch lab run rtx-csi/e1 --seeds 5
  anabranch lab run my-scenario.toml --out results/mine --jobs 1
  anabranch lab run my-scenario.toml --set topology.path1.up.loss=5% --set duration=60s

Stopped with Ctrl-C, the same command goes on where it was; what is running is finished first, unless Ctrl-C comes
again. Exit codes: 0 done; 2 a mistake in the scenario or a file that cannot be written; 130 stopped.";

/// Run an experiment: results.csv, claims.csv, manifest.json, report.html and figures in a folder
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// An experiment of `lab list`, a scenario file, or a folder with an experiment.toml
    #[arg(value_name = "NAME|FILE")]
    what: String,
    /// Run with this many seeds and not the scenario's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Few points and seeds, to see that it works; gives no verdicts
    #[arg(long)]
    quick: bool,
    /// Folder for results [default: results/NAME; results/NAME-quick with --quick, results/NAME-custom
    /// with other seeds or keys]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Set a key of every scenario: flow.main.streams=4, topology.path1.delay=90ms, duration=60s; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
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
    if path.is_dir() && path.join("experiment.toml").is_file() {
        return Experiment::load(&path.join("experiment.toml")).map_err(Failure::usage);
    }
    if !path.exists() && !what.ends_with(".toml") {
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
    let mut e = find(&args.what)?;
    set(&mut e, &args.set)?;
    let choice = Choice { quick: args.quick, seeds: args.seeds };
    let forms: Vec<Form> = e.scenarios.iter().map(|s| s.form(choice)).collect();
    let changed = !args.set.is_empty();
    let form = match forms.iter().find(|f| **f != Form::Full) {
        Some(form) => *form,
        // Another network than the one that claims speak of gives no verdicts.
        None if changed => Form::Custom,
        None => Form::Full,
    };
    let e = e.chosen(choice).map_err(Failure::usage)?;
    args.traces.check(&e)?;
    if args.parquet && !cfg!(feature = "parquet") {
        let how = "cargo build --release -p anabranch";
        return Err(Failure::usage(format!("--parquet: this program was built without Parquet ({how})")));
    }
    // What gives no verdicts must not take the place of what took hours.
    let suffix = match form {
        Form::Full => "",
        Form::Quick => "-quick",
        Form::Custom => "-custom",
    };
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("results/{}{suffix}", e.name)));
    let about = About { command: command(args), version: env!("CARGO_PKG_VERSION").to_owned(), ..e.about.clone() };
    let manifest = folder::Manifest::new(&e, form, env!("ANABRANCH_COMMIT"), about).map_err(Failure::usage)?;
    let stale = StaleResults::read(&dir);
    if let Some(what) = stale.as_ref().and_then(|f| f.missing_from(&manifest)) {
        let dir = dir.display();
        crate::exit::warning(&format!(
            "{dir} holds other results ({what}); those of this command take their place once all runs are done, and \
             journal.jsonl keeps the runs of both"
        ));
    }
    let results = all(args, &e, form, &dir, stop)?;
    finish(args, &e, &manifest, stale.as_ref(), &dir, &results)?;
    args.traces.leave(&e, &dir, stop)
}

fn all(args: &RunArgs, e: &Experiment, form: Form, dir: &Path, stop: &AtomicBool) -> Result<Results, Failure> {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let progress = Progress::new();
    let tell = |done, total| progress.tell(done, total);
    let program = program();
    let options = Options { jobs, program: &program, stop, progress: &tell };
    let mut journal = Journal::open(dir).map_err(Failure::usage)?;
    let made = run::run_all(e, form, &options, Some(&mut journal));
    progress.end();
    made.map_err(|failure| match failure {
        run::Failure::Stopped => {
            eprintln!("anabranch: stopped; the same command goes on from here");
            Failure::Interrupted
        }
        other => Failure::usage(other),
    })
}

/// Which program this is: a journal of another one does not count. The version, and the size and date of its file: its
/// contents would take longer to read than many a run takes.
fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = std::env::current_exe().and_then(std::fs::metadata).ok();
    let size = about.as_ref().map_or(0, std::fs::Metadata::len);
    let date = about.and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{version} {size} {}", date.map_or(0, |d| d.as_nanos()))
}

/// The command that makes these results again, for a shell.
fn command(args: &RunArgs) -> String {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
        if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let mut words = vec!["anabranch lab run".to_owned(), quoted(&args.what)];
    words.extend(args.quick.then(|| "--quick".to_owned()));
    words.extend(args.seeds.map(|n| format!("--seeds {n}")));
    words.extend(args.set.iter().map(|pair| format!("--set {}", quoted(pair))));
    words.join(" ")
}

fn finish(
    args: &RunArgs,
    e: &Experiment,
    manifest: &folder::Manifest,
    stale: Option<&StaleResults>,
    dir: &Path,
    results: &Results,
) -> Outcome {
    folder::write(dir, manifest, results).map_err(Failure::usage)?;
    #[cfg(feature = "parquet")]
    if args.parquet {
        run::parquet::write(dir, results).map_err(Failure::usage)?;
    }
    let about = About { settings: manifest.settings(), ..manifest.about.clone() };
    let written = report::write(dir, &about, results).map_err(Failure::usage)?;
    written.warnings.iter().for_each(|w| crate::exit::warning(w));
    let mut own = written.figures;
    own.extend(args.parquet.then(|| dir.join("results.parquet")));
    if let Some(Err((path, e))) = stale.map(|f| f.clear(dir, e, manifest, results, &own)) {
        let path = path.display();
        crate::exit::warning(&format!("cannot remove {path}, which belongs to the results before: {e}"));
    }
    print(&show::text(results, &written.judgements, &written.page))
}
