//! What a NAT that makes its entry anew costs under traffic: the path goes on at the new port within two round trips.

use crate::common::sampled::Sample;
use crate::common::*;
use anabranch_base::{Duration, Instant};
use anabranch_engine::SendOptions;
use anabranch_wire::kind;

/// A message of 1,000 bytes each 4 ms from both sides for `time`.
fn stream(b: &mut Bench, time: Duration) {
    let until = b.now + time;
    while b.now < until {
        let o = SendOptions { unordered: true, ..SendOptions::default() };
        b.send(Side::Client, o, pattern(1, 1_000));
        b.send(Side::Server, o, pattern(1, 1_000));
        b.run_for(ms(4));
    }
}

/// The longest time from `from` on in which no data came to `side`, on `path` or on any.
fn longest_gap(b: &Bench, side: Side, path: Option<usize>, from: Instant) -> Duration {
    let (mut last, mut longest) = (from, Duration::ZERO);
    for (at, from_side, on, bytes) in b.arrived.iter().flatten() {
        if *from_side != side && path.is_none_or(|p| p == *on) && *at >= from && kinds(bytes).contains(&kind::DATA) {
            longest = longest.max(at.since(last));
            last = *at;
        }
    }
    longest.max(b.now.since(last))
}

/// Flows both ways over a path whose port changes, or not: how long it was without data there and back.
fn rebound(profile: &str, paths: usize, delay: u64, seed: u64, changes: bool) -> [Duration; 2] {
    // What one of two paths does not carry, so that a profile which uses both needs each all the time.
    let rate = if paths == 1 || profile == "sctp" { 10 } else { 2 };
    let links: Vec<_> = (0..paths).map(|_| (link(rate, delay), link(rate, delay))).collect();
    let mut b = Bench::connected(seed, &assoc_config(profile), &links);
    b.strict = true;
    b.run_for(ms(2_000));
    stream(&mut b, ms(3_000 + seed));
    if changes {
        b.nat[0].set_port(30_000 + seed as u16);
    }
    b.arrived = Some(vec![]);
    let from = b.now;
    stream(&mut b, ms(2_000));
    // These put everything on either of two equal paths, by turns.
    let path = Some(0).filter(|_| paths == 1 || !["low-latency", "live"].contains(&profile));
    [Side::Server, Side::Client].map(|side| longest_gap(&b, side, path, from))
}

/// Whoever sends learns of it by the next packet of the side behind the NAT. What a profile leaves a path without data
/// for by itself is no cost.
#[test]
fn a_change_costs_a_path_less_than_two_round_trips_of_data() {
    let (mut bad, mut sample) = (vec![], Sample::one_in(3));
    for profile in ["sctp", "cmt", "low-latency", "live"] {
        for paths in [1, 2] {
            let mut worst = [Duration::ZERO; 2];
            for delay in [10, 30, 100] {
                for seed in (1..=10).filter(|_| sample.takes()) {
                    let (with, without) =
                        (rebound(profile, paths, delay, seed, true), rebound(profile, paths, delay, seed, false));
                    for way in 0..2 {
                        let cost = with[way].saturating_sub(without[way]);
                        worst[way] = worst[way].max(cost);
                        if cost >= ms(4 * delay) {
                            let what = format!("{profile}, {paths} paths of {delay} ms, seed {seed}");
                            bad.push(format!("{what}: {with:?} with a change, {without:?} without"));
                        }
                    }
                }
            }
            println!("{profile}, {paths} paths: a change costs {} of data there and {} back", worst[0], worst[1]);
        }
    }
    assert!(bad.is_empty(), "{}:\n{}", bad.len(), bad.join("\n"));
}
