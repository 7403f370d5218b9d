//! What the emulator did, and what the machine added to it.

use anabranch_base::{Duration, Instant};
use anabranch_sim::{LinkCounters, Tally};
use hdrhistogram::Histogram;
use std::net::SocketAddr;

/// A snapshot of a running emulator.
#[derive(Clone, PartialEq, Debug)]
pub struct EmulatorStats {
    /// Time since the start.
    pub running: Duration,
    /// The paths, in the order of the configuration.
    pub paths: Vec<PathStats>,
    /// What was not asked for.
    pub machine: MachineStats,
}

/// One path. Bytes are those of UDP payloads.
#[derive(Clone, PartialEq, Debug)]
pub struct PathStats {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The link from the senders to the target.
    pub up: LinkCounters,
    /// The link back.
    pub down: LinkCounters,
    /// Waiting or in transmission towards the target; bytes with headers.
    pub up_backlog: Tally,
    /// Waiting or in transmission on the way back; bytes with headers.
    pub down_backlog: Tally,
    /// Is the link towards the target up?
    pub up_is_up: bool,
    /// Is the link back up?
    pub down_is_up: bool,
    /// Senders at this moment.
    pub clients: usize,
    /// Datagrams of senders for whom there was no room.
    pub refused: u64,
    /// Datagrams that arrived for a sender already forgotten.
    pub orphaned: u64,
    /// Addresses the relay sends from, one for each sender in the order they came.
    pub upstream: Vec<SocketAddr>,
}

/// What the machine added: the emulator's own loss and lateness.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MachineStats {
    /// How late datagrams were handed to the system, against the time their link said.
    pub lateness: Lateness,
    /// Datagrams the kernel dropped at the relays' open sockets because they were not read in time.
    /// `None` where the system does not report it.
    pub receive_drops: Option<u64>,
    /// Datagrams the system did not take for sending.
    pub send_errors: u64,
    /// Datagrams dropped because the emulator held as much as it may.
    pub overflow: u64,
}

/// A distribution of delays in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    /// Datagrams counted.
    pub count: u64,
    /// Half were not later than this.
    pub p50: Duration,
    /// 99 % were not later than this.
    pub p99: Duration,
    /// 99.9 % were not later than this.
    pub p999: Duration,
    /// None was later than this.
    pub max: Duration,
}

impl Lateness {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let quantile = |q| Duration::from_nanos(histogram.value_at_quantile(q));
        Lateness {
            count: histogram.len(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: Duration::from_nanos(histogram.max()),
        }
    }
}

/// Counters at one time, for plots. All count from the start, so the difference of two is what
/// happened between them.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Time since the start of the emulator.
    pub at: Instant,
    /// The paths, in the order of the configuration.
    pub paths: Vec<SampledPath>,
}

/// One path in a [`Sample`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledPath {
    /// Counters towards the target.
    pub up: LinkCounters,
    /// Counters of the way back.
    pub down: LinkCounters,
    /// Waiting or in transmission towards the target.
    pub up_backlog: Tally,
}
