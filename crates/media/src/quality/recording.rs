//! A recorded transport stream: its packets by what is in them, and its frames with time, class and references.

use super::clock::Reference;
use crate::picture::{Picture, Pictures};
use crate::ts::{NULL_PID, PACKET_LEN, PTS_CYCLE, Packet, PesHeader, Piece, Splitter, Tables, VideoCodec};
use anabranch_base::Duration;

/// Bytes of a frame that are looked into; more than any level of H.264 or H.265 allows for a picture of 8K.
const FRAME_MAX: usize = 64 << 20;

/// A step of time stamps beyond this is a jump of the clock and no gap: 10 s of 90 kHz.
const JUMP: i64 = 10 * 90_000;

/// Ticks of a frame where the stream does not show them: 25 frames a second.
const TICKS_DEFAULT: i64 = 3_600;

/// Marks a packet that belongs to no frame.
pub(super) const NO_FRAME: u32 = u32::MAX;

/// One frame: a PES packet of the video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Presentation time stamp as it is in the stream, 90 kHz.
    pub pts: Option<u64>,
    /// When it is to be shown, on a scale that neither wraps nor jumps: 90 kHz, from the first frame.
    pub time: i64,
    /// Class, layer and references, by the frames' numbers.
    pub picture: Picture,
    /// Packets of the video that it consists of: those with a payload, each once.
    pub packets: u32,
}

/// A packet by what is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Print {
    pub(super) hash: u64,
    pub(super) frame: u32,
}

/// Takes a stream in from the beginning to the end.
///
/// Memory grows with the stream: 16 bytes a packet, 24 where arrival times are kept, 16 for each clock reference, and about
/// 100 bytes a frame.
#[derive(Debug, Default)]
pub struct Recording {
    splitter: Splitter,
    tables: Tables,
    video: Option<Video>,
    prints: Vec<Print>,
    arrivals: Vec<Duration>,
    frames: Vec<Frame>,
    bytes: u64,
    other: u64,
    /// The first packet of each frame.
    first_packets: Vec<u32>,
    /// Clock references of the video's program.
    references: Vec<Reference>,
    scale: Scale,
}

#[derive(Debug)]
struct Video {
    pid: u16,
    codec: VideoCodec,
    pcr_pid: Option<u16>,
    pictures: Pictures,
    /// Units that `pictures` has seen are counted from this frame on.
    from: u64,
    unit: Vec<u8>,
    open: bool,
    /// Continuity counter and payload of the last packet.
    last: Option<(u8, u64)>,
}

/// Puts time stamps on one scale.
#[derive(Debug, Default)]
struct Scale {
    last: Option<(u64, i64)>,
    highest: i64,
    /// The clock has gone back: the next time stamp is none of its times before.
    back: bool,
}

impl Scale {
    fn of(&mut self, pts: Option<u64>) -> i64 {
        let time = match (pts, self.last) {
            (Some(_), None) => 0,
            (Some(pts), Some((last, time))) => {
                let ahead = (pts.wrapping_sub(last) % PTS_CYCLE) as i64;
                let step = if ahead > (PTS_CYCLE / 2) as i64 { ahead - PTS_CYCLE as i64 } else { ahead };
                if step.abs() > JUMP || self.back { self.highest + TICKS_DEFAULT } else { time + step }
            }
            (None, None) => return 0,
            (None, Some(_)) => self.highest + TICKS_DEFAULT,
        };
        self.highest = self.highest.max(time);
        if let Some(pts) = pts {
            self.last = Some((pts, time));
            self.back = false;
        }
        time
    }
}

impl Recording {
    /// Nothing taken in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes, with the time they came since any instant where it is known. Either all have a time or
    /// none.
    pub fn push(&mut self, at: Option<Duration>, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.splitter.push(bytes);
        while let Some(piece) = self.splitter.poll() {
            self.take(at, &piece);
        }
        // A datagram holds whole packets, and those behind it came later.
        if at.is_some() {
            while let Some(piece) = self.splitter.poll_now() {
                self.take(at, &piece);
            }
        }
    }

    /// The end of the stream.
    pub fn finish(&mut self) {
        let at = self.arrivals.last().copied();
        while let Some(piece) = self.splitter.finish() {
            self.take(at, &piece);
        }
        self.end_frame();
    }

    /// Frames in decoding order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Coding of the video, once the tables are known.
    pub fn codec(&self) -> Option<VideoCodec> {
        self.video.as_ref().map(|v| v.codec)
    }

    /// PID of the video, once the tables are known.
    pub fn video_pid(&self) -> Option<u16> {
        self.video.as_ref().map(|v| v.pid)
    }

    /// Packets but for null packets.
    pub fn packets(&self) -> u64 {
        self.prints.len() as u64
    }

    /// Bytes taken in, and how many of them are outside of packets.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes, self.other)
    }

    pub(super) fn prints(&self) -> &[Print] {
        &self.prints
    }

    pub(super) fn arrival(&self, packet: usize) -> Option<Duration> {
        self.arrivals.get(packet).copied()
    }

    pub(super) fn references(&self) -> &[Reference] {
        &self.references
    }

    pub(super) fn first_packets(&self) -> &[u32] {
        &self.first_packets
    }

    fn take(&mut self, at: Option<Duration>, piece: &Piece) {
        let Some(packet) = piece.packet() else {
            self.other += piece.bytes().len() as u64;
            return;
        };
        if packet.pid() == NULL_PID {
            return;
        }
        if self.tables.push(packet) {
            self.follow_tables();
        }
        let clocked = self.video.as_ref().is_some_and(|v| v.pcr_pid == Some(packet.pid()));
        if let Some(ticks) = packet.pcr().filter(|_| clocked) {
            let reference = Reference { packet: self.prints.len() as u32, jump: packet.discontinuity(), ticks };
            self.scale.back |= self.references.last().is_some_and(|before| reference.is_back_from(before));
            self.references.push(reference);
        }
        let frame = if self.look_at_video(packet) { self.frames.len() as u32 - 1 } else { NO_FRAME };
        self.prints.push(Print { hash: hash(packet.bytes()), frame });
        self.arrivals.extend(at);
    }

    fn follow_tables(&mut self) {
        let Some((pid, codec)) = self.tables.video() else { return };
        let pcr_pid =
            self.tables.programs().values().find(|p| p.streams.iter().any(|s| s.pid == pid)).map(|p| p.pcr_pid);
        if let Some(video) = &mut self.video
            && (video.pid, video.codec) == (pid, codec)
        {
            video.pcr_pid = pcr_pid;
            return;
        }
        self.end_frame();
        let (pictures, from) = (Pictures::new(codec), self.frames.len() as u64);
        self.video = Some(Video { pid, codec, pcr_pid, pictures, from, unit: Vec::new(), open: false, last: None });
    }

    /// Is the packet part of a frame? A new one may begin with it.
    fn look_at_video(&mut self, packet: Packet<'_>) -> bool {
        // A packet without a payload carries a clock reference or fills up: without it the picture is the same one.
        let payload = packet.payload();
        let Some(video) = self.video.as_mut().filter(|v| v.pid == packet.pid() && !payload.is_empty()) else {
            return false;
        };
        if packet.transport_error() {
            return false;
        }
        // A packet may be sent twice (ISO/IEC 13818-1 §2.4.3.3); one of both is enough.
        let content = Some((packet.continuity(), hash(payload)));
        if std::mem::replace(&mut video.last, content) == content {
            return false;
        }
        if packet.payload_unit_start() {
            self.end_frame();
            let pts = PesHeader::parse(packet.payload()).and_then(|h| h.pts).map(|s| s.ticks);
            let time = self.scale.of(pts);
            self.frames.push(Frame { pts, time, picture: Picture::default(), packets: 0 });
            self.first_packets.push(self.prints.len() as u32);
        }
        let (Some(video), Some(frame)) = (&mut self.video, self.frames.last_mut()) else { return false };
        video.open |= packet.payload_unit_start();
        if !video.open {
            return false;
        }
        frame.packets += 1;
        if !packet.scrambled() && video.unit.len() + PACKET_LEN <= FRAME_MAX {
            video.unit.extend_from_slice(packet.payload());
        }
        true
    }

    /// The frame is complete: what its pictures say is read.
    fn end_frame(&mut self) {
        let (Some(video), Some(frame)) = (&mut self.video, self.frames.last_mut()) else { return };
        if !std::mem::take(&mut video.open) {
            return;
        }
        let header = PesHeader::parse(&video.unit).map_or(video.unit.len(), |h| h.header_len);
        frame.picture = video.pictures.push(video.unit.get(header..).unwrap_or(&[]));
        for unit in &mut frame.picture.needs.units {
            *unit += video.from;
        }
        video.unit.clear();
    }
}

/// A number that tells packets apart. It need not withstand anyone: whoever forges packets forges the comparison.
fn hash(packet: &[u8]) -> u64 {
    let mut h = 0x9e37_79b9_7f4a_7c15u64;
    for word in packet.chunks(8) {
        let mut b = [0; 8];
        b.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
        h = (h ^ u64::from_le_bytes(b)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    }
    h ^ h >> 32
}
