//! What was sent, for reports that see both ends: which frames were unusable, and which could not be decoded
//! because a frame they refer to was.

use crate::{Class, OutMessage};
use anabranch_base::Instant;

/// One frame as it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentFrame {
    /// Class, if it was read from the pictures.
    pub class: Option<Class>,
    /// Source sequence number of its first message, without wrapping.
    pub first: u64,
    /// Messages it consists of.
    pub messages: u64,
    /// When its first message came in.
    pub ingest: Instant,
}

/// Numbers beyond this are not kept in a [`SequenceSet`]: 32 MiB of memory, or 300 GB of media.
const SEQUENCE_MAX: u32 = 1 << 28;

/// The set of sequence numbers that were put out.
#[derive(Clone, Debug, Default)]
pub struct SequenceSet {
    words: Vec<u64>,
}

impl SequenceSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a number. Memory grows with the largest: for bounded runs, not for a stream without end; numbers
    /// from 2^28 on are ignored.
    pub fn insert(&mut self, sequence: u32) {
        if sequence >= SEQUENCE_MAX {
            return;
        }
        let word = sequence as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (sequence % 64);
    }

    /// Is the number a member?
    pub fn has(&self, sequence: u64) -> bool {
        let word = usize::try_from(sequence / 64).ok().and_then(|w| self.words.get(w));
        word.is_some_and(|w| w >> (sequence % 64) & 1 == 1)
    }
}

/// How the frames of a stream came out. Arrays are by class: I, P, B, unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameReport {
    /// Frames sent.
    pub frames: [u64; 4],
    /// Frames with a message missing.
    pub unusable: [u64; 4],
    /// Frames that are unusable or need, directly or not, one that is.
    pub undecodable: [u64; 4],
    /// Messages sent, and those missing.
    pub messages: u64,
    /// Messages missing.
    pub messages_missing: u64,
    /// For every frame in the order sent, whether it is usable.
    pub usable: Vec<bool>,
    /// For every frame in the order sent, whether it can be decoded.
    pub decodable: Vec<bool>,
}

/// All frames of a stream in the order sent.
///
/// Pictures are in decoding order, so every picture refers back: a P picture needs the anchor (I or P) before
/// it, a B picture the last two anchors before it; in a closed group both are its neighbours in time, and the B
/// pictures of an open group, which follow the next I, get that I and the anchor before it (Cheng et al. 2011 §II.B).
/// Streams that refer further are simplified by this. Frames of unknown class need nothing and nothing needs them.
#[derive(Clone, Debug, Default)]
pub struct FrameIndex {
    frames: Vec<SentFrame>,
    messages: u64,
}

impl FrameIndex {
    /// An index without frames.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a message, in the order sent, from the first on.
    pub fn push(&mut self, message: &OutMessage) {
        let header = &message.header;
        if header.part == 0 || self.frames.is_empty() {
            self.frames.push(SentFrame { class: None, first: self.messages, messages: 0, ingest: message.ingest });
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.messages += 1;
            if header.class_known {
                frame.class = Some(header.frame_class);
            }
        }
        self.messages += 1;
    }

    /// The frames; the position is the frame's number.
    pub fn frames(&self) -> &[SentFrame] {
        &self.frames
    }

    /// Numbers of the frames that each frame needs.
    pub fn references(&self) -> Vec<[Option<usize>; 2]> {
        let mut anchors = [None, None];
        let mut out = Vec::with_capacity(self.frames.len());
        for (i, frame) in self.frames.iter().enumerate() {
            let [older, newer] = anchors;
            out.push(match frame.class {
                Some(Class::P) => [newer, None],
                Some(Class::B) => [older, newer],
                Some(Class::I) | None => [None, None],
            });
            if matches!(frame.class, Some(Class::I | Class::P)) {
                anchors = [newer, Some(i)];
            }
        }
        out
    }

    /// Compares with what was put out.
    pub fn report(&self, played: &SequenceSet) -> FrameReport {
        let mut report = FrameReport { messages: self.messages, ..Default::default() };
        for (frame, needs) in self.frames.iter().zip(self.references()) {
            let missing = (frame.first..frame.first + frame.messages).filter(|s| !played.has(*s)).count() as u64;
            let usable = missing == 0;
            let needed = |i: &usize| report.decodable.get(*i).copied().unwrap_or(false);
            let decodable = usable && needs.iter().flatten().all(needed);
            let class = frame.class.map_or(crate::playout::UNKNOWN, Class::index);
            report.frames[class] += 1;
            report.unusable[class] += u64::from(!usable);
            report.undecodable[class] += u64::from(!decodable);
            report.messages_missing += missing;
            report.usable.push(usable);
            report.decodable.push(decodable);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MediaHeader;
    use bytes::Bytes;

    /// Frames of two messages each; '?' is a frame of unknown class.
    fn index(kinds: &str) -> FrameIndex {
        let mut index = FrameIndex::new();
        for (frame, kind) in kinds.chars().enumerate() {
            let class = match kind {
                'I' => Some(Class::I),
                'P' => Some(Class::P),
                'B' => Some(Class::B),
                _ => None,
            };
            for part in 0..2 {
                let header = MediaHeader {
                    sequence: frame as u32 * 2 + u32::from(part),
                    frame: frame as u32,
                    part,
                    parts: part * 2,
                    class: Class::I,
                    frame_class: class.unwrap_or_default(),
                    class_known: class.is_some() && part == 1, // not yet known in the first part
                    timestamp: 0,
                };
                index.push(&OutMessage { header, message: Bytes::new(), ingest: Instant::from_millis(frame as u64) });
            }
        }
        index
    }

    /// Marks of the frames when message `missing` is lost: '.' fine, 'x' unusable, 'r' refers to one.
    fn marks(kinds: &str, missing: &[u32]) -> String {
        let index = index(kinds);
        let mut played = SequenceSet::new();
        (0..kinds.len() as u32 * 2).filter(|s| !missing.contains(s)).for_each(|s| played.insert(s));
        let r = index.report(&played);
        assert_eq!(r.frames.iter().sum::<u64>(), kinds.len() as u64);
        assert_eq!(r.messages_missing, missing.len() as u64);
        assert_eq!(r.unusable.iter().sum::<u64>(), r.usable.iter().filter(|u| !**u).count() as u64);
        assert_eq!(r.undecodable.iter().sum::<u64>(), r.decodable.iter().filter(|u| !**u).count() as u64);
        r.usable
            .iter()
            .zip(&r.decodable)
            .map(|(u, d)| {
                if *d {
                    '.'
                } else if *u {
                    'r'
                } else {
                    'x'
                }
            })
            .collect()
    }

    #[test]
    fn errors_spread_to_what_refers() {
        // Decoding order of two closed groups I B B P B B P.
        let s = "?IPBBPBBIPBB";
        assert_eq!(marks(s, &[]), "............");
        assert_eq!(marks(s, &[3]), ".xrrrrrr....", "the I picture");
        assert_eq!(marks(s, &[5]), "..xrrrrr....", "the first P picture");
        assert_eq!(marks(s, &[10, 11]), ".....xrr....", "the last P picture");
        assert_eq!(marks(s, &[6, 9]), "...xx.......", "B pictures");
        assert_eq!(marks(s, &[1]), "x...........", "tables");
        // Open group: the B pictures behind the second I need the anchor before it too.
        assert_eq!(marks("IPBBIBBPBB", &[2]), ".xrr.rr...");
    }

    #[test]
    fn classes_and_times_are_kept() {
        let index = index("IPB?");
        let classes: Vec<_> = index.frames().iter().map(|f| f.class).collect();
        assert_eq!(classes, [Some(Class::I), Some(Class::P), Some(Class::B), None]);
        assert_eq!(index.frames()[2].ingest, Instant::from_millis(2));
        assert_eq!((index.frames()[3].first, index.frames()[3].messages), (6, 2));
    }
}
