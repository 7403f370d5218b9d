//! `close` and its family. The library's own descriptors are none of the program's: it cannot close them.

use super::lifecycle::release;
use crate::socket::Errno;
use crate::world::next::{inner_between, is_inner, next};
use crate::world::{is_ours_to_close, ours_between};
use std::ffi::{c_int, c_uint};

type One = unsafe extern "C-unwind" fn(c_int) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    if is_ours_to_close(fd) {
        release(fd);
        return crate::world::next::close(fd);
    }
    if is_inner(fd) {
        return super::answer_int::<c_int>(Err(Errno::BAD_DESCRIPTOR));
    }
    // SAFETY: as it came.
    unsafe { next!(c"close" as One)(fd) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const KNOWN: c_int = (libc::CLOSE_RANGE_UNSHARE | libc::CLOSE_RANGE_CLOEXEC) as c_int;
    if first > last || flags & !KNOWN != 0 {
        return super::answer_int::<c_int>(Err(Errno::INVALID));
    }
    if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        // Our sockets end before their numbers are free for others, so the kernel must have the call.
        if range(c_uint::MAX, c_uint::MAX, flags) < 0 {
            return -1;
        }
        ours_between(first as usize, last as usize).filter(|fd| is_ours_to_close(*fd)).for_each(release);
    }
    let mut from = first;
    for kept in inner_between(first as usize, last as usize).map(|fd| fd as c_uint) {
        if kept > from && range(from, kept - 1, flags) < 0 {
            return -1;
        }
        from = kept + 1;
    }
    if from > last { 0 } else { range(from, last, flags) }
}

fn range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: numbers that the program may close; by number, for the name is ours.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) as c_int }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: as it came.
    if unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) } == 0 {
        return;
    }
    // An old kernel, or one that was set up to refuse the call.
    for fd in open_descriptors().into_iter().filter(|fd| *fd >= first && !is_inner(*fd)) {
        // SAFETY: as it came.
        unsafe { close(fd) };
    }
}

fn open_descriptors() -> Vec<c_int> {
    if let Ok(all) = std::fs::read_dir("/proc/self/fd") {
        return all.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    }
    // Without /proc: as many as may be open, and no list of a thousand million.
    // SAFETY: always succeeds.
    (0..unsafe { libc::sysconf(libc::_SC_OPEN_MAX) }.clamp(1_024, 65_536) as c_int).collect()
}
