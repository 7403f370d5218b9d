//! From a byte stream to messages: as many whole packets as fit, cut at frames, with class and time.
//!
//! Rules:
//! - A message is a run of consecutive source bytes. Payloads in the order of `sequence` are the input, byte
//!   for byte, whatever the input is (less null packets, when they are stripped).
//! - A frame begins with the packet in which a PES packet of the video PID starts, and with it a new message.
//!   It lasts until the next one. Audio, tables and other PIDs in between ride along as parts of it; a message
//!   that carries such packets has class I, because audio and tables count as I, while its frame keeps its
//!   own class. Null packets neither raise a class nor end a frame.
//! - Without a video frame open (no video, tables not yet seen, bytes that are no transport stream, or one
//!   second without a start), every message is a frame of its own, class I, class not known.
//! - Scrambled video is still cut into frames, all of class I.
//! - A full message leaves when the next packet shows whether the frame goes on, or when it has waited for
//!   `hold`; so the last part is marked except where the input paused right behind it. In that case the
//!   beginning of the next frame tells the end.
//! - Parts that leave before the first slice was seen have class I; a full message is never held back for it.

use crate::classify::Classifier;
use crate::ts::{NULL_PID, PACKET_LEN, Packet, Piece, Splitter, Tables};
use crate::{Class, HEADER_LEN, MediaHeader, PARTS_MAX};
use anabranch_base::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// A frame that saw no successor for so long is closed, so that sound alone does not become one endless frame.
const FRAME_TIME_MAX: Duration = Duration::from_secs(1);

/// Settings of a [`Packetiser`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketiserConfig {
    /// Most bytes of one message, header included. Default 1172: what a DATA chunk carries in an SCTP packet
    /// of 1200 bytes (RFC 9260 §3: 12 bytes of common header, 16 of chunk header). At least one packet is put
    /// into a message whatever is set here.
    pub max_message: usize,
    /// Longest time that input waits for company or for its frame's end. Default 10 ms.
    pub hold: Duration,
    /// Drop null packets (PID 0x1fff).
    pub strip_null: bool,
}

impl Default for PacketiserConfig {
    fn default() -> Self {
        PacketiserConfig { max_message: 1200 - 12 - 16, hold: Duration::from_millis(10), strip_null: false }
    }
}

impl PacketiserConfig {
    /// Most source bytes in a message.
    fn payload_max(&self) -> usize {
        self.max_message.saturating_sub(HEADER_LEN).max(PACKET_LEN)
    }

    /// Source bytes in a full message of a clean transport stream: whole packets.
    pub fn full_payload(&self) -> usize {
        self.payload_max() / PACKET_LEN * PACKET_LEN
    }

    /// Bytes of the message, header included, that carries `source` bytes of a frame, of which [`full_payload`] is the
    /// most: a frame's last packet is filled up.
    ///
    /// [`full_payload`]: PacketiserConfig::full_payload
    pub fn message_len(source: usize) -> usize {
        HEADER_LEN + source.next_multiple_of(PACKET_LEN)
    }
}

/// One message to send.
#[derive(Clone, Debug)]
pub struct OutMessage {
    /// What the first bytes of `message` say.
    pub header: MediaHeader,
    /// Header and payload.
    pub message: Bytes,
    /// When its first packet had come in; the message is of no use later than this plus the latency.
    pub ingest: Instant,
}

impl OutMessage {
    /// The source bytes.
    pub fn payload(&self) -> Bytes {
        self.message.slice(HEADER_LEN..)
    }
}

/// How much a finished stream held: sequence numbers and frame numbers run from 0 up to these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamEnd {
    /// Messages sent.
    pub messages: u64,
    /// Frames begun.
    pub frames: u64,
}

/// Counters of a [`Packetiser`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketiserStats {
    /// Bytes taken in.
    pub bytes_in: u64,
    /// Transport stream packets recognised.
    pub packets: u64,
    /// Bytes outside of recognised packets.
    pub raw_bytes: u64,
    /// Null packets dropped.
    pub nulls_stripped: u64,
    /// Messages made, by class.
    pub messages: [u64; 3],
    /// Video frames begun.
    pub video_frames: u64,
    /// Frames whose last part left unmarked, because the input paused behind it.
    pub unmarked_ends: u64,
}

struct Video {
    pid: u16,
    classifier: Classifier,
}

/// The video frame being cut.
struct Frame {
    number: u64,
    parts: u16,
    class: Option<Class>,
    began: Instant,
}

/// The message being filled; `buf` begins with room for the header.
struct Group {
    buf: BytesMut,
    since: Instant,
    /// Something in it counts as class I whatever the frame is.
    raised: bool,
}

/// Turns pieces of input into messages. Feed it with [`push`](Packetiser::push), call
/// [`on_timeout`](Packetiser::on_timeout) at [`deadline`](Packetiser::deadline), and after each of both take
/// messages until there is none.
pub struct Packetiser {
    config: PacketiserConfig,
    payload_max: usize,
    splitter: Splitter,
    /// When the oldest bytes that the splitter holds came in.
    split_since: Instant,
    tables: Tables,
    video: Option<Video>,
    frame: Option<Frame>,
    group: Group,
    next: StreamEnd,
    out: VecDeque<OutMessage>,
    stats: PacketiserStats,
}

impl Packetiser {
    /// A packetiser at the start of a stream.
    pub fn new(config: PacketiserConfig) -> Self {
        let payload_max = config.payload_max();
        Packetiser {
            config,
            payload_max,
            splitter: Splitter::new(),
            split_since: Instant::ZERO,
            tables: Tables::new(),
            video: None,
            frame: None,
            group: Group { buf: BytesMut::new(), since: Instant::ZERO, raised: false },
            next: StreamEnd::default(),
            out: VecDeque::new(),
            stats: PacketiserStats::default(),
        }
    }

    /// Takes in bytes that arrived (or are due) at `now`.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        self.stats.bytes_in += bytes.len() as u64;
        self.splitter.push(bytes);
        self.split_since = if self.splitter.pending() == bytes.len() { now } else { self.split_since };
        let before = self.splitter.pending();
        while let Some(piece) = self.splitter.poll() {
            self.take(now, &piece);
        }
        if self.splitter.pending() != before {
            self.split_since = now;
        }
    }

    /// Messages that begin from now on are at most so long, header included.
    pub fn set_max_message(&mut self, bytes: usize) {
        self.config.max_message = bytes;
    }

    /// The next message to send, in source order.
    pub fn poll_message(&mut self) -> Option<OutMessage> {
        self.out.pop_front()
    }

    /// When [`on_timeout`](Packetiser::on_timeout) is due, if anything waits.
    pub fn deadline(&self) -> Option<Instant> {
        let group = (!self.group.buf.is_empty()).then_some(self.group.since);
        let split = self.splitter.has_waiting().then_some(self.split_since);
        let since = group.into_iter().chain(split).min()?;
        Some(since + self.config.hold)
    }

    /// Sends what has waited for `hold`. Calling it early does nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        let hold = self.config.hold;
        let split_due = self.splitter.has_waiting() && now >= self.split_since + hold;
        if split_due {
            while let Some(piece) = self.splitter.poll_now() {
                self.take(now, &piece);
            }
            self.split_since = now;
        }
        if !self.group.buf.is_empty() && (split_due || now >= self.group.since + hold) {
            self.emit(now, false);
        }
    }

    /// The input has ended: sends all that is left and marks the last part.
    pub fn finish(&mut self, now: Instant) -> StreamEnd {
        while let Some(piece) = self.splitter.finish() {
            self.take(now, &piece);
        }
        self.end_frame(now);
        self.next
    }

    /// How much was sent so far.
    pub fn end(&self) -> StreamEnd {
        self.next
    }

    /// Current counters.
    pub fn stats(&self) -> PacketiserStats {
        self.stats
    }

    /// The tables seen in the input.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    fn take(&mut self, now: Instant, piece: &Piece) {
        let Some(packet) = piece.packet() else {
            self.stats.raw_bytes += piece.bytes().len() as u64;
            let mut rest = piece.bytes();
            while !rest.is_empty() {
                if self.group.buf.len() == HEADER_LEN + self.payload_max {
                    self.emit(now, false);
                }
                if self.group.buf.is_empty() {
                    self.payload_max = self.config.payload_max();
                }
                let used = self.group.buf.len().saturating_sub(HEADER_LEN);
                let (head, tail) = rest.split_at(rest.len().min(self.payload_max - used));
                self.append(now, head, true);
                rest = tail;
            }
            return;
        };
        self.stats.packets += 1;
        let pid = packet.pid();
        if pid == NULL_PID && self.config.strip_null {
            self.stats.nulls_stripped += 1;
            return;
        }
        if self.tables.push(packet) {
            self.follow_tables(now);
        }
        let is_video = self.video.as_ref().is_some_and(|v| v.pid == pid);
        if is_video {
            self.look_at_video(now, packet);
        }
        if self.group.buf.len() + PACKET_LEN > HEADER_LEN + self.payload_max {
            self.emit(now, false);
        }
        self.append(now, packet.bytes(), !is_video && pid != NULL_PID);
    }

    fn append(&mut self, now: Instant, bytes: &[u8], raise: bool) {
        let group = &mut self.group;
        if group.buf.is_empty() {
            self.payload_max = self.config.payload_max();
            group.buf.reserve(HEADER_LEN + self.payload_max);
            group.buf.extend_from_slice(&[0; HEADER_LEN]);
            group.since = now;
            group.raised = false;
        }
        group.buf.extend_from_slice(bytes);
        group.raised |= raise;
    }

    fn follow_tables(&mut self, now: Instant) {
        let video = self.tables.video();
        if video == self.video.as_ref().map(|v| (v.pid, v.classifier.codec())) {
            return;
        }
        if self.frame.is_some() {
            self.end_frame(now);
        }
        self.video = video.map(|(pid, codec)| Video { pid, classifier: Classifier::new(codec) });
    }

    fn look_at_video(&mut self, now: Instant, packet: Packet<'_>) {
        if packet.transport_error() || packet.payload().is_empty() {
            return;
        }
        if packet.payload_unit_start() {
            self.end_frame(now);
            self.frame = Some(Frame { number: self.next.frames, parts: 0, class: None, began: now });
            self.next.frames += 1;
            self.stats.video_frames += 1;
        }
        let Some(video) = &mut self.video else { return };
        if packet.payload_unit_start() {
            video.classifier.start();
        }
        if packet.scrambled() {
            return;
        }
        let class = video.classifier.push(packet.payload());
        if let Some(frame) = &mut self.frame {
            frame.class = frame.class.or(class);
        }
    }

    /// Closes the current frame, and the current message with it.
    fn end_frame(&mut self, now: Instant) {
        if !self.group.buf.is_empty() {
            self.emit(now, true);
        } else if self.frame.is_some() {
            self.stats.unmarked_ends += 1;
        }
        self.frame = None;
    }

    /// Sends the current message.
    fn emit(&mut self, now: Instant, last: bool) {
        let mut last = last;
        let frame = match &mut self.frame {
            Some(frame) => {
                last |= frame.parts + 1 == PARTS_MAX || now.since(frame.began) > FRAME_TIME_MAX;
                frame
            }
            None => {
                last = true;
                let number = self.next.frames;
                self.next.frames += 1;
                &mut Frame { number, parts: 0, class: None, began: now }
            }
        };
        let frame_class = frame.class.unwrap_or(Class::I);
        let header = MediaHeader {
            sequence: self.next.messages as u32,
            frame: frame.number as u32,
            part: frame.parts,
            parts: if last { frame.parts + 1 } else { 0 },
            class: if self.group.raised { Class::I } else { frame_class },
            frame_class,
            class_known: frame.class.is_some(),
            timestamp: MediaHeader::stamp(self.group.since),
        };
        frame.parts += 1;
        if last {
            self.frame = None;
        }
        self.next.messages += 1;
        self.stats.messages[header.class.index()] += 1;
        let mut buf = self.group.buf.split();
        if let Some(room) = buf.first_chunk_mut::<HEADER_LEN>() {
            *room = header.encode();
        }
        self.out.push_back(OutMessage { header, message: buf.freeze(), ingest: self.group.since });
    }
}

#[cfg(test)]
pub(crate) mod tests;
