//! Gives out a recording at the pace of its own clock.

use super::{Chunk, Input};
use crate::exit::Failure;
use anabranch_base::{Duration, Instant, Rate};
use anabranch_media::pacing::{Paced, PacerConfig, PcrPacer};
use bytes::BytesMut;
use tokio::sync::mpsc;

/// What is due within this time leaves together.
const GRAIN: Duration = Duration::from_millis(1);

/// How to pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Rate of a stream without a clock, bits per second.
    pub fallback: u64,
}

type Sender = mpsc::Sender<Result<Chunk, Failure>>;

/// Nobody takes the pieces any more.
struct Gone;

/// Collects what is due together and lets it go in time.
struct Release {
    start: Instant,
    due: Instant,
    batch: BytesMut,
    tx: Sender,
}

impl Release {
    async fn piece(&mut self, piece: &Paced) -> Result<(), Gone> {
        let at = self.start + piece.at;
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
        let chunk = Chunk { at: self.due, bytes: self.batch.split().freeze() };
        self.tx.send(Ok(chunk)).await.map_err(|_| Gone)
    }
}

/// Reads `input` to its end and passes it on in time.
pub(super) async fn run(mut input: Input, pace: Pace, tx: Sender) {
    let fallback = Some(Rate::from_bits_per_sec(pace.fallback));
    let mut pacer = PcrPacer::new(PacerConfig { fallback, ..PacerConfig::default() });
    let start = anabranch_net::now();
    let mut release = Release { start, due: start, batch: BytesMut::new(), tx };
    loop {
        let more = match input.next().await {
            Ok(Some(chunk)) => {
                pacer.push(&chunk.bytes);
                true
            }
            Ok(None) => {
                pacer.finish();
                false
            }
            Err(failure) => {
                // What was read before the failure still goes out, in time.
                pacer.finish();
                while let Some(piece) = pacer.poll() {
                    if release.piece(&piece).await.is_err() {
                        return;
                    }
                }
                if release.flush().await.is_ok() {
                    // A receiver that went meanwhile needs no news.
                    let _ = release.tx.send(Err(failure)).await;
                }
                return;
            }
        };
        while let Some(piece) = pacer.poll() {
            if release.piece(&piece).await.is_err() {
                return;
            }
        }
        if !more {
            // The end shows by the channel being closed.
            let _ = release.flush().await;
            return;
        }
    }
}
