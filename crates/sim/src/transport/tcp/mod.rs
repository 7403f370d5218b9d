//! TCP as a simulator has it: whole segments, one direction, no bytes on a wire.
//!
//! Sequence numbers count segments; segment 0 is the SYN, whose acknowledgement opens the connection. A [`TcpSource`]
//! sends one connection to a [`TcpSink`]; [`TcpTransfers`] sends many short ones, each a connection of its own. What
//! differs between Tahoe, Reno, NewReno and SACK is in the files of these names, what they share in `sender.rs`.
//!
//! The rules are those of RFC 5681 (congestion control), RFC 6298 (time-out), RFC 3042 (limited transmit), RFC 6582
//! (NewReno) and, for SACK, either RFC 6675 or the `pipe` of Fall and Floyd (1996) that ns-2 has; [`TcpConfig::ns2`]
//! sets everything as ns-2.35 has it. What hosts have today is [`TcpConfig::linux`]: CUBIC (RFC 9438) with HyStart++
//! (RFC 9406), RACK and tail loss probes (RFC 8985), PRR (RFC 9937), each in the file of its name.

mod agents;
mod config;
mod cubic;
mod first_sent;
mod flight;
mod growth;
mod hystart;
mod newreno;
mod prr;
mod quick_ack;
mod rack;
mod rack_recovery;
mod receiver;
mod reno;
mod rto;
mod runs;
mod sack;
mod sender;
mod supply;
mod tahoe;
mod tail_probe;
mod undo;

#[cfg(test)]
mod tests;

pub use agents::{TcpSink, TcpSource, TcpTransfers, Transfer, Watch};
pub use config::{Congestion, Recovery, SackRule, TcpConfig};
pub use receiver::Receiver;
pub use rto::{Rto, RtoConfig};
pub use sender::{Sender, SenderCounters};
pub use supply::Supply;

pub(in crate::transport) use growth::Terms;
pub(in crate::transport) use supply::Data;

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
    /// of length 0 are not there. What lies more than 65,535 segments above is not reported. The first may report a
    /// duplicate (RFC 2883): one above `next` lies within the second, and of one below the distance is 0 and the
    /// length says how far below.
    pub blocks: [(u16, u16); MAX_BLOCKS],
}

/// The most SACK blocks an acknowledgement carries.
pub const MAX_BLOCKS: usize = 3;

impl AckSegment {
    /// The SACK blocks as segments, first and one past the last.
    pub fn sacked(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.blocks.iter().take_while(|b| b.1 > 0).filter(|b| b.0 > 0).map(|(above, length)| {
            let first = self.next.saturating_add(u64::from(*above));
            (first, first.saturating_add(u64::from(*length)))
        })
    }

    /// The segment that came although it was there (RFC 2883).
    pub fn duplicate(&self) -> Option<u64> {
        match self.blocks {
            [(0, below), ..] if below > 0 => self.next.checked_sub(u64::from(below)),
            [(above, length), (first, whole), ..]
                if length > 0
                    && first <= above
                    && u32::from(above) + u32::from(length) <= u32::from(first) + u32::from(whole) =>
            {
                Some(self.next.saturating_add(u64::from(above)))
            }
            _ => None,
        }
    }

    /// [`sacked`](Self::sacked) from the lowest to the highest.
    fn blocks_in_order(&self) -> [(u64, u64); MAX_BLOCKS] {
        let mut blocks = [(0, 0); MAX_BLOCKS];
        blocks.iter_mut().zip(self.sacked()).for_each(|(slot, block)| *slot = block);
        blocks.sort_unstable();
        blocks
    }

    /// How many blocks there are, that of a duplicate included.
    pub(crate) fn block_count(&self) -> u32 {
        self.blocks.iter().take_while(|b| b.1 > 0).count() as u32
    }
}
