//! The end of the process, and its children.
//!
//! A kernel goes on when a process has ended; this library ends with it. So a process that returns from `main` or calls
//! `exit` waits for its associations to end gracefully, for as long as the settings say. A child of `fork` has none of
//! the parent's threads, so its SCTP sockets are as those whose peer is gone; it may make new ones.

use crate::world::{descriptor, forget_world, next, world_if_any};
use anabranch_base::Duration;
use std::ffi::{c_int, c_long};
use std::sync::Once;

/// Registers for the creation of children and for the end of the process.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both functions are there as long as the process is.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
}

/// What may be called in a child of a process with threads: system calls, and nothing that takes a lock.
extern "C" fn in_child() {
    // A child must not keep the parent's ports.
    for fd in next::inner_between(0, usize::MAX) {
        next::close(fd as c_int);
    }
    let mut ends = [-1 as c_int; 2];
    // SAFETY: the kernel fills the array, which outlives the call.
    unsafe { libc::syscall(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, &raw mut ends) };
    next::close(ends[1]);
    for fd in descriptor::disown_all() {
        // SAFETY: both are descriptors of this process; the second was ours and is the program's.
        unsafe {
            let flags = libc::syscall(libc::SYS_fcntl, c_long::from(fd), libc::F_GETFD) as c_int;
            let exec = if flags & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
            libc::syscall(libc::SYS_dup3, ends[0], fd, exec);
        }
    }
    next::close(ends[0]);
    forget_world();
}

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(|| {
        let Some(world) = world_if_any() else { return };
        // Whoever ends the process within a signal's handler may hold the lock; others have it for a moment only.
        let begun = super::now();
        let patience = loop {
            match world.close_all() {
                Some(patience) => break patience,
                None if super::now() > begun + LOCK_PATIENCE => return,
                None => nap(),
            }
        };
        let limit = super::now() + patience;
        while world.is_busy() && super::now() < limit {
            nap();
        }
    });
}

/// How long the end of the process waits for the lock.
const LOCK_PATIENCE: Duration = Duration::from_millis(1_000);

fn nap() {
    let short = libc::timespec { tv_sec: 0, tv_nsec: 500_000 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const short, 0 as libc::c_long) };
}
