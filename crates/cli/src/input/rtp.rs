//! Datagrams that carry a transport stream in RTP.

use super::{Chunk, Input, detect, raw};
use crate::exit::{Failure, warning};
use crate::session::Mode;
use crate::uri::InputUri;
use anabranch_media::rtp::{DEFAULT_WINDOW, PAYLOAD_TYPE, Recogniser, RtpReceiver, Verdict};
use anabranch_net::{Instant, now, to_std};
use std::time::Duration;

/// When nothing more comes for so long, what came says what it is.
const SILENCE: Duration = Duration::from_millis(500);

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
                chunk = raw(&mut self.ahead, &mut self.rx) => match chunk? {
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
            if let Some(verdict) = self.ahead.iter().skip(seen).find_map(|c| recogniser.push(&c.bytes)) {
                break verdict;
            }
            seen = self.ahead.len();
            let next = self.rx.recv();
            let next = if seen == 0 { Ok(next.await) } else { tokio::time::timeout(SILENCE, next).await };
            match next {
                Ok(Some(chunk)) => self.ahead.push_back(chunk?),
                Ok(None) | Err(_) => break recogniser.so_far(),
            }
        };
        match verdict {
            Verdict::Stream => {
                if !named {
                    self.rtp = Some(Box::new(Rtp::new(DEFAULT_WINDOW.into())));
                }
                Ok(Mode::Media)
            }
            Verdict::Plain if !named => Ok(Mode::Media),
            _ if named => Err(Failure::usage(format!("{}: {}", self.name, refusal(verdict)))),
            Verdict::Rtp { payload_type } => {
                warning(&format!(
                    "{} is RTP with {}, not an MPEG transport stream: each packet goes as a datagram, without classes \
                     and without play-out at a fixed latency",
                    self.name,
                    content(payload_type)
                ));
                Ok(Mode::Datagram)
            }
            _ => {
                // A stream of which one packet is damaged.
                let first = self.ahead.front().map_or(&[][..], |c| &c.bytes);
                let media = first.len().is_multiple_of(188) && detect::is_transport_stream(first);
                Ok(if media { Mode::Media } else { Mode::Datagram })
            }
        }
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
        Verdict::Stream | Verdict::Other => "what comes is no RTP; take it from udp://".into(),
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
