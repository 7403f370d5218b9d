//! Check bits for whole packets, sent by another path: the sending end of split error correction.
//!
//! Source: Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C: 7 check bits for each 120 bits. The code, the record and
//! when it leaves are ours. A record is a packet's length, its checksum and its check bits: 94 bytes for 1500. Records
//! leave when the next one would have no room in the packet, or when the oldest has waited; what would have no room in
//! the packet after the next one is dropped, the oldest first. They leave by a path that carried none of the packets, if one
//! has window. Packets with nothing but records, or without data, have none.
//! The other end needs `repair=split_error_correction`, and a network that hands over what it has damaged: the simulator's
//! does, nearly all others drop it. Parameters: `delay` ms.

use super::{Extra, Redundancy, Sources};
use crate::asks::{Asks, Counter};
use crate::parity::{CHECKS, write_checks};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::{Duration, Instant, PathId};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "split_error_correction",
        source: "Becke, Dreibholz, Bayer, Packeiser, Rathgeb 2013 §III.C",
        file: file!(),
        summary: "Check bits of packets by another path, from which the peer corrects damaged ones.",
        params: &[ParamInfo::millis("delay", 25, 0, 1_000, "longest time that check bits wait for those of others")],
    },
    build: |p| Box::new(SplitErrorCorrection::new(p)),
};

/// Places in `counters`.
const RECORDS: usize = 0;
const DROPPED: usize = 1;
const BYTES: usize = 2;
const DATA: usize = 3;

struct Waiting {
    from: PathId,
    since: Instant,
    record: Vec<u8>,
}

struct SplitErrorCorrection {
    delay: Duration,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// When the oldest has waited.
    due: Option<Instant>,
    counters: [Counter; 4],
}

impl SplitErrorCorrection {
    fn new(p: &Params) -> Self {
        let counters = [("check-records", 0), ("check-dropped", 0), ("check-bytes", 0), ("checked-bytes", 0)];
        SplitErrorCorrection { delay: p.millis("delay"), waiting: VecDeque::new(), bytes: 0, due: None, counters }
    }
    fn drop_oldest(&mut self) -> Option<Waiting> {
        let w = self.waiting.pop_front()?;
        self.bytes -= w.record.len();
        Some(w)
    }
    /// Is it time, with so much room in a packet?
    fn is_due(&self, now: Instant, room: usize) -> bool {
        let longest = self.waiting.back().map_or(0, |w| w.record.len());
        let waited = self.waiting.front().is_some_and(|w| now.since(w.since) >= self.delay);
        !self.waiting.is_empty() && (waited || self.bytes + longest + 1 > room)
    }
}

impl Redundancy for SplitErrorCorrection {
    fn asks(&self) -> Asks {
        Asks::EXTRA.and(Asks::PARITY).and(Asks::EXTRA_FIRST).and(Asks::WHOLE_PACKETS)
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn worth_asking(&mut self, cx: &AssocView<'_>) -> bool {
        let room = cx.paths.iter().map(|p| p.mtu).min().unwrap_or(0) as usize;
        self.is_due(cx.now, room)
    }
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        _outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let from = |p: PathId| self.waiting.iter().any(|w| w.from == p);
        let other = cx.open().any(|p| !from(p.id));
        (!from(path.id) || !other).then_some(Extra::Parity)
    }
    fn wakeup(&self) -> Option<Instant> {
        self.due
    }
    fn packet(&mut self, path: PathId, bytes: &[u8], now: Instant) {
        let Some(record) = write_checks(bytes) else { return };
        // Two packets full of them wait at most.
        while self.bytes + record.len() > 2 * bytes.len().max(1_200) {
            if self.drop_oldest().is_none() {
                return;
            }
            self.counters[DROPPED].1 += 1;
        }
        self.bytes += record.len();
        self.counters[DATA].1 += bytes.len() as u64;
        self.waiting.push_back(Waiting { from: path, since: now, record });
        self.due = self.waiting.front().map(|w| w.since + self.delay);
    }
    fn write(&mut self, _number: u64, room: usize, _sources: &dyn Sources) -> Option<Vec<u8>> {
        let mut out = vec![CHECKS];
        while self.waiting.front().is_some_and(|w| out.len() + w.record.len() <= room) {
            out.extend(self.drop_oldest().map(|w| w.record).unwrap_or_default());
            self.counters[RECORDS].1 += 1;
        }
        self.due = self.waiting.front().map(|w| w.since + self.delay);
        self.counters[BYTES].1 += out.len() as u64;
        (out.len() > 1).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::record_len;
    use crate::testing::{Scene, ms};

    struct Nothing;

    impl Sources for Nothing {
        fn source(&self, _tsn: anabranch_base::Tsn) -> Option<super::super::Source<'_>> {
            None
        }
    }

    fn ask(p: &mut dyn Redundancy, s: &Scene, path: usize) -> Option<Extra> {
        p.worth_asking(&s.cx()).then(|| p.extra(&s.cx(), &s.paths[path], &mut s.chunks.iter().copied())).flatten()
    }

    #[test]
    fn records_leave_together_by_the_other_path() {
        let (mut s, mut p) = (Scene::new(2, 0), crate::testing::built(&POLICY, "", 1));
        p.packet(PathId(0), &[7; 1_500], s.now);
        assert_eq!(ask(&mut *p, &s, 1), None, "there is room for more");
        assert_eq!(p.wakeup(), Some(s.now + ms(25)));
        s.now += ms(25);
        assert_eq!(ask(&mut *p, &s, 0), None);
        assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
        assert_eq!(p.write(9, 1_400, &Nothing).unwrap().len(), 1 + record_len(1_500));
        assert_eq!(ask(&mut *p, &s, 1), None, "nothing is left");
        // As many as a packet holds do not wait.
        let most = s.paths[0].mtu as usize / record_len(1_500);
        (0..most).for_each(|_| p.packet(PathId(0), &[7; 1_500], s.now));
        assert_eq!(ask(&mut *p, &s, 1), Some(Extra::Parity));
        s.close(1);
        assert_eq!(ask(&mut *p, &s, 0), Some(Extra::Parity), "there is no other");
    }

    #[test]
    fn where_there_is_no_window_the_oldest_are_dropped() {
        let (s, mut p) = (Scene::new(2, 0), crate::testing::built(&POLICY, "", 1));
        (0..100).for_each(|_| p.packet(PathId(0), &[7; 1_500], s.now));
        let kept = 2 * 1_500 / record_len(1_500);
        let count = |p: &dyn Redundancy, name: &str| p.counters().iter().find(|c| c.0 == name).unwrap().1;
        assert_eq!(count(&*p, "check-dropped"), 100 - kept as u64);
        while p.write(9, 1_400, &Nothing).is_some() {}
        assert_eq!(count(&*p, "check-records"), kept as u64);
    }
}
