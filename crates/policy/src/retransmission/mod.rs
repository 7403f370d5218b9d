//! Path of a retransmission.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, ChunkView, PathState, PathView};
use anabranch_base::{PathId, PathSet, RandomStream};

/// When a marked chunk gets its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// When its packet is built (the papers).
    AtSend,
    /// When it was marked.
    AtLoss,
}

/// Destination of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This path.
    On(PathId),
    /// Not now: wait.
    Wait,
}

/// The retransmission a policy is asked about.
#[derive(Clone, Copy)]
pub struct Retransmit<'a> {
    /// First chunk of the packet.
    pub chunk: &'a ChunkView,
    /// Paths the engine offers: active ones, or the remaining ones after a full answer.
    pub candidates: PathSet,
    /// One packet may ignore the window now (RFC 9260 §7.2.4 step 3, §6.3.3 E3).
    pub may_exceed_cwnd_once: bool,
    /// Paths that lost something and have not used the packet that may ignore their window, where only that path may
    /// use it (ns-2.35's rule).
    pub passes: PathSet,
}

impl<'a> Retransmit<'a> {
    /// `chunk`, which may leave on a path of `candidates` that has room, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_base::{Instant, PathId, PathSet, Tsn};
    /// use anabranch_policy::Profile;
    /// use anabranch_policy::retransmission::{Retransmit, Target};
    /// use anabranch_policy::view::{AssocView, CopyView, PathView};
    ///
    /// let mut paths = [0, 1].map(|i| PathView::idle(PathId(i)));
    /// paths[1].cwnd = 2 * paths[0].cwnd;
    /// let lost = CopyView::sent(Tsn(7), PathId(0), 1, Instant::ZERO).chunk;
    /// let mut policies = Profile::named("cmt")?.build(1)?;
    /// let asked = Retransmit::of(&lost, PathSet::first(2));
    /// let target = policies.retransmission.target(&AssocView::of(Instant::ZERO, &paths), &asked);
    /// assert_eq!(target, Target::On(PathId(1)), "RTX-CWND");
    /// # Ok::<(), anabranch_policy::PolicyError>(())
    /// ```
    pub const fn of(chunk: &'a ChunkView, candidates: PathSet) -> Self {
        Retransmit { chunk, candidates, may_exceed_cwnd_once: false, passes: PathSet::EMPTY }
    }
}

/// Chooses the destination of retransmissions.
pub trait RetransmissionPolicy: Send {
    every_policy!();
    /// When paths are chosen.
    fn binds(&self) -> Binding {
        Binding::AtSend
    }
    /// When the chosen path is full: ask again without it, instead of waiting.
    fn if_full_next(&self) -> bool {
        false
    }
    /// A packet left on the path that the last answer named. Until then an answer is a proposal: a full path is proposed
    /// again and again.
    fn settle(&mut self) {}
    /// The destination for `r`.
    fn target(&mut self, cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target;
}

/// The paths of `set` with the largest `key`.
pub(crate) fn best<K: Ord>(cx: &AssocView<'_>, set: PathSet, key: impl Fn(&PathView) -> K) -> PathSet {
    let keyed = set.iter().filter_map(|id| cx.path(id).map(|p| (id, key(p))));
    let Some(top) = keyed.clone().map(|(_, k)| k).max() else { return PathSet::EMPTY };
    keyed.filter(|(_, k)| *k == top).map(|(id, _)| id).collect()
}

/// A uniform draw; a set of one draws nothing from the stream.
pub(crate) fn draw(set: PathSet, random: &mut RandomStream) -> Option<PathId> {
    let at = if set.len() > 1 { random.below(set.len() as u64) } else { 0 };
    set.iter().nth(at as usize)
}

/// The answer when no candidate is left: wait while any path is active (all were asked and are full), otherwise the
/// least broken path (RFC 9260 §8.2's dormant state, RFC 7829). An unconfirmed path never carries data.
pub(crate) fn dormant(cx: &AssocView<'_>, r: &Retransmit<'_>) -> Target {
    if cx.active().next().is_some() {
        return Target::Wait;
    }
    let health = |s: PathState| match s {
        PathState::Active | PathState::Suspected => 0,
        PathState::PotentiallyFailed => 1,
        PathState::Inactive => 2,
        PathState::Unconfirmed => 3,
    };
    let usable = cx.paths.iter().filter(|p| p.state != PathState::Unconfirmed);
    let least_broken = usable.min_by_key(|p| (health(p.state), p.errors)).map(|p| p.id);
    least_broken.or(r.chunk.last_path).map_or(Target::Wait, Target::On)
}

pub mod predicted_arrival;
pub mod rfc9260;
pub mod rtx_asap;
pub mod rtx_csi;
pub mod rtx_cwnd;
pub mod rtx_handling_rate;
pub mod rtx_loss_rate;
pub mod rtx_same;
pub mod rtx_ssthresh;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn RetransmissionPolicy>] = &[
    rfc9260::POLICY,
    rtx_same::POLICY,
    rtx_asap::POLICY,
    rtx_loss_rate::POLICY,
    rtx_cwnd::POLICY,
    rtx_ssthresh::POLICY,
    rtx_csi::POLICY,
    predicted_arrival::POLICY,
    rtx_handling_rate::POLICY,
];
