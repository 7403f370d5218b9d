//! What the peer restored from parity: lost as anything that is lost, and not sent again.

use crate::association::Association;
use crate::lazy_box::Empty;
use crate::repair::TransmissionCause;
use crate::tx::scoreboard::ChunkState;
use anabranch_base::{Instant, Tsn};
use anabranch_wire::Repaired;

/// So many are named in one packet.
pub(super) const MOST_SETTLED: usize = 64;

/// Chunks that the peer restored and whose loss was judged: it is to count them as received. Said again until it does.
#[derive(Debug, Default)]
pub(in crate::association) struct Settled {
    /// Extended, lowest first.
    tsns: Vec<u64>,
    due: bool,
    sent: Option<Instant>,
    again: Option<Instant>,
}

impl Empty for Settled {
    const EMPTY: &'static Self = &Settled { tsns: Vec::new(), due: false, sent: None, again: None };
}

impl Settled {
    /// Is there something to say now?
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// When to say it again.
    pub fn deadline(&self) -> Option<Instant> {
        self.again
    }

    pub fn expire(&mut self) {
        self.again = None;
        self.due = !self.tsns.is_empty();
    }

    /// The peer has everything up to here.
    pub fn pass(&mut self, cum: u64) {
        self.tsns.retain(|t| *t > cum);
        if self.tsns.is_empty() {
            (self.due, self.sent, self.again) = (false, None, None);
        }
    }

    /// What to say now; it will be said again at `again`.
    pub fn take(&mut self, now: Instant, again: Instant) -> Vec<Tsn> {
        (self.due, self.sent, self.again) = (false, Some(now), Some(again));
        self.tsns.iter().take(MOST_SETTLED).map(|t| Tsn(*t as u32)).collect()
    }

    fn add(&mut self, tsn: u64) {
        if let Err(at) = self.tsns.binary_search(&tsn) {
            self.tsns.insert(at, tsn);
        }
        self.due = true;
    }
}

impl Association {
    /// The peer restored chunks and does not need them any more.
    pub(in crate::association) fn on_repaired(&mut self, now: Instant, r: &Repaired<'_>) {
        for tsn in r.tsns().take(MOST_SETTLED) {
            let at = self.sender.board.extend(tsn);
            let Some(c) = self.sender.board.get_mut(at).filter(|c| !c.parity) else { continue };
            match c.state {
                ChunkState::Outstanding | ChunkState::Marked if !c.repaired => {
                    c.repaired = true;
                    let marked = c.state == ChunkState::Marked;
                    self.policies.redundancy.repaired(tsn);
                    if marked {
                        self.lose_for_good(at, now, TransmissionCause::Reports);
                    }
                }
                // It did not hear the answer.
                ChunkState::Acked if c.repaired => {
                    let patience = self.paths.iter().map(|p| p.rtt.srtt()).max().unwrap_or_default();
                    if self.sender.settled.sent.is_none_or(|t| now.since(t) >= patience) {
                        self.sender.settled.add(at);
                    }
                }
                _ => {}
            }
        }
    }

    /// The last copy of parity, or of what the peer restored, is lost: nothing is sent again.
    #[inline(never)]
    pub(in crate::association) fn lose_for_good(&mut self, tsn: u64, now: Instant, why: TransmissionCause) {
        let Some(c) = self.sender.board.get_mut(tsn) else { return };
        if c.repaired {
            self.stats.rare.repaired_by_peer += 1;
            self.sender.board.settle(tsn, ChunkState::Acked);
            self.sender.board.keep(tsn);
            self.sender.settled.add(tsn);
        } else if self.peer.forward_tsn {
            c.arrived = true;
            self.sender.board.settle(tsn, ChunkState::Abandoned);
            self.sender.forward_due = true;
        } else {
            self.sender.board.mark(tsn, now, why);
        }
    }
}
