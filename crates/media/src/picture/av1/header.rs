//! Headers of AV1: open bitstream units, sequences, and frames up to the slots that they refer to (§5.3, §5.5, §5.9).

use super::SLOTS;
use crate::picture::bits::Bits;

/// Value of `seq_force_screen_content_tools` and `seq_force_integer_mv` that leaves it to each frame.
const SELECT: u32 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    profile: u32,
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
pub(super) enum Frame {
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

/// §5.3: kind, layers as they are coded, and size where there is one.
pub(super) fn obu_header(b: &mut Bits<'_>) -> Option<(u32, u32, Option<usize>)> {
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
pub(super) fn sequence(b: &mut Bits<'_>) -> Option<Sequence> {
    let mut s = Sequence { profile: b.u(3)?, ..Sequence::default() };
    b.flag()?;
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

/// The whole of a sequence header, to its end: nothing but one looks like this. Headers of still pictures do not count.
pub(super) fn is_sequence(b: &mut Bits<'_>, bits: usize) -> Option<Sequence> {
    let s = sequence(b)?;
    if s.profile > 2 || s.reduced {
        return None;
    }
    b.u(3)?;
    pass_colours(b, s.profile)?;
    b.flag()?;
    // A one, and zeros to the end (§5.3.4).
    let trailing = b.flag()?;
    while b.at() < bits {
        if b.flag()? {
            return None;
        }
    }
    (trailing && b.at() == bits).then_some(s)
}

/// §5.5.2.
fn pass_colours(b: &mut Bits<'_>, profile: u32) -> Option<()> {
    let high = b.flag()?;
    let twelve = profile == 2 && high && b.flag()?;
    let grey = profile != 1 && b.flag()?;
    let described = if b.flag()? { (b.u(8)?, b.u(8)?, b.u(8)?) } else { (2, 2, 2) };
    if grey {
        b.flag()?;
        return Some(());
    }
    // BT.709 primaries, the transfer of sRGB, no matrix: red, green and blue in full resolution.
    if described != (1, 13, 0) {
        b.flag()?;
        let halved = match profile {
            0 => true,
            1 => false,
            _ => twelve && b.flag()? && b.flag()?,
        };
        if halved {
            b.u(2)?;
        }
    }
    b.flag()?;
    Some(())
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
pub(super) fn frame(b: &mut Bits<'_>, s: &Sequence, layers: u32) -> Option<Frame> {
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
