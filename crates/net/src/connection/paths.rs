//! Paths and addresses of a connection: which there are, and which come and go.

use super::{Connection, closed};
use crate::clock;
use crate::config::{Local, PathSpec, check_congestion_control, check_path};
use crate::error::Error;
use crate::shared::Core;
use anabranch_base::PathId;
use anabranch_engine::{AddressError, AssocId, CloseReason};
use anabranch_policy::view::{FrameErrors, PathState};
use std::net::{IpAddr, SocketAddr};

impl Connection {
    /// The peer's addresses, one for each path; first those of paths that have been confirmed.
    pub fn remote_addresses(&self) -> Vec<SocketAddr> {
        let mut paths = self.stats().paths;
        paths.sort_by_key(|p| p.stats.state == PathState::Unconfirmed);
        paths.iter().map(|p| p.stats.remote).collect()
    }

    /// Adds a path, or revives one that is there. It is used once the peer has confirmed it ([`Events`](crate::Events) tell).
    ///
    /// # Errors
    /// A path that cannot be bound, a connection that is over or has no room.
    pub fn add_path(&self, path: &PathSpec) -> Result<PathId, Error> {
        let i = &*self.inner;
        i.shared.act(|core| {
            check_path(core.transport, path)?;
            let remote = core.transport.normal(path.remote);
            core.check_running()?;
            if let Some(reason) = closed(core, i.id) {
                return Err(Error::Closed(reason));
            }
            may_reach(core, i.id, remote, &path.local)?;
            let local = core.open_local(&path.local, remote, false)?;
            if let Some(entry) = core.connections.get_mut(&i.id) {
                entry.left.retain(|l| *l != local);
            }
            let Some(mut a) = core.engine.association_mut(i.id) else {
                return Err(Error::Closed(CloseReason::Aborted));
            };
            a.add_path(clock::now(), local, remote).ok_or(Error::TooManyPaths)
        })
    }

    /// Adds an address of this machine with one path from it: the peer learns the address by a path that it knows
    /// already, so it must see the same address (no NAT between), and the connection must have listed those that it
    /// began with. For peers that know ASCONF but not the kind of [`add_path`](Self::add_path) from an address that
    /// they do not know, such as Linux. The path is used once the peer has confirmed it ([`Events`](crate::Events) tell).
    ///
    /// # Errors
    /// A path that cannot be bound or has no address of its own; see [`AddressError`] for the rest.
    pub fn add_address(&self, path: &PathSpec) -> Result<PathId, Error> {
        let i = &*self.inner;
        i.shared.act(|core| {
            check_path(core.transport, path)?;
            let remote = core.transport.normal(path.remote);
            core.check_running()?;
            may_reach(core, i.id, remote, &path.local)?;
            let local = core.open_local(&path.local, remote, false)?;
            let Some(own) = core.locals.listed([local]).first().copied() else {
                return Err(Error::Config(format!("`{}` names no address to tell the peer", path.local)));
            };
            let Some(mut a) = core.engine.association_mut(i.id) else {
                return Err(AddressError::Closed.into());
            };
            Ok(a.add_address(clock::now(), local, own.ip, remote)?)
        })
    }

    /// Removes an address that the peer knows: nothing leaves from it any more, and the peer forgets it.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn remove_address(&self, address: IpAddr) -> Result<(), Error> {
        let i = &*self.inner;
        i.shared.act(|core| match core.engine.association_mut(i.id) {
            Some(mut a) => Ok(a.delete_address(clock::now(), address)?),
            None => Err(AddressError::Closed.into()),
        })
    }

    /// Uses no path any more that leaves from `local`, even when its interface comes back, until
    /// [`add_path`](Self::add_path) names one. False when there is none.
    pub fn leave_paths(&self, local: &Local) -> bool {
        let i = &*self.inner;
        i.shared.act(|core| {
            let mut found = false;
            for id in [true, false].into_iter().filter_map(|v4| core.locals.requested(local, v4)).collect::<Vec<_>>() {
                if let (Some(entry), Some(mut a)) = (core.connections.get_mut(&i.id), core.engine.association_mut(i.id))
                {
                    entry.left.push(id);
                    a.interface_down(clock::now(), id);
                    found = true;
                }
            }
            found
        })
    }

    /// Tells the policies of the paths from `local` what its link layer has counted since it began, for programs that
    /// know it where the system does not: of a modem, or of an emulator. Wireless interfaces that count for nl80211 are
    /// read without this. False when no path leaves from there.
    pub fn link_report(&self, local: &Local, report: FrameErrors) -> bool {
        let i = &*self.inner;
        let mut core = i.shared.lock();
        let sides: Vec<_> = [true, false].into_iter().filter_map(|v4| core.locals.requested(local, v4)).collect();
        let Some(mut a) = core.engine.association_mut(i.id) else { return false };
        sides.iter().for_each(|side| a.link_report(*side, report));
        !sides.is_empty()
    }
}

/// A connection without congestion control stays on this machine.
fn may_reach(core: &Core, id: AssocId, remote: SocketAddr, local: &Local) -> Result<(), Error> {
    core.engine.association(id).map_or(Ok(()), |a| check_congestion_control(a.config(), [remote], local))
}
