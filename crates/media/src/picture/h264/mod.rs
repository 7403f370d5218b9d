//! H.264: parameter sets and slice headers as far as they say which pictures are referred to, and the buffer of
//! reference pictures (§7.3, §8.2.1, §8.2.4, §8.2.5).
//!
//! A picture needs what its reference lists name: which of them its blocks really use shows only in
//! the coded picture itself. Streams of fields, slice groups and picture order count type 1 with B slices are
//! not followed.
//!
//! A stream that begins without an IDR picture has a buffer of which a part is not known. Until that part has been
//! pushed out, a list that is longer than what is known has an entry from in front of the beginning.

mod syntax;

use super::bits::{Bits, unescape};
use super::{Anchors, Needs, Picture};
use crate::Class;
use syntax::{Change, Kind, Mark, Order, Sets, Slice, is_recovery_point, start_of};

/// Bytes of a NAL unit that are looked at: parameter sets and slice headers are shorter.
const HEADER_MAX: usize = 1024;

/// Frames that a buffer may hold (§A.3.1).
const FRAMES_MAX: u32 = 16;

/// A frame in the buffer.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Number of the access unit; none for a frame that was never sent (§8.2.5.2).
    unit: Option<u64>,
    frame_num: u32,
    order: i64,
    long: Option<u32>,
}

/// Follows the pictures of a stream.
#[derive(Debug)]
pub(super) struct H264 {
    sets: Sets,
    buf: Vec<u8>,
    held: Vec<Held>,
    /// frame_num of the last reference frame, and its order of output in two parts.
    last_num: u32,
    last_order: (i64, u32),
    /// For order type 2: frame_num of the last frame, and what its turns add.
    turn: (u32, i64),
    /// References were lost track of until the next picture without any; of fields, until the next IDR picture.
    lost: bool,
    fields: bool,
    /// There may be frames in the buffer that are not known.
    partial: bool,
    /// Nothing that is shown behind the frame with this order of output refers to a frame that is not known.
    recovered: Option<i64>,
    begun: bool,
    anchors: Anchors,
}

/// What the slices of an access unit say beside what is needed.
#[derive(Default)]
struct Seen {
    /// The first slice that could not be followed.
    unfollowed: Option<Kind>,
    /// Some slice may refer to two pictures.
    both: bool,
    idr: bool,
    recovery: bool,
}

impl H264 {
    pub(super) fn new() -> Self {
        H264 {
            sets: Sets::new(),
            buf: Vec::new(),
            held: Vec::new(),
            last_num: 0,
            last_order: (0, 0),
            turn: (0, 0),
            lost: false,
            fields: false,
            partial: true,
            recovered: None,
            begun: false,
            anchors: Anchors::default(),
        }
    }

    /// Takes in the NAL units of one access unit.
    pub(super) fn unit<'a>(&mut self, number: u64, nals: impl Iterator<Item = &'a [u8]>) -> Picture {
        let mut picture = Picture::default();
        let mut open: Option<(Slice, i64)> = None;
        let mut seen = Seen::default();
        for nal in nals {
            let Some(slice) = self.nal(nal, &mut picture, &mut seen) else { continue };
            if slice.first
                && let Some((head, order)) = open.take()
            {
                self.mark(number, &head, order);
            }
            let order = match &open {
                Some((_, order)) => *order,
                None => self.begin(&slice, seen.recovery),
            };
            let class = slice.class();
            picture.class = Some(picture.class.map_or(class, |c| c.max(class)));
            seen.both |= slice.kind == Kind::B;
            seen.idr |= slice.idr;
            self.add_needs(number, &slice, order, &mut picture.needs);
            if open.is_none() {
                open = Some((slice, order));
            }
        }
        let followed = open.is_some();
        let mut reference = picture.class.is_some_and(|class| class != Class::B);
        if let Some((head, order)) = open {
            reference = head.reference;
            self.mark(number, &head, order);
        } else if let Some(kind) = seen.unfollowed {
            // A slice without its parameter sets.
            if kind != Kind::I {
                picture.needs.unknown();
            }
            self.lost |= reference;
        }
        if !picture.needs.known {
            self.anchors.need(seen.both, number, &mut picture.needs);
        }
        if reference && seen.idr {
            self.anchors.put_first(number);
        } else if reference {
            self.anchors.put(number);
        }
        self.begun |= followed;
        picture.finish()
    }

    /// Takes in a parameter set, or gives the slice header. The class of a slice that cannot be followed is noted.
    fn nal(&mut self, nal: &[u8], picture: &mut Picture, seen: &mut Seen) -> Option<Slice> {
        let header = *nal.first()?;
        let mut buf = std::mem::take(&mut self.buf);
        unescape(nal.get(1..nal.len().min(HEADER_MAX))?, &mut buf);
        let mut bits = Bits::new(&buf);
        let mut slice = None;
        match header & 0x1f {
            1 | 5 | 2 => {
                slice = self.sets.slice(header, bits.clone());
                if slice.is_none()
                    && picture.class.is_none()
                    && let Some((class, kind)) = start_of(header, &mut bits)
                {
                    picture.class = Some(class);
                    seen.unfollowed = Some(kind);
                    seen.both |= kind == Kind::B;
                    seen.idr |= header & 0x1f == 5;
                }
            }
            6 => seen.recovery |= is_recovery_point(&buf),
            7 => self.sets.put_sps(&mut bits),
            8 => self.sets.put_pps(&mut bits),
            _ => {}
        }
        self.buf = buf;
        slice
    }

    /// A picture begins: gaps in frame_num are filled (§8.2.5.2), and its order of output is found (§8.2.1).
    fn begin(&mut self, s: &Slice, recovery: bool) -> i64 {
        let turns = 1u32 << s.sps.frame_num_bits;
        if !self.begun {
            // What was before it is not known, so it is no gap.
            self.last_num = s.frame_num;
        }
        if s.idr {
            self.held.clear();
            self.last_num = 0;
            self.last_order = (0, 0);
            self.turn = (0, 0);
            (self.lost, self.fields, self.partial) = (false, false, false);
        } else {
            if s.kind == Kind::I && self.lost && !self.fields {
                // What was lost track of may still be in the buffer of a decoder.
                (self.lost, self.partial) = (false, true);
                (self.recovered, self.last_num) = (None, s.frame_num);
                self.held.clear();
            }
            let mut next = (self.last_num + 1) % turns;
            if s.frame_num != self.last_num && s.frame_num != next {
                self.lost |= !s.sps.gaps && s.kind != Kind::I;
                // Only the last of them can still be in the buffer.
                let missing = s.frame_num.wrapping_sub(next) % turns;
                next = s.frame_num.wrapping_sub(missing.min(FRAMES_MAX)) % turns;
                while s.sps.gaps && next != s.frame_num {
                    self.slide(s, next);
                    self.held.push(Held { unit: None, frame_num: next, order: i64::MIN, long: None });
                    self.last_num = next;
                    next = (next + 1) % turns;
                }
            }
        }
        if s.field {
            (self.lost, self.fields) = (true, true);
        }
        let order = self.order(s, turns);
        if recovery && s.kind == Kind::I {
            self.recovered = Some(order);
        }
        order
    }

    /// Its order of output (§8.2.1).
    fn order(&mut self, s: &Slice, turns: u32) -> i64 {
        match s.sps.order {
            Order::Lsb { bits } => {
                let (cycle, half) = (1i64 << bits, 1i64 << (bits - 1));
                let (high, low) = self.last_order;
                let (lsb, low) = (i64::from(s.order_lsb), i64::from(low));
                let high = if lsb < low && low - lsb >= half {
                    high + cycle
                } else if lsb > low && lsb - low > half {
                    high - cycle
                } else {
                    high
                };
                if s.reference {
                    self.last_order = (high, s.order_lsb);
                }
                high + lsb + i64::from(s.order_bottom.min(0))
            }
            Order::Decoding | Order::Cycle { .. } => {
                let (last, mut add) = self.turn;
                if last > s.frame_num {
                    add += i64::from(turns);
                }
                self.turn = (s.frame_num, add);
                2 * (add + i64::from(s.frame_num)) - i64::from(!s.reference)
            }
        }
    }

    /// The reference lists of a slice (§8.2.4) go to what its picture needs.
    fn add_needs(&self, number: u64, s: &Slice, order: i64, needs: &mut Needs) {
        if s.kind == Kind::I {
            return;
        }
        let partial = self.partial && self.recovered.is_none_or(|from| order < from);
        if self.held.is_empty() && partial && !self.lost {
            needs.missing = true;
            return;
        }
        if self.lost || self.held.is_empty() || s.kind == Kind::B && matches!(s.sps.order, Order::Cycle { .. }) {
            return needs.unknown();
        }
        let turns = i64::from(1u32 << s.sps.frame_num_bits);
        let num = |h: &Held| {
            let n = i64::from(h.frame_num);
            if h.frame_num > s.frame_num { n - turns } else { n }
        };
        let mut short: Vec<&Held> = self.held.iter().filter(|h| h.long.is_none()).collect();
        let mut long: Vec<&Held> = self.held.iter().filter(|h| h.long.is_some()).collect();
        long.sort_by_key(|h| h.long);
        // What is not known is older than what is: it comes behind it, or, by order of output, in front of it.
        let not_known = |list: usize| std::iter::repeat_n(None, if partial { s.active[list] } else { 0 });
        let mut lists: [Vec<Option<&Held>>; 2] = [Vec::new(), Vec::new()];
        if s.kind == Kind::P {
            short.sort_by_key(|h| -num(h));
            lists[0].extend(short.iter().copied().map(Some).chain(not_known(0)).chain(long.iter().copied().map(Some)));
        } else {
            short.retain(|h| h.unit.is_some());
            short.sort_by_key(|h| h.order);
            let later = short.iter().position(|h| h.order > order).unwrap_or(short.len());
            let (before, after) = short.split_at(later);
            let (before, after) = (before.iter().rev().copied().map(Some), after.iter().copied().map(Some));
            let long = long.iter().copied().map(Some);
            lists[0].extend(before.clone().chain(not_known(0)).chain(after.clone()).chain(long.clone()));
            lists[1].extend(after.chain(before).chain(not_known(1)).chain(long));
            let unit = |h: &Option<&Held>| h.map(|h| h.unit);
            if !partial && lists[1].len() > 1 && lists[0].iter().map(unit).eq(lists[1].iter().map(unit)) {
                lists[1].swap(0, 1);
            }
        }
        for ((list, active), changes) in lists.iter_mut().zip(s.active).zip(&s.changes) {
            list.truncate(active);
            let now = (i64::from(s.frame_num), turns);
            change(list, active, changes, (&short, &long, partial), now, num);
            for h in list.iter().take(active) {
                match h.map(|h| h.unit) {
                    Some(Some(unit)) => needs.add(unit, number),
                    Some(None) => needs.unknown(),
                    None => needs.missing = true,
                }
            }
        }
    }

    /// Marks reference pictures once the picture is complete (§8.2.5).
    fn mark(&mut self, number: u64, s: &Slice, mut order: i64) {
        if !s.reference {
            return;
        }
        let turns = i64::from(1u32 << s.sps.frame_num_bits);
        let (mut long, mut frame_num) = (s.long.then_some(0), s.frame_num);
        if s.idr {
            self.held.clear();
        } else if s.marking.is_empty() {
            self.slide(s, s.frame_num);
        }
        let wrapped = |h: &Held| {
            let n = i64::from(h.frame_num);
            if h.frame_num > s.frame_num { n - turns } else { n }
        };
        for mark in &s.marking {
            match *mark {
                Mark::Forget(less) => {
                    let gone = i64::from(s.frame_num) - i64::from(less) - 1;
                    self.held.retain(|h| h.long.is_some() || wrapped(h) != gone);
                }
                Mark::ForgetLong(gone) => self.held.retain(|h| h.long != Some(gone)),
                Mark::Keep(less, to) => {
                    let kept = i64::from(s.frame_num) - i64::from(less) - 1;
                    self.held.retain(|h| h.long != Some(to));
                    if let Some(h) = self.held.iter_mut().find(|h| h.long.is_none() && wrapped(h) == kept) {
                        h.long = Some(to);
                    }
                }
                Mark::Limit(limit) => self.held.retain(|h| h.long.is_none_or(|l| l < limit)),
                Mark::ForgetAll => {
                    self.held.clear();
                    (frame_num, order) = (0, 0);
                    self.last_order = (0, 0);
                    self.turn = (0, 0);
                    self.partial = false;
                }
                Mark::KeepThis(to) => {
                    self.held.retain(|h| h.long != Some(to));
                    long = Some(to);
                }
            }
        }
        self.held.push(Held { unit: Some(number), frame_num, order, long });
        // A stream that breaks the rules does not make it grow.
        if self.held.len() > FRAMES_MAX as usize {
            self.held.remove(0);
        }
        // A buffer full of known frames has no other.
        self.partial &= self.held.len() < s.sps.frames.max(1) as usize;
        self.last_num = frame_num;
    }

    /// The oldest short-term frame makes room (§8.2.5.3).
    fn slide(&mut self, s: &Slice, frame_num: u32) {
        if self.held.len() < s.sps.frames.max(1) as usize {
            return;
        }
        let turns = i64::from(1u32 << s.sps.frame_num_bits);
        let wrapped = |h: &Held| {
            let n = i64::from(h.frame_num);
            if h.frame_num > frame_num { n - turns } else { n }
        };
        let oldest = self.held.iter().enumerate().filter(|(_, h)| h.long.is_none()).min_by_key(|(_, h)| wrapped(h));
        if let Some((i, _)) = oldest {
            self.held.remove(i);
        }
    }
}

/// Changes a list as its slice says (§8.2.4.3): what is named moves to the front, one place after the other. In a buffer
/// of which a part is not known, what is not found is in that part.
fn change<'a>(
    list: &mut Vec<Option<&'a Held>>,
    active: usize,
    changes: &[Change],
    (short, long, partial): (&[&'a Held], &[&'a Held], bool),
    (frame_num, turns): (i64, i64),
    num: impl Fn(&Held) -> i64,
) {
    let mut predicted = frame_num;
    for (at, change) in changes.iter().enumerate() {
        let named = match *change {
            Change::Less(by) => {
                predicted = (predicted - i64::from(by) - 1).rem_euclid(turns);
                None
            }
            Change::More(by) => {
                predicted = (predicted + i64::from(by) + 1).rem_euclid(turns);
                None
            }
            Change::Long(which) => Some(which),
        };
        let wanted = if predicted > frame_num { predicted - turns } else { predicted };
        let found = match named {
            Some(which) => long.iter().find(|h| h.long == Some(which)),
            None => short.iter().find(|h| num(h) == wanted),
        };
        let found = found.copied();
        if found.is_none() && !partial || at > list.len() {
            continue;
        }
        list.insert(at, found);
        if let Some(found) = found {
            let is_it = |h: &Option<&Held>| h.is_some_and(|h| std::ptr::eq(h, found));
            if let Some(again) = list.iter().skip(at + 1).position(is_it) {
                list.remove(at + 1 + again);
            }
        }
        list.truncate(active);
    }
}
