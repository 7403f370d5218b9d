//! A stack whose packets leave by real sockets: they are asked for one by one, arrive in buffers that are used again, and
//! waiting callers learn which sockets something happened to.

use super::addresses::Route;
use super::{AssociationId, SocketId, Stack};
use anabranch_base::Instant;
use anabranch_engine::Transmit;
use anabranch_wire::Verify;
use std::any::Any;
use std::net::{IpAddr, SocketAddr};

/// Keeps an SCTP port from other processes as long as the result lives; none when one of them has it.
pub type Claim = Box<dyn FnMut(u16) -> Option<Box<dyn Any + Send>> + Send>;

/// See the module's description.
pub(super) struct Outward {
    /// Sockets that something happened to.
    touched: Vec<SocketId>,
    /// The port that sends next.
    cursor: u16,
    /// Packets to ports without a socket are answered: they cannot be another process's.
    answers_strangers: bool,
    pub claim: Option<Claim>,
}

impl Stack {
    /// Packets are asked for by [`Stack::poll_packet`] from now on. `route` chooses between our addresses; with `claim`
    /// other processes get the same packets.
    pub fn go_outward(&mut self, route: Route, claim: Option<Claim>) {
        self.locals.set_route(route);
        let answers_strangers = claim.is_none();
        self.outward = Some(Outward { touched: Vec::new(), cursor: 0, answers_strangers, claim });
    }

    /// Something happened to a socket.
    pub(super) fn touch(&mut self, id: SocketId) {
        if let Some(o) = &mut self.outward
            && o.touched.last() != Some(&id)
        {
            o.touched.push(id);
        }
    }

    /// The sockets that something happened to since this was asked last; more than once perhaps.
    pub fn take_touched(&mut self, to: &mut Vec<SocketId>) {
        if let Some(o) = &mut self.outward {
            to.append(&mut o.touched);
        }
    }

    /// A packet that came to one of our addresses, and whether a queue marked it. Its consequences are there after [`Stack::settle_events`].
    pub fn take_in(&mut self, now: Instant, to: IpAddr, from: SocketAddr, (packet, marked): (&[u8], bool)) {
        let Some(port) = packet.get(2..4).map(|p| u16::from_be_bytes([p[0], p[1]])) else { return };
        let local = self.locals.number(to);
        if let Some(p) = self.ports.get_mut(&port).filter(|p| p.hears(to)) {
            if marked {
                p.endpoint.next_is_marked();
            }
            p.endpoint.handle_borrowed(now, local, from, packet, Verify::Checksum);
            return;
        }
        if !self.outward.as_ref().is_some_and(|o| o.answers_strangers) {
            return;
        }
        let mut port = self.unused_ports.take().unwrap_or_else(|| self.strangers(now));
        port.endpoint.handle_borrowed(now, local, from, packet, Verify::Checksum);
        self.unused_ports = Some(port);
    }

    /// Events of all endpoints, until there are none.
    pub fn settle_events(&mut self, now: Instant) {
        let mut from = 0;
        while let Some((&n, p)) = self.ports.range_mut(from..).find(|(_, p)| !p.endpoint.is_settled()) {
            match p.endpoint.poll_event() {
                Some((id, event)) => {
                    from = n;
                    self.on_event(now, n, id, event);
                }
                None => match n.checked_add(1) {
                    Some(next) => from = next,
                    None => break,
                },
            }
        }
        self.settle_dry();
    }

    /// The next packet, and our address it leaves from.
    pub fn poll_packet(&mut self, now: Instant) -> Option<(&Transmit, IpAddr)> {
        let mut cursor = self.outward.as_ref()?.cursor;
        loop {
            let next = self.ports.range_mut(cursor..).find(|(_, p)| !p.endpoint.is_settled());
            let more = match next {
                Some((&n, p)) => {
                    cursor = n;
                    p.endpoint.poll_transmit(now, &mut self.transmit)
                }
                None => {
                    cursor = 0;
                    let answers =
                        self.unused_ports.as_mut().is_some_and(|p| p.endpoint.poll_transmit(now, &mut self.transmit));
                    if !answers {
                        break;
                    }
                    true
                }
            };
            if more && let Some(from) = self.locals.address(self.transmit.local) {
                self.outward.as_mut()?.cursor = cursor;
                return Some((&self.transmit, from));
            }
            if !more {
                cursor = match cursor.checked_add(1) {
                    Some(next) => next,
                    None => break,
                };
            }
        }
        self.transmit.packet.clear();
        self.outward.as_mut()?.cursor = 0;
        self.release_ports();
        None
    }

    /// The association that the last message began, for a call that waits until it is up as Linux's does: a program
    /// that ends right after would take the message with it.
    pub fn take_begun(&mut self) -> Option<AssociationId> {
        self.began.take().filter(|_| self.outward.is_some())
    }

    /// Is the handshake still under way?
    pub fn is_beginning(&self, a: AssociationId) -> bool {
        self.associations.get(&a).is_some_and(|a| !a.connected && a.closed.is_none())
    }

    /// Are there associations that have not ended yet?
    pub fn is_busy(&self) -> bool {
        self.ports.values().any(|p| p.endpoint.associations().next().is_some())
    }
}
