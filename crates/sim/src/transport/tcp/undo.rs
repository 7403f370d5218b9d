//! A reduction of the window is taken back when the receiver reports each repetition of the episode as a duplicate, as
//! Linux does: nothing was lost (detection as in RFC 3708, response of RFC 9438 §4.9).

use super::cubic::Cubic;

/// What was before the latest reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub cwnd: f64,
    pub ssthresh: f64,
    pub cubic: Option<Cubic>,
    /// The episode is of segments from here on.
    from: u64,
    /// Segments sent again in it, and those of which no duplicate has been reported.
    again: u64,
    unreported: u64,
}

impl Undo {
    /// An episode begins in which `from` is the first segment not acknowledged.
    pub fn new(cwnd: f64, ssthresh: f64, cubic: Option<Cubic>, from: u64) -> Self {
        Undo { cwnd, ssthresh, cubic, from, again: 0, unreported: 0 }
    }

    /// A segment leaves again.
    pub fn leaves_again(&mut self) {
        (self.again, self.unreported) = (self.again + 1, self.unreported + 1);
    }

    /// Segment `number` came although it was there. Says whether all have by now.
    pub fn duplicate(&mut self, number: u64) -> bool {
        self.unreported = self.unreported.saturating_sub(u64::from(number >= self.from));
        self.again > 0 && self.unreported == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_when_each_repetition_was_a_duplicate() {
        let mut u = Undo::new(10.0, 20.0, None, 5);
        assert!(!u.duplicate(7), "nothing was sent again");
        u.leaves_again();
        u.leaves_again();
        assert!(!u.duplicate(4), "of an earlier episode");
        assert!(!u.duplicate(5));
        assert!(u.duplicate(6));
    }
}
