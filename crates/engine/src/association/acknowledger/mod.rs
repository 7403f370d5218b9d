//! When to acknowledge, what to say, and on which path (RFC 9260 §6.2, §6.4).

mod answer_path;
mod marks;
mod sack_out;
mod way_back;

use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::acknowledge::{AckWhen, Acknowledge, ReceiveView};
use marks::Marks;
use way_back::WayBack;

/// RFC 9260 §6.2: no SACK is delayed by more.
const MOST_DELAY: Duration = Duration::from_millis(500);

/// How long a FORWARD-TSN waits for its SACK, at least, whatever the delay for DATA is (RFC 9260 §6.2 has 200 ms there).
/// With 20 ms a path whose MTU falls costs more frames (weather/one-mtu-600: 24 instead of 14.5); why is not understood.
const FORWARD_SACK_DELAY: Duration = Duration::from_millis(200);

/// What one packet with DATA means for acknowledging.
#[derive(Clone, Copy, Debug)]
pub(in crate::association) struct PacketOfData {
    /// Bytes of payload.
    pub bytes: usize,
    /// It brought something that was not known yet.
    pub new: bool,
    /// Something is missing before or after what came.
    pub gap: bool,
    /// Something is missing still.
    pub gap_left: bool,
    /// The sender wants an answer now, or something of it was dropped.
    pub immediate: bool,
    /// The peer reads how many packets a SACK answers.
    pub counted: bool,
    /// When a SACK last answered this path.
    pub last_sack: Option<Instant>,
}

/// What an association owes its peer in acknowledgements.
#[derive(Debug, Default)]
pub(in crate::association) struct Acknowledger {
    /// A SACK leaves at the next chance.
    due: bool,
    timer: Option<Instant>,
    /// The path of the newest DATA.
    path: PathId,
    /// The next SACK leaves on this path, whether or not the path is known to answer.
    detour: Option<PathId>,
    /// Every other answer to repetitions takes the detour.
    took_detour: bool,
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// When the newest of them came.
    newest: Instant,
    way_back: WayBack,
    first_data: Option<Instant>,
    any_data: bool,
    /// The packet at hand was marked on its way.
    packet_marked: bool,
    /// Marked packets of which the sender has not said that it knows.
    marks: Option<Marks>,
}

impl Acknowledger {
    /// A SACK leaves at the next chance.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// A SACK is due, or will be.
    pub fn is_pending(&self) -> bool {
        self.due || self.timer.is_some()
    }

    /// When a delayed SACK leaves.
    pub fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// The path of the newest DATA.
    pub fn path(&self) -> PathId {
        self.path
    }

    /// A packet with DATA came by this path.
    pub fn note_path(&mut self, path: PathId) {
        self.path = path;
    }

    /// Has DATA come yet?
    pub fn has_any_data(&self) -> bool {
        self.any_data
    }

    /// DATA came; answers whether it was the first.
    pub fn note_data(&mut self) -> bool {
        !core::mem::replace(&mut self.any_data, true)
    }

    /// A SACK leaves at the next chance.
    pub fn request(&mut self) {
        self.due = true;
    }

    /// Nothing is to be acknowledged any more.
    pub fn stop(&mut self) {
        self.due = false;
        self.timer = None;
    }

    /// The delay is over.
    pub fn on_timer(&mut self) {
        self.timer = None;
        self.due = true;
    }

    /// All chunks of a packet with DATA are read: a SACK is due now or by some time.
    #[inline]
    pub fn after_packet(&mut self, now: Instant, p: PacketOfData, delay: Duration, policy: &dyn Acknowledge) {
        self.packets += 1;
        self.newest = now;
        self.way_back.received(p.bytes);
        let view = ReceiveView {
            now,
            packets_since_sack: self.packets,
            bytes: p.bytes as u32,
            way_back: self.way_back.share(),
            gap: p.gap,
            gap_left: p.gap_left,
            duplicates_only: !p.new,
            counted: p.counted,
            immediate: p.immediate,
            last_sack: p.last_sack,
            first_data: Some(*self.first_data.get_or_insert(now)),
            delay: delay.min(MOST_DELAY),
        };
        match policy.decide(&view) {
            AckWhen::Now => self.due = true,
            AckWhen::By(t) => self.by(t),
        }
    }

    /// A FORWARD-TSN is no DATA, and says nothing that the peer does not know: it waits for the next SACK, unless
    /// `urgent`.
    pub fn after_forward_tsn(&mut self, now: Instant, delay: Duration, urgent: bool) {
        self.by(now + FORWARD_SACK_DELAY.max(delay.min(MOST_DELAY)));
        self.due |= urgent;
    }

    fn by(&mut self, t: Instant) {
        self.timer = Some(self.timer.map_or(t, |o| o.min(t)));
    }

    /// How many packets a SACK speaks for that is built now, where the peer reads it.
    fn answered(&self, counted: bool) -> u8 {
        if counted { self.packets.min(3) as u8 } else { 0 }
    }

    /// When what a SACK answers came: the newest DATA's time, or now where none came since the last SACK.
    fn arrived(&self, now: Instant) -> Instant {
        if self.packets > 0 { self.newest } else { now }
    }

    /// A SACK of so many bytes was built.
    fn sent(&mut self, bytes: usize) {
        self.way_back.sent(bytes);
        self.detour = None;
        self.due = false;
        self.timer = None;
        self.packets = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every second packet, or after the delay.
    struct Delayed;

    impl Acknowledge for Delayed {
        fn decide(&self, v: &ReceiveView) -> AckWhen {
            if v.packets_since_sack >= 2 { AckWhen::Now } else { AckWhen::By(v.now + v.delay) }
        }
    }

    const DELAY: Duration = Duration::from_millis(200);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn plain(new: bool) -> PacketOfData {
        PacketOfData {
            bytes: 1_000,
            new,
            gap: false,
            gap_left: false,
            immediate: false,
            counted: false,
            last_sack: None,
        }
    }

    #[test]
    fn every_second_packet_is_answered_at_once_and_a_single_one_after_the_delay() {
        let mut a = Acknowledger::default();
        a.note_path(PathId(1));
        a.after_packet(at(0), plain(true), DELAY, &Delayed);
        assert_eq!((a.is_due(), a.deadline(), a.path()), (false, Some(at(200)), PathId(1)));
        a.note_path(PathId(0));
        a.after_packet(at(5), plain(true), DELAY, &Delayed);
        assert_eq!((a.is_due(), a.path()), (true, PathId(0)));
        assert_eq!(a.answered(true), 2);
        a.sent(28);
        assert!(!a.is_pending());
    }

    #[test]
    fn a_sack_is_dated_by_its_newest_data_and_one_without_data_by_itself() {
        let mut a = Acknowledger::default();
        a.after_packet(at(10), plain(true), DELAY, &Delayed);
        assert_eq!(a.arrived(at(90)), at(10), "DATA waited for its SACK");
        a.sent(28);
        a.after_forward_tsn(at(300), DELAY, true);
        assert_eq!(a.arrived(at(300)), at(300), "no DATA since: its old arrival would date a new answer");
    }

    #[test]
    fn no_sack_is_delayed_by_more_than_half_a_second() {
        let mut a = Acknowledger::default();
        a.note_path(PathId(0));
        a.after_packet(at(0), plain(true), Duration::from_secs(3), &Delayed);
        assert_eq!(a.deadline(), Some(at(500)));
    }

    #[test]
    fn a_forward_tsn_never_delays_the_sack_of_data() {
        for earlier in [50, 350] {
            let mut a = Acknowledger::default();
            a.note_path(PathId(0));
            a.after_packet(at(0), plain(true), Duration::from_millis(earlier), &Delayed);
            a.after_forward_tsn(at(0), Duration::from_millis(20), false);
            assert_eq!((a.is_due(), a.deadline()), (false, Some(at(earlier.min(200)))));
        }
    }
}
