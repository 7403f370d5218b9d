//! The sockets that packets leave and come by.

use crate::socket::Settings;
use crate::world::next;
use anabranch_net::{Error, Local, Transport, Wire};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{FromRawFd, IntoRawFd};

/// All sockets of the process.
pub struct Wires {
    all: Vec<Wire>,
    /// Addresses of ours that were named, in the order in which they were.
    pub named: Vec<IpAddr>,
}

const V4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// What carries the packets.
pub fn transport(s: &Settings) -> Transport {
    if s.udp_port.is_some() { Transport::Udp } else { Transport::RawIp }
}

impl Wires {
    /// One socket for each address that was named, bound to its device, and for loopback; one for each family without.
    ///
    /// # Errors
    /// An address that is not there, a right that is missing.
    pub fn open(s: &Settings) -> Result<Wires, Error> {
        let transport = transport(s);
        let mut wires = Wires { all: Vec::new(), named: Vec::new() };
        let mut port = s.local_udp_port.or(s.udp_port).unwrap_or(0);
        if s.local.is_empty() {
            wires.listen(transport, V4, &mut port)?;
            // A machine without IPv6 has no such socket.
            let _ = wires.listen(transport, V6, &mut port);
            return Ok(wires);
        }
        for name in &s.local {
            let local: Local = name.parse()?;
            let v4 = match &local {
                Local::Address(a) => Some(a.is_ipv4()),
                _ => None,
            };
            let open = |v4: bool, port: &mut u16| open_at(transport, &local, v4, port);
            // An interface means its first address of each family; one of the two is enough.
            let found = match v4 {
                Some(v4) => vec![open(v4, &mut port)?],
                None => match (open(true, &mut port), open(false, &mut port)) {
                    (Err(e), Err(_)) => return Err(e),
                    (a, b) => [a, b].into_iter().flatten().collect(),
                },
            };
            for wire in found.into_iter().map(lifted) {
                wires.named.push(wire.address().ip());
                wires.all.push(wire);
            }
        }
        for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            if !wires.named.contains(&ip) {
                let _ = wires.listen(transport, ip, &mut port);
            }
        }
        Ok(wires)
    }

    /// Opens one; where another process has the port, at any.
    fn listen(&mut self, transport: Transport, ip: IpAddr, port: &mut u16) -> Result<(), Error> {
        let wire = match Wire::listen(transport, SocketAddr::new(ip, *port)) {
            Err(Error::InUse(_)) => Wire::listen(transport, SocketAddr::new(ip, 0))?,
            r => r?,
        };
        *port = wire.address().port();
        self.all.push(lifted(wire));
        Ok(())
    }

    #[cfg(test)]
    pub fn none() -> Wires {
        Wires { all: Vec::new(), named: Vec::new() }
    }

    /// All of them, by slot.
    pub fn all(&self) -> &[Wire] {
        &self.all
    }

    /// Our UDP port, 0 on raw IP.
    pub fn port(&self) -> u16 {
        self.all.first().map_or(0, |w| w.address().port())
    }

    /// The slot of packets from an address of ours, and the address where the socket is bound to none.
    pub fn outlet(&self, from: IpAddr) -> Option<(usize, Option<IpAddr>)> {
        let at = |ip: IpAddr| self.all.iter().position(|w| w.address().ip() == ip);
        if let Some(slot) = at(from) {
            return Some((slot, None));
        }
        let wildcard = at(if from.is_ipv4() { V4 } else { V6 })?;
        Some((wildcard, Some(from)))
    }

    /// Where a packet came to, as far as the socket knows.
    pub fn inlet(&self, slot: usize, to: Option<IpAddr>) -> Option<IpAddr> {
        let bound = self.all.get(slot)?.address().ip();
        if !bound.is_unspecified() {
            // Raw sockets that are bound to a device alone would get more.
            return to.is_none_or(|to| to == bound).then_some(bound);
        }
        to.filter(|to| !to.is_unspecified())
    }
}

fn lifted(wire: Wire) -> Wire {
    wire.with(|socket| {
        let fd = next::lift(socket.into_raw_fd());
        // SAFETY: the socket gave up its descriptor, which nothing else has.
        unsafe { UdpSocket::from_raw_fd(fd) }
    })
}

fn open_at(transport: Transport, local: &Local, v4: bool, port: &mut u16) -> Result<Wire, Error> {
    let wire = match Wire::open(transport, local, v4, *port) {
        Err(Error::InUse(_)) => Wire::open(transport, local, v4, 0)?,
        r => r?,
    };
    *port = wire.address().port();
    Ok(wire)
}
