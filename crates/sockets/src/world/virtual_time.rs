//! Virtual time: for a tester that writes packets to a tunnel device and reads what leaves from a packet socket.
//!
//! The clock stands still while any thread of the program runs, and jumps to the next deadline once all of them wait:
//! in a sleep, in a call on one of our sockets, for a packet, for each other. A written packet is handled before the
//! write returns. So a run depends on nothing but the program, and takes no longer than its work.

use super::{Core, World, is_virtual, world};
use crate::socket::{Errno, Stack};
use anabranch_base::{Duration, Instant};
use anabranch_wire::Encapsulation;
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::MutexGuard;

/// When a virtual clock begins, so that it is never near zero.
const BEGINNING: Instant = Instant::from_millis(1_000_000_000);

/// A program that asks for the time so often, and does nothing else, waits for it to pass.
const PATIENCE: u32 = 8;

/// How long a thread that others wait for may take in real time before the wait is given up: it may wait for something
/// that is not ours.
const REAL_PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// A clock, the threads that live by it, and the wire.
pub struct VirtualTime {
    now: Instant,
    /// Threads that have ever called.
    known: usize,
    /// Of them, those that wait for another thread's signal or end, and for a lock.
    parked: usize,
    locked_out: usize,
    /// Those that have looked at the present state and wait for another.
    blocked: usize,
    /// Wake-up times of sleeping threads.
    sleepers: Vec<Instant>,
    /// Times after which calls on sockets wait no longer.
    deadlines: Vec<Instant>,
    /// Counts changes of the state that blocked threads look at.
    epoch: u64,
    interrupted: bool,
    reads: u32,
    captured: VecDeque<(Instant, Vec<u8>)>,
    last_captured: Instant,
}

thread_local! {
    static KNOWN: Visitor = const { Visitor(Cell::new(false)) };
}

/// Takes its thread off the count when that ends.
struct Visitor(Cell<bool>);

impl Drop for Visitor {
    fn drop(&mut self) {
        if self.0.get() {
            let mut core = world().lock();
            let v = &mut core.time;
            v.known -= 1;
            world().changed.notify_all();
        }
    }
}

/// A thread calls: from now on time waits for it.
pub fn enter() {
    if !is_virtual() {
        return;
    }
    let new = KNOWN.try_with(|k| !k.0.replace(true)).unwrap_or(false);
    let mut core = world().lock();
    let v = &mut core.time;
    v.known += usize::from(new);
    v.reads = 0;
}

impl VirtualTime {
    pub(super) fn new() -> Self {
        VirtualTime {
            now: BEGINNING,
            known: 0,
            parked: 0,
            locked_out: 0,
            blocked: 0,
            sleepers: Vec::new(),
            deadlines: Vec::new(),
            epoch: 0,
            interrupted: false,
            reads: 0,
            captured: VecDeque::new(),
            last_captured: BEGINNING,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// What leaves goes to the packet socket, in time order.
    pub(super) fn send(&mut self, now: Instant, stack: &mut Stack) {
        while let Some(d) = stack.poll_transmit() {
            let Some(d) = super::loop_back(now, stack, d) else { continue };
            let wrap = match d.to.port() {
                0 => Encapsulation::ip(d.from, d.to.ip()),
                _ => Encapsulation::udp(SocketAddr::new(d.from, our_udp_port(stack)), d.to),
            };
            let mut bytes = Vec::new();
            wrap.wrap(&d.packet, &mut bytes);
            self.captured.push_back((now, bytes));
        }
        self.stir();
    }

    /// The next packet that left.
    ///
    /// # Errors
    /// None yet.
    pub fn read_packet(&mut self) -> Result<Vec<u8>, Errno> {
        let (at, bytes) = self.captured.pop_front().ok_or(Errno::AGAIN)?;
        self.last_captured = at;
        Ok(bytes)
    }

    /// When the packet that was read last had left.
    pub fn last_captured(&self) -> Instant {
        self.last_captured
    }

    /// The time, for a program that asks for it.
    pub fn read_clock(&mut self) -> Instant {
        self.reads += 1;
        if self.reads > PATIENCE {
            self.now += Duration::from_micros(1);
        }
        self.now
    }

    /// Calls that wait end with EINTR.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
        self.stir();
    }

    /// Whoever waits has to look again, and runs until it has.
    fn stir(&mut self) {
        self.epoch += 1;
        self.blocked = 0;
    }

    fn running(&self) -> usize {
        self.known.saturating_sub(self.parked + self.locked_out + self.blocked + self.sleepers.len())
    }
}

/// The UDP port we have where SCTP is encapsulated (RFC 6951).
fn our_udp_port(stack: &mut Stack) -> u16 {
    stack.settings_mut().udp_port.unwrap_or(9_899)
}

/// The clock jumps to the next deadline, and what is due then happens. False when there is none.
fn advance(core: &mut Core, limit: Option<Instant>) -> bool {
    let Core { stack, time: v, .. } = core;
    let waits = v.sleepers.iter().chain(&v.deadlines).copied();
    let Some(next) = waits.chain(stack.poll_timeout()).chain(limit).min() else { return false };
    v.now = v.now.max(next);
    v.sleepers.retain(|t| *t > v.now);
    let now = v.now;
    if stack.poll_timeout().is_some_and(|t| t <= now) {
        stack.handle_timeout(now);
        v.send(now, stack);
    } else {
        v.stir();
    }
    true
}

/// Waits until something changed, or until `deadline`. Time passes if no other thread runs.
pub(super) fn block<'a>(
    world: &'a World,
    mut core: MutexGuard<'a, Core>,
    deadline: Option<Instant>,
) -> Result<MutexGuard<'a, Core>, Errno> {
    let v = &mut core.time;
    v.blocked += 1;
    v.deadlines.extend(deadline);
    let epoch = v.epoch;
    world.changed.notify_all();
    // Since when, in real time, no thread runs and no deadline is left.
    let mut hopeless = None;
    let outcome = loop {
        let v = &mut core.time;
        if v.interrupted {
            break Err(Errno(libc::EINTR));
        }
        if v.epoch != epoch || deadline.is_some_and(|d| v.now >= d) {
            break Ok(());
        }
        if v.running() > 0 || !advance(&mut core, None) {
            if core.time.running() > 0 {
                hopeless = None;
            } else {
                // Nothing will ever happen any more, unless a thread that was signalled has yet to notice.
                let since = *hopeless.get_or_insert_with(super::next::monotonic_ns);
                let alone = core.time.parked + core.time.locked_out == 0;
                if alone || super::next::monotonic_ns() - since > REAL_PATIENCE.as_nanos() as u64 {
                    break Err(Errno(libc::EDEADLK));
                }
            }
            core = rest(world, core);
        }
        world.changed.notify_all();
    };
    let v = &mut core.time;
    v.blocked -= usize::from(v.epoch == epoch);
    if let Some(at) = v.deadlines.iter().position(|d| Some(*d) == deadline) {
        v.deadlines.swap_remove(at);
    }
    outcome.map(|()| core)
}

fn rest<'a>(world: &'a World, core: MutexGuard<'a, Core>) -> MutexGuard<'a, Core> {
    let count = world.changed.count();
    drop(core);
    world.changed.rest(count, std::time::Duration::from_millis(20));
    world.lock()
}

/// Sleeps for so long in virtual time.
pub fn sleep(d: Duration) {
    enter();
    if d.is_zero() {
        return;
    }
    let world = world();
    let mut core = world.lock();
    let v = &mut core.time;
    let wake = v.now + d;
    v.sleepers.push(wake);
    world.changed.notify_all();
    loop {
        let v = &mut core.time;
        if v.now >= wake {
            return;
        }
        if v.running() > 0 || !advance(&mut core, None) {
            core = rest(world, core);
        }
        world.changed.notify_all();
    }
}

/// Lets all other threads run until they wait for something.
pub fn give_way() {
    enter();
    let world = world();
    let mut core = world.lock();
    let limit = super::next::monotonic_ns() + REAL_PATIENCE.as_nanos() as u64;
    while core.time.running() > 1 && super::next::monotonic_ns() < limit {
        core = rest(world, core);
    }
}

/// What a thread waits for outside this library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// A signal or the end of another thread.
    Thread,
    /// A lock.
    Lock,
}

/// Runs `f`, which waits for something outside; time may pass meanwhile.
pub fn outside<T>(what: Outside, f: impl FnOnce() -> T) -> T {
    enter();
    count(what, true);
    let result = f();
    count(what, false);
    result
}

fn count(what: Outside, begins: bool) {
    let world = world();
    let mut core = world.lock();
    let v = &mut core.time;
    let n = if what == Outside::Lock { &mut v.locked_out } else { &mut v.parked };
    *n = if begins { *n + 1 } else { n.saturating_sub(1) };
    world.changed.notify_all();
}

/// One turn of a wait for another thread's signal with a deadline in virtual time: true when that has passed. Threads
/// that wait for a lock count as running: it may be the caller's.
pub fn wait_turn(deadline: Instant) -> bool {
    let world = world();
    let mut core = world.lock();
    let v = &mut core.time;
    if v.now >= deadline {
        return true;
    }
    if v.running() + v.locked_out <= 1 {
        advance(&mut core, Some(deadline));
        world.changed.notify_all();
    }
    false
}
