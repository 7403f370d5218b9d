//! Threads that wait for something on a socket: each on a word of its own, so that none is woken in vain, and by the
//! kernel's own call, so that a signal ends the wait as it ends `recvmsg`.

use crate::socket::{Errno, SocketId};
use crate::world::{Quiet, World, world_if_any};
use anabranch_base::Duration;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// See the module's description.
#[derive(Default)]
pub struct Waiters {
    all: Vec<(SocketId, libc::pthread_t, Arc<AtomicU32>)>,
    /// Threads that have ever waited, and whether they were cancelled: that holds for good.
    threads: Vec<(libc::pthread_t, Arc<AtomicBool>)>,
}

thread_local! {
    static WORD: Cell<Option<Arc<AtomicU32>>> = const { Cell::new(None) };
    /// Looked at under the world's lock only.
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
    /// The world of that place, which a handler may ask for at any time.
    static OF: Cell<*const World> = const { Cell::new(std::ptr::null()) };
}

/// Something happened; the thread is to end. Either may come before the other.
const NEWS: u32 = 1;
const CANCELLED: u32 = 2;

/// The calling thread's place in the list; given up with the thread, or in a child of `fork` for one in its own list.
/// Not to be dropped under the world's lock.
pub struct Place {
    cancelled: Arc<AtomicBool>,
    /// A child of `fork` has another world.
    of: *const World,
}

impl Drop for Place {
    fn drop(&mut self) {
        // The world of a child's parent may be locked for ever.
        let Some(world) = world_if_any().filter(|w| std::ptr::eq(*w, self.of)) else { return };
        let _quiet = Quiet::new();
        if let Some(real) = &mut world.lock().real {
            real.waiters.threads.retain(|(_, c)| !Arc::ptr_eq(c, &self.cancelled));
        }
    }
}

/// Has the calling thread to be enlisted before it waits?
pub fn is_new(world: &World) -> bool {
    OF.try_with(|of| !std::ptr::eq(of.get(), world)).unwrap_or(false)
}

/// The place of one wait of a thread. A handler of a signal that ends the wait may wait itself: each has a word.
pub struct Ticket {
    word: Arc<AtomicU32>,
    /// The program lets the thread be cancelled.
    cancellable: bool,
}

impl Waiters {
    /// Notes the calling thread, so that its cancellation is noticed. What it was noted as before is for the caller to
    /// drop, once the lock is free.
    pub fn enlist(&mut self, world: &World) -> Option<Place> {
        // A handler may have come first.
        if !is_new(world) {
            return None;
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let place = || Place { cancelled: cancelled.clone(), of: world };
        let before = PLACE.try_with(|p| p.replace(Some(place()))).ok()?;
        // SAFETY: always succeeds.
        self.threads.push((unsafe { libc::pthread_self() }, cancelled));
        let _ = OF.try_with(|of| of.set(world));
        before
    }

    /// Notes that the calling thread waits for `id`.
    pub fn add(&mut self, id: SocketId, cancellable: bool) -> Ticket {
        let word = WORD.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let gone = PLACE.try_with(|p| p.borrow().as_ref().is_some_and(|p| p.cancelled.load(SeqCst)));
        let gone = gone.unwrap_or(false);
        word.store(if gone { CANCELLED } else { 0 }, SeqCst);
        // SAFETY: always succeeds.
        self.all.push((id, unsafe { libc::pthread_self() }, word.clone()));
        Ticket { word, cancellable }
    }

    /// It waits no longer.
    pub fn remove(&mut self, ticket: &Ticket) {
        self.all.retain(|(_, _, word)| !Arc::ptr_eq(word, &ticket.word));
        let _ = WORD.try_with(|w| w.set(Some(ticket.word.clone())));
    }

    /// Wakes those that wait for `id`.
    pub fn wake(&self, id: SocketId) {
        self.all.iter().filter(|(i, ..)| *i == id).for_each(|(_, _, word)| raise(word, NEWS));
    }

    /// Wakes all threads.
    pub fn wake_all(&self) {
        self.all.iter().for_each(|(_, _, word)| raise(word, NEWS));
    }

    /// Ends the wait of a thread that is cancelled, and those that it is about to begin.
    pub fn cancel(&self, thread: libc::pthread_t) {
        // SAFETY: compares two numbers.
        let same = |t: libc::pthread_t| unsafe { libc::pthread_equal(t, thread) != 0 };
        self.threads.iter().filter(|(t, _)| same(*t)).for_each(|(_, c)| c.store(true, SeqCst));
        self.all.iter().filter(|(_, t, _)| same(*t)).for_each(|(_, _, word)| raise(word, CANCELLED));
    }
}

fn raise(word: &AtomicU32, what: u32) {
    if word.fetch_or(what, SeqCst) & what == 0 {
        // SAFETY: the word outlives the call.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
    }
}

impl Ticket {
    /// Waits until there is news, or for so long; not at all when a signal has come that ends the wait.
    ///
    /// # Errors
    /// A signal came, or the thread is cancelled.
    pub fn wait(&self, limit: Option<Duration>, interrupted: bool) -> Result<(), Errno> {
        if interrupted && self.word.load(SeqCst) & NEWS == 0 {
            return Err(Errno(libc::EINTR));
        }
        let limit = limit.map(|d| libc::timespec {
            tv_sec: (d.as_nanos() / 1_000_000_000) as libc::time_t,
            tv_nsec: (d.as_nanos() % 1_000_000_000) as _,
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // One that may not be cancelled goes on waiting for news.
        let before = if self.cancellable { 0 } else { self.word.load(SeqCst) & CANCELLED };
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the structure outlive the call.
        let r = unsafe { libc::syscall(libc::SYS_futex, self.word.as_ptr(), wait, before, limit) };
        let interrupted = r < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        let after = self.word.load(SeqCst);
        let cancelled = self.cancellable && after & CANCELLED != 0;
        if cancelled || (interrupted && after & NEWS == 0) { Err(Errno(libc::EINTR)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SocketId = SocketId(1);

    fn own() -> libc::pthread_t {
        // SAFETY: always succeeds.
        unsafe { libc::pthread_self() }
    }

    #[test]
    fn news_do_not_hide_that_a_thread_is_cancelled() {
        let mut w = Waiters::default();
        let ticket = w.add(ID, true);
        w.cancel(own());
        w.wake(ID);
        assert_eq!(ticket.wait(None, false), Err(Errno(libc::EINTR)));
        w.remove(&ticket);
        // One that the program does not let be cancelled hears of the news alone.
        let ticket = w.add(ID, false);
        w.cancel(own());
        w.wake(ID);
        assert_eq!(ticket.wait(None, false), Ok(()));
    }

    #[test]
    fn a_wait_within_a_wait_takes_nothing_from_it() {
        let mut w = Waiters::default();
        let outer = w.add(ID, true);
        let inner = w.add(SocketId(2), true);
        w.wake(ID);
        w.remove(&inner);
        assert_eq!(outer.wait(None, false), Ok(()), "the news of before are still there");
        w.wake(ID);
        assert_eq!(w.all.len(), 1);
    }

    #[test]
    fn a_signal_ends_a_wait_without_news() {
        let mut w = Waiters::default();
        let ticket = w.add(ID, true);
        assert_eq!(ticket.wait(None, true), Err(Errno(libc::EINTR)));
        w.wake(ID);
        assert_eq!(ticket.wait(None, true), Ok(()));
    }
}
