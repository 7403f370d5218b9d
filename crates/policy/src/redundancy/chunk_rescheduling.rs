//! The chunk that blocks the buffers moves to a path that has room.
//!
//! Source: Dreibholz, Becke, Rathgeb, Tüxen 2010. When the peer's window takes no more, or the send buffer is filled
//! beyond `fill`, the oldest outstanding chunk leaves again on a path with window, if that is not in recovery, and off
//! the path it is on. Each chunk moves once. The old path pays for it as for a loss, once for what is in flight there;
//! the acknowledgement is credited to the new path only.
//! Deviations: new data is not bound to paths before it leaves, so the fill of the send buffer is taken for what waits
//! on the path; and a path that recovers already is not suspended.
//! Parameters: `fill`; `blame` 0 leaves the old path's window alone.

use super::{Extra, Redundancy};
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::{AssocView, ChunkView, PathView};
use anabranch_base::Ppm;

pub(super) const POLICY: Policy<dyn Redundancy> = Policy {
    info: PolicyInfo {
        hook: Hook::Redundancy,
        name: "chunk_rescheduling",
        source: "Dreibholz, Becke, Rathgeb, Tüxen 2010",
        file: file!(),
        summary: "Moves the oldest outstanding chunk to a path with room when a buffer is blocked.",
        params: &[
            ParamInfo::number("fill", 0.5, "of send buffer", 0.0, 1.0, "from this fill on the send buffer is blocked"),
            ParamInfo::flag("blame", true, "the old path's window reacts as to a loss"),
        ],
    },
    build: |p| Box::new(ChunkRescheduling::new(p)),
};

struct ChunkRescheduling {
    fill: Ppm,
    blame: bool,
}

impl ChunkRescheduling {
    fn new(p: &Params) -> Self {
        ChunkRescheduling { fill: Ppm(p.ppm("fill") as u32), blame: p.flag("blame") }
    }
}

impl Redundancy for ChunkRescheduling {
    fn asks(&self) -> Asks {
        Asks::EXTRA.and(Asks::LOAD)
    }
    fn extra(
        &mut self,
        cx: &AssocView<'_>,
        path: &PathView,
        outstanding: &mut dyn Iterator<Item = ChunkView>,
    ) -> Option<Extra> {
        let blocked = cx.peer_rwnd < path.mtu || cx.send_buffer_fill >= self.fill;
        if !blocked || path.in_recovery {
            return None;
        }
        let oldest = outstanding.next()?;
        let elsewhere = oldest.live_copies == 1 && !oldest.live_on.has(path.id);
        let moves = oldest.transmissions == 1 && elsewhere;
        moves.then_some(Extra::Move { tsn: oldest.tsn, blame: self.blame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built};
    use anabranch_base::{PathId, PathSet};

    fn asked(s: &Scene, here: usize) -> Option<Extra> {
        let mut p = built(&POLICY, "", 0);
        p.extra(&s.cx(), &s.paths[here], &mut s.chunks.iter().copied())
    }

    #[test]
    fn only_the_oldest_only_once_and_only_when_blocked() {
        let mut s = Scene::new(2, 2);
        for c in &mut s.chunks {
            (c.transmissions, c.live_copies, c.live_on) = (1, 1, PathSet::only(PathId(0)));
        }
        let moved = Some(Extra::Move { tsn: s.chunks[0].tsn, blame: true });
        s.peer_rwnd = 1_000_000;
        assert_eq!(asked(&s, 1), None, "nothing is blocked");
        s.peer_rwnd = 10;
        assert_eq!(asked(&s, 1), moved);
        assert_eq!(asked(&s, 0), None, "it is there already");
        s.paths[1].in_recovery = true;
        assert_eq!(asked(&s, 1), None);
        s.paths[1].in_recovery = false;
        s.chunks[0].transmissions = 2;
        assert_eq!(asked(&s, 1), None, "it has moved");
    }
}
