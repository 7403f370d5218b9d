//! `close` and `shutdown` (RFC 6458 §3.1.5, §4.1.5, §4.1.9).

use super::association::AssociationId;
use super::{Errno, SocketId, Stack, Style};
use anabranch_base::Instant;
use anabranch_engine::Phase;

impl Stack {
    /// Closes a socket. Its associations end gracefully, or at once with SO_LINGER 0 or where something was not read.
    ///
    /// # Errors
    /// No such socket.
    pub fn close(&mut self, now: Instant, id: SocketId) -> Result<(), Errno> {
        let mut s = self.sockets.remove(&id).ok_or(Errno::BAD_DESCRIPTOR)?;
        let at_once = s.options.linger == Some(0);
        for a in s.waiting.drain(..) {
            self.end(now, a, true);
        }
        let unread: Vec<AssociationId> = s.partial.iter().filter_map(super::receive::Partial::unread).collect();
        for a in s.associations {
            let left = unread.contains(&a)
                || self.engine(a).is_some_and(|e| e.is_readable() && e.phase() == Phase::Established);
            if let Some(kept) = self.associations.get_mut(&a) {
                kept.owner = None;
            }
            self.end(now, a, at_once || left);
        }
        self.unclaim(id);
        self.settle(now);
        Ok(())
    }

    /// Ends an association that has no socket any more.
    fn end(&mut self, now: Instant, a: AssociationId, at_once: bool) {
        self.drain(a);
        let over = self.associations.get(&a).is_none_or(|a| a.closed.is_some());
        if over || self.engine(a).is_none() {
            self.forget_association(a);
            return;
        }
        if let Some(mut e) = self.engine_mut(a) {
            if at_once { e.abort(now, b"") } else { e.shutdown(now) }
        }
    }

    /// `shutdown`: SHUT_WR begins the graceful end, SHUT_RD only stops reading (RFC 6458 §4.1.9).
    ///
    /// # Errors
    /// Not of the one-to-one style, or not connected.
    pub fn shutdown(&mut self, now: Instant, id: SocketId, how: i32) -> Result<(), Errno> {
        let s = self.get_mut(id)?;
        if s.style == Style::OneToMany {
            return Err(Errno::NOT_SUPPORTED);
        }
        let Some(peer) = s.peer else { return Err(Errno::NOT_CONNECTED) };
        if how == libc::SHUT_RD || how == libc::SHUT_RDWR {
            s.reading_ended = true;
        }
        if how == libc::SHUT_WR || how == libc::SHUT_RDWR {
            s.writing_ended = true;
            if let Some(mut e) = self.engine_mut(peer) {
                e.shutdown(now);
            }
        }
        self.settle(now);
        Ok(())
    }

    /// The peer of a one-to-one socket.
    ///
    /// # Errors
    /// There is none.
    pub fn peer_name(&self, id: SocketId) -> Result<std::net::SocketAddr, Errno> {
        let a = self.get(id)?.peer.and_then(|a| self.associations.get(&a));
        a.filter(|a| a.connected && a.closed.is_none()).map(|a| a.remote).ok_or(Errno::NOT_CONNECTED)
    }
}
