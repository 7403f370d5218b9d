//! Round trips without a path.

use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn first_and_second_sample_follow_the_rule() {
    let mut e = RttEstimator::default();
    e.sample(Instant::from_millis(0), MS(100));
    assert_eq!((e.srtt(), e.rttvar()), (MS(100), MS(50)));
    e.sample(Instant::from_millis(200), MS(200));
    assert_eq!(e.srtt(), Duration::from_micros(112_500));
    assert_eq!(e.rttvar(), Duration::from_micros(62_500));
}

#[test]
fn the_handshake_counts_until_something_is_measured() {
    let mut e = RttEstimator::default();
    e.begin(Instant::from_millis(0));
    assert!(e.srtt().is_zero(), "nothing is known");
    e.note_handshake(MS(300));
    e.begin(Instant::from_millis(10));
    assert_eq!((e.srtt(), e.rttvar(), e.is_unmeasured()), (MS(300), MS(150), true));
    e.sample(Instant::from_millis(20), MS(40));
    assert_eq!((e.srtt(), e.rttvar(), e.deviation(), e.min_rtt()), (MS(40), MS(20), MS(20), MS(40)));
    e.begin(Instant::from_millis(30));
    assert_eq!((e.srtt(), e.is_unmeasured()), (MS(40), false));
}

#[test]
fn one_smoothed_sample_per_round_trip_but_every_minimum() {
    let mut e = RttEstimator::default();
    e.sample(Instant::from_millis(0), MS(100));
    e.sample(Instant::from_millis(50), MS(40));
    assert_eq!((e.srtt(), e.min_rtt(), e.last()), (MS(100), MS(40), MS(40)));
}

#[test]
fn a_spike_that_is_over_is_smoothed_in_its_own_time_where_that_is_asked_for() {
    let mut e = RttEstimator::default();
    e.sample(Instant::from_millis(10_000), MS(4_000));
    for t in 1..=20 {
        e.is_over_a_spike(Instant::from_millis(10_000 + t * 20), MS(40));
        e.sample(Instant::from_millis(10_000 + t * 20), MS(40));
    }
    // One of two: the others left before the last that was smoothed.
    assert!(e.srtt() > MS(1_000) && e.srtt() < MS(1_200), "{}", e.srtt());
}

#[test]
fn the_deviation_is_slow_and_takes_every_sample() {
    let mut e = RttEstimator::default();
    e.sample(Instant::from_millis(0), MS(100));
    assert_eq!(e.deviation(), MS(50));
    for t in 1..500 {
        e.sample(Instant::from_millis(t), MS(if t % 2 == 0 { 80 } else { 120 }));
    }
    let settled = e.deviation().as_micros();
    assert!((19_000..=21_000).contains(&settled), "{settled}");
    e.sample(Instant::from_millis(500), MS(260));
    assert!(e.deviation().as_micros() < settled + 5_500, "{}", e.deviation());
    e.restart(Instant::from_millis(600), MS(700));
    assert_eq!((e.srtt(), e.rttvar(), e.deviation()), (MS(700), MS(350), MS(350)));
}

#[test]
fn the_mean_follows_a_spike_both_ways_within_a_few_samples() {
    let mut e = RttEstimator::default();
    let mut at = 0;
    let mut feed = |e: &mut RttEstimator, n: u64, rtt: u64| {
        for _ in 0..n {
            at += 5;
            e.sample(Instant::from_millis(at), MS(rtt));
        }
    };
    feed(&mut e, 100, 40);
    feed(&mut e, 100, 600);
    assert!(e.mean() > MS(590) && e.recent() <= MS(600), "{} {}", e.mean(), e.recent());
    feed(&mut e, 100, 40);
    assert!(e.mean() < MS(45) && e.jitter() < MS(10) && e.recent() == MS(40), "{} {}", e.mean(), e.jitter());
    assert!(e.srtt() > MS(60), "one sample per round trip: {}", e.srtt());
}

#[test]
fn what_varies_without_a_queue_is_averaged_over_seconds() {
    let mut e = RttEstimator::default();
    for t in 0..2_000 {
        let at = Instant::from_millis(t * 5);
        e.sample(at, MS([40, 80, 60, 70][t as usize % 4]));
        e.was_unloaded(at, false);
    }
    assert!(e.unloaded.mean.abs_diff(MS(62)) < MS(2), "{}", e.unloaded.mean);
    assert!(e.unloaded.deviation.abs_diff(MS(12)) < MS(2), "{}", e.unloaded.deviation);
    for t in 2_000..2_040 {
        e.sample(Instant::from_millis(t * 5), MS(5_000));
        e.was_unloaded(Instant::from_millis(t * 5), false);
    }
    assert!(e.unloaded.mean < MS(85), "220 ms at most 0.2 s long: {}", e.unloaded.mean);
}

/// Round trips of 160 ms and up to 150 more or less, most of them near: what passes for usual after ten seconds, and how
/// much they vary. Each fourth sample is of a packet before which nothing stood, or none is.
fn unsteady(gap: u64, known: bool, seed: u64) -> UnqueuedRtt {
    let (mut e, mut state) = (RttEstimator::default(), seed);
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % 100
    };
    for n in 0..10_000 / gap {
        let at = Instant::from_millis(n * gap);
        e.sample(at, MS(10 + draw() + draw() + draw()));
        if known && n % 4 == 0 {
            e.was_unloaded(at, true);
        }
    }
    e.without_queue(true)
}

#[test]
fn where_packets_overtake_each_other_the_luckiest_is_not_what_a_path_takes() {
    for seed in 1..=20 {
        for (gap, known, least) in
            [(5, true, 135), (5, false, 135), (20, true, 125), (20, false, 125), (100, true, 110)]
        {
            let usual = unsteady(gap, known, seed);
            let what = format!("each {gap} ms, {known}, seed {seed}: {usual:?}");
            assert!(usual.least < MS(90) && (MS(least)..=MS(200)).contains(&usual.usual()), "{what}");
            assert!((MS(15)..=MS(90)).contains(&usual.deviation), "{what}");
        }
    }
}

#[test]
fn a_queue_on_a_path_that_varies_little_is_none_of_its_own_time() {
    let mut e = RttEstimator::default();
    for n in 0..2_000 {
        // Between 20 and 22 ms for a second, and with a queue of 60 more for all others.
        let queue = if n < 100 { 0 } else { 60 };
        e.sample(Instant::from_millis(n * 3), MS(20 + queue + n % 3));
    }
    assert!(e.without_queue(true).usual() <= MS(30), "{:?}", e.without_queue(true));
    assert!(e.without_queue(true).is_exceeded(MS(80)));
}

#[test]
fn a_queue_that_grows_and_empties_is_none_of_the_paths_own_time() {
    for (period, most) in [(120, 30), (120, 60), (250, 60), (500, 90)] {
        let mut e = RttEstimator::default();
        for n in 0..2_000 {
            let at = n * 5;
            // It empties once each two seconds, and is half as long at the least otherwise.
            let least = if at % 2_000 < period { 0 } else { most / 3 };
            let queue = least + (most - least) * (at % period) / period;
            e.sample(Instant::from_millis(at), MS(30 + queue + n * 7 % 3));
        }
        let usual = e.without_queue(true);
        assert!(usual.usual() <= MS(36), "{most} ms each {period}: {usual:?}");
    }
}

#[test]
fn a_stall_is_a_silence_and_a_round_trip_as_long() {
    let mut e = RttEstimator::default();
    (0..50).for_each(|i| e.sample(Instant::from_millis(i * 10), MS(40)));
    // Packets that left each 10 ms come at once after two seconds.
    (0..200).for_each(|i| e.sample(Instant::from_millis(2_500), MS(2_040 - i * 10)));
    assert_eq!(e.stalled_at(), Some(Instant::from_millis(2_500)));
    let mut queue = RttEstimator::default();
    (0..500).for_each(|i| queue.sample(Instant::from_millis(i * 10), MS(40 + i * 8)));
    assert_eq!(queue.stalled_at(), None, "a queue that grows is no stall");
    let mut idle = RttEstimator::default();
    idle.sample(Instant::from_millis(0), MS(40));
    idle.sample(Instant::from_millis(5_000), MS(60));
    assert_eq!(idle.stalled_at(), None, "silence alone is none either");
}

#[test]
fn rare_samples_count_for_more() {
    let mut e = RttEstimator::default();
    (0..50).for_each(|i| e.sample(Instant::from_millis(i * 10), MS(40)));
    (50..60).for_each(|i| e.sample(Instant::from_millis(i * 10), MS(3_000)));
    (0..8).for_each(|i| e.sample(Instant::from_millis(4_000 + i * 100), MS(40)));
    assert!(e.mean() < MS(60) && e.jitter() < MS(100), "{} {}", e.mean(), e.jitter());
}

#[test]
fn the_minimum_is_forgotten() {
    let mut e = RttEstimator::default();
    e.sample(Instant::from_millis(0), MS(10));
    for t in 1..25 {
        e.sample(Instant::from_millis(t * 1_000), MS(80));
    }
    assert_eq!(e.min_rtt(), MS(80));
}
