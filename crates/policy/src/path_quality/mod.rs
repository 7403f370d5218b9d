//! Estimates on their own clock, published on the board.

use crate::asks::every_policy;
use crate::registry::Policy;
use crate::view::{AssocView, Period, Signals};
use anabranch_base::{Instant, PathId, PathSet, Rate};

/// Something happened on a path.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    /// A packet with DATA left.
    Sent {
        /// Path it left on.
        path: PathId,
        /// Payload bytes.
        bytes: u64,
    },
    /// A sending opportunity ended; all packets released by one event.
    Released {
        /// Path the packets left on.
        path: PathId,
        /// Payload bytes.
        bytes: u64,
    },
    /// Bytes were acknowledged.
    Acked {
        /// Path the bytes were sent on.
        path: PathId,
        /// Payload bytes.
        bytes: u64,
        /// When the oldest of them was sent.
        sent_at: Instant,
    },
    /// A loss was noticed.
    Lost {
        /// Path that lost something.
        path: PathId,
    },
    /// A pair of HEARTBEATs is over: both were answered, or the time in which they are is over. Without an answer
    /// [`PathView::reference_rtt`](crate::view::PathView::reference_rtt) stays what it was.
    Reference {
        /// Path they were sent on.
        path: PathId,
        /// How many were answered.
        answers: u8,
    },
}

impl Notice {
    /// The path on which it happened.
    pub fn path(&self) -> PathId {
        match *self {
            Notice::Sent { path, .. }
            | Notice::Released { path, .. }
            | Notice::Acked { path, .. }
            | Notice::Lost { path }
            | Notice::Reference { path, .. } => path,
        }
    }
}

/// The board as its main writer sees it.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Facts per path.
    pub signals: Vec<Signals>,
    /// The distribution period.
    pub period: Period,
}

/// Estimates path quality.
pub trait PathQuality: Send {
    every_policy!(QUALITY);
    /// Something happened.
    fn observe(&mut self, _cx: &AssocView<'_>, _n: Notice) {}
    /// When it wants [`PathQuality::tick`].
    fn wakeup(&self) -> Option<Instant> {
        None
    }
    /// Its own clock ticked: publish, and answer the paths that want a heartbeat pair. What became of the one before is
    /// said before, by [`Notice::Reference`].
    fn tick(&mut self, _cx: &AssocView<'_>, _board: &mut Board) -> PathSet {
        PathSet::EMPTY
    }
    /// Its send-rate estimate of a path; zero leaves the engine's.
    fn send_rate(&self, _p: PathId) -> Rate {
        Rate::ZERO
    }
}

pub mod cross_layer;
pub mod handling_rate;
pub mod none;

/// Its policies: one line each.
pub static POLICIES: &[Policy<dyn PathQuality>] = &[none::POLICY, cross_layer::POLICY, handling_rate::POLICY];
