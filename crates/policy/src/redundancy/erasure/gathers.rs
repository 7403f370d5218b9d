//! Sums beside new data of a source that offers one chunk after the other.

use super::tests::{Asked, ask, policy, unsteady};
use super::*;
use crate::testing::ms;
use anabranch_base::Rate;

/// A chunk of `class` each `gap` ms leaves by a path whose packets overtake each other, and is due `life` ms later. Of each
/// block of which sums leave in the last of three seconds, when the price of a sum has followed what there is: how many
/// chunks it has, and for how long the first of them has waited.
fn blocks(gap: u64, class: u8, life: u64) -> Vec<(usize, u64)> {
    let mut p = policy("rate=1,late=1");
    let mut s = unsteady(&mut *p);
    s.declined = true;
    let first = s.now;
    let path = &mut s.paths[0];
    (path.min_rtt, path.one_way, path.capacity) = (ms(120), ms(120), Rate::from_bytes_per_sec(1_000_000));
    let chunk = s.chunks[0];
    s.chunks.clear();
    let (mut blocks, mut last) = (vec![], 0);
    for at in 0..3_000 {
        s.now = first + ms(at);
        let now = s.now;
        s.paths[0].overtaken_at = Some(now);
        if at % gap == 0 {
            let mut c = chunk;
            c.tsn = Tsn(100 + at as u32);
            s.chunks.retain(|c| c.deadline.is_some_and(|d| d > now));
            (c.last_sent, c.queued_at, c.deadline) = (Some(now), now, Some(now + ms(life)));
            c.class = class;
            p.sent(&SentPayload { chunk: &c, payload: &[], at: now });
            s.chunks.push(c);
        }
        while ask(&mut *p, &s, 0) == Some(Extra::Parity) {
            let board = Asked::default();
            p.write(u64::from(s.chunks.last().unwrap().tsn.0) + 1, 1_400, &board).unwrap();
            let covers = board.0.take();
            if at > 2_000 && covers[0] != std::mem::replace(&mut last, covers[0]) {
                blocks.push((covers.len(), at - u64::from(covers[0] - 100)));
            }
        }
    }
    blocks
}

#[test]
fn what_comes_one_by_one_is_gathered_for_a_while() {
    for (gap, covers) in [(2, 4..=8), (3, 4..=8), (5, 3..=4), (10, 2..=2)] {
        let blocks = blocks(gap, 2, 235);
        let covered: usize = blocks.iter().map(|(n, _)| n).sum();
        assert!(covered as u64 * gap > 900, "one each {gap} ms: {covered} of {} are covered", 1_000 / gap);
        // What is gathered leaves in time all the same.
        assert!(blocks.iter().all(|(n, waited)| covers.contains(n) && *waited <= 18), "one each {gap} ms: {blocks:?}");
    }
}

#[test]
fn what_others_depend_on_is_not_gathered_nor_what_has_no_time() {
    for (class, life) in [(0, 235), (1, 235), (2, 132)] {
        let blocks = blocks(10, class, life);
        assert!(!blocks.is_empty() || life < 235, "class {class}, {life} ms");
        assert!(blocks.iter().all(|(n, waited)| *n == 1 && *waited <= 5), "class {class}, {life} ms: {blocks:?}");
    }
}
