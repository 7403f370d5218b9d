//! The start of a PES packet and its time stamps (ISO/IEC 13818-1 §2.4.3.6).

/// Time stamps count 90 kHz ticks modulo this.
pub const PTS_CYCLE: u64 = 1 << 33;

/// Bytes from the start of a PES packet to the end of its fixed header.
pub const PES_START_LEN: usize = 9;

/// One time stamp: its value (90 kHz ticks) and the offset of its five bytes in the PES packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampField {
    /// Offset of the five bytes from the start of the PES packet.
    pub offset: usize,
    /// Ticks of 90 kHz, below [`PTS_CYCLE`].
    pub ticks: u64,
}

/// What the first bytes of a PES packet say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PesHeader {
    /// Stream id: 0xe0..=0xef is video, 0xc0..=0xdf audio.
    pub stream_id: u8,
    /// Bytes in front of the elementary stream; 6 for stream ids without the optional header.
    pub header_len: usize,
    /// Presentation time stamp.
    pub pts: Option<StampField>,
    /// Decoding time stamp, when it differs from the presentation time stamp.
    pub dts: Option<StampField>,
}

impl PesHeader {
    /// Parses the start of a PES packet. `None` when it is none, or is cut before its time stamps end.
    pub fn parse(b: &[u8]) -> Option<Self> {
        let fixed = b.get(..6)?;
        if fixed[..3] != [0, 0, 1] {
            return None;
        }
        let stream_id = fixed[3];
        if !has_optional_header(stream_id) {
            return Some(PesHeader { stream_id, header_len: 6, pts: None, dts: None });
        }
        let flags = b.get(6..PES_START_LEN)?;
        if flags[0] & 0xc0 != 0x80 {
            return None;
        }
        let header_len = PES_START_LEN + usize::from(flags[2]);
        let stamp = |offset: usize| {
            let ticks = read_stamp(b.get(offset..)?)?;
            (offset + 5 <= header_len).then_some(StampField { offset, ticks })
        };
        let (pts, dts) = match flags[1] >> 6 {
            0b10 => (Some(stamp(9)?), None),
            0b11 => (Some(stamp(9)?), Some(stamp(14)?)),
            _ => (None, None),
        };
        Some(PesHeader { stream_id, header_len, pts, dts })
    }

    /// The time a decoder needs the unit: the decoding time stamp, else the presentation time stamp.
    pub fn decode_ticks(&self) -> Option<u64> {
        self.dts.or(self.pts).map(|s| s.ticks)
    }
}

/// Program stream maps, padding, private stream 2 and the like have only six header bytes (table 2-21).
fn has_optional_header(stream_id: u8) -> bool {
    !matches!(stream_id, 0xbc | 0xbe | 0xbf | 0xf0 | 0xf1 | 0xf2 | 0xf8 | 0xff)
}

/// Reads 33 bits of time stamp from five bytes; `None` when cut or a marker bit is missing.
pub fn read_stamp(b: &[u8]) -> Option<u64> {
    let b = b.get(..5)?;
    if b[0] & 1 == 0 || b[2] & 1 == 0 || b[4] & 1 == 0 {
        return None;
    }
    let high = u64::from(b[0] >> 1 & 7);
    let mid = u64::from(u16::from_be_bytes([b[1], b[2]]) >> 1);
    let low = u64::from(u16::from_be_bytes([b[3], b[4]]) >> 1);
    Some(high << 30 | mid << 15 | low)
}

/// Writes 33 bits of time stamp into five bytes; the prefix bits of the first byte are kept.
pub fn write_stamp(b: &mut [u8], ticks: u64) {
    let Some(b) = b.get_mut(..5) else { return };
    let ticks = ticks % PTS_CYCLE;
    b[0] = b[0] & 0xf0 | ((ticks >> 30) as u8 & 7) << 1 | 1;
    b[1..3].copy_from_slice(&(((ticks >> 15) as u16 & 0x7fff) << 1 | 1).to_be_bytes());
    b[3..5].copy_from_slice(&((ticks as u16 & 0x7fff) << 1 | 1).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn video_header_with_both_stamps() {
        let mut b = vec![0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10];
        b.extend([0x30; 5]);
        b.extend([0x10; 5]);
        write_stamp(&mut b[9..], 93_600);
        write_stamp(&mut b[14..], 90_000);
        let h = PesHeader::parse(&b).unwrap();
        assert_eq!((h.stream_id, h.header_len), (0xe0, 19));
        assert_eq!(h.pts, Some(StampField { offset: 9, ticks: 93_600 }));
        assert_eq!(h.decode_ticks(), Some(90_000));
        assert_eq!(b[9] >> 4, 3);
        assert_eq!(PesHeader::parse(&b[..16]), None, "cut inside a stamp");
    }

    #[test]
    fn not_a_pes_packet() {
        assert_eq!(PesHeader::parse(&[0, 0, 2, 0xe0, 0, 0, 0x80, 0, 0]), None);
        assert_eq!(PesHeader::parse(&[0, 0, 1]), None);
        // Flags announce a stamp that the header length leaves no room for.
        assert_eq!(PesHeader::parse(&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 0, 0x21, 0, 1, 0, 1]), None);
        // A stamp without its marker bits.
        assert_eq!(PesHeader::parse(&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x20, 0, 0, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn stamps_survive(ticks in 0..PTS_CYCLE, prefix in 0u8..16) {
            let mut b = [prefix << 4, 0, 0, 0, 0];
            write_stamp(&mut b, ticks);
            prop_assert_eq!(read_stamp(&b), Some(ticks));
            prop_assert_eq!(b[0] >> 4, prefix);
        }
    }
}
