//! What a stack must be able to do to take part.

use anabranch_base::{Duration, Instant};
use bytes::Bytes;

/// Configuration of both ends.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Messages of different streams may interleave (RFC 8260).
    pub interleaving: bool,
    /// Packets without a checksum (RFC 9653).
    pub zero_checksum: bool,
    /// Receive buffer, bytes.
    pub receive_buffer: usize,
    /// Our profile.
    pub profile: &'static str,
    /// Seed of our tags and of what is lost.
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { interleaving: false, zero_checksum: false, receive_buffer: 1 << 20, profile: "live", seed: 1 }
    }
}

/// A message on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub stream: u16,
    pub unordered: bool,
    pub payload: Bytes,
    /// Given up after so long.
    pub lifetime: Option<Duration>,
    /// Given up rather than sent again more often than this.
    pub retransmissions: Option<u16>,
}

/// Something a stack reported to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Connected,
    Restarted,
    /// Streams began anew: ours, or the other end's.
    Reset {
        incoming: bool,
        streams: Vec<u16>,
    },
    ResetFailed,
    /// Messages given up.
    Abandoned(u64),
    /// It did not like a packet of ours.
    Complaint(String),
    /// The association is over, in the stack's own words.
    Closed(String),
}

/// One end of an association.
pub trait Peer {
    /// Its name in what a test says.
    const NAME: &'static str;
    /// An end that listens, or opens an association at once. `life` tells one that starts again from the one before.
    fn new(setup: &Setup, opens: bool, life: u64, now: Instant) -> Self;
    fn input(&mut self, now: Instant, packet: Bytes);
    /// Takes a message; false when there is no room.
    fn send(&mut self, now: Instant, message: &Outgoing) -> bool;
    /// Packets to be sent now.
    fn outputs(&mut self, now: Instant, out: &mut Vec<Bytes>);
    /// The next message: stream, payload protocol identifier, payload.
    fn receive(&mut self) -> Option<(u16, u32, Bytes)>;
    fn notes(&mut self, out: &mut Vec<Note>);
    fn timeout(&self) -> Option<Instant>;
    fn on_timeout(&mut self, now: Instant);
    fn shutdown(&mut self, now: Instant);
    fn abort(&mut self, now: Instant);
    /// Asks that these streams of its own begin anew.
    fn reset(&mut self, now: Instant, streams: &[u16]);
}
