//! Parameter sets and slice headers (§7.3).

use crate::Class;
use crate::picture::bits::Bits;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sps {
    pub(super) separate_planes: bool,
    pub(super) colour: bool,
    pub(super) frame_num_bits: u32,
    pub(super) order: Order,
    pub(super) frames: u32,
    pub(super) gaps: bool,
    pub(super) only_frames: bool,
}

/// How the order of output is coded (§8.2.1).
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Lsb { bits: u32 },
    Cycle { always_zero: bool },
    Decoding,
}

#[derive(Clone, Copy, Debug)]
struct Pps {
    sps: usize,
    bottom_order: bool,
    active: [u32; 2],
    weighted: bool,
    weighted_b: bool,
    redundant: bool,
}

/// What a slice header says.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) reference: bool,
    pub(super) idr: bool,
    pub(super) first: bool,
    pub(super) kind: Kind,
    pub(super) sps: Sps,
    pub(super) frame_num: u32,
    pub(super) field: bool,
    pub(super) order_lsb: u32,
    pub(super) order_bottom: i32,
    pub(super) active: [usize; 2],
    pub(super) changes: [Vec<Change>; 2],
    pub(super) marking: Vec<Mark>,
    /// Marked as a long-term reference although it is an IDR picture.
    pub(super) long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    P,
    B,
    I,
}

/// One step of changing a reference list (§8.2.4.3).
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Less(u32),
    More(u32),
    Long(u32),
}

/// One step of marking (§8.2.5.4).
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    Forget(u32),
    ForgetLong(u32),
    Keep(u32, u32),
    Limit(u32),
    ForgetAll,
    KeepThis(u32),
}

/// The parameter sets of a stream.
#[derive(Debug)]
pub(super) struct Sets {
    sps: [Option<Sps>; 32],
    pps: Vec<Option<Pps>>,
}

impl Sets {
    pub(super) fn new() -> Self {
        Sets { sps: [None; 32], pps: vec![None; 256] }
    }

    /// Takes in a sequence parameter set.
    pub(super) fn put_sps(&mut self, b: &mut Bits<'_>) {
        if let Some((id, sps)) = sps(b)
            && let Some(to) = self.sps.get_mut(id)
        {
            *to = Some(sps);
        }
    }

    /// Takes in a picture parameter set.
    pub(super) fn put_pps(&mut self, b: &mut Bits<'_>) {
        if let Some((id, pps)) = pps(b)
            && let Some(to) = self.pps.get_mut(id)
        {
            *to = pps;
        }
    }

    /// §7.3.3 up to the marking of reference pictures.
    pub(super) fn slice(&self, header: u8, mut b: Bits<'_>) -> Option<Slice> {
        let (reference, idr) = (header & 0x60 != 0, header & 0x1f == 5);
        let first = b.ue()? == 0;
        let kind = kind(b.ue()?)?;
        let pps = (*self.pps.get(b.ue()? as usize)?)?;
        let sps = (*self.sps.get(pps.sps)?)?;
        if sps.separate_planes {
            b.u(2)?;
        }
        let frame_num = b.u(sps.frame_num_bits)?;
        let mut field = false;
        if !sps.only_frames {
            field = b.flag()?;
            if field {
                b.flag()?;
            }
        }
        if idr {
            b.ue()?;
        }
        let (mut order_lsb, mut order_bottom) = (0, 0);
        match sps.order {
            Order::Lsb { bits } => {
                order_lsb = b.u(bits)?;
                if pps.bottom_order && !field {
                    order_bottom = b.se()?;
                }
            }
            Order::Cycle { always_zero: false } => {
                b.se()?;
                if pps.bottom_order && !field {
                    b.se()?;
                }
            }
            _ => {}
        }
        if pps.redundant {
            b.ue()?;
        }
        if kind == Kind::B {
            b.flag()?;
        }
        let mut active = [0; 2];
        let mut changes = [Vec::new(), Vec::new()];
        let lists = match kind {
            Kind::I => 0,
            Kind::P => 1,
            Kind::B => 2,
        };
        if lists > 0 {
            let changed = b.flag()?;
            for (list, count) in active.iter_mut().enumerate().take(lists) {
                *count = if changed { b.ue_to(31)? + 1 } else { *pps.active.get(list)? } as usize;
            }
            for list in changes.iter_mut().take(lists) {
                *list = read_changes(&mut b)?;
            }
            if pps.weighted && kind == Kind::P || pps.weighted_b && kind == Kind::B {
                pass_weights(&mut b, &sps, active.get(..lists)?)?;
            }
        }
        let (mut marking, mut long) = (Vec::new(), false);
        if reference && idr {
            b.flag()?;
            long = b.flag()?;
        } else if reference && b.flag()? {
            marking = read_marking(&mut b)?;
        }
        Some(Slice {
            reference,
            idr,
            first,
            kind,
            sps,
            frame_num,
            field,
            order_lsb,
            order_bottom,
            active,
            changes,
            marking,
            long,
        })
    }
}

impl Slice {
    pub(super) fn class(&self) -> Class {
        match self.kind {
            _ if self.idr => Class::I,
            _ if !self.reference => Class::B,
            Kind::I => Class::I,
            Kind::B | Kind::P => Class::P,
        }
    }
}

/// Class and kind of a slice by its first fields alone.
pub(super) fn start_of(header: u8, b: &mut Bits<'_>) -> Option<(Class, Kind)> {
    if header & 0x1f == 5 {
        return Some((Class::I, Kind::I));
    }
    b.ue()?;
    let kind = kind(b.ue()?)?;
    Some(match kind {
        _ if header & 0x60 == 0 => (Class::B, kind),
        Kind::I => (Class::I, kind),
        Kind::B | Kind::P => (Class::P, kind),
    })
}

/// Does supplemental information say that decoding can begin here (§D.1.8)? All pictures that are shown from this one on
/// are then as they were coded.
pub(super) fn is_recovery_point(messages: &[u8]) -> bool {
    /// A number as bytes that add up, of which all but the last are 255.
    fn number(rest: &mut &[u8]) -> Option<usize> {
        let mut sum = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            *rest = behind;
            sum += usize::from(*byte);
            if *byte != 0xff {
                return Some(sum);
            }
        }
    }
    let mut rest = messages;
    while let (Some(kind), Some(length)) = (number(&mut rest), number(&mut rest)) {
        let Some((message, behind)) = rest.split_at_checked(length) else { return false };
        if kind == 6 {
            return Bits::new(message).ue() == Some(0);
        }
        rest = behind;
    }
    false
}

/// Table 7-6; SP counts as P and SI as I.
fn kind(slice_type: u32) -> Option<Kind> {
    match slice_type {
        0 | 5 | 3 | 8 => Some(Kind::P),
        1 | 6 => Some(Kind::B),
        2 | 7 | 4 | 9 => Some(Kind::I),
        _ => None,
    }
}

/// §7.3.2.1.1 up to the frame size.
fn sps(b: &mut Bits<'_>) -> Option<(usize, Sps)> {
    let profile = b.u(8)?;
    b.u(16)?;
    let id = b.ue_to(31)? as usize;
    let (mut chroma, mut separate_planes) = (1, false);
    if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
        chroma = b.ue_to(3)?;
        if chroma == 3 {
            separate_planes = b.flag()?;
        }
        b.ue()?;
        b.ue()?;
        b.flag()?;
        if b.flag()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if b.flag()? {
                    pass_scaling_list(b, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    let frame_num_bits = b.ue_to(12)? + 4;
    let order = match b.ue()? {
        0 => Order::Lsb { bits: b.ue_to(12)? + 4 },
        1 => {
            let always_zero = b.flag()?;
            b.se()?;
            b.se()?;
            for _ in 0..b.ue_to(255)? {
                b.se()?;
            }
            Order::Cycle { always_zero }
        }
        2 => Order::Decoding,
        _ => return None,
    };
    let frames = b.ue_to(super::FRAMES_MAX)?;
    let gaps = b.flag()?;
    b.ue()?;
    b.ue()?;
    let only_frames = b.flag()?;
    let colour = chroma != 0 && !separate_planes;
    Some((id, Sps { separate_planes, colour, frame_num_bits, order, frames, gaps, only_frames }))
}

/// §7.3.2.1.1.1.
fn pass_scaling_list(b: &mut Bits<'_>, len: usize) -> Option<()> {
    let (mut last, mut next) = (8i32, 8i32);
    for _ in 0..len {
        if next != 0 {
            next = last.checked_add(b.se()?)?.rem_euclid(256);
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// §7.3.2.2; a set with slice groups is known not to be followed.
fn pps(b: &mut Bits<'_>) -> Option<(usize, Option<Pps>)> {
    let id = b.ue_to(255)? as usize;
    let sps = b.ue_to(31)? as usize;
    b.flag()?;
    let bottom_order = b.flag()?;
    if b.ue()? > 0 {
        return Some((id, None));
    }
    let active = [b.ue_to(31)? + 1, b.ue_to(31)? + 1];
    let weighted = b.flag()?;
    let weighted_b = b.u(2)? == 1;
    b.se()?;
    b.se()?;
    b.se()?;
    b.u(2)?;
    let redundant = b.flag()?;
    Some((id, Some(Pps { sps, bottom_order, active, weighted, weighted_b, redundant })))
}

/// §7.3.3.1.
fn read_changes(b: &mut Bits<'_>) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    if !b.flag()? {
        return Some(changes);
    }
    loop {
        changes.push(match b.ue()? {
            0 => Change::Less(b.ue()?),
            1 => Change::More(b.ue()?),
            2 => Change::Long(b.ue()?),
            3 => return Some(changes),
            _ => return None,
        });
        if changes.len() > 66 {
            return None;
        }
    }
}

/// §7.3.3.2.
fn pass_weights(b: &mut Bits<'_>, sps: &Sps, active: &[usize]) -> Option<()> {
    b.ue()?;
    if sps.colour {
        b.ue()?;
    }
    for count in active {
        for _ in 0..*count {
            if b.flag()? {
                b.se()?;
                b.se()?;
            }
            if sps.colour && b.flag()? {
                for _ in 0..4 {
                    b.se()?;
                }
            }
        }
    }
    Some(())
}

/// §7.3.3.3.
fn read_marking(b: &mut Bits<'_>) -> Option<Vec<Mark>> {
    let mut marks = Vec::new();
    loop {
        marks.push(match b.ue()? {
            0 => return Some(marks),
            1 => Mark::Forget(b.ue()?),
            2 => Mark::ForgetLong(b.ue()?),
            3 => Mark::Keep(b.ue()?, b.ue()?),
            4 => Mark::Limit(b.ue()?),
            5 => Mark::ForgetAll,
            6 => Mark::KeepThis(b.ue()?),
            _ => return None,
        });
        if marks.len() > 66 {
            return None;
        }
    }
}
