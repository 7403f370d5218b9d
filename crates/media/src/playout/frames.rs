//! Which frames were played out whole.
//!
//! Messages are put out in source order, so only the frame at the play-out point is remembered. Frames tile
//! the source sequence, and every frame has at least one message; from this follows where a frame ended even
//! when its last part was not marked, and how many frames are missing between two that were seen.

use super::UNKNOWN;
use crate::{Class, MediaHeader, StreamEnd};
use anabranch_base::Instant;

/// How one frame (or a run of missing frames) came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameOutcome {
    /// Number of the (first) frame, without wrapping.
    pub frame: u64,
    /// How many frames it covers: 1, or a run of frames of which nothing was put out.
    pub count: u64,
    /// Class, where a message of the frame carried it.
    pub class: Option<Class>,
    /// Every part was put out in time.
    pub usable: bool,
    /// When it was decided: the play-out of the next frame's first message.
    pub at: Instant,
}

/// Counts of frames, by class; the last entry is for frames whose class is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameCounts {
    /// Frames, usable or not: I, P, B, unknown.
    pub total: [u64; 4],
    /// Frames with a part missing at play-out: I, P, B, unknown.
    pub unusable: [u64; 4],
}

impl FrameCounts {
    /// All frames.
    pub fn frames(&self) -> u64 {
        self.total.iter().sum()
    }

    /// All unusable frames.
    pub fn frames_unusable(&self) -> u64 {
        self.unusable.iter().sum()
    }
}

#[derive(Debug)]
struct Current {
    frame: u64,
    first: u64,
    /// Parts put out, and the highest of them.
    played: u64,
    last_played: Option<u64>,
    parts: Option<u64>,
    class: Option<Class>,
}

/// Follows the frames at the play-out point.
#[derive(Debug, Default)]
pub(super) struct FrameTracker {
    current: Option<Current>,
    /// First frame and first sequence number not yet accounted for.
    next: StreamEnd,
    started: bool,
    counts: FrameCounts,
    inconsistent: u64,
}

impl FrameTracker {
    /// The stream is joined at this message, whatever came before it.
    pub(super) fn join_at(&mut self, sequence: u64, frame: u64) {
        self.next = StreamEnd { messages: sequence, frames: frame };
    }

    pub(super) fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Messages whose numbers contradicted earlier ones.
    pub(super) fn inconsistent(&self) -> u64 {
        self.inconsistent
    }

    /// Number of the frame without wrapping.
    pub(super) fn extend(&self, frame: u32) -> Option<u64> {
        let near = self.current.as_ref().map_or(self.next.frames, |c| c.frame);
        near.checked_add_signed(i64::from(frame.wrapping_sub(near as u32) as i32))
    }

    /// A message has reached the play-out point; `played` is false when it came too late to be put out.
    pub(super) fn observe(
        &mut self,
        at: Instant,
        sequence: u64,
        header: &MediaHeader,
        played: bool,
        mut report: impl FnMut(FrameOutcome),
    ) {
        let (Some(frame), Some(first)) = (self.extend(header.frame), sequence.checked_sub(u64::from(header.part)))
        else {
            self.inconsistent += 1;
            return;
        };
        match &self.current {
            Some(c) if c.frame == frame => {
                if c.first != first {
                    self.inconsistent += 1;
                    return;
                }
            }
            Some(c) if frame < c.frame || first <= c.first => {
                self.inconsistent += 1;
                return;
            }
            None if frame < self.next.frames || first < self.next.messages => {
                // Joined in the middle of a frame: its head is missing, which is no contradiction.
                if frame != self.next.frames || self.started {
                    self.inconsistent += 1;
                    return;
                }
                self.open(frame, first);
            }
            _ => {
                self.close(at, StreamEnd { messages: first, frames: frame }, &mut report);
                self.open(frame, first);
            }
        }
        let Some(c) = &mut self.current else { return };
        if played {
            c.played += 1;
            c.last_played = Some(sequence);
        }
        if header.is_last() {
            c.parts = Some(u64::from(header.parts));
        }
        if header.class_known {
            c.class = Some(header.frame_class);
        }
    }

    /// The stream has ended; `end` says how much there was, if the sender said so.
    pub(super) fn finish(&mut self, at: Instant, end: Option<StreamEnd>, mut report: impl FnMut(FrameOutcome)) {
        let seen = match &self.current {
            Some(c) => StreamEnd { messages: c.last_played.map_or(c.first, |s| s + 1), frames: c.frame + 1 },
            None => self.next,
        };
        let end = end.filter(|e| e.messages >= seen.messages && e.frames >= seen.frames).unwrap_or(seen);
        self.close(at, end, &mut report);
        self.next = end;
    }

    fn open(&mut self, frame: u64, first: u64) {
        self.started = true;
        self.current = Some(Current { frame, first, played: 0, last_played: None, parts: None, class: None });
    }

    /// Accounts for everything before `until`, where a frame begins.
    fn close(&mut self, at: Instant, until: StreamEnd, report: &mut impl FnMut(FrameOutcome)) {
        let mut next = self.next;
        if let Some(c) = self.current.take() {
            next = StreamEnd { messages: c.last_played.map_or(c.first, |s| s + 1), frames: c.frame + 1 };
            let missing_frames = until.frames.saturating_sub(next.frames);
            let missing_messages = until.messages.saturating_sub(next.messages);
            let usable = match c.parts {
                Some(parts) => c.played == parts,
                // Unmarked: whole if the frames behind it need every message that is missing.
                None => c.played > 0 && next.messages - c.first == c.played && missing_messages == missing_frames,
            };
            self.tell(FrameOutcome { frame: c.frame, count: 1, class: c.class, usable, at }, report);
        }
        // Every frame has a message, so more frames than messages cannot be missing.
        let missing = until.frames.saturating_sub(next.frames).min(until.messages.saturating_sub(next.messages));
        if missing > 0 {
            self.tell(FrameOutcome { frame: next.frames, count: missing, class: None, usable: false, at }, report);
        }
    }

    fn tell(&mut self, outcome: FrameOutcome, report: &mut impl FnMut(FrameOutcome)) {
        let class = outcome.class.map_or(UNKNOWN, Class::index);
        self.counts.total[class] += outcome.count;
        if !outcome.usable {
            self.counts.unusable[class] += outcome.count;
        }
        report(outcome);
    }
}
