//! Why chunks are sent, and what was taken for lost: for people who want to know what a mechanism did.

use anabranch_base::{Instant, PathId, Tsn};
use anabranch_policy::loss_cause::Cause;

/// Why a chunk was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransmissionCause {
    /// It had never left.
    First,
    /// Reports said that it was missing (RFC 9260 §7.2.4), or a policy judged so by an acknowledgement.
    Reports,
    /// A timer gave it up: T3 (RFC 9260 §6.3.3), or one that watches over a withdrawn acknowledgement.
    Timer,
    /// To provoke an answer: of a tail, of a path after a timeout, of a window that was closed.
    Probe,
    /// It was in flight and filled a packet of retransmissions (Petlund et al. 2009).
    Bundled,
    /// A scheduler or redundancy wanted a copy beside one in flight.
    Copy,
    /// The path that held it was left, or redundancy took it to another one.
    Moved,
}

impl TransmissionCause {
    /// All of them, in the order in which [`Repairs`] counts.
    pub const ALL: [TransmissionCause; 7] = [
        TransmissionCause::First,
        TransmissionCause::Reports,
        TransmissionCause::Timer,
        TransmissionCause::Probe,
        TransmissionCause::Bundled,
        TransmissionCause::Copy,
        TransmissionCause::Moved,
    ];

    /// One word for logs, statistics and the names of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            TransmissionCause::First => "first",
            TransmissionCause::Reports => "reports",
            TransmissionCause::Timer => "timer",
            TransmissionCause::Probe => "probe",
            TransmissionCause::Bundled => "bundled",
            TransmissionCause::Copy => "copy",
            TransmissionCause::Moved => "moved",
        }
    }
}

/// What is known of a chunk that has left and is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentChunk {
    /// Why it left last; of one that waits to be sent again, why it will.
    pub cause: TransmissionCause,
    /// How often it has left.
    pub transmissions: u16,
    /// Importance of its message, 0 first.
    pub class: u8,
}

/// Chunks sent more than once, by cause. A chunk counts each time it leaves again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs([u64; TransmissionCause::ALL.len()]);

impl Repairs {
    /// Nothing counted yet.
    pub(crate) const NONE: Repairs = Repairs([0; TransmissionCause::ALL.len()]);

    /// How many left for this reason; none for the first time.
    pub fn of(&self, cause: TransmissionCause) -> u64 {
        self.0.get(cause as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn count(&mut self, cause: TransmissionCause) {
        if let Some(n) = self.0.get_mut(cause as usize) {
            *n += 1;
        }
    }
}

/// A transmission that was taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostCopy {
    /// Chunk that it carried.
    pub tsn: Tsn,
    /// Time at which this copy left; with `path` it tells which transmission of the chunk it was.
    pub sent_at: Instant,
    /// Path on which it left.
    pub path: PathId,
    /// What the policy took for the cause; none where no policy was asked, such as when the path was left.
    pub cause: Option<Cause>,
}

/// So many are kept for a user who does not fetch them.
const MOST: usize = 65_536;

/// Transmissions that were taken for lost, for a user who asked for them.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    list: Vec<LostCopy>,
    /// Those before are settled: their cause was named, or never will be.
    settled: usize,
}

impl LossLog {
    /// A copy was taken off its path.
    #[inline]
    pub fn note(&mut self, tsn: Tsn, sent_at: Instant, path: PathId) {
        if self.list.len() < MOST {
            self.list.push(LostCopy { tsn, sent_at, path, cause: None });
        }
    }

    /// The cause of what `path` lost since the last event.
    #[inline]
    pub fn name(&mut self, path: PathId, cause: Cause) {
        let settled = self.settled;
        self.list.iter_mut().skip(settled).filter(|l| l.path == path).for_each(|l| l.cause = Some(cause));
        self.settled = self.list.len();
    }

    /// What was noted since the last call.
    pub fn take(&mut self) -> Vec<LostCopy> {
        self.settled = 0;
        core::mem::take(&mut self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_for_what_one_path_lost_since_the_last_event() {
        let mut log = LossLog::default();
        for (tsn, path) in [(1, 0), (2, 1), (3, 0)] {
            log.note(Tsn(tsn), Instant::from_millis(1), PathId(path));
        }
        log.name(PathId(0), Cause::Radio);
        log.note(Tsn(4), Instant::from_millis(2), PathId(0));
        log.name(PathId(0), Cause::Congestion);
        let causes: Vec<_> = log.take().into_iter().map(|l| l.cause).collect();
        assert_eq!(causes, [Some(Cause::Radio), None, Some(Cause::Radio), Some(Cause::Congestion)]);
        assert_eq!(log.take(), []);
    }

    #[test]
    fn what_is_never_fetched_is_bounded() {
        let mut log = LossLog::default();
        (0..MOST as u32 + 100).for_each(|n| log.note(Tsn(n), Instant::ZERO, PathId(0)));
        assert_eq!(log.take().len(), MOST);
    }

    #[test]
    fn repairs_are_counted_by_cause() {
        let mut r = Repairs::default();
        for cause in TransmissionCause::ALL {
            (0..=cause as u8).for_each(|_| r.count(cause));
        }
        let counted = TransmissionCause::ALL.map(|c| r.of(c));
        assert_eq!(counted, [1, 2, 3, 4, 5, 6, 7]);
    }
}
