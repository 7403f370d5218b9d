//! Cross traffic of Xu et al. 2014 §VII.A: bursts of packets in the sizes met on the Internet, most of them TCP's.

use super::{Emission, Kind, ParetoOnOff, Sizes, pareto_on_off};
use anabranch_base::{Instant, RandomStream, Rate};

/// An on/off source whose packets belong to two transports. Sizes and rates are those of whole
/// packets; emissions are 40 (TCP) or 28 bytes (UDP) smaller, for the headers of IPv4 and transport.
///
/// Two mixes of one `source` with a [part](MixPart) each make together what one mix of both makes: so the larger part
/// can go over a TCP, and slow down where the way is full.
#[derive(Clone, PartialEq, Debug)]
pub struct Mix {
    /// Bursts and silences, and how large packets are, headers included.
    pub packets: ParetoOnOff,
    /// Share of packets that are [`Kind::Stream`]; the others are [`Kind::Packet`].
    pub stream_share: f64,
    /// What of it is emitted.
    pub part: MixPart,
    /// Name of its random numbers; that of the flow without.
    pub source: Option<String>,
}

/// What of a mix is emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MixPart {
    /// Both parts.
    #[default]
    Both,
    /// What belongs to TCP.
    Streams,
    /// What belongs to UDP.
    Packets,
}

impl MixPart {
    fn has(self, kind: Kind) -> bool {
        match self {
            MixPart::Both => true,
            MixPart::Streams => kind == Kind::Stream,
            MixPart::Packets => kind == Kind::Packet,
        }
    }
}

/// The least share of a mix that may be sent alone.
const LEAST_PART: f64 = 0.001;
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
        let packets = ParetoOnOff::half_and_half(peak, sizes);
        Mix { packets, stream_share: 0.9, part: MixPart::Both, source: None }
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.packets.check()?;
        if !(0.0..=1.0).contains(&self.stream_share) {
            return Err("the share of a mix that goes over TCP must lie between 0 and 100 %");
        }
        // A part that is never there would be looked for for ever.
        match self.part {
            MixPart::Streams if self.stream_share < LEAST_PART => {
                return Err("the part of a mix that goes over TCP must be 0.1 % or more of it to be sent alone");
            }
            MixPart::Packets if self.stream_share > 1.0 - LEAST_PART => {
                return Err("the part of a mix that goes over UDP must be 0.1 % or more of it to be sent alone");
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) struct Source {
    packets: pareto_on_off::Source,
    stream_share: f64,
    part: MixPart,
    random: RandomStream,
}

impl Source {
    pub(super) fn new(config: Mix, seed: u64, name: &str) -> Self {
        let stream = |of: &str| RandomStream::named(seed, &format!("{name}.{of}"));
        let packets = pareto_on_off::Source::new(config.packets, stream("traffic"), stream("mean"));
        Source { packets, stream_share: config.stream_share, part: config.part, random: stream("transport") }
    }

    fn next_of_both(&mut self, now: Instant) -> Option<Emission> {
        let whole = super::Source::next(&mut self.packets, now)?;
        let (kind, headers) = match self.random.chance(self.stream_share) {
            true => (Kind::Stream, STREAM_HEADERS),
            false => (Kind::Packet, PACKET_HEADERS),
        };
        Some(Emission { size: whole.size.saturating_sub(headers).max(1), kind, ..whole })
    }
}

impl super::Source for Source {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        loop {
            let emission = self.next_of_both(now)?;
            if self.part.has(emission.kind) {
                return Some(emission);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Redraw, TrafficConfig};
    use super::*;
    use anabranch_base::Duration;

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
    fn parts_of_one_source_make_the_whole() {
        let rate = Rate::from_bits_per_sec;
        let redraw = Some(Redraw { from: rate(0), to: rate(1_000_000), every: Duration::from_secs(2) });
        let mut whole = Mix::p1(Rate::ZERO);
        whole.packets.redraw = redraw;
        let take = |part, source: Option<&str>, name: &str, n: usize| -> Vec<Emission> {
            let mix = Mix { part, source: source.map(str::to_owned), ..whole.clone() };
            let mut source = TrafficConfig::Mix(mix).build(1, name);
            std::iter::from_fn(|| source.next(Instant::ZERO)).take(n).collect()
        };
        let both = take(MixPart::Both, None, "cross", 5_000);
        let of = |kind: Kind| -> Vec<Emission> { both.iter().copied().filter(|e| e.kind == kind).collect() };
        let (streams, packets) = (of(Kind::Stream), of(Kind::Packet));
        assert!(streams.len() > 4_000 && packets.len() > 300);
        assert_eq!(take(MixPart::Streams, Some("cross"), "a", streams.len()), streams);
        assert_eq!(take(MixPart::Packets, Some("cross"), "b", packets.len()), packets);
        assert_ne!(take(MixPart::Packets, None, "b", packets.len()), packets);
    }

    #[test]
    fn shares_sum_to_the_whole_and_nonsense_is_named() {
        assert!((Mix::P1_SIZES.iter().map(|s| s.1).sum::<f64>() - 100.0).abs() < 1e-9);
        let mix = Mix::p1(Rate::from_bytes_per_sec(1));
        assert_eq!(mix.check(), Ok(()));
        let alone = |part, stream_share| Mix { part, stream_share, ..mix.clone() }.check();
        assert!(alone(MixPart::Streams, 0.0).is_err() && alone(MixPart::Packets, 1.0).is_err());
        assert!(alone(MixPart::Streams, 1.0).is_ok() && alone(MixPart::Packets, 0.0).is_ok());
        assert!(Mix { stream_share: 1.1, ..mix.clone() }.check().is_err());
    }
}
