//! Takes a temporal unit apart as its bytes come: open bitstream units behind start codes, as the mapping to transport
//! streams has them, or each with its size, as files have them (§5.2).

use super::header::obu_header;
use crate::picture::bits::Bits;

/// Bytes of a unit that are kept: no header is longer.
const HEADER_MAX: usize = 1024;

/// Bytes of a unit's own header at most: two, and eight of its size.
const OBU_HEADER_MAX: usize = 10;

/// What separates the units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Form {
    #[default]
    Open,
    Sized,
    StartCodes,
    Broken,
}

/// What there is of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Obu<'a> {
    /// From its header on.
    pub(super) bytes: &'a [u8],
    /// There are emulation prevention bytes in it.
    pub(super) escaped: bool,
    /// No more of it will come.
    pub(super) whole: bool,
}

/// A temporal unit. Memory is bounded, and so is the work for each byte.
#[derive(Debug, Default)]
pub(super) struct Units {
    form: Form,
    /// The beginning of the current unit where it did not come at once.
    head: Vec<u8>,
    /// Bytes to pass over.
    skip: usize,
    /// Between start codes: zeros that may belong to the next one, and whether the current unit was taken.
    zeros: usize,
    taken: bool,
}

impl Units {
    /// The next bytes. `take` is called with each unit, again with more of it as long as it says `false`.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut impl FnMut(Obu<'_>) -> bool) {
        if self.form == Form::Open {
            // Between start codes nothing is taken before the first one.
            self.taken = true;
            self.form = match bytes.first() {
                Some(0) => Form::StartCodes,
                Some(_) => Form::Sized,
                None => Form::Open,
            };
        }
        match self.form {
            Form::Sized => self.push_sized(bytes, take),
            Form::StartCodes => self.push_escaped(bytes, take),
            Form::Open | Form::Broken => {}
        }
    }

    /// The temporal unit ends, and another one may begin.
    pub(super) fn end(&mut self, take: &mut impl FnMut(Obu<'_>) -> bool) {
        let escaped = self.form == Form::StartCodes;
        if !(self.head.is_empty() || escaped && self.taken) {
            take(Obu { bytes: &self.head, escaped, whole: true });
        }
        self.head.clear();
        (self.form, self.skip, self.zeros) = (Form::Open, 0, 0);
    }

    fn push_sized(&mut self, bytes: &[u8], take: &mut impl FnMut(Obu<'_>) -> bool) {
        let mut rest = bytes;
        loop {
            let passed = self.skip.min(rest.len());
            self.skip -= passed;
            rest = rest.get(passed..).unwrap_or(&[]);
            if rest.is_empty() {
                return;
            }
            let had = self.head.len();
            let more = rest.get(..rest.len().min(HEADER_MAX - had)).unwrap_or(rest);
            if had > 0 {
                self.head.extend_from_slice(more);
            }
            let here = if had > 0 { &self.head } else { more };
            let mut b = Bits::new(here);
            let total = match obu_header(&mut b) {
                // Without a size it is the last one.
                Some((_, _, size)) => size.map_or(usize::MAX, |s| (b.at() / 8).saturating_add(s)),
                None if here.len() < OBU_HEADER_MAX => usize::MAX,
                None => {
                    self.form = Form::Broken;
                    self.head.clear();
                    return;
                }
            };
            let known = here.len().min(total);
            let whole = known == total || known == HEADER_MAX;
            let obu = Obu { bytes: here.get(..known).unwrap_or(here), escaped: false, whole };
            if !take(obu) && !whole {
                if had == 0 {
                    self.head.extend_from_slice(more);
                }
                return;
            }
            rest = rest.get(known.saturating_sub(had)..).unwrap_or(&[]);
            self.skip = total - known;
            self.head.clear();
        }
    }

    fn push_escaped(&mut self, bytes: &[u8], take: &mut impl FnMut(Obu<'_>) -> bool) {
        let mut grown = false;
        for byte in bytes {
            match byte {
                0 => self.zeros += 1,
                1 if self.zeros >= 2 => {
                    if !self.taken && !self.head.is_empty() {
                        take(Obu { bytes: &self.head, escaped: true, whole: true });
                    }
                    self.head.clear();
                    (self.zeros, self.taken) = (0, false);
                }
                _ => {
                    if !self.taken {
                        let zeros = self.zeros.min(HEADER_MAX - self.head.len());
                        self.head.resize(self.head.len() + zeros, 0);
                        if self.head.len() < HEADER_MAX {
                            self.head.push(*byte);
                        }
                        grown = true;
                    }
                    self.zeros = 0;
                }
            }
        }
        if grown && !self.taken && !self.head.is_empty() {
            let whole = self.head.len() == HEADER_MAX;
            self.taken = take(Obu { bytes: &self.head, escaped: true, whole }) || whole;
        }
    }
}
