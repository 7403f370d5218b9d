//! `anabranch demo`: the main job on one machine. One live video from a sender to a receiver over two emulated
//! networks, alone and together, through real sockets, with a report to open.
//!
//! ```text
//! script: the stream, once for all runs          plan: links, runs, the profile called best
//!        \                                        /
//!         run: sender -> emulator -> receiver (two runs side by side), with control beside it
//!                          |
//!         outcome: the figures -> summary.json, table, report.html; files: all or none
//! ```

mod files;
mod outcome;
mod plan;
mod progress;
mod report;
mod run;
mod script;
mod summary;
mod table;

use crate::control::{self, Control};
use crate::exit::{self, Failure};
use crate::interrupt::Interrupt;
use anabranch_base::Duration;
use clap::{Args, ValueEnum};
use files::{Draft, Folder, Recording, first_difference};
use outcome::Outcome;
use plan::RunPlan;
use progress::{Progress, Row};
use run::{Live, Measured, Settings};
use script::Script;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use summary::{Asked, Controls, Judgement, Summary};
use tokio::task::JoinSet;

/// Runs that go on side by side: few enough for a small machine, and the whole demo stays below a minute.
const SIDE_BY_SIDE: usize = 2;
/// What a run takes beside its media: paths that join, the latency, the end.
const AROUND: Duration = Duration::from_millis(900);

const EXAMPLES: &str = "\
Examples:
  anabranch demo                                   all four runs, then open demo-out/report.html
  anabranch demo --seed 2 --out demo-2             other random losses
  anabranch demo --no-impairments --seconds 3      every received file must equal the sent one
  anabranch demo --runs wlan,best --format json    two of the runs, the result for a program

Exit codes: 0 done; 1 the network failed, or without impairments a received file differs; 2 a wrong
flag or a folder that cannot be written; 3 the control failed, the machine is too busy; 130
interrupted, and nothing is left behind.";

/// One live video over two emulated networks, measured: each alone, both together, and a report to open
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Folder for report.html, summary.json, the sent and the received files
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    out: PathBuf,
    /// What to print at the end: a table, or the contents of summary.json
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Seed of the random losses; the same seed loses the same packets
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds of media in each run
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=120))]
    seconds: u32,
    /// Perfect networks: every received file must equal the sent one
    #[arg(long)]
    no_impairments: bool,
    /// Runs, separated by commas: wlan, 3g, round_robin, best, or any profile
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    runs: Vec<String>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Runs the demo on the current runtime, which should have more than one thread. Exit codes: 0 done, 1 the network
/// failed or a received file differs without impairments, 2 a wrong flag or an unwritable folder, 3 the control
/// failed, 130 interrupted.
pub async fn run(args: DemoArgs) -> ExitCode {
    match demo(args).await {
        Ok(code) => code,
        Err(failure) => exit::finish(Err(failure)),
    }
}

async fn demo(args: DemoArgs) -> Result<ExitCode, Failure> {
    let plans = plans(&args.runs)?;
    let folder = Folder::open(&args.out)?;
    let work = Work {
        plans,
        script: Arc::new(Script::shipped(args.seconds).map_err(Failure::network)?),
        args,
        progress: Progress::new(),
    };
    let finished = work.measure(&folder).await;
    if finished.is_err() {
        folder.abandon();
        return finished.map(|_| ExitCode::SUCCESS);
    }
    let results = finished?;
    work.publish(&folder, results)
}

/// The runs asked for, or all.
fn plans(names: &[String]) -> Result<Vec<RunPlan>, Failure> {
    if names.is_empty() {
        return Ok(RunPlan::all());
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(Failure::usage(format!("run `{twice}` is given twice")));
    }
    names.iter().map(|name| RunPlan::named(name)).collect()
}

/// Everything that was measured.
struct Results {
    controls: Controls,
    runs: Vec<(Outcome, Draft)>,
    sent: Option<Draft>,
}

struct Work {
    args: DemoArgs,
    plans: Vec<RunPlan>,
    script: Arc<Script>,
    progress: Progress,
}

impl Work {
    /// Measures until all is done or Ctrl-C; leaves nothing behind then.
    async fn measure(&self, folder: &Folder) -> Result<Results, Failure> {
        let interrupt = Interrupt::install();
        let mut tasks = JoinSet::new();
        let result = tokio::select! {
            result = self.all(folder, &mut tasks) => result,
            () = interrupt.wait() => Err(Failure::Interrupted),
        };
        // Ends what an interrupt or an error left running, with its sockets and emulators.
        tasks.shutdown().await;
        result
    }

    async fn all(&self, folder: &Folder, tasks: &mut JoinSet<RunResult>) -> Result<Results, Failure> {
        let impaired = !self.args.no_impairments;
        let rows = [Row { name: "control".into(), status: Box::new(|| "an idle emulator".into()) }];
        let idle = self.progress.during(control::IDLE.0, &rows, control::idle()).await?;
        let word = if idle.ok { "ok" } else { "failed" };
        self.progress.say(&format!("control {word}: {}", idle.line()));
        if !idle.ok && impaired {
            return Ok(Results { controls: Controls::new(idle, Vec::new()), runs: Vec::new(), sent: None });
        }
        let sent = self.write_sent(folder)?;
        let (mut runs, mut beside) = (Vec::new(), Vec::new());
        for group in self.plans.chunks(SIDE_BY_SIDE) {
            let (control, finished) = self.group(folder, group, tasks).await?;
            beside.push(control);
            for (plan, measured, file) in finished {
                let outcome = Outcome::of(plan, &self.script, &measured);
                let differs = first_difference(sent.path(), file.path());
                let differs =
                    differs.map_err(|e| Failure::usage(format!("a file of this demo cannot be read: {e}")))?;
                self.progress.say(&format!(
                    "{}: {} of {} frames unusable",
                    outcome.name, outcome.frames_unusable, outcome.frames
                ));
                runs.push((Outcome { identical: differs.is_none(), ..outcome }, file));
            }
        }
        Ok(Results { controls: Controls::new(idle, beside), runs, sent: Some(sent) })
    }

    /// What was sent, as a file.
    fn write_sent(&self, folder: &Folder) -> Result<Draft, Failure> {
        let (tape, recording) = folder.recorder()?;
        for timed in &self.script.messages {
            tape.push(timed.message.payload());
        }
        drop(tape);
        recording.finish()
    }

    /// Some runs side by side, and a control beside them.
    async fn group<'a>(
        &self,
        folder: &Folder,
        plans: &'a [RunPlan],
        tasks: &mut JoinSet<RunResult>,
    ) -> Result<(Control, Vec<(&'a RunPlan, Measured, Draft)>), Failure> {
        let length = self.script.length() + AROUND;
        let settings = Settings { impaired: !self.args.no_impairments, seed: self.args.seed };
        let (mut rows, mut recordings): (Vec<Row<'_>>, Vec<Option<Recording>>) = (Vec::new(), Vec::new());
        for (i, plan) in plans.iter().enumerate() {
            let live = Arc::new(Live::default());
            let (tape, recording) = folder.recorder()?;
            recordings.push(Some(recording));
            let (plan, script, seen) = (plan.clone(), self.script.clone(), live.clone());
            rows.push(Row { name: plan.name.clone(), status: Box::new(move || status(&seen)) });
            tasks.spawn(async move { (i, run::run(&plan, &script, settings, &tape, &live).await) });
        }
        let work = async {
            let mut measured = Vec::new();
            while let Some(done) = tasks.join_next().await {
                let (i, result) = done.map_err(|e| Failure::network(format!("a run stopped: {e}")))?;
                measured.push((i, result?));
            }
            Ok::<_, Failure>(measured)
        };
        let both = async { tokio::try_join!(control::beside(length.into()), work) };
        let (control, mut measured) = self.progress.during(length.into(), &rows, both).await?;
        measured.sort_by_key(|(i, _)| *i);
        let mut finished = Vec::new();
        for (i, measured) in measured {
            let (Some(plan), Some(recording)) = (plans.get(i), recordings.get_mut(i).and_then(Option::take)) else {
                continue;
            };
            finished.push((plan, measured, recording.finish()?));
        }
        Ok((control, finished))
    }

    /// Writes all files and prints the result.
    fn publish(&self, folder: &Folder, results: Results) -> Result<ExitCode, Failure> {
        let asked = Asked {
            command: command_line(),
            seed: self.args.seed,
            seconds: self.args.seconds,
            impairments: !self.args.no_impairments,
        };
        let (outcomes, files): (Vec<_>, Vec<_>) = results.runs.into_iter().unzip();
        let summary = Summary::new(asked, results.controls, outcomes);
        for (run, file) in summary.runs.iter().zip(files) {
            folder.keep(file, &run.file)?;
        }
        if let Some(sent) = results.sent {
            folder.keep(sent, "sent.ts")?;
        }
        let page = folder.write("report.html", report::page(&summary)?.as_bytes())?;
        let json = summary.to_json().map_err(|e| Failure::network(format!("the summary has no JSON form: {e}")))?;
        folder.write("summary.json", json.as_bytes())?;
        let (judgement, _) = summary.judge();
        let text = match self.args.format {
            Format::Json => json,
            Format::Text => {
                let table =
                    if summary.runs.is_empty() { String::new() } else { table::runs(&summary).to_text() + "\n" };
                format!("{table}{}\nreport: {}\n", summary.verdict, page.display())
            }
        };
        // Whoever reads may have gone; the files are there all the same.
        if let Err(error) = std::io::stdout().lock().write_all(text.as_bytes()) {
            tracing::debug!(%error, "the result cannot be printed");
        }
        Ok(exit_code(&summary, judgement))
    }
}

type RunResult = (usize, Result<Measured, Failure>);

/// What was typed, without the place of the program.
fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map_or("anabranch".into(), |n| n.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

fn status(live: &Live) -> String {
    let (frames, unusable) = (live.frames.load(Ordering::Relaxed), live.unusable.load(Ordering::Relaxed));
    let share = 100.0 * unusable as f64 / frames.max(1) as f64;
    format!("{frames} frames due, {unusable} unusable ({share:.1} %)")
}

/// Whether `best` is the best is a finding, not a failure; a control that failed, and a file that should be the sent
/// one and is not, are failures.
fn exit_code(summary: &Summary, judgement: Judgement) -> ExitCode {
    match (summary.impairments, summary.control.overall.ok, judgement) {
        (true, false, _) => ExitCode::from(3),
        (false, _, Judgement::Fail) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    }
}
