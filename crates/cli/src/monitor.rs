//! Watches a connection: takes samples, writes statistics, notices a peer that has fallen silent.

use crate::exit::Failure;
use crate::runtime;
use crate::session::Done;
use crate::stats::{Reporter, StreamRow};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use crate::warn;
use anabranch_net::ConnectionStats;
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

/// After so long without a packet the user is told, once: silence may last longer before the peer counts as gone.
const WORRY: Duration = Duration::from_secs(5);

/// Notices a peer that is gone, as long as it lives.
pub struct Watchdog(JoinHandle<()>);

impl Watchdog {
    /// A peer from whom nothing came for `limit` is lost, and `stop` is told.
    pub fn start(link: &Link, limit: Duration, stop: &Stop) -> Self {
        let (link, stop) = (link.clone(), stop.clone());
        Watchdog(tokio::spawn(async move {
            let worried = async {
                silence(&link, WORRY).await;
                warn::limited("silence", || format!("nothing comes from {} any more; still trying", link.peer()));
                std::future::pending().await
            };
            tokio::select! {
                () = silence(&link, limit) => {}
                () = worried => {}
            }
            let (peer, seconds) = (link.peer(), limit.as_secs_f64());
            stop.set(Cause::Lost(Failure::network(format!(
                "{peer} is gone: nothing has come from it for {seconds} s on any path"
            ))));
        }))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns once nothing at all, not even an answer to a heartbeat, has come from the peer for so long.
pub async fn silence(link: &Link, limit: Duration) {
    while !quiet_for(link, limit).await {}
}

/// Waits so long for a packet from the peer; true when none comes.
pub async fn quiet_for(link: &Link, limit: Duration) -> bool {
    let every = (limit / 20).clamp(Duration::from_millis(10), Duration::from_millis(100));
    let (heard, since) = (packets_received(&link.stats()), Instant::now());
    loop {
        tokio::time::sleep(every).await;
        if packets_received(&link.stats()) != heard {
            return false;
        }
        if since.elapsed() > limit {
            return true;
        }
    }
}

fn packets_received(stats: &ConnectionStats) -> u64 {
    stats.paths.iter().map(|p| p.stats.counters.packets_received).fold(0, u64::wrapping_add)
}

/// A running monitor.
pub struct Monitor {
    task: JoinHandle<()>,
    link: Link,
    reporter: SharedReporter,
    progress: Progress,
}

impl Monitor {
    /// Begins to watch, with a row of statistics every `interval`.
    pub fn start(link: &Link, reporter: &SharedReporter, progress: &Progress, interval: Duration) -> Self {
        let state = State { link: link.clone(), reporter: reporter.clone(), progress: progress.clone(), interval };
        Monitor {
            task: runtime::aside(state.run()),
            link: link.clone(),
            reporter: reporter.clone(),
            progress: progress.clone(),
        }
    }

    /// Ends watching and writes the totals.
    pub async fn finish(self, command: &'static str, ended: String, received: Option<Done>) {
        self.task.abort();
        // A row may be under way in another thread; none comes after the totals.
        let _ = self.task.await;
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
    interval: Duration,
}

impl State {
    async fn run(self) {
        let every = (self.interval / 20).clamp(Duration::from_millis(10), Duration::from_millis(100));
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_row = Instant::now() + self.interval;
        let mut events = self.link.events();
        let mut events_end = false;
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    take_sample(&self.link, &self.reporter, &self.progress);
                    if Instant::now() >= next_row {
                        next_row += self.interval;
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
}

fn take_sample(link: &Link, reporter: &SharedReporter, progress: &Progress) {
    let stats = link.stats();
    progress.update(|row| {
        row.abandoned = stats.association.abandoned_unsent + stats.association.abandoned_sent + row.expired;
    });
    lock(reporter).sample(anabranch_net::now(), &stats.paths);
}

/// A poisoned lock only means that another task panicked while counting.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
