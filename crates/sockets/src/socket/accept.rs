//! `accept` and `sctp_peeloff` (RFC 6458 §4.1.4, §9.2).

use super::association::AssociationId;
use super::receive::Item;
use super::{Errno, Socket, SocketId, Stack, Style};
use crate::abi::notification::{assoc_change, kind, sac};
use std::collections::VecDeque;
use std::net::SocketAddr;

impl Stack {
    /// The oldest association that waits, as a socket of its own.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when there is none; the socket does not listen.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddr), Errno> {
        let s = self.get_mut(id)?;
        if s.style == Style::OneToMany {
            return Err(Errno::NOT_SUPPORTED);
        }
        if s.backlog.is_none() {
            return Err(Errno::INVALID);
        }
        let a = s.waiting.pop_front().ok_or(Errno::AGAIN)?;
        let remote = self.associations.get(&a).map(|a| a.remote).ok_or(Errno::CONNECTION_ABORTED)?;
        let new = self.own_socket(id, a)?;
        self.tell_accepted(new, a)?;
        Ok((new, remote))
    }

    /// That it came up is the first thing there is to read on the new socket.
    fn tell_accepted(&mut self, id: SocketId, a: AssociationId) -> Result<(), Errno> {
        let (outbound, inbound) = self.engine(a).map_or((0, 0), anabranch_engine::Association::streams);
        let s = self.get_mut(id)?;
        if s.options.tells(kind::ASSOC_CHANGE) {
            let up = assoc_change(a.0, sac::COMM_UP, 0, outbound, inbound);
            s.inbox.push_front(Item::Notification(a, up.into()));
        }
        Ok(())
    }

    /// Moves an association of a one-to-many socket to a one-to-one socket of its own, with what waits to be read.
    ///
    /// # Errors
    /// Not of that style, or no such association.
    pub fn peel_off(&mut self, id: SocketId, association: i32) -> Result<SocketId, Errno> {
        if self.get(id)?.style != Style::OneToMany {
            return Err(Errno::NOT_SUPPORTED);
        }
        let a = self.one(id, association)?;
        let new = self.own_socket(id, a)?;
        let old = self.get_mut(id)?;
        old.associations.retain(|i| *i != a);
        let of = |i: &Item| matches!(i, Item::Messages(x) | Item::Notification(x, _) | Item::End(x) if *x == a);
        let (moved, kept): (VecDeque<Item>, VecDeque<Item>) = old.inbox.drain(..).partition(of);
        old.inbox = kept;
        // What was read in part, or looked at to tell what comes next.
        let partial = old.partial.take_if(|p| p.is_of(a));
        let s = self.get_mut(new)?;
        s.inbox = moved;
        s.partial = partial;
        Ok(new)
    }

    fn own_socket(&mut self, from: SocketId, a: AssociationId) -> Result<SocketId, Errno> {
        let s = self.get(from)?;
        let new = Socket {
            style: Style::OneToOne,
            v6: s.v6,
            options: s.options.clone(),
            bound: s.bound.clone(),
            backlog: None,
            waiting: VecDeque::new(),
            associations: vec![a],
            inbox: VecDeque::new(),
            partial: None,
            error: None,
            peer: Some(a),
            reading_ended: false,
            writing_ended: false,
            not_connected: VecDeque::new(),
        };
        let id = self.insert(new);
        let kept = self.associations.get_mut(&a).ok_or(Errno::INVALID)?;
        kept.owner = Some(id);
        let closed = kept.closed.clone();
        let connected = kept.connected;
        let readable = self.engine(a).is_some_and(anabranch_engine::Association::is_readable);
        let s = self.get_mut(id)?;
        if readable {
            s.inbox.push_back(Item::Messages(a));
        }
        if let Some(why) = closed {
            s.error = super::events::error_of(&why, connected);
            s.inbox.push_back(Item::End(a));
        }
        Ok(id)
    }
}
