//! From the engine to the sockets, and the engine's timers.

use super::port::{Port, Sent, is_interface_gone};
use super::{BUILD_LIMIT, Driver, END_WAITS, HOUSEKEEPING, SEND_LIMIT, TIMER_LIMIT};
use crate::batch::Batch;
use crate::capture::Capture;
use crate::clock;
use crate::locals::Trouble;
use crate::shared::Core;
use anabranch_base::Instant;
use anabranch_engine::LocalId;
use anabranch_policy::view::PathState;
use anabranch_wire::Direction;
use nix::errno::Errno;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

impl Driver {
    /// Serves timers, tells events, sends what there is to send. Returns when the engine wants to be called again.
    pub(super) fn work(&mut self) -> Option<Instant> {
        let shared = self.shared.clone();
        let mut sent = 0;
        let mut expiries = 0;
        loop {
            let mut core = shared.lock();
            let now = clock::now();
            let due = core.engine.poll_timeout().is_some_and(|t| t <= now);
            if due || now - self.last_housekeeping >= HOUSEKEEPING {
                core.engine.handle_timeout(now);
                self.last_housekeeping = now;
                expiries += usize::from(due);
            }
            core.dispatch(now, &shared);
            let built = self.build(&mut core, now);
            core.dispatch(now, &shared);
            core.take_ended(&mut self.ended);
            let due_next = core.engine.poll_timeout();
            let next = core.outlets.promise(now, due_next);
            self.publish(&mut core);
            self.calls.append(&mut core.calls);
            let (transport, commands) = (core.transport, std::mem::take(&mut core.commands));
            let left_over = std::mem::take(&mut core.outlets.left_over);
            drop(core);
            self.take_sockets(transport, commands);
            self.settle(left_over);
            self.send_waiting();
            self.send_built();
            self.announce_ends(now);
            sent += built;
            let overdue = next.is_some_and(|t| t <= now);
            if built < BUILD_LIMIT && !overdue {
                return next;
            }
            if sent >= SEND_LIMIT {
                self.more = true;
                return next;
            }
            if expiries >= TIMER_LIMIT {
                // A timer that stays in the past must not keep a processor busy.
                return Some(now + anabranch_base::Duration::from_millis(1));
            }
        }
    }

    /// The last packets of connections have left, as far as sockets take any: who waits for the end may know.
    fn announce_ends(&mut self, now: Instant) {
        if self.ended.is_empty() {
            return;
        }
        let since = *self.stuck_since.get_or_insert(now);
        if !self.ports.iter().all(Port::nothing_waits) && now.since(since) < END_WAITS {
            return;
        }
        self.stuck_since = None;
        let mut core = self.shared.lock();
        self.ended.drain(..).for_each(|id| core.announce_end(id));
    }

    /// Asks the engine for packets; how many it gave.
    fn build(&mut self, core: &mut Core, now: Instant) -> usize {
        let mut built = 0;
        while built < BUILD_LIMIT && core.engine.poll_transmit(now, &mut self.transmit) {
            built += 1;
            match core.locals.get(self.transmit.local) {
                Some(side) => self.batches.push(&self.transmit, side),
                None => core.stats.send_errors += 1,
            }
        }
        // Payloads are shared with the engine's queues: let go of the last packet's.
        self.transmit.packet.clear();
        built
    }

    /// What senders on other threads could not settle.
    fn settle(&mut self, left_over: Vec<(Batch, Poll<Sent>)>) {
        for (batch, outcome) in left_over {
            match outcome {
                Poll::Ready(sent) => self.sent(batch, sent),
                Poll::Pending => self.keep(batch),
            }
        }
    }

    /// Shows senders on other threads which sockets they may use.
    fn publish(&self, core: &mut Core) {
        let outlets = &mut core.outlets;
        outlets.closed = self.capture.is_some();
        outlets.sockets.resize_with(self.ports.len(), || None);
        for (shown, port) in outlets.sockets.iter_mut().zip(&self.ports) {
            let io = port.io.as_ref().filter(|_| port.outbox.is_empty());
            if shown.as_ref().map(Arc::as_ptr) != io.map(Arc::as_ptr) {
                *shown = io.cloned();
            }
        }
    }

    /// Keeps a batch for a socket that takes nothing now.
    fn keep(&mut self, batch: Batch) {
        let Some(port) = self.ports.get_mut(batch.slot.0) else { return };
        if let Err(batch) = port.keep(batch) {
            self.shared.lock().stats.dropped_full += batch.count() as u64;
            self.batches.recycle(batch);
        }
    }

    fn send_built(&mut self) {
        let mut list = self.batches.take();
        for batch in list.drain(..) {
            let Some(port) = self.ports.get_mut(batch.slot.0) else { continue };
            // What waits goes first.
            let outcome = if port.outbox.is_empty() { port.send(&batch) } else { Poll::Pending };
            match outcome {
                Poll::Ready(sent) => self.sent(batch, sent),
                Poll::Pending => self.keep(batch),
            }
        }
        self.batches.give_back(list);
    }

    /// Sends what a socket did not take before.
    fn send_waiting(&mut self) {
        for slot in 0..self.ports.len() {
            while let Some(port) = self.ports.get_mut(slot)
                && let Some(batch) = port.pop_waiting()
            {
                match port.send(&batch) {
                    Poll::Ready(sent) => self.sent(batch, sent),
                    Poll::Pending => {
                        port.unpop(batch);
                        break;
                    }
                }
            }
        }
    }

    /// Counts, captures, and looks at what went wrong.
    fn sent(&mut self, batch: Batch, sent: Sent) {
        // That is what a probe is to find out.
        let refused = batch.bits.probe && sent.errno == Some(Errno::EMSGSIZE);
        let sent = if refused { Sent { calls: sent.calls, ..Sent::default() } } else { sent };
        let trouble = sent.errno.filter(|_| sent.errors > 0);
        self.counted.sent(sent, batch.contents.len());
        if let Some(capture) = self.capture.as_mut().filter(|_| sent.errors == 0) {
            note_departures(capture, &mut self.shared.lock(), &batch);
        }
        if let Some(errno) = trouble {
            self.send_failed(&batch, errno);
        }
        self.batches.recycle(batch);
    }

    /// A send error concerns one interface, or one address of a peer; never the endpoint.
    fn send_failed(&mut self, batch: &Batch, errno: Errno) {
        let (local, slot, len) = (batch.local, batch.slot.0, batch.segment);
        if errno == Errno::EMSGSIZE {
            if let Some(port) = self.ports.get_mut(slot)
                && !port.reported_too_big
            {
                port.reported_too_big = true;
                tracing::warn!("an interface carries no packets of {len} bytes; choose a smaller packet size");
            }
            return;
        }
        tracing::debug!(%errno, ?local, remote = %batch.remote, "a packet could not be sent");
        // A server's interfaces are not watched, and its peers may be many.
        let watched = self.ports.iter().any(|p| p.local == local && p.watched.is_some());
        if errno == Errno::ENETUNREACH && watched && leads_elsewhere(&self.shared.lock(), local, batch.remote) {
            return;
        }
        if is_interface_gone(errno) {
            self.local_down(local, errno.desc());
        } else if let Some(side) = self.shared.lock().locals.get_mut(local) {
            side.trouble = Some(Trouble { what: errno.desc().to_owned(), remote: Some(batch.remote) });
        }
    }
}

/// `remote` is not confirmed here, but another address of a peer is: the one that was tried belongs to
/// another of our networks. IPv6 has no route to it; IPv4 asks for it on the link of a socket that is bound to one.
fn leads_elsewhere(core: &Core, local: LocalId, remote: SocketAddr) -> bool {
    let all = core.engine.associations().filter_map(|id| core.engine.association(id));
    let mut confirmed = all.flat_map(|a| a.paths()).map(|(_, p)| p).filter(|p| p.state != PathState::Unconfirmed);
    let mut others = false;
    let here = confirmed.any(|p| {
        others |= p.local == local.0 && p.remote != remote;
        p.local == local.0 && p.remote == remote
    });
    others && !here
}

fn note_departures(capture: &mut Capture, core: &mut Core, batch: &Batch) {
    let Some(side) = core.locals.get(batch.local) else { return };
    let ends = (side.address, batch.remote);
    let note = |p| capture.packet(Direction::Out, (batch.local, &side.name), ends, p);
    let missed = batch.packets().map(note).filter(|noted| !noted).count();
    core.stats.not_captured += missed as u64;
}
