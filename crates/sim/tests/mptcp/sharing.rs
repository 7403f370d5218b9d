//! How subflows share links among themselves and with TCP.

use super::{at, both, connect, link, source};
use anabranch_base::{Duration, Instant, RandomStream};
use anabranch_sim::network::{AgentId, Network, Peer};
use anabranch_sim::queue::RedParams;
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::mptcp::{Coupling, MptcpConfig, MptcpSink, MptcpSource};
use anabranch_sim::transport::tcp::{Recovery, SackRule, Supply, TcpConfig, TcpSink, TcpSource};
use anabranch_sim::{Discipline, LinkConfig, LossConfig};

/// Student's t, 95 %, 7 degrees of freedom: a little more than of 9.
const T: f64 = 2.365;

fn mean(all: &[f64]) -> (f64, f64) {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, T * (variance / n).sqrt())
}

fn config(coupling: Coupling) -> MptcpConfig {
    MptcpConfig { coupling, receive_buffer: 1 << 30, ..MptcpConfig::rfc() }
}

/// Segments per second over `n` equal paths of 100 ms, each with this loss.
fn over_equal_paths(coupling: Coupling, n: usize, loss: &LossConfig, seconds: u64, seed: u64) -> f64 {
    let mut config = config(coupling);
    config.tcp.delayed_ack = None;
    let way = LinkConfig::fixed(None, Duration::from_millis(50));
    let mut network = connect(config, Supply::Endless, vec![(way.clone().with_loss(loss.clone()), way); n], seed);
    network.run_until(at(50));
    let before = source(&network).span().0;
    network.run_until(at(50 + seconds));
    (source(&network).span().0 - before) as f64 / seconds as f64
}

/// With each N-th packet lost on each path the windows of n equal paths rise and fall together, by 1/n^2 a round trip and
/// to a half: N = 3/8 n^2 W^2 packets from W/2 to W, so that the mean window is 3/4 W = sqrt(3/2 N) / n. The n of them make
/// what one TCP makes on one of the paths, whatever n is (RFC 6356 §2, goals 1 and 2); without
/// coupling, n times as much. OLIA moves window between paths whose windows differ by a segment, of which the formula knows
/// nothing, and makes less.
#[test]
fn equal_paths_are_one_tcp_together() {
    for period in [800, 2_000] {
        let loss = LossConfig::Packets((1..400).map(|i| i * period).collect());
        let formula = (1.5 * period as f64).sqrt() / 0.1;
        let of = |coupling, n| over_equal_paths(coupling, n, &loss, 300, 1) / formula;
        for n in [1, 2, 3, 4] {
            let all = [Coupling::Lia, Coupling::Olia, Coupling::Balia, Coupling::Uncoupled].map(|c| of(c, n));
            println!("each {period}th lost, {n} paths: {all:.3?} of the formula");
            let [lia, olia, balia, free] = all;
            assert!((lia - 1.0).abs() < 0.1 && (balia - 1.0).abs() < 0.1, "{n}: {all:?}");
            assert!(olia < 1.1, "{n}: {all:?}");
            assert!((free / n as f64 - 1.0).abs() < 0.1, "{n}: {all:?}");
        }
    }
}

/// The windows of n paths where each acknowledgement opens one by eq. 1 of RFC 6356 and each packet is lost with
/// probability `p`, and nothing else: packets per round trip.
fn recursion(n: usize, p: f64, seed: u64) -> f64 {
    let mut random = RandomStream::named(seed, "recursion");
    let mut windows = vec![1.0 / p.sqrt() / n as f64; n];
    let (mut packets, rounds, warm) = (0.0, 40_000, 2_000);
    for round in 0..rounds + warm {
        for i in 0..n {
            let many = windows[i] as u64;
            let mut lost = false;
            for _ in 0..many {
                let sum: f64 = windows.iter().sum();
                let largest = windows.iter().copied().fold(0.0, f64::max);
                windows[i] += (largest / (sum * sum)).min(1.0 / windows[i]);
                lost |= random.unit() < p;
            }
            if lost {
                windows[i] = (windows[i] / 2.0).floor().max(2.0);
            }
            packets += if round >= warm { many as f64 } else { 0.0 };
        }
    }
    packets / f64::from(rounds)
}

/// Under random loss windows differ, and alpha takes the largest: LIA makes more than one TCP then, by as much as the
/// recursion of its equation alone says.
#[test]
fn under_random_loss_the_largest_window_counts() {
    let p = 0.0005;
    let loss = LossConfig::bernoulli(p);
    for n in [1, 2, 4] {
        let expected = recursion(n, p, 1) / 0.1;
        let all: Vec<f64> = (0..10).map(|seed| over_equal_paths(Coupling::Lia, n, &loss, 200, seed)).collect();
        let (lia, half) = mean(&all);
        println!("{n} paths, p = {p}: {lia:.0} +- {half:.0} segments/s, recursion {expected:.0}");
        assert!((lia / expected - 1.0).abs() < 0.08, "{n}: {lia} +- {half}, not {expected}");
        assert!(half < 0.08 * lia);
    }
}

/// kbit/s, round trip with the queue empty in ms, packets of queue.
const BOTTLENECKS: [(u64, u64, usize); 3] = [(20_000, 60, 250), (5_000, 60, 60), (10_000, 120, 250)];

/// A connection of `subflows` and a TCP of the same kind through a bottleneck of these; the part of the connection.
fn at_a_bottleneck(coupling: Coupling, subflows: usize, (kbit, ms, queue): (u64, u64, usize), seed: u64) -> f64 {
    // A third of the way lies on either side.
    let access = || both(LinkConfig::fixed(None, Duration::from_millis(ms / 6)));
    let pairs = (0..=subflows).map(|_| (access(), access())).collect();
    let narrow = LinkConfig { discipline: Discipline::Red(RedParams::NS2), ..link(kbit, ms / 6, queue) };
    let topology = Topology::shared_bottleneck((narrow, link(kbit, ms / 6, 1_000)), pairs, 1);
    let mut network = Network::<()>::new(&topology, seed).unwrap();
    let address = |name: String| network.addresses(network.node(&name).unwrap())[0];
    let ends: Vec<_> =
        (1..=subflows + 1).map(|i| (address(format!("sender{i}")), address(format!("receiver{i}")))).collect();
    let tcp = TcpConfig::rfc(Recovery::Sack(SackRule::Rfc6675));
    // Segments of one size, so that shares are those of packets.
    let config = MptcpConfig { tcp, ..config(coupling) };
    let mut random = RandomStream::named(seed, "clock");
    let paths: Vec<_> = ends[..subflows].iter().map(|(a, b)| (*a, Peer { address: *b, agent: AgentId(1) })).collect();
    network.add(Box::new(MptcpSource::new(config, &paths, Supply::Endless, &mut random)), Instant::ZERO);
    network.add(Box::new(MptcpSink::new(config)), Instant::ZERO);
    let (from, to) = ends[subflows];
    let peer = Peer { address: to, agent: AgentId(3) };
    network.add(Box::new(TcpSource::new(tcp, from, peer, Supply::Endless, &mut random)), Instant::ZERO);
    network.add(Box::new(TcpSink::new(tcp)), Instant::ZERO);
    let mut both = |seconds| {
        network.run_until(at(seconds));
        let own = network.agent::<MptcpSink>(AgentId(1)).unwrap().delivered();
        (own as f64, network.agent::<TcpSink>(AgentId(3)).unwrap().delivered() as f64)
    };
    let (before, end) = (both(50), both(450));
    let (own, other) = (end.0 - before.0, end.1 - before.1);
    own / (own + other)
}

/// RFC 6356 §2, goal 2: through one bottleneck the subflows of a connection take together what a TCP takes, within 10 % of
/// the one beside it. Four in 5 Mbit/s are the exception: their windows are five segments, and none falls below two, so that
/// they have 12 % more than it; beside what a TCP in their place has it is 5 %. (Means of 16 seeds: of two, three and four
/// subflows 0.495, 0.501 and 0.505 of the first bottleneck, 0.519, 0.518 and 0.529 of the second, 0.482, 0.490 and
/// 0.497 of the third, each within 0.01; of one subflow 0.498, 0.506 and 0.507.)
#[test]
fn at_a_shared_bottleneck_a_connection_is_one_tcp() {
    for bottleneck in BOTTLENECKS {
        let of = |coupling, subflows, seeds| {
            let all: Vec<f64> = (0..seeds).map(|seed| at_a_bottleneck(coupling, subflows, bottleneck, seed)).collect();
            mean(&all)
        };
        let (in_its_place, _) = of(Coupling::Lia, 1, 8);
        for subflows in [2, 3, 4] {
            let (lia, half) = of(Coupling::Lia, subflows, 8);
            let beside = lia / (1.0 - lia);
            println!("{subflows} over {bottleneck:?}: LIA {lia:.3} +- {half:.3}, {beside:.3} of the TCP beside it");
            let most = if (subflows, bottleneck.0) == (4, 5_000) { 1.15 } else { 1.1 };
            assert!((0.9..=most).contains(&beside), "{subflows} over {bottleneck:?}: {lia} +- {half}");
            let place = lia / in_its_place;
            assert!((0.9..=1.1).contains(&place), "{subflows} over {bottleneck:?}: {lia}, a TCP {in_its_place}");
            assert!(half < 0.02, "{subflows} over {bottleneck:?}: {lia} +- {half} says too little");
        }
        let (free, _) = of(Coupling::Uncoupled, 2, 2);
        assert!(free > 0.9 * 2.0 / 3.0, "{bottleneck:?}: {free}: without coupling as many TCPs as subflows");
    }
}
