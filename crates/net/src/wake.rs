//! How the driver's thread is called from others.
//!
//! A thread that is at work anyway is called without a system call; one that sleeps, by a descriptor that it waits for
//! beside its sockets.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};

/// The driver is at work, and looks at everything before it sleeps.
const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
/// Another thread has called since it last looked.
const CALLED: u8 = 2;

#[derive(Debug)]
pub(crate) struct Wake {
    fd: OwnedFd,
    state: AtomicU8,
}

impl Wake {
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake { fd, state: AtomicU8::new(AWAKE) })
    }

    /// Calls the driver: it looks once more after this.
    pub fn notify_one(&self) {
        if self.state.swap(CALLED, Ordering::AcqRel) == ASLEEP
            && let Err(error) = rustix::io::write(&self.fd, &1u64.to_ne_bytes())
        {
            tracing::error!(%error, "the driver cannot be called");
        }
    }

    /// The driver is about to sleep; false when another thread has called, so that it must not.
    pub fn may_sleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The driver is at work; `rung` is what the descriptor said.
    pub fn awake(&self, rung: bool) {
        self.state.store(AWAKE, Ordering::Release);
        if rung {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.fd, &mut count);
        }
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// Whatever the order, what was done before a call is seen after it: the driver sleeps through none.
    #[test]
    fn no_call_is_lost() {
        const CALLS: u64 = 20_000;
        let (wake, done) = (Arc::new(Wake::new().unwrap()), Arc::new(AtomicU64::new(0)));
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (wake, done) = (wake.clone(), done.clone());
                std::thread::spawn(move || {
                    for n in 0..CALLS {
                        done.fetch_add(1, Ordering::Release);
                        wake.notify_one();
                        if n % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (mut seen, mut sleeps) = (0, 0u64);
        while seen < 2 * CALLS {
            seen = done.load(Ordering::Acquire);
            let mut rung = false;
            if seen < 2 * CALLS && wake.may_sleep() {
                sleeps += 1;
                let mut fds = [PollFd::new(&*wake, PollFlags::IN)];
                let most = Timespec { tv_sec: 60, tv_nsec: 0 };
                assert_eq!(poll(&mut fds, Some(&most)).unwrap(), 1, "slept through a call");
                rung = true;
            }
            wake.awake(rung);
        }
        callers.into_iter().for_each(|c| c.join().unwrap());
        println!("{sleeps} sleeps");
    }

    #[test]
    fn a_driver_at_work_is_called_without_the_descriptor() {
        let wake = Wake::new().unwrap();
        wake.notify_one();
        assert!(!wake.may_sleep(), "it looks once more");
        let mut fds = [PollFd::new(&wake, PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap(), 0);
        wake.awake(false);
        assert!(wake.may_sleep());
    }
}
