//! What to do with messages, by mode.

use crate::exit::Failure;
use crate::monitor::Progress;
use crate::output::Output;
use crate::session::{End, Mode, ppid};
use anabranch_media::{HEADER_LEN, MediaHeader, PlayoutBuffer, PlayoutConfig, StreamEnd};
use anabranch_net::{Instant, Message, now, to_std};
use bytes::Bytes;
use std::time::Duration;

/// What is due within so long goes out with what is due: waking for each message costs more than the message.
const EARLY: Duration = Duration::from_millis(2);

/// Where messages go on their way to the output.
pub(super) enum Body {
    /// Through the play-out buffer.
    Media(Box<Media>),
    /// Straight through.
    Plain(Plain),
}

/// A media stream.
pub(super) struct Media {
    playout: PlayoutBuffer,
    latency: Duration,
    /// When nothing more can come in time.
    over: Option<(Instant, End)>,
    damaged: u64,
}

/// Datagrams or a file.
#[derive(Default)]
pub(super) struct Plain {
    is_file: bool,
    latency: Duration,
    messages: u64,
    bytes: u64,
}

impl Body {
    pub fn new(mode: Mode, latency: Duration) -> Self {
        if mode == Mode::Media {
            let playout = PlayoutBuffer::new(PlayoutConfig::new(latency.into()));
            Body::Media(Box::new(Media { playout, latency, over: None, damaged: 0 }))
        } else {
            Body::Plain(Plain { is_file: mode == Mode::File, latency, ..Plain::default() })
        }
    }

    pub fn latency(&self) -> Duration {
        match self {
            Body::Media(m) => m.latency,
            Body::Plain(p) => p.latency,
        }
    }

    pub async fn take(&mut self, message: Message, output: &mut Output) -> Result<(), Failure> {
        match self {
            Body::Media(m) => m.take(message, output).await,
            Body::Plain(p) => p.take(message, output).await,
        }
    }

    pub fn on_end(&mut self, end: &End) {
        if let Body::Media(m) = self {
            // The last message was due at most one latency after the sender's last word.
            m.over = Some((now() + m.latency.into(), *end));
        }
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        let Body::Media(m) = self else { return None };
        let over = m.over.filter(|_| !m.playout.is_finished()).map(|(at, _)| at);
        [m.playout.next_timeout(), over].into_iter().flatten().min()
    }

    pub async fn on_timeout(&mut self, output: &mut Output) -> Result<(), Failure> {
        match self {
            Body::Media(m) => m.play(output).await,
            Body::Plain(_) => Ok(()),
        }
    }

    /// Has everything come that will?
    pub fn is_complete(&self, end: &End, quiet: bool) -> bool {
        match self {
            Body::Media(m) => m.playout.is_finished(),
            Body::Plain(p) if p.is_file => p.bytes >= end.bytes,
            Body::Plain(p) => p.messages >= end.messages || quiet,
        }
    }

    /// May messages be missing at the end, without anybody being told?
    pub fn may_lack(&self) -> bool {
        matches!(self, Body::Plain(p) if !p.is_file)
    }

    /// Nothing more will come: puts out the rest, each message at its instant.
    pub async fn drain(&mut self, output: &mut Output, end: Option<End>) -> Result<(), Failure> {
        let Body::Media(m) = self else { return Ok(()) };
        m.playout.finish(end.map(stream_end));
        loop {
            m.play(output).await?;
            match m.playout.next_timeout() {
                Some(at) if !m.playout.is_finished() => tokio::time::sleep_until(to_std(at).into()).await,
                _ => return Ok(()),
            }
        }
    }

    /// What should have come and did not, where nothing may be missing.
    pub fn missing(&self, end: &End) -> Option<String> {
        match self {
            Body::Plain(p) if p.is_file && end.interrupted => Some("the sender was interrupted".into()),
            Body::Plain(p) if p.is_file && p.bytes != end.bytes => {
                Some(format!("{} of {} bytes came", p.bytes, end.bytes))
            }
            _ => None,
        }
    }

    pub fn count(&self, progress: &Progress) {
        progress.update(|row| match self {
            Body::Media(m) => {
                let s = m.playout.stats();
                row.messages = s.played;
                row.bytes = s.bytes_played;
                row.frames = s.frames.frames();
                row.frames_unusable = s.frames.frames_unusable();
                row.late = s.late;
                row.lost = s.lost;
            }
            Body::Plain(p) => {
                row.messages = p.messages;
                row.bytes = p.bytes;
            }
        });
    }
}

fn stream_end(end: End) -> StreamEnd {
    StreamEnd { messages: end.messages, frames: end.frames }
}

impl Media {
    async fn take(&mut self, message: Message, output: &mut Output) -> Result<(), Failure> {
        if message.ppid != ppid::MEDIA {
            return Ok(());
        }
        let bytes = message.payload.into_bytes();
        match MediaHeader::decode(&bytes) {
            // Copied: a small slice would keep the big buffer it arrived in.
            Ok(header) => {
                let payload = Bytes::copy_from_slice(bytes.get(HEADER_LEN..).unwrap_or(&[]));
                self.playout.insert(now(), header, payload);
            }
            Err(error) => {
                if self.damaged == 0 {
                    tracing::warn!(%error, "a message is dropped; further ones are counted only");
                }
                self.damaged += 1;
            }
        }
        self.play(output).await
    }

    async fn play(&mut self, output: &mut Output) -> Result<(), Failure> {
        let now = now();
        if let Some((at, end)) = self.over {
            let received = self.playout.stats();
            if at <= now || received.received - received.duplicates >= end.messages {
                self.playout.finish(Some(stream_end(end)));
            }
        }
        while let Some(item) = self.playout.poll(now + EARLY.into()) {
            output.play(item.due, item.payload).await?;
        }
        while let Some(frame) = self.playout.poll_frame() {
            tracing::trace!(?frame);
        }
        Ok(())
    }
}

impl Plain {
    async fn take(&mut self, message: Message, output: &mut Output) -> Result<(), Failure> {
        match message.ppid {
            ppid::BYTES if self.is_file => {
                for piece in message.payload.pieces() {
                    output.write(piece.clone()).await?;
                }
                self.bytes += message.payload.len() as u64;
            }
            ppid::DATAGRAM if !self.is_file => {
                self.bytes += message.payload.len() as u64;
                output.write(message.payload.into_bytes()).await?;
            }
            ppid::EMPTY_DATAGRAM if !self.is_file => output.write(Bytes::new()).await?,
            _ => return Ok(()),
        }
        self.messages += 1;
        Ok(())
    }
}
