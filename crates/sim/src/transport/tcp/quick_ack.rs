//! How long Linux delays an acknowledgement (`net/ipv4/tcp_input.c`; no RFC describes it): not at all at the start of a
//! connection, after a long silence and after anything out of order; otherwise for a time that follows the gaps between
//! segments, from 40 ms up.

use anabranch_base::{Duration, Instant};

/// So many acknowledgements are sent at once.
const QUICK: u8 = 16;
/// No acknowledgement waits longer (`TCP_DELACK_MAX`).
pub(super) const LONGEST: Duration = Duration::from_millis(200);

/// The receiver's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuickAck {
    /// The shortest delay (`TCP_DELACK_MIN`).
    shortest: Duration,
    quick: u8,
    /// The gap between segments, smoothed.
    gap: Option<Duration>,
    latest: Instant,
    /// The round trip of the handshake.
    rtt: Duration,
}

impl QuickAck {
    pub fn new(shortest: Duration) -> Self {
        QuickAck { shortest, quick: QUICK, gap: None, latest: Instant::ZERO, rtt: Duration::ZERO }
    }

    /// The SYN has come, and is acknowledged.
    pub fn opened(&mut self, now: Instant) {
        self.latest = now;
    }

    /// Segment of data comes; `plain` says that it is the next one and fills no gap.
    pub fn segment(&mut self, now: Instant, plain: bool) {
        let since = now.since(self.latest);
        self.latest = now;
        let (half, timeout) = (self.half(), self.timeout());
        match self.gap {
            None => {
                self.rtt = since;
                self.gap = Some(self.shortest);
            }
            Some(gap) if since <= half => self.gap = Some(halved(gap) + half),
            Some(gap) if since < gap => self.gap = Some((halved(gap) + since).min(timeout)),
            Some(_) if since > timeout => self.quick = QUICK,
            Some(_) => {}
        }
        if !plain {
            self.quick = QUICK;
        }
    }

    /// How long the acknowledgement that is due now waits for a second segment; `None` for not at all.
    pub fn wait(&mut self) -> Option<Duration> {
        if self.quick > 0 {
            self.quick -= 1;
            return None;
        }
        let most = self.rtt.max(self.shortest).min(LONGEST);
        Some(self.gap.unwrap_or(self.shortest).clamp(self.shortest, most))
    }

    fn half(&self) -> Duration {
        halved(self.shortest)
    }

    /// The receiver's own time-out.
    fn timeout(&self) -> Duration {
        self.rtt + (self.rtt * 2).max(LONGEST)
    }
}

fn halved(d: Duration) -> Duration {
    Duration::from_nanos(d.as_nanos() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Segments this many ms apart, the first a round trip of 100 ms after the SYN; what each would wait.
    fn waits(gaps: &[u64]) -> Vec<Option<u64>> {
        let mut q = QuickAck::new(MS(40));
        let mut now = Instant::ZERO;
        q.opened(now);
        let one = |gap: &u64| {
            now += MS(*gap);
            q.segment(now, true);
            q.wait().map(Duration::as_millis)
        };
        [100].iter().chain(gaps).map(one).collect()
    }

    #[test]
    fn sixteen_at_once_then_forty_milliseconds() {
        let all = waits(&[1; 20]);
        assert_eq!(all[..16], [None; 16]);
        assert_eq!(all[16..], [Some(40); 5]);
    }

    #[test]
    fn the_wait_follows_the_gaps_up_to_a_round_trip() {
        // 35 ms is below the smoothed gap of 40: 20 + 35, and so on towards 70.
        let all = waits(&[35; 20]);
        assert_eq!(all[20], Some(69));
        assert!(all[16..].iter().all(|w| *w <= Some(100)), "{all:?}");
    }

    #[test]
    fn a_silence_longer_than_the_time_out_is_answered_at_once() {
        let mut gaps = [1u64; 20];
        gaps[18] = 301;
        let all = waits(&gaps);
        assert_eq!(all[18..], [Some(40), None, None]);
        gaps[18] = 300;
        assert_eq!(waits(&gaps)[19], Some(40));
    }

    #[test]
    fn out_of_order_is_answered_at_once() {
        let mut q = QuickAck::new(MS(40));
        (0..16).for_each(|_| assert_eq!(q.wait(), None));
        q.segment(Instant::from_millis(1), true);
        assert_eq!(q.wait(), Some(MS(40)));
        q.segment(Instant::from_millis(2), false);
        assert_eq!(q.wait(), None);
    }
}
