//! Sparse messages that are lost: repeated when their answer is overdue, without what an expiry of T3 brings; and what
//! was overtaken counts as lost at the first report, on a path that keeps the order of packets.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_sim::{Jitter, LinkConfig};
use anabranch_wire::kind;

fn send(b: &mut Bench) {
    let unordered = SendOptions { unordered: true, ..SendOptions::default() };
    assert!(b.send(Side::Client, unordered, vec![7; 100]));
}

/// How long a message takes whose first `lost` transmissions do not arrive, over `delay` ms each way, and how often T3
/// expired by then.
fn lost_in_a_row(delay: u64, lost: usize) -> (Duration, u64) {
    let mut b = Bench::connected(delay, &assoc_config("low-latency"), &[(link(10, delay), link(10, delay))]);
    for _ in 0..60 {
        send(&mut b);
        b.run_for(ms(delay * 5));
    }
    let before = b.at_server.len();
    b.filter = drop_first(Side::Client, kind::DATA, lost);
    let made = b.now;
    send(&mut b);
    while b.at_server.len() == before && b.now < made + ms(20_000) {
        b.run_for(Duration::from_micros(500));
    }
    let took = b.now.since(made);
    let path = b.path(Side::Client, 0);
    assert!(lost > 4 || path.state == PathState::Active);
    (took, path.counters.timeouts)
}

#[test]
fn each_loss_costs_little_more_than_a_round_trip_and_no_expiry() {
    let mut bad = vec![];
    // At shorter ones the probes of the start delay the first answer, and what that teaches outlasts this test.
    for delay in [10, 25, 50, 100, 150] {
        for lost in 0..=4 {
            let (took, timeouts) = lost_in_a_row(delay, lost);
            // Five milliseconds above the round trip, and what transmission and rounding add.
            let most = ms(delay + 1) + ms(2 * delay + 7) * lost as u64;
            if took > most || timeouts > 0 {
                bad.push(format!("{delay} ms, {lost} lost: {took}, {timeouts} timeouts"));
            }
        }
        let (took, timeouts) = lost_in_a_row(delay, 5);
        if timeouts != 1 {
            bad.push(format!("{delay} ms, five lost: {took}, {timeouts} timeouts; after four T3 decides"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// A message each 10 ms over a way that takes 50 ms and up to 20 ms more or less, of which each fiftieth is lost: how long
/// those took on the mean, and what the peer got twice, of 2,000.
fn overtaken(reorders: bool, in_order: &str, seed: u64) -> (Duration, u64) {
    let mut c = assoc_config("low-latency");
    let spec = c.profile.spec_in_full(Hook::LossThreshold).replace("in_order=1", in_order);
    c.profile.set(Hook::LossThreshold, &spec).expect("registered");
    let there = LinkConfig { jitter: Jitter::Uniform(ms(20)), jitter_reorders: reorders, ..link(10, 50) };
    let mut b = Bench::connected(seed, &c, &[(there, link(10, 50))]);
    let (mut made, mut came, mut seen) = (vec![], vec![None; 2_000], 0);
    for n in 0..2_000 {
        if n % 50 == 49 {
            b.filter = drop_first(Side::Client, kind::DATA, 1);
        }
        let unordered = SendOptions { unordered: true, ..SendOptions::default() };
        made.push(b.now);
        assert!(b.send(Side::Client, unordered, numbered(0, n, 100)));
        for _ in 0..10 {
            b.run_for(ms(1));
            for m in &b.at_server[seen..] {
                came[number_of(m).1 as usize] = Some(b.now);
            }
            seen = b.at_server.len();
        }
    }
    let took: Vec<u64> =
        (49..1_950).step_by(50).map(|n| came[n].expect("repaired by then").since(made[n]).as_nanos()).collect();
    let mean = Duration::from_nanos(took.iter().sum::<u64>() / took.len() as u64);
    (mean, b.assoc(Side::Server).stats().duplicates_received)
}

#[test]
fn one_report_suffices_where_packets_keep_their_order() {
    for seed in 1..=5 {
        let (quick, needless) = overtaken(false, "in_order=1", seed);
        let (patient, _) = overtaken(false, "in_order=0", seed);
        assert_eq!(needless, 0, "seed {seed}");
        assert!(quick + ms(20) < patient, "seed {seed}: {quick} and {patient}");
    }
}

/// There it waits as it would without, but for the packet each ten seconds that shows that it must.
#[test]
fn a_path_that_reorders_is_found_out_by_a_packet_or_two() {
    for seed in 1..=5 {
        let (_, needless) = overtaken(true, "in_order=1", seed);
        assert!((1..=20).contains(&needless), "seed {seed}: {needless} of 2,000");
    }
}
