//! Which frames of a video a frame needs, and which of them can be decoded by that.

use anabranch_sim::traffic::{FrameClass, Needs};

/// How it is known what a frame needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dependence {
    /// By the pattern of classes, in the order in which frames are shown: P needs the anchor (I or P) before, B the anchors
    /// on both sides.
    Display {
        /// The last B frames of a group do not need the I frame of the next one.
        closed: bool,
    },
    /// By the pattern of classes, in the order in which frames are decoded: P needs the last anchor, B the last two.
    Decoding {
        /// Nothing behind an I frame needs what is before it.
        closed: bool,
    },
    /// By what the trace says of each frame.
    Named(Needs),
}

/// What came of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub class: FrameClass,
    /// All of it was there in time.
    pub whole: bool,
    /// It was to be shown before the end of the run.
    pub due: bool,
}

impl Dependence {
    /// Whether each frame can be decoded: it is whole in time, and so is what it needs, directly or not. None where that
    /// lies behind the end of the run, or where a video that has not `ended` may still have it.
    pub(super) fn decodable(&self, frames: impl Iterator<Item = Seen>, ended: bool) -> Vec<Option<bool>> {
        match self {
            Dependence::Display { closed } => in_display_order(frames, *closed, ended),
            Dependence::Decoding { closed } => in_decoding_order(frames, *closed),
            Dependence::Named(needs) => by_names(frames, needs),
        }
    }
}

/// The last B frames of an open group need the next I, those of a closed one or at the end of a video only the anchor
/// before.
fn in_display_order(frames: impl Iterator<Item = Seen>, closed: bool, ended: bool) -> Vec<Option<bool>> {
    let mut out: Vec<Option<bool>> = Vec::with_capacity(frames.size_hint().0);
    let (mut before, mut waiting) = (false, 0);
    for f in frames {
        if f.class == FrameClass::B {
            out.push(Some(f.whole && before));
            waiting += 1;
            continue;
        }
        let anchor = f.whole && (f.class == FrameClass::I || before);
        if !(closed && f.class == FrameClass::I) {
            out.iter_mut().rev().take(waiting).for_each(|b| *b = f.due.then(|| *b == Some(true) && anchor));
        }
        out.push(Some(anchor));
        (before, waiting) = (anchor, 0);
    }
    if !ended {
        out.iter_mut().rev().take(waiting).for_each(|b| *b = None);
    }
    out
}

/// As the headers of MPEG-2 say it, where the anchors of a B frame are both in front of it.
fn in_decoding_order(frames: impl Iterator<Item = Seen>, closed: bool) -> Vec<Option<bool>> {
    let (mut older, mut newer) = (false, false);
    let judge = |f: Seen| {
        let decodable = f.whole
            && match f.class {
                FrameClass::I => true,
                FrameClass::P => newer,
                FrameClass::B => older && newer,
            };
        match f.class {
            // The B frames behind the I frame of a closed group need nothing else.
            FrameClass::I if closed => (older, newer) = (true, decodable),
            FrameClass::I | FrameClass::P => (older, newer) = (newer, decodable),
            FrameClass::B => {}
        }
        Some(decodable)
    };
    frames.map(judge).collect()
}

fn by_names(frames: impl Iterator<Item = Seen>, needs: &Needs) -> Vec<Option<bool>> {
    let mut out: Vec<Option<bool>> = Vec::with_capacity(frames.size_hint().0);
    for (number, f) in frames.enumerate() {
        let there = |n: Option<usize>| n.is_some_and(|n| out.get(n) == Some(&Some(true)));
        let decodable = f.whole && needs.of(number).all(there);
        out.push(Some(decodable));
    }
    out
}
