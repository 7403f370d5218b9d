//! AV1: sequence and frame headers up to the slots that a frame refers to (AV1 specification §5.5, §5.9).
//!
//! A temporal unit may hold several frames, of which at most one is shown. What it needs is what any of its frames
//! refers to outside of it, and its class is that of its most important frame.

use super::bits::{Bits, start_codes, unescape};
use super::{Needs, Picture};
use crate::Class;

/// Slots of the decoder for reference frames (§3).
const SLOTS: usize = 8;

/// Bytes of a header that are looked at.
const HEADER_MAX: usize = 1024;

/// Value of `seq_force_screen_content_tools` and `seq_force_integer_mv` that leaves it to each frame.
const SELECT: u32 = 2;

#[derive(Clone, Debug, Default)]
struct Sequence {
    reduced: bool,
    /// Bits of a frame's time, where frames carry one.
    time_bits: Option<u32>,
    /// Bits of a buffer removal time, and of each operating point with one what it covers.
    removal_bits: Option<u32>,
    points: Vec<u32>,
    /// Bits of a frame's number and of a difference between two.
    id_bits: Option<(u32, u32)>,
    order_bits: u32,
    screen_tools: u32,
    integer_mv: u32,
}

/// What a frame header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Frame {
    /// A frame of a slot is shown.
    Shown { slot: usize },
    Coded {
        key: bool,
        intra: bool,
        shown: bool,
        refresh: u8,
        /// Slots it refers to, as bits; all where the header leaves it to a computation (§7.8).
        refers: u8,
    },
}

/// A slot: the access unit its frame came in, and whether it is a key frame.
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
    last_reference: Option<u64>,
}

/// Kinds of open bitstream units (§6.2.2).
const SEQUENCE_HEADER: u32 = 1;
const FRAME_HEADER: u32 = 3;
const FRAME: u32 = 6;

impl Av1 {
    /// Takes in one temporal unit.
    pub(super) fn unit(&mut self, number: u64, unit: &[u8]) -> Picture {
        let mut picture = Picture::default();
        let mut kept = false;
        let mut followed = true;
        each_obu(unit, |obu, escaped| {
            let Some((kind, layers, frame)) = self.obu(obu, escaped) else { return };
            if kind == SEQUENCE_HEADER {
                return;
            }
            picture.layer = (layers >> 5) as u8;
            let Some(frame) = frame else {
                followed = false;
                return;
            };
            let class = self.frame(number, frame, &mut picture.needs, &mut kept);
            picture.class = Some(picture.class.map_or(class, |c| c.min(class)));
        });
        if !followed {
            picture.needs.unknown();
            kept = true;
        }
        if !picture.needs.known {
            picture.needs.chain(self.last_reference);
        }
        if kept {
            self.last_reference = Some(number);
        }
        picture.finish()
    }

    /// The class of a temporal unit of which only the beginning is here: that of its first frame, since a frame that
    /// is not shown comes first and is one that others refer to.
    pub(crate) fn class(&mut self, unit: &[u8]) -> Option<Class> {
        let mut class = None;
        each_obu(unit, |obu, escaped| {
            if class.is_some() {
                return;
            }
            let Some((_, _, Some(frame))) = self.obu(obu, escaped) else { return };
            // Whether a slot has a key frame that is still to be shown has to be known; what is needed does not.
            class = Some(match self.frame(0, frame, &mut Needs::default(), &mut false) {
                Class::B if matches!(frame, Frame::Coded { shown: false, .. }) => Class::P,
                class => class,
            });
        });
        class
    }

    /// Kind, layers and frame of a unit; none where it is of no interest.
    fn obu(&mut self, obu: &[u8], escaped: bool) -> Option<(u32, u32, Option<Frame>)> {
        let mut buf = std::mem::take(&mut self.buf);
        let bytes = obu.get(..obu.len().min(HEADER_MAX)).unwrap_or(obu);
        if escaped {
            unescape(bytes, &mut buf);
        } else {
            buf.clear();
            buf.extend_from_slice(bytes);
        }
        let mut b = Bits::new(&buf);
        let found = (|| {
            let (kind, layers, size) = obu_header(&mut b)?;
            match kind {
                SEQUENCE_HEADER => {
                    if let Some(s) = sequence(&mut b) {
                        self.sequence = Some(s);
                    }
                    Some((kind, layers, None))
                }
                FRAME_HEADER | FRAME if size != Some(0) => {
                    Some((kind, layers, self.sequence.as_ref().and_then(|s| frame(&mut b, s, layers))))
                }
                _ => None,
            }
        })();
        self.buf = buf;
        found
    }

    /// What a frame needs goes to `needs`; its slots are refreshed (§7.20, §7.21). Gives its class.
    fn frame(&mut self, number: u64, frame: Frame, needs: &mut Needs, kept: &mut bool) -> Class {
        let mut refer = |slot: Option<Slot>| match slot {
            Some(slot) => needs.add(slot.unit, number),
            None => needs.unknown(),
        };
        match frame {
            Frame::Shown { slot } => {
                let shown = self.slots.get(slot).copied().flatten();
                refer(shown);
                match shown {
                    // A key frame that is shown starts the stream anew.
                    Some(Slot { key: true, .. }) => {
                        self.slots = [shown; SLOTS];
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
                *kept |= refresh != 0;
                if key || intra {
                    Class::I
                } else if refresh == 0 {
                    Class::B
                } else {
                    Class::P
                }
            }
        }
    }
}

/// Calls `take` with each open bitstream unit, and whether it has emulation prevention bytes: behind start codes, as the
/// mapping to transport streams has them, or each with its size, as files have them (§5.2).
fn each_obu<'a>(unit: &'a [u8], mut take: impl FnMut(&'a [u8], bool)) {
    if unit.starts_with(&[0, 0, 1]) || unit.starts_with(&[0, 0, 0, 1]) {
        return start_codes(unit, |obu| take(obu, true));
    }
    let mut rest = unit;
    while !rest.is_empty() {
        let mut b = Bits::new(rest);
        // Without a size it is the last one.
        let Some((_, _, size)) = obu_header(&mut b) else { return };
        let header = b.at() / 8;
        let end = size.map_or(rest.len(), |s| header.saturating_add(s).min(rest.len()));
        let (obu, behind) = rest.split_at(end);
        take(obu, false);
        rest = behind;
    }
}

/// §5.3: kind, layers as they are coded, and size where there is one.
fn obu_header(b: &mut Bits<'_>) -> Option<(u32, u32, Option<usize>)> {
    if b.flag()? {
        return None;
    }
    let kind = b.u(4)?;
    let (extension, has_size) = (b.flag()?, b.flag()?);
    b.flag()?;
    let layers = if extension { b.u(8)? } else { 0 };
    if !has_size {
        return Some((kind, layers, None));
    }
    let mut size = 0u64;
    for i in 0..8 {
        let byte = b.u(8)?;
        size |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((kind, layers, usize::try_from(size).ok()));
        }
    }
    None
}

/// §5.5.1 up to the bits of a frame's order.
fn sequence(b: &mut Bits<'_>) -> Option<Sequence> {
    let mut s = Sequence::default();
    b.u(4)?;
    s.reduced = b.flag()?;
    if s.reduced {
        b.u(5)?;
    } else {
        operating_points(b, &mut s)?;
    }
    let (width, height) = (b.u(4)? + 1, b.u(4)? + 1);
    b.u(width)?;
    b.u(height)?;
    if !s.reduced && b.flag()? {
        let difference = b.u(4)? + 2;
        s.id_bits = Some((b.u(3)? + difference + 1, difference));
    }
    b.u(3)?;
    (s.screen_tools, s.integer_mv) = (SELECT, SELECT);
    if s.reduced {
        return Some(s);
    }
    b.u(4)?;
    let ordered = b.flag()?;
    if ordered {
        b.u(2)?;
    }
    if !b.flag()? {
        s.screen_tools = b.u(1)?;
    }
    if s.screen_tools > 0 && !b.flag()? {
        s.integer_mv = b.u(1)?;
    }
    if ordered {
        s.order_bits = b.u(3)? + 1;
    }
    Some(s)
}

/// §5.5.1: timing and operating points.
fn operating_points(b: &mut Bits<'_>, s: &mut Sequence) -> Option<()> {
    let mut delay_bits = None;
    if b.flag()? {
        b.skip(64)?;
        let equal = b.flag()?;
        if equal {
            b.ue()?;
        }
        if b.flag()? {
            delay_bits = Some(b.u(5)? + 1);
            b.u(32)?;
            s.removal_bits = Some(b.u(5)? + 1);
            let time_bits = b.u(5)? + 1;
            s.time_bits = (!equal).then_some(time_bits);
        }
    }
    let initial_delay = b.flag()?;
    for _ in 0..=b.u(5)? {
        let covers = b.u(12)?;
        if b.u(5)? > 7 {
            b.flag()?;
        }
        if let Some(bits) = delay_bits
            && b.flag()?
        {
            b.u(bits)?;
            b.u(bits)?;
            b.flag()?;
            s.points.push(covers);
        }
        if initial_delay && b.flag()? {
            b.u(4)?;
        }
    }
    Some(())
}

/// §5.9.2 up to the references.
fn frame(b: &mut Bits<'_>, s: &Sequence, layers: u32) -> Option<Frame> {
    let (mut kind, mut shown, mut resilient) = (0, true, true);
    if !s.reduced {
        if b.flag()? {
            return Some(Frame::Shown { slot: b.u(3)? as usize });
        }
        kind = b.u(2)?;
        shown = b.flag()?;
        if shown && let Some(bits) = s.time_bits {
            b.u(bits)?;
        }
        if !shown {
            b.flag()?;
        }
        resilient = kind == 3 || kind == 0 && shown || b.flag()?;
    }
    let (key, only_intra, switch) = (kind == 0, kind == 2, kind == 3);
    b.flag()?;
    let screen_tools = if s.screen_tools == SELECT { b.u(1)? } else { s.screen_tools };
    if screen_tools > 0 && s.integer_mv == SELECT {
        b.flag()?;
    }
    if let Some((bits, _)) = s.id_bits {
        b.u(bits)?;
    }
    if !switch && !s.reduced {
        b.flag()?;
    }
    b.u(s.order_bits)?;
    if !(key || only_intra || resilient) {
        b.u(3)?;
    }
    if let Some(bits) = s.removal_bits
        && b.flag()?
    {
        let (temporal, spatial) = (layers >> 5 & 7, layers >> 3 & 3);
        for covers in &s.points {
            if *covers == 0 || covers >> temporal & 1 == 1 && covers >> (spatial + 8) & 1 == 1 {
                b.u(bits)?;
            }
        }
    }
    let refresh = if switch || key && shown { 0xff } else { b.u(8)? as u8 };
    let mut coded = Frame::Coded { key, intra: only_intra, shown, refresh, refers: 0 };
    if key || only_intra {
        return Some(coded);
    }
    if resilient && s.order_bits > 0 {
        b.skip(SLOTS * s.order_bits as usize)?;
    }
    let computed = s.order_bits > 0 && b.flag()?;
    let mut named = 0u8;
    if computed {
        named = 0xff;
    } else {
        for _ in 0..7 {
            named |= 1 << b.u(3)?;
            if let Some((_, bits)) = s.id_bits {
                b.u(bits)?;
            }
        }
    }
    if let Frame::Coded { refers, .. } = &mut coded {
        *refers = named;
    }
    Some(coded)
}
