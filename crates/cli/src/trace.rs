//! `anabranch trace`: a time sequence from the event log of a run.

use crate::exit::{Failure, Outcome, print};
use crate::overwrite::Files;
use anabranch_lab::trace::diagram::{self, Diagram, Options};
use anabranch_report::{Rasteriser, write_atomically};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  anabranch lab run rtx-csi/e1 --quick --log
  anabranch trace results/e1-quick/trace/RUN.jsonl
  anabranch trace RUN.jsonl --from 4 --to 6 --out losses.png
  anabranch trace RUN.jsonl --flow main --out main.svg

The log has one JSON object on each line; docs/TRACES.md tells its fields.";

/// Draw what a simulated flow sent when: TSNs or TCP segments over time, retransmissions, losses, windows below
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// Event log of a run: a .jsonl file that `lab run --log` left
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The flow to draw, of SCTP or TCP [default: the first of SCTP that sent, or else of TCP]
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// From this time of the run, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    from: f64,
    /// To this time of the run, seconds [default: the end]
    #[arg(long, value_name = "SECONDS")]
    to: Option<f64>,
    /// Where to: .html (everything), .svg or .png (the drawing) [default: FILE with .html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &TraceArgs) -> Outcome {
    let to = args.to.unwrap_or(f64::INFINITY);
    if !(args.from >= 0.0 && to > args.from) {
        return Err(Failure::usage(format!("--from {} --to {to}: the end must lie behind the start", args.from)));
    }
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("html"));
    let kind = Kind::of(&out)?;
    Files::default().reads("the log itself", Some(&args.file)).writes("--out", Some(&out)).check()?;
    let named = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", args.file.display()));
    let file =
        File::open(&args.file).map_err(|e| Failure::usage(format!("cannot read {}: {e}", args.file.display())))?;
    let lines = diagram::read(BufReader::new(file)).map_err(|e| named(&e))?;
    let options = Options { flow: args.flow.clone(), from: args.from, to };
    let diagram = diagram::lay_out(&lines, &options).map_err(|e| named(&e))?;
    let bytes = kind.bytes(&diagram)?;
    write_atomically(&out, &bytes).map_err(Failure::usage)?;
    print(&format!("{}\n", out.display()))
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Html,
    Svg,
    Png,
}

impl Kind {
    fn of(out: &Path) -> Result<Kind, Failure> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("html" | "htm") => Ok(Kind::Html),
            Some("svg") => Ok(Kind::Svg),
            Some("png") => Ok(Kind::Png),
            _ => Err(Failure::usage(format!("--out {}: end the name in .html, .svg or .png", out.display()))),
        }
    }

    fn bytes(self, diagram: &Diagram) -> Result<Vec<u8>, Failure> {
        Ok(match self {
            Kind::Html => diagram.page(env!("CARGO_PKG_VERSION")).to_html().into_bytes(),
            Kind::Svg => diagram.drawing().standalone().into_bytes(),
            Kind::Png => {
                let advice = |e| Failure::usage(format!("{e}; choose --out with .svg or .html"));
                Rasteriser::new().and_then(|r| r.png(&diagram.drawing())).map_err(advice)?
            }
        })
    }
}
