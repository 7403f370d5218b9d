//! Waiting times, drops and rates of queues.

use crate::stats::{agrees, parts};
use anabranch_base::{Duration, Instant, RandomStream, Rate};
use anabranch_sim::link::DropReason;
use anabranch_sim::queue::{CoDelParams, Discipline, Line, Packet, Queue, Red, RedParams};
use anabranch_sim::{Limit, Link, LinkConfig, Tally};

/// 8 Mbit/s: a byte each microsecond.
pub const RATE: Rate = Rate::from_bytes_per_sec(1_000_000);

/// Poisson arrivals at `load` of the link, of sizes drawn by `size`: the link after `n` packets, and
/// what `each` makes of the deliveries.
pub fn poisson(
    config: LinkConfig,
    seed: u64,
    load: f64,
    n: u64,
    (mean, mut size): (f64, impl FnMut(&mut RandomStream) -> u32),
    mut each: impl FnMut(u64, u32, Duration),
) -> Link<u64> {
    let mut link = Link::new("link", seed, config);
    let mut random = RandomStream::named(seed, "arrivals");
    let mean_gap = mean / 1e6 / load;
    let mut now = Instant::ZERO;
    for i in 0..n {
        now += Duration::from_secs_f64(-mean_gap * (1.0 - random.unit()).ln());
        while let Some(d) = link.poll_delivery(now) {
            each(d.payload, d.size, d.at.since(d.entered));
        }
        link.enqueue(now, size(&mut random), i);
    }
    link
}

/// Mean wait in seconds before transmission starts, by the Pollaczek-Khinchine formula:
/// `load E[S^2] / (2 (1 - load) E[S])`.
fn pollaczek_khinchine(load: f64, mean: f64, second_moment: f64) -> f64 {
    load * second_moment / (2.0 * (1.0 - load) * mean) / 1e6
}

fn mean_wait(seed: u64, load: f64, mean: f64, size: impl FnMut(&mut RandomStream) -> u32) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    let config = LinkConfig::fixed(Some(RATE), Duration::ZERO);
    poisson(config, seed, load, 25_000, (mean, size), |number, size, took| {
        // The first ones find the link emptier than later.
        if number >= 5_000 {
            sum += took.as_secs_f64() - f64::from(size) / 1e6;
            count += 1.0;
        }
    });
    sum / count
}

/// Fails if the transmitter is slower or faster than it says, starts late, or lets packets wait for
/// anything but those before them. The precision tells the formula from that of exponential service
/// (twice as much) and from a load wrong by 2 %.
#[test]
fn m_d_1_mean_wait() {
    for (load, precision) in [(0.3, 0.02), (0.5, 0.02), (0.7, 0.03), (0.8, 0.04), (0.9, 0.1)] {
        let waits = parts(|seed| mean_wait(seed, load, 1_000.0, |_| 1_000));
        agrees(&format!("M/D/1 at {load}"), &waits, pollaczek_khinchine(load, 1e3, 1e6), precision);
    }
}

/// Fails if large and small packets do not take time in proportion to their size.
#[test]
fn m_g_1_mean_wait() {
    // 100 bytes with 3/4, 1500 with 1/4: mean 450, second moment 570,000.
    let size = |r: &mut RandomStream| if r.chance(0.25) { 1_500 } else { 100 };
    for (load, precision) in [(0.4, 0.02), (0.8, 0.06)] {
        let waits = parts(|seed| mean_wait(seed, load, 450.0, size));
        agrees(&format!("M/G/1 at {load}"), &waits, pollaczek_khinchine(load, 450.0, 570_000.0), precision);
    }
}

/// Fails if a full queue lets the transmitter pause, or drops more or less than what is too much.
#[test]
fn a_saturated_queue_sends_at_the_rate_and_drops_the_rest() {
    for (limit, name) in [(Limit::packets(30), "packets"), (Limit::bytes(30_000), "bytes")] {
        let config = LinkConfig::fixed(Some(RATE), Duration::ZERO).with_limit(limit);
        let drops = parts(|seed| {
            let (mut bytes, mut last) = (0u64, 0u64);
            let link = poisson(config.clone(), seed, 1.5, 20_000, (1_000.0, |_: &mut _| 1_000), |_, size, _| {
                bytes += u64::from(size);
                last += 1;
            });
            assert_eq!(last, link.counters().delivered.packets);
            // Always busy but before the first few packets.
            let took = link.counters().delivered.bytes as f64 / 1e6;
            let clock = link_clock(&link);
            assert!(took <= clock && took > clock * 0.999, "{took} s of {clock} s busy");
            link.counters().dropped_queue.packets as f64 / link.counters().offered.packets as f64
        });
        agrees(&format!("drops of a limit in {name}"), &drops, 1.0 - 1.0 / 1.5, 0.01);
    }
}

/// Seconds that have passed in a link that has something in transmission: up to its last arrival.
fn link_clock<P: Clone + Send + 'static>(link: &Link<P>) -> f64 {
    let finish = link.next_event().expect("something in transmission").as_secs_f64();
    finish - 1_000.0 / 1e6
}

/// Fails if the packet in transmission counts where it should not, or the other way round.
#[test]
fn a_full_queue_delays_by_what_it_holds() {
    for (limit, held) in [(Limit::packets(50), 50), (Limit::packets(50).waiting_only(), 51)] {
        let config = LinkConfig::fixed(Some(RATE), Duration::ZERO).with_limit(limit);
        let mut longest = Duration::ZERO;
        poisson(config, 1, 2.0, 2_000, (1_000.0, |_: &mut _| 1_000), |_, _, took| longest = longest.max(took));
        let full = Duration::from_millis(held);
        // What comes to a full queue but one, just after a packet began, waits nearly all of it.
        assert!(longest <= full && longest > full - Duration::from_micros(100), "{longest} for {held} packets");
    }
}

/// Packets from one early drop to the next while `length` packets of 1000 bytes wait.
fn gaps_between_drops(params: RedParams, length: u64, seed: u64, n: usize) -> Vec<f64> {
    let line = Line { rate: Some(RATE), delay: Duration::ZERO };
    let mut red: Red<()> = Red::new(params, Limit::NONE, line, RandomStream::named(seed, "red"));
    let now = Instant::ZERO;
    let packet = || Packet { size: 1_000, charged: 1_000, entered: now, payload: () };
    let (mut gaps, mut since, mut started) = (Vec::new(), 0.0, false);
    while gaps.len() < n {
        since += 1.0;
        if red.push(now, packet(), Tally::default()).is_err() {
            if started {
                gaps.push(since);
            }
            (since, started) = (0.0, true);
        } else if red.waiting().packets > length {
            red.pop(now, &mut Vec::new());
        }
    }
    gaps
}

const RED: RedParams = RedParams {
    thresh: Some(5.0),
    maxthresh: Some(15.0),
    q_weight: Some(1.0),
    linterm: 10.0,
    gentle: true,
    bytes: false,
    queue_in_bytes: false,
    mean_pktsize: 1_000,
    wait: false,
    ecn: false,
};

/// With the average held at `length`, the gap between two drops is even over 1 to `1/p - 1` packets
/// (Floyd and Jacobson 1993, method 2), or over `1/p` to `2/p - 1` with `wait`. Fails if `p` does not
/// follow the slope between the thresholds (or the gentle one above), or if drops are not spread out:
/// independent drops would have gaps of twice the mean and three times the deviation.
#[test]
fn red_drops_as_often_as_its_formula_says() {
    // Length, and 1/p there: p is 0.1 x 5/10 and 0.1 x 9/10 between the thresholds, and
    // 0.1 + 0.9 x 5/15 on the gentle slope.
    for (length, inverse) in [(10, 20.0), (14, 100.0 / 9.0), (20, 2.5)] {
        for (wait, in_bytes) in [(false, false), (true, false), (false, true), (true, true)] {
            let params = RedParams { wait, bytes: in_bytes, queue_in_bytes: in_bytes, ..RED };
            let (first, last) = if wait { (inverse, 2.0 * inverse - 1.0) } else { (1.0, inverse - 1.0) };
            let what = format!("RED at {length} packets, wait {wait}, bytes {in_bytes}");
            let all: Vec<Vec<f64>> = (0..40).map(|seed| gaps_between_drops(params, length, seed, 2_000)).collect();
            let mean = |of: fn(f64, f64) -> f64, about: f64| -> Vec<f64> {
                all.iter().map(|g| g.iter().map(|x| of(*x, about)).sum::<f64>() / g.len() as f64).collect()
            };
            let want = expected_gap(inverse, wait);
            agrees(&what, &mean(|x, _| x, 0.0), want, 0.02);
            if inverse.fract() == 0.0 {
                let count = last - first + 1.0;
                agrees(&what, &mean(|x, m| (x - m).powi(2), want), (count * count - 1.0) / 12.0, 0.05);
                let extremes = all.iter().flatten().fold((f64::MAX, 0.0f64), |e, x| (e.0.min(*x), e.1.max(*x)));
                assert_eq!(extremes, (first, last), "{what}");
            }
        }
    }
}

/// Mean packets from one drop to the next at `p = 1 / inverse`, from the probability that packet `n`
/// after a drop is dropped: `p / (1 - n p)`, or with `wait` 0 up to `1/p` and then `p / (2 - n p)`.
fn expected_gap(inverse: f64, wait: bool) -> f64 {
    let p = 1.0 / inverse;
    let (mut mean, mut alive, mut n) = (0.0, 1.0, 1.0);
    while alive > 1e-12 {
        let passed = n * p;
        let drop = match wait {
            false => {
                if passed < 1.0 {
                    (p / (1.0 - passed)).min(1.0)
                } else {
                    1.0
                }
            }
            true if passed < 1.0 => 0.0,
            true => {
                if passed < 2.0 {
                    (p / (2.0 - passed)).min(1.0)
                } else {
                    1.0
                }
            }
        };
        mean += n * alive * drop;
        alive *= 1.0 - drop;
        n += 1.0;
    }
    mean
}

/// Drop `n + 1` of an overloaded link comes `interval / sqrt(n)` after drop `n` (RFC 8289 §3.3), as
/// soon as the transmitter is free. Fails if the row starts at another time, counts otherwise, or
/// adds up the waits for the transmitter.
#[test]
fn codel_follows_its_control_law() {
    let config =
        LinkConfig::fixed(Some(RATE), Duration::ZERO).with_discipline(Discipline::CoDel(CoDelParams::default()));
    let mut link = Link::new("codel", 1, config);
    link.record();
    // Two packets of 1 ms each ms: packet n enters at n/2 ms and could start at n ms.
    for n in 0..8_000u64 {
        link.enqueue(Instant::from_nanos(n * 500_000), 1_000, n);
    }
    let dropped = link.take_notices().filter(|n| n.dropped == Some(DropReason::Queue));
    let got: Vec<f64> = dropped.map(|n| n.at.as_secs_f64() * 1e3).collect();
    // The first to wait for 5 ms starts at 10 ms; an interval later the row begins.
    let law = |n: usize| 110.0 + (1..n).map(|k| 100.0 / (k as f64).sqrt()).sum::<f64>();
    assert!(got.len() > 300, "{}", got.len());
    for (i, at) in got.iter().enumerate() {
        let want = law(i + 1);
        assert!(*at >= want - 1e-6 && *at < want + 1.0 + 1e-6, "drop {} at {at} ms, law {want} ms", i + 1);
    }
}
