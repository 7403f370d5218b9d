//! Watches a connection: takes samples, writes statistics, notices a peer that has fallen silent.

use crate::exit::Failure;
use crate::runtime;
use crate::session::Done;
use crate::stats::{ParityRow, Reporter, StreamRow};
use crate::stop::{Cause, Stop};
use crate::transport::Link;
use crate::warn;
use anabranch_net::ConnectionStats;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
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

/// After so long without a packet the user is warned, once: silence may last longer before the peer counts as gone.
const WORRY: Duration = Duration::from_secs(5);

/// Pause between two samples that count for the totals only.
const TOTALS_ONLY: Duration = Duration::from_millis(250);

/// While something is sent, an answer comes within a round trip and less than this; where none does, no path works.
const DARK: Duration = Duration::from_millis(200);

/// Notices a peer that is gone, as long as it lives.
pub struct Watchdog(JoinHandle<()>);

impl Watchdog {
    /// A peer from whom nothing came for `limit` is lost, which sets `stop`.
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

fn packets_sent(stats: &ConnectionStats) -> u64 {
    stats.paths.iter().map(|p| p.stats.counters.packets_sent).fold(0, u64::wrapping_add)
}

/// A running monitor.
pub struct Monitor {
    task: JoinHandle<()>,
    watched: Watched,
    links: watch::Sender<Link>,
}

/// The connection that is watched now.
struct Watching {
    link: Link,
    /// Messages that earlier connections of the session gave up.
    given_up: u64,
    /// What parity did in them.
    parity: Option<ParityRow>,
    /// Packets that had come and gone when nothing was unanswered last, and when that was, as far as samples show it.
    answered: (u64, u64, Instant),
    /// No path worked at the last sample.
    dark: bool,
}

/// What the task and the owner of a monitor share.
#[derive(Clone)]
struct Watched {
    now: Arc<Mutex<Watching>>,
    reporter: SharedReporter,
    progress: Progress,
}

impl Monitor {
    /// Begins to watch, with a row of statistics every `interval`.
    pub fn start(link: &Link, reporter: &SharedReporter, progress: &Progress, interval: Duration) -> Self {
        let now = Arc::new(Mutex::new(Watching {
            link: link.clone(),
            given_up: 0,
            parity: None,
            answered: (0, 0, Instant::now()),
            dark: false,
        }));
        let watched = Watched { now, reporter: reporter.clone(), progress: progress.clone() };
        let (links, follows) = watch::channel(link.clone());
        Monitor { task: runtime::aside(watched.clone().run(follows, interval)), watched, links }
    }

    /// The session was lost.
    pub fn lost(&self, why: &Failure) {
        self.watched.sample();
        self.watched.progress.update(|row| row.connected = Some(false));
        lock(&self.watched.reporter).lost(why.to_string());
    }

    /// It goes on over another connection, and so do its counters.
    pub fn follow(&self, link: &Link, latency: Duration) {
        self.watched.sample();
        {
            let mut now = lock(&self.watched.now);
            let stats = now.link.stats();
            now.given_up += given_up(&stats);
            now.parity = ParityRow::sum(now.parity, ParityRow::of(&stats));
            now.link = link.clone();
        }
        self.watched.progress.update(|row| {
            row.connected = Some(true);
            row.reconnects += 1;
        });
        lock(&self.watched.reporter).again(latency.as_millis() as u64);
        self.links.send_replace(link.clone());
    }

    /// Ends watching and writes the totals.
    pub async fn finish(self, command: &'static str, ended: String, received: Option<Done>) {
        self.task.abort();
        // A row may be under way in another thread; none comes after the totals.
        let _ = self.task.await;
        self.watched.sample();
        let progress = self.watched.progress.get();
        let mut reporter = lock(&self.watched.reporter);
        // The rest of the last interval, so that the rows add up.
        reporter.interval(anabranch_net::now(), progress);
        reporter.totals(command, ended, progress, received);
    }
}

impl Watched {
    async fn run(self, mut links: watch::Receiver<Link>, interval: Duration) {
        let every = (interval / 20).clamp(Duration::from_millis(10), Duration::from_millis(100));
        let every = if lock(&self.reporter).has_rows() { every } else { TOTALS_ONLY };
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_row = Instant::now() + interval;
        let mut events = links.borrow_and_update().events();
        let mut events_end = false;
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    self.sample();
                    if Instant::now() >= next_row {
                        next_row += interval;
                        lock(&self.reporter).interval(anabranch_net::now(), self.progress.get());
                    }
                }
                event = events.next(), if !events_end => match event {
                    Some(e) => lock(&self.reporter).event(&e),
                    None => events_end = true,
                },
                Ok(()) = links.changed() => {
                    events = links.borrow_and_update().events();
                    events_end = false;
                }
            }
        }
    }

    fn sample(&self) {
        let mut now = lock(&self.now);
        let stats = now.link.stats();
        let (heard, said) = (packets_received(&stats), packets_sent(&stats));
        if heard != now.answered.0 || said == now.answered.1 {
            now.answered = (heard, said, Instant::now());
        }
        // The last path counts as usable however silent it is.
        let round_trip = stats.paths.iter().map(|p| p.stats.srtt).max().map_or(Duration::ZERO, Duration::from);
        let dark = now.answered.2.elapsed() >= DARK + round_trip || !stats.paths.iter().any(|p| p.stats.state.usable());
        // What waited until a path came back was given up in the dark, too.
        let in_the_dark = std::mem::replace(&mut now.dark, dark) || dark;
        let (before, parity) = (now.given_up, ParityRow::sum(now.parity, ParityRow::of(&stats)));
        self.progress.update(|row| {
            let abandoned = before + given_up(&stats) + row.expired;
            row.in_the_dark += if in_the_dark { abandoned.saturating_sub(row.abandoned) } else { 0 };
            row.abandoned = abandoned;
            row.parity = parity;
        });
        lock(&self.reporter).sample(anabranch_net::now(), &stats.paths);
    }
}

fn given_up(stats: &ConnectionStats) -> u64 {
    stats.association.abandoned_unsent + stats.association.abandoned_sent
}

/// A poisoned lock only means that another task panicked while counting.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
