//! From a driver's counts to the report that policies see.

use super::nl80211::Station;
use anabranch_base::{Modulation, Technology};
use anabranch_policy::view::FrameErrors;

/// Frames of one interface since it is looked at, over all its stations.
///
/// A driver does not say how many frames needed a repetition, but how many repetitions there were. So each transmission
/// is a frame here, and each that was repeated or given up is one in error: the share of errors is that of one
/// transmission, which is how many frames need a repetition where errors are independent.
#[derive(Debug, Default)]
pub(super) struct Counts {
    stations: Vec<Station>,
    begun: bool,
    erroneous: u64,
    total: u64,
    frame: u32,
    modulation: Modulation,
}

/// What came since; a count that has fallen began anew.
fn grown(now: u32, before: u32) -> u64 {
    now.checked_sub(before).unwrap_or(now).into()
}

impl Counts {
    /// Adds what came since the last look; a report where at least one station's errors are counted.
    pub fn look(&mut self, stations: Vec<Station>) -> Option<FrameErrors> {
        let (mut packets, mut bytes, mut most) = (0, 0, 0);
        for s in &stations {
            let before = self.stations.iter().find(|b| b.address == s.address);
            // Of stations that are there at the first look only what comes from now on counts: those that come later
            // begin at zero.
            let none = Station { packets: 0, repeats: None, failed: None, bytes: 0, ..*s };
            let before = before.copied().unwrap_or(if self.begun { none } else { *s });
            let sent = grown(s.packets, before.packets);
            let repeats = grown(s.repeats.unwrap_or(0), before.repeats.unwrap_or(0));
            let failed = grown(s.failed.unwrap_or(0), before.failed.unwrap_or(0));
            self.total += sent + repeats;
            self.erroneous += (repeats + failed).min(sent + repeats);
            packets += sent;
            bytes += s.bytes.checked_sub(before.bytes).unwrap_or(s.bytes);
            if sent >= most {
                (most, self.modulation) = (sent, s.modulation);
            }
        }
        if let Some(mean) = bytes.checked_div(packets) {
            self.frame = u32::try_from(mean).unwrap_or(u32::MAX);
        }
        self.begun = true;
        let is_counted = stations.iter().any(|s| s.repeats.or(s.failed).is_some());
        self.stations = stations;
        is_counted.then_some(FrameErrors {
            erroneous: self.erroneous,
            total: self.total,
            frame: self.frame,
            modulation: self.modulation,
            technology: Technology::Wlan,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(id: u8, packets: u32, repeats: u32, failed: u32) -> Station {
        Station {
            address: [2, 0, 0, 0, 0, id],
            packets,
            repeats: Some(repeats),
            failed: Some(failed),
            bytes: u64::from(packets) * 1_200,
            modulation: Modulation::Qam64,
        }
    }
    fn seen(c: &mut Counts, stations: &[Station]) -> (u64, u64) {
        let r = c.look(stations.to_vec()).expect("counted");
        (r.erroneous, r.total)
    }

    #[test]
    fn what_was_before_the_first_look_does_not_count() {
        let mut c = Counts::default();
        assert_eq!(seen(&mut c, &[station(1, 5_000, 700, 30)]), (0, 0));
        let r = c.look(vec![station(1, 5_090, 710, 32)]).unwrap();
        assert_eq!((r.erroneous, r.total), (12, 100));
        assert_eq!((r.frame, r.modulation, r.technology), (1_200, Modulation::Qam64, Technology::Wlan));
        assert_eq!(c.look(vec![station(1, 5_090, 710, 32)]).unwrap(), r, "nothing was sent");
    }

    #[test]
    fn stations_that_go_and_come_take_nothing_with_them() {
        let mut c = Counts::default();
        seen(&mut c, &[station(1, 100, 0, 0), station(2, 100, 0, 0)]);
        assert_eq!(seen(&mut c, &[station(1, 150, 50, 0)]), (50, 100));
        // Station 2 comes again and counts from zero; station 1 was reset in between.
        assert_eq!(seen(&mut c, &[station(1, 20, 0, 0), station(2, 30, 10, 5)]), (65, 160));
    }

    #[test]
    fn counts_that_wrap_begin_anew() {
        let mut c = Counts::default();
        seen(&mut c, &[station(1, u32::MAX, u32::MAX, u32::MAX)]);
        assert_eq!(seen(&mut c, &[station(1, 10, 2, 1)]), (3, 12));
    }

    #[test]
    fn errors_are_never_more_than_frames() {
        let mut c = Counts::default();
        seen(&mut c, &[station(1, 0, 0, 0)]);
        assert_eq!(seen(&mut c, &[station(1, 2, 1, 90)]), (3, 3));
    }

    #[test]
    fn a_driver_that_counts_no_errors_is_silent() {
        let mut c = Counts::default();
        let silent = |packets| Station { repeats: None, failed: None, ..station(1, packets, 0, 0) };
        assert_eq!(c.look(vec![silent(10)]), None);
        assert_eq!(c.look(vec![silent(90)]), None);
        assert_eq!(c.look(Vec::new()), None, "nor is one without a station");
        // Failures alone are a report: those frames were in error.
        let mut c = Counts::default();
        let failures = |packets, failed| Station { failed: Some(failed), ..silent(packets) };
        c.look(vec![failures(10, 1)]);
        assert_eq!(c.look(vec![failures(110, 3)]).map(|r| (r.erroneous, r.total)), Some((2, 100)));
    }
}
