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
    /// Mean difference between a sample and the next, over as many.
    step: Duration,
    /// Mean over the last sixty-four samples or so.
    long_mean: Duration,
    stalled_at: Option<Instant>,
    unloaded: Unloaded,
    /// The least `long_mean` over the last 5 to 10 s, once it is one of as many as count, and how many there were. Of means
    /// of fewer the least is far below what round trips take: of sixteen that vary by 40 ms, by 40 ms.
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
/// Mean deviations within which the mean is from the luckiest, where the deviation is that of the newest samples: measured
/// over so few it is half of the true one now and then.
const MOST_APART: u64 = 8;
/// Weight of a sample in the mean: one in so many.
const MEAN_OF: u64 = 16;
/// And in the long one.
const LONG_MEAN_OF: u64 = 64;
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
        if u64::from(self.samples) >= LONG_MEAN_OF {
            self.steady.update(now, self.long_mean, MIN_WINDOW / 2);
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
        (self.long_mean, self.samples, self.steady) = (rtt, 1, Least::default());
    }

    /// A sample weighs a sixteenth, and more where samples are rare: what the mean says is never much older than a few
    /// of the smallest round trips.
    fn update_mean(&mut self, now: Instant, rtt: Duration) {
        let Some(before) = self.last_at else {
            (self.mean, self.jitter, self.step, self.long_mean) = (rtt, rtt / 8, rtt / 8, rtt);
            return;
        };
        let scale = (self.min_rtt().as_nanos() * 2).max(RECENT.as_nanos());
        let weight = |most: u64| (now.since(before).as_nanos() * MEAN_OF / scale).clamp(1, most);
        let mix = |old: Duration, new: Duration, weight: u64, of: u64| (old * (of - weight) + new * weight) / of;
        let short = |old: Duration, new: Duration| mix(old, new, weight(MEAN_OF / 2), MEAN_OF);
        self.jitter = short(self.jitter, self.mean.abs_diff(rtt));
        self.step = short(self.step, self.last.abs_diff(rtt));
        self.mean = short(self.mean, rtt);
        // The first ones count alike, and no later one for more than eight.
        let weight = weight(LONG_MEAN_OF / 8);
        let of = (u64::from(self.samples) + 1).clamp(weight + 1, LONG_MEAN_OF);
        self.long_mean = mix(self.long_mean, rtt, weight, of);
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
    /// them took in the mean, and what the newest vary by, which a queue changes little. Its own variation differs from each
    /// packet to the next; a queue that grows and empties is as long for one packet as for the next.
    pub fn without_queue(&self, reorders: bool) -> UnqueuedRtt {
        let Unloaded { mean, deviation, .. } = self.unloaded;
        let least = self.min_rtt();
        let varies = self.varies();
        if reorders && varies * APART > least {
            let steady = self.steady.get().min(least + varies * MOST_APART);
            return UnqueuedRtt { least, mean: mean.max(steady), deviation: deviation.max(varies) };
        }
        UnqueuedRtt { least, mean, deviation }
    }
    /// Mean deviation of the newest samples that no queue explains: what is new with each packet.
    pub fn varies(&self) -> Duration {
        self.jitter.min(self.deviation).min(self.step)
    }
    /// By how much packets come apart on their way where each takes its own time; zero where they do not.
    pub fn comes_apart_by(&self, reorders: bool) -> Duration {
        if reorders { self.without_queue(reorders).comes_apart_by() } else { Duration::ZERO }
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
#[path = "rtt_tests.rs"]
mod tests;
