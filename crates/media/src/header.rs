//! The header in front of every media message.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +---------------+-----+-+---+---+-------------------------------+
//! | magic+version | 0   |L|K|FC |MC |            part             |
//! +---------------+-----+-+---+---+-------------------------------+
//! |             parts             |       source sequence         |
//! +-------------------------------+-------------------------------+
//! |   source sequence (low half)  |           frame               |
//! +-------------------------------+-------------------------------+
//! |       frame (low half)        |          time stamp           |
//! +-------------------------------+-------------------------------+
//! |    time stamp (low half)      |  payload ...
//! +-------------------------------+
//! ```
//!
//! MC is the class of this message, FC the class of its frame, K says that FC was read from the pictures,
//! L marks the last part of the frame. `parts` is 0 until the last part, which alone carries the count: a live
//! frame's length is not known when its first part leaves. Because frames tile the source sequence without
//! gaps, the receiver also learns a frame's end from any part of the next frame (`sequence - part` is where a
//! frame begins).
//!
//! The time stamp counts microseconds of the sender's clock when the first byte of the message came in. It
//! wraps after 71 minutes; the receiver compares it as a serial number.

use crate::Class;
use anabranch_base::Instant;
use thiserror::Error;

/// Bytes of the header.
pub const HEADER_LEN: usize = 18;

/// Most parts that a frame may have: 4096 x 1128 bytes are more than 4 MB.
pub const PARTS_MAX: u16 = 4096;

const MAGIC: u8 = 0xa1;
const FLAG_KNOWN: u8 = 0x10;
const FLAG_LAST: u8 = 0x20;
const FLAGS_RESERVED: u8 = 0xc0;

/// What is said about a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaHeader {
    /// Number of the message in the stream, from 0 in the order of the source; wraps.
    pub sequence: u32,
    /// Number of the frame, from 0; wraps.
    pub frame: u32,
    /// Number of this part in its frame, from 0.
    pub part: u16,
    /// How many parts the frame has; 0 when this is not the last part.
    pub parts: u16,
    /// Class of this message: that of its frame, or I when audio or tables ride along.
    pub class: Class,
    /// Class of the frame, as far as known when the message was made; I while it is unknown.
    pub frame_class: Class,
    /// `frame_class` was read from the frame's pictures.
    pub class_known: bool,
    /// Sender's clock in microseconds, modulo 2^32, when the first byte of the message came in.
    pub timestamp: u32,
}

/// Why bytes are not a media message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HeaderError {
    /// Fewer bytes than a header and one byte of payload.
    #[error("media message of {0} bytes is too short")]
    Short(usize),
    /// The first byte is not the magic of this version.
    #[error("media message begins with {0:#04x}: another protocol or version")]
    Magic(u8),
    /// Reserved bits are set, or a class has no meaning.
    #[error("media message has flags {0:#04x} without meaning")]
    Flags(u8),
    /// The part number, the count and the mark of the last part contradict each other.
    #[error("media message is part {part} of {parts}")]
    Parts {
        /// Part number in the header.
        part: u16,
        /// Count of parts in the header.
        parts: u16,
    },
}

impl MediaHeader {
    /// This is the last part of its frame.
    pub fn is_last(&self) -> bool {
        self.parts != 0
    }

    /// Writes the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut b = [0; HEADER_LEN];
        b[0] = MAGIC;
        b[1] = self.class as u8 | (self.frame_class as u8) << 2;
        if self.class_known {
            b[1] |= FLAG_KNOWN;
        }
        if self.is_last() {
            b[1] |= FLAG_LAST;
        }
        b[2..4].copy_from_slice(&self.part.to_be_bytes());
        b[4..6].copy_from_slice(&self.parts.to_be_bytes());
        b[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        b[10..14].copy_from_slice(&self.frame.to_be_bytes());
        b[14..18].copy_from_slice(&self.timestamp.to_be_bytes());
        b
    }

    /// Reads and checks the header of a message; the payload begins at [`HEADER_LEN`] and is not empty.
    pub fn decode(message: &[u8]) -> Result<Self, HeaderError> {
        let b = message.first_chunk::<HEADER_LEN>().ok_or(HeaderError::Short(message.len()))?;
        if b[0] != MAGIC {
            return Err(HeaderError::Magic(b[0]));
        }
        if message.len() == HEADER_LEN {
            return Err(HeaderError::Short(message.len()));
        }
        let flags = b[1];
        let class = |bits: u8| Class::from_index(usize::from(bits & 3)).ok_or(HeaderError::Flags(flags));
        if flags & FLAGS_RESERVED != 0 {
            return Err(HeaderError::Flags(flags));
        }
        let part = u16::from_be_bytes([b[2], b[3]]);
        let parts = u16::from_be_bytes([b[4], b[5]]);
        let last = flags & FLAG_LAST != 0;
        if part >= PARTS_MAX || parts != if last { part + 1 } else { 0 } {
            return Err(HeaderError::Parts { part, parts });
        }
        Ok(MediaHeader {
            class: class(flags)?,
            frame_class: class(flags >> 2)?,
            class_known: flags & FLAG_KNOWN != 0,
            part,
            parts,
            sequence: u32::from_be_bytes([b[6], b[7], b[8], b[9]]),
            frame: u32::from_be_bytes([b[10], b[11], b[12], b[13]]),
            timestamp: u32::from_be_bytes([b[14], b[15], b[16], b[17]]),
        })
    }

    /// The time stamp of an instant of the sender's clock.
    pub fn stamp(at: Instant) -> u32 {
        (at.as_nanos() / 1_000) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_header() -> impl Strategy<Value = MediaHeader> {
        (any::<u32>(), any::<u32>(), 0..PARTS_MAX, any::<bool>(), 0usize..9, any::<bool>(), any::<u32>()).prop_map(
            |(sequence, frame, part, last, classes, class_known, timestamp)| MediaHeader {
                sequence,
                frame,
                part,
                parts: if last { part + 1 } else { 0 },
                class: Class::ALL[classes % 3],
                frame_class: Class::ALL[classes / 3],
                class_known,
                timestamp,
            },
        )
    }

    #[test]
    fn layout_is_fixed() {
        let h = MediaHeader {
            sequence: 0x0102_0304,
            frame: 0x1112_1314,
            part: 6,
            parts: 7,
            class: Class::I,
            frame_class: Class::B,
            class_known: true,
            timestamp: 0x2122_2324,
        };
        let b = h.encode();
        assert_eq!(b, [0xa1, 0x38, 0, 6, 0, 7, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24]);
    }

    #[test]
    fn nonsense_is_refused() {
        let good = MediaHeader {
            sequence: 1,
            frame: 1,
            part: 2,
            parts: 0,
            class: Class::P,
            frame_class: Class::P,
            class_known: true,
            timestamp: 9,
        };
        let message = |f: &dyn Fn(&mut Vec<u8>)| {
            let mut m = good.encode().to_vec();
            m.push(0x47);
            f(&mut m);
            MediaHeader::decode(&m)
        };
        assert_eq!(message(&|_| ()), Ok(good));
        assert_eq!(message(&|m| m.truncate(HEADER_LEN)), Err(HeaderError::Short(HEADER_LEN)));
        assert_eq!(message(&|m| m.truncate(3)), Err(HeaderError::Short(3)));
        assert_eq!(message(&|m| m[0] = 0xa2), Err(HeaderError::Magic(0xa2)));
        assert_eq!(message(&|m| m[1] |= 3), Err(HeaderError::Flags(0x17)));
        assert_eq!(message(&|m| m[1] |= 0x80), Err(HeaderError::Flags(0x95)));
        assert_eq!(message(&|m| m[5] = 3), Err(HeaderError::Parts { part: 2, parts: 3 }), "count without mark");
        assert_eq!(message(&|m| m[1] |= FLAG_LAST), Err(HeaderError::Parts { part: 2, parts: 0 }));
        assert_eq!(message(&|m| m[2] = 0xff), Err(HeaderError::Parts { part: 0xff02, parts: 0 }));
    }

    proptest! {
        #[test]
        fn headers_survive(h in any_header()) {
            let mut m = h.encode().to_vec();
            m.push(0);
            prop_assert_eq!(MediaHeader::decode(&m), Ok(h));
        }

        #[test]
        fn what_is_accepted_is_written_the_same(mut m in proptest::collection::vec(any::<u8>(), 0..40), fix: bool) {
            if fix && m.len() > 5 {
                m[0] = MAGIC;
                m[1] &= 0x3a;
                m[4..6].fill(0);
            }
            if let Ok(h) = MediaHeader::decode(&m) {
                prop_assert_eq!(&h.encode()[..], &m[..HEADER_LEN]);
            }
        }
    }
}
