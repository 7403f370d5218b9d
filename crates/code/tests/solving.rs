//! A decoder solves what can be solved, no more and nothing else, in whatever order things come.

use anabranch_code::{Code, Combiner, Decoder, Limits, Outcome, Repair, gf256};
use proptest::prelude::*;

/// A source with its length in front, as users of a code write it.
fn source(number: u64, len: usize) -> Vec<u8> {
    let mut s = (len as u16).to_be_bytes().to_vec();
    s.extend((0..len).map(|i| (number as usize * 31 + i * 7) as u8));
    s
}

struct Sum {
    seed: u16,
    covers: Vec<u64>,
    symbol: Vec<u8>,
}

fn sum(code: Code, seed: u16, covers: &[u64], sources: &[Vec<u8>]) -> Sum {
    let mut c = Combiner::new(code, seed);
    covers.iter().for_each(|n| c.add(*n, &[&sources[*n as usize]]));
    Sum { seed, covers: covers.to_vec(), symbol: c.finish() }
}

/// Which of the missing ones the sums determine: Gaussian elimination on the coefficients alone.
fn solvable(code: Code, sums: &[Sum], missing: &[u64]) -> Vec<u64> {
    let coefficient = |s: &Sum, n: u64| if s.covers.contains(&n) { code.coefficient(s.seed, n) } else { 0 };
    let mut rows: Vec<Vec<u8>> = sums.iter().map(|s| missing.iter().map(|n| coefficient(s, *n)).collect()).collect();
    let mut done = 0;
    for column in 0..missing.len() {
        let Some(at) = (done..rows.len()).find(|r| rows[*r][column] != 0) else { continue };
        rows.swap(done, at);
        let by = gf256::inverse(rows[done][column]);
        rows[done].iter_mut().for_each(|c| *c = gf256::mul(*c, by));
        let pivot = rows[done].clone();
        for (r, row) in rows.iter_mut().enumerate().filter(|(r, _)| *r != done) {
            let (_, by) = (r, row[column]);
            row.iter_mut().zip(&pivot).for_each(|(c, p)| *c ^= gf256::mul(*p, by));
        }
        done += 1;
    }
    let alone = rows.iter().filter(|r| r.iter().filter(|c| **c != 0).count() == 1);
    let mut found: Vec<u64> = alone.map(|r| missing[r.iter().position(|c| *c != 0).unwrap()]).collect();
    found.sort_unstable();
    found
}

proptest! {
    #[test]
    fn exactly_what_is_determined_is_solved(
        lens in prop::collection::vec(1usize..90, 1..40),
        lost in prop::collection::vec(prop::bool::weighted(0.2), 40),
        sums in prop::collection::vec((0u64..40, 1u64..40, any::<u16>()), 0..12),
        order in any::<prop::sample::Index>(),
        xor: bool,
    ) {
        let code = if xor { Code::Xor } else { Code::Rlc };
        let sources: Vec<_> = lens.iter().enumerate().map(|(n, len)| source(n as u64, *len)).collect();
        let last = sources.len() as u64;
        let sums: Vec<Sum> = sums
            .into_iter()
            .map(|(first, many, seed)| {
                let covers: Vec<u64> = (first % last..last.min(first % last + many)).collect();
                sum(code, seed, &covers, &sources)
            })
            .collect();
        let missing: Vec<u64> = (0..last).filter(|n| lost[*n as usize]).collect();
        let mut d = Decoder::new(Limits::default());
        let (mut found, mut taken) = (Vec::new(), 0);
        // Some repair symbols come before the sources that they cover, others after them.
        let early = order.index(sums.len() + 1);
        let steps: Vec<Option<u64>> = (0..last).filter(|n| !missing.contains(n)).map(Some).collect();
        let mut sums_in_turn = sums.iter();
        // The first source settles where the window of the decoder begins.
        d.source(0, &[&sources[0]]);
        for step in steps {
            if taken < early && let Some(s) = sums_in_turn.next() {
                taken += 1;
                d.repair(&Repair { code, seed: s.seed, symbol: &s.symbol }, s.covers.iter().copied());
            }
            step.into_iter().for_each(|n| d.source(n, &[&sources[n as usize]]));
        }
        for s in sums_in_turn {
            d.repair(&Repair { code, seed: s.seed, symbol: &s.symbol }, s.covers.iter().copied());
        }
        while let Some((n, symbol)) = d.next_solved() {
            let whole = &sources[n as usize];
            prop_assert_eq!(&symbol[..whole.len()], &whole[..]);
            prop_assert!(symbol[whole.len()..].iter().all(|b| *b == 0));
            found.push(n);
        }
        // What was only late is solved early, and then comes.
        let mut found: Vec<u64> = found.into_iter().filter(|n| missing.contains(n) && *n != 0).collect();
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(found.len(), once.len(), "one of them twice");
        found.sort_unstable();
        let missing: Vec<u64> = missing.into_iter().filter(|n| *n != 0).collect();
        prop_assert_eq!(found, solvable(code, &sums, &missing));
    }

    /// Whatever is called a repair symbol: no panic, and never more than the limits.
    #[test]
    fn memory_is_bounded_whatever_comes(
        steps in prop::collection::vec(
            (any::<bool>(), 0u64..2_000, 1u64..255, any::<u16>(), prop::collection::vec(any::<u8>(), 0..300)), 0..400),
        rare in 1u64..5,
    ) {
        let limits = Limits { sources: 100, bytes: 10_000, rows: 8, missing: 16 };
        let mut d = Decoder::new(limits);
        for (is_source, number, many, seed, bytes) in steps {
            if is_source {
                d.source(number * rare, &[&bytes]);
            } else {
                let covers = (number..number + many).filter(|n| n % rare == 0);
                d.repair(&Repair { code: Code::Rlc, seed, symbol: &bytes }, covers);
            }
            prop_assert!(d.waiting() <= 8);
            // Each row has a symbol of 300 bytes at most, and a term for each place of the window.
            prop_assert!(d.bytes() <= 10_000 + 300 + 8 * (300 + 16 * 400) + 300 * 200, "{}", d.bytes());
            while d.next_solved().is_some() {}
        }
    }
}

#[test]
fn as_many_sums_as_are_missing_restore_them() {
    let sources: Vec<_> = (0..100).map(|n| source(n, 1_200)).collect();
    let all: Vec<u64> = (0..100).collect();
    let (mut failed, mut xor_solved) = (0, 0);
    for seed in 0..200u16 {
        for code in [Code::Rlc, Code::Xor] {
            let mut d = Decoder::new(Limits::default());
            (0..100).filter(|n| n % 25 != 7).for_each(|n| d.source(n, &[&sources[n as usize]]));
            for i in 0..4 {
                let s = sum(code, seed * 4 + i, &all, &sources);
                d.repair(&Repair { code, seed: s.seed, symbol: &s.symbol }, all.iter().copied());
            }
            let solved = core::iter::from_fn(|| d.next_solved().map(|s| s.0)).count();
            if code == Code::Rlc { failed += usize::from(solved < 4) } else { xor_solved += solved }
        }
    }
    assert!(failed <= 4, "{failed} of 200: one of 255 is expected");
    assert_eq!(xor_solved, 0, "one sum for four");
}

/// Without sources repair symbols are not looked into for ever.
#[test]
fn a_flood_of_repair_symbols_costs_no_more_than_sources_do() {
    let mut d = Decoder::new(Limits::default());
    d.source(0, &[&[1; 100]]);
    let mut looked_into = 0;
    for seed in 0..10_000 {
        let r = Repair { code: Code::Rlc, seed, symbol: &[9; 1_000] };
        looked_into += usize::from(d.repair(&r, 0..60) != Outcome::TooMuch);
    }
    assert!(looked_into <= 65, "{looked_into}");
}
