//! Video on private streams of which the tables do not say what they are: AV1 as ffmpeg writes it, stream type 0x06
//! without a registration.

use super::{Packet, PesHeader};
use crate::picture::{Begins, begins_av1};
use std::collections::BTreeMap;

/// Streams looked at; a bound against hostile tables.
const STREAMS_MAX: usize = 16;

/// Bytes of a PES packet that are looked at: its header, a sequence header, metadata, the beginning of a frame header.
const LOOK_MAX: usize = 2048;

/// Bytes within which the header of a PES packet ends.
const HEADER_MAX: usize = 9 + 255;

/// PES packets that are nothing of AV1 until the stream is taken for something else.
const STRIKES: u8 = 3;

/// One stream.
#[derive(Debug, Default)]
struct Unnamed {
    /// The beginning of the current PES packet.
    head: Vec<u8>,
    open: bool,
    strikes: u8,
    found: bool,
}

/// The streams of unknown content.
#[derive(Debug, Default)]
pub(super) struct UnnamedStreams {
    streams: BTreeMap<u16, Unnamed>,
}

impl UnnamedStreams {
    /// The tables name these; what is known of one that stays is kept.
    pub(super) fn set(&mut self, pids: impl Iterator<Item = u16> + Clone) {
        self.streams.retain(|pid, _| pids.clone().any(|p| p == *pid));
        for pid in pids {
            if self.streams.len() < STREAMS_MAX {
                self.streams.entry(pid).or_default();
            }
        }
    }

    /// Is it known to be AV1?
    pub(super) fn is_av1(&self, pid: u16) -> bool {
        self.streams.get(&pid).is_some_and(|s| s.found)
    }

    /// Looks at a packet that is not scrambled; `true` when its stream turns out to be AV1.
    pub(super) fn push(&mut self, packet: Packet<'_>) -> bool {
        let Some(stream) = self.streams.get_mut(&packet.pid()) else { return false };
        if stream.found || stream.strikes >= STRIKES {
            return false;
        }
        if packet.payload_unit_start() {
            // The last one ended before it showed anything.
            stream.look(true);
            stream.open = true;
        }
        if stream.open {
            let room = LOOK_MAX - stream.head.len();
            let payload = packet.payload();
            stream.head.extend_from_slice(payload.get(..room).unwrap_or(payload));
            stream.look(stream.head.len() == LOOK_MAX);
        }
        stream.found
    }
}

impl Unnamed {
    /// Judges what is here of a PES packet, of which no more comes if it is `whole`.
    fn look(&mut self, whole: bool) {
        if !self.open {
            return;
        }
        let begins = match PesHeader::parse(&self.head) {
            // Private data as the mapping has it, or video as ffmpeg writes it.
            Some(h) if matches!(h.stream_id, 0xbd | 0xe0..=0xef | 0xfd) => match self.head.get(h.header_len..) {
                Some(unit) => begins_av1(unit, whole),
                None if whole => Begins::Other,
                None => Begins::More,
            },
            None if !whole && self.head.len() < HEADER_MAX => Begins::More,
            _ => Begins::Other,
        };
        match begins {
            Begins::More => return,
            Begins::Av1 => self.found = true,
            Begins::Unit => {}
            Begins::Other => self.strikes += 1,
        }
        self.open = false;
        self.head.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::psi::tests::{packets, pat, section};
    use super::super::tests::TsBuilder;
    use super::super::{PACKET_LEN, Tables, VideoCodec};
    use super::*;
    use crate::picture::av1::tests::{delimiter, inter, key, sequence_header, with_start_codes};
    use proptest::prelude::*;

    const PID: u16 = 0x101;

    /// Tables of streams, each with its type, PID and descriptors.
    fn tables(streams: &[(u8, u16, &[u8])]) -> Tables {
        let mut body = vec![0xe1, 0, 0xf0, 0];
        for (kind, pid, descriptors) in streams {
            body.push(*kind);
            body.extend((pid | 0xe000).to_be_bytes());
            body.extend([0xf0, descriptors.len() as u8]);
            body.extend(*descriptors);
        }
        let mut t = Tables::new();
        for p in [packets(0, 0, &pat(0, &[(1, 0x20)])), packets(0x20, 0, &section(2, 1, 0, &body))].concat() {
            t.push(Packet::new(&p).unwrap());
        }
        t
    }

    fn pes(stream_id: u8, stuffing: usize, content: &[u8]) -> Vec<u8> {
        let mut b = vec![0, 0, 1, stream_id, 0, 0, 0x80, 0x80, 5 + stuffing as u8, 0x21, 0, 1, 0, 1];
        b.resize(b.len() + stuffing, 0xff);
        b.extend(content);
        b
    }

    /// Hands in PES packets in payloads of `step` bytes; gives the number of the one with which a video was found.
    fn found(t: &mut Tables, all: &[Vec<u8>], step: usize) -> Option<usize> {
        for (i, pes) in all.iter().enumerate() {
            for (n, payload) in pes.chunks(step).enumerate() {
                let mut b = TsBuilder::new();
                b.packet(PID, n as u8 & 15, n == 0, payload, None);
                if t.push(Packet::new(b.bytes()).unwrap()) {
                    assert_eq!(t.video(), Some((PID, VideoCodec::Av1)));
                    return Some(i);
                }
                assert_eq!(t.video(), None);
            }
        }
        None
    }

    #[test]
    fn av1_is_known_by_what_is_in_it() {
        let beginning = [sequence_header(), key(800)];
        let all = [vec![delimiter()], beginning.to_vec()].concat();
        let middle = [delimiter(), inter(true, 1, 0, 900)].concat();
        for stream_id in [0xbd, 0xe0, 0xef, 0xfd] {
            for (step, stuffing) in [(184, 0), (184, 200), (100, 3), (7, 0), (1, 0)] {
                for unit in [all.concat(), beginning.concat(), with_start_codes(&all)] {
                    let frames = [pes(stream_id, stuffing, &middle), pes(stream_id, stuffing, &unit)];
                    let mut t = tables(&[(0x0f, 0x100, &[]), (0x06, PID, &[0x0a, 4, b'e', b'n', b'g', 0])]);
                    assert_eq!(found(&mut t, &frames, step), Some(1), "{stream_id:x} {step} {stuffing}");
                }
            }
        }
        // Known by the tables, or beside a video that they name.
        let frames = [pes(0xbd, 0, &all.concat())];
        for streams in [
            &[(0x06, PID, &[0x59, 0][..])][..],
            &[(0x06, PID, &[5, 4, b'K', b'L', b'V', b'A'])],
            &[(0x05, PID, &[])],
            &[(0x15, PID, &[])],
        ] {
            assert_eq!(found(&mut tables(streams), &frames, 184), None, "{streams:?}");
        }
        let mut beside = tables(&[(0x06, PID, &[]), (0x1b, 0x100, &[])]);
        assert!(
            !beside.push(Packet::new(TsBuilder::new().packet(PID, 0, true, &frames[0][..184], None).bytes()).unwrap())
        );
        assert_eq!(beside.video(), Some((0x100, VideoCodec::H264)));
        // A new version of the tables that names it still.
        let mut t = tables(&[(0x06, PID, &[])]);
        assert_eq!(found(&mut t, &frames, 184), Some(0));
        let map = section(2, 1, 1, &[0xe1, 0, 0xf0, 0, 0x0f, 0xe1, 0, 0xf0, 0, 0x06, 0xe1, 1, 0xf0, 0]);
        packets(0x20, 1, &map).iter().for_each(|p| assert!(t.push(Packet::new(p).unwrap())));
        assert_eq!(t.video(), Some((PID, VideoCodec::Av1)));
    }

    #[test]
    fn other_private_data_are_no_video() {
        let with = |head: &[u8], fill: u8| {
            let mut b = head.to_vec();
            b.resize(400, fill);
            b
        };
        let klv = [6, 0x0e, 0x2b, 0x34, 2, 0x0b, 1, 1, 0x0e, 1, 3, 1, 1, 0, 0, 0, 0x81, 0x80];
        for (what, content) in [
            ("teletext", with(&[0x10, 2, 0x2c, 0xf4, 0x27, 0xe4], 0x15)),
            ("DVB subtitles", with(&[0x20, 0, 0x0f, 0x10, 0, 1, 0, 2], 0xff)),
            ("AC-3", with(&[0x0b, 0x77, 0x5c, 0x2a, 0x1c, 0x40], 0xa5)),
            ("E-AC-3", with(&[0x0b, 0x77, 1, 0x3f, 0x3f, 0x85], 0x41)),
            ("DTS", with(&[0x7f, 0xfe, 0x80, 1, 0xfc, 0x3c], 0x11)),
            ("AAC", with(&[0xff, 0xf1, 0x50, 0x80, 0x0d, 0x7f, 0xfc], 0x21)),
            ("Opus", with(&[0x7f, 0xe0, 0xa0, 0xfc], 0x51)),
            ("metadata", with(&klv, 7)),
            ("ID3", with(b"ID3\x04\0\0\0\0\x0c\x07TXXX", 0)),
            ("H.264", with(&[0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 0x64, 0, 0x1f], 0x42)),
            ("H.265", with(&[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 0, 1, 0x40, 1], 0x42)),
            ("MPEG-2", with(&[0, 0, 1, 0xb3, 0x14, 0, 0xf0, 0x23], 0x42)),
            ("zeros", with(&[], 0)),
            ("ones", with(&[], 0xff)),
            ("a unit of AV1 without a sequence", [delimiter(), inter(true, 1, 0, 900)].concat()),
            ("a sequence header alone", with(&sequence_header(), 0)),
        ] {
            for stream_id in [0xbd, 0xe0, 0xfd, 0xbf, 0xc0] {
                let frames = vec![pes(stream_id, 0, &content); 5];
                assert_eq!(found(&mut tables(&[(0x06, PID, &[])]), &frames, 184), None, "{what}, {stream_id:x}");
            }
        }
        // What has been something else three times is not looked at any more.
        let other = pes(0xbd, 0, &with(&[0x20, 0, 0x0f], 0xff));
        let video = pes(0xbd, 0, &[sequence_header(), key(50)].concat());
        for (others, expected) in [(0, Some(0)), (2, Some(2)), (3, None), (9, None)] {
            let frames = [vec![other.clone(); others], vec![video.clone()]].concat();
            assert_eq!(found(&mut tables(&[(0x06, PID, &[])]), &frames, 184), expected, "{others}");
        }
    }

    proptest! {
        #[test]
        fn any_private_data_are_survived(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..20),
            begins in any::<bool>(),
            step in 1usize..184,
        ) {
            let frames: Vec<Vec<u8>> = contents
                .iter()
                .map(|c| pes(0xbd, 0, &if begins { [&[0x12, 0, 0x0a][..], c].concat() } else { c.clone() }))
                .collect();
            let mut t = tables(&[(0x06, PID, &[])]);
            found(&mut t, &frames, step);
            let mut streams = UnnamedStreams::default();
            streams.set(0..5_000);
            prop_assert_eq!(streams.streams.len(), STREAMS_MAX);
            let packets = TsBuilder::new().packet(3, 0, true, &[0; 184], None).bytes().to_vec();
            (0..100).for_each(|_| {
                streams.push(Packet::new(&packets).unwrap());
            });
            prop_assert!(streams.streams.values().all(|s| s.head.len() <= LOOK_MAX));
            prop_assert_eq!(packets.len(), PACKET_LEN);
        }
    }
}
