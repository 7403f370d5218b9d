//! The player's clock: at what time of arrival each frame is due.
//!
//! A stream's clock references say when its sender meant each packet to be there; how much later a packet came is its
//! offset. The path is the fastest where the offset is the smallest, so a frame is due by the smallest offset of the clock
//! references around it, [`REACH`] to either side. One reference that came late changes nothing, and neither does
//! a difference in rate between the sender's clock and that of the recording: 100 ppm are 3 ms in [`REACH`]. Where the path
//! itself becomes slower or faster, the clock follows by no more than [`FOLLOWS`]: a picture that waits for the clock, or
//! one that is left out to catch up with it, is none of the path's doing.

use super::compare::Comparison;
use super::recording::{Frame, Recording};
use crate::ts::{PCR_CYCLE, PTS_CYCLE};
use anabranch_base::Duration;
use std::collections::VecDeque;

/// How far around a frame clock references count, in time of the stream: 30 s of 27 MHz.
const REACH: i64 = 30 * 27_000_000;

/// How fast the clock follows: 1 in so many, 2 ms in a second. Clocks of streams are right to 30 ppm (ISO/IEC 13818-1
/// §2.4.2.1).
const FOLLOWS: i64 = 500;

/// A step from one clock reference to the next beyond this is no time that passed: 1 s of 27 MHz. They are at most 0.1 s
/// apart (ISO/IEC 13818-1 §2.7.2).
const STEP_MAX: u64 = 27_000_000;

/// A time stamp this far from the clock is not of this clock: 10 s of 90 kHz.
const LEAD_MAX: i64 = 10 * 90_000;

/// A clock reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    /// Its packet, by number.
    pub(super) packet: u32,
    /// Its packet says that the clock jumps here.
    pub(super) jump: bool,
    /// Ticks of 27 MHz.
    pub(super) ticks: u64,
}

impl Reference {
    /// Ticks from `before` to this one; a step back is nearly the whole cycle.
    fn step_from(self, before: u64) -> u64 {
        (self.ticks + PCR_CYCLE - before) % PCR_CYCLE
    }

    /// The clock has gone back.
    pub(super) fn is_back_from(self, before: &Reference) -> bool {
        self.step_from(before.ticks) > PCR_CYCLE / 2
    }
}

/// A clock reference, and how it came.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Its packet, by number.
    packet: u32,
    /// Ticks as they are in the stream.
    ticks: u64,
    /// Jumps before it, and ticks since the last one.
    run: u32,
    since: i64,
    /// How much later it came, where it came.
    offset: Option<i64>,
}

/// How much later than its time ([`Frame::time`]) each frame is due, in 90 kHz from the origin of the times of arrival; none
/// where no clock reference of the video came.
pub(super) fn due(sent: &Recording, received: &Recording, found: &Comparison) -> Option<Vec<i64>> {
    let mut samples: Vec<Sample> = Vec::with_capacity(sent.references().len());
    for (reference, at) in sent.references().iter().zip(&found.references) {
        let (run, since) = match samples.last() {
            None => (0, 0),
            Some(before) => match reference.step_from(before.ticks) {
                step if reference.jump || step > STEP_MAX => (before.run + 1, 0),
                step => (before.run, before.since + step as i64),
            },
        };
        let came = at.and_then(|packet| received.arrival(packet as usize));
        let offset = came.map(|t| in_27_mhz(t) - since);
        samples.push(Sample { packet: reference.packet, ticks: reference.ticks, run, since, offset });
    }
    let mut smallest = Vec::with_capacity(samples.len());
    for run in samples.chunk_by(|a, b| a.run == b.run) {
        let from = smallest.len();
        smallest_around(run, &mut smallest);
        follow(run, smallest.get_mut(from..).unwrap_or(&mut []));
    }
    let mut references = samples.iter().zip(smallest).peekable();
    // In front of the first one that one counts.
    let mut current = references.peek().copied();
    let mut shift = None;
    let mut shifts = Vec::with_capacity(sent.frames().len());
    for (frame, first) in sent.frames().iter().zip(sent.first_packets()) {
        while let Some(next) = references.next_if(|(s, _)| s.packet <= *first) {
            current = Some(next);
        }
        shift = current.and_then(|(s, smallest)| shift_of(frame, s, smallest?)).or(shift);
        shifts.push(shift);
    }
    let first = shifts.iter().flatten().next().copied()?;
    Some(shifts.into_iter().map(|s| s.unwrap_or(first)).collect())
}

/// How much later than its time a frame is due that belongs to this clock reference.
fn shift_of(frame: &Frame, reference: &Sample, smallest: i64) -> Option<i64> {
    let cycle = PTS_CYCLE as i64;
    let ahead = (frame.pts? as i64 - (reference.ticks / 300) as i64).rem_euclid(cycle);
    let lead = if ahead > cycle / 2 { ahead - cycle } else { ahead };
    let due = (reference.since + smallest) / 300 + lead;
    (lead.abs() <= LEAD_MAX).then(|| due - frame.time)
}

/// The smallest offset within [`REACH`] of each sample between two jumps.
fn smallest_around(run: &[Sample], smallest: &mut Vec<Option<i64>>) {
    // Those within reach that may still become the smallest, rising.
    let mut held: VecDeque<(i64, i64)> = VecDeque::new();
    let mut ahead = run.iter().peekable();
    for sample in run {
        while let Some(next) = ahead.next_if(|n| n.since - sample.since <= REACH) {
            let Some(offset) = next.offset else { continue };
            while held.back().is_some_and(|(_, o)| *o >= offset) {
                held.pop_back();
            }
            held.push_back((next.since, offset));
        }
        while held.front().is_some_and(|(since, _)| sample.since - since > REACH) {
            held.pop_front();
        }
        smallest.push(held.front().map(|(_, offset)| *offset));
    }
}

/// Lets the offsets that count follow the smallest ones no faster than by [`FOLLOWS`].
fn follow(run: &[Sample], offsets: &mut [Option<i64>]) {
    let mut last: Option<(i64, i64)> = None;
    for (sample, offset) in run.iter().zip(offsets) {
        if let Some((since, value)) = last {
            let most = (sample.since - since) / FOLLOWS;
            *offset = Some(offset.unwrap_or(value).clamp(value - most, value + most));
        }
        last = offset.map(|value| (sample.since, value)).or(last);
    }
}

fn in_27_mhz(t: Duration) -> i64 {
    (i128::from(t.as_nanos()) * 27 / 1_000) as i64
}

/// A time in ticks of 90 kHz.
pub(super) fn in_90_khz(t: Duration) -> i64 {
    (i128::from(t.as_nanos()) * 9 / 100_000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_smallest_is_that_of_the_window(
            steps in prop::collection::vec((0i64..REACH / 3, prop::option::of(-50i64..50)), 0..60),
        ) {
            let mut since = 0;
            let mut run: Vec<Sample> = Vec::new();
            for (step, offset) in steps {
                since += step;
                run.push(Sample { packet: 0, ticks: 0, run: 0, since, offset });
            }
            let mut found = Vec::new();
            smallest_around(&run, &mut found);
            let near = |s: &Sample| {
                run.iter().filter(|o| (o.since - s.since).abs() <= REACH).filter_map(|o| o.offset).min()
            };
            prop_assert_eq!(found, run.iter().map(near).collect::<Vec<_>>());
        }
    }
}
