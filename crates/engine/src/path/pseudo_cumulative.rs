//! The next progress of a path by TSN (Iyengar, Amer, Stewart 2006, CUC).
//!
//! A path expects two TSNs: the lowest outstanding one sent once, and the lowest one sent again. Its window grows when
//! one of them is acknowledged. The first stays the expected one when it is lost and sent again on the same path, so
//! that nothing grows before it is repaired.

/// What a path expects, and whether it has to be looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PseudoCumulative {
    once: Option<u64>,
    again: Option<u64>,
    find_once: bool,
    find_again: bool,
    /// The SACK at hand acknowledged one of them.
    pub progress: bool,
}

impl Default for PseudoCumulative {
    fn default() -> Self {
        PseudoCumulative { once: None, again: None, find_once: true, find_again: false, progress: false }
    }
}

impl PseudoCumulative {
    /// A chunk of the path was acknowledged, cumulatively or by a gap block.
    pub fn acknowledged(&mut self, tsn: u64, cumulatively: bool) {
        let (once, again) = (self.once == Some(tsn), self.again == Some(tsn));
        if cumulatively || once || again {
            self.progress = true;
            self.find_once |= cumulatively || once;
            self.find_again |= self.again.is_some();
        }
    }

    /// A chunk of the path was sent again, on this path (`here`) or on another one.
    pub fn sent_again(&mut self, here: bool) {
        self.find_once |= !here;
        self.find_again |= !here && self.again.is_some();
    }

    /// A chunk that was sent before leaves on this path.
    pub fn repairs(&mut self) {
        self.find_again |= self.again.is_none();
    }

    /// Looks for what is to be expected. `lowest` answers the lowest outstanding TSN of the path from one on, of those
    /// sent again or of those sent once.
    pub fn search(&mut self, lowest: impl Fn(u64, bool) -> Option<u64>) {
        if self.find_once
            && let Some(found) = lowest(self.once.unwrap_or(0), false)
        {
            self.once = Some(found);
            self.find_once = false;
        }
        if self.find_again {
            self.again = lowest(0, true);
            self.find_again = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(once: &[u64], again: &[u64]) -> impl Fn(u64, bool) -> Option<u64> {
        move |from, repaired| {
            let list = if repaired { again } else { once };
            list.iter().copied().find(|t| *t >= from)
        }
    }

    #[test]
    fn progress_is_the_lowest_of_its_kind() {
        let mut p = PseudoCumulative::default();
        p.search(among(&[5, 6, 9], &[]));
        p.acknowledged(6, false);
        assert!(!p.progress, "5 is expected");
        p.acknowledged(5, false);
        assert!(p.progress);
        p.progress = false;
        p.search(among(&[9], &[]));
        p.acknowledged(9, false);
        assert!(p.progress);
    }

    #[test]
    fn a_loss_repaired_on_its_own_path_holds_the_window() {
        let mut p = PseudoCumulative::default();
        p.search(among(&[5, 6, 9], &[]));
        p.sent_again(true);
        p.repairs();
        p.search(among(&[6, 9], &[5]));
        p.acknowledged(6, false);
        assert!(!p.progress);
        p.acknowledged(5, false);
        assert!(p.progress);
    }

    #[test]
    fn a_loss_that_moved_elsewhere_does_not() {
        let mut p = PseudoCumulative::default();
        p.search(among(&[5, 6, 9], &[]));
        p.sent_again(false);
        p.search(among(&[6, 9], &[]));
        p.acknowledged(6, false);
        assert!(p.progress);
    }
}
