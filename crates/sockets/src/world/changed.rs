//! What a thread waits on until something changed. The standard library's condition variable asks the C library for the
//! time, which is ours and may stand still, so that its time limits would never pass.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Counts changes.
pub struct Changed(AtomicU32);

impl Changed {
    pub const fn new() -> Self {
        Changed(AtomicU32::new(0))
    }

    /// Wakes all that rest.
    pub fn notify_all(&self) {
        self.0.fetch_add(1, SeqCst);
        let all = libc::c_int::MAX;
        // SAFETY: wakes whoever waits at this number, which lives as long as the call.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, all) };
    }

    /// How many changes there have been; read while none can happen.
    pub fn count(&self) -> u32 {
        self.0.load(SeqCst)
    }

    /// Rests until there have been more than `count`, for so long in real time at most.
    pub fn rest(&self, count: u32, most: Duration) {
        let limit =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: libc::c_long::from(most.subsec_nanos()) };
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the number and the limit, which counts from now on, live as long as the call.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wait, count, &raw const limit) };
    }
}
