//! A socket of the driver, and the packets that wait for it.

use super::many;
use super::watch::{Watch, Watched};
use crate::batch::Batch;
use crate::config::Transport;
use crate::socket::{Io, Manner};
use anabranch_engine::LocalId;
use nix::errno::Errno;
use quinn_udp::{EcnCodepoint, Transmit as UdpTransmit};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::task::Poll;

/// Bytes that may wait for a socket that takes no more. Beyond it packets are dropped, as at any full queue:
/// congestion control sees it, and other paths go on meanwhile.
const OUTBOX: usize = 256 << 10;
/// Errors in a row on reading after which a socket is given up.
const MAX_FAILURES: u32 = 64;

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub packets: usize,
    pub calls: usize,
    /// Packets refused, and the last reason.
    pub errors: usize,
    pub errno: Option<Errno>,
}

pub(super) struct Port {
    pub local: LocalId,
    /// Shared with users that send from threads of their own, see [`crate::outlets`].
    pub io: Option<Arc<Io>>,
    transport: Transport,
    pub outbox: VecDeque<Batch>,
    outbox_bytes: usize,
    pub watched: Option<Watched>,
    failures: u32,
    pub reported_too_big: bool,
    /// Something may wait to be read.
    pub ready: bool,
}

impl Port {
    pub fn new(transport: Transport, local: LocalId, socket: Option<UdpSocket>, watch: Option<Watch>) -> Self {
        let mut port = Port {
            local,
            io: None,
            transport,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            watched: watch.map(Watched::new),
            failures: 0,
            reported_too_big: false,
            ready: true,
        };
        if let Some(s) = socket
            && let Err(error) = port.attach(s)
        {
            tracing::error!(%error, "a socket cannot be used");
        }
        port
    }

    /// Uses this socket from now on.
    pub fn attach(&mut self, socket: UdpSocket) -> io::Result<()> {
        self.io = Some(Arc::new(Io::new(self.transport, socket)?));
        self.failures = 0;
        self.reported_too_big = false;
        self.ready = true;
        Ok(())
    }

    pub fn nothing_waits(&self) -> bool {
        self.outbox.is_empty() || self.io.is_none()
    }

    /// Notes whether reading worked; true when the socket should be given up.
    pub fn read_failed(&mut self, failed: bool) -> bool {
        self.failures = if failed { self.failures + 1 } else { 0 };
        self.failures > MAX_FAILURES
    }

    /// Sends a batch, or says that the socket takes nothing now.
    pub fn send(&self, batch: &Batch) -> Poll<Sent> {
        match &self.io {
            Some(io) => send(io, batch),
            None => Poll::Ready(Sent { errors: batch.count(), errno: Some(Errno::ENODEV), ..Sent::default() }),
        }
    }

    /// Keeps a batch for later; false when too many wait already (the batch is given back).
    pub fn keep(&mut self, batch: Batch) -> Result<(), Batch> {
        if self.outbox_bytes + batch.contents.len() > OUTBOX {
            return Err(batch);
        }
        self.outbox_bytes += batch.contents.len();
        self.outbox.push_back(batch);
        Ok(())
    }

    /// Takes the first waiting batch.
    pub fn pop_waiting(&mut self) -> Option<Batch> {
        let b = self.outbox.pop_front()?;
        self.outbox_bytes -= b.contents.len();
        Some(b)
    }

    /// Puts the batch back that `pop_waiting` gave.
    pub fn unpop(&mut self, batch: Batch) {
        self.outbox_bytes += batch.contents.len();
        self.outbox.push_front(batch);
    }
}

/// Sends a batch, or says that the socket takes nothing now. From any thread.
pub(crate) fn send(io: &Io, batch: &Batch) -> Poll<Sent> {
    send_by(&io.socket, &io.manner, batch)
}

/// [`send`] on a socket that no runtime knows.
pub(crate) fn send_by(socket: &UdpSocket, manner: &Manner, batch: &Batch) -> Poll<Sent> {
    if batch.bits.divisible {
        return manner.dividing(socket, || send_now(socket, manner, batch));
    }
    send_now(socket, manner, batch)
}

fn send_now(socket: &UdpSocket, manner: &Manner, batch: &Batch) -> Poll<Sent> {
    let count = batch.count();
    let whole = count == 1 || manner.max_segments() >= count && !batch.bits.divisible;
    if whole {
        match send_one(socket, manner, batch, &batch.contents) {
            Ok(()) => return Poll::Ready(Sent { packets: count, calls: 1, ..Sent::default() }),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(e) if count == 1 || is_interface_gone(errno(&e)) => {
                return Poll::Ready(Sent { calls: 1, errors: count, errno: Some(errno(&e)), ..Sent::default() });
            }
            // The device does not like offload, or refuses one of the packets: one by one then.
            Err(error) => tracing::debug!(%error, "a batch was refused"),
        }
    }
    let mut sent = Sent::default();
    // What remains after an error goes one by one, so that each has its own.
    while manner.max_segments() == 1 && !batch.bits.markable && sent.packets < count {
        match many::send(socket, batch, sent.packets) {
            Ok(n) if n > 0 => sent.packets += n,
            Err(Errno::EAGAIN) if sent.calls == 0 => return Poll::Pending,
            _ => break,
        }
        sent.calls += 1;
    }
    for packet in batch.packets().skip(sent.packets) {
        match send_one(socket, manner, batch, packet) {
            Ok(()) => sent.packets += 1,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && sent.calls == 0 => return Poll::Pending,
            Err(e) => {
                sent.errors += 1;
                sent.errno = Some(errno(&e));
            }
        }
        sent.calls += 1;
    }
    Poll::Ready(sent)
}

fn send_one(socket: &UdpSocket, manner: &Manner, batch: &Batch, contents: &[u8]) -> io::Result<()> {
    let transmit = UdpTransmit {
        destination: batch.remote,
        ecn: batch.bits.markable.then_some(EcnCodepoint::Ect0),
        contents,
        segment_size: (contents.len() > batch.segment).then_some(batch.segment),
        src_ip: batch.source,
    };
    manner.state.try_send(socket.into(), &transmit)
}

fn errno(e: &io::Error) -> Errno {
    e.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}

/// Errors that say that the interface or its address is gone, not that a packet is wrong.
pub(super) fn is_interface_gone(e: Errno) -> bool {
    matches!(
        e,
        Errno::ENODEV | Errno::ENXIO | Errno::ENETDOWN | Errno::ENETUNREACH | Errno::EADDRNOTAVAIL | Errno::EHOSTDOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batches;
    use crate::locals::{LocalSide, Slot};
    use anabranch_engine::Transmit;
    use anabranch_wire::{CommonHeader, CookieEcho};
    use std::net::SocketAddr;

    fn batch(to: SocketAddr, packets: usize) -> Batch {
        let side = LocalSide { name: "lo".into(), slot: Slot(0), source: None, address: to, trouble: None, up: true };
        let mut t = Transmit { remote: to, ..Transmit::default() };
        t.packet.start(CommonHeader { src_port: 1, dst_port: 2, vtag: 3 });
        t.packet.push(&CookieEcho { cookie: &[7; 984] });
        let mut all = Batches::default();
        (0..packets).for_each(|_| all.push(&t, &side));
        all.take().remove(0)
    }

    #[test]
    fn what_waits_is_bounded_and_keeps_its_order() {
        let mut port = Port::new(Transport::Udp, LocalId(0), None, None);
        let to = |i: usize| SocketAddr::from(([127, 0, 0, 1], i as u16));
        let fit = OUTBOX / 50_000;
        for i in 0..fit {
            port.keep(batch(to(i), 50)).unwrap();
        }
        assert!(port.keep(batch(to(99), 50)).is_err());
        let first = port.pop_waiting().unwrap();
        assert_eq!(first.remote, to(0));
        port.unpop(first);
        assert!(port.keep(batch(to(99), 50)).is_err());
        for i in 0..fit {
            assert_eq!(port.pop_waiting().unwrap().remote, to(i));
        }
        assert!(port.pop_waiting().is_none());
        assert!(port.keep(batch(to(99), 50)).is_ok());
    }

    #[test]
    fn a_batch_arrives_as_single_packets() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = crate::socket::listen(Transport::Udp, "127.0.0.1:0".parse().unwrap()).unwrap();
        let port = Port::new(Transport::Udp, LocalId(0), Some(sender), None);
        let sent = port.send(&batch(receiver.local_addr().unwrap(), 5));
        assert!(matches!(sent, Poll::Ready(Sent { packets: 5, errors: 0, errno: None, .. })), "{sent:?}");
        let mut buffer = [0; 9_000];
        for _ in 0..5 {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 1_000);
        }
    }

    #[test]
    fn errors_are_of_the_interface() {
        let to = "127.0.0.1:9".parse().unwrap();
        let gone = Port::new(Transport::Udp, LocalId(0), None, None).send(&batch(to, 3));
        let Poll::Ready(Sent { packets: 0, errors: 3, errno: Some(e), .. }) = gone else { panic!("{gone:?}") };
        assert!(is_interface_gone(e));
        // An IPv4 socket does not reach IPv6: an error of the packets, not of the interface.
        let sender = crate::socket::listen(Transport::Udp, "127.0.0.1:0".parse().unwrap()).unwrap();
        let port = Port::new(Transport::Udp, LocalId(0), Some(sender), None);
        let wrong = port.send(&batch("[::1]:9".parse().unwrap(), 3));
        let Poll::Ready(Sent { packets: 0, errors: 3, errno: Some(e), .. }) = wrong else { panic!("{wrong:?}") };
        assert!(!is_interface_gone(e), "{e}");
    }
}
