use super::*;
use crate::network::{Address, AgentId, Body, Event, Network, Observer, Peer, What};
use crate::topology::Topology;
use crate::traffic::{Bulk, Cbr, TrafficConfig};
use crate::{LinkConfig, LossConfig, LossPoint};
use anabranch_base::{Duration, Instant, RandomStream, Rate};

const ALL: [Recovery; 5] = [
    Recovery::Tahoe,
    Recovery::Reno,
    Recovery::NewReno,
    Recovery::Sack(SackRule::Pipe),
    Recovery::Sack(SackRule::Rfc6675),
];

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

/// A connection over a way of 100 ms there and back, without end to its rate.
struct Run {
    network: Network<()>,
}

impl Run {
    /// Loses the data segments (the SYN is one) that are sent as these, counted from 0.
    fn new(config: TcpConfig, supply: Supply, lost: &[u64]) -> Self {
        let way = LinkConfig::fixed(None, Duration::from_millis(50));
        let mut there = way.clone().with_loss(LossConfig::Packets(lost.to_vec()));
        there.loss_point = LossPoint::Entry;
        let mut network = Network::new(&Topology::single_path((there, way)), 1).unwrap();
        network.observe(Box::new(Log::default()));
        let peer = Peer { address: Address(1), agent: AgentId(1) };
        let source = TcpSource::new(config, Address(0), peer, supply, &mut RandomStream::named(1, "clock"));
        network.add(Box::new(source), Instant::ZERO);
        network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
        Run { network }
    }

    /// What was sent until then, in ms.
    fn until(&mut self, ms: u64) -> Vec<Sent> {
        self.network.run_until(Instant::from_millis(ms));
        core::mem::take(&mut self.network.observer_mut::<Log>().unwrap().0)
    }

    fn sender(&self) -> &Sender {
        self.network.agent::<TcpSource>(AgentId(0)).unwrap().sender()
    }

    fn sink(&self) -> &TcpSink {
        self.network.agent(AgentId(1)).unwrap()
    }
}

fn numbers(sent: &[Sent], at: u64) -> Vec<u64> {
    sent.iter().filter(|s| s.0 == at).map(|s| s.1).collect()
}

fn again(sent: &[Sent]) -> Vec<(u64, u64)> {
    sent.iter().filter(|s| s.2).map(|s| (s.0, s.1)).collect()
}

#[test]
fn slow_start_doubles_and_the_window_limits() {
    let mut run = Run::new(TcpConfig::ns2(Recovery::Reno), Supply::Endless, &[]);
    let sent = run.until(650);
    let per_round: Vec<usize> = (0..=6).map(|r| numbers(&sent, r * 100).len()).collect();
    assert_eq!(per_round, [1, 2, 4, 8, 16, 20, 20]);
    // The SYN and the rounds before have been acknowledged, the seventh has just arrived.
    assert_eq!((run.sink().delivered(), run.sender().acknowledged()), (70_000, 51));
    assert_eq!(run.sender().srtt(), Some(Duration::from_millis(100)));
}

#[test]
fn fast_retransmit_and_limited_transmit() {
    for recovery in ALL {
        // Of the third round (7 to 14) the first is lost.
        let mut run = Run::new(TcpConfig::ns2(recovery), Supply::Endless, &[7]);
        let sent = run.until(450);
        // The first two duplicates send new segments, the third the lost one.
        assert_eq!(numbers(&sent, 400)[..3], [15, 16, 7], "{recovery:?}");
        assert_eq!(again(&sent), [(400, 7)], "{recovery:?}");
        assert_eq!(run.sender().ssthresh(), 4.0, "{recovery:?}");
        assert_eq!(run.sender().cwnd(), if recovery == Recovery::Tahoe { 1.0 } else { 4.0 }, "{recovery:?}");
        let sent = run.until(2_000);
        let counters = run.sender().counters();
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0), "{recovery:?}");
        // Tahoe goes back, but what has been acknowledged meanwhile is not sent again.
        assert_eq!(again(&sent), [], "{recovery:?}");
    }
}

#[test]
fn newreno_repairs_one_loss_each_round_and_reno_waits_for_the_timer() {
    let lost = [7, 10, 12];
    let mut run = Run::new(TcpConfig::ns2(Recovery::NewReno), Supply::Endless, &lost);
    let sent = run.until(2_000);
    assert_eq!(again(&sent), [(400, 7), (500, 10), (600, 12)]);
    assert_eq!((run.sender().counters().fast_retransmits, run.sender().counters().timeouts), (1, 0));
    let mut run = Run::new(TcpConfig::ns2(Recovery::Reno), Supply::Endless, &lost);
    run.until(2_000);
    assert_eq!((run.sender().counters().fast_retransmits, run.sender().counters().timeouts), (1, 1));
}

#[test]
fn sack_repairs_each_hole_once_within_a_round() {
    for rule in [SackRule::Pipe, SackRule::Rfc6675] {
        let mut run = Run::new(TcpConfig::ns2(Recovery::Sack(rule)), Supply::Endless, &[7, 10, 12]);
        let sent = run.until(2_000);
        let repaired = again(&sent);
        let mut holes: Vec<u64> = repaired.iter().map(|r| r.1).collect();
        holes.sort_unstable();
        assert_eq!(holes, [7, 10, 12], "{rule:?}");
        assert!(repaired.iter().all(|r| (400..=500).contains(&r.0)), "{rule:?}: {repaired:?}");
        assert_eq!((run.sender().counters().fast_retransmits, run.sender().counters().timeouts), (1, 0));
    }
}

#[test]
fn a_lost_repair_needs_the_timer() {
    for recovery in ALL {
        // 18 segments have left when 7 goes again: the SYN, 14 of three rounds, two new ones and itself.
        let mut run = Run::new(TcpConfig::ns2(recovery), Supply::Endless, &[7, 17]);
        let sent = run.until(3_000);
        assert_eq!(numbers(&sent[17..18], 400), [7], "{recovery:?}");
        assert_eq!(run.sender().counters().timeouts, 1, "{recovery:?}");
        assert_eq!(sent.iter().filter(|s| s.1 == 7).count(), 3, "{recovery:?}");
    }
}

#[test]
fn the_syn_backs_off_and_its_round_trip_is_not_measured() {
    let mut run = Run::new(TcpConfig::ns2(Recovery::Reno), Supply::Endless, &[0, 1, 2]);
    let sent = run.until(21_050);
    assert_eq!(sent.iter().map(|s| (s.0, s.1)).collect::<Vec<_>>(), [(0, 0), (3_000, 0), (9_000, 0), (21_000, 0)]);
    // Karn: the back-off stays until something sent once is acknowledged.
    run.until(21_150);
    assert_eq!((run.sender().srtt(), run.sender().rto()), (None, Duration::from_secs(24)));
    // RFC 5681 §3.1: after a lost SYN the window begins at one.
    let sent = run.until(21_250);
    assert_eq!(numbers(&sent, 21_200), [2, 3]);
    assert_eq!(run.sender().srtt(), Some(Duration::from_millis(100)));
    assert!(run.sender().rto() <= Duration::from_millis(310), "{}", run.sender().rto());
}

#[test]
fn acknowledgements_wait_for_a_second_segment_or_the_timer() {
    let config = TcpConfig::ns2(Recovery::Reno).with_delayed_ack(Duration::from_millis(100));
    let mut run = Run::new(config, Supply::Finite(5_000), &[]);
    let sent = run.until(1_000);
    // Two acknowledged together open the window by one; the last alone waits 100 ms.
    assert_eq!([100, 200].map(|at| numbers(&sent, at)), [vec![1, 2], vec![3, 4, 5]]);
    assert_eq!(run.sender().done(), Some(Instant::from_millis(400)));
    let mut at_once = Run::new(config, Supply::Finite(4_000), &[]);
    at_once.until(1_000);
    assert_eq!(at_once.sender().done(), Some(Instant::from_millis(300)));
}

#[test]
fn an_application_paces_what_it_sends() {
    let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(1_500), size: 1_500 });
    let mut run = Run::new(TcpConfig::ns2(Recovery::NewReno), Supply::Source(cbr.build(1, "cbr")), &[2]);
    let sent = run.until(3_900);
    // A full and a short segment each second, after a silence in two rounds. The second is lost and sent again by the
    // timer; its doubled time-out is not over when the next two are due.
    let firsts: Vec<_> = sent.iter().filter(|s| !s.2).map(|s| (s.0, s.1)).collect();
    let pairs = [(1_000, 3), (1_000, 4), (2_000, 5), (2_100, 6), (3_000, 7), (3_100, 8)];
    assert_eq!(firsts, [&[(0, 0), (100, 1), (100, 2)][..], &pairs[..]].concat());
    assert_eq!(again(&sent).len(), 1);
    assert_eq!((run.sink().delivered(), run.sender().in_flight()), (6_000, 0));
}

#[test]
fn after_a_silence_the_window_starts_again() {
    let burst = Cbr { rate: Rate::from_bytes_per_sec(8_000), size: 40_000 };
    let mut run =
        Run::new(TcpConfig::ns2(Recovery::Reno), Supply::Source(TrafficConfig::Cbr(burst).build(1, "b")), &[]);
    let sent = run.until(6_000);
    // 40 segments each 5 s: the second burst begins with one segment, whatever the first had reached.
    assert_eq!([5_000, 5_100, 5_200].map(|at| numbers(&sent, at).len()), [1, 2, 4]);
}

#[test]
fn each_transfer_has_a_connection_of_its_own() {
    let config = TcpConfig::ns2(Recovery::NewReno);
    let way = LinkConfig::fixed(None, Duration::from_millis(50));
    let lossy = way.clone().with_loss(LossConfig::bernoulli(0.05));
    let mut network = Network::<()>::new(&Topology::single_path((lossy.clone(), lossy)), 1).unwrap();
    let peer = Peer { address: Address(1), agent: AgentId(1) };
    let traffic = TrafficConfig::Bulk(Bulk { size: 3_500, total: Some(350_000) }).build(1, "web");
    let random = RandomStream::named(1, "clock");
    network.add(Box::new(TcpTransfers::new(config, Address(0), peer, traffic, random)), Instant::ZERO);
    network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
    network.run_until(Instant::from_millis(300_000));
    let source = network.agent::<TcpTransfers>(AgentId(0)).unwrap();
    assert_eq!((source.open(), source.finished().len()), (0, 100));
    assert!(source.finished().iter().all(|t| t.bytes == 3_500 && t.ended >= t.began + Duration::from_millis(300)));
    let sink = network.agent::<TcpSink>(AgentId(1)).unwrap();
    assert_eq!((sink.delivered(), sink.counters().received.bytes), (350_000, 350_000));
    assert!(sink.counters().duplicates.packets > 0);
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
    let burst = Cbr { rate: Rate::from_bytes_per_sec(14_480), size: 14_480 };
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
    let eleven = Cbr { rate: Rate::from_bytes_per_sec(1_448 * 11), size: 1_448 * 11 };
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
    let cuts = |jitter: u64, recovery| {
        let way = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000)), Duration::from_millis(50));
        let mut there = way.clone();
        there.jitter = crate::Jitter::Uniform(Duration::from_millis(jitter));
        there.jitter_reorders = true;
        let mut network = Network::<()>::new(&Topology::single_path((there, way)), 1).unwrap();
        let config = TcpConfig { recovery, ..by_time(Congestion::Cubic).with_window(60) };
        let peer = Peer { address: Address(1), agent: AgentId(1) };
        let mut clock = RandomStream::named(1, "clock");
        network.add(Box::new(TcpSource::new(config, Address(0), peer, Supply::Endless, &mut clock)), Instant::ZERO);
        network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
        [1_000, 60_000].map(|ms| {
            network.run_until(Instant::from_millis(ms));
            network.agent::<TcpSource>(AgentId(0)).unwrap().sender().counters().fast_retransmits
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
    let way = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000)), Duration::from_millis(50));
    let mut there = way.clone();
    there.jitter = crate::Jitter::Uniform(Duration::from_millis(30));
    there.jitter_reorders = true;
    let mut network = Network::<()>::new(&Topology::single_path((there, way)), 1).unwrap();
    let config = by_time(Congestion::Cubic).with_window(60);
    let peer = Peer { address: Address(1), agent: AgentId(1) };
    let mut clock = RandomStream::named(1, "clock");
    network.add(Box::new(TcpSource::new(config, Address(0), peer, Supply::Endless, &mut clock)), Instant::ZERO);
    network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
    let mut again_at = |s: u64| {
        network.run_until(Instant::from_millis(s * 1_000));
        network.agent::<TcpSource>(AgentId(0)).unwrap().sender().counters().again
    };
    let [early, end] = [20, 60].map(&mut again_at);
    assert!(early > 5 && end == early, "{early} {end}");
    // Each reduction was for nothing, and has been taken back.
    let sender = network.agent::<TcpSource>(AgentId(0)).unwrap().sender();
    assert_eq!((sender.ssthresh(), sender.counters().fast_retransmits > 1), (60.0, true));
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(TcpConfig::linux().check(), Ok(()));
    assert!(TcpConfig::ns2(Recovery::NewReno).with_cubic().check().is_err());
    assert_eq!(TcpConfig::rfc(Recovery::NewReno).check(), Ok(()));
    assert!(TcpConfig::ns2(Recovery::Reno).with_window(0).check().is_err());
    let mut config = TcpConfig::ns2(Recovery::Sack(SackRule::Pipe));
    config.sack_blocks = 0;
    assert!(config.check().is_err());
}
