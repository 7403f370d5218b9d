//! What an association tells its user.

use anabranch_base::PathId;
use anabranch_policy::view::PathState;

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// Both sides shut down.
    #[error("shut down gracefully")]
    Shutdown,
    /// The peer sent ABORT.
    #[error("the peer aborted: {0}")]
    PeerAborted(String),
    /// The user aborted.
    #[error("aborted")]
    Aborted,
    /// No answer to INIT or COOKIE ECHO.
    #[error("the peer does not answer")]
    NoAnswer,
    /// Association.Max.Retrans exceeded, or nothing answered for `peer_timeout`.
    #[error("the peer is gone: nothing was acknowledged any more on any path")]
    PeerGone,
    /// The peer restarted, and another association has begun.
    #[error("the peer restarted")]
    PeerRestarted,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    ProtocolViolation(&'static str),
}

/// Why a path changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathReason {
    /// Its nonce came back.
    Confirmed,
    /// Silent for longer than its round trips explain.
    Silent,
    /// The retransmission timer fired.
    Timeout,
    /// A HEARTBEAT stayed unanswered.
    HeartbeatLost,
    /// It answered again.
    Answered,
    /// The user or the driver said that its interface is gone.
    InterfaceGone,
    /// The peer deleted its address.
    Removed,
}

impl PathReason {
    /// One word for logs and statistics.
    pub const fn as_str(self) -> &'static str {
        match self {
            PathReason::Confirmed => "confirmed",
            PathReason::Silent => "silent",
            PathReason::Timeout => "timeout",
            PathReason::HeartbeatLost => "heartbeat-lost",
            PathReason::Answered => "answered",
            PathReason::InterfaceGone => "interface-gone",
            PathReason::Removed => "removed",
        }
    }
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete; data may flow.
    Connected,
    /// The peer named its adaptation layer in the handshake (RFC 5061 §4.2.6).
    Adaptation {
        /// Its code point.
        code: u32,
    },
    /// What the peer said, or repeated, by a parameter that is in our list of
    /// [`own_parameters`](crate::config::Extensions::own_parameters).
    PeerParameter {
        /// Type of the parameter.
        kind: u16,
        /// Its value, at most [`MAX_LEN`](crate::OwnParameter::MAX_LEN) bytes.
        value: bytes::Bytes,
    },
    /// The peer lost its memory and began anew: the association goes on from its beginning, with new paths. What was
    /// sent and not acknowledged may be lost (RFC 9260 §5.2.4 A).
    Restarted,
    /// A path was added (ours or the peer's); not confirmed yet.
    PathAdded {
        /// The new path.
        path: PathId,
    },
    /// A path's state changed.
    PathChanged {
        /// The path that changed.
        path: PathId,
        /// Its state before.
        from: PathState,
        /// Its state now.
        to: PathState,
        /// What caused the change.
        reason: PathReason,
    },
    /// Everything that was outstanding on a path that fell silent or failed has been sent again elsewhere.
    TakenOver {
        /// Which path was left.
        path: PathId,
        /// From the last packet the path delivered; from the first one it did not, when nothing was outstanding on it
        /// before.
        after: anabranch_base::Duration,
    },
    /// Path MTU discovery found that a path carries only packets smaller than the association's packet size, and is sent
    /// such; or that it carries that size again.
    PacketSize {
        /// The path that packets of this size leave on.
        path: PathId,
        /// Largest SCTP packet it is sent from now on, common header included, bytes.
        size: usize,
    },
    /// Messages wait in `recv`.
    Readable,
    /// `send` has room again after it was refused.
    Writable,
    /// Messages were given up (PR-SCTP): they are not sent any more. What was on its way by then may have arrived.
    Abandoned {
        /// How many since the last such event.
        messages: u64,
    },
    /// The peer prefers to be sent to there, and it is the primary path now (RFC 5061 §4.2.4).
    PrimaryWanted {
        /// The new primary path.
        path: PathId,
    },
    /// The primary path failed, and the one used in its place is the primary path now (RFC 7829 §5).
    PrimarySwitched {
        /// The new primary path.
        path: PathId,
    },
    /// A key that was deactivated signs nothing any more and may be deleted (RFC 6458 §6.1.8).
    AuthKeyFree {
        /// Its identifier.
        id: u16,
    },
    /// The peer signs with another key than before (RFC 6458 §6.1.8).
    AuthKeyUsed {
        /// Its identifier.
        id: u16,
    },
    /// The peer reported an error that did not end the association (RFC 9260 §3.3.10).
    PeerError {
        /// Cause code.
        code: u16,
        /// What follows code and length, padded to four bytes.
        value: Vec<u8>,
    },
    /// Streams began again with sequence number 0 (RFC 6525).
    StreamsReset {
        /// Which; none is all.
        streams: Vec<anabranch_base::StreamId>,
        /// Those of the peer, not ours.
        incoming: bool,
    },
    /// There are more streams (RFC 6525 §5.1.5, §5.2.5).
    StreamsAdded {
        /// More to send on.
        outgoing: u16,
        /// More to receive on.
        incoming: u16,
    },
    /// All streams and the TSNs of both sides have begun anew (RFC 6525 §5.1.4).
    AssociationReset,
    /// A request to reset or to add streams was not carried out. One that was refused as "already in progress" is asked
    /// for again first.
    ReconfigFailed {
        /// What the peer said (RFC 6525 §4.4).
        result: u32,
    },
    /// The peer wants to end; nothing new is taken from the user.
    PeerShutdown,
    /// The association is over.
    Closed(CloseReason),
}
