//! Control chunks waiting to leave, and how they become packets.

use crate::association::Association;
use crate::association::receive::Source;
use crate::association::transmit::start_packet;
use crate::path::{Origin, PendingHeartbeat};
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_wire::{
    AbortOut, AsconfAckOut, AsconfOut, COMMON_HEADER_LEN, Cause, CookieAck, CookieEcho, Cwr, Encode, ErrorOut,
    Heartbeat, HeartbeatAck, InitOut, PacketDrop, ReConfigOut, Shutdown, ShutdownAck, ShutdownComplete,
};
use bytes::Bytes;
use std::net::IpAddr;
use std::sync::Arc;

/// A control chunk for a path.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub path: PathId,
    pub what: What,
    /// Leaves for this address instead of the path's.
    pub to: Option<Source>,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Init,
    /// First in its packet; an ERROR about the INIT ACK and the probe of an unconfirmed address may follow.
    CookieEcho(Arc<[u8]>),
    CookieAck,
    Heartbeat(u64),
    /// A HEARTBEAT of `size` bytes (RFC 8899 §4.1).
    PathProbe {
        nonce: u64,
        size: usize,
    },
    /// The window is cut: the highest TSN sent before.
    Cwr(Tsn),
    /// The parameters of a HEARTBEAT, to be returned unchanged.
    HeartbeatAck(Bytes),
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Abort(Bytes),
    /// To a peer that has no tag.
    AbortReflected(Bytes),
    Error(Bytes),
    Asconf {
        serial: u32,
        address: IpAddr,
        params: Bytes,
    },
    AsconfAck {
        serial: u32,
        params: Bytes,
    },
    /// The beginning of a packet that arrived damaged, and the length of all of it.
    Damage {
        shown: Bytes,
        whole_len: u16,
    },
    /// Parameters of RE-CONFIG; is it an answer?
    ReConfig {
        params: Bytes,
        answer: bool,
    },
}

impl What {
    /// Stands alone in its packet: by rule (RFC 9260 §5.1), because nothing may follow it, or because AUTH covers it.
    fn alone(&self) -> bool {
        use What::{CookieAck, Cwr, Error, Heartbeat, HeartbeatAck, ReConfig, Shutdown, ShutdownAck};
        !matches!(
            self,
            CookieAck | Cwr(_) | HeartbeatAck(_) | Error(_) | Heartbeat(_) | Shutdown | ShutdownAck | ReConfig { .. }
        )
    }
    /// The peer's own chunk asks for it, so that the peer could ask for any number.
    fn is_answer(&self) -> bool {
        matches!(self, What::HeartbeatAck(_) | What::Cwr(_) | What::Error(_) | What::ReConfig { answer: true, .. })
    }
    /// Bytes in a packet, of chunks that may share one and of answers.
    fn len(&self) -> usize {
        match self {
            What::HeartbeatAck(b) | What::Error(b) | What::ReConfig { params: b, .. } => {
                4 + b.len().next_multiple_of(4)
            }
            _ => HEARTBEAT_LEN,
        }
    }
    /// Saying it twice says no more.
    fn repeats(&self, other: &What) -> bool {
        use What::{CookieAck, Cwr, Shutdown, ShutdownAck};
        matches!(
            (self, other),
            (CookieAck, CookieAck) | (Cwr(_), Cwr(_)) | (Shutdown, Shutdown) | (ShutdownAck, ShutdownAck)
        )
    }
}

/// Our HEARTBEAT: chunk and parameter header, path and nonce, padding.
const HEARTBEAT_LEN: usize = 20;

fn heartbeat_info(path: PathId, nonce: u64) -> [u8; 9] {
    let mut info = [0; 9];
    info[0] = path.0;
    info[1..].copy_from_slice(&nonce.to_be_bytes());
    info
}

/// Encoded error causes.
pub(in crate::association) fn causes(c: &[Cause<'_>]) -> Bytes {
    let mut out = Vec::new();
    for c in c {
        c.encode(&mut out);
    }
    Bytes::from(out)
}

/// A peer that asks faster than we can answer loses its answers, not our memory.
pub(in crate::association) const MAX_CONTROL: usize = 64;

impl Association {
    /// Queues a control chunk. ABORT and the shutdown family always find room.
    pub(in crate::association) fn push_control(&mut self, path: PathId, what: What) {
        if self.phase() == crate::association::Phase::Closed {
            return;
        }
        if what.is_answer() && !self.answer_fits(&what) {
            return;
        }
        if self.control.iter().any(|c| c.path == path && c.what.repeats(&what)) {
            return;
        }
        self.control.push_back(Control { path, what, to: None });
    }

    /// Queues an answer to an address that is no path.
    pub(in crate::association) fn push_answer_to(&mut self, to: Source, what: What) {
        if self.control.len() < MAX_CONTROL {
            self.control.push_back(Control { path: PathId(0), what, to: Some(to) });
        }
    }

    /// Is there room for an answer in the queue, and in the one packet that answers the packet at hand (§12.4)?
    fn answer_fits(&mut self, what: &What) -> bool {
        if self.control.len() >= MAX_CONTROL {
            self.answer_room = 0;
        }
        let left = self.answer_room.checked_sub(what.len());
        self.answer_room = left.unwrap_or(self.answer_room);
        left.is_some()
    }

    /// A packet came: its answers have one packet's room.
    pub(in crate::association) fn begin_answers(&mut self) {
        self.asconf.one_answered = false;
        if let Some(reconfig) = self.reconfig.held() {
            reconfig.one_answered = false;
        }
        self.answer_room = self.config.packet_size - COMMON_HEADER_LEN - self.auth.room();
    }

    /// Builds one packet from waiting control chunks.
    #[inline]
    pub(in crate::association) fn transmit_control(&mut self, now: Instant, out: &mut Transmit) -> bool {
        !self.control.is_empty() && self.transmit_waiting_control(now, out)
    }

    #[inline(never)]
    fn transmit_waiting_control(&mut self, now: Instant, out: &mut Transmit) -> bool {
        while let Some(c) = self.control.pop_front() {
            if self.paths.get(c.path.index()).is_none_or(|p| p.interface_down) {
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
                // Seldom needed, and larger than all else that an idle association could do without.
                self.control = std::collections::VecDeque::new();
            }
            return true;
        }
        false
    }

    fn bundle_controls(&mut self, path: PathId, first: &What, out: &mut Transmit) {
        while let Some(next) = self.control.front() {
            if next.path != path || next.what.alone() || out.packet.len() + next.what.len() > self.packet_size(path) {
                return;
            }
            // A pair probes the path twice: two packets.
            if matches!((&next.what, first), (What::Heartbeat(_), What::Heartbeat(_))) {
                return;
            }
            if let Some(c) = self.control.pop_front() {
                self.encode_control(&c, out);
            }
        }
    }

    /// The tag of packets that do not carry the peer's (§8.5.1).
    fn other_tag(&self, what: &What) -> Option<u32> {
        match what {
            What::Init => Some(0),
            What::AbortReflected(_) => Some(self.local_tag),
            _ => None,
        }
    }

    /// COOKIE ECHO, what the INIT ACK had that we do not know (§3.2.2), and a probe where the address is not
    /// confirmed (§5.4).
    fn encode_cookie_echo(&mut self, path: PathId, cookie: &[u8], out: &mut Transmit) {
        out.packet.push(&CookieEcho { cookie });
        let mut room = self.packet_size(path).saturating_sub(out.packet.len());
        let timeout = self.rto(path);
        if let Some(p) = self.paths.get_mut(path.index()).filter(|p| p.origin == Origin::Listed)
            && room >= HEARTBEAT_LEN
        {
            let nonce = self.nonces.next();
            let sent_at = self.control_sent_at;
            p.heartbeat = Some(PendingHeartbeat { nonce, sent_at, deadline: sent_at + timeout });
            out.packet.push(&Heartbeat::new(&heartbeat_info(path, nonce)));
            room -= HEARTBEAT_LEN;
        }
        if !self.echo_report.is_empty() && room >= 4 + self.echo_report.len() {
            out.packet.push(&ErrorOut { causes: &self.echo_report });
            self.echo_report = Box::default();
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
            What::Shutdown => p.push(&Shutdown { cum_tsn: self.tracker.cum() }),
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
