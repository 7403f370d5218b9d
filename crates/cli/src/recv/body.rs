//! What to do with messages, by mode.

use crate::exit::Failure;
use crate::monitor::Progress;
use crate::output::Output;
use crate::session::{End, LATENCY_MAX, Mode, ppid};
use anabranch_media::{HEADER_LEN, MediaHeader, PlayoutBuffer, PlayoutConfig, StreamEnd};
use anabranch_net::{Instant, Message, now};
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
    /// What is left has to be out by then, whatever its time stamps say.
    ends: Option<Instant>,
    damaged: u64,
    /// Room for what goes out together.
    due: Vec<(Instant, Bytes)>,
}

/// Datagrams or a file.
#[derive(Default)]
pub(super) struct Plain {
    is_file: bool,
    messages: u64,
    bytes: u64,
}

impl Body {
    pub fn new(mode: Mode, latency: Duration) -> Self {
        if mode == Mode::Media {
            let playout = PlayoutBuffer::new(PlayoutConfig::new(latency.into()));
            Body::Media(Box::new(Media { playout, latency, over: None, ends: None, damaged: 0, due: Vec::new() }))
        } else {
            Body::Plain(Plain { is_file: mode == Mode::File, ..Plain::default() })
        }
    }

    /// False for a message that belongs to no such stream. What is due is put out by [`Body::on_timeout`], after all that
    /// came together.
    pub async fn take(&mut self, message: Message, output: &mut Output) -> Result<bool, Failure> {
        match self {
            Body::Media(m) => Ok(m.take(message)),
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
        [m.playout.next_timeout(), over, m.ends].into_iter().flatten().min()
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

    /// May messages be missing at the end without a report?
    pub fn may_lack(&self) -> bool {
        matches!(self, Body::Plain(p) if !p.is_file)
    }

    /// All that was sent has come, though not all may have been put out.
    pub fn has_all(&self, end: &End) -> bool {
        match self {
            Body::Media(m) => m.has_all(end),
            Body::Plain(_) => self.is_complete(end, false),
        }
    }

    /// Has anything been put out?
    pub fn has_put_out(&self) -> bool {
        match self {
            Body::Media(m) => m.playout.stats().played > 0,
            Body::Plain(p) => p.messages > 0,
        }
    }

    /// Nothing more will come: what is left is put out, each message at its instant, until [`Body::is_played_out`].
    pub fn finish(&mut self, end: Option<End>) {
        let Body::Media(m) = self else { return };
        let end = end.and_then(|end| m.believed(&end));
        m.playout.finish(end);
        m.ends.get_or_insert(now() + (m.latency + SPARE).into());
    }

    /// Nothing is left.
    pub fn is_played_out(&self) -> bool {
        match self {
            Body::Media(m) => m.playout.is_finished() || m.ends.is_some_and(|at| at <= now()),
            Body::Plain(_) => true,
        }
    }

    /// What is left, at once.
    pub async fn put_out_now(&mut self, output: &mut Output) -> Result<(), Failure> {
        let Body::Media(m) = self else { return Ok(()) };
        if output.is_live() {
            return Ok(());
        }
        let later = now() + (LATENCY_MAX * 2).into();
        while let Some(item) = m.playout.poll(later) {
            output.play(item.due, item.payload).await?;
        }
        Ok(())
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

/// Time for what is played out last, beyond the latency: time stamps are the sender's.
const SPARE: Duration = Duration::from_secs(1);

/// More messages than these behind the last one that came are no loss but a lie: an hour at 10 Mbit/s has 4 million.
const MISSING_MAX: u64 = 4_000_000;

impl Media {
    fn has_all(&self, end: &End) -> bool {
        let stats = self.playout.stats();
        stats.received - stats.duplicates >= end.messages
    }

    /// How much there was, if that can be.
    fn believed(&self, end: &End) -> Option<StreamEnd> {
        let stats = self.playout.stats();
        let known = stats.played + stats.late + stats.lost + self.playout.waiting().0 as u64;
        let most = known.saturating_add(MISSING_MAX);
        let fits = end.messages <= most && end.frames <= most;
        fits.then_some(StreamEnd { messages: end.messages, frames: end.frames })
    }

    fn take(&mut self, message: Message) -> bool {
        if message.ppid != ppid::MEDIA {
            return false;
        }
        let bytes = message.payload.into_bytes();
        let header = MediaHeader::decode(&bytes);
        let counts = header.is_ok();
        match header {
            // Copied: a small slice would keep the big buffer it arrived in.
            Ok(header) => {
                let payload = Bytes::copy_from_slice(bytes.get(HEADER_LEN..).unwrap_or(&[]));
                self.playout.insert(now(), header, payload);
            }
            Err(error) => {
                crate::warn::limited("damaged", || format!("a message of the stream is dropped: {error}"));
                self.damaged += 1;
            }
        }
        counts
    }

    async fn play(&mut self, output: &mut Output) -> Result<(), Failure> {
        let now = now();
        if let Some((at, end)) = self.over
            && (at <= now || self.has_all(&end))
        {
            let end = self.believed(&end);
            self.playout.finish(end);
        }
        while let Some(item) = self.playout.poll(now + EARLY.into()) {
            self.due.push((item.due, item.payload));
        }
        if !self.due.is_empty() {
            output.play_all(&mut self.due).await?;
        }
        while let Some(frame) = self.playout.poll_frame() {
            tracing::trace!(?frame);
        }
        Ok(())
    }
}

impl Plain {
    async fn take(&mut self, message: Message, output: &mut Output) -> Result<bool, Failure> {
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
            _ => return Ok(false),
        }
        self.messages += 1;
        Ok(true)
    }
}
