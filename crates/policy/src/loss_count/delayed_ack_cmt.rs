//! Reports by the own path, as many as the SACK answers packets.
//!
//! Source: Iyengar, Amer, Stewart 2006, delayed acknowledgement for CMT (DAC). A SACK that may answer several packets
//! is as many reports, when all it newly acknowledges left on the copy's path and after it; else it is one, for some of
//! those packets prove nothing about the copy. As in `per_path` only what left later on the same path testifies.
//! Choosing it announces to the peer that its SACKs may wait and should count; a peer that does not know that counts
//! for one. Parameter `recovery` 0 leaves out RFC 9260 §7.2.4's rule that in fast recovery an advancing cumulative TSN
//! reports all holes, as the reference simulator does; with `gaps` 1 what the cumulative TSN acknowledges proves
//! nothing, only what gap blocks newly do.

use super::LossCount;
use crate::asks::Asks;
use crate::registry::{Hook, ParamInfo, Policy, PolicyInfo};
use crate::view::{AssocView, CopyView, SackView};
use anabranch_base::PathId;

pub(super) const POLICY: Policy<dyn LossCount> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCount,
        name: "delayed_ack_cmt",
        source: "Iyengar, Amer, Stewart 2006 (DAC)",
        file: file!(),
        summary: "As per_path, but a SACK counts for each packet it answers.",
        params: &[
            ParamInfo::flag("recovery", true, "in recovery an advancing cumulative TSN reports every hole"),
            ParamInfo::flag("gaps", false, "only paths of which gap blocks newly acknowledge something report"),
        ],
    },
    build: |p| Box::new(DelayedAckCmt { recovery: p.flag("recovery"), gaps: p.flag("gaps") }),
};

struct DelayedAckCmt {
    recovery: bool,
    gaps: bool,
}

impl LossCount for DelayedAckCmt {
    fn asks(&self) -> Asks {
        Asks::PACKET_COUNTS
    }
    fn reports(&self, cx: &AssocView<'_>, sack: &SackView<'_>, copy: &CopyView) -> u8 {
        let of = |list: &[Option<u64>]| list.get(copy.path.index()).copied().flatten();
        let reports = |path: PathId| !self.gaps || sack.gapped.has(path);
        if of(sack.newest_seq).filter(|_| reports(copy.path)).is_none_or(|s| s <= copy.tx_seq) {
            return u8::from(self.recovery && super::hole_in_recovery(cx, sack, copy));
        }
        let of_path = |(i, newest): (usize, &Option<u64>)| newest.is_some() && reports(PathId(i as u8));
        let several = sack.newest_seq.iter().enumerate().filter(|p| of_path(*p)).count() > 1;
        let some_before = of(sack.oldest_seq).is_some_and(|s| s < copy.tx_seq);
        if several || some_before { 1 } else { sack.packets_reported }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, built, copy, sack};
    use anabranch_base::PathSet;

    fn reports(newest: &[Option<u64>], oldest: &[Option<u64>], packets: u8) -> u8 {
        let s = Scene::new(2, 0);
        let seen = SackView { newest_seq: newest, oldest_seq: oldest, packets_reported: packets, ..sack(None) };
        built(&POLICY, "", 0).reports(&s.cx(), &seen, &copy(44, 0, 8))
    }

    #[test]
    fn a_sack_counts_for_its_packets_when_all_of_them_passed() {
        assert_eq!(reports(&[Some(10), None], &[Some(9), None], 2), 2);
        assert_eq!(reports(&[Some(10), None], &[Some(7), None], 2), 1, "one of them left before");
        assert_eq!(reports(&[Some(10), Some(3)], &[Some(9), Some(3)], 2), 1, "one of them came by another path");
        assert_eq!(reports(&[Some(7), None], &[Some(6), None], 2), 0, "nothing passed it");
        assert_eq!(reports(&[None, Some(30)], &[None, Some(30)], 3), 0, "only the own path testifies");
    }

    #[test]
    fn holes_in_recovery_are_a_choice() {
        let mut s = Scene::new(2, 0);
        s.paths[0].in_recovery = true;
        let mut hole = copy(44, 0, 8);
        hole.misses = 1;
        let nothing = [None, None];
        let seen = SackView { newest_seq: &nothing, oldest_seq: &nothing, cumulative_advanced: true, ..sack(None) };
        assert_eq!(built(&POLICY, "", 0).reports(&s.cx(), &seen, &hole), 1);
        assert_eq!(built(&POLICY, "recovery=0", 0).reports(&s.cx(), &seen, &hole), 0);
    }

    #[test]
    fn what_is_acknowledged_cumulatively_may_prove_nothing() {
        let s = Scene::new(2, 0);
        let (newest, oldest) = ([Some(10), Some(3)], [Some(9), Some(3)]);
        let of = |gapped, params| {
            let some = SackView { newest_seq: &newest, oldest_seq: &oldest, packets_reported: 2, ..sack(None) };
            built(&POLICY, params, 0).reports(&s.cx(), &SackView { gapped, ..some }, &copy(44, 0, 8))
        };
        let [first, second] = [0, 1].map(|p| PathSet::only(PathId(p)));
        assert_eq!([of(first, ""), of(first, "gaps=1")], [1, 2], "path 1 was acknowledged cumulatively");
        assert_eq!([of(second, ""), of(second, "gaps=1")], [1, 0], "and here the copy's own path was");
    }
}
