//! SCTP as bytes: packets, chunks, parameters, error causes, the checksum, and captures of them. No state.
//!
//! Decoding borrows from the datagram and allocates nothing; lists inside chunks are lazy iterators, so a broken
//! tail is noticed when it is reached. No input makes it panic. Encoding appends to a `Vec<u8>` that the caller
//! reuses; [`PacketSlices`] assembles a whole packet whose payloads are shared, not copied.
//!
//! Where to look: one file per chunk under `chunk/`, parameters under `parameter/`, error causes in `cause.rs`.
//!
//! ```
//! use anabranch_base::{Ssn, StreamId, Tsn};
//! use anabranch_wire::{Chunk, CommonHeader, DataFlags, DataHeader, Packet, PacketSlices, Verify};
//!
//! let mut out = PacketSlices::default();
//! out.start(CommonHeader { src_port: 5_000, dst_port: 9_899, vtag: 7 });
//! let flags = DataFlags { begin: true, end: true, ..DataFlags::default() };
//! let header = DataHeader { tsn: Tsn(1), stream: StreamId(0), ssn: Ssn(0), ppid: 0, flags };
//! out.push_data(&header, &"hello".into());
//! let mut datagram = Vec::new();
//! out.write_to(&mut datagram);
//!
//! let packet = Packet::parse(&datagram, Verify::Checksum)?;
//! for chunk in packet.chunks() {
//!     if let Chunk::Data(data) = chunk?.decode()? {
//!         assert_eq!(data.payload, b"hello");
//!     }
//! }
//! # Ok::<(), anabranch_wire::WireError>(())
//! ```

mod bits;
mod cause;
mod checksum;
mod chunk;
mod encapsulate;
mod encode;
mod error;
pub mod kind;
mod packet;
mod parameter;
mod pcapng;
mod slices;
mod tlv;
mod unknown;

pub use cause::{Cause, CauseIter, Causes, code as cause_code};
pub use checksum::packet_checksum;
pub use chunk::{
    Abort, AbortOut, Asconf, AsconfAck, AsconfAckOut, AsconfOut, Auth, AuthOut, CHUNK_HEADER_LEN, Chunk, CookieAck,
    CookieEcho, CountedSack, Cwr, DATA_HEADER_LEN, Data, DataFlags, DataHeader, Ecne, ErrorChunk, ErrorOut, ForwardTsn,
    ForwardTsnOut, GapBlock, Heartbeat, HeartbeatAck, I_DATA_HEADER_LEN, IData, IDataHeader, IForwardTsn,
    IForwardTsnOut, Init, InitAck, InitFields, InitOut, NrSack, NrSackOut, PacketDrop, Pad, Parity, RawChunk, ReConfig,
    ReConfigOut, Repaired, RepairedOut, Sack, SackOut, Shutdown, ShutdownAck, ShutdownComplete, Skipped, TimeStamp,
    data_chunk_len, is_reserved,
};
pub use encapsulate::{Encapsulation, IpPair};
pub use encode::Encode;
pub use error::{Item, WireError};
pub use packet::{COMMON_HEADER_LEN, Chunks, CommonHeader, Packet, Verify};
pub use parameter::{
    Parameter, ParameterIter, Params, RawParameter, RawParameterIter, kind as parameter_kind, parity_kind,
    reconfig_result,
};
pub use pcapng::{Direction, InterfaceId, LinkType, PcapngWriter};
pub use slices::{PacketSlices, Slices};
pub use tlv::list_u16;
pub use unknown::UnknownAction;
