//! What a viewer sees of a flow of video frames, of all that its source made: which came in time, which can be decoded, where the picture stood
//! still.

use super::dependence::{Dependence, Seen};
use super::{Due, Window};
use anabranch_base::{Duration, Instant};
use anabranch_media::PacketiserConfig;
use anabranch_sim::traffic::{Emission, FrameClass, Kind, Source};
use std::sync::{Arc, Mutex, PoisonError};

/// Seconds of video that a player wants before it plays, at first and after it stood still.
const THRESHOLD: f64 = 1.0;

/// Quality of the picture by how many frames ago it was the right one, dB: a frame that cannot be decoded leaves the last
/// one on the screen. Synthetic, in place of pixels; from the fifth on, and before the first picture, it is the last one.
const QUALITY: [f64; 6] = [35.0, 28.0, 25.0, 23.0, 22.0, 18.0];

/// Frames that the sending side notes and the receiving side looks up.
pub type SharedVideo = Arc<Mutex<Video>>;

/// The frames of a flow in the order they are sent, each cut into packets.
#[derive(Clone, Debug)]
pub struct Video {
    playout: Duration,
    fps: f64,
    /// Payload of a full packet, bytes.
    packet: u64,
    frames: Vec<Frame>,
    /// Which packets came, by their number in the flow.
    came: Vec<bool>,
    /// Packets and bytes that a stream delivered.
    streamed: (usize, u64),
    ended: bool,
    dependence: Dependence,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    class: FrameClass,
    at: Instant,
    /// Number of its first packet, and how many there are.
    first: usize,
    packets: usize,
    /// Its first byte, and the first after it.
    bytes: (u64, u64),
    arrived: usize,
    in_time: usize,
    /// When its last packet came.
    whole: Option<Instant>,
    /// Bytes that came, and those that came in time.
    came: u64,
    came_in_time: u64,
}

impl Frame {
    /// Bytes of its packet `n`, from 0.
    fn bytes_of(&self, n: usize, packet: u64) -> u64 {
        (self.bytes.1 - self.bytes.0).saturating_sub(n as u64 * packet).min(packet)
    }

    fn is_whole_in_time(&self) -> bool {
        self.in_time == self.packets
    }
}

/// What came of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRow {
    /// Which frames depend on it.
    pub class: FrameClass,
    /// When the source handed it over; it is due the flow's `playout` later.
    pub at: Instant,
    /// Size of the frame itself, without headers.
    pub bytes: u64,
    /// Into how many packets it was cut.
    pub packets: usize,
    /// How many of those packets came, late ones among them.
    pub came: usize,
    /// How many came before the frame was due.
    pub in_time: usize,
    /// When the last of its packets came; none where one never did.
    pub whole: Option<Instant>,
    /// Whether it could be decoded; none where that lies behind the end of the run.
    pub decodable: Option<bool>,
}

/// What came of the frames made in a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Came {
    /// Bytes that came, each counted once.
    pub bytes: u64,
    /// Those of frames that were not whole when they were due, late ones among them.
    pub wasted: u64,
}

/// What a viewer saw.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Viewed {
    /// Frames of which it is known whether they could be decoded.
    pub frames: u64,
    /// Those that could.
    pub decodable: u64,
    /// Sum of the quality of what was shown in their place, dB.
    pub quality: f64,
    /// How often the play-out buffer ran empty.
    pub underflows: u64,
    /// How long it was being filled again, seconds.
    pub underflow_time: f64,
}

impl Video {
    /// No frames yet. A frame is shown `playout` after it was made; `fps` frames per second, in packets of at most
    /// `packet` bytes.
    pub fn new(playout: Duration, fps: f64, packet: u32) -> Self {
        let packet = u64::from(packet.max(1));
        Video {
            playout,
            fps,
            packet,
            frames: Vec::new(),
            came: Vec::new(),
            streamed: (0, 0),
            ended: false,
            dependence: Dependence::Display { closed: false },
        }
    }

    /// Frames need each other so, and not by the pattern of open groups in the order they are shown.
    #[must_use]
    pub fn depending(self, dependence: Dependence) -> Self {
        Video { dependence, ..self }
    }

    /// The source made the next frame.
    pub fn frame(&mut self, class: FrameClass, at: Instant, bytes: u64) {
        let (first, start) = (self.came.len(), self.frames.last().map_or(0, |f| f.bytes.1));
        let packets = bytes.div_ceil(self.packet) as usize;
        self.came.resize(first + packets, false);
        let bytes = (start, start + bytes);
        self.frames.push(Frame {
            class,
            at,
            first,
            packets,
            bytes,
            arrived: 0,
            in_time: 0,
            whole: None,
            came: 0,
            came_in_time: 0,
        });
    }

    /// There will be no more frames.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The flow's packet `number`, from 0, came, perhaps not for the first time.
    pub fn packet(&mut self, number: usize, at: Instant) {
        let Some(came) = self.came.get_mut(number).filter(|came| !**came) else { return };
        *came = true;
        let frame = self.frames.partition_point(|f| f.first <= number).checked_sub(1);
        let Some(f) = frame.and_then(|i| self.frames.get_mut(i)) else { return };
        let in_time = at <= f.at + self.playout;
        let bytes = f.bytes_of(number - f.first, self.packet);
        f.arrived += 1;
        f.in_time += usize::from(in_time);
        f.came += bytes;
        f.came_in_time += if in_time { bytes } else { 0 };
        if f.arrived == f.packets {
            f.whole = Some(at);
        }
    }

    /// The next `bytes` of the flow's byte stream came.
    pub fn stream(&mut self, bytes: u64, at: Instant) {
        self.streamed.1 += bytes;
        while let Some(end) = self.end_of(self.streamed.0).filter(|end| *end <= self.streamed.1) {
            debug_assert!(end > 0);
            self.packet(self.streamed.0, at);
            self.streamed.0 += 1;
        }
    }

    /// The first byte after a packet.
    fn end_of(&self, packet: usize) -> Option<u64> {
        let f = self.frames.get(self.frames.partition_point(|f| f.first <= packet).checked_sub(1)?)?;
        let within = (packet - f.first + 1) as u64;
        (packet < f.first + f.packets).then(|| f.bytes.1.min(f.bytes.0 + within * self.packet))
    }

    /// What a viewer saw of the frames made in a window, up to `until`; of stops, what lies in the window.
    pub fn viewed(&self, window: Window, until: Instant) -> Viewed {
        let mut v = Viewed::default();
        let decodable = self.decodable(until);
        let mut age = QUALITY.len() - 1;
        for (f, decodable) in self.frames.iter().zip(decodable) {
            age = if decodable == Some(true) { 0 } else { age + 1 };
            if f.at + self.playout > until {
                break;
            }
            if decodable.is_some() && window.holds(f.at) {
                v.frames += 1;
                v.decodable += u64::from(age == 0);
                v.quality += QUALITY.get(age).or(QUALITY.last()).copied().unwrap_or_default();
            }
        }
        self.play(window, until, &mut v);
        v
    }

    /// Every frame that was made: class, when made, bytes, and whether it was whole when it was due.
    pub fn made_frames(&self) -> impl Iterator<Item = (FrameClass, Instant, u64, bool)> {
        self.frames.iter().map(|f| (f.class, f.at, f.bytes.1 - f.bytes.0, f.is_whole_in_time()))
    }

    /// What came of each frame that was made, in the order they were sent.
    pub fn rows(&self, until: Instant) -> impl Iterator<Item = FrameRow> {
        let row = |(f, decodable): (&Frame, Option<bool>)| FrameRow {
            class: f.class,
            at: f.at,
            bytes: f.bytes.1 - f.bytes.0,
            packets: f.packets,
            came: f.arrived,
            in_time: f.in_time,
            whole: f.whole,
            decodable,
        };
        self.frames.iter().zip(self.decodable(until)).map(row)
    }

    /// Bytes of the frames made in a window, but for one that is made as the run ends.
    pub fn made(&self, window: Window) -> u64 {
        self.frames
            .iter()
            .filter(|f| f.at >= window.from() && f.at < window.until())
            .map(|f| f.bytes.1 - f.bytes.0)
            .sum()
    }

    /// Which of these frames can be decoded, if those are whole of which it is said: class, when made, whole. None where
    /// it cannot be known.
    pub fn decodable_of(
        frames: impl Iterator<Item = (FrameClass, Instant, bool)>,
        playout: Duration,
        dependence: Dependence,
        until: Instant,
    ) -> Vec<Option<bool>> {
        let mut video = Video::new(playout, 1.0, 1).depending(dependence);
        for (number, (class, at, whole)) in frames.enumerate() {
            video.frame(class, at, 1);
            if whole {
                video.packet(number, at);
            }
        }
        video.decodable(until)
    }

    /// The frames that were made, as what has to be there when they are shown.
    pub fn dues(&self) -> impl Iterator<Item = Due> {
        self.frames.iter().map(|f| Due {
            made: f.at,
            at: f.at + self.playout,
            class: Some(f.class),
            packets: f.packets as u64,
            came: f.arrived as u64,
            late: (f.arrived - f.in_time) as u64,
            bytes: f.came,
            late_bytes: f.came - f.came_in_time,
        })
    }

    /// What came of the frames that were made in a window and due by `until`.
    pub fn came(&self, window: Window, until: Instant) -> Came {
        let mut all = Came::default();
        for f in self.frames.iter().filter(|f| window.holds(f.at) && f.at + self.playout <= until) {
            all.bytes += f.came;
            all.wasted += if f.is_whole_in_time() { 0 } else { f.came };
        }
        all
    }

    /// Whether each frame can be decoded; none where it cannot be known.
    fn decodable(&self, until: Instant) -> Vec<Option<bool>> {
        let seen = |f: &Frame| Seen { class: f.class, whole: f.is_whole_in_time(), due: f.at + self.playout <= until };
        self.dependence.decodable(self.frames.iter().map(seen), self.ended)
    }

    /// A player's buffer: it plays once [`THRESHOLD`] is there, stands still when nothing is left, and goes on at the
    /// threshold. It holds what lies between the picture and the newest whole frame: a lost one is passed over.
    fn play(&self, window: Window, until: Instant, v: &mut Viewed) {
        let seconds = |t: Instant| t.as_secs_f64();
        let mut whole: Vec<(Instant, usize)> = Vec::with_capacity(self.frames.len());
        whole.extend(self.frames.iter().enumerate().filter_map(|(i, f)| Some((f.whole.filter(|t| *t <= until)?, i))));
        whole.sort_unstable();
        let all = if self.ended { self.frames.len() } else { usize::MAX };
        let shown = |frames: usize| frames as f64 / self.fps;
        let (from, to) = (seconds(window.from()), seconds(window.until()));
        // A stop that begins as the run ends has no time in it, but began.
        let begins = |since: f64| since >= from && (since < to || window.end().is_none());
        let mut still = |since: f64, until: f64| {
            v.underflows += u64::from(begins(since));
            v.underflow_time += (until.min(to) - since.max(from)).max(0.0);
        };
        // Frames there; where the picture is, seconds; since when it has been playing or standing.
        let (mut there, mut picture, mut playing, mut standing) = (0, 0.0, None, None);
        for (at, i) in whole {
            let now = seconds(at);
            if let Some(since) = playing {
                let empty: f64 = since + (shown(there) - picture);
                // Times are of nanoseconds: a frame that comes just then is in time.
                if empty + 1e-9 < now && there < all {
                    (picture, playing, standing) = (shown(there), None, Some(empty));
                }
            }
            there = there.max(i + 1);
            if playing.is_none() && (shown(there) - picture >= THRESHOLD - 1e-9 || there >= all) {
                if let Some(since) = standing.take() {
                    still(since, now);
                }
                playing = Some(now);
            }
        }
        let end = seconds(until);
        match (playing, standing) {
            (Some(since), _) if there < all && since + (shown(there) - picture) < end => {
                still(since + (shown(there) - picture), end);
            }
            (None, Some(since)) => still(since, end),
            _ => {}
        }
    }
}

/// How frames become the messages of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Most bytes of a frame in one message, at least 1.
    pub packet: u32,
    /// The messages are those of `anabranch send`, with its header and whole packets of a transport stream.
    pub as_media: bool,
}

impl Cut {
    /// Messages of so many bytes that hold nothing else.
    pub const fn plain(packet: u32) -> Self {
        Cut { packet, as_media: false }
    }

    /// Messages as `anabranch send` makes them.
    pub fn media() -> Self {
        Cut { packet: PacketiserConfig::default().full_payload() as u32, as_media: true }
    }

    /// Bytes of the message that carries so many of a frame.
    pub fn message(self, bytes: u64) -> u64 {
        if self.as_media { PacketiserConfig::message_len(bytes as usize) as u64 } else { bytes }
    }
}

/// Cuts frames into messages, and notes them where they are watched.
pub struct Packets {
    inner: Box<dyn Source>,
    cut: Cut,
    video: Option<SharedVideo>,
    rest: Option<Emission>,
}

impl Packets {
    /// The messages of `inner`'s frames, which `video` gets to know.
    pub fn new(inner: Box<dyn Source>, cut: Cut, video: Option<SharedVideo>) -> Self {
        Packets { inner, cut, video, rest: None }
    }

    fn note(&self, e: Option<Emission>) {
        let Some(video) = &self.video else { return };
        let mut video = video.lock().unwrap_or_else(PoisonError::into_inner);
        match e.map(|e| (e, e.kind)) {
            None => video.end(),
            Some((e, Kind::Frame { class, .. })) => video.frame(class, e.at, e.size),
            Some(_) => {}
        }
    }
}

impl Source for Packets {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let e = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let next = self.inner.next(now);
                self.note(next);
                next?
            }
        };
        let here = e.size.min(u64::from(self.cut.packet.max(1)));
        self.rest = (e.size > here).then_some(Emission { size: e.size - here, ..e });
        Some(Emission { size: self.cut.message(here), ..e })
    }
}

#[cfg(test)]
#[path = "video_tests.rs"]
mod tests;
