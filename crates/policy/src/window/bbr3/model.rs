//! What BBR knows of a path for long: rounds, the largest rate, the smallest round trip, whether the path is full, and how
//! much is acknowledged at once.

use super::sample::Sample;
use anabranch_base::{Duration, Instant, Rate};

/// A round: from the departure of a packet to its acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    ends_at: u64,
    pub count: u64,
    /// The newest acknowledgement began one.
    pub begins: bool,
}

impl Rounds {
    pub fn update(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        self.begins = prior_delivered.is_some_and(|d| d >= self.ends_at);
        if self.begins {
            self.restart(delivered);
            self.count += 1;
        }
    }
    /// A round begins with what leaves now.
    pub fn restart(&mut self, delivered: u64) {
        self.ends_at = delivered;
    }
}

/// The largest rate of this cycle of probing and of the one before.
#[derive(Debug, Default)]
pub(super) struct MaxBandwidth([Rate; 2]);

impl MaxBandwidth {
    pub fn get(&self) -> Rate {
        self.0[0].max(self.0[1])
    }
    pub fn update(&mut self, s: &Sample) {
        if s.rate >= self.get() || !s.app_limited {
            self.0[0] = self.0[0].max(s.rate);
        }
    }
    /// A cycle is over. One that saw nothing leaves what is known.
    pub fn advance(&mut self) {
        if self.0[0] > Rate::ZERO {
            self.0 = [Rate::ZERO, self.0[0]];
        }
    }
}

/// Three rounds in which the rate did not grow by a quarter, of a source that had enough to send.
#[derive(Debug, Default)]
pub(super) struct FullBandwidth {
    /// Since the association began.
    pub reached: bool,
    /// Since one last began to look.
    pub now: bool,
    baseline: Rate,
    rounds: u8,
}

impl FullBandwidth {
    pub fn look_anew(&mut self, from: Rate) {
        (self.now, self.baseline, self.rounds) = (false, from, 0);
    }
    pub fn check(&mut self, round_begins: bool, s: &Sample) {
        if self.now || !round_begins || s.app_limited {
            return;
        }
        let (rate, base) = (s.rate.bytes_per_sec(), self.baseline.bytes_per_sec());
        if rate >= base.saturating_add(base / 4) {
            self.look_anew(s.rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= 3;
        self.reached |= self.now;
    }
}

/// How long the smallest round trip is believed.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
/// A queue is emptied to see it where it did not show for so long.
const PROBE_RTT_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct MinRtt {
    /// Of ten seconds; zero without a sample.
    pub least: Duration,
    least_at: Instant,
    probed: Duration,
    probed_at: Instant,
    /// It did not show for five seconds.
    pub expired: bool,
}

impl MinRtt {
    pub fn begin(&mut self, now: Instant) {
        (self.least_at, self.probed_at) = (now, now);
    }
    /// The queue has been emptied.
    pub fn probed(&mut self, now: Instant) {
        self.probed_at = now;
    }
    pub fn update(&mut self, now: Instant, rtt: Option<Duration>) {
        self.expired = now > self.probed_at + PROBE_RTT_EVERY;
        if let Some(rtt) = rtt
            && (self.expired || self.probed.is_zero() || rtt < self.probed)
        {
            (self.probed, self.probed_at) = (rtt, now);
        }
        let old = now > self.least_at + MIN_RTT_LASTS;
        if !self.probed.is_zero() && (old || self.least.is_zero() || self.probed < self.least) {
            (self.least, self.least_at) = (self.probed, self.probed_at);
        }
    }
}

/// Rounds of half of the window over which the most that was acknowledged at once is remembered.
const HALF_WINDOW: u8 = 5;

/// What is acknowledged beyond what the rate would deliver: acknowledgements come together.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    since: Instant,
    acked: u64,
    most: [u64; 2],
    rounds: u8,
}

impl Aggregation {
    /// Bytes, the most of the last five to ten rounds; of one or two before the path was ever full.
    pub fn extra(&self) -> u64 {
        self.most[0].max(self.most[1])
    }
    pub fn restart(&mut self, now: Instant) {
        (self.since, self.acked) = (now, 0);
    }
    pub fn update(&mut self, now: Instant, s: &Sample, bw: Rate, cwnd: u64, round_begins: bool, full: bool) {
        if round_begins {
            self.rounds += 1;
            if self.rounds >= if full { HALF_WINDOW } else { 1 } {
                (self.most, self.rounds) = ([0, self.most[0]], 0);
            }
        }
        let mut expected = bw.bytes_in(now.since(self.since));
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += s.acked;
        self.most[0] = self.most[0].max((self.acked - expected).min(cwnd));
    }
}
