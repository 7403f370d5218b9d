//! The C library's own functions behind ours, and a few system calls by number.

use std::ffi::{CStr, c_int, c_long, c_void};

/// The next definition of a symbol behind this library, found once per place of use.
///
/// `$name` must be a function of the C library whose type is `$kind`.
macro_rules! next {
    ($name:literal as $kind:ty) => {{
        static FOUND: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let address = *FOUND.get_or_init(|| $crate::world::next::find($name));
        // SAFETY: the address is that of the C library's function of this name, whose type the caller states.
        #[allow(unused_unsafe, reason = "some callers stand in an unsafe block, some do not")]
        let function = unsafe { std::mem::transmute::<usize, $kind>(address) };
        function
    }};
}
pub(crate) use next;

/// Address of a symbol behind ours. Ends the process when there is none: nothing could be done then.
pub fn find(name: &CStr) -> usize {
    // Functions of which the C library keeps an older form under the same name: the newer one is asked for.
    const RENEWED: [&CStr; 3] = [c"pthread_cond_wait", c"pthread_cond_timedwait", c"pthread_cond_signal"];
    let mut address = std::ptr::null_mut();
    if RENEWED.contains(&name) {
        // SAFETY: both strings end in 0; dlvsym only looks them up.
        address = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
    }
    if address.is_null() {
        // SAFETY: as above.
        address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    }
    if address.is_null() {
        std::process::abort();
    }
    address as usize
}

/// `close` as the kernel has it, whatever is preloaded.
pub fn close(fd: c_int) -> c_int {
    // SAFETY: any number may be closed; descriptors that Rust owns are never handed to this function.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(fd)) as c_int }
}

/// Moves a descriptor of ours out of the way: a program gets the numbers that it would get without us, and may have
/// reasons to (a set for `select` in which a closed descriptor was forgotten is one).
pub fn lift(fd: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let least = (limit.rlim_cur / 4 * 3).min(HIGH);
    // SAFETY: a system call on a number; by number, for the name is ours.
    let new = unsafe { libc::syscall(libc::SYS_fcntl, c_long::from(fd), libc::F_DUPFD_CLOEXEC, least) as c_int };
    if new < 0 {
        return fd;
    }
    close(fd);
    new
}

/// No need to go higher: the kernel keeps a table up to the highest.
const HIGH: libc::rlim_t = 16_384;

/// The kernel's clock, whatever is preloaded, in ns.
pub fn monotonic_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which outlives the call.
    unsafe { libc::syscall(libc::SYS_clock_gettime, c_long::from(libc::CLOCK_MONOTONIC), &raw mut t as *mut c_void) };
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}
