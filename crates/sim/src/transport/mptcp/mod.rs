//! Multipath TCP on this crate's TCP: one stream of data over several subflows, each a TCP connection of its own.
//!
//! The rules are those of RFC 8684 as far as they concern data: each subflow numbers and repairs its own segments, the
//! data have numbers of their own (`Content`) which the receiver orders and acknowledges across subflows, and
//! there is one receive window, of data and not of subflows. How windows grow together is in `coupling/`, where a segment
//! leaves in `scheduler.rs`, what is put onto another subflow again in `stream.rs`. There are no bytes on a wire: what
//! stands for the bytes of a segment is a number that the receiver can check ([`content`]). In `coded/` are two transports
//! that send sums of the data in place of some or all of them, both reconstructions: FMTCP and NC-MPTCP.
//!
//! A [`MptcpSource`] sends one connection to a [`MptcpSink`]. The first subflow opens the connection, the others join once
//! it is open (RFC 8684 §3.2).

mod assembly;
mod coded;
mod config;
mod coupling;
mod filling;
mod parcel;
mod scheduler;
mod sink;
mod source;
mod stream;
mod subflow;

pub use assembly::{Assembly, Unit};
pub use coded::{Coded, Group, MOST_RANKS, MOST_SYMBOLS, Ranks};
pub use config::{Coding, DSS, FmtcpConfig, MOST_SOURCES, MptcpConfig, NcConfig, Scheduler};
pub use coupling::Coupling;
pub use parcel::MptcpParcel;
pub use sink::MptcpSink;
pub use source::{MptcpSource, MptcpWatch};
pub use stream::MptcpCounters;

use super::tcp::{AckSegment, DataSegment};

/// What a packet of Multipath TCP carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MptcpSegment {
    /// Data, or the SYN of a subflow.
    Data(MptcpData),
    /// An acknowledgement.
    Ack(MptcpAck),
}

/// A data segment of a subflow, and what of the connection's data it carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpData {
    /// As the subflow sees it; its `flow` is the number of the subflow.
    pub segment: DataSegment,
    /// What it carries.
    pub content: Content,
}

/// What a segment of a subflow carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing: a SYN.
    Nothing,
    /// Some of the connection's data as they are.
    Plain(Plain),
    /// Sums of them.
    Coded(Coded),
}

/// Some of the connection's data (RFC 8684 §3.3, the DSS option).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// Data sequence number, in segments as the simulator's TCP counts; the first is 1.
    pub number: u64,
    /// What stands for the bytes.
    pub value: u16,
    /// Do the data end with it (DATA_FIN)?
    pub last: bool,
}

/// An acknowledgement of a subflow, and of the connection's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpAck {
    /// As the subflow sees it.
    pub segment: AckSegment,
    /// The first of the connection's segments that is missing (Data ACK).
    pub next: u64,
    /// The receive window's end: bytes of the connection that may be sent (RFC 8684 §3.3.1: relative to the Data ACK,
    /// shared by all subflows).
    pub edge: u64,
    /// What the receiver of a coded transport has of blocks that are not complete.
    pub ranks: Ranks,
}

/// What stands for the bytes of the connection's segment `number`: each has its own, so that what is lost, doubled or put
/// in the wrong place is seen.
pub const fn content(number: u64) -> u16 {
    (mixed(number) >> 48) as u16
}

/// The mixing of splitmix64 (Steele, Lea and Flood 2014).
const fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
