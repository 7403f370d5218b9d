//! How a Multipath TCP behaves.

use super::{Coupling, MOST_SYMBOLS};
use crate::transport::tcp::{Congestion, Recovery, SackRule, TcpConfig};
use core::ops::RangeInclusive;

/// Which subflow a segment leaves on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduler {
    /// The one with the shortest smoothed round trip that has room (Raiciu et al. 2012; Linux's default).
    MinRtt,
    /// Each in turn that has room.
    RoundRobin,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Scheduler; 2] = [Scheduler::MinRtt, Scheduler::RoundRobin];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::MinRtt => "min-rtt",
            Scheduler::RoundRobin => "round-robin",
        }
    }
}

/// What packets carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// The data as they are.
    Plain,
    /// A reconstruction of FMTCP (Cui et al. 2015).
    Fmtcp(FmtcpConfig),
    /// A reconstruction of NC-MPTCP (Li et al. 2012).
    Nc(NcConfig),
}

/// How FMTCP, as reconstructed, behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FmtcpConfig {
    /// Bytes of a symbol.
    pub symbol: u32,
    /// Symbols of a block.
    pub block: u16,
    /// Sums beyond the size of a block that are expected to arrive: one block in `2^margin` is not solved then.
    pub margin: u16,
}

impl FmtcpConfig {
    /// Blocks of 64 symbols of 160 bytes, nine of which fit a segment of 1448 bytes; one in a thousand is not solved at
    /// once. Ours.
    pub const DEFAULT: Self = FmtcpConfig { symbol: 160, block: 64, margin: 10 };

    /// The sizes of a symbol of which one to sixteen fit a segment of so many bytes, beside eight.
    pub const fn symbols(segment: u32) -> RangeInclusive<u32> {
        let room = segment.saturating_sub(8);
        room / (MOST_SYMBOLS as u32 + 1) + 1..=room
    }
}

/// How NC-MPTCP, as reconstructed, behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NcConfig {
    /// Segments of a generation.
    pub generation: u16,
}

impl NcConfig {
    /// Generations of 32 segments. Ours.
    pub const DEFAULT: Self = NcConfig { generation: 32 };
}

/// How a Multipath TCP behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MptcpConfig {
    /// How its subflows do. Its congestion control is Reno's; what couples them is `coupling`.
    pub tcp: TcpConfig,
    /// How windows grow together.
    pub coupling: Coupling,
    /// Which subflow a segment leaves on.
    pub scheduler: Scheduler,
    /// Bytes of data that the receiver can hold, of all subflows together.
    pub receive_buffer: u64,
    /// A fast subflow that the receive window stops sends what holds the window up, again (Raiciu et al. 2012 §4.2).
    pub opportunistic: bool,
    /// It also halves the window of the slow one that does.
    pub penalise: bool,
    /// What packets carry.
    pub coding: Coding,
}

/// Segments or symbols of a block at most.
pub const MOST_SOURCES: u16 = 255;

/// Bytes of the DSS option with numbers of four bytes and a checksum (RFC 8684 §3.3).
pub const DSS: u32 = 20;

impl MptcpConfig {
    /// LIA over the shortest round trip with opportunistic retransmission and penalisation, as the MPTCP for
    /// Linux of those years had it; subflows with SACK as the RFCs have it; a receive buffer of 256 KiB.
    /// Segments are shorter than TCP's by the 20 bytes of the option that says where their data belong.
    pub const fn rfc() -> Self {
        let tcp = TcpConfig::rfc(Recovery::Sack(SackRule::Rfc6675));
        MptcpConfig {
            tcp: TcpConfig { segment: tcp.segment - DSS, header: tcp.header + DSS, ..tcp },
            coupling: Coupling::Lia,
            scheduler: Scheduler::MinRtt,
            receive_buffer: 256 << 10,
            opportunistic: true,
            penalise: true,
            coding: Coding::Plain,
        }
    }

    /// How many full segments the receiver can hold.
    pub const fn segments_held(&self) -> u64 {
        self.receive_buffer / if self.tcp.segment == 0 { 1 } else { self.tcp.segment as u64 }
    }

    /// What is wrong with the values, in words for a user.
    ///
    /// # Errors
    /// One line that says what to change.
    pub const fn check(&self) -> Result<(), &'static str> {
        if let Err(e) = self.tcp.check() {
            return Err(e);
        }
        match self.tcp.recovery {
            Recovery::NewReno | Recovery::Sack(SackRule::Rfc6675) | Recovery::Rack => {}
            _ => return Err("subflows recover with newreno, sack or rack"),
        }
        if matches!(self.tcp.congestion, Congestion::Cubic) {
            return Err("subflows grow as Reno does, or as their coupling says: CUBIC has none");
        }
        if self.receive_buffer < self.tcp.segment as u64 {
            return Err("the receive buffer has to hold a segment");
        }
        match self.coding {
            Coding::Plain => {}
            Coding::Fmtcp(f) => {
                let fit = FmtcpConfig::symbols(self.tcp.segment);
                if f.symbol < *fit.start() || f.symbol > *fit.end() {
                    return Err("one to sixteen symbols have to fit a segment, beside eight bytes");
                }
                if f.block == 0 || f.block > MOST_SOURCES || f.margin > MOST_SOURCES {
                    return Err("a block has 1 to 255 symbols, and a margin of 255 at most");
                }
            }
            Coding::Nc(n) => {
                if n.generation == 0 || n.generation > MOST_SOURCES {
                    return Err("a generation has 1 to 255 segments");
                }
            }
        }
        Ok(())
    }
}
