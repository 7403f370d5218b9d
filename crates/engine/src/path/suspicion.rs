//! Packets of a size that vanish while smaller ones arrive: what tells a black hole from loss (RFC 8899 §4.3).
//!
//! Loss by itself is no evidence, and neither is silence: a path that loses all it is given may be dead for a moment.
//! What counts is that packets of a size were lost in a row, over a round trip at least, and that something smaller
//! arrived which left after the first of them. Where nothing smaller is on its way, a HEARTBEAT is sent to find out.

use anabranch_base::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
struct Lost {
    packets: u8,
    first_sent: Instant,
    last_sent: Instant,
    /// Bytes of the smallest of them.
    least: usize,
    /// Bytes of the largest that arrived since, smaller than `least`.
    arrived: Option<usize>,
    asked: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Suspicion(Option<Lost>);

impl Suspicion {
    pub fn clear(&mut self) {
        self.0 = None;
    }
    pub fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// A packet of `size` bytes was lost.
    pub fn lost(&mut self, sent_at: Instant, size: usize) {
        // Its size has passed since: what was lost before says nothing about it.
        self.0.take_if(|l| l.arrived.is_some_and(|a| a >= size));
        let l = self.0.get_or_insert(Lost {
            packets: 0,
            first_sent: sent_at,
            last_sent: sent_at,
            least: size,
            arrived: None,
            asked: false,
        });
        l.packets = l.packets.saturating_add(1);
        l.first_sent = l.first_sent.min(sent_at);
        l.last_sent = l.last_sent.max(sent_at);
        l.least = l.least.min(size);
    }

    /// A packet of `size` bytes arrived; of control it is enough to know that it was small.
    pub fn arrived(&mut self, sent_at: Instant, size: usize) {
        match &mut self.0 {
            Some(l) if sent_at < l.first_sent => {}
            Some(l) if size < l.least => l.arrived = l.arrived.max(Some(size)),
            _ => self.0 = None,
        }
    }

    /// Should a small packet be sent to see whether that arrives? Once for each suspicion.
    pub fn asks(&mut self, enough: u8, round_trip: Duration) -> bool {
        let asks = |l: &Lost| l.is_enough(enough, round_trip) && l.arrived.is_none() && !l.asked;
        let Some(l) = self.0.as_mut().filter(|l| asks(l)) else { return false };
        l.asked = true;
        true
    }

    /// The smallest size that vanished, once that is sure.
    pub fn vanishing(&self, enough: u8, round_trip: Duration) -> Option<usize> {
        self.0.as_ref().filter(|l| l.arrived.is_some() && l.is_enough(enough, round_trip)).map(|l| l.least)
    }
}

impl Lost {
    fn is_enough(&self, enough: u8, round_trip: Duration) -> bool {
        self.packets >= enough && self.last_sent.since(self.first_sent) >= round_trip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn three_lost() -> Suspicion {
        let mut s = Suspicion::default();
        (0..3).for_each(|i| s.lost(at(100 + 30 * i), 1_300));
        s
    }

    #[test]
    fn loss_alone_is_asked_about_once_and_believed_when_the_small_one_arrives() {
        let mut s = three_lost();
        assert_eq!(s.vanishing(3, RTT), None);
        assert!(s.asks(3, RTT) && !s.asks(3, RTT));
        s.arrived(at(90), 60);
        assert_eq!(s.vanishing(3, RTT), None, "it left before the first that was lost");
        s.arrived(at(170), 60);
        assert_eq!(s.vanishing(3, RTT), Some(1_300));
    }

    #[test]
    fn a_burst_within_a_round_trip_and_too_few_say_nothing() {
        let mut s = three_lost();
        s.arrived(at(170), 60);
        assert_eq!((s.vanishing(3, RTT * 2), s.vanishing(4, RTT)), (None, None));
    }

    #[test]
    fn one_of_that_size_that_arrives_ends_it() {
        let mut s = three_lost();
        s.arrived(at(50), 1_300);
        assert!(s.is_any(), "it left before the first that was lost");
        s.arrived(at(110), 1_300);
        assert!(!s.is_any() && !s.asks(3, RTT));
    }

    #[test]
    fn the_smallest_that_was_lost_is_named() {
        let mut s = three_lost();
        s.lost(at(200), 900);
        s.arrived(at(210), 600);
        assert_eq!(s.vanishing(3, RTT), Some(900));
    }

    #[test]
    fn a_size_that_passed_since_is_suspected_anew() {
        let mut s = Suspicion::default();
        s.lost(at(100), 1_184);
        s.arrived(at(110), 1_176);
        (0..3).for_each(|i| s.lost(at(900 + 30 * i), 1_176));
        assert_eq!(s.vanishing(3, RTT), None, "nothing smaller than these arrived");
        s.arrived(at(970), 60);
        assert_eq!(s.vanishing(3, RTT), Some(1_176));
    }
}
