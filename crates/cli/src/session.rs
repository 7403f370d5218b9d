//! What both ends tell each other beside the stream itself.
//!
//! Control messages travel reliable and in order on a stream of their own; each begins with `anb`, a version
//! and a kind, numbers are big-endian. Bytes behind what is known are ignored and unknown kinds are skipped,
//! so that later versions can add to them.
//!
//! ```text
//! sender                         receiver
//!   Stream(name) ──────────────────▶           which of several streams this is, if it has a name
//!   Here ──────────────────────────▶           holds the place until there is something to say
//!   Hello(mode, latency) ──────────▶
//!   ◀────────── Welcome(latency) or Refuse(why)
//!   stream ────────────────────────▶
//!   ◀──────────────────────────────  Probe     any time; only that it is acknowledged counts
//!   ◀──────────────────── Stop(why)            when the receiver wants to end
//!   End(how much there was) ───────▶
//!   ◀──────────── Done(what came out)          everything is written
//!   shuts the association down
//! ```

use crate::filemark::FileMark;
use anabranch_net::StreamId;
use bytes::{BufMut, Bytes, BytesMut};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Stream of control messages; 0 to 2 carry the media classes.
pub const CONTROL_STREAM: StreamId = StreamId(3);
/// Stream of everything else.
pub const DATA_STREAM: StreamId = StreamId(4);

/// Payload protocol identifiers: `anb` and a number.
pub mod ppid {
    /// Control messages.
    pub const CONTROL: u32 = 0x616e_6200;
    /// A media message.
    pub const MEDIA: u32 = 0x616e_6201;
    /// A piece of a byte stream.
    pub const BYTES: u32 = 0x616e_6202;
    /// A datagram.
    pub const DATAGRAM: u32 = 0x616e_6203;
    /// A datagram without content; the message holds one byte without meaning, because it needs one.
    pub const EMPTY_DATAGRAM: u32 = 0x616e_6204;
    /// A datagram of a tunnel, behind its flow number.
    pub const TUNNEL: u32 = 0x616e_6205;
}

const MAGIC: &[u8; 3] = b"anb";
const VERSION: u8 = 1;
/// Longest text taken from or sent to the peer, bytes.
const TEXT_MAX: usize = 200;

/// The longest latency that a peer may ask for, as of ours: see [`crate::units::latency`].
pub const LATENCY_MAX: Duration = Duration::from_secs(60);

/// Name of one stream among several at one receiver: up to 64 letters, digits, dots, dashes and underscores, the first
/// a letter or a digit. So it can be part of a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName(String);

impl StreamName {
    /// Longest name, bytes.
    const MAX: usize = 64;

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= Self::MAX && text.chars().all(fits) {
            return Ok(StreamName(text.to_owned()));
        }
        Err(format!(
            "`{}` is no stream id; it has up to 64 letters, digits, dots, dashes and underscores, the first a letter or \
             a digit",
            text.escape_default()
        ))
    }
}

/// What is carried, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// A transport stream as frames with a deadline, played out at a fixed latency.
    Media,
    /// Each datagram a message of its own.
    Datagram,
    /// A byte stream, reliable and in order.
    File,
    /// Datagrams both ways.
    #[value(skip)]
    Tunnel,
}

impl Mode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Media => "media",
            Mode::Datagram => "datagram",
            Mode::File => "file",
            Mode::Tunnel => "tunnel",
        }
    }

    const fn number(self) -> u8 {
        match self {
            Mode::Media => 1,
            Mode::Datagram => 2,
            Mode::File => 3,
            Mode::Tunnel => 4,
        }
    }

    const fn from_number(n: u8) -> Option<Self> {
        match n {
            1 => Some(Mode::Media),
            2 => Some(Mode::Datagram),
            3 => Some(Mode::File),
            4 => Some(Mode::Tunnel),
            _ => None,
        }
    }
}

/// How a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What will come.
    pub mode: Mode,
    /// Latency wanted; zero for none.
    pub latency: Duration,
    /// Profile of the sender, for people.
    pub profile: String,
}

/// How much the source held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct End {
    /// The user ended it, not the source.
    pub interrupted: bool,
    /// Messages sent.
    pub messages: u64,
    /// Frames begun; media only.
    pub frames: u64,
    /// Bytes of the source.
    pub bytes: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize)]
pub struct Done {
    /// Messages put out.
    pub messages: u64,
    /// Bytes put out.
    pub bytes: u64,
    /// Frames, usable or not; media only.
    pub frames: u64,
    /// Frames with a part missing.
    pub frames_unusable: u64,
    /// Messages that came too late.
    pub late: u64,
    /// Messages that never came.
    pub lost: u64,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Sender: begins.
    Hello(Hello),
    /// Receiver: ready, with the latency that holds.
    Welcome(Duration),
    /// Receiver: not willing, and why.
    Refuse(String),
    /// Receiver: wants to end.
    Stop {
        /// It failed; otherwise its user ended it.
        failed: bool,
        /// Why it wants to end.
        why: String,
    },
    /// Sender: that was all.
    End(End),
    /// Receiver: everything is written.
    Done(Done),
    /// Sender: the name of its stream; before all others.
    Stream(StreamName),
    /// Receiver: nothing but a sign of life is wanted. Whoever reads it skips it as a kind that is not known.
    Probe,
    /// Sender: is here and will say hello once its input has come; the file it reads, if it is one.
    Here(Option<FileMark>),
}

/// Why a control message is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// No message of this protocol.
    #[error("the peer speaks another protocol")]
    Foreign,
    /// Another version of it.
    #[error("the peer speaks version {0} of the session protocol, this program version {VERSION}; update one of them")]
    Version(u8),
    /// Cut or without meaning.
    #[error("the peer sent a damaged control message")]
    Damaged,
}

impl Control {
    /// The bytes to send.
    pub fn encode(&self) -> Bytes {
        let mut b = BytesMut::with_capacity(64);
        b.put_slice(MAGIC);
        b.put_u8(VERSION);
        match self {
            Control::Hello(h) => {
                b.put_u8(1);
                b.put_u8(h.mode.number());
                b.put_u32(millis(h.latency));
                b.put_slice(short(&h.profile));
            }
            Control::Welcome(latency) => {
                b.put_u8(2);
                b.put_u32(millis(*latency));
            }
            Control::Refuse(why) => {
                b.put_u8(3);
                b.put_slice(short(why));
            }
            Control::Stop { failed, why } => {
                b.put_u8(4);
                b.put_u8(u8::from(*failed));
                b.put_slice(short(why));
            }
            Control::End(e) => {
                b.put_u8(5);
                b.put_u8(u8::from(e.interrupted));
                [e.messages, e.frames, e.bytes].iter().for_each(|n| b.put_u64(*n));
            }
            Control::Done(d) => {
                b.put_u8(6);
                let all = [d.messages, d.bytes, d.frames, d.frames_unusable, d.late, d.lost];
                all.iter().for_each(|n| b.put_u64(*n));
            }
            Control::Here(file) => {
                b.put_u8(7);
                b.put_u64(file.map_or(0, |f| f.0.get()));
            }
            Control::Stream(name) => {
                b.put_u8(8);
                b.put_slice(name.0.as_bytes());
            }
            Control::Probe => b.put_u8(9),
        }
        b.freeze()
    }

    /// Reads a message; none for a kind that is not known.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, ControlError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(ControlError::Foreign)?;
        let (version, rest) = rest.split_first().ok_or(ControlError::Damaged)?;
        if *version != VERSION {
            return Err(ControlError::Version(*version));
        }
        let (kind, rest) = rest.split_first().ok_or(ControlError::Damaged)?;
        let mut r = Reader(rest);
        Ok(Some(match kind {
            1 => {
                let mode = Mode::from_number(r.u8()?).ok_or(ControlError::Damaged)?;
                let latency = r.millis()?;
                Control::Hello(Hello { mode, latency, profile: r.text() })
            }
            2 => Control::Welcome(r.millis()?),
            3 => Control::Refuse(r.text()),
            4 => Control::Stop { failed: r.u8()? & 1 == 1, why: r.text() },
            5 => {
                let interrupted = r.u8()? & 1 == 1;
                Control::End(End { interrupted, messages: r.u64()?, frames: r.u64()?, bytes: r.u64()? })
            }
            6 => Control::Done(Done {
                messages: r.u64()?,
                bytes: r.u64()?,
                frames: r.u64()?,
                frames_unusable: r.u64()?,
                late: r.u64()?,
                lost: r.u64()?,
            }),
            7 => Control::Here(NonZeroU64::new(r.u64()?).map(FileMark)),
            8 => {
                let text = std::str::from_utf8(r.0).ok();
                Control::Stream(text.and_then(|t| t.parse().ok()).ok_or(ControlError::Damaged)?)
            }
            _ => return Ok(None),
        }))
    }
}

fn millis(d: Duration) -> u32 {
    u32::try_from(d.as_millis()).unwrap_or(u32::MAX)
}

fn short(text: &str) -> &[u8] {
    let end = (0..=text.len().min(TEXT_MAX)).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
    &text.as_bytes()[..end]
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ControlError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(ControlError::Damaged)?;
        self.0 = rest;
        Ok(*head)
    }
    fn u8(&mut self) -> Result<u8, ControlError> {
        self.take::<1>().map(|b| b[0])
    }
    fn u64(&mut self) -> Result<u64, ControlError> {
        self.take().map(u64::from_be_bytes)
    }
    /// A latency, whatever the peer says no longer than ours may be.
    fn millis(&mut self) -> Result<Duration, ControlError> {
        self.take().map(|b| Duration::from_millis(u32::from_be_bytes(b).into()).min(LATENCY_MAX))
    }
    /// The rest as text that is safe to print.
    fn text(&mut self) -> String {
        let bytes = self.0.get(..TEXT_MAX).unwrap_or(self.0);
        String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Control> {
        let latency = Duration::from_millis(300);
        vec![
            Control::Hello(Hello { mode: Mode::Media, latency, profile: "cmt".into() }),
            Control::Hello(Hello { mode: Mode::Tunnel, latency: Duration::ZERO, profile: String::new() }),
            Control::Welcome(latency),
            Control::Refuse("busy".into()),
            Control::Stop { failed: true, why: "no space is left".into() },
            Control::End(End { interrupted: true, messages: 1, frames: 2, bytes: 3 }),
            Control::Done(Done { messages: 1, bytes: 2, frames: 3, frames_unusable: 4, late: 5, lost: 6 }),
            Control::Here(None),
            Control::Here(NonZeroU64::new(7).map(FileMark)),
            Control::Stream("camera-1.b_2".parse().unwrap()),
        ]
    }

    #[test]
    fn there_and_back_and_nothing_cut_is_taken() {
        for c in samples() {
            let bytes = c.encode();
            assert_eq!(Control::decode(&bytes), Ok(Some(c.clone())));
            let has_text =
                matches!(c, Control::Hello(_) | Control::Refuse(_) | Control::Stop { .. } | Control::Stream(_));
            for n in 0..bytes.len() {
                let cut = Control::decode(&bytes[..n]);
                assert!(has_text && n >= 5 || cut.is_err(), "{c:?} cut to {n}: {cut:?}");
            }
        }
    }

    #[test]
    fn strangers() {
        assert_eq!(Control::decode(b"GET /"), Err(ControlError::Foreign));
        assert_eq!(Control::decode(b"anb\x02\x01"), Err(ControlError::Version(2)));
        assert_eq!(Control::decode(b"anb\x01\x63"), Ok(None), "a kind of the future");
        assert_eq!(Control::decode(b"anb\x01\x01\x09\0\0\0\0"), Err(ControlError::Damaged), "no such mode");
    }

    #[test]
    fn texts_are_bounded_and_tame() {
        let long = Control::Refuse("ä".repeat(500)).encode();
        assert!(long.len() <= 5 + TEXT_MAX);
        let Ok(Some(Control::Refuse(text))) = Control::decode(&long) else { panic!() };
        assert!(text.chars().all(|c| c == 'ä'), "{text}");
        let wild = [b"anb\x01\x03".as_slice(), b"a\nb\x1b[31m\xff"].concat();
        let Ok(Some(Control::Refuse(text))) = Control::decode(&wild) else { panic!() };
        assert_eq!(text, "a b [31m\u{fffd}");
    }

    #[test]
    fn names_of_streams_are_safe_in_names_of_files() {
        let stream = |name: &[u8]| Control::decode(&[b"anb\x01\x08".as_slice(), name].concat());
        for good in ["a", "5001", "cam_1", "A.b-c", &"x".repeat(64)] {
            assert_eq!(stream(good.as_bytes()), Ok(Some(Control::Stream(good.parse().unwrap()))));
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "..", ".a", "-a", "a/b", "../a", "a\0", "a b", "a\n", "ä", "a{b}", "a%2f", long.as_str()]
        {
            assert!(bad.parse::<StreamName>().is_err(), "{bad}");
            assert_eq!(stream(bad.as_bytes()), Err(ControlError::Damaged), "{bad}");
        }
        assert_eq!(stream(b"\xff"), Err(ControlError::Damaged));
    }

    #[test]
    fn a_peer_cannot_ask_for_weeks() {
        let decoded = |kind: &[u8]| Control::decode(&[b"anb\x01".as_slice(), kind, b"\xff\xff\xff\xff"].concat());
        assert_eq!(decoded(b"\x02"), Ok(Some(Control::Welcome(LATENCY_MAX))));
        let Ok(Some(Control::Hello(hello))) = decoded(b"\x01\x01") else { panic!() };
        assert_eq!(hello.latency, LATENCY_MAX);
    }

    #[test]
    fn a_probe_is_skipped() {
        assert_eq!(Control::decode(&Control::Probe.encode()), Ok(None));
    }

    #[test]
    fn what_follows_is_ignored() {
        let mut bytes = samples()[5].encode().to_vec();
        bytes.extend(b"later");
        assert_eq!(Control::decode(&bytes), Ok(Some(samples()[5].clone())));
    }
}
