//! What `poll` says of a socket.

use super::association::AssociationId;
use super::receive::Item;
use super::{Socket, SocketId, Stack, Style};

/// See the module's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// `recvmsg` or `accept` would not wait.
    pub readable: bool,
    /// `sendmsg` would not wait, or `connect` is decided.
    pub writable: bool,
    /// SO_ERROR is set.
    pub error: bool,
    /// The association is over.
    pub hung_up: bool,
}

impl Stack {
    /// What a socket is ready for now.
    pub fn readiness(&self, id: SocketId) -> Readiness {
        let Ok(s) = self.get(id) else { return Readiness::default() };
        let mut r = Readiness { error: s.error.is_some(), ..Readiness::default() };
        r.readable = s.partial.is_some() || !s.waiting.is_empty() || s.error.is_some();
        r.readable |= s.inbox.iter().any(|i| self.is_to_be_read(s, i));
        if s.style == Style::OneToMany {
            // A message for another peer may find room, but who was refused waits for this one.
            let refusing = |a: &AssociationId| self.engine(*a).is_some_and(anabranch_engine::Association::is_refusing);
            r.writable = !s.associations.iter().any(refusing);
            return r;
        }
        let Some(a) = s.peer.and_then(|a| self.associations.get(&a)) else { return r };
        let over = a.closed.is_some();
        r.hung_up = over;
        r.readable |= over || a.peer_shut_down || s.reading_ended;
        let room = s.peer.and_then(|a| self.engine(a)).is_some_and(anabranch_engine::Association::is_writable);
        r.writable = over || (a.connected && room);
        r
    }

    /// Will a call get something of this item? That an association is over is nothing to read on a one-to-many socket.
    fn is_to_be_read(&self, s: &Socket, i: &Item) -> bool {
        match i {
            Item::Notification(..) => true,
            Item::Messages(a) => self.engine(*a).is_some_and(anabranch_engine::Association::is_readable),
            Item::End(_) if s.style == Style::OneToOne => true,
            Item::End(a) => {
                let cut_short = self.associations.get(a).is_some_and(|a| a.begun.is_some());
                cut_short && s.options.tells(crate::abi::notification::kind::PARTIAL_DELIVERY_EVENT)
            }
        }
    }
}
