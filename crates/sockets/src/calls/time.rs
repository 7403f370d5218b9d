//! Clocks and sleeps in virtual time. In real time all of them are the C library's.

use super::put;
use crate::world::next::next;
use crate::world::virtual_time::sleep as sleep_for;
use crate::world::{is_virtual, world};
use anabranch_base::{Duration, Instant};
use std::ffi::{c_int, c_uint, c_void};

type GetTimeOfDay = unsafe extern "C-unwind" fn(*mut libc::timeval, *mut c_void) -> c_int;
type ClockGetTime = unsafe extern "C-unwind" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
type Time = unsafe extern "C-unwind" fn(*mut libc::time_t) -> libc::time_t;
type Usleep = unsafe extern "C-unwind" fn(c_uint) -> c_int;
type Sleep = unsafe extern "C-unwind" fn(c_uint) -> c_uint;
type NanoSleep = unsafe extern "C-unwind" fn(*const libc::timespec, *mut libc::timespec) -> c_int;
type ClockNanoSleep =
    unsafe extern "C-unwind" fn(libc::clockid_t, c_int, *const libc::timespec, *mut libc::timespec) -> c_int;
type Times = unsafe extern "C-unwind" fn(*mut c_void) -> libc::clock_t;

fn read_clock() -> Instant {
    let mut core = world().lock();
    core.time.read_clock()
}

fn timespec(t: Instant) -> libc::timespec {
    let ns = t.as_nanos();
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// # Safety
/// `t` points to a structure.
pub(super) unsafe fn span(t: *const libc::timespec) -> Duration {
    // SAFETY: the caller's promise.
    let t = unsafe { &*t };
    Duration::from_nanos((t.tv_sec.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_nsec.max(0) as u64))
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn gettimeofday(t: *mut libc::timeval, zone: *mut c_void) -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"gettimeofday" as GetTimeOfDay)(t, zone) };
    }
    let us = read_clock().as_nanos() / 1_000;
    let both = [(us / 1_000_000).to_ne_bytes(), (us % 1_000_000).to_ne_bytes()].concat();
    // SAFETY: a struct timeval is two numbers of 64 bits.
    unsafe { put(t.cast(), both.len(), &both) };
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn clock_gettime(clock: libc::clockid_t, t: *mut libc::timespec) -> c_int {
    let of_processor = matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID);
    if !is_virtual() || of_processor {
        // SAFETY: as it came.
        return unsafe { next!(c"clock_gettime" as ClockGetTime)(clock, t) };
    }
    let now = timespec(read_clock());
    // SAFETY: the program's structure, as clock_gettime(2) has it.
    unsafe { *t = now };
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn time(t: *mut libc::time_t) -> libc::time_t {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"time" as Time)(t) };
    }
    let now = timespec(read_clock()).tv_sec;
    if !t.is_null() {
        // SAFETY: the program's number, as time(2) has it.
        unsafe { *t = now };
    }
    now
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn usleep(us: c_uint) -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"usleep" as Usleep)(us) };
    }
    sleep_for(Duration::from_micros(us.into()));
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sleep(s: c_uint) -> c_uint {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"sleep" as Sleep)(s) };
    }
    sleep_for(Duration::from_secs(s.into()));
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn nanosleep(d: *const libc::timespec, left: *mut libc::timespec) -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"nanosleep" as NanoSleep)(d, left) };
    }
    // SAFETY: the program's structure, as nanosleep(2) has it.
    sleep_for(unsafe { span(d) });
    0
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: c_int,
    d: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"clock_nanosleep" as ClockNanoSleep)(clock, flags, d, left) };
    }
    // SAFETY: the program's structure, as clock_nanosleep(2) has it.
    let d = unsafe { span(d) };
    let now = read_clock().as_nanos();
    let d = if flags & libc::TIMER_ABSTIME != 0 { Duration::from_nanos(d.as_nanos().saturating_sub(now)) } else { d };
    sleep_for(d);
    0
}

/// Ticks of the clock since the beginning. A program that asks waits for the next one: it has no other reason.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn times(t: *mut c_void) -> libc::clock_t {
    if !is_virtual() {
        // SAFETY: as it came.
        return unsafe { next!(c"times" as Times)(t) };
    }
    sleep_for(Duration::from_millis(10));
    (read_clock().as_nanos() / 10_000_000) as libc::clock_t
}
