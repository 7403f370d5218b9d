//! What stands behind a descriptor of ours where the kernel waits on it: one end of a socket pair whose other end is
//! ours. The program's end can be read when there is a byte in it, and takes no more when it is full; so `poll`,
//! `select` and `epoll_wait` answer for our socket, whatever else they wait for.

use crate::socket::{Errno, Readiness};
use crate::world::next::{close, lift};
use std::ffi::{c_int, c_long, c_void};
use std::os::fd::RawFd;

/// Larger than the smallest buffer that the kernel allows: one makes an end full.
const FILLING: usize = 2_048;

/// The two ends.
#[derive(Debug)]
pub struct Mirror {
    theirs: RawFd,
    ours: RawFd,
    readable: bool,
    writable: bool,
    /// Somebody waits on it: only then it has to show what is.
    pub watched: bool,
}

/// A pair of connected sockets: the program's end and ours.
///
/// # Errors
/// The process has no more descriptors.
pub fn pair(close_on_exec: bool) -> Result<(RawFd, RawFd), Errno> {
    let mut ends = [0 as c_int; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
    // SAFETY: the kernel fills the array, which outlives the call.
    let r = unsafe { libc::syscall(libc::SYS_socketpair, libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, &raw mut ends) };
    if r < 0 {
        return Err(Errno(libc::EMFILE));
    }
    let [theirs, ours] = ends;
    let least: c_int = 1;
    // SAFETY: the option is a number, which outlives the call; by number of the call, for the name may be ours.
    unsafe {
        libc::syscall(
            libc::SYS_setsockopt,
            c_long::from(theirs),
            libc::SOL_SOCKET,
            libc::SO_SNDBUF,
            &raw const least,
            size_of::<c_int>(),
        );
        if !close_on_exec {
            libc::syscall(libc::SYS_fcntl, c_long::from(theirs), libc::F_SETFD, 0);
        }
    }
    Ok((theirs, lift(ours)))
}

impl Mirror {
    /// Of a new pair.
    pub fn new(theirs: RawFd, ours: RawFd) -> Self {
        Mirror { theirs, ours, readable: false, writable: true, watched: false }
    }

    /// The program has another descriptor of the same end now.
    pub fn moved_to(&mut self, theirs: RawFd) {
        self.theirs = theirs;
    }

    /// Does it say that there is no room?
    pub fn is_full(&self) -> bool {
        !self.writable
    }

    /// Shows what has become possible.
    pub fn raise(&mut self, r: Readiness) {
        if (r.readable || r.error || r.hung_up) && !self.readable {
            self.readable = write(self.ours, 1);
        }
        if (r.writable || r.error || r.hung_up) && !self.writable {
            self.writable = read(self.ours);
        }
    }

    /// Shows what is.
    pub fn show(&mut self, r: Readiness) {
        self.raise(r);
        if self.readable && !(r.readable || r.error || r.hung_up) {
            self.readable = !read(self.theirs);
        }
        if self.writable && !(r.writable || r.error || r.hung_up) {
            self.writable = !write(self.theirs, FILLING);
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        close(self.ours);
    }
}

fn write(fd: RawFd, n: usize) -> bool {
    static NOTHING: [u8; FILLING] = [0; FILLING];
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the bytes outlive the call.
    let r = unsafe { libc::syscall(libc::SYS_sendto, c_long::from(fd), NOTHING.as_ptr(), n, flags, 0 as c_long, 0) };
    r > 0
}

fn read(fd: RawFd) -> bool {
    let mut waste = [0u8; FILLING];
    let to: *mut c_void = waste.as_mut_ptr().cast();
    // SAFETY: the room outlives the call.
    let r = unsafe {
        libc::syscall(libc::SYS_recvfrom, c_long::from(fd), to, FILLING, libc::MSG_DONTWAIT, 0 as c_long, 0 as c_long)
    };
    r > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled(fd: RawFd) -> (bool, bool) {
        let mut p = libc::pollfd { fd, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
        // SAFETY: one structure that outlives the call.
        unsafe { libc::syscall(libc::SYS_poll, &raw mut p, 1, 0) };
        (p.revents & libc::POLLIN != 0, p.revents & libc::POLLOUT != 0)
    }

    #[test]
    fn the_kernel_sees_what_it_shows() {
        let (theirs, ours) = pair(true).unwrap();
        let mut m = Mirror::new(theirs, ours);
        assert_eq!(polled(theirs), (false, true));
        for turn in 0..3 {
            for (readable, writable) in [(true, true), (true, false), (false, false), (false, true), (true, false)] {
                m.show(Readiness { readable, writable, ..Readiness::default() });
                assert_eq!(polled(theirs), (readable, writable), "turn {turn}");
            }
        }
        m.raise(Readiness::default());
        assert_eq!(polled(theirs), (true, false), "raising takes nothing back");
        close(theirs);
    }
}
