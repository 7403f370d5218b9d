//! The thread that reads the sockets and keeps the timers.

use super::wires::Wires;
use super::{Core, PAUSE, World};
use crate::socket::Errno;
use anabranch_base::Duration;
use anabranch_net::Buffers;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};

/// Reads of one socket in a row, before the timers and the other sockets are looked at.
const READS: usize = 4;

/// Starts it. Signals are for the program's threads.
///
/// # Errors
/// No thread can be made.
pub fn start(world: &'static World, wires: Arc<Wires>, waker: RawFd) -> Result<(), Errno> {
    // SAFETY: both sets outlive the calls, which fill the one that is read afterwards.
    let before = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let run = move || {
        if catch_unwind(AssertUnwindSafe(|| drive(world, &wires, waker))).is_err() {
            world.give_up();
        }
    };
    let started = std::thread::Builder::new().name("anabranch-sctp".into()).spawn(run);
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    started.map(|_| ()).map_err(|_| Errno::AGAIN)
}

fn drive(world: &World, wires: &Wires, waker: RawFd) {
    let mut buffers = Buffers::new();
    let fds = std::iter::once(waker).chain(wires.all().iter().map(AsRawFd::as_raw_fd));
    let mut fds: Vec<libc::pollfd> = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    loop {
        let limit = about_to_sleep(world);
        sleep(&mut fds, limit);
        if world.is_broken() {
            return;
        }
        if let Some(w) = fds.first().filter(|w| w.revents != 0) {
            let mut count = 0u64;
            // SAFETY: eight bytes that outlive the call.
            unsafe { libc::syscall(libc::SYS_read, libc::c_long::from(w.fd), &raw mut count, 8) };
        }
        for slot in 0..wires.all().len() {
            if fds.get(slot + 1).is_some_and(|f| f.revents != 0) {
                read(world, wires, slot, &mut buffers);
            }
        }
        let mut core = world.lock();
        let now = core.now();
        if let Some(real) = &mut core.real {
            real.asleep = false;
        }
        if core.stack.poll_timeout().is_some_and(|t| t <= now) {
            core.stack.handle_timeout(now);
        }
        drop(world.carry_out_real(core, now, true));
    }
}

/// How long the driver may sleep.
fn about_to_sleep(world: &World) -> Option<Duration> {
    let mut core = world.lock();
    let (now, next) = (core.now(), core.stack.poll_timeout());
    if let Some(real) = &mut core.real {
        (real.asleep, real.promised) = (true, next);
    }
    next.map(|n| (n - now).max(PAUSE))
}

fn sleep(fds: &mut [libc::pollfd], limit: Option<Duration>) {
    let limit = limit.map(|d| libc::timespec {
        tv_sec: (d.as_nanos() / 1_000_000_000) as libc::time_t,
        tv_nsec: (d.as_nanos() % 1_000_000_000) as _,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the list and the structure outlive the call; by number, for the name is ours.
    unsafe { libc::syscall(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), limit, 0 as libc::c_long, 0) };
}

/// What a socket has goes to the stack.
fn read(world: &World, wires: &Wires, slot: usize, buffers: &mut Buffers) {
    let Some(wire) = wires.all().get(slot) else { return };
    for _ in 0..READS {
        let mut core: Option<MutexGuard<'_, Core>> = None;
        let mut now = anabranch_base::Instant::ZERO;
        let n = wire.receive(buffers, |to, from, packet, marked| {
            let core = core.get_or_insert_with(|| {
                let mut core = world.lock();
                now = core.now();
                if let Some(real) = &mut core.real {
                    real.asleep = false;
                }
                core
            });
            if let Some(to) = wires.inlet(slot, to) {
                core.stack.take_in(now, to, from, (packet, marked));
            }
        });
        if let Some(mut core) = core {
            core.stack.settle_events(now);
            drop(world.carry_out_real(core, now, true));
        }
        if !n.is_ok_and(|n| n == Buffers::MOST) {
            return;
        }
    }
}
