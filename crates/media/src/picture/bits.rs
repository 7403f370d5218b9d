//! Bits of a header, read so that no input makes it panic: what is not there is `None`.

/// Reads a header from its first bit on.
#[derive(Clone, Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Bits { bytes, at: 0 }
    }

    /// `count` bits, at most 32, the highest first.
    pub(super) fn u(&mut self, count: u32) -> Option<u32> {
        let end = self.at.checked_add(count as usize)?;
        if count > 32 || end > self.bytes.len() * 8 {
            return None;
        }
        let mut value = 0u64;
        let (first, last) = (self.at / 8, end.div_ceil(8));
        for b in self.bytes.get(first..last)? {
            value = value << 8 | u64::from(*b);
        }
        self.at = end;
        let behind = last * 8 - end;
        Some((value >> behind & ((1 << count) - 1)) as u32)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.u(1).map(|b| b == 1)
    }

    /// Bits read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Passes over `count` bits.
    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        let end = self.at.checked_add(count)?;
        (end <= self.bytes.len() * 8).then(|| self.at = end)
    }

    /// An Exp-Golomb code (H.264 §9.1); values of more than 31 bits do not occur in what is read here.
    pub(super) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some(self.u(zeros)? + ((1 << zeros) - 1))
    }

    /// [`Bits::ue`] when it is at most `most`.
    pub(super) fn ue_to(&mut self, most: u32) -> Option<u32> {
        self.ue().filter(|v| *v <= most)
    }

    /// A signed Exp-Golomb code (H.264 §9.1.1).
    pub(super) fn se(&mut self) -> Option<i32> {
        let code = i64::from(self.ue()?);
        let half = (code + 1) / 2;
        i32::try_from(if code % 2 == 1 { half } else { -half }).ok()
    }
}

/// Takes the emulation prevention bytes out of `bytes` (H.264 §7.4.1): each 3 behind two zeros. `out` is used again.
pub(super) fn unescape(bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut zeros = 0;
    for b in bytes {
        if zeros >= 2 && *b == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *b == 0 { zeros + 1 } else { 0 };
        out.push(*b);
    }
}

/// Calls `take` with what lies between start codes, without the zeros in front of them (H.264 annex B).
pub(super) fn start_codes<'a>(bytes: &'a [u8], mut take: impl FnMut(&'a [u8])) {
    let mut begin = None;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.windows(3).position(|w| w == [0, 0, 1])) {
        let start = at + found;
        if let Some(unit) = begin.and_then(|b| bytes.get(b..start)) {
            take(trimmed(unit));
        }
        begin = Some(start + 3);
        at = start + 3;
    }
    if let Some(unit) = begin.and_then(|b| bytes.get(b..)) {
        take(trimmed(unit));
    }
}

/// Without zeros at the end, which belong to the next start code.
fn trimmed(unit: &[u8]) -> &[u8] {
    let len = unit.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    unit.get(..len).unwrap_or(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_codes() {
        let mut b = Bits::new(&[0b1010_0011, 0b0100_0101, 0]);
        assert_eq!((b.u(1), b.ue(), b.ue()), (Some(1), Some(1), Some(5)));
        assert_eq!((b.u(1), b.ue()), (Some(1), Some(9)));
        assert_eq!((b.u(6), b.u(1), b.flag()), (Some(0), Some(0), None));
        let mut b = Bits::new(&[0b0100_1100, 0b1000_0101, 0xff, 0xff]);
        assert_eq!((b.se(), b.se(), b.se(), b.se()), (Some(1), Some(-1), Some(2), Some(-2)));
        assert_eq!(Bits::new(&[0; 9]).ue(), None);
        assert_eq!(Bits::new(&[0xff; 5]).u(32), Some(u32::MAX));
        assert_eq!(Bits::new(&[1]).skip(9), None);
    }

    #[test]
    fn units_between_start_codes() {
        let mut units = Vec::new();
        start_codes(&[9, 0, 0, 0, 1, 7, 8, 0, 0, 0, 1, 0, 0, 1, 5, 0, 0, 3, 1], |u| units.push(u.to_vec()));
        assert_eq!(units, [vec![7, 8], vec![], vec![5, 0, 0, 3, 1]]);
        let mut out = Vec::new();
        unescape(&[5, 0, 0, 3, 1, 0, 0, 3], &mut out);
        assert_eq!(out, [5, 0, 0, 1, 0, 0]);
    }
}
