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

    pub fn get_mut(&mut self, fd: c_int) -> Option<&mut Descriptor> {
        self.all.get_mut(&fd)
    }

    pub fn remove(&mut self, fd: c_int) -> Option<Descriptor> {
        if let Some(slot) = usize::try_from(fd).ok().and_then(|i| OURS.get(i)) {
            slot.store(false, Relaxed);
        }
        self.all.remove(&fd)
    }

    /// The socket behind a descriptor.
    pub fn socket(&self, fd: c_int) -> Option<SocketId> {
        match self.get(fd)?.kind {
            Kind::Socket(id) => Some(id),
            _ => None,
        }
    }
}
