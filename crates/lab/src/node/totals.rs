//! What an association has counted.

use anabranch_engine::Association;
use anabranch_policy::asks::Counter;

/// Counts of one end of an association, of all its paths together.
#[derive(Clone, Default, Debug)]
pub struct Totals {
    /// Chunks declared lost.
    pub losses: u64,
    /// Expiries of T3.
    pub timeouts: u64,
    /// Window cuts after reports.
    pub recoveries: u64,
    /// Chunks sent again.
    pub retransmissions: u64,
    /// Chunks that came a second time.
    pub duplicates: u64,
    /// What the policies count, by name.
    pub counters: Vec<Counter>,
}

impl Totals {
    /// As they are now.
    pub fn of(a: &Association) -> Self {
        let stats = a.stats();
        let mut all = Totals {
            retransmissions: stats.retransmissions,
            duplicates: stats.duplicates_received,
            counters: a.policy_counters().map(|(_, c)| c).collect(),
            ..Totals::default()
        };
        for (_, p) in a.paths() {
            all.losses += p.counters.lost_by_report + p.counters.lost_by_timeout;
            all.timeouts += p.counters.timeouts;
            all.recoveries += p.counters.recoveries;
        }
        all
    }
}
