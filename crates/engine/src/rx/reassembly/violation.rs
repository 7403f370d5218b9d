//! What no honest peer does.

use anabranch_base::{Mid, Ssn, StreamId, Tsn};
use thiserror::Error;

/// What a peer cannot do; the association is aborted with "Protocol Violation". What is held afterwards is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A first fragment follows one that was not the last of its message.
    #[error("{tsn:?} begins a message inside another")]
    BeginInside {
        /// TSN of the chunk that showed it.
        tsn: Tsn,
    },
    /// A message ended, or the data began, and what follows is not a first fragment.
    #[error("{tsn:?} is next to a message whose beginning cannot exist")]
    NoBegin {
        /// TSN of the chunk that showed it, or the first of the fragments.
        tsn: Tsn,
    },
    /// Neighbouring fragments differ in stream, SSN or U bit.
    #[error("{tsn:?} differs from its neighbour in stream, SSN or U bit")]
    Mismatch {
        /// TSN of the chunk that showed it.
        tsn: Tsn,
    },
    /// An SSN that was delivered before or waits already.
    #[error("{ssn:?} of {stream:?} is used twice")]
    SsnReused {
        /// Its stream.
        stream: StreamId,
        /// The number.
        ssn: Ssn,
    },
    /// A MID that was delivered before.
    #[error("{mid:?} of {stream:?} is used twice")]
    MidReused {
        /// Its stream.
        stream: StreamId,
        /// The number.
        mid: Mid,
    },
    /// A fragment that was here already, or lies behind the end of its message.
    #[error("{tsn:?} does not fit its message")]
    WrongFragment {
        /// TSN of the chunk that showed it.
        tsn: Tsn,
    },
    /// A stream that was not negotiated.
    #[error("{stream:?} does not exist")]
    NoSuchStream {
        /// The stream.
        stream: StreamId,
    },
}
