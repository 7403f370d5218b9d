//! Changes of a link with time.

use super::{ConfigError, Jitter};
use crate::damage::DamageConfig;
use crate::loss::LossConfig;
use crate::queue::Limit;
use anabranch_base::{Duration, Instant, Rate};

/// One thing about a link that can change while it runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    /// Speed. The packet in transmission goes on at the new one. On a link with a trace of deliveries
    /// this ends the trace, and the packet begins again.
    Rate(Option<Rate>),
    /// Delay of what leaves from now on.
    Delay(Duration),
    /// Jitter of what leaves from now on.
    Jitter(Jitter),
    /// Loss model; it starts afresh.
    Loss(LossConfig),
    /// Limit of the queue. What is held stays.
    Limit(Limit),
    /// Share of packets that arrive twice.
    Duplicate(f64),
    /// Share of packets that skip the delay.
    Reorder(f64),
    /// How packets are damaged.
    Damage(DamageConfig),
    /// Largest size taken, in bytes.
    Mtu(Option<u32>),
    /// Cut: what waits or is in transmission is dropped, and all that comes; what is on the way
    /// arrives.
    Down,
    /// The link is up again.
    Up,
}

impl Setting {
    fn check(&self) -> Result<(), ConfigError> {
        match self {
            Setting::Loss(loss) => loss.check().map_err(ConfigError),
            Setting::Damage(damage) => damage.check().map_err(ConfigError),
            Setting::Duplicate(p) | Setting::Reorder(p) if !(0.0..=1.0).contains(p) => {
                Err(ConfigError("duplicate and reorder must lie between 0 and 100 %"))
            }
            Setting::Rate(Some(Rate::ZERO)) => Err(ConfigError("a rate of zero sends nothing: use down to cut a link")),
            _ => Ok(()),
        }
    }
}

/// A setting that takes effect at a time.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Time of the change, since the start of the run ([`Instant::ZERO`]).
    pub at: Duration,
    /// The new setting.
    pub set: Setting,
}

/// Changes in the order of their times, once or again and again.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schedule {
    changes: Vec<Change>,
    period: Option<Duration>,
}

impl Schedule {
    /// Nothing changes.
    pub const fn none() -> Self {
        Schedule { changes: Vec::new(), period: None }
    }

    /// These changes, each once. Those of one time apply in the order given.
    pub fn once(mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|c| c.at);
        Schedule { changes, period: None }
    }

    /// These changes, and all of them again each `period`. Those at or after its end never happen.
    pub fn every(period: Duration, changes: Vec<Change>) -> Self {
        Schedule { period: Some(period), ..Schedule::once(changes) }
    }

    /// Cuts the link from `from` until `until`.
    pub fn outage(from: Duration, until: Duration) -> Self {
        Schedule::once(vec![Change { at: from, set: Setting::Down }, Change { at: until, set: Setting::Up }])
    }

    /// Adds one change.
    pub fn push(&mut self, change: Change) {
        let place = self.changes.partition_point(|c| c.at <= change.at);
        self.changes.insert(place, change);
    }

    /// Repeats what is scheduled each `period`.
    pub fn repeat(&mut self, period: Duration) {
        self.period = Some(period);
    }

    /// The changes of one round.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// These times with other settings.
    #[must_use]
    pub fn map(mut self, f: impl Fn(Setting) -> Setting) -> Self {
        self.changes = self.changes.into_iter().map(|c| Change { set: f(c.set), ..c }).collect();
        self
    }

    /// Length of a round if rounds repeat.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if let (Some(period), Some(last)) = (self.period, self.changes.last())
            && last.at >= period
        {
            return Err(ConfigError("a repeated schedule must be longer than the time of its last change"));
        }
        self.changes.iter().try_for_each(|c| c.set.check())
    }
}

/// A schedule and how far it has come.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    schedule: Schedule,
    round_start: Instant,
    next: usize,
}

impl Progress {
    pub(super) fn new(mut schedule: Schedule) -> Self {
        if let Some(period) = schedule.period {
            schedule.changes.retain(|c| c.at < period);
        }
        Progress { schedule, round_start: Instant::ZERO, next: 0 }
    }

    /// When the next change takes effect.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.schedule.changes.get(self.next).map(|c| self.round_start + c.at)
    }

    /// Takes the next change if its time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Instant, Setting)> {
        let at = self.next_at().filter(|at| *at <= now)?;
        let set = self.schedule.changes.get(self.next)?.set.clone();
        self.next += 1;
        if let (Some(period), true) = (self.schedule.period, self.next == self.schedule.changes.len()) {
            self.next = 0;
            self.round_start += period;
        }
        Some((at, set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(at_ms: u64, ms: u64) -> Change {
        Change { at: Duration::from_millis(at_ms), set: Setting::Delay(Duration::from_millis(ms)) }
    }

    fn times(schedule: Schedule, until_ms: u64) -> Vec<u64> {
        let mut progress = Progress::new(schedule);
        let end = Instant::from_millis(until_ms);
        std::iter::from_fn(|| progress.take_due(end)).map(|(at, _)| at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn once_and_again() {
        let changes = vec![delay(30, 1), delay(10, 2)];
        assert_eq!(times(Schedule::once(changes.clone()), 1_000), [10, 30]);
        assert_eq!(times(Schedule::once(changes.clone()), 29), [10]);
        assert_eq!(times(Schedule::every(Duration::from_millis(50), changes), 131), [10, 30, 60, 80, 110, 130]);
        assert_eq!(times(Schedule::every(Duration::ZERO, vec![delay(0, 1)]), 5), [] as [u64; 0]);
    }

    #[test]
    fn pushing_keeps_order() {
        let mut s = Schedule::outage(Duration::from_millis(7), Duration::from_millis(9));
        s.push(delay(8, 1));
        s.push(delay(7, 1));
        assert_eq!(times(s, 100), [7, 7, 8, 9]);
    }

    #[test]
    fn nonsense_is_named() {
        let too_short = Schedule::every(Duration::from_millis(10), vec![delay(10, 1)]);
        assert!(too_short.check().is_err());
        let bad = Schedule::once(vec![Change { at: Duration::ZERO, set: Setting::Loss(LossConfig::bernoulli(1.5)) }]);
        assert!(bad.check().is_err());
        assert!(Schedule::once(vec![delay(1, 1)]).check().is_ok());
    }
}
