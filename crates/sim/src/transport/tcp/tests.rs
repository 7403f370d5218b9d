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
    let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(1_500), size: 1_500, burst: 1 });
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
    let burst = Cbr { rate: Rate::from_bytes_per_sec(8_000), size: 40_000, burst: 1 };
    let mut run =
        Run::new(TcpConfig::ns2(Recovery::Reno), Supply::Source(TrafficConfig::Cbr(burst).build(1, "b")), &[]);
    let sent = run.until(6_000);
    // 40 segments each 5 s: the second burst begins with one segment, whatever the first had reached.
    assert_eq!([5_000, 5_100, 5_200].map(|at| numbers(&sent, at).len()), [1, 2, 4]);
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    // 100 bytes each 50 ms keep two or three segments outstanding.
    let window = |congestion, initial_window, validate_window| {
        let sparse = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(2_000), size: 100, burst: 1 });
        let begin = TcpConfig {
            initial_window,
            initial_ssthresh: Some(initial_window),
            restart_window: None,
            delayed_ack: None,
            quick_ack: false,
            ..TcpConfig::linux()
        };
        let config = TcpConfig { congestion, validate_window, ..begin };
        let mut run = Run::new(config, Supply::Source(sparse.build(1, "sparse")), &[]);
        run.until(20_000);
        run.sender().cwnd
    };
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        let grown = window(congestion, 2, true);
        assert!((3.0..=6.0).contains(&grown), "{congestion:?}: {grown}");
        assert!(window(congestion, 10, true) < 11.0, "{congestion:?}");
    }
    assert!(window(Congestion::Reno, 10, false) > 20.0);
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
