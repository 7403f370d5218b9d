//! The driver: one task that owns the sockets, moves packets between them and the engine, and keeps its timers.
//!
//! It runs on a thread of its own, so that whatever the program does on its runtime never delays a timer or an
//! acknowledgement. Each turn does bounded work: at most one batch of datagrams from each socket, then what the
//! engine has to send.

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

use crate::alarm::Alarm;
use crate::batch::Batches;
use crate::capture::Capture;
use crate::clock;
use crate::error::Error;
use crate::locals::Slot;
use crate::shared::{Call, Core, Shared};
use anabranch_base::{Duration, Instant};
use anabranch_engine::{LocalId, Transmit};
use monitor::Monitor;
use port::Port;
use std::future::poll_fn;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Packets sent in one turn before the sockets are read again.
const SEND_LIMIT: usize = 1_024;
/// Packets built in one go; the engine is free for others in between.
const BUILD_LIMIT: usize = 128;
/// Expired timers served in one turn before the sockets are read again.
const TIMER_LIMIT: usize = 64;
/// How long what a socket did not take waits for the next try.
const RETRY: Duration = Duration::from_micros(500);
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
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(Error::Driver)?;
    let mut driver = {
        let _inside = runtime.enter();
        Driver::new(shared.clone(), capture).map_err(Error::Driver)?
    };
    let run = move || {
        let _stop = StopGuard(shared);
        runtime.block_on(async move { driver.run().await });
    };
    std::thread::Builder::new().name("anabranch-net".into()).spawn(run).map_err(Error::Driver)?;
    Ok(())
}

/// Tells everybody when the driver ends, however it ends.
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
    capture: Option<Capture>,
    monitor: Monitor,
    alarm: Alarm,
    next_watch: Option<Instant>,
    last_housekeeping: Instant,
    /// Work was left over: do not wait.
    more: bool,
}

impl Driver {
    /// Must be called within the driver's runtime.
    fn new(shared: Arc<Shared>, capture: Option<Capture>) -> io::Result<Self> {
        Ok(Driver {
            shared,
            ports: Vec::new(),
            buffers: Buffers::new(),
            batches: Batches::default(),
            transmit: Transmit::default(),
            calls: Vec::new(),
            capture,
            monitor: Monitor::new(),
            alarm: Alarm::new()?,
            next_watch: None,
            last_housekeeping: clock::now(),
            more: false,
        })
    }

    async fn run(&mut self) {
        loop {
            self.take_commands();
            self.receive();
            let next = self.work();
            self.watch();
            if self.finished() {
                return;
            }
            self.wait(next).await;
        }
    }

    /// Takes over new sockets.
    fn take_commands(&mut self) {
        let (transport, commands) = {
            let mut core = self.shared.lock();
            (core.transport, std::mem::take(&mut core.commands))
        };
        for c in commands {
            // Slots are numbered in the order in which their commands are queued.
            debug_assert_eq!(c.slot.0, self.ports.len());
            self.ports.push(Port::new(transport, c.local, c.socket, c.watch));
            self.next_watch = Some(Instant::ZERO);
        }
    }

    /// Waits until a socket is ready, the alarm rings, or somebody calls.
    async fn wait(&mut self, next: Option<Instant>) {
        // Whoever is woken wants the lock: not before everything here is done that needs it.
        self.calls.drain(..).for_each(Call::make);
        let now = clock::now();
        let retry = self.ports.iter().any(|p| !p.outbox.is_empty()).then_some(now + RETRY);
        let next = [next, self.next_watch, retry].into_iter().flatten().min();
        if std::mem::take(&mut self.more) || next.is_some_and(|at| at <= now) {
            tokio::task::yield_now().await;
            return;
        }
        self.alarm.set(next, now);
        let Driver { shared, ports, alarm, monitor, .. } = self;
        tokio::select! {
            biased;
            () = poll_fn(|cx| poll_ports(ports, cx)) => {}
            () = shared.wake.notified() => {}
            () = alarm.rung() => {}
            () = monitor.changed() => self.next_watch = Some(Instant::ZERO),
        }
    }

    /// True when nobody can ask for anything any more and everything has left.
    fn finished(&mut self) -> bool {
        let outboxes = self.ports.iter().all(Port::nothing_waits);
        let is_idle = |core: &Core| outboxes && core.engine.associations().next().is_none() && core.commands.is_empty();
        let newly = {
            let mut core = self.shared.lock();
            core.idle &= is_idle(&core);
            !core.idle && is_idle(&core)
        };
        if newly && let Some(capture) = &mut self.capture {
            capture.flush();
        }
        let mut core = self.shared.lock();
        core.idle = is_idle(&core);
        if newly && core.idle {
            self.shared.idle.notify_waiters();
        }
        core.idle && core.closing
    }
}

/// Ready when any socket has something to read.
fn poll_ports(ports: &[Port], cx: &mut Context<'_>) -> Poll<()> {
    let mut ready = Poll::Pending;
    for p in ports {
        if p.poll_ready(cx).is_ready() {
            ready = Poll::Ready(());
        }
    }
    ready
}
