//! What the user sees while it runs, on standard error: bars on a terminal, now and then a line elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::future::Future;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// How often bars move.
const TICK: Duration = Duration::from_millis(200);
/// How often there is a line where no bars can be drawn.
const LINE: Duration = Duration::from_secs(5);

/// Something that is watched.
pub struct Row<'a> {
    /// Its name.
    pub name: String,
    /// How it is going, in a few words.
    pub status: Box<dyn Fn() -> String + Send + 'a>,
}

/// The display.
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Bars when standard error is a terminal.
    pub fn new() -> Self {
        Progress { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bars {
            // A terminal that went away is no reason to stop.
            Some(bars) => drop(bars.println(line)),
            None => eprintln!("{line}"),
        }
    }

    /// Shows `rows` while `work` goes on, which takes about `length`.
    pub async fn during<F: Future>(&self, length: Duration, rows: &[Row<'_>], work: F) -> F::Output {
        let bars: Vec<ProgressBar> = rows.iter().filter_map(|row| self.bar(row, length)).collect();
        let started = Instant::now();
        let mut tick = tokio::time::interval(if self.bars.is_some() { TICK } else { LINE });
        let mut work = std::pin::pin!(work);
        // The first tick is immediate and has nothing to tell.
        tick.tick().await;
        let output = loop {
            tokio::select! {
                output = &mut work => break output,
                _ = tick.tick() => self.show(rows, &bars, started.elapsed()),
            }
        };
        for bar in bars {
            bar.finish_and_clear();
        }
        output
    }

    fn bar(&self, row: &Row<'_>, length: Duration) -> Option<ProgressBar> {
        let bar = self.bars.as_ref()?.add(ProgressBar::new(length.as_millis() as u64));
        if let Ok(style) = ProgressStyle::with_template("{prefix:>12} {bar:24} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(row.name.clone());
        Some(bar)
    }

    fn show(&self, rows: &[Row<'_>], bars: &[ProgressBar], elapsed: Duration) {
        for (bar, row) in bars.iter().zip(rows) {
            bar.set_position((elapsed.as_millis() as u64).min(bar.length().unwrap_or(u64::MAX)));
            bar.set_message((row.status)());
        }
        if self.bars.is_none() {
            for row in rows {
                eprintln!("{}, {} s: {}", row.name, elapsed.as_secs(), (row.status)());
            }
        }
    }
}
