//! What is missing at the receiver, by the order in which schedulers send (Becke et al. 2013 §III.A): a round of confluent
//! sequence numbers over two paths has one block missing at most, whatever the paths do; round robin scatters.

use anabranch_base::{Duration, Instant, PathId, PathSet, Tsn};
use anabranch_policy::path_scheduler::{Decision, Occasion, PathScheduler, Settled};
use anabranch_policy::view::{AssocView, ChunkView, PathView, QueueView};
use anabranch_policy::{Hook, Profile};
use proptest::prelude::*;

fn scheduler(spec: &str) -> Box<dyn PathScheduler> {
    let mut p = Profile::named("cmt").expect("a profile");
    p.set(Hook::PathScheduler, spec).expect("a registered scheduler");
    p.build(1).expect("it builds").path_scheduler
}

/// A round of `chunks` over paths of these round trips in ms. `turns` says which path has room next; answers what each
/// path sends, in its order.
fn round(spec: &str, rtts: &[u64], chunks: u32, turns: &[u8]) -> Vec<Vec<u32>> {
    let mut s = scheduler(spec);
    let paths: Vec<PathView> = rtts
        .iter()
        .enumerate()
        .map(|(i, ms)| PathView {
            srtt: Duration::from_millis(*ms),
            min_rtt: Duration::from_millis(*ms),
            in_flight: 1_000,
            cwnd: 1 << 20,
            ..PathView::idle(PathId(i as u8))
        })
        .collect();
    let mut waiting: Vec<ChunkView> = (0..chunks).map(|i| ChunkView::waiting(Tsn(i))).collect();
    let mut sent = vec![vec![]; paths.len()];
    let now = Instant::from_millis(100_000);
    let view = |eligible| AssocView { eligible, peer_rwnd: 1 << 30, outstanding: 0, ..AssocView::of(now, &paths) };
    let all = PathSet::first(paths.len());
    s.observe(&view(all), &QueueView::of(&waiting), Occasion::Refilled);
    let mut turns = turns.iter().cycle();
    while !waiting.is_empty() {
        // All paths have room where the source's order is its own affair, as round robin's is.
        let turn = PathId(turns.next().expect("a turn") % paths.len() as u8);
        let eligible = if spec.starts_with("round") { all } else { PathSet::only(turn) };
        let Decision::Send { index, path } = s.next(&view(eligible), &QueueView::of(&waiting)) else {
            panic!("{spec} stops with {} chunks", waiting.len());
        };
        let c = waiting.remove(index);
        s.settle(&view(eligible), &Settled::Sent { tsn: c.tsn, path, len: c.len });
        sent[path.index()].push(c.tsn.0);
    }
    sent
}

/// Blocks missing below the highest TSN that is there, once the given part of what each path sent has arrived in order.
fn holes(sent: &[Vec<u32>], parts: &[f64]) -> usize {
    let mut there: Vec<u32> = sent
        .iter()
        .zip(parts.iter().cycle())
        .flat_map(|(list, part)| list[..(list.len() as f64 * part) as usize].iter().copied())
        .collect();
    there.sort_unstable();
    let mut expected = 0;
    let mut holes = 0;
    for tsn in there {
        holes += usize::from(tsn != expected);
        expected = tsn + 1;
    }
    holes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn a_round_over_two_paths_misses_one_block(
        rtts in (1..500u64, 1..500u64), chunks in 1..200u32,
        turns in proptest::collection::vec(any::<u8>(), 1..300), parts in (0.0..=1.0f64, 0.0..=1.0f64),
        variant in 1..=2u8,
    ) {
        prop_assume!(turns.iter().any(|t| t % 2 == 0) && turns.iter().any(|t| t % 2 == 1));
        let sent = round(&format!("confluent:variant={variant}"), &[rtts.0, rtts.1], chunks, &turns);
        let missing = holes(&sent, &[parts.0, parts.1]);
        prop_assert!(missing <= 1, "{missing} holes, {sent:?}");
    }

    /// On however many paths: what has not been sent yet is one block.
    #[test]
    fn what_waits_in_a_round_is_one_block(
        rtts in proptest::collection::vec(1..500u64, 1..6), chunks in 1..100u32,
        turns in proptest::collection::vec(any::<u8>(), 1..100), variant in 1..=2u8,
    ) {
        let sent = round(&format!("confluent:variant={variant}"), &rtts, chunks, &turns);
        // Each path rises or falls throughout.
        for list in &sent {
            prop_assert!(list.is_sorted() || list.is_sorted_by(|a, b| a > b), "{list:?}");
        }
    }
}

#[test]
fn a_dead_path_leaves_one_block_where_round_robin_leaves_one_for_each_packet() {
    let turns = [0, 1, 0, 1];
    let dead = [1.0, 0.0];
    // With strict round robin each path has every second chunk; the last of them is above all that is there.
    let scattered = round("round_robin:strict=1", &[30, 160], 100, &turns);
    assert_eq!(holes(&scattered, &dead), 49);
    assert_eq!(holes(&round("confluent", &[30, 160], 100, &turns), &dead), 0, "the dead one had the end");
    assert_eq!(holes(&round("confluent", &[30, 160], 100, &turns), &[0.0, 1.0]), 1);
}

/// The paper says it of any number of paths. Those that ascend together share a pointer, so that what one of them
/// lacks is scattered among what the others brought.
#[test]
fn paths_that_go_the_same_way_scatter_among_each_other() {
    let turns: Vec<u8> = (0..99).collect();
    let sent = round("confluent:variant=2", &[30, 40, 160], 99, &turns);
    assert!(holes(&sent, &[1.0, 0.0, 1.0]) > 30);
    let sent = round("confluent:variant=1", &[30, 40, 160], 99, &turns);
    assert!(holes(&sent, &[1.0, 0.0, 1.0]) > 30);
}
