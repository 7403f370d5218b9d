//! ABORT and ERROR from the peer.

use crate::association::{Association, State};
use crate::event::{CloseReason, Event};
use anabranch_base::Instant;
use anabranch_wire::{Abort, Cause, Encode, ErrorChunk, kind};

/// Code and length of a cause.
const CAUSE_HEADER_LEN: usize = 4;
/// Events that wait for the user beyond which reported errors are dropped.
const MOST_UNTOLD: usize = 16;
/// Bytes of a reported error that the user sees.
const MOST_TOLD: usize = 1_024;

impl Association {
    pub(in crate::association) fn on_abort(&mut self, a: &Abort<'_>) {
        // All is delivered both ways and the peer may be gone already: then it answers what it gets late like this,
        // and its SHUTDOWN COMPLETE is still on its way.
        if matches!(self.handshake.state(), State::ShutdownAckSent) && a.causes.iter().next().is_none() {
            self.control.clear();
            return self.close(CloseReason::Shutdown);
        }
        let text = a.causes.iter().flatten().next().map_or_else(
            || "no reason given".to_owned(),
            |c| match c {
                Cause::UserAbort(why) if !why.is_empty() => printable(why),
                other => other.to_string(),
            },
        );
        self.control.clear();
        self.close(CloseReason::PeerAborted(text));
    }

    pub(in crate::association) fn on_error(&mut self, now: Instant, e: &ErrorChunk<'_>) {
        for c in e.causes.iter().flatten() {
            self.tell_error(&c);
            match c {
                Cause::StaleCookie { .. } => self.on_stale_cookie(now),
                // The peer lost its memory of an extension: stop using it (RFC 3758 §3.3.1, RFC 5061 §5.1).
                Cause::UnrecognizedChunk(c) => match c.first() {
                    Some(&(kind::FORWARD_TSN | kind::I_FORWARD_TSN)) => self.stop_partial_reliability(now),
                    Some(&kind::ASCONF) => {
                        self.peer.forgot_asconf();
                        self.addresses.give_up();
                    }
                    _ => {}
                },
                other => tracing::debug!(cause = %other, "the peer reports an error"),
            }
        }
    }

    /// For the user, as far as it listens: a peer can report as much as it likes.
    fn tell_error(&mut self, c: &Cause<'_>) {
        if self.events.len() >= MOST_UNTOLD {
            return;
        }
        let mut value = Vec::new();
        c.encode(&mut value);
        value.resize(value.len().next_multiple_of(4), 0);
        value.drain(..CAUSE_HEADER_LEN.min(value.len()));
        value.truncate(MOST_TOLD);
        self.events.push_back(Event::PeerError { code: c.code(), value });
    }

    /// What was given up already can be neither skipped nor delivered any more.
    fn stop_partial_reliability(&mut self, now: Instant) {
        self.peer.forgot_forward_tsn();
        if self.sender.owes_skip() {
            let why = CloseReason::ProtocolViolation("FORWARD-TSN was agreed and is not known");
            self.abort_with(now, &[Cause::ProtocolViolation(b"FORWARD-TSN was agreed")], why);
        }
    }
}

/// A peer's text for people: control characters become dots.
fn printable(b: &[u8]) -> String {
    String::from_utf8_lossy(b).chars().take(200).map(|c| if c.is_control() { '.' } else { c }).collect()
}
