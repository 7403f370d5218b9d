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
pub fn sender(address: SocketAddr, ttl: Option<u32>, interface: Option<&str>) -> Result<Sender, Failure> {
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
    socket.set_nonblocking(true).map_err(wrong)?;
    Ok(Sender { socket: socket.into(), to: address })
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    for (which, result) in [("receive", widen(&socket)), ("send", socket.set_send_buffer_size(BUFFER))] {
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

/// A socket that only sends, to one place. The runtime does not know it: the kernel tells of room to write after each
/// datagram that left, and each time that would wake a thread.
pub struct Sender {
    socket: std::net::UdpSocket,
    to: SocketAddr,
}

/// Pause before a datagram for which there was no room is tried again.
const NO_ROOM: Duration = Duration::from_millis(1);

impl Sender {
    /// Sends one datagram.
    pub async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.once_there_is_room(|| self.socket.send_to(datagram, self.to).map(drop)).await
    }

    /// Sends several by one call, as many as [`burst`] says.
    pub async fn send_burst(&self, datagrams: &[&[u8]]) -> io::Result<()> {
        let segment = datagrams.first().and_then(|d| u16::try_from(d.len()).ok()).ok_or(io::ErrorKind::InvalidInput)?;
        let slices: Vec<IoSlice<'_>> = datagrams.iter().map(|d| IoSlice::new(d)).collect();
        let (to, how) = (SockaddrStorage::from(self.to), [ControlMessage::UdpGsoSegments(&segment)]);
        let send = || Ok(sendmsg(self.socket.as_raw_fd(), &slices, &how, MsgFlags::empty(), Some(&to)).map(drop)?);
        self.once_there_is_room(send).await
    }

    async fn once_there_is_room(&self, send: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            match send() {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(NO_ROOM).await,
                done => return done,
            }
        }
    }
}

/// How short the pause becomes where many datagrams come in it, and by how much it grows again.
const SHORTEST: Duration = Duration::from_micros(500);

/// So many datagrams in a row that come faster than they may gather make a steady stream; so many looks in vain, beyond
/// those that others saved, end it.
const STEADY: u32 = 8;
const IN_VAIN: u32 = 12;

/// Reads what waits on a socket in one call.
pub struct Many {
    socket: Watched,
    state: UdpSocketState,
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Datagrams in a row that came soon after the one before.
    dense: u32,
    /// Looks in vain, less those that were saved.
    in_vain: u32,
    alarm: Alarm,
    /// How long datagrams gather now, at most as long as they may.
    pause: Duration,
    /// The last call brought as much as it could: more may wait.
    full: bool,
    /// When the last look was.
    looked: Instant,
}

/// How it is noticed that something came.
enum Watched {
    /// The kernel wakes the runtime for each datagram.
    ByRuntime(UdpSocket),
    /// A timer looks from time to time, and the runtime does not know the socket.
    ByTimer(std::net::UdpSocket),
    /// On the way from one to the other.
    Between,
}

impl Watched {
    /// Watches the socket in the other way.
    fn turn(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Watched::Between) {
            Watched::ByRuntime(socket) => Watched::ByTimer(socket.into_std()?),
            Watched::ByTimer(socket) => Watched::ByRuntime(UdpSocket::from_std(socket)?),
            Watched::Between => return Err(io::ErrorKind::NotConnected.into()),
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
            socket: Watched::ByRuntime(socket),
            state,
            bytes: vec![0; DATAGRAM_MAX * BATCH_SIZE],
            metas: [RecvMeta::default(); BATCH_SIZE],
            dense: 0,
            in_vain: 0,
            alarm: Alarm::new()?,
            pause: SHORTEST,
            full: false,
            looked: Instant::now(),
        })
    }

    /// Waits for datagrams, gives each to `take`, and says since when the first of them may have waited. With `pause`
    /// datagrams of a steady stream gather that long before they are read: to be woken for each costs more than to read
    /// it. Then it returns without any, too, while it is looked whether the stream goes on. May be dropped at any time.
    pub async fn recv(&mut self, pause: Duration, mut take: impl FnMut(&[u8])) -> io::Result<Instant> {
        let (since, filled) = loop {
            let before = self.looked;
            match &self.socket {
                Watched::ByRuntime(socket) => socket.readable().await?,
                Watched::ByTimer(_) if self.full => tokio::task::yield_now().await,
                Watched::ByTimer(_) => {
                    // The runtime's own timer would wake the runtime for each time that is set.
                    self.alarm.set(Some(from_std(before + self.pause.min(pause))), now());
                    self.alarm.rung().await;
                }
                Watched::Between => {}
            }
            let filled = self.read()?;
            self.full = filled == Some(BATCH_SIZE);
            if self.gathers() {
                self.look_on(filled.unwrap_or(0), pause)?;
                break (before, filled);
            }
            if let Some(filled) = filled {
                self.dense = if self.looked - before < pause { self.dense + 1 } else { 0 };
                if self.dense >= STEADY {
                    (self.in_vain, self.pause) = (0, SHORTEST);
                    self.socket.turn()?;
                }
                break (self.looked, Some(filled));
            }
        };
        self.give(filled.unwrap_or(0), &mut take);
        Ok(since)
    }

    /// Do datagrams gather now?
    pub fn gathers(&self) -> bool {
        matches!(self.socket, Watched::ByTimer(_))
    }

    /// A look brought so much.
    fn look_on(&mut self, filled: usize, most: Duration) -> io::Result<()> {
        let saved = filled.saturating_sub(1) as u32;
        self.in_vain = if filled == 0 { self.in_vain + 1 } else { self.in_vain.saturating_sub(saved) };
        if self.in_vain >= IN_VAIN || most.is_zero() {
            self.dense = 0;
            return self.socket.turn();
        }
        // What gathers has to find room.
        let few = filled < BATCH_SIZE / 2;
        self.pause = if few { (self.pause + SHORTEST).min(most) } else { (self.pause / 2).max(SHORTEST) };
        Ok(())
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
            Watched::ByTimer(socket) => state.recv((&*socket).into(), &mut slices, metas),
            Watched::ByRuntime(socket) => {
                let read = socket.try_io(Interest::READABLE, || state.recv((&*socket).into(), &mut slices, metas));
                if read.as_ref().is_ok_and(|n| *n < BATCH_SIZE) {
                    // The call ended because nothing was left: another one would only say so. What comes later calls again.
                    let nothing_left = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                    let _ = socket.try_io(Interest::READABLE, nothing_left);
                }
                read
            }
            Watched::Between => return Err(io::ErrorKind::NotConnected.into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_equal_datagrams_and_a_shorter_last() {
        for (lengths, wanted) in [
            (vec![7], 1),
            (vec![0, 0], 1),
            (vec![1_316; 5], 5),
            (vec![1_316, 1_316, 500, 1_316], 3),
            (vec![500, 1_316], 1),
            (vec![100; 80], BURST),
            (vec![1_316; 60], BURST_BYTES / 1_316),
            (vec![9_000; 9], BURST_BYTES / 9_000),
            (vec![5, 0, 5], 1),
        ] {
            assert_eq!(burst(lengths.iter().copied()), wanted, "{lengths:?}");
        }
    }

    #[tokio::test]
    async fn what_leaves_by_one_call_arrives_as_single_datagrams() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = sender(receiver.local_addr().unwrap(), None, None).unwrap();
        let all: Vec<Vec<u8>> = (0..6u8).map(|n| vec![n; if n == 5 { 40 } else { 1_316 }]).collect();
        let list: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        assert_eq!(burst(list.iter().map(|d| d.len())), 6);
        sender.send_burst(&list).await.unwrap();
        let mut buffer = [0; 9_000];
        for datagram in &all {
            let n = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..n], datagram.as_slice());
        }
    }

    /// All that is sent is read, in order, whether datagrams gather or not, while the stream pauses and goes on.
    #[tokio::test]
    async fn nothing_is_lost_however_datagrams_are_watched() {
        let socket = listen("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let to = socket.local_addr().unwrap();
        let mut many = Many::new(socket).unwrap();
        let source = std::thread::spawn(move || {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for n in 0..400u32 {
                socket.send_to(&n.to_be_bytes(), to).unwrap();
                let pause = if n % 100 == 99 { 120 } else { u64::from(n % 2) };
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        let (mut got, mut gathered) = (Vec::new(), false);
        while got.len() < 400 {
            let before = got.len();
            let since = many.recv(Duration::from_millis(4), |d| got.push(d.to_vec())).await.unwrap();
            assert!(since <= Instant::now());
            gathered |= many.gathers();
            assert!(got.len() > before || gathered, "it waits for something to come");
        }
        source.join().unwrap();
        assert!(gathered, "a steady stream gathers");
        assert!(got.iter().zip(0u32..).all(|(d, n)| d[..] == n.to_be_bytes()));
        let quiet = many.recv(Duration::ZERO, |_| {}).await.unwrap();
        assert!(quiet <= Instant::now() && !many.gathers(), "no pause, no gathering");
    }
}
