//! Why bytes are not an SCTP packet.

use core::fmt;
use thiserror::Error;

/// The kind of type-length-value item that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// A chunk (RFC 9260 §3.2).
    Chunk,
    /// A parameter (RFC 9260 §3.2.1).
    Parameter,
    /// An error cause (RFC 9260 §3.3.10).
    Cause,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Item::Chunk => "chunk",
            Item::Parameter => "parameter",
            Item::Cause => "error cause",
        })
    }
}

/// A datagram, or a part of one, that does not have the format it claims. All lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// Shorter than the common header.
    #[error("{len} bytes are too few for an SCTP packet")]
    Packet {
        /// Length of the datagram.
        len: usize,
    },
    /// Source or destination port 0 (RFC 9260 §3.1).
    #[error("port 0 in the common header")]
    ZeroPort,
    /// The CRC32c does not match (RFC 9260 §6.8).
    #[error("checksum {found:08x} instead of {computed:08x}")]
    Checksum {
        /// The field's value.
        found: u32,
        /// The sum over the datagram.
        computed: u32,
    },
    /// A few bytes are left where the next item's header should stand.
    #[error("{item} header cut short: {left} bytes left")]
    Header {
        /// What should start there.
        item: Item,
        /// How many bytes there are.
        left: usize,
    },
    /// A length field that does not even cover the item's own header.
    #[error("{item} {kind:#x} claims length {length}")]
    Length {
        /// What it is.
        item: Item,
        /// Its type or code.
        kind: u16,
        /// Its length field.
        length: u16,
    },
    /// A length field that points behind the end.
    #[error("{item} {kind:#x} claims {length} bytes, {left} are there")]
    Overrun {
        /// What it is.
        item: Item,
        /// Its type or code.
        kind: u16,
        /// Its length field.
        length: u16,
        /// Bytes from its header to the end.
        left: usize,
    },
    /// The value's length or content does not fit the type's format.
    #[error("{item} {kind:#x} with a value of {length} bytes does not have its format")]
    Body {
        /// What it is.
        item: Item,
        /// Its type or code.
        kind: u16,
        /// Length of the value.
        length: usize,
    },
    /// HEARTBEAT or HEARTBEAT ACK without the mandatory Heartbeat Info (RFC 9260 §3.3.5).
    #[error("chunk {kind} without Heartbeat Info")]
    NoHeartbeatInfo {
        /// The chunk's type.
        kind: u8,
    },
}
