//! Packet drop report (draft-stewart-tsvwg-sctpktdrprep, as usrsctp has it): a packet that arrived damaged, or that a
//! queue dropped, is shown to who sent it.

use super::RawChunk;
use crate::bits::{be16, be32};
use crate::encode::{Encode, put_chunk, put32};
use crate::error::WireError;
use crate::kind;

/// It was damaged: its checksum was wrong.
const DAMAGED: u8 = 2;
/// Not all of it is shown.
const CUT: u8 = 4;
const FIXED: usize = 12;

/// A packet drop report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDrop<'a> {
    /// 1 from a middle box, 2 damaged, 4 not the whole packet.
    pub flags: u8,
    /// Of the bottleneck, bytes per second; 0 where it is not known.
    pub bandwidth: u32,
    /// Bytes in its queue now.
    pub queue: u32,
    /// Length of the packet before it was cut to be shown, bytes.
    pub whole_len: u16,
    /// The packet, from its common header on.
    pub packet: &'a [u8],
}

impl<'a> PacketDrop<'a> {
    /// Bytes in front of the packet that is shown, chunk header included.
    pub const HEADER_LEN: usize = 4 + FIXED;

    /// The report of an endpoint: a packet of `whole_len` bytes that begins with `packet` arrived damaged.
    pub const fn of_damaged(packet: &'a [u8], whole_len: u16) -> Self {
        let cut = if packet.len() < whole_len as usize { CUT } else { 0 };
        PacketDrop { flags: DAMAGED | cut, bandwidth: 0, queue: 0, whole_len, packet }
    }

    /// Was it damage and not congestion?
    pub const fn is_damage(&self) -> bool {
        self.flags & DAMAGED != 0
    }

    pub(super) fn decode(raw: &RawChunk<'a>) -> Result<Self, WireError> {
        let read = || {
            Some(PacketDrop {
                flags: raw.flags,
                bandwidth: be32(raw.value, 0)?,
                queue: be32(raw.value, 4)?,
                whole_len: be16(raw.value, 8)?,
                packet: raw.value.get(FIXED..)?,
            })
        };
        read().ok_or(raw.misshapen())
    }
}

impl Encode for PacketDrop<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_chunk(out, kind::PACKET_DROP, self.flags, |o| {
            put32(o, self.bandwidth);
            put32(o, self.queue);
            put32(o, u32::from(self.whole_len) << 16);
            o.extend_from_slice(self.packet);
        });
    }
}
