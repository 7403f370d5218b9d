//! What the link layer below a path may say of itself.

use core::fmt;
use core::str::FromStr;

/// What kind of link it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Technology {
    /// Not known, or no radio.
    #[default]
    Unknown,
    /// UMTS: WCDMA.
    Wcdma,
    /// IEEE 802.16, WiMAX.
    Wimax,
    /// IEEE 802.11, Wi-Fi.
    Wlan,
}

impl Technology {
    /// All that are known, by their words.
    pub const WORDS: [(&'static str, Technology); 3] =
        [("wcdma", Technology::Wcdma), ("wimax", Technology::Wimax), ("wlan", Technology::Wlan)];

    /// The modulation of a link of which nothing else is said: that which Xu et al. 2014 leave open, as a middle
    /// one of each kind.
    pub const fn usual_modulation(self) -> Modulation {
        match self {
            Technology::Unknown => Modulation::Unknown,
            Technology::Wcdma | Technology::Wlan => Modulation::Qpsk,
            Technology::Wimax => Modulation::Qam16,
        }
    }
}

/// How bits become a signal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Modulation {
    /// Not known.
    #[default]
    Unknown,
    /// Two phases against those of the symbol before: 802.11 at 1 Mbit/s.
    Dbpsk,
    /// Four phases against those of the symbol before: 802.11 at 2 Mbit/s.
    Dqpsk,
    /// Two phases.
    Bpsk,
    /// Four phases.
    Qpsk,
    /// 16 points of phase and amplitude.
    Qam16,
    /// 64 points.
    Qam64,
    /// 256 points.
    Qam256,
}

impl Modulation {
    /// All that are known, by their words.
    pub const WORDS: [(&'static str, Modulation); 7] = [
        ("dbpsk", Modulation::Dbpsk),
        ("dqpsk", Modulation::Dqpsk),
        ("bpsk", Modulation::Bpsk),
        ("qpsk", Modulation::Qpsk),
        ("qam16", Modulation::Qam16),
        ("qam64", Modulation::Qam64),
        ("qam256", Modulation::Qam256),
    ];
}

/// No such word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSuchWord;

fn find<T: Copy>(words: &[(&str, T)], word: &str) -> Result<T, NoSuchWord> {
    words.iter().find(|(w, _)| *w == word).map(|(_, t)| *t).ok_or(NoSuchWord)
}

impl FromStr for Technology {
    type Err = NoSuchWord;
    fn from_str(word: &str) -> Result<Self, NoSuchWord> {
        find(&Self::WORDS, word)
    }
}

impl FromStr for Modulation {
    type Err = NoSuchWord;
    fn from_str(word: &str) -> Result<Self, NoSuchWord> {
        find(&Self::WORDS, word)
    }
}

impl fmt::Display for Technology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS.iter().find(|(_, t)| t == self).map_or("unknown", |(w, _)| w))
    }
}

impl fmt::Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::WORDS.iter().find(|(_, m)| m == self).map_or("unknown", |(w, _)| w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_there_and_back() {
        for (word, t) in Technology::WORDS {
            assert_eq!((word.parse(), t.to_string().as_str()), (Ok(t), word));
            assert_ne!(t.usual_modulation(), Modulation::Unknown);
        }
        for (word, m) in Modulation::WORDS {
            assert_eq!((word.parse(), m.to_string().as_str()), (Ok(m), word));
        }
        assert_eq!("unknown".parse::<Modulation>(), Err(NoSuchWord));
        assert_eq!(
            (Technology::default().to_string(), "WLAN".parse::<Technology>()),
            ("unknown".into(), Err(NoSuchWord))
        );
    }
}
