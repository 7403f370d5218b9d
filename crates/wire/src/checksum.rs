//! CRC32c over a packet (RFC 9260 §6.8, appendix A).

use crate::packet::COMMON_HEADER_LEN;
use crc_fast::{CrcAlgorithm, Digest};
use smallvec::SmallVec;

/// Where the checksum field starts in the common header.
pub(crate) const FIELD: usize = 8;

/// Packets of at most so many bytes are summed in a copy whose field is zero: it takes longer to begin a sum of parts.
const SMALL: usize = 256;

/// CRC32c, which SCTP shares with iSCSI.
fn crc32c(bytes: &[u8]) -> u32 {
    // The library answers 64 bits for every width.
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The checksum of a packet, computed as if its checksum field held zero; the field itself is little-endian.
/// What is shorter than a common header is summed as it is.
pub fn packet_checksum(packet: &[u8]) -> u32 {
    let Some((header, chunks)) = packet.split_first_chunk::<COMMON_HEADER_LEN>() else { return crc32c(packet) };
    if packet.len() <= SMALL {
        let mut copy: SmallVec<[u8; SMALL]> = SmallVec::from_slice(packet);
        copy[FIELD..COMMON_HEADER_LEN].fill(0);
        return crc32c(&copy);
    }
    let mut header = *header;
    header[FIELD..].fill(0);
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&header);
    digest.update(chunks);
    digest.finalize() as u32
}

/// The value of a packet's checksum field.
pub(crate) fn field(packet: &[u8]) -> Option<u32> {
    packet.get(FIELD..)?.first_chunk::<4>().map(|b| u32::from_le_bytes(*b))
}

/// Computes and stores the checksum of `packet`, whose field holds zero.
pub(crate) fn fill(packet: &mut [u8]) {
    let crc = crc32c(packet);
    if let Some(slot) = packet.get_mut(FIELD..FIELD + 4) {
        slot.copy_from_slice(&crc.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test data of RFC 3720 appendix B.4 (the CRC that SCTP shares with iSCSI).
    #[test]
    fn known_answers() {
        assert_eq!(crc32c(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn the_field_counts_as_zero() {
        for len in [40, 255, 256, 257, 1_500] {
            let mut p = vec![0x55; len];
            p[8..12].fill(0);
            let plain = crc32c(&p);
            fill(&mut p);
            assert_eq!(field(&p), Some(plain));
            assert_eq!(packet_checksum(&p), plain);
            p[20] ^= 1;
            assert_ne!(packet_checksum(&p), plain);
        }
        assert_eq!(packet_checksum(&[1, 2]), crc32c(&[1, 2]));
    }
}
