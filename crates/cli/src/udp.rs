//! UDP sockets of inputs, outputs and tunnels.

use crate::exit::Failure;
use crate::input::plain;
use anabranch_net::{Alarm, from_std, now};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Largest datagram.
pub const DATAGRAM_MAX: usize = 65_535;

/// Asked of the kernel for each socket; it gives what it may.
const BUFFER: usize = 8 << 20;

/// A socket that listens on an address, or for a multicast group.
pub fn listen(address: SocketAddr, interface: Option<&str>) -> Result<UdpSocket, Failure> {
    let wrong = |e: io::Error| Failure::network(format!("cannot listen on udp://{address}: {}", bind_hint(&e)));
    let socket = open(address).map_err(wrong)?;
    if address.ip().is_multicast() {
        // Several programs on one machine may listen to a group.
        socket.set_reuse_address(true).map_err(wrong)?;
        socket.bind(&address.into()).map_err(wrong)?;
        join(&socket, address.ip(), interface)?;
    } else {
        if let Some(name) = interface {
            return Err(Failure::usage(format!(
                "iface={name} goes with a multicast group; to listen on one interface name its address"
            )));
        }
        socket.bind(&address.into()).map_err(wrong)?;
    }
    into_tokio(socket).map_err(wrong)
}

/// A socket that sends to one address and hears only it.
pub fn connected(address: SocketAddr) -> Result<UdpSocket, Failure> {
    let wrong = |e: io::Error| Failure::network(format!("cannot send to udp://{address}: {}", plain(&e)));
    let socket = open(address).map_err(wrong)?;
    socket.connect(&address.into()).map_err(wrong)?;
    into_tokio(socket).map_err(wrong)
}

/// A socket to send to an address or a group. It is not connected, so that a receiver that is not there yet
/// does not show as an error.
pub fn sender(address: SocketAddr, ttl: Option<u32>, interface: Option<&str>) -> Result<UdpSocket, Failure> {
    let wrong = |e: io::Error| Failure::network(format!("cannot send to udp://{address}: {}", plain(&e)));
    let socket = open(address).map_err(wrong)?;
    if address.ip().is_multicast() {
        let interface = interface.map(Interface::named).transpose()?;
        let hops = ttl.unwrap_or(1);
        if address.is_ipv4() {
            socket.set_multicast_ttl_v4(hops).map_err(wrong)?;
            if let Some(interface) = interface {
                socket.set_multicast_if_v4(&interface.v4()?).map_err(wrong)?;
            }
        } else {
            socket.set_multicast_hops_v6(hops).map_err(wrong)?;
            if let Some(interface) = interface {
                socket.set_multicast_if_v6(interface.index).map_err(wrong)?;
            }
        }
    } else if ttl.is_some() || interface.is_some() {
        return Err(Failure::usage(format!("udp://{address}: ttl and iface go with a multicast group")));
    }
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(any, 0).into()).map_err(wrong)?;
    into_tokio(socket).map_err(wrong)
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    for (which, result) in
        [("receive", widen(&socket)), ("send", socket.set_send_buffer_size(BUFFER))]
    {
        if let Err(error) = result {
            tracing::debug!(%error, which, "the kernel gives no larger buffer");
        }
    }
    Ok(socket)
}

/// Beyond the system's limit where that is allowed, else up to it.
fn widen(socket: &Socket) -> io::Result<()> {
    match setsockopt(socket, sockopt::RcvBufForce, &BUFFER) {
        Ok(()) => Ok(()),
        Err(_) => socket.set_recv_buffer_size(BUFFER),
    }
}

fn into_tokio(socket: Socket) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}

fn join(socket: &Socket, group: IpAddr, interface: Option<&str>) -> Result<(), Failure> {
    let index = interface.map(Interface::named).transpose()?.map_or(0, |i| i.index);
    let joined = match group {
        IpAddr::V4(group) => socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index)),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
    };
    joined.map_err(|e| {
        let hint = if interface.is_none() { "; name an interface with ?iface=NAME" } else { "" };
        Failure::network(format!("cannot join the group {group}: {}{hint}", plain(&e)))
    })
}

/// An interface of this machine.
struct Interface {
    name: String,
    index: u32,
}

impl Interface {
    fn named(name: &str) -> Result<Self, Failure> {
        let index = nix::net::if_::if_nametoindex(name)
            .map_err(|_| Failure::usage(format!("there is no interface {name}; `ip link` shows those there are")))?;
        Ok(Interface { name: name.to_owned(), index })
    }

    /// Its first IPv4 address.
    fn v4(&self) -> Result<Ipv4Addr, Failure> {
        let all = nix::ifaddrs::getifaddrs()
            .map_err(|e| Failure::network(format!("the interfaces cannot be listed: {}", e.desc())))?;
        all.filter(|a| a.interface_name == self.name)
            .find_map(|a| Some(a.address?.as_sockaddr_in()?.ip()))
            .ok_or_else(|| Failure::network(format!("interface {} has no IPv4 address", self.name)))
    }
}

fn bind_hint(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::AddrInUse => "the port is in use; choose another or stop the program that has it".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need special rights; choose a higher one".into(),
        _ => plain(e),
    }
}

/// Datagrams and bytes of one call: the kernel's limits (UDP_MAX_SEGMENTS, and one IP datagram).
const BURST: usize = 64;
const BURST_BYTES: usize = 65_000;

/// How many datagrams of these lengths, from the first on, can leave by one call: they are equal but for a shorter last.
pub fn burst(lengths: impl IntoIterator<Item = usize>) -> usize {
    let (mut count, mut bytes, mut equal) = (0, 0, None);
    for len in lengths {
        let segment = *equal.get_or_insert(len);
        bytes += len;
        if count == BURST || len == 0 || len > segment || count > 0 && bytes > BURST_BYTES {
            break;
        }
        count += 1;
        if len < segment {
            break;
        }
    }
    count.max(1)
}

/// Sends such datagrams.
pub async fn send_burst(socket: &UdpSocket, to: SocketAddr, datagrams: &[&[u8]]) -> io::Result<()> {
    let segment = datagrams.first().and_then(|d| u16::try_from(d.len()).ok()).ok_or(io::ErrorKind::InvalidInput)?;
    let slices: Vec<IoSlice<'_>> = datagrams.iter().map(|d| IoSlice::new(d)).collect();
    let (to, how) = (SockaddrStorage::from(to), [ControlMessage::UdpGsoSegments(&segment)]);
    let send = || Ok(sendmsg(socket.as_raw_fd(), &slices, &how, MsgFlags::empty(), Some(&to)).map(drop)?);
    socket.async_io(Interest::WRITABLE, send).await
}

/// Looks that found nothing, after which the kernel is asked to tell again.
const IDLE: u32 = 8;

/// Reads what waits on a socket in one call.
pub struct Many {
    socket: Watched,
    state: UdpSocketState,
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Looks that found nothing, in a row.
    idle: u32,
    alarm: Alarm,
    /// The last call brought as much as it could: more may wait.
    full: bool,
    /// When the last look was.
    looked: Instant,
}

/// Who says that something came.
enum Watched {
    /// The kernel, for each datagram.
    Told(UdpSocket),
    /// Nobody: we look from time to time.
    Looked(std::net::UdpSocket),
    /// Between the two.
    Neither,
}

impl Watched {
    /// The same socket, watched in the other way.
    fn turn(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Watched::Neither) {
            Watched::Told(socket) => Watched::Looked(socket.into_std()?),
            Watched::Looked(socket) => Watched::Told(UdpSocket::from_std(socket)?),
            Watched::Neither => return Err(io::ErrorKind::NotConnected.into()),
        };
        Ok(())
    }
}

impl Many {
    /// Takes a socket over.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Only what is used of it becomes memory.
        Ok(Many {
            socket: Watched::Told(socket),
            state,
            bytes: vec![0; DATAGRAM_MAX * BATCH_SIZE],
            metas: [RecvMeta::default(); BATCH_SIZE],
            idle: 0,
            alarm: Alarm::new()?,
            full: false,
            looked: Instant::now(),
        })
    }

    /// Waits for datagrams, gives each to `take`, and says since when the first of them may have waited. With `pause`
    /// datagrams of a steady stream gather that long before they are read: to be woken for each costs more than to read
    /// it. May be dropped at any time.
    pub async fn recv(&mut self, pause: Duration, mut take: impl FnMut(&[u8])) -> io::Result<Instant> {
        let since = loop {
            let before = self.looked;
            match &self.socket {
                Watched::Told(socket) => socket.readable().await?,
                Watched::Looked(_) if self.full => tokio::task::yield_now().await,
                Watched::Looked(_) => {
                    // The runtime's own timer would wake the runtime for each time that is set.
                    self.alarm.set(Some(from_std(before + pause)), now());
                    self.alarm.rung().await;
                }
                Watched::Neither => {}
            }
            let read = self.read()?;
            self.full = read == Some(BATCH_SIZE);
            let Some(filled) = read else {
                self.idle += 1;
                if matches!(self.socket, Watched::Looked(_)) && self.idle >= IDLE {
                    self.socket.turn()?;
                }
                continue;
            };
            let steady = std::mem::take(&mut self.idle) < IDLE;
            let gathered = matches!(self.socket, Watched::Looked(_));
            if gathered != !pause.is_zero() {
                self.socket.turn()?;
            }
            // After a longer silence it came just now.
            let since = if gathered && steady { before } else { self.looked };
            self.give(filled, &mut take);
            break since;
        };
        Ok(since)
    }

    /// One call; none when nothing waits.
    fn read(&mut self) -> io::Result<Option<usize>> {
        let Many { socket, state, bytes, metas, .. } = self;
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        for (slice, chunk) in slices.iter_mut().zip(bytes.chunks_mut(DATAGRAM_MAX)) {
            *slice = IoSliceMut::new(chunk);
        }
        self.looked = Instant::now();
        let read = match socket {
            Watched::Looked(socket) => state.recv((&*socket).into(), &mut slices, metas),
            Watched::Told(socket) => {
                let read =
                    socket.try_io(Interest::READABLE, || state.recv((&*socket).into(), &mut slices, metas));
                if read.as_ref().is_ok_and(|n| *n < BATCH_SIZE) {
                    // The call ended because nothing was left: another one would only say so. What comes later calls again.
                    let nothing_left = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                    let _ = socket.try_io(Interest::READABLE, nothing_left);
                }
                read
            }
            Watched::Neither => return Err(io::ErrorKind::NotConnected.into()),
        };
        match read {
            Ok(n) => Ok(Some(n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// What the last call brought.
    fn give(&self, filled: usize, mut take: impl FnMut(&[u8])) {
        for (meta, buffer) in self.metas.iter().zip(self.bytes.chunks(DATAGRAM_MAX)).take(filled) {
            let used = buffer.get(..meta.len).unwrap_or(buffer);
            if used.is_empty() {
                take(used);
            }
            used.chunks(meta.stride.max(1)).for_each(&mut take);
        }
    }
}
