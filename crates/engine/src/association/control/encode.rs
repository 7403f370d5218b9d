//! Packets of control chunks.

use crate::association::Association;
use crate::association::transmit::start_packet;
use crate::path::{Origin, PendingHeartbeat};
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId};
use anabranch_wire::{
    AbortOut, AsconfAckOut, AsconfOut, CookieAck, CookieEcho, Cwr, ErrorOut, Heartbeat, HeartbeatAck, InitOut,
    PacketDrop, ReConfigOut, Shutdown, ShutdownAck, ShutdownComplete,
};

use super::{Control, HEARTBEAT_LEN, What};

fn heartbeat_info(path: PathId, nonce: u64) -> [u8; 9] {
    let mut info = [0; 9];
    info[0] = path.0;
    info[1..].copy_from_slice(&nonce.to_be_bytes());
    info
}

impl Association {
    /// Builds one packet from waiting control chunks.
    #[inline]
    pub(in crate::association) fn transmit_control(&mut self, now: Instant, out: &mut Transmit) -> bool {
        !self.control.is_empty() && self.transmit_waiting_control(now, out)
    }

    #[inline(never)]
    fn transmit_waiting_control(&mut self, now: Instant, out: &mut Transmit) -> bool {
        while let Some(c) = self.control.queue.pop_front() {
            if self.paths.get(c.path.index()).is_none_or(|p| !p.access.is_up()) {
                continue;
            }
            let alone = c.what.alone();
            start_packet(self, c.path, out);
            if let Some(to) = c.to {
                (out.local, out.remote, out.path) = (to.local, to.remote, None);
            }
            if let Some(vtag) = self.other_tag(&c.what) {
                out.packet.start(anabranch_wire::CommonHeader { vtag, ..out.packet.header() });
            }
            self.encode_control(&c, out);
            if !alone {
                self.bundle_controls(c.path, &c.what, out);
                self.bundle_sack(now, c.path, out, 0);
            }
            self.sent_packet(now, c.path, out);
            if self.control.is_empty() {
                // LazyBox needed, and larger than all else that an idle association could do without.
                self.control.queue = std::collections::VecDeque::new();
            }
            return true;
        }
        false
    }

    fn bundle_controls(&mut self, path: PathId, first: &What, out: &mut Transmit) {
        while let Some(next) = self.control.queue.front() {
            if next.path != path
                || next.what.alone()
                || out.packet.len() + next.what.len() > self.paths.packet_size(path)
            {
                return;
            }
            // A pair probes the path twice: two packets.
            if matches!((&next.what, first), (What::Heartbeat(_), What::Heartbeat(_))) {
                return;
            }
            if let Some(c) = self.control.queue.pop_front() {
                self.encode_control(&c, out);
            }
        }
    }

    /// The tag of packets that do not carry the peer's (§8.5.1).
    fn other_tag(&self, what: &What) -> Option<u32> {
        match what {
            What::Init => Some(0),
            What::AbortReflected(_) => Some(self.handshake.local_tag()),
            _ => None,
        }
    }

    /// COOKIE ECHO, what the INIT ACK had that we do not know (§3.2.2), and a probe where the address is not
    /// confirmed (§5.4).
    fn encode_cookie_echo(&mut self, path: PathId, cookie: &[u8], out: &mut Transmit) {
        out.packet.push(&CookieEcho { cookie });
        let mut room = self.paths.packet_size(path).saturating_sub(out.packet.len());
        let timeout = self.views.rto(&self.paths, &self.policies, path);
        let listed = self.paths.get(path.index()).is_some_and(|p| p.origin() == Origin::Listed);
        let nonce = if listed && room >= HEARTBEAT_LEN { Some(self.paths.next_nonce()) } else { None };
        if let (Some(nonce), Some(p)) = (nonce, self.paths.get_mut(path.index())) {
            let sent_at = self.handshake.sent_at();
            p.probing.ask_beside(PendingHeartbeat { nonce, sent_at, deadline: sent_at + timeout });
            out.packet.push(&Heartbeat::new(&heartbeat_info(path, nonce)));
            room -= HEARTBEAT_LEN;
        }
        if let Some(causes) = self.handshake.take_echo_report(room) {
            out.packet.push(&ErrorOut { causes: &causes });
        }
    }

    fn encode_control(&mut self, c: &Control, out: &mut Transmit) {
        let p = &mut out.packet;
        match &c.what {
            What::Init => {
                let mut params = Vec::with_capacity(128);
                self.handshake_params(&mut params);
                p.push(&InitOut { ack: false, fields: self.init_fields(), params: &params });
            }
            What::CookieEcho(cookie) => self.encode_cookie_echo(c.path, cookie, out),
            What::CookieAck => p.push(&CookieAck),
            What::Heartbeat(nonce) => {
                p.push(&Heartbeat::new(&heartbeat_info(c.path, *nonce)));
            }
            What::PathProbe { nonce, size } => {
                p.push(&Heartbeat::new(&heartbeat_info(c.path, *nonce)));
                self.fill_probe(*size, out);
            }
            What::Cwr(tsn) => p.push(&Cwr { flags: 0, tsn: *tsn }),
            What::HeartbeatAck(raw) => p.push(&HeartbeatAck { info: &[], params_raw: raw }),
            What::Shutdown => p.push(&Shutdown { cum_tsn: self.receiver.cum() }),
            What::ShutdownAck => p.push(&ShutdownAck),
            What::ShutdownComplete => p.push(&ShutdownComplete { tag_reflected: false }),
            What::AbortReflected(causes) => p.push(&AbortOut { tag_reflected: true, causes }),
            What::Abort(causes) => p.push(&AbortOut { tag_reflected: false, causes }),
            What::Error(causes) => p.push(&ErrorOut { causes }),
            What::Asconf { serial, address, params } => {
                let chunk = AsconfOut { serial: *serial, address: *address, params };
                self.push_authenticated(&chunk, out);
            }
            What::Damage { shown, whole_len } => p.push(&PacketDrop::of_damaged(shown, *whole_len)),
            What::ReConfig { params, .. } => p.push(&ReConfigOut { params }),
            What::AsconfAck { serial, params } => {
                self.push_authenticated(&AsconfAckOut { serial: *serial, params }, out);
            }
        }
    }
}
