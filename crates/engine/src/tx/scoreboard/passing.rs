//! How far FORWARD-TSN may take the peer (RFC 3758 §3.5).

use super::{Chunk, ChunkState, Scoreboard};
use anabranch_base::Instant;

/// How far the message was found to be one that FORWARD-TSN may pass, so that the next look begins there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passing {
    first: u64,
    /// Its pieces before this one are settled and late.
    late_to: u64,
    /// Those before this one are kept by the peer.
    kept_to: u64,
}

impl Scoreboard {
    /// Where the peer may go to by FORWARD-TSN: the last of the abandoned chunks right behind the cumulative
    /// acknowledgement (RFC 3758 §3.5 C1, C2).
    ///
    /// Messages in between that are settled in whole and late by `now` are given up too: the peer has them, and the
    /// point would stop at each of them for a round trip. So are unordered ones that the peer will not take back; of
    /// ordered ones it might drop those that still wait for their turn.
    #[inline]
    pub fn advance_ack_point(&mut self, now: Instant) -> u64 {
        let front = self.chunks.front().map(|c| c.state);
        if self.advanced <= self.cumulative() && front != Some(ChunkState::Abandoned) {
            self.advanced = self.cumulative();
            return self.advanced;
        }
        self.advance_over_given_up(now)
    }

    #[inline(never)]
    fn advance_over_given_up(&mut self, now: Instant) -> u64 {
        self.advanced = self.advanced.max(self.cumulative());
        loop {
            match self.get(self.advanced + 1).map(|c| c.state) {
                Some(ChunkState::Abandoned) => self.advanced += 1,
                Some(ChunkState::Acked) if self.advanced > self.cumulative() => {
                    if !self.may_pass(self.advanced + 1, now) {
                        break;
                    }
                    let span = self.message_tsns(self.advanced + 1);
                    let arrived = span.iter().all(|t| self.get(*t).is_some_and(|c| c.state == ChunkState::Acked));
                    for t in span {
                        self.settle(t, ChunkState::Abandoned);
                        if let Some(c) = self.get_mut(t) {
                            c.arrived = arrived;
                        }
                    }
                }
                _ => break,
            }
        }
        self.advanced
    }

    /// Is this the first TSN of a whole message that the peer may pass: all acknowledged or given up and late, or
    /// unordered and kept?
    fn may_pass(&mut self, first: u64, now: Instant) -> bool {
        if self.get(first).is_some_and(|c| c.parity) {
            return true;
        }
        let Some(flags) = self.get(first).map(|c| c.header.flags).filter(|f| f.begin) else { return false };
        if self.passing.first != first {
            self.passing = Passing { first, late_to: first, kept_to: first };
        }
        let settled = |c: &Chunk| matches!(c.state, ChunkState::Acked | ChunkState::Abandoned);
        let late = |c: &Chunk| settled(c) && c.deadline.is_some_and(|d| d < now);
        let (whole, late_to) = self.walk(self.passing.late_to, late);
        self.passing.late_to = late_to;
        if whole {
            // An acknowledgement may have been withdrawn since a piece was seen.
            let still = self.walk(first, late).0;
            self.passing.late_to = if still { late_to } else { first };
            return still;
        }
        if !flags.unordered {
            return false;
        }
        let (whole, kept_to) = self.walk(self.passing.kept_to, |c| c.kept);
        self.passing.kept_to = kept_to;
        whole
    }

    /// Goes from piece to piece of a message while they are `good`; was the last one so? Else the one that is not, or
    /// behind which more is to come.
    fn walk(&self, from: u64, good: impl Fn(&Chunk) -> bool) -> (bool, u64) {
        let mut at = from;
        loop {
            match self.get(at).filter(|c| good(c)) {
                Some(c) if c.header.flags.end => return (true, at),
                Some(c) if c.after > 0 => at += u64::from(c.after),
                _ => return (false, at),
            }
        }
    }
}
