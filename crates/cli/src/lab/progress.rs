//! How far the runs are, on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often there is a line where no bar can be drawn.
const LINE: Duration = Duration::from_secs(10);

/// A bar on a terminal, lines elsewhere.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: Mutex<Lines>,
}

struct Lines {
    /// When the first run began, and how many were done before.
    began: Option<(Instant, usize)>,
    told: Instant,
}

impl Progress {
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0));
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left")) {
            bar.set_style(style);
        }
        Progress { bar, lines: Mutex::new(Lines { began: None, told: Instant::now() }) }
    }

    /// `done` of `total` runs are done.
    pub fn tell(&self, done: usize, total: usize) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let first = lines.began.is_none();
        let (began, before) = *lines.began.get_or_insert((now, done));
        if let Some(bar) = &self.bar {
            if first {
                bar.set_length(total as u64);
                bar.reset_eta();
            }
            bar.set_position(done as u64);
            return;
        }
        if first && done > 0 {
            eprintln!("anabranch: {done} of {total} runs were done before");
        } else if now - lines.told >= LINE {
            lines.told = now;
            let each = (now - began).as_secs_f64() / (done - before).max(1) as f64;
            let left = each * (total - done) as f64;
            eprintln!("anabranch: {done} of {total} runs, about {} left", span(left));
        }
    }

    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Seconds for people.
fn span(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..=99 => format!("{s} s"),
        s => format!("{} min", (s + 30) / 60),
    }
}
