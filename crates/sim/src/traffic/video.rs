//! Video frames: a synthetic sequence with a repeating pattern of frame classes, or the frame sizes
//! of a recorded one.

use super::{Emission, FrameClass, Kind};
use crate::TraceError;
use crate::draw::normal;
use crate::trace::lines;
use anabranch_base::{Duration, Instant, RandomStream, Rate};
use std::sync::Arc;

/// A synthetic sequence in display order, G(`group`, `anchor_every`): an I frame, then P frames each
/// `anchor_every` frames with B frames in between, again after `group` frames.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Video {
    /// Mean bytes of payload per second.
    pub rate: Rate,
    /// Frames per second.
    pub fps: f64,
    /// Frames from one I to the next.
    pub group: u32,
    /// Frames from one anchor (I or P) to the next; 1 for no B frames.
    pub anchor_every: u32,
    /// Mean sizes of I, P and B frames as a ratio.
    pub ratio: [f64; 3],
    /// Standard deviation of the logarithm of a frame's size about its class's mean.
    pub sigma: f64,
}

impl Video {
    /// 1 Mbit/s at 25 frames per second in G(12,3), I : P : B = 5 : 2 : 1, sizes varying with 0.2.
    pub const STANDARD: Video = Video {
        rate: Rate::from_bits_per_sec(1_000_000),
        fps: 25.0,
        group: 12,
        anchor_every: 3,
        ratio: [5.0, 2.0, 1.0],
        sigma: 0.2,
    };

    /// The class of frame `number`.
    pub const fn class(&self, number: u64) -> FrameClass {
        let group = if self.group == 0 { 1 } else { self.group as u64 };
        let every = if self.anchor_every == 0 { 1 } else { self.anchor_every as u64 };
        match number % group {
            0 => FrameClass::I,
            place if place % every == 0 => FrameClass::P,
            _ => FrameClass::B,
        }
    }

    /// Mean size of a frame of this class, in bytes.
    pub fn mean_size(&self, class: FrameClass) -> f64 {
        let group = u64::from(self.group.max(1));
        let weight = |class| self.ratio[class as usize];
        let total: f64 = (0..group).map(|n| weight(self.class(n))).sum();
        self.rate.bytes_per_sec() as f64 / self.fps * group as f64 * weight(class) / total
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        check_fps(self.fps)?;
        if self.rate == Rate::ZERO || self.group == 0 || self.anchor_every == 0 {
            return Err("a video needs a rate, a group and a distance of anchors above zero");
        }
        if !self.ratio.iter().all(|r| *r > 0.0 && r.is_finite()) {
            return Err("the ratio of frame sizes must be three numbers above zero");
        }
        if !(0.0..=2.0).contains(&self.sigma) {
            return Err("the variation of frame sizes must lie between 0 and 2");
        }
        Ok(())
    }
}

fn check_fps(fps: f64) -> Result<(), &'static str> {
    // A frame per hour at least, so that no time overflows.
    if (1.0 / 3600.0..=1e6).contains(&fps) {
        Ok(())
    } else {
        Err("frames per second must lie above 0, up to a million")
    }
}

/// When frame `number` is shown.
fn shown(start: Instant, fps: f64, number: u64) -> Instant {
    start + Duration::from_secs_f64(number as f64 / fps)
}

pub(super) struct Source {
    config: Video,
    random: RandomStream,
    start: Option<Instant>,
    number: u64,
}

impl Source {
    pub(super) fn new(config: Video, random: RandomStream) -> Self {
        Source { config, random, start: None, number: 0 }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let start = *self.start.get_or_insert(now);
        let (number, sigma) = (self.number, self.config.sigma);
        let class = self.config.class(number);
        // Less half the variance, which a log-normal value adds to its mean.
        let vary = libm::exp(sigma * normal(&mut self.random) - sigma * sigma / 2.0);
        let size = libm::round(self.config.mean_size(class) * vary).max(1.0) as u64;
        self.number += 1;
        Some(Emission { at: shown(start, self.config.fps, number), size, kind: Kind::Frame { number, class } })
    }
}

/// Which frames before it each frame of a recorded sequence needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needs(Arc<[Vec<u32>]>);

impl Needs {
    /// What frame `number` of a source needs, as numbers of frames; a source that repeats the sequence goes on counting.
    /// `None` stands for a frame in front of the sequence, which never comes.
    pub fn of(&self, number: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        let place = number.checked_rem(self.0.len()).unwrap_or(0);
        let back = self.0.get(place).map_or(&[][..], Vec::as_slice);
        back.iter().map(move |back| (*back as usize <= place).then(|| number - *back as usize))
    }
}

/// The frames of a recorded sequence.
#[derive(Clone, PartialEq, Debug)]
pub struct VideoTrace {
    /// Class and size in bytes of each frame, in the order they are sent.
    pub frames: Vec<(FrameClass, u64)>,
    /// Which frames each one needs, where the trace says it.
    pub needs: Option<Needs>,
    /// Frames per second.
    pub fps: f64,
    /// Begin again after the last frame?
    pub repeat: bool,
}

impl VideoTrace {
    /// Reads one frame per line: its class (`I`, `P` or `B`) and its size in bytes. A number before
    /// the class and anything after the size is ignored, so the sender's traces of EvalVid can be
    /// read as they are; their `H` (headers of the sequence) counts as `I`. Empty lines and comments
    /// from `#` on are skipped.
    ///
    /// The word `needs` behind the size says which frames the frame needs: how many frames before it each of them is, or
    /// `none`. Either every line has it or none has. A distance beyond the first frame stands for one that is not in the
    /// sequence: the frame can never be decoded.
    ///
    /// # Errors
    /// The first line that has no class or no size, or says of what it needs other than the lines before it do.
    pub fn parse(text: &str, fps: f64, repeat: bool) -> Result<Self, TraceError> {
        let (mut frames, mut needs) = (Vec::new(), Vec::new());
        for (n, line) in lines(text) {
            let (frame, its) = parse_frame(n, line)?;
            if !frames.is_empty() && needs.is_empty() == its.is_some() {
                let what =
                    "some frames say what they need and others do not: write `needs none` for one that needs none";
                return Err(TraceError::at(n, what));
            }
            frames.push(frame);
            needs.extend(its);
        }
        if frames.is_empty() {
            return Err(TraceError::at(0, "there is no frame in this trace"));
        }
        let needs = (!needs.is_empty()).then(|| Needs(needs.into()));
        Ok(VideoTrace { frames, needs, fps, repeat })
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        check_fps(self.fps)?;
        if self.frames.is_empty() || self.frames.iter().any(|f| f.1 == 0) {
            return Err("a video trace needs at least one frame, and no frame of zero bytes");
        }
        Ok(())
    }
}

/// Class and bytes of a frame, and how far before it those are that it needs, where the line says so.
type Line = ((FrameClass, u64), Option<Vec<u32>>);

fn parse_frame(number: usize, line: &str) -> Result<Line, TraceError> {
    let mut words = line.split([' ', '\t', ',', ';']).filter(|w| !w.is_empty()).peekable();
    words.next_if(|w| w.bytes().all(|b| b.is_ascii_digit()));
    let class = match words.next() {
        Some("I" | "i" | "H" | "h") => FrameClass::I,
        Some("P" | "p") => FrameClass::P,
        Some("B" | "b") => FrameClass::B,
        Some(other) => return Err(TraceError::at(number, format!("`{other}` is no frame class: write I, P or B"))),
        None => return Err(TraceError::at(number, "a frame class (I, P or B) and a size in bytes are wanted")),
    };
    let size = words.next().unwrap_or_default();
    let size = match size.parse() {
        Ok(size) if size > 0 => size,
        _ => return Err(TraceError::at(number, format!("`{size}` is no size: write whole bytes above zero"))),
    };
    let needs = match words.next() {
        Some("needs") => Some(parse_needs(number, &words.collect::<Vec<_>>())?),
        _ => None,
    };
    Ok(((class, size), needs))
}

fn parse_needs(number: usize, words: &[&str]) -> Result<Vec<u32>, TraceError> {
    let wrong = |what: &str| {
        let wanted = "write how many frames before this one those are that it needs, from 1 on, or `none`";
        TraceError::at(number, format!("`needs {what}`: {wanted}"))
    };
    match words {
        [] => Err(wrong("")),
        ["none"] => Ok(Vec::new()),
        back => back.iter().map(|w| w.parse().ok().filter(|n| *n > 0).ok_or_else(|| wrong(w))).collect(),
    }
}

pub(super) struct TraceSource {
    config: VideoTrace,
    start: Option<Instant>,
    number: u64,
}

impl TraceSource {
    pub(super) fn new(config: VideoTrace) -> Self {
        TraceSource { config, start: None, number: 0 }
    }
}

impl super::Source for TraceSource {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let start = *self.start.get_or_insert(now);
        let (number, count) = (self.number, self.config.frames.len() as u64);
        if number >= count && !self.config.repeat {
            return None;
        }
        let (class, size) = *self.config.frames.get(number.checked_rem(count)? as usize)?;
        self.number += 1;
        Some(Emission { at: shown(start, self.config.fps, number), size, kind: Kind::Frame { number, class } })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    fn classes(video: Video, n: u64) -> String {
        (0..n).map(|i| format!("{:?}", video.class(i))).collect()
    }

    #[test]
    fn the_pattern_repeats() {
        assert_eq!(classes(Video::STANDARD, 15), "IBBPBBPBBPBBIBB");
        assert_eq!(classes(Video { group: 4, anchor_every: 1, ..Video::STANDARD }, 6), "IPPPIP");
    }

    #[test]
    fn mean_sizes_follow_ratio_and_rate() {
        let size = |class| Video::STANDARD.mean_size(class);
        // 125,000 bytes/s in 25 frames: 60,000 bytes per group of 5 + 3 x 2 + 8 x 1 = 19 parts.
        assert!((size(FrameClass::B) - 60_000.0 / 19.0).abs() < 1e-9);
        assert!((size(FrameClass::I) - 5.0 * size(FrameClass::B)).abs() < 1e-9);
        assert!((size(FrameClass::P) - 2.0 * size(FrameClass::B)).abs() < 1e-9);
    }

    #[test]
    fn frames_come_at_their_time() {
        let fps = 30_000.0 / 1_001.0;
        let mut source = TrafficConfig::Video(Video { fps, ..Video::STANDARD }).build(1, "video");
        let last = (0..=30_000).map(|_| source.next(Instant::from_millis(5)).unwrap()).last().unwrap();
        assert_eq!(last.at.since(Instant::from_millis(5)).as_micros(), 1_001_000_000);
        assert_eq!(last.kind, Kind::Frame { number: 30_000, class: FrameClass::I });
    }

    #[test]
    fn a_trace_is_played_and_repeated() {
        let text = "# my film\nI 9000\n\n2 B 700 1 segment at 40 ms\n3\tP\t1500 # third\n";
        let trace = VideoTrace::parse(text, 25.0, true).unwrap();
        assert_eq!(trace.frames, [(FrameClass::I, 9_000), (FrameClass::B, 700), (FrameClass::P, 1_500)]);
        let play = |trace: &VideoTrace| {
            let mut source = TrafficConfig::VideoTrace(trace.clone()).build(1, "v");
            let frames = std::iter::from_fn(|| source.next(Instant::ZERO)).take(5);
            frames.map(|e| (e.at.as_nanos() / 1_000_000, e.size)).collect::<Vec<_>>()
        };
        assert_eq!(play(&trace), [(0, 9_000), (40, 700), (80, 1_500), (120, 9_000), (160, 700)]);
        assert_eq!(play(&VideoTrace { repeat: false, ..trace }), [(0, 9_000), (40, 700), (80, 1_500)]);
    }

    #[test]
    fn a_trace_says_what_frames_need() {
        let parse = |text: &str| VideoTrace::parse(text, 25.0, true);
        let needs = parse("I 9 needs none\nP 9 needs 1\nB 9,needs,1,2 # both\nB 9 needs 1 4\n").unwrap().needs.unwrap();
        let of = |n| needs.of(n).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2)], [vec![], vec![Some(0)], vec![Some(1), Some(0)]]);
        // The last one needs what was before the first; again and again.
        assert_eq!(of(3), [Some(2), None]);
        assert_eq!([of(4), of(6), of(7)], [vec![], vec![Some(5), Some(4)], vec![Some(6), None]]);
        assert_eq!(parse("1 I 9 1 segment at 40 ms\n").unwrap().needs, None);
        let error = |text: &str| parse(text).unwrap_err().to_string();
        for (text, line) in [("I 9 needs none\nP 9\n", 2), ("I 9\n\nP 9 needs 1\n", 3)] {
            assert!(
                error(text).starts_with(&format!("line {line}: some frames say what they need")),
                "{}",
                error(text)
            );
        }
        for bad in ["", "0", "-1", "x", "1 none", "none 1", "1.5"] {
            let e = error(&format!("I 9 needs {bad}\n"));
            assert!(e.starts_with("line 1: `needs") && e.contains("write how many frames before"), "{e}");
        }
    }

    #[test]
    fn a_bad_trace_is_named_by_line() {
        let error = |text| VideoTrace::parse(text, 25.0, false).unwrap_err().to_string();
        assert_eq!(error("I 5\nX 7\n"), "line 2: `X` is no frame class: write I, P or B");
        assert_eq!(error("I 5\n\nP -7\n"), "line 3: `-7` is no size: write whole bytes above zero");
        assert_eq!(error("I"), "line 1: `` is no size: write whole bytes above zero");
        assert_eq!(error("12"), "line 1: a frame class (I, P or B) and a size in bytes are wanted");
        assert_eq!(error("# nothing\n"), "there is no frame in this trace");
    }

    #[test]
    fn nonsense_is_named() {
        let bad = |v: Video| TrafficConfig::Video(v).check().is_err();
        assert!(!bad(Video::STANDARD));
        assert!(bad(Video { fps: 0.0, ..Video::STANDARD }) && bad(Video { fps: f64::NAN, ..Video::STANDARD }));
        assert!(bad(Video { group: 0, ..Video::STANDARD }) && bad(Video { ratio: [0.0; 3], ..Video::STANDARD }));
        assert!(bad(Video { sigma: -0.1, ..Video::STANDARD }) && bad(Video { rate: Rate::ZERO, ..Video::STANDARD }));
        let empty = TrafficConfig::VideoTrace(VideoTrace { frames: vec![], needs: None, fps: 25.0, repeat: true });
        assert!(empty.check().is_err());
        assert_eq!(empty.build(1, "v").next(Instant::ZERO), None);
    }
}
