//! Sockets, of UDP or raw ones of SCTP's protocol number: bound, widened, never blocking.

use crate::config::Transport;
use crate::error::Error;
use crate::interface::Binding;
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::UdpSocketState;
use rustix::net::sockopt::{self as options, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram;

/// Wished size of socket buffers, bytes: a tenth of a second at 320 Mbit/s.
const BUFFER: usize = 4 << 20;

/// SCTP's number among the protocols of IP.
const PROTOCOL_SCTP: u8 = 132;

/// Does the machine speak IPv6?
pub(crate) fn has_ipv6() -> bool {
    new(Transport::Udp, SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)).is_ok()
}

fn new(transport: Transport, address: SocketAddr) -> Result<Socket, Error> {
    let wrong = |source| Error::Bind { address, source };
    let domain = Domain::for_address(address);
    match transport {
        Transport::Udp => {
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(wrong)?;
            if address.is_ipv6() {
                socket.set_only_v6(true).map_err(wrong)?;
            }
            Ok(socket)
        }
        // A raw socket of IPv6 never sees IPv4.
        Transport::RawIp => Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(PROTOCOL_SCTP)))).map_err(
            |source| match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    Error::NoRight { what: "sending SCTP on raw IP".into(), right: "CAP_NET_RAW" }
                }
                _ => wrong(source),
            },
        ),
    }
}

/// A socket that listens on `address`.
pub(crate) fn listen(transport: Transport, address: SocketAddr) -> Result<UdpSocket, Error> {
    finish(new(transport, address)?, transport, address)
}

/// A socket that sends as `binding` says, from this UDP port; 0 is a free one.
pub(crate) fn open(transport: Transport, binding: &Binding, udp_port: u16) -> Result<UdpSocket, Error> {
    let mut address = binding.address;
    address.set_port(udp_port);
    let socket = new(transport, address)?;
    if let Some(device) = &binding.device {
        // Since Linux 5.7 a socket's first device needs no right; before, CAP_NET_RAW.
        socket.bind_device(Some(device.as_bytes())).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Error::NoRight { what: format!("binding to {device}"), right: "CAP_NET_RAW" }
            }
            _ => Error::Bind { address, source },
        })?;
    }
    finish(socket, transport, address)
}

/// The address of a socket, without a port where there is none: the kernel shows the protocol's number there.
pub(crate) fn address_of(transport: Transport, socket: &UdpSocket) -> io::Result<SocketAddr> {
    Ok(transport.normal(socket.local_addr()?))
}

fn finish(socket: Socket, transport: Transport, address: SocketAddr) -> Result<UdpSocket, Error> {
    socket.bind(&transport.normal(address).into()).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse(address),
        io::ErrorKind::PermissionDenied => {
            Error::NoRight { what: format!("binding to port {}", address.port()), right: "CAP_NET_BIND_SERVICE" }
        }
        io::ErrorKind::AddrNotAvailable => Error::NoSuchAddress(address.ip()),
        _ => Error::Bind { address, source },
    })?;
    widen(&socket);
    socket.set_nonblocking(true).map_err(|source| Error::Bind { address, source })?;
    Ok(socket.into())
}

/// Asks for large buffers: beyond the system's limit where that is allowed, else up to it.
fn widen(socket: &Socket) {
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_err()
        && let Err(error) = socket.set_recv_buffer_size(BUFFER)
    {
        tracing::debug!(%error, "the receive buffer keeps its default size");
    }
    if let Err(error) = socket.set_send_buffer_size(BUFFER) {
        tracing::debug!(%error, "the send buffer keeps its default size");
    }
}

/// Claims an SCTP port of an address on raw IP, as long as the result lives. Every raw socket gets every packet, so two
/// endpoints on one port would end each other's associations; the kernel does not keep them apart.
pub(crate) fn claim(address: SocketAddr) -> Result<UnixDatagram, Error> {
    let wrong = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => Error::SctpPortInUse(address),
        _ => Error::Bind { address, source },
    };
    // Abstract names vanish with their owner, and belong to a network namespace as ports do.
    let name =
        std::os::unix::net::SocketAddr::from_abstract_name(format!("anabranch/sctp/{address}")).map_err(wrong)?;
    UnixDatagram::bind_addr(&name).map_err(wrong)
}

/// The address a wildcard socket would send from to reach `remote`; for captures and statistics only.
pub(crate) fn source_towards(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // Nothing is sent, but the kernel wants some port.
    probe.connect(SocketAddr::new(remote.ip(), remote.port().max(1))).ok()?;
    Some(probe.local_addr().ok()?.ip())
}

/// How a socket is read and written. A raw one goes the same ways as one of UDP: the system calls that read and write
/// datagrams, and what comes with them, are the same.
#[derive(Debug)]
pub(crate) struct Manner {
    pub state: UdpSocketState,
    transport: Transport,
    ipv4: bool,
}

impl Manner {
    /// That of a socket.
    pub fn of(transport: Transport, socket: &UdpSocket) -> io::Result<Self> {
        Ok(Manner { state: UdpSocketState::new(socket.into())?, transport, ipv4: socket.local_addr()?.is_ipv4() })
    }

    /// Packets of one call; segmentation is an offload of UDP.
    pub fn max_segments(&self) -> usize {
        match self.transport {
            Transport::Udp => self.state.max_gso_segments(),
            Transport::RawIp => 1,
        }
    }

    /// Lets IP divide what `send` sends; all else leaves whole (RFC 8899 §3). IPv4 divides on the way, IPv6 at the sender
    /// for what the kernel knows of the route. One thread of an endpoint only: a probe that left meanwhile would be divided.
    pub fn dividing<T>(&self, socket: &UdpSocket, send: impl FnOnce() -> T) -> T {
        let set = |divide: bool| {
            let done = match (self.ipv4, divide) {
                (true, true) => options::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DONT),
                (true, false) => options::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE),
                (false, true) => options::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT),
                (false, false) => options::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE),
            };
            if let Err(error) = done {
                tracing::debug!(%error, divide, "whether IP may divide packets cannot be said");
            }
        };
        set(true);
        let out = send();
        set(false);
        out
    }

    /// Does what it reads begin with the IP header? Raw sockets of IPv4 show it.
    pub fn shows_header(&self) -> bool {
        self.ipv4 && self.transport == Transport::RawIp
    }
}

/// A socket with its offloads.
pub(crate) struct Io {
    pub socket: UdpSocket,
    pub manner: Manner,
}

impl Io {
    pub fn new(transport: Transport, socket: UdpSocket) -> io::Result<Self> {
        let manner = Manner::of(transport, &socket)?;
        Ok(Io { socket, manner })
    }
}

/// What follows the IPv4 header of a datagram; `None` when that is not SCTP.
pub(crate) fn behind_ipv4_header(datagram: &[u8]) -> Option<&[u8]> {
    let header = datagram.first_chunk::<20>()?;
    let words = usize::from(header[0] & 0xf);
    (header[0] >> 4 == 4 && words >= 5 && header[9] == PROTOCOL_SCTP).then(|| datagram.get(words * 4..))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let first = listen(Transport::Udp, "127.0.0.1:0".parse().unwrap()).unwrap();
        let taken = first.local_addr().unwrap();
        assert!(matches!(listen(Transport::Udp, taken), Err(Error::InUse(a)) if a == taken));
    }

    #[test]
    fn wildcards_of_both_families_share_a_port() {
        if !has_ipv6() {
            eprintln!("SKIPPED wildcards_of_both_families_share_a_port: no IPv6");
            return;
        }
        let v4 = listen(Transport::Udp, "0.0.0.0:0".parse().unwrap()).unwrap();
        let port = v4.local_addr().unwrap().port();
        let v6 = listen(Transport::Udp, SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)).unwrap();
        assert_eq!(v6.local_addr().unwrap().port(), port);
    }

    #[test]
    fn buffers_are_wide() {
        let s: Socket = listen(Transport::Udp, "127.0.0.1:0".parse().unwrap()).unwrap().into();
        let plain = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        assert!(s.recv_buffer_size().unwrap() >= plain.recv_buffer_size().unwrap());
    }

    #[test]
    fn the_source_towards_loopback_is_loopback() {
        let ip = source_towards("127.0.0.1:9".parse().unwrap()).unwrap();
        assert!(ip.is_loopback());
    }

    #[test]
    fn the_ip_header_is_taken_off() {
        let mut d = [0u8; 40];
        (d[0], d[9], d[20], d[24]) = (0x45, 132, 7, 9);
        assert_eq!(behind_ipv4_header(&d).map(|p| (p.len(), p[0])), Some((20, 7)));
        d[0] = 0x46;
        assert_eq!(behind_ipv4_header(&d).map(|p| (p.len(), p[0])), Some((16, 9)), "with an option");
        for (at, wrong) in [(0, 0x44), (0, 0x65), (0, 0x4f), (9, 17)] {
            let mut d = d;
            d[at] = wrong;
            assert_eq!(behind_ipv4_header(&d), None);
        }
        assert_eq!(behind_ipv4_header(&d[..19]), None);
    }
}
