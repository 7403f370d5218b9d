//! What a sender says of its payload when an association begins.

use crate::Submission;
use core::fmt;

/// The media hint of Cheng et al. 2011 §III: the payload is a film whose classes go on these streams. A parameter in INIT
/// that a peer which knows it repeats in INIT ACK; nothing depends on the answer, since it is the sender that classifies.
///
/// On the wire a byte for the media, one for the number of streams, then the stream of I, P and B.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MediaHint {
    /// What is sent: [`MediaHint::MPEG`].
    pub media: u8,
    /// How many streams it uses.
    pub streams: u8,
    /// The stream of I, P and B.
    pub map: [u8; 3],
}

impl MediaHint {
    /// Type of the parameter, unless both ends name another one: of the private ones that strangers skip in silence
    /// (RFC 9260 §3.2.1).
    pub const PARAMETER: u16 = 0xbf43;
    /// Video of the MPEG family in a transport stream.
    pub const MPEG: u8 = 1;
    /// Bytes of its value.
    pub const LEN: usize = 5;

    /// An MPEG film on as many streams as it has classes.
    pub fn mpeg() -> Self {
        Self::mpeg_on(Submission::STREAMS)
    }

    /// An MPEG film on so many streams, 1 to 3: with two the first is that of I frames.
    pub fn mpeg_on(streams: u16) -> Self {
        let streams = streams.clamp(1, Submission::STREAMS);
        MediaHint { media: Self::MPEG, streams: streams as u8, map: Submission::map(streams) }
    }

    /// The value of the parameter.
    pub fn encode(self) -> [u8; Self::LEN] {
        let [i, p, b] = self.map;
        [self.media, self.streams, i, p, b]
    }

    /// Reads a value; none when it is no hint: too short, no streams, or a class on a stream beyond them. What stands
    /// behind is for later versions.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let [media, streams, map @ ..] = value.first_chunk::<{ Self::LEN }>()?;
        map.iter().all(|s| s < streams).then_some(MediaHint { media: *media, streams: *streams, map: *map })
    }
}

impl fmt::Display for MediaHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [i, p, b] = self.map;
        match self.media {
            Self::MPEG => f.write_str("MPEG")?,
            other => write!(f, "media {other}")?,
        }
        write!(f, " on {} streams, I {i}, P {p}, B {b}", self.streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ours_is_read_and_shown() {
        let hint = MediaHint::mpeg();
        assert_eq!(hint.encode(), [1, 3, 0, 1, 2]);
        assert_eq!(MediaHint::decode(&hint.encode()), Some(hint));
        assert_eq!(MediaHint::decode(&[1, 3, 0, 1, 2, 9]), Some(hint));
        assert_eq!(hint.to_string(), "MPEG on 3 streams, I 0, P 1, B 2");
        for bad in [&[][..], &[1, 3, 0, 1], &[1, 0, 0, 0, 0], &[1, 2, 0, 1, 2], &[1, 3, 3, 0, 0]] {
            assert_eq!(MediaHint::decode(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(value in prop::collection::vec(any::<u8>(), 0..9)) {
            if let Some(hint) = MediaHint::decode(&value) {
                prop_assert_eq!(&hint.encode()[..], &value[..MediaHint::LEN]);
                prop_assert!(!hint.to_string().is_empty());
            }
        }
    }
}
