//! A train of padded HEARTBEATs: what the time between its answers says of the path's rate.
//!
//! Packets that leave together are spread by the slowest link on their way, and so are their answers: the time between
//! the first answer and the last is what that link takes for the packets between (packet trains; Dovrolis, Ramanathan,
//! Moore 2001).

use anabranch_base::{Instant, Rate};

/// HEARTBEATs of a train.
pub(crate) const LENGTH: usize = 12;
/// An answer so near the end is enough: the last ones may be lost.
const ENOUGH: usize = LENGTH - 3;

/// So many HEARTBEATs of the peer in the time of a train are one of its own.
const CROSSED: usize = 3;

/// A train that is under way, or over.
#[derive(Clone, Debug)]
pub(crate) struct Train {
    nonces: [u64; LENGTH],
    sent_at: Instant,
    /// Number and time of the first answer.
    first: Option<(usize, Instant)>,
    /// Those of one about its middle.
    middle: Option<(usize, Instant)>,
    /// HEARTBEATs of the peer that came while it was under way.
    crossed: usize,
    /// Its rate is known.
    done: bool,
}

/// What an answer to one of a train says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainAnswer {
    /// The first one: the train had left then.
    First(Instant),
    /// One near the end: the rate at which the train was answered, if it was answered regularly.
    Rate(Option<Rate>),
    /// One of the others.
    Further,
}

impl Train {
    /// HEARTBEATs with these nonces leave now.
    pub fn new(now: Instant, nonces: [u64; LENGTH]) -> Train {
        Train { nonces, sent_at: now, first: None, middle: None, crossed: 0, done: false }
    }

    /// A HEARTBEAT of the peer came on the same path.
    pub fn note_heartbeat(&mut self) {
        self.crossed += usize::from(!self.done);
    }

    /// Is its rate known?
    pub fn is_over(&self) -> bool {
        self.done
    }

    /// A HEARTBEAT ACK with this nonce came; none when that is of no HEARTBEAT of the train. Each packet had `payload`
    /// bytes.
    pub fn answer(&mut self, now: Instant, nonce: u64, payload: u64) -> Option<TrainAnswer> {
        let number = self.nonces.iter().position(|n| *n == nonce)?;
        Some(match self.first {
            None => {
                self.first = Some((number, now));
                TrainAnswer::First(self.sent_at)
            }
            Some(_) if self.middle.is_none() && number < ENOUGH => {
                self.middle = Some((number, now)).filter(|_| number >= LENGTH / 2);
                TrainAnswer::Further
            }
            Some(first) if number >= ENOUGH && !self.done => {
                self.done = true;
                // Answers that stood behind a train of the peer's are as far apart as that left them.
                let rate = regular_rate(first, self.middle, (number, now), payload);
                TrainAnswer::Rate(rate.filter(|_| self.crossed < CROSSED))
            }
            Some(_) => TrainAnswer::Further,
        })
    }
}

/// The rate at which a train was answered. None where its halves differ: something else than the link's rate spread it.
fn regular_rate(
    first: (usize, Instant),
    middle: Option<(usize, Instant)>,
    last: (usize, Instant),
    payload: u64,
) -> Option<Rate> {
    let rate = |a: (usize, Instant), b: (usize, Instant)| {
        (b.0 > a.0 && b.1 > a.1).then(|| Rate::of((b.0 - a.0) as u64 * payload, b.1.since(a.1)))
    };
    let whole = rate(first, last)?;
    let middle = middle?;
    let (a, b) = (rate(first, middle)?.bytes_per_sec(), rate(middle, last)?.bytes_per_sec());
    (a <= b * 2 && b <= a * 2).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos((1_000_000 + us) * 1_000)
    }

    /// A train of packets of 1,000 bytes of which these are answered, each at its time in microseconds.
    fn rate(answers: impl IntoIterator<Item = (usize, u64)>) -> Option<u64> {
        let mut train = Train::new(at(0), core::array::from_fn(|i| 100 + i as u64));
        let mut found = None;
        for (i, (number, us)) in answers.into_iter().enumerate() {
            let answer = train.answer(at(us), 100 + number as u64, 1_000).unwrap();
            assert_eq!(answer == TrainAnswer::First(at(0)), i == 0);
            if let TrainAnswer::Rate(rate) = answer {
                assert!(found.replace(rate.map(Rate::bytes_per_sec)).is_none() && train.is_over(), "once");
            }
        }
        found.flatten()
    }

    #[test]
    fn a_train_that_was_spread_evenly_shows_the_rate_of_its_bottleneck() {
        for apart in [100, 250, 1_000, 5_000, 40_000] {
            let spread = |i: usize| (i, 30_000 + i as u64 * apart);
            assert_eq!(rate((0..LENGTH).map(spread)), Some(1_000_000_000 / apart), "{apart} us apart");
            // Any two at the end and some on the way may be lost.
            let some = [0, 2, 6, 7, ENOUGH];
            assert_eq!(rate(some.map(spread)), Some(1_000_000_000 / apart), "{apart} us apart, some lost");
        }
    }

    #[test]
    fn one_that_something_else_spread_shows_none() {
        assert_eq!(rate((0..LENGTH).map(|i| (i, if i < 6 { 0 } else { 20_000 } + i as u64 * 1_000))), None, "a stall");
        assert_eq!(rate((0..LENGTH).map(|i| (i, 5_000))), None, "all at once");
        assert_eq!(rate([(0, 0), (1, 1_000), (11, 11_000)]), None, "its middle was lost");
        assert_eq!(rate((0..ENOUGH).map(|i| (i, i as u64 * 1_000))), None, "its end was lost");
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
            assert_eq!(found.map(|r| r.is_some()), Some(shows), "{heartbeats} HEARTBEATs of the peer");
        }
    }

    #[test]
    fn another_nonce_is_no_answer() {
        let mut train = Train::new(at(0), core::array::from_fn(|i| i as u64));
        assert_eq!(train.answer(at(1), LENGTH as u64, 1_000), None);
        assert_eq!(train.answer(at(2), 3, 1_000), Some(TrainAnswer::First(at(0))), "it had no effect");
    }
}
