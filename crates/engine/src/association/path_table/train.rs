//! What a path carries, before anything has to be carried: a train of padded HEARTBEATs.
//!
//! One round trip after a path came into use its rate is known, which slow start needs many for. Only where the window
//! asks for it ([`anabranch_policy::window::Window::wants_train`]); padding is RFC 4820's, which peers that do not know it
//! skip. What the answers say is in `path/train.rs`.

use crate::association::Association;
use crate::association::control::What;
use crate::path::train::{LENGTH, TrainAnswer, TrainRate};
use anabranch_base::{Instant, PathId, Rate};
use anabranch_policy::view::PathState;

impl Association {
    /// Has every path shown what it carries, as far as its window asks for that? A path that is not confirmed yet, or
    /// whose train is under way, has not. What is sent before that may find less room than there is. Whoever asks means to
    /// send: trains leave if none did.
    pub fn warm_up(&mut self, now: Instant) -> bool {
        self.means_to_send(now);
        let answered = |p: &crate::path::Path| {
            let known = !p.probing.awaits_train() || !p.congestion.wants_train();
            !p.access.is_up() || p.health.errors() > 0 || p.state() != PathState::Unconfirmed && known
        };
        self.handshake.state().is_connected() && self.paths.iter().all(answered)
    }

    /// The user sends, or is about to, more than a little now and then. A side that only receives never sends trains: they
    /// would come in the way of the answers to the peer's, which would seem to carry more than they do.
    #[inline]
    pub(in crate::association) fn means_to_send(&mut self, now: Instant) {
        if self.sender.note_sends() && self.handshake.state().is_connected() {
            let used = self.paths.iter().filter(|p| p.state() == PathState::Active).map(|p| p.id());
            used.collect::<Vec<_>>().into_iter().for_each(|id| self.send_train(now, id));
        }
    }

    /// The path came into use: sends a train on it, if its window wants one.
    pub(in crate::association) fn send_train(&mut self, now: Instant, id: PathId) {
        if !self.sender.sends() {
            return;
        }
        let wanted = |p: &&crate::path::Path| p.congestion.wants_train() && p.access.is_open();
        if self.paths.get(id.index()).filter(wanted).is_none() {
            return;
        }
        let nonces = core::array::from_fn(|_| self.paths.nonces.next());
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.probing.ask_train(now, nonces);
            p.counters.heartbeats_sent += LENGTH as u64;
        }
        let size = self.paths.packet_size(id);
        for nonce in nonces {
            self.control.push(id, What::PathProbe { nonce, size });
        }
    }

    /// A HEARTBEAT of the peer came by this path: maybe one of a train of its own.
    #[inline]
    pub(in crate::association) fn note_heartbeat(&mut self, id: PathId) {
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.probing.note_heartbeat();
        }
    }

    /// Is this HEARTBEAT ACK the answer to one of a train?
    pub(in crate::association) fn train_answered(&mut self, now: Instant, id: PathId, nonce: u64) -> bool {
        let payload = self.paths.mtu;
        let Some(p) = self.paths.get_mut(id.index()) else { return false };
        let Some(answer) = p.train_answered(now, nonce, payload) else { return false };
        if let TrainAnswer::Rate(rate) = answer {
            self.begin_with(now, id, rate);
        }
        self.path_answered(now, id);
        true
    }

    /// The path begins with the rate that its train showed, unless it begins with no less anyway.
    fn begin_with(&mut self, now: Instant, id: PathId, rate: TrainRate) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        let rtt = p.rtt.min_rtt();
        if !p.capacity.is_news(rate, Rate::of(p.congestion.cwnd(), p.rtt.srtt())) {
            return;
        }
        p.capacity.guess(now, rate, rtt);
        let v = self.views.path(&mut self.paths, &self.policies, id);
        if let (Some(v), Some(p)) = (v, self.paths.get_mut(id.index())) {
            p.congestion.learn(now, v);
        }
        self.opportunity();
    }
}
