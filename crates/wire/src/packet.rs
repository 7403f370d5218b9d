//! A packet: common header and chunks (RFC 9260 §3).

use crate::bits::{round4, split};
use crate::checksum;
use crate::chunk::{DATA_HEADER_LEN, I_DATA_HEADER_LEN, RawChunk};
use crate::error::{Item, WireError};
use crate::kind;
use crate::slices::{PacketSlices, Part};

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
    /// All of it, or all but the payloads in `parts`.
    datagram: &'a [u8],
    body: &'a [u8],
    parts: &'a [Part],
    len: usize,
}

impl<'a> Packet<'a> {
    /// Reads the common header, and checks the ports and (with [`Verify::Checksum`]) the checksum.
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
        Ok(Packet { header: Self::header(head)?, datagram, body, parts: &[], len: datagram.len() })
    }

    /// The packet as it left its sender, not written, copied or summed in between: as by [`Packet::parse`] from the
    /// bytes of [`PacketSlices::write_to`], but that the [payloads](RawChunk::payload) are the sender's own. Where
    /// AUTH stands before one of them, [`RawChunk::rest`] is not all that it signs.
    ///
    /// # Errors
    /// [`WireError::Packet`], [`WireError::ZeroPort`].
    pub fn of_slices(slices: &'a PacketSlices) -> Result<Packet<'a>, WireError> {
        let (datagram, parts) = slices.pieces();
        let Some((head, body)) = split::<COMMON_HEADER_LEN>(datagram) else {
            return Err(WireError::Packet { len: datagram.len() });
        };
        Ok(Packet { header: Self::header(head)?, datagram, body, parts, len: slices.len() })
    }

    fn header(bytes: &[u8; COMMON_HEADER_LEN]) -> Result<CommonHeader, WireError> {
        let header = CommonHeader::from_bytes(bytes);
        if header.src_port == 0 || header.dst_port == 0 {
            return Err(WireError::ZeroPort);
        }
        Ok(header)
    }

    /// The chunks in order.
    pub fn chunks(&self) -> Chunks<'a> {
        Chunks { rest: self.body, at: COMMON_HEADER_LEN, parts: self.parts }
    }

    /// Is it framed soundly, and does `such` hold for the types of all its chunks? Looks only at the frames. False for
    /// a packet without chunks.
    #[inline]
    pub fn has_only(&self, such: impl Fn(u8) -> bool) -> bool {
        let mut all = true;
        let others = self.walk(|kind, _| {
            all &= such(kind);
            !all
        });
        others == Walked::End && !self.body.is_empty()
    }

    /// Does `such` hold for type and flags of one of its chunks? Looks only at the frames.
    pub fn any(&self, such: impl FnMut(u8, u8) -> bool) -> bool {
        self.walk(such) == Walked::Found
    }

    /// Goes frame by frame until `such` holds for one, or one is broken.
    #[inline]
    fn walk(&self, mut such: impl FnMut(u8, u8) -> bool) -> Walked {
        let (mut rest, mut at, mut parts) = (self.body, COMMON_HEADER_LEN, self.parts);
        while let Some(&[kind, flags, l0, l1]) = rest.first_chunk::<4>() {
            let step = match parts.split_first() {
                Some((part, others)) if part.at == at + DATA_HEADER_LEN => {
                    parts = others;
                    DATA_HEADER_LEN + round4(part.payload.len()) - part.payload.len()
                }
                _ => {
                    let length = usize::from(u16::from_be_bytes([l0, l1]));
                    if length < 4 || length > rest.len() {
                        return Walked::Broken;
                    }
                    round4(length)
                }
            };
            if such(kind, flags) {
                return Walked::Found;
            }
            at += step;
            rest = rest.get(step..).unwrap_or_default();
        }
        if rest.is_empty() { Walked::End } else { Walked::Broken }
    }

    /// The value of the checksum field (0 from a sender that uses RFC 9653).
    pub fn checksum(&self) -> u32 {
        checksum::field(self.datagram).unwrap_or(0)
    }

    /// Length on the wire, bytes.
    #[allow(clippy::len_without_is_empty, reason = "none is without its header")]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// What came of going through the frames of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walked {
    Found,
    Broken,
    End,
}

/// The chunks of a packet, framed one by one. Ends after the first error.
///
/// Padding behind the last chunk may be there or not, counted in its length or not (RFC 9260 §3.2).
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    rest: &'a [u8],
    /// Where `rest` begins in the packet but for its parts.
    at: usize,
    parts: &'a [Part],
}

impl<'a> Chunks<'a> {
    /// The bytes not walked yet: the next chunk's first byte to the end of the packet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<RawChunk<'a>, WireError>;

    #[inline]
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
        if let Some((part, parts)) = self.parts.split_first()
            && let Some(header) = fixed_len(kind).filter(|header| part.at == self.at + header)
        {
            self.parts = parts;
            return self.next_part(all, header, part);
        }
        if length < 4 {
            return Some(Err(WireError::Length { item: Item::Chunk, kind: kind.into(), length }));
        }
        let Some(value) = all.get(4..usize::from(length)) else {
            return Some(Err(WireError::Overrun { item: Item::Chunk, kind: kind.into(), length, left: all.len() }));
        };
        let (whole, rest) = all.split_at_checked(round4(usize::from(length))).unwrap_or((all, &[]));
        self.rest = rest;
        self.at += whole.len();
        Some(Ok(RawChunk { kind, flags, value, whole, rest: all, payload: None }))
    }
}

impl<'a> Chunks<'a> {
    /// The chunk of whose value all but the fixed fields is `part`, as [`PacketSlices::push_data`] wrote it.
    fn next_part(&mut self, all: &'a [u8], header: usize, part: &'a Part) -> Option<Result<RawChunk<'a>, WireError>> {
        let (whole, rest) = all.split_at_checked(header)?;
        let padding = round4(part.payload.len()) - part.payload.len();
        self.rest = rest.get(padding..)?;
        self.at += header + padding;
        let (&[kind, flags, ..], value) = (whole, whole.get(4..)?) else { return None };
        Some(Ok(RawChunk { kind, flags, value, whole, rest: all, payload: Some(&part.payload) }))
    }
}

/// Bytes in front of the payload of a chunk that has one.
const fn fixed_len(chunk_kind: u8) -> Option<usize> {
    match chunk_kind {
        kind::DATA => Some(DATA_HEADER_LEN),
        kind::I_DATA => Some(I_DATA_HEADER_LEN),
        _ => None,
    }
}

impl core::iter::FusedIterator for Chunks<'_> {}
