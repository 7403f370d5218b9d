//! TCP as a simulator has it: whole segments, one direction, no bytes on a wire.
//!
//! Sequence numbers count segments; segment 0 is the SYN, whose acknowledgement opens the connection. A [`TcpSource`]
//! sends one connection to a [`TcpSink`]; [`TcpTransfers`] sends many short ones, each a connection of its own. What
//! differs between Tahoe, Reno, NewReno and SACK is in the files of these names, what they share in `sender.rs`.
//!
//! The rules are those of RFC 5681 (congestion control), RFC 6298 (time-out), RFC 3042 (limited transmit), RFC 6582
//! (NewReno) and, for SACK, either RFC 6675 or the `pipe` of Fall and Floyd (1996) that ns-2 has; [`TcpConfig::ns2`]
//! sets everything as ns-2.35 has it.

mod agents;
mod config;
mod first_sent;
mod newreno;
mod receiver;
mod reno;
mod rto;
mod runs;
mod sack;
mod sender;
mod supply;
mod tahoe;

#[cfg(test)]
mod tests;

pub use agents::{TcpSink, TcpSource, TcpTransfers, Transfer, Watch};
pub use config::{Recovery, SackRule, TcpConfig};
pub use receiver::Receiver;
pub use rto::{Rto, RtoConfig};
pub use sender::{Sender, SenderCounters};
pub use supply::Supply;

use anabranch_base::Instant;

/// What a packet of TCP carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Data, or the SYN.
    Data(DataSegment),
    /// An acknowledgement.
    Ack(AckSegment),
}

/// A data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataSegment {
    /// Connection between these two agents.
    pub flow: u32,
    /// Bytes of payload; none in the SYN.
    pub bytes: u32,
    /// Number of the segment; the SYN is 0.
    pub number: u64,
    /// When it left the sender: first, where that is kept ([`TcpConfig::keep_first_sent`]), else this time.
    pub sent: Instant,
    /// Has it been sent before?
    pub again: bool,
    /// Does the connection end with it?
    pub last: bool,
}

/// An acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckSegment {
    /// Connection between these two agents.
    pub flow: u32,
    /// The first segment that is missing.
    pub next: u64,
    /// SACK blocks (RFC 2018), the most recent first, each a distance above `next` and a length in segments; those
    /// of length 0 are not there. What lies more than 65,535 segments above is not reported.
    pub blocks: [(u16, u16); MAX_BLOCKS],
}

/// The most SACK blocks an acknowledgement carries.
pub const MAX_BLOCKS: usize = 3;

impl AckSegment {
    /// The SACK blocks as segments, first and one past the last.
    pub fn sacked(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.blocks.iter().take_while(|b| b.1 > 0).map(|(above, length)| {
            let first = self.next.saturating_add(u64::from(*above));
            (first, first.saturating_add(u64::from(*length)))
        })
    }
}
