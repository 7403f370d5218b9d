//! A defect of this library must not take the program with it: a panic ends at the call, which fails, as all after it.

use super::{World, is_virtual};
use crate::socket::Errno;
use anabranch_base::Instant;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call answers when nothing works any more.
pub trait Failure {
    /// The answer.
    fn failure() -> Self;
}

impl<T> Failure for Result<T, Errno> {
    fn failure() -> Self {
        Err(Errno(libc::EIO))
    }
}

impl Failure for () {
    fn failure() -> Self {}
}

impl Failure for bool {
    fn failure() -> Self {
        false
    }
}

impl Failure for Instant {
    fn failure() -> Self {
        Instant::ZERO
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    fn pthread_testcancel();
}

/// PTHREAD_CANCEL_DISABLE and PTHREAD_CANCEL_DEFERRED.
const DISABLE: c_int = 1;
const DEFERRED: c_int = 0;

/// Runs `f`. The thread is not cancelled meanwhile, for it holds locks, but right afterwards: in a call that may wait, or
/// where the program lets it be cancelled anywhere.
pub fn guarded<T: Failure>(world: &World, waits: bool, f: impl FnOnce() -> T) -> T {
    if world.is_broken() {
        return T::failure();
    }
    let mut before = 0;
    if !is_virtual() {
        // SAFETY: the number outlives the call.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    }
    let outcome = catch_unwind(AssertUnwindSafe(f));
    if outcome.is_err() {
        world.give_up();
    }
    let outcome = outcome.unwrap_or_else(|_| T::failure());
    if !is_virtual() && before != DISABLE {
        let mut kind = DEFERRED;
        // SAFETY: puts back what was there; a thread that was cancelled meanwhile ends here. To let it end by what it
        // may do anywhere would lose the value that says so.
        unsafe {
            pthread_setcanceltype(DEFERRED, &raw mut kind);
            pthread_setcancelstate(before, std::ptr::null_mut());
            if waits || kind != DEFERRED {
                pthread_testcancel();
            }
            pthread_setcanceltype(kind, std::ptr::null_mut());
        }
    }
    outcome
}
