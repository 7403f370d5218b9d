//! Sinks: UDP, RTP, files, standard output.
//!
//! Files are written by a thread of their own. Whenever nothing waits, what was written is handed to the
//! system, so that the part received is on disk whatever happens to this program.

use crate::exit::Failure;
use crate::filemark::FileMark;
use crate::input::plain;
use crate::udp;
use crate::uri::OutputUri;
use anabranch_media::rtp::{RtpSender, RtpSenderConfig};
use anabranch_net::{Instant, now};
use bytes::Bytes;
use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Pieces that may wait for the writer.
const QUEUE: usize = 1_024;

/// An open sink.
pub struct Output {
    name: String,
    sink: Sink,
    bytes: u64,
    /// A file whose earlier content is still there.
    old: Option<File>,
    file: Option<FileMark>,
    /// The network takes several datagrams by one call.
    bursts: bool,
}

enum Sink {
    Udp(udp::Sender),
    Rtp { socket: udp::Sender, sender: Box<RtpSender> },
    Writer(Writer),
}

struct Writer {
    jobs: mpsc::Sender<Job>,
    failed: Arc<AtomicBool>,
}

enum Job {
    Write(Bytes),
    Flush(oneshot::Sender<io::Result<()>>),
}

impl Output {
    /// Opens a sink; what cannot be opened is an error at once. A file keeps what it holds until something is written.
    pub fn open(uri: &OutputUri) -> Result<Self, Failure> {
        let (mut old, mut mark) = (None, None);
        let (name, sink) = match uri {
            OutputUri::Udp { address, ttl, interface } => {
                let socket = udp::sender(*address, *ttl, interface.as_deref())?;
                (format!("udp://{address}"), Sink::Udp(socket))
            }
            OutputUri::Rtp { address, ttl, interface, payload_type, ssrc } => {
                let socket = udp::sender(*address, *ttl, interface.as_deref())?;
                let sender = Box::new(RtpSender::new(rtp_config(*payload_type, *ssrc)));
                (format!("rtp://{address}"), Sink::Rtp { socket, sender })
            }
            OutputUri::File(path) => {
                let name = path.display().to_string();
                let wrong = |e: io::Error| cannot_write(&name, &e);
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(wrong)?;
                // Pipes and devices have nothing to lose.
                if file.metadata().map_err(wrong)?.is_file() {
                    old = Some(file.try_clone().map_err(wrong)?);
                    mark = FileMark::of(&file);
                }
                (name, start(file)?)
            }
            OutputUri::Stdout => ("standard output".into(), start(io::stdout())?),
        };
        Ok(Output { name, sink, bytes: 0, old, file: mark, bursts: true })
    }

    /// Another stream begins. A file keeps what it holds until something is written.
    pub fn begin(&mut self) {
        if let Sink::Rtp { sender, .. } = &mut self.sink {
            sender.begin();
        }
    }

    /// What comes now replaces what an earlier file of this name held. The first write does this by itself.
    pub fn replace(&mut self) -> Result<(), Failure> {
        match self.old.take() {
            Some(file) => file.set_len(0).map_err(|e| cannot_write(&self.name, &e)),
            None => Ok(()),
        }
    }

    /// Tells its file from all others of this machine.
    pub fn file(&self) -> Option<FileMark> {
        self.file
    }

    /// Bytes put out so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is put out now is seen now, and cannot be put out all at once later.
    pub fn is_live(&self) -> bool {
        !matches!(self.sink, Sink::Writer(_))
    }

    /// Is there no place in it for datagrams and files?
    pub fn takes_media_only(&self) -> bool {
        matches!(self.sink, Sink::Rtp { .. })
    }

    /// Puts out the next piece of a stream, which was due at this instant.
    pub async fn play(&mut self, due: Instant, bytes: Bytes) -> Result<(), Failure> {
        let Sink::Rtp { socket, sender } = &mut self.sink else { return self.write(bytes).await };
        self.bytes += bytes.len() as u64;
        sender.push(due, &bytes);
        while let Some(packet) = sender.poll() {
            if let Err(error) = socket.send(packet).await {
                tracing::debug!(%error, to = self.name, "a packet was not taken");
            }
        }
        Ok(())
    }

    /// Puts out a datagram, or the next piece of a stream.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Failure> {
        if matches!(self.sink, Sink::Rtp { .. }) {
            return Box::pin(self.play(now(), bytes)).await;
        }
        self.bytes += bytes.len() as u64;
        self.replace()?;
        match &self.sink {
            Sink::Rtp { .. } => Ok(()),
            Sink::Udp(socket) => {
                if let Err(error) = socket.send(&bytes).await {
                    if is_too_long(&error) {
                        return self.datagrams(&bytes).await;
                    }
                    tracing::debug!(%error, to = self.name, "a datagram was not taken");
                }
                Ok(())
            }
            Sink::Writer(writer) => {
                let taken = writer.jobs.send(Job::Write(bytes)).await.is_ok();
                // Flushing tells why.
                if taken && !writer.failed.load(Ordering::Relaxed) { Ok(()) } else { self.flush().await }
            }
        }
    }

    /// Puts out what is due together, in order; the list is empty afterwards.
    pub async fn play_all(&mut self, items: &mut Vec<(Instant, Bytes)>) -> Result<(), Failure> {
        if let Sink::Udp(socket) = &self.sink
            && items.len() > 1
        {
            let mut left = items.as_slice();
            while let Some((_, first)) = left.first().filter(|_| self.bursts) {
                let (run, rest) = left.split_at(udp::burst(left.iter().map(|(_, b)| b.len())));
                if run.len() > 1 {
                    let list: Vec<&[u8]> = run.iter().map(|(_, b)| b.as_ref()).collect();
                    if let Err(error) = socket.send_burst(&list).await {
                        tracing::debug!(%error, to = self.name, "datagrams go one by one from now on");
                        self.bursts = false;
                        break;
                    }
                } else if let Err(error) = socket.send(first).await {
                    if is_too_long(&error) {
                        self.datagrams(first).await?;
                    } else {
                        tracing::debug!(%error, to = self.name, "a datagram was not taken");
                    }
                }
                self.bytes += run.iter().map(|(_, b)| b.len() as u64).sum::<u64>();
                left = rest;
            }
            let sent = items.len() - left.len();
            items.drain(..sent);
        }
        for (due, bytes) in items.drain(..) {
            self.play(due, bytes).await?;
        }
        Ok(())
    }

    /// A piece that is too long for one datagram, as several.
    async fn datagrams(&self, bytes: &[u8]) -> Result<(), Failure> {
        let Sink::Udp(socket) = &self.sink else { return Ok(()) };
        for piece in bytes.chunks(7 * 188) {
            if let Err(error) = socket.send(piece).await {
                tracing::debug!(%error, to = self.name, "a datagram was not taken");
            }
        }
        Ok(())
    }

    /// Returns once everything put out so far is with the system.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        let Sink::Writer(writer) = &self.sink else { return Ok(()) };
        let (tx, rx) = oneshot::channel();
        let ended = || Err(io::Error::other("the writer has ended"));
        let result = match writer.jobs.send(Job::Flush(tx)).await {
            Ok(()) => rx.await.unwrap_or_else(|_| ended()),
            Err(_) => ended(),
        };
        result.map_err(|e| cannot_write(&self.name, &e))
    }
}

/// What RFC 3550 §5.1 wants to be random is.
fn rtp_config(payload_type: u8, ssrc: Option<u32>) -> RtpSenderConfig {
    // The standard library's hasher has a random key.
    let random = |n: u32| RandomState::new().hash_one(n);
    let ssrc = ssrc.unwrap_or_else(|| random(0) as u32);
    RtpSenderConfig { payload_type, ssrc, sequence: random(1) as u16, timestamp: random(2) as u32 }
}

fn cannot_write(name: &str, e: &io::Error) -> Failure {
    Failure::usage(format!("cannot write {name}: {}", plain(e)))
}

fn is_too_long(e: &io::Error) -> bool {
    e.raw_os_error() == Some(nix::errno::Errno::EMSGSIZE as i32)
}

fn start(to: impl Write + Send + 'static) -> Result<Sink, Failure> {
    let (jobs, rx) = mpsc::channel(QUEUE);
    let failed = Arc::new(AtomicBool::new(false));
    let flag = failed.clone();
    std::thread::Builder::new()
        .name("output".into())
        .spawn(move || write_all(BufWriter::with_capacity(256 << 10, to), rx, &flag))
        .map_err(|e| Failure::network(format!("cannot start a thread for the output: {e}")))?;
    Ok(Sink::Writer(Writer { jobs, failed }))
}

/// Writes what comes until the other end goes. After an error nothing is written any more, and every flush
/// returns the error.
fn write_all(mut to: impl Write, mut jobs: mpsc::Receiver<Job>, flag: &AtomicBool) {
    let mut failed: Option<io::ErrorKind> = None;
    let mut text = String::new();
    while let Some(job) = jobs.blocking_recv() {
        let flush_now = jobs.is_empty();
        let (result, answer) = match job {
            Job::Write(_) if failed.is_some() => continue,
            Job::Write(bytes) => {
                let written = to.write_all(&bytes);
                (if flush_now { written.and_then(|()| to.flush()) } else { written }, None)
            }
            Job::Flush(answer) => match failed {
                Some(kind) => (Err(io::Error::new(kind, text.clone())), Some(answer)),
                None => (to.flush(), Some(answer)),
            },
        };
        if let (Err(e), None) = (&result, failed) {
            failed = Some(e.kind());
            flag.store(true, Ordering::Relaxed);
            text = plain(e);
        }
        if let Some(answer) = answer {
            // Whoever asked may have gone.
            let _ = answer.send(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            let n = b.len().min(self.0);
            self.0 -= n;
            if n == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_reported() {
        let mut out = Output {
            name: "x".into(),
            sink: start(Full(600 << 10)).unwrap(),
            bytes: 0,
            old: None,
            file: None,
            bursts: true,
        };
        out.write(Bytes::from(vec![1; 500 << 10])).await.unwrap();
        out.flush().await.unwrap();
        let full = Failure::Usage("cannot write x: no space is left".into());
        // Known at once, or when it is asked for.
        if let Err(failure) = out.write(Bytes::from(vec![1; 500 << 10])).await {
            assert_eq!(failure, full);
        }
        let failure = out.flush().await.unwrap_err();
        assert_eq!(failure, full);
        assert_eq!(out.flush().await.unwrap_err(), failure, "reported again");
    }

    #[tokio::test]
    async fn written_is_on_disk_without_asking() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut out = Output::open(&OutputUri::File(path.clone())).unwrap();
        out.write(Bytes::from_static(b"abc")).await.unwrap();
        for _ in 0..200 {
            if std::fs::read(&path).unwrap() == b"abc" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("not written");
    }
}
