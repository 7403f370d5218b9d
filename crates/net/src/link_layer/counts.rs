//! From a driver's counts to the report that policies see.

use super::nl80211::Station;
use anabranch_base::{Modulation, Technology};
use anabranch_policy::view::FrameErrors;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A station that a list misses is remembered for this long: the kernel's list is no snapshot, and one that other stations
/// leave or join meanwhile may lack some.
const MEMORY: Duration = Duration::from_secs(30);
/// Stations that are known at once, those that left included. Further ones do not count: who can associate under many
/// addresses must not fill our memory.
const MOST: usize = 4_096;
/// A count of 32 bits that fell by wrapping has grown by less than this in one interval; otherwise it began anew.
const WRAP: u32 = 1 << 24;

/// Frames of one interface since it is looked at, over all its stations.
///
/// A driver does not say how many frames needed a repetition, but how many repetitions there were. So each transmission
/// is a frame here, and each that was repeated or given up is one in error: the share of errors is that of one
/// transmission, which is how many frames need a repetition where errors are independent.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Stations by address, as each was last seen, and when.
    known: BTreeMap<[u8; 6], (Station, Instant)>,
    erroneous: u64,
    total: u64,
    frame: u32,
    modulation: Modulation,
}

/// What a station's counts say of the time since it was last seen.
#[derive(Default)]
struct Grown {
    packets: u64,
    repeats: u64,
    failed: u64,
    bytes: u64,
}

impl Grown {
    /// `before` is the same station earlier. Counts that fell belong to a new association of it, which began at zero.
    fn since(before: &Station, now: &Station) -> Grown {
        let pairs = [
            (now.packets, before.packets),
            (now.repeats.unwrap_or(0), before.repeats.unwrap_or(0)),
            (now.failed.unwrap_or(0), before.failed.unwrap_or(0)),
        ];
        let anew = pairs.iter().any(|(now, before)| now < before && now.wrapping_sub(*before) >= WRAP);
        let [packets, repeats, failed] =
            pairs.map(|(now, before)| u64::from(if anew { now } else { now.wrapping_sub(before) }));
        // Some drivers count bytes in 32 bits.
        let wrapped = || u64::from((now.bytes as u32).wrapping_sub(before.bytes as u32));
        let bytes = if anew { now.bytes } else { now.bytes.checked_sub(before.bytes).unwrap_or_else(wrapped) };
        Grown { packets, repeats, failed, bytes }
    }
}

impl Counts {
    /// Adds what came since the last look; a report where at least one station's errors are counted.
    ///
    /// A station that is not known counts from now on: how much of its life lies before the last look does not show, since
    /// lists may have missed it.
    pub fn look(&mut self, stations: &[Station], now: Instant) -> Option<FrameErrors> {
        let (mut packets, mut bytes, mut most) = (0, 0, 0);
        let mut strangers = Vec::new();
        for s in stations {
            let Some((before, seen)) = self.known.get_mut(&s.address) else {
                strangers.push(*s);
                continue;
            };
            let grown = Grown::since(before, s);
            (*before, *seen) = (*s, now);
            let sent = grown.packets + grown.repeats;
            self.total += sent;
            self.erroneous += (grown.repeats + grown.failed).min(sent);
            packets += grown.packets;
            bytes += grown.bytes;
            if grown.packets >= most {
                (most, self.modulation) = (grown.packets, s.modulation);
            }
        }
        // Before any frame was counted: of the one that has had most.
        if self.modulation == Modulation::Unknown
            && let Some(busiest) = strangers.iter().max_by_key(|s| s.packets)
        {
            self.modulation = busiest.modulation;
        }
        self.known.retain(|_, (_, seen)| now.saturating_duration_since(*seen) < MEMORY);
        self.meet(&strangers, now);
        if let Some(mean) = bytes.checked_div(packets) {
            self.frame = u32::try_from(mean).unwrap_or(u32::MAX);
        }
        stations.iter().any(|s| s.repeats.or(s.failed).is_some()).then_some(FrameErrors {
            erroneous: self.erroneous,
            total: self.total,
            frame: self.frame,
            modulation: self.modulation,
            technology: Technology::Wlan,
        })
    }

    /// Remembers stations from now on; those that left longest ago make room.
    fn meet(&mut self, strangers: &[Station], now: Instant) {
        let free = MOST - self.known.len().min(MOST);
        if let Some(lacking) = strangers.len().checked_sub(free) {
            let mut left: Vec<_> = self.known.iter().filter(|(_, k)| k.1 < now).map(|(a, k)| (k.1, *a)).collect();
            left.sort_unstable();
            left.iter().take(lacking).for_each(|(_, address)| {
                self.known.remove(address);
            });
        }
        let free = MOST - self.known.len().min(MOST);
        self.known.extend(strangers.iter().take(free).map(|s| (s.address, (*s, now))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(id: u16, packets: u32, repeats: u32, failed: u32) -> Station {
        let [high, low] = id.to_be_bytes();
        Station {
            address: [2, 0, 0, 0, high, low],
            packets,
            repeats: Some(repeats),
            failed: Some(failed),
            bytes: u64::from(packets) * 1_200,
            modulation: Modulation::Qam64,
        }
    }
    fn at(ms: u64) -> Instant {
        use std::sync::OnceLock;
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now) + Duration::from_millis(ms)
    }
    /// The report of a look at these stations at `ms`.
    fn seen_at(c: &mut Counts, ms: u64, stations: &[Station]) -> (u64, u64) {
        let r = c.look(stations, at(ms)).expect("counted");
        (r.erroneous, r.total)
    }
    fn seen(c: &mut Counts, stations: &[Station]) -> (u64, u64) {
        seen_at(c, 0, stations)
    }

    #[test]
    fn what_was_before_the_first_look_does_not_count() {
        let mut c = Counts::default();
        let first = c.look(&[station(1, 5_000, 700, 30)], at(0)).unwrap();
        assert_eq!((first.erroneous, first.total, first.modulation), (0, 0, Modulation::Qam64));
        let r = c.look(&[station(1, 5_090, 710, 32)], at(0)).unwrap();
        assert_eq!((r.erroneous, r.total), (12, 100));
        assert_eq!((r.frame, r.modulation, r.technology), (1_200, Modulation::Qam64, Technology::Wlan));
        assert_eq!(c.look(&[station(1, 5_090, 710, 32)], at(0)).unwrap(), r, "nothing was sent");
    }

    #[test]
    fn stations_that_go_and_come_take_nothing_with_them() {
        let mut c = Counts::default();
        seen(&mut c, &[station(1, 100, 0, 0), station(2, 100, 0, 0)]);
        assert_eq!(seen(&mut c, &[station(1, 150, 50, 0)]), (50, 100));
        // Station 2 comes again and counts from zero; station 1 was reset in between.
        assert_eq!(seen(&mut c, &[station(1, 20, 0, 0), station(2, 30, 10, 5)]), (65, 160));
    }

    /// Station 1 lives for long and sends ten packets between two looks, one of them repeated; lists miss it as `missed`
    /// says. Whatever they miss, at the end everything that it sent since it was first seen has counted, once.
    #[test]
    fn a_station_that_lists_miss_counts_what_it_sent_meanwhile() {
        for missed in [&[1][..], &[1, 2, 3], &[1, 3, 5, 7], &[1, 2, 4, 5, 6], &[3, 8], &[]] {
            let mut c = Counts::default();
            let mut last = (0, 0);
            for look in 0..10u32 {
                let mut list = vec![station(2, 10 * look, 0, 0)];
                if !missed.contains(&look) {
                    list.push(station(1, 1_000_000 + 9 * look, 50_000 + look, 0));
                }
                let now = seen_at(&mut c, 100 * u64::from(look), &list);
                let longest = 1 + missed.len() as u64;
                assert!(now.1 - last.1 <= 10 + 10 * longest, "{missed:?}: look {look} brought {last:?} to {now:?}");
                last = now;
            }
            assert_eq!(last, (9, 90 + 90), "{missed:?}");
        }
    }

    #[test]
    fn a_station_that_associated_again_counts_from_zero() {
        // Any of its counts shows it, even if others are beyond what they were.
        for (before, after, expected) in [
            ((1_000, 100, 10), (50, 4, 1), (5, 54)),
            ((1_000, 2, 10), (50, 4, 1), (5, 54)),
            ((20, 100, 0), (50, 4, 1), (5, 54)),
            ((20, 2, 10), (50, 4, 1), (5, 54)),
        ] {
            for absent in [0, 1, 4] {
                let mut c = Counts::default();
                seen(&mut c, &[station(1, before.0, before.1, before.2), station(2, 0, 0, 0)]);
                for look in 0..absent {
                    assert_eq!(seen_at(&mut c, look, &[station(2, 0, 0, 0)]), (0, 0));
                }
                let all = [station(1, after.0, after.1, after.2), station(2, 0, 0, 0)];
                assert_eq!(seen_at(&mut c, absent, &all), expected, "{before:?} {absent}");
            }
        }
    }

    #[test]
    fn a_station_that_was_never_seen_or_is_forgotten_counts_from_now_on() {
        let mut c = Counts::default();
        seen(&mut c, &[station(2, 0, 0, 0)]);
        assert_eq!(seen_at(&mut c, 100, &[station(1, 1_000_000, 50_000, 3), station(2, 0, 0, 0)]), (0, 0));
        assert_eq!(seen_at(&mut c, 200, &[station(1, 1_000_010, 50_000, 3), station(2, 0, 0, 0)]), (0, 10));
        let memory = MEMORY.as_millis() as u64;
        for (away, expected) in [(memory, (1, 20)), (memory + 200, (0, 0))] {
            let mut c = Counts::default();
            seen(&mut c, &[station(1, 1_000_010, 50_000, 3), station(2, 0, 0, 0)]);
            seen_at(&mut c, away - 100, &[station(2, 0, 0, 0)]);
            let again = [station(1, 1_000_029, 50_001, 3), station(2, 0, 0, 0)];
            assert_eq!(seen_at(&mut c, away, &again), expected, "{away}");
        }
    }

    #[test]
    fn however_many_stations_come_memory_is_bounded_and_those_that_stay_count() {
        let mut c = Counts::default();
        seen(&mut c, &[station(0, 0, 0, 0)]);
        let count = MOST as u16;
        for look in 1..20u16 {
            // New addresses at every look, more than are remembered.
            let strangers =
                (0..count + 100).map(|n| station(1 + (look * 3_001).wrapping_add(n) % 60_000, 900_000, 9, 9));
            let mut list: Vec<_> = strangers.collect();
            list.push(station(0, 10 * u32::from(look), 0, 0));
            let (erroneous, total) = seen_at(&mut c, 100 * u64::from(look), &list);
            assert_eq!((erroneous, total), (0, 10 * u64::from(look)));
            assert!(c.known.len() <= MOST, "{}", c.known.len());
        }
        // A list that is full of stations that stay leaves room for those alone that it had before.
        let all = |packets| (0..2 * count).map(|n| station(n, packets, 0, 0)).collect::<Vec<_>>();
        let mut c = Counts::default();
        seen(&mut c, &all(5));
        assert_eq!(seen_at(&mut c, 100, &all(7)), (0, 2 * u64::from(count)));
    }

    #[test]
    fn counts_that_wrap_go_on() {
        let mut c = Counts::default();
        seen(&mut c, &[station(1, u32::MAX, u32::MAX, u32::MAX)]);
        assert_eq!(seen(&mut c, &[station(1, 10, 2, 1)]), (5, 14));
        // One of them alone, while the others have millions already.
        let mut c = Counts::default();
        seen(&mut c, &[station(1, u32::MAX - 4, 3_000_000, 70_000)]);
        assert_eq!(seen(&mut c, &[station(1, 5, 3_000_001, 70_000)]), (1, 11));
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
        assert_eq!(c.look(&[silent(10)], at(0)), None);
        assert_eq!(c.look(&[silent(90)], at(0)), None);
        assert_eq!(c.look(&[], at(0)), None, "nor is one without a station");
        // Failures alone are a report: those frames were in error.
        let mut c = Counts::default();
        let failures = |packets, failed| Station { failed: Some(failed), ..silent(packets) };
        c.look(&[failures(10, 1)], at(0));
        assert_eq!(c.look(&[failures(110, 3)], at(0)).map(|r| (r.erroneous, r.total)), Some((2, 100)));
    }
}
