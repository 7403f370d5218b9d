//! A path on which each packet takes its own time, beside one that carries most of a stream.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_sim::{Jitter, Limit, LinkConfig};

/// What of `count` messages of 1,250 bytes, 20 each 25 ms, comes within 200 ms, of those made after the first five seconds:
/// over 6 Mbit/s of 30 ms and 4 Mbit/s of `delay` with a standard deviation of `sd`, by profile `live`.
fn in_time(delay: u64, sd: u64, seed: u64) -> f64 {
    let steady = link(6, 30).with_limit(Limit::packets(40));
    let unsteady = LinkConfig { jitter: Jitter::Normal(ms(sd)), jitter_reorders: true, ..link(4, delay) };
    let back = LinkConfig::fixed(None, Duration::ZERO);
    let links = [(steady, back.clone()), (unsteady.with_limit(Limit::packets(40)), back)];
    let mut b = Bench::connected(seed, &assoc_config("live"), &links);
    let (bursts, from) = (600, 200);
    let (mut made, mut seen, mut came) = (vec![], 0, 0);
    for n in 0..bursts * 20 {
        made.push(b.now);
        let options = SendOptions { unordered: true, deadline: Some(b.now + ms(200)), ..SendOptions::default() };
        // Where the buffer is full it is not sent, and counts as late.
        b.send(Side::Client, options, numbered(0, n, 1_150));
        for _ in 0..if n % 20 == 19 { 25 } else { 0 } {
            b.run_for(ms(1));
            for m in &b.at_server[seen..] {
                let k = number_of(m).1;
                came += usize::from(k >= from * 20 && b.now.since(made[k as usize]) <= ms(201));
            }
            seen = b.at_server.len();
        }
    }
    came as f64 / f64::from((bursts - from) * 20)
}

/// Without it the steady path would deliver 81 of 100: the stream has 7.4 Mbit/s, and it carries 6.
#[test]
fn it_takes_what_the_other_cannot_carry() {
    let mut bad = vec![];
    for (delay, sd, least) in [(100, 20, 0.95), (130, 40, 0.90), (160, 50, 0.87), (160, 30, 0.89), (280, 50, 0.76)] {
        let each: Vec<f64> = (1..=3).map(|seed| in_time(delay, sd, seed)).collect();
        let mean = each.iter().sum::<f64>() / 3.0;
        println!("{delay} ms +- {sd}: {each:.3?}");
        if mean < least {
            bad.push(format!("{delay} ms +- {sd}: {each:.3?} in time, not {least}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Mbit/s and delay in ms of a steady path and of an unsteady one.
type Ways = [(u64, u64); 2];

/// Of 125 frames of `size` bytes, one each 40 ms and worth nothing after `lifetime` ms, how many come by profile `live`.
fn frames_that_come(ways: Ways, jitter: Jitter, size: usize, lifetime: u64, seed: u64) -> usize {
    let [steady, unsteady] = ways.map(|(mbit, delay)| link(mbit, delay));
    let unsteady = LinkConfig { jitter, jitter_reorders: true, ..unsteady };
    let back = LinkConfig::fixed(None, Duration::ZERO);
    let mut b = Bench::connected(seed, &assoc_config("live"), &[(steady, back.clone()), (unsteady, back)]);
    for n in 0..125 {
        let deadline = Some(b.now + ms(lifetime));
        b.send(Side::Client, SendOptions { deadline, ..SendOptions::default() }, numbered(0, n, size));
        b.run_for(ms(40));
    }
    b.at_server.len()
}

/// At the start frames are given up before anything is heard of what left of them by the slow path. What is heard then says
/// what that path carries: without it, it stays at its first packets.
#[test]
fn what_was_given_up_still_shows_what_its_path_carries() {
    let mut bad = vec![];
    for (size, lifetime, least, mean) in [(24_000, 300, 60, 90), (28_000, 250, 35, 78), (20_000, 280, 60, 90)] {
        let come = |seed| frames_that_come([(2, 30), (4, 160)], Jitter::Normal(ms(50)), size, lifetime, seed);
        let mut each: Vec<_> = (1..=20).map(come).collect();
        each.sort_unstable();
        println!("{size} bytes for {lifetime} ms: {each:?}");
        if each[0] < least || each.iter().sum::<usize>() < 20 * mean {
            bad.push(format!("{size} bytes for {lifetime} ms: {each:?} of 125, not {least} and {mean} on the mean"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Jitter spreads the train by which a path is measured before it carries anything. What the path carries at least, it shows
/// all the same; beginning with a few packets, frames would be given up for as long as none of them is in time.
#[test]
fn a_start_over_an_uneven_path_is_as_quick_as_over_an_even_one() {
    let mut bad = vec![];
    for (ways, uneven, size, lifetime, least) in [
        ([(2, 30), (4, 160)], 25, 24_000, 300, 105),
        ([(2, 30), (4, 160)], 50, 24_000, 300, 75),
        ([(2, 30), (4, 160)], 10, 20_000, 280, 115),
        ([(1, 20), (4, 120)], 20, 20_000, 250, 80),
        ([(2, 30), (8, 160)], 25, 36_000, 300, 95),
        ([(3, 20), (6, 80)], 15, 36_000, 200, 85),
        ([(1, 30), (2, 200)], 30, 12_000, 400, 100),
    ] {
        let come = |seed| frames_that_come(ways, Jitter::Uniform(ms(uneven)), size, lifetime, seed);
        let mut each: Vec<_> = (1..=20).map(come).collect();
        each.sort_unstable();
        println!("{ways:?} +- {uneven}, {size} bytes for {lifetime} ms: {each:?}");
        if each[0] < least || each.iter().sum::<usize>() < 20 * (least + 105) / 2 {
            bad.push(format!("{ways:?} +- {uneven}, {size} bytes for {lifetime} ms: {each:?} of 125"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
