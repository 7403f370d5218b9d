//! When the bytes of a pipe are due at the earliest, by the stream's own clock.
//!
//! What comes out of a pipe may be live or recorded. A recorded stream runs ahead of its clock and must be held
//! back; a live one is never ahead and must not be delayed at all. So, other than the pacer of files, this one holds
//! nothing until the next clock reference: it gives each byte at once, with an instant that follows from the last
//! reference and the rate between the last two. The next reference corrects it.
//!
//! [`crate::pacing`] says which references count. Bytes in front of the second reference, and a stream without any, are
//! due at once.

use crate::pacing::{Pace, Paced, PacerConfig};
use crate::ts::{PCR_CYCLE, Packet, Piece, Splitter};
use anabranch_base::Duration;

/// Says from when on each piece may leave. Feed it with [`push`](PcrGate::push), take with [`poll`](PcrGate::poll),
/// and at the end of the input take what [`finish`](PcrGate::finish) gives too.
#[derive(Default)]
pub struct PcrGate {
    splitter: Splitter,
    clock: StreamClock,
}

impl PcrGate {
    /// A gate at the start of a stream.
    pub fn new() -> Self {
        PcrGate::default()
    }

    /// Takes in the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// The next piece and when it is due, counted from the first.
    pub fn poll(&mut self) -> Option<Paced> {
        let piece = self.splitter.poll()?;
        Some(self.pass(piece))
    }

    /// What is left at the end of the stream, and when it is due.
    pub fn finish(&mut self) -> Option<Paced> {
        let piece = self.splitter.finish()?;
        Some(self.pass(piece))
    }

    fn pass(&mut self, piece: Piece) -> Paced {
        let at = self.clock.pass(piece.packet(), piece.bytes().len());
        let (Piece::Packet(bytes) | Piece::Raw(bytes)) = piece;
        Paced { at, bytes }
    }
}

/// Where a stream is by its own clock, known without what comes later.
#[derive(Default)]
pub(crate) struct StreamClock {
    pid: Option<u16>,
    /// The latest reference, 27 MHz ticks.
    reference: Option<u64>,
    /// Its instant, and the bytes since.
    at: Duration,
    since: u64,
    /// Measured between the last two references.
    pace: Option<Pace>,
    /// Instant of the last piece: they never fall.
    last: Duration,
    /// Where the last piece is by the clock alone.
    here: Duration,
    /// The last piece had a reference that says how much time has passed.
    exact: bool,
}

impl StreamClock {
    /// Takes in a packet, or bytes that are none; returns when its first byte is due, counted from the first.
    pub fn pass(&mut self, packet: Option<Packet<'_>>, len: usize) -> Duration {
        self.exact = false;
        if let Some(p) = packet
            && !p.transport_error()
            && let Some(ticks) = p.pcr()
            && self.pid.is_none_or(|pid| pid == p.pid())
        {
            self.pid = Some(p.pid());
            self.reference(ticks, p.discontinuity());
        }
        self.here = self.position();
        self.last = self.last.max(self.here);
        self.since += len as u64;
        if self.since > PacerConfig::default().max_held as u64 {
            // Its clock has fallen silent: another may be found.
            (self.pid, self.reference) = (None, None);
        }
        self.last
    }

    /// Where the last piece is when a rate that was taken too small is put right: may fall.
    pub fn here(&self) -> Duration {
        self.here
    }

    /// Does the stream's clock itself say when the last piece was due?
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// By the last reference and the bytes since.
    fn position(&self) -> Duration {
        self.at + self.pace.map_or(Duration::ZERO, |p| p.time_for(self.since))
    }

    fn reference(&mut self, ticks: u64, discontinuity: bool) {
        let step = self.reference.map(|last| {
            let ticks = (ticks + PCR_CYCLE - last) % PCR_CYCLE;
            (u128::from(ticks) * 1_000 / 27) as u64
        });
        let believed = |ns: &u64| !discontinuity && *ns > 0 && *ns <= PacerConfig::default().max_step.as_nanos();
        match step.filter(believed) {
            Some(ns) => {
                self.pace = Some(Pace { bytes: self.since, ns });
                self.at += Duration::from_nanos(ns);
                self.exact = true;
            }
            // Says nothing about time: what came since went at the known rate.
            None => self.at = self.position(),
        }
        (self.reference, self.since) = (Some(ticks), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::tests::{TsBuilder, VIDEO_PID};
    use proptest::prelude::*;

    /// Groups of one packet with a clock (in ms) and `n` null packets.
    fn stream(groups: &[(u64, usize)]) -> Vec<u8> {
        let mut ts = TsBuilder::new();
        for (ms, n) in groups {
            ts.packet(VIDEO_PID, 0, false, &[], Some(ms * 27_000 % PCR_CYCLE));
            (0..*n).for_each(|_| ts.null());
        }
        ts.bytes().to_vec()
    }

    /// Due times in microseconds.
    fn times(stream: &[u8]) -> Vec<u64> {
        let mut gate = PcrGate::new();
        gate.push(stream);
        let mut all: Vec<u64> = std::iter::from_fn(|| gate.poll()).map(|p| p.at.as_micros()).collect();
        all.extend(std::iter::from_fn(|| gate.finish()).map(|p| p.at.as_micros()));
        all
    }

    #[test]
    fn the_clock_says_when_and_the_last_rate_what_lies_between() {
        let t = times(&stream(&[(1_000, 1), (1_010, 1), (1_020, 1)]));
        assert_eq!(t, [0, 0, 10_000, 15_000, 20_000, 25_000]);
    }

    #[test]
    fn a_rate_that_changes_is_put_right_by_the_next_reference() {
        let t = times(&stream(&[(1_000, 0), (1_010, 3), (1_020, 0), (1_030, 0)]));
        assert_eq!(t, [0, 10_000, 20_000, 30_000, 40_000, 40_000, 40_000], "times never fall");
    }

    #[test]
    fn jumps_go_at_the_last_rate() {
        for jump in [900_000, 3, 2_100] {
            let t = times(&stream(&[(1_000, 0), (1_010, 1), (jump, 0), (jump + 10, 0)]));
            assert_eq!(t, [0, 10_000, 20_000, 30_000, 40_000], "{jump}");
        }
    }

    #[test]
    fn nothing_is_held_for_a_reference_to_come() {
        let s = stream(&[(1_000, 2), (1_010, 5)]);
        let mut gate = PcrGate::new();
        gate.push(&s);
        let n: usize = std::iter::from_fn(|| gate.poll()).map(|p| p.bytes.len()).sum();
        assert_eq!(n, s.len());
    }

    #[test]
    fn without_a_clock_all_is_due_at_once() {
        let mut ts = TsBuilder::new();
        (0..20).for_each(|_| {
            ts.null();
        });
        assert_eq!(times(ts.bytes()), [0; 20]);
        assert_eq!(times(&[7; 500]).iter().max(), Some(&0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_time_never_falls(
            groups in proptest::collection::vec((0u64..200_000_000, 0usize..6), 0..20),
            junk in proptest::collection::vec(any::<u8>(), 0..300),
            cut in 1usize..2_000,
        ) {
            let mut s = stream(&groups);
            s.extend(&junk);
            s.extend(stream(&groups));
            let mut gate = PcrGate::new();
            let (mut out, mut at) = (Vec::new(), Duration::ZERO);
            let mut take = |p: Paced| {
                assert!(p.at >= at);
                at = p.at;
                out.extend(p.bytes);
            };
            for c in s.chunks(cut) {
                gate.push(c);
                std::iter::from_fn(|| gate.poll()).for_each(&mut take);
            }
            std::iter::from_fn(|| gate.finish()).for_each(&mut take);
            prop_assert_eq!(out, s);
        }
    }
}
