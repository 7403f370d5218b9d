//! Statistics: per interval and path, events as they happen, totals at the end. `docs/STATS.md` has the fields.

mod collect;
mod parity;
mod prometheus;
mod range;
mod rows;
mod writer;

pub use parity::{ParityRow, unread as unread_parity};
pub use rows::StreamRow;
pub use writer::Reporter;

use crate::exit::Failure;
use crate::units;
use std::path::PathBuf;
use std::time::Duration;

/// How statistics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// A header and a line per interval and path; everything else as comments.
    Csv,
    /// For people.
    Text,
    /// A page in Prometheus' text format, written anew each interval; with --stats-file the file is replaced.
    Prometheus,
}

/// What the user wants to see.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Statistics")]
pub struct StatsArgs {
    /// Print statistics every interval, in this form
    #[arg(long, value_name = "FORM")]
    pub stats: Option<Format>,
    /// Time between statistics
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    pub stats_interval: Duration,
    /// Write statistics to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub stats_file: Option<PathBuf>,
    /// JSON: the same as --stats json
    #[arg(short = 'J', long)]
    pub json: bool,
    /// No totals at the end
    #[arg(short, long)]
    pub quiet: bool,
}

impl StatsArgs {
    /// The format of what is printed each interval; none for nothing.
    pub fn intervals(&self) -> Option<Format> {
        self.stats.or(self.json.then_some(Format::Json))
    }

    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), Failure> {
        if self.stats_interval < Duration::from_millis(10) {
            return Err(Failure::usage("--stats-interval is at least 10ms"));
        }
        if self.json && self.stats.is_some_and(|form| form != Format::Json) {
            return Err(Failure::usage("-J is --stats json; leave out one of -J and --stats"));
        }
        Ok(())
    }
}
