//! File descriptors that are ours.

use crate::socket::SocketId;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// What a descriptor refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An SCTP socket.
    Socket(SocketId),
    /// The tunnel device of virtual time: what is written to it arrives.
    Tunnel,
    /// A packet socket of virtual time: it reads what leaves.
    Packets,
}

/// Descriptors above this are never ours.
const MOST: usize = 65_536;

/// Asked by every call on any descriptor, so without a lock.
static OURS: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// The highest that ever was ours.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);

/// One more than the highest descriptor that may be ours: the kernel's table, which never shrinks, goes as far.
pub fn bound() -> c_int {
    HIGHEST.load(Relaxed) + 1
}

/// The process whose descriptors these are. A child of `vfork` has its parent's memory, and descriptors of its own.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn process() -> libc::pid_t {
    // SAFETY: a number is asked for; by number, for the C library may remember that of the parent.
    unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t }
}

/// Is this descriptor ours, and this the process that has it? For calls that end what a descriptor refers to.
pub fn is_ours_to_close(fd: c_int) -> bool {
    is_ours(fd) && OWNER.load(Relaxed) == process()
}

/// Is this descriptor ours?
pub fn is_ours(fd: c_int) -> bool {
    usize::try_from(fd).ok().and_then(|i| OURS.get(i)).is_some_and(|o| o.load(Relaxed))
}

/// Ours between two numbers.
pub fn ours_between(first: usize, last: usize) -> impl Iterator<Item = c_int> {
    OURS.iter()
        .enumerate()
        .take(last.saturating_add(1))
        .skip(first)
        .filter(|(_, o)| o.load(Relaxed))
        .map(|(i, _)| i as c_int)
}

/// No descriptor is ours any more; which they were. Takes no lock.
pub fn disown_all() -> impl Iterator<Item = c_int> {
    OURS.iter().enumerate().filter(|(_, o)| o.swap(false, Relaxed)).map(|(i, _)| i as c_int)
}

/// A descriptor of ours.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    pub kind: Kind,
    /// O_NONBLOCK and the access mode, as F_GETFL answers them.
    pub flags: c_int,
}

/// See the module's description.
#[derive(Default)]
pub struct Descriptors {
    all: BTreeMap<c_int, Descriptor>,
}

impl Descriptors {
    /// Takes a descriptor in; false when it is too large.
    pub fn add(&mut self, fd: c_int, d: Descriptor) -> bool {
        let Some(slot) = usize::try_from(fd).ok().and_then(|i| OURS.get(i)) else { return false };
        self.all.insert(fd, d);
        slot.store(true, Relaxed);
        HIGHEST.fetch_max(fd, Relaxed);
        OWNER.store(process(), Relaxed);
        true
    }

    pub fn get(&self, fd: c_int) -> Option<&Descriptor> {
        self.all.get(&fd)
    }

    pub fn remove(&mut self, fd: c_int) -> Option<Descriptor> {
        if let Some(slot) = usize::try_from(fd).ok().and_then(|i| OURS.get(i)) {
            slot.store(false, Relaxed);
        }
        self.all.remove(&fd)
    }

    /// A descriptor of this socket.
    pub fn of_socket(&self, id: SocketId) -> Option<c_int> {
        self.all.iter().find(|(_, d)| d.kind == Kind::Socket(id)).map(|(fd, _)| *fd)
    }

    /// The flags of all descriptors of one socket, which are one description to the kernel.
    pub fn set_flags(&mut self, fd: c_int, flags: c_int) {
        let Some(kind) = self.get(fd).map(|d| d.kind) else { return };
        self.all.values_mut().filter(|d| d.kind == kind).for_each(|d| d.flags = flags);
    }

    /// All sockets.
    pub fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.all.values().filter_map(|d| match d.kind {
            Kind::Socket(id) => Some(id),
            _ => None,
        })
    }

    /// The socket behind a descriptor.
    pub fn socket(&self, fd: c_int) -> Option<SocketId> {
        match self.get(fd)?.kind {
            Kind::Socket(id) => Some(id),
            _ => None,
        }
    }
}
