//! Why was it lost?

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::AssocView;
use anabranch_base::{Duration, Instant, PathId};

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// By missing reports.
    FastRetransmit,
    /// By the retransmission timer.
    Timeout,
}

/// A loss on a path.
#[derive(Clone, Copy, Debug)]
pub struct LossEvent {
    /// Path that lost something.
    pub path: PathId,
    /// How it was noticed.
    pub kind: LossKind,
    /// Payload bytes newly marked.
    pub bytes: u64,
    /// Packets newly marked; none where a mark or a policy, not a missing packet, says that there was congestion.
    pub packets: Option<LostPackets>,
    /// Opens a recovery episode; within one the window is not cut again (RFC 9260 §7.2.4).
    pub new_episode: bool,
}

impl LossEvent {
    /// `bytes` on `path` that missing reports noticed, which open an episode, as a starting point for tests.
    pub const fn reported(path: PathId, bytes: u64) -> Self {
        LossEvent { path, kind: LossKind::FastRetransmit, bytes, packets: None, new_episode: true }
    }
}

/// Packets of one path that were taken for lost together, by their serials on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPackets {
    /// Smallest serial.
    pub first: u64,
    /// Largest one.
    pub last: u64,
    /// How many chunks, of which a packet may hold several.
    pub chunks: u32,
}

impl LostPackets {
    /// One more, of packet `seq`.
    #[must_use]
    pub fn and(before: Option<LostPackets>, seq: u64) -> LostPackets {
        let l = before.unwrap_or(LostPackets { first: seq, last: seq, chunks: 0 });
        LostPackets { first: l.first.min(seq), last: l.last.max(seq), chunks: l.chunks.saturating_add(1) }
    }
}

/// A round trip that an acknowledgement showed.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Path of the packet.
    pub path: PathId,
    /// Its serial there, the largest that the acknowledgement has news of.
    pub seq: u64,
    /// Its round trip.
    pub rtt: Duration,
    /// Packets that were newly acknowledged.
    pub packets: u32,
    /// Why the acknowledgement left when it did.
    pub left: Left,
}

/// Why an acknowledgement left when it did, as far as its receiver can see (RFC 9260 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// The packet was a second one: at once.
    Second,
    /// Something is missing before the packet: at once.
    Gap,
    /// It is of one packet alone, or its last packet came by another path: it may have waited for that.
    Alone,
}

impl Sample {
    /// The round trip of packet `seq` on `path`, acknowledged alone, as a starting point for tests.
    ///
    /// ```
    /// use anabranch_base::{Duration, PathId};
    /// use anabranch_policy::loss_cause::Sample;
    ///
    /// let two = Sample { packets: 2, ..Sample::of(PathId(0), 8, Duration::from_millis(40)) };
    /// assert_eq!((two.seq, two.packets), (8, 2));
    /// ```
    pub const fn of(path: PathId, seq: u64, rtt: Duration) -> Self {
        Sample { path, seq, rtt, packets: 1, left: Left::Second }
    }
}

/// The cause a window reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue overflowed.
    Congestion,
    /// The link damaged it.
    Radio,
    /// The packet was late, not lost.
    Reordering,
    /// The path is gone.
    PathFailure,
}

/// Tells causes apart.
pub trait LossCause: Send {
    every_policy!(SAMPLES);
    /// A round trip, before anything is judged by the acknowledgement that showed it.
    fn sample(&mut self, _now: Instant, _s: &Sample) {}
    /// The cause of `e`.
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause;
}

pub mod always_congestion;
pub mod delay_guard;
pub mod full_queue;
pub mod residual_capacity;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn LossCause>] =
    &[always_congestion::POLICY, delay_guard::POLICY, full_queue::POLICY, residual_capacity::POLICY];
