//! Sockets for those that bring their own driver, as the library with the sockets API does: it has an engine for each
//! SCTP port of a process, and no runtime.

use crate::batch::Batch;
use crate::config::{Local, Transport};
use crate::driver::{Buffers, Sent, send_by};
use crate::error::Error;
use crate::interface;
use crate::socket::{self, Manner};
use quinn_udp::EcnCodepoint;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::task::Poll;

/// A socket that never blocks, with its offloads.
#[derive(Debug)]
pub struct Wire {
    socket: UdpSocket,
    manner: Manner,
    transport: Transport,
    address: SocketAddr,
}

/// The address a wildcard socket would send from to reach `remote`.
pub fn source_towards(remote: IpAddr) -> Option<IpAddr> {
    socket::source_towards(SocketAddr::new(remote, 1))
}

/// Claims an SCTP port of an address on raw IP, as long as the result lives: the kernel does not keep the endpoints of
/// several processes apart.
///
/// # Errors
/// Another process of this network namespace has it.
pub fn claim(address: SocketAddr) -> Result<UnixDatagram, Error> {
    socket::claim(address)
}

impl Wire {
    /// One that listens on `address`; a wildcard hears its own family only.
    ///
    /// # Errors
    /// A port in use, an address that is not there, a right that is missing.
    pub fn listen(transport: Transport, address: SocketAddr) -> Result<Wire, Error> {
        Wire::new(transport, socket::listen(transport, address)?)
    }

    /// One that is bound to `local`, to its device too where it has one; port 0 is any.
    ///
    /// # Errors
    /// As [`Wire::listen`]; an interface that is not there, or has no address of the family.
    pub fn open(transport: Transport, local: &Local, ipv4: bool, port: u16) -> Result<Wire, Error> {
        let all = interface::list().map_err(Error::Driver)?;
        let family: IpAddr = if ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let binding = interface::resolve(&all, local, SocketAddr::new(family, 0), None)?;
        Wire::new(transport, socket::open(transport, &binding, port)?)
    }

    fn new(transport: Transport, socket: UdpSocket) -> Result<Wire, Error> {
        let manner = Manner::of(transport, &socket).map_err(Error::Driver)?;
        let address = socket::address_of(transport, &socket).map_err(Error::Driver)?;
        Ok(Wire { socket, manner, transport, address })
    }

    /// This socket with another descriptor, for callers to which its number matters.
    pub fn with(self, another: impl FnOnce(UdpSocket) -> UdpSocket) -> Wire {
        Wire { socket: another(self.socket), ..self }
    }

    /// Where it is bound; on raw IP the port is 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a batch. False when the socket takes nothing now; packets that the kernel refuses are lost, as on any
    /// path.
    pub fn send(&self, batch: &Batch) -> bool {
        match send_by(&self.socket, &self.manner, batch) {
            Poll::Ready(Sent { errno, .. }) => {
                if let Some(error) = errno {
                    tracing::debug!(%error, to = %batch.remote, "a packet was refused");
                }
                true
            }
            Poll::Pending => false,
        }
    }

    /// Reads a batch; how many buffers were filled. `take` gets where each packet came to, if the kernel says it, from
    /// where, the packet, and whether a queue marked it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is nothing; what became of an earlier packet (ICMP).
    pub fn receive(
        &self,
        buffers: &mut Buffers,
        mut take: impl FnMut(Option<IpAddr>, SocketAddr, &[u8], bool),
    ) -> io::Result<usize> {
        let n = buffers.fill_from(&self.socket, &self.manner)?;
        for (meta, datagrams) in buffers.filled(n) {
            let to = meta.dst_ip.filter(|d| !d.is_multicast() && !matches!(d, IpAddr::V4(d) if d.is_broadcast()));
            // RFC 9260 §8.4 item 1; for one that is bound to an address the kernel checks this.
            if meta.dst_ip.is_some() && to.is_none() {
                continue;
            }
            for datagram in datagrams {
                let packet =
                    if self.manner.shows_header() { socket::behind_ipv4_header(datagram) } else { Some(datagram) };
                if let Some(packet) = packet {
                    take(to, self.transport.normal(meta.addr), packet, meta.ecn == Some(EcnCodepoint::Ce));
                }
            }
        }
        Ok(n)
    }
}

impl AsRawFd for Wire {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batches;
    use anabranch_engine::{LocalId, Transmit};
    use anabranch_wire::{CommonHeader, CookieEcho};

    #[test]
    fn what_one_sends_another_reads() {
        let here = "127.0.0.1:0".parse().unwrap();
        let a = Wire::open(Transport::Udp, &Local::Address(Ipv4Addr::LOCALHOST.into()), true, 0).unwrap();
        let b = Wire::listen(Transport::Udp, here).unwrap();
        let mut t = Transmit { local: LocalId(0), remote: b.address(), ..Transmit::default() };
        t.packet.start(CommonHeader { src_port: 1, dst_port: 2, vtag: 3 });
        t.packet.push(&CookieEcho { cookie: &[7; 104] });
        let mut batches = Batches::default();
        (0..3).for_each(|_| batches.push_by(&t, 0, None));
        assert!(batches.take().iter().all(|batch| a.send(batch)));
        let (mut buffers, mut got) = (Buffers::new(), Vec::new());
        while got.len() < 3 {
            match b.receive(&mut buffers, |to, from, p, marked| got.push((to, from, p.len(), marked))) {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(got, [(Some(Ipv4Addr::LOCALHOST.into()), a.address(), 120, false); 3]);
    }

    #[test]
    fn a_port_in_use_is_an_error_of_its_own() {
        let first = Wire::listen(Transport::Udp, "127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(matches!(Wire::listen(Transport::Udp, first.address()), Err(Error::InUse(_))));
    }
}
