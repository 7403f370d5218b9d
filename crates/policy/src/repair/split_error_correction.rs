//! Damaged packets, corrected by check bits: the receiving end of split error correction.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C; how long what is kept is ours. Packets that came with a
//! wrong checksum are kept, and so are records without their packet: either may be first. A record belongs to a packet
//! of its length that has its checksum once the bits are flipped; whether the whole of it then has that checksum is the
//! engine's to see. Two wrong bits in a block are never corrected.
//! Parameters: `packets` that are kept, and as many records.

use super::Repair;
use crate::asks::{Asks, Counter};
use crate::parity::Checks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn Repair> = Policy {
    info: PolicyInfo {
        hook: Hook::Repair,
        name: "split_error_correction",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C",
        file: file!(),
        summary: "Corrects damaged packets by check bits that came by another path.",
        params: &[ParamInfo::count("packets", 64, "", 1, 1_024, "damaged ones that are kept, and as many records")],
    },
    build: |p| Box::new(SplitErrorCorrection::new(p)),
};

/// Places in `counters`.
const DAMAGED: usize = 0;
const MATCHED: usize = 1;
const USELESS: usize = 2;

struct SplitErrorCorrection {
    most: usize,
    damaged: VecDeque<Vec<u8>>,
    records: VecDeque<Checks>,
    corrected: VecDeque<Vec<u8>>,
    counters: [Counter; 3],
}

impl SplitErrorCorrection {
    fn new(p: &Params) -> Self {
        SplitErrorCorrection {
            most: p.count("packets") as usize,
            damaged: VecDeque::new(),
            records: VecDeque::new(),
            corrected: VecDeque::new(),
            counters: [("damaged-kept", 0), ("damaged-matched", 0), ("check-useless", 0)],
        }
    }
    fn took(&mut self, packet: Vec<u8>) {
        self.counters[MATCHED].1 += 1;
        self.corrected.push_back(packet);
    }
    fn check(&mut self, record: Checks) {
        let found = self.damaged.iter().enumerate().find_map(|(i, d)| Some((i, record.correct(d)?)));
        if let Some((i, packet)) = found {
            self.damaged.remove(i);
            return self.took(packet);
        }
        if self.records.len() == self.most {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }
}

impl Repair for SplitErrorCorrection {
    fn asks(&self) -> Asks {
        Asks::REPAIR.and(Asks::DAMAGED)
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn arrived(&mut self, _number: u64, _pieces: &[&[u8]]) {}
    fn parity(&mut self, _number: u64, record: &[u8]) {
        match Checks::read(record) {
            Some(records) => records.for_each(|r| self.check(r)),
            None => self.counters[USELESS].1 += 1,
        }
    }
    fn restored(&mut self) -> Option<(u64, &[u8])> {
        None
    }
    fn damaged(&mut self, packet: &[u8]) {
        self.counters[DAMAGED].1 += 1;
        let found = self.records.iter().enumerate().find_map(|(i, r)| Some((i, r.correct(packet)?)));
        if let Some((i, packet)) = found {
            self.records.remove(i);
            return self.took(packet);
        }
        if self.damaged.len() == self.most {
            self.damaged.pop_front();
        }
        self.damaged.push_back(packet.to_vec());
    }
    fn corrected(&mut self) -> Option<Vec<u8>> {
        self.corrected.pop_front()
    }
    fn settle_below(&mut self, _number: u64) {}
    fn begin_anew(&mut self) {
        (self.damaged, self.records) = (VecDeque::new(), VecDeque::new());
    }
    fn held_bytes(&self) -> usize {
        self.damaged.iter().chain(&self.corrected).map(Vec::len).sum::<usize>()
            + self.records.iter().map(Checks::bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::{CHECKS, write_checks};

    fn packet(n: u8) -> Vec<u8> {
        (0..500u32).map(|i| (i * 7) as u8 ^ n).collect()
    }

    fn records(of: &[Vec<u8>]) -> Vec<u8> {
        of.iter().fold(vec![CHECKS], |all, p| [all, write_checks(p).unwrap()].concat())
    }

    #[test]
    fn one_wrong_bit_in_any_block_is_corrected_whichever_comes_first() {
        let mut r = SplitErrorCorrection::new(&Params::defaults(&POLICY.info, 0));
        let (mut one, mut other, mut hopeless) = (packet(1), packet(2), packet(3));
        (one[0], one[100], one[499]) = (one[0] ^ 1, one[100] ^ 0x80, one[499] ^ 4);
        other[9] ^= 0x10;
        hopeless[200] ^= 3;
        let all = records(&[packet(1), packet(2), packet(3)]);
        r.damaged(&one);
        r.damaged(&hopeless);
        r.parity(1, &all);
        r.damaged(&other);
        assert_eq!(r.corrected(), Some(packet(1)));
        assert!(r.corrected().is_some_and(|p| p != packet(3)), "its checksum will tell");
        assert_eq!((r.corrected(), r.corrected()), (Some(packet(2)), None));
        assert_eq!(r.counters, [("damaged-kept", 3), ("damaged-matched", 3), ("check-useless", 0)]);
        r.parity(2, b"no record");
        r.parity(3, &all[..all.len() - 1]);
        assert_eq!(r.counters[USELESS].1, 1, "of what is cut off, whole records count");
        r.begin_anew();
        assert_eq!(r.held_bytes(), 0);
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let mut r = SplitErrorCorrection::new(&Params::new(vec![("packets", crate::registry::Value::Number(4.0))], 0));
        for n in 0..20 {
            let mut wrong = packet(n);
            // In the checksum itself, by which a record knows its packet.
            wrong[9] ^= 3;
            r.damaged(&wrong);
            r.parity(1, &records(&[packet(n)]));
        }
        assert!(r.damaged.len() == 4 && r.records.len() == 4 && r.held_bytes() < 4 * 600);
    }
}
