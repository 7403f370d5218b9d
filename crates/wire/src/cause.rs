//! Error causes (RFC 9260 §3.3.10; RFC 4895 §5; RFC 5061 §4.3), as ABORT, ERROR and ASCONF-ACK carry them.

use crate::bits::{be16, be32, split};
use crate::encode::{Encode, put_tlv, put16, put32};
use crate::error::{Item, WireError};
use crate::tlv::{self, list_u16};
use anabranch_base::{StreamId, Tsn};
use core::fmt;

/// Cause codes.
pub mod code {
    /// Invalid Stream Identifier (RFC 9260 §3.3.10.1).
    pub const INVALID_STREAM: u16 = 1;
    /// Missing Mandatory Parameter (RFC 9260 §3.3.10.2).
    pub const MISSING_PARAMETERS: u16 = 2;
    /// Stale Cookie (RFC 9260 §3.3.10.3).
    pub const STALE_COOKIE: u16 = 3;
    /// Out of Resource (RFC 9260 §3.3.10.4).
    pub const OUT_OF_RESOURCE: u16 = 4;
    /// Unresolvable Address (RFC 9260 §3.3.10.5).
    pub const UNRESOLVABLE_ADDRESS: u16 = 5;
    /// Unrecognized Chunk Type (RFC 9260 §3.3.10.6).
    pub const UNRECOGNIZED_CHUNK: u16 = 6;
    /// Invalid Mandatory Parameter (RFC 9260 §3.3.10.7).
    pub const INVALID_PARAMETER: u16 = 7;
    /// Unrecognized Parameters (RFC 9260 §3.3.10.8).
    pub const UNRECOGNIZED_PARAMETERS: u16 = 8;
    /// No User Data (RFC 9260 §3.3.10.9).
    pub const NO_USER_DATA: u16 = 9;
    /// Cookie Received While Shutting Down (RFC 9260 §3.3.10.10).
    pub const COOKIE_WHILE_SHUTTING_DOWN: u16 = 10;
    /// Restart of an Association with New Addresses (RFC 9260 §3.3.10.11).
    pub const RESTART_NEW_ADDRESSES: u16 = 11;
    /// User-Initiated Abort (RFC 9260 §3.3.10.12).
    pub const USER_ABORT: u16 = 12;
    /// Protocol Violation (RFC 9260 §3.3.10.13).
    pub const PROTOCOL_VIOLATION: u16 = 13;
    /// Request to Delete Last Remaining IP Address (RFC 5061 §4.3.1).
    pub const DELETE_LAST_ADDRESS: u16 = 0x00a0;
    /// Operation Refused Due to Resource Shortage (RFC 5061 §4.3.2).
    pub const RESOURCE_SHORTAGE: u16 = 0x00a1;
    /// Request to Delete Source IP Address (RFC 5061 §4.3.3).
    pub const DELETE_SOURCE_ADDRESS: u16 = 0x00a2;
    /// Association Aborted Due to Illegal ASCONF-ACK (RFC 5061 §4.3.4).
    pub const ILLEGAL_ASCONF_ACK: u16 = 0x00a3;
    /// Request Refused - No Authorization (RFC 5061 §4.3.5).
    pub const NOT_AUTHORIZED: u16 = 0x00a4;
    /// Unsupported HMAC Identifier (RFC 4895 §5.1).
    pub const UNSUPPORTED_HMAC: u16 = 0x0105;
}

/// A decoded error cause. Its `Display` is a short text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// DATA on a stream that does not exist.
    InvalidStream(StreamId),
    /// Types of the missing parameters, to be read by [`list_u16`].
    MissingParameters(&'a [u8]),
    /// The cookie was good but too old.
    StaleCookie {
        /// How long ago it expired, in microseconds; 0 when the peer does not say.
        staleness_us: u32,
    },
    /// No resources for the association.
    OutOfResource,
    /// The complete address parameter that cannot be used.
    UnresolvableAddress(&'a [u8]),
    /// The complete chunk that is not known.
    UnrecognizedChunk(&'a [u8]),
    /// A mandatory field or parameter has a value that is not allowed.
    InvalidParameter,
    /// The complete parameters of the INIT ACK that are not known.
    UnrecognizedParameters(&'a [u8]),
    /// TSN of a DATA chunk without payload.
    NoUserData(Tsn),
    /// COOKIE ECHO in state SHUTDOWN-ACK-SENT.
    CookieWhileShuttingDown,
    /// The complete address parameters that a restart tried to add.
    RestartNewAddresses(&'a [u8]),
    /// The peer's user aborted the association; the reason it gave.
    UserAbort(&'a [u8]),
    /// Something else against the rules; additional information.
    ProtocolViolation(&'a [u8]),
    /// An HMAC identifier in AUTH that is not supported.
    UnsupportedHmac(u16),
    /// The complete request to delete the only address.
    DeleteLastAddress(&'a [u8]),
    /// The complete request for which there are no resources.
    ResourceShortage(&'a [u8]),
    /// The complete request to delete the address that it came from.
    DeleteSourceAddress(&'a [u8]),
    /// ASCONF-ACK for an ASCONF never sent.
    IllegalAsconfAck,
    /// The complete request that is not allowed.
    NotAuthorized(&'a [u8]),
    /// A code without a format here.
    Unknown {
        /// The code.
        code: u16,
        /// Cause-specific information.
        value: &'a [u8],
    },
}

impl<'a> Cause<'a> {
    /// The cause code.
    pub const fn code(&self) -> u16 {
        match self {
            Cause::InvalidStream(_) => code::INVALID_STREAM,
            Cause::MissingParameters(_) => code::MISSING_PARAMETERS,
            Cause::StaleCookie { .. } => code::STALE_COOKIE,
            Cause::OutOfResource => code::OUT_OF_RESOURCE,
            Cause::UnresolvableAddress(_) => code::UNRESOLVABLE_ADDRESS,
            Cause::UnrecognizedChunk(_) => code::UNRECOGNIZED_CHUNK,
            Cause::InvalidParameter => code::INVALID_PARAMETER,
            Cause::UnrecognizedParameters(_) => code::UNRECOGNIZED_PARAMETERS,
            Cause::NoUserData(_) => code::NO_USER_DATA,
            Cause::CookieWhileShuttingDown => code::COOKIE_WHILE_SHUTTING_DOWN,
            Cause::RestartNewAddresses(_) => code::RESTART_NEW_ADDRESSES,
            Cause::UserAbort(_) => code::USER_ABORT,
            Cause::ProtocolViolation(_) => code::PROTOCOL_VIOLATION,
            Cause::UnsupportedHmac(_) => code::UNSUPPORTED_HMAC,
            Cause::DeleteLastAddress(_) => code::DELETE_LAST_ADDRESS,
            Cause::ResourceShortage(_) => code::RESOURCE_SHORTAGE,
            Cause::DeleteSourceAddress(_) => code::DELETE_SOURCE_ADDRESS,
            Cause::IllegalAsconfAck => code::ILLEGAL_ASCONF_ACK,
            Cause::NotAuthorized(_) => code::NOT_AUTHORIZED,
            Cause::Unknown { code, .. } => *code,
        }
    }

    /// `None` when the value does not have the code's format. Bytes behind a fixed format are ignored.
    fn read(code: u16, value: &'a [u8]) -> Option<Self> {
        Some(match code {
            code::INVALID_STREAM => Cause::InvalidStream(StreamId(be16(value, 0)?)),
            code::MISSING_PARAMETERS => {
                let (count, list) = split::<4>(value)?;
                let bytes = usize::try_from(u32::from_be_bytes(*count)).ok()?.checked_mul(2)?;
                Cause::MissingParameters(list.get(..bytes)?)
            }
            code::STALE_COOKIE => Cause::StaleCookie { staleness_us: be32(value, 0)? },
            code::OUT_OF_RESOURCE => Cause::OutOfResource,
            code::UNRESOLVABLE_ADDRESS => Cause::UnresolvableAddress(value),
            code::UNRECOGNIZED_CHUNK => Cause::UnrecognizedChunk(value),
            code::INVALID_PARAMETER => Cause::InvalidParameter,
            code::UNRECOGNIZED_PARAMETERS => Cause::UnrecognizedParameters(value),
            code::NO_USER_DATA => Cause::NoUserData(Tsn(be32(value, 0)?)),
            code::COOKIE_WHILE_SHUTTING_DOWN => Cause::CookieWhileShuttingDown,
            code::RESTART_NEW_ADDRESSES => Cause::RestartNewAddresses(value),
            code::USER_ABORT => Cause::UserAbort(value),
            code::PROTOCOL_VIOLATION => Cause::ProtocolViolation(value),
            code::UNSUPPORTED_HMAC => Cause::UnsupportedHmac(be16(value, 0)?),
            code::DELETE_LAST_ADDRESS => Cause::DeleteLastAddress(value),
            code::RESOURCE_SHORTAGE => Cause::ResourceShortage(value),
            code::DELETE_SOURCE_ADDRESS => Cause::DeleteSourceAddress(value),
            code::ILLEGAL_ASCONF_ACK => Cause::IllegalAsconfAck,
            code::NOT_AUTHORIZED => Cause::NotAuthorized(value),
            _ => Cause::Unknown { code, value },
        })
    }
}

impl Encode for Cause<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_tlv(out, self.code(), |o| match *self {
            Cause::InvalidStream(stream) => {
                put16(o, stream.0);
                put16(o, 0);
            }
            Cause::MissingParameters(list) => {
                put32(o, list_u16(list).len() as u32);
                list_u16(list).for_each(|kind| put16(o, kind));
            }
            Cause::StaleCookie { staleness_us } => put32(o, staleness_us),
            Cause::NoUserData(tsn) => put32(o, tsn.0),
            Cause::UnsupportedHmac(id) => put16(o, id),
            Cause::OutOfResource
            | Cause::InvalidParameter
            | Cause::CookieWhileShuttingDown
            | Cause::IllegalAsconfAck => (),
            Cause::UnresolvableAddress(v)
            | Cause::UnrecognizedChunk(v)
            | Cause::UnrecognizedParameters(v)
            | Cause::RestartNewAddresses(v)
            | Cause::UserAbort(v)
            | Cause::ProtocolViolation(v)
            | Cause::DeleteLastAddress(v)
            | Cause::ResourceShortage(v)
            | Cause::DeleteSourceAddress(v)
            | Cause::NotAuthorized(v)
            | Cause::Unknown { value: v, .. } => o.extend_from_slice(v),
        });
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cause::InvalidStream(stream) => write!(f, "stream {} does not exist", stream.0),
            Cause::MissingParameters(list) => {
                f.write_str("missing parameters")?;
                list_u16(list).try_for_each(|kind| write!(f, " {kind:#06x}"))
            }
            Cause::StaleCookie { staleness_us: 0 } => f.write_str("cookie too old"),
            Cause::StaleCookie { staleness_us } => write!(f, "cookie too old by {staleness_us} us"),
            Cause::OutOfResource => f.write_str("out of resources"),
            Cause::UnresolvableAddress(_) => f.write_str("address cannot be used"),
            Cause::UnrecognizedChunk(chunk) => match chunk.first() {
                Some(kind) => write!(f, "chunk type {kind} is not known"),
                None => f.write_str("chunk type is not known"),
            },
            Cause::InvalidParameter => f.write_str("mandatory parameter with an invalid value"),
            Cause::UnrecognizedParameters(list) => match be16(list, 0) {
                Some(kind) => write!(f, "parameter {kind:#06x} is not known"),
                None => f.write_str("parameter is not known"),
            },
            Cause::NoUserData(tsn) => write!(f, "DATA chunk {} without payload", tsn.0),
            Cause::CookieWhileShuttingDown => f.write_str("cookie received while shutting down"),
            Cause::RestartNewAddresses(_) => f.write_str("restart would add addresses"),
            Cause::UserAbort([]) => f.write_str("ended by the user"),
            Cause::UserAbort(reason) => write!(f, "ended by the user: {}", Text(reason)),
            Cause::ProtocolViolation([]) => f.write_str("protocol violation"),
            Cause::ProtocolViolation(info) => write!(f, "protocol violation: {}", Text(info)),
            Cause::UnsupportedHmac(id) => write!(f, "HMAC {id} is not supported"),
            Cause::DeleteLastAddress(_) => f.write_str("the last address cannot be deleted"),
            Cause::ResourceShortage(_) => f.write_str("no resources for the address change"),
            Cause::DeleteSourceAddress(_) => f.write_str("the source address cannot be deleted"),
            Cause::IllegalAsconfAck => f.write_str("ASCONF-ACK for nothing asked"),
            Cause::NotAuthorized(_) => f.write_str("address change not authorized"),
            Cause::Unknown { code, value } => write!(f, "cause {code:#06x} with {} bytes", value.len()),
        }
    }
}

/// A peer's bytes as text: printable ASCII as it is, anything else as a dot; at most 80 characters.
struct Text<'a>(&'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for &b in self.0.iter().take(80) {
            f.write_char(if b == b' ' || b.is_ascii_graphic() { b.into() } else { '.' })?;
        }
        Ok(())
    }
}

/// A list of error causes, framed and decoded when iterated over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes<'a>(&'a [u8]);

impl<'a> Causes<'a> {
    /// The list in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Causes(bytes)
    }
    /// The bytes.
    pub const fn raw(&self) -> &'a [u8] {
        self.0
    }
    /// Is there none?
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The causes in order. A value that does not have its code's format is an error after which the walk goes on;
    /// an error of framing ends it.
    pub fn iter(&self) -> CauseIter<'a> {
        CauseIter { rest: self.0 }
    }
}

impl<'a> IntoIterator for Causes<'a> {
    type Item = Result<Cause<'a>, WireError>;
    type IntoIter = CauseIter<'a>;
    fn into_iter(self) -> CauseIter<'a> {
        self.iter()
    }
}

/// Iterator of [`Causes::iter`].
#[derive(Clone, Debug)]
pub struct CauseIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for CauseIter<'a> {
    type Item = Result<Cause<'a>, WireError>;
    fn next(&mut self) -> Option<Self::Item> {
        tlv::take(Item::Cause, &mut self.rest).map(|r| {
            r.and_then(|t| {
                let length = t.value.len();
                Cause::read(t.kind, t.value).ok_or(WireError::Body { item: Item::Cause, kind: t.kind, length })
            })
        })
    }
}
