//! Cross traffic of Xu et al. 2014 §VII.A: bursts of packets in the sizes met on the Internet, most of them TCP's.

use super::{Emission, Kind, ParetoOnOff, Sizes, pareto_on_off};
use anabranch_base::{Instant, RandomStream, Rate};

/// An on/off source whose packets belong to two transports. Sizes and peak rate are those of whole
/// packets; emissions are 40 (TCP) or 28 bytes (UDP) smaller, for the headers of IPv4 and transport.
#[derive(Clone, PartialEq, Debug)]
pub struct Mix {
    /// Bursts and silences, and how large packets are, headers included.
    pub packets: ParetoOnOff,
    /// Share of packets that are [`Kind::Stream`]; the others are [`Kind::Packet`].
    pub stream_share: f64,
}

/// Headers of IPv4 and TCP, in bytes.
const STREAM_HEADERS: u64 = 40;
/// Headers of IPv4 and UDP, in bytes.
const PACKET_HEADERS: u64 = 28;

impl Mix {
    /// The sizes of Xu et al. 2014, in bytes, and their shares in percent.
    pub const P1_SIZES: [(u32, f64); 5] = [(44, 49.0), (576, 1.2), (628, 2.1), (1_300, 1.7), (1_500, 46.0)];

    /// As in Xu et al. 2014: its sizes, nine packets of ten over TCP, half a second on and off on average. There the
    /// load varies between nothing and half of the access rate: so `peak` is that half, or a part of it for each of
    /// several sources.
    pub fn p1(peak: Rate) -> Self {
        let sizes = Sizes::Shares(Self::P1_SIZES.to_vec());
        Mix { packets: ParetoOnOff::half_and_half(peak, sizes), stream_share: 0.9 }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.packets.check()?;
        if !(0.0..=1.0).contains(&self.stream_share) {
            return Err("the share of a mix that goes over TCP must lie between 0 and 100 %");
        }
        Ok(())
    }
}

pub(super) struct Source {
    packets: pareto_on_off::Source,
    stream_share: f64,
    random: RandomStream,
}

impl Source {
    pub(super) fn new(config: Mix, random: RandomStream, transports: RandomStream) -> Self {
        let packets = pareto_on_off::Source::new(config.packets, random);
        Source { packets, stream_share: config.stream_share, random: transports }
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        let whole = self.packets.next(now)?;
        let (kind, headers) = match self.random.chance(self.stream_share) {
            true => (Kind::Stream, STREAM_HEADERS),
            false => (Kind::Packet, PACKET_HEADERS),
        };
        Some(Emission { size: whole.size.saturating_sub(headers).max(1), kind, ..whole })
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrafficConfig;
    use super::*;

    #[test]
    fn sizes_on_the_wire_are_the_papers() {
        let mut source = TrafficConfig::Mix(Mix::p1(Rate::from_bits_per_sec(5_000_000))).build(1, "mix");
        let n = 100_000;
        let (mut sum, mut streams) = (0.0, 0.0);
        for _ in 0..n {
            let e = source.next(Instant::ZERO).unwrap();
            let headers = if e.kind == Kind::Stream { 40 } else { 28 };
            streams += f64::from(u8::from(e.kind == Kind::Stream));
            assert!(Mix::P1_SIZES.iter().any(|s| u64::from(s.0) == e.size + headers), "{e:?}");
            sum += (e.size + headers) as f64;
        }
        let n = f64::from(n);
        // Mean 753.76 bytes; standard deviation of one size 709.
        assert!((sum / n - 753.76).abs() < 4.0 * 709.0 / n.sqrt(), "{}", sum / n);
        assert!((streams / n - 0.9).abs() < 4.0 * (0.09 / n).sqrt(), "{}", streams / n);
    }

    #[test]
    fn shares_sum_to_the_whole_and_nonsense_is_named() {
        assert!((Mix::P1_SIZES.iter().map(|s| s.1).sum::<f64>() - 100.0).abs() < 1e-9);
        let mix = Mix::p1(Rate::from_bytes_per_sec(1));
        assert_eq!(mix.check(), Ok(()));
        assert!(Mix { stream_share: 1.1, ..mix }.check().is_err());
    }
}
