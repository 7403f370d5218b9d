use super::*;
use crate::loss_cause::LossKind;
use crate::testing::{Scene, built, loss, ms};
use anabranch_base::{PathId, RandomStream};

/// A drop-tail queue that a sender fills from half to full again and again, packet by packet.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Round trip without a queue, ms.
    base: f64,
    /// Time of a packet, ms.
    packet: f64,
    /// Packets that the queue holds.
    holds: u64,
    /// Share of packets that the radio loses.
    radio: f64,
    /// Other traffic: the most packets of it between two of ours.
    others: u64,
}

/// Parts of the losses by the queue, and by the radio while it held less than three quarters, that were named right, of at
/// least ten each. A radio loss beside a full queue looks like one of the queue.
fn right(l: Link) -> [f64; 2] {
    let mut r = RandomStream::named(1, &format!("{l:?}"));
    let mut p = built(&POLICY, "", 0);
    let mut s = Scene::new(1, 0);
    let (mut now, mut queue, mut named) = (100_000.0f64, 0.0f64, [[0u32; 2]; 2]);
    let mut open: Vec<(u64, usize, u32)> = Vec::new();
    // For a round trip after its first drop the queue is full for some and nearly so for others; then it drains to its half.
    let (holds, mut stays, mut drains, mut late) = (l.holds as f64, 0u64, false, 0.0);
    for seq in 0..60_000u64 {
        let between = if l.others == 0 { 0 } else { r.below(l.others + 1) };
        now += l.packet * (1 + between) as f64;
        queue = match (stays, drains) {
            (0, false) => queue + 0.4 * r.unit(),
            (0, true) => queue - 1.0,
            _ => holds - 1.5 * r.unit(),
        };
        let full = if stays > 0 { r.chance(0.2) } else { queue >= holds };
        if stays == 0 && full {
            (stays, drains) = (((l.base / l.packet) as u64).clamp(4, 60), true);
        }
        stays = stays.saturating_sub(1);
        drains &= stays > 0 || queue > holds / 2.0;
        let cause = if full { Some(0) } else { r.chance(l.radio).then_some(1) };
        s.now = Instant::from_nanos((now * 1e6) as u64);
        let Some(cause) = cause else {
            // Now and then an acknowledgement is late, and the next one is not.
            late = if late == 0.0 && r.chance(0.01) { 150.0 } else { 0.0 };
            let rtt = Duration::from_secs_f64((l.base + queue.max(0.0) * l.packet + late) / 1e3);
            p.sample(s.now, &Sample::of(PathId(0), seq, rtt));
            for o in &mut open {
                o.2 += 1;
            }
            while let Some(&(lost, cause, _)) = open.first().filter(|o| o.2 == 3) {
                open.remove(0);
                let e = LossEvent { packets: Some(LostPackets::and(None, lost)), ..loss(0) };
                named[cause][usize::from(p.classify(&s.cx(), &e) == Cause::Radio)] += 1;
            }
            continue;
        };
        if cause == 0 || queue < 0.75 * holds {
            open.push((seq, cause, 0));
        }
    }
    assert!(named.iter().all(|t| t[0] + t[1] >= 10), "{l:?}: {named:?}");
    [0, 1].map(|i| f64::from(named[i][i]) / f64::from(named[i][0] + named[i][1]))
}

#[test]
fn nine_of_ten_are_labelled_right_over_rates_round_trips_and_queues() {
    for base in [10.0, 60.0, 300.0] {
        for packet in [0.12, 1.2, 30.0] {
            for holds in [24, 60, 250] {
                for radio in [0.002, 0.1] {
                    let l = Link { base, packet, holds, radio, others: 0 };
                    let [queue, radio] = right(l);
                    assert!(queue >= 0.9 && radio >= 0.9, "{l:?}: {queue}, {radio}");
                }
            }
        }
    }
}

/// A packet's time is that of the quickest gaps, so that other traffic between ours does not lengthen it.
#[test]
fn other_traffic_between_does_not_hide_a_full_queue() {
    for others in [1, 3, 6] {
        let l = Link { base: 60.0, packet: 1.2, holds: 40, radio: 0.02, others };
        let [queue, radio] = right(l);
        assert!(queue >= 0.9 && radio >= 0.9, "{l:?}: {queue}, {radio}");
    }
}

/// Where a queue holds a packet or two, each round trip is near the longest.
#[test]
fn the_shortest_queues_are_taken_for_full() {
    for holds in [1, 2] {
        let l = Link { base: 60.0, packet: 1.2, holds, radio: 0.02, others: 0 };
        assert!(right(l)[0] >= 0.9, "{holds}");
    }
}

/// What losses on a path are taken for whose round trips are `base` ms and up to `queue` ms more, with so many packets under way
/// at each; they are ten round trips apart.
fn verdicts(base: f64, queue: f64, under_way: &[u64]) -> String {
    let mut r = RandomStream::named(2, &format!("{base} {queue} {under_way:?}"));
    let (mut p, mut s, mut seq) = (built(&POLICY, "", 0), Scene::new(1, 0), 0);
    let mut out = String::new();
    for packets in under_way {
        s.now += Duration::from_secs_f64(base / 100.0);
        let lost = seq + 50;
        for _ in 0..100 {
            seq += 1 + u64::from(seq + 1 == lost);
            p.sample(s.now, &Sample::of(PathId(0), seq, Duration::from_secs_f64((base + queue * r.unit()) / 1e3)));
        }
        s.paths[0].in_flight = packets * 1_172;
        let e = LossEvent { packets: Some(LostPackets::and(None, lost)), ..loss(0) };
        out.push(if p.classify(&s.cx(), &e) == Cause::Radio { 'r' } else { 'c' });
    }
    out
}

/// Before a queue has shown itself every round trip is near the longest, and a sender that halved for each loss would not fill
/// the path for long.
#[test]
fn losses_with_little_under_way_are_the_radios_where_no_queue_shows() {
    for base in [10.0, 80.0, 300.0] {
        assert_eq!(verdicts(base, 0.0, &[40, 20, 10, 5, 40, 90]), "ccrrrr", "{base}: two with less than five eighths");
        assert_eq!(verdicts(base, 0.0, &[10, 20, 40, 80, 40]), "ccccc", "{base}: more each time, and one with less");
        assert_eq!(verdicts(base, 0.0, &[60, 45, 60, 40, 50, 60, 55]), "ccccccc", "{base}: overflows of a small queue");
    }
}

/// Where round trips vary more, that is the queue's to show; the median of four lies within the queue's range anywhere.
#[test]
fn a_queue_that_shows_is_asked_first() {
    for base in [10.0, 80.0, 300.0] {
        let (quiet, shown) = (base / 17.0, base / 2.0);
        assert!(verdicts(base, quiet, &[40, 10, 10, 10, 10, 10]).ends_with("rrr"), "{base}");
        let mut p = built(&POLICY, "", 0);
        let mut s = Scene::new(1, 0);
        for (i, in_flight) in [40, 10, 10, 10].into_iter().enumerate() {
            s.now += Duration::from_secs_f64(base / 100.0);
            let first = i as u64 * 10;
            for (seq, wait) in
                [(1, 0.0), (2, 0.0), (3, 0.0), (4, shown), (5, shown), (6, shown), (8, shown), (9, shown)]
            {
                p.sample(s.now, &Sample::of(PathId(0), first + seq, Duration::from_secs_f64((base + wait) / 1e3)));
            }
            s.paths[0].in_flight = in_flight * 1_172;
            let e = LossEvent { packets: Some(LostPackets::and(None, first + 7)), ..loss(0) };
            assert_eq!(p.classify(&s.cx(), &e), Cause::Congestion, "{base}: a full queue, with {in_flight} under way");
        }
    }
}

/// What was seen longer than `window` ago says nothing of now.
#[test]
fn what_was_under_way_long_ago_is_forgotten() {
    let (mut p, mut s) = seen(&[(1, 80), (2, 80), (4, 80), (5, 80)]);
    let mut at = |now: u64, packets: u64| {
        (s.now, s.paths[0].in_flight) = (Instant::ZERO + ms(now), packets * 1_172);
        p.classify(&s.cx(), &LossEvent { packets: Some(LostPackets::and(None, 3)), ..loss(0) })
    };
    assert_eq!([at(100, 40), at(200, 10), at(300, 10)], [Cause::Congestion, Cause::Congestion, Cause::Radio]);
    assert_eq!([at(40_000, 10), at(40_100, 10), at(40_200, 10)], [Cause::Congestion; 3]);
}

fn seen(trips: &[(u64, u64)]) -> (Box<dyn LossCause>, Scene) {
    let mut p = built(&POLICY, "", 0);
    let mut s = Scene::new(1, 0);
    for &(seq, rtt) in trips {
        s.now += ms(1);
        p.sample(s.now, &Sample::of(PathId(0), seq, ms(rtt)));
    }
    (p, s)
}

#[test]
fn without_neighbours_it_is_congestion() {
    let (mut p, s) = seen(&[]);
    assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Congestion, "nothing was seen");
    let (mut p, s) = seen(&[(1, 40), (2, 90), (3, 90), (5, 40), (6, 40)]);
    assert_eq!(p.classify(&s.cx(), &LossEvent { packets: None, ..loss(0) }), Cause::Congestion, "a mark, no packet");
}

#[test]
fn the_longest_is_forgotten_and_one_long_trip_is_none() {
    let trips = [(0, 90), (1, 90), (2, 90), (3, 40), (4, 40), (5, 40), (7, 40), (8, 40)];
    let lost = |packet| LossEvent { packets: Some(LostPackets::and(None, packet)), ..loss(0) };
    let (mut p, mut s) = seen(&trips);
    assert_eq!(p.classify(&s.cx(), &lost(6)), Cause::Radio);
    s.now += ms(40_000);
    for seq in 10..14 {
        p.sample(s.now, &Sample::of(PathId(0), seq, ms(40)));
    }
    assert_eq!(p.classify(&s.cx(), &lost(9)), Cause::Congestion, "no queue has been seen for long");
    let (mut p, s) = seen(&[(1, 40), (2, 90), (3, 40), (4, 40), (5, 40), (7, 40), (8, 40)]);
    assert_eq!(p.classify(&s.cx(), &lost(6)), Cause::Congestion, "90 ms once are a late acknowledgement");
}

#[test]
fn timeouts_are_judged_alike() {
    let (mut p, s) = seen(&[(1, 90), (2, 90), (4, 90), (5, 90), (6, 40), (7, 40), (9, 40), (10, 40)]);
    for (packet, cause) in [(8, Cause::Radio), (3, Cause::Congestion)] {
        let packets = Some(LostPackets::and(None, packet));
        for kind in [LossKind::Timeout, LossKind::FastRetransmit] {
            assert_eq!(p.classify(&s.cx(), &LossEvent { kind, packets, ..loss(0) }), cause, "{packet}");
        }
    }
    assert_eq!(p.counters(), [("radio", 2), ("congestion", 2)]);
}

#[test]
fn the_pace_is_that_share_of_the_gaps_that_is_shorter() {
    let gaps =
        |pace, gaps: &[u64]| Seen { gaps: gaps.iter().copied().collect(), ..Seen::default() }.packet_time(Ppm(pace));
    assert_eq!([0, 250_000, 500_000, 999_999, 1_000_000].map(|p| gaps(p, &[40, 10, 30, 20])), [10, 20, 30, 40, 40]);
    assert_eq!(gaps(500_000, &[]), 0);
}
