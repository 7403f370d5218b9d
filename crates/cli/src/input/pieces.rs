//! What was read from a source and not handed out yet.

use super::Chunk;
use crate::exit::Failure;
use anabranch_net::now;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;

/// Most that is held while there is no session, bytes and pieces, whatever the latency.
const HELD_BYTES: usize = 64 << 20;
pub(super) const HELD: usize = 100_000;

/// The pieces of a source in the order in which they came.
pub(super) struct Pieces {
    rx: mpsc::Receiver<Result<Chunk, Failure>>,
    ahead: VecDeque<Chunk>,
    bytes: usize,
    /// How reading ended, while something is left in `ahead`.
    end: Option<Result<(), Failure>>,
}

impl Pieces {
    pub fn new(rx: mpsc::Receiver<Result<Chunk, Failure>>) -> Self {
        Pieces { rx, ahead: VecDeque::new(), bytes: 0, end: None }
    }

    /// The next one; none at the end. May be dropped at any time.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if let Some(chunk) = self.ahead.pop_front() {
            self.bytes -= chunk.bytes.len();
            return Ok(Some(chunk));
        }
        match self.end.clone() {
            Some(end) => end.map(|()| None),
            None => self.rx.recv().await.transpose(),
        }
    }

    /// Reads one more, which stays; false at the end. May be dropped at any time.
    pub async fn read_ahead(&mut self) -> Result<bool, Failure> {
        match self.rx.recv().await.transpose()? {
            Some(chunk) => self.keep(chunk),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Reads one more, or notes how reading ended.
    pub async fn read_or_end(&mut self) {
        match self.rx.recv().await {
            Some(Ok(chunk)) => self.keep(chunk),
            Some(Err(failure)) => self.end = Some(Err(failure)),
            None => self.end = Some(Ok(())),
        }
    }

    /// Reads what is there.
    pub fn read_now(&mut self) {
        while let Ok(Ok(chunk)) = self.rx.try_recv() {
            self.keep(chunk);
        }
    }

    /// How reading ended.
    pub fn end(&self) -> Option<Result<(), Failure>> {
        self.end.clone()
    }

    /// What was read and is still here, oldest first.
    pub fn ahead(&self) -> impl Iterator<Item = &Chunk> {
        self.ahead.iter()
    }

    /// Bytes of it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops what came more than `age` ago, and the oldest beyond what is held at most; how many bytes.
    pub fn drop_old(&mut self, age: Duration) -> usize {
        let (now, mut dropped) = (now(), 0);
        while let Some(oldest) = self.ahead.front() {
            let full = self.bytes - dropped > HELD_BYTES || self.ahead.len() > HELD;
            if !full && oldest.at + age.into() >= now {
                break;
            }
            dropped += oldest.bytes.len();
            self.ahead.pop_front();
        }
        self.bytes -= dropped;
        dropped
    }

    fn keep(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes.len();
        self.ahead.push_back(chunk);
    }

    #[cfg(test)]
    pub fn room(&self) -> (usize, usize) {
        (self.ahead.len(), self.ahead.capacity())
    }
}
