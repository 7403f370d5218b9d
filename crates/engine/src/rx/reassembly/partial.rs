//! Partial delivery (RFC 9260 §6.9): a message that does not fit the buffer reaches the user in parts.

use super::{Reassembly, Shared, Violation, charge_of};
use crate::message::{Message, Part, Payload};
use anabranch_base::{StreamId, Tsn};
use anabranch_wire::DataHeader;
use bytes::Bytes;
use std::collections::VecDeque;

/// A message of which the user has the beginning.
#[derive(Debug)]
pub(super) struct Partial {
    shared: Shared,
    ppid: u32,
    /// TSN of its next fragment.
    next: u64,
}

impl Reassembly {
    /// Hands on what is there of the message that the cumulative TSN ends in. False when that is not the message the
    /// user waits for, or when another one is half delivered.
    pub fn deliver_part(&mut self, cum_extended: u64) -> bool {
        let Some((&first, run)) = self.runs.first_key_value() else { return false };
        let (shared, begins) = (run.shared, run.begins && first <= cum_extended);
        let turn = shared.ssn.is_none_or(|ssn| *self.next_of(shared.stream) == ssn);
        if self.partial.is_some() || !begins || !turn {
            return false;
        }
        let Some(run) = self.runs.remove(&first) else { return false };
        self.partial = Some(Partial { shared, ppid: run.ppid, next: run.after(first) });
        self.hand(part(shared, first, run.ppid, run.pieces, Part::More));
        true
    }

    /// Takes the next fragment of the message that is half delivered; none when this chunk is something else.
    pub(super) fn continue_part(&mut self, tsn: u64, h: &DataHeader, payload: &Bytes) -> Option<Result<(), Violation>> {
        let p = self.partial.as_ref().filter(|p| p.next == tsn)?;
        let (shared, ppid) = (p.shared, p.ppid);
        if h.flags.begin && self.gives_up {
            self.end_part(shared);
            return None;
        }
        if h.flags.begin {
            return Some(Err(Violation::BeginInside { tsn: h.tsn }));
        }
        if Shared::of(h) != shared {
            return Some(Err(Violation::Mismatch { tsn: h.tsn }));
        }
        if self.gives_up && !h.flags.end && self.runs.get(&(tsn + 1)).is_some_and(|r| r.begins) {
            // Its last fragment here, and the next message has come before it.
            self.end_part(shared);
            return Some(Ok(()));
        }
        if let Err(e) = self.neighbours(tsn, h) {
            return Some(Err(e));
        }
        self.held += payload.len() + self.overhead;
        let (mut pieces, mut ends, mut next) = (VecDeque::from([payload.clone()]), h.flags.end, tsn + 1);
        if !ends && let Some(mut run) = self.runs.remove(&next) {
            (ends, next) = (run.ends, run.after(next));
            pieces.append(&mut run.pieces);
        }
        if ends {
            self.partial = None;
            return Some(self.complete(next - 1, part(shared, tsn, ppid, pieces, Part::Last)));
        }
        self.partial = Some(Partial { shared, ppid, next });
        self.hand(part(shared, tsn, ppid, pieces, Part::More));
        Some(Ok(()))
    }

    /// The chunk that a half delivered message goes on with has been here and was none of it: the message has no end.
    pub(super) fn check_part(&mut self, cum_extended: u64) -> Result<(), Violation> {
        let Some(p) = self.partial.as_ref().filter(|p| p.next <= cum_extended) else { return Ok(()) };
        if !self.gives_up {
            return Err(Violation::BeginInside { tsn: Tsn(p.next as u32) });
        }
        let shared = p.shared;
        self.end_part(shared);
        Ok(())
    }

    /// What is half delivered has no end: the user learns of that, and what waits for it need not wait.
    fn end_part(&mut self, shared: Shared) {
        self.abandon_part(u64::MAX);
        self.pass(shared);
    }

    /// Ends what is half delivered when it is of one of these streams, which begin again.
    pub(super) fn reset_part(&mut self, chosen: &dyn Fn(StreamId) -> bool) {
        if self.partial.as_ref().is_some_and(|p| chosen(p.shared.stream)) {
            self.abandon_part(u64::MAX);
        }
    }

    /// Ends what is half delivered when it is this message.
    pub(super) fn pass_part(&mut self, of: Shared) {
        if of.ssn.is_some() && self.partial.as_ref().is_some_and(|p| p.shared == of) {
            self.abandon_part(u64::MAX);
        }
    }

    /// The peer gave up everything to `new_cum_extended`; when the rest of a half delivered message is among it, the
    /// user learns that no more will come.
    pub(super) fn abandon_part(&mut self, new_cum_extended: u64) {
        if let Some(p) = self.partial.take_if(|p| p.next <= new_cum_extended) {
            let notice = part(p.shared, p.next, p.ppid, VecDeque::new(), Part::Abandoned);
            self.held += charge_of(&notice, self.overhead);
            self.hand(notice);
        }
    }
}

fn part(shared: Shared, tsn: u64, ppid: u32, pieces: VecDeque<Bytes>, part: Part) -> Message {
    let tsn = Tsn(tsn as u32);
    let payload = Payload::from_pieces(pieces);
    Message { stream: shared.stream, ssn: shared.ssn, mid: None, tsn, ppid, payload, part }
}

#[cfg(test)]
#[path = "partial_tests.rs"]
mod tests;
