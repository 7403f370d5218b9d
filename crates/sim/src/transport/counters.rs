//! What arrived of a flow, and when.

use crate::link::Tally;
use anabranch_base::{Duration, Instant};

/// What a receiver saw of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounters {
    /// What came for the first time, in bytes of payload.
    pub received: Tally,
    /// What came again.
    pub duplicates: Tally,
    /// When the first packet came.
    pub first: Option<Instant>,
    /// When the latest came.
    pub last: Option<Instant>,
    delay_sum: u128,
    delay_min: Duration,
    delay_max: Duration,
}

impl FlowCounters {
    /// Counts a packet of `bytes` that left at `sent`; only what comes for the first time counts for delay.
    pub fn count(&mut self, now: Instant, sent: Instant, bytes: u32, again: bool) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        if again {
            self.duplicates.add(bytes);
            return;
        }
        let delay = now.since(sent);
        self.delay_min = if self.received.packets == 0 { delay } else { self.delay_min.min(delay) };
        self.delay_max = self.delay_max.max(delay);
        self.delay_sum += u128::from(delay.as_nanos());
        self.received.add(bytes);
    }

    /// Mean time from leaving the sender to arrival; `None` before the first packet.
    pub fn mean_delay(&self) -> Option<Duration> {
        let mean = self.delay_sum.checked_div(u128::from(self.received.packets))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// Shortest and longest time from leaving the sender to arrival; `None` before the first packet.
    pub fn delay_range(&self) -> Option<(Duration, Duration)> {
        (self.received.packets > 0).then_some((self.delay_min, self.delay_max))
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &FlowCounters) -> Self {
        let (mut sum, empty) = (*self, self.received.packets == 0);
        sum.received = sum.received.plus(other.received);
        sum.duplicates = sum.duplicates.plus(other.duplicates);
        sum.first = [self.first, other.first].into_iter().flatten().min();
        sum.last = self.last.max(other.last);
        sum.delay_sum += other.delay_sum;
        sum.delay_max = self.delay_max.max(other.delay_max);
        if other.received.packets > 0 {
            sum.delay_min = if empty { other.delay_min } else { self.delay_min.min(other.delay_min) };
        }
        sum
    }
}
