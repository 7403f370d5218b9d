//! What parity is made of: the chunks in flight.

use crate::parity_head;
use crate::tx::scoreboard::{ChunkState, Scoreboard};
use anabranch_base::Tsn;
use anabranch_policy::redundancy::{Source, Sources};

/// What messages leave free of a packet where parity is made of them, bytes: what parity says of itself, and the fields of
/// the chunk that the sum covers, less what the header of PARITY is shorter.
pub(in crate::association) const PARITY_ROOM: usize = 48;

/// The chunks in flight, as parity covers them.
pub(super) struct InFlight<'a> {
    pub board: &'a Scoreboard,
    pub interleaving: bool,
}

impl Sources for InFlight<'_> {
    fn source(&self, tsn: Tsn) -> Option<Source<'_>> {
        let number = self.board.extend(tsn);
        let c = self.board.get(number).filter(|c| c.state == ChunkState::Outstanding && !c.parity)?;
        let head = match self.interleaving {
            true => parity_head::of_i_data(&c.interleaved(c.header.flags), c.payload.len()),
            false => parity_head::of_data(&c.header, c.payload.len()),
        };
        Some(Source { number, head, payload: &c.payload })
    }
}
