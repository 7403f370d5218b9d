//! `sendmsg` (RFC 6458 §3.1, §4.1.7): a message, or the end of an association.

use super::association::AssociationId;
use super::{Errno, SocketId, Stack, Style};
use crate::abi::message::flag;
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_engine::{Phase, SendError, SendOptions};
use bytes::Bytes;
use std::net::SocketAddr;

/// PR-SCTP policy and its value (RFC 7496).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Worthless after so long.
    Lifetime(Duration),
    /// Not sent again more often than this.
    Retransmissions(u32),
    /// Dropped for something of a smaller number.
    Priority(u32),
}

impl Reliability {
    /// From the numbers of `sctp_prinfo`.
    pub fn of(policy: u16, value: u32) -> Option<Reliability> {
        match policy & flag::PR_MASK {
            flag::PR_TTL => Some(Reliability::Lifetime(Duration::from_millis(value.into()))),
            flag::PR_RTX => Some(Reliability::Retransmissions(value)),
            flag::PR_PRIO => Some(Reliability::Priority(value)),
            _ => None,
        }
    }
}

/// What a program sends.
#[derive(Clone, Debug, Default)]
pub struct SendRequest {
    /// The message.
    pub payload: Bytes,
    /// Address of the peer, when the program names one.
    pub to: Option<SocketAddr>,
    /// Association, when the program names one.
    pub association: Option<i32>,
    /// Stream; the default of the socket without.
    pub stream: Option<u16>,
    /// `snd_flags`.
    pub flags: Option<u16>,
    /// Payload protocol identifier.
    pub ppid: Option<u32>,
    /// PR-SCTP.
    pub reliability: Option<Reliability>,
    /// What a notification of its failure brings back.
    pub context: Option<u32>,
}

impl Stack {
    /// Sends a message; answers its length.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when the buffer is full or the handshake of a one-to-one socket is under way; see RFC 6458.
    pub fn send(&mut self, now: Instant, id: SocketId, r: &SendRequest) -> Result<usize, Errno> {
        let s = self.get(id)?;
        let flags = r.flags.unwrap_or(s.options.default_send.flags.get());
        if s.writing_ended {
            return Err(Errno::PIPE);
        }
        let a = self.destination(now, id, r)?;
        let n = self.send_to(now, id, a, flags, r);
        self.settle(now);
        n
    }

    fn send_to(
        &mut self,
        now: Instant,
        id: SocketId,
        a: AssociationId,
        flags: u16,
        r: &SendRequest,
    ) -> Result<usize, Errno> {
        if flags & flag::ABORT != 0 {
            let mut e = self.engine_mut(a).ok_or(Errno::NOT_CONNECTED)?;
            e.abort(now, &r.payload);
            return Ok(r.payload.len());
        }
        if !r.payload.is_empty() {
            self.hand_over(now, id, a, flags, r)?;
        }
        if flags & flag::EOF != 0 {
            let mut e = self.engine_mut(a).ok_or(Errno::NOT_CONNECTED)?;
            e.shutdown(now);
        } else if r.payload.is_empty() {
            return Err(Errno::INVALID);
        }
        Ok(r.payload.len())
    }

    fn hand_over(
        &mut self,
        now: Instant,
        id: SocketId,
        a: AssociationId,
        flags: u16,
        r: &SendRequest,
    ) -> Result<(), Errno> {
        let s = self.get(id)?;
        let o = &s.options;
        let ttl =
            Some(o.default_ttl).filter(|ms| *ms != 0).map(|ms| Reliability::Lifetime(Duration::from_millis(ms.into())));
        let (policy, value) = o.default_reliability;
        let reliability = r.reliability.or(Reliability::of(policy, value)).or(ttl);
        let context = r.context.unwrap_or(o.default_send.context.get());
        let ppid = r.ppid.unwrap_or(u32::from_be(o.default_send.ppid.get()));
        let mut options = SendOptions {
            stream: StreamId(r.stream.unwrap_or(o.default_send.stream.get())),
            unordered: flags & flag::UNORDERED != 0,
            immediate_ack: flags & flag::SACK_IMMEDIATELY != 0,
            ppid,
            ..SendOptions::default()
        };
        match reliability {
            // At its end a life is over: the engine's deadline is the last moment that is in time.
            Some(Reliability::Lifetime(d)) if !d.is_zero() => {
                options.deadline = Some(now + d - Duration::from_nanos(1));
            }
            Some(Reliability::Retransmissions(n)) => {
                options.max_retransmissions = Some(u16::try_from(n).unwrap_or(u16::MAX));
            }
            Some(Reliability::Priority(p)) => options.discard_priority = Some(p),
            _ => {}
        }
        let shut = self.associations.get(&a).is_some_and(|a| a.peer_shut_down || a.closed.is_some());
        let Some(mut e) = self.engine_mut(a) else { return Err(self.gone(id)) };
        match e.send(now, options, r.payload.clone()) {
            Ok(()) => {
                drop(e);
                self.note_sent(a, context);
                Ok(())
            }
            Err(SendError::WouldBlock) => Err(Errno::AGAIN),
            Err(SendError::InvalidStream(_) | SendError::Empty) => Err(Errno::INVALID),
            Err(SendError::TooLarge { .. }) => Err(Errno::MESSAGE_SIZE),
            Err(SendError::Closed) => {
                drop(e);
                Err(if shut { self.gone(id) } else { Errno::PIPE })
            }
        }
    }

    /// The association is over or ending: why, once, and EPIPE from then on.
    fn gone(&mut self, id: SocketId) -> Errno {
        let Ok(s) = self.get_mut(id) else { return Errno::BAD_DESCRIPTOR };
        s.error.take().unwrap_or(Errno::PIPE)
    }

    /// The association that a message belongs to; a one-to-many socket begins one where there is none (RFC 6458 §3.2).
    fn destination(&mut self, now: Instant, id: SocketId, r: &SendRequest) -> Result<AssociationId, Errno> {
        let s = self.get(id)?;
        if s.style == Style::OneToOne {
            let Some(peer) = s.peer else { return Err(Errno::NOT_CONNECTED) };
            return Ok(peer);
        }
        if let Some(n) = r.association.filter(|n| *n != 0) {
            return self.one(id, n);
        }
        let to = r.to.ok_or(Errno::DESTINATION_REQUIRED)?;
        let same = |a: &AssociationId| {
            let Some(kept) = self.associations.get(a) else { return false };
            let live = self.engine(*a).is_some_and(|e| e.phase() != Phase::Closed);
            live && kept.remote.port() == to.port() && !self.paths_to(*a, Some(to)).is_empty()
        };
        match s.associations.iter().find(|a| same(a)) {
            Some(a) => Ok(*a),
            None => {
                let new = self.connect(now, id, &[to])?;
                self.began = Some(new);
                Ok(new)
            }
        }
    }
}
