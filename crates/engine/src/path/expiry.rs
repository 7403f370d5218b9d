//! Expiries of T3 on a path, and what came of them.

use super::doubted::DoubtedTsns;
use anabranch_base::Instant;

/// Expiries in a row after which what is known of a path's window says as little as after idling.
const DARK: u16 = 2;

/// The first answer of a path after T3 expired there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// When what it answers had left; zero where nothing was in flight.
    pub answered: Instant,
    /// T3 had expired several times.
    pub dark: bool,
}

/// The row of expiries that nothing has answered, the back-off, and the packet beyond the window that may show that the
/// path works again.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    backoff: u8,
    /// In a row, without an answer.
    consecutive: u16,
    last: Option<Instant>,
    about: DoubtedTsns,
    /// It answered after an expiry, and what that overtook has not been looked at yet.
    resumed: Option<Resumed>,
    /// Packets that the last expiry left in flight.
    spared: u32,
    /// A packet may leave beyond the window.
    probes: bool,
}

impl Expiries {
    /// T3 expired; the policy of timers backs off so far now.
    pub fn expire(&mut self, now: Instant, backoff: u8) {
        self.backoff = backoff;
        self.last = Some(now);
        self.consecutive = self.consecutive.saturating_add(1);
        self.spared = 0;
    }

    /// So many packets stay in flight; answers whether any does.
    pub fn spare(&mut self, packets: u32) -> bool {
        self.spared = packets;
        packets > 0
    }

    /// Did T3 expire without an answer since?
    #[inline(always)]
    pub fn is_silent(&self) -> bool {
        self.consecutive > 0
    }

    /// Something was acknowledged: the row ends.
    #[inline(always)]
    pub fn end_row(&mut self) {
        self.consecutive = 0;
    }

    /// A round trip was measured, or the path is another one: T3 waits as long as at first.
    #[inline(always)]
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// May one more packet leave beside those in flight? After an expiry a single one does until something is
    /// acknowledged, however small it is (RFC 9260 §7.2.1, §7.2.3).
    #[inline(always)]
    pub fn allows_beside(&self, in_flight: u32) -> bool {
        self.consecutive == 0 || in_flight <= self.spared
    }

    // ---- needless expiries

    /// The expiry was about this TSN, which had left once.
    pub fn note_tsn(&mut self, tsn: u64) {
        self.about.note(tsn);
    }

    /// The peer got `tsn` twice. Was that the doing of an expiry? It is looked for no longer.
    pub fn repeated_needlessly(&mut self, tsn: u64) -> bool {
        self.about.take(tsn)
    }

    /// Another copy of `tsn` leaves: a duplicate of it says nothing of expiries.
    pub fn forget_tsn(&mut self, tsn: u64) {
        self.about.forget(tsn);
    }

    // ---- a packet beyond the window

    /// A packet may leave whatever the window says.
    #[inline]
    pub fn allow_probe(&mut self) {
        self.probes = true;
    }

    /// May one leave?
    #[inline(always)]
    pub fn may_probe(&self) -> bool {
        self.probes
    }

    /// A packet with data left, or there is nothing to leave.
    #[inline(always)]
    pub fn end_probe(&mut self) {
        self.probes = false;
    }

    // ---- answers after an expiry

    /// Did T3 expire without anything acknowledged or measured since?
    #[inline(always)]
    pub fn awaits_answer(&self) -> bool {
        self.consecutive > 0 || self.backoff > 0
    }

    /// The path answered what left at `sent_at`. `in_time` when that can be no answer to an earlier copy: nothing else ends
    /// the back-off (Karn's rule).
    pub fn answer(&mut self, sent_at: Instant, in_time: bool) {
        if !self.awaits_answer() {
            return;
        }
        if in_time {
            self.backoff = 0;
        }
        let before = self.resumed.unwrap_or_default();
        let dark = before.dark || self.consecutive >= DARK;
        self.resumed = Some(Resumed { answered: before.answered.max(sent_at), dark });
    }

    /// The path is in use again, and what is in flight elsewhere for want of a better path may return.
    pub fn come_back(&mut self) {
        self.resumed.get_or_insert_default();
    }

    /// What the answer overtook is not lost yet, but will be looked at again.
    pub fn look_again(&mut self, answered: Instant) {
        self.resumed = Some(Resumed { answered, dark: false });
    }

    /// Is there an answer whose consequences wait?
    #[inline(always)]
    pub fn has_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// The answer whose consequences wait, once.
    pub fn take_resumed(&mut self) -> Option<Resumed> {
        self.resumed.take()
    }

    // ---- what views show

    pub(super) fn backoff(&self) -> u8 {
        self.backoff
    }

    pub(super) fn in_a_row(&self) -> u16 {
        self.consecutive
    }

    pub(super) fn last(&self) -> Option<Instant> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn expired(times: u16) -> Expiries {
        let mut e = Expiries::default();
        (1..=times).for_each(|i| e.expire(at(u64::from(i) * 1_000), i as u8));
        e
    }

    #[test]
    fn an_expiry_leaves_room_for_one_packet_beside_what_it_spared() {
        assert!((0..100).all(|n| Expiries::default().allows_beside(n)), "none expired");
        for spared in 0..10 {
            let mut e = expired(1);
            assert_eq!(e.spare(spared), spared > 0);
            assert!((0..20).all(|n| e.allows_beside(n) == (n <= spared)), "{spared} were spared");
            e.expire(at(5_000), 2);
            assert!((0..20).all(|n| e.allows_beside(n) == (n == 0)), "the next one spares none by itself");
            e.end_row();
            assert!((0..100).all(|n| e.allows_beside(n)), "something was acknowledged");
        }
    }

    #[test]
    fn only_an_answer_in_time_ends_the_back_off() {
        for (times, in_time) in (1..5).flat_map(|n| [(n, false), (n, true)]) {
            let mut e = expired(times);
            e.answer(at(10), in_time);
            assert_eq!(e.backoff(), if in_time { 0 } else { times as u8 });
            assert!(e.is_silent(), "the row ends when something is acknowledged");
            assert_eq!(e.take_resumed(), Some(Resumed { answered: at(10), dark: times >= DARK }));
            assert!(!e.has_resumed());
        }
    }

    #[test]
    fn a_path_that_never_fell_silent_does_not_resume() {
        let mut e = Expiries::default();
        e.answer(at(10), true);
        assert!(!e.has_resumed());
        let mut e = expired(3);
        e.end_row();
        e.answer(at(10), false);
        assert!(e.has_resumed(), "it is backed off still");
    }

    /// Several answers before they are looked at: the newest of what they answer counts, and once dark stays dark.
    #[test]
    fn answers_add_up_until_they_are_looked_at() {
        let mut e = expired(DARK);
        e.answer(at(30), true);
        e.end_row();
        e.expire(at(9_000), 1);
        e.answer(at(20), true);
        e.come_back();
        assert_eq!(e.take_resumed(), Some(Resumed { answered: at(30), dark: true }));
        e.look_again(at(40));
        e.come_back();
        assert_eq!(e.take_resumed(), Some(Resumed { answered: at(40), dark: false }));
    }

    #[test]
    fn rows_count_up_and_never_over() {
        let mut e = Expiries::default();
        (0..70_000u64).for_each(|i| e.expire(at(i), 16));
        assert_eq!((e.in_a_row(), e.backoff(), e.last()), (u16::MAX, 16, Some(at(69_999))));
        e.end_row();
        assert_eq!((e.in_a_row(), e.last()), (0, Some(at(69_999))));
    }
}
