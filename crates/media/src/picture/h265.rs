//! H.265: parameter sets and slice headers up to the reference picture set (§7.3, §8.3.1, §8.3.2).
//!
//! The reference picture set of a slice names every picture that is kept, and marks those that the picture itself
//! may refer to. A picture needs the ones that are marked.

use super::bits::{Bits, unescape};
use super::{Anchors, Needs, Picture};
use crate::Class;

/// Bytes of a NAL unit that are looked at.
const HEADER_MAX: usize = 4096;

/// Pictures in a reference picture set (§A.4.2).
const SET_MAX: usize = 16;

/// Bytes of NAL unit header.
const NAL_HEADER: usize = 2;

/// One picture of a set: its distance in order of output, and whether the current picture may refer to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Distance {
    by: i32,
    used: bool,
}

/// A short-term reference picture set: first what is before in order of output, nearest first, then what is after.
type Set = Vec<Distance>;

#[derive(Clone, Debug)]
struct Sps {
    layers: u8,
    separate_planes: bool,
    order_bits: u32,
    sets: Vec<Set>,
    long_term: bool,
    long_lsbs: Vec<(u32, bool)>,
}

#[derive(Clone, Copy, Debug)]
struct Pps {
    sps: usize,
    output_flag: bool,
    extra_bits: u32,
}

/// What the first slice segment of a picture says.
#[derive(Debug)]
struct Slice {
    intra: bool,
    order_bits: u32,
    order_lsb: u32,
    short: Set,
    /// Low bits or the whole order of output, which of both, and whether the picture may refer to it.
    long: Vec<(i32, bool, bool)>,
}

/// Follows the pictures of a stream.
#[derive(Debug, Default)]
pub(crate) struct H265 {
    sps: Vec<Option<Sps>>,
    pps: Vec<Option<Pps>>,
    buf: Vec<u8>,
    /// Pictures that are kept: order of output and access unit.
    held: Vec<(i32, u64)>,
    /// Order of output of the last picture of layer 0 that others may refer to (§8.3.1).
    anchor: i32,
    begun: bool,
    /// There was a picture, followed or not.
    started: bool,
    /// References were lost track of until the next random access point.
    lost: bool,
    /// Nothing in front of the latest random access point can be referred to: leading pictures that do are skipped.
    entered: bool,
    anchors: Anchors,
}

/// What a NAL unit begins.
#[derive(Debug)]
enum Unit {
    Nothing,
    /// A picture, as far as its first slice shows it.
    Picture(Start),
}

/// The beginning of a picture.
#[derive(Debug)]
struct Start {
    /// None where what is here of the slice ends before it shows.
    class: Option<Class>,
    intra: bool,
    slice: Option<Slice>,
}

impl H265 {
    /// Takes in the NAL units of one access unit.
    pub(super) fn unit<'a>(&mut self, number: u64, nals: impl Iterator<Item = &'a [u8]>) -> Picture {
        let mut picture = Picture::default();
        let (mut first, mut only_intra) = (None, true);
        for nal in nals {
            let Unit::Picture(Start { class, intra, slice }) = self.nal(nal) else { continue };
            let class = class.unwrap_or(Class::P);
            picture.class = Some(picture.class.map_or(class, |c| c.max(class)));
            only_intra &= intra;
            // Further slices of a picture name the same set (§7.4.7.1).
            first = first.or(Some((header(nal), slice)));
        }
        let (Some(((kind, layer), slice)), Some(class)) = (first, picture.class) else { return picture };
        picture.layer = layer;
        let (leading, random_access) = (matches!(kind, 8 | 9), kind >= 16);
        if random_access {
            self.entered = !self.started || matches!(kind, 16..=18);
            self.lost = false;
        }
        self.started = true;
        match slice {
            Some(slice) => self.picture(number, kind, layer, &Slice { intra: only_intra, ..slice }, &mut picture.needs),
            None => {
                picture.needs.known = only_intra;
                self.lost |= class != Class::B;
            }
        }
        if !picture.needs.known {
            self.anchors.need(leading || class == Class::B, number, &mut picture.needs);
        }
        picture.needs.missing |= leading && self.entered;
        if matches!(kind, 16..=20) {
            self.anchors.put_first(number);
        } else if class != Class::B {
            self.anchors.put(number);
        }
        picture.finish()
    }

    /// The class that a NAL unit shows, of which `more` may follow; parameter sets are taken in.
    pub(crate) fn class(&mut self, nal: &[u8], more: bool) -> Option<Class> {
        match self.nal(nal) {
            Unit::Picture(Start { class, .. }) => class.or((!more).then_some(Class::P)),
            Unit::Nothing => None,
        }
    }

    fn nal(&mut self, nal: &[u8]) -> Unit {
        let Some(body) = nal.get(NAL_HEADER..nal.len().min(HEADER_MAX)).filter(|b| !b.is_empty()) else {
            return Unit::Nothing;
        };
        let (kind, layer) = header(nal);
        // Only the base layer is followed (annex F).
        if nal[0] & 1 != 0 || nal[1] >> 3 != 0 || !matches!(kind, 0..=9 | 16..=21 | 33 | 34) {
            return Unit::Nothing;
        }
        let mut buf = std::mem::take(&mut self.buf);
        unescape(body, &mut buf);
        let mut bits = Bits::new(&buf);
        let unit = match kind {
            33 => {
                if let Some((id, sps)) = sps(&mut bits) {
                    put(&mut self.sps, id, sps);
                }
                Unit::Nothing
            }
            34 => {
                if let Some((id, pps)) = pps(&mut bits) {
                    put(&mut self.pps, id, pps);
                }
                Unit::Nothing
            }
            // Further slice segments show nothing new.
            _ if bits.flag() != Some(true) => Unit::Nothing,
            _ => {
                let mut intra = (kind >= 16).then_some(true);
                let slice = self.slice(kind, &mut bits, &mut intra);
                let (class, intra) = (self.class_of(kind, layer, intra), intra == Some(true));
                Unit::Picture(Start { class, intra, slice })
            }
        };
        self.buf = buf;
        unit
    }

    /// Pictures whose type has an even number are not referred to in their own temporal layer (§7.4.2.2): what is in a
    /// lower layer than the highest may still be by the layers above.
    fn class_of(&self, kind: u8, layer: u8, intra: Option<bool>) -> Option<Class> {
        let highest = self.sps.iter().flatten().map(|s| s.layers).max().unwrap_or(0);
        match kind {
            16..=23 => Some(Class::I),
            _ if kind.is_multiple_of(2) && layer + 1 >= highest => Some(Class::B),
            _ => intra.map(|intra| if intra { Class::I } else { Class::P }),
        }
    }

    /// §7.3.6.1 behind its first flag: the slice where it can be read, and before that whether it is an I slice.
    fn slice(&self, kind: u8, b: &mut Bits<'_>, intra: &mut Option<bool>) -> Option<Slice> {
        if kind >= 16 {
            b.flag()?;
        }
        let id = b.ue()? as usize;
        // Without its parameter set more of the slice shows nothing more.
        *intra = intra.or(Some(false));
        let pps = (*self.pps.get(id)?)?;
        *intra = (kind >= 16).then_some(true);
        b.u(pps.extra_bits)?;
        let only_intra = b.ue_to(2)? == 2;
        *intra = Some(only_intra || kind >= 16);
        let sps = self.sps.get(pps.sps)?.as_ref()?;
        let mut slice =
            Slice { intra: only_intra, order_bits: sps.order_bits, order_lsb: 0, short: Set::new(), long: Vec::new() };
        if pps.output_flag {
            b.flag()?;
        }
        if sps.separate_planes {
            b.u(2)?;
        }
        if matches!(kind, 19 | 20) {
            return Some(slice);
        }
        slice.order_lsb = b.u(sps.order_bits)?;
        slice.short = if b.flag()? {
            let which = b.u(bits_for(sps.sets.len()))?;
            sps.sets.get(which as usize)?.clone()
        } else {
            read_set(b, &sps.sets, true)?
        };
        if sps.long_term {
            let from_sps = if sps.long_lsbs.is_empty() { 0 } else { b.ue_to(32)? };
            let own = b.ue_to(32)?;
            let mut turns = 0;
            for i in 0..from_sps + own {
                let (lsb, used) = if i < from_sps {
                    *sps.long_lsbs.get(b.u(bits_for(sps.long_lsbs.len()))? as usize)?
                } else {
                    (b.u(sps.order_bits)?, b.flag()?)
                };
                // Turns of the low bits add up from one to the next (equation 7-52).
                if i == from_sps {
                    turns = 0;
                }
                slice.long.push(if b.flag()? {
                    turns += b.ue_to(1 << 20)? as i32;
                    ((lsb as i32).wrapping_sub(turns.wrapping_shl(sps.order_bits)), true, used)
                } else {
                    (lsb as i32, false, used)
                });
            }
        }
        Some(slice)
    }

    /// Finds the order of output of a picture and what it refers to, and keeps what its set names.
    fn picture(&mut self, number: u64, kind: u8, layer: u8, s: &Slice, needs: &mut Needs) {
        let (cycle, half) = (1i32 << s.order_bits, 1i32 << (s.order_bits - 1));
        let lsb = s.order_lsb as i32;
        let anew = matches!(kind, 16..=20) || !self.begun;
        let (last_low, last_high) = (self.anchor & (cycle - 1), self.anchor & !(cycle - 1));
        let high = if anew && kind >= 16 {
            0
        } else if lsb < last_low && last_low - lsb >= half {
            last_high.wrapping_add(cycle)
        } else if lsb > last_low && lsb - last_low > half {
            last_high.wrapping_sub(cycle)
        } else {
            last_high
        };
        let order = high.wrapping_add(lsb);
        self.begun = true;
        if layer == 0 && !matches!(kind, 6..=9) && (kind % 2 == 1 || kind >= 16) {
            self.anchor = order;
        }
        let mut kept = Vec::with_capacity(SET_MAX + 1);
        let mut name = |found: Option<&(i32, u64)>, used: bool| match found {
            Some(held) => {
                if used && !s.intra {
                    needs.add(held.1, number);
                }
                if !kept.contains(held) {
                    kept.push(*held);
                }
            }
            None if s.intra || !used => {}
            None if self.lost => needs.unknown(),
            // A set names exactly what there is.
            None => needs.missing = true,
        };
        if matches!(kind, 19 | 20) {
            self.held.clear();
        }
        for d in &s.short {
            let wanted = order.wrapping_add(d.by);
            name(self.held.iter().find(|h| h.0 == wanted), d.used);
        }
        for (value, whole, used) in &s.long {
            let wanted = if *whole { order.wrapping_sub(lsb).wrapping_add(*value) } else { *value };
            let found = |h: &&(i32, u64)| if *whole { h.0 == wanted } else { h.0 & (cycle - 1) == wanted };
            name(self.held.iter().find(found), *used);
        }
        // Pictures that may not be decoded at all are random access points' business: IRAP pictures need nothing.
        if kind >= 16 {
            *needs = Needs::default();
        }
        kept.push((order, number));
        self.held = kept;
    }
}

fn put<T: Clone>(sets: &mut Vec<Option<T>>, id: usize, set: T) {
    if sets.len() <= id {
        sets.resize(id + 1, None);
    }
    if let Some(to) = sets.get_mut(id) {
        *to = Some(set);
    }
}

/// Type and temporal layer (§7.3.1.2).
fn header(nal: &[u8]) -> (u8, u8) {
    match nal {
        [a, b, ..] => (a >> 1 & 0x3f, (b & 7).saturating_sub(1)),
        _ => (63, 0),
    }
}

/// Bits of a number below `count`.
fn bits_for(count: usize) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

/// §7.3.2.2.1 up to the long-term pictures.
fn sps(b: &mut Bits<'_>) -> Option<(usize, Sps)> {
    b.u(4)?;
    let layers = b.u(3)?.min(6);
    b.flag()?;
    pass_profile(b, layers)?;
    let id = b.ue_to(15)? as usize;
    let mut separate_planes = false;
    if b.ue_to(3)? == 3 {
        separate_planes = b.flag()?;
    }
    b.ue()?;
    b.ue()?;
    if b.flag()? {
        for _ in 0..4 {
            b.ue()?;
        }
    }
    b.ue()?;
    b.ue()?;
    let order_bits = b.ue_to(12)? + 4;
    let all = b.flag()?;
    for _ in if all { 0 } else { layers }..=layers {
        b.ue()?;
        b.ue()?;
        b.ue()?;
    }
    for _ in 0..6 {
        b.ue()?;
    }
    if b.flag()? && b.flag()? {
        pass_scaling_lists(b)?;
    }
    b.u(2)?;
    if b.flag()? {
        b.u(8)?;
        b.ue()?;
        b.ue()?;
        b.flag()?;
    }
    let count = b.ue_to(64)?;
    let mut sets = Vec::new();
    for _ in 0..count {
        let set = read_set(b, &sets, false)?;
        sets.push(set);
    }
    let long_term = b.flag()?;
    let mut long_lsbs = Vec::new();
    if long_term {
        for _ in 0..b.ue_to(32)? {
            long_lsbs.push((b.u(order_bits)?, b.flag()?));
        }
    }
    Some((id, Sps { layers: layers as u8 + 1, separate_planes, order_bits, sets, long_term, long_lsbs }))
}

/// §7.3.3 with its profile.
fn pass_profile(b: &mut Bits<'_>, layers: u32) -> Option<()> {
    b.skip(96)?;
    let mut present = Vec::new();
    for _ in 0..layers {
        present.push((b.flag()?, b.flag()?));
    }
    if layers > 0 {
        b.skip(2 * (8 - layers as usize))?;
    }
    for (profile, level) in present {
        b.skip(if profile { 88 } else { 0 } + if level { 8 } else { 0 })?;
    }
    Some(())
}

/// §7.3.4.
fn pass_scaling_lists(b: &mut Bits<'_>) -> Option<()> {
    for size in 0..4u32 {
        for _ in (0..6).step_by(if size == 3 { 3 } else { 1 }) {
            if !b.flag()? {
                b.ue()?;
                continue;
            }
            if size > 1 {
                b.se()?;
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                b.se()?;
            }
        }
    }
    Some(())
}

/// §7.3.2.3.1 as far as slice headers depend on it.
fn pps(b: &mut Bits<'_>) -> Option<(usize, Pps)> {
    let id = b.ue_to(63)? as usize;
    let sps = b.ue_to(15)? as usize;
    b.flag()?;
    let output_flag = b.flag()?;
    Some((id, Pps { sps, output_flag, extra_bits: b.u(3)? }))
}

/// §7.3.7 and equations 7-61 to 7-64: a set by itself, or by how it differs from one before.
fn read_set(b: &mut Bits<'_>, sets: &[Set], in_slice: bool) -> Option<Set> {
    if !sets.is_empty() && b.flag()? {
        let back = if in_slice { b.ue_to(63)? as usize + 1 } else { 1 };
        let from = sets.get(sets.len().checked_sub(back)?)?;
        let negative = b.flag()?;
        let by = b.ue_to(1 << 15)? as i32 + 1;
        let by = if negative { -by } else { by };
        let mut set = Set::new();
        // The pictures of the other set, and that set's own picture as the last.
        for d in from.iter().map(|d| d.by).chain([0]) {
            let used = b.flag()?;
            if used || b.flag()? {
                set.push(Distance { by: d + by, used });
            }
        }
        set.retain(|d| d.by != 0);
        set.sort_by_key(|d| if d.by < 0 { (0, -d.by) } else { (1, d.by) });
        return (set.len() <= SET_MAX).then_some(set);
    }
    let (before, after) = (b.ue_to(SET_MAX as u32)?, b.ue_to(SET_MAX as u32)?);
    let mut set = Set::new();
    for (count, sign) in [(before, -1), (after, 1)] {
        let mut by = 0;
        for _ in 0..count {
            by += sign * (b.ue_to(1 << 15)? as i32 + 1);
            set.push(Distance { by, used: b.flag()? });
        }
    }
    (set.len() <= SET_MAX).then_some(set)
}
