//! What the sockets keep of an association beside the engine's own state.

use super::autoclose::AutoClose;
use super::{SocketId, Stack};
use anabranch_engine::{AssocId, AssocMut, Association as Engine, CloseReason};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// `sctp_assoc_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssociationId(pub i32);

pub(super) struct Association {
    pub port: u16,
    pub engine: AssocId,
    /// None once its socket is closed: it is only kept until it has ended.
    pub owner: Option<SocketId>,
    pub connected: bool,
    pub closed: Option<CloseReason>,
    /// Where it was begun, for names after its end.
    pub remote: SocketAddr,
    /// SCTP_CONTEXT and the like are the socket's; SCTP_DEFAULT_SNDINFO of a one-to-many socket may be its own.
    pub peer_shut_down: bool,
    /// Messages that were handed over.
    pub sent: u64,
    /// Something of them is neither acknowledged nor given up, as far as was looked.
    pub wet: bool,
    /// `snd_context` of those that have one, by number, where the program hears of failures.
    pub contexts: VecDeque<(u64, u32)>,
    /// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE of its own.
    pub exposed: Option<u32>,
    /// SCTP_STREAM_SCHEDULER_VALUE by stream.
    pub stream_values: BTreeMap<u16, u16>,
    pub auto_close: Option<AutoClose>,
    /// Stream and number of a message of which the program has read a part and not the end.
    pub begun: Option<(u16, u32)>,
}

impl Association {
    /// One that has just begun.
    pub fn new(port: u16, engine: AssocId, owner: Option<SocketId>, remote: SocketAddr) -> Self {
        Association {
            port,
            engine,
            owner,
            connected: false,
            closed: None,
            remote,
            peer_shut_down: false,
            sent: 0,
            wet: false,
            contexts: VecDeque::new(),
            exposed: None,
            stream_values: BTreeMap::new(),
            auto_close: None,
            begun: None,
        }
    }
}

impl Stack {
    pub(super) fn new_association(&mut self, a: Association) -> AssociationId {
        let id = AssociationId(self.next_association);
        self.next_association += 1;
        if let Some(s) = a.owner.and_then(|o| self.sockets.get_mut(&o)) {
            s.associations.push(id);
        }
        if let Some(p) = self.ports.get_mut(&a.port) {
            p.ids.insert(a.engine, id);
        }
        self.associations.insert(id, a);
        id
    }

    /// The engine's association, to look at.
    pub(super) fn engine(&self, id: AssociationId) -> Option<&Engine> {
        let a = self.associations.get(&id)?;
        self.ports.get(&a.port)?.endpoint.association(a.engine)
    }

    /// The engine's association, to act on.
    pub(super) fn engine_mut(&mut self, id: AssociationId) -> Option<AssocMut<'_>> {
        let a = self.associations.get(&id)?;
        self.ports.get_mut(&a.port)?.endpoint.association_mut(a.engine)
    }

    /// Forgets an association that is over and belongs to no socket any more.
    pub(super) fn forget_association(&mut self, id: AssociationId) {
        self.end_idling(id);
        let Some(a) = self.associations.remove(&id) else { return };
        if let Some(p) = self.ports.get_mut(&a.port) {
            p.ids.remove(&a.engine);
        }
        if let Some(s) = a.owner.and_then(|o| self.sockets.get_mut(&o)) {
            s.associations.retain(|i| *i != id);
        }
    }
}
