//! Damaged packets, corrected by check bits: the receiving end of split error correction.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C; how long what is kept is ours. Packets that came with a
//! wrong checksum are kept for a while, and so are records without their packet: either may be first. A record belongs to a packet
//! of its length that has its checksum once the bits are flipped; whether the whole of it then has that checksum is the
//! engine's to see. Two wrong bits in a block are never corrected.
//! What comes is compared with what is kept, the newest first: length and checksum, and the first block where those agree but
//! for a bit. Four comparisons are paid for by each byte that comes, and 16,384 may be saved up: with as many packets as an
//! honest peer sends in `wait` it hardly uses that up. A packet is corrected once at most, and then kept no longer.
//! Parameters: `wait` ms, how long either is kept; `packets` that are kept at most, and as many records; 1 MiB of either.

use super::Repair;
use crate::asks::{Asks, Counter};
use crate::parity::{Checks, Label};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn Repair> = Policy {
    info: PolicyInfo {
        hook: Hook::Repair,
        name: "split_error_correction",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C",
        file: file!(),
        summary: "Corrects damaged packets by check bits that came by another path.",
        params: &[
            ParamInfo::millis("wait", 200, 1, 10_000, "how long damaged packets are kept, and records"),
            ParamInfo::count("packets", 1_024, "", 1, 1_024, "damaged ones that are kept at most, and as many records"),
        ],
    },
    build: |p| Box::new(SplitErrorCorrection::new(p)),
};

/// Comparisons that each byte pays for, and how many are saved up at most: for a packet full of records of the largest packets
/// with as many kept as there may be.
const PER_BYTE: u64 = 4;
const SAVED: u64 = 16_384;
/// Bytes that are kept, of packets or of check bits.
const ROOM: usize = 1 << 20;

/// Places in `counters`.
const DAMAGED: usize = 0;
const MATCHED: usize = 1;
const USELESS: usize = 2;
const COMPARED: usize = 3;
const UNPAID: usize = 4;

/// A packet that came damaged, or the check bits of one.
struct Kept {
    came: Instant,
    label: Label,
    bytes: Vec<u8>,
}

impl Kept {
    /// Of a record: what it is of, and its check bits.
    fn checks(&self) -> Checks<'_> {
        Checks { label: self.label, bits: &self.bytes }
    }
}

/// What waits for its counterpart, the oldest in front.
struct Shelf {
    most: usize,
    wait: Duration,
    bytes: usize,
    kept: VecDeque<Kept>,
}

impl Shelf {
    fn new(most: usize, wait: Duration) -> Self {
        Shelf { most, wait, bytes: 0, kept: VecDeque::new() }
    }
    fn drop_oldest(&mut self) {
        self.bytes -= self.kept.pop_front().map_or(0, |old| old.bytes.len());
    }
    /// Nothing is kept for longer.
    fn clear_old(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|k| now.since(k.came) > self.wait) {
            self.drop_oldest();
        }
    }
    fn keep(&mut self, now: Instant, label: Label, bytes: &[u8]) {
        while !self.kept.is_empty() && (self.kept.len() >= self.most || self.bytes + bytes.len() > ROOM) {
            self.drop_oldest();
        }
        self.bytes += bytes.len();
        self.kept.push_back(Kept { came: now, label, bytes: bytes.to_vec() });
    }
    /// Takes out the newest that has this label, but for a bit, and fits. Looks at no more than are paid for.
    fn take(&mut self, label: Label, pay: &mut Purse, fits: impl Fn(&Kept) -> bool) -> Option<Kept> {
        let mut looked_at = 0;
        let affordable = usize::try_from(pay.credit).unwrap_or(usize::MAX);
        let mut newest = self.kept.iter().enumerate().rev().take(affordable);
        let found = newest.find(|(_, k)| {
            looked_at += 1;
            k.label.may_be(label) && fits(k)
        });
        let found = found.map(|(at, _)| at);
        pay.credit -= looked_at;
        pay.compared += looked_at;
        pay.unpaid += if found.is_none() { self.kept.len() as u64 - looked_at } else { 0 };
        let kept = self.kept.remove(found?)?;
        self.bytes -= kept.bytes.len();
        Some(kept)
    }
}

/// Comparisons that are paid for, that were made, and that were left out for want of credit.
struct Purse {
    credit: u64,
    compared: u64,
    unpaid: u64,
}

struct SplitErrorCorrection {
    damaged: Shelf,
    records: Shelf,
    corrected: VecDeque<Vec<u8>>,
    purse: Purse,
    counters: [Counter; 5],
}

impl SplitErrorCorrection {
    fn new(p: &Params) -> Self {
        let (most, wait) = (p.count("packets") as usize, p.millis("wait"));
        SplitErrorCorrection {
            damaged: Shelf::new(most, wait),
            records: Shelf::new(most, wait),
            corrected: VecDeque::new(),
            purse: Purse { credit: SAVED, compared: 0, unpaid: 0 },
            counters: [
                ("damaged-kept", 0),
                ("damaged-matched", 0),
                ("check-useless", 0),
                ("check-compared", 0),
                ("check-unpaid", 0),
            ],
        }
    }
    fn earn(&mut self, bytes: usize) {
        self.purse.credit = (self.purse.credit + bytes as u64 * PER_BYTE).min(SAVED);
    }
    fn count_compared(&mut self) {
        (self.counters[COMPARED].1, self.counters[UNPAID].1) = (self.purse.compared, self.purse.unpaid);
    }
    fn took(&mut self, packet: Vec<u8>) {
        self.counters[MATCHED].1 += 1;
        self.corrected.push_back(packet);
    }
    fn clear_old(&mut self, now: Instant) {
        self.damaged.clear_old(now);
        self.records.clear_old(now);
    }
    fn check(&mut self, now: Instant, record: Checks<'_>) {
        match self.damaged.take(record.label, &mut self.purse, |packet| record.fit(&packet.bytes)) {
            Some(packet) => self.took(record.correct(packet.bytes)),
            None => self.records.keep(now, record.label, record.bits),
        }
    }
}

impl Repair for SplitErrorCorrection {
    fn asks(&self) -> Asks {
        Asks::REPAIR.and(Asks::DAMAGED)
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn arrived(&mut self, _number: u64, pieces: &[&[u8]]) {
        self.earn(pieces.iter().map(|p| p.len()).sum());
    }
    fn parity(&mut self, now: Instant, _number: u64, record: &[u8]) {
        self.clear_old(now);
        self.earn(record.len());
        match Checks::read(record) {
            Some(records) => records.for_each(|r| self.check(now, r)),
            None => self.counters[USELESS].1 += 1,
        }
        self.count_compared();
    }
    fn restored(&mut self) -> Option<(u64, &[u8])> {
        None
    }
    fn damaged(&mut self, now: Instant, packet: &[u8]) {
        self.clear_old(now);
        self.counters[DAMAGED].1 += 1;
        self.earn(packet.len());
        let Some(label) = Label::of(packet) else { return };
        match self.records.take(label, &mut self.purse, |record| record.checks().fit(packet)) {
            Some(record) => self.took(record.checks().correct(packet.to_vec())),
            None => self.damaged.keep(now, label, packet),
        }
        self.count_compared();
    }
    fn corrected(&mut self) -> Option<Vec<u8>> {
        self.corrected.pop_front()
    }
    fn settle_below(&mut self, _number: u64) {}
    fn begin_anew(&mut self) {
        let fresh = |s: &Shelf| Shelf::new(s.most, s.wait);
        (self.damaged, self.records) = (fresh(&self.damaged), fresh(&self.records));
    }
    fn held_bytes(&self) -> usize {
        self.damaged.bytes + self.records.bytes + self.corrected.iter().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::{CHECKS, record_len, write_checks};

    const T: Instant = Instant::from_millis(1_000);

    fn packet(n: u8) -> Vec<u8> {
        (0..500u32).map(|i| (i * 7) as u8 ^ n).collect()
    }

    fn records(of: &[Vec<u8>]) -> Vec<u8> {
        of.iter().fold(vec![CHECKS], |all, p| [all, write_checks(p).unwrap()].concat())
    }

    fn keeping(packets: f64) -> SplitErrorCorrection {
        let number = crate::registry::Value::Number;
        SplitErrorCorrection::new(&Params::new(vec![("packets", number(packets)), ("wait", number(200.0))], 0))
    }

    #[test]
    fn one_wrong_bit_in_any_block_is_corrected_whichever_comes_first() {
        let mut r = SplitErrorCorrection::new(&Params::defaults(&POLICY.info, 0));
        let (mut one, mut other, mut hopeless) = (packet(1), packet(2), packet(3));
        (one[0], one[100], one[499]) = (one[0] ^ 1, one[100] ^ 0x80, one[499] ^ 4);
        other[9] ^= 0x10;
        hopeless[200] ^= 3;
        let all = records(&[packet(1), packet(2), packet(3)]);
        r.damaged(T, &one);
        r.damaged(T, &hopeless);
        r.parity(T, 1, &all);
        r.damaged(T, &other);
        assert_eq!(r.corrected(), Some(packet(1)));
        assert!(r.corrected().is_some_and(|p| p != packet(3)), "its checksum will tell");
        assert_eq!((r.corrected(), r.corrected()), (Some(packet(2)), None));
        assert_eq!(r.counters[..3], [("damaged-kept", 3), ("damaged-matched", 3), ("check-useless", 0)]);
        r.parity(T, 2, b"no record");
        r.parity(T, 3, &all[..all.len() - 1]);
        assert_eq!(r.counters[USELESS].1, 1, "of what is cut off, whole records count");
        r.begin_anew();
        assert_eq!(r.held_bytes(), 0);
    }

    /// Each bit of the first block, that of the checksum included, by itself; and each with another one far behind.
    #[test]
    fn a_record_finds_its_packet_by_any_bit_that_is_wrong() {
        for bit in 0..15 * 8 {
            for other in [None, Some(300)] {
                let mut r = keeping(4.0);
                let mut wrong = packet(7);
                wrong[bit / 8] ^= 1 << (bit % 8);
                other.into_iter().for_each(|at: usize| wrong[at] ^= 0x40);
                r.damaged(T, &wrong);
                r.parity(T, 1, &records(&[packet(7)]));
                assert_eq!(r.corrected(), Some(packet(7)), "bit {bit}");
            }
        }
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let mut r = keeping(4.0);
        for n in 0..20 {
            let mut wrong = packet(n);
            // In the checksum itself, by which a record knows its packet.
            wrong[9] ^= 3;
            r.damaged(T, &wrong);
            r.parity(T, 1, &records(&[packet(n)]));
        }
        assert!(r.damaged.kept.len() == 4 && r.records.kept.len() == 4 && r.held_bytes() < 4 * 600);
        // Of large ones fewer are kept, of what is too small to have data none.
        let mut r = SplitErrorCorrection::new(&Params::defaults(&POLICY.info, 0));
        (0..64u8).for_each(|n| r.damaged(T, &[&[n; 8][..], &[n; 60_000]].concat()));
        assert!(r.damaged.kept.len() == 17 && r.held_bytes() <= ROOM, "{}", r.held_bytes());
        r.begin_anew();
        r.damaged(T, &[1; 31]);
        r.parity(T, 1, &[&[CHECKS, 0, 31][..], &[1; 4 + 3]].concat());
        assert_eq!(r.held_bytes(), 0);
    }

    /// Work follows bytes, whatever is kept, and the newest are looked at first.
    #[test]
    fn comparisons_are_paid_for_by_what_comes() {
        let mut r = keeping(1_024.0);
        let mut came = 0;
        for n in 0..2_048u16 {
            let wrong = [&[0; 8][..], &n.to_be_bytes(), &[0xa5; 22]].concat();
            came += wrong.len();
            r.damaged(T, &wrong);
        }
        let record = |sum: u32| [&[0, 32][..], &sum.to_be_bytes(), &[0x55; 3]].concat();
        let flood: Vec<u8> = [CHECKS].into_iter().chain((0..130).flat_map(|n| record(!n))).collect();
        for n in 0..50 {
            came += flood.len();
            r.parity(T, n, &flood);
        }
        let count = |r: &SplitErrorCorrection, what: usize| r.counters[what].1;
        let (compared, unpaid) = (count(&r, COMPARED), count(&r, UNPAID));
        assert!(compared <= came as u64 * PER_BYTE + SAVED, "{compared} for {came} bytes");
        assert!(unpaid > 10 * compared, "{unpaid} were not made, and {compared} were");
        // What came last is still found, at the price of a comparison.
        let mut wrong = packet(9);
        wrong[400] ^= 1;
        r.damaged(T, &wrong);
        r.parity(T, 99, &records(&[packet(9)]));
        assert_eq!(r.corrected(), Some(packet(9)));
    }

    /// What has its counterpart within the time is corrected however many packets came damaged in between, the other way round
    /// as well; what waits for longer is gone. Beyond some two thousand a second and a fifth of a second between them comparisons
    /// run out that the bytes that came have paid for.
    #[test]
    fn what_is_kept_is_kept_by_its_age() {
        for (packets_a_second, late) in [(70u64, 130), (700, 30), (700, 190), (1_500, 190), (700, 210)] {
            for records_first in [false, true] {
                let mut r = SplitErrorCorrection::new(&Params::defaults(&POLICY.info, 0));
                let all: Vec<(Vec<u8>, Vec<u8>)> = (0..packets_a_second)
                    .map(|n| {
                        let mut whole = packet(n as u8).repeat(2);
                        whole[8..12].copy_from_slice(&(n as u32).wrapping_mul(0x9e37_79b9).to_be_bytes());
                        let mut wrong = whole.clone();
                        wrong[100] ^= 1;
                        (wrong, records(&[whole]))
                    })
                    .collect();
                let at = |n: usize| T + Duration::from_nanos(1_000_000_000 / packets_a_second) * n as u64;
                let late_at = |n: usize| at(n) + Duration::from_millis(late);
                let mut next = 0;
                for n in 0..=all.len() {
                    while next < n && (n == all.len() || late_at(next) <= at(n)) {
                        match records_first {
                            false => r.parity(late_at(next), 1, &all[next].1),
                            true => r.damaged(late_at(next), &all[next].0),
                        }
                        next += 1;
                    }
                    let Some((wrong, record)) = all.get(n) else { continue };
                    match records_first {
                        false => r.damaged(at(n), wrong),
                        true => r.parity(at(n), 1, record),
                    }
                }
                let case = format!("{packets_a_second} a second, {late} ms, records first: {records_first}");
                let expected = if late <= 200 { packets_a_second } else { 0 };
                assert_eq!(r.counters[MATCHED].1, expected, "{case}");
                assert!(r.held_bytes() <= 2 * ROOM + all.len() * 1_000, "{case}");
            }
        }
    }

    /// Five hundred of the smallest packets that there are in a second, or thousands of large ones, each with a record, none of
    /// them ever corrected.
    #[test]
    fn an_honest_peer_pays_for_all_of_it() {
        for (len, a_second, kept) in [(32, 500, 34), (1_200, 2_500, 167)] {
            let mut r = SplitErrorCorrection::new(&Params::defaults(&POLICY.info, 0));
            for n in 0..10_000u32 {
                let at = T + Duration::from_nanos(1_000_000_000 / a_second) * u64::from(n);
                let mut whole = vec![0x31; len];
                whole[8..12].copy_from_slice(&n.wrapping_mul(0x9e37_79b9).to_be_bytes());
                if n % 3 == 0 {
                    let mut wrong = whole.clone();
                    (wrong[8], wrong[20]) = (wrong[8] ^ 3, wrong[20] ^ 3);
                    r.damaged(at, &wrong);
                } else {
                    r.arrived(n.into(), &[&whole[..12], &whole[31..]]);
                }
                r.parity(at, n.into(), &records(&[whole]));
            }
            assert_eq!((r.counters[UNPAID].1, r.damaged.kept.len()), (0, kept), "{len} bytes");
        }
        assert_eq!(record_len(32), 9);
    }
}
