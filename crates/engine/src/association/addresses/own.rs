//! What the user asks for of our own addresses (RFC 5061 §5.3); the requests themselves are in `asconf`.

use crate::association::Association;
use crate::association::addresses::asconf::Ask;
use crate::event::Event;
use crate::path::{LocalId, Origin};
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::PathState;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Why an address of ours is not added, taken away or preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The peer knows neither ASCONF nor AUTH, or refused such a request as unknown.
    #[error("the peer does not know address changes")]
    NotSupported,
    /// Not established, or closing.
    #[error("the association is not open")]
    Closed,
    /// None of the addresses that we listed.
    #[error("not an address that the peer knows")]
    Unknown,
    /// There would be no address left that the peer has confirmed.
    #[error("it is the last confirmed address")]
    Last,
    /// The association holds as many paths as it may, or as many such requests wait.
    #[error("there is no room for another path or request")]
    NoRoom,
}

impl Association {
    /// Notes the address of one of our sides that joined after the handshake, so that
    /// [`delete_address`](Self::delete_address) and [`prefer_address`](Self::prefer_address) know it too.
    pub fn name_address(&mut self, local: LocalId, ip: IpAddr) {
        let named = crate::ListedAddress { local, ip };
        if self.config.addresses.listed.contains(&named) {
            return;
        }
        let list = &mut Arc::make_mut(&mut self.config).addresses.listed;
        list.retain(|a| a.ip != ip);
        list.push(named);
    }

    /// Adds an address of ours with a path from it to `remote`. The peer gets the address itself, by a path that it
    /// knows (RFC 5061 §4.2.1, §5.3 F1 to F3); the path is probed once it agrees. Not for an address behind a NAT, of
    /// which the peer sees another: [`add_path`](Self::add_path). Linux finds an association by addresses only, so it
    /// takes this way and not that one.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(
        &mut self,
        now: Instant,
        local: LocalId,
        ip: IpAddr,
        remote: SocketAddr,
    ) -> Result<PathId, AddressError> {
        if !self.may_ask() {
            return Err(AddressError::Closed);
        }
        if !self.peer.asconf {
            return Err(AddressError::NotSupported);
        }
        if !self.addresses.has_room() {
            return Err(AddressError::NoRoom);
        }
        let known = self.paths.iter_mut().find(|p| p.local() == local && p.remote() == remote);
        let id = match known {
            Some(p) => {
                p.access.come_up();
                p.id()
            }
            None => {
                let id = self.new_path(local, remote, Origin::Listed).ok_or(AddressError::NoRoom)?;
                if let Some(p) = self.paths.get_mut(id.index()) {
                    p.access.become_unknown();
                }
                self.events.push_back(Event::PathAdded { path: id });
                id
            }
        };
        self.name_address(local, ip);
        self.ask(now, Ask::Add(ip));
        Ok(id)
    }

    /// Takes an address of ours, one of those [`listed`](crate::config::Addresses::listed), away from the association:
    /// nothing leaves from it any more, and the peer is informed (RFC 5061 §4.2.2, §5.3 F4 to F6).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(&mut self, now: Instant, ip: IpAddr) -> Result<(), AddressError> {
        let local = self.listed(ip)?;
        // The request has to leave from another one (§5.3 F6), and what is on its way too.
        let stays =
            |p: &crate::path::Path| p.local() != local && p.access.is_open() && p.state() != PathState::Unconfirmed;
        if !self.paths.iter().any(stays) {
            return Err(AddressError::Last);
        }
        let gone: Vec<PathId> = self.paths.iter().filter(|p| p.local() == local).map(|p| p.id()).collect();
        for id in gone {
            self.remove_path(now, id);
        }
        // It is none of ours from now on, for the answer to a peer that restarts too.
        Arc::make_mut(&mut self.config).addresses.listed.retain(|a| a.ip != ip);
        self.addresses.leaves(crate::ListedAddress { local, ip });
        self.ask(now, Ask::Delete(ip));
        Ok(())
    }

    /// Asks the peer to send to this address of ours by preference (RFC 5061 §4.2.4); it may do as it likes.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn prefer_address(&mut self, now: Instant, ip: IpAddr) -> Result<(), AddressError> {
        self.listed(ip)?;
        if self.addresses.no_preference {
            return Err(AddressError::NotSupported);
        }
        self.ask(now, Ask::Prefer(ip));
        Ok(())
    }

    fn listed(&self, ip: IpAddr) -> Result<LocalId, AddressError> {
        if !self.may_ask() {
            return Err(AddressError::Closed);
        }
        if !self.peer.asconf {
            return Err(AddressError::NotSupported);
        }
        if !self.addresses.has_room() {
            return Err(AddressError::NoRoom);
        }
        let found = self.config.addresses.listed.iter().find(|a| a.ip == ip);
        found.map(|a| a.local).ok_or(AddressError::Unknown)
    }

    /// The peer knows this address of ours: its paths are probed and then used.
    pub(in crate::association) fn probe_from(&mut self, now: Instant, ip: IpAddr) {
        let Some(local) = self.config.addresses.listed.iter().find(|a| a.ip == ip).map(|a| a.local) else { return };
        let own: Vec<PathId> = self.paths.iter().filter(|p| p.local() == local).map(|p| p.id()).collect();
        for id in own {
            self.know_path(id);
            self.send_heartbeat(now, id);
        }
    }
}
