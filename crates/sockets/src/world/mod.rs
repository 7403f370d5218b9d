//! Where packets and time come from, and how a call waits: so far virtual time only.

// Descriptors are opened and closed here, and threads meet: each block says why it is sound.
#![allow(unsafe_code)]

mod descriptor;
mod entropy;
pub mod ip;
pub mod next;
pub mod virtual_time;

pub use descriptor::{Kind, is_ours};

use crate::socket::{Departure, Errno, Settings, Stack};
use anabranch_base::{Duration, Instant};
use anabranch_wire::Verify;
use bytes::Bytes;
use descriptor::{Descriptor, Descriptors};
use std::ffi::c_int;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use virtual_time::VirtualTime;

/// All there is, under one lock.
pub struct Core {
    /// The sockets.
    pub stack: Stack,
    /// Which descriptor is which.
    pub descriptors: Descriptors,
    /// The clock and the wire.
    pub time: VirtualTime,
}

/// The process's only one.
pub struct World {
    core: Mutex<Core>,
    /// Something changed that a call may wait for.
    pub changed: Condvar,
}

static WORLD: OnceLock<World> = OnceLock::new();

/// Is time virtual in this process, and are its SCTP sockets ours? Asked before anything else is set up, and often.
pub fn is_virtual() -> bool {
    static VIRTUAL: OnceLock<bool> = OnceLock::new();
    *VIRTUAL.get_or_init(|| std::env::var("ANABRANCH_WORLD").is_ok_and(|v| v == "virtual"))
}

/// The world, made when it is first asked for.
pub fn world() -> &'static World {
    WORLD.get_or_init(|| {
        let stack = Stack::new(settings_from_environment(), entropy::repeatable());
        World::new(Core { stack, descriptors: Descriptors::default(), time: VirtualTime::new() })
    })
}

/// Defaults, then the file that ANABRANCH_SETTINGS names, then ANABRANCH_SET: `name=value` by lines or commas.
fn settings_from_environment() -> Settings {
    let mut s = Settings::default();
    let file = std::env::var("ANABRANCH_SETTINGS").ok().and_then(|p| std::fs::read_to_string(p).ok());
    let text = [file.unwrap_or_default(), std::env::var("ANABRANCH_SET").unwrap_or_default()].join("\n");
    for (name, value) in assignments(&text) {
        if !s.set(name, value) {
            eprintln!("anabranch: unknown setting {name}={value}");
        }
    }
    s
}

/// `name=value` pairs, a comment behind `#`.
pub fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(|l| l.split('#').next().unwrap_or(l));
    let words = lines.flat_map(|l| l.split([',', ' ', '\t', ';']));
    words.filter_map(|w| w.split_once('=')).filter(|(n, v)| !n.is_empty() && !v.is_empty())
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
        World { core: Mutex::new(core), changed: Condvar::new() }
    }

    /// The core. A thread that panicked while it held the lock does not take the others with it.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the stack now, and carries out what follows from it.
    pub fn act<T>(&self, f: impl FnOnce(&mut Core, Instant) -> T) -> T {
        virtual_time::enter();
        let mut core = self.lock();
        let now = core.now();
        let result = f(&mut core, now);
        self.carry_out(&mut core, now);
        result
    }

    /// The same again and again until it does not answer [`Errno::AGAIN`], or until `limit` has passed.
    ///
    /// # Errors
    /// What `f` answers; [`Errno::AGAIN`] after `limit`.
    pub fn wait<T>(
        &self,
        limit: Option<Duration>,
        mut f: impl FnMut(&mut Core, Instant) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        virtual_time::enter();
        let mut core = self.lock();
        let deadline = limit.map(|l| core.now() + l);
        loop {
            let now = core.now();
            let r = f(&mut core, now);
            self.carry_out(&mut core, now);
            match r {
                Err(Errno::AGAIN) if deadline.is_none_or(|d| now < d) => {}
                r => return r,
            }
            core = virtual_time::block(self, core, deadline)?;
        }
    }

    /// Packets leave, and whoever waits looks again.
    pub fn carry_out(&self, core: &mut Core, now: Instant) {
        let Core { stack, time, .. } = core;
        time.send(now, stack);
        self.changed.notify_all();
    }
}

impl Core {
    /// The time of this world.
    pub fn now(&self) -> Instant {
        self.time.now()
    }
}

/// A descriptor that stands for something of ours.
///
/// # Errors
/// The process has no more.
pub fn open_descriptor(kind: Kind, flags: c_int, close_on_exec: bool) -> Result<c_int, Errno> {
    let exec = if close_on_exec { libc::EFD_CLOEXEC } else { 0 };
    // SAFETY: makes a descriptor that nobody else knows; by number, for the call may be somebody else's too.
    let fd = unsafe { libc::syscall(libc::SYS_eventfd2, 0, libc::c_long::from(exec)) as c_int };
    if fd < 0 {
        return Err(Errno(libc::EMFILE));
    }
    if !world().act(|core, _| core.descriptors.add(fd, Descriptor { kind, flags })) {
        next::close(fd);
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
