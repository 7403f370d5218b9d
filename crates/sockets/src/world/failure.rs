//! A defect of this library must not take the program with it: a panic ends at the call, which fails, as all after it.

use super::next::next;
use super::{World, is_virtual};
use crate::socket::Errno;
use anabranch_base::Instant;
use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a call answers when nothing works any more.
pub trait Failure {
    /// The answer.
    fn failure() -> Self;
    /// Was something read, sent or accepted, which would be lost with the thread?
    fn took_effect(&self) -> bool {
        false
    }
}

impl<T> Failure for Result<T, Errno> {
    fn failure() -> Self {
        Err(Errno(libc::EIO))
    }
    fn took_effect(&self) -> bool {
        self.is_ok()
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

// A thread that is cancelled ends by unwinding, through the functions that the program called.
unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    fn pthread_testcancel();
}

/// PTHREAD_CANCEL_DISABLE and PTHREAD_CANCEL_DEFERRED.
const DISABLE: c_int = 1;
const DEFERRED: c_int = 0;

/// The program has handlers of signals.
static HANDLED: AtomicBool = AtomicBool::new(false);

/// The program has set a handler, which signals may call from now on.
pub fn signals_are_handled() {
    HANDLED.store(true, Relaxed);
}

type Action = unsafe extern "C-unwind" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

thread_local! {
    /// The program's signals, while they are held back.
    static MASK: Cell<Option<u64>> = const { Cell::new(None) };
}

/// All signals but those that a defect raises, and those that the C library keeps to itself.
const HELD: u64 = {
    let own =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGSYS, 32, 33];
    let (mut all, mut i) = (u64::MAX, 0);
    while i < own.len() {
        all &= !(1 << (own[i] - 1));
        i += 1;
    }
    all
};

/// Sets the mask of signals; answers that of before.
fn set_mask(how: c_int, mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both numbers, as long as the kernel's sets are, outlive the call.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const mask, &raw mut before, size_of::<u64>()) };
    before
}

/// While it lives no handler of the program runs in this thread: it may call into this library, which has locks, and the
/// C library's allocator has too. Nothing where the program has no handlers.
pub struct Quiet {
    outermost: bool,
}

impl Quiet {
    pub fn new() -> Self {
        let outermost = HANDLED.load(Relaxed) && !is_virtual() && MASK.try_with(|m| m.get().is_none()).unwrap_or(false);
        if outermost {
            let before = set_mask(libc::SIG_BLOCK, HELD);
            let _ = MASK.try_with(|m| m.set(Some(before)));
        }
        Quiet { outermost }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.outermost
            && let Some(before) = MASK.try_with(Cell::take).ok().flatten()
        {
            // Handlers that waited run here, and `errno` is the call's.
            // SAFETY: the address is that of the calling thread's own variable.
            unsafe {
                let errno = *libc::__errno_location();
                set_mask(libc::SIG_SETMASK, before);
                *libc::__errno_location() = errno;
            }
        }
    }
}

/// Runs `f`, which waits and holds nothing, with the program's signals. `f` learns whether a handler has run that ends
/// the wait: one without SA_RESTART or, as in the kernel, any where the wait has a limit.
pub fn with_signals<T>(limited: bool, f: impl FnOnce(bool) -> T) -> T {
    let Some(mask) = MASK.try_with(Cell::take).ok().flatten() else { return f(false) };
    let interrupted = is_interrupted(mask, limited);
    let held = set_mask(libc::SIG_SETMASK, mask);
    let result = f(interrupted);
    set_mask(libc::SIG_SETMASK, held);
    let _ = MASK.try_with(|m| m.set(Some(mask)));
    result
}

/// Will a handler that ends a wait run as soon as the mask is this one?
fn is_interrupted(mask: u64, limited: bool) -> bool {
    let mut pending = 0u64;
    // SAFETY: a number as long as the kernel's sets are, which outlives the call.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut pending, size_of::<u64>()) };
    let mut coming = pending & !mask & HELD;
    while coming != 0 {
        let number = coming.trailing_zeros() as c_int + 1;
        coming &= coming - 1;
        // SAFETY: all zero is an action without anything, which the C library fills.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            next!(c"sigaction" as Action)(number, std::ptr::null(), &raw mut action);
            action
        };
        let handled = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        if handled && (limited || action.sa_flags & libc::SA_RESTART == 0) {
            return true;
        }
    }
    false
}

/// What becomes of a thread that is cancelled in a call that may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// It ends.
    EndsThread,
    /// Its call ends: what it has done by now would be lost otherwise. The next call ends the thread.
    EndsWait,
}

/// Runs `f`. Until it is done no handler of a signal runs in this thread, and it is not cancelled, for it holds locks; but
/// right afterwards, in a call that may wait, or where the program lets it be cancelled anywhere. `f` learns whether
/// the program lets it be cancelled at all.
pub fn guarded<T: Failure>(world: &World, waits: Option<Cancellation>, f: impl FnOnce(bool) -> T) -> T {
    if world.is_broken() {
        return T::failure();
    }
    if is_virtual() {
        return caught(world, || f(false));
    }
    let mut before = 0;
    // SAFETY: the number outlives the call.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let cancellable = before != DISABLE;
    let ends = waits == Some(Cancellation::EndsThread);
    if waits.is_some() {
        if world.is_new_thread() {
            let _quiet = Quiet::new();
            world.enlist_thread();
        }
        if cancellable && ends {
            // Who cancels it from here on finds it in the list.
            may_end(before, true);
        }
    }
    let quiet = Quiet::new();
    let outcome = caught(world, || f(cancellable));
    drop(quiet);
    if cancellable {
        may_end(before, ends && !outcome.took_effect());
        // SAFETY: puts back what was there.
        unsafe { pthread_setcancelstate(before, std::ptr::null_mut()) };
    }
    outcome
}

fn caught<T: Failure>(world: &World, f: impl FnOnce() -> T) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(f));
    if outcome.is_err() {
        world.give_up();
    }
    outcome.unwrap_or_else(|_| T::failure())
}

/// A thread that was cancelled meanwhile ends here, if the call is one that may wait or the program lets it end anywhere.
fn may_end(state: c_int, waits: bool) {
    let mut kind = DEFERRED;
    // SAFETY: the number outlives the call, and all is put back. To let the thread end by what it may do anywhere would
    // lose the value that says so.
    unsafe {
        pthread_setcanceltype(DEFERRED, &raw mut kind);
        if waits || kind != DEFERRED {
            pthread_setcancelstate(state, std::ptr::null_mut());
            pthread_testcancel();
            pthread_setcancelstate(DISABLE, std::ptr::null_mut());
        }
        pthread_setcanceltype(kind, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn spoils(_: c_int) {
        // SAFETY: the address is that of the calling thread's own variable.
        unsafe { *libc::__errno_location() = libc::ENOTTY };
    }

    fn handle(signal: c_int, flags: c_int) {
        signals_are_handled();
        // SAFETY: all zero is an action without anything; the handler is a function of its kind.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = spoils as *const () as libc::sighandler_t;
            action.sa_flags = flags;
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }

    #[test]
    fn a_handler_that_had_to_wait_leaves_errno_alone() {
        handle(libc::SIGUSR1, libc::SA_RESTART);
        let quiet = Quiet::new();
        // SAFETY: the address is that of the calling thread's own variable; the signal has a handler.
        unsafe {
            libc::raise(libc::SIGUSR1);
            *libc::__errno_location() = libc::EAGAIN;
        }
        drop(quiet);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn a_signal_that_had_to_wait_for_the_call_ends_its_wait() {
        for (flags, limited, ends) in
            [(0, false, true), (libc::SA_RESTART, false, false), (libc::SA_RESTART, true, true)]
        {
            handle(libc::SIGUSR2, flags);
            let quiet = Quiet::new();
            assert!(!with_signals(limited, |interrupted| interrupted), "there is none yet");
            // SAFETY: the signal has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
            assert_eq!(with_signals(limited, |interrupted| interrupted), ends, "{flags} {limited}");
            assert!(!with_signals(limited, |interrupted| interrupted), "it has run");
            drop(quiet);
        }
    }
}
