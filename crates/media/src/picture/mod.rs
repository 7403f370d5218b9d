//! What the headers of coded pictures say: class, temporal layer, and which pictures before they may refer to.
//!
//! | coding | what a picture needs | read from |
//! |---|---|---|
//! | H.264 | what the reference lists of its slices name | slice headers and a reference picture buffer (`h264.rs`) |
//! | H.265 | what its reference picture set marks as used by it | slice headers (`h265.rs`) |
//! | AV1 | the slots that its frame header names | frame headers (`av1.rs`) |
//! | MPEG-1, MPEG-2 | a P picture the last I or P picture, a B picture the last two | picture types, group headers (`mpeg2.rs`) |
//!
//! A header says what may be referred to; which of it blocks really use shows only in the coded picture. Where a
//! header cannot be followed, a picture counts as needing the last one before it that others may refer to, a B picture
//! the last two (`anchors.rs`).
//!
//! A stream may begin in the middle of a group of pictures. What refers to pictures in front of it says so
//! ([`Needs::missing`]): the first picture that can be decoded is one that needs no other.

mod anchors;
pub(crate) mod av1;
mod bits;
mod h264;
mod h265;
mod mpeg2;
#[cfg(test)]
pub(crate) mod tests;

use crate::Class;
use crate::ts::VideoCodec;

use anchors::Anchors;
pub use av1::as_in_files as av1_as_in_files;
pub(crate) use av1::{Av1, Begins, begins_av1};
pub(crate) use h265::H265;
pub(crate) use mpeg2::class as mpeg2_class;

/// The pictures that a picture may refer to, by the numbers of their access units.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needs {
    /// The headers could be followed; else the last possible references are taken for all of them.
    pub known: bool,
    /// It may refer to a picture that is not in the stream: one in front of the stream's beginning, as a rule.
    pub missing: bool,
    /// Numbers of access units, rising, each once.
    pub units: Vec<u64>,
}

impl Default for Needs {
    fn default() -> Self {
        Needs { known: true, missing: false, units: Vec::new() }
    }
}

impl Needs {
    /// The picture of access unit `of` refers to `unit`, unless it is its own.
    fn add(&mut self, unit: u64, of: u64) {
        if unit != of && !self.units.contains(&unit) {
            self.units.push(unit);
        }
    }

    fn unknown(&mut self) {
        self.known = false;
    }
}

/// What the headers of an access unit say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picture {
    /// Its class; none where no slice was found.
    pub class: Option<Class>,
    /// Temporal layer, of H.265 and AV1.
    pub layer: u8,
    /// What it may refer to.
    pub needs: Needs,
}

impl Picture {
    /// Puts what it needs in order.
    fn finish(mut self) -> Self {
        self.needs.units.sort_unstable();
        self
    }
}

/// Follows the pictures of a stream, one access unit after the other in decoding order. Memory and work per byte are
/// bounded whatever the bytes are.
#[derive(Debug)]
pub struct Pictures {
    next: u64,
    coding: Coding,
}

#[derive(Debug)]
enum Coding {
    H264(Box<h264::H264>),
    H265(Box<H265>),
    Av1(Box<Av1>),
    Mpeg2(mpeg2::Mpeg2),
    Other,
}

impl Pictures {
    /// Nothing seen yet.
    pub fn new(codec: VideoCodec) -> Self {
        let coding = match codec {
            VideoCodec::H264 => Coding::H264(Box::new(h264::H264::new())),
            VideoCodec::H265 => Coding::H265(Box::default()),
            VideoCodec::Av1 => Coding::Av1(Box::default()),
            VideoCodec::Mpeg2 => Coding::Mpeg2(mpeg2::Mpeg2::default()),
            VideoCodec::Other => Coding::Other,
        };
        Pictures { next: 0, coding }
    }

    /// The next access unit: what lies behind the PES header. Access units count from 0.
    pub fn push(&mut self, unit: &[u8]) -> Picture {
        let number = self.next;
        self.next += 1;
        let mut picture = match &mut self.coding {
            Coding::H264(h264) => h264.unit(number, nals(unit)),
            Coding::H265(h265) => h265.unit(number, nals(unit)),
            Coding::Av1(av1) => av1.unit(number, unit),
            Coding::Mpeg2(mpeg2) => mpeg2.unit(number, nals(unit)),
            Coding::Other => Picture::default(),
        };
        // Scrambled, or damaged before it was recorded.
        picture.needs.known &= picture.class.is_some();
        picture
    }
}

/// What lies between start codes.
fn nals(unit: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut all = Vec::new();
    bits::start_codes(unit, |nal| all.push(nal));
    all.into_iter()
}
