//! Parity over what is in flight: sums of chunks, from which the peer restores what is missing without asking.
//!
//! Source: the idea of RFC 8681 (sliding-window random linear codes over GF(256)), across paths; when a sum leaves is
//! ours. Chunks leave as they are. A sum covers those that are not acknowledged and too old to be sent again: by the time
//! that a loss shows, a repetition would miss the deadline by the newest round trips. It leaves by the path on which it
//! arrives first, of those that do not carry most of what it covers, where there is one with window.
//! How many: the losses to be expected of what is covered, by each path's share of losses, and two standard deviations
//! of it; less what earlier sums cover of the same. Never more than `rate` of what is sent, of which as much may be saved up
//! as 50 to 100 ms earn, and only in window that new data left free. Where nothing was lost lately, or what is lost can be sent again in time, it does nothing; its
//! counters say how often which. With `code=xor` each chunk is in one sum: where several are wanted they share the chunks.
//! With `late` it also makes up for what comes too late: `policy/src/late.rs` says how many sums leave, and when. They
//! leave before new data then, by the path on which they arrive first, and their number follows from the share of the
//! chunks in flight that will be late or lost, by the ages at which earlier ones were acknowledged. What leaves too shortly
//! before its deadline for a sum that may take a whole round trip has sums as without `late`.
//! A path whose packets overtake each other also carries sums of its own chunks, right behind the last of them or, of
//! fewer than four on which no others depend, up to 15 ms behind the first, while nothing waits there and no new data want
//! its room.
//! With `copies` what is overdue is copied as by `deadline_copy`, before anything else leaves, and sums leave only where no
//! new data wait at all.
//! What is cut while parity is agreed on leaves room for what a sum says of itself; a chunk that is larger is not covered.
//! Needs a peer with a `repair` policy. Parameters: `rate`; `latency` ms, a deadline for messages without one;
//! `window` ms, how far back a sum reaches; `code`; `late`; `guard` ms, time that a sum has to spare then; `copies`.

use super::deadline_copy::DeadlineCopy;
use super::{Extra, Redundancy, SentPayload, Sources};
use crate::asks::{Asks, Counter};
use crate::late::Late;
use crate::parity::{MOST_COVERED, MOST_SPAN, head_len, write_head};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId, PathSet, Ppm, Tsn, earlier};
use anabranch_code::{Code, Combiner};
use credit::Credit;
use hurried::Lives;
use losses::Coverable;
use quiet::Quiet;
use std::collections::VecDeque;
use summed::Summed;

mod credit;
mod hurried;
mod lateness;
mod losses;
mod quiet;
mod summed;

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "erasure",
        source: "the idea of RFC 8681",
        file: file!(),
        summary: "Sums of chunks in flight, from which the peer restores what is missing in time.",
        params: &[
            ParamInfo::number("rate", 0.1, "of what is sent", 0.0, 1.0, "most that parity may add"),
            ParamInfo::millis("latency", 0, 0, 60_000, "deadline of messages that have none; 0 leaves them out"),
            ParamInfo::millis("window", 200, 1, 10_000, "age of the oldest chunk that a sum covers"),
            ParamInfo::word("code", &["rlc", "xor"], "random linear code over GF(256), or plain XOR"),
            ParamInfo::flag("late", false, "parity for what will be late, too"),
            ParamInfo::millis("guard", 5, 0, 1_000, "time to spare before a deadline, of what will be late"),
            ParamInfo::flag("copies", false, "copies of what is overdue, and sums only where nothing new waits"),
        ],
    },
    build: |p| Box::new(Erasure::new(p)),
};

/// Sums that are remembered: what covers as many chunks as there are in flight within a sum's reach, at 100 Mbit/s.
const REMEMBERED: usize = 512;
/// Mean deviations by which a round trip has to be longer before a chunk is taken for lost.
const JITTERS: u64 = 4;

/// Places in `counters`.
const PARITY: usize = 0;
const BYTES: usize = 1;
const RESTORED: usize = 2;
const NO_LOSS: usize = 3;
const IN_TIME: usize = 4;
const ENOUGH: usize = 5;
const RATE: usize = 6;
const TOO_LARGE: usize = 7;
const DATA: usize = 8;

struct Erasure {
    latency: Duration,
    window: Duration,
    code: Code,
    credit: Credit,
    seed: u16,
    /// What the next sum covers.
    plan: Vec<Tsn>,
    /// What sums for losses may cover.
    coverable: Vec<Coverable>,
    /// By which path; none before it was thought about in this opportunity.
    decided: Option<Option<PathId>>,
    /// First and last TSN of the sums that left last.
    recent: VecDeque<(Tsn, Tsn)>,
    /// What plain sums cover; nothing of others.
    summed: Summed,
    late: Option<Late>,
    /// What the sum that was decided on is for.
    purpose: Purpose,
    /// With `late`: what lives how long, whether some of it may be hurried in this opportunity, and what is.
    lives: Lives,
    hurries: bool,
    found: Vec<ChunkView>,
    /// By path: how many of the chunks that plain sums are to cover are there.
    on: Vec<usize>,
    guard: Duration,
    copies: Option<DeadlineCopy>,
    /// What was worth asking for in this opportunity: copies, sums.
    worth: (bool, bool),
    /// What is in flight, where both look at it; empty before they did in this opportunity.
    seen: Vec<ChunkView>,
    /// The paths for which copies were asked about in it.
    asked: PathSet,
    /// No sum for what is lost was wanted, and no copy.
    no_sum: Quiet,
    no_copy: Quiet,
    counters: [Counter; 9],
}

/// What a sum is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Chunks that a path is expected to lose, by its share of losses.
    Losses,
    /// The block of what will be late or lost whose turn it is.
    Late,
    /// What will be late on the path by which the sum leaves, beside new data.
    Beside,
}

/// The deadline of a chunk, of its message or by `latency`.
fn deadline(c: &ChunkView, latency: Duration) -> Option<Instant> {
    c.deadline.or((!latency.is_zero()).then(|| c.queued_at + latency))
}

/// The path that a chunk left by, when it left, and its deadline, where it has all of them.
fn in_flight<'a>(cx: &AssocView<'a>, c: &ChunkView, latency: Duration) -> Option<(&'a PathView, Instant, Instant)> {
    let from = c.live_on.iter().next().and_then(|p| cx.path(p))?;
    Some((from, c.last_sent?, deadline(c, latency)?))
}

impl Erasure {
    fn new(p: &Params) -> Self {
        Erasure {
            latency: p.millis("latency"),
            window: p.millis("window"),
            code: if p.word("code") == "xor" { Code::Xor } else { Code::Rlc },
            credit: Credit::new(Ppm(p.ppm("rate") as u32), if p.flag("late") { 8 } else { 4 }),
            seed: 0,
            plan: Vec::with_capacity(MOST_COVERED),
            coverable: vec![],
            decided: None,
            recent: VecDeque::new(),
            summed: Summed::default(),
            late: p.flag("late").then(Late::new),
            purpose: Purpose::Losses,
            lives: Lives::new(),
            hurries: false,
            found: vec![],
            on: vec![],
            guard: p.millis("guard"),
            copies: p.flag("copies").then(DeadlineCopy::usual),
            worth: (false, false),
            seen: vec![],
            asked: PathSet::EMPTY,
            no_sum: Quiet::default(),
            no_copy: Quiet::default(),
            counters: [
                ("parity", 0),
                ("parity-bytes", 0),
                ("restored", 0),
                ("idle-no-loss", 0),
                ("idle-in-time", 0),
                ("idle-enough", 0),
                ("idle-rate", 0),
                ("parity-too-large", 0),
                ("data-bytes", 0),
            ],
        }
    }

    fn count(&mut self, what: usize) {
        self.counters[what].1 += 1;
    }

    /// Might a sum leave now?
    fn are_sums_worth_it(&mut self, cx: &AssocView<'_>) -> bool {
        let most = cx.paths.iter().map(|p| p.mtu).max().unwrap_or(0);
        if let Some(late) = &mut self.late {
            let turn = late.is_turn(cx);
            self.hurries = cx.declined && self.may_be_hurried(cx);
            if !turn && !self.hurries {
                return false;
            }
            if !self.credit.has(most) {
                self.count(RATE);
            }
            return self.credit.has(most);
        }
        let lossy = cx.paths.iter().any(|p| p.in_flight > 0 && p.loss.0 > 0);
        if !lossy {
            self.count(NO_LOSS);
        } else if !self.credit.has(most) {
            self.count(RATE);
            return false;
        }
        lossy && !self.is_no_sum_wanted(cx)
    }

    /// A copy on `path`, if one is wanted there.
    fn copy(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let copies = self.copies.as_mut()?;
        let copy = copies.extra(cx, path, outstanding);
        self.asked = self.asked.with(path.id);
        // Otherwise it says itself when it is to be asked again.
        if copy.is_none() && cx.eligible.except(self.asked).is_empty() && copies.wakeup().is_none() {
            self.no_copy.begin(cx, None, None);
        }
        copy
    }

    /// A sum on `path`, if it is wanted there.
    fn sum(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        if self.decided.is_none() {
            self.purpose = Purpose::Losses;
            let decided = match self.late.is_some() {
                true if cx.declined => self.decide_last(cx, outstanding),
                true => self.decide_late(cx, outstanding),
                false => self.decide(cx, outstanding),
            };
            self.decided = Some(decided);
        }
        (self.decided == Some(Some(path.id))).then_some(Extra::Parity)
    }
}

impl Redundancy for Erasure {
    fn asks(&self) -> Asks {
        let mut asks = Asks::EXTRA.and(Asks::PARITY);
        if self.late.is_some() {
            asks = asks.and(Asks::EXTRA_FIRST).and(Asks::EXTRA_LAST).and(Asks::ANSWERS);
        }
        if self.copies.is_some() { asks.and(Asks::EXTRA_FIRST).and(Asks::COPIES) } else { asks }
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn worth_asking(&mut self, cx: &AssocView<'_>) -> bool {
        (self.decided, self.asked) = (None, PathSet::EMPTY);
        self.seen.clear();
        let copies = self.copies.as_mut().is_some_and(|c| !self.no_copy.holds(cx) && c.worth_asking(cx));
        let sums = cx.parity_agreed && (self.copies.is_none() || cx.unsent == 0) && self.are_sums_worth_it(cx);
        self.worth = (copies, sums);
        copies || sums
    }
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let (copying, summing) = self.worth;
        if !copying {
            return self.sum(cx, path, outstanding);
        }
        if !summing {
            return self.copy(cx, path, outstanding);
        }
        let mut seen = core::mem::take(&mut self.seen);
        if seen.is_empty() {
            seen.extend(outstanding);
        }
        let copy = self.copy(cx, path, &mut seen.iter().copied());
        let extra = copy.or_else(|| self.sum(cx, path, &mut seen.iter().copied()));
        self.seen = seen;
        extra
    }
    fn write(&mut self, number: u64, room: usize, sources: &dyn Sources) -> Option<Vec<u8>> {
        self.decided = None;
        if let Some(late) = &mut self.late {
            match self.purpose {
                Purpose::Beside => late.take_beside(self.code, &mut self.plan),
                Purpose::Late => late.take(self.code, &mut self.plan),
                Purpose::Losses => {}
            }
        }
        let mut found: Vec<_> = self.plan.iter().filter_map(|t| sources.source(*t)).collect();
        let all = found.len();
        found.retain(|s| s.payload.len() + s.head.bytes().len() + head_len(MOST_SPAN) <= room);
        self.counters[TOO_LARGE].1 += (all - found.len()) as u64;
        let covers: Vec<u64> = found.iter().map(|s| s.number).collect();
        self.seed = self.seed.wrapping_add(1);
        let mut record = write_head(number, self.code, self.seed, &covers)?;
        let mut sum = Combiner::with_capacity(self.code, self.seed, room);
        found.iter().for_each(|s| sum.add(s.number, &[s.head.bytes(), s.payload]));
        record.extend(sum.finish());
        if record.len() > room {
            return None;
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.extend(self.plan.first().copied().zip(self.plan.last().copied()));
        if self.code == Code::Xor && self.purpose == Purpose::Losses {
            self.summed.add(covers.iter().map(|n| Tsn(*n as u32)));
        }
        self.credit.spend(record.len() as u64);
        self.count(PARITY);
        self.counters[BYTES].1 += record.len() as u64;
        Some(record)
    }
    fn wakeup(&self) -> Option<Instant> {
        let copies = self.copies.as_ref().and_then(Redundancy::wakeup);
        earlier(copies, self.late.as_ref().and_then(Late::wakeup))
    }
    fn answered(&mut self, path: PathId, age: Duration) {
        if let Some(late) = &mut self.late {
            late.answered(path, age);
        }
    }
    fn repaired(&mut self, _tsn: Tsn) {
        self.no_sum.end();
        self.no_copy.end();
        self.count(RESTORED);
    }
    fn sent(&mut self, s: &SentPayload<'_>) {
        self.no_sum.end();
        self.no_copy.end();
        if s.chunk.transmissions == 1 {
            self.credit.earn(s.chunk.len, s.at);
            self.counters[DATA].1 += s.chunk.len;
            if let Some(late) = &mut self.late {
                let due = deadline(s.chunk, self.latency);
                late.sent(s.chunk.last_path, due);
                self.lives.sent(s.at, due);
            }
        }
    }
}

#[cfg(test)]
#[path = "erasure/gathers.rs"]
mod gathers;
#[cfg(test)]
#[path = "erasure/looks.rs"]
mod looks;
#[cfg(test)]
#[path = "erasure/share.rs"]
mod share;
#[cfg(test)]
#[path = "erasure/tests.rs"]
mod tests;
