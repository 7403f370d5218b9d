//! The relay's sockets.

use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Wished size of receive buffers, in bytes: at 1200-byte datagrams about 2,000 to 3,500 of them.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A socket that listens on `address`, without blocking.
pub(crate) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    widen(&socket);
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A socket on a port of its own that talks only to `target`, without blocking.
pub(super) fn upstream(from: Option<IpAddr>, target: SocketAddr) -> io::Result<UdpSocket> {
    let any = if target.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let socket = listen(SocketAddr::new(from.unwrap_or(any), 0))?;
    socket.connect(target)?;
    Ok(socket)
}

/// Asks for a large receive buffer: beyond the system's limit where that is allowed, else up to it.
fn widen(socket: &Socket) {
    #[cfg(target_os = "linux")]
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_ok() {
        return;
    }
    if let Err(error) = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER) {
        tracing::debug!(%error, "the receive buffer keeps its default size");
    }
}

/// Datagrams the kernel has dropped at these sockets for want of buffer, from `/proc/net/udp*`.
pub(super) fn kernel_drops<'a>(sockets: impl Iterator<Item = &'a UdpSocket>) -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::MetadataExt;
        let inode = |s: &UdpSocket| Some(std::fs::metadata(format!("/proc/self/fd/{}", s.as_raw_fd())).ok()?.ino());
        let inodes = sockets.map(inode).collect::<Option<Vec<u64>>>()?;
        let mut tables = std::fs::read_to_string("/proc/net/udp").ok()?;
        tables.push_str(&std::fs::read_to_string("/proc/net/udp6").unwrap_or_default());
        Some(drops_of(&tables, &inodes))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = sockets;
        None
    }
}

/// Sums the column `drops` of the lines whose column `inode` is one of these.
#[cfg(target_os = "linux")]
fn drops_of(tables: &str, inodes: &[u64]) -> u64 {
    let line = |line: &str| {
        // sl, local, remote, st, queues, timer, retrnsmt, uid, timeout, inode, ref, pointer, drops
        let inode = line.split_whitespace().nth(9)?.parse::<u64>().ok()?;
        let drops = line.split_whitespace().nth(12)?.parse::<u64>().ok()?;
        inodes.contains(&inode).then_some(drops)
    };
    tables.lines().filter_map(line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_socket_hears_its_target_only() {
        let target = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = target.local_addr().unwrap();
        let up = upstream(Some("127.0.0.2".parse().unwrap()), to).unwrap();
        let from = up.local_addr().unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.2");
        let stranger = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        stranger.send_to(b"no", from).unwrap();
        target.send_to(b"yes", from).unwrap();
        let mut buffer = [0; 9];
        assert_eq!(up.recv(&mut buffer).unwrap(), 3);
        assert!(up.recv(&mut buffer).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernels_drops_are_seen() {
        let socket = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(kernel_drops([&socket].into_iter()), Some(0));
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4_096).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; 1_000], socket.local_addr().unwrap()).unwrap();
        }
        let mut read = 0;
        while socket.recv(&mut [0; 2_000]).is_ok() {
            read += 1;
        }
        assert_eq!(kernel_drops([&socket].into_iter()), Some(100 - read));
        assert!(read < 100);
    }
}
