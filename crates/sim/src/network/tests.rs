use super::*;
use crate::link::{DropReason, LinkConfig};
use crate::traffic::{Cbr, Mix, TrafficConfig};
use crate::transport::{DatagramSink, DatagramSource};
use crate::{Limit, LossConfig, LossPoint, Setting};
use anabranch_base::{Duration, Rate};

/// Remembers when what arrived, and where.
#[derive(Default)]
struct Sink(Vec<(Instant, Address)>);

impl Agent<()> for Sink {
    fn start(&mut self, _: &mut Context<'_, ()>) {}
    fn receive(&mut self, cx: &mut Context<'_, ()>, p: &mut Packet<()>) {
        self.0.push((cx.now(), p.destination));
    }
    fn timeout(&mut self, _: &mut Context<'_, ()>) {}
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

/// A packet of 1,000 bytes each millisecond.
fn cbr(source: Address, peer: Peer) -> DatagramSource {
    let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bytes_per_sec(972_000), size: 972, burst: 1 });
    DatagramSource::new(source, peer, cbr.build(1, "cbr"))
}

fn line(ms: u64) -> LinkConfig {
    LinkConfig::fixed(Some(Rate::from_bits_per_sec(8_000_000)), Duration::from_millis(ms))
}

/// Two hosts, two routers in a row, and a second, direct cable.
fn dumbbell() -> Topology {
    let mut t = Topology::new();
    let (a, r, s, b) = (t.host("a"), t.router("r"), t.router("s"), t.host("b"));
    t.cable("left", a, r, line(1), line(1));
    t.cable("middle", r, s, line(10), line(10));
    t.cable("right", s, b, line(1), line(1));
    t.cable("direct", a, b, line(3), line(3));
    t
}

#[test]
fn packets_leave_by_their_source_and_pass_the_routers() {
    let t = dumbbell();
    let mut n = Network::<()>::new(&t, 1).unwrap();
    let (a, b) = (t.find("a").unwrap(), t.find("b").unwrap());
    let (from, to) = (n.addresses(a).to_vec(), n.addresses(b).to_vec());
    assert_eq!((from.len(), to.len()), (2, 2));
    let sink = n.add(Box::new(Sink::default()), Instant::ZERO);
    for path in 0..2 {
        let peer = Peer { address: to[path], agent: sink };
        n.add(Box::new(cbr(from[path], peer)), Instant::ZERO);
    }
    n.run_until(Instant::from_millis(16));
    let got = &n.agent::<Sink>(sink).unwrap().0;
    // 1 ms to send 1000 bytes on each link and its delay.
    let ms = Instant::from_millis;
    let direct = (4..=16).map(|t| (ms(t), to[1]));
    let mut want: Vec<_> = direct.chain([(ms(15), to[0]), (ms(16), to[0])]).collect();
    want.sort();
    assert_eq!(got.iter().copied().collect::<std::collections::BTreeSet<_>>(), want.into_iter().collect());
    assert_eq!(n.now(), ms(16));
}

/// What comes by a cable need not be for that cable's own address.
#[test]
fn a_host_takes_what_is_for_any_of_its_addresses() {
    let t = dumbbell();
    let mut n = Network::<()>::new(&t, 1).unwrap();
    let [a, b] = ["a", "b"].map(|host| n.addresses(t.find(host).unwrap()).to_vec());
    let sink = n.add(Box::new(Sink::default()), Instant::ZERO);
    n.add(Box::new(cbr(a[1], Peer { address: b[0], agent: sink })), Instant::ZERO);
    n.add(Box::new(cbr(b[1], Peer { address: a[0], agent: sink })), Instant::ZERO);
    n.run_until(Instant::from_millis(4));
    let at = Instant::from_millis(4);
    assert_eq!(n.agent::<Sink>(sink).unwrap().0, [(at, b[0]), (at, a[0])]);
}

/// Sends on the very link on which its first packet came.
struct Intruder {
    seen: Sink,
    packet: Packet<()>,
}

impl Agent<()> for Intruder {
    fn start(&mut self, _: &mut Context<'_, ()>) {}
    fn receive(&mut self, cx: &mut Context<'_, ()>, p: &mut Packet<()>) {
        if self.seen.0.is_empty() {
            cx.send(self.packet.clone());
        }
        self.seen.receive(cx, p);
    }
    fn timeout(&mut self, _: &mut Context<'_, ()>) {}
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_link_may_be_entered_while_it_delivers() {
    let mut n = Network::<()>::new(&Topology::single_path((line(10), line(10))), 1).unwrap();
    let [from, to] = ["sender", "receiver"].map(|host| n.addresses(n.node(host).unwrap())[0]);
    let peer = Peer { address: to, agent: n.next_id() };
    let packet = Packet::new(from, peer, 500, Body::Datagram { number: 0, sent: Instant::ZERO, header: 28 });
    let id = n.add(Box::new(Intruder { seen: Sink::default(), packet }), Instant::ZERO);
    n.add(Box::new(cbr(from, peer)), Instant::ZERO);
    n.run_until(Instant::ZERO + Duration::from_micros(23_900));
    // One each millisecond; 500 bytes enter at 11 ms, and all that come later go half a millisecond later.
    let times: Vec<u64> = n.agent::<Intruder>(id).unwrap().seen.0.iter().map(|(at, _)| at.as_nanos() / 1_000).collect();
    let want = (11..22).map(|ms| ms * 1_000).chain([21_500, 22_500, 23_500]);
    assert_eq!(times, want.collect::<Vec<u64>>());
}

/// Counts packets that reached their host, by their size.
#[derive(Default)]
struct BySize(std::collections::BTreeMap<u32, u32>);

impl Observer<()> for BySize {
    fn observe(&mut self, e: Event<'_, ()>) {
        *self.0.entry(e.packet.size).or_default() += u32::from(e.what == What::Received);
    }
}

/// The sizes of Xu et al. 2014 are those on the wire, whatever transport a packet is counted as.
#[test]
fn a_mix_has_the_papers_sizes_on_the_wire() {
    let mut n = Network::<()>::new(&Topology::single_path((line(10), line(10))), 1).unwrap();
    n.observe(Box::new(BySize::default()));
    let [from, to] = ["sender", "receiver"].map(|host| n.addresses(n.node(host).unwrap())[0]);
    let sink = n.add(Box::new(DatagramSink::new()), Instant::ZERO);
    let mix = TrafficConfig::Mix(Mix::p1(Rate::from_bits_per_sec(5_000_000))).build(1, "mix");
    n.add(Box::new(DatagramSource::new(from, Peer { address: to, agent: sink }, mix)), Instant::ZERO);
    n.run_until(Instant::from_millis(60_000));
    let sizes = core::mem::take(&mut n.observer_mut::<BySize>().unwrap().0);
    assert!(sizes.keys().copied().eq(Mix::P1_SIZES.map(|s| s.0)), "{sizes:?}");
    let sum: f64 = sizes.values().copied().map(f64::from).sum();
    for (size, percent) in Mix::P1_SIZES {
        let (share, want) = (f64::from(sizes[&size]) / sum, percent / 100.0);
        assert!((share - want).abs() < 4.0 * (want * (1.0 - want) / sum).sqrt(), "{size}: {share}");
    }
    // Nine of ten have TCP's headers, the others UDP's; what is counted is the rest.
    let whole: f64 = sizes.iter().map(|(size, n)| f64::from(*size) * f64::from(*n)).sum();
    let got = n.agent::<DatagramSink>(sink).unwrap().counters().received;
    let headers = (whole - got.bytes as f64) / sum;
    assert!((headers - 38.8).abs() < 4.0 * 3.6 / sum.sqrt(), "{headers}");
}

/// Keeps everything.
#[derive(Default)]
struct Log(Vec<(Instant, Place, What, u64)>);

impl Observer<()> for Log {
    fn observe(&mut self, e: Event<'_, ()>) {
        self.0.push((e.at, e.place, e.what, e.packet.number));
    }
}

/// Two hosts, a cable that holds two packets and loses the fourth offered to it.
fn narrow() -> Topology {
    let mut there = line(10).with_limit(Limit::packets(2)).with_loss(LossConfig::Packets(vec![3]));
    there.loss_point = LossPoint::Entry;
    there.mtu = Some(1_000);
    there.schedule.push(crate::Change { at: Duration::from_micros(5_500), set: Setting::Down });
    Topology::single_path((there, line(10)))
}

#[test]
fn an_observer_sees_every_fate_in_order_of_time() {
    let run = |watched: bool| {
        let mut n = Network::<()>::new(&narrow(), 1).unwrap();
        if watched {
            n.observe(Box::new(Log::default()));
        }
        let ends = ["sender", "receiver"].map(|host| n.addresses(n.node(host).unwrap())[0]);
        let peer = Peer { address: ends[1], agent: n.next_id() };
        let sink = n.add(Box::new(DatagramSink::new()), Instant::ZERO);
        // Twice the rate of the link; the last is larger than it takes.
        n.add(Box::new(cbr(ends[0], peer)), Instant::ZERO);
        n.add(Box::new(cbr(ends[0], peer)), Instant::ZERO);
        n.add(Box::new(cbr(ends[0], peer).with_sizes(40, 972)), Instant::from_millis(4));
        n.run_until(Instant::from_millis(30));
        let counters = n.agent::<DatagramSink>(sink).unwrap().counters();
        let log = n.observer_mut::<Log>().map(|l| core::mem::take(&mut l.0)).unwrap_or_default();
        (log, counters, n.link(LinkId(0)).unwrap().counters())
    };
    let (log, counters, link) = run(true);
    assert_eq!((counters, link), (run(false).1, run(false).2));
    assert!(log.is_sorted_by_key(|e| e.0));
    let count = |what: What| log.iter().filter(|e| e.2 == what).count() as u64;
    assert_eq!(count(What::Sent), link.offered.packets);
    assert_eq!(count(What::Enqueued), link.offered.packets);
    for (reason, tally) in [
        (DropReason::Queue, link.dropped_queue),
        (DropReason::Loss, link.dropped_loss),
        (DropReason::Down, link.dropped_down),
        (DropReason::Mtu, link.dropped_mtu),
    ] {
        assert!(tally.packets > 0, "{reason:?}");
        assert_eq!(count(What::Dropped(reason)), tally.packets, "{reason:?}");
    }
    // Three sources that number alike.
    let all = counters.received.packets + counters.duplicates.packets;
    assert_eq!((count(What::Arrived), count(What::Received)), (all, all));
    // The second packet waits 1 ms for the first, then 1 ms to leave, then 10 ms on the way.
    let ms = Instant::from_millis;
    let second: Vec<_> = log.iter().filter(|e| e.3 == 1).map(|e| (e.0, e.2)).collect();
    let want = [
        (ms(0), What::Sent),
        (ms(0), What::Enqueued),
        (ms(1), What::Dequeued),
        (ms(12), What::Arrived),
        (ms(12), What::Received),
    ];
    assert_eq!(second, want);
}

#[test]
fn a_datagram_sink_counts_and_times() {
    let path = (line(10), line(10));
    let mut n = Network::<()>::new(&Topology::single_path(path), 1).unwrap();
    let ends = ["sender", "receiver"].map(|host| n.addresses(n.node(host).unwrap())[0]);
    let sink = n.next_id();
    let big = TrafficConfig::Bulk(crate::traffic::Bulk { size: 3_000, total: Some(3_000) }).build(1, "big");
    n.add(Box::new(DatagramSink::new()), Instant::ZERO);
    let source =
        n.add(Box::new(DatagramSource::new(ends[0], Peer { address: ends[1], agent: sink }, big)), Instant::ZERO);
    n.run_until(Instant::from_millis(100));
    assert_eq!(n.agent::<DatagramSource>(source).unwrap().sent().bytes, 3_000);
    let got = n.agent::<DatagramSink>(sink).unwrap().counters();
    assert_eq!((got.received.packets, got.received.bytes), (3, 3_000));
    // 1,500, 1,500 and 84 bytes at 1,000 bytes per ms.
    let us = Duration::from_micros;
    assert_eq!(got.delay_range(), Some((us(11_500), us(13_084))));
    assert_eq!(got.mean_delay(), Some(Duration::from_nanos(12_528_000)));
}

#[test]
fn a_datagram_sink_misses_what_the_link_loses() {
    for duplicate in [0.0, 0.3] {
        let mut lossy = line(10).with_loss(crate::loss::LossConfig::bernoulli(0.2));
        lossy.duplicate = duplicate;
        let mut n = Network::<()>::new(&Topology::single_path((lossy, line(10))), 1).unwrap();
        let ends = ["sender", "receiver"].map(|host| n.addresses(n.node(host).unwrap())[0]);
        let rate = anabranch_base::Rate::from_bytes_per_sec(100_000);
        let steady = TrafficConfig::Cbr(crate::traffic::Cbr { rate, size: 1_000, burst: 1 }).build(1, "steady");
        let sink = n.add(Box::new(DatagramSink::new()), Instant::ZERO);
        let peer = Peer { address: ends[1], agent: sink };
        n.add(Box::new(DatagramSource::new(ends[0], peer, steady)), Instant::ZERO);
        n.run_until(Instant::from_millis(10_000));
        let missing = n.agent::<DatagramSink>(sink).unwrap().missing();
        let counters = n.link(LinkId(0)).unwrap().counters();
        let lost = counters.dropped_loss.packets;
        // Behind the last one that came nothing is missed yet.
        assert!(lost > 150 && missing <= lost && lost - missing < 5, "{lost} {missing}");
        let got = n.agent::<DatagramSink>(sink).unwrap().counters();
        assert_eq!(got.duplicates.packets, counters.duplicated.packets);
        assert_eq!(got.received.packets + got.duplicates.packets, counters.delivered.packets);
        assert_eq!(counters.duplicated.packets > 0, duplicate > 0.0);
    }
}

#[test]
fn a_packet_fits_a_line_of_a_cache_and_a_link_two() {
    assert!(core::mem::size_of::<super::Line<()>>() <= 128, "{}", core::mem::size_of::<super::Line<()>>());
    assert!(core::mem::size_of::<Packet<()>>() <= 64, "{}", core::mem::size_of::<Packet<()>>());
}

#[test]
fn hosts_drop_damaged_packets_of_this_crates_transports() {
    let damage = crate::DamageConfig::OneBit { packets: 0.1 };
    let damaging = LinkConfig { damage, ..line(5) };
    let mut t = Topology::new();
    let (a, b) = (t.host("a"), t.host("b"));
    t.cable("wire", a, b, damaging, line(5));
    let mut n = Network::<()>::new(&t, 1).unwrap();
    let (from, to) = (n.addresses(a)[0], n.addresses(b)[0]);
    let sink = n.add(Box::new(DatagramSink::new()), Instant::ZERO);
    n.add(Box::new(cbr(from, Peer { address: to, agent: sink })), Instant::ZERO);
    n.run_until(Instant::from_millis(10_000));
    let link = n.link(LinkId(0)).unwrap().counters();
    let got = n.agent::<DatagramSink>(sink).unwrap().counters().received.packets;
    assert!((800..1_200).contains(&link.damaged.packets), "{link:?}");
    assert_eq!(n.rejected(sink), link.damaged.packets);
    assert_eq!(got + n.rejected(sink), link.delivered.packets);
}

#[test]
fn a_bit_that_is_flipped_twice_is_right_again() {
    let body = Body::Datagram { number: 7, sent: Instant::ZERO, header: 28 };
    let peer = Peer { address: Address(1), agent: AgentId(0) };
    let packet = Packet::<()>::new(Address(0), peer, 100, body.clone());
    let mut parcel = Parcel::of(packet, &mut Vec::new());
    parcel.flip(&[3, 9]);
    parcel.flip(&[9, 20]);
    let (sent, flips) = parcel.packet().unwrap().body.as_sent();
    assert_eq!((sent, flips), (&body, &[3, 20][..]));
    parcel.flip(&[20, 3]);
    assert_eq!(parcel.packet().unwrap().body, body);
}
