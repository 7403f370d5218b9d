//! What hooks tell each other: the board of facts.

use anabranch_base::{Duration, Instant, Rate};

/// Which end of the look-ahead a path works on (Becke et al. 2013 §III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest TSN upwards.
    Ascending,
    /// From the highest TSN downwards.
    Descending,
}

/// What one hook tells the others about a path: the board of facts. Each field has exactly one writer and
/// holds a fact (a value, a counter, an instant), never a flag that a reader would have to clear.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Writer: path_quality. Residual capacity of the current period, bytes/s, negative when overused (Xu et al. 2014
    /// eq. 10).
    pub spare_rate: Option<i64>,
    /// Writer: path_quality. Rate the path has handled (Xu et al. 2014 eq. 6); zero when unknown.
    pub handling_rate: Rate,
    /// Writer: path_quality. `handling_rate` of the interval before; zero when unknown.
    pub previous_rate: Rate,
    /// Writer: path_quality. Frames of the newest interval that the link layer had to repeat, or lost.
    pub frame_errors: u64,
    /// Writer: path_quality. Takes no part in sending while another path does: the engine keeps it from schedulers,
    /// retransmissions and redundancy. Not a path failure.
    pub sidelined: bool,
    /// Writer: coupling. Current penalties (Xu et al. 2014 §V, fcount); may fall.
    pub penalties: u32,
    /// Writer: coupling. Penalties ever; readers take differences (Xu et al. 2014 §VI.A, Δfcount).
    pub penalty_events: u32,
    /// Writer: coupling. Last penalty; the path is blocked this period iff it is not before the period's start.
    pub penalised_at: Option<Instant>,
    /// Writer: path_scheduler. Direction of a confluent walk.
    pub direction: Option<Direction>,
    /// Writer: path_scheduler. Bytes bound to this path and not sent yet.
    pub bound_bytes: u64,
}

/// A distribution period, set by path_quality (Xu et al. 2014 §VI.B).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Period {
    /// Counts periods.
    pub serial: u64,
    /// When the current one began.
    pub start: Instant,
    /// How long it lasts.
    pub length: Duration,
}
