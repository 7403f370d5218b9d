//! How much parity what may be late is worth, and when it leaves: for `redundancy/erasure.rs` with `late`.
//!
//! Ages at which chunks were acknowledged are counted by path. From them follows for a chunk in flight with what
//! probability it will be missing when it is due, given that it has not come yet: late or lost. Chunks that are due
//! together, and those that will most likely have come by then, are one block. Its sums leave at the last moment at
//! which they are in time, when most of what comes has come. A sum that leaves by the path of a chunk comes after it where
//! that path keeps the order: there what is lost counts, and what is late does not, since the sum would be later. How many:
//! those that save the most chunks, each sum less a price. The price follows what was earned, up where more was wanted than
//! there was, down where some is left over; where new data wait, a sum costs nearly what a packet of theirs is worth.
//! A path that has room when new data have been offered all of it is another place: where packets overtake each other, a
//! sum that leaves behind what is late there comes before it as likely as not. So what left together there has its sums at
//! once, by the path itself, as many as are worth it with the probability that each comes in time; a few on which no
//! others depend are gathered for a moment first.

use crate::view::{AssocView, ChunkView, PathView};
use ages::Ages;
use anabranch_base::{Duration, Instant, PathId, PathSet, Tsn, earlier};
use anabranch_code::Code;
use block::{Block, Cover};
use std::collections::BTreeSet;

mod ages;
mod block;

/// Due so soon after the first of a block, a chunk is due with it.
const TOGETHER: Duration = Duration::from_millis(5);
/// A chunk that is due later is in the block when it is missing at the time with no more than this probability, and with
/// hardly more than when it is due itself: what is still on its way would be one more to solve for.
const LIKELY: f64 = 0.3;
const HARDLY: f64 = 1.2;
/// A chunk that will come, but for one case in so many, needs no parity.
const SURE: f64 = 1e-3;
/// Price of a sum in chunks saved: at first, at least, at most; and by how much it follows.
const PRICE: (f64, f64, f64) = (0.3, 0.05, 0.9);
const FOLLOWS: f64 = 1.05;
/// Least price of one that the next block waits behind.
const DELAYS: f64 = 0.1;
/// What was less long ago goes on.
const LATELY: Duration = Duration::from_secs(1);
/// Nothing joins a block when nothing has for the time of so many packets.
const PACKETS: u64 = 2;
/// But a block of fewer than so many chunks on which no others depend gathers more for so long: of a source that offers one
/// after the other, each sum saves more of a few than of one.
const FEW: usize = 4;
const GATHERS: Duration = Duration::from_millis(15);
/// So long after a look at what is in flight another one may find more.
const AGAIN: Duration = Duration::from_millis(1);
/// So many packets of new data that have not left wait for a window.
const BACKLOG: u64 = 4;

/// How many of independent events with these probabilities happen: what each number of sums saves, in the mean.
fn saves(parts: &[f64], code: Code, most: usize) -> Vec<f64> {
    if code == Code::Xor {
        // Each sum covers one in so many, and restores one chunk where no other is missing.
        let one = |of: usize, nth: usize| {
            let own = parts.iter().skip(nth).step_by(of);
            own.fold((1.0, 0.0), |(none, one), p| (none * (1.0 - p), one * (1.0 - p) + none * p)).1
        };
        return (0..=most).map(|r| (0..r).map(|nth| one(r, nth)).sum()).collect();
    }
    let mut happen = vec![1.0];
    for p in parts {
        // More than there are sums say nothing.
        if happen.len() <= most {
            happen.push(0.0);
        }
        let mut fewer = 0.0;
        for h in &mut happen {
            (*h, fewer) = (*h * (1.0 - p) + fewer * p, *h);
        }
    }
    let mut sum = 0.0;
    let with = |k: usize| {
        sum += k as f64 * happen.get(k).copied().unwrap_or(0.0);
        sum
    };
    (0..=most).map(with).collect()
}

/// What each number of sums saves, of which the k-th comes with this probability, where so many that come save so much.
fn arriving(saves: &[f64], comes: impl Fn(u64) -> f64) -> Vec<f64> {
    let mut come = vec![1.0];
    let mut out = Vec::with_capacity(saves.len());
    for k in 1..=saves.len() {
        out.push(come.iter().zip(saves).map(|(p, s)| p * s).sum());
        let p = comes(k as u64);
        come.push(0.0);
        let mut fewer = 0.0;
        for c in &mut come {
            (*c, fewer) = (*c * (1.0 - p) + fewer * p, *c);
        }
    }
    out
}

/// Of at most `most` sums as many as save the most at this price.
fn best(saves: &[f64], most: usize, price: f64) -> usize {
    let worth = |r: &usize| saves.get(*r).copied().unwrap_or(0.0) - price * *r as f64;
    let up_to = most.min(saves.len().saturating_sub(1));
    (0..=up_to).max_by(|a, b| worth(a).total_cmp(&worth(b)).then(b.cmp(a))).unwrap_or(0)
}

/// The price follows what is wanted and what there is.
fn follow(price: &mut f64, up: bool) {
    let follows = if up { *price * FOLLOWS } else { *price / FOLLOWS };
    *price = follows.clamp(PRICE.1, PRICE.2);
}

/// A chunk in flight that may need parity.
#[derive(Clone, Copy)]
struct Candidate {
    tsn: Tsn,
    path: PathId,
    sent: Instant,
    deadline: Instant,
    /// Others depend on it.
    needed: bool,
}

/// What is known of lateness, and the block whose turn it is.
pub(crate) struct Late {
    /// By path.
    ages: Vec<Ages>,
    block: Option<Block>,
    /// The block whose sums leave by the path of its chunks, and when to look for one again.
    beside: Option<(PathId, Block)>,
    looks: Option<Instant>,
    /// What left last by this path behind this TSN had no room in the block beside.
    rest: Option<(PathId, Tsn)>,
    /// By path: when the newest chunk had left of the block that was judged last. By which paths anything has left since.
    judged: Vec<Instant>,
    fresh: PathSet,
    /// When new data last waited.
    waited: Instant,
    /// When the next block's moment comes.
    wakes: Option<Instant>,
    /// Where none is worth a sum: when to look again, unless something leaves by then whose moment it is, by the time that a
    /// sum takes.
    rests: Option<Instant>,
    takes: Duration,
    price: f64,
    price_beside: f64,
    candidates: Vec<Candidate>,
    /// What was noted last and was in a block, as bare TSNs.
    had: BTreeSet<u32>,
}

impl Late {
    pub fn new() -> Self {
        Late {
            ages: vec![],
            block: None,
            beside: None,
            looks: None,
            rest: None,
            judged: vec![],
            fresh: PathSet::EMPTY,
            waited: Instant::ZERO,
            wakes: None,
            rests: None,
            takes: Duration::ZERO,
            price: PRICE.0,
            price_beside: PRICE.0,
            candidates: vec![],
            had: BTreeSet::new(),
        }
    }
    /// A chunk that left once was acknowledged.
    pub fn answered(&mut self, path: PathId, age: Duration) {
        let at = path.index();
        if self.ages.len() <= at {
            self.ages.resize_with(at + 1, Ages::default);
        }
        if let Some(ages) = self.ages.get_mut(at) {
            ages.add(age);
        }
    }
    /// Is there a block with a sum that is of use when it takes so long?
    pub fn wants_more(&self, now: Instant, takes: Duration) -> bool {
        self.block.as_ref().is_some_and(|b| b.left > 0 && now + takes <= b.due)
    }
    /// The sum that leaves next is written: what it is to cover.
    pub fn take(&mut self, code: Code, plan: &mut Vec<Tsn>) {
        if let Some(b) = &mut self.block {
            b.take(code, plan);
        }
        self.block.take_if(|b| b.left == 0);
    }
    /// The sum that leaves next by `path` beside new data, if one is wanted there that will be in time.
    pub fn wants_beside(&self, now: Instant, path: PathId, takes: Duration) -> bool {
        self.beside.as_ref().is_some_and(|(p, b)| *p == path && b.left > 0 && now + takes <= b.due)
    }
    /// The next sum of the block beside new data.
    pub fn take_beside(&mut self, code: Code, plan: &mut Vec<Tsn>) {
        if let Some((_, b)) = &mut self.beside {
            b.take(code, plan);
        }
        self.beside.take_if(|(_, b)| b.left == 0);
    }
    fn has_backlog(cx: &AssocView<'_>) -> bool {
        cx.unsent >= BACKLOG * cx.paths.iter().map(|p| p.mtu).max().unwrap_or(0)
    }
    /// Might a sum leave now? Where new data were offered to all paths, it notes whether some wait.
    pub fn is_turn(&mut self, cx: &AssocView<'_>) -> bool {
        if !cx.declined {
            return self.block.is_some() || self.wakes.or(self.rests).is_none_or(|t| t <= cx.now);
        }
        if Self::has_backlog(cx) {
            self.waited = cx.now;
        }
        self.beside.is_some() || self.rest.is_some() || self.is_fresh(cx.now, self.fresh)
    }
    /// When it might be the next time.
    pub fn wakeup(&self) -> Option<Instant> {
        earlier(self.wakes, self.looks)
    }
    /// A chunk left for the first time.
    pub fn sent(&mut self, by: Option<PathId>, deadline: Option<Instant>) {
        self.fresh = by.map_or(self.fresh, |p| self.fresh.with(p));
        self.rests.take_if(|t| deadline.is_some_and(|d| d <= *t + self.takes));
    }
    /// Has anything left by one of these paths since its last block was judged, and is it time to look?
    fn is_fresh(&self, now: Instant, paths: PathSet) -> bool {
        !self.fresh.and(paths).is_empty() && self.looks.is_none_or(|t| t <= now)
    }
    /// May there be another block for sums by this path?
    pub fn looks_beside(&mut self, now: Instant, path: PathId) -> bool {
        self.beside = None;
        self.rest.is_some_and(|(p, _)| p == path) || self.is_fresh(now, PathSet::only(path))
    }
    /// Is it in a block?
    pub fn has(&self, tsn: Tsn) -> bool {
        self.had.contains(&tsn.0)
    }
    /// Looks at what is in flight anew.
    pub fn begin(&mut self) {
        self.candidates.clear();
    }
    /// Of what was noted what left last by this path and is due together, when nothing more joins it: as many sums as are
    /// worth it, by the path itself, which has room that nothing new wants. Packets overtake each other there: a sum comes
    /// before what it makes up for, as likely as not.
    pub fn choose_beside(&mut self, cx: &AssocView<'_>, by: &PathView, takes: Duration, code: Code, most: usize) {
        (self.beside, self.looks) = (None, None);
        let rest = self.rest.take().filter(|(path, _)| *path == by.id).map(|(_, behind)| behind);
        let here = || self.candidates.iter().filter(|c| c.path == by.id);
        self.fresh = self.fresh.without(by.id);
        let judged = self.judged.get(by.id.index()).copied().unwrap_or(Instant::ZERO);
        let unjudged = || here().filter(|c| rest.map_or(c.sent > judged, |behind| c.tsn.after(behind)));
        let Some(due) = unjudged().map(|c| c.deadline).min() else { return };
        let of_block = || unjudged().filter(|c| c.deadline <= due + GATHERS);
        let sent = || of_block().map(|c| c.sent);
        let Some((oldest, newest)) = sent().min().zip(sent().max()) else { return };
        let packet = crate::predict::rate(by).time_for(by.mtu);
        let few = of_block().take(FEW).count() < FEW && !of_block().any(|c| c.needed);
        let gathers = few && cx.now < oldest + GATHERS;
        let joined = newest + packet * PACKETS;
        // A sum that left later would be too late.
        let gathers = gathers && cx.now + takes + packet.max(AGAIN) * PACKETS < due;
        let joined = if gathers { joined.max(cx.now + packet.max(AGAIN)).min(oldest + GATHERS) } else { joined };
        // Another block has begun behind it.
        let ended = unjudged().any(|c| c.deadline > due + GATHERS);
        if joined > cx.now && rest.is_none() && !ended {
            (self.looks, self.fresh) = (Some(joined), self.fresh.with(by.id));
            return;
        }
        if ended {
            (self.looks, self.fresh) = (Some(cx.now + AGAIN), self.fresh.with(by.id));
        }
        if self.judged.len() <= by.id.index() {
            self.judged.resize(by.id.index() + 1, Instant::ZERO);
        }
        if let Some(judged) = self.judged.get_mut(by.id.index()) {
            *judged = newest;
        }
        let Some(ages) = self.ages.get(by.id.index()) else { return };
        let mut cover = Cover::default();
        of_block().for_each(|c| cover.add(c.tsn, self.missing(cx, by.id, c, c.deadline)));
        // One leaves behind the other.
        let comes = |k: u64| 1.0 - ages.missing(by, Duration::ZERO, due.since(cx.now).saturating_sub(packet * k));
        let solved = saves(cover.parts(), code, cover.parts().len().min(most));
        let sums = best(&arriving(&solved, comes), most, self.price_beside.max(DELAYS));
        follow(&mut self.price_beside, sums == most);
        self.rest = cover.cut_behind().map(|t| (by.id, t));
        if sums > 0 {
            self.had.extend(cover.tsns().iter().map(|t| t.0));
        }
        self.beside = cover.block(sums, due).map(|b| (by.id, b));
    }
    /// Notes a chunk in flight.
    pub fn note(&mut self, path: PathId, c: &ChunkView, sent: Instant, deadline: Instant) {
        self.candidates.push(Candidate { tsn: c.tsn, path, sent, deadline, needed: c.class < 2 });
    }
    /// With what probability a chunk will not have come at `due`, and a sum that leaves `by` this path will have.
    fn missing(&self, cx: &AssocView<'_>, by: PathId, c: &Candidate, due: Instant) -> f64 {
        let Some((p, ages)) = cx.path(c.path).zip(self.ages.get(c.path.index())) else { return 0.0 };
        let age = cx.now.since(c.sent);
        if c.path == by && !p.reorders(cx.now) { ages.lost(p, age) } else { ages.missing(p, age, due - c.sent) }
    }
    /// Of what was noted the block whose moment has come, if a sum leaves `by` this path and takes so long, with `spare` to
    /// spare, and `most` may leave.
    pub fn choose(
        &mut self,
        cx: &AssocView<'_>,
        by: PathId,
        takes: Duration,
        spare: Duration,
        code: Code,
        most: usize,
    ) {
        (self.block, self.wakes, self.rests) = (None, None, None);
        let had = core::mem::take(&mut self.had);
        self.had.extend(self.candidates.iter().map(|c| c.tsn.0).filter(|t| had.contains(t)));
        self.candidates.retain(|c| !had.contains(&c.tsn.0));
        let worth_it = |c: &&Candidate| self.missing(cx, by, c, c.deadline) > SURE;
        let Some(first) = self.candidates.iter().filter(worth_it).map(|c| c.deadline).min() else {
            (self.rests, self.takes) = (Some(cx.now + AGAIN), takes + spare);
            return;
        };
        let moment = first - (takes + spare);
        if moment > cx.now {
            self.wakes = Some(moment);
            return;
        }
        let mut cover = Cover::default();
        let is_together = |c: &&Candidate| c.deadline <= first + TOGETHER;
        let missing = |c: &Candidate| self.missing(cx, by, c, first);
        for c in self.candidates.iter().filter(is_together) {
            let missing = missing(c);
            if missing > SURE {
                cover.add(c.tsn, missing);
            }
        }
        for c in self.candidates.iter().filter(|c| !is_together(c)) {
            let missing = missing(c);
            let settled = || missing <= LIKELY && missing <= self.missing(cx, by, c, c.deadline) * HARDLY;
            if missing > SURE && settled() {
                cover.add(c.tsn, missing);
            }
        }
        let wish = saves(cover.parts(), code, cover.parts().len().min(most.max(1) * 2));
        // What the quick path carries in place of new data adds to what the other one makes late.
        let lately = |t: Instant| cx.now.since(t) < LATELY;
        let judged = self.judged.iter().copied().max().unwrap_or(Instant::ZERO);
        let waits = Self::has_backlog(cx) || lately(judged) && lately(self.waited);
        let price = if waits { PRICE.2 } else { self.price };
        let (wanted, sums) = (best(&wish, wish.len(), price), best(&wish, most, price));
        follow(&mut self.price, wanted > sums);
        self.had.extend(cover.tsns().iter().map(|t| t.0));
        // There may be another block right behind: what had no room is one.
        let at_once = sums > 0 && cover.cut_behind().is_some();
        self.wakes = Some(if at_once { cx.now } else { cx.now + AGAIN });
        self.block = cover.block(sums, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_save_what_they_can_solve() {
        let near = |got: Vec<f64>, expected: &[f64]| {
            assert!(
                got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9),
                "{got:?}"
            );
        };
        near(saves(&[0.5, 0.5], Code::Rlc, 3), &[0.0, 0.5, 1.0, 1.0]);
        near(saves(&[0.5, 0.5], Code::Xor, 2), &[0.0, 0.5, 1.0]);
        // Of four, two missing: one more sum solves both by equations, and by XOR only where they are in different halves.
        near(saves(&[1.0, 0.0, 1.0, 0.0], Code::Rlc, 2), &[0.0, 0.0, 2.0]);
        near(saves(&[1.0, 0.0, 1.0, 0.0], Code::Xor, 2), &[0.0, 0.0, 0.0]);
        near(saves(&[], Code::Rlc, 1), &[0.0, 0.0]);
        near(arriving(&[0.0, 0.5, 1.0], |_| 1.0), &[0.0, 0.5, 1.0]);
        // Of two sums that come each other time, both come in one case of four, and one in two.
        near(arriving(&[0.0, 0.5, 1.0], |_| 0.5), &[0.0, 0.25, 0.5]);
        near(arriving(&[0.0, 0.5, 1.0], |k| if k == 1 { 1.0 } else { 0.0 }), &[0.0, 0.5, 0.5]);
    }
}
