//! Sockets of both styles (RFC 6458 §3, §4) over the engine, in safe Rust and without I/O.
//!
//! A [`Stack`] is what a kernel would be: all sockets of the process, an engine endpoint for each SCTP port, and the
//! addresses of the host. Packets and time are handed in and asked for, as with the engine. Nothing here blocks: a
//! call that would have to wait answers [`Errno::AGAIN`] or [`Errno::IN_PROGRESS`] and the world around waits.

mod accept;
mod addresses;
mod association;
mod autoclose;
mod bind;
mod close;
mod connect;
mod errno;
mod events;
mod notify;
mod options;
mod outward;
mod port;
mod readiness;
mod receive;
mod send;
mod settings;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;

pub use association::AssociationId;
pub use errno::Errno;
pub use outward::Claim;
pub use readiness::Readiness;
pub use receive::{NextInfo, Received};
pub use send::{Reliability, SendRequest};
pub use settings::Settings;

use addresses::Locals;
use anabranch_base::{Duration, Entropy, Instant};
use anabranch_engine::Transmit;
use anabranch_wire::Verify;
use association::Association;
use bytes::Bytes;
use options::Options;
use port::Port;
use receive::{Item, Partial};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A socket of a [`Stack`]; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId(pub u32);

/// One-to-one or one-to-many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// SOCK_STREAM: one association each, `listen` and `accept` (RFC 6458 §4).
    OneToOne,
    /// SOCK_SEQPACKET: any number of associations (RFC 6458 §3).
    OneToMany,
}

/// Where a socket is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    port: u16,
    /// Unspecified alone means all addresses of the host.
    addresses: Vec<IpAddr>,
}

struct Socket {
    style: Style,
    v6: bool,
    options: Options,
    bound: Option<Bound>,
    /// Associations that may wait for `accept`; none while it does not listen.
    backlog: Option<usize>,
    waiting: VecDeque<AssociationId>,
    /// Its associations, oldest first.
    associations: Vec<AssociationId>,
    inbox: VecDeque<Item>,
    partial: Option<Partial>,
    /// SO_ERROR.
    error: Option<Errno>,
    /// Its only association, when it is or was of the one-to-one style.
    peer: Option<AssociationId>,
    reading_ended: bool,
    writing_ended: bool,
    /// Associations of a one-to-many socket that did not come up, and why, for whoever waits for them: the last few.
    not_connected: VecDeque<(AssociationId, Errno)>,
}

/// A packet on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Our address.
    pub from: IpAddr,
    /// The peer's, and its UDP port where SCTP is encapsulated; 0 otherwise.
    pub to: SocketAddr,
    /// The SCTP packet with its checksum.
    pub packet: Vec<u8>,
}

/// Makes a source of randomness for each endpoint.
pub type EntropySource = Box<dyn FnMut() -> Box<dyn Entropy> + Send>;

/// See the module's description.
pub struct Stack {
    settings: Settings,
    entropy: EntropySource,
    sockets: BTreeMap<SocketId, Socket>,
    next_socket: u32,
    associations: BTreeMap<AssociationId, Association>,
    next_association: i32,
    ports: BTreeMap<u16, Port>,
    locals: Locals,
    departures: VecDeque<Departure>,
    transmit: Transmit,
    /// Answers packets to ports without a socket; never has an association.
    unused_ports: Option<Port>,
    /// What only a world with real packets needs.
    outward: Option<outward::Outward>,
    /// What the last `sendmsg` began.
    began: Option<AssociationId>,
    /// Associations that have something to send or to be acknowledged, as far as was looked.
    wet: Vec<AssociationId>,
    /// Associations that end when they are idle, by when they are looked at.
    closings: BTreeSet<(Instant, AssociationId)>,
}

impl Stack {
    /// An empty one.
    pub fn new(settings: Settings, entropy: EntropySource) -> Self {
        let mut locals = Locals::default();
        locals.add_host(std::net::Ipv4Addr::LOCALHOST.into());
        locals.add_host(std::net::Ipv6Addr::LOCALHOST.into());
        Stack {
            settings,
            entropy,
            sockets: BTreeMap::new(),
            next_socket: 0,
            associations: BTreeMap::new(),
            // 0 to 2 mean future, current and all associations.
            next_association: 3,
            ports: BTreeMap::new(),
            locals,
            departures: VecDeque::new(),
            transmit: Transmit::to_be_written(),
            unused_ports: None,
            outward: None,
            began: None,
            wet: Vec::new(),
            closings: BTreeSet::new(),
        }
    }

    /// Defaults of sockets that are made from now on.
    pub fn settings_mut(&mut self) -> &mut Settings {
        // It answers strangers by the settings of before.
        self.unused_ports = None;
        &mut self.settings
    }

    /// Tells an address of the host, which a socket that is bound to all of them uses.
    pub fn add_host_address(&mut self, ip: IpAddr) {
        self.locals.add_host(ip);
    }

    /// A new socket.
    pub fn socket(&mut self, style: Style, v6: bool) -> SocketId {
        let options = Options::new(&self.settings);
        self.insert(Socket {
            style,
            v6,
            options,
            bound: None,
            backlog: None,
            waiting: VecDeque::new(),
            associations: Vec::new(),
            inbox: VecDeque::new(),
            partial: None,
            error: None,
            peer: None,
            reading_ended: false,
            writing_ended: false,
            not_connected: VecDeque::new(),
        })
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        self.sockets.insert(id, socket);
        id
    }

    fn get(&self, id: SocketId) -> Result<&Socket, Errno> {
        self.sockets.get(&id).ok_or(Errno::BAD_DESCRIPTOR)
    }

    fn get_mut(&mut self, id: SocketId) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&id).ok_or(Errno::BAD_DESCRIPTOR)
    }

    /// Is it of the IPv6 family?
    ///
    /// # Errors
    /// No such socket.
    pub fn is_v6(&self, id: SocketId) -> Result<bool, Errno> {
        Ok(self.get(id)?.v6)
    }

    /// SO_RCVTIMEO or SO_SNDTIMEO; none waits for ever.
    ///
    /// # Errors
    /// No such socket.
    pub fn timeout(&self, id: SocketId, receives: bool) -> Result<Option<Duration>, Errno> {
        let o = &self.get(id)?.options;
        Ok(if receives { o.receive_timeout } else { o.send_timeout })
    }

    /// Does the program want `sctp_sndrcvinfo`, and `sctp_rcvinfo`?
    ///
    /// # Errors
    /// No such socket.
    pub fn wanted_info(&self, id: SocketId) -> Result<(bool, bool), Errno> {
        let o = &self.get(id)?.options;
        Ok((o.tells(crate::abi::notification::kind::DATA_IO_EVENT), o.receive_info))
    }

    /// A packet that came to one of our addresses. What follows from it has happened when this returns.
    pub fn arrive(&mut self, now: Instant, to: IpAddr, from: SocketAddr, packet: &Bytes, verify: Verify) {
        let Some(port) = packet.get(2..4).map(|p| u16::from_be_bytes([p[0], p[1]])) else { return };
        let local = self.locals.number(to);
        match self.ports.get_mut(&port) {
            Some(p) if p.hears(to) => p.endpoint.handle(now, local, from, packet, verify),
            _ => {
                let mut port = self.unused_ports.take().unwrap_or_else(|| self.strangers(now));
                port.endpoint.handle(now, local, from, packet, verify);
                while port.endpoint.poll_transmit(now, &mut self.transmit) {
                    let departure = departure(&self.locals, &self.transmit);
                    self.departures.extend(departure);
                }
                self.unused_ports = Some(port);
            }
        }
        self.settle(now);
    }

    /// Is the port that a packet goes to one of ours?
    pub fn has_port(&self, d: &Departure) -> bool {
        d.packet.get(2..4).is_some_and(|p| self.ports.contains_key(&u16::from_be_bytes([p[0], p[1]])))
    }

    /// When [`Stack::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ports = self.ports.values().filter_map(|p| p.endpoint.poll_timeout());
        ports.chain(self.next_closing()).min()
    }

    /// Lets the engine's timers fire.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.close_idle(now);
        for p in self.ports.values_mut() {
            if p.endpoint.poll_timeout().is_some_and(|t| t <= now) {
                p.endpoint.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Departure> {
        self.departures.pop_front()
    }

    /// What is left of sockets, ports and associations; empty when nothing is.
    #[cfg_attr(not(test), allow(dead_code, reason = "asked by tests and the fuzz target"))]
    pub fn left(&self) -> Vec<String> {
        let sockets = self.sockets.keys().map(|s| format!("{s:?}"));
        let ports = self.ports.iter().map(|(n, p)| {
            format!(
                "port {n}, next {:?}, {} associations",
                p.endpoint.poll_timeout(),
                p.endpoint.associations().count()
            )
        });
        let associations = self.associations.iter().map(|(id, a)| {
            let e = self.engine(*id);
            let timer = e.and_then(anabranch_engine::Association::poll_timeout);
            format!("{id:?} at port {}, closed {:?}, {:?}, {timer:?}", a.port, a.closed, e.map(|e| e.phase()))
        });
        sockets.chain(ports).chain(associations).collect()
    }

    /// Events and packets of all endpoints, until there are none.
    fn settle(&mut self, now: Instant) {
        if self.outward.is_some() {
            return self.settle_events(now);
        }
        loop {
            let mut any = false;
            let numbers: Vec<u16> = self.ports.keys().copied().collect();
            for n in numbers {
                while let Some((id, event)) = self.ports.get_mut(&n).and_then(|p| p.endpoint.poll_event()) {
                    any = true;
                    self.on_event(now, n, id, event);
                }
                while let Some(p) = self.ports.get_mut(&n)
                    && p.endpoint.poll_transmit(now, &mut self.transmit)
                {
                    any = true;
                    let departure = departure(&self.locals, &self.transmit);
                    self.departures.extend(departure);
                }
            }
            if !any {
                break;
            }
        }
        self.settle_dry();
        self.release_ports();
    }
}

fn departure(locals: &Locals, t: &Transmit) -> Option<Departure> {
    let mut packet = Vec::with_capacity(t.packet.len());
    t.packet.write_to(&mut packet);
    Some(Departure { from: locals.address(t.local)?, to: t.remote, packet })
}
