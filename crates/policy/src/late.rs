//! How much parity what may be late is worth, and when it leaves: for `redundancy/erasure.rs` with `late`.
//!
//! Ages at which chunks were acknowledged are counted by path. From them follows for a chunk in flight with what
//! probability it will be missing when it is due, given that it has not come yet: late or lost. Chunks that are due
//! together, and those that will most likely have come by then, are one block. Its sums leave at the last moment at
//! which they are in time, when most of what comes has come. A sum that leaves by the path of a chunk comes after it where
//! that path keeps the order: there what is lost counts, and what is late does not, since the sum would be later. How many:
//! those that save the most chunks, each sum less a price. The price follows what was earned, up where more was wanted than
//! there was, down where some is left over; where new data wait, a sum costs nearly what a packet of theirs is worth.

use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_code::Code;
use std::collections::BTreeSet;

/// Width of a bin, and how many: what takes longer is in the last one.
const BIN: Duration = Duration::from_millis(4);
const BINS: usize = 256;
/// So much a new age counts, and half of it once so many more have come.
const NEW: u32 = 64;
const MOST_AGES: u32 = 512;
/// Fewer ages say nothing.
const FEW: u32 = 16;
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
/// So many packets of new data that have not left wait for a window.
const BACKLOG: u64 = 4;

/// Ages at which the chunks of a path were acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Ages {
    /// By bin.
    counts: Vec<u32>,
    all: u32,
}

impl Default for Ages {
    fn default() -> Self {
        Ages { counts: vec![0; BINS], all: 0 }
    }
}

impl Ages {
    pub fn add(&mut self, age: Duration) {
        let bin = (age.as_nanos() / BIN.as_nanos()) as usize;
        if self.all >= MOST_AGES * NEW {
            self.counts.iter_mut().for_each(|c| *c /= 2);
            self.all = self.counts.iter().sum();
        }
        if let Some(c) = self.counts.get_mut(bin.min(BINS - 1)) {
            *c += NEW;
            self.all += NEW;
        }
    }
    /// The part that takes longer than `age`, evenly spread within a bin; none while little is known.
    pub fn longer_than(&self, age: Duration) -> Option<f64> {
        if self.all < FEW * NEW {
            return None;
        }
        let at = age.as_nanos() as f64 / BIN.as_nanos() as f64;
        let bin = at as usize;
        let above: u32 = self.counts.iter().skip(bin + 1).sum();
        let here = f64::from(self.counts.get(bin).copied().unwrap_or(0));
        let within = if bin < BINS { here * (1.0 - at.fract()) } else { 0.0 };
        Some((f64::from(above) + within) / f64::from(self.all))
    }
    /// With what probability a chunk that left by `p` so long ago and has not been acknowledged is lost.
    pub fn lost(&self, p: &PathView, age: Duration) -> f64 {
        let loss = f64::from(p.loss.0) / 1e6;
        let waits = self.longer_than(age).unwrap_or(1.0);
        if loss > 0.0 { loss / (loss + (1.0 - loss) * waits) } else { 0.0 }
    }
    /// With what probability a chunk that left by `p` so long ago and has not been acknowledged will be missing when it is
    /// due `slack` after it left, whether late or lost.
    pub fn missing(&self, p: &PathView, age: Duration, slack: Duration) -> f64 {
        // An acknowledgement says when it came, later by the way back.
        let back = p.min_rtt.saturating_sub(p.one_way);
        let loss = f64::from(p.loss.0) / 1e6;
        let (Some(late), Some(waits)) = (self.longer_than((slack + back).max(age)), self.longer_than(age)) else {
            return loss;
        };
        let of = |late: f64| loss + (1.0 - loss) * late;
        if of(waits) <= 0.0 { 1.0 } else { (of(late) / of(waits)).min(1.0) }
    }
}

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
        happen.push(0.0);
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

/// The sums of one block that have not left.
#[derive(Debug)]
pub(crate) struct Block {
    /// The chunks that the sums add up.
    covers: Vec<Tsn>,
    sums: usize,
    left: usize,
    /// When the first of what it covers is due.
    due: Instant,
}

/// A chunk in flight that may need parity.
#[derive(Clone, Copy)]
struct Candidate {
    tsn: Tsn,
    path: PathId,
    sent: Instant,
    deadline: Instant,
}

/// What is known of lateness, and the block whose turn it is.
pub(crate) struct Late {
    /// By path.
    ages: Vec<Ages>,
    pub block: Option<Block>,
    /// When the next block's moment comes.
    pub wakes: Option<Instant>,
    price: f64,
    candidates: Vec<Candidate>,
    /// What is in flight and was in a block, as bare TSNs: before and now.
    had: BTreeSet<u32>,
    has: BTreeSet<u32>,
}

impl Late {
    pub fn new() -> Self {
        Late {
            ages: vec![],
            block: None,
            wakes: None,
            price: PRICE.0,
            candidates: vec![],
            had: BTreeSet::new(),
            has: BTreeSet::new(),
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
        let Some(b) = self.block.as_mut().filter(|b| b.left > 0) else { return };
        let (step, from) = if code == Code::Xor { (b.sums, b.left - 1) } else { (1, 0) };
        plan.clear();
        plan.extend(b.covers.iter().skip(from).step_by(step));
        b.left -= 1;
    }
    /// Looks at what is in flight anew.
    pub fn begin(&mut self) {
        self.candidates.clear();
        self.has.clear();
        (self.block, self.wakes) = (None, None);
    }
    /// Notes a chunk in flight.
    pub fn note(&mut self, path: PathId, c: &ChunkView, sent: Instant, deadline: Instant) {
        if self.had.contains(&c.tsn.0) {
            self.has.insert(c.tsn.0);
        } else {
            self.candidates.push(Candidate { tsn: c.tsn, path, sent, deadline });
        }
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
        core::mem::swap(&mut self.had, &mut self.has);
        let worth_it = |c: &&Candidate| self.missing(cx, by, c, c.deadline) > SURE;
        let Some(first) = self.candidates.iter().filter(worth_it).map(|c| c.deadline).min() else { return };
        let moment = first - (takes + spare);
        if moment > cx.now {
            self.wakes = Some(moment);
            return;
        }
        let (mut covers, mut parts) = (vec![], vec![]);
        for c in &self.candidates {
            let missing = self.missing(cx, by, c, first);
            let together = c.deadline <= first + TOGETHER;
            let settled = || missing <= LIKELY && missing <= self.missing(cx, by, c, c.deadline) * HARDLY;
            if missing > SURE && (together || settled()) {
                covers.push(c.tsn);
                parts.push(missing);
            }
        }
        let wish = saves(&parts, code, parts.len().min(most.max(1) * 2));
        let waits = cx.unsent >= BACKLOG * cx.paths.iter().map(|p| p.mtu).max().unwrap_or(0);
        let price = if waits { PRICE.2 } else { self.price };
        let worth = |r: &usize| wish.get(*r).copied().unwrap_or(0.0) - price * *r as f64;
        let best = |up_to: usize| (0..=up_to).max_by(|a, b| worth(a).total_cmp(&worth(b)).then(b.cmp(a))).unwrap_or(0);
        let last = wish.len().saturating_sub(1);
        let (wanted, sums) = (best(last), best(most.min(last)));
        let follows = if wanted > sums { self.price * FOLLOWS } else { self.price / FOLLOWS };
        self.price = follows.clamp(PRICE.1, PRICE.2);
        self.had.extend(covers.iter().map(|t| t.0));
        // There may be another block right behind.
        self.wakes = Some(cx.now + Duration::from_millis(1));
        self.block = (sums > 0).then_some(Block { covers, sums, left: sums, due: first });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, ms};
    use anabranch_base::Ppm;

    /// Acknowledged after 100 to 300 ms, evenly.
    fn unsteady() -> Ages {
        let mut ages = Ages::default();
        (0..200).for_each(|i| ages.add(ms(100 + i)));
        ages
    }

    #[test]
    fn the_part_that_is_late_is_counted() {
        let ages = unsteady();
        for (age, part) in [(0, 1.0), (100, 1.0), (150, 0.75), (250, 0.25), (300, 0.0), (9_000, 0.0)] {
            let longer = ages.longer_than(ms(age)).unwrap();
            assert!((longer - part).abs() < 0.01, "{age} ms: {longer}");
        }
        let mut ages = Ages::default();
        (1..FEW).for_each(|_| ages.add(ms(10)));
        assert_eq!(ages.longer_than(ms(5)), None);
        // What is new counts for more than what is old.
        (0..2 * MOST_AGES).for_each(|_| ages.add(ms(100_000)));
        assert!(ages.longer_than(ms(50)).unwrap() > 0.98);
    }

    #[test]
    fn what_has_not_come_is_late_more_likely() {
        let (ages, mut s) = (unsteady(), Scene::new(1, 0));
        let missing = |s: &Scene, age, slack| ages.missing(&s.paths[0], ms(age), ms(slack));
        assert!((missing(&s, 0, 250) - 0.25).abs() < 0.01);
        assert!((missing(&s, 200, 250) - 0.5).abs() < 0.02, "half of what takes 200 ms takes 250");
        // Of a round trip of 60 ms, 10 are the way back: what is acknowledged after 260 had come after 250.
        (s.paths[0].min_rtt, s.paths[0].one_way) = (ms(60), ms(50));
        assert!((missing(&s, 200, 240) - 0.5).abs() < 0.02);
        s.paths[0].loss = Ppm(100_000);
        let expected = (0.1 + 0.9 * 0.25) / (0.1 + 0.9 * 0.5);
        assert!((missing(&s, 200, 240) - expected).abs() < 0.02, "lost or late");
        assert!(missing(&s, 400, 500) > 0.99, "nothing takes so long");
        assert!((ages.lost(&s.paths[0], ms(200)) - 0.1 / (0.1 + 0.9 * 0.5)).abs() < 0.02, "lost, not late");
        assert!(ages.lost(&s.paths[0], ms(400)) > 0.99);
        s.paths[0].loss = Ppm(0);
        assert!(ages.lost(&s.paths[0], ms(400)) < 1e-9, "nothing is lost there");
        s.paths[0].loss = Ppm(100_000);
        assert!((Ages::default().missing(&s.paths[0], ms(10), ms(90)) - 0.1).abs() < 1e-9, "nothing known but losses");
    }

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
    }
}
