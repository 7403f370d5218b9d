//! What a path waits for: its timers, which run or stand still.

use anabranch_base::{Duration, Instant};

/// Least time ahead that T3 is shortened to.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// One of the timers of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathTimer {
    /// T3-rtx (RFC 9260 §6.3.2).
    T3,
    /// The probe before T3 (RFC 8985 §7.2).
    TailProbe,
    /// The packet beyond the window, while an expiry of T3 is not answered.
    WindowProbe,
    /// The end of what is taken for reordering.
    Reordering,
    /// The path becomes suspected; while it is, the expiry that T3 would have had.
    Suspicion,
    /// The next HEARTBEAT, or the end of the wait for an answer.
    Heartbeat,
}

/// The timers of a path. Each stands still until it is started, and does after it has been stopped.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    t3: Option<Instant>,
    tail_probe: Option<Instant>,
    window_probe: Option<Instant>,
    reordering: Option<Instant>,
    suspicion: Option<Instant>,
    heartbeat: Option<Instant>,
}

impl Timers {
    /// When the timer fires, if it runs.
    #[inline(always)]
    pub fn deadline(&self, which: PathTimer) -> Option<Instant> {
        match which {
            PathTimer::T3 => self.t3,
            PathTimer::TailProbe => self.tail_probe,
            PathTimer::WindowProbe => self.window_probe,
            PathTimer::Reordering => self.reordering,
            PathTimer::Suspicion => self.suspicion,
            PathTimer::Heartbeat => self.heartbeat,
        }
    }

    /// Does the timer run?
    #[inline(always)]
    pub fn runs(&self, which: PathTimer) -> bool {
        self.deadline(which).is_some()
    }

    /// Has the timer reached its deadline?
    #[inline(always)]
    pub fn is_due(&self, which: PathTimer, now: Instant) -> bool {
        self.deadline(which).is_some_and(|at| at <= now)
    }

    /// The timer fired, or what it waited for has happened.
    #[inline(always)]
    pub fn stop(&mut self, which: PathTimer) {
        *match which {
            PathTimer::T3 => &mut self.t3,
            PathTimer::TailProbe => &mut self.tail_probe,
            PathTimer::WindowProbe => &mut self.window_probe,
            PathTimer::Reordering => &mut self.reordering,
            PathTimer::Suspicion => &mut self.suspicion,
            PathTimer::Heartbeat => &mut self.heartbeat,
        } = None;
    }

    /// T3 fires at `at`, whenever it would have fired before.
    #[inline(always)]
    pub fn start_t3(&mut self, at: Instant) {
        self.t3 = Some(at);
    }

    /// A path that had been silent answers: T3 waits no longer than for what is in flight, which is until `at`. With
    /// nothing in flight it goes on only if it watches over acknowledgements that were withdrawn.
    pub fn shorten_t3(&mut self, at: Option<Instant>, watches_withdrawn: bool) {
        self.t3 = match (self.t3, at) {
            (Some(old), Some(at)) => Some(old.min(at)),
            (old, _) => old.filter(|_| watches_withdrawn),
        };
    }

    /// The probe before T3 leaves then, or not at all.
    #[inline]
    pub fn plan_tail_probe(&mut self, at: Option<Instant>) {
        self.tail_probe = at;
    }

    /// A packet may leave beyond the window then, or none.
    #[inline]
    pub fn plan_window_probe(&mut self, at: Option<Instant>) {
        self.window_probe = at;
    }

    /// A copy that is not taken for lost yet will be at `at`. The earliest such time counts.
    pub fn expect_reordering_until(&mut self, at: Instant) {
        self.reordering = Some(self.reordering.map_or(at, |earlier| earlier.min(at)));
    }

    /// The silence of the path is judged then, or not at all.
    #[inline]
    pub fn plan_suspicion(&mut self, at: Option<Instant>) {
        self.suspicion = at;
    }

    /// The next HEARTBEAT leaves then, or none.
    pub fn plan_heartbeat(&mut self, at: Option<Instant>) {
        self.heartbeat = at;
    }

    /// Everything was taken off the path: only its HEARTBEATs go on.
    pub fn stop_for_data(&mut self) {
        *self = Timers { heartbeat: self.heartbeat, ..Timers::default() };
    }

    /// TSNs begin anew: nothing is left to be repeated or judged.
    pub fn begin_anew(&mut self) {
        (self.t3, self.tail_probe, self.reordering) = (None, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PathTimer; 6] = [
        PathTimer::T3,
        PathTimer::TailProbe,
        PathTimer::WindowProbe,
        PathTimer::Reordering,
        PathTimer::Suspicion,
        PathTimer::Heartbeat,
    ];

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// All of them, the one after the other.
    fn all_running() -> Timers {
        let mut t = Timers::default();
        t.start_t3(at(10));
        t.plan_tail_probe(Some(at(20)));
        t.plan_window_probe(Some(at(30)));
        t.expect_reordering_until(at(40));
        t.plan_suspicion(Some(at(50)));
        t.plan_heartbeat(Some(at(60)));
        t
    }

    #[test]
    fn each_timer_is_due_from_its_deadline_until_it_is_stopped_and_touches_no_other() {
        for which in ALL {
            let mut t = all_running();
            let deadline = t.deadline(which).unwrap();
            for ms in 0..100 {
                assert_eq!(t.is_due(which, at(ms)), at(ms) >= deadline, "{which:?} at {ms}");
            }
            t.stop(which);
            assert!(!t.runs(which) && !t.is_due(which, at(1_000)), "{which:?}");
            assert_eq!(ALL.iter().filter(|w| t.runs(**w)).count(), ALL.len() - 1, "{which:?}");
        }
    }

    #[test]
    fn reordering_ends_with_the_copy_that_is_lost_first() {
        for order in [[30, 10, 20], [10, 20, 30], [20, 30, 10]] {
            let mut t = Timers::default();
            order.iter().for_each(|ms| t.expect_reordering_until(at(*ms)));
            assert_eq!(t.deadline(PathTimer::Reordering), Some(at(10)), "{order:?}");
        }
    }

    /// Whatever T3 was backed off to, a path that answers is held to what it has in flight; and an answer never starts
    /// a timer that did not run.
    #[test]
    fn an_answer_shortens_t3_and_never_lengthens_it() {
        for old in [None, Some(at(50)), Some(at(60_000))] {
            for new in (0..200).step_by(10).map(at) {
                let mut t = Timers::default();
                old.into_iter().for_each(|old| t.start_t3(old));
                t.shorten_t3(Some(new), false);
                assert_eq!(t.deadline(PathTimer::T3), old.map(|old| old.min(new)));
            }
            for watches in [false, true] {
                let mut t = Timers::default();
                old.into_iter().for_each(|old| t.start_t3(old));
                t.shorten_t3(None, watches);
                assert_eq!(t.deadline(PathTimer::T3), old.filter(|_| watches));
            }
        }
    }

    #[test]
    fn a_path_without_data_keeps_its_heartbeats() {
        let mut t = all_running();
        t.stop_for_data();
        assert_eq!(ALL.map(|w| t.runs(w)), [false, false, false, false, false, true]);
        let mut t = all_running();
        t.begin_anew();
        assert_eq!(ALL.map(|w| t.runs(w)), [false, false, true, false, true, true]);
    }
}
