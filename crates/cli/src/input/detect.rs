//! Recognises a transport stream from the first bytes, and films that are none.

use anabranch_media::rtp::wider_packets;

/// Bytes that settle the question.
pub const HEAD: usize = 4_096;

const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// Sync bytes in a row that make a transport stream.
const ENOUGH: usize = 5;

/// Looks for sync bytes 188 apart: five in a row anywhere in the head; in a shorter head, all of it from the
/// first byte on.
pub fn is_transport_stream(head: &[u8]) -> bool {
    let run = |from: usize| head.get(from..).unwrap_or(&[]).iter().step_by(PACKET).take_while(|b| **b == SYNC).count();
    let whole = !head.is_empty() && head.len() < ENOUGH * PACKET && head.len().is_multiple_of(PACKET);
    if whole && run(0) == head.len() / PACKET {
        return true;
    }
    (0..head.len().saturating_sub((ENOUGH - 1) * PACKET)).any(|from| run(from) >= ENOUGH)
}

/// What a transport stream's packets have besides 188 bytes.
pub fn more_than_188(size: usize) -> &'static str {
    if size == 192 { "M2TS: a time in front of each" } else { "parity behind each" }
}

/// What begins a film in a container, and where.
const FILMS: [(usize, &[u8], &str); 7] = [
    (4, b"ftyp", "an MP4 film"),
    (4, b"styp", "an MP4 film"),
    (4, b"moov", "an MP4 film"),
    (4, b"moof", "an MP4 film"),
    (0, &[0x1a, 0x45, 0xdf, 0xa3], "a Matroska or WebM film"),
    (0, b"FLV\x01", "an FLV film"),
    (8, b"AVI LIST", "an AVI film"),
];

/// The name of a container of films that cannot be streamed as it is: one byte lost breaks what follows, or packets are
/// not those of a stream.
pub fn film(head: &[u8]) -> Option<&'static str> {
    let begins = |(at, what, _): &&(usize, &[u8], &str)| head.get(*at..).is_some_and(|h| h.starts_with(what));
    FILMS.iter().find(begins).map(|f| f.2).or_else(|| match wider_packets(head)? {
        192 => Some("a transport stream with packets of 192 bytes (M2TS: a time in front of each)"),
        _ => Some("a transport stream with packets of 204 bytes (parity behind each)"),
    })
}

/// Does the head of a film say that its video is AV1? MP4 may say so at its end only.
pub fn is_av1(head: &[u8]) -> bool {
    head.windows(5).any(|w| w.starts_with(b"av01") || w == b"V_AV1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(n: usize) -> Vec<u8> {
        let mut b = vec![0u8; n * PACKET];
        b.iter_mut().step_by(PACKET).for_each(|s| *s = SYNC);
        b
    }

    #[test]
    fn transport_streams() {
        for n in [1, 2, 4, 5, 7, 20] {
            assert!(is_transport_stream(&packets(n)), "{n}");
        }
        let mut late = vec![0xff; 777];
        late.extend(packets(8));
        assert!(is_transport_stream(&late));
    }

    #[test]
    fn films() {
        assert_eq!(film(b"\0\0\0\x20ftypisom\0\0\x02\0"), Some("an MP4 film"));
        assert_eq!(film(b"\0\0\0\x18styp"), Some("an MP4 film"));
        assert_eq!(film(&[0x1a, 0x45, 0xdf, 0xa3, 0x01]), Some("a Matroska or WebM film"));
        assert_eq!(film(b"FLV\x01\x05"), Some("an FLV film"));
        assert_eq!(film(b"RIFF\x10\0\0\0AVI LIST"), Some("an AVI film"));
        for other in [&b""[..], b"ftyp", b"RIFF\x10\0\0\0WAVEfmt ", b"FLVx", &packets(5)] {
            assert_eq!(film(other), None);
        }
    }

    /// Wherever the file begins, and with a packet or two damaged.
    #[test]
    fn transport_streams_with_wider_packets() {
        for (size, before, name) in [(192, 4, "192 bytes (M2TS"), (204, 0, "204 bytes (parity")] {
            for (n, from, damaged) in [(5, 0, 0), (21, 0, 0), (21, 1, 0), (21, 100, 0), (21, 191, 0), (21, 0, 2)] {
                let mut wide = Vec::new();
                for i in 0..n {
                    let mut packet = vec![(i * 37 % 251) as u8 | 0x80; size];
                    packet[before..before + 4].copy_from_slice(&[if i < damaged { 0 } else { SYNC }, 0x41, 0, 0x10]);
                    wide.extend(packet);
                }
                let head = &wide[from..];
                assert!(!is_transport_stream(head));
                assert!(film(head).is_some_and(|f| f.contains(name)), "{size} {n} {from} {damaged}: {:?}", film(head));
            }
        }
        for other in [vec![SYNC; HEAD], packets(21), vec![0; HEAD]] {
            assert_eq!(film(&other), None);
        }
    }

    #[test]
    fn av1_in_films() {
        assert!(is_av1(b"\0\0\0\x20ftypisom\0\0\x02\0isomav01iso2mp41"));
        assert!(is_av1(b"\x1a\x45\xdf\xa3\x86\x85V_AV1"));
        for other in [&b""[..], b"av0", b"ftypavc1mp41", b"V_MPEG4/ISO/AVC"] {
            assert!(!is_av1(other));
        }
    }

    #[test]
    fn other_things() {
        assert!(!is_transport_stream(b""));
        assert!(!is_transport_stream(b"G"));
        assert!(!is_transport_stream(&[SYNC; 100]));
        assert!(!is_transport_stream(&vec![0; HEAD]));
        let mut broken = packets(4);
        broken[PACKET] = 0;
        assert!(!is_transport_stream(&broken));
        assert!(!is_transport_stream(&(0..HEAD).map(|i| (i * 31 % 251) as u8).collect::<Vec<_>>()));
    }
}
