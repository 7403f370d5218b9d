//! What a viewer sees: which frames are shown when, and for how long the picture stands still.

use super::clock;
use super::compare::Comparison;
use super::recording::Recording;
use crate::Class;
use crate::playout::UNKNOWN;
use anabranch_base::Duration;

/// The picture stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When the picture that stands should have been followed by the next one, from the first frame on.
    pub from: Duration,
    /// How much later it was.
    pub length: Duration,
}

/// What is shown of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// For each frame in decoding order, whether it is seen.
    pub frames: Vec<bool>,
    /// Frames that can be decoded but came when a later one was already to be seen, by class: I, P, B, unknown.
    pub late: [u64; 4],
    /// Stalls of at least the length asked for, in their order.
    pub stalls: Vec<Stall>,
    /// Length of the stream.
    pub length: Duration,
    /// Frames were taken to be shown at the times at which they came, not only by their time stamps.
    pub by_arrival: bool,
}

impl Shown {
    /// How long all stalls are together.
    pub fn stalled(&self) -> Duration {
        self.stalls.iter().fold(Duration::ZERO, |sum, s| sum + s.length)
    }

    /// The longest stall.
    pub fn longest(&self) -> Duration {
        self.stalls.iter().map(|s| s.length).max().unwrap_or_default()
    }

    /// What a player shows that decodes what can be decoded, and whose clock follows the stream's clock references where
    /// they came the soonest, 30 s around each frame, later by `buffer`. Where there are no times of arrival every frame is
    /// in time. A stall is counted from `shortest` on.
    pub fn of(
        sent: &Recording,
        received: &Recording,
        found: &Comparison,
        buffer: Duration,
        shortest: Duration,
    ) -> Shown {
        let frames = sent.frames();
        let mut order: Vec<usize> = (0..frames.len()).collect();
        order.sort_by_key(|i| frames.get(*i).map(|f| f.time));
        let time = |i: usize| frames.get(i).map_or(0, |f| f.time);
        let first = order.first().map_or(0, |i| time(*i));
        let by_arrival = Arrivals::of(sent, received, found, buffer);
        // Backwards: a frame is seen unless it comes when the one behind it is due to be seen.
        let mut shown =
            Shown { frames: vec![false; frames.len()], by_arrival: by_arrival.is_some(), ..Shown::default() };
        let mut seen: Vec<Seen> = Vec::new();
        for i in order.iter().rev().copied().filter(|i| found.results.get(*i).is_some_and(|r| r.decodable)) {
            let (due, ready) = by_arrival.as_ref().and_then(|a| a.0.get(i).copied()).unwrap_or((time(i), i64::MIN));
            let at = due.max(ready);
            if seen.last().is_some_and(|next| at >= next.at) {
                let class = frames.get(i).and_then(|f| f.picture.class).map_or(UNKNOWN, Class::index);
                shown.late[class] += 1;
                continue;
            }
            seen.push(Seen { frame: i, at, clock: due - time(i) });
            if let Some(flag) = shown.frames.get_mut(i) {
                *flag = true;
            }
        }
        seen.reverse();
        let end = end(&order, time);
        shown.length = ticks(end - first);
        shown.find_stalls(&order, time, &seen, (first, end), shortest);
        shown
    }

    /// A picture stands for longer than the stream has it.
    fn find_stalls(
        &mut self,
        order: &[usize],
        time: impl Fn(usize) -> i64,
        seen: &[Seen],
        (first, end): (i64, i64),
        shortest: Duration,
    ) {
        let mut clock = seen.first().map_or(0, |s| s.clock);
        let mut due = first + clock;
        let mut places = order.iter().copied().enumerate();
        let stalls = &mut self.stalls;
        let mut note = |due: i64, next: i64, clock: i64| {
            let length = ticks(next - due);
            if next > due && length >= shortest {
                stalls.push(Stall { from: ticks(due - clock - first), length });
            }
        };
        for Seen { frame, at, clock: now } in seen {
            note(due, *at, clock);
            let place = places.find(|(_, other)| other == frame).map(|(place, _)| place);
            let next = place.and_then(|p| order.get(p + 1)).map_or(end, |n| time(*n));
            // It is to be seen for as long as the stream has it, from when it is seen.
            due = *at + (next - time(*frame));
            clock = *now;
        }
        note(due, end + clock, clock);
    }
}

/// A frame that is seen.
struct Seen {
    frame: usize,
    /// When, on the scale of the player's clock.
    at: i64,
    /// How much later than its time it is due on that scale.
    clock: i64,
}

/// When each frame is due and when it could be shown, 90 kHz; the first one is due at its time.
struct Arrivals(Vec<(i64, i64)>);

impl Arrivals {
    /// None without times of arrival.
    fn of(sent: &Recording, received: &Recording, found: &Comparison, buffer: Duration) -> Option<Arrivals> {
        let shifts = clock::due(sent, received, found)?;
        let first = shifts.first().copied()?;
        let origin = first.saturating_add(clock::in_90_khz(buffer));
        let mut ready: Vec<i64> = Vec::with_capacity(sent.frames().len());
        for (frame, result) in sent.frames().iter().zip(&found.results) {
            let own = result.at.map_or(i64::MIN, |t| clock::in_90_khz(t) - origin);
            let needed = frame.picture.needs.units.iter().filter_map(|n| ready.get(*n as usize)).copied();
            ready.push(needed.chain([own]).max().unwrap_or(own));
        }
        let due = sent.frames().iter().zip(&shifts).map(|(f, shift)| f.time + shift - first);
        Some(Arrivals(due.zip(ready).collect()))
    }
}

/// The end of the last frame: as long as the frames before it.
fn end(order: &[usize], time: impl Fn(usize) -> i64) -> i64 {
    let last = order.last().map_or(0, |i| time(*i));
    let mut steps: Vec<i64> = order.iter().zip(order.iter().skip(1)).map(|(a, b)| time(*b) - time(*a)).collect();
    steps.sort_unstable();
    last + steps.get(steps.len() / 2).copied().unwrap_or(0)
}

/// Ticks of 90 kHz as a time.
fn ticks(t: i64) -> Duration {
    Duration::from_nanos(t.max(0) as u64 * 100_000 / 9)
}
