//! A receive buffer that is not large enough is blocked by the slow path, and what Raiciu et al. (2012, §4.2) do about it
//! helps. The setting is theirs: a wireless network of 8 Mbit/s and 20 ms with 80 ms of buffer beside a cellular one of 2
//! Mbit/s and 150 ms with 2 s.

use super::{at, both, connect, link, sink, source};
use anabranch_sim::transport::mptcp::{Coupling, MptcpConfig};
use anabranch_sim::transport::tcp::Supply;

/// Goodput in Mbit/s after ten seconds, over both networks or the first alone, and how often the window stopped it.
fn goodput(config: MptcpConfig, networks: usize) -> (f64, u64) {
    let mut ways = vec![both(link(8_000, 10, 53)), both(link(2_000, 75, 333))];
    ways.truncate(networks);
    let mut network = connect(config, Supply::Endless, ways, 1);
    network.run_until(at(10));
    let before = sink(&network).delivered();
    network.run_until(at(110));
    let a = sink(&network).assembly();
    assert!(a.most_held() <= config.receive_buffer && a.digest() == a.expected_digest());
    ((sink(&network).delivered() - before) as f64 * 8.0 / 100e6, source(&network).counters().window_stops)
}

#[test]
fn the_slow_path_blocks_and_the_remedies_make_it_better_than_one_path() {
    let with = |kib: u64, coupling, remedies| MptcpConfig {
        opportunistic: remedies,
        penalise: remedies,
        coupling,
        receive_buffer: kib << 10,
        ..MptcpConfig::rfc()
    };
    for coupling in [Coupling::Lia, Coupling::Uncoupled] {
        for kib in [16, 64, 128, 256, 512, 2_048] {
            let (plain, stops) = goodput(with(kib, coupling, false), 2);
            let (remedied, _) = goodput(with(kib, coupling, true), 2);
            let (alone, _) = goodput(with(kib, coupling, true), 1);
            println!("{coupling:?} {kib} KiB: {plain:.2} ({stops} stops), remedied {remedied:.2}, alone {alone:.2}");
            match kib {
                // The fast path alone fills so little.
                ..100 => assert!((plain / alone - 1.0).abs() < 0.02 && (remedied / alone - 1.0).abs() < 0.02),
                // Two paths are worse than the better one, and with the remedies better.
                100..1_000 => {
                    assert!(plain < 0.8 * alone && stops > 3_000, "{coupling:?} {kib}: {plain} and {alone}");
                    assert!(remedied > 1.05 * alone, "{coupling:?} {kib}: {remedied} and {alone}");
                }
                // 10 Mbit/s less headers are 9.5.
                _ => assert!(plain.min(remedied) > 9.2, "{coupling:?} {kib}: {plain} and {remedied}"),
            }
        }
    }
}

/// A receive buffer of a segment works, if slowly: the window opens with each that came.
#[test]
fn a_buffer_of_one_segment() {
    for networks in [1, 2] {
        let config = MptcpConfig { receive_buffer: 1_428, ..MptcpConfig::rfc() };
        let (rate, _) = goodput(config, networks);
        // A segment each round trip with its delayed acknowledgement: 1428 bytes in 120 to 125 ms.
        assert!((0.08..0.1).contains(&rate), "{rate}");
    }
}
