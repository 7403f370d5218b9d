//! A block of chunks whose sums leave together, and what fits into one.

use crate::parity::{MOST_COVERED, MOST_SPAN};
use anabranch_base::{Instant, Tsn};
use anabranch_code::Code;

/// What the sums of one block cover, as much as a sum can.
#[derive(Debug, Default)]
pub(super) struct Cover {
    tsns: Vec<Tsn>,
    /// With what probability each is missing.
    parts: Vec<f64>,
    ends: Option<(Tsn, Tsn)>,
    /// Something had no room.
    is_cut: bool,
}

impl Cover {
    /// Takes what is missing with this probability, if there is room.
    pub fn add(&mut self, tsn: Tsn, missing: f64) {
        let (first, last) = self.ends.unwrap_or((tsn, tsn));
        let (first, last) = (if tsn.before(first) { tsn } else { first }, if tsn.after(last) { tsn } else { last });
        if self.tsns.len() >= MOST_COVERED || u64::from(last.distance(first)) >= MOST_SPAN {
            self.is_cut = true;
            return;
        }
        self.ends = Some((first, last));
        self.tsns.push(tsn);
        self.parts.push(missing);
    }
    pub fn parts(&self) -> &[f64] {
        &self.parts
    }
    pub fn tsns(&self) -> &[Tsn] {
        &self.tsns
    }
    /// The last one that it covers, when something had no room.
    pub fn cut_behind(&self) -> Option<Tsn> {
        self.ends.filter(|_| self.is_cut).map(|(_, last)| last)
    }
    /// A block of so many sums.
    pub fn block(mut self, sums: usize, due: Instant) -> Option<Block> {
        let first = self.ends?.0;
        self.tsns.sort_unstable_by_key(|t| t.distance(first));
        (sums > 0).then_some(Block { covers: self.tsns, sums, left: sums, due })
    }
}

/// The sums of one block that have not left.
#[derive(Debug)]
pub(super) struct Block {
    /// The chunks that the sums add up.
    covers: Vec<Tsn>,
    sums: usize,
    pub left: usize,
    /// When the first of what it covers is due.
    pub due: Instant,
}

impl Block {
    /// The sum that leaves next is written: what it is to cover.
    pub fn take(&mut self, code: Code, plan: &mut Vec<Tsn>) {
        if self.left == 0 {
            return;
        }
        let (step, from) = if code == Code::Xor { (self.sums, self.left - 1) } else { (1, 0) };
        plan.clear();
        plan.extend(self.covers.iter().skip(from).step_by(step));
        self.left -= 1;
    }
}
