//! Whether the program handles signals: only then they are held back while this library is at work, which takes two
//! system calls for each call, and three for each time that it sleeps.

use crate::world::next::next;
use crate::world::signals_are_handled;
use std::ffi::c_int;

type Action = unsafe extern "C-unwind" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Signal = unsafe extern "C-unwind" fn(c_int, libc::sighandler_t) -> libc::sighandler_t;

fn note(handler: libc::sighandler_t) {
    // SIG_HOLD is 2, SIG_ERR all ones.
    if !matches!(handler, libc::SIG_DFL | libc::SIG_IGN | 2 | libc::SIG_ERR) {
        signals_are_handled();
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sigaction(
    number: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the program's structure, as sigaction(2) has it.
    if let Some(new) = unsafe { new.as_ref() } {
        note(new.sa_sigaction);
    }
    // SAFETY: as it came.
    unsafe { next!(c"sigaction" as Action)(number, new, old) }
}

/// The functions of one handler, under all names that they have had.
macro_rules! simple {
    ($($name:ident as $symbol:literal,)*) => {
        $(#[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(number: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
            note(handler);
            // SAFETY: as it came.
            unsafe { next!($symbol as Signal)(number, handler) }
        })*
    };
}

simple! {
    signal as c"signal",
    bsd_signal as c"bsd_signal",
    ssignal as c"ssignal",
    sysv_signal as c"sysv_signal",
    __sysv_signal as c"__sysv_signal",
    sigset as c"sigset",
}
