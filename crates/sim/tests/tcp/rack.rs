//! RACK, tail loss probes and PRR as whole connections have them: what RFC 8985 and RFC 9937 say in words and figures.

use super::{connect, sender};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::network::{Body, Event, Network, Observer, What};
use anabranch_sim::traffic::{Cbr, TrafficConfig};
use anabranch_sim::transport::tcp::{Congestion, Recovery, SackRule, Segment, Sender, Supply, TcpConfig};
use anabranch_sim::{Jitter, LinkConfig, LossConfig, LossPoint};

/// A data segment offered to the link: when, in ms, its number, and whether it had been sent before.
type Sent = (u64, u64, bool);

/// Keeps the data segments offered to the network.
#[derive(Default)]
struct Log(Vec<Sent>);

impl Observer<()> for Log {
    fn observe(&mut self, e: Event<'_, ()>) {
        if let (What::Sent, Body::Tcp(Segment::Data(d))) = (e.what, &e.packet.body) {
            self.0.push((e.at.as_nanos() / 1_000_000, d.number, d.again));
        }
    }
}

/// A connection over a way of 100 ms there and back.
struct Run {
    network: Network<()>,
}

impl Run {
    /// Loses the data segments (the SYN is one) that are sent as these, counted from 0.
    fn new(config: TcpConfig, supply: Supply, lost: &[u64]) -> Self {
        Run::at(None, config, supply, lost)
    }

    /// At this rate, or at any.
    fn at(rate: Option<Rate>, config: TcpConfig, supply: Supply, lost: &[u64]) -> Self {
        let way = LinkConfig::fixed(None, Duration::from_millis(50));
        let loss = LossConfig::Packets(lost.to_vec());
        let there = LinkConfig { loss_point: LossPoint::Entry, ..LinkConfig::fixed(rate, way.delay).with_loss(loss) };
        let mut network = connect(config, supply, there, way, 1);
        network.observe(Box::new(Log::default()));
        Run { network }
    }

    /// What was sent until then.
    fn until(&mut self, ms: u64) -> Vec<Sent> {
        self.network.run_until(Instant::from_millis(ms));
        std::mem::take(&mut self.network.observer_mut::<Log>().unwrap().0)
    }

    fn sender(&self) -> &Sender {
        sender(&self.network)
    }
}

fn numbers(sent: &[Sent], at: u64) -> Vec<u64> {
    sent.iter().filter(|s| s.0 == at).map(|s| s.1).collect()
}

fn again(sent: &[Sent]) -> Vec<(u64, u64)> {
    sent.iter().filter(|s| s.2).map(|s| (s.0, s.1)).collect()
}

/// 10 Mbit/s and a round trip of 100 ms with packets that overtake each other, each `jitter` ms earlier or later.
fn reordering(jitter: u64, recovery: Recovery) -> Network<()> {
    let way = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000)), Duration::from_millis(50));
    let jitter = Jitter::Uniform(Duration::from_millis(jitter));
    let there = LinkConfig { jitter, jitter_reorders: true, ..way.clone() };
    let config = TcpConfig { recovery, ..by_time(Congestion::Cubic).with_window(60) };
    connect(config, Supply::Endless, there, way, 1)
}

/// CUBIC's and Reno's windows with RACK, without delayed acknowledgements.
fn by_time(congestion: Congestion) -> TcpConfig {
    let config = TcpConfig { delayed_ack: None, quick_ack: false, hystart: false, ..TcpConfig::linux() };
    TcpConfig { congestion, ..config }
}

#[test]
fn rack_repairs_each_hole_once_and_the_windows_fall_to_their_parts() {
    for (congestion, part) in [(Congestion::Reno, 0.5), (Congestion::Cubic, 0.7)] {
        // Of the third round (11 to 30) the first, the fourth and the sixth are lost.
        let mut run = Run::new(by_time(congestion), Supply::Endless, &[11, 14, 16]);
        let sent = run.until(1_000);
        let mut holes = again(&sent);
        holes.sort_unstable();
        assert_eq!(holes, [(300, 11), (300, 14), (300, 16)], "{congestion:?}");
        let counters = run.sender().counters();
        assert_eq!((counters.fast_retransmits, counters.timeouts, counters.probes), (1, 0, 0), "{congestion:?}");
        // RFC 5681 halves what was in flight without what left on duplicates; all of the round does.
        assert!((run.sender().ssthresh() - part * 20.0).abs() <= 0.5, "{congestion:?} {}", run.sender().ssthresh());
    }
}

/// RFC 8985 §1: what RFC 6675 cannot see.
#[test]
fn rack_notices_that_a_repetition_was_lost() {
    // The 32nd transmission is that of 11.
    let first = Run::new(by_time(Congestion::Cubic), Supply::Endless, &[11]).until(299).len() as u64;
    let mut probe = Run::new(by_time(Congestion::Cubic), Supply::Endless, &[11]);
    let repeated = probe.until(1_000).iter().position(|s| s.2).unwrap() as u64;
    assert!(repeated >= first);
    let mut run = Run::new(by_time(Congestion::Cubic), Supply::Endless, &[11, repeated]);
    let sent = run.until(2_000);
    assert_eq!(again(&sent), [(300, 11), (400, 11)]);
    assert_eq!((run.sender().counters().fast_retransmits, run.sender().counters().timeouts), (1, 0));
}

/// RFC 8985 §3.3: a lost tail shows after two round trips and another one, and not by a time-out.
#[test]
fn a_probe_shows_that_a_tail_was_lost() {
    // 30 segments: the last 3 are lost, which left at 200 ms.
    let at = |tail_probe| {
        let config = TcpConfig { tail_probe, delayed_ack: None, ..TcpConfig::rfc(Recovery::Rack) };
        let mut run = Run::new(config, Supply::Finite(30 * 1_448), &[28, 29, 30]);
        let sent = run.until(10_000);
        (again(&sent), run.sender().done().unwrap().as_nanos() / 1_000_000, run.sender().counters())
    };
    let (again, done, counters) = at(true);
    // The acknowledgements of the others came at 300 ms; two round trips of 100 ms later the probe leaves. Its answer
    // shows the other two, and PRR lets one leave for each that arrives.
    assert_eq!(again, [(500, 30), (600, 28), (700, 29)]);
    assert_eq!((done, counters.timeouts, counters.probes, counters.fast_retransmits), (800, 0, 1, 1));
    let (again, done, counters) = at(false);
    // A second after the last acknowledgement.
    assert_eq!(again[0], (1_300, 28));
    assert_eq!((done, counters.timeouts), (1_500, 1));
}

/// RFC 8985 §7.4.2: the probe is itself the repair, and the window falls as after any loss.
#[test]
fn a_probe_that_repairs_is_a_loss_and_one_that_does_not_is_none() {
    let burst = Cbr { rate: Rate::from_bytes_per_sec(14_480), size: 14_480, burst: 1 };
    let supply = || Supply::Source(TrafficConfig::Cbr(burst).build(1, "cbr"));
    // 10 segments each second; the last of the first ten is lost.
    let mut run = Run::new(by_time(Congestion::Cubic), supply(), &[10]);
    assert_eq!(again(&run.until(900)), [(400, 10)]);
    assert_eq!(run.sender().counters().fast_retransmits, 0);
    run.until(1_900);
    assert_eq!((run.sender().counters().fast_retransmits, run.sender().counters().timeouts), (1, 0));
    let cwnd = run.sender().cwnd();
    // Nothing is lost, but the last acknowledgement stays away for longer than two round trips.
    let delayed = TcpConfig { delayed_ack: Some(Duration::from_millis(190)), ..by_time(Congestion::Cubic) };
    let eleven = Cbr { rate: Rate::from_bytes_per_sec(1_448 * 11), size: 1_448 * 11, burst: 1 };
    let supply = Supply::Source(TrafficConfig::Cbr(eleven).build(1, "cbr"));
    let mut spurious = Run::new(TcpConfig { tail_probe: true, ..delayed }, supply, &[]);
    spurious.until(3_900);
    assert_eq!(spurious.sender().counters().fast_retransmits, 0);
    assert!(spurious.sender().cwnd() > cwnd);
}

/// RFC 8985 §6.3 and RFC 9438 §4.8.
#[test]
fn after_a_timeout_the_window_is_one_and_the_threshold_seven_tenths() {
    let config = TcpConfig { tail_probe: false, ..by_time(Congestion::Cubic) };
    // All of the second round of 10 to 20.
    let lost: Vec<u64> = (11..31).collect();
    let mut run = Run::new(config, Supply::Endless, &lost);
    let sent = run.until(550);
    // The round trip and 200 ms after the acknowledgements at 200 ms.
    assert_eq!(again(&sent), [(500, 11)]);
    assert_eq!((run.sender().cwnd(), run.sender().ssthresh()), (1.0, 0.7 * 20.0));
    let sent = run.until(1_500);
    assert_eq!([600, 700, 800].map(|at| numbers(&sent, at).len()), [2, 4, 8]);
    assert_eq!(run.sender().counters().timeouts, 1);
}

#[test]
fn reordering_within_a_quarter_of_the_round_trip_is_no_loss() {
    let cuts = |jitter, recovery| {
        let mut network = reordering(jitter, recovery);
        [1_000, 60_000].map(|ms| {
            network.run_until(Instant::from_millis(ms));
            sender(&network).counters().fast_retransmits
        })
    };
    // Until reordering is seen three segments that arrived count as a loss.
    let [seen, end] = cuts(10, Recovery::Rack);
    assert!(seen <= 2 && end == seen, "{seen} {end}");
    let [_, end] = cuts(10, Recovery::Sack(SackRule::Rfc6675));
    assert!(end > 50, "{end}");
}

/// A network that has more packets out of order than a quarter of its round trip: the reports of duplicates widen the
/// window (RFC 8985 §6.2 step 4).
#[test]
fn reports_of_duplicates_make_rack_patient() {
    let mut network = reordering(30, Recovery::Rack);
    let mut again_at = |s: u64| {
        network.run_until(Instant::from_millis(s * 1_000));
        sender(&network).counters().again
    };
    let [early, end] = [20, 60].map(&mut again_at);
    assert!(early > 5 && end == early, "{early} {end}");
    // Each reduction was for nothing, and has been taken back.
    let sender = sender(&network);
    assert_eq!((sender.ssthresh(), sender.counters().fast_retransmits > 1), (60.0, true));
}

/// What leaves on each of the acknowledgements after a loss of the first `lost` of 20 segments, each of which takes a
/// millisecond: `N`ew, `R`epeated or nothing.
fn per_acknowledgement(lost: u64) -> String {
    let config = TcpConfig { initial_window: 20, ..by_time(Congestion::Reno) };
    let first: Vec<u64> = (1..=lost).collect();
    let mut run = Run::at(Some(Rate::from_bits_per_sec(12_000_000)), config, Supply::Endless, &first);
    let sent: Vec<Sent> = run.until(320).into_iter().filter(|s| s.1 > 20 || s.2).collect();
    // Those of the first round trip, and those of what left on the first of them, 101 ms later.
    let times = (lost..20).chain(101 + lost..104 + lost).map(|after| sent[0].0 + after - lost);
    let one = |at| match sent.iter().filter(|s| s.0 == at).map(|s| s.2).collect::<Vec<_>>()[..] {
        [] => "-",
        [false] => "N",
        [true] => "R",
        _ => "several",
    };
    times.map(one).collect::<Vec<_>>().join(" ")
}

/// RFC 9937 §8, figures 1 and 2: the first of 20 is lost, and the first 15. What the first figure has leave on ACK 19
/// leaves on ACK 20 by the steps of §6.2, as exactly the target is in flight then.
#[test]
fn a_recovery_as_in_the_figures_of_prr() {
    assert_eq!(per_acknowledgement(1), "N N R - N - N - N - N - N - N - N - - N N N");
    assert_eq!(per_acknowledgement(15)[..9], *"N N R R R");
}
