//! Do lists and sums agree with the chunks?

use super::super::marked::MarkedOn;
use super::{Chunk, ChunkState, Scoreboard};
use anabranch_base::PathId;
use anabranch_policy::view::ChunkView;

impl Scoreboard {
    /// Do lists and sums agree with the chunks? See [`crate::Association::check_invariants`].
    pub fn check(&self) -> Result<(), String> {
        let tsns = |s: ChunkState| {
            let of = self.chunks.iter().filter(move |c| c.state == s);
            (of.clone().map(|c| c.header.tsn).collect::<Vec<_>>(), of.map(Chunk::len).sum::<u64>())
        };
        let listed = |l: &[ChunkView]| l.iter().map(|v| v.tsn).collect::<Vec<_>>();
        if (listed(self.ahead()), self.ahead_bytes) != tsns(ChunkState::Waiting) {
            return Err("the look-ahead is not what waits".to_owned());
        }
        let marked: Vec<&Chunk> = self.chunks.iter().filter(|c| c.state == ChunkState::Marked).collect();
        let sum = |on: Option<PathId>| {
            let of = marked.iter().filter(|c| on.is_none() || c.last_path == on);
            of.fold(MarkedOn::default(), |s, c| MarkedOn { chunks: s.chunks + 1, bytes: s.bytes + c.len() })
        };
        let paths = (0..64).map(PathId);
        if self.marked.sum() != sum(None) || paths.into_iter().any(|p| self.marked_on(p) != sum(Some(p))) {
            return Err(format!("{:?} marked, {:?} counted", self.marked.sum(), sum(None)));
        }
        let tsn_of = |c: &Chunk| self.extend(c.header.tsn);
        if let Some(c) = marked.iter().find(|c| !self.marked.lists(c.rank, tsn_of(c))) {
            return Err(format!("{:?} is marked and its turn never comes", c.header.tsn));
        }
        let outstanding = tsns(ChunkState::Outstanding).1;
        if self.outstanding_bytes != outstanding {
            return Err(format!("{} bytes outstanding, {outstanding} counted", self.outstanding_bytes));
        }
        let reneged = self.chunks.iter().filter(|c| c.reneged).count();
        if self.reneged != reneged {
            return Err(format!("{} withdrawn, {reneged} counted", self.reneged));
        }
        for (i, c) in self.chunks.iter().enumerate() {
            let tsn = self.base + i as u64;
            if c.header.tsn.0 != tsn as u32 {
                return Err(format!("{:?} at the place of {tsn}", c.header.tsn));
            }
            if c.state == ChunkState::Outstanding && c.copies.len() == 0 {
                return Err(format!("TSN {tsn} is outstanding without a live copy"));
            }
            if c.state != ChunkState::Waiting && tsn >= self.sent_end {
                return Err(format!("TSN {tsn} is {:?}, beyond the end of what was sent", c.state));
            }
        }
        Ok(())
    }
}
