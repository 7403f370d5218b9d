//! Sources: UDP, RTP, files, standard input.

pub mod detect;
mod paced;
mod pieces;
mod rtp;
mod stream;
mod udp;

pub use paced::Pace;
pub use stream::plain;

use crate::exit::{Failure, warning};
use crate::filemark::FileMark;
use crate::monitor::Progress;
use crate::session::Mode;
use crate::uri::InputUri;
use anabranch_net::Instant;
use bytes::Bytes;
use pieces::Pieces;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pieces of a stream that may wait between the reader and the sender.
const QUEUE: usize = 256;
/// Datagrams that may: what waits here has the time of its arrival, what waits in the socket has not.
const DATAGRAMS: usize = 2_048;

/// Datagrams of media gather for this part of their latency, and no longer than this, before they are read.
const GATHER_PART: u32 = 75;
const GATHER_MOST: Duration = Duration::from_millis(4);

/// Bytes that came in: a datagram, or as much of a stream as was read.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When they came, or were due.
    pub at: Instant,
    /// The bytes.
    pub bytes: Bytes,
}

/// A film in a container.
pub struct Film {
    pub kind: &'static str,
    /// A command that streams it.
    pub streamed: String,
}

/// An open source.
pub struct Input {
    /// Where it comes from, for messages.
    name: String,
    uri: InputUri,
    file: Option<FileMark>,
    pieces: Pieces,
    /// Takes the pieces out of RTP.
    rtp: Option<Box<rtp::Rtp>>,
    /// Looks whether what goes as datagrams turns out to be a transport stream.
    watch: Option<rtp::Watch>,
    /// It runs at its own pace, whoever takes it.
    paced: bool,
    /// Of a network source.
    pause: udp::Pause,
}

impl Input {
    /// Opens a source; what cannot be opened is an error at once.
    pub fn open(uri: &InputUri) -> Result<Self, Failure> {
        let waiting = if uri.is_datagrams() { DATAGRAMS } else { QUEUE };
        let (tx, rx) = mpsc::channel(waiting);
        let pause = udp::Pause::default();
        let (name, file) = match uri {
            InputUri::Udp { address, interface } => {
                udp::start(*address, interface.as_deref(), pause.clone(), tx)?;
                (format!("udp://{address}"), None)
            }
            InputUri::Rtp { address, interface, .. } => {
                udp::start(*address, interface.as_deref(), pause.clone(), tx)?;
                (format!("rtp://{address}"), None)
            }
            InputUri::File(path) => (path.display().to_string(), stream::start_file(path, tx)?),
            InputUri::Stdin => ("standard input".into(), stream::start_stdin(tx)?),
        };
        let rtp = match uri {
            InputUri::Rtp { reorder, .. } => Some(Box::new(rtp::Rtp::new(*reorder))),
            _ => None,
        };
        Ok(Input { rtp, pause, ..Input::of(name, uri.clone(), file, rx) })
    }

    fn of(name: String, uri: InputUri, file: Option<FileMark>, rx: mpsc::Receiver<Result<Chunk, Failure>>) -> Self {
        Input {
            name,
            uri,
            file,
            pieces: Pieces::new(rx),
            rtp: None,
            watch: None,
            paced: false,
            pause: udp::Pause::default(),
        }
    }

    /// Media that are played so much later: a small part of that is no loss, and saves most of what reading costs.
    pub fn gather(&self, latency: Duration) {
        self.pause.set(if self.rtp.is_some() { Duration::ZERO } else { (latency / GATHER_PART).min(GATHER_MOST) });
    }

    /// Do datagrams gather? Then pieces come every few milliseconds, empty ones if need be, and one when they gather no
    /// more.
    pub fn gathers(&self) -> bool {
        self.pause.gathers()
    }

    /// Tells its file from all others of this machine.
    pub fn file(&self) -> Option<FileMark> {
        self.file
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How a transport stream from here is to be paced, if at all; `rate` is for a recording without a clock.
    pub fn pace(&self, rate: u64) -> Option<Pace> {
        match self.uri {
            InputUri::File(_) => Some(Pace::Recording(rate)),
            InputUri::Stdin => Some(Pace::Pipe),
            InputUri::Udp { .. } | InputUri::Rtp { .. } => None,
        }
    }

    /// Are its pieces parts of one stream, rather than messages of their own?
    pub fn is_one_stream(&self) -> bool {
        !self.uri.is_datagrams()
    }

    /// The next piece; none at the end. May be dropped at any time.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if self.rtp.is_some() {
            return self.next_of_rtp().await;
        }
        let chunk = self.pieces.next().await?;
        if let (Some(watch), Some(chunk)) = (&mut self.watch, &chunk)
            && watch.is_over(&chunk.bytes, &self.name)
        {
            self.watch = None;
        }
        Ok(chunk)
    }

    /// Goes on whether anybody takes it or not: a network source, or one that runs at a pace. Others wait by themselves.
    pub fn goes_on(&self) -> bool {
        self.is_live() || self.paced
    }

    fn is_live(&self) -> bool {
        self.uri.is_datagrams()
    }

    /// Is it a file, which has its beginning for whoever comes?
    pub fn is_file(&self) -> bool {
        matches!(self.uri, InputUri::File(_))
    }

    /// Reads on while there is no session, and drops what is older than `age`: it would only be sent late. Returns
    /// at the end of the input; what is left can still be taken. May be dropped at any time.
    pub async fn hold(&mut self, age: Duration, progress: &Progress) -> Result<(), Failure> {
        loop {
            self.drop_old(age, progress);
            if let Some(end) = self.pieces.end() {
                return end;
            }
            self.pieces.read_or_end().await;
        }
    }

    /// Throws away what a source that goes on by itself brought more than `age` ago.
    pub fn skip_old(&mut self, age: Duration, progress: &Progress) {
        if !self.goes_on() {
            return;
        }
        self.pieces.read_now();
        self.drop_old(age, progress);
    }

    fn drop_old(&mut self, age: Duration, progress: &Progress) {
        let dropped = self.pieces.drop_old(age);
        if dropped > 0 {
            progress.update(|row| row.dropped_bytes += dropped as u64);
        }
    }

    /// What the first bytes look like. Waits for them; may be dropped at any time.
    pub async fn detect(&mut self) -> Result<Mode, Failure> {
        if self.uri.is_datagrams() {
            return self.detect_rtp().await;
        }
        while self.pieces.bytes() < detect::HEAD {
            if !self.pieces.read_ahead().await? {
                break;
            }
        }
        let mut head = Vec::new();
        self.pieces.ahead().for_each(|chunk| head.extend_from_slice(&chunk.bytes));
        if detect::is_transport_stream(&head) {
            return Ok(Mode::Media);
        }
        if let Some(film) = self.film(&head) {
            warning(&format!("{} is {} and goes as a file; to stream it: {}", self.name, film.kind, film.streamed));
        }
        Ok(Mode::File)
    }

    /// What begins like this, where it is a film that cannot be streamed as it is.
    pub fn film(&self, head: &[u8]) -> Option<Film> {
        let kind = detect::film(head).filter(|_| self.is_one_stream() && !detect::is_transport_stream(head))?;
        let source = self.file.as_ref().map_or("-", |_| self.name.as_str());
        let av1 = if detect::is_av1(head) {
            " (it is AV1, which few players find in a transport stream; -c:v libx264 in place of -c copy codes it anew)"
        } else {
            ""
        };
        let streamed = format!("ffmpeg -re -i {source} -c copy -f mpegts - | anabranch send - …{av1}");
        Some(Film { kind, streamed })
    }

    /// The user says that it is media: where datagrams hold RTP, the stream is taken out of it.
    pub fn expect_media(&mut self) {
        if matches!(self.uri, InputUri::Udp { .. }) {
            self.rtp = Some(Box::new(rtp::Rtp::if_there_is_rtp()));
        }
    }

    /// Sends the pieces at the pace of the stream's own clock from now on.
    pub fn paced(self, pace: Pace) -> Self {
        let (tx, rx) = mpsc::channel(QUEUE);
        let (name, uri, file) = (self.name.clone(), self.uri.clone(), self.file);
        tokio::spawn(paced::run(self, pace, tx));
        Input { paced: true, ..Input::of(name, uri, file, rx) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_net::now;

    fn input(uri: InputUri) -> (mpsc::Sender<Result<Chunk, Failure>>, Input) {
        let (tx, rx) = mpsc::channel(DATAGRAMS);
        (tx, Input::of(String::new(), uri, None, rx))
    }

    fn udp() -> InputUri {
        InputUri::Udp { address: "127.0.0.1:5001".parse().expect("an address"), interface: None }
    }

    fn piece() -> Chunk {
        Chunk { at: now(), bytes: Bytes::from_static(b"x") }
    }

    async fn rest(mut input: Input) -> usize {
        let mut count = 0;
        while let Ok(Some(_)) = input.next().await {
            count += 1;
        }
        count
    }

    /// Of a source whose pieces came 80 ms and no time ago: how many are left at a latency of 40 ms, how many went.
    async fn left(uri: InputUri) -> (usize, u64) {
        let (tx, mut input) = input(uri);
        for pause in [80, 0] {
            for _ in 0..10 {
                assert!(tx.send(Ok(piece())).await.is_ok());
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let progress = Progress::default();
        input.skip_old(Duration::from_millis(40), &progress);
        drop(tx);
        (rest(input).await, progress.get().dropped_bytes)
    }

    #[tokio::test]
    async fn what_a_live_source_brought_before_the_latency_is_not_sent() {
        assert_eq!(left(udp()).await, (10, 10));
        assert_eq!(left(InputUri::Stdin).await, (20, 0), "a pipe waits by itself");
    }

    /// A million pieces without anybody to send to: what is held is bounded by the latency, and by number whatever that is.
    #[tokio::test]
    async fn an_hour_without_a_receiver_takes_no_memory() {
        for (age, most) in [(Duration::ZERO, 0), (Duration::from_secs(3_600), pieces::HELD)] {
            let (tx, mut input) = input(udp());
            let progress = Progress::default();
            let feed = async {
                for _ in 0..1_000_000 {
                    assert!(tx.send(Ok(piece())).await.is_ok());
                }
            };
            tokio::select! {
                () = feed => {}
                ended = input.hold(age, &progress) => panic!("{ended:?}"),
            }
            drop(tx);
            assert_eq!(input.hold(age, &progress).await, Ok(()));
            assert!(
                input.pieces.room().0 <= most && input.pieces.room().1 <= 2 * pieces::HELD.max(DATAGRAMS),
                "{age:?}"
            );
            let dropped = progress.get().dropped_bytes;
            assert_eq!(rest(input).await as u64 + dropped, 1_000_000);
        }
    }

    #[tokio::test]
    async fn what_was_looked_at_is_not_lost_however_often_the_look_is_broken_off() {
        let (tx, mut input) = input(InputUri::Stdin);
        for byte in 0..5u8 {
            let bytes = Bytes::from(vec![byte; 1_000]);
            assert!(tx.send(Ok(Chunk { at: now(), bytes })).await.is_ok());
            let brief = Duration::from_millis(1);
            let found = tokio::time::timeout(brief, input.detect()).await;
            assert_eq!(found.is_ok(), byte == 4, "with 4096 bytes it is known");
        }
        drop(tx);
        for byte in 0..5u8 {
            let chunk = input.next().await.expect("no failure").expect("a piece");
            assert_eq!(chunk.bytes, vec![byte; 1_000]);
        }
    }
}
