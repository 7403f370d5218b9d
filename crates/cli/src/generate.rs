//! `anabranch generate`: manual pages and shell completions, for who packages the program. Both are made from what
//! `--help` is made from.

use crate::exit::{Failure, Outcome, print};
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  anabranch generate man target/man
  anabranch generate completions bash > /etc/bash_completion.d/anabranch";

/// Make manual pages and shell completions
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, hide = true)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum What {
    /// Write one manual page for the program and one for each command into a folder
    Man {
        /// The folder; it is made where there is none
        folder: PathBuf,
    },
    /// Print what a shell needs to complete commands and options
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Makes it of `program`, which is the whole command line.
///
/// # Errors
/// A folder that cannot be written.
pub fn run(args: &GenerateArgs, mut program: Command) -> Outcome {
    match &args.what {
        What::Man { folder } => {
            let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(program, folder));
            written.map_err(|e| Failure::usage(format!("cannot write to `{}`: {e}", folder.display())))
        }
        What::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(*shell, &mut program, "anabranch", &mut out);
            print(&String::from_utf8_lossy(&out))
        }
    }
}
