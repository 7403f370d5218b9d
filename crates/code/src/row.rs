//! One equation: some sources that are missing, each times its coefficient, add up to a symbol.

use crate::gf256;
use fearless_simd::Level;

#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Numbers with coefficients that are not zero, lowest first.
    terms: Vec<(u64, u8)>,
    symbol: Vec<u8>,
}

impl Row {
    /// `terms` lie in the order of their numbers.
    pub fn new(terms: Vec<(u64, u8)>, symbol: Vec<u8>) -> Self {
        Row { terms, symbol }
    }

    /// The source that this row alone stands for, once it is in a system.
    pub fn pivot(&self) -> Option<u64> {
        self.terms.first().map(|t| t.0)
    }

    pub fn newest(&self) -> Option<u64> {
        self.terms.last().map(|t| t.0)
    }

    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn coefficient(&self, number: u64) -> u8 {
        self.terms.binary_search_by_key(&number, |t| t.0).map_or(0, |at| self.terms[at].1)
    }

    /// One source is known: what it adds is taken off. True when it was among the terms.
    pub fn substitute(&mut self, level: Level, number: u64, known: &[u8]) -> bool {
        let Ok(at) = self.terms.binary_search_by_key(&number, |t| t.0) else { return false };
        let (_, by) = self.terms.remove(at);
        self.take_off(level, known, by);
        true
    }

    /// A known source that is not among the terms was part of the sum.
    pub fn take_off(&mut self, level: Level, known: &[u8], by: u8) {
        self.lengthen(known.len());
        gf256::add_scaled(level, &mut self.symbol, known, by);
    }

    /// The first coefficient becomes one.
    pub fn normalise(&mut self, level: Level) {
        let Some(&(_, first)) = self.terms.first() else { return };
        if first != 1 {
            let by = gf256::inverse(first);
            self.terms.iter_mut().for_each(|t| t.1 = gf256::mul(t.1, by));
            gf256::scale(level, &mut self.symbol, by);
        }
    }

    /// Takes the multiple of `other` off that makes the coefficient of its pivot zero.
    pub fn eliminate(&mut self, level: Level, other: &Row) {
        let Some(pivot) = other.pivot() else { return };
        let by = self.coefficient(pivot);
        if by == 0 {
            return;
        }
        let mut merged = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut mine, mut theirs) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (number, sum) = match (mine.peek(), theirs.peek()) {
                (Some(&&m), Some(&&t)) if m.0 == t.0 => (m.0, m.1 ^ gf256::mul(t.1, by)),
                (Some(&&m), Some(&&t)) if m.0 < t.0 => m,
                (Some(&&m), None) => m,
                (_, Some(&&t)) => (t.0, gf256::mul(t.1, by)),
                (None, None) => break,
            };
            mine.next_if(|m| m.0 == number);
            theirs.next_if(|t| t.0 == number);
            if sum != 0 {
                merged.push((number, sum));
            }
        }
        self.terms = merged;
        self.lengthen(other.symbol.len());
        gf256::add_scaled(level, &mut self.symbol, &other.symbol, by);
    }

    pub fn into_symbol(self) -> Vec<u8> {
        self.symbol
    }

    /// What this holds, bytes.
    pub fn bytes(&self) -> usize {
        self.symbol.len() + 16 * self.terms.len()
    }

    fn lengthen(&mut self, len: usize) {
        if self.symbol.len() < len {
            self.symbol.resize(len, 0);
        }
    }
}
