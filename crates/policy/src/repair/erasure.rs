//! The receiving end of `redundancy=erasure`: solves sums of chunks for those that did not come.
//!
//! Source: the idea of RFC 8681 (sliding-window random linear codes over GF(256)); format and rules are ours. Chunks are
//! kept back to a number and a sum of bytes, whichever is less; parity that covers an older one is useless. At most 32
//! sums wait, each with at most 64 chunks that are missing. No more parity is looked into than chunks came, but for 64:
//! a peer that sends nothing else costs no more than one that sends data.
//! Parameters: `chunks` that are kept; `memory` for them, KiB.

use super::Repair;
use crate::asks::Counter;
use crate::parity::Record;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
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
        ],
    },
    build: |p| Box::new(Erasure::new(p)),
};

struct Erasure {
    limits: Limits,
    decoder: Decoder,
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
        Erasure { limits, decoder: Decoder::new(limits), counters }
    }
}

impl Repair for Erasure {
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn arrived(&mut self, number: u64, pieces: &[&[u8]]) {
        self.decoder.source(number, pieces);
    }
    fn parity(&mut self, number: u64, record: &[u8]) {
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
        r.parity(14, &parity(14, &[10, 11, 12, 13]));
        assert_eq!(r.restored().map(|(n, s)| (n, s[..62].to_vec())), Some((12, chunk(12))));
        assert!(r.restored().is_none());
        r.parity(15, &parity(15, &[11, 12]));
        r.parity(16, &parity(16, &[2, 11]));
        r.parity(17, b"no parity");
        assert_eq!(r.counters, [("repaired", 1), ("parity-needless", 1), ("parity-waited", 0), ("parity-useless", 2)]);
        r.begin_anew();
        assert_eq!(r.held_bytes(), 0);
    }
}
