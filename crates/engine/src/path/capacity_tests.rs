//! Capacities without an endpoint.

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

struct Run {
    c: Capacity,
    at: Instant,
    sent: Instant,
}

impl Run {
    fn new() -> Self {
        Run { c: Capacity::default(), at: Instant::from_millis(1_000), sent: Instant::from_millis(950) }
    }
    /// One packet of 1000 bytes every `gap` ms for `millis`.
    fn go(&mut self, millis: u64, gap: u64, queued: bool) -> &mut Self {
        for _ in 0..millis / gap {
            self.at += MS(gap);
            // The sender is five times as fast as what makes a queue.
            self.sent += if queued { MS(gap) / 5 } else { MS(gap) };
            self.c.delivered(
                self.at,
                Delivered {
                    bytes: 1_000,
                    packets: 1,
                    sent_at: self.sent,
                    burst: Instant::ZERO,
                    queued: queued.then_some(MS(20)),
                    varies: Duration::ZERO,
                },
                MS(50),
            );
            let s = RateSample { rate: Rate::of(1_000, MS(gap)), span: MS(gap), app_limited: !queued };
            self.c.sample(self.at, s, MS(50));
        }
        self
    }
    /// A measurement leaves its longest step out.
    fn is_near(&self, rate: u64) -> bool {
        self.rate().abs_diff(rate) <= rate / 200
    }
    fn rate(&self) -> u64 {
        self.c.rate().bytes_per_sec()
    }
}

#[test]
fn a_source_that_offers_less_does_not_talk_it_down() {
    let mut r = Run::new();
    r.go(500, 1, true).go(20_000, 10, false);
    assert!(r.is_near(1_000_000), "{}", r.rate());
}

#[test]
fn a_queue_that_empties_slowly_is_believed_soon_and_forgotten_with_the_queue() {
    let mut r = Run::new();
    r.go(500, 1, false);
    r.go(200, 10, true);
    assert!((80_000..=125_000).contains(&r.rate()), "{}", r.rate());
    r.go(10, 10, false);
    assert!(r.rate() >= 80_000);
}

/// A sample is of packets of which the first may have come late and the last early.
#[test]
fn what_came_out_of_a_queue_for_a_while_counts_more_than_the_largest_sample() {
    for millis in [60, 150, 300, 1_000, 5_000] {
        let mut r = Run::new();
        r.go(500, 1, false);
        for (rate, app_limited) in [(1_150_000, false), (1_200_000, true)] {
            r.c.sample(r.at, RateSample { rate: Rate::from_bytes_per_sec(rate), span: MS(50), app_limited }, MS(50));
        }
        r.go(millis, 1, true).go(10, 10, false);
        let believed = if millis < 200 { 1_200_000 } else { 1_000_000 };
        assert!(r.is_near(believed), "{millis} ms: {}", r.rate());
    }
}

#[test]
fn a_collapse_that_lasts_replaces_the_estimate() {
    let mut r = Run::new();
    r.go(3_000, 1, true).go(700, 10, true).go(1_000, 20, false);
    assert!((80_000..=125_000).contains(&r.rate()), "{}", r.rate());
    r.go(200, 2, true);
    assert!(r.rate() >= 400_000, "more is news at once: {}", r.rate());
}

#[test]
fn what_a_train_showed_counts_until_data_show_more() {
    let mut r = Run::new();
    r.go(1_000, 100, false);
    assert!(r.c.is_lower_bound() && r.rate() == 10_000);
    r.c.guess(r.at, TrainRate::Exact(Rate::from_bytes_per_sec(2_000_000)), MS(50));
    r.go(20_000, 100, false);
    assert_eq!((r.rate(), r.c.is_lower_bound()), (2_000_000, false), "a sparse source");
    r.go(1_500, 1, true);
    assert!(r.is_near(1_000_000), "{}", r.rate());
}

/// What a train that jitter spread shows is a beginning: a source that offers less leaves it so, and data that show more end it.
#[test]
fn what_a_train_showed_at_least_may_be_more() {
    let mut r = Run::new();
    r.go(1_000, 100, false);
    r.c.guess(r.at, TrainRate::AtLeast(Rate::from_bytes_per_sec(200_000)), MS(50));
    r.go(5_000, 100, false);
    assert_eq!((r.rate(), r.c.is_lower_bound()), (200_000, true), "a sparse source");
    r.go(1_500, 1, true);
    assert!(r.is_near(1_000_000) && !r.c.is_lower_bound(), "{}", r.rate());
}

/// 20 packets a frame, paced a little above the rate of the link; the round trip grows by 53 ms each 200 ms.
#[test]
fn a_path_that_becomes_longer_is_not_slower() {
    let mut r = Run::new();
    r.go(2_000, 1, true);
    let start = r.at;
    for frame in 0..100 {
        let left = start + MS(frame * 40);
        let longer = MS(frame / 5 * 53);
        for packet in 0..20 {
            let (sent_at, at) = (left + MS(packet), left + longer + MS(50 + packet));
            r.c.delivered(
                at,
                Delivered {
                    bytes: 1_000,
                    packets: 1,
                    sent_at,
                    burst: left,
                    queued: Some(MS(20)),
                    varies: Duration::ZERO,
                },
                MS(50),
            );
        }
        r.at = left + longer;
    }
    assert!(r.is_near(1_000_000), "{}", r.rate());
}

#[test]
fn bursts_that_come_far_slower_than_they_left_end_a_belief() {
    let mut r = Run::new();
    r.go(2_000, 1, true);
    let start = r.at;
    let mut mistaken = vec![];
    for frame in 0..6 {
        let left = start + MS(frame * 100);
        for packet in 0..20 {
            let (sent_at, at) = (left + MS(packet), left + MS(50 + packet * 4));
            let d = Delivered { bytes: 1_000, packets: 1, sent_at, burst: left, queued: None, varies: Duration::ZERO };
            mistaken.push(r.c.delivered(at, d, MS(50)));
        }
    }
    assert_eq!(mistaken.iter().filter(|m| **m).count(), 1, "once");
    assert!((240_000..=260_000).contains(&r.rate()), "{}", r.rate());
}

/// 20 packets a frame that leave within 19 ms and arrive within `apart` ms, in whatever order: the rate that is believed
/// after six of them, of 1 MB a second before.
fn after_bursts(apart: u64, varies: u64) -> u64 {
    let mut r = Run::new();
    r.go(2_000, 1, true);
    let start = r.at;
    for frame in 0..6 {
        let left = start + MS(frame * 1_000);
        for packet in 0..20 {
            let (sent_at, at) = (left + MS(packet), left + MS(50) + MS(apart) * packet / 19);
            let d = Delivered { bytes: 1_000, packets: 1, sent_at, burst: left, queued: None, varies: MS(varies) };
            r.c.delivered(at, d, MS(50));
        }
    }
    r.rate()
}

#[test]
fn packets_that_each_take_their_own_time_come_apart_without_a_queue() {
    for varies in [60, 100, 160, 240] {
        for apart in [30, 40, varies] {
            assert!(after_bursts(apart, varies) >= 990_000, "{apart} of {varies} ms");
        }
        // What is spread far more than that waited for each other.
        let slow = after_bursts(varies + 80, varies);
        assert!(slow <= 20_000_000 / (varies + 80) * 11 / 10, "{varies} ms: {slow}");
        assert!(after_bursts(varies, 0) <= 700_000, "{varies} ms where packets keep their order");
    }
}

/// Frames of `load` bytes a second each 40 ms, paced at what is believed, over a link of `rate` with a FIFO, whose way
/// takes `longer` of the time in milliseconds since the start more than 50 ms. Answers when the estimate was first at
/// most a tenth above `rate`, milliseconds after the start, and for how many answers pauses seemed closed.
fn frames(r: &mut Run, load: u64, rate: u64, longer: impl Fn(u64) -> u64) -> (Option<u64>, usize) {
    let start = r.at + MS(100);
    let (mut free, mut found, mut closed) = (start, None, 0);
    let mut pending = std::collections::VecDeque::new();
    for tick in 0..20_000 {
        let now = start + MS(tick) / 10;
        if tick % 400 == 0 {
            let (packets, gap) = (load.div_ceil(25_000), r.c.rate().time_for(1_000));
            pending.extend((0..packets).map(|i| (now + gap * i, None)));
        }
        for (sent, arrives) in pending.iter_mut().filter(|(sent, arrives)| arrives.is_none() && *sent <= now) {
            free = free.max(*sent) + Rate::from_bytes_per_sec(rate).time_for(1_000);
            let there = free + MS(50) + MS(longer(sent.since(start).as_millis()));
            *arrives = Some((there, r.c.on_sent(*sent, 1_000)));
        }
        while let Some((sent_at, Some((at, burst)))) =
            pending.front().copied().filter(|p| p.1.is_some_and(|a| a.0 <= now))
        {
            pending.pop_front();
            r.c.hear_pause(at, sent_at, burst, 1_000);
            let queued = at.since(sent_at).saturating_sub(MS(60));
            let queued = (queued > Duration::ZERO).then_some(queued);
            r.c.delivered(
                at,
                Delivered { bytes: 1_000, packets: 1, sent_at, burst, queued, varies: Duration::ZERO },
                MS(50),
            );
            closed += usize::from(r.c.closes_pauses());
            if found.is_none() && r.c.rate().bytes_per_sec() <= rate + rate / 10 {
                found = Some(now.since(start).as_millis());
            }
        }
    }
    (found, closed)
}

#[test]
fn a_rate_a_little_below_what_is_sent_is_noticed_though_the_source_pauses() {
    for rate in [800_000, 750_000, 700_000, 600_000, 400_000, 200_000] {
        let mut r = Run::new();
        r.go(2_000, 1, false);
        let (found, closed) = frames(&mut r, 850_000.min(rate + rate / 10), rate, |_| 0);
        assert!(found.is_some_and(|t| t < 1_500), "{rate}: {found:?}, closed {closed}, {}", r.rate());
    }
}

#[test]
fn pauses_on_a_path_that_becomes_longer_stay() {
    for (what, longer) in [
        ("jump", (|t| if t > 500 { 100 } else { 0 }) as fn(u64) -> u64),
        ("slow ramp", |t| t / 10),
        ("ramp", |t| t / 2),
    ] {
        for load in [300_000, 600_000, 800_000] {
            let mut r = Run::new();
            r.go(2_000, 1, false);
            let (_, closed) = frames(&mut r, load, 1_000_000, longer);
            assert!(closed < 10, "{what}, {load}: {closed}");
            assert!(r.is_near(1_000_000), "{what}, {load}: {}", r.rate());
        }
    }
}

#[test]
fn silence_says_nothing() {
    let mut r = Run::new();
    r.go(500, 1, true);
    r.at += MS(2_000);
    r.go(4, 1, true);
    assert!(r.is_near(1_000_000), "{}", r.rate());
}

/// Spans between packets of a path that delivers a megabyte each second and whose packets each take a time of their own.
#[test]
fn the_largest_sample_of_a_path_that_varies_is_nearer_to_what_it_carries() {
    let mut state = 7_u64;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % 1_000) as f64 / 1_000.0
    };
    for (span, deviation) in [(40.0, 1.0), (60.0, 1.0), (60.0, 2.0), (100.0, 3.0)] {
        // Four evenly distributed parts: near a normal distribution of this mean deviation, to and fro.
        let mut off = || ((0..4).map(|_| draw()).sum::<f64>() - 2.0) * deviation / 0.465;
        let (mut plain, mut largest) = (0_u64, 0_u64);
        for _ in 0..60 {
            let took = Duration::from_secs_f64((span + off() - off()) / 1e3);
            let s = RateSample { rate: Rate::of(span as u64 * 1_000, took), span: took, app_limited: false };
            let varies = Duration::from_secs_f64(deviation / 1e3);
            plain = plain.max(s.rate.bytes_per_sec());
            largest = largest.max(s.of_a_varying_path(varies).rate.bytes_per_sec());
        }
        let (too_large, was) = (largest.saturating_sub(1_000_000), plain - 1_000_000);
        assert!(was > 40_000, "{span} ms, {deviation}: {plain}");
        assert!(largest > 970_000 && too_large < was / 5 * 3, "{span} ms, {deviation}: {largest}, {plain} as it came");
    }
    let s = RateSample { rate: Rate::from_bytes_per_sec(900_000), span: MS(40), app_limited: true };
    assert_eq!(s.of_a_varying_path(Duration::ZERO).rate, s.rate, "a steady path");
    assert_eq!(s.of_a_varying_path(MS(50)).rate.bytes_per_sec(), 800_000, "longer by an eighth at most");
}

/// What is far below the largest sample is the source's doing; and one sample that the source did not limit makes what is
/// believed more than a lower bound.
#[test]
fn what_is_hardly_less_than_the_largest_sample_is_nearly_all() {
    let mut r = Run::new();
    r.c.sample(r.at, RateSample { rate: Rate::from_bytes_per_sec(1_000_000), span: MS(50), app_limited: true }, MS(50));
    assert!(r.c.is_lower_bound());
    let nearly = |rate| r.c.is_nearly_all(Rate::from_bytes_per_sec(rate));
    assert_eq!([700_000, 790_000, 810_000, 1_200_000].map(nearly), [false, false, true, true]);
    r.c.sample(r.at, RateSample { rate: Rate::from_bytes_per_sec(900_000), span: MS(50), app_limited: false }, MS(50));
    assert!(!r.c.is_lower_bound());
}
