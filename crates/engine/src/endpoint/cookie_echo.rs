//! COOKIE ECHO: into life from the cookie alone, or into an association that is there already (§5.1.5, §5.2.4).

use super::{AssocId, Endpoint, Slot};
use crate::association::handshake::announced::ANNOUNCED_AS_OURS;
use crate::association::handshake::restart::CookieAction;
use crate::association::receive::Source;
use crate::association::{Association, Identity, Policies, State};
use crate::auth::AuthParams;
use crate::cookie::{Cookie, CookieError};
use crate::event::CloseReason;
use anabranch_base::{Duration, Instant};
use anabranch_wire::{Cause, Chunk, CommonHeader, Packet, RawChunk};
use bytes::Bytes;
use std::sync::Arc;

impl Endpoint {
    pub(super) fn on_cookie_echo(
        &mut self,
        now: Instant,
        from: Source,
        packet: &Packet<'_>,
        first: &RawChunk<'_>,
        whole: Option<&Bytes>,
    ) {
        let Ok(Chunk::CookieEcho(echo)) = first.decode() else { return };
        self.jar.rotate_if_due(now, self.entropy.as_mut());
        let (cookie, stale) = match self.jar.open(now, echo.cookie) {
            Ok(c) => (c, None),
            Err(CookieError::Stale { by, cookie }) => (*cookie, Some(by)),
            Err(_) => return,
        };
        let h = packet.header;
        if !self.cookie_fits(&cookie, from, &h) {
            return;
        }
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: cookie.peer_tag };
        let Some(id) = self.owner_of_cookie(&cookie, from) else {
            return match stale {
                Some(by) => self.replies.stale_cookie(from, back, by),
                None => self.accept(now, from, back, &cookie, packet, whole),
            };
        };
        let Some(s) = self.slots.work_on(&id) else { return };
        if !s.association.admits_cookie(packet) {
            return;
        }
        let action = s.association.judge_cookie(&cookie);
        if let Some(by) = stale.filter(|_| action != CookieAction::Again) {
            return self.replies.stale_cookie(from, back, by);
        }
        match action {
            CookieAction::Restart => return self.restart(now, id, from, &cookie, packet, whole),
            CookieAction::Collision => s.association.on_collision(now, from, &cookie),
            CookieAction::Again => s.association.on_cookie_again(now, from),
            CookieAction::Drop => return,
        }
        self.hand_over(now, id, from, packet, whole);
    }

    /// Tags, ports, and a host that the INIT named. The UDP port may differ: NATs change it (RFC 6951 §5.4).
    fn cookie_fits(&self, c: &Cookie, from: Source, h: &CommonHeader) -> bool {
        c.local_tag == h.vtag
            && c.local_port == self.config.port
            && c.peer_port == h.src_port
            && (c.remote.ip() == from.remote.ip() || c.listed.contains(&from.remote.ip()))
    }

    /// The association that the cookie was made for or beside: by its tag, or by the peer's addresses.
    fn owner_of_cookie(&self, c: &Cookie, from: Source) -> Option<AssocId> {
        self.owner(c.local_tag, c.peer_port)
            .or_else(|| self.find_by_addresses(from, &[], c.peer_port))
            .or_else(|| self.find_by_addresses(Source { local: c.local, remote: c.remote }, &c.listed, c.peer_port))
    }

    /// A new association.
    fn accept(
        &mut self,
        now: Instant,
        from: Source,
        back: CommonHeader,
        cookie: &Cookie,
        packet: &Packet<'_>,
        whole: Option<&Bytes>,
    ) {
        if !self.config.accept {
            return self.replies.abort(from, back, &[]);
        }
        if self.slots.len() >= self.config.max_associations {
            return self.replies.abort(from, back, &[Cause::OutOfResource]);
        }
        self.begin(now, from, cookie, packet, whole);
    }

    fn begin(&mut self, now: Instant, from: Source, cookie: &Cookie, packet: &Packet<'_>, whole: Option<&Bytes>) {
        let mut config = self.accepted.clone();
        if cookie.features.unsummed_to_us != config.extensions.error_detection.is_some() {
            // The settings have changed since our INIT ACK; what that said holds.
            let method = cookie.features.unsummed_to_us.then_some(ANNOUNCED_AS_OURS);
            Arc::make_mut(&mut config).extensions.error_detection = method;
        }
        let Ok(policies) = Policies::of_profile(&config) else { return };
        let identity = identity(cookie, from);
        let a = Association::new(config, policies, identity, self.entropy.as_mut(), State::Established);
        let mut slot = Slot::with(a);
        slot.association.accept(now, from, cookie);
        if !slot.association.admits_cookie(packet) {
            return;
        }
        let id = self.insert(slot);
        self.hand_over(now, id, from, packet, whole);
    }

    /// The peer has lost its memory and begins anew: so do we (§5.2.4 A).
    fn restart(
        &mut self,
        now: Instant,
        id: AssocId,
        from: Source,
        cookie: &Cookie,
        packet: &Packet<'_>,
        whole: Option<&Bytes>,
    ) {
        let Some(slot) = self.slots.work_on(&id) else { return };
        if slot.association.refuses_restart() {
            return self.wake(id);
        }
        if !self.config.restart_keeps_id {
            slot.association.close(CloseReason::PeerRestarted);
            self.wake(id);
            return self.begin(now, from, cookie, packet, whole);
        }
        let Some(mut slot) = self.slots.take(&id) else { return };
        self.by_tag.remove(self.keys.of_tag(slot.association.handshake.local_tag()), id.place());
        slot.hashes_of = None;
        slot.association = slot.association.restarted(now, identity(cookie, from), cookie, self.entropy.as_mut());
        self.slots.put(&id, slot);
        self.note_tag(cookie.local_tag, id);
        self.hand_over(now, id, from, packet, whole);
    }
}

fn identity(cookie: &Cookie, from: Source) -> Identity {
    Identity {
        local_port: cookie.local_port,
        peer_port: cookie.peer_port,
        local_tag: cookie.local_tag,
        peer_tag: cookie.peer_tag,
        local_initial: cookie.local_initial_tsn,
        local_auth: AuthParams::with_random(cookie.local_random),
        // Where the INIT ACK went is confirmed (§5.4), but for the port, which a NAT may have changed since.
        local: cookie.local,
        remote: if cookie.remote.ip() == from.remote.ip() { from.remote } else { cookie.remote },
    }
}

impl super::stateless::Replies {
    /// The cookie was ours but is too old (§5.1.5).
    fn stale_cookie(&mut self, from: Source, back: CommonHeader, by: Duration) {
        let staleness_us = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        self.error(from, back, &[Cause::StaleCookie { staleness_us }]);
    }
}
