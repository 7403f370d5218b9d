//! How far it is, on standard error: a bar on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often there is a line where no bar can be drawn.
const LINE: Duration = Duration::from_secs(10);

pub struct Progress {
    bar: Option<ProgressBar>,
    printed: Cell<Instant>,
}

impl Progress {
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(100));
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{bar:30} {pos} % {msg}")) {
            bar.set_style(style);
        }
        Progress { bar, printed: Cell::new(Instant::now()) }
    }

    /// `done` of `total` of something that is being done.
    pub fn tell(&self, what: &str, done: u64, total: u64) {
        let percent = (100.0 * done as f64 / total.max(1) as f64).min(100.0) as u64;
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.set_position(percent);
        } else if self.printed.get().elapsed() >= LINE {
            self.printed.set(Instant::now());
            eprintln!("anabranch: {what}: {percent} %");
        }
    }

    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
