//! `fcntl` and `ioctl`.

use super::lifecycle::Request;
use super::{answer_int, put};
use crate::socket::Errno;
use crate::world::next::next;
use crate::world::{Kind, is_ours, is_ours_to_close, is_virtual, world};
use std::ffi::{c_int, c_void};

type Fcntl = unsafe extern "C-unwind" fn(c_int, c_int, ...) -> c_int;
type Ioctl = unsafe extern "C-unwind" fn(c_int, Request, ...) -> c_int;

// Both are variadic in C. Their one further argument comes in the register of a third argument, on all platforms where
// this library is built; where the program gave none, it is not read.

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"fcntl" as Fcntl)(fd, command, argument) };
    }
    control(fd, command, argument)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"fcntl64" as Fcntl)(fd, command, argument) };
    }
    control(fd, command, argument)
}

fn control(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        // SAFETY: the placeholder is a descriptor like any other; the argument is a number.
        let new = unsafe { next!(c"fcntl" as Fcntl)(fd, command, argument) };
        return if is_ours_to_close(fd) { super::duplicate::adopt(fd, new) } else { new };
    }
    let flags = world().act(|core, _| {
        let flags = core.descriptors.get(fd).ok_or(Errno::BAD_DESCRIPTOR)?.flags;
        match command {
            libc::F_GETFL => Ok(Some(flags)),
            libc::F_SETFL => {
                let non_blocking = argument as usize as c_int & libc::O_NONBLOCK;
                core.descriptors.set_flags(fd, flags & !libc::O_NONBLOCK | non_blocking);
                Ok(Some(0))
            }
            _ => Ok(None),
        }
    });
    match flags {
        Ok(None) => {
            // SAFETY: the placeholder is a descriptor like any other; the argument is as it came.
            unsafe { next!(c"fcntl" as Fcntl)(fd, command, argument) }
        }
        Ok(Some(v)) => v,
        Err(e) => answer_int::<c_int>(Err(e)),
    }
}

/// Time stamp of the packet that was read last (`<linux/sockios.h>`).
const SIOCGSTAMP: Request = 0x8906;

/// Requests that the kernel answers on any socket: about interfaces, and about the descriptor.
fn is_for_any(request: Request) -> bool {
    const FIOSETOWN: Request = 0x8901;
    const SIOCGPGRP: Request = 0x8904;
    const SIOCADDRT: Request = 0x890b;
    /// Those of the placeholder's own protocol begin here.
    const SIOCPROTOPRIVATE: Request = 0x89e0;
    const SIOCDEVPRIVATE: Request = 0x89f0;
    match request {
        FIOSETOWN..=SIOCGPGRP | SIOCADDRT..SIOCPROTOPRIVATE | SIOCDEVPRIVATE..=0x89ff => true,
        r => [libc::FIOCLEX as Request, libc::FIONCLEX as Request, libc::FIOASYNC as Request].contains(&r),
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: Request, argument: *mut c_void) -> c_int {
    if is_ours(fd) {
        let kind = world().look(|core| Ok(core.descriptors.get(fd).map(|d| d.kind))).ok().flatten();
        match (kind, request) {
            (Some(Kind::Packets), SIOCGSTAMP) => {
                let at = world().act(|core, _| core.time.last_captured());
                let us = at.as_nanos() / 1_000;
                let stamp = [(us / 1_000_000).to_ne_bytes(), (us % 1_000_000).to_ne_bytes()].concat();
                // SAFETY: this request fills a struct timeval.
                unsafe { put(argument, stamp.len(), &stamp) };
            }
            (Some(Kind::Tunnel), _) => {
                // SAFETY: the request that names the device has a struct ifreq, the others have none to be filled.
                unsafe { super::host::tunnel_request(request, argument) };
            }
            (Some(Kind::Socket(_)), r) if r == libc::FIONBIO as Request => {
                // SAFETY: this request has an int.
                let on = unsafe { *argument.cast::<c_int>() } != 0;
                world().act(|core, _| {
                    let flags = core.descriptors.get(fd).map_or(0, |d| d.flags) & !libc::O_NONBLOCK;
                    core.descriptors.set_flags(fd, flags | if on { libc::O_NONBLOCK } else { 0 });
                });
            }
            (Some(Kind::Socket(_)), r) if r == libc::FIONREAD as Request => {
                let next = world().act(|core, _| {
                    let (id, _) = super::socket_of(core, fd)?;
                    let length = core.stack.next_length(id);
                    core.used(id);
                    length
                });
                if let Ok(n) = next {
                    // SAFETY: this request has an int.
                    unsafe { *argument.cast::<c_int>() = c_int::try_from(n).unwrap_or(c_int::MAX) };
                }
                return answer_int(next.map(|_| 0));
            }
            // What the kernel's SCTP has not, such as SIOCOUTQ: a placeholder knows nothing of the socket.
            (Some(Kind::Socket(_)), r) if !is_virtual() && !is_for_any(r) => {
                return answer_int::<c_int>(Err(Errno(libc::ENOTTY)));
            }
            (Some(Kind::Socket(_)), _) if !is_virtual() => {
                // SAFETY: as it came; the placeholder is a socket.
                return unsafe { next!(c"ioctl" as Ioctl)(fd, request, argument) };
            }
            _ => {}
        }
        return 0;
    }
    // SAFETY: the requests about an interface have a struct ifreq.
    if is_virtual() && unsafe { super::host::interface_request(request, argument) } {
        return 0;
    }
    // SAFETY: as it came.
    unsafe { next!(c"ioctl" as Ioctl)(fd, request, argument) }
}
