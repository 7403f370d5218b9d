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
    pace: Mutex<Pace>,
}

/// How fast runs are done.
struct Pace {
    /// When the first run began, and how many were done before.
    began: Option<(Instant, usize)>,
    /// When a line was printed last.
    printed: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Pace { began: None, printed: now }
    }

    /// What is left at the pace so far, in words. What was done before this program began says nothing about it.
    fn left(&mut self, now: Instant, done: usize, total: usize) -> Option<String> {
        let (began, before) = *self.began.get_or_insert((now, done));
        let own = done.checked_sub(before).filter(|n| *n > 0)?;
        let each = now.saturating_duration_since(began).as_secs_f64() / own as f64;
        Some(format!("about {} left", span(each * total.saturating_sub(done) as f64)))
    }

    /// The line to print where there is no bar, if it is time for one.
    fn line(&mut self, now: Instant, done: usize, total: usize) -> Option<String> {
        let first = self.began.is_none();
        let left = self.left(now, done, total);
        if first {
            return (done > 0).then(|| format!("{done} of {total} runs were done before"));
        }
        if now.saturating_duration_since(self.printed) < LINE {
            return None;
        }
        self.printed = now;
        Some(format!("{done} of {total} runs{}", left.map_or(String::new(), |l| format!(", {l}"))))
    }
}

impl Progress {
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0));
        if let (Some(bar), Ok(style)) = (&bar, ProgressStyle::with_template("{bar:30} {pos}/{len} runs{msg}")) {
            bar.set_style(style);
        }
        Progress { bar, pace: Mutex::new(Pace::new(Instant::now())) }
    }

    /// `done` of `total` runs are done; called for the first time before any of them is.
    pub fn tell(&self, done: usize, total: usize) {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            if let Some(left) = pace.left(now, done, total) {
                bar.set_message(format!(", {left}"));
            }
            bar.set_position(done as u64);
        } else if let Some(line) = pace.line(now, done, total) {
            eprintln!("anabranch: {line}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_how_far_it_is_and_how_long_it_takes() {
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        let mut pace = Pace::new(began);
        assert_eq!(pace.line(at(0), 0, 100), None, "nothing is done");
        assert_eq!(pace.line(at(4), 2, 100), None, "a line every ten seconds");
        // Two seconds each.
        assert_eq!(pace.line(at(10), 5, 100).as_deref(), Some("5 of 100 runs, about 3 min left"));
        assert_eq!(pace.line(at(19), 6, 100), None);
        // From then on as fast as all so far: 20 s for 80.
        assert_eq!(pace.line(at(20), 80, 100).as_deref(), Some("80 of 100 runs, about 5 s left"));
        assert_eq!(pace.line(at(30), 100, 100).as_deref(), Some("100 of 100 runs, about 0 s left"));
    }

    #[test]
    fn what_was_done_before_does_not_count_for_the_pace() {
        let began = Instant::now();
        let at = |s| began + Duration::from_secs(s);
        let mut pace = Pace::new(began);
        assert_eq!(pace.line(at(0), 90, 100).as_deref(), Some("90 of 100 runs were done before"));
        // One in ten seconds, not 91.
        assert_eq!(pace.line(at(10), 91, 100).as_deref(), Some("91 of 100 runs, about 90 s left"));
        let mut bar = Pace::new(began);
        assert_eq!(bar.left(at(0), 90, 100), None);
        assert_eq!(bar.left(at(10), 91, 100).as_deref(), Some("about 90 s left"));
    }

    #[test]
    fn spans_are_for_people() {
        let all: Vec<String> = [0.4, 99.4, 99.5, 149.0, 3_600.0].into_iter().map(span).collect();
        assert_eq!(all, ["0 s", "99 s", "2 min", "2 min", "60 min"]);
    }
}
