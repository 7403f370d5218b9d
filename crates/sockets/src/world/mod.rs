//! Where packets and time come from, and how a call waits: real ones, or virtual time for conformance suites.

#![allow(
    unsafe_code,
    reason = "descriptors are opened and closed here, and threads meet: each block says why it is sound"
)]

mod changed;
mod configuration;
mod descriptor;
mod entropy;
mod failure;
pub mod ip;
pub mod next;
mod real;
pub mod virtual_time;

pub use descriptor::{Kind, bound, is_ours, is_ours_to_close, ours_between};

use crate::socket::{Departure, Errno, SocketId, Stack};
use anabranch_base::{Duration, Instant};
use anabranch_wire::Verify;
use bytes::Bytes;
pub use configuration::assignments;
use descriptor::{Descriptor, Descriptors};
pub use failure::{Cancellation, Quiet, signals_are_handled};
use failure::{Failure, guarded};
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use virtual_time::VirtualTime;

/// All there is, under one lock.
pub struct Core {
    /// The sockets.
    pub stack: Stack,
    /// Which descriptor is which.
    pub descriptors: Descriptors,
    /// The clock and the wire.
    pub time: VirtualTime,
    /// Sockets, threads and mirrors, once there are real packets.
    pub real: Option<real::Real>,
}

/// The process's only one.
pub struct World {
    core: Mutex<Core>,
    /// Something changed that a call may wait for.
    pub changed: changed::Changed,
    /// It panicked: nothing works any more, but the program goes on.
    broken: AtomicBool,
}

/// Never freed. A child of `fork` forgets it: another thread of the parent may have held its lock.
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());

/// Is time virtual in this process, and are its SCTP sockets ours? Asked before anything else is set up, and often.
pub fn is_virtual() -> bool {
    static VIRTUAL: OnceLock<bool> = OnceLock::new();
    *VIRTUAL.get_or_init(|| std::env::var("ANABRANCH_WORLD").is_ok_and(|v| v == "virtual"))
}

/// The world, made when it is first asked for.
pub fn world() -> &'static World {
    if let Some(w) = world_if_any() {
        return w;
    }
    let entropy = if is_virtual() { entropy::repeatable() } else { real::entropy() };
    let stack = Stack::new(configuration::read(is_virtual()), entropy);
    let core = Core { stack, descriptors: Descriptors::default(), time: VirtualTime::new(), real: None };
    let new = Box::into_raw(Box::new(World::new(core)));
    if WORLD.compare_exchange(std::ptr::null_mut(), new, SeqCst, SeqCst).is_err() {
        // SAFETY: another thread was faster, so no thread knows this one.
        drop(unsafe { Box::from_raw(new) });
    }
    world_if_any().unwrap_or_else(|| std::process::abort())
}

/// The world, if there is one yet.
pub fn world_if_any() -> Option<&'static World> {
    // SAFETY: what it points to is never freed.
    unsafe { WORLD.load(SeqCst).as_ref() }
}

fn forget_world() {
    WORLD.store(std::ptr::null_mut(), SeqCst);
}

/// A packet to a loopback address that a socket of this process is bound to arrives at once. Any other is handed back.
fn loop_back(now: Instant, stack: &mut Stack, d: Departure) -> Option<Departure> {
    if !d.to.ip().is_loopback() || !stack.has_port(&d) {
        return Some(d);
    }
    let from = SocketAddr::new(d.from, d.to.port());
    stack.arrive(now, d.to.ip(), from, &Bytes::from(d.packet), Verify::Checksum);
    None
}

impl World {
    fn new(core: Core) -> Self {
        World { core: Mutex::new(core), changed: changed::Changed::new(), broken: AtomicBool::new(false) }
    }

    /// The core. A thread that panicked while it held the lock does not take the others with it.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the stack now, and carries out what follows from it.
    pub fn act<T: Failure>(&self, f: impl FnOnce(&mut Core, Instant) -> T) -> T {
        guarded(self, None, |_| {
            virtual_time::enter();
            let mut core = self.lock();
            let now = core.now();
            let result = f(&mut core, now);
            drop(self.carry_out(core, now));
            result
        })
    }

    /// Looks at something.
    pub fn look<T: Failure>(&self, f: impl FnOnce(&Core) -> T) -> T {
        guarded(self, None, |_| f(&self.lock()))
    }

    /// Calls `f` again and again until it does not answer [`Errno::AGAIN`], or until `limit` has passed. The socket of
    /// `fd` is the one whose news are waited for: a new one of the same number is another.
    ///
    /// # Errors
    /// What `f` answers; [`Errno::AGAIN`] after `limit`.
    pub fn wait<T>(
        &self,
        fd: c_int,
        limit: impl FnOnce(&Core) -> Result<Option<Duration>, Errno>,
        f: impl FnMut(&mut Core, Instant) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.wait_as(Cancellation::EndsThread, fd, limit, f)
    }

    /// As [`World::wait`].
    pub fn wait_as<T>(
        &self,
        cancellation: Cancellation,
        fd: c_int,
        limit: impl FnOnce(&Core) -> Result<Option<Duration>, Errno>,
        mut f: impl FnMut(&mut Core, Instant) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        guarded(self, Some(cancellation), |cancellable| {
            virtual_time::enter();
            let mut core = self.lock();
            let id = core.descriptors.socket(fd);
            let deadline = limit(&core)?.map(|l| core.now() + l);
            loop {
                let now = core.now();
                let r = f(&mut core, now);
                id.into_iter().for_each(|id| core.used(id));
                let waits = matches!(r, Err(Errno::AGAIN)) && deadline.is_none_or(|d| now < d);
                // From here on news are noticed, though the lock may be free while packets leave.
                let ticket = id.filter(|_| waits).and_then(|id| World::queue_up(&mut core, id, cancellable));
                core = self.carry_out(core, now);
                if !waits {
                    return r;
                }
                core = match &ticket {
                    Some(ticket) => self.block_real(core, ticket, deadline)?,
                    None => virtual_time::block(self, core, deadline)?,
                };
                if id.is_some() && core.descriptors.socket(fd) != id {
                    return Err(Errno::BAD_DESCRIPTOR);
                }
            }
        })
    }

    fn is_new_thread(&self) -> bool {
        real::is_new_thread(self)
    }

    fn enlist_thread(&self) {
        let before = self.lock().real.as_mut().map(|real| real.enlist(self));
        // It locks the world when it goes.
        drop(before);
    }

    /// Packets leave, and whoever waits looks again.
    fn carry_out<'a>(&'a self, mut core: MutexGuard<'a, Core>, now: Instant) -> MutexGuard<'a, Core> {
        if core.real.is_some() {
            return self.carry_out_real(core, now, false);
        }
        let Core { stack, time, .. } = &mut *core;
        time.send(now, stack);
        self.changed.notify_all();
        core
    }

    /// It panicked: all calls fail from now on, and no thread waits any more.
    fn give_up(&self) {
        self.broken.store(true, SeqCst);
        self.lock().wake_all();
        self.changed.notify_all();
    }

    fn is_broken(&self) -> bool {
        self.broken.load(SeqCst)
    }

    /// The process ends: its sockets are closed as by `close`. How long that may take; none when the lock is not to be
    /// had, or not now.
    fn close_all(&self) -> Option<Duration> {
        let _quiet = Quiet::new();
        let mut core = self.core.try_lock().ok()?;
        if core.real.is_none() {
            return Some(Duration::ZERO);
        }
        let now = core.now();
        let all: Vec<SocketId> = core.descriptors.sockets().collect();
        for id in all {
            // One that has several descriptors is closed once.
            let _ = core.stack.close(now, id);
        }
        let patience = core.stack.settings_mut().exit_patience;
        drop(self.carry_out(core, now));
        Some(patience)
    }

    fn is_busy(&self) -> bool {
        let _quiet = Quiet::new();
        !self.is_broken() && self.lock().stack.is_busy()
    }
}

impl Core {
    /// The time of this world.
    pub fn now(&self) -> Instant {
        if self.real.is_some() { real::now() } else { self.time.now() }
    }
}

/// Real packets can come and go from now on, unless time is virtual.
///
/// # Errors
/// A right that is missing.
pub fn begin() -> Result<(), Errno> {
    if is_virtual() {
        return Ok(());
    }
    let _quiet = Quiet::new();
    real::begin(world())
}

/// A descriptor for something of ours.
///
/// # Errors
/// The process has no more.
pub fn open_descriptor(kind: Kind, flags: c_int, close_on_exec: bool) -> Result<c_int, Errno> {
    let (fd, ours) = match kind {
        Kind::Socket(_) if !is_virtual() => real::pair(close_on_exec).map(|(theirs, ours)| (theirs, Some(ours)))?,
        _ => {
            let exec = if close_on_exec { libc::EFD_CLOEXEC } else { 0 };
            // SAFETY: makes a descriptor that no one else knows; by number, for the call may be another library's too.
            let fd = unsafe { libc::syscall(libc::SYS_eventfd2, 0, libc::c_long::from(exec)) as c_int };
            (fd, None)
        }
    };
    if fd < 0 {
        return Err(Errno(libc::EMFILE));
    }
    let added = world().act(|core, _| {
        let added = core.descriptors.add(fd, Descriptor { kind, flags });
        if let (true, Kind::Socket(id), Some(ours)) = (added, kind, ours) {
            core.reflect(id, fd, ours);
        }
        added
    });
    if !added {
        next::close(fd);
        ours.into_iter().for_each(|fd| {
            next::close(fd);
        });
        return Err(Errno(libc::EMFILE));
    }
    Ok(fd)
}

impl Core {
    /// An IP packet arrives from the tunnel; SCTP and SCTP in UDP are looked at.
    pub fn inject(&mut self, now: Instant, packet: &[u8]) {
        let Some(p) = ip::parse(packet) else { return };
        let (port, sctp) = match p.protocol {
            ip::SCTP => (0, p.payload),
            ip::UDP => {
                let (Some(port), Some(rest)) = (p.payload.get(..2), p.payload.get(8..)) else { return };
                (u16::from_be_bytes([port[0], port[1]]), rest)
            }
            _ => return,
        };
        let from = SocketAddr::new(p.source, port);
        self.stack.arrive(now, p.destination, from, &Bytes::copy_from_slice(sctp), Verify::Checksum);
    }
}
