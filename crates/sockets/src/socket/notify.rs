//! Notifications about what was sent (RFC 6458 §6.1.4, §6.1.9, §6.1.11) and about streams (RFC 6525 §6.1).

use super::association::AssociationId;
use super::{SocketId, Stack};
use crate::abi::message::flag;
use crate::abi::notification::{self, Failed, kind, strreset};
use anabranch_base::StreamId;
use anabranch_engine::Undelivered;

/// Contexts that are remembered of one association; beyond, the oldest are forgotten and read as 0.
const CONTEXTS: usize = 65_536;
/// Unread items of a socket beyond which errors that peers report are dropped.
const MOST_UNREAD: usize = 1_024;

impl Stack {
    fn hears_of_failures(&self, id: AssociationId) -> bool {
        let s = self.associations.get(&id).and_then(|a| a.owner).and_then(|o| self.sockets.get(&o));
        s.is_some_and(|s| s.options.tells(kind::SEND_FAILED) || s.options.tells(kind::SEND_FAILED_EVENT))
    }

    /// A message was taken from the program.
    pub(super) fn note_sent(&mut self, id: AssociationId, context: u32) {
        let hears = self.hears_of_failures(id);
        let Some(a) = self.associations.get_mut(&id) else { return };
        let number = a.sent;
        a.sent += 1;
        if !a.wet {
            a.wet = true;
            self.wet.push(id);
        }
        if hears && context != 0 {
            if a.contexts.len() >= CONTEXTS {
                a.contexts.pop_front();
            }
            a.contexts.push_back((number, context));
        }
    }

    /// Associations whose last message is settled since they were looked at last.
    pub(super) fn settle_dry(&mut self) {
        let mut wet = std::mem::take(&mut self.wet);
        wet.retain(|id| {
            if self.engine(*id).is_some_and(|e| !e.is_drained()) {
                return true;
            }
            let Some(a) = self.associations.get_mut(id) else { return false };
            a.wet = false;
            a.contexts.clear();
            if a.closed.is_none() {
                self.notify(*id, kind::SENDER_DRY_EVENT, |id| notification::sender_dry(id.0));
            }
            false
        });
        self.wet = wet;
    }

    /// A program that asks to hear when nothing is left, and has nothing left, hears it now (RFC 6458 §6.1.9).
    pub(super) fn dry_already(&mut self, id: SocketId) {
        let Ok(s) = self.get(id) else { return };
        if !s.options.tells(kind::SENDER_DRY_EVENT) {
            return;
        }
        for a in s.associations.clone() {
            let dry = self.associations.get(&a).is_some_and(|a| a.connected && a.closed.is_none() && !a.wet);
            if dry {
                self.notify(a, kind::SENDER_DRY_EVENT, |id| notification::sender_dry(id.0));
            }
        }
    }

    /// Messages were given up.
    pub(super) fn on_abandoned(&mut self, id: AssociationId) {
        let lost = self.engine_mut(id).map(|mut e| e.take_given_up()).unwrap_or_default();
        lost.into_iter().for_each(|m| self.send_failed(id, m, 0));
    }

    /// It is over: what was not acknowledged is lost.
    pub(super) fn on_undelivered(&mut self, id: AssociationId) {
        if self.hears_of_failures(id) {
            let lost = self.engine(id).map(anabranch_engine::Association::undelivered).unwrap_or_default();
            lost.into_iter().for_each(|m| self.send_failed(id, m, 0));
        }
    }

    fn send_failed(&mut self, id: AssociationId, m: Undelivered, error: u32) {
        let Some(a) = self.associations.get(&id) else { return };
        let context = a.contexts.binary_search_by_key(&m.number, |(n, _)| *n);
        let context = context.ok().and_then(|at| a.contexts.get(at)).map_or(0, |(_, c)| *c);
        let failed = Failed {
            sent: m.sent,
            error,
            stream: m.stream.0,
            flags: if m.unordered { flag::UNORDERED } else { 0 },
            ppid: m.ppid.to_be(),
            context,
            data: m.payload.into_bytes().to_vec(),
        };
        self.notify(id, kind::SEND_FAILED, |id| notification::send_failed(id.0, &failed, true));
        self.notify(id, kind::SEND_FAILED_EVENT, |id| notification::send_failed(id.0, &failed, false));
    }

    /// A peer can report as many errors as it likes: what the program does not read is not all kept.
    pub(super) fn on_peer_error(&mut self, id: AssociationId, code: u16, value: &[u8]) {
        let owner = self.associations.get(&id).and_then(|a| a.owner).and_then(|o| self.sockets.get(&o));
        if owner.is_some_and(|s| s.inbox.len() < MOST_UNREAD) {
            self.notify(id, kind::REMOTE_ERROR, |id| notification::remote_error(id.0, code, value));
        }
    }

    pub(super) fn notify_auth(&mut self, id: AssociationId, key: u16, what: u32) {
        self.notify(id, kind::AUTHENTICATION_EVENT, |id| notification::authentication(id.0, key, what));
    }

    pub(super) fn on_streams_reset(&mut self, id: AssociationId, streams: &[StreamId], incoming: bool) {
        let list: Vec<u16> = streams.iter().map(|s| s.0).collect();
        let flags = if incoming { strreset::INCOMING } else { strreset::OUTGOING };
        self.notify(id, kind::STREAM_RESET_EVENT, |id| notification::stream_reset(id.0, flags, &list));
    }

    /// `result` is the peer's (RFC 6525 §4.4): 2 is that it does not want to.
    pub(super) fn on_reconfig_failed(&mut self, id: AssociationId, result: u32) {
        let flags = if result == 2 { strreset::DENIED } else { strreset::FAILED };
        self.notify(id, kind::STREAM_RESET_EVENT, |id| notification::stream_reset(id.0, flags, &[]));
    }

    pub(super) fn on_association_reset(&mut self, id: AssociationId) {
        self.notify(id, kind::ASSOC_RESET_EVENT, |id| notification::association_reset(id.0));
    }

    pub(super) fn on_streams_added(&mut self, id: AssociationId) {
        let (outbound, inbound) = self.engine(id).map_or((0, 0), anabranch_engine::Association::streams);
        self.notify(id, kind::STREAM_CHANGE_EVENT, |id| notification::stream_change(id.0, inbound, outbound));
    }
}
