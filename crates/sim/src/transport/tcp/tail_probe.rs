//! Tail loss probes (RFC 8985 §7): where acknowledgements stay away a segment leaves after two round trips, whose
//! answer shows what was lost, in place of a time-out.

use anabranch_base::Duration;

/// Before a round trip has been measured.
const FIRST: Duration = Duration::from_secs(1);

/// The state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// One past the highest segment sent when the latest probe left, until that is acknowledged or of no interest.
    end: Option<u64>,
    /// Did that probe repeat a segment?
    repeats: bool,
    /// Has a round trip been measured since?
    measured: bool,
}

impl TailProbe {
    /// A round trip has been measured.
    pub fn measured(&mut self) {
        self.measured = true;
    }

    /// A recovery begins, of whichever kind.
    pub fn forget(&mut self) {
        (self.end, self.repeats) = (None, false);
    }

    /// How long to wait (§7.2); `flight` segments are outstanding, and an acknowledgement may wait for `ack_delay`.
    pub fn wait(srtt: Option<Duration>, flight: u64, ack_delay: Duration) -> Duration {
        let Some(srtt) = srtt else { return FIRST };
        srtt * 2 + if flight == 1 { ack_delay } else { Duration::ZERO }
    }

    /// May a probe leave (§7.3)?
    pub fn is_due(&self) -> bool {
        self.end.is_none() && self.measured
    }

    /// A probe leaves. `end` is one past the highest segment sent, itself included.
    pub fn leaves(&mut self, end: u64, repeats: bool) {
        *self = TailProbe { end: Some(end), repeats, measured: false };
    }

    /// An acknowledgement up to `next` (§7.4.2): `duplicate` is the segment it reports as a duplicate, `plain` says that
    /// it acknowledges nothing at all. Says whether the probe has repaired a loss.
    pub fn acknowledged(&mut self, next: u64, duplicate: Option<u64>, plain: bool) -> bool {
        let Some(end) = self.end.filter(|end| next >= *end) else { return false };
        let spurious = duplicate == Some(end - 1) || (next == end && plain);
        let repaired = self.repeats && !spurious && next > end;
        if !self.repeats || spurious || repaired {
            self.end = None;
        }
        repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn two_round_trips_and_what_an_acknowledgement_may_wait() {
        let wait = |flight| TailProbe::wait(Some(MS(30)), flight, MS(200));
        assert_eq!((wait(1), wait(2)), (MS(260), MS(60)));
        assert_eq!(TailProbe::wait(None, 1, MS(200)), MS(1_000));
    }

    #[test]
    fn one_at_a_time_and_none_without_a_measurement() {
        let mut p = TailProbe::default();
        assert!(!p.is_due());
        p.measured();
        assert!(p.is_due());
        p.leaves(10, true);
        assert!(!p.is_due());
        p.measured();
        assert!(!p.is_due(), "one is in flight");
        p.forget();
        assert!(p.is_due());
    }

    #[test]
    fn what_the_answer_says() {
        let answers = |repeats, next: &[(u64, Option<u64>, bool)]| {
            let mut p = TailProbe::default();
            p.leaves(10, repeats);
            let all = next.iter().map(|a| p.acknowledged(a.0, a.1, a.2)).collect::<Vec<bool>>();
            (all, p.end)
        };
        // New data is acknowledged as any other.
        assert_eq!(answers(false, &[(10, None, false)]), (vec![false], None));
        // Both copies came: by D-SACK, or by a duplicate without blocks.
        assert_eq!(answers(true, &[(10, None, false), (10, Some(9), false)]), (vec![false, false], None));
        assert_eq!(answers(true, &[(10, None, false), (10, None, true)]), (vec![false, false], None));
        // One of them was lost, as what follows shows.
        assert_eq!(answers(true, &[(10, None, false), (11, None, false)]), (vec![false, true], None));
        assert_eq!(answers(true, &[(9, None, false)]), (vec![false], Some(10)));
    }
}
