//! Selective acknowledgements: the pipe of Fall and Floyd (1996) as ns-2's `Sack1` has it, and RFC 6675.

use super::runs::Runs;
use super::sender::{DUPLICATES, Phase, Sender};
use super::{AckSegment, DataSegment, SackRule};
use anabranch_base::Instant;

/// What the receiver has above the cumulative acknowledgement, and what has been sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Runs,
    /// One past the highest hole sent again in this recovery.
    repaired: u64,
    /// Segments believed to be in the network ([`SackRule::Pipe`]).
    pipe: i64,
    /// Between a time-out and the next new acknowledgement duplicates tell nothing ([`SackRule::Pipe`]).
    deaf: bool,
    /// Has this recovery had its rescue retransmission (RFC 6675 §4, NextSeg 4)?
    rescued: bool,
}

impl Scoreboard {
    pub fn timed_out(&mut self, rule: SackRule) {
        if rule == SackRule::Pipe {
            self.sacked.clear();
            self.deaf = true;
        }
        self.repaired = 0;
    }

    /// Takes the blocks; says whether they bring news.
    fn learn(&mut self, una: u64, max: u64, ack: &AckSegment) -> bool {
        self.sacked.forget_below(una);
        let mut new = false;
        for (first, end) in ack.sacked().filter(|(_, end)| *end <= max) {
            new |= self.sacked.add(first.max(una), end, 0);
        }
        new
    }

    /// Segments below this have at least three above them that arrived: lost (RFC 6675 §4, IsLost, in whole segments).
    fn lost_below(&self) -> u64 {
        let mut left = u64::from(DUPLICATES);
        for run in self.sacked.iter().rev() {
            let length = run.end - run.first;
            if length >= left {
                return run.end - left;
            }
            left -= length;
        }
        0
    }

    /// Segments in the network: not arrived and not lost, and those sent again (RFC 6675 §4, SetPipe).
    fn count_pipe(&self, una: u64, max: u64) -> u64 {
        let holes = |from: u64, to: u64| {
            let span = to.saturating_sub(from);
            span.saturating_sub(self.sacked.count_from(from).saturating_sub(self.sacked.count_from(to)))
        };
        let lost_below = self.lost_below().max(una);
        holes(lost_below, max) + holes(una, self.repaired.min(max))
    }
}

impl Sender {
    pub(super) fn sack(
        &mut self,
        now: Instant,
        next: u64,
        ack: &AckSegment,
        rule: SackRule,
        out: &mut impl FnMut(DataSegment),
    ) {
        let Some(mut board) = self.board.take() else { return };
        if self.phase == Phase::Recovering {
            match rule {
                SackRule::Pipe => self.pipe_recovery(now, next, ack, &mut board, out),
                SackRule::Rfc6675 => self.recovery_6675(now, next, ack, &mut board, out),
            }
        } else {
            self.no_recovery(now, next, ack, rule, &mut board, out);
        }
        self.board = Some(board);
    }

    fn no_recovery(
        &mut self,
        now: Instant,
        next: u64,
        ack: &AckSegment,
        rule: SackRule,
        board: &mut Scoreboard,
        out: &mut impl FnMut(DataSegment),
    ) {
        if next < self.una {
            return;
        }
        let duplicate = next == self.una;
        if !duplicate {
            let acked = next - self.una;
            self.advance(now, next);
            self.grow_by(now, acked);
            board.deaf = false;
        }
        match rule {
            SackRule::Pipe if duplicate && board.deaf => {}
            SackRule::Pipe if !duplicate => board.sacked.clear(),
            _ => {
                let new = board.learn(self.una, self.max, ack);
                if duplicate && new {
                    self.selective_duplicate(now, rule, board, out);
                }
            }
        }
        if self.phase != Phase::Recovering && self.duplicates == 0 {
            self.skip_sacked(board);
            self.send_window(now, None, out);
        }
    }

    /// After a time-out: what the receiver has is not sent again (RFC 6675 §5.1).
    fn skip_sacked(&mut self, board: &Scoreboard) {
        while self.next < self.max && board.sacked.contains(self.next) {
            self.next += 1;
        }
    }

    fn selective_duplicate(
        &mut self,
        now: Instant,
        rule: SackRule,
        board: &mut Scoreboard,
        out: &mut impl FnMut(DataSegment),
    ) {
        self.duplicates += 1;
        let lost = match rule {
            SackRule::Pipe => self.duplicates == DUPLICATES,
            SackRule::Rfc6675 => self.duplicates >= DUPLICATES || board.lost_below() > self.una,
        };
        if !lost {
            if self.duplicates < DUPLICATES {
                self.send_limited(now, out);
            }
            return;
        }
        if !self.is_new_loss() {
            return;
        }
        board.pipe = (self.max - self.una) as i64 + 1 - i64::from(DUPLICATES) - 1;
        board.repaired = self.una + 1;
        board.rescued = false;
        self.note_loss(now);
        self.reduce(None);
        self.transmit(now, self.una, out);
        if rule == SackRule::Rfc6675 {
            self.fill_6675(now, board, out);
        }
    }

    /// [`SackRule::Pipe`]: an acknowledgement in recovery.
    fn pipe_recovery(
        &mut self,
        now: Instant,
        next: u64,
        ack: &AckSegment,
        board: &mut Scoreboard,
        out: &mut impl FnMut(DataSegment),
    ) {
        board.pipe -= 1;
        if next >= self.recover {
            self.recover = 1;
            self.leave_recovery(now, next);
            board.sacked.clear();
            self.send_window(now, None, out);
            return;
        }
        if next > self.una {
            self.una = next;
            // After a time-out it was behind.
            self.next = self.next.max(next);
            board.pipe -= 1;
            self.rto.end_back_off();
            self.restart_timer(now);
        }
        board.learn(self.una, self.max, ack);
        // Each hole is sent once, and none above the highest segment known to have arrived.
        while board.pipe < self.cwnd as i64 {
            let number = match board.sacked.hole(board.repaired.max(self.una)) {
                Some(hole) => {
                    board.repaired = hole + 1;
                    hole
                }
                None if self.next < self.una + u64::from(self.config.window) && self.has_next(now) => {
                    self.next += 1;
                    self.next - 1
                }
                None => break,
            };
            self.transmit(now, number, out);
            board.pipe += 1;
        }
    }

    /// [`SackRule::Rfc6675`]: an acknowledgement in recovery (§5).
    fn recovery_6675(
        &mut self,
        now: Instant,
        next: u64,
        ack: &AckSegment,
        board: &mut Scoreboard,
        out: &mut impl FnMut(DataSegment),
    ) {
        if next >= self.recover {
            self.leave_recovery(now, next);
            board.learn(self.una, self.max, ack);
            self.send_window(now, None, out);
            return;
        }
        if next > self.una {
            self.una = next;
            // After a time-out it was behind.
            self.next = self.next.max(next);
            self.discard_measurement();
            self.restart_timer(now);
        }
        board.learn(self.una, self.max, ack);
        self.fill_6675(now, board, out);
    }

    /// Sends in a recovery what has been handed over meanwhile.
    pub(super) fn resume_sack(&mut self, now: Instant, rule: SackRule, out: &mut impl FnMut(DataSegment)) {
        // The pipe of Fall and Floyd moves on acknowledgements alone.
        if rule == SackRule::Rfc6675
            && let Some(mut board) = self.board.take()
        {
            self.fill_6675(now, &mut board, out);
            self.board = Some(board);
        }
    }

    fn leave_recovery(&mut self, now: Instant, next: u64) {
        self.phase = Phase::Open;
        self.advance(now, next);
    }

    /// Sends while the pipe has room (RFC 6675 §5 step C).
    fn fill_6675(&mut self, now: Instant, board: &mut Scoreboard, out: &mut impl FnMut(DataSegment)) {
        let mut pipe = board.count_pipe(self.una, self.max);
        while pipe < self.window() {
            let Some(number) = self.next_6675(now, board) else { break };
            self.transmit(now, number, out);
            pipe += 1;
        }
    }

    /// RFC 6675 §4, NextSeg: a lost hole, something new, a hole that may be lost, the very last.
    fn next_6675(&mut self, now: Instant, board: &mut Scoreboard) -> Option<u64> {
        let from = board.repaired.max(self.una);
        let hole = board.sacked.hole(from);
        if let Some(hole) = hole.filter(|h| *h < board.lost_below()) {
            board.repaired = hole + 1;
            return Some(hole);
        }
        if self.next < self.una + u64::from(self.config.window) && self.has_next(now) {
            self.next += 1;
            return Some(self.next - 1);
        }
        if let Some(hole) = hole {
            board.repaired = hole + 1;
            return Some(hole);
        }
        let last = self.recover.checked_sub(1).filter(|n| *n >= from && !board.rescued)?;
        board.rescued = true;
        (!board.sacked.contains(last)).then_some(last)
    }
}
