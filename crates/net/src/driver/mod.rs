//! The driver: one task that owns the sockets, moves packets between them and the engine, and keeps its timers.
//!
//! It runs on a thread of its own, so that whatever the program does on its runtime never delays a timer or an
//! acknowledgement. There it waits by one system call for its sockets, its timers and calls from other threads. Each turn
//! does bounded work: at most one batch of datagrams from each socket, then what the engine has to send.

pub(crate) mod descriptor;
mod many;
mod monitor;
mod port;
mod receive;
mod transmit;
mod watch;

pub(crate) use port::{Sent, send, send_by};
pub use receive::Buffers;
pub(crate) use watch::Watch;

use crate::batch::Batches;
use crate::capture::Capture;
use crate::clock;
use crate::config::Transport;
use crate::error::Error;
use crate::locals::Slot;
use crate::shared::{Call, Core, Shared};
use crate::stats::DriverStats;
use crate::wake::Wake;
use anabranch_base::{Duration, Instant};
use anabranch_engine::{AssocId, LocalId, Transmit};
use monitor::Monitor;
use port::Port;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Packets sent in one turn before the sockets are read again.
const SEND_LIMIT: usize = 1_024;
/// Packets built in one go; the engine is free for others in between.
const BUILD_LIMIT: usize = 128;
/// Expired timers served in one turn before the sockets are read again.
const TIMER_LIMIT: usize = 64;
/// How long what a socket did not take waits for the next try.
const RETRY: Duration = Duration::from_micros(500);
/// How long the end of a connection is kept back for a socket that takes no packets.
const END_WAITS: Duration = Duration::from_millis(100);
/// Key rotation and the like happen at least this often.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// A new socket for the driver.
pub(crate) struct Command {
    pub slot: Slot,
    pub local: LocalId,
    /// None when the interface is not there yet.
    pub socket: Option<UdpSocket>,
    /// For sockets of clients.
    pub watch: Option<Watch>,
}

/// Starts the driver on a thread of its own.
pub(crate) fn spawn(shared: Arc<Shared>, capture: Option<Capture>) -> Result<(), Error> {
    let mut driver = Driver::new(shared.clone(), capture);
    let run = move || {
        let _stop = StopGuard(shared);
        driver.run();
    };
    std::thread::Builder::new().name("anabranch-net".into()).spawn(run).map_err(Error::Driver)?;
    Ok(())
}

/// Informs all handles when the driver ends, however it ends.
struct StopGuard(Arc<Shared>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.lock().stop(shared);
    }
}

struct Driver {
    shared: Arc<Shared>,
    ports: Vec<Port>,
    buffers: Buffers,
    batches: Batches,
    transmit: Transmit,
    /// Room for the list of [`Core::calls`].
    calls: Vec<Call>,
    /// Connections whose last packet has been built.
    ended: Vec<AssocId>,
    /// Since when their ends are not announced because a socket takes no packets.
    stuck_since: Option<Instant>,
    /// What was sent since the core last heard of it: senders want its lock for each message.
    counted: DriverStats,
    capture: Option<Capture>,
    monitor: Monitor,
    next_watch: Option<Instant>,
    last_housekeeping: Instant,
    /// Work was left over: do not wait.
    more: bool,
}

impl Driver {
    fn new(shared: Arc<Shared>, capture: Option<Capture>) -> Self {
        Driver {
            shared,
            ports: Vec::new(),
            buffers: Buffers::new(),
            batches: Batches::default(),
            transmit: Transmit::to_be_written(),
            calls: Vec::new(),
            ended: Vec::new(),
            stuck_since: None,
            counted: DriverStats::default(),
            capture,
            monitor: Monitor::new(),
            next_watch: None,
            last_housekeeping: clock::now(),
            more: false,
        }
    }

    fn run(&mut self) {
        loop {
            self.receive();
            let next = self.work();
            self.watch();
            if self.finished() {
                return;
            }
            self.wait(next);
        }
    }

    /// Takes over new sockets.
    fn take_sockets(&mut self, transport: Transport, commands: Vec<Command>) {
        for c in commands {
            // Slots are numbered in the order in which their commands are queued.
            debug_assert_eq!(c.slot.0, self.ports.len());
            self.ports.push(Port::new(transport, c.local, c.socket, c.watch));
            self.next_watch = Some(Instant::ZERO);
        }
    }

    /// Waits until a socket is ready, a timer is due, or another thread calls.
    fn wait(&mut self, next: Option<Instant>) {
        // Whoever is woken wants the lock: not before everything here is done that needs it.
        self.calls.drain(..).for_each(Call::make);
        let now = clock::now();
        let retry = self.ports.iter().any(|p| !p.outbox.is_empty()).then_some(now + RETRY);
        let next = [next, self.next_watch, retry].into_iter().flatten().min();
        // Sockets are asked even when there is no time to wait for them.
        let sleeps = !std::mem::take(&mut self.more) && self.shared.wake.may_sleep();
        let left = if sleeps { next.map(|at| at.since(now)) } else { Some(Duration::ZERO) };
        let [called, news] = poll_all(&self.shared.wake, &self.monitor, &mut self.ports, left);
        self.shared.wake.awake(called);
        if news {
            self.monitor.read();
            self.next_watch = Some(Instant::ZERO);
        }
    }

    /// True when no handle is left and everything has been sent.
    fn finished(&mut self) -> bool {
        let outboxes = self.ports.iter().all(Port::nothing_waits);
        let is_idle = |core: &Core| outboxes && core.engine.associations().next().is_none() && core.commands.is_empty();
        let mut core = self.shared.lock();
        core.stats.add(std::mem::take(&mut self.counted));
        let newly = !core.idle && is_idle(&core);
        if newly && let Some(capture) = &mut self.capture {
            drop(core);
            capture.flush();
            core = self.shared.lock();
        }
        core.idle = is_idle(&core);
        if newly && core.idle {
            self.shared.idle.notify_waiters();
        }
        core.idle && core.closing
    }
}

/// Waits, but no longer than `left`, and notes which sockets have something to read. Answers whether another thread called,
/// and whether there are news of interfaces.
fn poll_all(wake: &Wake, monitor: &Monitor, ports: &mut [Port], left: Option<Duration>) -> [bool; 2] {
    let left = left.map(|d| Timespec {
        tv_sec: (d.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (d.as_nanos() % 1_000_000_000) as _,
    });
    let mut fds = Vec::with_capacity(2 + ports.len());
    fds.push(PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN));
    let news = monitor.fd().map(|fd| fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN))).is_some();
    let first = fds.len();
    let sockets = ports.iter().filter_map(|p| p.io.as_ref());
    fds.extend(sockets.map(|io| PollFd::new(&io.socket, PollFlags::IN)));
    let found = match poll(&mut fds, left.as_ref()) {
        Ok(found) => found,
        Err(rustix::io::Errno::INTR) => 0,
        Err(error) => {
            tracing::error!(%error, "sockets cannot be waited for");
            std::thread::sleep(std::time::Duration::from_nanos(RETRY.as_nanos()));
            0
        }
    };
    // An error counts too: reading tells which.
    let rung = |i: usize| found > 0 && fds.get(i).is_some_and(|fd| !fd.revents().is_empty());
    let called_and_news = [rung(0), news && rung(1)];
    let ready: Vec<bool> = (first..fds.len()).map(rung).collect();
    drop(fds);
    for (port, ready) in ports.iter_mut().filter(|p| p.io.is_some()).zip(ready) {
        port.ready = ready;
    }
    called_and_news
}
