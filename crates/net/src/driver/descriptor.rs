//! Descriptors other than sockets, made known to the runtime.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Owners of a descriptor that return one and the same for as long as they live.
pub(super) trait Owner: AsFd {}

impl Owner for OwnedFd {}
impl Owner for nix::sys::timerfd::TimerFd {}

/// A descriptor that stays what it is until it is dropped.
#[derive(Debug)]
pub(super) struct Steady<T: Owner>(T);

impl<T: Owner> Steady<T> {
    pub fn get(&self) -> &T {
        &self.0
    }
}

impl<T: Owner> AsRawFd for Steady<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Must be called within a runtime.
pub(super) fn register<T: Owner>(owner: T) -> io::Result<AsyncFd<Steady<T>>> {
    // SAFETY: `Owner` promises one open descriptor for the owner's whole life; nothing takes the owner out of
    // `Steady` or `Steady` out of the `AsyncFd`.
    #[allow(unsafe_code, reason = "the runtime has to trust the descriptor to stay what it is")]
    let fd = unsafe { AsyncFd::register(Steady(owner)) };
    fd.map_err(io::Error::from)
}
