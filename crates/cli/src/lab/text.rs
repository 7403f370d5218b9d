//! `anabranch lab show`.

use crate::exit::{Failure, Outcome, print};
use anabranch_lab::experiment::{SHIPPED, Shipped};

const EXAMPLES: &str = "\
Examples:
  anabranch lab show examples/two-paths > mine.toml
  anabranch lab run mine.toml";

/// Print a scenario that comes with the program, to start one's own from
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// A scenario of `lab list`, or a recording that one reads
    #[arg(value_name = "NAME")]
    name: String,
}

/// Runs the command.
pub fn run(args: &ShowArgs) -> Outcome {
    let Some(text) = Shipped::text(&args.name) else {
        let all: Vec<String> =
            SHIPPED.iter().flat_map(|s| s.scenarios().map(move |n| format!("{}/{}", s.name, n.0))).collect();
        let what = format!("there is no scenario `{}`; there are {}", args.name, all.join(", "));
        return Err(Failure::usage(what));
    };
    let text = text.map_err(Failure::usage)?;
    for file in Shipped::recordings(&args.name) {
        let own = file.rsplit('/').next().unwrap_or_default();
        eprintln!("anabranch: it reads `{own}` beside it: anabranch lab show {file} > {own}");
    }
    print(&text)
}
