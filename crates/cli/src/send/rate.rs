//! `--on-rate` and `--rate-file`: an encoder hears what the paths carry.

use crate::exit::{Failure, warning};
use crate::input::plain;
use crate::monitor::Progress;
use crate::overwrite::beside;
use crate::session::Mode;
use crate::transport::Link;
use anabranch_media::PacketiserConfig;
use anabranch_net::UsableRate;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Pause before a program that ended is started again: at first, and at most. It begins anew with one that ran so long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const RAN_WELL: Duration = Duration::from_secs(60);
/// Time that it has to end by itself once its input has ended.
const LEAVE: Duration = Duration::from_secs(2);

/// Where to report what the paths carry.
/// A command that starts something: an empty one would be started again and again.
fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the command is empty".to_owned()) } else { Ok(text.to_owned()) }
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Encoder")]
pub struct RateArgs {
    /// Start CMD through the shell; it reads a line `rate LOW MIDDLE TIME` for each change of what the paths carry within
    /// the latency: bit/s of input, safe and expected, and seconds since 1970
    #[arg(long, value_name = "CMD", value_parser = command)]
    pub on_rate: Option<String>,
    /// Keep the newest of these lines in FILE, which is replaced whole
    #[arg(long, value_name = "FILE")]
    pub rate_file: Option<PathBuf>,
}

/// Tells them as long as it lives.
pub struct Rates {
    lines: watch::Sender<Option<String>>,
    program: Option<JoinHandle<()>>,
}

/// Listens to one connection as long as it lives.
pub struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Rates {
    /// Starts what the user named.
    pub fn start(args: &RateArgs) -> Result<Self, Failure> {
        let lines = watch::Sender::new(None);
        if let Some(path) = &args.rate_file {
            let wrong = |e| Failure::usage(format!("cannot write {}: {}", path.display(), plain(&e)));
            std::fs::write(beside(path), "").and_then(|()| std::fs::remove_file(beside(path))).map_err(wrong)?;
            if path.is_dir() {
                return Err(Failure::usage(format!("cannot write {}: it is a directory", path.display())));
            }
            tokio::spawn(keep_file(path.clone(), lines.subscribe()));
        }
        let program = args.on_rate.clone().map(|command| tokio::spawn(keep_running(command, lines.subscribe())));
        Ok(Rates { lines, program })
    }

    /// Tells what the paths of `link` carry from now on.
    pub fn follow(&self, link: &Link, mode: Mode, progress: &Progress) -> Following {
        let (link, lines, progress) = (link.clone(), self.lines.clone(), progress.clone());
        Following(tokio::spawn(async move {
            let mut last = UsableRate::default();
            while let Some(rate) = link.rate_changed(last).await {
                last = rate;
                let [low, middle] = of_input(rate, mode);
                progress.update(|row| (row.usable_low_bps, row.usable_middle_bps) = (low, middle));
                lines.send_replace(Some(line([low, middle], SystemTime::now())));
            }
        }))
    }

    /// Ends the program.
    pub async fn finish(self) {
        drop(self.lines);
        if let Some(program) = self.program {
            let _ = program.await;
        }
    }
}

/// What is left of it for the input, bit/s: media have a header of ours in each message.
pub fn of_input(rate: UsableRate, mode: Mode) -> [u64; 2] {
    let full = PacketiserConfig::default().full_payload();
    let message = if mode == Mode::Media { PacketiserConfig::message_len(full) } else { full };
    [rate.low, rate.middle].map(|r| (u128::from(r.bits_per_sec()) * full as u128 / message.max(1) as u128) as u64)
}

fn line([low, middle]: [u64; 2], at: SystemTime) -> String {
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    format!("rate {low} {middle} {at:.3}\n")
}

async fn keep_file(path: PathBuf, mut lines: watch::Receiver<Option<String>>) {
    let mut said = false;
    while lines.changed().await.is_ok() {
        let Some(line) = lines.borrow_and_update().clone() else { continue };
        let new = beside(&path);
        let written = async {
            tokio::fs::write(&new, line).await?;
            tokio::fs::rename(&new, &path).await
        };
        if let Err(e) = written.await
            && !std::mem::replace(&mut said, true)
        {
            warning(&format!("cannot write {}: {}", path.display(), plain(&e)));
        }
    }
}

/// Starts the program, and again whenever it ends; the user hears of it once.
async fn keep_running(command: String, mut lines: watch::Receiver<Option<String>>) {
    let (mut pause, mut said) = (FIRST_PAUSE, false);
    loop {
        let began = Instant::now();
        let why = match run(&command, &mut lines).await {
            Ok(None) => return,
            Ok(Some(status)) => format!("ended with {status}"),
            Err(e) => format!("cannot run: {}", plain(&e)),
        };
        if !std::mem::replace(&mut said, true) {
            warning(&format!("--on-rate: `{command}` {why}; it is started again"));
        }
        if began.elapsed() >= RAN_WELL {
            pause = FIRST_PAUSE;
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = over(&mut lines) => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns once there will be no more lines.
async fn over(lines: &mut watch::Receiver<Option<String>>) {
    while lines.changed().await.is_ok() {}
}

/// Runs the program once; none when there are no more lines.
async fn run(command: &str, lines: &mut watch::Receiver<Option<String>>) -> io::Result<Option<ExitStatus>> {
    let mut shell = Command::new("/bin/sh");
    // Standard output may be that of the statistics. In a group of its own, Ctrl-C does not end it before the stream.
    shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(io::stderr()).process_group(0).kill_on_drop(true);
    let mut child = shell.spawn()?;
    let mut input = child.stdin.take();
    let mut waiting = lines.borrow_and_update().clone();
    loop {
        tokio::select! {
            status = child.wait() => return status.map(Some),
            more = lines.changed() => match more {
                Ok(()) => waiting.clone_from(&lines.borrow_and_update()),
                Err(_) => break,
            },
            // A line fits into a pipe whole or not at all; while it does not, a newer one takes its place.
            written = async { input.as_mut()?.write(waiting.as_ref()?.as_bytes()).await.into() },
                if input.is_some() && waiting.is_some() =>
            {
                waiting = None;
                if let Some(Err(_)) = written {
                    input = None;
                }
            }
        }
    }
    drop(input);
    leave(child).await;
    Ok(None)
}

/// Its input has ended: it has some time to end, and so have its children.
async fn leave(mut child: Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    if timeout(LEAVE, child.wait()).await.is_err() {
        if let Some(group) = group {
            let _ = killpg(group, Signal::SIGKILL);
        }
        let _ = child.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_documented() {
        let at = UNIX_EPOCH + Duration::from_millis(1_764_090_000_123);
        assert_eq!(line([4_250_000, 4_650_000], at), "rate 4250000 4650000 1764090000.123\n");
    }

    #[test]
    fn media_pay_for_their_header() {
        let bits = anabranch_net::Rate::from_bits_per_sec;
        let mut rate = UsableRate::default();
        (rate.low, rate.middle) = (bits(8_000_000), bits(9_000_000));
        assert_eq!(of_input(rate, Mode::Datagram), [8_000_000, 9_000_000]);
        let [low, middle] = of_input(rate, Mode::Media);
        assert!((7_800_000..8_000_000).contains(&low) && (8_800_000..9_000_000).contains(&middle), "{low} {middle}");
    }

    /// Runs the program while `lines` come 20 ms apart, then ends it. Answers what it wrote to the file `out`.
    async fn given(script: &str, lines: usize) -> (String, std::time::Duration) {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("out");
        let args = RateArgs {
            on_rate: Some(script.replace("OUT", out.to_str().expect("a name"))),
            rate_file: Some(dir.path().join("rate")),
        };
        let rates = Rates::start(&args).expect("starts");
        for i in 1..=lines {
            rates.lines.send_replace(Some(format!("rate {i} {i} 0.000\n")));
            sleep(Duration::from_millis(20)).await;
        }
        // Until the newest one is in the file.
        let newest = format!("rate {lines} {lines} 0.000\n");
        let there = async {
            while std::fs::read_to_string(dir.path().join("rate")).unwrap_or_default() != newest {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), there).await.expect("the file has the newest line");
        let began = std::time::Instant::now();
        rates.finish().await;
        (std::fs::read_to_string(out).unwrap_or_default(), began.elapsed())
    }

    #[tokio::test]
    async fn a_program_reads_lines_and_hears_the_end() {
        let (out, _) = given("while read l; do echo \"$l\" >> OUT; done; echo end >> OUT", 10).await;
        assert!(out.ends_with("rate 10 10 0.000\nend\n"), "{out}");
    }

    #[tokio::test]
    async fn one_that_ends_is_started_again_with_the_newest_line() {
        let (out, _) = given("read l; echo \"$l\" >> OUT", 80).await;
        let lines: Vec<&str> = out.lines().collect();
        assert!((1..=3).contains(&lines.len()), "with a pause: {lines:?}");
        if let [first, second, ..] = lines[..] {
            assert_ne!(first, second);
        }
    }

    #[tokio::test]
    async fn one_that_never_reads_blocks_nothing_and_is_ended() {
        // 10,000 lines are more than a pipe holds.
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("rate");
        let args = RateArgs { on_rate: Some("sleep 1000".into()), rate_file: Some(file.clone()) };
        let rates = Rates::start(&args).expect("starts");
        for i in 1..=10_000 {
            rates.lines.send_replace(Some(format!("rate {i} {i} 0.000\n")));
            tokio::task::yield_now().await;
        }
        let there = async {
            while std::fs::read_to_string(&file).unwrap_or_default() != "rate 10000 10000 0.000\n" {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(20), there).await.expect("the file has the newest line");
        timeout(Duration::from_secs(20), rates.finish()).await.expect("it is ended");
    }

    #[tokio::test]
    async fn places_that_cannot_be_written_are_the_users_mistake() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in [dir.path().to_owned(), dir.path().join("no/such")] {
            let args = RateArgs { on_rate: None, rate_file: Some(path.clone()) };
            let failure = Rates::start(&args).err().expect("a mistake");
            assert!(failure.code() == 2 && failure.to_string().contains(path.to_str().unwrap()), "{failure}");
        }
    }
}
