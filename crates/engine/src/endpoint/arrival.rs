//! A datagram that arrives: its association by verification tag and addresses, or none (§8.4, §8.5).

use super::peer_key::PeerKey;
use super::{AssocId, Endpoint};
use crate::association::receive::{Source, is_alone};
use crate::path::LocalId;
use anabranch_base::Instant;
use anabranch_wire::{CommonHeader, Packet, PacketSlices, RawChunk, Verify, WireError, kind};
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// T bit of ABORT and SHUTDOWN COMPLETE (§3.3.7, §3.3.13).
const REFLECTED: u8 = 1;

impl Endpoint {
    /// Handles a datagram that arrived on `local` from `remote`.
    pub fn handle(&mut self, now: Instant, local: LocalId, remote: SocketAddr, datagram: &Bytes, verify: Verify) {
        self.handle_bytes(now, Source { local, remote }, datagram, Some(datagram), verify);
    }

    /// Handles a datagram in a buffer that is used again: payloads are copied, each once, and nothing else is.
    pub fn handle_borrowed(&mut self, now: Instant, local: LocalId, remote: SocketAddr, datagram: &[u8], v: Verify) {
        self.handle_bytes(now, Source { local, remote }, datagram, None, v);
    }

    /// The datagram that is handed over next was marked by a queue: CE in its IP header (RFC 3168 §5).
    pub fn next_is_marked(&mut self) {
        self.marked = true;
    }

    fn handle_bytes(&mut self, now: Instant, from: Source, bytes: &[u8], whole: Option<&Bytes>, verify: Verify) {
        match Packet::parse(bytes, verify) {
            Ok(packet) => self.arrived(now, from, &packet, whole, false),
            Err(WireError::Checksum { found: 0, .. }) => {
                if let Ok(packet) = Packet::parse(bytes, Verify::Trusted)
                    && self.takes_unsummed(&packet)
                {
                    self.arrived(now, from, &packet, whole, false);
                } else {
                    self.arrived_damaged(now, from, bytes);
                }
            }
            Err(WireError::Checksum { .. }) => self.arrived_damaged(now, from, bytes),
            Err(_) => {}
        }
        self.marked = false;
    }

    /// The checksum is wrong. Tag and ports say whose the packet was, if that association reports or repairs damage;
    /// nothing else of it counts.
    #[cold]
    fn arrived_damaged(&mut self, now: Instant, from: Source, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes, Verify::Trusted) else { return };
        let h = packet.header;
        let ours = h.dst_port == self.config.port || self.config.any_port && h.dst_port != 0;
        let Some(id) = self.owner(h.vtag, h.src_port).filter(|_| ours) else { return };
        let Some(s) = self.slots.work_on(&id) else { return };
        let repaired = s.association.take_damaged_packet(now, from, bytes);
        if s.association.report_damage(now, from, &packet, bytes) || repaired {
            self.wake(id);
        }
    }

    /// A checksum of zero that is wrong: only for an association that announced to take it, and never where the
    /// association would have to be found by anything but its tag (RFC 9653 §5.2, §5.3).
    fn takes_unsummed(&self, packet: &Packet<'_>) -> bool {
        let excluded = |k: u8| matches!(k, kind::INIT | kind::COOKIE_ECHO | kind::ASCONF);
        if packet.any(|kind, flags| excluded(kind) || is_reflected(kind, flags)) {
            return false;
        }
        let owner = self.owner(packet.header.vtag, packet.header.src_port).and_then(|id| self.slots.get(&id));
        owner.map_or(self.config.unsummed_strangers, |s| s.association.config.extensions.error_detection.is_some())
    }

    /// Handles a packet as another endpoint of this program made it ([`Transmit::packet`](crate::Transmit)): a
    /// simulated link need neither write nor sum it, and payloads are shared with the sender's messages. What comes of
    /// it is what [`Endpoint::handle`] would make of the bytes that
    /// [`PacketSlices::write_to`](anabranch_wire::PacketSlices::write_to) writes.
    pub fn handle_slices(&mut self, now: Instant, local: LocalId, remote: SocketAddr, slices: &PacketSlices) {
        let (from, kinds) = (Source { local, remote }, slices.chunk_kinds());
        let everyday = !kinds.is_empty() && kinds.iter().all(|k| is_everyday(*k));
        // A signature runs over what stands between the payloads and over them: that needs one piece.
        if !everyday && slices.payload_len() > 0 && kinds.contains(&kind::AUTH) {
            let mut bytes = Vec::new();
            slices.write_to(&mut bytes);
            return self.handle(now, local, remote, &Bytes::from(bytes), Verify::Trusted);
        }
        if let Ok(packet) = Packet::of_slices(slices) {
            self.arrived(now, from, &packet, None, everyday);
        }
        self.marked = false;
    }

    /// A packet that is for this endpoint, if its port is right. `everyday`: it is known to have chunks of
    /// [such types](is_everyday) only.
    #[inline(always)]
    fn arrived(&mut self, now: Instant, from: Source, packet: &Packet<'_>, whole: Option<&Bytes>, everyday: bool) {
        let h = packet.header;
        let ours = h.dst_port == self.config.port || self.config.any_port && h.dst_port != 0;
        if !ours || !is_unicast(from.remote.ip()) {
            return;
        }
        if (everyday || packet.has_only(is_everyday))
            && let Some(id) = self.owner(h.vtag, h.src_port)
        {
            return self.hand_over(now, id, from, packet, whole);
        }
        self.arrived_otherwise(now, from, packet, whole);
    }

    #[inline(never)]
    fn arrived_otherwise(&mut self, now: Instant, from: Source, packet: &Packet<'_>, whole: Option<&Bytes>) {
        let h = packet.header;
        let Some(Ok(first)) = packet.chunks().next() else { return };
        if h.vtag == 0 {
            if first.kind == kind::INIT && is_alone(&first, packet) {
                self.on_init(now, from, packet, &first);
            } else if first.kind == kind::SHUTDOWN_ACK && !self.is_forged(from, h.src_port, first.kind) {
                self.out_of_the_blue(now, from, packet);
            }
            return;
        }
        let second = if first.kind == kind::AUTH { packet.chunks().nth(1) } else { None };
        let cookie = if let Some(Ok(second)) = second { second } else { first };
        if cookie.kind == kind::COOKIE_ECHO {
            return self.on_cookie_echo(now, from, packet, &cookie, whole);
        }
        if packet.any(is_reflected)
            && let Some(c) = packet.chunks().flatten().find(|c| is_reflected(c.kind, c.flags))
        {
            return self.on_reflected(now, from, h, &c, is_alone(&c, packet));
        }
        match self.owner(h.vtag, h.src_port) {
            Some(id) if self.is_out_of_the_blue(id, packet) => self.out_of_the_blue(now, from, packet),
            Some(id) => self.hand_over(now, id, from, packet, whole),
            // The peer is known and its tag is wrong: a forgery, or what an association before this one left (§8.5);
            // only the end of that one is helped along (§8.5.1 E).
            None if self.is_forged(from, h.src_port, first.kind) => {}
            None => self.out_of_the_blue(now, from, packet),
        }
    }

    fn out_of_the_blue(&mut self, now: Instant, from: Source, packet: &Packet<'_>) {
        self.replies.out_of_the_blue(now, from, packet, &mut self.farewells);
    }

    /// The association whose tag and peer's port these are.
    #[inline]
    pub(super) fn owner(&self, vtag: u32, peer_port: u16) -> Option<AssocId> {
        if let Some(id) = self.latest
            && let Some(s) = self.slots.get(&id)
            && s.association.handshake.local_tag() == vtag
        {
            return (s.association.handshake.peer_port() == peer_port).then_some(id);
        }
        let id = self.of_tag(vtag)?;
        self.slots.get(&id).filter(|s| s.association.handshake.peer_port() == peer_port).map(|_| id)
    }

    pub(super) fn hand_over(
        &mut self,
        now: Instant,
        id: AssocId,
        from: Source,
        packet: &Packet<'_>,
        whole: Option<&Bytes>,
    ) {
        let Some(s) = self.slots.work_on(&id) else { return };
        s.association.set_packet_marked(core::mem::take(&mut self.marked));
        s.association.handle_packet(now, from, packet, whole);
        if !s.is_listed() {
            s.wake(id, &mut self.ready, &mut self.eventful);
            return self.index_addresses(id);
        }
        self.latest = Some(id);
        if s.ready || !s.association.is_idle(now) {
            return s.wake(id, &mut self.ready, &mut self.eventful);
        }
        s.announce(id, &mut self.eventful);
        let (next, noted) = (s.association.next_timeout(), s.timeout);
        self.retime(id, next, noted);
    }

    /// SHUTDOWN ACK before the handshake is complete answers an association of before (§8.5.1 E, §9.2).
    fn is_out_of_the_blue(&self, id: AssocId, packet: &Packet<'_>) -> bool {
        self.slots.get(&id).is_some_and(|s| s.association.phase() == super::Phase::Connecting)
            && packet.chunks().flatten().any(|c| c.kind == kind::SHUTDOWN_ACK)
    }

    /// ABORT or SHUTDOWN COMPLETE with the T bit: the tag is the peer's own, so the address finds it (§8.5.1). Under
    /// such a tag no other chunk counts.
    fn on_reflected(&mut self, now: Instant, from: Source, h: CommonHeader, chunk: &RawChunk<'_>, alone: bool) {
        let Some(id) = self.of_peer(&PeerKey::new(from.local, from.remote, h.src_port)) else { return };
        if let Some(s) = self.slots.work_on(&id).filter(|s| s.association.handshake.peer_tag() == h.vtag) {
            s.association.on_reflected(now, from, chunk, alone);
            self.wake(id);
        }
    }

    /// From a known peer with a tag that is not ours. A SHUTDOWN ACK is one too, unless our handshake is under way.
    fn is_forged(&self, from: Source, port: u16, first: u8) -> bool {
        let known = self.find_by_addresses(from, &[], port).and_then(|id| self.slots.get(&id));
        known.is_some_and(|s| first != kind::SHUTDOWN_ACK || s.association.phase() != super::Phase::Connecting)
    }

    /// The association that any of these addresses of a peer would find (§5.1.2 D).
    pub(super) fn find_by_addresses(&self, at: Source, listed: &[IpAddr], peer_port: u16) -> Option<AssocId> {
        let more = listed.iter().map(|ip| SocketAddr::new(*ip, at.remote.port()));
        let mut all = std::iter::once(at.remote).chain(more);
        all.find_map(|remote| self.of_peer(&PeerKey::new(at.local, remote, peer_port)))
    }
}

/// Chunks that mean nothing without their association, and never end it.
fn is_everyday(kind: u8) -> bool {
    matches!(kind, kind::DATA | kind::SACK | kind::I_DATA | kind::HEARTBEAT | kind::HEARTBEAT_ACK)
}

fn is_reflected(kind: u8, flags: u8) -> bool {
    matches!(kind, kind::ABORT | kind::SHUTDOWN_COMPLETE) && flags & REFLECTED != 0
}

/// Packets from addresses that mean many hosts or none are dropped without an answer (§8.4).
fn is_unicast(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}
