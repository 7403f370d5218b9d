//! What trains of HEARTBEATs show of paths: while the peer has something to say as well, and where jitter spreads them.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::{Event, SendOptions};
use anabranch_sim::{Jitter, Limit, LinkConfig};

/// Mbit/s and delay in ms, there and back.
type Way = ([u64; 2], u64);

/// Connects by `live` over these paths; the client means to send at once, and the server answers at once with `answers`
/// bytes. Of each path after two seconds, what it is believed to carry in parts of its rate.
fn shown(ways: &[Way], answers: usize) -> Vec<f64> {
    let config = assoc_config("live");
    let mut b = Bench::pair(1, &config, &config);
    for (i, &(mbits, delay)) in ways.iter().enumerate() {
        let [there, back] = mbits.map(|m| link(m, delay).with_limit(Limit::packets(100)));
        b.add_path(&format!("path{i}"), there, back);
    }
    b.connect(&config);
    let mut answered = false;
    for _ in 0..2_000 {
        b.run_for(ms(1));
        if b.client_events.contains(&Event::Connected) {
            b.is_warm();
        }
        if !answered && b.server_events.contains(&Event::Connected) {
            for piece in vec![1u8; answers].chunks(1_100) {
                assert!(b.send(Side::Server, SendOptions::default(), piece.to_vec()));
            }
            answered = true;
        }
    }
    let part = |(i, way): (usize, &Way)| {
        b.path(Side::Client, i).capacity.bytes_per_sec() as f64 / (way.0[0] as f64 * 125_000.0)
    };
    ways.iter().enumerate().map(part).collect()
}

/// The answers to a train come after whatever the peer sends by the same path, and then say nothing of the way there.
#[test]
fn an_answer_of_the_peer_does_not_come_in_the_way_of_trains() {
    for ways in [
        &[([6, 6], 20), ([6, 6], 40)][..],
        &[([6, 20], 20), ([6, 20], 40)],
        &[([6, 10], 20), ([6, 10], 40)],
        &[([10, 10], 10), ([6, 6], 40), ([3, 3], 80)],
        &[([6, 50], 20), ([20, 3], 30)],
    ] {
        for answers in [0, 1, 40, 1_000] {
            let parts = shown(ways, answers);
            assert!(parts.iter().all(|p| (0.6..1.15).contains(p)), "{ways:?}, {answers} bytes: {parts:.2?}");
        }
    }
}

/// Where the peer sends as much itself its own trains cross ours: nothing is known then, or what is true.
#[test]
fn trains_that_cross_show_nothing_wrong() {
    for ways in [&[([6, 6], 20), ([6, 6], 40)][..], &[([6, 20], 20), ([10, 10], 60)], &[([3, 3], 30), ([12, 12], 30)]] {
        let parts = shown(ways, 20_000);
        assert!(parts.iter().all(|p| *p < 1.15), "{ways:?}: {parts:.2?}");
    }
}

/// What a path on which each packet takes a time of its own, with a standard deviation of `sd` microseconds, is believed to
/// carry once trains are answered, in parts of its rate, by seed.
fn shown_where_packets_come_apart(mbit: u64, delay: u64, sd: u64) -> Vec<f64> {
    let config = assoc_config("live");
    let of = |seed| {
        let mut b = Bench::pair(seed, &config, &config);
        let jitter = Jitter::Normal(Duration::from_micros(sd));
        let unsteady = LinkConfig { jitter, jitter_reorders: true, ..link(mbit, delay) };
        b.add_path("steady", link(6, 20), LinkConfig::fixed(None, Duration::ZERO));
        b.add_path("unsteady", unsteady.with_limit(Limit::packets(100)), LinkConfig::fixed(None, Duration::ZERO));
        b.connect(&config);
        for _ in 0..1_000 {
            b.run_for(ms(1));
            if b.client_events.contains(&Event::Connected) {
                b.is_warm();
            }
        }
        b.path(Side::Client, 1).capacity.bytes_per_sec() as f64 / (mbit as f64 * 125_000.0)
    };
    (1..=80).map(of).collect()
}

/// A train that jitter spreads shows that the path carries something, and hardly ever more than it does. Where jitter is little beside
/// the train's own time it does no harm.
#[test]
fn a_train_that_jitter_spread_shows_the_least_of_a_rate_and_one_that_it_did_not_shows_it() {
    for (mbit, delay, sd) in [(4, 160, 50_000), (4, 100, 20_000), (8, 80, 30_000), (12, 60, 10_000), (3, 200, 80_000)] {
        let parts = shown_where_packets_come_apart(mbit, delay, sd);
        let more = parts.iter().filter(|p| **p > 1.5).count();
        let shown = parts.iter().filter(|p| **p > 0.0).count();
        assert!(more == 0 && shown * 10 >= parts.len() * 9, "{mbit} Mbit/s, {delay} ms +- {sd} us: {parts:.2?}");
    }
    for (mbit, delay, sd) in [(4, 160, 0), (6, 30, 1_300), (4, 60, 2_500), (12, 30, 500)] {
        let parts = shown_where_packets_come_apart(mbit, delay, sd);
        let right = parts.iter().filter(|p| (0.6..1.4).contains(*p)).count();
        assert!(right * 5 >= parts.len() * 4, "{mbit} Mbit/s, {delay} ms +- {sd} us: {right} of {}", parts.len());
    }
}
