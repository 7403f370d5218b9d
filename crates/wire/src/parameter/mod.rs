//! Parameters of chunks (RFC 9260 §3.2.1).

mod address;
pub mod kind;
pub mod parity_kind;
mod reconfig;

pub use reconfig::result as reconfig_result;

use crate::bits::{be32, round4, split};
use crate::encode::{Encode, put_tlv, put32};
use crate::error::{Item, WireError};
use crate::tlv::{self, without_final_padding};
use crate::unknown::UnknownAction;
use anabranch_base::Tsn;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A framed parameter, its value not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawParameter<'a> {
    /// Parameter type, see [`kind`].
    pub kind: u16,
    /// Value without padding.
    pub value: &'a [u8],
    /// Header and value without padding: what a report about it carries back.
    pub whole: &'a [u8],
}

impl<'a> RawParameter<'a> {
    /// Reads the value. Types that this crate has no format for become [`Parameter::Unknown`].
    ///
    /// # Errors
    /// [`WireError::Body`].
    pub fn decode(&self) -> Result<Parameter<'a>, WireError> {
        self.read().ok_or(WireError::Body { item: Item::Parameter, kind: self.kind, length: self.value.len() })
    }

    /// What RFC 9260 §3.2.1 wants done with the parameter when its type is unknown.
    pub fn unknown_action(&self) -> UnknownAction {
        UnknownAction::of_parameter(self.kind)
    }

    fn read(&self) -> Option<Parameter<'a>> {
        let value = self.value;
        Some(match self.kind {
            kind::IPV4 => Parameter::Ipv4(address::ipv4(value)?),
            kind::IPV6 => Parameter::Ipv6(address::ipv6(value)?),
            kind::COOKIE => Parameter::Cookie(value),
            kind::UNRECOGNIZED => Parameter::Unrecognized(without_final_padding(value)),
            kind::COOKIE_PRESERVATIVE => Parameter::CookiePreservative(exact32(value)?),
            kind::HOST_NAME => Parameter::HostName,
            kind::SUPPORTED_ADDRESS_TYPES => Parameter::SupportedAddressTypes(even(value)?),
            kind::ECN_CAPABLE => Parameter::EcnCapable,
            kind::ZERO_CHECKSUM => Parameter::ZeroChecksum(exact32(value)?),
            kind::RANDOM => Parameter::Random(value),
            kind::CHUNK_LIST => Parameter::ChunkList(value),
            kind::HMAC_ALGO => Parameter::HmacAlgo(even(value)?),
            kind::PADDING => Parameter::Padding,
            kind::SUPPORTED_EXTENSIONS => Parameter::SupportedExtensions(value),
            kind::FORWARD_TSN_SUPPORTED if value.is_empty() => Parameter::ForwardTsnSupported,
            kind::FORWARD_TSN_SUPPORTED => return None,
            kind::PACKET_COUNT => Parameter::PacketCount,
            kind::TIME_STAMPS => Parameter::TimeStamps,
            kind::PARITY => Parameter::Parity(value.first().copied()),
            kind::OUTGOING_RESET..=kind::ADD_INCOMING => reconfig::read(self.kind, value)?,
            kind::ASCONF_ADD => {
                let (correlation, address) = request(value)?;
                Parameter::AsconfAdd { correlation, address }
            }
            kind::ASCONF_DELETE => {
                let (correlation, address) = request(value)?;
                Parameter::AsconfDelete { correlation, address }
            }
            kind::ASCONF_SET_PRIMARY => {
                let (correlation, address) = request(value)?;
                Parameter::AsconfSetPrimary { correlation, address }
            }
            kind::ASCONF_ERROR_CAUSE => {
                let (correlation, causes) = split::<4>(value)?;
                Parameter::AsconfErrorCause { correlation: u32::from_be_bytes(*correlation), causes }
            }
            kind::ASCONF_SUCCESS => Parameter::AsconfSuccess { correlation: exact32(value)? },
            kind::ADAPTATION_INDICATION => Parameter::AdaptationIndication(exact32(value)?),
            _ => Parameter::Unknown(*self),
        })
    }
}

/// A value that is one 32-bit integer.
fn exact32(value: &[u8]) -> Option<u32> {
    if value.len() == 4 { be32(value, 0) } else { None }
}

/// A value that is a list of 16-bit integers.
fn even(value: &[u8]) -> Option<&[u8]> {
    value.len().is_multiple_of(2).then_some(value)
}

/// Correlation id and address of an ASCONF request.
fn request(value: &[u8]) -> Option<(u32, IpAddr)> {
    let (correlation, nested) = split::<4>(value)?;
    Some((u32::from_be_bytes(*correlation), address::nested(nested)?))
}

/// A decoded parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter<'a> {
    /// RFC 9260 §3.3.2.1.1.
    Ipv4(Ipv4Addr),
    /// RFC 9260 §3.3.2.1.2.
    Ipv6(Ipv6Addr),
    /// State Cookie (RFC 9260 §3.3.3.1.1).
    Cookie(&'a [u8]),
    /// A parameter of the INIT that the peer did not know, complete with its header but without its padding
    /// (RFC 9260 §3.3.3.1.2).
    Unrecognized(&'a [u8]),
    /// Wanted extension of the cookie's life in milliseconds (RFC 9260 §3.3.2.1.3).
    CookiePreservative(u32),
    /// Host Name Address: never sent (encodes to nothing), refused when received (RFC 9260 §3.3.2.1.4).
    HostName,
    /// Address parameter types, to be read by [`list_u16`](crate::list_u16) (RFC 9260 §3.3.2.1.5).
    SupportedAddressTypes(&'a [u8]),
    /// ECN Capable (draft-stewart-tsvwg-sctpecn).
    EcnCapable,
    /// RFC 3758 §3.1.
    ForwardTsnSupported,
    /// Ours: the sender reads packet counts in SACKs.
    PacketCount,
    /// Ours: the sender reads time stamps beside SACKs.
    TimeStamps,
    /// Ours: the sender takes parity; of which kind it reads, of [`parity_kind`](crate::parity_kind), where it says so.
    Parity(Option<u8>),
    /// Filler, content ignored; encodes to one without content (RFC 4820 §4).
    Padding,
    /// Chunk types (RFC 5061 §4.2.7).
    SupportedExtensions(&'a [u8]),
    /// Random number of the sender (RFC 4895 §3.1).
    Random(&'a [u8]),
    /// Chunk types that the sender wants authenticated (RFC 4895 §3.2).
    ChunkList(&'a [u8]),
    /// HMAC identifiers by preference, to be read by [`list_u16`](crate::list_u16) (RFC 4895 §3.3).
    HmacAlgo(&'a [u8]),
    /// Adaptation code point (RFC 5061 §4.2.6).
    AdaptationIndication(u32),
    /// Error detection method identifier with which a zero checksum is fine (RFC 9653).
    ZeroChecksum(u32),
    /// Request to add an address; the wildcard means the packet's source (RFC 5061 §4.2.1).
    AsconfAdd {
        /// The requester's id for this request.
        correlation: u32,
        /// The address.
        address: IpAddr,
    },
    /// Request to delete an address; the wildcard means all but the packet's source (RFC 5061 §4.2.2).
    AsconfDelete {
        /// The requester's id for this request.
        correlation: u32,
        /// The address.
        address: IpAddr,
    },
    /// Request to send to this address by preference (RFC 5061 §4.2.4).
    AsconfSetPrimary {
        /// The requester's id for this request.
        correlation: u32,
        /// The address.
        address: IpAddr,
    },
    /// The request was carried out (RFC 5061 §4.2.5).
    AsconfSuccess {
        /// Id of the request.
        correlation: u32,
    },
    /// The request was refused (RFC 5061 §4.2.3).
    AsconfErrorCause {
        /// Id of the request.
        correlation: u32,
        /// Encoded error causes, to be read by [`Causes`](crate::Causes).
        causes: &'a [u8],
    },
    /// The sender's streams begin again with SSN 0 (RFC 6525 §4.1).
    OutgoingReset {
        /// Number of this request.
        request: u32,
        /// Number of the peer's request that this one meets, or the last one received, less 1 when there was none.
        response: u32,
        /// The last TSN assigned before.
        last_tsn: Tsn,
        /// The streams, to be read by [`list_u16`](crate::list_u16); none is all.
        streams: &'a [u8],
    },
    /// The receiver's streams shall begin again (RFC 6525 §4.2).
    IncomingReset {
        /// Number of this request.
        request: u32,
        /// The streams, to be read by [`list_u16`](crate::list_u16); none is all.
        streams: &'a [u8],
    },
    /// All streams and the TSNs of both begin again (RFC 6525 §4.3).
    TsnReset {
        /// Number of this request.
        request: u32,
    },
    /// What came of a request (RFC 6525 §4.4).
    ReconfigResponse {
        /// Number of the request.
        response: u32,
        /// See [`reconfig_result`].
        result: u32,
        /// The next TSN of the sender, and the one it expects: of the answer to [`TsnReset`](Self::TsnReset).
        tsns: Option<(Tsn, Tsn)>,
    },
    /// The sender wants that many more streams to send on (RFC 6525 §4.5).
    AddOutgoing {
        /// Number of this request.
        request: u32,
        /// How many.
        streams: u16,
    },
    /// The receiver shall ask for that many more (RFC 6525 §4.6).
    AddIncoming {
        /// Number of this request.
        request: u32,
        /// How many.
        streams: u16,
    },
    /// A type without a format here.
    Unknown(RawParameter<'a>),
}

impl Parameter<'_> {
    /// The address of an address parameter.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Parameter::Ipv4(a) => Some(IpAddr::V4(*a)),
            Parameter::Ipv6(a) => Some(IpAddr::V6(*a)),
            _ => None,
        }
    }
}

impl From<IpAddr> for Parameter<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(a) => Parameter::Ipv4(a),
            IpAddr::V6(a) => Parameter::Ipv6(a),
        }
    }
}

impl Encode for Parameter<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Parameter::Ipv4(a) => address::put(out, a.into()),
            Parameter::Ipv6(a) => address::put(out, a.into()),
            Parameter::Cookie(v) => put_bytes(out, kind::COOKIE, v),
            Parameter::Unrecognized(v) => put_tlv(out, kind::UNRECOGNIZED, |o| {
                // Peers and dissectors expect the copy to be padded itself.
                o.extend_from_slice(v);
                o.resize(o.len() + round4(v.len()) - v.len(), 0);
            }),
            Parameter::CookiePreservative(ms) => put_u32(out, kind::COOKIE_PRESERVATIVE, ms),
            Parameter::HostName => (),
            Parameter::SupportedAddressTypes(v) => put_bytes(out, kind::SUPPORTED_ADDRESS_TYPES, v),
            Parameter::EcnCapable => put_bytes(out, kind::ECN_CAPABLE, &[]),
            Parameter::ForwardTsnSupported => put_bytes(out, kind::FORWARD_TSN_SUPPORTED, &[]),
            Parameter::PacketCount => put_bytes(out, kind::PACKET_COUNT, &[]),
            Parameter::TimeStamps => put_bytes(out, kind::TIME_STAMPS, &[]),
            Parameter::Parity(reads) => put_bytes(out, kind::PARITY, reads.as_slice()),
            Parameter::Padding => put_bytes(out, kind::PADDING, &[]),
            Parameter::SupportedExtensions(v) => put_bytes(out, kind::SUPPORTED_EXTENSIONS, v),
            Parameter::Random(v) => put_bytes(out, kind::RANDOM, v),
            Parameter::ChunkList(v) => put_bytes(out, kind::CHUNK_LIST, v),
            Parameter::HmacAlgo(v) => put_bytes(out, kind::HMAC_ALGO, v),
            Parameter::AdaptationIndication(code) => put_u32(out, kind::ADAPTATION_INDICATION, code),
            Parameter::ZeroChecksum(method) => put_u32(out, kind::ZERO_CHECKSUM, method),
            Parameter::AsconfAdd { correlation, address } => put_request(out, kind::ASCONF_ADD, correlation, address),
            Parameter::AsconfDelete { correlation, address } => {
                put_request(out, kind::ASCONF_DELETE, correlation, address);
            }
            Parameter::AsconfSetPrimary { correlation, address } => {
                put_request(out, kind::ASCONF_SET_PRIMARY, correlation, address);
            }
            Parameter::AsconfSuccess { correlation } => put_u32(out, kind::ASCONF_SUCCESS, correlation),
            Parameter::AsconfErrorCause { correlation, causes } => put_tlv(out, kind::ASCONF_ERROR_CAUSE, |o| {
                put32(o, correlation);
                o.extend_from_slice(without_final_padding(causes));
            }),
            Parameter::OutgoingReset { .. }
            | Parameter::IncomingReset { .. }
            | Parameter::TsnReset { .. }
            | Parameter::ReconfigResponse { .. }
            | Parameter::AddOutgoing { .. }
            | Parameter::AddIncoming { .. } => reconfig::put(self, out),
            Parameter::Unknown(raw) => put_bytes(out, raw.kind, raw.value),
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    put_tlv(out, kind, |o| o.extend_from_slice(value));
}

fn put_u32(out: &mut Vec<u8>, kind: u16, value: u32) {
    put_tlv(out, kind, |o| put32(o, value));
}

fn put_request(out: &mut Vec<u8>, kind: u16, correlation: u32, address: IpAddr) {
    put_tlv(out, kind, |o| {
        put32(o, correlation);
        address::put(o, address);
    });
}

/// A list of parameters, framed and decoded when iterated over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params<'a>(&'a [u8]);

impl<'a> Params<'a> {
    /// The list in `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Params(bytes)
    }
    /// The bytes.
    pub const fn raw(&self) -> &'a [u8] {
        self.0
    }
    /// Is there none?
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The parameters, decoded. A value that does not have its type's format is an error after which the walk goes
    /// on; an error of framing ends it.
    pub fn iter(&self) -> ParameterIter<'a> {
        ParameterIter(self.iter_raw())
    }
    /// The parameters, framed only. The first error ends the walk.
    pub fn iter_raw(&self) -> RawParameterIter<'a> {
        RawParameterIter { rest: self.0 }
    }
}

/// Iterator of [`Params::iter_raw`].
#[derive(Clone, Debug)]
pub struct RawParameterIter<'a> {
    rest: &'a [u8],
}

impl<'a> RawParameterIter<'a> {
    /// The bytes not walked yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for RawParameterIter<'a> {
    type Item = Result<RawParameter<'a>, WireError>;
    fn next(&mut self) -> Option<Self::Item> {
        tlv::take(Item::Parameter, &mut self.rest)
            .map(|r| r.map(|t| RawParameter { kind: t.kind, value: t.value, whole: t.whole }))
    }
}

/// Iterator of [`Params::iter`].
#[derive(Clone, Debug)]
pub struct ParameterIter<'a>(RawParameterIter<'a>);

impl<'a> Iterator for ParameterIter<'a> {
    type Item = Result<Parameter<'a>, WireError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|r| r.and_then(|raw| raw.decode()))
    }
}

impl<'a> IntoIterator for Params<'a> {
    type Item = Result<Parameter<'a>, WireError>;
    type IntoIter = ParameterIter<'a>;
    fn into_iter(self) -> ParameterIter<'a> {
        self.iter()
    }
}
