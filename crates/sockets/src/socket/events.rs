//! What the engine tells, as notifications, errors and what `accept` and `connect` wait for.

use super::association::{Association, AssociationId};
use super::receive::Item;
use super::{Errno, Stack, Style};
use crate::abi::notification::{self, auth, kind, sac, spc};
use crate::abi::option::pf_expose;
use anabranch_base::{Instant, PathId};
use anabranch_engine::{AssocId, CloseReason, Event, PathReason};
use anabranch_policy::view::PathState;
use std::net::SocketAddr;

/// Associations that did not come up of which a socket remembers why.
const NOT_CONNECTED: usize = 64;

impl Stack {
    pub(super) fn on_event(&mut self, now: Instant, port: u16, engine: AssocId, event: Event) {
        let known = self.ports.get(&port).and_then(|p| p.ids.get(&engine).copied());
        let Some(id) = known.or_else(|| self.incoming(now, port, engine)) else { return };
        self.touch_owner(id);
        match event {
            Event::Connected => self.on_connected(now, id),
            Event::Restarted => self.notify_change(id, sac::RESTART, 0),
            Event::Readable => self.on_readable(id),
            Event::PeerShutdown => self.on_peer_shutdown(id),
            Event::PathAdded { path } => self.notify_path(id, path, spc::ADDR_ADDED),
            Event::PathChanged { path, from, to, reason } => {
                let hidden = self.exposed(id) != pf_expose::ENABLE && is_only_doubt(from, to);
                if let Some(state) = path_state(to, reason).filter(|_| !hidden) {
                    self.notify_path(id, path, state);
                }
            }
            Event::Adaptation { code } => {
                self.notify(id, kind::ADAPTATION_INDICATION, |id| notification::adaptation(id.0, code));
            }
            Event::PeerError { code, value } => self.on_peer_error(id, code, &value),
            Event::AuthKeyUsed { id: key } => self.notify_auth(id, key, auth::NEW_KEY),
            Event::AuthKeyFree { id: key } => self.notify_auth(id, key, auth::FREE_KEY),
            Event::Abandoned { .. } => self.on_abandoned(id),
            Event::StreamsReset { streams, incoming } => self.on_streams_reset(id, &streams, incoming),
            Event::StreamsAdded { .. } => self.on_streams_added(id),
            Event::AssociationReset => self.on_association_reset(id),
            Event::ReconfigFailed { result } => self.on_reconfig_failed(id, result),
            Event::Closed(why) => self.on_closed(id, &why),
            _ => {}
        }
    }

    /// Whoever has the association, or waits to accept it, has to look.
    fn touch_owner(&mut self, id: AssociationId) {
        let Some(a) = self.associations.get(&id) else { return };
        if let Some(s) = a.owner.or_else(|| self.ports.get(&a.port).and_then(|p| p.listener)) {
            self.touch(s);
        }
    }

    /// An association that a peer began. The listening socket has it; without one it ends at once.
    fn incoming(&mut self, now: Instant, port: u16, engine: AssocId) -> Option<AssociationId> {
        let p = self.ports.get_mut(&port)?;
        let listener = p.listener;
        let e = p.endpoint.association(engine)?;
        let path = e.paths().next().map(|(_, s)| s.remote)?;
        let remote = SocketAddr::new(path.ip(), e.peer_port());
        let has_room =
            |s: &super::Socket| s.style == Style::OneToMany || s.backlog.is_some_and(|n| s.waiting.len() < n);
        let owner = listener.filter(|l| self.sockets.get(l).is_some_and(has_room));
        let one_to_many = owner.and_then(|o| self.sockets.get(&o)).is_some_and(|s| s.style == Style::OneToMany);
        if owner.is_none()
            && let Some(mut a) = self.ports.get_mut(&port).and_then(|p| p.endpoint.association_mut(engine))
        {
            a.abort(now, b"");
        }
        // One of a one-to-one socket has no owner before `accept`.
        let association = Association::new(port, engine, owner.filter(|_| one_to_many), remote);
        let id = self.new_association(association);
        if let Some(s) = owner.filter(|_| !one_to_many).and_then(|o| self.sockets.get_mut(&o)) {
            s.waiting.push_back(id);
        }
        Some(id)
    }

    fn on_connected(&mut self, now: Instant, id: AssociationId) {
        let Some(a) = self.associations.get_mut(&id) else { return };
        a.connected = true;
        let owner = a.owner.or_else(|| self.ports.get(&self.associations.get(&id)?.port)?.listener);
        if let Some(setting) = owner.and_then(|o| self.sockets.get(&o)).map(|s| s.options.heartbeat)
            && let Some(mut e) = self.engine_mut(id)
        {
            let paths: Vec<PathId> = e.paths().map(|(p, _)| p).collect();
            for p in paths {
                e.set_heartbeat(now, p, setting);
            }
        }
        self.begin_idling(now, id);
        self.notify_change(id, sac::COMM_UP, 0);
        if self.engine(id).is_some_and(|e| !e.agreed().authentication) {
            self.notify_auth(id, 0, auth::NO_AUTH);
        }
    }

    fn on_readable(&mut self, id: AssociationId) {
        match self.associations.get(&id).map(|a| a.owner) {
            Some(Some(owner)) => {
                if let Some(s) = self.sockets.get_mut(&owner) {
                    s.inbox.push_back(Item::Messages(id));
                }
            }
            // It waits for `accept`, which looks; a closed socket's is thrown away.
            Some(None) if self.is_waiting(id) => {}
            _ => self.drain(id),
        }
    }

    pub(super) fn is_waiting(&self, id: AssociationId) -> bool {
        self.sockets.values().any(|s| s.waiting.contains(&id))
    }

    /// Discards what will never be read.
    pub(super) fn drain(&mut self, id: AssociationId) {
        if let Some(mut e) = self.engine_mut(id) {
            while e.recv().is_some() {}
        }
    }

    fn on_peer_shutdown(&mut self, id: AssociationId) {
        if let Some(a) = self.associations.get_mut(&id) {
            a.peer_shut_down = true;
        }
        self.notify(id, kind::SHUTDOWN_EVENT, |id| notification::shutdown(id.0));
    }

    fn on_closed(&mut self, id: AssociationId, why: &CloseReason) {
        let Some(a) = self.associations.get_mut(&id) else { return };
        let connected = a.connected;
        a.closed = Some(why.clone());
        self.end_idling(id);
        let Some(a) = self.associations.get_mut(&id) else { return };
        let error = error_of(why, connected);
        let state = match why {
            CloseReason::Shutdown => sac::SHUTDOWN_COMP,
            _ if connected => sac::COMM_LOST,
            _ => sac::CANT_STR_ASSOC,
        };
        let (owner, begun) = (a.owner, a.begun.is_some());
        self.on_undelivered(id);
        self.notify_change(id, state, 0);
        let Some(owner) = owner else {
            // One that waits for `accept` keeps what can be read.
            if !self.is_waiting(id) {
                self.drain(id);
                self.forget_association(id);
            }
            return;
        };
        if let Some(s) = self.sockets.get_mut(&owner) {
            if s.style == Style::OneToOne {
                s.error = error.or(s.error);
            } else if !connected {
                if s.not_connected.len() == NOT_CONNECTED {
                    s.not_connected.pop_front();
                }
                s.not_connected.extend(error.map(|e| (id, e)));
            }
            if s.style == Style::OneToMany && !s.holds(id) && !begun {
                // It may never be read again: nothing is kept for it.
                self.forget_association(id);
                return;
            }
            s.inbox.push_back(Item::End(id));
        }
    }

    fn notify_change(&mut self, id: AssociationId, state: u16, error: u16) {
        let (outbound, inbound) = self.engine(id).map_or((0, 0), anabranch_engine::Association::streams);
        self.notify(id, kind::ASSOC_CHANGE, |id| notification::assoc_change(id.0, state, error, outbound, inbound));
    }

    fn notify_path(&mut self, id: AssociationId, path: PathId, state: i32) {
        let remote = self.engine(id).and_then(|e| e.paths().find(|(p, _)| *p == path).map(|(_, s)| s.remote));
        let owner = self.associations.get(&id).and_then(|a| a.owner);
        let (Some(remote), Some(owner)) = (remote, owner) else { return };
        let Ok(address) = self.shown(owner, id, remote) else { return };
        self.notify(id, kind::PEER_ADDR_CHANGE, |id| notification::peer_address_change(id.0, &address, state, 0));
    }

    pub(super) fn notify(&mut self, id: AssociationId, kind: u16, make: impl FnOnce(AssociationId) -> Vec<u8>) {
        let owner = self.associations.get(&id).and_then(|a| a.owner);
        let Some(owner) = owner else { return };
        let Some(s) = self.sockets.get_mut(&owner) else { return };
        if s.options.tells(kind) {
            s.inbox.push_back(Item::Notification(id, make(id).into()));
            self.touch(owner);
        }
    }
}

/// A change between in use and doubtful, which only those hear of that want to (RFC 7829 §7.1).
fn is_only_doubt(from: PathState, to: PathState) -> bool {
    let doubtful = |s: PathState| matches!(s, PathState::PotentiallyFailed | PathState::Suspected);
    doubtful(to) || doubtful(from) && to == PathState::Active
}

fn path_state(to: PathState, reason: PathReason) -> Option<i32> {
    Some(match (to, reason) {
        (_, PathReason::Removed) => spc::ADDR_REMOVED,
        (PathState::Active, PathReason::Confirmed) => spc::ADDR_CONFIRMED,
        (PathState::Active, _) => spc::ADDR_AVAILABLE,
        (PathState::Inactive, _) => spc::ADDR_UNREACHABLE,
        (PathState::Unconfirmed, _) => return None,
        _ => spc::ADDR_POTENTIALLY_FAILED,
    })
}

/// What a call on the socket answers once its association is over; nothing after a graceful end.
pub(super) fn error_of(why: &CloseReason, connected: bool) -> Option<Errno> {
    match why {
        CloseReason::Shutdown => None,
        CloseReason::PeerAborted(_) if connected => Some(Errno::CONNECTION_RESET),
        CloseReason::PeerAborted(_) => Some(Errno::CONNECTION_REFUSED),
        CloseReason::NoAnswer | CloseReason::PeerGone => Some(Errno::TIMED_OUT),
        CloseReason::PeerRestarted => Some(Errno::CONNECTION_RESET),
        CloseReason::Aborted | CloseReason::ProtocolViolation(_) => Some(Errno::CONNECTION_ABORTED),
    }
}
