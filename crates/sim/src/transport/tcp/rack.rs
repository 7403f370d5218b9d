//! RACK (RFC 8985 §6): a segment is lost when one that left later has arrived, and the time for which packets may be
//! out of order is over. There is no timestamp option: the shortest round trip decides whether an acknowledgement is of
//! a repetition (§6.2 step 2).

use super::flight::{Delivered, Departure, Flight};
use super::sender::DUPLICATES;
use anabranch_base::{Duration, Instant};

/// For so many recoveries a longer reordering window stays.
const PERSISTS: u32 = 16;
/// The shortest round trip is of two stretches of this length. Linux looks back 300 s.
const STRETCH: Duration = Duration::from_secs(150);

/// The state of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Rack {
    /// Of the segment that left last of those that arrived: when, and the latest round trip.
    newest: Option<Departure>,
    rtt: Duration,
    min_rtt: MinRtt,
    /// The highest segment that arrived.
    fack: Option<u64>,
    reordering_seen: bool,
    /// The window does not grow again before this is acknowledged.
    dsack_round: Option<u64>,
    /// What the reordering window is more than a quarter of the shortest round trip.
    more: u32,
    persist: u32,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// Segments that it says have arrived.
    pub delivered: u64,
    /// When the oldest and the newest of those left that were sent once, and the number of the newest.
    pub once: Option<(Instant, Instant, u64)>,
    newest: Option<Departure>,
    out_of_order: bool,
}

/// What time has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    /// Segments that were lost.
    pub lost: u64,
    /// When all those that wait for it are lost.
    pub look_again: Option<Instant>,
}

impl News {
    /// A segment has arrived. `min_rtt` is the shortest round trip so far.
    pub fn add(&mut self, now: Instant, d: Delivered, fack: &mut Option<u64>, min_rtt: Option<Duration>) {
        self.delivered += 1;
        match *fack {
            Some(highest) if d.number < highest => self.out_of_order |= !d.again,
            _ => *fack = Some(d.number),
        }
        if !d.again {
            let (oldest, newest, number) = self.once.unwrap_or((d.left.at, d.left.at, d.number));
            self.once = Some((oldest.min(d.left.at), newest.max(d.left.at), number.max(d.number)));
        } else if min_rtt.is_some_and(|least| now.since(d.left.at) < least) {
            return; // It answers the first transmission.
        }
        self.newest = self.newest.max(Some(d.left));
    }
}

impl Rack {
    /// Steps 1 to 3: takes an acknowledgement.
    pub fn acknowledged(&mut self, now: Instant, next: u64, ack: &super::AckSegment, flight: &mut Flight) -> News {
        let (mut news, least) = (News::default(), self.min_rtt.get());
        flight.acknowledged(next, ack, |d| news.add(now, d, &mut self.fack, least));
        if let Some((_, newest, _)) = news.once {
            self.min_rtt.add(now, now.since(newest));
        }
        if let Some(newest) = news.newest {
            self.rtt = now.since(newest.at);
            self.newest = self.newest.max(Some(newest));
        }
        self.reordering_seen |= news.out_of_order;
        news
    }

    /// Step 4, in part: the reordering window grows where the receiver reports a duplicate, and shrinks again.
    pub fn adapt(&mut self, una: u64, next: u64, duplicate: bool, recovered: bool) {
        self.dsack_round = self.dsack_round.filter(|round| una < *round);
        if self.dsack_round.is_none() && duplicate {
            self.dsack_round = Some(next);
            self.more += 1;
            self.persist = PERSISTS;
        } else if recovered {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.more = 0;
            }
        }
    }

    /// Steps 4 and 5: which segments are lost by now.
    pub fn detect(&self, now: Instant, repairing: bool, srtt: Option<Duration>, flight: &mut Flight) -> Verdict {
        let mut verdict = Verdict { lost: 0, look_again: None };
        let Some(newest) = self.newest else { return verdict };
        let patience = self.rtt + self.reordering_window(repairing, srtt, flight.arrived());
        verdict.lost = flight.judge(|left, _| {
            if left >= newest {
                return None;
            }
            let due = left.at + patience;
            if due > now {
                verdict.look_again = verdict.look_again.max(Some(due));
            }
            Some(due <= now)
        });
        verdict
    }

    fn reordering_window(&self, repairing: bool, srtt: Option<Duration>, arrived: u64) -> Duration {
        if !self.reordering_seen && (repairing || arrived >= u64::from(DUPLICATES)) {
            return Duration::ZERO;
        }
        let quarter = Duration::from_nanos(self.min_rtt.get().unwrap_or(Duration::ZERO).as_nanos() / 4);
        (quarter * u64::from(1 + self.more)).min(srtt.unwrap_or(quarter))
    }

    /// §6.3: the timer has expired. The first segment is lost, and what left so long ago.
    pub fn timed_out(&self, now: Instant, una: u64, srtt: Option<Duration>, flight: &mut Flight) {
        let patience = self.rtt + self.reordering_window(true, srtt, flight.arrived());
        flight.judge(|left, number| Some(number == una || left.at + patience <= now));
    }
}

/// The shortest of recent round trips.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    begun: Option<Instant>,
    before: Option<Duration>,
    least: Option<Duration>,
}

impl MinRtt {
    fn add(&mut self, now: Instant, rtt: Duration) {
        if now.since(*self.begun.get_or_insert(now)) >= STRETCH {
            (self.begun, self.before, self.least) = (Some(now), self.least, None);
        }
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        self.least.into_iter().chain(self.before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AckSegment, MAX_BLOCKS};
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    fn ack(next: u64, block: (u16, u16)) -> AckSegment {
        let mut blocks = [(0, 0); MAX_BLOCKS];
        blocks[0] = block;
        AckSegment { flow: 0, next, blocks }
    }

    /// Segments 0 to 9, sent 1 ms apart, of which 0 and 1 have been acknowledged 100 ms later.
    fn flying() -> (Rack, Flight) {
        let (mut rack, mut flight) = (Rack::default(), Flight::default());
        (0..10).for_each(|n| flight.leaves(n, MS(n)));
        for n in 0..2 {
            rack.acknowledged(MS(100 + n), n + 1, &ack(n + 1, (0, 0)), &mut flight);
        }
        (rack, flight)
    }

    #[test]
    fn a_later_one_and_a_quarter_of_the_round_trip() {
        let (mut rack, mut flight) = flying();
        // 3 arrives, 2 does not.
        rack.acknowledged(MS(103), 2, &ack(2, (1, 1)), &mut flight);
        let verdict = rack.detect(MS(103), false, RTT, &mut flight);
        assert_eq!(verdict, Verdict { lost: 0, look_again: Some(MS(127)) });
        assert_eq!(rack.detect(MS(126), false, RTT, &mut flight).lost, 0);
        assert_eq!(rack.detect(MS(127), false, RTT, &mut flight), Verdict { lost: 1, look_again: None });
        assert_eq!(flight.first_lost(), Some(2));
    }

    #[test]
    fn three_that_arrived_leave_no_time_until_reordering_is_seen() {
        let (mut rack, mut flight) = flying();
        rack.acknowledged(MS(105), 2, &ack(2, (1, 3)), &mut flight);
        assert_eq!(rack.detect(MS(105), false, RTT, &mut flight).lost, 1);
        let (mut rack, mut flight) = flying();
        rack.acknowledged(MS(103), 2, &ack(2, (1, 1)), &mut flight);
        rack.acknowledged(MS(104), 4, &ack(4, (0, 0)), &mut flight);
        assert!(rack.reordering_seen, "2 was sent once and came after 3");
        rack.acknowledged(MS(107), 4, &ack(4, (1, 3)), &mut flight);
        let verdict = rack.detect(MS(107), false, RTT, &mut flight);
        assert_eq!(verdict, Verdict { lost: 0, look_again: Some(MS(129)) });
    }

    #[test]
    fn a_repetition_that_is_lost_is_noticed() {
        let (mut rack, mut flight) = flying();
        rack.acknowledged(MS(105), 2, &ack(2, (1, 3)), &mut flight);
        assert_eq!(rack.detect(MS(105), false, RTT, &mut flight).lost, 1);
        flight.leaves(2, MS(105));
        flight.leaves(10, MS(106));
        // Of what left before the repetition nothing follows.
        rack.acknowledged(MS(109), 2, &ack(2, (1, 7)), &mut flight);
        assert_eq!(rack.detect(MS(109), true, RTT, &mut flight).lost, 0);
        rack.acknowledged(MS(206), 2, &ack(2, (1, 8)), &mut flight);
        assert_eq!(rack.detect(MS(206), true, RTT, &mut flight).lost, 1);
        assert_eq!(flight.first_lost(), Some(2));
    }

    #[test]
    fn an_answer_to_the_first_transmission_says_nothing_of_the_second() {
        let (mut rack, mut flight) = flying();
        flight.leaves(2, MS(104));
        rack.acknowledged(MS(110), 3, &ack(3, (0, 0)), &mut flight);
        assert_eq!(rack.newest.map(|n| n.at), Some(MS(1)));
        flight.leaves(3, MS(104));
        rack.acknowledged(MS(204), 4, &ack(4, (0, 0)), &mut flight);
        assert_eq!(rack.newest.map(|n| n.at), Some(MS(104)));
    }

    #[test]
    fn duplicates_widen_the_window_by_a_quarter_for_sixteen_recoveries() {
        let (mut rack, _) = flying();
        let quarters = |rack: &Rack| rack.reordering_window(false, RTT, 0).as_millis() / 25;
        rack.adapt(2, 10, true, false);
        rack.adapt(3, 10, true, false);
        assert_eq!(quarters(&rack), 2, "once in a round");
        rack.adapt(10, 20, true, false);
        assert_eq!(quarters(&rack), 3);
        rack.adapt(20, 30, true, false);
        rack.adapt(30, 40, true, false);
        assert_eq!(quarters(&rack), 4, "no longer than the smoothed round trip");
        (0..15).for_each(|_| rack.adapt(50, 50, false, true));
        assert_eq!(quarters(&rack), 4);
        rack.adapt(50, 50, false, true);
        assert_eq!(quarters(&rack), 1);
    }

    #[test]
    fn after_a_timeout_what_left_lately_is_not_lost() {
        let (rack, mut flight) = flying();
        flight.leaves(10, MS(250));
        rack.timed_out(MS(300), 2, RTT, &mut flight);
        assert_eq!((flight.lost(), flight.flying()), (8, 1));
        let (rack, mut flight) = (Rack::default(), Flight::default());
        flight.leaves(0, MS(0));
        rack.timed_out(MS(0), 0, None, &mut flight);
        assert_eq!(flight.lost(), 1, "the first always");
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten() {
        let mut least = MinRtt::default();
        let at = |s: u64| Instant::from_millis(s * 1_000);
        least.add(at(0), Duration::from_millis(10));
        for s in 1..299 {
            least.add(at(s), Duration::from_millis(50));
        }
        assert_eq!(least.get(), Some(Duration::from_millis(10)));
        least.add(at(301), Duration::from_millis(50));
        assert_eq!(least.get(), Some(Duration::from_millis(50)));
    }
}
