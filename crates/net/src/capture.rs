//! Captures: every packet, as it was on the wire, into a pcapng file.
//!
//! A thread of its own writes, so that a slow disk never holds up a packet; when it cannot keep up, packets are
//! missing from the capture and counted.

use crate::config::Transport;
use crate::error::Error;
use anabranch_engine::LocalId;
use anabranch_wire::{Direction, Encapsulation, InterfaceId, LinkType, PcapngWriter};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Packets that may wait for the disk.
const QUEUE: usize = 8_192;
/// The file is complete up to this long ago.
const FLUSH: Duration = Duration::from_millis(500);

struct Record {
    nanos: u64,
    direction: Direction,
    local: LocalId,
    /// Name of the interface, with its first packet.
    name: Option<String>,
    from: SocketAddr,
    to: SocketAddr,
    packet: Vec<u8>,
}

/// What the driver tells the writer.
enum Order {
    Packet(Record),
    /// Write all there is, then answer.
    Flush(SyncSender<()>),
}

/// The driver's end of a capture. Dropping it completes the file.
pub(crate) struct Capture {
    records: Option<SyncSender<Order>>,
    writer: Option<JoinHandle<()>>,
    named: Vec<LocalId>,
    /// Real time of `started`.
    epoch: Duration,
    started: Instant,
}

impl Capture {
    /// Creates the file, replacing what is there.
    pub fn create(transport: Transport, path: PathBuf) -> Result<Self, Error> {
        let wrong = |source| Error::Capture { path: path.clone(), source };
        let file = File::create(&path).map_err(wrong)?;
        let mut pcap = PcapngWriter::new(BufWriter::with_capacity(256 << 10, file), "anabranch").map_err(wrong)?;
        pcap.flush().map_err(wrong)?;
        let (records, queue) = sync_channel(QUEUE);
        let shown = path.clone();
        let write = move || {
            if let Err(error) = write_all(transport, &mut pcap, &queue) {
                tracing::warn!(%error, file = %shown.display(), "the capture ends here");
            }
        };
        let writer = std::thread::Builder::new().name("anabranch-pcap".into()).spawn(write).map_err(Error::Driver)?;
        Ok(Capture {
            records: Some(records),
            writer: Some(writer),
            named: Vec::new(),
            epoch: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            started: Instant::now(),
        })
    }

    /// Notes a packet; false when it could not be.
    pub fn packet(
        &mut self,
        direction: Direction,
        (local, name): (LocalId, &str),
        (from, to): (SocketAddr, SocketAddr),
        packet: &[u8],
    ) -> bool {
        let Some(records) = &self.records else { return false };
        // One reading of the calendar clock, then the steady one: a capture whose times jump back misleads.
        let nanos = u64::try_from((self.epoch + self.started.elapsed()).as_nanos()).unwrap_or(u64::MAX);
        let is_new = !self.named.contains(&local);
        let name = is_new.then(|| name.to_owned());
        let record = Record { nanos, direction, local, name, from, to, packet: packet.to_vec() };
        match records.try_send(Order::Packet(record)) {
            Ok(()) => {
                if is_new {
                    self.named.push(local);
                }
                true
            }
            Err(TrySendError::Full(_)) => false,
            // The writer has warned and gone.
            Err(TrySendError::Disconnected(_)) => {
                self.records = None;
                false
            }
        }
    }
}

impl Capture {
    /// Waits until everything noted is in the file, but not for ever.
    pub fn flush(&mut self) {
        let (done, written) = sync_channel(1);
        if self.records.as_ref().is_some_and(|r| r.try_send(Order::Flush(done)).is_ok()) {
            let _ = written.recv_timeout(FLUSH * 4);
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.records = None;
        if let Some(w) = self.writer.take() {
            let _ = w.join();
        }
    }
}

fn write_all<W: Write>(transport: Transport, pcap: &mut PcapngWriter<W>, queue: &Receiver<Order>) -> io::Result<()> {
    let mut interfaces: BTreeMap<LocalId, InterfaceId> = BTreeMap::new();
    let mut wrapped = Vec::new();
    let mut flushed = Instant::now();
    loop {
        match queue.recv_timeout(FLUSH) {
            Ok(Order::Packet(r)) => {
                let interface = match interfaces.get(&r.local) {
                    Some(&i) => i,
                    None => {
                        let i = pcap.add_interface(r.name.as_deref().unwrap_or("?"), LinkType::RAW_IP)?;
                        interfaces.insert(r.local, i);
                        i
                    }
                };
                wrapped.clear();
                let headers = match transport {
                    Transport::Udp => Encapsulation::udp(r.from, r.to),
                    Transport::RawIp => Encapsulation::ip(r.from.ip(), r.to.ip()),
                };
                headers.wrap(&r.packet, &mut wrapped);
                pcap.packet(interface, r.nanos, r.direction, &wrapped)?;
            }
            Ok(Order::Flush(done)) => {
                pcap.flush()?;
                let _ = done.send(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return pcap.flush(),
        }
        if flushed.elapsed() >= FLUSH {
            pcap.flush()?;
            flushed = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_reach_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pcapng");
        let mut c = Capture::create(Transport::Udp, path.clone()).unwrap();
        let ends = ("10.0.0.1:5".parse().unwrap(), "10.0.0.2:9899".parse().unwrap());
        for i in 0..3 {
            assert!(c.packet(Direction::Out, (LocalId(0), "wlan0"), ends, &[i; 32]));
        }
        c.flush();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.windows(5).filter(|w| w == b"wlan0").count(), 1);
        assert!((0..3).all(|i| bytes.windows(32).any(|w| w == [i; 32])));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        let e = Capture::create(Transport::Udp, "/nonexistent/a.pcapng".into()).err().unwrap();
        assert!(e.to_string().starts_with("cannot write the capture /nonexistent/a.pcapng: "));
    }

    /// A full disk ends the capture, and nothing else.
    #[test]
    fn a_writer_that_fails_is_no_harm() {
        if !std::path::Path::new("/dev/full").exists() {
            eprintln!("SKIPPED a_writer_that_fails_is_no_harm: no /dev/full");
            return;
        }
        // Flushing the file header fails at once there.
        assert!(matches!(Capture::create(Transport::Udp, "/dev/full".into()), Err(Error::Capture { .. })));
        struct Full;
        impl Write for Full {
            fn write(&mut self, b: &[u8]) -> io::Result<usize> {
                if b.first() == Some(&6) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(b.len()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (records, queue) = sync_channel(QUEUE);
        let mut pcap = PcapngWriter::new(Full, "").unwrap();
        let thread = std::thread::spawn(move || write_all(Transport::Udp, &mut pcap, &queue).map_err(|e| e.kind()));
        let mut c = Capture {
            records: Some(records),
            writer: None,
            named: Vec::new(),
            epoch: Duration::ZERO,
            started: Instant::now(),
        };
        let ends = ("10.0.0.1:5".parse().unwrap(), "10.0.0.2:9899".parse().unwrap());
        c.packet(Direction::In, (LocalId(0), "x"), ends, &[0; 32]);
        assert_eq!(thread.join().unwrap(), Err(io::ErrorKind::StorageFull));
        assert!(!c.packet(Direction::In, (LocalId(0), "x"), ends, &[0; 32]));
    }
}
