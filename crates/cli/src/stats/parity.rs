//! What parity did in a session: what it cost, what it restored, and why it was left out.

use anabranch_net::ConnectionStats;
use serde::Serialize;

/// Counters of parity, from the beginning of the session. Only where both ends agreed on it, or a policy makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ParityRow {
    /// Parity chunks sent.
    pub parity_sent: u64,
    /// Their bytes.
    pub parity_bytes_sent: u64,
    /// Parity chunks received.
    pub parity_received: u64,
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

impl ParityRow {
    /// What a connection counted; none without parity.
    pub fn of(stats: &ConnectionStats) -> Option<ParityRow> {
        let idle = |name: &str| stats.policies.iter().find(|(_, c)| c.0 == name).map(|(_, c)| c.1);
        let a = &stats.association;
        let any = idle("idle-no-loss").is_some() || a.parity_received > 0;
        any.then(|| ParityRow {
            parity_sent: a.parity_sent,
            parity_bytes_sent: a.parity_bytes_sent,
            parity_received: a.parity_received,
            repaired: a.repaired,
            repaired_needlessly: a.repaired_needlessly,
            repaired_by_peer: a.repaired_by_peer,
            parity_idle_no_loss: idle("idle-no-loss").unwrap_or(0),
            parity_idle_in_time: idle("idle-in-time").unwrap_or(0),
            parity_idle_enough: idle("idle-enough").unwrap_or(0),
            parity_idle_rate: idle("idle-rate").unwrap_or(0),
        })
    }

    /// The sum with what an earlier connection of the session counted.
    pub fn and(self, o: ParityRow) -> ParityRow {
        ParityRow {
            parity_sent: self.parity_sent + o.parity_sent,
            parity_bytes_sent: self.parity_bytes_sent + o.parity_bytes_sent,
            parity_received: self.parity_received + o.parity_received,
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

    #[test]
    fn sessions_without_parity_say_nothing_of_it() {
        let mut stats = ConnectionStats::default();
        assert_eq!(ParityRow::of(&stats), None);
        stats.association.parity_received = 3;
        stats.association.repaired = 2;
        let one = ParityRow::of(&stats);
        assert_eq!(one.map(|r| (r.parity_received, r.repaired)), Some((3, 2)));
        assert_eq!(ParityRow::sum(one, None), one);
        assert_eq!(ParityRow::sum(one, one).map(|r| r.repaired), Some(4));
    }
}
