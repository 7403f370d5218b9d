//! Packets that arrive with wrong bits.

use anabranch_base::RandomStream;

/// Bits of a block of the model of Becke et al. 2013.
const BLOCK_BITS: u32 = 15 * 8;

/// Most bits that are flipped in one packet: with more of them it is noise anyway.
const FLIPS_MAX: usize = 1 << 16;

/// How a link damages packets. Shares are fractions of one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum DamageConfig {
    /// Not at all.
    #[default]
    None,
    /// A share of the packets, each in one bit anywhere, as netem's `corrupt` does it.
    OneBit {
        /// Share of the packets.
        packets: f64,
    },
    /// Each bit by itself.
    Bits {
        /// Share of the bits.
        rate: f64,
    },
    /// Some packets, and in those some blocks of 15 bytes: 90 % of these in one bit, 10 % in two (Becke et al. 2013).
    Blocks {
        /// Share of the packets that are affected.
        packets: f64,
        /// Share of the blocks of an affected packet.
        blocks: f64,
    },
}

impl DamageConfig {
    /// The model of Becke et al. 2013: every 30th packet is affected, and every 20th of its blocks.
    pub const BECKE: DamageConfig = DamageConfig::Blocks { packets: 1.0 / 30.0, blocks: 1.0 / 20.0 };

    /// Share of the blocks with an error in which two bits are flipped (Becke et al. 2013).
    pub const TWO_BITS: f64 = 0.1;

    /// What is wrong with the values, if anything.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let share = |p: f64, what| if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(what) };
        match *self {
            DamageConfig::None => Ok(()),
            DamageConfig::OneBit { packets } => share(packets, "corrupt must lie between 0 and 100 %"),
            DamageConfig::Bits { rate } => share(rate, "corrupt bits must lie between 0 and 1"),
            DamageConfig::Blocks { packets, blocks } => {
                share(packets, "corrupt blocks: packets must lie between 0 and 100 %")
                    .and_then(|()| share(blocks, "corrupt blocks: blocks must lie between 0 and 100 %"))
            }
        }
    }

    /// Puts the numbers of the bits of a packet of `bytes` that are wrong into `flips`, rising, each once. Draws only where there
    /// is something to decide.
    pub(crate) fn draw(&self, bytes: u32, random: &mut RandomStream, flips: &mut Vec<u32>) {
        flips.clear();
        let bits = bytes.saturating_mul(8);
        if bits == 0 {
            return;
        }
        match *self {
            DamageConfig::None => {}
            DamageConfig::OneBit { packets } => {
                if random.chance(packets) {
                    flips.push(random.below(u64::from(bits)) as u32);
                }
            }
            DamageConfig::Bits { rate } => each_bit(rate, bits, random, flips),
            DamageConfig::Blocks { packets, blocks } => {
                if random.chance(packets) {
                    each_block(blocks, bits, random, flips);
                }
            }
        }
    }
}

/// From one wrong bit to the next, by the geometric distribution of the distance: work in proportion to what is wrong.
fn each_bit(rate: f64, bits: u32, random: &mut RandomStream, flips: &mut Vec<u32>) {
    if rate <= 0.0 {
        return;
    }
    let right = libm::log1p(-rate.min(1.0));
    let mut at = 0.0;
    while flips.len() < FLIPS_MAX {
        // Zero bits in between where every bit is wrong.
        let between = if right == f64::NEG_INFINITY { 0.0 } else { (libm::log(1.0 - random.unit()) / right).floor() };
        at += between;
        if at >= f64::from(bits) {
            return;
        }
        flips.push(at as u32);
        at += 1.0;
    }
}

fn each_block(share: f64, bits: u32, random: &mut RandomStream, flips: &mut Vec<u32>) {
    for first in (0..bits).step_by(BLOCK_BITS as usize) {
        if !random.chance(share) || flips.len() >= FLIPS_MAX {
            continue;
        }
        let len = u64::from(BLOCK_BITS.min(bits - first));
        let one = random.below(len) as u32;
        flips.push(first + one);
        if random.chance(DamageConfig::TWO_BITS) && len > 1 {
            // Another bit than the first.
            let other = random.below(len - 1) as u32;
            let other = first + other + u32::from(other >= one);
            let place = flips.len() - usize::from(other < first + one);
            flips.insert(place, other);
        }
    }
}

/// Flips bits of a packet; bit 0 is the highest of the first byte. Bits behind its end are left out.
pub fn flip(bytes: &mut [u8], flips: &[u32]) {
    for bit in flips {
        if let Some(byte) = bytes.get_mut(*bit as usize / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of `bytes` that are damaged, bits that are wrong, and blocks of 15 bytes with one and two of them.
    fn many(config: DamageConfig, bytes: u32, count: u32) -> (u32, usize, [u32; 3]) {
        let mut random = RandomStream::named(5, "damage");
        let (mut flips, mut all) = (Vec::new(), (0, 0, [0; 3]));
        for _ in 0..count {
            config.draw(bytes, &mut random, &mut flips);
            assert!(flips.is_sorted_by(|a, b| a < b) && flips.iter().all(|f| *f < bytes * 8), "{flips:?}");
            all.0 += u32::from(!flips.is_empty());
            all.1 += flips.len();
            for block in flips.chunk_by(|a, b| a / BLOCK_BITS == b / BLOCK_BITS) {
                all.2[block.len().min(2)] += 1;
            }
        }
        all
    }

    #[test]
    fn bits_are_wrong_as_often_as_they_should_be() {
        let near = |value: f64, wanted: f64, part: f64| {
            assert!((value / wanted - 1.0).abs() < part, "{value} is not near {wanted}");
        };
        assert_eq!(many(DamageConfig::None, 1_500, 100), (0, 0, [0; 3]));
        let (packets, bits, _) = many(DamageConfig::OneBit { packets: 0.1 }, 1_500, 20_000);
        near(f64::from(packets), 2_000.0, 0.06);
        assert_eq!(bits, packets as usize);
        // 12,000 bits a packet.
        let (packets, bits, _) = many(DamageConfig::Bits { rate: 1e-5 }, 1_500, 20_000);
        near(bits as f64, 2_400.0, 0.06);
        near(f64::from(packets), 20_000.0 * (1.0 - 0.99999f64.powi(12_000)), 0.06);
        assert_eq!(many(DamageConfig::Bits { rate: 1.0 }, 10, 3).1, 240);
        assert_eq!(many(DamageConfig::Bits { rate: 0.0 }, 10, 3).1, 0);
        // 100 blocks a packet: one in twenty of those of every thirtieth packet, one in ten of which twice.
        let (packets, _, blocks) = many(DamageConfig::BECKE, 1_500, 60_000);
        near(f64::from(packets), 2_000.0 * (1.0 - 0.95f64.powi(100)), 0.06);
        near(f64::from(blocks[1] + blocks[2]), 10_000.0, 0.06);
        near(f64::from(blocks[2]), 1_000.0, 0.12);
    }

    #[test]
    fn flipping_twice_changes_nothing() {
        let mut bytes = [0x0f, 0xf0, 0x55];
        flip(&mut bytes, &[0, 7, 15, 23, 24, 4_000_000]);
        assert_eq!(bytes, [0x8e, 0xf1, 0x54]);
        flip(&mut bytes, &[0, 7, 15, 23]);
        assert_eq!(bytes, [0x0f, 0xf0, 0x55]);
    }
}
