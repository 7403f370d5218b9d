//! Threads that wait for each other, in virtual time: while they do, time may pass.

use super::time::span;
use crate::world::next::next;
use crate::world::virtual_time::{Outside, enter, give_way, outside, wait_turn};
use crate::world::{is_virtual, world, world_if_any};
use anabranch_base::{Duration, Instant};
use std::ffi::{c_int, c_void};

type Lock = unsafe extern "C-unwind" fn(*mut libc::pthread_mutex_t) -> c_int;
type Wait = unsafe extern "C-unwind" fn(*mut libc::pthread_cond_t, *mut libc::pthread_mutex_t) -> c_int;
type TimedWait =
    unsafe extern "C-unwind" fn(*mut libc::pthread_cond_t, *mut libc::pthread_mutex_t, *const libc::timespec) -> c_int;
type Join = unsafe extern "C-unwind" fn(libc::pthread_t, *mut *mut c_void) -> c_int;
type Cancel = unsafe extern "C-unwind" fn(libc::pthread_t) -> c_int;
type Yield = unsafe extern "C-unwind" fn() -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_mutex_lock(m: *mut libc::pthread_mutex_t) -> c_int {
    let lock = next!(c"pthread_mutex_lock" as Lock);
    // SAFETY: as it came.
    if !is_virtual() || unsafe { next!(c"pthread_mutex_trylock" as Lock)(m) } != 0 {
        if !is_virtual() {
            // SAFETY: as it came.
            return unsafe { lock(m) };
        }
        // SAFETY: as it came.
        return outside(Outside::Lock, || unsafe { lock(m) });
    }
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    c: *mut libc::pthread_cond_t,
    m: *mut libc::pthread_mutex_t,
) -> c_int {
    let wait = next!(c"pthread_cond_wait" as Wait);
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { wait(c, m) };
    }
    // SAFETY: as it came.
    outside(Outside::Thread, || unsafe { wait(c, m) })
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    c: *mut libc::pthread_cond_t,
    m: *mut libc::pthread_mutex_t,
    until: *const libc::timespec,
) -> c_int {
    let wait = next!(c"pthread_cond_timedwait" as TimedWait);
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { wait(c, m, until) };
    }
    enter();
    // SAFETY: the program's structure.
    let deadline = Instant::from_nanos(unsafe { span(until) }.as_nanos());
    loop {
        // A signal comes in real time: a short real wait, with the lock given back, and then a look at the clock.
        // SAFETY: as it came, with our own time.
        let r = unsafe { wait(c, m, &real_in(Duration::from_millis(2))) };
        if r != libc::ETIMEDOUT {
            return r;
        }
        if wait_turn(deadline) {
            return libc::ETIMEDOUT;
        }
    }
}

/// The kernel's wall clock so much later.
fn real_in(d: Duration) -> libc::timespec {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which outlives the call.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_REALTIME as libc::c_long, &raw mut t) };
    let ns = t.tv_nsec as u64 + d.as_nanos();
    libc::timespec {
        tv_sec: t.tv_sec + (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_join(t: libc::pthread_t, value: *mut *mut c_void) -> c_int {
    let join = next!(c"pthread_join" as Join);
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { join(t, value) };
    }
    // SAFETY: as it came.
    outside(Outside::Thread, || unsafe { join(t, value) })
}

/// In virtual time, ends the waits of other threads with EINTR: a thread that waits on one of our sockets has no point at which it could
/// be cancelled.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_cancel(t: libc::pthread_t) -> c_int {
    if !is_virtual() {
        let native = next!(c"pthread_cancel" as Cancel);
        let mut done = None;
        // It may wait in one of our calls, where it cannot be cancelled: it ends right after. As long as the lock is held
        // it does not leave the list, so the thread of this number is no newer one.
        if let Some(world) = world_if_any() {
            world.act(|core, _| {
                // SAFETY: as it came.
                done = Some(unsafe { native(t) });
                core.cancel(t);
            });
        }
        // SAFETY: as it came.
        return done.unwrap_or_else(|| unsafe { native(t) });
    }
    world().act(|core, _| {
        core.time.interrupt();
    });
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sched_yield() -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"sched_yield" as Yield)() };
    }
    give_way();
    0
}
