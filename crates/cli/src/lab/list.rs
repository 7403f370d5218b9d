//! `anabranch lab list`.

use crate::exit::{Failure, Outcome, print};
use anabranch_lab::experiment::{Experiment, SHIPPED};
use anabranch_lab::scenario::Choice;
use serde::Serialize;

/// List the experiments that come with the program
#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    /// As JSON
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    title: String,
    source: String,
    runs: usize,
    quick_runs: usize,
}

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for shipped in SHIPPED {
        let Some(e) = Experiment::shipped(shipped.name) else { continue };
        let e = e.map_err(Failure::usage)?;
        let quick = e.chosen(Choice { quick: true, seeds: None }).map_err(Failure::usage)?;
        let (title, source) = (e.about.title.clone(), e.about.source.clone());
        let (runs, quick_runs) = (e.runs(), quick.runs());
        rows.push(Row { name: e.name.clone(), title, source, runs, quick_runs });
        if e.scenarios.len() > 1 {
            for (s, q) in e.scenarios.iter().zip(&quick.scenarios) {
                let (title, source) = (s.title.clone(), s.source.clone());
                let (runs, quick_runs) = (s.runs(), q.runs());
                rows.push(Row { name: format!("{}/{}", e.name, s.name), title, source, runs, quick_runs });
            }
        }
    }
    Ok(rows)
}

/// Runs the command.
pub fn run(args: &ListArgs) -> Outcome {
    let rows = rows()?;
    let out = if args.json {
        serde_json::to_string_pretty(&rows).map_err(Failure::network)? + "\n"
    } else {
        let width = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        let line = |r: &Row| format!("{:width$}  {:>6} runs ({} quick)  {}\n", r.name, r.runs, r.quick_runs, r.title);
        rows.iter().map(line).collect()
    };
    print(&out)
}
