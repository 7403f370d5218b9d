//! A train of padded HEARTBEATs: what the time between its answers says of the path's rate.
//!
//! Packets that leave together are spread by the slowest link on their way, and so are their answers: the time from one to
//! the next is what that link takes for a packet (packet trains; Dovrolis, Ramanathan, Moore 2001). Where each packet takes
//! a time of its own as well, the answers lie close to a line while that is little. Where it is not, they are spread by more
//! than the link, which likely carries what came in that time at least, and the start begins there. What was held somewhere
//! comes in bunches instead, whose time says nothing.

use anabranch_base::{Duration, Instant, Rate};

/// HEARTBEATs of a train.
pub(crate) const LENGTH: usize = 12;
/// An answer so near the end is enough: the last ones may be lost.
const ENOUGH: usize = LENGTH - 3;

/// A train is answered regularly where at least so many answers came, none off the line through them by more than one part
/// of so many of the train's time.
const ANSWERS: i128 = 6;
const REGULAR: i128 = 4;

/// What comes within one part of so many of the time from the first answer to the last comes together.
const TOGETHER: u64 = 16;

/// An answer that takes so many times as long as the first one, and a second, comes over a path that has changed.
const LATE: u64 = 3;
const LATE_BY: Duration = Duration::from_secs(1);

/// So many HEARTBEATs of the peer in the time of a train are one of its own.
const CROSSED: usize = 3;

/// A train that is under way, or over.
#[derive(Clone, Debug)]
pub(crate) struct Train {
    nonces: [u64; LENGTH],
    sent_at: Instant,
    /// When each was answered.
    answered: [Option<Instant>; LENGTH],
    /// HEARTBEATs of the peer that came before it had shown a rate.
    crossed: usize,
    /// One near the end was answered: those that are still to come are late or lost.
    done: bool,
    /// It has shown a rate.
    shown: bool,
}

/// What the answers show of a path's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainRate {
    /// They came regularly: this is it.
    Exact(Rate),
    /// Each packet took a time of its own as well, and together they were spread by both: it carries that much, and may carry
    /// far more.
    AtLeast(Rate),
}

impl TrainRate {
    /// Either of both.
    pub fn rate(self) -> Rate {
        match self {
            TrainRate::Exact(rate) | TrainRate::AtLeast(rate) => rate,
        }
    }
}

/// What an answer to one of a train says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainAnswer {
    /// The first one: the train had left then.
    First(Instant),
    /// Enough came: what they show of the path's rate.
    Rate(TrainRate),
    /// One of the others.
    Further,
}

impl Train {
    /// HEARTBEATs with these nonces leave now.
    pub fn new(now: Instant, nonces: [u64; LENGTH]) -> Train {
        Train { nonces, sent_at: now, answered: [None; LENGTH], crossed: 0, done: false, shown: false }
    }

    /// A HEARTBEAT of the peer came on the same path.
    pub fn note_heartbeat(&mut self) {
        self.crossed += usize::from(!self.shown);
    }

    /// Has it all arrived, but for what is late or lost?
    pub fn is_over(&self) -> bool {
        self.done
    }

    /// A HEARTBEAT ACK with this nonce came; none when that is of no HEARTBEAT of the train. Each packet had `payload`
    /// bytes.
    pub fn answer(&mut self, now: Instant, nonce: u64, payload: u64) -> Option<TrainAnswer> {
        let number = self.nonces.iter().position(|n| *n == nonce)?;
        let first = self.answered.iter().all(Option::is_none);
        self.answered[number].get_or_insert(now);
        if first {
            return Some(TrainAnswer::First(self.sent_at));
        }
        let soonest = self.answered.iter().flatten().min().map_or(now, |at| *at);
        // Nothing is shown any more then.
        self.shown |= now.since(self.sent_at) > soonest.since(self.sent_at) * LATE + LATE_BY;
        self.done |= number >= ENOUGH;
        // Answers that stood behind a train of the peer's are as far apart as that left them.
        if !self.done || self.shown || self.crossed >= CROSSED {
            return Some(TrainAnswer::Further);
        }
        let exact = self.regular_rate(payload).map(TrainRate::Exact);
        let rate = exact.or_else(|| self.least_rate(payload).map(TrainRate::AtLeast));
        self.shown = rate.is_some();
        Some(rate.map_or(TrainAnswer::Further, TrainAnswer::Rate))
    }

    /// What was answered, over the time from the first answer to the last, in whatever order they came: where each packet
    /// takes a time of its own, that is longer than the link took for them. None where most of them came together at the
    /// beginning: they were held until then, for a time that is not known.
    fn least_rate(&self, payload: u64) -> Option<Rate> {
        let answers = || self.answered.iter().flatten();
        let (from, to, count) = (answers().min()?, answers().max()?, answers().count());
        let span = to.since(*from);
        let came = |until: Duration| answers().filter(|at| at.since(*from) <= until).count();
        if count < ENOUGH || span.is_zero() || came(span / TOGETHER) * 2 > count {
            return None;
        }
        // What came together at the end, or at the beginning, was held as well.
        let (before, after) = (came(span * 3 / 4), count - came(span / 4) + 1);
        Some(Rate::of(before.min(after) as u64 * payload, span))
    }

    /// The rate at which it was answered, by the line through its answers. None where they are not near it: something else
    /// than the link's rate spread them.
    fn regular_rate(&self, payload: u64) -> Option<Rate> {
        let from = self.answered.iter().flatten().min()?;
        let answers = || {
            let at = self.answered.iter().enumerate().filter_map(|(i, at)| Some((i, (*at)?)));
            at.map(|(number, at)| (number as i128, i128::from(at.since(*from).as_nanos())))
        };
        let n = answers().count() as i128;
        let (xs, ys) = answers().fold((0, 0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
        // Slope `above / below` of the line through the mean of both.
        let above = answers().map(|(x, y)| (n * x - xs) * (n * y - ys)).sum::<i128>();
        let below = answers().map(|(x, _)| (n * x - xs).pow(2)).sum::<i128>();
        let span = answers().map(|(x, _)| x).max()? - answers().map(|(x, _)| x).min()?;
        let off = |(x, y): (i128, i128)| ((n * y - ys) * below - above * (n * x - xs)).abs();
        if n < ANSWERS || above <= 0 || answers().any(|a| off(a) * REGULAR > above * span * n) {
            return None;
        }
        let time = Duration::from_nanos(u64::try_from(above * span / below).ok()?);
        Some(Rate::of(span as u64 * payload, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::RandomStream;

    fn at(us: u64) -> Instant {
        Instant::from_nanos((1_000_000 + us) * 1_000)
    }

    /// A train of packets of 1,000 bytes of which these are answered, each at its time in microseconds.
    fn shown(answers: impl IntoIterator<Item = (usize, u64)>) -> Option<TrainRate> {
        let mut train = Train::new(at(0), core::array::from_fn(|i| 100 + i as u64));
        let mut found = None;
        for (i, (number, us)) in answers.into_iter().enumerate() {
            let answer = train.answer(at(us), 100 + number as u64, 1_000).unwrap();
            assert_eq!(answer == TrainAnswer::First(at(0)), i == 0);
            if let TrainAnswer::Rate(rate) = answer {
                assert!(found.is_none() && train.is_over(), "once");
                found = Some(rate);
            }
        }
        found
    }
    fn rate(answers: impl IntoIterator<Item = (usize, u64)>) -> Option<u64> {
        shown(answers).and_then(|s| if let TrainRate::Exact(rate) = s { Some(rate.bytes_per_sec()) } else { None })
    }
    fn at_least(answers: impl IntoIterator<Item = (usize, u64)>) -> Option<u64> {
        shown(answers).and_then(|s| if let TrainRate::AtLeast(rate) = s { Some(rate.bytes_per_sec()) } else { None })
    }

    #[test]
    fn a_train_that_was_spread_evenly_shows_the_rate_of_its_bottleneck() {
        for apart in [100, 250, 1_000, 5_000, 40_000] {
            let spread = |i: usize| (i, 30_000 + i as u64 * apart);
            assert_eq!(rate((0..LENGTH).map(spread)), Some(1_000_000_000 / apart), "{apart} us apart");
            // Any two at the end and a few on the way may be lost.
            let some = [0, 2, 4, 6, 7, ENOUGH];
            assert_eq!(rate(some.map(spread)), Some(1_000_000_000 / apart), "{apart} us apart, some lost");
        }
    }

    #[test]
    fn one_that_something_else_spread_shows_what_there_is_at_least() {
        let stall = |i: usize| (i, if i < 6 { 0 } else { 20_000 } + i as u64 * 1_000);
        assert_eq!(at_least((0..LENGTH).map(stall)), Some(5_000_000_000 / 29_000), "a stall");
        // A radio that sends some packets at each of its turns, every 10 ms.
        for (turn, of) in [(6, 600_000), (5, 500_000), (4, 400_000), (3, 300_000)] {
            let came = (0..LENGTH).map(|i| (i, 30_000 + (i / turn) as u64 * 10_000));
            let Some(shown) = shown(came).map(|s| s.rate().bytes_per_sec()) else { panic!("{turn} at once") };
            println!("{turn} at once: {shown} of {of}");
            assert!((of / 2..=of * 6 / 5).contains(&shown), "{turn} at once: {shown} of {of}");
        }
    }

    /// Where some were held and let go together, the least that is shown of a link that has a packet each 2.3 ms is no more
    /// than it has.
    #[test]
    fn what_was_held_at_the_beginning_is_no_least_rate() {
        let is = 1_000_000_000 / 2_300;
        for held in 2..=LENGTH {
            for apart in [0, 1, 20] {
                let at = |i: usize| if i < held { i as u64 * apart } else { (i - held + 1) as u64 * 2_300 };
                let least = at_least((0..LENGTH).map(|i| (i, 50_000 + at(i)))).unwrap_or(0);
                assert!(least <= is, "{held} held: {least} of {is}");
            }
        }
        // All of them, and read in two pieces.
        assert_eq!(shown((0..LENGTH).map(|i| (i, if i < 10 { 0 } else { 50 }))), None);
    }

    #[test]
    fn an_answer_that_comes_after_all_hope_shows_nothing() {
        let spread = |after: u64| {
            move |i: usize| (i, 30_000 + [0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 10, 11][i] * 2_000 + after * u64::from(i > 7))
        };
        assert!(shown((0..LENGTH).map(spread(0))).is_some());
        assert_eq!(shown((0..LENGTH).map(spread(1_100_000))), None);
    }

    #[test]
    fn too_few_answers_show_nothing() {
        assert_eq!(shown((0..LENGTH).map(|i| (i, 5_000))), None, "all at once");
        assert_eq!(shown([(0, 0), (1, 1_000), (11, 11_000)]), None, "most were lost");
        assert_eq!(shown((0..ENOUGH).map(|i| (i, i as u64 * 1_000))), None, "its end was lost");
    }

    /// Whatever the order in which they come, the link has more as a rule, and seldom a fifth less than what is shown.
    #[test]
    fn one_whose_packets_overtake_each_other_shows_hardly_more_than_there_is() {
        let mut random = RandomStream::named(5, "train");
        for (apart, spread) in [(600, 20_000), (1_200, 50_000), (2_400, 50_000), (2_400, 100_000), (5_000, 100_000)] {
            let mut found: Vec<_> = (0..1_000)
                .filter_map(|_| {
                    let mut came: Vec<_> = (0..LENGTH).map(|i| (i, i as u64 * apart + random.below(spread))).collect();
                    came.sort_by_key(|(_, at)| *at);
                    at_least(came)
                })
                .collect();
            found.sort_unstable();
            let is = 1_000_000_000 / apart;
            let (median, most) = (found[found.len() / 2], found[found.len() * 99 / 100]);
            println!("{apart} us apart, {spread}: {} of 1,000, median {median}, most {most} of {is}", found.len());
            assert!(most < is * 6 / 5 && median < is, "{apart} us apart, {spread}: {median}, {most} of {is}");
        }
    }

    #[test]
    fn one_whose_packets_took_each_its_own_time_shows_a_rate_where_that_is_little() {
        let each_8_ms =
            |order: [usize; 10]| rate(order.into_iter().enumerate().map(|(i, number)| (number, i as u64 * 8_000)));
        // Overtaken by one, as where what packets come apart by is little beside the time between them.
        let shown = each_8_ms([0, 2, 1, 4, 3, 5, 6, 8, 7, 9]).expect("a rate");
        assert!(shown.abs_diff(125_000) < 7_000, "{shown}");
        // The second by nearly all.
        assert_eq!(each_8_ms([0, 2, 3, 4, 5, 6, 8, 7, 1, 9]), None);
    }

    #[test]
    fn one_that_crossed_another_shows_none() {
        for (heartbeats, shows) in [(0, true), (1, true), (2, true), (3, false), (12, false)] {
            let mut train = Train::new(at(0), core::array::from_fn(|i| i as u64));
            let answers = (0..LENGTH as u64).map(|i| {
                (0..if i == 5 { heartbeats } else { 0 }).for_each(|_| train.note_heartbeat());
                train.answer(at(30_000 + i * 1_000), i, 1_000)
            });
            let found = answers.flatten().find_map(|a| if let TrainAnswer::Rate(r) = a { Some(r) } else { None });
            assert_eq!(found.is_some(), shows, "{heartbeats} HEARTBEATs of the peer");
        }
    }

    #[test]
    fn another_nonce_is_no_answer() {
        let mut train = Train::new(at(0), core::array::from_fn(|i| i as u64));
        assert_eq!(train.answer(at(1), LENGTH as u64, 1_000), None);
        assert_eq!(train.answer(at(2), 3, 1_000), Some(TrainAnswer::First(at(0))), "it had no effect");
    }
}
