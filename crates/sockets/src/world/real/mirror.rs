//! What the kernel sees behind a descriptor of ours when it waits on it: one end of a socket pair whose other end is
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
    /// It is waited on: only then it has to show the state.
    pub watched: bool,
    /// The program has used the socket since it was shown last: it may have seen what `readable` is about.
    used: bool,
    /// It is on the list of those that may show more than there is.
    pub listed: bool,
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
        Mirror { theirs, ours, readable: false, writable: true, watched: false, used: false, listed: false }
    }

    /// The program has another descriptor of the same end now.
    pub fn moved_to(&mut self, theirs: RawFd) {
        self.theirs = theirs;
    }

    /// Does it say that there is no room?
    pub fn is_full(&self) -> bool {
        !self.writable
    }

    /// The program has used the socket. What it was refused for want of room must not be shown any more: an edge
    /// comes only after that.
    pub fn used(&mut self, r: Readiness) {
        self.used = true;
        self.fill(r);
    }

    /// Shows what has become possible: to who waits for edges too, where the program has used the socket since.
    pub fn raise(&mut self, r: Readiness) {
        if r.readable || r.error || r.hung_up {
            if self.readable && self.used {
                self.readable = !read(self.theirs);
            }
            if !self.readable {
                self.readable = write(self.ours, 1);
            }
            self.used = false;
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
        self.fill(r);
    }

    fn fill(&mut self, r: Readiness) {
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

    /// Events of an edge-triggered set of one descriptor, by now.
    fn edge(set: c_int) -> u32 {
        let mut got = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: one structure that outlives the call.
        unsafe { libc::syscall(libc::SYS_epoll_pwait, set, &raw mut got, 1, 0, 0 as c_long, 8) };
        got.events
    }

    #[test]
    fn news_after_use_are_an_edge() {
        let (theirs, ours) = pair(true).unwrap();
        let mut m = Mirror::new(theirs, ours);
        let mut want = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
        // SAFETY: the structure outlives the calls.
        let set = unsafe {
            let set = libc::syscall(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) as c_int;
            libc::syscall(libc::SYS_epoll_ctl, set, libc::EPOLL_CTL_ADD, theirs, &raw mut want);
            set
        };
        let (something, nothing) =
            (Readiness { readable: true, writable: true, ..Readiness::default() }, Readiness::default());
        m.raise(something);
        assert_ne!(edge(set), 0);
        m.raise(something);
        assert_eq!(edge(set), 0, "the program has not looked yet");
        m.used(something);
        m.raise(something);
        assert_ne!(edge(set), 0);
        assert_eq!(polled(theirs), (true, true));
        m.used(nothing);
        assert_eq!(polled(theirs), (true, false), "no room is shown at once");
        m.raise(something);
        assert_eq!(polled(theirs), (true, true));
        close(set);
        close(theirs);
    }
}
