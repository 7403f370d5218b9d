//! What a connection's packets carry: its data as they are, or sums of them.

use super::coded::{Fountain, Network};
use super::source::PathView;
use super::stream::{Kind, Offer, Stream};
use super::subflow::Subflow;
use super::{Coding, Content, MptcpAck, MptcpConfig, MptcpCounters};
use crate::transport::tcp::{DataSegment, Supply};
use anabranch_base::Instant;

/// The data of a connection.
pub(super) enum Filling {
    Plain(Stream),
    Fmtcp(Box<Fountain>),
    Nc(Box<Network>),
}

impl Filling {
    pub fn new(supply: Supply, config: &MptcpConfig, subflows: usize) -> Self {
        match config.coding {
            Coding::Plain => Filling::Plain(Stream::new(supply, config)),
            Coding::Fmtcp(own) => Filling::Fmtcp(Box::new(Fountain::new(supply, config, own, subflows))),
            Coding::Nc(own) => Filling::Nc(Box::new(Network::new(supply, config, own, subflows))),
        }
    }

    /// The application begins.
    pub fn begin(&mut self, now: Instant) {
        match self {
            Filling::Plain(s) => s.begin(now),
            Filling::Fmtcp(f) => f.begin(now),
            Filling::Nc(n) => n.begin(now),
        }
    }

    /// What subflow `on` would send.
    pub fn offer(&mut self, now: Instant, on: usize, paths: &[PathView]) -> Option<Offer> {
        let bytes = match self {
            Filling::Plain(s) => return s.offer(now, on),
            Filling::Fmtcp(f) => f.offer(now, on, paths)?,
            Filling::Nc(n) => n.offer(now, on, paths)?,
        };
        Some(Offer { number: 0, bytes, kind: Kind::New })
    }

    /// Subflow `on` is about to send what it was offered.
    pub fn left(&mut self, now: Instant, on: usize, offer: Offer) {
        if let Filling::Plain(s) = self {
            s.left(now, on, offer);
        }
    }

    /// What leaves as `segment` on subflow `on`: the segment as it leaves, and what it carries.
    pub fn fill(&mut self, now: Instant, on: usize, segment: DataSegment, subflow: &Subflow) -> (DataSegment, Content) {
        if segment.number == 0 {
            return (segment, Content::Nothing);
        }
        match self {
            Filling::Plain(s) => {
                let number = subflow.carries(segment.number).unwrap_or(0);
                let (content, first) = s.content(number);
                (DataSegment { sent: first.unwrap_or(segment.sent), ..segment }, Content::Plain(content))
            }
            Filling::Fmtcp(f) => {
                let (coded, bytes) = f.fill(now, on, segment.number, segment.again);
                (DataSegment { bytes, ..segment }, Content::Coded(coded))
            }
            Filling::Nc(n) => {
                let (content, bytes, sent) = n.fill(now, on, segment.number, segment.again);
                (DataSegment { bytes, sent, ..segment }, content)
            }
        }
    }

    /// An acknowledgement came for subflow `on`.
    pub fn acknowledged(&mut self, now: Instant, on: usize, ack: &MptcpAck) {
        match self {
            Filling::Plain(s) => s.acknowledged(now, ack.next, ack.edge),
            Filling::Fmtcp(f) => f.acknowledged(now, on, ack),
            Filling::Nc(n) => n.acknowledged(now, on, ack),
        }
    }

    /// The timer of subflow `on` has expired.
    pub fn timed_out(&mut self, on: usize, subflow: &Subflow) {
        match self {
            Filling::Plain(s) => s.timed_out(subflow.outstanding(), on),
            Filling::Fmtcp(f) => f.timed_out(on),
            Filling::Nc(n) => n.timed_out(on),
        }
    }

    /// The data as they are, where they go so.
    pub fn plain(&mut self) -> Option<&mut Stream> {
        match self {
            Filling::Plain(s) => Some(s),
            _ => None,
        }
    }

    /// When the application has more.
    pub fn next_at(&self) -> Option<Instant> {
        match self {
            Filling::Plain(s) => s.next_at(),
            Filling::Fmtcp(f) => f.next_at(),
            Filling::Nc(n) => n.next_at(),
        }
    }

    /// When the last of the data was acknowledged.
    pub fn done(&self) -> Option<Instant> {
        match self {
            Filling::Plain(s) => s.done(),
            Filling::Fmtcp(f) => f.done(),
            Filling::Nc(n) => n.done(),
        }
    }

    /// The first segment (of FMTCP symbol) that is not acknowledged, and the next to leave for the first time.
    pub fn span(&self) -> (u64, u64) {
        match self {
            Filling::Plain(s) => s.span(),
            Filling::Fmtcp(f) => f.span(),
            Filling::Nc(n) => n.span(),
        }
    }

    /// What it did.
    pub fn counters(&self) -> MptcpCounters {
        let of = |sums, window_stops| MptcpCounters { sums, window_stops, ..MptcpCounters::default() };
        match self {
            Filling::Plain(s) => s.counters,
            Filling::Fmtcp(f) => of(f.sums, f.window_stops),
            Filling::Nc(n) => of(n.sums, n.window_stops),
        }
    }
}
