//! Adding our addresses behind a NAT: ASCONF with the wildcard address under AUTH (RFC 5061 §4.1.1, §4.2.1).
//!
//! The peer learns the source address of the packet, as the NAT shows it. One request is outstanding at a time and
//! is repeated unchanged; when several of our paths wait, the repetition leaves from the next one, so that one dead
//! interface does not hold up the others. The answer should come back to the path whose packet got through (RFC 5061
//! §5.2 E6), but usrsctp sends it to its primary address: where it comes from decides only between several askers.

use super::Association;
use super::control_out::What;
use super::receive::Source;
use crate::event::{Event, PathReason};
use crate::path::Origin;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{Asconf as AsconfChunk, AsconfAck, Cause, Encode, Parameter};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface that is gone may come back: a request is repeated at least this often.
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// Bytes in front of the answers in a packet: common header, AUTH with its longest MAC, ASCONF-ACK with its serial.
const ANSWER_HEADERS: usize = 12 + 8 + 32 + 8;
/// The longest answer to one request, bytes.
const ANSWER_MAX: usize = 16;
/// What such an answer says of a request that we do not know: its type and length.
const UNKNOWN_SHOWN: usize = 4;

#[derive(Debug)]
struct Request {
    serial: u32,
    params: Bytes,
    deadline: Instant,
    attempts: u32,
    /// The path it left from first.
    from: Option<PathId>,
    /// It left from another one too: its answer does not tell which of them the peer has learnt.
    ambiguous: bool,
}

#[derive(Debug)]
pub(crate) struct Asconf {
    next_serial: u32,
    request: Option<Box<Request>>,
    /// Paths that wait to be learnt, the next one to try first.
    wanted: Vec<PathId>,
    peer_next: u32,
    answered: Option<(u32, Bytes)>,
    /// The packet at hand had its request already.
    pub(super) one_answered: bool,
}

impl Asconf {
    /// Serials start at the Initial TSN (RFC 5061 §5.1).
    pub fn new(initial: u32) -> Self {
        Asconf {
            next_serial: initial,
            request: None,
            wanted: Vec::new(),
            peer_next: 0,
            answered: None,
            one_answered: false,
        }
    }
    pub fn peer_starts_at(&mut self, serial: u32) {
        self.peer_next = serial;
    }
    /// T4.
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().map(|r| r.deadline)
    }
    pub fn give_up(&mut self) {
        self.request = None;
        self.wanted.clear();
    }
}

impl Association {
    /// The peer should learn the address this path has now.
    pub(super) fn request_add(&mut self, now: Instant, id: PathId) {
        let ours =
            self.paths.get(id.index()).is_some_and(|p| matches!(p.origin, Origin::Handshake | Origin::AddedByUs));
        let learnt_by_handshake =
            self.paths.get(id.index()).is_some_and(|p| p.origin == Origin::Handshake && p.errors == 0);
        if ours && !learnt_by_handshake {
            self.request_learning(now, id);
        }
    }

    /// The same, whatever the peer may know already.
    pub(super) fn request_learning(&mut self, now: Instant, id: PathId) {
        if !self.peer.asconf || !self.state.is_connected() {
            return;
        }
        if !self.asconf.wanted.contains(&id) {
            self.asconf.wanted.push(id);
        }
        if self.asconf.request.is_none() {
            self.begin_asconf(now);
        }
    }

    fn begin_asconf(&mut self, now: Instant) {
        let Some(remote) = self.asconf.wanted.first().and_then(|p| self.paths.get(p.index())).map(|p| p.remote) else {
            return;
        };
        let serial = self.asconf.next_serial;
        self.asconf.next_serial = serial.wrapping_add(1);
        let mut params = Vec::new();
        Parameter::AsconfAdd { correlation: serial, address: wildcard(remote.ip()) }.encode(&mut params);
        self.asconf.request = Some(Box::new(Request {
            serial,
            params: Bytes::from(params),
            deadline: now,
            attempts: 0,
            from: None,
            ambiguous: false,
        }));
        self.send_asconf(now);
    }

    /// Sends the outstanding request from the first waiting path whose interface is there.
    fn send_asconf(&mut self, now: Instant) {
        let up = |p: &PathId| self.paths.get(p.index()).is_some_and(|p| !p.interface_down);
        let path = self.asconf.wanted.iter().position(up);
        let base = self.config.rto_initial;
        let Some(r) = self.asconf.request.as_mut() else { return };
        let rounds = r.attempts / self.asconf.wanted.len().max(1) as u32;
        let doubled = Duration::from_nanos(base.as_nanos().saturating_mul(1 << rounds.min(6)));
        r.deadline = now + doubled.min(MAX_BACKOFF);
        r.attempts += 1;
        let what =
            What::Asconf { serial: r.serial, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), params: r.params.clone() };
        if let Some(i) = path {
            let id = self.asconf.wanted.remove(i);
            self.asconf.wanted.push(id);
            if let Some(r) = self.asconf.request.as_mut() {
                r.ambiguous |= r.from.is_some_and(|f| f != id);
                r.from = r.from.or(Some(id));
            }
            let what = match (what, self.paths.get(id.index())) {
                (What::Asconf { serial, params, .. }, Some(p)) => {
                    What::Asconf { serial, address: wildcard(p.remote.ip()), params }
                }
                (w, _) => w,
            };
            self.push_control(id, what);
        }
    }

    pub(super) fn on_asconf_timer(&mut self, now: Instant) {
        if self.asconf.wanted.is_empty() || !self.state.is_connected() {
            self.asconf.request = None;
            return;
        }
        if self.usable_paths().is_empty() {
            // Nothing else is left to notice a dead peer by (RFC 5061 §5.1 B1).
            self.association_error(now);
        }
        self.send_asconf(now);
    }

    /// The answer: the path that asked is known now.
    pub(super) fn on_asconf_ack(&mut self, now: Instant, from: Source, a: &AsconfAck<'_>) {
        let Some(request) = self.asconf.request.take_if(|r| r.serial == a.serial) else { return };
        let refused = a.params.iter().flatten().any(|p| matches!(p, Parameter::AsconfErrorCause { .. }));
        let came_by = self.paths.iter().find(|p| p.local == from.local && p.remote == from.remote).map(|p| p.id);
        let asked = if request.ambiguous { came_by.filter(|id| self.asconf.wanted.contains(id)) } else { request.from };
        if let Some(p) = asked.and_then(|id| self.paths.get_mut(id.index())) {
            let id = p.id;
            self.asconf.wanted.retain(|w| *w != id);
            if request.ambiguous && !refused {
                // The peer may have learnt the other path and answered the repetition: ask once more, from here.
                self.asconf.wanted.insert(0, id);
                return self.begin_asconf(now);
            }
            // One that was in use may be known still: usrsctp refuses what it has.
            let try_it = !refused || p.state != PathState::Unconfirmed;
            p.known_to_peer |= try_it;
            if refused {
                tracing::warn!(path = ?id, "the peer refuses our address");
            }
            if try_it {
                self.send_heartbeat(now, id);
            }
        }
        self.begin_asconf(now);
    }

    // ---- the peer's requests (RFC 5061 §5.2)

    pub(super) fn on_asconf(&mut self, now: Instant, from: Source, a: &AsconfChunk<'_>) {
        if !self.state.is_connected() || !self.auth.works() {
            return;
        }
        // One packet answers one packet (RFC 9260 §12.4), and an ASCONF-ACK fills it; the peer repeats the others.
        if core::mem::replace(&mut self.asconf.one_answered, true) {
            return;
        }
        if let Some((serial, params)) = self.asconf.answered.clone().filter(|(s, _)| *s == a.serial) {
            self.answer_asconf(from, serial, params);
            return;
        }
        if a.serial != self.asconf.peer_next {
            return;
        }
        self.asconf.peer_next = a.serial.wrapping_add(1);
        let mut out = Vec::new();
        // One packet holds the answer (§5.2 E7); what it has no room for is not done either.
        let room = self.config.packet_size - ANSWER_HEADERS;
        for p in a.params.iter().flatten() {
            if out.len() + ANSWER_MAX > room {
                break;
            }
            match p {
                Parameter::AsconfAdd { correlation, address } => {
                    self.peer_adds(now, from, correlation, address, &mut out)
                }
                Parameter::AsconfDelete { correlation, address } => {
                    self.peer_deletes(now, from, correlation, address, &mut out);
                }
                Parameter::AsconfSetPrimary { correlation, .. } => success(correlation, &mut out),
                Parameter::Unknown(raw) => {
                    if raw.unknown_action().reports() {
                        // Requests begin with their correlation id, and this may be one.
                        let correlation = raw.value.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
                        let shown = raw.whole.get(..UNKNOWN_SHOWN).unwrap_or(raw.whole);
                        refuse(correlation, &Cause::UnrecognizedParameters(shown), &mut out);
                    }
                    if raw.unknown_action().stops() {
                        break;
                    }
                }
                _ => {}
            }
        }
        let params = Bytes::from(out);
        self.asconf.answered = Some((a.serial, params.clone()));
        self.answer_asconf(from, a.serial, params);
    }

    fn answer_asconf(&mut self, from: Source, serial: u32, params: Bytes) {
        let here = self.paths.iter().find(|p| p.local == from.local && p.remote == from.remote).map(|p| p.id);
        if let Some(id) = here {
            self.push_control(id, What::AsconfAck { serial, params });
        } else {
            // A repetition of a request that we answered elsewhere: the answer goes where it came from (§5.2 E6).
            self.push_answer_to(from, What::AsconfAck { serial, params });
        }
    }

    fn peer_adds(&mut self, now: Instant, from: Source, correlation: u32, address: IpAddr, out: &mut Vec<u8>) {
        let is_source = address.is_unspecified() || address == from.remote.ip();
        if !is_source {
            // Only addresses that speak for themselves: anything else could point us at a bystander.
            return refuse(correlation, &Cause::NotAuthorized(&[]), out);
        }
        let known = self.paths.iter().find(|p| p.local == from.local && p.remote == from.remote).map(|p| p.id);
        let id = known.or_else(|| {
            let id = self.new_path(from.local, from.remote, Origin::AddedByPeer)?;
            self.events.push_back(Event::PathAdded { path: id });
            Some(id)
        });
        let Some(id) = id else { return refuse(correlation, &Cause::ResourceShortage(&[]), out) };
        success(correlation, out);
        if self.paths.get(id.index()).is_some_and(|p| p.state != PathState::Active) {
            self.send_heartbeat(now, id);
        }
    }

    fn peer_deletes(&mut self, now: Instant, from: Source, correlation: u32, address: IpAddr, out: &mut Vec<u8>) {
        if address == from.remote.ip() {
            return refuse(correlation, &Cause::DeleteSourceAddress(&[]), out);
        }
        let gone: Vec<PathId> = self
            .paths
            .iter()
            .filter(|p| p.remote != from.remote && (address.is_unspecified() || p.remote.ip() == address))
            .map(|p| p.id)
            .collect();
        for id in gone {
            self.leave_path(now, id, PathState::Inactive, PathReason::Removed);
            if let Some(p) = self.paths.get_mut(id.index()) {
                p.known_to_peer = false;
                p.heartbeat_timer = None;
                p.origin = Origin::AddedByPeer;
            }
        }
        success(correlation, out);
    }
}

fn wildcard(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

fn success(correlation: u32, out: &mut Vec<u8>) {
    Parameter::AsconfSuccess { correlation }.encode(out);
}

fn refuse(correlation: u32, cause: &Cause<'_>, out: &mut Vec<u8>) {
    let mut causes = Vec::new();
    cause.encode(&mut causes);
    Parameter::AsconfErrorCause { correlation, causes: &causes }.encode(out);
}
