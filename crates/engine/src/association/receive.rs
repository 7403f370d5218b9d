//! A packet for this association: path, authentication, then chunk by chunk.

use super::Association;
use crate::association::control::{What, causes};
use crate::association::handshake::announced::Announced;
use crate::association::path_table::list::Shown;
use crate::association::receiver::data_in::Arrival;
use crate::path::{LocalId, Origin};
use anabranch_base::{Instant, PathId};
use anabranch_wire::{
    COMMON_HEADER_LEN, Cause, Chunk, Encode, Packet, Params, RawChunk, UnknownAction, kind, parameter_kind,
};
use bytes::Bytes;
use std::net::SocketAddr;

/// Where a packet came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub local: LocalId,
    pub remote: SocketAddr,
}

/// INIT, INIT ACK and SHUTDOWN COMPLETE share a packet with nothing (RFC 9260 §6.10).
pub(crate) fn is_alone(raw: &RawChunk<'_>, packet: &Packet<'_>) -> bool {
    COMMON_HEADER_LEN + raw.whole.len() == packet.len()
}

/// Bytes of an ERROR that reports a chunk of nothing but its header.
const SMALLEST_REPORT: usize = 12;

/// Go on with the next chunk, or drop the rest of the packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

impl Association {
    /// A packet came: its answers have one packet's room (§12.4).
    pub(super) fn begin_answers(&mut self) {
        self.addresses.begin_packet();
        if let Some(reset) = self.stream_reset.used() {
            reset.begin_packet();
        }
        self.control.begin_answers(self.config.mtu.packet_size - COMMON_HEADER_LEN - self.handshake.auth().room());
    }

    /// Handles a packet whose verification tag was checked. `whole` is the datagram it was read from, if there was one.
    pub(crate) fn handle_packet(&mut self, now: Instant, from: Source, packet: &Packet<'_>, whole: Option<&Bytes>) {
        let path = self.source_path(now, from, packet);
        if let Some(p) = path.and_then(|p| self.paths.get_for(p.index(), Shown::Nothing)) {
            p.counters.packets_received += 1;
            p.counters.bytes_received += packet.len() as u64;
            p.health.receive(now);
        }
        self.sender.end_user_send();
        self.opportunity();
        self.begin_answers();
        let mut seen = Arrival::default();
        self.scratch.stamp = None;
        let mut authenticated = false;
        for raw in packet.chunks() {
            let Ok(raw) = raw else { break };
            self.stats.control_received += u64::from(!matches!(raw.kind, kind::DATA | kind::I_DATA));
            let next = match (raw.kind, path) {
                (kind::AUTH, _) => {
                    // One per packet (RFC 4895 §6.2): each costs a MAC over all that follows.
                    authenticated = !authenticated && self.check_auth(path, &raw);
                    if authenticated { Next::Continue } else { Next::Stop }
                }
                // Silently dropped (RFC 4895 §6.3), and behind an address change all that follows (RFC 5061 §5.2 D5).
                (kind::ASCONF | kind::ASCONF_ACK, _) if !authenticated => Next::Stop,
                (k, _) if self.must_be_authenticated(k) && !authenticated => Next::Continue,
                (kind::DATA, Some(path)) => self.on_data_chunk(now, path, &raw, whole, &mut seen),
                (kind::I_DATA, Some(path)) if self.peer.interleaving => {
                    self.on_i_data_chunk(now, path, &raw, whole, &mut seen)
                }
                (kind::SACK, Some(path)) => self.on_sack_chunk(now, path, &raw),
                (kind::TIME_STAMP, Some(_)) if self.peer.time_stamps => self.on_time_stamp(&raw),
                (kind::PARITY | kind::REPAIRED, Some(_)) if self.peer.parity => {
                    self.on_parity_chunk(now, &raw, &mut seen)
                }
                _ => self.on_chunk(now, from, path, &raw, is_alone(&raw, packet)),
            };
            if next == Next::Stop || self.phase() == super::Phase::Closed {
                break;
            }
        }
        if matches!(self.handshake.state(), super::State::ShutdownSent) {
            self.peer_is_there(now);
        }
        if self.acknowledger.take_packet_marked()
            && let (Some(tsn), Some(path)) = (seen.lowest, path)
        {
            if let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) {
                p.counters.marked_received += 1;
            }
            if self.peer.ecn {
                self.acknowledger.note_mark(tsn);
            }
        }
        if let (true, Some(path)) = (seen.any, path) {
            self.after_packet_with_data(now, path, &seen);
        }
        self.couple_changed_paths(now);
    }

    /// The path a packet came by. A port that changed under the same address is followed, unless several paths share
    /// that address or the packet asks to add one (RFC 6951 §5.4).
    fn source_path(&mut self, now: Instant, from: Source, packet: &Packet<'_>) -> Option<PathId> {
        let exact = self.paths.iter().find(|p| p.local() == from.local && p.remote() == from.remote);
        if let Some(p) = exact {
            // What the peer has deleted is no address of it any more (RFC 5061 §5.3 F13).
            return Some(p.id()).filter(|_| p.access.is_known() || p.origin() != Origin::AddedByPeer);
        }
        self.moved_path(now, from, packet)
    }

    /// The one path from this address whose port may have changed.
    #[cold]
    fn moved_path(&mut self, now: Instant, from: Source, packet: &Packet<'_>) -> Option<PathId> {
        let adds = packet.chunks().flatten().any(|c| matches!(c.kind, kind::AUTH | kind::ASCONF));
        let mut same = self.paths.iter_mut().filter(|p| p.local() == from.local && p.remote().ip() == from.remote.ip());
        let (Some(p), None) = (same.next(), same.next()) else { return None };
        if adds {
            return None;
        }
        tracing::debug!(path = ?p.id(), from = %p.remote(), to = %from.remote, "the peer's port changed");
        let id = p.id();
        drop(same);
        self.encapsulate(id, from.remote.port());
        self.readd_path(now, id, false);
        Some(id)
    }

    fn on_data_chunk(
        &mut self,
        now: Instant,
        path: PathId,
        raw: &RawChunk<'_>,
        whole: Option<&Bytes>,
        seen: &mut Arrival,
    ) -> Next {
        let Ok(d) = raw.as_data() else { return Next::Stop };
        if self.handshake.state().accepts_data() {
            self.on_data(now, path, &d, raw.payload.or(whole), seen);
        } else {
            self.on_early_data(now);
        }
        Next::Continue
    }

    #[inline(never)]
    fn on_i_data_chunk(
        &mut self,
        now: Instant,
        path: PathId,
        raw: &RawChunk<'_>,
        whole: Option<&Bytes>,
        seen: &mut Arrival,
    ) -> Next {
        let Ok(Chunk::IData(d)) = raw.decode() else { return Next::Stop };
        if self.handshake.state().accepts_data() {
            self.on_i_data(now, path, &d, raw.payload.or(whole), seen);
        } else {
            self.on_early_data(now);
        }
        Next::Continue
    }

    fn on_sack_chunk(&mut self, now: Instant, path: PathId, raw: &RawChunk<'_>) -> Next {
        let Ok(s) = raw.as_sack() else { return Next::Stop };
        self.scratch.sack_came_by = Some(path);
        if self.handshake.state().is_connected() {
            self.on_sack(now, s.cum_tsn, Some(&s));
        }
        Next::Continue
    }

    fn on_time_stamp(&mut self, raw: &RawChunk<'_>) -> Next {
        let Ok(Chunk::TimeStamp(t)) = raw.decode() else { return Next::Stop };
        self.scratch.stamp = Some(t.micros);
        Next::Continue
    }

    #[inline(never)]
    fn on_parity_chunk(&mut self, now: Instant, raw: &RawChunk<'_>, seen: &mut Arrival) -> Next {
        match raw.decode() {
            Ok(Chunk::Parity(p)) if self.handshake.state().accepts_data() => self.on_parity(now, &p, seen),
            Ok(Chunk::Repaired(r)) if r.settled && self.handshake.state().accepts_data() => self.on_settled(now, &r),
            Ok(Chunk::Repaired(r)) if !r.settled && self.handshake.state().is_connected() => self.on_repaired(now, &r),
            Ok(_) => {}
            Err(_) => return Next::Stop,
        }
        Next::Continue
    }

    /// All others.
    #[inline(never)]
    fn on_chunk(&mut self, now: Instant, from: Source, path: Option<PathId>, raw: &RawChunk<'_>, alone: bool) -> Next {
        let Ok(chunk) = raw.decode() else { return Next::Stop };
        let Some(path) = path else { return self.on_chunk_from_elsewhere(now, from, chunk, alone) };
        self.scratch.sack_came_by = Some(path);
        match chunk {
            // Only we announced it: the peer speaks DATA (RFC 8260 §2.2.3).
            Chunk::IData(_) | Chunk::IForwardTsn(_)
                if self.config.extensions.interleaving && !self.peer.interleaving =>
            {
                self.on_other_kind_of_data(now);
            }
            Chunk::IForwardTsn(f)
                if self.peer.interleaving && self.peer.forward_tsn && self.handshake.state().accepts_data() =>
            {
                self.on_i_forward_tsn(now, &f);
            }
            Chunk::IData(_) | Chunk::IForwardTsn(_) if self.peer.interleaving => {}
            Chunk::NrSack(n) if self.peer.nr_sack && self.handshake.state().is_connected() => self.on_nr_sack(now, &n),
            Chunk::Ecne(e) if self.peer.ecn && self.handshake.state().is_connected() => self.on_ecne(now, path, &e),
            Chunk::Cwr(c) if self.peer.ecn => self.acknowledger.on_cwr(c.tsn),
            Chunk::PacketDrop(d) if self.peer.packet_drop && self.handshake.state().is_connected() => {
                self.on_packet_drop(now, &d)
            }
            Chunk::ForwardTsn(_) if !self.peer.forward_tsn && !self.peer.interleaving => {
                return self.on_unknown(path, raw);
            }
            Chunk::ForwardTsn(f) if self.handshake.state().accepts_data() => self.on_forward_tsn(now, &f),
            Chunk::Heartbeat(_) if matches!(self.handshake.state(), super::State::CookieWait) => {}
            // Larger than our packets, or than what is left of the one that answers: it would have to be cut.
            Chunk::Heartbeat(h) if h.params_raw.len() + 4 > self.control.answer_room() => {}
            // Copied: waiting, it must not hold the datagram it came in.
            Chunk::Heartbeat(h) => self.on_heartbeat(now, path, h.params_raw),
            Chunk::HeartbeatAck(h) => self.on_heartbeat_ack(now, h.info),
            Chunk::Abort(_) if self.is_being_deleted(from.local) => return Next::Stop,
            Chunk::Abort(a) => {
                self.on_abort(&a);
                return Next::Stop;
            }
            Chunk::Error(e) => self.on_error(now, &e),
            Chunk::Shutdown(s) => self.on_shutdown(now, path, s.cum_tsn),
            Chunk::ShutdownAck => self.on_shutdown_ack(now, path),
            Chunk::ShutdownComplete(_) if alone => self.on_shutdown_complete(),
            Chunk::InitAck(i) if alone => self.on_init_ack(now, from, &i),
            Chunk::CookieAck => self.on_cookie_ack(now),
            Chunk::Asconf(a) => self.on_asconf(now, from, &a),
            Chunk::AsconfAck(a) => self.on_asconf_ack(now, from, &a),
            Chunk::ReConfig(r) if self.peer.reconfig && self.handshake.state().is_connected() => {
                self.on_re_config(now, path, &r);
            }
            // Not agreed on: as if the type were not known (§3.2).
            Chunk::IData(_)
            | Chunk::IForwardTsn(_)
            | Chunk::ReConfig(_)
            | Chunk::NrSack(_)
            | Chunk::Ecne(_)
            | Chunk::Cwr(_)
            | Chunk::PacketDrop(_)
            | Chunk::TimeStamp(_)
            | Chunk::Parity(_)
            | Chunk::Repaired(_)
            | Chunk::Unknown(_) => return self.on_unknown(path, raw),
            // INIT and COOKIE ECHO are the endpoint's, PAD is to be ignored (RFC 4820 §3); the rest has no meaning in this state.
            _ => {}
        }
        Next::Continue
    }

    /// From an address that is no path: ASCONF may introduce it, ABORT needs the tag only (§8.5.1), and an INIT
    /// ACK may come from any address of the peer (§5.1.2).
    fn on_chunk_from_elsewhere(&mut self, now: Instant, from: Source, chunk: Chunk<'_>, alone: bool) -> Next {
        match chunk {
            Chunk::Asconf(a) => self.on_asconf(now, from, &a),
            Chunk::InitAck(i) if alone => self.on_init_ack(now, from, &i),
            Chunk::Abort(a) => {
                self.on_abort(&a);
                return Next::Stop;
            }
            _ => {}
        }
        Next::Continue
    }

    /// ABORT or SHUTDOWN COMPLETE with the T bit and the peer's own tag (§8.5.1).
    pub(crate) fn on_reflected(&mut self, now: Instant, from: Source, chunk: &RawChunk<'_>, alone: bool) {
        if self.must_be_authenticated(chunk.kind) {
            return;
        }
        let path = self.paths.iter().find(|p| p.local() == from.local && p.remote() == from.remote).map(|p| p.id());
        match (chunk.decode(), path) {
            (Ok(Chunk::Abort(_)), Some(path)) if self.is_on_trial(path) => self.unknown_there(path),
            (Ok(Chunk::Abort(a)), _) => self.on_abort(&a),
            (Ok(Chunk::ShutdownComplete(_)), _) if alone => self.on_shutdown_complete(),
            _ => {}
        }
        self.couple_changed_paths(now);
    }

    /// HEARTBEAT: returned as it is (§8.3), with a report of what else it contained (§3.2.2).
    fn on_heartbeat(&mut self, now: Instant, path: PathId, params: &[u8]) {
        self.note_heartbeat(path);
        self.control.push(path, What::HeartbeatAck(Bytes::copy_from_slice(params)));
        self.ask_back(now, path);
        let report = Announced::unknown_beside(parameter_kind::HEARTBEAT_INFO, Params::new(params));
        if !report.is_empty() {
            self.control.push(path, What::Error(causes(&[Cause::UnrecognizedParameters(&report)])));
        }
    }

    /// Unknown chunk types by their two high bits (§3.2).
    fn on_unknown(&mut self, path: PathId, raw: &RawChunk<'_>) -> Next {
        let action = raw.unknown_action();
        let reports = matches!(action, UnknownAction::StopReport | UnknownAction::SkipReport);
        if reports && self.control.answer_room() >= SMALLEST_REPORT {
            // As a whole, with its padding: so do other implementations, and the next cause would need it anyway.
            let shown = raw.whole;
            let shown = shown.get(..shown.len().min(256)).unwrap_or(shown);
            let mut out = Vec::new();
            Cause::UnrecognizedChunk(shown).encode(&mut out);
            self.control.push(path, What::Error(Bytes::from(out)));
        }
        match action {
            UnknownAction::Stop | UnknownAction::StopReport => Next::Stop,
            UnknownAction::Skip | UnknownAction::SkipReport => Next::Continue,
        }
    }

    /// Aborts with these causes.
    #[cold]
    pub(super) fn abort_raw(&mut self, now: Instant, causes: Bytes, why: crate::event::CloseReason) {
        if self.phase() == super::Phase::Closed {
            return;
        }
        self.handshake.ends(now);
        self.control.clear();
        let path = self.paths.usable().iter().next().unwrap_or(self.handshake.path());
        self.control.push(path, What::Abort(causes));
        self.close(why);
    }

    /// Aborts towards a peer that gave no tag to do so with (§3.3.3).
    pub(super) fn abort_reflected(&mut self, causes: Bytes, why: crate::event::CloseReason) {
        self.control.clear();
        self.control.push(self.handshake.path(), What::AbortReflected(causes));
        self.close(why);
    }

    pub(super) fn abort_with(&mut self, now: Instant, list: &[Cause<'_>], why: crate::event::CloseReason) {
        self.abort_raw(now, causes(list), why);
    }
}
