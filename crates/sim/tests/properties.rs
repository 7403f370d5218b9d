//! What holds of every link and every source, whatever its parameters.

use anabranch_base::{Duration, Instant, Rate};
use anabranch_sim::link::DropReason;
use anabranch_sim::loss::{LossTrace, Outages};
use anabranch_sim::queue::{CoDelParams, RedParams};
use anabranch_sim::traffic::{
    Bulk, Cbr, Mix, ParetoOnOff, Sizes, Thin, ThinApp, TrafficConfig, Vbr, Video, VideoTrace, Web,
};
use anabranch_sim::{
    Delivery, DeliveryTrace, Discipline, Jitter, Limit, Link, LinkConfig, LinkCounters, LossConfig, LossPoint, Tally,
};
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn loss() -> impl Strategy<Value = LossConfig> {
    prop_oneof![
        2 => Just(LossConfig::None),
        1 => (0.0f64..0.5).prop_map(LossConfig::bernoulli),
        1 => ((0.0f64..0.4), (1.0f64..9.0)).prop_map(|(p, b)| LossConfig::bursts(p, b)),
        1 => (1u64..90, 1u64..90)
            .prop_map(|(g, b)| LossConfig::TimedTwoState { mean_good: ms(g), mean_bad: ms(b) }),
        1 => proptest::collection::vec(0u64..80, 0..9).prop_map(LossConfig::Packets),
        1 => proptest::collection::vec(any::<bool>(), 0..9).prop_map(LossConfig::Pattern),
        1 => (proptest::collection::vec(any::<bool>(), 0..30), any::<bool>())
            .prop_map(|(lost, repeat)| LossConfig::Trace(LossTrace { lost, repeat })),
        1 => (0u64..50, 1u64..50)
            .prop_map(|(a, n)| LossConfig::Outages(Outages { times: vec![(ms(a), ms(a + n))], period: Some(ms(100)) })),
    ]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let red = (0.1f64..9.0, 0.1f64..9.0, 0.001f64..1.0, any::<[bool; 4]>()).prop_map(|(min, more, weight, on)| {
        Discipline::Red(RedParams {
            thresh: Some(min),
            maxthresh: Some(min + more),
            q_weight: Some(weight),
            gentle: on[0],
            bytes: on[1],
            queue_in_bytes: on[2],
            wait: on[3],
            ..RedParams::NS2
        })
    });
    let codel = (1u64..9, 1u64..30)
        .prop_map(|(t, more)| Discipline::CoDel(CoDelParams { target: ms(t), interval: ms(t + more), ecn: false }));
    prop_oneof![Just(Discipline::DropTail), Just(Discipline::Red(RedParams::NS2)), red, codel]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    (0u8..4, 0u64..20).prop_map(|(shape, n)| match shape {
        0 => Jitter::None,
        1 => Jitter::Uniform(ms(n)),
        2 => Jitter::Normal(ms(n)),
        _ => Jitter::Exponential(ms(n)),
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let some = |max| proptest::option::of(0u64..max);
    (some(40), some(40_000), any::<bool>()).prop_map(|(packets, bytes, waiting_only)| Limit {
        packets,
        bytes,
        waiting_only,
    })
}

/// A rate, a trace of deliveries, or neither.
fn pace() -> impl Strategy<Value = LinkConfig> {
    let rate = (1u64..20).prop_map(|n| LinkConfig::fixed(Some(Rate::from_bits_per_sec(n * 1_000_000)), ms(10)));
    let trace = (proptest::collection::vec(0u64..6, 1..12), 1u32..3_000).prop_map(|(gaps, size)| {
        let times = gaps.iter().scan(0, |t, gap| {
            *t += gap;
            Some(format!("{t}\n"))
        });
        let text = times.collect::<String>() + "70\n";
        LinkConfig::traced(DeliveryTrace::parse(&text).unwrap().with_size(size), ms(10))
    });
    prop_oneof![Just(LinkConfig::fixed(None, ms(10))), rate, trace]
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let point = any::<bool>().prop_map(|wire| if wire { LossPoint::Wire } else { LossPoint::Entry });
    (pace(), loss(), point, discipline(), jitter(), limit(), any::<bool>(), 0u32..60).prop_map(
        |(pace, loss, loss_point, discipline, jitter, limit, jitter_reorders, overhead)| LinkConfig {
            overhead,
            loss,
            loss_point,
            discipline,
            jitter,
            limit,
            jitter_reorders,
            ..pace
        },
    )
}

/// Packets by gap in microseconds and size in bytes.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    proptest::collection::vec((prop_oneof![Just(0u64), 0u64..3_000, 0u64..300_000], 0u32..3_000), 1..150)
}

type Outcome = (Vec<Delivery<usize>>, LinkCounters, u64);

/// Sends the packets to a link that notes every drop: everything that came out, counters, drops noted.
fn run(config: &LinkConfig, seed: u64, packets: &[(u64, u32)]) -> Outcome {
    let mut link = Link::new("link", seed, config.clone());
    link.record();
    drive(link, packets, &[])
}

/// Sends the packets, polling at each and at `polls`.
fn drive(mut link: Link<usize>, packets: &[(u64, u32)], polls: &[u64]) -> Outcome {
    let (mut now, mut events) = (0, Vec::new());
    for (i, (gap, size)) in packets.iter().enumerate() {
        now += gap;
        events.push((now, Some((i, *size))));
    }
    events.extend(polls.iter().map(|at| (*at, None)));
    // Stable, so polls of the time of a packet come after it.
    events.sort_by_key(|e| e.0);
    let (mut out, mut offered) = (Vec::new(), Tally::default());
    for (us, packet) in events {
        let at = Instant::from_nanos(us * 1_000);
        if let Some((i, size)) = packet {
            link.enqueue(at, size, i);
            offered = offered.with(size);
        }
        out.extend(std::iter::from_fn(|| link.poll_delivery(at)));
        let held = link.backlog().packets + link.on_the_way() as u64;
        let c = link.counters();
        assert_eq!(c.offered, offered);
        assert_eq!(offered.packets, c.delivered.packets + c.dropped().packets + held);
    }
    while let Some(next) = link.next_event() {
        out.extend(std::iter::from_fn(|| link.poll_delivery(next)));
    }
    let dropped = link.take_notices().filter(|n| n.dropped.is_some()).count() as u64;
    (out, link.counters(), dropped)
}

proptest! {
    /// What goes in is delivered, dropped or inside, in packets and bytes; each once. Without leave to
    /// reorder, in the order it went in.
    #[test]
    fn links_conserve_packets_and_order(config in config(), packets in packets(), seed: u64) {
        prop_assert_eq!(config.check(), Ok(()));
        let (out, c, dropped) = run(&config, seed, &packets);
        let sent = packets.iter().fold(Tally::default(), |sum, (_, size)| sum.with(*size));
        prop_assert_eq!(sent, c.delivered.plus(c.dropped()));
        prop_assert_eq!((c.delivered.packets, c.dropped().packets), (out.len() as u64, dropped));
        prop_assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
        let ordered = out.windows(2).all(|w| w[0].payload < w[1].payload);
        prop_assert!(ordered || (config.jitter_reorders && config.jitter != Jitter::None));
        let mut numbers: Vec<usize> = out.iter().map(|d| d.payload).collect();
        numbers.sort();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), out.len());
        prop_assert!(out.iter().all(|d| d.size == packets[d.payload].1 && d.at >= d.entered));
    }

    /// One seed gives one run, however often the link is polled, and whether or not it is watched.
    #[test]
    fn links_are_deterministic(
        config in config(),
        packets in packets(),
        polls in proptest::collection::vec(0u64..3_000_000, 0..40),
        seed: u64,
    ) {
        let (out, counters, _) = run(&config, seed, &packets);
        let (again, same, _) = drive(Link::new("link", seed, config), &packets, &polls);
        prop_assert_eq!(out, again);
        prop_assert_eq!(counters, same);
    }

    /// Never more leaves than the transmitter can send: over any stretch, the rate and one packet.
    #[test]
    fn no_link_is_faster_than_its_rate(
        packets in packets(), discipline in discipline(), mbit in 1u64..20, seed: u64,
    ) {
        let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
        let config = LinkConfig::fixed(Some(rate), ms(10)).with_discipline(discipline);
        let (out, _, _) = run(&config, seed, &packets);
        for from in 0..out.len() {
            let mut bytes = 0;
            for d in &out[from + 1..] {
                bytes += u64::from(d.size);
                prop_assert!(d.at.since(out[from].at) + Duration::from_nanos(1) >= rate.time_for(bytes));
            }
        }
    }

    /// A traced link delivers when stepping through every opportunity, byte by byte, says so.
    #[test]
    fn traced_links_use_each_opportunity(
        packets in proptest::collection::vec((0u64..9_000, 1u32..4_000), 1..60),
        gaps in proptest::collection::vec(0u64..6, 1..12),
        size in 1u64..3_000,
    ) {
        let times: Vec<u64> = gaps.iter().scan(1, |t, gap| { *t += gap; Some(*t) }).collect();
        let text: String = times.iter().map(|t| format!("{t}\n")).collect();
        let trace = DeliveryTrace::parse(&text).unwrap().with_size(size as u32);
        let (out, _, _) = run(&LinkConfig::traced(trace, Duration::ZERO), 1, &packets);
        let got: Vec<u64> = out.iter().map(|d| d.at.as_nanos()).collect();
        prop_assert_eq!(got, stepped(&packets, &times, size));
    }

    /// Sources repeat by seed, differ by name, and never run backwards.
    #[test]
    fn sources_are_deterministic_and_go_forward(seed: u64, start in 0u64..1_000_000, pick in 0usize..14) {
        let config = &sources()[pick];
        prop_assert_eq!(config.check(), Ok(()));
        let take = |name: &str| {
            let mut source = config.build(seed, name);
            let start = Instant::from_millis(start);
            std::iter::from_fn(move || source.next(start)).take(300).collect::<Vec<_>>()
        };
        let one = take("one");
        prop_assert_eq!(&one, &take("one"));
        prop_assert!(one.iter().all(|e| e.size > 0 && e.at >= Instant::from_millis(start)));
        prop_assert!(one.windows(2).all(|w| w[0].at <= w[1].at));
        let random = !matches!(config, TrafficConfig::Bulk(_) | TrafficConfig::Cbr(_) | TrafficConfig::VideoTrace(_));
        prop_assert_eq!(one != take("other"), random);
    }
}

/// When each packet has left, in ns: every opportunity serves those that came before it.
fn stepped(packets: &[(u64, u32)], times: &[u64], size: u64) -> Vec<u64> {
    let mut waiting: Vec<(u64, u64)> = Vec::new();
    let mut now = 0;
    for (gap, bytes) in packets {
        now += gap * 1_000;
        waiting.push((now, u64::from(*bytes)));
    }
    let (mut out, mut round) = (Vec::new(), 0);
    loop {
        for time in times {
            let at = (round + time) * 1_000_000;
            let mut left = size;
            while left > 0 {
                let Some((entered, bytes)) = waiting.get_mut(out.len()) else { return out };
                if *entered >= at {
                    break;
                }
                let part = left.min(*bytes);
                (left, *bytes) = (left - part, *bytes - part);
                if *bytes == 0 {
                    out.push(at);
                }
            }
        }
        round += times[times.len() - 1];
    }
}

/// One of each kind.
fn sources() -> Vec<TrafficConfig> {
    let rate = Rate::from_bits_per_sec(2_000_000);
    let trace = VideoTrace::parse("I 9000\nB 500\nP 2000\n", 25.0, true).unwrap();
    let mut all = vec![
        TrafficConfig::Bulk(Bulk::endless(1_000)),
        TrafficConfig::Cbr(Cbr::NS2),
        TrafficConfig::Vbr(Vbr::P0),
        TrafficConfig::ParetoOnOff(ParetoOnOff::half_and_half(rate, Sizes::Uniform { min: 40, max: 1_500 })),
        TrafficConfig::Mix(Mix::p1(rate)),
        TrafficConfig::Web(Web::P2),
        TrafficConfig::Video(Video::STANDARD),
        TrafficConfig::VideoTrace(trace),
    ];
    all.extend(ThinApp::ALL.map(|app| TrafficConfig::Thin(Thin { correlation: 0.3, ..Thin::app(app) })));
    all
}

/// A link that drops says why.
#[test]
fn notices_tell_the_cause() {
    let config = LinkConfig { mtu: Some(1_000), ..LinkConfig::fixed(Some(Rate::from_bits_per_sec(8_000_000)), ms(1)) }
        .with_limit(Limit::packets(2))
        .with_loss(LossConfig::Packets(vec![1]));
    let mut link = Link::new("link", 1, config);
    link.record();
    for (i, size) in [900, 900, 900, 1_001].into_iter().enumerate() {
        link.enqueue(Instant::ZERO, size, i);
    }
    link.advance(Instant::from_millis(5));
    let dropped: Vec<_> = link.take_notices().filter_map(|n| Some((n.payload, n.dropped?))).collect();
    assert_eq!(dropped, [(2, DropReason::Queue), (3, DropReason::Mtu), (1, DropReason::Loss)]);
}
