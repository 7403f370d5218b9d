//! What a path is believed to carry that bursts keep busy, beside one on which each packet takes its own time.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_sim::{Jitter, Limit, LinkConfig};

/// Bursts each 25 ms, worthless after 200 ms, over two paths by profile `live`: of the first, over 20 seconds behind the
/// first five, the mean of what it is believed to carry, in parts of what it carries of payload, and its mean round trip
/// beyond its delay, in ms.
fn believed(mbits: [u64; 2], delays: [u64; 2], packets: u32, seed: u64) -> (f64, f64) {
    let varied = |i: usize, micros| LinkConfig {
        jitter: Jitter::Normal(Duration::from_micros(micros)),
        jitter_reorders: true,
        ..link(mbits[i], delays[i])
    };
    let back = LinkConfig::fixed(None, Duration::ZERO);
    let links = [varied(0, 1_300), varied(1, 50_000)].map(|l| (l.with_limit(Limit::packets(40)), back.clone()));
    let mut b = Bench::connected(seed, &assoc_config("live"), &links);
    let (bursts, from) = (1_000, 200);
    let (mut rates, mut rtts) = (0.0, 0.0);
    for burst in 0..bursts {
        for n in 0..packets {
            let options = SendOptions { unordered: true, deadline: Some(b.now + ms(200)), ..SendOptions::default() };
            b.send(Side::Client, options, numbered(0, burst * packets + n, 1_150));
        }
        b.run_for(ms(25));
        if burst >= from {
            let p = b.path(Side::Client, 0);
            rates += p.capacity.bytes_per_sec() as f64;
            rtts += p.srtt.as_secs_f64() * 1e3;
        }
    }
    let n = f64::from(bursts - from);
    // Headers of UDP and SCTP, 56 bytes of 1,214.
    (rates / n / (mbits[0] as f64 * 125_000.0 * 1_158.0 / 1_214.0), rtts / n - delays[0] as f64)
}

#[test]
fn a_path_that_bursts_fill_is_not_believed_to_carry_more() {
    let mut bad = vec![];
    for (mbits, delays, packets) in [
        ([6, 4], [30, 160], 20),
        ([6, 4], [30, 160], 24),
        ([6, 4], [60, 180], 20),
        ([10, 4], [20, 160], 32),
        ([4, 6], [40, 160], 14),
    ] {
        for seed in 1..=2 {
            let (rate, queue) = believed(mbits, delays, packets, seed);
            let got =
                format!("{mbits:?} Mbit/s, {delays:?} ms, {packets} packets: {rate:.3} of its rate, {queue:.0} ms");
            println!("{got}");
            if !(0.95..1.13).contains(&rate) {
                bad.push(got);
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
