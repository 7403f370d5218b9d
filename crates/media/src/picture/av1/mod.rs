//! AV1: sequence and frame headers up to the slots that a frame refers to (AV1 specification §5.5, §5.9).
//!
//! A temporal unit may hold several frames, of which at most one is shown. What it needs is what any of its frames
//! refers to outside of it, and its class is that of its most important frame.

mod header;
#[cfg(test)]
pub(crate) mod tests;
mod units;

use super::bits::{Bits, start_codes, unescape};
use super::{Anchors, Needs, Picture};
use crate::Class;
use header::{Frame, Sequence, frame, is_sequence, obu_header, sequence};
use units::{Obu, Units};

/// Slots of the decoder for reference frames (§3).
const SLOTS: usize = 8;

/// A slot: the access unit its frame came in, and whether it is a key frame that is still to be shown.
#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: u64,
    key: bool,
}

/// Follows the frames of a stream.
#[derive(Debug, Default)]
pub(crate) struct Av1 {
    sequence: Option<Sequence>,
    slots: [Option<Slot>; SLOTS],
    buf: Vec<u8>,
    /// Frames were lost track of until the next key frame that is shown: slots without a frame may have one.
    lost: bool,
    anchors: Anchors,
    /// The temporal unit of which the beginning is here.
    units: Units,
}

/// Kinds of open bitstream units (§6.2.2).
const SEQUENCE_HEADER: u32 = 1;
const TEMPORAL_DELIMITER: u32 = 2;
const FRAME_HEADER: u32 = 3;
const METADATA: u32 = 5;
const FRAME: u32 = 6;
const PADDING: u32 = 15;

/// What a unit shows.
enum Look {
    /// Not yet anything: more of it has to come.
    More,
    /// Nothing of interest.
    Nothing,
    /// A frame of these layers; none where its header cannot be read.
    Frame(u32, Option<Frame>),
}

impl Av1 {
    /// Takes in one temporal unit.
    pub(super) fn unit(&mut self, number: u64, unit: &[u8]) -> Picture {
        let mut picture = Picture::default();
        let mut kept = false;
        let mut units = Units::default();
        let mut take = |obu: Obu<'_>| {
            let (layers, frame) = match self.look(obu) {
                Look::More => return false,
                Look::Nothing => return true,
                Look::Frame(layers, frame) => (layers, frame),
            };
            picture.layer = (layers >> 5) as u8;
            let Some(frame) = frame else {
                picture.needs.unknown();
                self.lose();
                kept = true;
                return true;
            };
            let class = self.frame(number, frame, &mut picture.needs, &mut kept);
            picture.class = Some(picture.class.map_or(class, |c| c.min(class)));
            true
        };
        units.push(unit, &mut take);
        units.end(&mut take);
        if !picture.needs.known {
            self.anchors.need(false, number, &mut picture.needs);
        }
        if kept {
            self.anchors.put(number);
        }
        picture.finish()
    }

    /// A temporal unit begins of which the bytes come with [`class`](Av1::class).
    pub(crate) fn start(&mut self) {
        let mut units = std::mem::take(&mut self.units);
        units.end(&mut |obu: Obu<'_>| self.follow(obu, &mut None));
        self.units = units;
    }

    /// The next bytes of a temporal unit. The class that they show is that of the first frame in them, as a frame that is
    /// not shown comes first and is one that others refer to. All are followed: they decide which slots hold a key frame.
    pub(crate) fn class(&mut self, bytes: &[u8]) -> Option<Class> {
        let mut units = std::mem::take(&mut self.units);
        let mut class = None;
        units.push(bytes, &mut |obu: Obu<'_>| self.follow(obu, &mut class));
        self.units = units;
        class
    }

    /// Follows a frame as far as it matters for classes; the class of the first one goes to `class`.
    fn follow(&mut self, obu: Obu<'_>, class: &mut Option<Class>) -> bool {
        let frame = match self.look(obu) {
            Look::More => return false,
            Look::Nothing => return true,
            Look::Frame(_, None) => {
                self.lose();
                return true;
            }
            Look::Frame(_, Some(frame)) => frame,
        };
        let own = match self.frame(0, frame, &mut Needs::default(), &mut false) {
            Class::B if matches!(frame, Frame::Coded { shown: false, .. }) => Class::P,
            own => own,
        };
        *class = class.or(Some(own));
        true
    }

    /// What is in the slots is not known any more.
    fn lose(&mut self) {
        self.lost = true;
        self.slots = [None; SLOTS];
    }

    /// What a unit shows. A sequence header is taken in.
    fn look(&mut self, obu: Obu<'_>) -> Look {
        let mut buf = std::mem::take(&mut self.buf);
        plain(obu, &mut buf);
        let mut b = Bits::new(&buf);
        let cut = if obu.whole { Look::Nothing } else { Look::More };
        let found = match obu_header(&mut b) {
            None => cut,
            Some((SEQUENCE_HEADER, ..)) => match sequence(&mut b) {
                Some(s) => {
                    self.sequence = Some(s);
                    Look::Nothing
                }
                None => cut,
            },
            Some((FRAME_HEADER | FRAME, layers, size)) if size != Some(0) => {
                match self.sequence.as_ref().map(|s| frame(&mut b, s, layers)) {
                    Some(None) if !obu.whole => Look::More,
                    found => Look::Frame(layers, found.flatten()),
                }
            }
            Some(_) => Look::Nothing,
        };
        self.buf = buf;
        found
    }

    /// What a frame needs goes to `needs`; its slots are refreshed (§7.20, §7.21). Gives its class.
    fn frame(&mut self, number: u64, frame: Frame, needs: &mut Needs, kept: &mut bool) -> Class {
        let lost = self.lost;
        let mut refer = |slot: Option<Slot>| match slot {
            Some(slot) => needs.add(slot.unit, number),
            None if lost => needs.unknown(),
            None => needs.missing = true,
        };
        match frame {
            Frame::Shown { slot } => {
                let shown = self.slots.get(slot).copied().flatten();
                refer(shown);
                match shown {
                    // A key frame that is shown starts the stream anew.
                    Some(Slot { key: true, .. }) => {
                        self.slots = [shown; SLOTS];
                        self.lost = false;
                        *kept = true;
                        Class::I
                    }
                    _ => Class::B,
                }
            }
            Frame::Coded { key, intra, shown, refresh, refers } => {
                for (i, slot) in self.slots.iter().enumerate() {
                    if refers >> i & 1 == 1 {
                        refer(*slot);
                    }
                }
                for (i, slot) in self.slots.iter_mut().enumerate() {
                    if refresh >> i & 1 == 1 {
                        *slot = Some(Slot { unit: number, key: key && !shown });
                    }
                }
                self.lost &= !(key && shown);
                *kept |= refresh != 0;
                match (key, refresh) {
                    (true, _) => Class::I,
                    (false, 0) => Class::B,
                    _ if intra => Class::I,
                    _ => Class::P,
                }
            }
        }
    }
}

/// A temporal unit of AV1 as files have it, each open bitstream unit with its size and without start codes, for decoders
/// that know no other form.
pub fn as_in_files(unit: &[u8]) -> Vec<u8> {
    if !unit.starts_with(&[0, 0]) {
        return unit.to_vec();
    }
    let most = 2 * unit.len();
    let (mut out, mut buf) = (Vec::with_capacity(unit.len() + 16), Vec::new());
    start_codes(unit, |obu| {
        unescape(obu, &mut buf);
        // Zeros at its end went to the start code behind it; a size of zero may be among them.
        let Some((header, size)) = header_of(&buf).or_else(|| {
            buf.push(0);
            header_of(&buf)
        }) else {
            return;
        };
        if let Some(end) =
            size.map(|size| header.saturating_add(size)).filter(|end| out.len().saturating_add(*end) <= most)
        {
            buf.resize(end, 0);
        }
        let (Some(first), Some(body)) = (buf.first(), buf.get(header..)) else { return };
        out.push(first | 2);
        // The layers, where there are some.
        out.extend(buf.get(1).filter(|_| first & 4 != 0));
        put_size(&mut out, body.len());
        out.extend_from_slice(body);
    });
    out
}

/// Writes the size of a unit, which is between its header and its body (leb128).
fn put_size(out: &mut Vec<u8>, mut size: usize) {
    while size > 127 {
        out.push(size as u8 & 127 | 128);
        size >>= 7;
    }
    out.push(size as u8);
}

/// Bytes of the header of a unit, and its size where it has one.
fn header_of(obu: &[u8]) -> Option<(usize, Option<usize>)> {
    let mut b = Bits::new(obu);
    let (_, _, size) = obu_header(&mut b)?;
    Some((b.at() / 8, size))
}

/// A unit without its emulation prevention bytes.
fn plain(obu: Obu<'_>, buf: &mut Vec<u8>) {
    if obu.escaped {
        unescape(obu.bytes, buf);
    } else {
        buf.clear();
        buf.extend_from_slice(obu.bytes);
    }
}

/// What the beginning of a PES packet of an unknown stream looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begins {
    /// More of it is needed.
    More,
    /// A temporal unit that AV1 can begin with: a sequence header, valid to its last bit, and a key frame that is shown.
    Av1,
    /// A temporal unit, maybe.
    Unit,
    /// Nothing of AV1.
    Other,
}

/// Is this the beginning of AV1? `whole` if no more of it will come.
pub(crate) fn begins_av1(bytes: &[u8], whole: bool) -> Begins {
    let (mut found, mut known) = (Begins::More, None);
    let (mut first, mut buf) = (true, Vec::new());
    let mut take = |obu: Obu<'_>| {
        if found != Begins::More {
            return true;
        }
        plain(obu, &mut buf);
        if obu.escaped && obu.whole {
            // Zeros at its end went to the start code: a size of zero, as delimiters have.
            buf.push(0);
        }
        let mut b = Bits::new(&buf);
        let Some((kind, layers, size)) = obu_header(&mut b) else {
            if obu.whole {
                found = Begins::Other;
            }
            return false;
        };
        // Bits that are reserved are zero (§5.3.2).
        if buf.first().is_some_and(|h| h & 1 == 1) || layers & 7 != 0 {
            found = Begins::Other;
            return true;
        }
        let bits = size.map_or(buf.len() * 8, |s| b.at().saturating_add(s.saturating_mul(8)));
        match kind {
            TEMPORAL_DELIMITER if first && size.is_none_or(|s| s == 0) => {}
            SEQUENCE_HEADER if known.is_none() && !obu.whole => return false,
            SEQUENCE_HEADER if known.is_none() => {
                known = is_sequence(&mut b, bits);
                if known.is_none() {
                    found = Begins::Other;
                }
            }
            METADATA | PADDING if known.is_some() => {}
            FRAME_HEADER | FRAME => match known.as_ref().map(|s| frame(&mut b, s, layers)) {
                None => found = Begins::Unit,
                Some(Some(Frame::Coded { key: true, shown: true, .. })) => found = Begins::Av1,
                Some(None) if !obu.whole => return false,
                Some(_) => found = Begins::Other,
            },
            _ => found = Begins::Other,
        }
        first = false;
        true
    };
    let mut units = Units::default();
    units.push(bytes, &mut take);
    if whole {
        units.end(&mut take);
    }
    match found {
        Begins::More if whole => Begins::Other,
        found => found,
    }
}
