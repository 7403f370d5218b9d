//! Program association and program map tables (ISO/IEC 13818-1 §2.4.4): which PID carries the video.

use super::unnamed::UnnamedStreams;
use super::{PAT_PID, Packet};
use std::collections::BTreeMap;

/// Largest section of these tables, header included (§2.4.4.3, §2.4.4.8: section_length at most 1021).
const SECTION_MAX: usize = 1024;

/// Programs followed at once. A multiplex of a broadcaster has a dozen; the bound is against hostile input.
const PROGRAMS_MAX: usize = 64;

/// How the video of a program is coded, as far as it matters for classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VideoCodec {
    /// MPEG-1 or MPEG-2 video (stream types 0x01, 0x02).
    Mpeg2,
    /// H.264 (stream type 0x1b).
    H264,
    /// H.265 (stream type 0x24).
    H265,
    /// AV1 (private data, stream type 0x06, registered as `AV01`, or `AV1 ` in early drafts of the mapping; or not
    /// registered, and known by what is in it, see [`Tables::video`]).
    Av1,
    /// Video whose pictures are not looked into: MPEG-4 part 2, H.266, AVS, VC-1 and Dirac.
    Other,
}

/// One elementary stream of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamInfo {
    /// Stream type (table 2-34).
    pub stream_type: u8,
    /// PID that carries it.
    pub pid: u16,
    /// Format identifier of its registration descriptor (ISO/IEC 13818-1 §2.6.8).
    pub registered: Option<[u8; 4]>,
    /// Some descriptor says what it is: a registration, or one of sound, subtitles, teletext, metadata and the like.
    pub described: bool,
}

impl StreamInfo {
    /// The coding, when the stream is video.
    pub fn video(&self) -> Option<VideoCodec> {
        match self.stream_type {
            0x01 | 0x02 => Some(VideoCodec::Mpeg2),
            0x1b => Some(VideoCodec::H264),
            0x24 => Some(VideoCodec::H265),
            0x06 => match self.registered.as_ref() {
                Some(b"AV01" | b"AV1 ") => Some(VideoCodec::Av1),
                Some(b"HEVC") => Some(VideoCodec::H265),
                _ => None,
            },
            0x10 | 0x33 | 0x42 | 0xd1 | 0xea => Some(VideoCodec::Other),
            _ => None,
        }
    }

    /// Private data of which the tables do not say what they are.
    fn is_unnamed(&self) -> bool {
        self.stream_type == 0x06 && !self.described
    }
}

/// What a program map table says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// PID whose adaptation fields carry the program's clock.
    pub pcr_pid: u16,
    /// Elementary streams in the table's order.
    pub streams: Vec<StreamInfo>,
}

/// The tables as known so far.
#[derive(Default, Debug)]
pub struct Tables {
    pat: Assembler,
    pat_version: Option<u8>,
    /// Program number to PID of its map table.
    map_pids: BTreeMap<u16, u16>,
    maps: BTreeMap<u16, Assembler>,
    programs: BTreeMap<u16, Program>,
    unnamed: UnnamedStreams,
}

impl Tables {
    /// No table seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at a packet; `true` when a table changed, or a stream that no table names turned out to be video.
    pub fn push(&mut self, packet: Packet<'_>) -> bool {
        if packet.transport_error() || packet.scrambled() || !packet.has_payload() {
            return false;
        }
        let pid = packet.pid();
        let mut changed = false;
        if pid == PAT_PID {
            let mut sections = Vec::new();
            self.pat.feed(packet, &mut sections);
            for s in &sections {
                changed |= self.take_pat(s);
            }
        } else if let Some(assembler) = self.maps.get_mut(&pid) {
            let mut sections = Vec::new();
            assembler.feed(packet, &mut sections);
            for s in &sections {
                changed |= self.take_pmt(s);
            }
        } else {
            return self.unnamed.push(packet);
        }
        if changed {
            self.follow_unnamed();
        }
        changed
    }

    /// Where the tables name no video, streams of unknown content may be some.
    fn follow_unnamed(&mut self) {
        let streams = self.programs.values().flat_map(|p| &p.streams);
        let named = streams.clone().any(|s| s.video().is_some());
        self.unnamed.set(streams.filter(|s| !named && s.is_unnamed()).map(|s| s.pid));
    }

    /// Programs by number.
    pub fn programs(&self) -> &BTreeMap<u16, Program> {
        &self.programs
    }

    /// The video to cut frames from: the first video stream of the program with the lowest number. Where the tables name no
    /// video at all, it is the first stream of private data without a description that turned out to be AV1: one of its
    /// PES packets began with a whole sequence header and a key frame.
    pub fn video(&self) -> Option<(u16, VideoCodec)> {
        let mut streams = self.programs.values().flat_map(|p| &p.streams);
        let named = streams.clone().find_map(|s| s.video().map(|c| (s.pid, c)));
        named.or_else(|| streams.find(|s| self.unnamed.is_av1(s.pid)).map(|s| (s.pid, VideoCodec::Av1)))
    }

    /// Does this PID carry the association table or a map table?
    pub fn is_table_pid(&self, pid: u16) -> bool {
        pid == PAT_PID || self.maps.contains_key(&pid)
    }

    fn take_pat(&mut self, section: &[u8]) -> bool {
        let Some((head, body)) = long_section(section, 0) else { return false };
        let version = head.version;
        let mut changed = false;
        if self.pat_version != Some(version) {
            self.pat_version = Some(version);
            self.map_pids.clear();
            changed = true;
        }
        for entry in body.chunks_exact(4) {
            let number = u16::from_be_bytes([entry[0], entry[1]]);
            let pid = u16::from_be_bytes([entry[2] & 0x1f, entry[3]]);
            // Program 0 names the network information table.
            if number != 0 && (self.map_pids.len() < PROGRAMS_MAX || self.map_pids.contains_key(&number)) {
                changed |= self.map_pids.insert(number, pid) != Some(pid);
            }
        }
        if changed {
            let pids = &self.map_pids;
            self.programs.retain(|number, _| pids.contains_key(number));
            self.maps.retain(|pid, _| pids.values().any(|p| p == pid));
            for pid in pids.values() {
                self.maps.entry(*pid).or_default();
            }
        }
        changed
    }

    fn take_pmt(&mut self, section: &[u8]) -> bool {
        let Some((head, body)) = long_section(section, 2) else { return false };
        if !self.map_pids.contains_key(&head.id) {
            return false;
        }
        let Some(program) = parse_map(body) else { return false };
        if self.programs.get(&head.id) == Some(&program) {
            return false;
        }
        self.programs.insert(head.id, program);
        true
    }
}

fn parse_map(body: &[u8]) -> Option<Program> {
    let fixed = body.get(..4)?;
    let pcr_pid = u16::from_be_bytes([fixed[0] & 0x1f, fixed[1]]);
    let info_len = usize::from(u16::from_be_bytes([fixed[2] & 0x0f, fixed[3]]));
    let mut rest = body.get(4 + info_len..)?;
    let mut streams = Vec::new();
    while let Some(s) = rest.get(..5) {
        let pid = u16::from_be_bytes([s[1] & 0x1f, s[2]]);
        let info_len = usize::from(u16::from_be_bytes([s[3] & 0x0f, s[4]]));
        let info = rest.get(5..5 + info_len)?;
        let described = descriptors(info).any(|(tag, _)| DESCRIBES.contains(&tag));
        let registered = descriptors(info).find(|(tag, _)| *tag == REGISTRATION);
        let registered = registered.and_then(|(_, body)| body.first_chunk().copied());
        streams.push(StreamInfo { stream_type: s[0], pid, registered, described });
        rest = rest.get(5 + info_len..)?;
    }
    Some(Program { pcr_pid, streams })
}

/// Tag of the registration descriptor (ISO/IEC 13818-1 §2.6.8).
const REGISTRATION: u8 = 5;

/// Tags of descriptors that say what private data are: a registration and metadata (ISO/IEC 13818-1), lines of the blanking
/// interval, teletext, subtitles, data broadcasts, applications and sound of several kinds (EN 300 468), AC-3 (ATSC A/53).
const DESCRIBES: [u8; 14] =
    [REGISTRATION, 0x26, 0x45, 0x46, 0x56, 0x59, 0x66, 0x6a, 0x6f, 0x7a, 0x7b, 0x7c, 0x7f, 0x81];

/// The descriptors of a stream, tag and body, as far as they are whole.
fn descriptors(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, len, behind @ ..] = rest else { return None };
        let (body, behind) = behind.split_at_checked(usize::from(*len))?;
        rest = behind;
        Some((*tag, body))
    })
}

struct SectionHead {
    id: u16,
    version: u8,
}

/// Checks a section of the long form: table id, in force now, CRC. Returns what lies between header and CRC.
fn long_section(s: &[u8], table_id: u8) -> Option<(SectionHead, &[u8])> {
    let head = s.get(..8)?;
    if head[0] != table_id || head[1] & 0x80 == 0 || head[5] & 1 == 0 || crc32(s) != 0 {
        return None;
    }
    let body = s.get(8..s.len().checked_sub(4)?)?;
    Some((SectionHead { id: u16::from_be_bytes([head[3], head[4]]), version: head[5] >> 1 & 0x1f }, body))
}

/// CRC-32/MPEG-2 (annex A); zero over a section with its own CRC at the end.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |mut crc, b| {
        crc ^= u32::from(*b) << 24;
        for _ in 0..8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
        }
        crc
    })
}

/// Puts sections together from the payloads of one PID.
#[derive(Default, Debug)]
struct Assembler {
    buf: Vec<u8>,
    active: bool,
    continuity: Option<u8>,
}

impl Assembler {
    fn feed(&mut self, packet: Packet<'_>, out: &mut Vec<Vec<u8>>) {
        let cc = packet.continuity();
        if self.continuity == Some(cc) {
            return; // a packet sent twice (§2.4.3.3)
        }
        if self.continuity.is_some_and(|last| cc != (last + 1) & 15) {
            self.drop_partial();
        }
        self.continuity = Some(cc);
        let payload = packet.payload();
        if !packet.payload_unit_start() {
            self.extend(payload, out);
            return;
        }
        let Some((&pointer, rest)) = payload.split_first() else { return };
        let Some((tail, start)) = rest.split_at_checked(usize::from(pointer)) else {
            self.drop_partial();
            return;
        };
        self.extend(tail, out);
        self.buf.clear();
        self.active = true;
        self.extend(start, out);
    }

    fn extend(&mut self, bytes: &[u8], out: &mut Vec<Vec<u8>>) {
        if !self.active {
            return;
        }
        self.buf.extend_from_slice(bytes);
        loop {
            match self.buf.get(..3) {
                // 0xff fills the packet after the last section.
                Some([0xff, ..]) => return self.drop_partial(),
                Some(head) => {
                    let len = 3 + usize::from(u16::from_be_bytes([head[1] & 0x0f, head[2]]));
                    if len > SECTION_MAX {
                        return self.drop_partial();
                    }
                    if self.buf.len() < len {
                        return;
                    }
                    out.push(self.buf.drain(..len).collect());
                }
                None => {
                    if self.buf.first() == Some(&0xff) {
                        self.drop_partial();
                    }
                    return;
                }
            }
        }
    }

    fn drop_partial(&mut self) {
        self.buf.clear();
        self.active = false;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ts::PACKET_LEN;
    use proptest::prelude::*;

    /// A section with header and CRC around `body`.
    pub(crate) fn section(table_id: u8, id: u16, version: u8, body: &[u8]) -> Vec<u8> {
        let len = 5 + body.len() + 4;
        let mut s = vec![table_id, 0xb0 | (len >> 8) as u8, len as u8];
        s.extend(id.to_be_bytes());
        s.extend([0xc1 | version << 1, 0, 0]);
        s.extend(body);
        let crc = crc32(&s);
        s.extend(crc.to_be_bytes());
        s
    }

    /// A section cut into packets of `pid`, counting continuity from `cc`.
    pub(crate) fn packets(pid: u16, cc: u8, section: &[u8]) -> Vec<[u8; PACKET_LEN]> {
        let mut payload = vec![0];
        payload.extend(section);
        let chunks = payload.chunks(184);
        chunks
            .enumerate()
            .map(|(i, c)| {
                let mut p = [0xff; PACKET_LEN];
                let start = if i == 0 { 0x40 } else { 0 };
                p[..4].copy_from_slice(&[0x47, start | (pid >> 8) as u8, pid as u8, 0x10 | (cc + i as u8) & 15]);
                p[4..4 + c.len()].copy_from_slice(c);
                p
            })
            .collect()
    }

    pub(crate) fn pat(version: u8, programs: &[(u16, u16)]) -> Vec<u8> {
        let body: Vec<u8> =
            programs.iter().flat_map(|(n, p)| [n.to_be_bytes(), (p | 0xe000).to_be_bytes()].concat()).collect();
        section(0, 1, version, &body)
    }

    pub(crate) fn pmt(program: u16, version: u8, pcr_pid: u16, streams: &[(u8, u16)]) -> Vec<u8> {
        let mut body = (pcr_pid | 0xe000).to_be_bytes().to_vec();
        body.extend([0xf0, 0]);
        for (kind, pid) in streams {
            body.push(*kind);
            body.extend((pid | 0xe000).to_be_bytes());
            body.extend([0xf0, 2, 0x0a, 0]);
        }
        section(2, program, version, &body)
    }

    fn feed(t: &mut Tables, packets: &[[u8; PACKET_LEN]]) -> bool {
        packets.iter().fold(false, |c, p| t.push(Packet::new(p).unwrap()) | c)
    }

    #[test]
    fn video_is_found_and_follows_a_new_version() {
        let mut t = Tables::new();
        assert!(feed(&mut t, &packets(0, 0, &pat(0, &[(0, 16), (5, 0x1000)]))));
        assert_eq!(t.video(), None);
        assert!(feed(&mut t, &packets(0x1000, 0, &pmt(5, 0, 256, &[(0x0f, 257), (0x1b, 256)]))));
        assert_eq!(t.video(), Some((256, VideoCodec::H264)));
        assert!(!feed(&mut t, &packets(0x1000, 1, &pmt(5, 0, 256, &[(0x0f, 257), (0x1b, 256)]))));
        assert!(feed(&mut t, &packets(0x1000, 2, &pmt(5, 1, 300, &[(0x24, 300)]))));
        assert_eq!(t.video(), Some((300, VideoCodec::H265)));
        assert!(feed(&mut t, &packets(0, 1, &pat(1, &[(6, 0x1001)]))));
        assert_eq!(t.video(), None);
    }

    #[test]
    fn sections_across_packets_and_damaged_ones() {
        let many: Vec<(u8, u16)> = (0..60).map(|i| (0x0f, 400 + i)).chain([(0x1b, 300)]).collect();
        let long = pmt(1, 0, 300, &many);
        let cut = packets(0x20, 3, &long);
        assert_eq!(cut.len(), 3);
        let start = || {
            let mut t = Tables::new();
            feed(&mut t, &packets(0, 0, &pat(0, &[(1, 0x20)])));
            t
        };
        let mut t = start();
        assert!(feed(&mut t, &cut));
        assert_eq!(t.video(), Some((300, VideoCodec::H264)));
        let mut t = start();
        assert!(!feed(&mut t, &[cut[0], cut[2]]), "a packet is missing");
        let mut damaged = long.clone();
        damaged[40] ^= 1;
        let mut t = start();
        assert!(!feed(&mut t, &packets(0x20, 0, &damaged)), "the CRC is wrong");
    }

    proptest! {
        #[test]
        fn hostile_tables_are_survived(bodies in proptest::collection::vec(
            (0u8..4, proptest::collection::vec(any::<u8>(), 0..200)), 1..40)
        ) {
            let mut t = Tables::new();
            feed(&mut t, &packets(0, 0, &pat(0, &[(1, 0x20)])));
            for (i, (kind, body)) in bodies.iter().enumerate() {
                let s = if *kind == 3 { body.clone() } else { section(*kind, 1, i as u8 & 31, body) };
                let pid = if *kind == 0 { 0 } else { 0x20 };
                feed(&mut t, &packets(pid, i as u8, &s));
            }
            prop_assert!(t.map_pids.len() <= PROGRAMS_MAX);
        }
    }
}
