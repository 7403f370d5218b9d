//! What ffmpeg can do, asked of itself.

use crate::exit::{Failure, warning};
use crate::interrupt::Interrupt;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// It answers within a fraction of a second.
const LIMIT: Duration = Duration::from_secs(10);

/// Pause between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// The names of its filters, among other words; or why they are not known.
pub struct Filters(String);

impl Filters {
    /// Asks the ffmpeg that is installed.
    ///
    /// # Errors
    /// The user interrupts it.
    pub fn of_ffmpeg(interrupt: &Interrupt) -> Result<Result<Filters, String>, Failure> {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-hide_banner", "-filters"]);
        Ok(answer(ffmpeg, LIMIT, interrupt)?.map(Filters))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.split_whitespace().any(|w| w == name)
    }
}

/// What ffmpeg said last before it failed.
pub fn failed(said: &str) -> String {
    let last = said.lines().map(str::trim).rfind(|l| !l.is_empty());
    format!("ffmpeg failed: {}", last.unwrap_or("it does not say why"))
}

/// What it writes to standard output, or why there is nothing.
fn answer(mut ffmpeg: Command, limit: Duration, interrupt: &Interrupt) -> Result<Result<String, String>, Failure> {
    // In a group of its own it ends with all that it has started.
    ffmpeg.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = match ffmpeg.spawn() {
        Ok(child) => child,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Err("ffmpeg is not installed".to_owned())),
        Err(e) => return Ok(Err(format!("ffmpeg does not start: {e}"))),
    };
    let (out, errors) = (child.stdout.take().map(text), child.stderr.take().map(text));
    let began = Instant::now();
    // Something that it started may hold the pipes for longer than it lives.
    let is_read = |of: &Option<JoinHandle<String>>| of.as_ref().is_none_or(JoinHandle::is_finished);
    while !(is_read(&out) && is_read(&errors) && !matches!(child.try_wait(), Ok(None))) {
        if interrupt.has_come() {
            end(child);
            return Err(Failure::Interrupted);
        }
        if began.elapsed() >= limit {
            end(child);
            let why = format!("ffmpeg does not answer within {} s", limit.as_secs_f64());
            warning(&format!(
                "{why}: no pictures are compared; look at what `ffmpeg -filters` does, or take --no-decoding"
            ));
            return Ok(Err(why));
        }
        std::thread::sleep(LOOK);
    }
    let [out, errors] = [out, errors].map(|t| t.and_then(|t| t.join().ok()).unwrap_or_default());
    Ok(if child.wait().is_ok_and(|s| s.success()) { Ok(out) } else { Err(failed(&errors)) })
}

/// All that comes out of a pipe.
fn text(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // A child that is killed may break the pipe.
        let _ = from.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Ends it and what it has started.
fn end(mut child: Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // It may have ended by itself.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of(script: &str, limit: Duration) -> Result<String, String> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]);
        answer(shell, limit, &Interrupt::never()).expect("not interrupted")
    }

    #[test]
    fn an_ffmpeg_that_hangs_or_fails_is_no_ffmpeg_without_filters() {
        let soon = Duration::from_millis(300);
        let began = Instant::now();
        for script in ["sleep 60", "sleep 60; echo psnr", "sleep 60 & echo psnr"] {
            assert_eq!(answer_of(script, soon), Err("ffmpeg does not answer within 0.3 s".to_owned()), "{script}");
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        let failed = answer_of("echo first >&2; echo 'no libavfilter.so ' >&2; echo >&2; exit 1", LIMIT);
        assert_eq!(failed, Err("ffmpeg failed: no libavfilter.so".to_owned()));
        assert_eq!(answer_of("exit 1", LIMIT), Err("ffmpeg failed: it does not say why".to_owned()));
        assert_eq!(
            answer(Command::new("/no/such"), LIMIT, &Interrupt::never()),
            Ok(Err("ffmpeg is not installed".into()))
        );
        let filters = Filters(answer_of("echo ' ..C psnr VV->V'; echo x >&2", LIMIT).expect("an answer"));
        assert!(filters.has("psnr") && !filters.has("ssim") && !filters.has("x"));
    }
}
