//! What is followed of a path by its TSNs, where a policy asks for that.

use super::Path;
use super::pseudo_cumulative::PseudoCumulative;

/// The chunks of a path that policies single out by TSN.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// T3 is for what was given as lost, too.
    runs_on: bool,
    /// The next progress, for windows.
    pseudo: PseudoCumulative,
    /// The lowest in flight, which T3 is for.
    lowest: Option<u64>,
    /// The one that is timed.
    timed: Option<u64>,
}

impl Followed {
    // ---- leaving

    /// `tsn` leaves for the first time: it is timed unless another one is.
    pub fn send(&mut self, tsn: u64) {
        self.timed.get_or_insert(tsn);
    }

    /// `tsn`, which left on this path before, leaves again: `here` or on another path. Its round trip says nothing any
    /// more (Karn's rule).
    pub fn send_again(&mut self, tsn: u64, here: bool) {
        self.timed.take_if(|t| *t == tsn);
        self.pseudo.sent_again(here);
    }

    /// What had left before leaves on this path.
    pub fn repair(&mut self) {
        self.pseudo.repairs();
    }

    /// `tsn` leaves on this path. Is it the lowest there now, so that T3 is for it?
    pub fn is_lowest(&mut self, tsn: u64) -> bool {
        let lowest = self.lowest.is_none_or(|l| tsn <= l);
        if lowest {
            self.lowest = Some(tsn);
        }
        lowest
    }

    /// The path is in a new episode of loss: what is timed may be among the lost.
    pub fn stop_timing(&mut self) {
        self.timed = None;
    }

    // ---- acknowledgements

    /// A SACK is about to be accounted.
    pub fn begin_sack(&mut self) {
        self.pseudo.progress = false;
    }

    /// `tsn`, which left on this path last, was acknowledged, cumulatively or by a gap block.
    pub fn acknowledge(&mut self, tsn: u64, cumulatively: bool) {
        self.pseudo.acknowledged(tsn, cumulatively);
    }

    /// Was `tsn` the one that is timed? Another one is from now on.
    pub fn end_timing(&mut self, tsn: u64) -> bool {
        self.timed.take_if(|t| *t == tsn).is_some()
    }

    /// Did the SACK at hand acknowledge what the path expected (CUC)?
    pub fn has_progressed(&self) -> bool {
        self.pseudo.progress
    }

    /// Looks for what is to be expected next, see [`PseudoCumulative::search`].
    pub fn expect(&mut self, lowest: impl Fn(u64, bool) -> Option<u64>) {
        self.pseudo.search(lowest);
    }

    /// The lowest in flight that was known.
    pub fn lowest(&self) -> Option<u64> {
        self.lowest
    }

    /// Only an acknowledgement stops T3 or starts it anew, also where all that is in flight was given as lost.
    pub fn runs_on(&self) -> bool {
        self.runs_on
    }

    /// The lowest in flight is `now`; answers whether it was another one before.
    pub fn move_lowest(&mut self, now: Option<u64>) -> bool {
        core::mem::replace(&mut self.lowest, now) != now
    }
}

impl Path {
    /// From now on its TSNs are followed.
    pub fn follow(&mut self, runs_on: bool) {
        self.followed.get_or_insert_default().runs_on = runs_on;
    }

    /// What is followed of it, if anything is.
    #[inline(always)]
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_deref()
    }

    /// What is followed of it, to note something.
    #[inline(always)]
    pub fn followed_mut(&mut self) -> Option<&mut Followed> {
        self.followed.as_deref_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_chunk_at_a_time_is_timed_and_none_that_left_twice() {
        let mut f = Followed::default();
        (10..20).for_each(|tsn| f.send(tsn));
        assert!((11..20).all(|tsn| !f.end_timing(tsn)), "the first is timed");
        assert!(f.end_timing(10) && !f.end_timing(10));
        f.send(20);
        f.send_again(20, true);
        assert!(!f.end_timing(20));
        f.send(21);
        f.send_again(20, true);
        assert!(f.end_timing(21), "another one was repeated");
        f.send(22);
        f.stop_timing();
        assert!(!f.end_timing(22));
    }

    /// In whatever order chunks leave, T3 is for the lowest.
    #[test]
    fn t3_starts_anew_with_each_lower_tsn() {
        for order in [[5, 6, 7], [7, 6, 5], [6, 5, 7], [6, 7, 5]] {
            let mut f = Followed::default();
            let mut least = u64::MAX;
            for tsn in order {
                assert_eq!(f.is_lowest(tsn), tsn <= least, "{order:?}");
                least = least.min(tsn);
                assert_eq!(f.lowest(), Some(least));
            }
            assert!(!f.move_lowest(Some(5)) && f.move_lowest(Some(6)) && f.move_lowest(None) && !f.move_lowest(None));
        }
    }
}
