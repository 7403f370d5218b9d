//! A packet: common header and chunks (RFC 9260 §3).

use crate::bits::{round4, split};
use crate::checksum;
use crate::chunk::RawChunk;
use crate::error::{Item, WireError};

/// Length of the common header with its checksum, in bytes.
pub const COMMON_HEADER_LEN: usize = 12;

/// The common header but for the checksum (RFC 9260 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Verification tag.
    pub vtag: u32,
}

impl CommonHeader {
    /// The header with a checksum field of zero.
    pub fn to_bytes(self) -> [u8; COMMON_HEADER_LEN] {
        let mut out = [0; COMMON_HEADER_LEN];
        let (ports, rest) = out.split_at_mut(4);
        ports.copy_from_slice(&(u32::from(self.src_port) << 16 | u32::from(self.dst_port)).to_be_bytes());
        rest.split_at_mut(4).0.copy_from_slice(&self.vtag.to_be_bytes());
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8; COMMON_HEADER_LEN]) -> Self {
        let [s0, s1, d0, d1, v0, v1, v2, v3, ..] = *bytes;
        CommonHeader {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            vtag: u32::from_be_bytes([v0, v1, v2, v3]),
        }
    }
}

/// Whether the checksum of a packet is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// The CRC32c must be right (RFC 9260 §6.8).
    Checksum,
    /// The carrier is trusted (the simulator, or a peer with zero checksum agreed): the field is not read.
    Trusted,
}

/// A received packet. Its chunks are framed and decoded when asked for.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Ports and verification tag.
    pub header: CommonHeader,
    datagram: &'a [u8],
    body: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the common header, and checks the ports and (unless told not to) the checksum.
    ///
    /// # Errors
    /// [`WireError::Packet`], [`WireError::ZeroPort`], [`WireError::Checksum`].
    pub fn parse(datagram: &'a [u8], verify: Verify) -> Result<Packet<'a>, WireError> {
        let Some((head, body)) = split::<COMMON_HEADER_LEN>(datagram) else {
            return Err(WireError::Packet { len: datagram.len() });
        };
        if verify == Verify::Checksum {
            let found = checksum::field(datagram).unwrap_or(0);
            let computed = checksum::packet_checksum(datagram);
            if found != computed {
                return Err(WireError::Checksum { found, computed });
            }
        }
        let header = CommonHeader::from_bytes(head);
        if header.src_port == 0 || header.dst_port == 0 {
            return Err(WireError::ZeroPort);
        }
        Ok(Packet { header, datagram, body })
    }

    /// The chunks in order.
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks { rest: self.body }
    }

    /// The value of the checksum field (0 from a sender that uses RFC 9653).
    pub fn checksum(&self) -> u32 {
        checksum::field(self.datagram).unwrap_or(0)
    }

    /// The whole datagram.
    pub fn datagram(&self) -> &'a [u8] {
        self.datagram
    }
}

/// The chunks of a packet, framed one by one. Ends after the first error.
///
/// Padding behind the last chunk may be there or not, counted in its length or not (RFC 9260 §3.2).
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    /// The bytes not walked yet: the next chunk's first byte to the end of the packet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<RawChunk<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let all = self.rest;
        if all.is_empty() {
            return None;
        }
        self.rest = &[];
        let Some((&[kind, flags, l0, l1], _)) = split::<4>(all) else {
            return Some(Err(WireError::Header { item: Item::Chunk, left: all.len() }));
        };
        let length = u16::from_be_bytes([l0, l1]);
        if length < 4 {
            return Some(Err(WireError::Length { item: Item::Chunk, kind: kind.into(), length }));
        }
        let Some(value) = all.get(4..usize::from(length)) else {
            return Some(Err(WireError::Overrun { item: Item::Chunk, kind: kind.into(), length, left: all.len() }));
        };
        let (whole, rest) = all.split_at_checked(round4(usize::from(length))).unwrap_or((all, &[]));
        self.rest = rest;
        Some(Ok(RawChunk { kind, flags, value, whole, rest: all }))
    }
}

impl core::iter::FusedIterator for Chunks<'_> {}
