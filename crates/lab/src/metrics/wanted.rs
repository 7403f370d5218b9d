//! What of a flow is worth noting: noting costs time with every packet.

use super::{Delay, Detail, FlowMetric};

/// What is asked of a flow's [`Record`](super::Record) beyond how much was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Delays of packets.
    pub packet: Detail,
    /// Delays of messages from the first transmission on.
    pub in_order: Detail,
    /// Delays of messages from their source on.
    pub message: Detail,
    /// Which messages were in time.
    pub deadlines: bool,
    /// Bytes in the reorder buffer.
    pub held: bool,
    /// Gaps in what was received.
    pub holes: bool,
    /// Deliveries over time.
    pub bins: bool,
    /// What comes on each path over time.
    pub paths: bool,
    /// Every transmission of every chunk.
    pub repairs: bool,
    /// What links did to them.
    pub truth: bool,
    /// When each message with a deadline came.
    pub dues: bool,
}

impl Wanted {
    /// Nothing but how much.
    pub const NOTHING: Wanted = Wanted {
        packet: Detail::Nothing,
        in_order: Detail::Nothing,
        message: Detail::Nothing,
        deadlines: false,
        held: false,
        holes: false,
        bins: false,
        paths: false,
        repairs: false,
        truth: false,
        dues: false,
    };

    /// Whatever there is, but nothing by path, and not every transmission.
    pub const ALL: Wanted = Wanted {
        packet: Detail::Spread,
        in_order: Detail::Spread,
        message: Detail::Spread,
        deadlines: true,
        held: true,
        holes: true,
        bins: true,
        paths: false,
        repairs: false,
        truth: false,
        dues: false,
    };

    /// Adds what a metric is made of.
    pub fn ask(&mut self, m: FlowMetric) {
        match m {
            FlowMetric::Mean(d) => self.delay(d, Detail::Mean),
            FlowMetric::Percentile(d, _) | FlowMetric::Longest(d) => self.delay(d, Detail::Spread),
            FlowMetric::DeadlineMisses => self.deadlines = true,
            FlowMetric::ReorderMean | FlowMetric::ReorderMax => self.held = true,
            FlowMetric::HolesMean | FlowMetric::HolesMax => self.holes = true,
            FlowMetric::Convergence => self.bins = true,
            FlowMetric::Due(_) => self.dues = true,
            FlowMetric::Repair(r) => {
                self.repairs = true;
                self.truth |= r.needs_truth();
            }
            // Of what is delivered, of the video, or counted by the ends themselves.
            FlowMetric::Goodput
            | FlowMetric::Share
            | FlowMetric::Messages
            | FlowMetric::Losses
            | FlowMetric::Retransmissions
            | FlowMetric::Spurious
            | FlowMetric::Timeouts
            | FlowMetric::Rejected
            | FlowMetric::Recoveries
            | FlowMetric::Stage(_)
            | FlowMetric::Decisions
            | FlowMetric::Counter(_)
            | FlowMetric::Jain
            | FlowMetric::Picture(_)
            | FlowMetric::Viewed(_)
            | FlowMetric::Framed(_) => {}
        }
    }

    /// All that either of them needs to be noted.
    #[must_use]
    pub fn and(self, other: Wanted) -> Wanted {
        Wanted {
            packet: self.packet.max(other.packet),
            in_order: self.in_order.max(other.in_order),
            message: self.message.max(other.message),
            deadlines: self.deadlines || other.deadlines,
            held: self.held || other.held,
            holes: self.holes || other.holes,
            bins: self.bins || other.bins,
            paths: self.paths || other.paths,
            repairs: self.repairs || other.repairs,
            truth: self.truth || other.truth,
            dues: self.dues || other.dues,
        }
    }

    fn delay(&mut self, which: Delay, detail: Detail) {
        let of = match which {
            Delay::Packet => &mut self.packet,
            Delay::InOrder => &mut self.in_order,
            Delay::Message => &mut self.message,
        };
        *of = detail.max(*of);
    }

    /// Does the time at which messages were made matter?
    pub fn births(&self) -> bool {
        self.message > Detail::Nothing || self.deadlines
    }

    /// Do messages have to be distinguished?
    pub(crate) fn messages(&self) -> bool {
        self.in_order > Detail::Nothing || self.message > Detail::Nothing || self.deadlines
    }
}
