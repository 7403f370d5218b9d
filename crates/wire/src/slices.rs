//! An outgoing packet as slices: headers in one buffer, payloads shared unless they are small.

use crate::bits::round4;
use crate::checksum;
use crate::chunk::{AuthOut, DataHeader, IDataHeader};
use crate::encode::Encode;
use crate::kind;
use crate::packet::{COMMON_HEADER_LEN, CommonHeader};
use bytes::Bytes;
use smallvec::SmallVec;

/// A packet under construction, and later on its way to the driver.
///
/// Everything but payload is in one buffer; a payload is a shared [`Bytes`] with the place where it belongs, or is in the
/// buffer too where it is small and the packet is [to be written](Self::to_be_written). The checksum is left to
/// [`write_to`](Self::write_to). One value serves for every packet: after the first few nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct PacketSlices {
    head: Vec<u8>,
    /// In place where there is one, as in most packets: on a simulated link hundreds are under way, and each buffer
    /// elsewhere is one more that has left the cache.
    parts: SmallVec<[Part; 1]>,
    /// Bytes of payload, and how many of them are in `parts`.
    payload_len: usize,
    apart: usize,
    /// Chunks with payload.
    with_payload: usize,
    kinds: SmallVec<[u8; 16]>,
    /// Small payloads go into `head`.
    copies_small: bool,
    /// The checksum field stays zero.
    unsummed: bool,
}

/// Payloads of at most so many bytes are small. To share one costs two atomic operations, a part in a list, and a piece
/// more to copy and to sum when the packet is written, which is more than to copy so few bytes once again.
const SMALL: usize = 256;

/// The payload of a DATA or I-DATA chunk that is not in the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Index in `head` that the payload stands before.
    pub at: usize,
    pub payload: Bytes,
}

impl PacketSlices {
    /// For packets that will be written and not handed over as slices: small payloads are copied into the head. Their
    /// owner is free of them sooner, but a receiver of the slices could not share them.
    pub fn to_be_written() -> PacketSlices {
        PacketSlices { copies_small: true, ..PacketSlices::default() }
    }

    /// Drops what is there and starts a packet with header `h`.
    #[inline]
    pub fn start(&mut self, h: CommonHeader) {
        // With an empty head there is nothing else to drop.
        if !self.head.is_empty() || self.unsummed {
            self.clear();
        }
        self.head.extend_from_slice(&h.to_bytes());
    }

    /// Appends a chunk.
    pub fn push(&mut self, c: &impl Encode) {
        let start = self.head.len();
        c.encode(&mut self.head);
        if let Some(&kind) = self.head.get(start) {
            self.kinds.push(kind);
        }
    }

    /// Appends a DATA chunk. Its payload is shared, see [`to_be_written`](Self::to_be_written), and is at most 65,519
    /// bytes (the rest would be cut off).
    #[inline]
    pub fn push_data(&mut self, h: &DataHeader, payload: &Bytes) {
        let len = payload.len().min(DataHeader::MAX_PAYLOAD);
        h.encode_for(len, &mut self.head);
        self.push_payload(kind::DATA, payload, len);
    }

    /// Appends an I-DATA chunk, as [`push_data`](Self::push_data) does. Its payload is at most 65,515 bytes.
    pub fn push_i_data(&mut self, h: &IDataHeader, payload: &Bytes) {
        let len = payload.len().min(IDataHeader::MAX_PAYLOAD);
        h.encode_for(len, &mut self.head);
        self.push_payload(kind::I_DATA, payload, len);
    }

    #[inline]
    fn push_payload(&mut self, kind: u8, payload: &Bytes, len: usize) {
        self.kinds.push(kind);
        self.with_payload += 1;
        self.payload_len += len;
        if self.copies_small && len <= SMALL {
            self.head.extend_from_slice(payload);
        } else {
            self.apart += len;
            let mut payload = payload.clone();
            payload.truncate(len);
            self.parts.push(Part { at: self.head.len(), payload });
        }
        let padding = padding(len);
        if padding > 0 {
            self.head.resize(self.head.len() + padding, 0);
        }
    }

    /// Appends an AUTH chunk with a MAC of zeros. Returns where the chunk starts in [`head_mut`](Self::head_mut):
    /// the MAC is computed over [`slices_from`](Self::slices_from) that place once the packet is complete, and
    /// written [`AuthOut::MAC_OFFSET`] bytes behind it (RFC 4895 §6.2).
    pub fn push_auth(&mut self, auth: &AuthOut) -> usize {
        let start = self.head.len();
        self.push(auth);
        start
    }

    /// Puts an AUTH chunk with a MAC of zeros in front of chunk number `index`; answers as
    /// [`push_auth`](Self::push_auth), or nothing when there is no such chunk.
    pub fn insert_auth(&mut self, index: usize, auth: &AuthOut) -> Option<usize> {
        let whole = crate::packet::Packet::of_slices(self).ok()?;
        let heads = whole.chunks().take(index).try_fold(0, |sum, c| c.ok().map(|c| sum + c.whole.len()));
        // Of a chunk whose payload is elsewhere `whole` is the header; its padding is in the head.
        let padding: usize =
            whole.chunks().take(index).flatten().filter_map(|c| c.payload).map(|p| padding(p.len())).sum();
        let start = COMMON_HEADER_LEN + heads? + padding;
        if index >= self.kinds.len() {
            return None;
        }
        let mut chunk = Vec::new();
        auth.encode(&mut chunk);
        self.kinds.insert(index, kind::AUTH);
        // A payload inserted exactly at `start` ends the chunk before.
        self.parts.iter_mut().filter(|p| p.at > start).for_each(|p| p.at += chunk.len());
        self.head.splice(start..start, chunk);
        Some(start)
    }

    /// Length on the wire in bytes, padding included.
    pub fn len(&self) -> usize {
        self.head.len() + self.apart
    }

    /// Has it no chunk yet?
    pub fn is_empty(&self) -> bool {
        self.head.len() <= COMMON_HEADER_LEN
    }

    /// Drops everything, payloads too, and keeps the buffers.
    #[inline]
    pub fn clear(&mut self) {
        self.head.clear();
        self.parts.clear();
        self.kinds.clear();
        (self.payload_len, self.apart, self.with_payload) = (0, 0, 0);
        self.unsummed = false;
    }

    /// The common header and all chunk bytes but shared payloads. For changes in place (a MAC); its length must stay.
    pub fn head_mut(&mut self) -> &mut Vec<u8> {
        &mut self.head
    }

    /// Ports and tag; all zero before [`start`](Self::start).
    pub fn header(&self) -> CommonHeader {
        match self.head.first_chunk::<COMMON_HEADER_LEN>() {
            Some(h) => CommonHeader::from_bytes(h),
            None => CommonHeader { src_port: 0, dst_port: 0, vtag: 0 },
        }
    }

    /// Types of the chunks in order.
    pub fn chunk_kinds(&self) -> &[u8] {
        &self.kinds
    }

    /// Payload bytes of all DATA and I-DATA chunks, without headers and padding.
    pub fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// How many chunks are neither DATA nor I-DATA.
    pub fn control_chunks(&self) -> usize {
        self.kinds.len() - self.with_payload
    }

    /// The payloads that are shared, in order.
    pub fn shared_payloads(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.parts.iter().map(|p| &p.payload)
    }

    /// The head, and what belongs between.
    pub(crate) fn pieces(&self) -> (&[u8], &[Part]) {
        (&self.head, &self.parts)
    }

    /// The packet in wire order, its checksum field as in the head (zero).
    pub fn slices(&self) -> Slices<'_> {
        Slices { head: &self.head, parts: &self.parts, at: 0, pending: None }
    }

    /// The packet from index `start` of the head on, which must be the first byte of a chunk.
    pub fn slices_from(&self, start: usize) -> Slices<'_> {
        // A payload inserted exactly at `start` ends the chunk before.
        let skip = self.parts.partition_point(|p| p.at <= start);
        Slices { head: &self.head, parts: self.parts.get(skip..).unwrap_or(&[]), at: start, pending: None }
    }

    /// The packet leaves with a checksum field of zero, whatever its checksum is: for a peer that agreed to it
    /// (RFC 9653 §5.2).
    pub fn leave_checksum_zero(&mut self) {
        self.unsummed = true;
    }

    /// Appends the packet with its checksum to `out`. Each payload is copied once.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.len());
        for s in self.slices() {
            out.extend_from_slice(s);
        }
        if let Some(packet) = out.get_mut(start..).filter(|_| !self.unsummed) {
            checksum::fill(packet);
        }
    }
}

fn padding(len: usize) -> usize {
    round4(len) - len
}

/// The pieces of a packet in wire order.
#[derive(Clone, Debug)]
pub struct Slices<'a> {
    head: &'a [u8],
    parts: &'a [Part],
    at: usize,
    pending: Option<&'a [u8]>,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(payload) = self.pending.take() {
                return Some(payload);
            }
            let end = match self.parts.split_first() {
                Some((part, rest)) => {
                    self.parts = rest;
                    self.pending = Some(&part.payload);
                    part.at
                }
                None if self.at < self.head.len() => self.head.len(),
                None => return None,
            };
            let piece = self.head.get(self.at..end).unwrap_or(&[]);
            self.at = end;
            if !piece.is_empty() {
                return Some(piece);
            }
        }
    }
}
