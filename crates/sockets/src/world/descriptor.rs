//! File descriptors that are ours.

use crate::socket::SocketId;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What stands behind a descriptor.
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

/// Is this descriptor ours?
pub fn is_ours(fd: c_int) -> bool {
    usize::try_from(fd).ok().and_then(|i| OURS.get(i)).is_some_and(|o| o.load(Relaxed))
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
