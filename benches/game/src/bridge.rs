//! The way of TCP's packets through the emulator, which carries datagrams: a TUN interface takes the kernel's packets, the
//! emulator gets each as a datagram.
//!
//! Server and bots are on one machine, so the kernel must not notice: the interface has one address, each bot connects to
//! another one in its network, and on the way the two addresses of a packet change places. The server then sees a packet
//! from the bot's address, and its answers go back the same way. A sum of the checksum does not depend on the order, so
//! checksums stay right.

use crate::stack::Result;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tun::AbstractDevice;

/// Address of the interface, and so of the server.
pub const OWN: [u8; 4] = [10, 99, 0, 1];
const NETMASK: [u8; 4] = [255, 255, 0, 0];
const MTU: u16 = 1_500;

/// Where bot number `i` finds the server.
pub fn address_for(i: u16) -> Ipv4Addr {
    Ipv4Addr::new(OWN[0], OWN[1], 1 + (i / 250) as u8, 1 + (i % 250) as u8)
}

fn bot_at(address: &[u8]) -> Option<usize> {
    match *address {
        [a, b, high, low] if [a, b] == OWN[..2] && high > 0 && low > 0 => {
            Some(usize::from(high - 1) * 250 + usize::from(low - 1))
        }
        _ => None,
    }
}

/// The interface, there until the program ends.
pub struct Bridge {
    device: tun::Device,
    /// Towards the relays' listening side, and what they pass on to.
    near: UdpSocket,
    far: UdpSocket,
    /// The server's port now.
    port: AtomicU16,
    /// Where the relay of each bot listens.
    relays: Mutex<Vec<SocketAddr>>,
    /// Where each relay sends from.
    upstream: Mutex<Vec<Option<SocketAddr>>>,
}

impl Bridge {
    pub fn start() -> Result<Arc<Bridge>> {
        let mut config = tun::Configuration::default();
        config.address(Ipv4Addr::from(OWN)).netmask(Ipv4Addr::from(NETMASK)).mtu(MTU).up();
        let device = tun::create(&config)?;
        let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket()?, socket()?);
        let bridge =
            Bridge { device, near, far, port: AtomicU16::new(0), relays: Mutex::default(), upstream: Mutex::default() };
        let bridge = Arc::new(bridge);
        for work in [Bridge::from_kernel, Bridge::from_near, Bridge::from_far] {
            let bridge = bridge.clone();
            let forever = move || {
                // A network does not slow down because a processor is busy; without the right it does.
                let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -10);
                work(&bridge);
            };
            std::thread::Builder::new().name("bridge".into()).spawn(forever)?;
        }
        println!("TCP by way of {}", bridge.device.tun_name()?);
        Ok(bridge)
    }

    /// What the relays pass on to.
    pub fn target(&self) -> Result<SocketAddr> {
        Ok(self.far.local_addr()?)
    }

    /// Packets of a server at this port go by these relays from now on.
    pub fn lead(&self, port: u16, relays: Vec<SocketAddr>) {
        *lock(&self.upstream) = vec![None; relays.len()];
        *lock(&self.relays) = relays;
        self.port.store(port, Ordering::Relaxed);
    }

    fn from_kernel(&self) {
        let mut packet = [0; MTU as usize];
        while let Ok(size) = self.device.recv(&mut packet) {
            let packet = &packet[..size];
            let Some((bot, to_server)) = self.way_of(packet) else { continue };
            // What the system does not take is a packet lost.
            if to_server {
                let relay = lock(&self.relays).get(bot).copied();
                relay.map(|at| self.near.send_to(packet, at));
            } else {
                let upstream = lock(&self.upstream).get(bot).copied().flatten();
                upstream.map(|at| self.far.send_to(packet, at));
            }
        }
    }

    /// The bot of a TCP packet from the kernel, and whether it is for the server.
    fn way_of(&self, packet: &[u8]) -> Option<(usize, bool)> {
        let header = usize::from(packet.first()? & 0x0f) * 4;
        if packet[0] >> 4 != 4 || packet.get(9) != Some(&6) {
            return None;
        }
        let to: [u8; 2] = packet.get(header + 2..header + 4)?.try_into().ok()?;
        Some((bot_at(packet.get(16..20)?)?, u16::from_be_bytes(to) == self.port.load(Ordering::Relaxed)))
    }

    fn from_near(&self) {
        let mut packet = [0; MTU as usize];
        while let Ok((size, _)) = self.near.recv_from(&mut packet) {
            self.to_kernel(&mut packet[..size]);
        }
    }

    fn from_far(&self) {
        let mut packet = [0; MTU as usize];
        while let Ok((size, from)) = self.far.recv_from(&mut packet) {
            let packet = &mut packet[..size];
            if let Some(bot) = packet.get(16..20).and_then(bot_at)
                && let Some(place) = lock(&self.upstream).get_mut(bot)
            {
                *place = Some(from);
            }
            self.to_kernel(packet);
        }
    }

    fn to_kernel(&self, packet: &mut [u8]) {
        if let Some([a, b, c, d, e, f, g, h]) = packet.get_mut(12..20) {
            for (one, other) in [(a, e), (b, f), (c, g), (d, h)] {
                std::mem::swap(one, other);
            }
            let _ = self.device.send(packet);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
