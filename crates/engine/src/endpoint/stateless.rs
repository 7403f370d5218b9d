//! Answers that need no association: a queue of them, and those to out-of-the-blue packets (§8.4).
//!
//! At most one answer for each packet, never to an ABORT, and in a bounded queue: no amplification, no memory.

use super::farewells::{Answer, Farewells};
use crate::association::receive::Source;
use crate::path::LocalId;
use crate::transmit::Transmit;
use anabranch_base::Instant;
use anabranch_wire::{
    AbortOut, Cause, Chunk, CommonHeader, Encode, ErrorOut, Packet, PacketSlices, RawChunk, ShutdownComplete,
    cause_code, kind,
};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Waiting answers; more than a driver can send between two calls are dropped, as a full link would do.
const MAX_REPLIES: usize = 512;

/// Buffers kept for later.
const MAX_SPARE: usize = 4;

#[derive(Default)]
pub(super) struct Replies {
    queue: VecDeque<(LocalId, SocketAddr, PacketSlices)>,
    /// Buffers to build the next ones in.
    spare: Vec<PacketSlices>,
}

impl Replies {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    #[inline]
    pub fn pop(&mut self, out: &mut Transmit) -> bool {
        let Some((local, remote, packet)) = self.queue.pop_front() else { return false };
        out.local = local;
        out.remote = remote;
        out.path = None;
        let used = core::mem::replace(&mut out.packet, packet);
        if self.spare.len() < MAX_SPARE {
            self.spare.push(used);
        }
        true
    }

    pub fn push(&mut self, to: Source, header: CommonHeader, chunk: &impl Encode) {
        self.push_as(to, header, chunk, false);
    }

    /// Queues a reply; without a checksum where the peer takes that.
    pub fn push_as(&mut self, to: Source, header: CommonHeader, chunk: &impl Encode, unsummed: bool) {
        if self.queue.len() < MAX_REPLIES {
            let mut p = self.spare.pop().unwrap_or_default();
            p.start(header);
            p.push(chunk);
            if unsummed {
                p.leave_checksum_zero();
            }
            self.queue.push_back((to.local, to.remote, p));
        }
    }

    pub fn abort(&mut self, to: Source, header: CommonHeader, causes: &[Cause<'_>]) {
        self.push(to, header, &AbortOut { tag_reflected: false, causes: &encoded(causes) });
    }

    pub fn error(&mut self, to: Source, header: CommonHeader, causes: &[Cause<'_>]) {
        self.push(to, header, &ErrorOut { causes: &encoded(causes) });
    }

    /// A packet that belongs to no association, and is neither INIT nor COOKIE ECHO (§8.4). Where it belonged to one that
    /// we aborted a moment ago the ABORT says why again.
    pub fn out_of_the_blue(&mut self, now: Instant, from: Source, packet: &Packet<'_>, farewells: &mut Farewells) {
        let h = packet.header;
        let back = CommonHeader { src_port: h.dst_port, dst_port: h.src_port, vtag: h.vtag };
        let has = |kind: u8| packet.chunks().flatten().any(|c| c.kind == kind);
        if has(kind::ABORT) {
            return;
        }
        if has(kind::SHUTDOWN_ACK) {
            return self.push(from, back, &ShutdownComplete { tag_reflected: true });
        }
        if has(kind::SHUTDOWN_COMPLETE) || has(kind::COOKIE_ACK) || packet.chunks().flatten().any(is_stale_cookie) {
            return;
        }
        match farewells.answer(now, &h, packet.len()) {
            Some(Answer::Abort(back, causes)) => {
                self.push(from, back, &AbortOut { tag_reflected: false, causes: &causes })
            }
            Some(Answer::Nothing) => {}
            None => self.push(from, back, &AbortOut { tag_reflected: true, causes: &[] }),
        }
    }
}

fn encoded(causes: &[Cause<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    causes.iter().for_each(|c| c.encode(&mut out));
    out
}

fn is_stale_cookie(c: RawChunk<'_>) -> bool {
    match c.decode() {
        Ok(Chunk::Error(e)) => e.causes.iter().flatten().any(|c| c.code() == cause_code::STALE_COOKIE),
        _ => false,
    }
}
