//! Messages as the user hands them over and gets them back.

use anabranch_base::{Instant, Mid, Ssn, StreamId, Tsn};
use bytes::{Bytes, BytesMut};

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// Stream (RFC 9260 §1.2).
    pub stream: StreamId,
    /// Deliver as soon as complete, whatever came before (RFC 9260 §6.6).
    pub unordered: bool,
    /// Payload protocol identifier, carried untouched.
    pub ppid: u32,
    /// Worthless after this instant: given up by PR-SCTP (RFC 3758, RFC 7496 timed reliability), at once when it has
    /// passed, and where the policy is `arrival` (`live`, `low-latency`, `cmt`) as soon as it can no longer be met.
    pub deadline: Option<Instant>,
    /// Given up rather than sent again more often than this, 0 is never (RFC 7496 limited retransmissions).
    pub max_retransmissions: Option<u16>,
    /// While unsent it may be dropped for the room of something more important, a smaller number or none (RFC 7496
    /// priority).
    pub discard_priority: Option<u32>,
    /// Importance, 0 first.
    pub class: u8,
    /// Messages that are only useful together, such as the parts of a video frame, share a number here.
    pub group: Option<u32>,
    /// Ask the peer to acknowledge at once (RFC 7053).
    pub immediate_ack: bool,
}

impl Default for SendOptions {
    fn default() -> Self {
        SendOptions {
            stream: StreamId(0),
            unordered: false,
            ppid: 0,
            deadline: None,
            max_retransmissions: None,
            discard_priority: None,
            class: 2,
            group: None,
            immediate_ack: false,
        }
    }
}

/// Payload of a message as it arrived: one piece per fragment, not copied together unless asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    head: Bytes,
    tail: Vec<Bytes>,
}

impl Payload {
    /// A payload of one piece.
    pub fn single(b: Bytes) -> Self {
        Payload { head: b, tail: Vec::new() }
    }
    /// A payload of several pieces in order.
    pub fn from_pieces(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let mut it = pieces.into_iter();
        Payload { head: it.next().unwrap_or_default(), tail: it.collect() }
    }
    /// Bytes in all pieces.
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.iter().map(Bytes::len).sum::<usize>()
    }
    /// No byte at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        core::iter::once(&self.head).chain(self.tail.iter())
    }
    /// One contiguous buffer; copies only when there are several pieces.
    pub fn into_bytes(self) -> Bytes {
        if self.tail.is_empty() {
            return self.head;
        }
        let mut all = BytesMut::with_capacity(self.len());
        for p in self.pieces() {
            all.extend_from_slice(p);
        }
        all.freeze()
    }
}

/// How much of a message this is. Anything but [`Part::Whole`] comes with partial delivery only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// A part; more of the same message follows on its stream.
    More,
    /// The end of the message that came in parts.
    Last,
    /// The peer gave up the rest of the message that came in parts; no payload.
    Abandoned,
}

/// A message from the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream; none when unordered.
    pub ssn: Option<Ssn>,
    /// Message identifier, ordered or not, where I-DATA is used (RFC 8260 §2.1).
    pub mid: Option<Mid>,
    /// TSN of its first chunk.
    pub tsn: Tsn,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// What was sent.
    pub payload: Payload,
    /// Whole, or which part.
    pub part: Part,
}
