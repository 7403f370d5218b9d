//! Takes the network's jitter out of the instants at which a live transport stream arrived.
//!
//! The stream's own clock says when its bytes were to leave ([`crate::gate::StreamClock`]). The quickest packet with
//! a clock reference in the last 15 to 30 s shows how that clock and ours are related; by how much a later one came
//! behind is jitter, and is taken off its instant, up to the window that the user allows. Never more: between clock
//! references, and in a stream of varying rate, the clock is known roughly. What is further behind than the window
//! means that the source paused or its clock was set; from there it is followed anew.
//!
//! RTP's time stamp says the same (RFC 2250 §2), but widespread senders put the picture's presentation time there,
//! which jumps to and fro.

use crate::gate::StreamClock;
use crate::ts::{PACKET_LEN, Packet};
use anabranch_base::{Duration, Instant};

/// Half of the time for which the quickest arrival counts.
const BUCKET: Duration = Duration::from_secs(15);

/// Gives each datagram of a stream its instant.
pub struct Steadier {
    window: Duration,
    clock: StreamClock,
    /// Smallest distance from the stream's clock to ours, ns: in this bucket, and in the one before.
    base: Option<i128>,
    before: Option<i128>,
    began: Instant,
    last: Instant,
}

impl Steadier {
    /// Takes off jitter up to `window`.
    pub fn new(window: Duration) -> Self {
        Steadier {
            window,
            clock: StreamClock::default(),
            base: None,
            before: None,
            began: Instant::ZERO,
            last: Instant::ZERO,
        }
    }

    /// When these whole packets, which arrived at `at`, should have arrived: then, or up to the window before.
    /// Never before earlier ones.
    pub fn stamp(&mut self, at: Instant, packets: &[u8]) -> Instant {
        let mut due = None;
        for bytes in packets.chunks(PACKET_LEN) {
            let packet = Packet::new(bytes);
            self.clock.pass(packet, bytes.len());
            let position = self.clock.here();
            if self.clock.is_exact() {
                self.sample(at, i128::from(at.as_nanos()) - i128::from(position.as_nanos()));
            }
            due = due.or(Some(position));
        }
        let even = due.zip(self.offset()).map(|(position, base)| {
            let ns = i128::from(position.as_nanos()) + base;
            Instant::from_nanos(u64::try_from(ns).unwrap_or(0))
        });
        let earliest = at - self.window;
        self.last = self.last.max(even.map_or(at, |even| even.clamp(earliest, at)));
        self.last
    }

    /// The packet with a clock reference was so far behind the stream's clock.
    fn sample(&mut self, at: Instant, distance: i128) {
        let late = self.offset().map(|base| distance - base);
        if late.is_some_and(|late| late > i128::from(self.window.as_nanos())) {
            (self.base, self.before) = (None, None);
        }
        if self.base.is_none() {
            self.began = at;
        } else if at.since(self.began) >= BUCKET {
            (self.before, self.base, self.began) = (self.base, None, at);
        }
        self.base = Some(self.base.map_or(distance, |base| base.min(distance)));
    }

    fn offset(&self) -> Option<i128> {
        self.base.into_iter().chain(self.before).min()
    }
}
