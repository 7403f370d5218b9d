//! What was acknowledged last on a path, how it had left, and whether packets overtook each other on their way.

use super::Path;
use super::doubted::DoubtedTsns;
use super::rate::DeliveredAtSend;
use anabranch_base::Instant;
use anabranch_policy::view::PathView;

/// The newest packets of which something was acknowledged, and those that arrived after others that had left later.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Newest serial that an acknowledgement proves to have arrived, since T3 expired last.
    proven: Option<u64>,
    /// Newest serial that was taken off the flight as acknowledged, and what was so when it left.
    newest: Option<u64>,
    at_send: DeliveredAtSend,
    /// When a packet was last found to have been overtaken by a later one.
    overtaken_at: Option<Instant>,
    /// What reports condemned, a TSN of each packet, and the last of those packets.
    condemned: DoubtedTsns,
    last_condemned: Option<u64>,
}

impl Progress {
    /// An acknowledgement proves that the packet with this serial arrived, if it proves any.
    pub fn prove(&mut self, tx_seq: Option<u64>) {
        self.proven = self.proven.max(tx_seq);
    }

    /// What left before this serial may be missing.
    pub fn proven(&self) -> Option<u64> {
        self.proven
    }

    /// T3 expired: what arrived before says nothing about what leaves now.
    pub fn forget_proven(&mut self) {
        self.proven = None;
    }

    /// The packet with this serial arrived: after a later one, where that had been reported without it.
    #[inline]
    pub fn arrive_in_turn(&mut self, now: Instant, tx_seq: u64) {
        if self.proven > Some(tx_seq) {
            self.overtaken_at = Some(now);
        }
    }

    /// A packet that was taken for lost arrived nevertheless.
    pub fn arrive_late(&mut self, now: Instant) {
        self.overtaken_at = Some(now);
    }

    /// Reports condemned the only packet that brought `tsn`, which has this serial: should the peer report that it got it
    /// twice, or what was given up, that packet came late. (Unless the network doubled what was sent again.)
    pub fn condemn(&mut self, tsn: u64, tx_seq: u64) {
        if self.last_condemned.replace(tx_seq) != Some(tx_seq) {
            self.condemned.note(tsn);
        }
    }

    /// The peer reports a duplicate of `tsn`.
    pub fn arrive_twice(&mut self, now: Instant, tsn: u64) {
        if self.condemned.take(tsn) {
            self.arrive_late(now);
        }
    }

    /// A further packet brings `tsn`: a duplicate of it says nothing any more.
    pub fn acquit(&mut self, tsn: u64) {
        self.condemned.forget(tsn);
    }

    /// Another route: whether packets overtake each other there is not known.
    pub fn forget_order(&mut self) {
        self.overtaken_at = None;
        self.condemned = DoubtedTsns::default();
    }

    /// When packets last came in another order than they had left.
    pub fn overtaken_at(&self) -> Option<Instant> {
        self.overtaken_at
    }

    /// Packets overtook each other not long ago: each takes its own time.
    pub fn reorders(&self, now: Instant) -> bool {
        self.overtaken_at.is_some_and(|t| now.since(t) < PathView::REORDERS_FOR)
    }

    /// Something of the packet with this serial was acknowledged. The newest packet counts, of several the first time.
    #[inline]
    pub fn arrive(&mut self, tx_seq: u64, at_send: &DeliveredAtSend) {
        if self.newest.is_none_or(|n| tx_seq > n) {
            self.at_send = *at_send;
            self.newest = Some(tx_seq);
        }
    }

    /// How things stood when the newest packet that was acknowledged had left.
    pub fn at_send(&self) -> &DeliveredAtSend {
        &self.at_send
    }
}

/// What is known of a copy that leaves the flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was acknowledged, and came by no other path.
    Arrived,
    /// Its chunk was lost here.
    Lost,
    /// Its chunk arrived, or leaves by another path now; whether this copy arrived is not known.
    Unknown,
}

impl Path {
    /// What was acknowledged is taken to be this copy: how things stood when it left counts for the rate sample.
    #[inline]
    pub fn credit(&mut self, tx_seq: u64) {
        if let Some(p) = self.flight.packet(tx_seq) {
            self.progress.arrive(tx_seq, &p.at_send);
        }
    }

    /// Takes a copy of `len` bytes off the flight.
    #[inline]
    pub fn take_off(&mut self, tx_seq: u64, len: u64, fate: Fate) {
        if fate != Fate::Unknown
            && let Some(d) = self.mtu.discovery_mut()
            && let Some(p) = self.flight.packet(tx_seq).filter(|p| p.size > 0 && !p.counted_lost)
        {
            d.data_fate(p.sent_at, p.size.into(), fate == Fate::Lost);
        }
        self.flight.remove_copy(tx_seq, len, fate == Fate::Lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(delivered: u64) -> DeliveredAtSend {
        DeliveredAtSend { delivered, ..DeliveredAtSend::default() }
    }

    /// In whatever order they are acknowledged, the rate is sampled from the newest packet.
    #[test]
    fn the_newest_packet_counts_in_any_order() {
        let serials: Vec<u64> = (0..7).collect();
        for turn in 0..serials.len() {
            let mut order = serials.clone();
            order.rotate_left(turn);
            let mut p = Progress::default();
            let mut newest = 0;
            for s in order {
                p.arrive(s, &sent(s * 100));
                newest = newest.max(s);
                assert_eq!(p.at_send().delivered, newest * 100, "{turn}");
            }
        }
    }

    #[test]
    fn packets_are_overtaken_where_a_later_one_was_reported_before() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut p = Progress::default();
        for (k, order) in [3, 4, 6].into_iter().enumerate() {
            p.arrive_in_turn(at(k as u64), order);
            p.prove(Some(order));
            assert_eq!(p.overtaken_at(), None);
        }
        p.arrive_in_turn(at(7), 5);
        assert_eq!(p.overtaken_at(), Some(at(7)));
        p.forget_proven();
        p.arrive_in_turn(at(8), 2);
        assert_eq!(p.overtaken_at(), Some(at(7)), "T3 expired: nothing is known to have come before");
        p.arrive_late(at(9));
        assert_eq!(p.overtaken_at(), Some(at(9)));
    }

    #[test]
    fn what_came_twice_was_late_unless_it_left_once_more() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut p = Progress::default();
        (5..8).for_each(|tsn| p.condemn(tsn, tsn * 10));
        p.condemn(9, 70);
        p.acquit(6);
        p.arrive_twice(at(1), 6);
        p.arrive_twice(at(1), 4);
        p.arrive_twice(at(1), 9);
        assert_eq!(p.overtaken_at(), None);
        p.arrive_twice(at(2), 7);
        p.arrive_twice(at(3), 7);
        assert_eq!(p.overtaken_at(), Some(at(2)), "once");
    }

    #[test]
    fn chunks_of_one_packet_count_once() {
        let mut p = Progress::default();
        p.arrive(3, &sent(300));
        p.arrive(3, &sent(400));
        assert_eq!(p.at_send().delivered, 300);
    }

    #[test]
    fn what_is_proven_rises_until_t3_expires() {
        let mut p = Progress::default();
        for (seq, expected) in
            [(None, None), (Some(5), Some(5)), (Some(2), Some(5)), (None, Some(5)), (Some(9), Some(9))]
        {
            p.prove(seq);
            assert_eq!(p.proven(), expected);
        }
        p.forget_proven();
        p.prove(Some(4));
        assert_eq!(p.proven(), Some(4));
    }
}
