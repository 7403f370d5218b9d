//! What became of an agent's association.

use super::SctpAgent;
use crate::node::application::Unsendable;
use crate::node::totals::Totals;
use anabranch_base::Instant;
use anabranch_engine::{Association, CloseReason, ConnectError};

impl SctpAgent {
    /// Its association, while there is one.
    pub fn association(&self) -> Option<&Association> {
        self.endpoint.as_ref()?.association(self.id?)
    }

    /// What its association counts, or had counted when it ended.
    pub fn totals(&self) -> Option<Totals> {
        self.association().map(Totals::of).or_else(|| self.last.clone())
    }

    /// When the handshake was complete.
    pub fn connected(&self) -> Option<Instant> {
        self.connected
    }

    /// Why the association ended, if it did.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Damaged packets that came and were not taken.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Why there never was one.
    pub fn refused(&self) -> Option<&ConnectError> {
        self.refused.as_ref()
    }

    /// Why an application gave up, if one did, and whose: 0 is its own, then come those that share its association.
    pub fn unsendable(&self) -> Option<(usize, Unsendable)> {
        self.users.failed()
    }
}
