//! Real packets and real time: one thread reads the sockets and keeps the timers, and whoever has something to send,
//! that thread or one of the program, sends it.
//!
//! Packets are built under the lock and leave without it. Only one thread sends at a time, so they leave in order; what
//! others have meanwhile, it takes along.

mod driver;
mod exit;
mod mirror;
mod waiters;
mod wires;

pub use mirror::pair;
pub use waiters::is_new as is_new_thread;

use super::failure::with_signals;
use super::{Core, World, next};
use crate::socket::{Errno, Settings, SocketId, Stack};
use anabranch_base::{Duration, Instant};
use anabranch_net::{Batches, Error, ErrorKind, SystemEntropy};
use mirror::Mirror;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Arc, MutexGuard};
use waiters::{Ticket, Waiters};
use wires::Wires;

/// Packets built in one go; the lock is free for others in between.
const BUILD: usize = 128;
/// Goes after which a thread of the program leaves the rest to the driver.
const GOES: usize = 8;

/// See the module's description.
pub struct Real {
    wires: Arc<Wires>,
    /// Wakes the driver.
    waker: RawFd,
    batches: Batches,
    /// A thread is sending, and will look again.
    sending: bool,
    /// The driver waits, until this instant at the latest.
    asleep: bool,
    promised: Option<Instant>,
    waiters: Waiters,
    mirrors: BTreeMap<SocketId, Mirror>,
    /// Mirrors that are watched and show that there is no room.
    full: Vec<SocketId>,
    /// Mirrors that may show more than there is, since the program has used the socket.
    stale: Vec<SocketId>,
    touched: Vec<SocketId>,
    /// It was said that peers do not find us at the usual port.
    warned_of_port: bool,
}

/// Current time.
pub fn now() -> Instant {
    anabranch_net::now()
}

/// Unpredictable randomness.
pub fn entropy() -> crate::socket::EntropySource {
    Box::new(|| Box::new(SystemEntropy))
}

/// Opens the sockets and starts the driver, once.
///
/// # Errors
/// A right that is missing. What the user asked for and cannot be had ends the process with one line.
pub fn begin(world: &'static World) -> Result<(), Errno> {
    let mut core = world.lock();
    if core.real.is_some() {
        return Ok(());
    }
    let settings = core.stack.settings_mut().clone();
    let wires = match Wires::open(&settings) {
        Ok(w) => Arc::new(w),
        Err(e) => {
            drop(core);
            return Err(report(&e));
        }
    };
    // SAFETY: makes a descriptor that no other code knows.
    let waker = unsafe { libc::syscall(libc::SYS_eventfd2, 0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as RawFd };
    let waker = next::lift(waker);
    // It waits for the lock.
    if let Err(e) = driver::start(world, wires.clone(), waker) {
        next::close(waker);
        wires.all().iter().for_each(|w| next::give_up(w.as_raw_fd()));
        return Err(e);
    }
    exit::register();
    let claim = (wires::transport(&settings) == anabranch_net::Transport::RawIp).then(claim);
    core.stack.go_outward(anabranch_net::source_towards, claim);
    wires.named.iter().for_each(|ip| core.stack.add_host_address(*ip));
    core.real = Some(Real::new(wires, waker));
    Ok(())
}

fn report(e: &Error) -> Errno {
    eprintln!("anabranch: {e}");
    match e {
        e if e.kind() == ErrorKind::Usage => std::process::exit(2),
        Error::NoRight { .. } => Errno(libc::EPERM),
        _ => Errno::ADDRESS_NOT_AVAILABLE,
    }
}

fn claim() -> crate::socket::Claim {
    Box::new(|port| {
        let at = std::net::SocketAddr::from(([0, 0, 0, 0], port));
        let claimed = OwnedFd::from(anabranch_net::claim(at).ok()?);
        Some(Box::new(Claimed(next::lift(claimed.into_raw_fd()))))
    })
}

struct Claimed(RawFd);

impl Drop for Claimed {
    fn drop(&mut self) {
        next::close(self.0);
    }
}

impl Real {
    fn new(wires: Arc<Wires>, waker: RawFd) -> Real {
        Real {
            wires,
            waker,
            batches: Batches::default(),
            sending: false,
            asleep: false,
            promised: None,
            waiters: Waiters::default(),
            mirrors: BTreeMap::new(),
            full: Vec::new(),
            stale: Vec::new(),
            touched: Vec::new(),
            warned_of_port: false,
        }
    }

    /// The calling thread will wait.
    pub(super) fn enlist(&mut self, world: &World) -> Option<waiters::Place> {
        self.waiters.enlist(world)
    }

    /// A mirror that shows no room is looked at whenever something happened.
    fn note_full(&mut self, id: SocketId) {
        if self.mirrors.get(&id).is_some_and(Mirror::is_full) && !self.full.contains(&id) {
            self.full.push(id);
        }
    }
}

impl Core {
    fn real_parts(&mut self) -> Option<(&mut Stack, &mut Real)> {
        Some((&mut self.stack, self.real.as_mut()?))
    }

    /// A descriptor of a socket begins to exist.
    pub fn reflect(&mut self, id: SocketId, theirs: RawFd, ours: RawFd) {
        if let Some(real) = &mut self.real {
            real.mirrors.insert(id, Mirror::new(theirs, ours));
        }
    }

    /// The last descriptor of a socket is gone.
    pub fn unreflect(&mut self, id: SocketId) {
        if let Some(real) = &mut self.real {
            if real.mirrors.remove(&id).is_some_and(|m| m.listed) {
                real.stale.retain(|i| *i != id);
            }
            real.waiters.wake(id);
        }
    }

    /// Another descriptor belongs to the socket from now on.
    pub fn reflect_at(&mut self, id: SocketId, theirs: RawFd) {
        if let Some(m) = self.real.as_mut().and_then(|r| r.mirrors.get_mut(&id)) {
            m.moved_to(theirs);
        }
    }

    /// The program is about to wait on this socket by way of the kernel.
    pub fn watch(&mut self, id: SocketId) {
        let Some((stack, real)) = self.real_parts() else { return };
        let Some(m) = real.mirrors.get_mut(&id) else { return };
        m.watched = true;
        m.show(stack.readiness(id));
        real.note_full(id);
    }

    /// What the program has used meanwhile shows what it is.
    pub fn watch_stale(&mut self) {
        let Some(real) = &mut self.real else { return };
        let mut stale = std::mem::take(&mut real.stale);
        for id in stale.drain(..) {
            self.watch(id);
            if let Some(m) = self.real.as_mut().and_then(|r| r.mirrors.get_mut(&id)) {
                m.listed = false;
            }
        }
        if let Some(real) = &mut self.real {
            real.stale = stale;
        }
    }

    /// The program has used a socket: its mirror may show more than there is.
    pub fn used(&mut self, id: SocketId) {
        let Some((stack, real)) = self.real_parts() else { return };
        let Some(m) = real.mirrors.get_mut(&id).filter(|m| m.watched) else { return };
        m.used(stack.readiness(id));
        if !std::mem::replace(&mut m.listed, true) {
            real.stale.push(id);
        }
        real.note_full(id);
    }

    /// Threads that wait, and mirrors, learn what happened.
    fn tell(&mut self) {
        let Some((stack, real)) = self.real_parts() else { return };
        stack.take_touched(&mut real.touched);
        let Real { touched, mirrors, waiters, full, .. } = real;
        for id in touched.drain(..) {
            waiters.wake(id);
            if let Some(m) = mirrors.get_mut(&id).filter(|m| m.watched) {
                m.raise(stack.readiness(id));
            }
        }
        full.retain(|id| {
            let Some(m) = mirrors.get_mut(id) else { return false };
            m.raise(stack.readiness(*id));
            m.is_full()
        });
    }

    /// Says once that peers do not find a listening socket where they look for it.
    pub fn tell_port(&mut self) {
        let wanted = {
            let s: &Settings = self.stack.settings_mut();
            s.local_udp_port.or(s.udp_port)
        };
        let Some(real) = &mut self.real else { return };
        if let Some(wanted) = wanted.filter(|p| *p != real.wires.port() && !real.warned_of_port) {
            real.warned_of_port = true;
            let got = real.wires.port();
            eprintln!(
                "anabranch: UDP port {wanted} is in use by another program: peers reach this one at UDP port {got}"
            );
        }
    }

    /// No thread waits any more.
    pub fn wake_all(&mut self) {
        if let Some(real) = &self.real {
            real.waiters.wake_all();
        }
    }

    /// A thread is cancelled: a wait of it ends.
    pub fn cancel(&mut self, thread: libc::pthread_t) {
        if let Some(real) = &self.real {
            real.waiters.cancel(thread);
        }
    }
}

impl World {
    /// Packets leave, and whoever waits looks again.
    pub(super) fn carry_out_real<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        mut now: Instant,
        driver: bool,
    ) -> MutexGuard<'a, Core> {
        let mut goes = 0;
        loop {
            core.tell();
            let Some(real) = &core.real else { return core };
            if real.sending {
                return core;
            }
            if !driver && goes == GOES {
                wake(real.waker);
                return core;
            }
            if !core.build(now) {
                break;
            }
            core = self.send(core);
            goes += 1;
            now = core.now();
            core.stack.settle_events(now);
        }
        let next = core.stack.poll_timeout();
        if let Some(real) = &core.real
            && !driver
            && real.asleep
            && next.is_some_and(|n| real.promised.is_none_or(|p| n < p))
        {
            wake(real.waker);
        }
        core
    }

    fn send<'a>(&'a self, mut core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
        let Some(real) = &mut core.real else { return core };
        let (wires, mut list) = (real.wires.clone(), real.batches.take());
        real.sending = true;
        drop(core);
        for b in &list {
            if let Some(wire) = wires.all().get(b.slot()) {
                // What a socket does not take is lost, as at any full queue.
                let _ = wire.send(b);
            }
        }
        let mut core = self.lock();
        if let Some(real) = &mut core.real {
            real.sending = false;
            list.drain(..).for_each(|b| real.batches.recycle(b));
            real.batches.give_back(list);
        }
        core
    }

    /// Notes that the calling thread waits for news of a socket.
    pub(super) fn queue_up(core: &mut Core, id: SocketId, cancellable: bool) -> Option<Ticket> {
        core.real.as_mut().map(|r| r.waiters.add(id, cancellable))
    }

    /// Waits for news of the socket, or until `deadline`.
    pub(super) fn block_real<'a>(
        &'a self,
        core: MutexGuard<'a, Core>,
        ticket: &Ticket,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'a, Core>, Errno> {
        let limit = deadline.map(|d| d - core.now());
        drop(core);
        let outcome = with_signals(limit.is_some(), |interrupted| ticket.wait(limit, interrupted));
        let mut core = self.lock();
        if let Some(real) = &mut core.real {
            real.waiters.remove(ticket);
        }
        outcome.map(|()| core)
    }
}

impl Core {
    /// Builds packets into batches; false when there are none.
    fn build(&mut self, now: Instant) -> bool {
        let Some((stack, real)) = self.real_parts() else { return false };
        for built in 0..BUILD {
            let Some((t, from)) = stack.poll_packet(now) else { return built > 0 };
            if let Some((slot, source)) = real.wires.outlet(from) {
                real.batches.push_by(t, slot, source);
            }
        }
        true
    }
}

fn wake(waker: RawFd) {
    let one = 1u64;
    // SAFETY: eight bytes that outlive the call.
    unsafe { libc::syscall(libc::SYS_write, libc::c_long::from(waker), &raw const one, 8) };
}

/// Least pause of the driver before a timer that stays in the past.
const PAUSE: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Style;
    use crate::world::descriptor::Descriptors;
    use crate::world::virtual_time::VirtualTime;

    #[test]
    fn a_program_that_polls_leaves_no_list_that_grows() {
        let stack = Stack::new(Settings::default(), entropy());
        let real = Some(Real::new(Arc::new(Wires::none()), -1));
        let mut core = Core { stack, descriptors: Descriptors::default(), time: VirtualTime::new(), real };
        let mut both = Vec::new();
        for _ in 0..2 {
            let id = core.stack.socket(Style::OneToMany, false);
            let (theirs, ours) = pair(true).unwrap();
            core.reflect(id, theirs, ours);
            both.push((id, theirs));
        }
        let stale = |core: &Core| core.real.as_ref().map_or(0, |r| r.stale.len());
        for _ in 0..100 {
            for (id, _) in &both {
                core.watch(*id);
                core.used(*id);
            }
        }
        assert_eq!(stale(&core), 2);
        core.watch_stale();
        assert_eq!(stale(&core), 0);
        core.used(both[0].0);
        for (id, theirs) in both {
            core.unreflect(id);
            next::close(theirs);
        }
        assert_eq!(stale(&core), 0, "nothing of what is closed");
    }
}
