//! Chunks: one file each. This file only says which of them reads a chunk's value.

mod abort;
mod asconf;
mod asconf_ack;
mod auth;
mod cookie_ack;
mod cookie_echo;
mod cwr;
mod data;
mod ecne;
mod error;
mod forward_tsn;
mod heartbeat;
mod heartbeat_ack;
mod i_data;
mod i_forward_tsn;
mod init;
mod init_ack;
mod nr_sack;
mod packet_drop;
mod pad;
mod parity;
mod re_config;
mod repaired;
mod reserved;
mod sack;
mod shutdown;
mod shutdown_ack;
mod shutdown_complete;
mod time_stamp;

pub use abort::{Abort, AbortOut};
pub use asconf::{Asconf, AsconfOut};
pub use asconf_ack::{AsconfAck, AsconfAckOut};
pub use auth::{Auth, AuthOut};
pub use cookie_ack::CookieAck;
pub use cookie_echo::CookieEcho;
pub use cwr::Cwr;
pub use data::{DATA_HEADER_LEN, Data, DataFlags, DataHeader, data_chunk_len};
pub use ecne::Ecne;
pub use error::{ErrorChunk, ErrorOut};
pub use forward_tsn::{ForwardTsn, ForwardTsnOut};
pub use heartbeat::Heartbeat;
pub use heartbeat_ack::HeartbeatAck;
pub use i_data::{I_DATA_HEADER_LEN, IData, IDataHeader};
pub use i_forward_tsn::{IForwardTsn, IForwardTsnOut, Skipped};
pub use init::{Init, InitFields, InitOut};
pub use init_ack::InitAck;
pub use nr_sack::{NrSack, NrSackOut};
pub use packet_drop::PacketDrop;
pub use pad::Pad;
pub use parity::Parity;
pub use re_config::{ReConfig, ReConfigOut};
pub use repaired::{Repaired, RepairedOut};
pub use reserved::is_reserved;
pub use sack::{CountedSack, GapBlock, Sack, SackOut};
pub use shutdown::Shutdown;
pub use shutdown_ack::ShutdownAck;
pub use shutdown_complete::ShutdownComplete;
pub use time_stamp::TimeStamp;

use crate::encode::{Encode, put_chunk};
use crate::error::{Item, WireError};
use crate::kind;
use crate::unknown::UnknownAction;
use bytes::Bytes;

/// Length of a chunk's type, flags and length fields, in bytes (RFC 9260 §3.2).
pub const CHUNK_HEADER_LEN: usize = 4;

/// T bit of ABORT and SHUTDOWN COMPLETE: the verification tag is the receiver's own, sent back (RFC 9260 §3.3.7).
const T_BIT: u8 = 1;

/// A framed chunk, its value not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawChunk<'a> {
    /// Chunk type, see [`kind`].
    pub kind: u8,
    /// Chunk flags.
    pub flags: u8,
    /// Chunk value without padding.
    pub value: &'a [u8],
    /// The chunk from its header to its end, with padding where that was received.
    pub whole: &'a [u8],
    /// The packet from this chunk's header to its end: what an AUTH chunk signs (RFC 4895 §6.2).
    pub rest: &'a [u8],
    /// What follows `value` but is stored elsewhere: the payload of a DATA chunk that arrived as slices.
    pub payload: Option<&'a Bytes>,
}

impl<'a> RawChunk<'a> {
    /// Reads the value. Types that this crate has no format for become [`Chunk::Unknown`].
    ///
    /// # Errors
    /// [`WireError::Body`], [`WireError::NoHeartbeatInfo`], or an error of a mandatory parameter. What follows
    /// the mandatory fields is checked when it is iterated over.
    pub fn decode(&self) -> Result<Chunk<'a>, WireError> {
        Ok(match self.kind {
            kind::DATA => Chunk::Data(Data::decode(self)?),
            kind::INIT => Chunk::Init(Init::decode(self)?),
            kind::INIT_ACK => Chunk::InitAck(InitAck::decode(self)?),
            kind::SACK => Chunk::Sack(Sack::decode(self)?),
            kind::HEARTBEAT => Chunk::Heartbeat(Heartbeat::decode(self)?),
            kind::HEARTBEAT_ACK => Chunk::HeartbeatAck(HeartbeatAck::decode(self)?),
            kind::ABORT => Chunk::Abort(Abort::decode(self)),
            kind::SHUTDOWN => Chunk::Shutdown(Shutdown::decode(self)?),
            kind::SHUTDOWN_ACK => Chunk::ShutdownAck,
            kind::ERROR => Chunk::Error(ErrorChunk::decode(self)),
            kind::COOKIE_ECHO => Chunk::CookieEcho(CookieEcho::decode(self)),
            kind::COOKIE_ACK => Chunk::CookieAck,
            kind::SHUTDOWN_COMPLETE => Chunk::ShutdownComplete(ShutdownComplete::decode(self)),
            kind::FORWARD_TSN => Chunk::ForwardTsn(ForwardTsn::decode(self)?),
            kind::AUTH => Chunk::Auth(Auth::decode(self)?),
            kind::ASCONF => Chunk::Asconf(Asconf::decode(self)?),
            kind::ASCONF_ACK => Chunk::AsconfAck(AsconfAck::decode(self)?),
            kind::I_DATA => Chunk::IData(IData::decode(self)?),
            kind::I_FORWARD_TSN => Chunk::IForwardTsn(IForwardTsn::decode(self)?),
            kind::RE_CONFIG => Chunk::ReConfig(ReConfig::decode(self)),
            kind::NR_SACK => Chunk::NrSack(NrSack::decode(self)?),
            kind::PAD => Chunk::Pad(Pad { len: self.value.len() }),
            kind::ECNE => Chunk::Ecne(Ecne::decode(self)?),
            kind::PACKET_DROP => Chunk::PacketDrop(PacketDrop::decode(self)?),
            kind::CWR => Chunk::Cwr(Cwr::decode(self)?),
            kind::TIME_STAMP => Chunk::TimeStamp(TimeStamp::decode(self)?),
            kind::PARITY => Chunk::Parity(Parity::decode(self)?),
            kind::REPAIRED => Chunk::Repaired(Repaired::decode(self)?),
            _ => Chunk::Unknown(*self),
        })
    }

    /// [`RawChunk::decode`] for a caller that knows it to be DATA.
    ///
    /// # Errors
    /// [`WireError::Body`].
    #[inline]
    pub fn as_data(&self) -> Result<Data<'a>, WireError> {
        Data::decode(self)
    }

    /// [`RawChunk::decode`] for a caller that knows it to be a SACK.
    ///
    /// # Errors
    /// [`WireError::Body`].
    #[inline]
    pub fn as_sack(&self) -> Result<Sack<'a>, WireError> {
        Sack::decode(self)
    }

    /// What RFC 9260 §3.2 wants done with the chunk when its type is unknown.
    pub fn unknown_action(&self) -> UnknownAction {
        UnknownAction::of_chunk(self.kind)
    }

    /// Header and value without padding: what "Unrecognized Chunk Type" carries back.
    pub fn without_padding(&self) -> &'a [u8] {
        self.whole.get(..CHUNK_HEADER_LEN + self.value.len()).unwrap_or(self.whole)
    }

    /// The error for a value that does not have the type's format.
    fn misshapen(&self) -> WireError {
        WireError::Body { item: Item::Chunk, kind: self.kind.into(), length: self.value.len() }
    }
}

impl Encode for RawChunk<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, self.kind, self.flags, |o| {
            o.extend_from_slice(self.value);
            o.extend_from_slice(self.payload.map_or(&[], |p| p));
        });
    }
}

/// A decoded chunk. Bytes behind a fixed-length format are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// RFC 9260 §3.3.1.
    Data(Data<'a>),
    /// RFC 9260 §3.3.2.
    Init(Init<'a>),
    /// RFC 9260 §3.3.3.
    InitAck(InitAck<'a>),
    /// RFC 9260 §3.3.4.
    Sack(Sack<'a>),
    /// RFC 9260 §3.3.5.
    Heartbeat(Heartbeat<'a>),
    /// RFC 9260 §3.3.6.
    HeartbeatAck(HeartbeatAck<'a>),
    /// RFC 9260 §3.3.7.
    Abort(Abort<'a>),
    /// RFC 9260 §3.3.8.
    Shutdown(Shutdown),
    /// RFC 9260 §3.3.9.
    ShutdownAck,
    /// RFC 9260 §3.3.10.
    Error(ErrorChunk<'a>),
    /// RFC 9260 §3.3.11.
    CookieEcho(CookieEcho<'a>),
    /// RFC 9260 §3.3.12.
    CookieAck,
    /// RFC 9260 §3.3.13.
    ShutdownComplete(ShutdownComplete),
    /// RFC 3758 §3.2.
    ForwardTsn(ForwardTsn<'a>),
    /// RFC 4895 §4.1.
    Auth(Auth<'a>),
    /// RFC 5061 §4.1.1.
    Asconf(Asconf<'a>),
    /// RFC 5061 §4.1.2.
    AsconfAck(AsconfAck<'a>),
    /// RFC 8260 §2.1.
    IData(IData<'a>),
    /// RFC 8260 §2.3.1.
    IForwardTsn(IForwardTsn<'a>),
    /// RFC 6525 §3.1.
    ReConfig(ReConfig<'a>),
    /// draft-tuexen-tsvwg-sctp-multipath-29 §4.2.
    NrSack(NrSack<'a>),
    /// RFC 4820 §3.
    Pad(Pad),
    /// draft-stewart-tsvwg-sctpecn.
    Ecne(Ecne),
    /// draft-stewart-tsvwg-sctpktdrprep.
    PacketDrop(PacketDrop<'a>),
    /// draft-stewart-tsvwg-sctpecn.
    Cwr(Cwr),
    /// An extension of ours, see [`time_stamp.rs`](TimeStamp).
    TimeStamp(TimeStamp),
    /// An extension of ours, see [`parity.rs`](Parity).
    Parity(Parity<'a>),
    /// An extension of ours, see [`repaired.rs`](Repaired).
    Repaired(Repaired<'a>),
    /// A type without a format here.
    Unknown(RawChunk<'a>),
}

impl Encode for Chunk<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Chunk::Data(c) => c.encode(out),
            Chunk::Init(c) => c.encode(out),
            Chunk::InitAck(c) => c.encode(out),
            Chunk::Sack(c) => c.encode(out),
            Chunk::Heartbeat(c) => c.encode(out),
            Chunk::HeartbeatAck(c) => c.encode(out),
            Chunk::Abort(c) => c.encode(out),
            Chunk::Shutdown(c) => c.encode(out),
            Chunk::ShutdownAck => ShutdownAck.encode(out),
            Chunk::Error(c) => c.encode(out),
            Chunk::CookieEcho(c) => c.encode(out),
            Chunk::CookieAck => CookieAck.encode(out),
            Chunk::ShutdownComplete(c) => c.encode(out),
            Chunk::ForwardTsn(c) => c.encode(out),
            Chunk::Auth(c) => c.encode(out),
            Chunk::Asconf(c) => c.encode(out),
            Chunk::AsconfAck(c) => c.encode(out),
            Chunk::IData(c) => c.encode(out),
            Chunk::IForwardTsn(c) => c.encode(out),
            Chunk::ReConfig(c) => c.encode(out),
            Chunk::NrSack(c) => c.encode(out),
            Chunk::Pad(c) => c.encode(out),
            Chunk::Ecne(c) => c.encode(out),
            Chunk::PacketDrop(c) => c.encode(out),
            Chunk::Cwr(c) => c.encode(out),
            Chunk::TimeStamp(c) => c.encode(out),
            Chunk::Parity(c) => c.encode(out),
            Chunk::Repaired(c) => c.encode(out),
            Chunk::Unknown(c) => c.encode(out),
        }
    }
}
