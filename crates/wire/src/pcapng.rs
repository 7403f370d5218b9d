//! Captures in the pcapng format (draft-ietf-opsawg-pcapng), little-endian, with times in nanoseconds.

use crate::bits::round4;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Option codes; their meaning depends on the block.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const IF_NAME: u16 = 2;
    pub(super) const PACKET_FLAGS: u16 = 2;
    pub(super) const APPLICATION: u16 = 4;
    pub(super) const IF_TIME_RESOLUTION: u16 = 9;
}

/// What a packet of an interface begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(
    /// The number in the registry of link types.
    pub u16,
);

impl LinkType {
    /// An IPv4 or IPv6 header.
    pub const RAW_IP: LinkType = LinkType(101);
    /// An SCTP common header.
    pub const SCTP: LinkType = LinkType(248);
}

/// Which way a captured packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by the capturing host.
    In,
    /// Sent by the capturing host.
    Out,
    /// Direction not known.
    Unknown,
}

/// An interface of a capture, as [`PcapngWriter::add_interface`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a capture: one section, interfaces added at any time, packets.
///
/// Every block goes out by a single `write_all`, so a file cut short ends with at most one broken block; a buffered
/// writer beneath is worth it. Blocks are built in one reused buffer.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture; `application` is noted as its writer.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut this = PcapngWriter { out, interfaces: 0, block: Vec::new() };
        this.write_block(SECTION_HEADER, |b| {
            put32(b, BYTE_ORDER_MAGIC);
            put16(b, 1); // major version
            put16(b, 0); // minor version
            b.extend_from_slice(&u64::MAX.to_le_bytes()); // section length not given
            put_option(b, option::APPLICATION, application.as_bytes());
            put_option(b, option::END, &[]);
        })?;
        Ok(this)
    }

    /// Adds an interface.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn add_interface(&mut self, name: &str, link: LinkType) -> io::Result<InterfaceId> {
        self.write_block(INTERFACE_DESCRIPTION, |b| {
            put16(b, link.0);
            put16(b, 0); // reserved
            put32(b, 0); // no snapshot limit
            put_option(b, option::IF_NAME, name.as_bytes());
            put_option(b, option::IF_TIME_RESOLUTION, &[9]);
            put_option(b, option::END, &[]);
        })?;
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        Ok(id)
    }

    /// Adds a packet that interface `on` carried `at_nanos` nanoseconds after the epoch.
    ///
    /// # Errors
    /// Those of the writer beneath, and `InvalidInput` for an interface of another capture or a packet of 4 GB.
    pub fn packet(&mut self, on: InterfaceId, at_nanos: u64, direction: Direction, packet: &[u8]) -> io::Result<()> {
        self.packet_with_comment(on, at_nanos, direction, packet, "")
    }

    /// As [`packet`](Self::packet), with a comment that a viewer shows beside it (none when empty).
    ///
    /// # Errors
    /// As [`packet`](Self::packet).
    pub fn packet_with_comment(
        &mut self,
        on: InterfaceId,
        at_nanos: u64,
        direction: Direction,
        packet: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        self.put(on, at_nanos, direction, packet, packet.len(), comment)
    }

    /// As [`packet`](Self::packet), of one that had `length` bytes on the wire and of which `packet` is the beginning.
    ///
    /// # Errors
    /// As [`packet`](Self::packet).
    pub fn packet_cut(
        &mut self,
        on: InterfaceId,
        at_nanos: u64,
        direction: Direction,
        packet: &[u8],
        length: u32,
    ) -> io::Result<()> {
        self.put(on, at_nanos, direction, packet, packet.len().max(length as usize), "")
    }

    fn put(
        &mut self,
        on: InterfaceId,
        at_nanos: u64,
        direction: Direction,
        packet: &[u8],
        length: usize,
        comment: &str,
    ) -> io::Result<()> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        if on.0 >= self.interfaces {
            return Err(invalid("interface of another capture"));
        }
        let length = u32::try_from(length).map_err(|_| invalid("packet too long"))?;
        self.write_block(ENHANCED_PACKET, |b| {
            put32(b, on.0);
            put32(b, (at_nanos >> 32) as u32);
            put32(b, at_nanos as u32);
            put32(b, packet.len() as u32); // captured
            put32(b, length); // on the wire
            put_padded(b, packet);
            let flags: u32 = match direction {
                Direction::In => 1,
                Direction::Out => 2,
                Direction::Unknown => 0,
            };
            if flags != 0 {
                put_option(b, option::PACKET_FLAGS, &flags.to_le_bytes());
            }
            if !comment.is_empty() {
                put_option(b, option::COMMENT, comment.as_bytes());
            }
            if flags != 0 || !comment.is_empty() {
                put_option(b, option::END, &[]);
            }
        })
    }

    /// Flushes the writer beneath.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Gives the writer back, flushed.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let b = &mut self.block;
        b.clear();
        put32(b, kind);
        put32(b, 0); // total length, known below
        body(b);
        let total = u32::try_from(b.len() + 4).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if let Some(field) = b.get_mut(4..8) {
            field.copy_from_slice(&total.to_le_bytes());
        }
        put32(b, total);
        self.out.write_all(b)
    }
}

fn put16(b: &mut Vec<u8>, v: u16) {
    b.extend_from_slice(&v.to_le_bytes());
}

fn put32(b: &mut Vec<u8>, v: u32) {
    b.extend_from_slice(&v.to_le_bytes());
}

fn put_padded(b: &mut Vec<u8>, bytes: &[u8]) {
    b.extend_from_slice(bytes);
    b.resize(b.len() + round4(bytes.len()) - bytes.len(), 0);
}

/// An option; a value that its length field cannot count is cut.
fn put_option(b: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    put16(b, code);
    put16(b, value.len() as u16);
    put_padded(b, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a capture as (type, body), checking both length fields.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let at = |b: &[u8], i: usize| u32::from_le_bytes(b[i..i + 4].try_into().unwrap());
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let len = at(bytes, 4) as usize;
            assert!(len >= 12 && len.is_multiple_of(4));
            assert_eq!(at(bytes, len - 4) as usize, len);
            out.push((at(bytes, 0), bytes[8..len - 4].to_vec()));
            bytes = &bytes[len..];
        }
        out
    }

    #[test]
    fn blocks_of_a_capture() {
        let mut w = PcapngWriter::new(Vec::new(), "abcde").unwrap();
        let wlan = w.add_interface("wlan0", LinkType::RAW_IP).unwrap();
        let at = 0x0000_0001_0000_0002;
        w.packet(wlan, at, Direction::Unknown, &[7; 5]).unwrap();
        w.packet_with_comment(wlan, at, Direction::Out, &[7; 4], "x").unwrap();
        w.packet_cut(wlan, at, Direction::Unknown, &[7; 4], 300).unwrap();
        let b = blocks(&w.into_inner().unwrap());
        assert_eq!(b.iter().map(|b| b.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 6, 6, 6]);
        assert_eq!(b[0].1[..8], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        assert_eq!(b[0].1[16..], [4, 0, 5, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(b[1].1[..8], [101, 0, 0, 0, 0, 0, 0, 0]);
        assert!(b[1].1.ends_with(&[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(b[2].1, [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 7, 7, 7, 7, 7, 0, 0, 0]);
        assert_eq!(b[4].1[12..], [4, 0, 0, 0, 44, 1, 0, 0, 7, 7, 7, 7]);
        assert_eq!(b[3].1[24..], [2, 0, 4, 0, 2, 0, 0, 0, 1, 0, 1, 0, b'x', 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn interface_of_another_capture_is_refused() {
        let mut other = PcapngWriter::new(Vec::new(), "").unwrap();
        let id = other.add_interface("a", LinkType::SCTP).unwrap();
        let mut w = PcapngWriter::new(Vec::new(), "").unwrap();
        assert_eq!(w.packet(id, 0, Direction::In, &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
