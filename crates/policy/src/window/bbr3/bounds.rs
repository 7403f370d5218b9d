//! What losses say: the bounds of this cycle, which the next one forgets, and the long-term bound of what may be in flight.

use super::sample::Sample;
use anabranch_base::{Ppm, Rate};

/// Acknowledgements of a round that must bring losses before the start ends by them.
const STARTUP_LOSSES: u8 = 6;

#[derive(Debug, Default)]
pub(super) struct Bounds {
    bw: Option<Rate>,
    in_flight: Option<u64>,
    /// What a probe showed to be too much; none until one did.
    pub long_term: Option<u64>,
    /// The best of the last round.
    latest_bw: Rate,
    latest_delivered: u64,
    round_ends_at: u64,
    /// The newest acknowledgement ended a round of losses.
    pub round_ends: bool,
    loss_in_round: bool,
    losses_in_round: u8,
}

impl Bounds {
    /// The short-term bound of the rate.
    pub fn bound(&self, rate: Rate) -> Rate {
        self.bw.map_or(rate, |b| b.min(rate))
    }
    /// The short-term bound of what is in flight.
    pub fn short_term(&self) -> u64 {
        self.in_flight.unwrap_or(u64::MAX)
    }
    /// The most that one round delivered.
    pub fn latest_delivered(&self) -> u64 {
        self.latest_delivered
    }
    /// Room below the long-term bound is left for others.
    pub fn with_headroom(&self, headroom: Ppm, mtu: u64, floor: u64) -> u64 {
        self.long_term.map_or(u64::MAX, |b| b.saturating_sub(headroom.of(b).max(mtu)).max(floor))
    }
    /// The short-term bounds are forgotten.
    pub fn forget_short_term(&mut self) {
        (self.bw, self.in_flight) = (None, None);
    }
    /// So are the signs that would set them.
    pub fn forget_signals(&mut self) {
        (self.loss_in_round, self.latest_bw, self.latest_delivered) = (false, Rate::ZERO, 0);
    }
    pub fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.round_ends_at = delivered;
        }
        self.loss_in_round = true;
        self.losses_in_round = self.losses_in_round.saturating_add(1);
    }
    /// Near the start of an acknowledgement.
    pub fn update_latest(&mut self, s: &Sample, delivered: u64) {
        self.latest_bw = self.latest_bw.max(s.rate);
        self.latest_delivered = self.latest_delivered.max(s.delivered);
        self.round_ends = s.prior_delivered.is_some_and(|d| d >= self.round_ends_at);
        if self.round_ends {
            self.round_ends_at = delivered;
        }
    }
    /// Near its end.
    pub fn advance_latest(&mut self, s: &Sample) {
        if self.round_ends {
            (self.latest_bw, self.latest_delivered) = (s.rate, s.delivered);
        }
    }
    /// Once a round: a round with losses lowers the bounds, to what it delivered or to `beta` of them, unless the flow is
    /// `probing`.
    pub fn adapt(&mut self, probing: bool, max_bw: Rate, cwnd: u64, beta: Ppm) {
        if !self.round_ends {
            return;
        }
        if self.loss_in_round && !probing {
            let bw = Rate::from_bytes_per_sec(beta.of(self.bw.unwrap_or(max_bw).bytes_per_sec()));
            self.bw = Some(self.latest_bw.max(bw));
            self.in_flight = Some(self.latest_delivered.max(beta.of(self.in_flight.unwrap_or(cwnd))));
        }
        self.loss_in_round = false;
    }
    /// Many losses in one round of the start: the path is full.
    pub fn end_startup(&mut self, in_recovery: bool, too_high: bool) -> bool {
        let ends = self.round_ends && in_recovery && too_high && self.losses_in_round >= STARTUP_LOSSES;
        if self.round_ends {
            self.losses_in_round = 0;
        }
        ends
    }
}

/// At which size of the flight did the share `thresh` of it get lost, of a burst of `bytes` that was lost at its end?
pub(super) fn in_flight_at_loss(s: &Sample, bytes: u64, thresh: Ppm) -> u64 {
    let (flight, lost) = (s.in_flight.saturating_sub(bytes), s.lost.saturating_sub(bytes));
    let rest = u64::from(Ppm::ONE.0 - thresh.0).max(1);
    let prefix = thresh.of(flight).saturating_sub(lost);
    flight + (u128::from(prefix) * u128::from(Ppm::ONE.0) / u128::from(rest)) as u64
}
