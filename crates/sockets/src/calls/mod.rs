//! The functions that a program calls, one file per family: each looks whether the descriptor is ours, and hands on to
//! the C library what is not.

// What a block relies on beyond the contract of the C function of its name is said beside it.
#![allow(unsafe_code, reason = "every function here is called from C with C's pointers")]
#![allow(clippy::unnecessary_cast, reason = "types of lengths differ between C libraries")]
#![allow(clippy::missing_safety_doc, reason = "the contract is that of the C function of the same name")]

mod closing;
mod cmsg;
mod control;
mod duplicate;
mod fortified;
mod host;
mod lifecycle;
mod option;
mod poll;
mod ready;
mod receive;
mod send;
mod several;
mod signals;
mod thread;
mod time;

use crate::socket::{Errno, SocketId};
use crate::world::Core;
use anabranch_base::Duration;
use std::ffi::{c_int, c_void};

/// Answers as the C library does: -1 and `errno`.
fn answer<T: TryInto<isize>>(r: Result<T, Errno>) -> isize {
    match r {
        Ok(v) => v.try_into().unwrap_or(isize::MAX),
        Err(Errno(e)) => {
            // SAFETY: the address is that of the calling thread's own variable.
            unsafe { *libc::__errno_location() = e };
            -1
        }
    }
}

fn answer_int<T: TryInto<isize>>(r: Result<T, Errno>) -> c_int {
    answer(r) as c_int
}

/// The bytes at `p`.
///
/// # Safety
/// `p` is null or points to `len` readable bytes that do not change meanwhile.
unsafe fn bytes<'a>(p: *const c_void, len: usize) -> &'a [u8] {
    if p.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(p.cast(), len) }
}

/// Copies as much of `from` as there is room for.
///
/// # Safety
/// `to` is null or points to `room` writable bytes.
unsafe fn put(to: *mut c_void, room: usize, from: &[u8]) {
    let n = room.min(from.len());
    if !to.is_null() && n > 0 {
        // SAFETY: the caller's promise; `from` is ours and does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), n) };
    }
}

/// Writes an address and its length as `accept` and `getsockname` do.
///
/// # Safety
/// `len` is null or points to the room at `to`.
unsafe fn put_address(to: *mut libc::sockaddr, len: *mut libc::socklen_t, address: &[u8]) {
    if to.is_null() || len.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        put(to.cast(), *len as usize, address);
        *len = address.len() as libc::socklen_t;
    }
}

/// The socket of a descriptor, and whether calls on it wait.
fn socket_of(core: &Core, fd: c_int) -> Result<(SocketId, bool), Errno> {
    let d = core.descriptors.get(fd).ok_or(Errno::BAD_DESCRIPTOR)?;
    let id = core.descriptors.socket(fd).ok_or(Errno(libc::ENOTSOCK))?;
    Ok((id, d.flags & libc::O_NONBLOCK == 0))
}

/// How long a call on `fd` may wait: not at all, for SO_RCVTIMEO or SO_SNDTIMEO, or for ever.
fn patience(fd: c_int, flags: c_int, receives: bool) -> impl FnOnce(&Core) -> Result<Option<Duration>, Errno> + Copy {
    move |core| {
        let (id, waits) = socket_of(core, fd)?;
        if !waits || flags & libc::MSG_DONTWAIT != 0 {
            return Ok(Some(Duration::ZERO));
        }
        core.stack.timeout(id, receives)
    }
}
