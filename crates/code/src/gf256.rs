//! GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, as RFC 8681 §3.6.1 has it.
//!
//! A product with a constant is two look-ups of four bits each (Plank, Greenan and Miller 2013), sixteen bytes or more at
//! a time where the processor can.

use fearless_simd::{Level, Simd, dispatch, prelude::*, u8x16};

/// What remains of x^8.
const REST: u8 = 0x1d;

/// The product of two elements.
pub const fn mul(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut sum) = (a, b, 0);
    while b > 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        let over = a & 0x80 != 0;
        a <<= 1;
        if over {
            a ^= REST;
        }
        b >>= 1;
    }
    sum
}

/// The inverse: `a` to the power of 254, which is zero for zero.
pub const fn inverse(a: u8) -> u8 {
    let (mut power, mut product, mut n) = (a, 1, 0);
    // 254 = 2 + 4 + 8 + ... + 128.
    while n < 7 {
        power = mul(power, power);
        product = mul(product, power);
        n += 1;
    }
    product
}

/// Products of each constant with the sixteen low halves and the sixteen high halves of a byte.
static HALVES: [([u8; 16], [u8; 16]); 256] = {
    let mut all = [([0; 16], [0; 16]); 256];
    let mut by = 0;
    while by < 256 {
        let mut half = 0;
        while half < 16 {
            all[by].0[half] = mul(by as u8, half as u8);
            all[by].1[half] = mul(by as u8, (half as u8) << 4);
            half += 1;
        }
        by += 1;
    }
    all
};

/// Adds `from` times `by` to as much of `to`.
pub fn add_scaled(level: Level, to: &mut [u8], from: &[u8], by: u8) {
    match by {
        0 => {}
        1 => dispatch!(level, simd => add(simd, to, from)),
        _ => dispatch!(level, simd => add_products(simd, to, from, by)),
    }
}

/// Multiplies all of `symbol` by `by`.
pub fn scale(level: Level, symbol: &mut [u8], by: u8) {
    if by != 1 {
        dispatch!(level, simd => multiply(simd, symbol, by));
    }
}

#[inline(always)]
fn add<S: Simd>(simd: S, to: &mut [u8], from: &[u8]) {
    let wide = S::u8s::LEN;
    let shorter = to.len().min(from.len());
    let (to, from) = (to.get_mut(..shorter).unwrap_or_default(), from.get(..shorter).unwrap_or_default());
    let (mut to, mut from) = (to.chunks_exact_mut(wide), from.chunks_exact(wide));
    for (t, f) in to.by_ref().zip(from.by_ref()) {
        (S::u8s::from_slice(simd, t) ^ S::u8s::from_slice(simd, f)).store_slice(t);
    }
    to.into_remainder().iter_mut().zip(from.remainder()).for_each(|(t, f)| *t ^= f);
}

/// The tables of a constant, and vectors of bytes times it.
struct Times<S: Simd> {
    low: S::u8s,
    high: S::u8s,
}

impl<S: Simd> Times<S> {
    #[inline(always)]
    fn by(simd: S, by: u8) -> Self {
        let (low, high) = &HALVES[usize::from(by)];
        let wide = |table: &[u8; 16]| S::u8s::block_splat(u8x16::from_slice(simd, table));
        Times { low: wide(low), high: wide(high) }
    }

    #[inline(always)]
    fn product(&self, of: S::u8s) -> S::u8s {
        self.low.swizzle_dyn_within_blocks(of & 0x0f) ^ self.high.swizzle_dyn_within_blocks(of >> 4)
    }
}

/// One byte times a constant, where no whole vector is left.
#[inline(always)]
fn product_of_one(byte: u8, by: u8) -> u8 {
    let (low, high) = &HALVES[usize::from(by)];
    low[usize::from(byte & 0x0f)] ^ high[usize::from(byte >> 4)]
}

#[inline(always)]
fn add_products<S: Simd>(simd: S, to: &mut [u8], from: &[u8], by: u8) {
    let (wide, times) = (S::u8s::LEN, Times::by(simd, by));
    let shorter = to.len().min(from.len());
    let (to, from) = (to.get_mut(..shorter).unwrap_or_default(), from.get(..shorter).unwrap_or_default());
    let (mut to, mut from) = (to.chunks_exact_mut(wide), from.chunks_exact(wide));
    for (t, f) in to.by_ref().zip(from.by_ref()) {
        (S::u8s::from_slice(simd, t) ^ times.product(S::u8s::from_slice(simd, f))).store_slice(t);
    }
    to.into_remainder().iter_mut().zip(from.remainder()).for_each(|(t, f)| *t ^= product_of_one(*f, by));
}

#[inline(always)]
fn multiply<S: Simd>(simd: S, symbol: &mut [u8], by: u8) {
    let (wide, times) = (S::u8s::LEN, Times::by(simd, by));
    let mut symbol = symbol.chunks_exact_mut(wide);
    for s in symbol.by_ref() {
        times.product(S::u8s::from_slice(simd, s)).store_slice(s);
    }
    symbol.into_remainder().iter_mut().for_each(|s| *s = product_of_one(*s, by));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_a_field() {
        assert_eq!((mul(0x80, 2), mul(2, 0x8e)), (REST, 1));
        for a in 1..=255 {
            assert_eq!(mul(a, inverse(a)), 1, "{a}");
            assert!((1..=255).all(|b| mul(a, b) != 0 && mul(a, b) == mul(b, a)));
        }
        assert_eq!(inverse(0), 0);
    }

    proptest! {
        /// Vectors and what is left over, equal or shorter: all as byte by byte.
        #[test]
        fn many_at_once_are_as_one_by_one(
            to in prop::collection::vec(any::<u8>(), 0..200),
            from in prop::collection::vec(any::<u8>(), 0..200),
            by: u8,
        ) {
            let level = Level::new();
            let mut sum = to.clone();
            add_scaled(level, &mut sum, &from, by);
            let terms = from.iter().copied().chain(core::iter::repeat(0));
            let slowly: Vec<u8> = to.iter().zip(terms).map(|(t, f)| t ^ mul(f, by)).collect();
            prop_assert_eq!(sum, slowly);
            let mut product = to.clone();
            scale(level, &mut product, by);
            let slowly: Vec<u8> = to.iter().map(|t| mul(*t, by)).collect();
            prop_assert_eq!(product, slowly);
        }
    }
}
