//! Solves for what is missing, step by step, as sources and repair symbols come.

use crate::combiner::Code;
use crate::row::Row;
use crate::sources::Sources;
use fearless_simd::Level;
use std::collections::VecDeque;

/// How much a decoder keeps and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sources back from the newest one.
    pub sources: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// Repair symbols that wait for more.
    pub rows: usize,
    /// Missing sources that one repair symbol may cover.
    pub missing: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { sources: 512, bytes: 1 << 20, rows: 32, missing: 64 }
    }
}

/// A repair symbol.
#[derive(Clone, Copy, Debug)]
pub struct Repair<'a> {
    /// The code whose coefficients it was summed with.
    pub code: Code,
    /// With this seed.
    pub seed: u16,
    /// The sum.
    pub symbol: &'a [u8],
}

/// What came of a repair symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that it covers is missing.
    Needless,
    /// Something is solved: see [`Decoder::next_solved`].
    Solved,
    /// It waits for more.
    Waiting,
    /// It says nothing that others do not.
    Redundant,
    /// It covers sources that came too long ago to be kept.
    TooOld,
    /// It covers more that is missing than is taken, or there are more repair symbols than sources.
    TooMuch,
}

/// Repair symbols taken beyond the number of sources that came.
const CREDIT: u32 = 64;

/// The receiving end of a code.
///
/// It holds at most [`Limits::bytes`] of sources and [`Limits::rows`] repair symbols. One repair symbol costs at most as
/// many passes over its length as it covers sources, and one for each that waits; and no more are looked into than
/// sources came, but for a few.
#[derive(Debug)]
pub struct Decoder {
    level: Level,
    limits: Limits,
    sources: Sources,
    /// Each with a pivot that no other has; normalised.
    rows: Vec<Row>,
    solved: VecDeque<(u64, Vec<u8>)>,
    /// The one that was handed out last.
    handed: Vec<u8>,
    credit: u32,
}

impl Decoder {
    /// Nothing has come.
    pub fn new(limits: Limits) -> Self {
        Decoder {
            level: Level::new(),
            sources: Sources::new(limits.sources.max(1), limits.bytes),
            limits,
            rows: Vec::new(),
            solved: VecDeque::new(),
            handed: Vec::new(),
            credit: CREDIT,
        }
    }

    /// A source came, in one or more pieces. It may solve others.
    pub fn source(&mut self, number: u64, pieces: &[&[u8]]) {
        self.credit = (self.credit + 1).min(CREDIT);
        if self.sources.keep(self.level, number, pieces) && !self.rows.is_empty() {
            self.know(number);
        }
    }

    /// A repair symbol came that covers the sources with these numbers, lowest first.
    pub fn repair(&mut self, r: &Repair<'_>, covers: impl Iterator<Item = u64> + Clone) -> Outcome {
        let missing = covers.clone().filter(|n| self.sources.get(*n).is_none());
        let many = missing.clone().count();
        if many == 0 {
            return Outcome::Needless;
        }
        if missing.clone().any(|n| n < self.sources.base()) {
            return Outcome::TooOld;
        }
        if many > self.limits.missing || self.credit == 0 || r.symbol.is_empty() {
            return Outcome::TooMuch;
        }
        self.credit -= 1;
        let terms = missing.map(|n| (n, r.code.coefficient(r.seed, n))).collect();
        let mut row = Row::new(terms, r.symbol.to_vec());
        for (number, known) in covers.filter_map(|n| Some((n, self.sources.get(n)?))) {
            row.take_off(self.level, known, r.code.coefficient(r.seed, number));
        }
        self.insert(row)
    }

    /// A source that was missing and is known now; its symbol may have zeros behind it.
    pub fn next_solved(&mut self) -> Option<(u64, &[u8])> {
        let (number, symbol) = self.solved.pop_front()?;
        self.handed = symbol;
        Some((number, &self.handed))
    }

    /// Lower numbers are not missing any more, whether they came or not.
    pub fn settle_below(&mut self, number: u64) {
        if self.rows.iter().any(|r| r.pivot().is_some_and(|p| p < number)) {
            self.rows.retain(|r| r.pivot().is_some_and(|p| p >= number));
        }
    }

    /// What is held, bytes.
    pub fn bytes(&self) -> usize {
        let solved: usize = self.solved.iter().map(|s| s.1.len()).sum();
        self.sources.bytes() + self.rows.iter().map(Row::bytes).sum::<usize>() + solved
    }

    /// Repair symbols that wait.
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Brings a new row into the system, and what follows from that.
    fn insert(&mut self, mut row: Row) -> Outcome {
        for other in &self.rows {
            row.eliminate(self.level, other);
        }
        let Some(pivot) = row.pivot() else { return Outcome::Redundant };
        row.normalise(self.level);
        for other in self.rows.iter_mut().filter(|o| o.coefficient(pivot) != 0) {
            other.eliminate(self.level, &row);
        }
        self.rows.push(row);
        let before = self.solved.len();
        self.collect();
        if self.rows.len() > self.limits.rows {
            let oldest = self.rows.iter().enumerate().min_by_key(|(_, r)| r.newest()).map(|(i, _)| i);
            oldest.into_iter().for_each(|i| drop(self.rows.swap_remove(i)));
        }
        if self.solved.len() > before { Outcome::Solved } else { Outcome::Waiting }
    }

    /// Rows with one term are solved.
    fn collect(&mut self) {
        while let Some(at) = self.rows.iter().position(|r| r.len() == 1) {
            let row = self.rows.swap_remove(at);
            let Some(number) = row.pivot() else { continue };
            let symbol = row.into_symbol();
            // Its number is a pivot, so no other row has it.
            self.sources.keep(self.level, number, &[&symbol]);
            self.solved.push_back((number, symbol));
        }
    }

    /// A source is known by itself.
    fn know(&mut self, number: u64) {
        let mut loose = None;
        for at in (0..self.rows.len()).rev() {
            let was_pivot = self.rows[at].pivot() == Some(number);
            let Some(known) = self.sources.get(number) else { return };
            if self.rows[at].substitute(self.level, number, known) && was_pivot {
                loose = Some(self.rows.swap_remove(at));
            }
        }
        match loose {
            Some(row) if row.len() > 0 => drop(self.insert(row)),
            _ => self.collect(),
        }
    }
}
