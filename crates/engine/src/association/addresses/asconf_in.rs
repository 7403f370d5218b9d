//! The peer changes its addresses (RFC 5061 §5.2, §5.3).

use crate::association::Association;
use crate::association::control::What;
use crate::association::receive::Source;
use crate::event::Event;
use crate::path::{LocalId, Origin};
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{Asconf as AsconfChunk, Cause, Encode, Parameter, RawParameter};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes in front of the answers in a packet: common header, AUTH with its longest MAC, ASCONF-ACK with its serial.
const ANSWER_HEADERS: usize = 12 + 8 + 32 + 8;
/// Bytes of an answer in front of what it shows of the request.
const ANSWER_FIXED: usize = 12;
/// What an answer shows of a request that we do not know: its type and length.
const UNKNOWN_SHOWN: usize = 4;

/// One ASCONF chunk while it is carried out.
struct Changes {
    from: Source,
    answers: Vec<u8>,
    /// An ADD or DELETE was refused for want of room: no further one is carried out (§5.3 F11).
    failing: bool,
    /// Addresses that were added, other than the packet's source: they are probed one after the other.
    added: u64,
}

impl Changes {
    fn succeed(&mut self, correlation: u32) {
        Parameter::AsconfSuccess { correlation }.encode(&mut self.answers);
    }
    fn refuse(&mut self, correlation: u32, cause: &Cause<'_>) {
        let mut causes = Vec::new();
        cause.encode(&mut causes);
        Parameter::AsconfErrorCause { correlation, causes: &causes }.encode(&mut self.answers);
    }
}

/// Can packets to it reach one host?
fn is_unicast(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}

impl Association {
    pub(in crate::association) fn on_asconf(&mut self, now: Instant, from: Source, a: &AsconfChunk<'_>) {
        if !self.handshake.state().is_connected() || !self.handshake.auth().works() {
            return;
        }
        // One packet answers one packet (RFC 9260 §12.4), and an ASCONF-ACK fills it; the peer repeats the others.
        if core::mem::replace(&mut self.addresses.one_answered, true) {
            return;
        }
        if let Some((serial, params)) = self.addresses.answered.clone().filter(|(s, _)| *s == a.serial) {
            self.answer_asconf(from, serial, params);
            return;
        }
        if a.serial != self.addresses.peer_next {
            return;
        }
        self.addresses.peer_next = a.serial.wrapping_add(1);
        let mut changes = Changes { from, answers: Vec::new(), failing: false, added: 0 };
        // One packet holds the answer (§5.2 E7); what it has no room for is not done either.
        let room = self.config.mtu.packet_size - ANSWER_HEADERS;
        for raw in a.params.iter_raw().flatten() {
            let longest = ANSWER_FIXED + raw.whole.len().next_multiple_of(4);
            if changes.answers.len() + longest > room {
                break;
            }
            if !self.carry_out_change(now, &raw, &mut changes) {
                break;
            }
        }
        let params = Bytes::from(changes.answers);
        self.addresses.answered = Some((a.serial, params.clone()));
        self.answer_asconf(from, a.serial, params);
    }

    /// One request. False when those behind it do not count.
    fn carry_out_change(&mut self, now: Instant, raw: &RawParameter<'_>, changes: &mut Changes) -> bool {
        match raw.decode() {
            Ok(Parameter::AsconfAdd { correlation, address }) => {
                self.peer_adds(now, correlation, address, raw.whole, changes);
            }
            Ok(Parameter::AsconfDelete { correlation, address }) => {
                self.peer_deletes(now, correlation, address, raw.whole, changes);
            }
            Ok(Parameter::AsconfSetPrimary { correlation, address }) => {
                self.peer_prefers(correlation, address, raw.whole, changes);
            }
            Ok(Parameter::Unknown(_)) => {
                if raw.unknown_action().reports() {
                    // Requests begin with their correlation id, and this may be one.
                    let correlation = raw.value.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
                    let shown = raw.whole.get(..UNKNOWN_SHOWN).unwrap_or(raw.whole);
                    changes.refuse(correlation, &Cause::UnrecognizedParameters(shown));
                }
                return !raw.unknown_action().stops();
            }
            _ => {}
        }
        true
    }

    fn answer_asconf(&mut self, from: Source, serial: u32, params: Bytes) {
        let to = |p: &&crate::path::Path| p.remote() == from.remote;
        let here = self.paths.iter().filter(to).find(|p| p.local() == from.local);
        // What comes from there by one interface of ours may be reached by another one only.
        let works = |p: &&crate::path::Path| p.state() == PathState::Active;
        let here = here.filter(works).or_else(|| self.paths.iter().filter(to).find(works)).or(here).map(|p| p.id());
        if let Some(id) = here {
            self.control.push(id, What::AsconfAck { serial, params });
        } else {
            // A repetition of a request that we answered elsewhere: the answer goes where it came from (§5.2 E6).
            self.control.push_answer_to(from, What::AsconfAck { serial, params });
        }
    }

    fn peer_adds(&mut self, now: Instant, correlation: u32, address: IpAddr, request: &[u8], changes: &mut Changes) {
        let from = changes.from;
        let is_source = address.is_unspecified() || address == from.remote.ip();
        let remote = if is_source { from.remote } else { SocketAddr::new(address, from.remote.port()) };
        if !is_source && !is_unicast(address) {
            return changes.refuse(correlation, &Cause::NotAuthorized(request));
        }
        let local = self.stays_for(from);
        let known = self.paths.iter().find(|p| p.local() == local && p.remote() == remote).map(|p| p.id());
        let usable = !changes.failing && remote.is_ipv4() == from.remote.is_ipv4();
        let id = known.filter(|_| usable).or_else(|| {
            let id = if usable { self.new_path(local, remote, Origin::AddedByPeer) } else { None }?;
            self.events.push_back(Event::PathAdded { path: id });
            Some(id)
        });
        let Some(id) = id else {
            changes.failing = true;
            return changes.refuse(correlation, &Cause::ResourceShortage(request));
        };
        changes.succeed(correlation);
        let wait = self.config.timers.rto_initial * changes.added;
        self.know_path(id);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        // Until a nonce has come back it carries nothing else (§5.3 F1, F14), and what did not speak for itself is
        // asked more slowly: it may be a bystander's.
        match p.state() {
            PathState::Active => {}
            _ if is_source => self.send_heartbeat(now, id),
            _ => {
                p.timers.plan_heartbeat(Some(now + wait));
                changes.added += 1;
            }
        }
        if !address.is_unspecified() {
            self.pair_with_others(now, local, remote, &mut changes.added);
        }
    }

    /// The interface it came by, or another one when that is about to go.
    fn stays_for(&self, from: Source) -> LocalId {
        let stays = |p: &&crate::path::Path| p.access.is_known() && p.remote().is_ipv4() == from.remote.is_ipv4();
        let other = self.paths.iter().filter(|_| self.is_being_deleted(from.local)).find(stays);
        other.map_or(from.local, |p| p.local())
    }

    /// A new address of the peer is a path from each of our other interfaces too: it may be that only they reach it.
    fn pair_with_others(&mut self, now: Instant, here: LocalId, remote: SocketAddr, added: &mut u64) {
        let mut others: Vec<LocalId> = Vec::new();
        for p in self.paths.iter().filter(|p| p.access.is_known() && p.local() != here) {
            if p.remote().is_ipv4() == remote.is_ipv4() && !others.contains(&p.local()) {
                others.push(p.local());
            }
        }
        for local in others {
            let known = self.paths.iter().any(|p| p.local() == local && p.remote() == remote && p.access.is_known());
            let full = self.paths.len() >= self.config.limits.max_paths.clamp(1, anabranch_base::PathSet::CAPACITY);
            if known || full {
                continue;
            }
            let standby = self.paths.iter().any(|p| p.local() == local && !p.access.is_standby());
            let again = self.paths.iter().find(|p| p.local() == local && p.remote() == remote).map(|p| p.id());
            let Some(id) = again.or_else(|| self.new_path(local, remote, Origin::AddedByPeer)) else { continue };
            let wait = (*added).max(1);
            *added = wait + 1;
            self.know_path(id);
            if let Some(p) = self.paths.get_mut(id.index()) {
                p.access.reserve(standby);
                p.timers.plan_heartbeat(Some(now + self.config.timers.rto_initial * wait));
            }
            if again.is_none() {
                self.events.push_back(Event::PathAdded { path: id });
            }
        }
    }

    fn peer_deletes(&mut self, now: Instant, correlation: u32, address: IpAddr, request: &[u8], changes: &mut Changes) {
        let source = changes.from.remote;
        if changes.failing {
            return changes.refuse(correlation, &Cause::ResourceShortage(request));
        }
        let gone =
            |p: &crate::path::Path| p.remote() != source && (address.is_unspecified() || p.remote().ip() == address);
        let known = || self.paths.iter().filter(|p| p.access.is_known());
        // The source may be no path of ours, so that what would stay has to be looked at too.
        if known().all(|p| p.remote().ip() == address) || known().all(gone) {
            return changes.refuse(correlation, &Cause::DeleteLastAddress(request));
        }
        if address == source.ip() {
            return changes.refuse(correlation, &Cause::DeleteSourceAddress(request));
        }
        let gone: Vec<PathId> = known().filter(|p| gone(p)).map(|p| p.id()).collect();
        for id in gone {
            self.remove_path(now, id);
            if let Some(p) = self.paths.get_mut(id.index()) {
                p.leave_to_peer();
            }
        }
        changes.succeed(correlation);
    }

    /// The peer would rather be sent to there (§4.2.4): advice, which is taken.
    fn peer_prefers(&mut self, correlation: u32, address: IpAddr, request: &[u8], changes: &mut Changes) {
        let from = changes.from;
        let wanted = if address.is_unspecified() { from.remote.ip() } else { address };
        let to = |p: &&crate::path::Path| p.remote().ip() == wanted && p.access.is_known();
        let here =
            self.paths.iter().filter(to).find(|p| p.local() == from.local).or_else(|| self.paths.iter().find(to));
        match here.map(|p| (p.id(), p.local())) {
            Some((id, local)) => {
                // The one that its interface uses is the wanted one from now on.
                self.paths.iter_mut().filter(|p| p.local() == local).for_each(|p| p.access.reserve(p.id() != id));
                self.set_primary(id);
                self.events.push_back(Event::PrimaryWanted { path: id });
                changes.succeed(correlation);
            }
            None => changes.refuse(correlation, &Cause::UnresolvableAddress(request)),
        }
    }
}
