//! Watches a connection: takes samples, writes statistics, notices a peer that has fallen silent.

use crate::exit::Failure;
use crate::session::Done;
use crate::stats::{Reporter, StreamRow};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// What the stream has done so far; the session counts, the monitor tells.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<StreamRow>>);

impl Progress {
    /// Changes the counters.
    pub fn update(&self, change: impl FnOnce(&mut StreamRow)) {
        change(&mut lock(&self.0));
    }

    /// The counters.
    pub fn get(&self) -> StreamRow {
        *lock(&self.0)
    }
}

/// Statistics that several sessions may write to, one after another or at once.
pub type SharedReporter = Arc<Mutex<Reporter>>;

/// What to watch for.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Time between statistics.
    pub interval: Duration,
    /// A peer from whom nothing came for so long is gone.
    pub peer_timeout: Duration,
}

/// A running monitor.
pub struct Monitor {
    task: JoinHandle<()>,
    link: Link,
    reporter: SharedReporter,
    progress: Progress,
}

impl Monitor {
    /// Begins to watch. A lost peer is told to `stop`.
    pub fn start(link: &Link, reporter: &SharedReporter, progress: &Progress, watch: Watch, stop: &Stop) -> Self {
        let state = State {
            link: link.clone(),
            reporter: reporter.clone(),
            progress: progress.clone(),
            watch,
            stop: stop.clone(),
            heard: (0, Instant::now()),
        };
        Monitor {
            task: tokio::spawn(state.run()),
            link: link.clone(),
            reporter: reporter.clone(),
            progress: progress.clone(),
        }
    }

    /// Ends watching and writes the totals.
    pub fn finish(self, command: &'static str, ended: String, received: Option<Done>) {
        self.task.abort();
        take_sample(&self.link, &self.reporter, &self.progress);
        let mut reporter = lock(&self.reporter);
        // The rest of the last interval, so that the rows add up.
        reporter.interval(anabranch_net::now(), self.progress.get());
        reporter.totals(command, ended, self.progress.get(), received);
    }
}

struct State {
    link: Link,
    reporter: SharedReporter,
    progress: Progress,
    watch: Watch,
    stop: Stop,
    /// Packets received so far, and when the last of them was noticed.
    heard: (u64, Instant),
}

impl State {
    async fn run(mut self) {
        let every = (self.watch.interval / 20).clamp(Duration::from_millis(10), Duration::from_millis(100));
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_row = Instant::now() + self.watch.interval;
        let mut events = self.link.events();
        let mut events_end = false;
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    let packets = take_sample(&self.link, &self.reporter, &self.progress);
                    self.listen(packets);
                    if Instant::now() >= next_row {
                        next_row += self.watch.interval;
                        lock(&self.reporter).interval(anabranch_net::now(), self.progress.get());
                    }
                }
                event = events.next(), if !events_end => match event {
                    Some(e) => lock(&self.reporter).event(&e),
                    None => events_end = true,
                }
            }
        }
    }

    /// Nothing at all from the peer, not even answers to heartbeats, means that it is gone.
    fn listen(&mut self, packets: u64) {
        let now = Instant::now();
        if packets != self.heard.0 {
            self.heard = (packets, now);
        } else if now - self.heard.1 > self.watch.peer_timeout {
            let seconds = self.watch.peer_timeout.as_secs_f64();
            let peer = self.link.peer();
            self.stop.set(Cause::Lost(Failure::network(format!(
                "{peer} is gone: nothing has come from it for {seconds} s on any path"
            ))));
        }
    }
}

/// Returns the packets received so far.
fn take_sample(link: &Link, reporter: &SharedReporter, progress: &Progress) -> u64 {
    let stats = link.stats();
    progress.update(|row| {
        row.abandoned = stats.association.abandoned_unsent + stats.association.abandoned_sent + row.expired;
    });
    lock(reporter).sample(anabranch_net::now(), &stats.paths);
    stats.paths.iter().map(|p| p.stats.counters.packets_received).fold(0, u64::wrapping_add)
}

/// A poisoned lock only means that another task panicked while counting.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
