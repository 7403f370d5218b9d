//! The receiving end of `redundancy=erasure`: solves sums of chunks for those that did not come.
//!
//! Source: the idea of RFC 8681 (sliding-window random linear codes over GF(256)); format and rules are ours. Chunks are
//! kept back to a number and a sum of bytes, whichever is less; parity that covers an older one is useless. At most 32
//! sums wait, each with at most 64 chunks that are missing. No more parity is looked into than chunks came, but for 64:
//! a peer that sends nothing else costs no more than one that sends data.
//! With `on_demand` nothing is kept before parity comes, nor once none has come for long: a stream that loses nothing costs
//! no copy of its payload, and the first sum of another one may find too little to be solved.
//! Parameters: `chunks` that are kept; `memory` for them, KiB; `on_demand`.

use super::Repair;
use crate::asks::Counter;
use crate::parity::Record;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use anabranch_base::Instant;
use anabranch_code::{Decoder, Limits, Outcome};

pub(super) const POLICY: Policy<dyn Repair> = Policy {
    info: PolicyInfo {
        hook: Hook::Repair,
        name: "erasure",
        source: "the idea of RFC 8681",
        file: file!(),
        summary: "Solves sums of chunks for those that did not come.",
        params: &[
            ParamInfo::count("chunks", 512, "", 16, 4_096, "kept for parity that is still to come"),
            ParamInfo::count("memory", 1_024, "KiB", 16, 65_536, "for them"),
            ParamInfo::flag("on_demand", false, "nothing is kept before parity comes"),
        ],
    },
    build: |p| Box::new(Erasure::new(p)),
};

/// Chunks for which what comes is kept after parity came, with `on_demand`: some minutes of a film.
const KEPT_FOR: u32 = 100_000;

struct Erasure {
    limits: Limits,
    decoder: Decoder,
    /// Chunks that are still kept; none where all are.
    left: Option<u32>,
    counters: [Counter; 4],
}

/// Places in `counters`.
const RESTORED: usize = 0;
const NEEDLESS: usize = 1;
const WAITED: usize = 2;
const USELESS: usize = 3;

impl Erasure {
    fn new(p: &Params) -> Self {
        let (sources, bytes) = (p.count("chunks") as usize, p.count("memory") as usize * 1_024);
        let limits = Limits { sources, bytes, ..Limits::default() };
        let counters = [("repaired", 0), ("parity-needless", 0), ("parity-waited", 0), ("parity-useless", 0)];
        Erasure { limits, decoder: Decoder::new(limits), left: p.flag("on_demand").then_some(0), counters }
    }
}

impl Repair for Erasure {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn arrived(&mut self, number: u64, pieces: &[&[u8]]) {
        match &mut self.left {
            Some(0) => return,
            Some(left) => *left -= 1,
            None => {}
        }
        self.decoder.source(number, pieces);
        if self.left == Some(0) {
            self.decoder = Decoder::new(self.limits);
        }
    }
    fn parity(&mut self, _now: Instant, number: u64, record: &[u8]) {
        self.left = self.left.map(|_| KEPT_FOR);
        let outcome = match Record::read(number, record) {
            None => Outcome::TooMuch,
            Some(r) => {
                let repair = anabranch_code::Repair { code: r.code, seed: r.seed, symbol: r.sum };
                self.decoder.repair(&repair, r.covers())
            }
        };
        let counts = match outcome {
            Outcome::Solved => return,
            Outcome::Needless => NEEDLESS,
            Outcome::Waiting => WAITED,
            Outcome::Redundant | Outcome::TooOld | Outcome::TooMuch => USELESS,
        };
        self.counters[counts].1 += 1;
    }
    fn restored(&mut self) -> Option<(u64, &[u8])> {
        let found = self.decoder.next_solved();
        self.counters[RESTORED].1 += u64::from(found.is_some());
        found
    }
    fn settle_below(&mut self, number: u64) {
        self.decoder.settle_below(number);
    }
    fn begin_anew(&mut self) {
        self.decoder = Decoder::new(self.limits);
    }
    fn held_bytes(&self) -> usize {
        self.decoder.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::write_head;
    use anabranch_code::{Code, Combiner};

    fn chunk(n: u64) -> Vec<u8> {
        vec![n as u8; 50 + n as usize]
    }

    fn parity(number: u64, covers: &[u64]) -> Vec<u8> {
        let mut c = Combiner::new(Code::Rlc, 9);
        covers.iter().for_each(|n| c.add(*n, &[&chunk(*n)]));
        let mut record = write_head(number, Code::Rlc, 9, covers).unwrap();
        record.extend(c.finish());
        record
    }

    #[test]
    fn what_one_sum_lacks_is_restored() {
        let mut r = Erasure::new(&Params::defaults(&POLICY.info, 0));
        [10, 11, 13].into_iter().for_each(|n| r.arrived(n, &[&chunk(n)]));
        r.parity(Instant::ZERO, 14, &parity(14, &[10, 11, 12, 13]));
        assert_eq!(r.restored().map(|(n, s)| (n, s[..62].to_vec())), Some((12, chunk(12))));
        assert!(r.restored().is_none());
        r.parity(Instant::ZERO, 15, &parity(15, &[11, 12]));
        r.parity(Instant::ZERO, 16, &parity(16, &[2, 11]));
        r.parity(Instant::ZERO, 17, b"no parity");
        assert_eq!(r.counters, [("repaired", 1), ("parity-needless", 1), ("parity-waited", 0), ("parity-useless", 2)]);
        r.begin_anew();
        assert_eq!(r.held_bytes(), 0);
    }

    #[test]
    fn on_demand_nothing_is_kept_before_parity_comes() {
        let mut r = crate::testing::built(&POLICY, "on_demand=1", 0);
        [10, 11].into_iter().for_each(|n| r.arrived(n, &[&chunk(n)]));
        assert_eq!(r.held_bytes(), 0);
        r.parity(Instant::ZERO, 13, &parity(13, &[10, 11, 12]));
        assert!(r.restored().is_none(), "too little is known");
        [14, 15].into_iter().for_each(|n| r.arrived(n, &[&chunk(n)]));
        r.parity(Instant::ZERO, 17, &parity(17, &[14, 15, 16]));
        assert_eq!(r.restored().map(|(n, _)| n), Some(16));
        for n in 18..18 + u64::from(KEPT_FOR) {
            r.arrived(n, &[b"x"]);
        }
        assert_eq!(r.held_bytes(), 0, "none came for long");
    }
}
