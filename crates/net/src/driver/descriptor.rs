//! Descriptors made known to the runtime, for reading.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Owners of a descriptor that return one and the same for as long as they live.
pub(crate) trait Owner: AsFd {}

impl Owner for nix::sys::timerfd::TimerFd {}

/// A descriptor that stays what it is until it is dropped.
#[derive(Debug)]
pub(crate) struct Steady<T: Owner>(T);

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
pub(crate) fn register<T: Owner>(owner: T) -> io::Result<AsyncFd<Steady<T>>> {
    // SAFETY: `Owner` promises one open descriptor for the owner's whole life; nothing takes the owner out of
    // `Steady` or `Steady` out of the `AsyncFd`.
    #[allow(unsafe_code, reason = "the runtime has to trust the descriptor to stay what it is")]
    let fd = unsafe { AsyncFd::register_with_interest(Steady(owner), Interest::READABLE) };
    fd.map_err(io::Error::from)
}
