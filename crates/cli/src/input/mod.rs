//! Sources: UDP, RTP, files, standard input.

pub mod detect;
mod paced;
mod rtp;
mod stream;
mod udp;

pub use paced::Pace;
pub use stream::plain;

use crate::exit::Failure;
use crate::filemark::FileMark;
use crate::session::Mode;
use crate::uri::InputUri;
use anabranch_net::{Instant, now};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pieces of a stream that may wait between the reader and the sender.
const QUEUE: usize = 256;
/// Datagrams that may: what waits here has the time of its arrival, what waits in the socket has not.
const DATAGRAMS: usize = 2_048;

/// How long old input is looked for.
const SKIPPING: Duration = Duration::from_millis(20);

/// Bytes that came in: a datagram, or as much of a stream as was read.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// When they came, or were due.
    pub at: Instant,
    /// The bytes.
    pub bytes: Bytes,
}

/// An open source.
pub struct Input {
    /// Where it comes from, for messages.
    name: String,
    uri: InputUri,
    file: Option<FileMark>,
    rx: mpsc::Receiver<Result<Chunk, Failure>>,
    /// Read ahead to find out what it is.
    ahead: VecDeque<Chunk>,
    /// Takes the pieces out of RTP.
    rtp: Option<Box<rtp::Rtp>>,
}

impl Input {
    /// Opens a source; what cannot be opened is told at once.
    pub fn open(uri: &InputUri) -> Result<Self, Failure> {
        let waiting = if uri.is_datagrams() { DATAGRAMS } else { QUEUE };
        let (tx, rx) = mpsc::channel(waiting);
        let (name, file) = match uri {
            InputUri::Udp { address, interface } => {
                udp::start(*address, interface.as_deref(), tx)?;
                (format!("udp://{address}"), None)
            }
            InputUri::Rtp { address, interface, .. } => {
                udp::start(*address, interface.as_deref(), tx)?;
                (format!("rtp://{address}"), None)
            }
            InputUri::File(path) => (path.display().to_string(), stream::start_file(path, tx)?),
            InputUri::Stdin => ("standard input".into(), stream::start_stdin(tx)?),
        };
        let rtp = match uri {
            InputUri::Rtp { reorder, .. } => Some(Box::new(rtp::Rtp::new(*reorder))),
            _ => None,
        };
        Ok(Input { name, uri: uri.clone(), file, rx, ahead: VecDeque::new(), rtp })
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

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if self.rtp.is_some() { self.next_of_rtp().await } else { raw(&mut self.ahead, &mut self.rx).await }
    }

    /// Throws away what a live source brought more than `age` ago: it would only be sent late. Files and pipes wait by
    /// themselves.
    pub async fn skip_old(&mut self, age: Duration) {
        if !self.uri.is_datagrams() {
            return;
        }
        let now = now();
        // Where the queue is full the rest waits in the socket, and nothing says since when.
        let overflowed = self.rx.len() >= DATAGRAMS;
        let until = tokio::time::Instant::now() + SKIPPING;
        while overflowed && tokio::time::Instant::now() < until {
            while matches!(self.rx.try_recv(), Ok(Ok(_))) {}
            tokio::time::sleep(SKIPPING / 10).await;
        }
        while let Ok(Ok(chunk)) = self.rx.try_recv() {
            self.ahead.push_back(chunk);
        }
        self.ahead.retain(|c| !overflowed && c.at + age.into() >= now);
    }

    /// What the first bytes look like. Waits for them.
    pub async fn detect(&mut self) -> Result<Mode, Failure> {
        if self.uri.is_datagrams() {
            return self.detect_rtp().await;
        }
        let mut head = Vec::new();
        while head.len() < detect::HEAD {
            let Some(chunk) = self.rx.recv().await.transpose()? else { break };
            head.extend_from_slice(&chunk.bytes);
            self.ahead.push_back(chunk);
        }
        Ok(if detect::is_transport_stream(&head) { Mode::Media } else { Mode::File })
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
        Input { name, uri, file, rx, ahead: VecDeque::new(), rtp: None }
    }
}

/// The next piece as it came; none at the end.
async fn raw(
    ahead: &mut VecDeque<Chunk>,
    rx: &mut mpsc::Receiver<Result<Chunk, Failure>>,
) -> Result<Option<Chunk>, Failure> {
    match ahead.pop_front() {
        Some(chunk) => Ok(Some(chunk)),
        None => rx.recv().await.transpose(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a source whose pieces came 80 ms and no time ago: how many are left at a latency of 40 ms.
    async fn left(uri: InputUri) -> usize {
        let (tx, rx) = mpsc::channel(DATAGRAMS);
        let mut input = Input { name: String::new(), uri, file: None, rx, ahead: VecDeque::new(), rtp: None };
        for pause in [80, 0] {
            for _ in 0..10 {
                let chunk = Chunk { at: now(), bytes: Bytes::from_static(b"x") };
                assert!(tx.send(Ok(chunk)).await.is_ok());
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        input.skip_old(Duration::from_millis(40)).await;
        drop(tx);
        let mut count = 0;
        while let Ok(Some(_)) = input.next().await {
            count += 1;
        }
        count
    }

    #[tokio::test]
    async fn what_a_live_source_brought_before_the_latency_is_not_sent() {
        let address = "127.0.0.1:5001".parse().expect("an address");
        assert_eq!(left(InputUri::Udp { address, interface: None }).await, 10);
        assert_eq!(left(InputUri::Stdin).await, 20, "a pipe waits by itself");
    }
}
