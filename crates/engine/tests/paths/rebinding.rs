//! What a NAT that makes its entry anew costs under traffic: the path goes on at the new port within two round trips.

use crate::common::page::Page;
use crate::common::sampled::{Sample, all_cases};
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

const PAGE: Page = Page {
    file: "MEASURED.md",
    command: "UPDATE=1 ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine --test paths rebinding",
};

/// What a change costs at most in each profile is what docs/MEASURED.md says, or no more where not all cases are run.
fn hold(worst: &[(&str, Duration)]) {
    let rows = PAGE.hold("now", |row| {
        row.cell("scenario")?.contains("--test paths rebinding").then_some(())?;
        let says = row.cell("now")?;
        let texts: Vec<_> = worst.iter().map(|(p, most)| format!("{:.0} ms in `{p}`", most.as_millis_f64())).collect();
        if all_cases() {
            return Some(format!("at most {}, always below two round trips of 20 to 200 ms", texts.join(", ")));
        }
        for ((profile, most), text) in worst.iter().zip(&texts) {
            let (before, _) = says.split_once(&format!(" ms in `{profile}`")).expect(profile);
            let page: f64 = before.rsplit(' ').next().expect("a number").parse().expect("a number");
            assert!(most.as_millis_f64() < page + 0.5, "{text}, and docs/MEASURED.md has {page}");
        }
        Some(says.to_owned())
    });
    assert_eq!(rows, 1, "rows of docs/MEASURED.md about a change of the port");
}

/// Whoever sends learns of it by the next packet of the side behind the NAT. What a profile leaves a path without data
/// for by itself is no cost.
#[test]
fn a_change_costs_a_path_less_than_two_round_trips_of_data() {
    let (mut bad, mut all, mut sample) = (vec![], vec![], Sample::one_in(3));
    for profile in ["sctp", "cmt", "low-latency", "live"] {
        let mut most = Duration::ZERO;
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
            most = most.max(worst[0]).max(worst[1]);
        }
        all.push((profile, most));
    }
    assert!(bad.is_empty(), "{}:\n{}", bad.len(), bad.join("\n"));
    hold(&all);
}
