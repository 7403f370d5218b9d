//! Setup chunks for an association that exists: the other side calls at the same time, repeats itself, or has lost
//! its memory and begins anew (§5.2).

use crate::association::control::{What, causes};
use crate::association::handshake::announced::Announced;
use crate::association::receive::Source;
use crate::association::{Association, Identity, Policies, State};
use crate::cookie::Cookie;
use crate::event::Event;
use crate::path::{LocalId, Origin};
use anabranch_base::{Entropy, Instant, PathId};
use anabranch_wire::{Cause, InitFields};
use std::net::{IpAddr, SocketAddr};

/// How an INIT for this association is answered; it changes nothing by itself.
pub(crate) enum InitAnswer {
    /// With what our own INIT said (§5.2.1).
    SameTag { ties: (u32, u32) },
    /// With a new tag (§5.2.2).
    NewTag { ties: (u32, u32) },
    /// Not at all: it would add these addresses.
    NewAddresses(Vec<IpAddr>),
    /// Not at all.
    None,
}

/// What a cookie means for this association (§5.2.4, table 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CookieAction {
    /// A: the peer restarted.
    Restart,
    /// B: both sides began at the same time.
    Collision,
    /// D: the peer did not get our COOKIE ACK, or both sides began at the same time.
    Again,
    /// C, and whatever is not in the table.
    Drop,
}

impl Association {
    pub(crate) fn answer_to_init(&mut self, from: Source, listed: &[IpAddr]) -> InitAnswer {
        match self.handshake.state {
            State::CookieWait => return InitAnswer::SameTag { ties: (0, 0) },
            State::ShutdownAckSent => {
                let path = self.path_to(from);
                self.control.push(path, What::ShutdownAck);
                return InitAnswer::None;
            }
            _ => {}
        }
        let known = |ip: &IpAddr| self.paths.iter().any(|p| !p.access.is_disowned() && p.remote().ip() == *ip);
        let source = from.remote.ip();
        let added: Vec<IpAddr> =
            std::iter::once(source).chain(listed.iter().copied()).filter(|ip| !known(ip)).collect();
        if !added.is_empty() {
            return InitAnswer::NewAddresses(added);
        }
        match self.handshake.state {
            State::CookieEchoed { .. } => InitAnswer::SameTag { ties: self.handshake.ties },
            _ => InitAnswer::NewTag { ties: self.handshake.ties },
        }
    }

    pub(crate) fn judge_cookie(&self, c: &Cookie) -> CookieAction {
        let local = c.local_tag == self.handshake.local_tag;
        // In COOKIE-WAIT the peer's tag is not known yet and matches nothing.
        let peer = c.peer_tag == self.handshake.peer_tag;
        match (local, peer) {
            (true, true) => CookieAction::Again,
            (true, false) => CookieAction::Collision,
            (false, false) if (c.local_tie, c.peer_tie) == self.handshake.ties => CookieAction::Restart,
            _ => CookieAction::Drop,
        }
    }

    /// B: the peer sent its INIT with another tag than the one we know, or than none (§5.2.4 B).
    pub(crate) fn on_collision(&mut self, now: Instant, from: Source, cookie: &Cookie) {
        if !self.handshake.state.is_connected() {
            self.control.clear();
            self.begin_on(from);
            self.adopt_cookie(cookie);
            self.establish(now);
        } else {
            self.handshake.peer_tag = cookie.peer_tag;
        }
        let path = self.path_to(from);
        self.control.push(path, What::CookieAck);
    }

    /// D: our COOKIE ACK was lost, or both sides began at once and the tags agree.
    pub(crate) fn on_cookie_again(&mut self, now: Instant, from: Source) {
        if matches!(self.handshake.state, State::CookieEchoed { .. }) {
            self.control.clear();
            self.establish(now);
        }
        if self.handshake.state.is_connected() {
            let path = self.path_to(from);
            self.control.push(path, What::CookieAck);
        }
    }

    /// The peer restarts while we wait for the end of what it forgot: no new association before that (§5.2.4 A).
    pub(crate) fn refuses_restart(&mut self) -> bool {
        if !matches!(self.handshake.state, State::ShutdownAckSent) {
            return false;
        }
        let path = self.handshake.path;
        self.begin_answers();
        self.control.push(path, What::ShutdownAck);
        self.control.push(path, What::Error(causes(&[Cause::CookieWhileShuttingDown])));
        true
    }

    /// A: as if the peer had sent ABORT and begun anew, but under the same id, and the user learns of a restart.
    /// Messages that wait to be read stay; what was on its way to the peer is lost with the peer's memory. The user
    /// knows the association by then: cookies with Tie-Tags and a new tag are made for connected ones only.
    pub(crate) fn restarted(
        mut self,
        now: Instant,
        identity: Identity,
        cookie: &Cookie,
        entropy: &mut dyn Entropy,
    ) -> Self {
        let ours: Vec<(LocalId, SocketAddr)> = self
            .paths
            .iter()
            .filter(|p| p.origin() == Origin::AddedByUs && !p.access.is_removed())
            .map(|p| (p.local(), p.remote()))
            .collect();
        let down: Vec<LocalId> = self.paths.iter().filter(|p| !p.access.is_up()).map(|p| p.local()).collect();
        let anew = match self.policies.are_users_own() {
            true => None,
            false => Policies::of_profile(&self.config).ok(),
        };
        let policies = anew.unwrap_or_else(|| self.policies.begin_anew(&self.config.timers));
        let mut a = Association::new(self.config, policies, identity, entropy, State::Established);
        a.stats = self.stats;
        a.events = core::mem::take(&mut self.events);
        a.events.push_back(Event::Restarted);
        a.sender.keep_account(&mut self.sender);
        a.adopt_cookie(cookie);
        a.receiver.keep_ready(&mut self.receiver);
        for (local, remote) in ours {
            if a.paths.iter().all(|p| (p.local(), p.remote()) != (local, remote))
                && let Some(path) = a.new_path(local, remote, Origin::AddedByUs)
            {
                a.events.push_back(Event::PathAdded { path });
            }
        }
        for p in a.paths.iter_mut().filter(|p| down.contains(&p.local())) {
            p.access.go_down();
        }
        a.control.push(a.handshake.path, What::CookieAck);
        a.open(now);
        a
    }

    /// Everything the peer said comes from the cookie.
    pub(in crate::association) fn adopt_cookie(&mut self, cookie: &Cookie) {
        let f = InitFields {
            tag: cookie.peer_tag,
            a_rwnd: cookie.peer_rwnd,
            outbound_streams: cookie.inbound_streams,
            inbound_streams: cookie.outbound_streams,
            initial_tsn: cookie.peer_initial_tsn,
        };
        self.adopt_peer(f, &Announced::of_cookie(cookie), &cookie.listed);
    }

    /// The path for an answer to `from`, when it may be sent there; else one that works.
    fn path_to(&self, from: Source) -> PathId {
        let here = |p: &&crate::path::Path| p.local() == from.local && p.remote() == from.remote && p.state().usable();
        let found = self.paths.iter().find(here).map(|p| p.id());
        found.or_else(|| self.paths.usable().iter().next()).unwrap_or(self.handshake.path)
    }
}
