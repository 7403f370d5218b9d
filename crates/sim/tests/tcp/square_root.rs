//! The square-root law: under independent loss with probability p, goodput = C · MSS / (RTT · √p).
//!
//! M. Mathis, J. Semke, J. Mahdavi and T. Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm",
//! ACM Computer Communication Review 27(3), 1997, table 1: for random losses C is 1.31 when each segment is
//! acknowledged and 0.93 when every other is, in the limit of small p. At the p taken here a recovery of one round trip
//! and windows of whole segments still cost a few per cent, so the mean must lie within 8 % of the limit, and its 95 %
//! interval over ten seeds must be narrow enough to tell.

use super::{connect, sender};
use anabranch_base::{Duration, Instant};
use anabranch_sim::transport::tcp::{Recovery, SackRule, Supply, TcpConfig};
use anabranch_sim::{LinkConfig, LossConfig};

const RTT: f64 = 0.1;
/// Student's t, 95 %, 9 degrees of freedom.
const T9: f64 = 2.262;

/// C as measured: mean over ten seeds and half its interval.
fn constant(config: TcpConfig, p: f64) -> (f64, f64) {
    let way = LinkConfig::fixed(None, Duration::from_millis(50));
    let one = |seed| {
        let lossy = way.clone().with_loss(LossConfig::bernoulli(p));
        let mut network = connect(config, Supply::Endless, lossy, way.clone(), seed);
        let mut acknowledged_at = |s| {
            network.run_until(Instant::ZERO + Duration::from_secs(s));
            sender(&network).acknowledged()
        };
        let (warm, end) = (acknowledged_at(50), acknowledged_at(1_050));
        (end - warm) as f64 / 1_000.0 * RTT * p.sqrt()
    };
    let all: Vec<f64> = (1..=10).map(one).collect();
    let mean = all.iter().sum::<f64>() / 10.0;
    let variance = all.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 9.0;
    (mean, T9 * (variance / 10.0).sqrt())
}

fn config(recovery: Recovery, delayed: bool) -> TcpConfig {
    let config = TcpConfig::rfc(recovery);
    TcpConfig { delayed_ack: config.delayed_ack.filter(|_| delayed), ..config }
}

#[test]
fn goodput_follows_the_inverse_square_root_of_loss() {
    for recovery in [Recovery::NewReno, Recovery::Sack(SackRule::Pipe), Recovery::Sack(SackRule::Rfc6675)] {
        for (delayed, limit) in [(false, 1.31), (true, 0.93)] {
            for p in [0.000_3, 0.001] {
                let (mean, half) = constant(config(recovery, delayed), p);
                let result = format!("{recovery:?}, delayed {delayed}, p {p}: C = {mean:.3} ± {half:.3}");
                assert!(half < 0.04 * limit, "{result}");
                assert!((mean - limit).abs() < 0.08 * limit, "{result}");
            }
        }
    }
}

#[test]
fn reno_falls_behind_where_a_window_loses_twice() {
    let [reno, newreno] = [Recovery::Reno, Recovery::NewReno].map(|r| constant(config(r, false), 0.01));
    assert!(reno.0 + reno.1 < newreno.0 - newreno.1, "{reno:?} {newreno:?}");
}
