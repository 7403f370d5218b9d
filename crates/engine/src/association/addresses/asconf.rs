//! Our addresses change (RFC 5061 §5.1); what the peer does with its own is in `asconf_in`.
//!
//! Adding them behind a NAT: ASCONF with the wildcard address under AUTH (RFC 5061 §4.1.1, §4.2.1).
//!
//! The peer learns the source address of the packet, as the NAT shows it. One request is outstanding at a time and
//! is repeated unchanged; when several of our paths wait, the repetition leaves from the next one, so that one dead
//! interface does not hold up the others. The answer should come back to the path whose packet got through (RFC 5061
//! §5.2 E6), but usrsctp sends it to its primary address: where it comes from decides only between several askers.

use crate::ListedAddress;
use crate::association::Association;
use crate::association::control::What;
use crate::association::receive::Source;
use crate::event::{CloseReason, PathReason};
use crate::path::{LocalId, Origin};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{AsconfAck, Cause, Causes, Encode, Parameter};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface that is gone may come back, and a network that was dead may carry: a request is repeated at least this often.
const MAX_BACKOFF: Duration = Duration::from_secs(8);
/// While the peer answers on other paths requests are repeated more often: they cost next to nothing beside the data.
const MAX_BACKOFF_BESIDE: Duration = Duration::from_secs(2);

/// Wishes that may wait.
const MAX_ASKS: usize = 32;

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum Ask {
    /// The source address of the packet is ours.
    Learn,
    /// This address is ours too.
    Add(IpAddr),
    /// This address is no longer ours.
    Delete(IpAddr),
    /// Send here by preference.
    Prefer(IpAddr),
}

#[derive(Debug)]
struct Request {
    ask: Ask,
    serial: u32,
    params: Bytes,
    /// When it left last.
    sent: Instant,
    deadline: Instant,
    attempts: u32,
    /// The path it left from last.
    from: Option<PathId>,
    /// It left from another one too: its answer does not tell which of them the peer has learnt.
    ambiguous: bool,
}

#[derive(Debug)]
pub(in crate::association) struct Addresses {
    next_serial: u32,
    request: Option<Box<Request>>,
    /// Paths that wait to be learnt, the next one to try first.
    wanted: Vec<PathId>,
    /// How often a request left whose answer did not tell which path was learnt: the next one waits as long as its last
    /// repetition did, or it would leave from several paths again before an answer can come.
    repeated: u32,
    /// The last answer did not tell which path was learnt.
    unclear: bool,
    /// Further wishes of the user: of each address one to add or delete it at most.
    asks: VecDeque<Ask>,
    /// Addresses of ours that the peer is asked to forget, until it answers.
    leaving: Vec<ListedAddress>,
    /// The peer does not know the request to prefer an address (§5.3 F3b).
    pub(super) no_preference: bool,
    pub(super) peer_next: u32,
    pub(super) answered: Option<(u32, Bytes)>,
    /// The packet at hand had its request already.
    pub(super) one_answered: bool,
}

impl Addresses {
    /// A packet came: one request in it is answered.
    pub fn begin_packet(&mut self) {
        self.one_answered = false;
    }

    /// Serials start at the Initial TSN (RFC 5061 §5.1).
    pub fn new(initial: u32) -> Self {
        Addresses {
            next_serial: initial,
            request: None,
            wanted: Vec::new(),
            repeated: 0,
            unclear: false,
            asks: VecDeque::new(),
            leaving: Vec::new(),
            no_preference: false,
            peer_next: 0,
            answered: None,
            one_answered: false,
        }
    }
    pub fn peer_starts_at(&mut self, serial: u32) {
        self.peer_next = serial;
    }
    /// When the request under way left last.
    pub fn asked_at(&self) -> Option<Instant> {
        self.request.as_ref().map(|r| r.sent)
    }
    /// T4.
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().map(|r| r.deadline)
    }
    /// Is the peer to learn this path yet?
    pub(in crate::association) fn wants(&self, id: PathId) -> bool {
        self.wanted.contains(&id)
    }
    pub fn give_up(&mut self) {
        self.request = None;
        self.wanted.clear();
        self.asks.clear();
        self.leaving.clear();
    }
    /// The path is gone, or its number stands for another one. A request that left from it is repeated all the same
    /// until it is answered (§5.1); the answer says nothing of the path any more.
    pub(in crate::association) fn forget_path(&mut self, id: PathId) {
        self.wanted.retain(|w| *w != id);
        if let Some(r) = self.request.as_mut().filter(|r| r.from == Some(id)) {
            (r.from, r.ambiguous) = (None, true);
        }
    }
    /// The peer is to forget this address of ours.
    pub(in crate::association) fn leaves(&mut self, address: ListedAddress) {
        self.leaving.retain(|a| a.ip != address.ip);
        self.leaving.push(address);
    }
    /// The interface is wanted again: what is not asked yet need not be. The addresses that stay therefore.
    pub(in crate::association) fn keeps(&mut self, local: LocalId) -> Vec<ListedAddress> {
        let asks = &mut self.asks;
        let mut unasked = |a: &mut ListedAddress| {
            let before = asks.len();
            asks.retain(|ask| a.local != local || *ask != Ask::Delete(a.ip));
            asks.len() < before
        };
        self.leaving.extract_if(.., &mut unasked).collect()
    }
    /// What is said of an address last counts: a wish to add it gives way to one to delete it, and comes behind it.
    fn note(&mut self, ask: Ask) {
        let said = match ask {
            Ask::Add(ip) | Ask::Delete(ip) => {
                if ask == Ask::Delete(ip) {
                    self.asks.retain(|a| *a != Ask::Add(ip));
                }
                let outstanding = self.request.as_ref().map(|r| r.ask);
                let mut all = self.asks.iter().rev().copied().chain(outstanding);
                all.find(|a| matches!(a, Ask::Add(of) | Ask::Delete(of) if *of == ip)) == Some(ask)
            }
            _ => self.asks.contains(&ask),
        };
        if !said && self.has_room() {
            self.asks.push_back(ask);
        }
    }
    /// Can one more wish wait?
    pub(in crate::association) fn has_room(&self) -> bool {
        self.asks.len() < MAX_ASKS
    }
}

impl Association {
    /// The peer should learn the address this path has now.
    pub(in crate::association) fn request_add(&mut self, now: Instant, id: PathId) {
        let ours =
            self.paths.get(id.index()).is_some_and(|p| matches!(p.origin(), Origin::Handshake | Origin::AddedByUs));
        let learnt_by_handshake =
            self.paths.get(id.index()).is_some_and(|p| p.origin() == Origin::Handshake && p.health.errors() == 0);
        if ours && !learnt_by_handshake {
            self.request_learning(now, id);
        }
    }

    /// The peer should learn the address this path has now, whatever it may know already.
    pub(in crate::association) fn request_learning(&mut self, now: Instant, id: PathId) {
        let removed = self.paths.get(id.index()).is_none_or(|p| p.access.is_removed());
        if !self.peer.asconf || !self.may_ask() || removed {
            return;
        }
        if !self.addresses.wanted.contains(&id) {
            self.addresses.wanted.push(id);
        }
        if self.addresses.request.is_none() {
            self.begin_asconf(now);
        }
    }

    /// ASCONF leaves in these states only (§5.1.1 C4).
    pub(in crate::association) fn may_ask(&self) -> bool {
        self.handshake.state().is_connected()
            && !matches!(self.handshake.state(), crate::association::State::ShutdownAckSent)
    }

    pub(in crate::association) fn ask(&mut self, now: Instant, ask: Ask) {
        self.addresses.note(ask);
        if self.addresses.request.is_none() {
            self.begin_asconf(now);
        }
    }

    /// Is the interface one whose address the peer is asked to forget? An ABORT that comes to it answers what was on
    /// its way (§5.3 F4, §5.3.1).
    pub(in crate::association) fn is_being_deleted(&self, local: LocalId) -> bool {
        self.addresses.leaving.iter().any(|a| a.local == local)
    }

    fn begin_asconf(&mut self, now: Instant) {
        if self.addresses.wanted.is_empty() {
            return self.begin_ask(now);
        }
        let Some(remote) = self.addresses.wanted.first().and_then(|p| self.paths.get(p.index())).map(|p| p.remote())
        else {
            return;
        };
        let serial = self.addresses.next_serial;
        self.addresses.next_serial = serial.wrapping_add(1);
        let mut params = Vec::new();
        Parameter::AsconfAdd { correlation: serial, address: wildcard(remote.ip()) }.encode(&mut params);
        self.addresses.request = Some(Box::new(Request {
            ask: Ask::Learn,
            serial,
            params: Bytes::from(params),
            sent: now,
            deadline: now,
            attempts: core::mem::take(&mut self.addresses.repeated),
            from: None,
            ambiguous: false,
        }));
        self.send_asconf(now);
    }

    fn begin_ask(&mut self, now: Instant) {
        let Some(ask) = self.addresses.asks.pop_front() else { return };
        let serial = self.addresses.next_serial;
        self.addresses.next_serial = serial.wrapping_add(1);
        let mut params = Vec::new();
        match ask {
            Ask::Add(address) => Parameter::AsconfAdd { correlation: serial, address }.encode(&mut params),
            Ask::Delete(address) => Parameter::AsconfDelete { correlation: serial, address }.encode(&mut params),
            Ask::Prefer(address) => Parameter::AsconfSetPrimary { correlation: serial, address }.encode(&mut params),
            Ask::Learn => {}
        }
        let params = Bytes::from(params);
        let request =
            Request { ask, serial, params, sent: now, deadline: now, attempts: 0, from: None, ambiguous: false };
        self.addresses.request = Some(Box::new(request));
        self.send_ask(now);
    }

    /// Sends such a request by the next path that works, which is none of the address that goes (§5.3 F6).
    fn send_ask(&mut self, now: Instant) {
        let works = |p: &&crate::path::Path| {
            p.access.is_open() && !matches!(p.state(), PathState::Unconfirmed | PathState::Inactive)
        };
        let usable: Vec<PathId> = self.paths.iter().filter(works).map(|p| p.id()).collect();
        let attempts = self.addresses.request.as_ref().map_or(0, |r| r.attempts);
        let wait = self.config.timers.doubled(self.config.timers.rto_initial, attempts.min(6));
        let Some(r) = self.addresses.request.as_mut() else { return };
        let path = usable.get(r.attempts as usize % usable.len().max(1)).copied();
        let any = || {
            self.paths
                .iter()
                .find(|p| p.access.is_known() && !p.access.is_removed() && p.access.is_up())
                .map(|p| p.id())
        };
        let path = path.or_else(any).unwrap_or(self.handshake.path());
        // Repeated from elsewhere, it does not tell which source address the peer has learnt.
        r.ambiguous |= r.from != Some(path);
        (r.sent, r.deadline, r.from) = (now, now + wait, Some(path));
        r.attempts += 1;
        let (serial, params) = (r.serial, r.params.clone());
        let Some(p) = self.paths.get(path.index()) else { return };
        let learns = r.ask == Ask::Learn;
        let address = self.config.addresses.listed.iter().find(|a| a.local == p.local() && !learns).map(|a| a.ip);
        let address = address.unwrap_or(wildcard(p.remote().ip()));
        self.control.push(path, What::Asconf { serial, address, params });
    }

    /// Sends the outstanding request from the first waiting path whose interface is there.
    fn send_asconf(&mut self, now: Instant) {
        let up = |p: &PathId| self.paths.get(p.index()).is_some_and(|p| p.access.is_up());
        let path = self.addresses.wanted.iter().position(up);
        let attempts = self.addresses.request.as_ref().map_or(0, |r| r.attempts);
        let rounds = attempts / self.addresses.wanted.len().max(1) as u32;
        // An answer that did not tell which path was learnt came later than the next repetition left.
        let patient = self.addresses.unclear || !self.peer_answers();
        let most = if patient { MAX_BACKOFF } else { MAX_BACKOFF_BESIDE };
        let wait = self.config.timers.doubled(self.config.timers.rto_initial, rounds.min(10)).min(most);
        let Some(r) = self.addresses.request.as_mut() else { return };
        (r.sent, r.deadline) = (now, now + wait);
        r.attempts += 1;
        let what =
            What::Asconf { serial: r.serial, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), params: r.params.clone() };
        if let Some(i) = path {
            let id = self.addresses.wanted.remove(i);
            self.addresses.wanted.push(id);
            if let Some(r) = self.addresses.request.as_mut() {
                r.ambiguous |= r.from.is_some_and(|f| f != id);
                r.from = r.from.or(Some(id));
            }
            let what = match (what, self.paths.get(id.index())) {
                (What::Asconf { serial, params, .. }, Some(p)) => {
                    What::Asconf { serial, address: wildcard(p.remote().ip()), params }
                }
                (w, _) => w,
            };
            self.control.push(id, what);
        }
    }

    /// Is there a path in use that is not silent?
    fn peer_answers(&self) -> bool {
        let usable = self.paths.usable();
        self.paths
            .iter()
            .any(|p| usable.has(p.id()) && p.access.is_known() && p.health.errors() == 0 && !p.expiry.is_silent())
    }

    /// What the request was to leave by is gone: again, by another path.
    pub(in crate::association) fn repeat_request(&mut self, now: Instant) {
        match &self.addresses.request {
            Some(r) if r.ask == Ask::Learn && !self.addresses.wanted.is_empty() => self.send_asconf(now),
            _ => self.send_ask(now),
        }
    }

    /// No path in use answers. One that the peer is to learn may, however long the request has been backed off: it leaves
    /// again once it could have been answered.
    pub(in crate::association) fn repeat_learning(&mut self, now: Instant) {
        let up = |p: &&PathId| self.paths.get(p.index()).is_some_and(|p| p.access.is_up());
        let Some(next) = self.addresses.wanted.iter().find(up).copied() else { return };
        let Some(sent) = self.addresses.request.as_ref().filter(|r| r.ask == Ask::Learn).map(|r| r.sent) else {
            return;
        };
        if self.may_ask() && self.pause_in_the_dark(next).is_some_and(|d| now.since(sent) >= d) {
            self.send_asconf(now);
        }
    }

    pub(in crate::association) fn on_asconf_timer(&mut self, now: Instant) {
        if !self.may_ask() {
            return self.addresses.give_up();
        }
        let waits = !self.addresses.wanted.is_empty();
        if self.addresses.request.as_ref().is_some_and(|r| r.ask != Ask::Learn || !waits) {
            // T4: counted against path and association, then again by another path (§5.1 B1 to B5).
            if let Some(path) = self.addresses.request.as_ref().and_then(|r| r.from) {
                self.path_error(now, path, PathReason::Timeout);
            }
            self.association_error(now, self.addresses.asked_at().unwrap_or(now));
            return self.send_ask(now);
        }
        let usable = self.paths.usable();
        if !self.paths.iter().any(|p| usable.has(p.id()) && p.access.is_known()) {
            // Nothing else is left to notice a dead peer by: only known paths are probed (RFC 5061 §5.1 B1).
            self.association_error(now, self.addresses.asked_at().unwrap_or(now));
        }
        self.send_asconf(now);
    }

    /// The answer: the path that asked is known now.
    pub(in crate::association) fn on_asconf_ack(&mut self, now: Instant, from: Source, a: &AsconfAck<'_>) {
        let Some(request) = self.addresses.request.take_if(|r| r.serial == a.serial) else {
            // For a request that was never made (§5.3 F0): at or behind the next serial number.
            let ahead = a.serial.wrapping_sub(self.addresses.next_serial) < 1 << 31;
            if self.addresses.request.is_none() && ahead && self.handshake.state().is_connected() {
                let why = CloseReason::ProtocolViolation("an ASCONF-ACK for nothing");
                self.abort_with(now, &[Cause::IllegalAsconfAck], why);
            }
            return;
        };
        let refused = a.params.iter().flatten().any(|p| matches!(p, Parameter::AsconfErrorCause { .. }));
        if request.ask != Ask::Learn {
            return self.ask_answered(now, request.ask, refused, a);
        }
        let came_by = self.paths.iter().find(|p| p.local() == from.local && p.remote() == from.remote).map(|p| p.id());
        let asked = if request.ambiguous { came_by } else { request.from };
        let asked = asked.filter(|id| self.addresses.wanted.contains(id));
        if let Some(p) = asked.and_then(|id| self.paths.get_mut(id.index())) {
            let id = p.id();
            self.addresses.wanted.retain(|w| *w != id);
            self.addresses.unclear = request.ambiguous && !refused;
            if self.addresses.unclear {
                // The peer may have learnt the other path and answered the repetition: ask once more, from here.
                self.addresses.wanted.insert(0, id);
                self.addresses.repeated = request.attempts;
                return self.begin_asconf(now);
            }
            // One that was in use may be known still: usrsctp refuses what it has.
            let try_it = !refused || p.state() != PathState::Unconfirmed;
            if try_it {
                p.access.become_known();
            }
            if refused {
                tracing::warn!(path = ?id, "the peer refuses our address");
            }
            // Of a foreign peer that is not known: usrsctp may say yes and not have learnt it.
            let ours = self.peer.time_stamps && !request.ambiguous;
            let proven = ours && !refused && came_by == Some(id) && p.state() == PathState::Unconfirmed;
            if try_it {
                // What left before the peer had learnt the address says nothing of it.
                p.probing.withdraw();
                self.send_heartbeat(now, id);
            }
            if proven {
                self.answer_confirms(now, id, &request);
            }
        }
        self.begin_asconf(now);
    }

    /// The answer came back by the new path itself, and only the peer can have signed it: that proves both ways of the path as
    /// well as a nonce does (RFC 9260 §5.4), a round trip earlier (RFC 5061 §5.3 F2).
    fn answer_confirms(&mut self, now: Instant, id: PathId, request: &Request) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        if request.attempts == 1 {
            p.sample_own_round_trip(now, now.since(request.sent));
        }
        self.confirm(now, id);
        self.path_answered(now, id);
    }

    fn ask_answered(&mut self, now: Instant, ask: Ask, refused: bool, a: &AsconfAck<'_>) {
        let any = |of: fn(&Cause<'_>) -> bool| {
            a.params.iter().flatten().any(|p| match p {
                Parameter::AsconfErrorCause { causes, .. } => Causes::new(causes).iter().flatten().any(|c| of(&c)),
                _ => false,
            })
        };
        let unknown = any(|c| matches!(c, Cause::UnrecognizedParameters(_)));
        let absent = any(|c| matches!(c, Cause::UnresolvableAddress(_)));
        match ask {
            // Not to be asked for again (§5.3 F3a, F3b).
            Ask::Prefer(_) => self.addresses.no_preference |= unknown,
            Ask::Add(ip) if refused => {
                tracing::warn!(%ip, "the peer refuses our address");
                if unknown {
                    self.peer.forgot_asconf();
                }
            }
            Ask::Add(ip) => self.probe_from(now, ip),
            Ask::Delete(ip) => {
                let left =
                    self.addresses.leaving.iter().position(|a| a.ip == ip).map(|i| self.addresses.leaving.remove(i));
                if refused && unknown {
                    self.peer.forgot_asconf();
                }
                if let Some(a) = left.filter(|_| refused && !absent) {
                    // The peer keeps it: so do we.
                    self.addresses.asks.retain(|ask| *ask != Ask::Add(ip));
                    self.name_address(a.local, ip);
                    self.probe_from(now, ip);
                }
            }
            _ => {}
        }
        self.begin_asconf(now);
    }
}

fn wildcard(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
#[path = "asconf_tests.rs"]
mod tests;
