//! No scheduler lets the chunk that everything waits for lie, however it permutes: a transfer in order over unlike paths
//! gets half of what the fastest of them carries and more, by any receive buffer that holds a round trip of all.

use super::two_paths::*;
use anabranch_engine::Constants;
use anabranch_policy::registry::Hook;
use anabranch_sim::LinkConfig;

/// 6, 4 and 2 Mbit/s; 30, 80 and 160 ms one way.
fn links(paths: usize) -> Vec<(LinkConfig, LinkConfig)> {
    let unlike = |(mbit, delay)| both_ways(link(mbit, delay));
    [(6, 30), (4, 80), (2, 160)].into_iter().take(paths).map(unlike).collect()
}

/// Every scheduler that shares, permutes, waits or wraps, and what its parameters make of that.
fn specs() -> Vec<String> {
    let mut all: Vec<String> =
        ["round_robin:strict=1", "weighted_round_robin", "delay_equalisation"].map(Into::into).into();
    for variant in 1..=2 {
        for fixed_split in 0..=1 {
            let own = format!("variant={variant},fixed_split={fixed_split}");
            all.extend((0..=1).map(|rounds| format!("confluent:{own},rounds={rounds}")));
            all.extend(["base", "srtt"].map(|e| format!("delay_compensation:estimate={e},{own}")));
        }
    }
    for inner in ["round_robin", "round_robin,strict=1", "weighted_round_robin", "min_rtt"] {
        all.extend(["base", "srtt"].map(|e| format!("delay_compensation:estimate={e},inner={inner}")));
    }
    all
}

/// What a transfer of 3 MB gets, bit/s; nothing when it takes a minute and more.
fn rate(spec: &str, paths: usize, buffer: usize) -> u64 {
    let scheduler = [(Hook::PathScheduler, spec)];
    let at_server = profile("cmt", &[(Hook::Acknowledge, "immediate")]);
    let mut config = anabranch_engine::AssocConfig::with(at_server, Constants::RFC);
    config.limits.receive_buffer = buffer;
    let mut b = connected_with(7, &config, policies(&profile("confluent", &scheduler), paths), &links(paths));
    let took = Flow::new(Side::Client, 0, 1_000).transfer(&mut b, 3_000, ms(60_000));
    took.map_or(0, |t| 3_000 * 8_000 * 1_000 / t.as_millis())
}

#[test]
fn a_transfer_in_order_gets_on_by_every_scheduler() {
    let mut slow = vec![];
    for spec in specs() {
        for (paths, buffer) in [(2, 256_000), (2, 512_000), (3, 1 << 20)] {
            let rate = rate(&spec, paths, buffer);
            if rate < 3_000_000 {
                slow.push(format!("{spec}, {paths} paths, {buffer} bytes: {rate} bit/s"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
