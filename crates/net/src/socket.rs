//! UDP sockets: bound, widened, never blocking.

use crate::error::Error;
use crate::interface::Binding;
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::UdpSocketState;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Wished size of socket buffers, bytes: a tenth of a second at 320 Mbit/s.
const BUFFER: usize = 4 << 20;

/// Does the machine speak IPv6?
pub(crate) fn has_ipv6() -> bool {
    new(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)).is_ok()
}

fn new(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// A socket that listens on `address`.
pub(crate) fn listen(address: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = new(address).map_err(|source| Error::Bind { address, source })?;
    finish(socket, address)
}

/// A socket that sends as `binding` says, from a free port.
pub(crate) fn open(binding: &Binding) -> Result<UdpSocket, Error> {
    let address = binding.address;
    let socket = new(address).map_err(|source| Error::Bind { address, source })?;
    if let Some(device) = &binding.device {
        // Since Linux 5.7 a socket's first device needs no right; before, CAP_NET_RAW.
        socket.bind_device(Some(device.as_bytes())).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NoRight { what: device.clone(), right: "CAP_NET_RAW" },
            _ => Error::Bind { address, source },
        })?;
    }
    finish(socket, address)
}

fn finish(socket: Socket, address: SocketAddr) -> Result<UdpSocket, Error> {
    socket.bind(&address.into()).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::InUse(address),
        io::ErrorKind::PermissionDenied => {
            Error::NoRight { what: format!("port {}", address.port()), right: "CAP_NET_BIND_SERVICE" }
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

/// The address a wildcard socket would send from to reach `remote`; for captures and statistics only.
pub(crate) fn source_towards(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    probe.connect(remote).ok()?;
    Some(probe.local_addr().ok()?.ip())
}

/// A socket known to the runtime, with its offloads.
pub(crate) struct Io {
    pub socket: tokio::net::UdpSocket,
    pub state: UdpSocketState,
}

impl Io {
    /// Registers a socket with the runtime of the calling task.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Io { socket: tokio::net::UdpSocket::from_std(socket)?, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let first = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let taken = first.local_addr().unwrap();
        assert!(matches!(listen(taken), Err(Error::InUse(a)) if a == taken));
    }

    #[test]
    fn wildcards_of_both_families_share_a_port() {
        if !has_ipv6() {
            eprintln!("skipped: wildcards_of_both_families_share_a_port (no IPv6)");
            return;
        }
        let v4 = listen("0.0.0.0:0".parse().unwrap()).unwrap();
        let port = v4.local_addr().unwrap().port();
        let v6 = listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)).unwrap();
        assert_eq!(v6.local_addr().unwrap().port(), port);
    }

    #[test]
    fn buffers_are_wide() {
        let s: Socket = listen("127.0.0.1:0".parse().unwrap()).unwrap().into();
        let plain = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        assert!(s.recv_buffer_size().unwrap() >= plain.recv_buffer_size().unwrap());
    }

    #[test]
    fn the_source_towards_loopback_is_loopback() {
        let ip = source_towards("127.0.0.1:9".parse().unwrap()).unwrap();
        assert!(ip.is_loopback());
    }
}
