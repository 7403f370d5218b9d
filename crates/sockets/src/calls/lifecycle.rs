//! `socket` to `close`.

use super::{answer_int, bytes, patience, put_address, socket_of};
use crate::abi::SOL_SCTP;
use crate::abi::address;
use crate::socket::{Errno, SocketId, Style};
use crate::world::next::next;
use crate::world::{Kind, Quiet, begin, is_ours, is_virtual, open_descriptor, world};
use std::ffi::{c_int, c_ulong};

type Socket = unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int;
type Bind = unsafe extern "C-unwind" fn(c_int, *const libc::sockaddr, libc::socklen_t) -> c_int;
type Names = unsafe extern "C-unwind" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> c_int;
type Accept4 = unsafe extern "C-unwind" fn(c_int, *mut libc::sockaddr, *mut libc::socklen_t, c_int) -> c_int;
type Two = unsafe extern "C-unwind" fn(c_int, c_int) -> c_int;

const KIND_MASK: c_int = 0xf;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let style = match kind & KIND_MASK {
        libc::SOCK_STREAM => Some(Style::OneToOne),
        libc::SOCK_SEQPACKET => Some(Style::OneToMany),
        _ => None,
    };
    // To Linux, packets in sequence on IP are SCTP without being named.
    let sctp = protocol == SOL_SCTP || (protocol == 0 && style == Some(Style::OneToMany));
    let ours = sctp && matches!(domain, libc::AF_INET | libc::AF_INET6);
    if let (true, Some(style)) = (ours, style) {
        let _quiet = Quiet::new();
        let id = begin().and_then(|()| world().act(|core, _| Ok(core.stack.socket(style, domain == libc::AF_INET6))));
        return answer_int(id.and_then(|id| {
            new_descriptor(Kind::Socket(id), kind & libc::SOCK_NONBLOCK, kind & libc::SOCK_CLOEXEC != 0)
        }));
    }
    if is_virtual() && domain == libc::AF_PACKET {
        return answer_int(new_descriptor(Kind::Packets, 0, false));
    }
    // SAFETY: as it came.
    unsafe { next!(c"socket" as Socket)(domain, kind, protocol) }
}

pub(super) fn new_descriptor(kind: Kind, flags: c_int, close_on_exec: bool) -> Result<c_int, Errno> {
    let fd = open_descriptor(kind, libc::O_RDWR | flags, close_on_exec);
    if let (Err(_), Kind::Socket(id)) = (&fd, kind) {
        let _ = world().act(|core, now| core.stack.close(now, id));
    }
    fd
}

/// An address that the program points to.
///
/// # Safety
/// `a` points to `len` bytes.
unsafe fn parse(a: *const libc::sockaddr, len: libc::socklen_t) -> Result<std::net::SocketAddr, Errno> {
    // SAFETY: the caller's promise.
    address::parse(unsafe { bytes(a.cast(), len as usize) }).map(|(a, _)| a).ok_or(Errno::INVALID)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn bind(fd: c_int, a: *const libc::sockaddr, len: libc::socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"bind" as Bind)(fd, a, len) };
    }
    answer_int(world().act(|core, now| {
        if !matches!(core.descriptors.get(fd).map(|d| d.kind), Some(Kind::Socket(_))) {
            return Ok(0);
        }
        let (id, _) = socket_of(core, fd)?;
        // SAFETY: the program's address, as bind(2) has it.
        let address = unsafe { parse(a, len) }?;
        core.stack.bind(now, id, address).map(|()| 0)
    }))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"listen" as Two)(fd, backlog) };
    }
    answer_int(world().act(|core, now| {
        let (id, _) = socket_of(core, fd)?;
        core.tell_port();
        core.stack.listen(now, id, backlog).map(|()| 0)
    }))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn connect(fd: c_int, a: *const libc::sockaddr, len: libc::socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"connect" as Bind)(fd, a, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: the program's address, as connect(2) has it.
    let peer = unsafe { parse(a, len) };
    answer_int(peer.and_then(|p| connect_to(fd, &[p]).1).map(|()| 0))
}

/// Begins an association and waits for it where the socket does that. Answers its id, also where it is under way.
pub(super) fn connect_to(fd: c_int, peer: &[std::net::SocketAddr]) -> (i32, Result<(), Errno>) {
    let begun = world().act(|core, now| {
        let (id, waits) = socket_of(core, fd)?;
        Ok((id, waits, core.stack.connect(now, id, peer)?))
    });
    let (id, association) = match begun {
        // Linux says so however fast the peer is.
        Ok((_, false, association)) => return (association.0, Err(Errno::IN_PROGRESS)),
        Ok((id, true, association)) => (id, association),
        Err(e) => return (0, Err(e)),
    };
    let outcome = world().wait(fd, patience(fd, 0, false), |core, _| match core.stack.connecting(id, association) {
        Err(Errno::IN_PROGRESS) => Err(Errno::AGAIN),
        r => r,
    });
    (association.0, if outcome == Err(Errno::AGAIN) { Err(Errno::IN_PROGRESS) } else { outcome })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(fd: c_int, a: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"accept" as Names)(fd, a, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: as it came.
    unsafe { take(fd, a, len, 0) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    a: *mut libc::sockaddr,
    len: *mut libc::socklen_t,
    flags: c_int,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"accept4" as Accept4)(fd, a, len, flags) };
    }
    let _quiet = Quiet::new();
    // SAFETY: as it came.
    unsafe { take(fd, a, len, flags) }
}

/// # Safety
/// As accept(2).
unsafe fn take(fd: c_int, a: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int) -> c_int {
    let accepted = world().wait(fd, patience(fd, 0, true), |core, _| {
        let (id, _) = socket_of(core, fd)?;
        let (new, peer) = core.stack.accept(id)?;
        Ok((new, address::bytes(peer, core.stack.is_v6(id)?)))
    });
    answer_int(accepted.and_then(|(new, peer)| {
        // SAFETY: the program's room, as accept(2) has it.
        unsafe { put_address(a, len, &peer) };
        new_descriptor(Kind::Socket(new), flags & libc::SOCK_NONBLOCK, flags & libc::SOCK_CLOEXEC != 0)
    }))
}

/// A descriptor of ours is about to be something else. With the last one of a socket that is closed.
pub(super) fn release(fd: c_int) {
    let _ = world().act(|core, now| match core.descriptors.remove(fd).map(|d| d.kind) {
        Some(Kind::Socket(id)) => match core.descriptors.of_socket(id) {
            Some(other) => {
                core.reflect_at(id, other);
                Ok(())
            }
            None => {
                core.unreflect(id);
                core.stack.close(now, id)
            }
        },
        _ => Ok(()),
    });
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"shutdown" as Two)(fd, how) };
    }
    answer_int(world().act(|core, now| {
        let (id, _) = socket_of(core, fd)?;
        core.stack.shutdown(now, id, how).map(|()| 0)
    }))
}

/// # Safety
/// As getsockname(2).
unsafe fn named(
    fd: c_int,
    a: *mut libc::sockaddr,
    len: *mut libc::socklen_t,
    which: fn(&crate::socket::Stack, SocketId) -> Result<std::net::SocketAddr, Errno>,
) -> c_int {
    answer_int(world().act(|core, _| {
        let (id, _) = socket_of(core, fd)?;
        let name = address::bytes(which(&core.stack, id)?, core.stack.is_v6(id)?);
        // SAFETY: the caller's promise.
        unsafe { put_address(a, len, &name) };
        Ok(0)
    }))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockname(fd: c_int, a: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"getsockname" as Names)(fd, a, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: as it came.
    unsafe { named(fd, a, len, crate::socket::Stack::name) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getpeername(fd: c_int, a: *mut libc::sockaddr, len: *mut libc::socklen_t) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"getpeername" as Names)(fd, a, len) };
    }
    let _quiet = Quiet::new();
    // SAFETY: as it came.
    unsafe { named(fd, a, len, crate::socket::Stack::peer_name) }
}

/// Requests of `ioctl` are unsigned long in the C library.
pub(super) type Request = c_ulong;
