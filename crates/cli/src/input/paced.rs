//! Gives out a stream at the pace of its own clock: a recording evenly, what comes from a pipe not before its time.

use super::{Chunk, Input};
use crate::exit::Failure;
use anabranch_base::{Duration, Instant, Rate};
use anabranch_media::gate::PcrGate;
use anabranch_media::pacing::{Paced, PacerConfig, PcrPacer};
use bytes::BytesMut;
use tokio::sync::mpsc;

/// What is due within this time leaves together.
const GRAIN: Duration = Duration::from_millis(1);

/// The clock of a live encoder may be a little faster than ours, at most so many millionths. What comes from a pipe
/// is let through that much faster, so that an encoder never has to wait for us longer and longer.
const DRIFT: u64 = 100;

/// How to pace.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// A recording, by its clock, or at this rate when it has none, bits per second.
    Recording(u64),
    /// A pipe, which may be live: what is ahead of its clock waits, all else passes at once.
    Pipe,
}

/// Tells when each piece is due.
enum Pacer {
    Recording(Box<PcrPacer>),
    Pipe(Box<PcrGate>),
}

impl Pacer {
    fn new(pace: Pace) -> Self {
        match pace {
            Pace::Recording(rate) => {
                let fallback = Some(Rate::from_bits_per_sec(rate));
                Pacer::Recording(Box::new(PcrPacer::new(PacerConfig { fallback, ..PacerConfig::default() })))
            }
            Pace::Pipe => Pacer::Pipe(Box::default()),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Pacer::Recording(p) => p.push(bytes),
            Pacer::Pipe(g) => g.push(bytes),
        }
    }

    fn poll(&mut self, over: bool) -> Option<Paced> {
        match self {
            Pacer::Recording(p) => p.poll(),
            Pacer::Pipe(g) => g.poll().or_else(|| over.then(|| g.finish()).flatten()),
        }
    }

    fn finish(&mut self) {
        if let Pacer::Recording(p) = self {
            p.finish();
        }
    }
}

type Sender = mpsc::Sender<Result<Chunk, Failure>>;

/// The receiver of the pieces is gone.
struct Gone;

/// Collects what is due together and lets it go in time.
struct Release {
    pipe: bool,
    start: Option<Instant>,
    due: Instant,
    batch: BytesMut,
    tx: Sender,
}

impl Release {
    async fn piece(&mut self, piece: &Paced) -> Result<(), Gone> {
        let start = *self.start.get_or_insert_with(anabranch_net::now);
        let faster = if self.pipe { piece.at.as_nanos() / 1_000_000 * DRIFT } else { 0 };
        let at = start + (piece.at - Duration::from_nanos(faster));
        if at.since(self.due) >= GRAIN {
            self.flush().await?;
        }
        if self.batch.is_empty() {
            self.due = at;
        }
        self.batch.extend_from_slice(&piece.bytes);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        tokio::time::sleep_until(anabranch_net::to_std(self.due).into()).await;
        // A recording that is late makes up for it; what a live source gives late is worth as much as ever.
        let at = if self.pipe { self.due.max(anabranch_net::now()) } else { self.due };
        let chunk = Chunk { at, bytes: self.batch.split().freeze() };
        self.tx.send(Ok(chunk)).await.map_err(|_| Gone)
    }

    /// Everything that has its time now; from a pipe nothing waits for more to come.
    async fn all(&mut self, pacer: &mut Pacer, over: bool) -> Result<(), Gone> {
        while let Some(piece) = pacer.poll(over) {
            self.piece(&piece).await?;
        }
        if self.pipe || over { self.flush().await } else { Ok(()) }
    }
}

/// Reads `input` to its end and passes it on in time. Whoever takes the pieces may go at any time.
pub(super) async fn run(mut input: Input, pace: Pace, tx: Sender) {
    let pipe = matches!(pace, Pace::Pipe);
    let mut pacer = Pacer::new(pace);
    let mut release = Release { pipe, start: None, due: Instant::ZERO, batch: BytesMut::new(), tx };
    loop {
        let failure = match input.next().await {
            Ok(Some(chunk)) => {
                pacer.push(&chunk.bytes);
                if release.all(&mut pacer, false).await.is_err() {
                    return;
                }
                continue;
            }
            Ok(None) => None,
            Err(failure) => Some(failure),
        };
        // What was read before the end, or a failure, still goes out in time.
        pacer.finish();
        if release.all(&mut pacer, true).await.is_ok()
            && let Some(failure) = failure
        {
            let _ = release.tx.send(Err(failure)).await;
        }
        return;
    }
}
