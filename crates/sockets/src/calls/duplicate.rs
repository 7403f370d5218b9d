//! `dup` and its family: several descriptors of one socket, which lives as long as any of them.

use super::lifecycle::release;
use crate::socket::Errno;
use crate::world::next::{is_inner, next};
use crate::world::{Kind, is_ours_to_close, world};
use std::ffi::c_int;

type Dup = unsafe extern "C-unwind" fn(c_int) -> c_int;
type Dup2 = unsafe extern "C-unwind" fn(c_int, c_int) -> c_int;
type Dup3 = unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int;

/// The kernel has made `new` of `old`, which is ours: so is `new`.
pub(super) fn adopt(old: c_int, new: c_int) -> c_int {
    if new >= 0 && new != old {
        world().act(|core, _| {
            if let Some(d) = core.descriptors.get(old).copied().filter(|d| matches!(d.kind, Kind::Socket(_))) {
                core.descriptors.add(new, d);
            }
        });
    }
    new
}

/// `new` is about to be closed, if `old` is there to take its place.
fn replaced(old: c_int, new: c_int) {
    // SAFETY: asks for flags; by number, for the name is ours.
    let there = unsafe { libc::syscall(libc::SYS_fcntl, libc::c_long::from(old), libc::F_GETFD) >= 0 };
    if there && old != new && is_ours_to_close(new) {
        release(new);
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: as it came.
    let new = unsafe { next!(c"dup" as Dup)(fd) };
    if is_ours_to_close(fd) { adopt(fd, new) } else { new }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    if is_inner(new) {
        return super::answer_int::<c_int>(Err(Errno(libc::EBUSY)));
    }
    replaced(old, new);
    // SAFETY: as it came.
    let done = unsafe { next!(c"dup2" as Dup2)(old, new) };
    if is_ours_to_close(old) { adopt(old, done) } else { done }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if is_inner(new) {
        return super::answer_int::<c_int>(Err(Errno(libc::EBUSY)));
    }
    if flags & !libc::O_CLOEXEC == 0 {
        replaced(old, new);
    }
    // SAFETY: as it came.
    let done = unsafe { next!(c"dup3" as Dup3)(old, new, flags) };
    if is_ours_to_close(old) { adopt(old, done) } else { done }
}
