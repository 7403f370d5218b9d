//! Round-trip estimation (RFC 9260 §6.3.1), its windowed minimum, and what the newest samples say.

use super::least::Least;
use anabranch_base::{Duration, Instant};
use anabranch_policy::view::UnqueuedRtt;

/// Clock granularity: RTTVAR never falls below it (RFC 9260 §6.3.1 C3 note).
const GRANULARITY: Duration = Duration::from_micros(1);
/// A minimum older than this is forgotten; routes change.
const MIN_WINDOW: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    deviation: Duration,
    last: Duration,
    last_smoothed_at: Option<Instant>,
    last_at: Option<Instant>,
    /// Over the last 5 to 10 s.
    min: Least,
    /// Over the last one to two round trips.
    recent: Least,
    /// Mean and mean deviation over the last sixteen samples or so.
    mean: Duration,
    jitter: Duration,
    stalled_at: Option<Instant>,
    unloaded: Unloaded,
    /// The least `mean` over the last 5 to 10 s, once it is one of as many as count, and how many there were.
    steady: Least,
    samples: u8,
    /// What the handshake took, for a path on which data leave before anything was measured.
    handshake: Duration,
}

/// Round trips of packets that left while less was in flight than the path holds: what they take is no queue of ours,
/// however much it varies.
#[derive(Clone, Copy, Debug, Default)]
struct Unloaded {
    mean: Duration,
    deviation: Duration,
    at: Instant,
}

/// Time over which round trips without a queue are averaged. Were it short, a rate that collapsed would pass for a path
/// that became longer.
const UNLOADED_OVER: Duration = Duration::from_secs(2);

impl Unloaded {
    fn sample(&mut self, now: Instant, rtt: Duration) {
        if self.mean.is_zero() {
            *self = Unloaded { mean: rtt, deviation: Duration::ZERO, at: now };
            return;
        }
        const PARTS: u64 = 4_096;
        let age = now.since(self.at).as_nanos();
        let weight = (age.saturating_mul(PARTS) / UNLOADED_OVER.as_nanos()).clamp(1, PARTS / 8);
        let mix = |old: Duration, new: Duration| {
            let sum = u128::from(old.as_nanos()) * u128::from(PARTS - weight)
                + u128::from(new.as_nanos()) * u128::from(weight);
            Duration::from_nanos((sum / u128::from(PARTS)) as u64)
        };
        self.deviation = mix(self.deviation, self.mean.abs_diff(rtt));
        self.mean = mix(self.mean, rtt);
        self.at = now;
    }
}

/// Mean deviations between the first and the last of some packets that overtake each other, and by which the luckiest of
/// many is quicker than most.
const APART: u64 = 4;
/// Weight of a sample in the mean: one in so many.
const MEAN_OF: u64 = 16;
/// Least span of what counts as recent.
const RECENT: Duration = Duration::from_millis(50);

impl RttEstimator {
    /// A sample from unambiguous evidence. The smoothed values take at most one sample per round trip
    /// (RFC 9260 §6.3.1 C4); minimum and newest sample take all.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        let rtt = Duration::from_nanos(rtt.as_nanos().max(1));
        self.note_stall(now, rtt);
        self.update_mean(now, rtt);
        (self.last, self.last_at) = (rtt, Some(now));
        self.min.update(now, rtt, MIN_WINDOW / 2);
        self.recent.update(now, rtt, self.mean.max(RECENT));
        self.samples = self.samples.saturating_add(1);
        if u64::from(self.samples) >= MEAN_OF {
            self.steady.update(now, self.mean, MIN_WINDOW / 2);
        }
        let off = self.srtt.abs_diff(rtt);
        self.deviation = if self.last_smoothed_at.is_none() { rtt / 2 } else { (self.deviation * 31 + off) / 32 };
        match self.last_smoothed_at {
            None => {
                self.srtt = rtt;
                self.rttvar = rtt / 2;
            }
            Some(at) if now.since(at) < self.srtt => return,
            Some(_) => {
                self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
                self.srtt = (self.srtt * 7 + rtt) / 8;
            }
        }
        if self.rttvar < GRANULARITY {
            self.rttvar = GRANULARITY;
        }
        self.last_smoothed_at = Some(now);
    }

    /// The handshake took so long, or something in it was repeated and it took less.
    pub fn note_handshake(&mut self, rtt: Duration) {
        self.handshake = rtt;
    }

    /// Nothing was measured, and what the handshake took is known.
    #[inline]
    pub fn may_begin(&self) -> bool {
        self.last_at.is_none() && !self.handshake.is_zero()
    }

    /// Data leave and nothing was measured: what the handshake took counts until something is.
    pub fn begin(&mut self, now: Instant) {
        if self.may_begin() {
            self.sample(now, self.handshake);
            self.last_smoothed_at = None;
        }
    }

    /// Nothing was measured but, perhaps, the handshake.
    pub fn is_unmeasured(&self) -> bool {
        self.last_smoothed_at.is_none()
    }

    /// Nothing came for about as long as this sample is longer than others: the path stood, and what left while it did
    /// says how it was then.
    fn note_stall(&mut self, now: Instant, rtt: Duration) {
        let longer = rtt.saturating_sub(self.mean * 2 + RECENT);
        if !longer.is_zero() && self.last_at.is_some_and(|t| now.since(t) >= longer / 2) {
            self.stalled_at = Some(now);
        }
    }
    /// When the path answered again after it had stood.
    pub fn stalled_at(&self) -> Option<Instant> {
        self.stalled_at
    }

    /// A sample of `rtt` comes, far below the smoothed value: counted in old round trips, a spike of seconds would be
    /// remembered for ten times as long, so it is smoothed if it left after the last that was.
    pub fn is_over_a_spike(&mut self, now: Instant, rtt: Duration) {
        if rtt * 2 < self.srtt && self.last_smoothed_at.is_some_and(|at| now.since(at) >= rtt) {
            self.last_smoothed_at = Some(now - self.srtt);
        }
    }

    /// Is `rtt` what was to be expected?
    pub fn agrees_with(&self, rtt: Duration) -> bool {
        self.srtt.abs_diff(rtt) <= (self.rttvar * 4).max(self.srtt / 8)
    }

    /// The first sample after a silence: what was known before it says nothing any more.
    pub fn restart(&mut self, now: Instant, rtt: Duration) {
        (self.srtt, self.last_smoothed_at) = (Duration::ZERO, None);
        self.sample(now, rtt);
    }

    /// A sample weighs a sixteenth, and more where samples are rare: what the mean says is never much older than a few
    /// of the smallest round trips.
    fn update_mean(&mut self, now: Instant, rtt: Duration) {
        let Some(before) = self.last_at else {
            (self.mean, self.jitter) = (rtt, rtt / 8);
            return;
        };
        let scale = (self.min_rtt().as_nanos() * 2).max(RECENT.as_nanos());
        let weight = (now.since(before).as_nanos() * MEAN_OF / scale).clamp(1, MEAN_OF / 2);
        let mix = |old: Duration, new: Duration| (old * (MEAN_OF - weight) + new * weight) / MEAN_OF;
        self.jitter = mix(self.jitter, self.mean.abs_diff(rtt));
        self.mean = mix(self.mean, rtt);
    }

    /// When the last sample was taken.
    pub fn sampled_at(&self) -> Option<Instant> {
        self.last_at
    }
    pub fn srtt(&self) -> Duration {
        self.srtt
    }
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }
    /// Mean deviation over the last thirty samples or so, of which there may be many in a round trip: unlike the
    /// variation it neither forgets nor jumps with a few.
    pub fn deviation(&self) -> Duration {
        self.deviation
    }
    pub fn last(&self) -> Duration {
        self.last
    }
    pub fn min_rtt(&self) -> Duration {
        self.min.get()
    }
    /// Smallest sample of the last one to two round trips before [`RttEstimator::sampled_at`].
    pub fn recent(&self) -> Duration {
        self.recent.get()
    }
    /// The newest sample is of a packet that left while less was in flight than the path holds.
    pub fn was_unloaded(&mut self, now: Instant, reorders: bool) {
        // What is far above the smallest is a bad moment, not the path; but where packets overtake each other the smallest
        // is one that was lucky.
        let least = if reorders { self.min_rtt().max(self.unloaded.mean) } else { self.min_rtt() };
        let most = least * 3 + Duration::from_millis(100);
        self.unloaded.sample(now, self.last.min(most));
    }
    /// The newest sample is of a packet before which nothing of ours can have stood, however long it took.
    pub fn was_longer(&mut self, now: Instant) {
        self.unloaded.sample(now, self.last);
    }
    /// What passed for such was not.
    pub fn forget_longer(&mut self, now: Instant) {
        self.unloaded =
            Unloaded { mean: self.min_rtt(), deviation: self.unloaded.deviation.min(self.min_rtt()), at: now };
    }
    /// Round trips without a queue of ours, over some seconds. Where packets overtake each other the smallest of all is a
    /// lucky one's, and hardly any leaves before which it is certain that none stood: there it is the least that a few of
    /// them took in the mean, and what the newest vary by, which a queue changes little.
    pub fn without_queue(&self, reorders: bool) -> UnqueuedRtt {
        let Unloaded { mean, deviation, .. } = self.unloaded;
        let least = self.min_rtt();
        let varies = self.jitter.min(self.deviation);
        if reorders && varies * APART > least {
            let steady = self.steady.get().min(least + varies * APART);
            return UnqueuedRtt { least, mean: mean.max(steady), deviation: deviation.max(varies) };
        }
        UnqueuedRtt { least, mean, deviation }
    }
    /// By how much packets come apart on their way where each takes its own time; zero where they do not.
    pub fn comes_apart_by(&self, reorders: bool) -> Duration {
        let usual = self.without_queue(reorders);
        let apart = usual.deviation * APART;
        if reorders && apart > usual.least { apart } else { Duration::ZERO }
    }
    /// What nearly every round trip takes at the least, and not the luckiest alone.
    pub fn most_take(&self, reorders: bool) -> Duration {
        let apart = self.comes_apart_by(reorders);
        if apart.is_zero() {
            return self.min_rtt();
        }
        self.min_rtt().max(self.without_queue(reorders).mean.saturating_sub(apart / 2))
    }
    /// Mean of the newest samples, of which there may be many in a round trip.
    pub fn mean(&self) -> Duration {
        self.mean
    }
    /// Mean deviation of the newest samples from their mean.
    pub fn jitter(&self) -> Duration {
        self.jitter
    }
}

#[cfg(test)]
mod tests {
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
                [(5, true, 110), (5, false, 110), (20, true, 110), (20, false, 90), (100, true, 110)]
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
}
