//! Starting, watching, changing and stopping an emulator.

use crate::config::{EmulatorConfig, PathChange};
use crate::error::EmulatorError;
use crate::relay::{self, Core};
use crate::stats::{EmulatorStats, Sample};
use anabranch_base::Instant;
use anabranch_sim::{Direction, Frames, Setting};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The emulator; see [`Emulator::start`].
#[derive(Debug)]
pub struct Emulator;

impl Emulator {
    /// Binds all sockets and starts relaying on a thread of its own. The random streams and the
    /// schedules start now. An address that cannot be had is an error at once.
    pub fn start(config: EmulatorConfig) -> Result<EmulatorHandle, EmulatorError> {
        let system = |what| move |source| EmulatorError::System { what, source };
        let core = Core::open(&config)?;
        let (wake, woken) = UnixStream::pair().map_err(system("a wake-up pipe"))?;
        for end in [&wake, &woken] {
            end.set_nonblocking(true).map_err(system("a wake-up pipe"))?;
        }
        let core = Arc::new(Mutex::new(core));
        let shared = core.clone();
        let thread = thread::Builder::new()
            .name("emulator".into())
            .spawn(move || relay::run(&shared, woken))
            .map_err(system("a thread for the emulator"))?;
        Ok(EmulatorHandle { core, wake, thread: Some(thread) })
    }
}

/// A running emulator. It stops when this is dropped.
pub struct EmulatorHandle {
    core: Arc<Mutex<Core>>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl EmulatorHandle {
    /// Where the paths listen, in the order of the configuration.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        relay::lock(&self.core).local_addrs()
    }

    /// The index of the path called `name`.
    pub fn path(&self, name: &str) -> Option<usize> {
        relay::lock(&self.core).path_index(name)
    }

    /// Counters up to now.
    pub fn stats(&self) -> EmulatorStats {
        relay::stats(&self.core)
    }

    /// What the link layer of one direction of a path has counted by now, as a driver would say: frames sent, those in
    /// error, and its repetitions, all since the start. None for a path that there is not.
    pub fn frames(&self, path: usize, direction: Direction) -> Option<Frames> {
        relay::lock(&self.core).frames(path, direction)
    }

    /// Counters over time: a sample about each 100 ms, for the last hour.
    pub fn samples(&self) -> Vec<Sample> {
        relay::lock(&self.core).samples()
    }

    /// The emulator's time now: since its start, as in schedules and samples.
    pub fn now(&self) -> Instant {
        relay::lock(&self.core).clock().now()
    }

    /// When the emulator started, on the system's clock.
    pub fn started_at(&self) -> std::time::Instant {
        relay::lock(&self.core).clock().epoch()
    }

    /// Changes a path now.
    pub fn control(&self, path: usize, change: PathChange) -> Result<(), EmulatorError> {
        relay::lock(&self.core).control(path, change)?;
        self.wake();
        Ok(())
    }

    /// Cuts a path in both directions.
    pub fn cut(&self, path: usize) -> Result<(), EmulatorError> {
        self.control(path, PathChange::both(Setting::Down))
    }

    /// Restores a path in both directions.
    pub fn restore(&self, path: usize) -> Result<(), EmulatorError> {
        self.control(path, PathChange::both(Setting::Up))
    }

    /// Stops relaying, closes the sockets and returns the last counters. What is on the way is lost.
    pub fn stop(mut self) -> EmulatorStats {
        let stats = self.stats();
        self.end();
        stats
    }

    fn end(&mut self) {
        relay::lock(&self.core).stopping = true;
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the emulator's thread panicked");
        }
    }

    /// Ends the thread's wait, so that it sees what changed.
    fn wake(&self) {
        // A full pipe means that a wake-up is under way already.
        if let Err(error) = (&self.wake).write(&[1]) {
            tracing::trace!(%error, "no wake-up sent");
        }
    }
}

impl Drop for EmulatorHandle {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for EmulatorHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmulatorHandle").field("listen", &self.local_addrs()).finish_non_exhaustive()
    }
}
