//! CUBIC against RFC 9438: the response function of §5, the Reno-friendly region of §4.3, and what two flows get of one
//! bottleneck.

use super::{connect, sender};
use anabranch_base::{Duration, Instant, RandomStream, Rate};
use anabranch_sim::network::{AgentId, Network, Peer};
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule, Supply, TcpConfig, TcpSink, TcpSource};
use anabranch_sim::{Jitter, Limit, LinkConfig, LossConfig};

/// Each segment acknowledged, as the RFC's analysis has it.
fn config(congestion: Congestion) -> TcpConfig {
    TcpConfig { congestion, delayed_ack: None, quick_ack: false, ..TcpConfig::linux() }
}

/// Where a flow is alone fast convergence should be off (RFC 9438 §4.7), and the analysis has none.
fn alone() -> TcpConfig {
    TcpConfig { fast_convergence: false, ..config(Congestion::Cubic) }
}

/// The mean window, segments delivered in a round trip, where one packet of each `every` is lost: over the last quarter
/// of `rounds`.
fn window(config: TcpConfig, rtt_ms: u64, every: usize, rounds: u64) -> f64 {
    let way = LinkConfig::fixed(None, Duration::from_micros(rtt_ms * 500));
    let mut pattern = vec![false; every];
    pattern[every / 2] = true;
    let lossy = way.clone().with_loss(LossConfig::Pattern(pattern));
    let mut network = connect(config, Supply::Endless, lossy, way, 1);
    let mut acknowledged_at = |round| {
        network.run_until(Instant::ZERO + Duration::from_millis(rtt_ms) * round);
        sender(&network).acknowledged()
    };
    let warm = acknowledged_at(rounds * 3 / 4);
    (acknowledged_at(rounds) - warm) as f64 / (rounds / 4) as f64
}

/// §5, equation 6 with C 0.4, or equation 3 where the Reno-friendly region gives more.
fn predicted(rtt_ms: u64, p: f64) -> f64 {
    let cubic = 1.054 * libm::pow(rtt_ms as f64 / 1_000.0 / p, 0.75);
    cubic.max(libm::sqrt(1.5 / p))
}

/// What `recovery` reaches of the formula when its first slow start ends at `start` times the window of the formula.
fn part(recovery: Recovery, rtt: u64, every: usize, start: f64) -> f64 {
    let expected = predicted(rtt, 1.0 / every as f64);
    let begin = TcpConfig { hystart: false, initial_ssthresh: Some((start * expected) as u32), recovery, ..alone() };
    window(begin, rtt, every, 16_000) / expected
}

/// Losses of 0.01 to 1 % at round trips of 10 to 200 ms, what tables 1 and 2 of the RFC have of them included. Around
/// the window at which it was reduced CUBIC hardly moves, so that it takes hundreds of cycles to its mean, from below
/// and from above. The analysis knows neither recoveries, which take a round trip of each cycle at a smaller window, nor
/// windows of whole segments: 8 % for both.
#[test]
fn the_response_function() {
    let short = [100, 316, 1_000, 3_162, 10_000].map(|every| (10, every));
    let long = [(100, 100), (100, 1_000), (100, 3_162), (100, 10_000), (200, 316), (200, 1_000), (200, 10_000)];
    for (rtt, every) in short.into_iter().chain(long) {
        for start in [0.6, 2.0] {
            let part = part(Recovery::Rack, rtt, every, start);
            assert!((0.92..=1.08).contains(&part), "rtt {rtt} ms, one of {every}, from {start}: {part:.3}");
        }
    }
}

/// By RFC 6675 in place of RACK and PRR the window falls at once: where a cycle has ten rounds, at one loss of 100, that
/// costs another tenth, of Reno as well.
#[test]
fn the_response_function_over_another_recovery() {
    for (rtt, every, least) in [(10, 100, 0.84), (10, 10_000, 0.92), (100, 1_000, 0.92), (200, 1_000, 0.9)] {
        let part = part(Recovery::Sack(SackRule::Rfc6675), rtt, every, 1.0);
        assert!((least..=1.08).contains(&part), "rtt {rtt} ms, one of {every}: {part:.3}");
    }
}

/// Where the window is small, or the round trip, CUBIC has what Reno has (§4.3); elsewhere more.
#[test]
fn no_less_than_reno_and_more_where_reno_is_slow() {
    let reno = TcpConfig { congestion: Congestion::Reno, ..alone() };
    let ratio = |rtt, every| window(alone(), rtt, every, 8_000) / window(reno, rtt, every, 8_000);
    for every in [1_000, 10_000] {
        let short = ratio(10, every);
        assert!((0.98..1.06).contains(&short), "{every}: {short}");
    }
    let long = ratio(200, 10_000);
    assert!(long > 2.0, "{long}");
}

/// Two connections over one bottleneck, the second from 10 s on: what the first gets of the segments delivered in the
/// last half of `seconds`.
fn share(first: TcpConfig, second: TcpConfig, bottleneck: LinkConfig, seconds: u64, seed: u64) -> f64 {
    let back = LinkConfig::fixed(None, bottleneck.delay);
    let mut network = Network::<()>::new(&Topology::single_path((bottleneck, back)), seed).unwrap();
    let [from, to] = ["sender", "receiver"].map(|host| network.addresses(network.node(host).unwrap())[0]);
    let mut random = RandomStream::named(seed, "clock");
    for (n, config) in [first, second].into_iter().enumerate() {
        let peer = Peer { address: to, agent: AgentId(2 * n as u32 + 1) };
        let start = Instant::ZERO + Duration::from_secs(10) * n as u64;
        network.add(Box::new(TcpSource::new(config, from, peer, Supply::Endless, &mut random)), start);
        network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
    }
    let mut acknowledged_at = |s| {
        network.run_until(Instant::ZERO + Duration::from_secs(s));
        [0, 2].map(|agent| network.agent::<TcpSource>(AgentId(agent)).unwrap().sender().acknowledged())
    };
    let (warm, end) = (acknowledged_at(seconds / 2), acknowledged_at(seconds));
    let [a, b] = [0, 1].map(|n| (end[n] - warm[n]) as f64);
    a / (a + b)
}

/// Mean of ten seeds and half of its 95 % interval.
fn shares(first: TcpConfig, second: TcpConfig, bottleneck: &LinkConfig, seconds: u64) -> (f64, f64) {
    let all: Vec<f64> = (1..=10).map(|seed| share(first, second, bottleneck.clone(), seconds, seed)).collect();
    let mean = all.iter().sum::<f64>() / 10.0;
    let variance = all.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / 9.0;
    (mean, 2.262 * libm::sqrt(variance / 10.0))
}

fn bottleneck(mbit: u64, delay_ms: u64, packets: u64) -> LinkConfig {
    let link = LinkConfig::fixed(Some(Rate::from_bits_per_sec(mbit * 1_000_000)), Duration::from_millis(delay_ms));
    // So that not always the same one finds the queue full.
    let jitter = Jitter::Uniform(Duration::from_micros(500));
    LinkConfig { jitter, ..link.with_limit(Limit::packets(packets)) }
}

#[test]
fn two_flows_share_alike() {
    let cubic = config(Congestion::Cubic);
    for link in [bottleneck(10, 5, 25), bottleneck(10, 20, 60)] {
        let (mean, half) = shares(cubic, cubic, &link, 60);
        assert!((mean - 0.5).abs() < 0.05 && half < 0.05, "{mean:.3} ± {half:.3}");
    }
}

/// Beside Reno CUBIC gets about as much where the product of bandwidth and delay is small, and more where it is large.
#[test]
fn beside_reno() {
    let [cubic, reno] = [Congestion::Cubic, Congestion::Reno].map(config);
    for link in [bottleneck(10, 5, 25), bottleneck(10, 20, 60)] {
        for (first, second, sign) in [(cubic, reno, 1.0), (reno, cubic, -1.0)] {
            let (mean, half) = shares(first, second, &link, 60);
            let more = sign * (mean - 0.5);
            assert!((-0.02..0.12).contains(&more) && half < 0.05, "{more:.3} ± {half:.3}");
        }
    }
    let (mean, half) = shares(cubic, reno, &bottleneck(50, 50, 200), 60);
    assert!(mean - half > 0.6, "{mean:.3} ± {half:.3}");
}
