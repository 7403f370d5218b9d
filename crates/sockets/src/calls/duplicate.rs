//! `dup` and its family: several descriptors of one socket, which lives as long as any of them.

use super::lifecycle::release;
use crate::world::next::next;
use crate::world::{Kind, is_ours, world};
use std::ffi::c_int;

type Dup = unsafe extern "C" fn(c_int) -> c_int;
type Dup2 = unsafe extern "C" fn(c_int, c_int) -> c_int;
type Dup3 = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;

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

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: as it came.
    let new = unsafe { next!(c"dup" as Dup)(fd) };
    if is_ours(fd) { adopt(fd, new) } else { new }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup2(old: c_int, new: c_int) -> c_int {
    // What `new` was is closed by this.
    if old != new && is_ours(new) {
        release(new);
    }
    // SAFETY: as it came.
    let done = unsafe { next!(c"dup2" as Dup2)(old, new) };
    if is_ours(old) { adopt(old, done) } else { done }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old != new && is_ours(new) {
        release(new);
    }
    // SAFETY: as it came.
    let done = unsafe { next!(c"dup3" as Dup3)(old, new, flags) };
    if is_ours(old) { adopt(old, done) } else { done }
}
