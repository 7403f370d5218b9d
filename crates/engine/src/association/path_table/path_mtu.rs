//! Path MTU discovery (RFC 9260 §7.3, RFC 8899): probes leave, what they find decides how messages are cut.

use super::list::Shown;
use crate::association::Association;
use crate::association::control::What;
use crate::event::Event;
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_wire::{Pad, kind};

impl Association {
    /// Bytes of a message that leaves in one packet, whatever path it takes now.
    pub fn max_payload(&self) -> usize {
        self.paths.mtu as usize
    }

    /// Messages are cut for the smallest packet of all paths; where discovery looks for it, of those in use.
    pub(in crate::association) fn settle_mtu(&mut self) {
        let searches = self.config.mtu.discovery.is_some();
        if searches {
            self.name_small_paths();
        }
        let smallest = self.paths.smallest_packet(searches);
        let mtu = (crate::AssocConfig::payload_of(smallest) - self.paths.data_extra - self.paths.spare) as u64;
        if searches && mtu == self.paths.mtu {
            return;
        }
        self.paths.set_mtu(mtu);
        // A window has room for a packet, whatever that is by now.
        self.paths.iter_mut().for_each(|p| p.congestion.widen(mtu));
        self.paths.note_initial_window(self.config.sending.initial_window);
    }

    /// Tells of paths that carry small packets only, and of those that do no longer.
    fn name_small_paths(&mut self) {
        let whole = self.config.mtu.packet_size & !3;
        for p in self.paths.iter_mut() {
            if let Some(size) = p.mtu.news(whole) {
                self.events.push_back(Event::PacketSize { path: p.id(), size });
            }
        }
    }

    /// UDP port to which packets for `path` leave from now on, as RFC 6951 §6.1 lets the user set it; 0 sends them right
    /// on IP, for drivers that can. A packet of the peer that comes from another port sets it anew. False when there is
    /// no such path.
    pub fn set_encapsulation_port(&mut self, path: PathId, port: u16) -> bool {
        let known = path.index() < self.paths.len();
        if known {
            self.encapsulate(path, port);
        }
        known
    }

    /// Packets of the path leave for this UDP port, 0 is none. The header takes what a packet had for itself (RFC 6951
    /// §5.6).
    pub(in crate::association) fn encapsulate(&mut self, path: PathId, port: u16) {
        let most = self.config.mtu.packet_size;
        let Some(p) = self.paths.list.get_mut(path.index()) else { return };
        let before = p.remote().port();
        if before == port {
            return;
        }
        p.follow_port(port);
        self.paths.addresses_changed += 1;
        if before == 0 || port == 0 {
            p.mtu.encapsulate(before == 0, most);
            self.settle_mtu();
        }
    }

    /// A path came into use, or left it.
    pub(in crate::association) fn note_connectivity(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        let state = p.state();
        let Some(d) = p.mtu.discovery_mut() else { return };
        match state {
            PathState::Active => d.connected(now),
            _ => d.disconnected(p.flight.has_above(self.config.mtu.packet_size)),
        }
        self.settle_mtu();
    }

    pub(in crate::association) fn on_path_mtu_timer(&mut self, now: Instant, id: PathId) {
        let timeout = self.views.rto(&self.paths, &self.policies, id);
        let Some(p) = self.paths.list.get_mut(id.index()) else { return };
        let Some(d) = p.mtu.discovery_mut() else { return };
        let size = d.due(now);
        if let Some(size) = size.filter(|_| p.access.is_known()) {
            let nonce = self.paths.nonces.next();
            d.sent(now, nonce, size, timeout);
            self.control.push(id, What::PathProbe { nonce, size });
        }
        self.settle_mtu();
    }

    /// Is this HEARTBEAT ACK the answer to a probe of the path's size?
    pub(in crate::association) fn probe_answered(&mut self, now: Instant, id: PathId, nonce: u64) -> bool {
        let discovery = self.paths.get_mut(id.index()).and_then(|p| p.mtu.discovery_mut());
        let found = discovery.is_some_and(|d| d.answered(now, nonce));
        if found {
            self.settle_mtu();
            let mtu = self.paths.mtu;
            self.paths.iter_mut().for_each(|p| p.congestion.widen(mtu));
            self.path_answered(now, id);
        }
        found
    }

    /// Packets were lost, or a small one arrived: do those of a size vanish?
    pub(in crate::association) fn look_for_black_holes(&mut self, now: Instant) {
        if self.config.mtu.discovery.is_none() {
            return;
        }
        let full = self.sender.peer_is_full(self.paths.mtu());
        for i in 0..self.paths.len() {
            let Some(p) = self.paths.get_mut(i) else { continue };
            let (id, round_trip) = (p.id(), p.rtt.srtt());
            let Some(d) = p.mtu.discovery_mut() else { continue };
            if full {
                d.forget_lost();
            } else if d.black_hole(now, round_trip) {
                tracing::debug!(path = ?id, size = d.size(), "larger packets vanish");
                self.settle_mtu();
                // What handles a SACK believes that its views are those of this moment.
            } else if d.wants_small(round_trip) {
                self.send_heartbeat(now, id);
            }
        }
    }

    /// Fills a probe up to `size` bytes, AUTH included.
    pub(in crate::association) fn fill_probe(&self, size: usize, out: &mut Transmit) {
        let signed = [kind::HEARTBEAT, kind::PAD].iter().any(|k| self.authenticated_by_us().contains(k));
        let auth = if signed && self.handshake.auth().signs_packets() { self.handshake.auth().room() } else { 0 };
        if let Some(pad) = Pad::filling(size.saturating_sub(out.packet.len() + auth)) {
            out.packet.push(&pad);
        }
        out.probe = true;
    }

    /// A packet that is complete leaves: may IP divide it, and is its fate news about the path's size?
    #[inline]
    pub(in crate::association) fn note_size(&mut self, path: PathId, out: &mut Transmit) {
        let len = out.packet.len();
        out.may_divide = !out.probe && len > self.paths.whole_packet(path);
        if out.may_divide || out.probe {
            return;
        }
        let full = self.sender.peer_is_full(self.paths.mtu());
        let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) else { return };
        let carries_data = || out.packet.chunk_kinds().iter().any(|k| matches!(*k, kind::DATA | kind::I_DATA));
        // What a peer without room drops tells nothing of the path.
        if p.mtu.discovery().is_some() && !full && carries_data() {
            p.flight.note_size(len);
        }
    }
}
