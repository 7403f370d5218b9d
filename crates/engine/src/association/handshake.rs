//! The four-way handshake (§5.1), seen from an association. The stateless half of it is in `endpoint`.

use super::announced::{Announced, announce};
use super::control_out::What;
use super::receive::Source;
use super::{Association, State};
use crate::auth::AssociationKey;
use crate::cookie::Cookie;
use crate::event::{CloseReason, Event, PathReason};
use crate::rx::reassembly::Reassembly;
use crate::rx::tsn_tracker::TsnTracker;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{InitAck, InitFields};

impl Association {
    pub(super) fn init_fields(&self) -> InitFields {
        InitFields {
            tag: self.local_tag,
            a_rwnd: u32::try_from(self.config.receive_buffer.max(1_500)).unwrap_or(u32::MAX),
            outbound_streams: self.config.outbound_streams.max(1),
            inbound_streams: self.config.inbound_streams.max(1),
            initial_tsn: self.local_initial,
        }
    }

    pub(super) fn handshake_params(&self) -> Vec<u8> {
        announce(&self.config, &self.local_auth, None)
    }

    /// Sends the INIT and starts T1.
    pub(crate) fn start(&mut self, now: Instant) {
        self.push_control(PathId(0), What::Init);
        self.control_attempts = 0;
        self.control_timer = Some(now + self.config.rto_initial);
        self.control_sent_at = now;
    }

    pub(super) fn on_init_ack(&mut self, now: Instant, from: Source, i: &InitAck<'_>) {
        if !matches!(self.state, State::CookieWait) {
            return;
        }
        let f = i.fields;
        let a = Announced::read(i.params);
        if f.tag == 0 || f.outbound_streams == 0 || f.inbound_streams == 0 || f.a_rwnd < 1_500 || a.host_name {
            self.peer_tag = f.tag;
            self.abort_with(
                now,
                &[anabranch_wire::Cause::InvalidParameter],
                CloseReason::ProtocolViolation("INIT ACK with impossible values"),
            );
            return;
        }
        let Some(cookie) = a.cookie.clone() else {
            self.peer_tag = f.tag;
            self.abort_with(
                now,
                &[anabranch_wire::Cause::MissingParameters(&[0, 7])],
                CloseReason::ProtocolViolation("INIT ACK without cookie"),
            );
            return;
        };
        tracing::debug!(peer = %from.remote, "INIT ACK");
        let sample = (self.control_attempts == 0).then(|| now.since(self.control_sent_at));
        self.adopt_peer(f, &a);
        if let (Some(rtt), Some(p)) = (sample, self.paths.first_mut()) {
            p.rtt.sample(now, rtt);
        }
        self.state = State::CookieEchoed { cookie: cookie.clone() };
        self.push_control(PathId(0), What::CookieEcho(cookie));
        self.control_attempts = 0;
        self.control_timer = Some(now + self.config.rto_initial);
    }

    fn adopt_peer(&mut self, f: InitFields, a: &Announced) {
        self.peer_tag = f.tag;
        self.outbound_streams = self.config.outbound_streams.max(1).min(f.inbound_streams);
        self.inbound_streams = self.config.inbound_streams.max(1).min(f.outbound_streams);
        self.peer_window.starts_at(f.a_rwnd);
        self.tracker = TsnTracker::new(f.initial_tsn);
        self.reassembly = Reassembly::new(self.inbound_streams);
        self.peer.forward_tsn = a.forward_tsn && self.config.partial_reliability;
        self.asconf.peer_starts_at(f.initial_tsn.0);
        if let Some(auth) = a.auth.as_ref().filter(|_| self.config.dynamic_addresses) {
            self.key = AssociationKey::new(&self.local_auth, auth, &[]);
        }
        self.peer.asconf = a.asconf && self.key.is_some();
        self.learn_addresses(&a.addresses);
    }

    /// The accepting side: everything comes from the cookie (§5.1 D).
    pub(crate) fn accept(&mut self, now: Instant, cookie: &Cookie) {
        let f = InitFields {
            tag: cookie.peer_tag,
            a_rwnd: cookie.peer_rwnd,
            outbound_streams: cookie.inbound_streams,
            inbound_streams: cookie.outbound_streams,
            initial_tsn: cookie.peer_initial_tsn,
        };
        self.adopt_peer(f, &Announced::of_cookie(cookie));
        self.push_control(PathId(0), What::CookieAck);
        self.establish(now);
    }

    /// A COOKIE ECHO again: our COOKIE ACK was lost (§5.2.4 D).
    pub(crate) fn on_cookie_again(&mut self) {
        if self.state.is_connected() {
            self.push_control(PathId(0), What::CookieAck);
        }
    }

    pub(super) fn on_cookie_ack(&mut self, now: Instant) {
        if matches!(self.state, State::CookieEchoed { .. }) {
            self.control_timer = None;
            self.establish(now);
        }
    }

    fn establish(&mut self, now: Instant) {
        self.state = State::Established;
        self.events.push_back(Event::Connected);
        self.set_path_state(PathId(0), PathState::Active, PathReason::Confirmed);
        self.schedule_heartbeat(now, PathId(0));
        let early: Vec<PathId> = self.paths.iter().filter(|p| !p.known_to_peer).map(|p| p.id).collect();
        for p in early {
            self.request_add(now, p);
        }
        self.probe_listed(now);
    }

    /// T1 and T2: the same chunk again, less and less often.
    pub(super) fn on_control_timer(&mut self, now: Instant) {
        let (what, limit, why) = match &self.state {
            State::CookieWait => (What::Init, self.config.max_init_retrans, CloseReason::NoAnswer),
            State::CookieEchoed { cookie } => {
                (What::CookieEcho(cookie.clone()), self.config.max_init_retrans, CloseReason::NoAnswer)
            }
            State::ShutdownSent => (What::Shutdown, self.config.max_association_retrans, CloseReason::PeerGone),
            State::ShutdownAckSent => (What::ShutdownAck, self.config.max_association_retrans, CloseReason::PeerGone),
            _ => return,
        };
        self.control_attempts += 1;
        if self.control_attempts > limit {
            self.close(why);
            return;
        }
        let path = self.usable_paths().iter().next().unwrap_or(PathId(0));
        self.push_control(path, what);
        self.control_timer = Some(now + self.control_backoff());
    }

    pub(super) fn control_backoff(&self) -> Duration {
        let doubled = self.config.rto_initial.as_nanos().saturating_mul(1 << self.control_attempts.min(16));
        Duration::from_nanos(doubled).min(self.config.rto_max)
    }
}
