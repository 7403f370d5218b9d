//! `anabranch lab show`.

use crate::exit::{Failure, Outcome};
use anabranch_lab::experiment::{SHIPPED, Shipped};
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  anabranch lab show examples/two-paths > mine.toml
  anabranch lab run mine.toml";

/// Print a scenario that comes with the program, to start one's own from
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// A scenario of `lab list`
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
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::usage(format!("cannot write: {e}"))),
        _ => Ok(()),
    }
}
