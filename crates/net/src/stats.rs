//! Counters of a connection and of the driver.

use anabranch_base::PathId;
use anabranch_engine::{AssocStats, PathStats};
use anabranch_policy::{Hook, asks::Counter};
use std::net::SocketAddr;

/// A connection's counters.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Counters of the association as a whole.
    pub association: AssocStats,
    /// What its policies count, by their hooks and by name.
    pub policies: Vec<(Hook, Counter)>,
    /// Counters of each path, in the order of their ids.
    pub paths: Vec<PathReport>,
}

/// A path and where it leaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// Its id.
    pub id: PathId,
    /// The interface's name, or the local address when bound to no device.
    pub local: String,
    /// Local address and UDP port (on raw IP the SCTP port, as in `stats`); the address is unspecified when the routing table chooses it.
    pub address: SocketAddr,
    /// Counters and state.
    pub stats: PathStats,
}

/// What the driver of an endpoint has done since it began. Packets are UDP datagrams, or SCTP packets on raw IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverStats {
    /// Packets handed to the kernel.
    pub packets_sent: u64,
    /// Bytes of them.
    pub bytes_sent: u64,
    /// Calls that handed them over; fewer than packets where segmentation offload works.
    pub send_calls: u64,
    /// Packets from networks that are not listened to.
    pub packets_refused: u64,
    /// Packets dropped because a socket did not take them for too long.
    pub dropped_full: u64,
    /// Packets the kernel refused to send.
    pub send_errors: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Calls that brought them.
    pub receive_calls: u64,
    /// Packets that could not be noted in the capture.
    pub not_captured: u64,
}

impl DriverStats {
    /// Counts what was counted elsewhere.
    pub(crate) fn add(&mut self, more: DriverStats) {
        let DriverStats {
            packets_sent,
            bytes_sent,
            send_calls,
            packets_refused,
            dropped_full,
            send_errors,
            packets_received,
            bytes_received,
            receive_calls,
            not_captured,
        } = more;
        self.packets_sent += packets_sent;
        self.bytes_sent += bytes_sent;
        self.send_calls += send_calls;
        self.packets_refused += packets_refused;
        self.dropped_full += dropped_full;
        self.send_errors += send_errors;
        self.packets_received += packets_received;
        self.bytes_received += bytes_received;
        self.receive_calls += receive_calls;
        self.not_captured += not_captured;
    }

    /// What became of packets of so many bytes in all.
    pub(crate) fn sent(&mut self, sent: crate::driver::Sent, bytes: usize) {
        self.packets_sent += sent.packets as u64;
        self.send_calls += sent.calls as u64;
        self.send_errors += sent.errors as u64;
        if sent.errors == 0 {
            self.bytes_sent += bytes as u64;
        }
    }
}
