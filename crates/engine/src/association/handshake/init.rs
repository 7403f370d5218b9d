//! The four-way handshake (§5.1), seen from an association. The stateless half of it is in `endpoint`.

use super::own_parameters;
use super::peer::PeerFeatures;
use crate::association::control::{What, causes};
use crate::association::handshake::announced::{Announced, announce};
use crate::association::handshake::authentication::Authentication;
use crate::association::receive::Source;
use crate::association::{Association, State};
use crate::config::OwnParameter;
use crate::cookie::Cookie;
use crate::event::{CloseReason, Event, PathReason};
use crate::path::{Origin, Path};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{Cause, Encode, InitAck, InitFields, Parameter};
use std::net::IpAddr;
use std::sync::Arc;

/// Type of the State Cookie, as "Missing Mandatory Parameter" lists it.
const MISSING_COOKIE: [u8; 2] = [0, 7];

impl Association {
    pub(in crate::association) fn init_fields(&self) -> InitFields {
        InitFields {
            tag: self.handshake.local_tag,
            a_rwnd: u32::try_from(self.config.limits.receive_buffer.max(1_500)).unwrap_or(u32::MAX),
            outbound_streams: self.config.limits.outbound_streams.max(1),
            inbound_streams: self.config.limits.inbound_streams.max(1),
            initial_tsn: self.handshake.local_initial,
        }
    }

    pub(in crate::association) fn handshake_params(&self, out: &mut Vec<u8>) {
        announce(&self.config, &self.handshake.local_auth, None, out);
        if let Some(wish) = self.handshake.cookie_wish {
            let ms = u32::try_from(wish.as_millis()).unwrap_or(u32::MAX);
            Parameter::CookiePreservative(ms).encode(out);
        }
    }

    /// Sends the INIT and starts T1.
    pub(crate) fn start(&mut self, now: Instant) {
        self.handshake.attempts = 0;
        self.control.push(self.handshake.path, What::Init);
        self.start_control_timer(now, self.handshake.path);
        self.handshake.sent_at = now;
    }

    pub(in crate::association) fn on_init_ack(&mut self, now: Instant, from: Source, i: &InitAck<'_>) {
        if !matches!(self.handshake.state, State::CookieWait) {
            return;
        }
        let f = i.fields;
        let mut a = Announced::read(i.params);
        let Some(cookie) = self.check_init_ack(now, f, &mut a) else { return };
        tracing::debug!(peer = %from.remote, "INIT ACK");
        let sample = (self.handshake.attempts == 0).then(|| now.since(self.handshake.sent_at));
        a.own = own_parameters::read(i.params, &self.config);
        self.begin_on_answer(from, &mut a.addresses);
        self.adopt_peer(f, &a, &a.addresses);
        let path = self.handshake.path;
        let c = &self.config.compatibility;
        let sample = sample.filter(|_| !c.confirm_first && !c.handshake_untimed);
        if let (Some(rtt), Some(p)) = (sample, self.paths.get_mut(path.index())) {
            p.sample_own_round_trip(now, rtt);
        }
        if !self.config.extensions.partial_reliability {
            a.report_forward_tsn();
        }
        if !a.report.is_empty() {
            self.handshake.echo_report = causes(&[Cause::UnrecognizedParameters(&a.report)])[..].into();
        }
        self.handshake.state = State::CookieEchoed { cookie: cookie.clone() };
        self.control.clear();
        self.handshake.attempts = 0;
        self.control.push(path, What::CookieEcho(cookie));
        self.start_control_timer(now, path);
        self.handshake.sent_at = now;
    }

    /// The cookie of an INIT ACK with which an association can begin; any other ends this one (§3.3.3, §5.1).
    fn check_init_ack(&mut self, now: Instant, f: InitFields, a: &mut Announced<'_>) -> Option<Arc<[u8]>> {
        let (cause, why) = if f.tag == 0 {
            (Cause::InvalidParameter, "INIT ACK with tag 0")
        } else if let Some(name) = a.host_name {
            (Cause::UnresolvableAddress(name), "INIT ACK with a host name")
        } else if a.broken {
            (Cause::ProtocolViolation(b"a parameter without its format"), "INIT ACK without its format")
        } else if f.outbound_streams == 0 || f.inbound_streams == 0 || f.a_rwnd < 1_500 {
            (Cause::InvalidParameter, "INIT ACK with impossible values")
        } else if let Some(cookie) = a.cookie {
            return Some(cookie.into());
        } else {
            (Cause::MissingParameters(&MISSING_COOKIE), "INIT ACK without cookie")
        };
        self.handshake.peer_tag = f.tag;
        let why = CloseReason::ProtocolViolation(why);
        match f.tag {
            0 => self.abort_reflected(causes(&[cause]), why),
            _ => self.abort_with(now, &[cause], why),
        }
        None
    }

    /// The path an INIT ACK came by is the one of the handshake; what other paths said is not known to the peer.
    fn begin_on_answer(&mut self, from: Source, listed: &mut Vec<IpAddr>) {
        let known = self.paths.iter().any(|p| p.local() == from.local && p.remote() == from.remote);
        let asked = self.paths.get(self.handshake.path.index()).map(|p| p.remote().ip());
        if known {
            self.begin_on(from);
        } else if asked.is_some_and(|ip| listed.contains(&ip)) {
            // It answers from another of its addresses (§5.1.2 C).
            listed.push(from.remote.ip());
        } else if let Some(p) = self.paths.get_mut(self.handshake.path.index()) {
            // The source is the only address there is (§5.1.2 A). It was not listed: it is to be confirmed.
            p.move_to(from.local, from.remote);
            self.paths.note_new_address();
        }
    }

    /// Makes the path of `from` the one of the handshake.
    pub(in crate::association) fn begin_on(&mut self, from: Source) {
        // What only a list named has to be confirmed first.
        let here = |p: &&Path| p.local() == from.local && p.remote() == from.remote && p.origin() != Origin::Listed;
        let Some(id) = self.paths.iter().find(here).map(|p| p.id()) else { return };
        self.handshake.path = id;
        for p in self.paths.iter_mut() {
            let chosen = p.id() == id;
            if chosen || p.origin() == Origin::Handshake {
                p.take_part_in_handshake(chosen);
            }
        }
    }

    pub(in crate::association) fn adopt_peer(&mut self, f: InitFields, a: &Announced, addresses: &[IpAddr]) {
        self.handshake.peer_tag = f.tag;
        let auth = a.auth.as_ref().filter(|_| self.config.authenticates());
        self.handshake.auth = Authentication::new(&self.config, &self.handshake.local_auth, auth);
        self.paths.reserve(self.handshake.auth.room());
        self.peer = PeerFeatures::agreed(a, &self.config, self.handshake.auth.works());
        self.handshake.peer_said = a.own.clone().into();
        let limits = &self.config.limits;
        let outbound = limits.outbound_streams.max(1).min(f.inbound_streams);
        let inbound = limits.inbound_streams.max(1).min(f.outbound_streams);
        self.receiver.begin(f.initial_tsn, inbound, self.peer.forward_tsn);
        if self.peer.parity {
            self.policies.repair.begin_anew();
        }
        if self.peer.nr_sack && !self.config.extensions.nr_sack_covers_undelivered {
            self.receiver.note_delivered();
        }
        self.paths.set_data_extra(self.peer.data_extra());
        self.paths.set_spare(self.peer.spare());
        self.sender.begin(outbound, f.a_rwnd, self.peer.interleaving);
        self.addresses.peer_starts_at(f.initial_tsn.0);
        if let Some(reconfig) = self.stream_reset.used() {
            reconfig.peer_starts_at(f.initial_tsn);
        }
        self.settle_mtu();
        self.learn_addresses(addresses);
    }

    /// The accepting side: everything comes from the cookie (§5.1 D).
    pub(crate) fn accept(&mut self, now: Instant, from: Source, cookie: &Cookie) {
        self.adopt_cookie(cookie);
        self.time_handshake(now, from, cookie);
        self.control.push(self.handshake.path, What::CookieAck);
        self.establish(now);
    }

    /// The cookie left with the INIT ACK and is back: no answer to it can have come sooner than a round trip. Where it, or
    /// the INIT ACK, was repeated that took longer, so it counts only while nothing else is known (RFC 9260 §6.3.1 C5), and
    /// not where the timeout would be longer for it.
    fn time_handshake(&mut self, now: Instant, from: Source, cookie: &Cookie) {
        let took = now.since(cookie.created);
        if !self.policies.timer.early() || took * 3 > self.config.timers.rto_initial {
            return;
        }
        let there = |p: &&mut Path| p.local() == from.local && p.remote() == from.remote;
        if let Some(p) = self.paths.get_mut(self.handshake.path.index()).filter(there) {
            p.rtt.note_handshake(took);
        }
    }

    pub(in crate::association) fn on_cookie_ack(&mut self, now: Instant) {
        if matches!(self.handshake.state, State::CookieEchoed { .. }) {
            self.establish(now);
        }
    }

    pub(in crate::association) fn establish(&mut self, now: Instant) {
        self.events.push_back(Event::Connected);
        self.events.extend(self.peer.adaptation.map(|code| Event::Adaptation { code }));
        for OwnParameter { kind, value } in self.handshake.peer_said() {
            let value = value.clone().unwrap_or_default();
            self.events.push_back(Event::PeerParameter { kind: *kind, value });
        }
        self.open(now);
    }

    /// Data may flow, and further paths join.
    pub(in crate::association) fn open(&mut self, now: Instant) {
        self.handshake.timer = None;
        self.handshake.attempts = 0;
        self.handshake.state = State::Established;
        let path = self.handshake.path;
        if let Some(p) = self.paths.get_mut(path.index()).filter(|p| p.origin() == Origin::Handshake) {
            // Its interface may have come back meanwhile: the peer has answered to this address.
            if p.access.is_up() {
                p.access.become_known();
            }
            self.set_path_state(now, path, PathState::Active, PathReason::Confirmed);
            self.begin_confirming(now, path);
            self.send_train(now, path);
        }
        let named = |p: &&Path| p.state() == PathState::Unconfirmed && p.origin() == Origin::AddedByUs;
        let named: Vec<(PathId, bool)> =
            self.paths.iter().filter(named).map(|p| (p.id(), p.access.is_known())).collect();
        for (p, known) in named {
            if known {
                self.send_heartbeat(now, p);
            } else {
                self.request_add(now, p);
            }
        }
        self.probe_listed(now);
    }

    /// Our cookie grew too old on its way: another one, with more time, or the end (§5.2.6).
    pub(in crate::association) fn on_stale_cookie(&mut self, now: Instant) {
        if !matches!(self.handshake.state, State::CookieEchoed { .. }) {
            return;
        }
        self.handshake.stale_cookies += 1;
        if self.handshake.stale_cookies > self.config.failure.max_init_retrans {
            return self.close(CloseReason::NoAnswer);
        }
        let waited = now.since(self.handshake.sent_at);
        let round_trip = if self.handshake.attempts == 0 {
            waited
        } else {
            self.views.rto(&self.paths, &self.policies, self.handshake.path)
        };
        self.handshake.cookie_wish = Some(round_trip + Duration::from_secs(1));
        self.handshake.state = State::CookieWait;
        self.handshake.peer_tag = 0;
        self.control.clear();
        self.start(now);
    }
}
