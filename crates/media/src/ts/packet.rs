//! One 188-byte packet and the fields of its header (ISO/IEC 13818-1 §2.4.3).

/// Bytes of one transport stream packet.
pub const PACKET_LEN: usize = 188;

/// First byte of every packet.
pub const SYNC_BYTE: u8 = 0x47;

/// The program clock reference counts 27 MHz ticks modulo this (33 bits of 90 kHz, times 300).
pub const PCR_CYCLE: u64 = (1 << 33) * 300;

/// A view of one packet. Every field is read on demand; nothing is assumed to be valid but the length.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a>(&'a [u8; PACKET_LEN]);

impl<'a> Packet<'a> {
    /// The view, when `bytes` is 188 long and begins with the sync byte.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let bytes: &[u8; PACKET_LEN] = bytes.try_into().ok()?;
        (bytes[0] == SYNC_BYTE).then_some(Packet(bytes))
    }

    /// The bytes themselves.
    pub fn bytes(self) -> &'a [u8; PACKET_LEN] {
        self.0
    }

    /// Packet identifier, 13 bits.
    pub fn pid(self) -> u16 {
        u16::from_be_bytes([self.0[1] & 0x1f, self.0[2]])
    }

    /// A demodulator before us marked the packet as damaged.
    pub fn transport_error(self) -> bool {
        self.0[1] & 0x80 != 0
    }

    /// A PES packet or a section starts in this packet's payload.
    pub fn payload_unit_start(self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// The payload is scrambled: headers of the transport layer stay readable, nothing behind them is.
    pub fn scrambled(self) -> bool {
        self.0[3] & 0xc0 != 0
    }

    /// Continuity counter, 4 bits; it rises with every packet of the PID that carries payload.
    pub fn continuity(self) -> u8 {
        self.0[3] & 0x0f
    }

    /// The packet carries payload.
    pub fn has_payload(self) -> bool {
        self.0[3] & 0x10 != 0
    }

    /// Offset of the payload; `None` without payload or with an adaptation field that overruns the packet.
    pub fn payload_offset(self) -> Option<usize> {
        if !self.has_payload() {
            return None;
        }
        let at = if self.0[3] & 0x20 != 0 { 5 + usize::from(self.0[4]) } else { 4 };
        (at < PACKET_LEN).then_some(at)
    }

    /// The payload; empty when there is none.
    pub fn payload(self) -> &'a [u8] {
        self.payload_offset().and_then(|at| self.0.get(at..)).unwrap_or(&[])
    }

    /// Flags byte of a non-empty adaptation field, and the bytes behind it inside the field.
    fn adaptation(self) -> Option<(u8, &'a [u8])> {
        if self.0[3] & 0x20 == 0 {
            return None;
        }
        let field = self.0.get(5..5 + usize::from(self.0[4]))?;
        field.split_first().map(|(f, rest)| (*f, rest))
    }

    /// The sender announces that clock or continuity jump here.
    pub fn discontinuity(self) -> bool {
        self.adaptation().is_some_and(|(flags, _)| flags & 0x80 != 0)
    }

    /// Program clock reference in 27 MHz ticks, below [`PCR_CYCLE`].
    pub fn pcr(self) -> Option<u64> {
        self.pcr_offset().and_then(|at| read_pcr(self.0.get(at..)?))
    }

    /// Offset of the six bytes of the program clock reference.
    pub fn pcr_offset(self) -> Option<usize> {
        let (flags, rest) = self.adaptation()?;
        (flags & 0x10 != 0 && rest.len() >= 6).then_some(6)
    }

    /// Offset of the six bytes of the original program clock reference.
    pub fn opcr_offset(self) -> Option<usize> {
        let (flags, rest) = self.adaptation()?;
        let at = if flags & 0x10 != 0 { 6 } else { 0 };
        (flags & 0x08 != 0 && rest.len() >= at + 6).then_some(6 + at)
    }
}

/// Reads a clock reference (33 bits base, 6 reserved, 9 extension) from the first six bytes.
pub(crate) fn read_pcr(b: &[u8]) -> Option<u64> {
    let b = b.get(..6)?;
    let base = u64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])) << 1 | u64::from(b[4] >> 7);
    let extension = u64::from(u16::from_be_bytes([b[4] & 1, b[5]]));
    Some((base * 300 + extension) % PCR_CYCLE)
}

/// Writes a clock reference of `ticks` (27 MHz); reserved bits are kept.
pub(crate) fn write_pcr(b: &mut [u8], ticks: u64) {
    let Some(b) = b.get_mut(..6) else { return };
    let ticks = ticks % PCR_CYCLE;
    let (base, extension) = (ticks / 300, ticks % 300);
    b[..4].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
    b[4] = (base as u8 & 1) << 7 | b[4] & 0x7e | (extension >> 8) as u8;
    b[5] = extension as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(head: &[u8]) -> [u8; PACKET_LEN] {
        let mut p = [0xff; PACKET_LEN];
        p[..head.len()].copy_from_slice(head);
        p
    }

    #[test]
    fn header_fields() {
        let p = packet(&[0x47, 0x41, 0x23, 0x17, 1, 2, 3]);
        let v = Packet::new(&p).unwrap();
        assert_eq!((v.pid(), v.payload_unit_start(), v.continuity(), v.scrambled()), (0x123, true, 7, false));
        assert_eq!(v.payload().len(), 184);
        assert_eq!((v.pcr(), v.discontinuity()), (None, false));
    }

    #[test]
    fn adaptation_field_with_clock() {
        let mut p = packet(&[0x47, 0x01, 0x00, 0x30, 7, 0x90]);
        write_pcr(&mut p[6..], 27_000_123);
        let v = Packet::new(&p).unwrap();
        assert_eq!((v.pcr(), v.pcr_offset()), (Some(27_000_123), Some(6)));
        assert_eq!((v.payload_offset(), v.discontinuity()), (Some(12), true));
    }

    #[test]
    fn overrunning_adaptation_field_has_no_payload_and_no_clock() {
        for length in [184, 200, 255] {
            let p = packet(&[0x47, 0x01, 0x00, 0x30, length, 0x10]);
            let v = Packet::new(&p).unwrap();
            assert!(v.payload().is_empty());
            assert_eq!(v.pcr().is_some(), length <= 183);
        }
        let p = packet(&[0x47, 0x01, 0x00, 0x30, 3, 0x10]);
        assert_eq!(Packet::new(&p).unwrap().pcr(), None);
    }

    proptest! {
        #[test]
        fn clock_survives_writing_and_reading(ticks in 0..PCR_CYCLE) {
            let mut b = [0x7e; 6];
            write_pcr(&mut b, ticks);
            prop_assert_eq!(read_pcr(&b), Some(ticks));
            prop_assert_eq!(b[4] & 0x7e, 0x7e);
        }

        #[test]
        fn any_bytes_can_be_looked_at(mut bytes in proptest::collection::vec(any::<u8>(), PACKET_LEN)) {
            bytes[0] = SYNC_BYTE;
            let v = Packet::new(&bytes).unwrap();
            let _ = (v.payload(), v.pcr(), v.opcr_offset(), v.discontinuity());
        }
    }
}
