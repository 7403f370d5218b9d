//! What a path's rate is believed to be while another path stands and all that it holds leaves again on this one: the late
//! originals are no deliveries of this path.

use crate::common::*;
use crate::film::{links, note, program};
use anabranch_base::{Duration, StreamId};
use anabranch_engine::{Event, SendOptions};
use anabranch_policy::registry::Profile;

/// Largest rate that path 1 of 6 Mbit/s is believed to have, bytes a second, while path 0 stands for `stall` ms each second.
fn believed(profile: &str, seed: u64, stall: u64) -> u64 {
    let config = program(&Profile::named(profile).expect("a profile"), seed);
    let mut b = Bench::new(seed, &config);
    b.largest = 1_452;
    let stalls: String = (3..15)
        .map(|s| {
            let steps = (0..stall / 50).map(|i| format!(" at {s}.{:03}s delay {}ms", i * 50, 20 + stall - i * 50));
            format!("{} at {s}.{:03}s delay 20ms", steps.collect::<String>(), stall / 50 * 50)
        })
        .collect();
    for (i, words) in [format!("rate 8mbit delay 20ms limit 200{stalls}"), "rate 6mbit delay 40ms limit 200".into()]
        .iter()
        .enumerate()
    {
        let (f, r) = links(words);
        b.paths.add(&format!("path{i}"), f, r);
    }
    b.connect(&config);
    while !b.client_events.contains(&Event::Connected) {
        b.run_for(ms(1));
    }
    let (mut arrived, mut most, mut due) = (vec![], 0, b.now);
    for n in 0..14_000u32 {
        let options = SendOptions {
            stream: StreamId(2),
            unordered: true,
            class: 2,
            group: Some(n / 40),
            deadline: Some(b.now + ms(600)),
            ..SendOptions::default()
        };
        let mut payload = pattern(1, 1_100).to_vec();
        payload[..4].copy_from_slice(&n.to_be_bytes());
        let _ = b.send(Side::Client, options, payload);
        due += Duration::from_micros(1_100);
        b.run_for(due.since(b.now));
        note(&mut b, &mut arrived);
        // Once the start, which looks for the rate, is over.
        if n > 2_000 {
            most = most.max(b.path(Side::Client, 1).capacity.bytes_per_sec());
        }
    }
    most
}

#[test]
fn late_originals_are_not_delivered_by_the_path_that_repeats_them() {
    for profile in ["live", "low-latency"] {
        for stall in [150, 300, 500] {
            for seed in 1..=3 {
                let most = believed(profile, seed, stall);
                let of_link = most as f64 * 8.0 / 6e6;
                println!("{profile}, {stall} ms, seed {seed}: {of_link:.2} of the rate");
                // Probes for more and the bursts after a stall show some more than the link carries.
                assert!(of_link < 1.5, "{profile}, {stall} ms, seed {seed}: {of_link:.2} of the rate of the link");
            }
        }
    }
}
