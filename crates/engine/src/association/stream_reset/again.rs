//! A reset that the peer calls "in progress" although it has acknowledged every TSN that the request names: asked for
//! anew, with the next number. RFC 6525 §5.2.2 has such a peer carry it out; usrsctp looks whether it is due only when
//! new DATA comes, and none does while all streams wait. The request before has its answer and no timer, so there is
//! still one in flight (§5.1.1).

use crate::association::Association;
use crate::association::sender::Sender;
use crate::association::stream_reset::request::{Part, Request, Wish, part_of};
use anabranch_base::Instant;
use anabranch_wire::reconfig_result as result;
use bytes::Bytes;

/// What shows that a reset waits for nothing.
#[derive(Debug, Default)]
pub(in crate::association) struct InVain {
    /// The request has left before all that it names was acknowledged: it may have been deferred then.
    early: bool,
    /// It has left after that, and this is not answered yet.
    late: bool,
    /// And was "in progress" still.
    shown: bool,
    /// The request before this one, with its open number: sent again should the peer refuse this one.
    previous: Option<(Bytes, u32)>,
}

impl Request {
    /// The number of our Outgoing SSN Reset Request when that alone is open.
    fn lone_reset(&self) -> Option<u32> {
        let &[number] = &self.open[..] else { return None };
        let resets = matches!(self.wish, Wish::Reset { outgoing: Some(_), .. });
        (resets && part_of(&self.params, number) == Some(Part::Outgoing)).then_some(number)
    }

    /// Notes whether what the request names is acknowledged as it leaves.
    pub(in crate::association) fn leaves(&mut self, sender: &Sender) {
        let all = self.last_tsn <= sender.cumulative();
        self.in_vain.early |= !all;
        self.in_vain.late = all;
    }

    /// The peer has said "in progress".
    pub(in crate::association) fn waits(&mut self) {
        // Once for each time that it left: the network may double the answer.
        self.in_vain.shown |= core::mem::take(&mut self.in_vain.late) && self.in_vain.early;
    }
}

impl Association {
    /// Once more, with the next number, where the peer waits for nothing. True when it was.
    pub(in crate::association) fn ask_again(&mut self, now: Instant) -> bool {
        let Some(number) = self.stream_reset.request.as_ref().filter(|r| r.in_vain.shown).and_then(|r| r.lone_reset())
        else {
            return false;
        };
        let Some(r) = self.stream_reset.request.take() else { return false };
        let Wish::Reset { outgoing, response, .. } = r.wish else { return false };
        let in_vain = InVain { previous: Some((r.params, number)), ..InVain::default() };
        self.request(now, Wish::Reset { outgoing, incoming: None, response }, r.refused, in_vain);
        true
    }

    /// The peer does not take the new request while it is busy with the one before: back to that, for good. True when
    /// it was so.
    pub(in crate::association) fn asks_as_before(&mut self, number: u32, what: u32) -> bool {
        if !matches!(what, result::ALREADY_IN_PROGRESS | result::BAD_SEQUENCE) {
            return false;
        }
        let Some(r) = self.stream_reset.request.as_mut() else { return false };
        let Some((params, before)) = r.in_vain.previous.take() else { return false };
        (r.params, r.open, r.in_vain) = (params, vec![before], InVain::default());
        // All that it names is: so it is never early again.
        r.last_tsn = self.sender.cumulative();
        if what == result::BAD_SEQUENCE {
            self.stream_reset.next_request = number;
        }
        true
    }
}
