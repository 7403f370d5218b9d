//! A deadline means "arrive by": what arrives in time of messages that their paths cannot carry all, or carry unlike.

use crate::common::*;
use crate::film::{links, note, program};
use anabranch_base::Duration;
use anabranch_engine::{Event, SendOptions};
use anabranch_policy::registry::Profile;

/// Share of messages of 1000 bytes that arrive within `latency` ms, from the third second on.
fn in_time(profile: &Profile, seed: u64, rate: u64, latency: u64, paths: &[&str]) -> f64 {
    let config = program(profile, seed);
    let mut b = Bench::new(seed, &config);
    b.largest = 1_452;
    for (i, words) in paths.iter().enumerate() {
        let (f, r) = links(words);
        b.paths.add(&format!("path{i}"), f, r);
    }
    b.connect(&config);
    while !b.client_events.contains(&Event::Connected) {
        b.run_for(ms(1));
    }
    let (start, gap) = (b.now, Duration::from_nanos(8_000 * 1_000_000_000 / rate));
    let (from, total) = ((3_000_000_000 / gap.as_nanos()) as u32, (15_000_000_000 / gap.as_nanos()) as u32);
    let mut arrived = Vec::new();
    for n in 0..total {
        let made = start + gap * u64::from(n);
        while b.now < made {
            b.run_for(ms(1).min(made - b.now));
            note(&mut b, &mut arrived);
        }
        let deadline = Some(made + ms(latency));
        let mut payload = pattern(1, 1_000).to_vec();
        payload[..4].copy_from_slice(&n.to_be_bytes());
        b.send(Side::Client, SendOptions { unordered: true, deadline, ..SendOptions::default() }, payload);
    }
    for _ in 0..latency + 500 {
        b.run_for(ms(1));
        note(&mut b, &mut arrived);
    }
    arrived.resize(total as usize, None);
    let made = |n: u32| start + gap * u64::from(n);
    let came = (from..total).filter(|n| arrived[*n as usize].is_some_and(|t| t <= made(*n) + ms(latency + 1))).count();
    came as f64 / f64::from(total - from)
}

/// Under overload nearly all that could be in time is, in every profile that uses the deadline so.
#[test]
fn a_deadline_means_arrive_by() {
    // Messages of 1000 bytes in packets of 1060 and more: 0.62 of 6 Mbit/s fit 4.
    let one = ["rate 4mbit delay 20ms limit 100"];
    let two = ["rate 2mbit delay 20ms limit 100", "rate 2mbit delay 50ms limit 100"];
    for (name, least) in [("live", [0.58, 0.54]), ("low-latency", [0.58, 0.44]), ("cmt", [0.58, 0.33])] {
        let p = Profile::named(name).expect("registered");
        for seed in 1..=2 {
            let got = [in_time(&p, seed, 6_000_000, 300, &one), in_time(&p, seed, 6_000_000, 300, &two)];
            println!("{name} seed {seed}: {got:.3?}");
            assert!(got[0] >= least[0] && got[1] >= least[1], "{name} seed {seed}: {got:.3?}");
        }
    }
    let unlike =
        ["rate 6mbit delay 30ms loss 0.5% limit 100", "rate 4mbit delay 160ms down.delay 5ms loss 0.5% limit 100"];
    for seed in 1..=10 {
        let got = in_time(&Profile::named("live").expect("registered"), seed, 8_000_000, 300, &unlike);
        assert!(got >= 0.985, "seed {seed}: {got:.3}");
    }
}

/// Ways there and back may differ by anything: what comes back by the quicker way tells neither of a higher rate nor of a
/// shorter way there.
#[test]
fn ways_back_that_differ_from_the_ways_there_cost_nothing() {
    let mut late = vec![];
    for (there, back) in [(160, 5), (5, 160), (200, 60), (90, 10), (40, 180), (120, 120)] {
        for (fast_there, fast_back) in [(30, 30), (10, 40), (40, 10)] {
            for seed in 1..=2 {
                let first = format!("rate 6mbit delay {fast_there}ms down.delay {fast_back}ms loss 0.3% limit 100");
                let second = format!("rate 4mbit delay {there}ms down.delay {back}ms loss 0.3% limit 100");
                let got =
                    in_time(&Profile::named("live").expect("registered"), seed, 8_000_000, 300, &[&first, &second]);
                println!("{fast_there}/{fast_back} and {there}/{back} ms, seed {seed}: {got:.4}");
                if got < 0.985 {
                    late.push(format!("{fast_there}/{fast_back} and {there}/{back} ms, seed {seed}: {got:.3}"));
                }
            }
        }
    }
    assert!(late.is_empty(), "{} late:\n{}", late.len(), late.join("\n"));
}
