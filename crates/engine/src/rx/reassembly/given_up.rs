//! Messages that the peer gave up: those that a FORWARD-TSN names (RFC 3758 §3.6), and those without an end.

use super::{HALF_SSN_SPACE, Reassembly, Shared};
use crate::work;
use anabranch_base::{Ssn, StreamId};
use anabranch_wire::DataHeader;

impl Reassembly {
    /// PR-SCTP was agreed on. A message that the peer gave up when it had sent a part of it may then have no end: Linux
    /// and dcsctp go on with the first fragment of another one. Without, that is a [`Violation`].
    pub fn peer_gives_up(&mut self, gives_up: bool) {
        self.gives_up = gives_up;
    }

    /// Drops the beginning of a message that can have no end, now that this chunk has come next to it. True when the
    /// chunk is itself of such a message, which ends before the one behind it.
    pub(super) fn has_no_end(&mut self, tsn: u64, h: &DataHeader) -> bool {
        if !self.gives_up {
            return false;
        }
        let headless = !h.flags.end && self.runs.get(&(tsn + 1)).is_some_and(|r| r.begins);
        if (h.flags.begin || headless)
            && let Some((first, run)) = self.runs.range(..tsn).next_back()
            && run.after(*first) == tsn
            && !run.ends
        {
            let (first, shared) = (*first, run.shared);
            self.release_run(first);
            self.pass(shared);
        }
        if headless {
            self.pass(Shared::of(h));
        }
        headless
    }

    /// What can have no end is passed when its turn comes, whether or not a FORWARD-TSN names it: when all there is of
    /// it has arrived, that moves nothing and counts as an old one (RFC 3758 §3.6).
    pub(super) fn pass(&mut self, of: Shared) {
        let Shared { stream, ssn: Some(ssn) } = of else { return };
        self.pass_part(of);
        let next = self.next_of(stream);
        let ahead = ssn.distance(*next);
        if ahead == 0 {
            *next = ssn.next();
            self.drain(stream);
        } else if ahead < HALF_SSN_SPACE && self.endless.insert((stream, ssn.0)) {
            self.held += self.overhead;
        }
    }

    pub(super) fn forget_endless(&mut self, stream: StreamId, ssn: u16) -> bool {
        let found = self.endless.remove(&(stream, ssn));
        self.held -= if found { self.overhead } else { 0 };
        found
    }

    /// The peer gave up on everything to `new_cum_extended`; `skipped` names the highest given-up SSN of each ordered
    /// stream (RFC 3758 §3.2). Releases what waited for those, and drops messages that now miss a piece for good.
    pub fn forward(&mut self, new_cum_extended: u64, skipped: &mut dyn Iterator<Item = (StreamId, Ssn)>) {
        self.forwarded = true;
        self.given_up = self.given_up.max(new_cum_extended);
        self.abandon_part(new_cum_extended);
        let mut from = 0;
        while let Some((first, run)) = self.runs.range(from..).next()
            && *first <= new_cum_extended + 1
        {
            work::steps(1);
            let (first, after) = (*first, run.after(*first));
            from = after;
            if !run.begins || (!run.ends && after <= new_cum_extended) {
                self.drop_run(first);
            }
        }
        for (stream, ssn) in skipped {
            if stream.0 < self.inbound_streams {
                self.release(stream, ssn);
            }
        }
    }

    pub(super) fn drop_run(&mut self, first: u64) {
        if let Some(run) = self.release_run(first) {
            self.given_up = self.given_up.max(run.after(first) - 1);
        }
    }

    /// Makes ready everything of `stream` to `last`, holes or not, and what follows without one.
    fn release(&mut self, stream: StreamId, last: Ssn) {
        let next = self.next_of(stream);
        let from = *next;
        if last.distance(from) >= HALF_SSN_SPACE {
            return;
        }
        *next = last.next();
        let spans = if from.0 <= last.0 {
            [Some((from.0, last.0)), None]
        } else {
            [Some((from.0, u16::MAX)), Some((0, last.0))]
        };
        for (low, high) in spans.into_iter().flatten() {
            while let Some((key, _)) = self.waiting.range((stream, low)..=(stream, high)).next() {
                work::steps(1);
                let key = *key;
                self.waiting.remove(&key).into_iter().for_each(|m| self.hand(m));
            }
            while let Some((_, ssn)) = self.endless.range((stream, low)..=(stream, high)).next().copied() {
                self.forget_endless(stream, ssn);
            }
        }
        self.drain(stream);
    }
}
