//! The C library's own functions behind ours, and a few system calls by number.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The next definition of a symbol behind this library, found once per place of use.
///
/// `$name` must be a function of the C library whose type is `$kind`.
macro_rules! next {
    ($name:literal as $kind:ty) => {{
        static FOUND: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let address = *FOUND.get_or_init(|| $crate::world::next::find($name));
        // SAFETY: the address is that of the C library's function of this name, whose type the caller states.
        #[allow(unused_unsafe, reason = "some callers are inside an unsafe block, some are not")]
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
    give_up(fd);
    // SAFETY: any number may be closed; descriptors that Rust owns are never handed to this function.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(fd)) as c_int }
}

/// Which descriptors are the library's own, which the program knows nothing of. Those above are not protected from it.
static INNER: [AtomicBool; 65_536] = [const { AtomicBool::new(false) }; 65_536];

fn inner(fd: c_int) -> Option<&'static AtomicBool> {
    usize::try_from(fd).ok().and_then(|i| INNER.get(i))
}

/// Is it one of the library's own?
pub fn is_inner(fd: c_int) -> bool {
    inner(fd).is_some_and(|i| i.load(Relaxed))
}

/// The library's own between two numbers.
pub fn inner_between(first: usize, last: usize) -> impl Iterator<Item = usize> {
    INNER.iter().enumerate().take(last.saturating_add(1)).skip(first).filter(|(_, i)| i.load(Relaxed)).map(|(i, _)| i)
}

/// It is not the library's own any more.
pub fn give_up(fd: c_int) {
    if let Some(i) = inner(fd) {
        i.store(false, Relaxed);
    }
}

/// Moves a descriptor of ours out of the way: a program gets the numbers that it would get without us, and may have
/// reasons to (a set for `select` in which a closed descriptor was forgotten is one).
pub fn lift(fd: c_int) -> c_int {
    let new = lifted(fd);
    if let Some(i) = inner(new) {
        i.store(true, Relaxed);
    }
    new
}

fn lifted(fd: c_int) -> c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let three_quarters = limit.rlim_cur / 4 * 3;
    let new = match moved(fd, three_quarters.min(LOW)) {
        // A process with hundreds of sockets needs the low numbers for itself.
        new if new >= SELECTED && limit.rlim_cur > HIGH => {
            close(new);
            moved(fd, three_quarters.min(HIGH))
        }
        new => new,
    };
    if new < 0 {
        return fd;
    }
    close(fd);
    new
}

fn moved(fd: c_int, least: libc::rlim_t) -> c_int {
    // SAFETY: a system call on a number; by number, for the name is ours.
    unsafe { libc::syscall(libc::SYS_fcntl, c_long::from(fd), libc::F_DUPFD_CLOEXEC, least) as c_int }
}

/// `select` reads and writes as much of a program's sets as the kernel's table of descriptors is long, and that is as long
/// as the highest needs: within an `fd_set` as long as that is possible.
const LOW: libc::rlim_t = 768;
const SELECTED: c_int = libc::FD_SETSIZE as c_int;
const HIGH: libc::rlim_t = 16_384;

/// The kernel's clock, whatever is preloaded, in ns.
pub fn monotonic_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure, which outlives the call.
    unsafe { libc::syscall(libc::SYS_clock_gettime, c_long::from(libc::CLOCK_MONOTONIC), &raw mut t as *mut c_void) };
    (t.tv_sec as u64) * 1_000_000_000 + t.tv_nsec as u64
}
