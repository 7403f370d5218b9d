//! Answers that need no association: INIT ACK, stale cookies, out-of-the-blue packets (§5.1 B, §5.1.5, §8.4).
//!
//! At most one answer for each packet, never to an ABORT, and in a bounded queue: no amplification, no memory.

use super::Endpoint;
use crate::association::announced::{Announced, announce};
use crate::association::receive::Source;
use crate::auth::AuthParams;
use crate::cookie::{Cookie, Features};
use crate::path::LocalId;
use crate::transmit::Transmit;
use anabranch_base::{Duration, Instant, Tsn};
use anabranch_wire::{
    AbortOut, Cause, Chunk, CommonHeader, Encode, ErrorOut, InitFields, InitOut, Packet, PacketSlices, Parameter,
    RawChunk, ShutdownComplete, cause_code, kind,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Waiting answers; more than a driver can send between two calls are dropped, as a full link would do.
const MAX_REPLIES: usize = 512;

#[derive(Default)]
pub(super) struct Replies {
    queue: VecDeque<(LocalId, SocketAddr, PacketSlices)>,
}

impl Replies {
    pub fn pop(&mut self, out: &mut Transmit) -> bool {
        let Some((local, remote, packet)) = self.queue.pop_front() else { return false };
        out.local = local;
        out.remote = remote;
        out.path = None;
        out.packet = packet;
        true
    }

    fn push(&mut self, to: Source, header: CommonHeader, chunk: &impl Encode) {
        if self.queue.len() < MAX_REPLIES {
            let mut p = PacketSlices::default();
            p.start(header);
            p.push(chunk);
            self.queue.push_back((to.local, to.remote, p));
        }
    }

    /// A packet for nobody (§8.4).
    pub fn out_of_the_blue(&mut self, from: Source, packet: &Packet<'_>, first: &RawChunk<'_>) {
        let h = packet.header;
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: h.vtag };
        let quiet = |c: RawChunk<'_>| {
            matches!(c.kind, kind::ABORT | kind::SHUTDOWN_COMPLETE | kind::COOKIE_ACK | kind::INIT)
                || (c.kind == kind::ERROR && is_stale_cookie(&c))
        };
        if packet.chunks().flatten().any(quiet) {
            return;
        }
        if first.kind == kind::SHUTDOWN_ACK {
            return self.push(from, back, &ShutdownComplete { tag_reflected: true });
        }
        self.push(from, back, &AbortOut { tag_reflected: true, causes: &[] });
    }

    /// The cookie was ours but is too old (§5.1.5).
    pub fn stale_cookie(&mut self, from: Source, h: &CommonHeader, c: &Cookie, by: Duration) {
        let mut causes = Vec::new();
        Cause::StaleCookie { staleness_us: u32::try_from(by.as_micros()).unwrap_or(u32::MAX) }.encode(&mut causes);
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: c.peer_tag };
        self.push(from, back, &ErrorOut { causes: &causes });
    }
}

fn is_stale_cookie(c: &RawChunk<'_>) -> bool {
    match c.decode() {
        Ok(Chunk::Error(e)) => e.causes.iter().flatten().any(|c| c.code() == cause_code::STALE_COOKIE),
        _ => false,
    }
}

impl Endpoint {
    /// INIT: an INIT ACK with a cookie that holds all there is to know; nothing is kept (§5.1 B).
    pub(super) fn on_init(&mut self, now: Instant, from: Source, packet: &Packet<'_>, raw: &RawChunk<'_>) {
        let Ok(Chunk::Init(init)) = raw.decode() else { return };
        let f = init.fields;
        if f.tag == 0 {
            return;
        }
        let h = packet.header;
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: f.tag };
        let announced = Announced::read(init.params);
        if !self.config.accept {
            return self.replies.push(from, back, &AbortOut { tag_reflected: false, causes: &[] });
        }
        if f.a_rwnd < 1_500 || f.outbound_streams == 0 || f.inbound_streams == 0 || announced.host_name {
            let mut causes = Vec::new();
            Cause::InvalidParameter.encode(&mut causes);
            return self.replies.push(from, back, &AbortOut { tag_reflected: false, causes: &causes });
        }
        let local_tag = self.new_tag();
        let auth = AuthParams::new(self.entropy.as_mut());
        let config = &self.config.association;
        let cookie = Cookie {
            created: now,
            lifespan: self.config.cookie_life,
            local_tag,
            peer_tag: f.tag,
            local_tie: 0,
            peer_tie: 0,
            local_port: h.dst_port,
            peer_port: h.src_port,
            local_initial_tsn: Tsn(self.entropy.u32()),
            peer_initial_tsn: f.initial_tsn,
            peer_rwnd: f.a_rwnd,
            outbound_streams: f.inbound_streams,
            inbound_streams: f.outbound_streams,
            remote: from.remote,
            local: from.local,
            listed: announced.addresses.clone(),
            features: Features { forward_tsn: announced.forward_tsn, asconf: announced.asconf, ..Features::default() },
            local_random: if announced.auth.is_some() { auth.random } else { Default::default() },
            peer_auth: announced.auth.clone(),
        };
        let mut sealed = Vec::new();
        self.jar.seal(&cookie, &mut sealed);
        let mut params = Vec::new();
        Parameter::Cookie(&sealed).encode(&mut params);
        params.extend_from_slice(&announce(config, &auth, Some((&announced, from.remote.ip()))));
        let mut report: &[u8] = &announced.report;
        while let Some((one, rest)) = split_parameter(report) {
            Parameter::Unrecognized(one).encode(&mut params);
            report = rest;
        }
        let fields = InitFields {
            tag: cookie.local_tag,
            a_rwnd: u32::try_from(config.receive_buffer.max(1_500)).unwrap_or(u32::MAX),
            outbound_streams: config.outbound_streams.max(1).min(f.inbound_streams),
            inbound_streams: config.inbound_streams.max(1),
            initial_tsn: cookie.local_initial_tsn,
        };
        self.replies.push(from, back, &InitOut { ack: true, fields, params: &params });
    }
}

/// The first of several padded parameters, without its padding.
fn split_parameter(b: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16::from_be_bytes([*b.get(2)?, *b.get(3)?]));
    Some((b.get(..len)?, b.get(len.next_multiple_of(4)..).unwrap_or(&[])))
}
