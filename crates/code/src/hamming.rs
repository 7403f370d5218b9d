//! Check bits that correct one wrong bit in each block of 15 bytes, sent beside the packets (Becke et al. 2013, who print
//! the sizes; the Hamming code (127,120) is the one that has them).
//!
//! The code is cyclic with the generator x⁷ + x³ + 1. It is perfect: two wrong bits in a block always look like a third
//! one, which is then flipped too. So what was corrected has to pass a checksum of its own before it is believed.

/// Bytes of a block. The last block of a packet is filled up with zeros.
pub const BLOCK: usize = 15;

/// Check bits of a block.
pub const CHECK_BITS: usize = 7;

/// What x⁷ leaves by the generator.
const REDUCED: u8 = 0b000_1001;

/// Contributions of each value of each byte of a block to its check bits.
static TABLE: [[u8; 256]; BLOCK] = table();

/// The remainder of x^`power` by the generator.
const fn column(power: usize) -> u8 {
    let (mut s, mut i) = (1u8, 0);
    while i < power {
        s = if s & 0x40 != 0 { (s << 1 & 0x7f) ^ REDUCED } else { s << 1 };
        i += 1;
    }
    s
}

const fn table() -> [[u8; 256]; BLOCK] {
    let mut table = [[0; 256]; BLOCK];
    let mut byte = 0;
    while byte < BLOCK {
        let mut bit = 0;
        while bit < 8 {
            // Data bit i, from the lowest of the first byte on, stands for x to the power of i + 7.
            let s = column(byte * 8 + bit + CHECK_BITS);
            let mut value = 0;
            while value < 256 {
                if value >> bit & 1 == 1 {
                    table[byte][value] ^= s;
                }
                value += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// Bytes of check bits for a packet of so many bytes.
pub const fn check_len(bytes: usize) -> usize {
    (bytes.div_ceil(BLOCK) * CHECK_BITS).div_ceil(8)
}

/// Check bits of a block of at most [`BLOCK`] bytes.
fn check(block: &[u8]) -> u8 {
    block.iter().zip(&TABLE).fold(0, |sum, (byte, row)| sum ^ row[usize::from(*byte)])
}

/// Appends the check bits of a packet to `out`, seven of each block, the lowest first.
pub fn append_checks(packet: &[u8], out: &mut Vec<u8>) {
    let (mut held, mut count) = (0u16, 0);
    for block in packet.chunks(BLOCK) {
        held |= u16::from(check(block)) << count;
        count += CHECK_BITS;
        if count >= 8 {
            out.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        out.push(held as u8);
    }
}

/// Flips one bit in each block whose check bits differ, where they differ as by a bit of the packet; how many were flipped.
/// `None` where the check bits are too few or too many for the packet, which stays as it is.
pub fn correct(packet: &mut [u8], checks: &[u8]) -> Option<usize> {
    if checks.len() != check_len(packet.len()) {
        return None;
    }
    let mut flipped = 0;
    for (i, block) in packet.chunks_mut(BLOCK).enumerate() {
        let at = i * CHECK_BITS;
        let low = u16::from(checks.get(at / 8).copied().unwrap_or(0));
        let high = u16::from(checks.get(at / 8 + 1).copied().unwrap_or(0));
        let sent = ((high << 8 | low) >> (at % 8)) as u8 & 0x7f;
        let syndrome = sent ^ check(block);
        if syndrome == 0 {
            continue;
        }
        // A check bit by itself, or a bit of the filling: more than one bit was wrong.
        let Some(bit) = PLACES[usize::from(syndrome)].checked_sub(CHECK_BITS as u8) else { continue };
        if let Some(byte) = block.get_mut(usize::from(bit / 8)) {
            *byte ^= 1 << (bit % 8);
            flipped += 1;
        }
    }
    Some(flipped)
}

/// The power of x that leaves each remainder.
static PLACES: [u8; 128] = places();

const fn places() -> [u8; 128] {
    let mut places = [0; 128];
    let mut power = 0;
    while power < 127 {
        places[column(power) as usize] = power as u8;
        power += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 73 % 251) as u8).collect()
    }

    #[test]
    fn remainders_are_those_of_the_generator() {
        let first: Vec<u8> = (0..10).map(column).collect();
        assert_eq!(first, [1, 2, 4, 8, 16, 32, 64, 9, 18, 36]);
        let mut all: Vec<u8> = (0..127).map(column).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(1..=127), "all are different");
    }

    #[test]
    fn a_packet_of_1500_bytes_needs_88_bytes_of_checks() {
        // 700 bits, about 6 %: what Becke et al. 2013 state.
        assert_eq!(check_len(1_500), 88);
        assert_eq!((check_len(0), check_len(1), check_len(15), check_len(16), check_len(120)), (0, 1, 1, 2, 7));
        for len in [0, 1, 15, 16, 119, 120, 1_499, 1_500] {
            let mut out = Vec::new();
            append_checks(&packet(len), &mut out);
            assert_eq!(out.len(), check_len(len));
        }
    }

    #[test]
    fn every_single_bit_is_corrected() {
        for len in [1, 14, 15, 31, 40] {
            let whole = packet(len);
            let mut checks = Vec::new();
            append_checks(&whole, &mut checks);
            let mut same = whole.clone();
            assert_eq!(correct(&mut same, &checks), Some(0));
            for bit in 0..len * 8 {
                let mut wrong = whole.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert_eq!((correct(&mut wrong, &checks), &wrong), (Some(1), &whole), "bit {bit} of {len} bytes");
            }
            // One in every block at once.
            let mut wrong = whole.clone();
            wrong.iter_mut().step_by(BLOCK).for_each(|b| *b ^= 0x10);
            assert_eq!(correct(&mut wrong, &checks), Some(len.div_ceil(BLOCK)));
            assert_eq!(wrong, whole);
            assert_eq!(correct(&mut wrong, &checks[1..]), None);
        }
    }

    #[test]
    fn two_bits_in_a_block_are_never_corrected() {
        let whole = packet(BLOCK);
        let mut checks = Vec::new();
        append_checks(&whole, &mut checks);
        for (a, b) in (0..120).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let mut wrong = whole.clone();
            wrong[a / 8] ^= 1 << (a % 8);
            wrong[b / 8] ^= 1 << (b % 8);
            correct(&mut wrong, &checks);
            assert_ne!(wrong, whole, "bits {a} and {b}");
        }
    }

    /// Numbers by SplitMix64.
    struct Draw(u64);

    impl Draw {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ z >> 31
        }
        fn below(&mut self, n: u64) -> u64 {
            self.next() % n
        }
        /// True once in `n` times.
        fn once_in(&mut self, n: u64) -> bool {
            self.below(n) == 0
        }
    }

    /// Flips what the error model of Becke et al. 2013 does: every 30th packet is affected, then every 20th block of 15
    /// bytes, of which nine in ten in one bit and the tenth in two.
    fn flip_some(packet: &mut [u8], draw: &mut Draw) {
        if !draw.once_in(30) {
            return;
        }
        for block in packet.chunks_mut(BLOCK) {
            if !draw.once_in(20) {
                continue;
            }
            let bits = block.len() as u64 * 8;
            let first = draw.below(bits);
            let second = (first + 1 + draw.below(bits - 1)) % bits;
            block[first as usize / 8] ^= 1 << (first % 8);
            if draw.once_in(10) {
                block[second as usize / 8] ^= 1 << (second % 8);
            }
        }
    }

    #[test]
    fn what_is_left_is_what_the_error_model_says() {
        let whole = packet(1_500);
        let mut checks = Vec::new();
        append_checks(&whole, &mut checks);
        let (mut draw, count) = (Draw(9), 200_000);
        let (mut damaged, mut left) = (0, 0);
        for _ in 0..count {
            let mut got = whole.clone();
            flip_some(&mut got, &mut draw);
            damaged += u32::from(got != whole);
            correct(&mut got, &checks);
            left += u32::from(got != whole);
        }
        let share = |n: u32| f64::from(n) / f64::from(count);
        let expected = |block: f64| (1.0 - (1.0 - block).powi(100)) / 30.0;
        // 3.314 % without correction and 1.314 % with it follow from the model.
        assert!((expected(0.05) - 0.03314).abs() < 5e-6 && (expected(0.005) - 0.01314).abs() < 5e-6);
        // Four standard errors.
        assert!((share(damaged) - expected(0.05)).abs() < 0.0016, "{}", share(damaged));
        assert!((share(left) - expected(0.005)).abs() < 0.001, "{}", share(left));
        println!("{:.3} % damaged, {:.3} % left", 100.0 * share(damaged), 100.0 * share(left));
    }
}
