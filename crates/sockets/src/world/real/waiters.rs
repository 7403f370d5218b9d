//! Threads that wait for something on a socket: each on a word of its own, so that nobody is woken in vain, and by the
//! kernel's own call, so that a signal ends the wait as it ends `recvmsg`.

use crate::socket::{Errno, SocketId};
use anabranch_base::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// See the module's description.
#[derive(Default)]
pub struct Waiters {
    all: Vec<(SocketId, libc::pthread_t, Arc<AtomicU32>)>,
}

thread_local! {
    static WORD: Arc<AtomicU32> = Arc::default();
}

/// 1: something happened; 2: the thread is to end.
const NEWS: u32 = 1;
const CANCELLED: u32 = 2;

/// The place of one thread that waits.
pub struct Ticket(Arc<AtomicU32>);

impl Waiters {
    /// Notes that the calling thread waits for `id`.
    pub fn add(&mut self, id: SocketId) -> Ticket {
        let word = WORD.try_with(Arc::clone).unwrap_or_default();
        word.store(0, SeqCst);
        // SAFETY: always succeeds.
        self.all.push((id, unsafe { libc::pthread_self() }, word.clone()));
        Ticket(word)
    }

    /// It waits no longer.
    pub fn remove(&mut self, ticket: &Ticket) {
        self.all.retain(|(_, _, word)| !Arc::ptr_eq(word, &ticket.0));
    }

    /// Wakes those that wait for `id`.
    pub fn wake(&self, id: SocketId) {
        self.all.iter().filter(|(i, ..)| *i == id).for_each(|(_, _, word)| raise(word, NEWS));
    }

    /// Wakes everybody.
    pub fn wake_all(&self) {
        self.all.iter().for_each(|(_, _, word)| raise(word, NEWS));
    }

    /// Ends the wait of a thread that is cancelled.
    pub fn cancel(&self, thread: libc::pthread_t) {
        // SAFETY: compares two numbers.
        let same = |t: libc::pthread_t| unsafe { libc::pthread_equal(t, thread) != 0 };
        self.all.iter().filter(|(_, t, _)| same(*t)).for_each(|(_, _, word)| raise(word, CANCELLED));
    }
}

fn raise(word: &AtomicU32, to: u32) {
    if word.swap(to, SeqCst) == 0 {
        // SAFETY: the word outlives the call.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
    }
}

impl Ticket {
    /// Waits until there is news, or for so long.
    ///
    /// # Errors
    /// A signal came, or the thread is cancelled.
    pub fn wait(&self, limit: Option<Duration>) -> Result<(), Errno> {
        let limit = limit.map(|d| libc::timespec {
            tv_sec: (d.as_nanos() / 1_000_000_000) as libc::time_t,
            tv_nsec: (d.as_nanos() % 1_000_000_000) as _,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word and the structure outlive the call.
        let r = unsafe {
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 0, limit)
        };
        let interrupted = r < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        match self.0.load(SeqCst) {
            CANCELLED => Err(Errno(libc::EINTR)),
            0 if interrupted => Err(Errno(libc::EINTR)),
            _ => Ok(()),
        }
    }
}
