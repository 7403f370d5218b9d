//! What the handles and the driver share: the engine, and one entry for each connection.

use crate::config::Transport;
use crate::driver::Command;
use crate::error::Error;
use crate::events::EventLog;
use crate::link_layer::LinkLayer;
use crate::locals::Locals;
use crate::outlets::Outlets;
use crate::stats::{ConnectionStats, DriverStats, PathReport};
use crate::wake::Wake;
use anabranch_base::Instant;
use anabranch_engine::{AssocId, CloseReason, Endpoint as Engine, Event, Phase};
use ipnet::IpNet;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Connections that may wait for `accept`; more are aborted.
const BACKLOG: usize = 256;

/// Wakers of one connection.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub readable: Notify,
    pub writable: Notify,
    /// An event was logged, or the state changed.
    pub changed: Notify,
}

/// A call that is due once the lock is free: whoever it wakes wants the lock at once.
pub(crate) enum Call {
    Readable(Arc<Signals>),
    Writable(Arc<Signals>),
}

impl Call {
    pub fn make(self) {
        match self {
            Call::Readable(s) => s.readable.notify_waiters(),
            Call::Writable(s) => s.writable.notify_waiters(),
        }
    }
}

/// Who owns a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Waits for `accept`.
    Queue,
    /// A handle.
    Handle,
    /// None: it is only kept until it has ended.
    None,
}

/// A connection, from its first event until its handle is gone and it has ended.
pub(crate) struct Entry {
    pub signals: Arc<Signals>,
    pub log: EventLog,
    pub owner: Owner,
    pub connected: bool,
    pub closed: Option<CloseReason>,
    /// It has ended, and the user will know once what says so to the peer has left.
    pub ending: Option<(Instant, CloseReason)>,
    /// Counters when it was last seen alive, kept for afterwards.
    pub last_stats: ConnectionStats,
    /// Our sides that the user does not want any more.
    pub left: Vec<anabranch_engine::LocalId>,
}

impl Entry {
    pub fn new(owner: Owner) -> Self {
        Entry {
            signals: Arc::default(),
            log: EventLog::default(),
            owner,
            connected: false,
            closed: None,
            ending: None,
            last_stats: ConnectionStats::default(),
            left: Vec::new(),
        }
    }
}

pub(crate) struct Core {
    pub transport: Transport,
    /// Of the sockets that are opened for paths; 0 is a free one.
    pub udp_port: u16,
    pub engine: Engine,
    pub connections: BTreeMap<AssocId, Entry>,
    pub accepted: VecDeque<AssocId>,
    /// Whose end is not announced yet.
    pub endings: Vec<AssocId>,
    pub locals: Locals,
    /// Networks that are listened to; empty for all.
    pub from: Vec<IpNet>,
    /// What keeps our SCTP ports on raw IP ours.
    pub claims: Vec<UnixDatagram>,
    /// New sockets for the driver.
    pub commands: Vec<Command>,
    /// For associations whose policies ask for what it counts.
    pub link_layer: LinkLayer,
    pub stats: DriverStats,
    pub outlets: Outlets,
    /// What [`Core::dispatch`] leaves to be done without the lock.
    pub calls: Vec<Call>,
    /// No handle of the endpoint is left, or it was closed: nothing new is accepted.
    pub closing: bool,
    /// The driver has no association and nothing to send.
    pub idle: bool,
    /// The driver has ended.
    pub stopped: bool,
}

/// See the module's description.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Calls the driver.
    pub wake: Wake,
    /// A connection waits, or none will come any more.
    pub accept: Notify,
    /// The driver became idle or ended.
    pub idle: Notify,
}

impl Shared {
    pub fn new(transport: Transport, engine: Engine, locals: Locals) -> io::Result<Self> {
        Ok(Shared {
            core: Mutex::new(Core {
                transport,
                udp_port: 0,
                engine,
                connections: BTreeMap::new(),
                accepted: VecDeque::new(),
                endings: Vec::new(),
                locals,
                from: Vec::new(),
                claims: Vec::new(),
                commands: Vec::new(),
                link_layer: LinkLayer::default(),
                stats: DriverStats::default(),
                outlets: Outlets::closed(),
                calls: Vec::new(),
                closing: false,
                idle: false,
                stopped: false,
            }),
            wake: Wake::new()?,
            accept: Notify::new(),
            idle: Notify::new(),
        })
    }

    /// The core. A thread that panicked while it held the lock does not take the others with it.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the core and lets the driver carry it out.
    pub fn act<T>(&self, f: impl FnOnce(&mut Core) -> T) -> T {
        let result = f(&mut self.lock());
        self.wake.notify_one();
        result
    }
}

impl Core {
    /// An address for people: on raw IP the SCTP port takes the place of UDP's.
    pub fn shown(&self, mut address: SocketAddr, sctp_port: u16) -> SocketAddr {
        if self.transport == Transport::RawIp {
            address.set_port(sctp_port);
        }
        address
    }

    /// Hands the engine's events to those who wait for them; the most frequent ones with [`Core::calls`].
    pub fn dispatch(&mut self, now: Instant, shared: &Shared) {
        while let Some((id, event)) = self.engine.poll_event() {
            let over = self.engine.association(id).is_none_or(|a| a.phase() == Phase::Closed);
            if over && !self.connections.contains_key(&id) {
                // The last words of one whose handle is gone.
                self.drain(id);
                continue;
            }
            let entry = self.connections.entry(id).or_insert_with(|| Entry::new(Owner::None));
            match &event {
                Event::Readable => {
                    if entry.owner == Owner::None {
                        self.drain(id);
                    } else {
                        self.calls.push(Call::Readable(entry.signals.clone()));
                    }
                    continue;
                }
                Event::Writable => {
                    self.calls.push(Call::Writable(entry.signals.clone()));
                    continue;
                }
                Event::Connected => {
                    entry.connected = true;
                    if entry.owner == Owner::None {
                        self.incoming(now, id, shared);
                    }
                }
                Event::Closed(reason) => {
                    entry.ending = Some((now, reason.clone()));
                    self.endings.push(id);
                    self.remember_stats(id);
                    continue;
                }
                _ => {}
            }
            self.log(now, id, event);
        }
    }

    /// Takes out those whose last packet the engine has given.
    pub fn take_ended(&mut self, out: &mut Vec<AssocId>) {
        let engine = &self.engine;
        out.extend(self.endings.extract_if(.., |id| !engine.association(*id).is_some_and(|a| a.owes_goodbye())));
    }

    /// The last packet of a connection is with its socket: its handles learn that it has ended. A program that ends then
    /// leaves no peer behind that waits.
    pub fn announce_end(&mut self, id: AssocId) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        let Some((at, reason)) = entry.ending.take() else { return };
        entry.closed = Some(reason.clone());
        self.log(at, id, Event::Closed(reason));
    }

    fn log(&mut self, now: Instant, id: AssocId, event: Event) {
        let ended = matches!(event, Event::Closed(_));
        let Some(entry) = self.connections.get_mut(&id) else { return };
        if entry.log.note(now, event) {
            entry.signals.changed.notify_waiters();
        }
        if ended {
            entry.signals.readable.notify_waiters();
            entry.signals.writable.notify_waiters();
            if entry.owner == Owner::None {
                self.drain(id);
                self.connections.remove(&id);
            }
        }
    }

    /// An association that a peer began.
    fn incoming(&mut self, now: Instant, id: AssocId, shared: &Shared) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        if self.closing || self.accepted.len() >= BACKLOG {
            if let Some(mut a) = self.engine.association_mut(id) {
                a.abort(now, b"no one accepts");
            }
            return;
        }
        entry.owner = Owner::Queue;
        self.accepted.push_back(id);
        shared.accept.notify_waiters();
    }

    /// Discards what no handle will read, so that the association can end.
    fn drain(&mut self, id: AssocId) {
        if let Some(mut a) = self.engine.association_mut(id) {
            while a.recv().is_some() {}
        }
    }

    /// The handle of a connection is gone: it ends, at once unless it is ending already.
    pub fn release(&mut self, now: Instant, id: AssocId) {
        self.drain(id);
        if let Some(mut a) = self.engine.association_mut(id)
            && matches!(a.phase(), Phase::Connecting | Phase::Established)
        {
            a.abort(now, b"the connection was dropped");
        }
        let Some(entry) = self.connections.get_mut(&id) else { return };
        entry.owner = Owner::None;
        if entry.closed.is_some() {
            self.connections.remove(&id);
        }
    }

    /// Aborts everything and accepts nothing more.
    pub fn close(&mut self, now: Instant, reason: &[u8]) {
        self.closing = true;
        let all: Vec<AssocId> = self.engine.associations().collect();
        for id in all {
            if let Some(mut a) = self.engine.association_mut(id) {
                a.abort(now, reason);
            }
        }
        self.disown_queue();
    }

    /// No `accept` will take what waits in the queue.
    pub fn disown_queue(&mut self) {
        for id in std::mem::take(&mut self.accepted) {
            self.release(crate::clock::now(), id);
        }
    }

    /// Counters of a connection; those of its last moment when it is over.
    pub fn connection_stats(&self, id: AssocId) -> ConnectionStats {
        match self.live_stats(id) {
            Some(s) => s,
            None => self.connections.get(&id).map(|e| e.last_stats.clone()).unwrap_or_default(),
        }
    }

    fn live_stats(&self, id: AssocId) -> Option<ConnectionStats> {
        let a = self.engine.association(id)?;
        let report = |(id, mut stats): (_, anabranch_engine::PathStats)| {
            let side = self.locals.get(anabranch_engine::LocalId(stats.local));
            let unknown = (String::new(), SocketAddr::from(([0, 0, 0, 0], 0)));
            let (local, address) = side.map_or(unknown, |s| (s.name.clone(), s.address));
            let address = self.shown(address, self.engine.port());
            stats.remote = self.shown(stats.remote, a.peer_port());
            PathReport { id, local, address, stats }
        };
        Some(ConnectionStats {
            association: a.stats(),
            policies: a.policy_counters().collect(),
            paths: a.paths().map(report).collect(),
        })
    }

    /// Keeps the counters of an association that has ended.
    pub fn remember_stats(&mut self, id: AssocId) {
        if let Some(s) = self.live_stats(id)
            && let Some(entry) = self.connections.get_mut(&id)
        {
            entry.last_stats = s;
        }
    }

    /// Something changed that concerns all connections.
    pub fn tell_all(&self) {
        for entry in self.connections.values() {
            entry.signals.changed.notify_waiters();
        }
    }

    /// An error if the driver has ended.
    pub fn check_running(&self) -> Result<(), Error> {
        if self.stopped {
            return Err(Error::Driver(io::Error::other("it has ended")));
        }
        Ok(())
    }

    /// The driver ends: wakes everything that waits for it.
    pub fn stop(&mut self, shared: &Shared) {
        self.stopped = true;
        self.closing = true;
        self.idle = true;
        let ending: Vec<AssocId> =
            self.connections.iter().filter(|(_, e)| e.ending.is_some()).map(|(id, _)| *id).collect();
        ending.into_iter().for_each(|id| self.announce_end(id));
        for entry in self.connections.values_mut() {
            entry.closed.get_or_insert(CloseReason::Aborted);
            entry.signals.changed.notify_waiters();
            entry.signals.readable.notify_waiters();
            entry.signals.writable.notify_waiters();
        }
        shared.accept.notify_waiters();
        shared.idle.notify_waiters();
    }
}
