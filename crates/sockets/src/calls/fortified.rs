//! The names under which programs call when they were built with `_FORTIFY_SOURCE`: with the length of the buffer as
//! a further argument, beyond which nothing may be written.

use super::{poll, ready, receive};
use std::ffi::{c_int, c_void};

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __read_chk(fd: c_int, b: *mut c_void, n: usize, buflen: usize) -> isize {
    check(n, buflen);
    // SAFETY: as it came.
    unsafe { receive::read(fd, b, n) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recv_chk(fd: c_int, b: *mut c_void, n: usize, buflen: usize, flags: c_int) -> isize {
    check(n, buflen);
    // SAFETY: as it came.
    unsafe { receive::recv(fd, b, n, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    b: *mut c_void,
    n: usize,
    buflen: usize,
    flags: c_int,
    from: *mut libc::sockaddr,
    len: *mut libc::socklen_t,
) -> isize {
    check(n, buflen);
    // SAFETY: as it came.
    unsafe { receive::recvfrom(fd, b, n, flags, from, len) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut libc::pollfd,
    n: libc::nfds_t,
    timeout: c_int,
    buflen: usize,
) -> c_int {
    check((n as usize).saturating_mul(size_of::<libc::pollfd>()), buflen);
    // SAFETY: as it came.
    unsafe { poll::poll(fds, n, timeout) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut libc::pollfd,
    n: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
    buflen: usize,
) -> c_int {
    check((n as usize).saturating_mul(size_of::<libc::pollfd>()), buflen);
    // SAFETY: as it came.
    unsafe { ready::ppoll(fds, n, timeout, mask) }
}

/// As the C library does where a program would write beyond its own buffer.
fn check(n: usize, buflen: usize) {
    if n > buflen {
        std::process::abort();
    }
}
