//! What parity did in a session: what it cost, what it restored, and why it was left out.

use anabranch_net::ConnectionStats;
use serde::Serialize;

/// Counters of parity, from the beginning of the session. Only where both ends agreed on it, or a policy makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ParityRow {
    /// The peer reads the kind of parity that is made here, or both ends take parity where none is made.
    pub parity_agreed: bool,
    /// Parity chunks sent.
    pub parity_sent: u64,
    /// Their bytes.
    pub parity_bytes_sent: u64,
    /// Parity chunks received.
    pub parity_received: u64,
    /// Records of check bits sent, each of a packet.
    pub check_records: u64,
    /// Their bytes.
    pub check_bytes: u64,
    /// Chunks that did not come and were restored.
    pub repaired: u64,
    /// Of those, the ones that came later nevertheless.
    pub repaired_needlessly: u64,
    /// Chunks of ours that the peer restored and that were lost.
    pub repaired_by_peer: u64,
    /// Opportunities at which none was sent since nothing had been lost lately.
    pub parity_idle_no_loss: u64,
    /// Since what is lost could be sent again in time.
    pub parity_idle_in_time: u64,
    /// Since what had left was enough.
    pub parity_idle_enough: u64,
    /// Since it had had its part of the bytes.
    pub parity_idle_rate: u64,
}

/// Does a policy here make parity?
fn makes_parity(stats: &ConnectionStats) -> bool {
    stats.policies.iter().any(|(_, c)| matches!(c.0, "idle-no-loss" | "check-records"))
}

/// What to say of parity that is made here and that the peer does not read, so that none leaves.
pub fn unread(stats: &ConnectionStats) -> Option<&'static str> {
    let checks = stats.policies.iter().any(|(_, c)| c.0 == "check-records");
    let unread = makes_parity(stats) && !stats.association.parity_agreed;
    unread.then_some(match checks {
        true => "does not read the check bits that are made here, and none leave; --set repair=split_error_correction there",
        false => "does not read the parity that is made here, and none leaves; --profile live-parity there, or --set repair=erasure",
    })
}

impl ParityRow {
    /// What a connection counted; none without parity.
    pub fn of(stats: &ConnectionStats) -> Option<ParityRow> {
        let of = |name: &str| stats.policies.iter().find(|(_, c)| c.0 == name).map(|(_, c)| c.1);
        let a = &stats.association;
        let any = makes_parity(stats) || a.parity_received > 0;
        any.then(|| ParityRow {
            parity_agreed: a.parity_agreed,
            parity_sent: a.parity_sent,
            parity_bytes_sent: a.parity_bytes_sent,
            parity_received: a.parity_received,
            check_records: of("check-records").unwrap_or(0),
            check_bytes: of("check-bytes").unwrap_or(0),
            repaired: a.repaired,
            repaired_needlessly: a.repaired_needlessly,
            repaired_by_peer: a.repaired_by_peer,
            parity_idle_no_loss: of("idle-no-loss").unwrap_or(0),
            parity_idle_in_time: of("idle-in-time").unwrap_or(0),
            parity_idle_enough: of("idle-enough").unwrap_or(0),
            parity_idle_rate: of("idle-rate").unwrap_or(0),
        })
    }

    /// The sum with what a later connection of the session counted.
    pub fn and(self, o: ParityRow) -> ParityRow {
        ParityRow {
            parity_agreed: o.parity_agreed,
            parity_sent: self.parity_sent + o.parity_sent,
            parity_bytes_sent: self.parity_bytes_sent + o.parity_bytes_sent,
            parity_received: self.parity_received + o.parity_received,
            check_records: self.check_records + o.check_records,
            check_bytes: self.check_bytes + o.check_bytes,
            repaired: self.repaired + o.repaired,
            repaired_needlessly: self.repaired_needlessly + o.repaired_needlessly,
            repaired_by_peer: self.repaired_by_peer + o.repaired_by_peer,
            parity_idle_no_loss: self.parity_idle_no_loss + o.parity_idle_no_loss,
            parity_idle_in_time: self.parity_idle_in_time + o.parity_idle_in_time,
            parity_idle_enough: self.parity_idle_enough + o.parity_idle_enough,
            parity_idle_rate: self.parity_idle_rate + o.parity_idle_rate,
        }
    }

    /// The sum of both, where there is one.
    pub fn sum(a: Option<ParityRow>, b: Option<ParityRow>) -> Option<ParityRow> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.and(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::Hook;

    #[test]
    fn sessions_without_parity_say_nothing_of_it() {
        let mut stats = ConnectionStats::default();
        assert_eq!(ParityRow::of(&stats), None);
        assert_eq!(unread(&stats), None);
        stats.association.parity_received = 3;
        stats.association.repaired = 2;
        let one = ParityRow::of(&stats);
        assert_eq!(one.map(|r| (r.parity_received, r.repaired)), Some((3, 2)));
        assert_eq!(ParityRow::sum(one, None), one);
        assert_eq!(ParityRow::sum(one, one).map(|r| r.repaired), Some(4));
    }
    #[test]
    fn parity_that_the_peer_does_not_read_is_said_so() {
        for (counter, word) in [("idle-no-loss", "parity"), ("check-records", "check bits")] {
            let mut stats = ConnectionStats::default();
            stats.policies.push((Hook::Redundancy, (counter, 7)));
            assert!(unread(&stats).is_some_and(|what| what.contains(word)));
            assert_eq!(ParityRow::of(&stats).map(|r| r.parity_agreed), Some(false));
            stats.association.parity_agreed = true;
            assert_eq!(unread(&stats), None);
            assert_eq!(ParityRow::of(&stats).map(|r| r.parity_agreed), Some(true));
        }
    }
}
