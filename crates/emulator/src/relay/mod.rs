//! The relays at work: one thread waits for sockets and for the next time a link lets something out.
//!
//! The thread holds the lock on everything but the wait itself, so that a snapshot or a change from
//! outside sees a whole state. `ppoll` waits with nanosecond timeouts, so a datagram leaves within
//! the kernel's timer slack (50 microseconds) and the scheduler's latency of its time.

mod clients;
mod path;
pub(crate) mod socket;

use crate::clock::Clock;
use crate::config::{EmulatorConfig, PathChange};
use crate::error::EmulatorError;
use crate::stats::{EmulatorStats, Lateness, MachineStats, Sample};
use anabranch_base::{Duration, Instant};
use anabranch_sim::{Delivery, Direction, Frames};
use clients::ClientId;
use hdrhistogram::Histogram;
use path::{Datagram, Path};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Datagrams read from one socket before others, and what is due, get their turn.
const BATCH: usize = 64;
/// Largest UDP payload, and a byte more.
const LARGEST: usize = 65_536;
/// Most bytes of payload held in all links together.
const HELD: u64 = 256 << 20;
/// Buffers kept for later datagrams.
const POOL: usize = 4_096;
/// Distance of samples.
const SAMPLE: Duration = Duration::from_millis(100);
/// Samples kept: an hour's.
const SAMPLES: usize = 36_000;
/// Lateness beyond this is counted as this, in nanoseconds.
const LATEST: u64 = 60_000_000_000;

/// Where a socket's datagrams come from.
#[derive(Clone, Copy)]
enum Source {
    Clients(usize),
    Target(usize, ClientId),
}

#[derive(Clone)]
struct Watched {
    socket: Arc<UdpSocket>,
    source: Source,
}

/// Everything the thread and the handle share.
pub(crate) struct Core {
    clock: Clock,
    paths: Vec<Path>,
    watched: Arc<[Watched]>,
    scratch: Box<[u8]>,
    pool: Vec<Vec<u8>>,
    /// Bytes of payload in all links.
    held: u64,
    overflow: u64,
    send_errors: u64,
    lateness: Histogram<u64>,
    next_sample: Instant,
    samples: VecDeque<Sample>,
    pub(crate) stopping: bool,
}

impl Core {
    pub(crate) fn open(config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        config.check()?;
        let paths = config.paths.iter().map(|p| Path::open(p, config.seed)).collect::<Result<Vec<_>, _>>()?;
        let lateness = Histogram::new_with_bounds(1, LATEST, 3)
            .map_err(|e| EmulatorError::System { what: "the lateness histogram", source: io::Error::other(e) })?;
        let mut core = Core {
            clock: Clock::start(),
            paths,
            watched: Arc::from([]),
            scratch: vec![0; LARGEST].into(),
            pool: Vec::new(),
            held: 0,
            overflow: 0,
            send_errors: 0,
            lateness,
            next_sample: Instant::ZERO,
            samples: VecDeque::new(),
            stopping: false,
        };
        core.watch();
        Ok(core)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn local_addrs(&self) -> Vec<SocketAddr> {
        self.paths.iter().map(Path::address).collect()
    }

    pub(crate) fn path_index(&self, name: &str) -> Option<usize> {
        self.paths.iter().position(|p| p.name() == name)
    }

    fn stats(&mut self) -> EmulatorStats {
        let now = self.clock.now();
        self.paths.iter_mut().for_each(|p| p.advance(now));
        EmulatorStats {
            running: now.since(Instant::ZERO),
            machine: MachineStats {
                lateness: Lateness::of(&self.lateness),
                receive_drops: None,
                send_errors: self.send_errors,
                overflow: self.overflow,
            },
            paths: self.paths.iter().map(Path::stats).collect(),
        }
    }

    pub(crate) fn frames(&mut self, index: usize, direction: Direction) -> Option<Frames> {
        let now = self.clock.now();
        let link = self.paths.get_mut(index)?.link_mut(direction);
        link.advance(now);
        Some(link.frames())
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().cloned().collect()
    }

    pub(crate) fn control(&mut self, index: usize, change: PathChange) -> Result<(), EmulatorError> {
        let now = self.clock.now();
        let path = self.paths.get_mut(index).ok_or(EmulatorError::NoSuchPath(index))?;
        match change {
            PathChange::Rebind => {
                path.rebind();
                self.watch();
            }
            PathChange::Link { direction, set } => {
                for one in Direction::BOTH {
                    if direction.is_none_or(|d| d == one) {
                        path.link_mut(one).apply(now, set.clone());
                    }
                }
            }
        }
        Ok(())
    }

    /// Lists the sockets anew.
    fn watch(&mut self) {
        let of_path = |(index, path): (usize, &Path)| {
            let listener = Watched { socket: path.listener.clone(), source: Source::Clients(index) };
            let upstream = path
                .clients
                .iter()
                .map(move |c| Watched { socket: c.upstream.clone(), source: Source::Target(index, c.id) });
            std::iter::once(listener).chain(upstream).collect::<Vec<_>>()
        };
        self.watched = self.paths.iter().enumerate().flat_map(of_path).collect();
    }

    /// Reads what has come on the sockets named by their place in `watched`, and lets out what is due.
    fn step(&mut self, watched: &[Watched], ready: &[usize]) {
        self.deliver();
        for watch in ready.iter().filter_map(|i| watched.get(*i)) {
            self.receive(watch);
            self.deliver();
        }
        self.housekeeping();
    }

    fn receive(&mut self, watch: &Watched) {
        let mut new_client = false;
        for _ in 0..BATCH {
            let (size, sender) = match watch.socket.recv_from(&mut self.scratch) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // The target's port was closed for an earlier datagram; the queue behind this error may hold datagrams.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => break,
            };
            let now = self.clock.now();
            let (index, direction) = match watch.source {
                Source::Clients(index) => (index, Direction::Forward),
                Source::Target(index, _) => (index, Direction::Backward),
            };
            let Some(path) = self.paths.get_mut(index) else { break };
            let client = match watch.source {
                Source::Clients(_) => {
                    let Some((id, new)) = path.enter(now, sender) else { continue };
                    new_client |= new;
                    id
                }
                Source::Target(_, id) => {
                    path.clients.touch(now, id);
                    id
                }
            };
            if self.held + size as u64 > HELD {
                self.overflow += 1;
                continue;
            }
            let mut bytes = self.pool.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(self.scratch.get(..size).unwrap_or_default());
            path.link_mut(direction).enqueue(now, size as u32, Datagram { client, bytes });
            self.held += size as u64;
        }
        if new_client {
            self.watch();
        }
    }

    /// Sends everything whose time has come.
    fn deliver(&mut self) {
        for index in 0..self.paths.len() {
            for direction in Direction::BOTH {
                loop {
                    let now = self.clock.now();
                    let Some(path) = self.paths.get_mut(index) else { break };
                    let Some(delivery) = path.link_mut(direction).poll_delivery(now) else { break };
                    match path.send(direction, &delivery) {
                        Ok(true) => self.note_lateness(&delivery),
                        Ok(false) => {}
                        Err(error) => {
                            self.send_errors += 1;
                            tracing::debug!(%error, "a datagram was not taken for sending");
                        }
                    }
                    self.recycle(delivery.payload.bytes);
                }
            }
        }
        self.held = self.paths.iter().map(Path::held).sum();
    }

    fn note_lateness(&mut self, delivery: &Delivery<Datagram>) {
        let late = self.clock.now().since(delivery.at).as_nanos();
        self.lateness.saturating_record(late.clamp(1, LATEST));
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.pool.len() < POOL {
            self.pool.push(bytes);
        }
    }

    /// Samples, rebinds, forgetting.
    fn housekeeping(&mut self) {
        let now = self.clock.now();
        let mut changed = false;
        for path in &mut self.paths {
            changed |= path.rebind_due(now);
        }
        if now >= self.next_sample {
            for path in &mut self.paths {
                path.advance(now);
                changed |= path.clients.forget_idle(now);
            }
            if self.samples.len() >= SAMPLES {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample { at: now, paths: self.paths.iter().map(Path::sample).collect() });
            // On a grid, whatever the delay of this one.
            let grid = now.as_nanos() / SAMPLE.as_nanos() + 1;
            self.next_sample = Instant::ZERO + SAMPLE * grid;
        }
        if changed {
            self.watch();
        }
    }

    fn next_event(&self) -> Instant {
        self.paths.iter().filter_map(Path::next_event).fold(self.next_sample, Instant::min)
    }
}

/// Locks, also after a panic elsewhere: counters may then be torn, but nothing unsound.
pub(crate) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counters up to now.
pub(crate) fn stats(core: &Mutex<Core>) -> EmulatorStats {
    let (mut stats, watched) = {
        let mut core = lock(core);
        (core.stats(), core.watched.clone())
    };
    // Asking the kernel takes a while; datagrams need not wait for it.
    stats.machine.receive_drops = socket::kernel_drops(watched.iter().map(|w| &*w.socket));
    stats
}

/// The thread: works until it is stopped. A byte on `wake` ends a wait early.
pub(crate) fn run(core: &Mutex<Core>, mut wake: UnixStream) {
    hurry();
    let mut ready: Vec<usize> = Vec::new();
    let mut watched: Arc<[Watched]> = lock(core).watched.clone();
    loop {
        let (next, clock) = {
            let mut core = lock(core);
            if core.stopping {
                return;
            }
            core.step(&watched, &ready);
            watched = core.watched.clone();
            (core.next_event(), core.clock)
        };
        ready.clear();
        let mut fds: Vec<PollFd<'_>> = watched.iter().map(|w| PollFd::new(&*w.socket, PollFlags::IN)).collect();
        fds.push(PollFd::new(&wake, PollFlags::IN));
        let timeout = timespec(next.since(clock.now()));
        let woken = match poll(&mut fds, Some(&timeout)) {
            Ok(woken) => woken > 0,
            Err(rustix::io::Errno::INTR) => false,
            Err(error) => {
                tracing::error!(%error, "waiting for datagrams failed; the emulator stops");
                return;
            }
        };
        let mut called = false;
        if woken {
            let has_news = |fd: &PollFd<'_>| !fd.revents().is_empty();
            ready.extend(fds.iter().take(watched.len()).enumerate().filter(|(_, fd)| has_news(fd)).map(|(i, _)| i));
            called = fds.last().is_some_and(has_news);
        }
        drop(fds);
        if called && wake.read(&mut [0; 64]).is_err() {
            tracing::debug!("the wake-up pipe had nothing to read");
        }
    }
}

/// Asks for this thread to be woken before others, as far as this user may: a network does not slow
/// down because a processor is busy.
fn hurry() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -10) {
        tracing::debug!(%error, "the emulator runs at the usual priority");
    }
}

fn timespec(wait: Duration) -> Timespec {
    let nanos = wait.as_nanos().min(3_600_000_000_000);
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ }
}
