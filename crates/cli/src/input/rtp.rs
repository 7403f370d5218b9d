//! Datagrams that carry a transport stream in RTP.

use super::{Chunk, Input, detect};
use crate::exit::{Failure, warning};
use crate::session::Mode;
use crate::uri::InputUri;
use anabranch_media::rtp::{DEFAULT_WINDOW, PAYLOAD_TYPE, Recogniser, RtpReceiver, RunOn, Verdict};
use anabranch_net::{Instant, now, to_std};
use std::time::Duration;

/// When nothing more comes for so long, what came says what it is.
const SILENCE: Duration = Duration::from_millis(500);

/// Datagrams after which no transport stream is expected any more.
const WATCHED: u32 = 64;

/// Looks on at what goes as datagrams: where `send` begins in the middle of a stream, the first may be a frame's last few
/// bytes, which look like anything. Datagrams do not wait for it.
#[derive(Default)]
pub(super) struct Watch {
    run_on: RunOn,
    seen: u32,
}

impl Watch {
    /// Is there nothing more to look for? Says so where it is a transport stream.
    pub fn is_over(&mut self, datagram: &[u8], name: &str) -> bool {
        self.seen += 1;
        let found = self.run_on.is_sure(datagram);
        if found {
            warning(&format!(
                "{name} is a transport stream, which its first datagram did not show: it goes as datagrams, without \
                 classes and without play-out at a fixed latency; take --mode media"
            ));
        }
        found || self.seen >= WATCHED
    }
}

/// Takes the stream out of RTP. Says at the end what the network before us did to it.
pub(super) struct Rtp(RtpReceiver);

impl Rtp {
    pub fn new(window: Duration) -> Self {
        Rtp(RtpReceiver::new(window.into()))
    }

    /// For datagrams of which nothing is known.
    pub fn if_there_is_rtp() -> Self {
        Rtp(RtpReceiver::if_there_is_rtp(DEFAULT_WINDOW))
    }
}

impl Drop for Rtp {
    fn drop(&mut self) {
        let (s, ignored) = (self.0.stats().order, self.0.stats().ignored);
        if s.packets > 0 {
            tracing::info!(
                "RTP input: {} packets, {} of them out of order; {} missing, {} too late, {} repeated, {} of other \
                 sources, {} other datagrams; {} times another source or numbering",
                s.packets,
                s.reordered,
                s.lost,
                s.late,
                s.duplicates,
                s.strays,
                ignored,
                s.restarts
            );
        }
    }
}

impl Input {
    /// The next piece of the stream in RTP.
    pub(super) async fn next_of_rtp(&mut self) -> Result<Option<Chunk>, Failure> {
        loop {
            let Some(Rtp(rtp)) = self.rtp.as_deref_mut() else { return Ok(None) };
            if let Some(piece) = rtp.poll() {
                return Ok(Some(Chunk { at: piece.at, bytes: piece.bytes }));
            }
            let deadline = rtp.deadline();
            tokio::select! {
                biased;
                // What has come already may be what is missing.
                chunk = self.pieces.next() => match chunk? {
                    Some(chunk) => rtp.push(chunk.at, chunk.bytes),
                    None => {
                        rtp.finish();
                        let Some(piece) = rtp.poll() else { return Ok(None) };
                        return Ok(Some(Chunk { at: piece.at, bytes: piece.bytes }));
                    }
                },
                () = sleep_until(deadline) => rtp.on_timeout(now()),
            }
        }
    }

    /// Finds out what datagrams hold.
    pub(super) async fn detect_rtp(&mut self) -> Result<Mode, Failure> {
        let named = matches!(self.uri, InputUri::Rtp { .. });
        let mut recogniser = if named { Recogniser::of_rtp() } else { Recogniser::new() };
        let mut seen = 0;
        let verdict = loop {
            // What was read before is looked at again: waiting may have been broken off.
            if let Some(verdict) = self.pieces.ahead().skip(seen).find_map(|c| recogniser.push(&c.bytes)) {
                break verdict;
            }
            seen = self.pieces.ahead().count();
            let read = self.pieces.read_ahead();
            let more =
                if seen == 0 { read.await? } else { tokio::time::timeout(SILENCE, read).await.unwrap_or(Ok(false))? };
            if !more {
                break recogniser.so_far();
            }
        };
        match verdict {
            Verdict::Stream => {
                if !named {
                    self.rtp = Some(Box::new(Rtp::new(DEFAULT_WINDOW.into())));
                }
                Ok(Mode::Media)
            }
            Verdict::Plain | Verdict::RunsOn if !named => Ok(Mode::Media),
            _ if named => Err(Failure::usage(format!("{}: {}", self.name, refusal(verdict)))),
            _ => {
                match passes_as(verdict) {
                    Some(what) => warning(&format!("{} {what}", self.name)),
                    None => self.watch = Some(Watch::default()),
                }
                Ok(Mode::Datagram)
            }
        }
    }
}

/// What the user should know of what goes as datagrams, if anything.
fn passes_as(verdict: Verdict) -> Option<String> {
    const WITHOUT: &str = "goes as a datagram, without classes and without play-out at a fixed latency";
    match verdict {
        Verdict::Rtp { payload_type } => {
            Some(format!("is RTP with {}, not an MPEG transport stream: each packet {WITHOUT}", content(payload_type)))
        }
        Verdict::MayRunOn => Some(format!(
            "looks like a transport stream whose packets run on from datagram to datagram, with gaps: each datagram \
             {WITHOUT}; if it is one, take --mode media, and let the encoder send whole packets (ffmpeg: ?pkt_size=1316)"
        )),
        Verdict::Wider { size } => Some(format!(
            "is a transport stream with packets of {size} bytes ({}): each datagram {WITHOUT}; let the encoder send \
             packets of 188 bytes{}",
            detect::more_than_188(size),
            if size == 192 { " (ffmpeg: without -mpegts_m2ts_mode)" } else { "" }
        )),
        Verdict::Stream | Verdict::Plain | Verdict::RunsOn | Verdict::Other => None,
    }
}

/// Why it cannot go through `rtp://`, and what to do.
fn refusal(verdict: Verdict) -> String {
    match verdict {
        Verdict::Plain => "what comes is a transport stream without RTP; take it from udp://".into(),
        Verdict::Rtp { payload_type } => format!(
            "what comes is RTP with {}, not an MPEG transport stream; let the encoder send MPEG-TS (payload type \
             {PAYLOAD_TYPE}), or take it from udp://, each packet a datagram without play-out",
            content(payload_type)
        ),
        _ => "what comes is no RTP; take it from udp://".into(),
    }
}

/// What payload types hold (RFC 3551 §6), as far as people meet them.
fn content(payload_type: u8) -> String {
    let what = match payload_type {
        0 | 8 => "sound as G.711",
        14 => "sound as MPEG audio",
        26 => "pictures as JPEG",
        32 => "pictures as MPEG video",
        96..=127 => "whatever its SDP says, such as H.264 or Opus",
        _ => "something else",
    };
    format!("payload type {payload_type} ({what})")
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(to_std(at).into()).await,
        None => std::future::pending().await,
    }
}
