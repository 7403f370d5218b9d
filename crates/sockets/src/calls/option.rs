//! `getsockopt` and `setsockopt`; some of SCTP's options are calls of their own (`sctp_connectx`, `sctp_peeloff`).

use super::lifecycle::{connect_to, new_descriptor};
use super::{answer_int, bytes, put, socket_of};
use crate::abi::option::{PeelOff, name};
use crate::abi::{SOL_SCTP, address, read};
use crate::socket::Errno;
use crate::world::next::next;
use crate::world::{Kind, Quiet, is_ours, world};
use std::ffi::{c_int, c_void};
use zerocopy::IntoBytes;

type Set = unsafe extern "C-unwind" fn(c_int, c_int, c_int, *const c_void, libc::socklen_t) -> c_int;
type Get = unsafe extern "C-unwind" fn(c_int, c_int, c_int, *mut c_void, *mut libc::socklen_t) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: libc::socklen_t,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"setsockopt" as Set)(fd, level, option, value, len) };
    }
    let _quiet = Quiet::new();
    let read = match read_of_set(level, len) {
        Ok(n) => n,
        Err(e) => return answer_int::<c_int>(Err(e)),
    };
    // SAFETY: the program's value, as setsockopt(2) has it.
    let value = unsafe { bytes(value, read) };
    if level == SOL_SCTP && matches!(option, name::CONNECTX | name::CONNECTX_OLD) {
        let peer = address::parse_list(value).ok_or(Errno::INVALID);
        return answer_int(peer.and_then(|p| {
            let (id, outcome) = connect_to(fd, &p);
            // The older call knows no id.
            outcome.map(|()| if option == name::CONNECTX { id } else { 0 })
        }));
    }
    answer_int(world().act(|core, now| {
        if !matches!(core.descriptors.get(fd).map(|d| d.kind), Some(Kind::Socket(_))) {
            return Ok(0);
        }
        let (id, _) = socket_of(core, fd)?;
        core.stack.set_option(now, id, level, option, value).map(|()| 0)
    }))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut libc::socklen_t,
) -> c_int {
    if !is_ours(fd) {
        // SAFETY: as it came.
        return unsafe { next!(c"getsockopt" as Get)(fd, level, option, value, len) };
    }
    let _quiet = Quiet::new();
    if len.is_null() {
        return answer_int::<c_int>(Err(Errno::FAULT));
    }
    // SAFETY: the program's length, as getsockopt(2) has it.
    let Ok(room) = usize::try_from(unsafe { *len } as c_int) else { return answer_int::<c_int>(Err(Errno::INVALID)) };
    // SAFETY: the program's buffer. More than the largest structure is not read, whatever room it has.
    let mut given = unsafe { bytes(value, if level == SOL_SCTP { room.min(LARGEST) } else { 0 }).to_vec() };
    // Lists look how much room there is for them.
    given.resize(room.min(LONGEST), 0);
    if level == SOL_SCTP && option == name::CONNECTX3 {
        // SAFETY: the structure's pointer is the program's own.
        let (id, outcome) = unsafe { connect_by_structure(fd, &given) };
        if matches!(outcome, Ok(()) | Err(Errno::IN_PROGRESS)) {
            let id = id.to_ne_bytes();
            // SAFETY: the buffer as above: the id takes its first field.
            unsafe {
                put(value, room, &id);
                *len = id.len() as libc::socklen_t;
            }
        }
        return answer_int(outcome.map(|()| 0));
    }
    let result = if level == SOL_SCTP && matches!(option, name::PEELOFF | name::PEELOFF_FLAGS) {
        peel_off(fd, &given)
    } else {
        world().act(|core, _| {
            let (id, _) = socket_of(core, fd)?;
            let value = core.stack.get_option(id, level, option, &given);
            // SO_ERROR may have been all that there was to read.
            core.used(id);
            value
        })
    };
    let count = matches!(option, name::PEELOFF | name::PEELOFF_FLAGS).then(|| descriptor_in(result.as_deref()));
    answer_int(result.map(|v| {
        // SAFETY: as above.
        unsafe {
            put(value, room, &v);
            *len = v.len().min(room) as libc::socklen_t;
        }
        count.unwrap_or(0)
    }))
}

/// `sctp_peeloff` answers what getsockopt does, and the library of lksctp what the structure contains.
fn descriptor_in(v: Result<&[u8], &Errno>) -> c_int {
    v.ok().and_then(|b| read::<PeelOff>(b, 8)).map_or(0, |p| p.descriptor.get())
}

fn peel_off(fd: c_int, given: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut p = read::<PeelOff>(given, 8).ok_or(Errno::INVALID)?;
    let new = world().act(|core, _| {
        let (id, _) = socket_of(core, fd)?;
        let new = core.stack.peel_off(id, p.id.get());
        core.used(id);
        new
    })?;
    let flags = p.flags.get() as c_int;
    let d = new_descriptor(Kind::Socket(new), flags & libc::SOCK_NONBLOCK, flags & libc::SOCK_CLOEXEC != 0)?;
    p.descriptor = d.into();
    Ok(p.as_bytes().get(..given.len().min(size_of::<PeelOff>())).unwrap_or_default().to_vec())
}

/// Bytes of the largest structure that an option is asked by.
const LARGEST: usize = 512;
/// Bytes of the longest list that an option answers.
const LONGEST: usize = 1 << 20;
/// Bytes of the largest value outside SCTP's level.
const LARGEST_OF_SOCKET: usize = 16;
/// Linux has no memory for more.
const MOST: usize = 4 << 20;

/// How much of a value of `setsockopt` is read.
fn read_of_set(level: c_int, len: libc::socklen_t) -> Result<usize, Errno> {
    let len = usize::try_from(len as c_int).map_err(|_| Errno::INVALID)?;
    match level {
        SOL_SCTP if len > MOST => Err(Errno(libc::ENOMEM)),
        SOL_SCTP => Ok(len),
        _ => Ok(len.min(LARGEST_OF_SOCKET)),
    }
}

/// `struct sctp_getaddrs_old`: id, length of the list in bytes, pointer to it.
///
/// # Safety
/// What the structure points to is as long as it says.
unsafe fn connect_by_structure(fd: c_int, given: &[u8]) -> (c_int, Result<(), Errno>) {
    let field = |at: usize| given.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let pointer = given.get(8..8 + size_of::<usize>()).and_then(|b| b.try_into().ok()).map(usize::from_ne_bytes);
    let list = field(4).zip(pointer).filter(|(len, _)| *len as usize <= MOST).and_then(|(len, pointer)| {
        // SAFETY: the caller's promise.
        address::parse_list(unsafe { bytes(pointer as *const c_void, len as usize) })
    });
    match list {
        Some(list) => connect_to(fd, &list),
        None => (0, Err(Errno::INVALID)),
    }
}
