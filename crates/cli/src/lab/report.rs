//! `anabranch lab report`.

use super::show;
use crate::exit::{Failure, Outcome, print};
use anabranch_lab::report::{self, About};
use anabranch_lab::run::folder;
use std::path::PathBuf;

/// Make report.html, claims.csv and figures again from the results in a folder
#[derive(Clone, Debug, clap::Args)]
pub struct ReportArgs {
    /// Folder that `lab run` wrote: it holds results.csv and manifest.json
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Outcome {
    if !args.dir.join("manifest.json").is_file() {
        let dir = args.dir.display();
        return Err(Failure::usage(format!(
            "{dir} holds no results (no manifest.json): name a folder that `lab run` wrote"
        )));
    }
    let (manifest, results) = folder::read(&args.dir).map_err(Failure::usage)?;
    let about = About { settings: manifest.settings(), ..manifest.about.clone() };
    let written = report::write(&args.dir, &about, &results).map_err(Failure::usage)?;
    written.warnings.iter().for_each(|w| crate::exit::warning(w));
    print(&show::text(&results, &written.judgements, &written.page))
}
