//! What an acknowledgement says of the path it is for.

use super::Path;
use super::capacity::{Delivered, RateSample};
use anabranch_base::{Duration, Instant};
use anabranch_policy::view::UnqueuedRtt;

/// Queueing that is taken for one although the sender did not fill the path.
const CLEAR_QUEUE: Duration = Duration::from_millis(40);
/// Queueing of a whole round trip's packets that is less than this is none.
const SHORT_QUEUE: Duration = Duration::from_millis(2);
/// A path whose mean deviation is one part of so many of its least round trip, or less, varies little.
const NEARLY_STEADY: u64 = 8;

impl Path {
    /// More is under way than the path holds: it is busy for a while, whatever the sender does.
    pub fn is_busy(&self, now: Instant) -> bool {
        let reorders = self.progress.reorders(now);
        let takes = self.rtt.most_take(reorders) + self.rtt.comes_apart_by(reorders);
        let held = self.capacity.rate().bytes_in(takes);
        // A path that has become longer holds more: only where acknowledgements show a queue is that much one.
        held > 0 && self.capacity.closes_pauses() && self.flight.bytes() > held + held / 2
    }

    /// Did all packets of the newest round trips wait in a queue?
    fn all_waited(&self, usual: &UnqueuedRtt) -> bool {
        let usual = usual.usual();
        let doubt = (usual / 8).max(self.rtt.varies() * 2).max(SHORT_QUEUE);
        self.rtt.recent() > usual + doubt
    }

    /// Notes what the newest packet acknowledged says of the path, after its round trip was sampled.
    pub fn note_delivered(
        &mut self,
        now: Instant,
        arrived: Instant,
        rtt: Duration,
        bytes: u64,
        packets: u32,
        sample: Option<RateSample>,
    ) {
        let at_send = *self.progress.at_send();
        self.capacity.hear_pause(arrived, now - rtt, at_send.burst, bytes);
        let reorders = self.progress.reorders(now);
        let varies = self.rtt.comes_apart_by(reorders);
        let held = self.capacity.rate().bytes_in(self.rtt.most_take(reorders));
        if at_send.in_flight <= held {
            self.rtt.was_unloaded(now, reorders);
        } else if at_send.burst == now - rtt && self.capacity.is_sound() && !self.capacity.closes_pauses() {
            // More was in flight than the path held, but what had left before was through: the path became longer.
            self.rtt.was_longer(now);
        }
        let usual = self.rtt.without_queue(reorders);
        // Where the sender had less to send than the path would have taken, only what nothing else explains.
        let doubt = if at_send.app_limited { CLEAR_QUEUE } else { Duration::ZERO };
        let queued = usual.is_exceeded(rtt.saturating_sub(doubt)).then(|| rtt.saturating_sub(usual.usual()));
        let sent_at = now - rtt;
        let delivered = Delivered { bytes, packets, sent_at, burst: at_send.burst, queued, varies };
        let mistaken = self.capacity.delivered(arrived, delivered, self.rtt.min_rtt());
        if mistaken {
            self.rtt.forget_longer(now);
        }
        if let Some(s) = sample {
            // Of a path that varies much beside what it takes no sample says more than another, and each rate that is found for
            // it would be a little less than the one before.
            let (apart, least) = (self.rtt.varies(), self.rtt.min_rtt());
            let varies_little = reorders && apart * NEARLY_STEADY <= least;
            let s = if varies_little { s.of_a_varying_path(apart) } else { s };
            // Where more was in flight than the path held, and even the quickest of the newest round trips waited in a queue,
            // the source offered all that the path carries. A path that became longer looks alike: only a sample that is not
            // far below what is believed counts so.
            let full = at_send.in_flight > held && self.capacity.is_nearly_all(s.rate) && self.all_waited(&usual);
            let app_limited = s.app_limited && !full;
            self.capacity.sample(now, RateSample { app_limited, ..s }, self.rtt.mean());
        }
    }
}
