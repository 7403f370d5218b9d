//! Waiting by way of the kernel, in real time: before it, our descriptors show what they are ready for.

use crate::world::next::next;
use crate::world::{bound, is_ours, is_virtual, world, world_if_any};
use std::ffi::c_int;

type Ppoll =
    unsafe extern "C-unwind" fn(*mut libc::pollfd, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int;
type Select = unsafe extern "C-unwind" fn(
    c_int,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *mut libc::timeval,
) -> c_int;
type Pselect = unsafe extern "C-unwind" fn(
    c_int,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *mut libc::fd_set,
    *const libc::timespec,
    *const libc::sigset_t,
) -> c_int;
type EpollCtl = unsafe extern "C-unwind" fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int;
type EpollWait = unsafe extern "C-unwind" fn(c_int, *mut libc::epoll_event, c_int, c_int) -> c_int;
type EpollPwait =
    unsafe extern "C-unwind" fn(c_int, *mut libc::epoll_event, c_int, c_int, *const libc::sigset_t) -> c_int;
type EpollPwait2 = unsafe extern "C-unwind" fn(
    c_int,
    *mut libc::epoll_event,
    c_int,
    *const libc::timespec,
    *const libc::sigset_t,
) -> c_int;

/// These descriptors are about to be waited on.
pub(super) fn watch(fds: impl Iterator<Item = c_int>) {
    if is_virtual() {
        return;
    }
    let mut ours = fds.filter(|fd| is_ours(*fd)).peekable();
    if ours.peek().is_none() {
        return;
    }
    world().act(|core, _| {
        for fd in ours {
            if let Some(id) = core.descriptors.socket(fd) {
                core.watch(id);
            }
        }
    });
}

/// The list of a `poll`.
///
/// # Safety
/// `fds` is null or points to `n` structures.
pub(super) unsafe fn watch_list(fds: *const libc::pollfd, n: libc::nfds_t) {
    if !fds.is_null() {
        // SAFETY: the caller's promise.
        let all = unsafe { std::slice::from_raw_parts(fds, n as usize) };
        watch(all.iter().map(|p| p.fd));
    }
}

/// # Safety
/// Each set is null or holds `n` descriptors, or as many as the kernel has room for.
unsafe fn watch_sets(n: c_int, sets: [*const libc::fd_set; 2]) {
    let n = n.min(bound());
    watch(sets.into_iter().filter(|s| !s.is_null()).flat_map(|set| {
        // A program may have larger sets than the C library's macros know.
        let words: *const u64 = set.cast();
        (0..n).filter(move |fd| {
            // SAFETY: the caller's promise.
            let word = unsafe { words.add(*fd as usize / 64).read_unaligned() };
            word >> (fd % 64) & 1 != 0
        })
    }));
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut libc::pollfd,
    n: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    // SAFETY: as it came.
    unsafe {
        watch_list(fds, n);
        next!(c"ppoll" as Ppoll)(fds, n, timeout, mask)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn select(
    n: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    timeout: *mut libc::timeval,
) -> c_int {
    // SAFETY: as it came.
    unsafe {
        watch_sets(n, [read, write]);
        next!(c"select" as Select)(n, read, write, except, timeout)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pselect(
    n: c_int,
    read: *mut libc::fd_set,
    write: *mut libc::fd_set,
    except: *mut libc::fd_set,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    // SAFETY: as it came.
    unsafe {
        watch_sets(n, [read, write]);
        next!(c"pselect" as Pselect)(n, read, write, except, timeout, mask)
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_ctl(
    e: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    watch(std::iter::once(fd));
    // SAFETY: as it came.
    unsafe { next!(c"epoll_ctl" as EpollCtl)(e, operation, fd, event) }
}

/// What was used since the last wait shows what it is.
fn refresh() {
    if let Some(world) = world_if_any().filter(|_| !is_virtual()) {
        world.act(|core, _| core.watch_stale());
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_wait(
    e: c_int,
    events: *mut libc::epoll_event,
    n: c_int,
    timeout: c_int,
) -> c_int {
    refresh();
    // SAFETY: as it came.
    unsafe { next!(c"epoll_wait" as EpollWait)(e, events, n, timeout) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait(
    e: c_int,
    events: *mut libc::epoll_event,
    n: c_int,
    timeout: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    refresh();
    // SAFETY: as it came.
    unsafe { next!(c"epoll_pwait" as EpollPwait)(e, events, n, timeout, mask) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    e: c_int,
    events: *mut libc::epoll_event,
    n: c_int,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    refresh();
    // SAFETY: as it came.
    unsafe { next!(c"epoll_pwait2" as EpollPwait2)(e, events, n, timeout, mask) }
}
