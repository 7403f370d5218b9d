//! RED beside that of ns-2.

use crate::queues::{RATE, poisson};
use crate::stats::interval;
use anabranch_base::Duration;
use anabranch_sim::queue::{Discipline, RedParams};
use anabranch_sim::{Limit, LinkConfig};

const PACKETS: RedParams = RedParams {
    thresh: Some(5.0),
    maxthresh: Some(15.0),
    q_weight: Some(0.002),
    bytes: false,
    queue_in_bytes: false,
    mean_pktsize: 1_000,
    ..RedParams::NS2
};

/// Share dropped and mean packets waiting after the first two of twenty seconds.
fn run(params: RedParams, load: f64, seed: u64) -> (f64, f64) {
    let config = LinkConfig::fixed(Some(RATE), Duration::ZERO).with_discipline(Discipline::Red(params));
    // In bytes ns-2's limit of 1000 packets is 1000 times `mean_pktsize`; it is never reached.
    let config = config.with_limit(Limit::bytes(1_000 * u64::from(params.mean_pktsize)).waiting_only());
    let n = (20_000.0 * load) as u64;
    let warm = n / 10;
    let (mut passed, mut wait) = (0u64, 0.0);
    poisson(config, seed, load, n, (1_000.0, |_: &mut _| 1_000), |number, _, took| {
        if number >= warm {
            passed += 1;
            wait += took.as_secs_f64() - 0.001;
        }
    });
    let offered = (n - warm) as f64;
    // Little: packets waiting are arrivals that pass, a second, times their mean wait.
    (1.0 - passed as f64 / offered, load * 1_000.0 * wait / offered)
}

/// ns-2.35 (Debian 2.35+dfsg-5), measured with `ns2_red.tcl` of this directory on substreams 11 to 20:
/// variant, load, share dropped and mean queue, each with half its 99.9 % interval. Fails where the
/// two intervals do not meet.
#[test]
fn red_drops_and_queues_as_in_ns_2() {
    let eager = RedParams { wait: false, ..PACKETS };
    let steep = RedParams { gentle: false, ..PACKETS };
    let bytes = RedParams { bytes: true, queue_in_bytes: true, ..PACKETS };
    let table = [
        ("packets", PACKETS, 0.95, (0.00803, 0.00094), (6.578, 0.164)),
        ("packets", PACKETS, 1.1, (0.09862, 0.00163), (15.097, 0.080)),
        ("eager", eager, 0.95, (0.01379, 0.00118), (5.730, 0.106)),
        ("eager", eager, 1.1, (0.10506, 0.00152), (10.844, 0.062)),
        ("steep", steep, 0.95, (0.00827, 0.00100), (6.511, 0.140)),
        ("steep", steep, 1.1, (0.10025, 0.00149), (13.072, 0.064)),
        ("bytes", bytes, 0.95, (0.00844, 0.00099), (6.557, 0.162)),
        ("bytes", bytes, 1.1, (0.09981, 0.00170), (15.048, 0.083)),
        ("defaults", RedParams::NS2, 0.95, (0.02541, 0.00151), (4.615, 0.069)),
        ("defaults", RedParams::NS2, 1.1, (0.11827, 0.00167), (7.388, 0.025)),
    ];
    for (name, params, load, drops, queue) in table {
        let (dropped, waiting): (Vec<f64>, Vec<f64>) = (0..40).map(|seed| run(params, load, seed)).unzip();
        for (what, ours, (theirs, their_half)) in [("share", dropped, drops), ("queue", waiting, queue)] {
            let (mean, half) = interval(&ours);
            let apart = (mean - theirs).abs();
            assert!(
                apart <= half + their_half,
                "{name} {load} {what}: {mean} +- {half}, ns-2 {theirs} +- {their_half}"
            );
        }
    }
}
