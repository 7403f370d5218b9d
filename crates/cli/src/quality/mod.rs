//! `anabranch quality`: what became of a stream, from recordings of it in front of the network and behind it.

mod capture;
mod decoded;
mod filters;
mod ivf;
mod progress;
mod read;
mod report;
#[cfg(test)]
mod tests;

use crate::exit::{Failure, Outcome, print, warning};
use crate::interrupt::Interrupt;
use crate::overwrite::Files;
use crate::units;
use anabranch_media::quality::{CompareError, Comparison, Recording, Shown};
use decoded::Pictures;
pub use progress::Progress;
use read::is_stdin;
pub use read::{read, refuse_port_without_capture};
use report::Report;
pub use report::codec_name;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  anabranch quality sent.ts received.ts
  anabranch quality sent.ts received.ts --json | jq .decodable_share
  anabranch quality sent.ts received.pcapng --buffer 100ms --csv frames.csv

Both are transport streams, or captures of one in UDP or RTP (pcap, pcapng). docs/QUALITY.md says what is counted how.";

/// Compare a stream as it was sent with how it was received: frames, references, stalls, PSNR, SSIM, VMAF
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct QualityArgs {
    /// The stream in front of the network: what `send` read; - for standard input
    #[arg(value_name = "SENT")]
    sent: PathBuf,
    /// The stream behind it: what `recv` wrote, or a capture of what it sent on; - for standard input
    #[arg(value_name = "RECEIVED")]
    received: PathBuf,
    /// As JSON
    #[arg(short = 'J', long)]
    json: bool,
    /// Write a line for each frame to a file; - for standard output, and the table goes to standard error
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The picture stands still when the next one is later than it should be by this or more
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::time)]
    stall: Duration,
    /// How much later than the stream's clock the player shows frames; for a RECEIVED that is a capture [default: 0ms]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    buffer: Option<Duration>,
    /// Decode nothing: no PSNR, SSIM and VMAF
    #[arg(long)]
    no_decoding: bool,
    /// UDP port of the stream in a capture [default: that of the first datagram with a transport stream]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

/// Runs the command.
pub fn run(args: &QualityArgs) -> Outcome {
    let csv_to_stdout = args.csv.as_deref().is_some_and(is_stdin);
    if csv_to_stdout && args.json {
        return Err(Failure::usage("--csv - and --json both go to standard output; give one of them a file"));
    }
    if is_stdin(&args.sent) && is_stdin(&args.received) {
        return Err(Failure::usage("only one of SENT and RECEIVED can come from standard input"));
    }
    let stream = |path| Some(if is_stdin(path) { Path::new("/dev/stdin") } else { path });
    Files::default()
        .reads("SENT", stream(&args.sent))
        .reads("RECEIVED", stream(&args.received))
        .writes("--csv", args.csv.as_deref().map(|p| if csv_to_stdout { Path::new("/dev/stdout") } else { p }))
        .check()?;
    let interrupt = Interrupt::install();
    let progress = Progress::new();
    let read = |path: &Path| read(path, args.port, &progress, &interrupt);
    let (sent, received) = (read(&args.sent)?, read(&args.received)?);
    refuse_port_without_capture(args.port, &[&sent, &received])?;
    if args.buffer.is_some() && !received.is_capture() {
        return Err(Failure::usage(
            "--buffer is for a RECEIVED that is a capture (pcap, pcapng), which says when it came; remove it",
        ));
    }
    let found = Comparison::of(&sent.recording, &received.recording);
    refuse_no_stream(args, &received.recording, &found)?;
    let found = found.map_err(|e| refused(args, e))?;
    let (buffer, shortest) = (args.buffer.unwrap_or_default().into(), args.stall.into());
    let shown = Shown::of(&sent.recording, &received.recording, &found, buffer, shortest);
    let pictures = if args.no_decoding {
        Err("--no-decoding was given".to_owned())
    } else {
        Pictures::measure(&sent, &received, &found, &progress, &interrupt)?
    };
    progress.end();
    if let Some(path) = &args.csv {
        let text = report::frames_csv(&sent.recording, &found, &shown, pictures.as_ref().ok());
        if csv_to_stdout {
            print(&text)?;
        } else {
            anabranch_report::write_atomically(path, text.as_bytes()).map_err(Failure::usage)?;
        }
    }
    for (path, source) in [(&args.sent, &sent), (&args.received, &received)] {
        let (bytes, other) = source.recording.bytes();
        if other * 100 > bytes {
            warning(&format!("{}: {other} of {bytes} bytes are no transport stream", path.display()));
        }
    }
    let report = Report::of(args, &sent.recording, &found, &shown, &pictures);
    if csv_to_stdout {
        eprint!("{}", report.text());
        return Ok(());
    }
    print(&if args.json { report.json() } else { report.text() })
}

/// What is no transport stream is no stream of which all was lost. Three bytes in it may be where those of packets would be.
fn refuse_no_stream(args: &QualityArgs, received: &Recording, found: &Result<Comparison, CompareError>) -> Outcome {
    let (bytes, other) = received.bytes();
    let by_chance = *found == Err(CompareError::Strangers) && other > bytes / 2;
    if *found == Err(CompareError::NoVideo) || !by_chance && (other == 0 || received.packets() > 0) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: no transport stream is in it; RECEIVED is what `recv` wrote of one, or a capture of what it sent on",
        args.received.display()
    )))
}

fn refused(args: &QualityArgs, error: CompareError) -> Failure {
    let path = if error == CompareError::NoVideo { &args.sent } else { &args.received };
    Failure::usage(format!("{}: {error}", path.display()))
}
