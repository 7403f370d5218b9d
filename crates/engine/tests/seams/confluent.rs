//! Becke et al. 2013: TSNs leave in descending order on one path, nothing is taken for lost because of it, and late
//! chunks are copied.

use super::two_paths::*;
use anabranch_base::{Instant, PathId};
use anabranch_policy::redundancy::{Extra, Redundancy, SentPayload};
use anabranch_policy::registry::{Hook, PolicySet};
use anabranch_policy::view::{AssocView, ChunkView, Direction, PathView};
use anabranch_sim::LinkConfig;
use std::collections::BTreeSet;

/// 30 ms and 50 ms of round trip, nothing is lost, and no queue of our own turns their order round.
fn links() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(100, 15)), both_ways(link(100, 25))]
}

/// A transfer of small messages, several to a packet.
fn transferred(set: PolicySet) -> (Bench, Vec<Departure>) {
    let mut b = connected_by(21, set, &links());
    Flow::new(Side::Client, 0, 300).transfer(&mut b, 20_000, ms(60_000)).expect("arrives");
    let all = departures(&b);
    (b, all)
}

#[test]
fn tsns_leave_in_descending_order_on_one_path_and_rise_inside_a_packet() {
    let (mut b, all) = transferred(policies(&profile("confluent", &[]), 2));
    let (first, again) = first_and_again(&all);
    assert!(again.is_empty(), "loss-free links: {:?}", again[0]);
    assert!(first.iter().all(|d| d.tsns.is_sorted()), "RFC 9260 §6.10");
    assert!(first.iter().filter(|d| d.tsns.len() > 2).count() > 1_000, "several chunks to a packet");
    // Low to high, as far as any path has sent; on path 1 a round goes down from above all that.
    let (mut top, mut descents, mut rounds) = (0, 0, 0);
    let mut before: [Option<&[u32]>; 2] = [None, None];
    // The end of a round and the begin of the next may share a packet: each run of TSNs by itself.
    let runs = first.iter().flat_map(|d| d.tsns.chunk_by(|a, b| a + 1 == *b).map(|run| (d.path, run)));
    for (path, run) in runs {
        let (low, high) = (run[0], run[run.len() - 1]);
        if let Some(last) = before[path].replace(run) {
            if path == 0 {
                assert!(low > last[last.len() - 1], "ascending: {last:?} {run:?}");
            } else if high < last[0] {
                descents += 1;
            } else {
                assert!(low > top, "neither down nor a new round: {last:?} {run:?}");
                rounds += 1;
            }
        }
        top = top.max(high);
    }
    assert!(descents > 200 && rounds > 10, "{descents} packets downwards in {rounds} rounds");
    for (_, p) in b.assoc(Side::Client).paths() {
        assert_eq!((p.counters.lost_by_report, p.counters.lost_by_timeout, p.counters.recoveries), (0, 0, 0));
    }
    assert_eq!(b.assoc(Side::Client).stats().decisions_refused, 0);
}

#[test]
fn no_false_losses_by_send_order_even_at_the_first_report() {
    let set = policies(&profile("confluent", &[(Hook::LossThreshold, "thin:cmp=le")]), 2);
    let (mut b, _) = transferred(set);
    assert_eq!(b.assoc(Side::Client).stats().retransmissions, 0);
    // Counted by TSN the same order of departure looks like loss; the registry refuses it for that.
    let by_tsn = profile("confluent", &[(Hook::LossCount, "tsn")]);
    assert!(by_tsn.check(2).is_err());
    let (mut b, _) = transferred(by_tsn.build(1).expect("registered"));
    assert!(b.assoc(Side::Client).stats().retransmissions > 100);
}

/// What a tap on redundancy saw.
#[derive(Default)]
struct Tapped {
    payloads: u64,
    chunks: u64,
    copies: Vec<(u32, PathId)>,
    /// Of the paths it was asked for: does it descend?
    directions: BTreeSet<Option<bool>>,
}

struct Tap {
    inner: Box<dyn Redundancy>,
    seen: Notes<Tapped>,
}

impl Redundancy for Tap {
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let mut seen = self.seen.get();
        seen.directions.insert(path.signals.direction.map(|d| d == Direction::Descending));
        let extra = self.inner.extra(cx, path, outstanding);
        if let Some(Extra::Copy { tsn }) = extra {
            seen.copies.push((tsn.0, path.id));
        }
        extra
    }
    fn sent(&mut self, s: &SentPayload<'_>) {
        let mut seen = self.seen.get();
        seen.chunks += 1;
        seen.payloads += s.payload.len() as u64;
        assert_eq!((s.payload.len() as u64, s.chunk.live_copies > 0), (s.chunk.len, true));
        drop(seen);
        self.inner.sent(s);
    }
    fn wakeup(&self) -> Option<Instant> {
        self.inner.wakeup()
    }
}

fn tapped(choices: &[(Hook, &str)]) -> (PolicySet, Notes<Tapped>) {
    let mut p = profile("confluent", &[(Hook::Redundancy, "preventive_copy")]);
    for (hook, spec) in choices {
        p.set(*hook, spec).expect("registered");
    }
    let mut set = policies(&p, 2);
    let seen = Notes::default();
    set.redundancy = Box::new(Tap { inner: set.redundancy, seen: seen.clone() });
    (set, seen)
}

fn slow_down(b: &mut Bench, path: usize, delay: u64) {
    let now = b.now;
    let set = anabranch_sim::Setting::Delay(ms(delay));
    b.paths.get_mut(path).expect("a path").apply(now, anabranch_sim::Direction::Forward, set);
}

#[test]
fn late_chunks_are_copied_and_copies_are_accounted() {
    // A path that has become so slow would be left otherwise.
    let (set, seen) = tapped(&[(Hook::PathState, "potentially_failed")]);
    let mut b = connected_by(22, set, &links());
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 500, ms(30_000)).expect("arrives");
    b.run_for(ms(500));
    assert!(seen.get().copies.is_empty(), "{:?}", seen.get().copies);
    // Path 1 takes half a second longer from now on, which is less than a timeout.
    slow_down(&mut b, 1, 580);
    flow.transfer(&mut b, 200, ms(30_000)).expect("arrives");
    b.run_for(ms(3_000));
    let all = departures(&b);
    let (_, again) = first_and_again(&all);
    assert!(!again.is_empty());
    let mut bytes = [0, 0];
    for d in &again {
        bytes[d.path] += d.bytes;
        let first = all.iter().find(|f| f.tsns.contains(&d.tsns[0])).expect("its first departure");
        assert_ne!(d.path, first.path, "a copy goes elsewhere");
        assert!(d.at - first.at > ms(50), "only what is late: {first:?} {d:?}");
    }
    let seen = seen.get();
    assert_eq!(seen.copies.len(), again.len(), "every repetition is a copy");
    let departed: usize = all.iter().map(|d| d.tsns.len()).sum();
    assert_eq!((seen.chunks, seen.payloads), (departed as u64, all.iter().map(|d| d.bytes).sum()), "the tap saw all");
    let stats = b.assoc(Side::Client).stats();
    assert_eq!((stats.retransmissions, stats.decisions_refused), (0, 0));
    for (path, bytes) in bytes.into_iter().enumerate() {
        let p = b.path(Side::Client, path);
        assert_eq!(p.counters.data_retransmitted, bytes, "path {path}");
        assert_eq!((p.counters.lost_by_report, p.counters.timeouts, p.in_flight), (0, 0, 0));
    }
    // Both copies of each arrived, and the user saw one.
    assert_eq!(b.assoc(Side::Server).stats().duplicates_received, again.len() as u64);
    assert!(seen.directions.contains(&Some(true)) && seen.directions.contains(&Some(false)));
}

#[test]
fn a_lonely_late_message_is_copied_without_other_traffic() {
    let (set, seen) = tapped(&[(Hook::PathScheduler, "round_robin:strict=1")]);
    let mut b = connected_by(23, set, &links());
    let mut flow = Flow::new(Side::Client, 0, 100);
    flow.stream(&mut b, ms(50), ms(2_000));
    b.run_for(ms(1_000));
    slow_down(&mut b, 1, 580);
    // One of two messages in a row goes over path 1, and then nothing happens any more.
    let from = b.now;
    flow.send_to(&mut b, flow.sent + 2);
    b.run_for(ms(3_000));
    flow.check(&mut b);
    assert_eq!(flow.got, flow.sent);
    let all: Vec<_> = departures(&b).into_iter().filter(|d| d.at >= from).collect();
    assert_eq!(seen.get().copies.len(), 1);
    assert_eq!(all.len(), 3, "{all:?}");
    let (first, copy) = (all.iter().find(|d| d.path == 1).expect("sent on path 1"), &all[2]);
    assert_eq!((first.tsns.clone(), copy.path), (copy.tsns.clone(), 0));
    let after = copy.at - first.at;
    assert!(after > ms(50) && after < ms(80), "late after srtt + 4 rttvar, not at the timeout: {after:?}");
}
