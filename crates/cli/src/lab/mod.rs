//! `anabranch lab`: experiments in virtual time.

mod at;
mod emulated;
mod frames;
mod list;
mod merge;
mod plan;
mod progress;
mod report;
mod run;
mod selection;
mod show;
mod text;
mod traces;

use crate::exit::{Failure, Outcome};
use crate::interrupt::Interrupt;
use clap::Subcommand;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "\
Examples:
  anabranch lab list
  anabranch lab run examples/over-time
  anabranch lab show examples/two-paths > mine.toml
  anabranch lab run rtx-csi --quick
  anabranch lab run rtx-csi --out results/rtx-csi
  anabranch lab report results/rtx-csi
  anabranch lab frames film.ts > film.txt
  anabranch lab emulate weather/spike-one-3s --at sender=live
  anabranch lab run my-scenario.toml --set flow.main.receive-buffer=256KB";

/// Run experiments in virtual time: scenarios, figures with intervals, verdicts on a paper's claims
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    List(list::ListArgs),
    Plan(plan::PlanArgs),
    Run(run::RunArgs),
    Merge(merge::MergeArgs),
    Emulate(emulated::EmulateArgs),
    Report(report::ReportArgs),
    Frames(frames::FramesArgs),
    Show(text::ShowArgs),
}

/// Does work on a thread of its own that looks now and then whether the user wants to end: Ctrl-C lets what is running
/// finish.
async fn stoppable(work: impl FnOnce(&AtomicBool) -> Outcome + Send + 'static) -> Outcome {
    let interrupt = Interrupt::install();
    let stop = Arc::new(AtomicBool::new(false));
    let work = tokio::task::spawn_blocking({
        let stop = stop.clone();
        move || work(&stop)
    });
    let watch = tokio::spawn(async move {
        interrupt.wait().await;
        eprintln!("anabranch: what is running is finished first; Ctrl-C again ends at once");
        stop.store(true, Ordering::Relaxed);
    });
    let outcome = work.await.unwrap_or_else(|e| Err(Failure::network(format!("a run failed: {e}"))));
    watch.abort();
    outcome
}

/// Runs the command.
pub async fn run(args: LabArgs) -> Outcome {
    match args.command {
        Command::List(args) => list::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Frames(args) => frames::run(&args),
        Command::Show(args) => text::run(&args),
        Command::Plan(args) => plan::run(args).await,
        Command::Run(args) => run::run(args).await,
        Command::Merge(args) => merge::run(args).await,
        Command::Emulate(args) => emulated::run(args).await,
    }
}
