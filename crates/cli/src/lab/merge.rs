//! `anabranch lab merge`.

use super::run::{self, Made};
use super::selection::Selection;
use crate::exit::{Failure, Outcome};
use anabranch_lab::run::{Journal, Shard};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  anabranch lab run rtx-csi --shard 1/2 --out one     # on one machine
  anabranch lab run rtx-csi --shard 2/2 --out two     # on another, with the very same program
  anabranch lab merge rtx-csi --from one --from two --out results/rtx-csi

Exit codes: 0 done; 2 runs are missing, or a mistake.";

/// Join the runs of several machines or commands; the results are byte for byte those of one command
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    #[command(flatten)]
    selection: Selection,
    /// A folder that `lab run` wrote with the same program, experiment and options; repeatable
    #[arg(long, value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// Folder for results [default: as that of lab run]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write results.parquet beside results.csv, with typed columns
    #[arg(long)]
    parquet: bool,
}

/// Runs the command.
pub async fn run(args: MergeArgs) -> Outcome {
    super::stoppable(move |stop| {
        let selected = args.selection.find()?;
        let dir = args.out.clone().unwrap_or_else(|| args.selection.folder(&selected));
        for from in &args.from {
            if !from.join("journal.jsonl").is_file() {
                let what = format!(
                    "{}: no runs are there (no journal.jsonl): name a folder that `lab run` wrote",
                    from.display()
                );
                return Err(Failure::usage(what));
            }
        }
        let mut journal = Journal::open(&dir).map_err(Failure::usage)?;
        args.from.iter().try_for_each(|from| journal.take_over(from)).map_err(Failure::usage)?;
        drop(journal);
        match run::all(&selected, &dir, 1, Some(Shard::NONE), stop)? {
            Made::All(results) => {
                run::finish(&args.selection, &selected, &dir, &results, args.parquet)?;
                Ok(())
            }
            Made::Part { done, total, missing } => Err(Failure::usage(format!(
                "{} of {total} runs are in none of these folders, such as {missing}; runs of another program, or with \
                 other options, do not count",
                total - done
            ))),
        }
    })
    .await
}
