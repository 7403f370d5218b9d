//! When each byte of a recorded stream is due, by the stream's own clock.
//!
//! The program clock reference says when its packet is to arrive (ISO/IEC 13818-1 §2.4.2.2); what lies between
//! two references is spread evenly over the bytes. Times count from the first byte of the file, which goes out
//! at the rate of the first interval.
//!
//! - One PID is followed: the first that carries a reference; another one when it falls silent.
//! - Wrapping (every 26.5 hours) is a step like any other. A step that is announced as discontinuous, goes
//!   back, or spans more than `max_step` says nothing about time; those bytes go at the last known rate.
//! - Bytes behind the last reference go at the last known rate.
//! - Without any reference there is the fallback rate; without one, everything is due at once.

use crate::ts::{PCR_CYCLE, Piece, Splitter};
use anabranch_base::{Duration, Rate};
use bytes::Bytes;
use std::collections::VecDeque;

/// Settings of a [`PcrPacer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacerConfig {
    /// Rate for a stream without clock references. `None` (the default): as fast as it is taken.
    pub fallback: Option<Rate>,
    /// Bytes held while waiting for the next reference. Default 2 MiB, which holds the 100 ms that a
    /// standard multiplex may take between references at any rate up to 160 Mbit/s.
    pub max_held: usize,
    /// Longest believable step between two references. Default 1 s: ten times what the standard allows.
    pub max_step: Duration,
}

impl Default for PacerConfig {
    fn default() -> Self {
        PacerConfig { fallback: None, max_held: 2 << 20, max_step: Duration::from_secs(1) }
    }
}

/// Bytes and when they are due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paced {
    /// Time since the first byte. Never falls.
    pub at: Duration,
    /// One packet, or bytes that are no packet.
    pub bytes: Bytes,
}

/// So many bytes take so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub bytes: u64,
    pub ns: u64,
}

impl Pace {
    pub fn time_for(self, bytes: u64) -> Duration {
        let ns = u128::from(bytes) * u128::from(self.ns) / u128::from(self.bytes.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// Paces a stream that is read piece by piece. Feed it with [`push`](PcrPacer::push), take with
/// [`poll`](PcrPacer::poll), and at the end of the file call [`finish`](PcrPacer::finish) and take the rest.
pub struct PcrPacer {
    config: PacerConfig,
    splitter: Splitter,
    /// Pieces whose time is not known yet, and their size.
    held: VecDeque<Bytes>,
    held_bytes: u64,
    /// Due time of the first held piece.
    at: Duration,
    pid: Option<u16>,
    /// The latest reference (27 MHz ticks) and how many held bytes lie in front of it.
    reference: Option<(u64, u64)>,
    /// Measured between the last two references.
    pace: Option<Pace>,
    ready: VecDeque<Paced>,
}

impl PcrPacer {
    /// A pacer at the start of a file.
    pub fn new(config: PacerConfig) -> Self {
        PcrPacer {
            config,
            splitter: Splitter::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            at: Duration::ZERO,
            pid: None,
            reference: None,
            pace: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes in the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.poll() {
            self.take(piece);
        }
    }

    /// The end of the file: all that is held gets its time.
    pub fn finish(&mut self) {
        while let Some(piece) = self.splitter.finish() {
            self.take(piece);
        }
        self.release_at_known_pace();
    }

    /// The next piece with its time, in the order of the file.
    pub fn poll(&mut self) -> Option<Paced> {
        self.ready.pop_front()
    }

    /// Due time of what follows, as far as known: after [`finish`](PcrPacer::finish) the length of the stream.
    pub fn position(&self) -> Duration {
        self.at
    }

    fn take(&mut self, piece: Piece) {
        if let Some(p) = piece.packet()
            && !p.transport_error()
            && let Some(ticks) = p.pcr()
            && self.pid.is_none_or(|pid| pid == p.pid())
        {
            self.pid = Some(p.pid());
            self.reference(ticks, p.discontinuity());
        }
        let (Piece::Packet(bytes) | Piece::Raw(bytes)) = piece;
        self.held_bytes += bytes.len() as u64;
        self.held.push_back(bytes);
        if self.held_bytes > self.config.max_held as u64 {
            self.release_at_known_pace();
            self.pid = None;
        }
    }

    /// The next piece carries a reference.
    fn reference(&mut self, ticks: u64, discontinuity: bool) {
        if let Some((last, before)) = self.reference {
            let step = (ticks + PCR_CYCLE - last) % PCR_CYCLE;
            let ns = (u128::from(step) * 1_000 / 27) as u64;
            let bytes = self.held_bytes - before;
            if !discontinuity && step > 0 && bytes > 0 && ns <= self.config.max_step.as_nanos() {
                self.pace = Some(Pace { bytes, ns });
                self.release_at_known_pace();
            } else if self.pace.is_some() {
                self.release_at_known_pace();
            }
        } else if self.pace.is_some() {
            self.release_at_known_pace();
        }
        self.reference = Some((ticks, self.held_bytes));
    }

    fn release_at_known_pace(&mut self) {
        let (start, mut done) = (self.at, 0);
        let fallback = self.config.fallback.filter(|r| *r > Rate::ZERO);
        let pace = self.pace.or(fallback.map(|r| Pace { bytes: r.bytes_per_sec(), ns: 1_000_000_000 }));
        let time = |bytes| pace.map_or(Duration::ZERO, |p| p.time_for(bytes));
        for bytes in self.held.drain(..) {
            let at = start + time(done);
            done += bytes.len() as u64;
            self.ready.push_back(Paced { at, bytes });
        }
        self.at = start + time(done);
        self.held_bytes = 0;
        self.reference = None;
    }
}

/// Paces a whole stream; returns its pieces with their times, and its length.
pub fn pace_all(stream: &[u8], config: PacerConfig) -> (Vec<Paced>, Duration) {
    let mut pacer = PcrPacer::new(config);
    pacer.push(stream);
    pacer.finish();
    (pacer.ready.drain(..).collect(), pacer.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::PACKET_LEN;
    use crate::ts::tests::{TsBuilder, VIDEO_PID};
    use proptest::prelude::*;

    const TICKS_PER_MS: u64 = 27_000;

    /// Groups of one packet with a clock (in ms) and `n` null packets.
    fn stream(groups: &[(Option<u64>, usize)]) -> Vec<u8> {
        let mut ts = TsBuilder::new();
        for (ms, n) in groups {
            ts.packet(VIDEO_PID, 0, false, &[], ms.map(|ms| ms * TICKS_PER_MS % PCR_CYCLE));
            (0..*n).for_each(|_| ts.null());
        }
        ts.bytes().to_vec()
    }

    /// Due times in microseconds.
    fn times(stream: &[u8], config: PacerConfig) -> Vec<u64> {
        pace_all(stream, config).0.iter().map(|p| p.at.as_micros()).collect()
    }

    #[test]
    fn packets_are_spread_between_references() {
        let s = stream(&[(Some(1_000), 3), (Some(1_020), 1), (Some(1_030), 1)]);
        assert_eq!(times(&s, PacerConfig::default()), [0, 5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000]);
    }

    #[test]
    fn what_lies_in_front_goes_at_the_first_rate() {
        let s = stream(&[(None, 1), (Some(500), 1), (Some(510), 0)]);
        let (paced, length) = pace_all(&s, PacerConfig::default());
        assert_eq!(paced.iter().map(|p| p.at.as_millis()).collect::<Vec<_>>(), [0, 5, 10, 15, 20]);
        assert_eq!(length.as_millis(), 25);
    }

    #[test]
    fn the_clock_wraps_without_a_step() {
        let top = PCR_CYCLE / TICKS_PER_MS;
        // The cycle is no whole number of ms; half a ms of error is the test's, not the pacer's.
        let t = times(&stream(&[(Some(top - 10), 0), (Some(top), 0), (Some(top + 10), 0)]), PacerConfig::default());
        assert_eq!(t.iter().map(|t| (t + 500) / 1_000).collect::<Vec<_>>(), [0, 10, 20]);
    }

    #[test]
    fn jumps_go_at_the_last_rate() {
        for jump in [900_000, 3, 2_100] {
            let s = stream(&[(Some(1_000), 0), (Some(1_010), 1), (Some(jump), 0), (Some(jump + 4), 0)]);
            assert_eq!(times(&s, PacerConfig::default()), [0, 10_000, 20_000, 30_000, 34_000], "{jump}");
        }
        let mut s = stream(&[(Some(1_000), 0), (Some(1_010), 1), (Some(1_500), 0), (Some(1_504), 0)]);
        s[PACKET_LEN * 3 + 5] |= 0x80;
        assert_eq!(times(&s, PacerConfig::default()), [0, 10_000, 20_000, 30_000, 34_000], "announced");
        let s = stream(&[(Some(1_000), 0), (Some(90_000), 0), (Some(90_010), 0)]);
        assert_eq!(times(&s, PacerConfig::default()), [0, 10_000, 20_000], "in the first interval");
    }

    #[test]
    fn without_a_clock() {
        let s = stream(&[(None, 3)]);
        assert_eq!(times(&s, PacerConfig::default()), [0; 4]);
        let config = PacerConfig { fallback: Some(Rate::from_bytes_per_sec(188_000)), ..Default::default() };
        assert_eq!(times(&s, config), [0, 1_000, 2_000, 3_000]);
        assert_eq!(times(&[1; 376], config), [0], "raw bytes too");
        let zero = PacerConfig { fallback: Some(Rate::ZERO), ..Default::default() };
        assert_eq!(times(&s, zero), [0; 4]);
    }

    #[test]
    fn what_is_held_is_bounded_and_another_clock_is_found() {
        let mut ts = TsBuilder::new();
        ts.packet(VIDEO_PID, 0, false, &[], Some(0)).null();
        ts.packet(VIDEO_PID, 0, false, &[], Some(2 * TICKS_PER_MS));
        (0..10).for_each(|_| ts.null());
        ts.packet(0x300, 0, false, &[], Some(777)).null();
        ts.packet(0x300, 0, false, &[], Some(777 + 8 * TICKS_PER_MS));
        let config = PacerConfig { max_held: 8 * PACKET_LEN, ..Default::default() };
        let t = times(ts.bytes(), config);
        assert_eq!(t[..4], [0, 1_000, 2_000, 3_000]);
        assert_eq!(t[13], 13_000, "known rate while no reference comes");
        assert_eq!(t[15], t[13] + 8_000);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_time_never_falls(
            groups in proptest::collection::vec((proptest::option::of(0u64..200_000_000), 0usize..6), 0..20),
            junk in proptest::collection::vec(any::<u8>(), 0..300),
            cut in 1usize..2_000,
            max_held in 0usize..3_000,
        ) {
            let mut s = stream(&groups);
            s.extend(&junk);
            s.extend(stream(&groups));
            let mut pacer = PcrPacer::new(PacerConfig { max_held, ..Default::default() });
            let (mut out, mut at) = (Vec::new(), Duration::ZERO);
            for c in s.chunks(cut) {
                pacer.push(c);
                while let Some(p) = pacer.poll() {
                    prop_assert!(p.at >= at);
                    at = p.at;
                    out.extend(p.bytes);
                }
            }
            pacer.finish();
            while let Some(p) = pacer.poll() {
                prop_assert!(p.at >= at);
                at = p.at;
                out.extend(p.bytes);
            }
            prop_assert!(pacer.position() >= at);
            prop_assert_eq!(out, s);
        }
    }
}
