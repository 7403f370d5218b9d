//! The public endpoint: sockets, a driver, and the connections over them.

use crate::Local;
use crate::capture::Capture;
use crate::clock;
use crate::config::{
    ClientConfig, ConnectOptions, ServerConfig, Transport, check_association, check_congestion_control,
};
use crate::connection::Connection;
use crate::driver::{self, Command, Watch};
use crate::entropy::SystemEntropy;
use crate::error::Error;
use crate::interface;
use crate::locals::{Bound, Locals};
use crate::shared::{Core, Owner, Shared};
use crate::socket;
use crate::stats::DriverStats;
use anabranch_base::{Entropy, Instant};
use anabranch_engine::{AssocConfig, Endpoint as Engine, EndpointConfig, LocalId};
use anabranch_policy::Asks;
use anabranch_policy::registry::Profile;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// First port of the dynamic range (RFC 6335 §6); clients draw theirs from it.
const DYNAMIC_PORTS: u16 = 49_152;

/// A set of sockets and the connections over them. Clones are handles of the same endpoint.
///
/// When the last handle goes, connections that were accepted or begun live on until their own handles go; nothing
/// new is accepted. A program that is about to exit calls [`Endpoint::wait_idle`], or its last packets may not leave.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    listening: Vec<SocketAddr>,
}

/// A handle that keeps nothing alive.
#[derive(Clone)]
pub struct WeakEndpoint(Weak<Inner>);

impl WeakEndpoint {
    /// The endpoint, while another handle of it is there.
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.0.upgrade().map(|inner| Endpoint { inner })
    }
}

impl Endpoint {
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// A handle that keeps nothing alive.
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint(Arc::downgrade(&self.inner))
    }

    /// Listens for associations.
    ///
    /// # Errors
    /// An address that cannot be bound, a capture that cannot be written, a profile that does not fit.
    pub fn server(config: ServerConfig) -> Result<Endpoint, Error> {
        if config.listen.is_empty() {
            return Err(Error::Config("a server needs an address to listen on".into()));
        }
        check_port(config.port)?;
        // What is wrong with the profile on any number of paths is said now, not to the first peer.
        config.association.profile.check(1)?;
        check_association(&config.association)?;
        check_congestion_control(&config.association, config.listen.iter().copied(), &Local::Any)?;
        let listen = |&a: &SocketAddr| socket::listen(config.transport, a);
        let sockets = config.listen.iter().map(listen).collect::<Result<Vec<_>, _>>()?;
        let mut engine = EndpointConfig::new(config.port, config.association);
        engine.accept = true;
        // A connection is a session: one that begins anew is another one.
        engine.restart_keeps_id = false;
        engine.max_associations = config.max_associations;
        start(Beginning {
            transport: config.transport,
            engine,
            pcap: config.pcap,
            sockets,
            list_addresses: config.list_addresses,
            udp_port: 0,
            from: config.from,
        })
    }

    /// An endpoint for [`connect`](Self::connect) only; its sockets are made when they are needed.
    ///
    /// # Errors
    /// A capture that cannot be written, a driver that cannot be started.
    pub fn client(config: ClientConfig) -> Result<Endpoint, Error> {
        let port = match config.port {
            Some(p) => p,
            None => {
                let span = u32::from(u16::MAX - DYNAMIC_PORTS) + 1;
                DYNAMIC_PORTS + (SystemEntropy.u32() % span) as u16
            }
        };
        check_port(port)?;
        // Accepted associations would use this configuration; there are none.
        let unused = AssocConfig::new(Profile::named("sctp")?);
        start(Beginning {
            transport: config.transport,
            engine: EndpointConfig::new(port, unused),
            pcap: config.pcap,
            sockets: Vec::new(),
            list_addresses: false,
            udp_port: config.udp_port,
            from: Vec::new(),
        })
    }

    /// Begins an association and waits until the peer has agreed to it.
    ///
    /// Paths that could not join within that time go on trying.
    ///
    /// # Errors
    /// A path that cannot be bound, no answer in time, a peer that refuses.
    pub async fn connect(&self, options: ConnectOptions) -> Result<Connection, Error> {
        crate::connect::connect(&self.inner.shared, options).await
    }

    /// The next association that a peer began; none after [`close`](Self::close).
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let news = self.inner.shared.accept.notified();
            if let Some(connection) = self.try_accept() {
                return Some(connection);
            }
            if self.inner.shared.lock().closing {
                return None;
            }
            news.await;
        }
    }

    /// An association that a peer has begun already, for a program that looks each tick and does not wait.
    pub fn try_accept(&self) -> Option<Connection> {
        let shared = &self.inner.shared;
        let mut core = shared.lock();
        while let Some(id) = core.accepted.pop_front() {
            if let Some(entry) = core.connections.get_mut(&id) {
                entry.owner = Owner::Handle;
                let signals = entry.signals.clone();
                let asks = core.engine.association(id).map_or(Asks::NOTHING, |a| a.config().profile.asks());
                if asks.any(Asks::LINK_REPORTS) {
                    core.link_layer.want(shared);
                }
                drop(core);
                return Some(Connection::new(shared.clone(), id, signals));
            }
        }
        None
    }

    /// The addresses a server listens on, with the UDP ports it got, or the SCTP port on raw IP; empty for a client.
    pub fn listening(&self) -> &[SocketAddr] {
        &self.inner.listening
    }

    /// Our SCTP port.
    pub fn port(&self) -> u16 {
        self.inner.shared.lock().engine.port()
    }

    /// Now, on the scale of deadlines.
    pub fn now(&self) -> Instant {
        clock::now()
    }

    /// What the driver has done.
    pub fn stats(&self) -> DriverStats {
        self.inner.shared.lock().stats
    }

    /// Aborts all connections with `reason` and accepts nothing more.
    pub fn close(&self, reason: &str) {
        let shared = &self.inner.shared;
        shared.act(|core| core.close(clock::now(), reason.as_bytes()));
        shared.accept.notify_waiters();
    }

    /// Waits until no association is left, everything has been sent, and the capture has it all. One whose peer lives and
    /// does not read what it was sent stays: end it by [`Connection::shutdown_within`], or all by [`close`](Self::close).
    pub async fn wait_idle(&self) {
        let shared = &self.inner.shared;
        loop {
            let news = shared.idle.notified();
            {
                let core = shared.lock();
                if core.stopped || (core.idle && core.engine.associations().next().is_none()) {
                    return;
                }
            }
            shared.wake.notify_one();
            news.await;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.act(|core| {
            core.closing = true;
            core.disown_queue();
        });
    }
}

fn check_port(port: u16) -> Result<(), Error> {
    if port == 0 {
        return Err(Error::Config("0 is no SCTP port".into()));
    }
    Ok(())
}

/// What an endpoint begins with.
struct Beginning {
    transport: Transport,
    engine: EndpointConfig,
    pcap: Option<PathBuf>,
    sockets: Vec<UdpSocket>,
    list_addresses: bool,
    udp_port: u16,
    from: Vec<IpNet>,
}

fn start(mut b: Beginning) -> Result<Endpoint, Error> {
    let transport = b.transport;
    let capture = b.pcap.map(|path| Capture::create(transport, path)).transpose()?;
    let mut locals = Locals::new(transport);
    let mut commands = Vec::new();
    let mut addresses = Vec::new();
    for s in b.sockets {
        let address = socket::address_of(transport, &s).map_err(Error::Driver)?;
        let wildcard = address.ip().is_unspecified();
        let (name, bound) = match wildcard {
            true => (Local::Any.to_string(), Bound::Everything),
            false => (address.ip().to_string(), Bound::Address),
        };
        let (slot, local) = locals.add(name, address, bound, true).ok_or_else(no_numbers)?;
        commands.push(Command { slot, local, socket: Some(s), watch: None });
        addresses.push(address);
    }
    if b.list_addresses {
        let machine: Vec<IpAddr> =
            interface::list().map_err(Error::Driver)?.into_iter().flat_map(|i| i.addresses).collect();
        let ours: Vec<LocalId> = commands.iter().flat_map(|c| locals.of_server(c.slot, &machine)).collect();
        b.engine.association.addresses.listed = locals.listed(ours);
    }
    let engine = Engine::new(b.engine, Box::new(SystemEntropy), clock::now());
    let shared = Arc::new(Shared::new(transport, engine, locals).map_err(Error::Driver)?);
    let listening = {
        let mut core = shared.lock();
        let listening: Vec<SocketAddr> = addresses.into_iter().map(|a| core.shown(a, core.engine.port())).collect();
        if transport == Transport::RawIp {
            core.claims = listening.iter().map(|a| socket::claim(*a)).collect::<Result<_, _>>()?;
        }
        core.commands = commands;
        core.udp_port = b.udp_port;
        core.from = b.from;
        listening
    };
    driver::spawn(shared.clone(), capture)?;
    Ok(Endpoint { inner: Arc::new(Inner { shared, listening }) })
}

fn no_numbers() -> Error {
    Error::Config("more sockets than an endpoint can number".into())
}

impl Core {
    /// The local side for a path of a client; its socket is made when this is the first path there.
    ///
    /// With `allow_missing` an interface that is not there is noted, and used once it comes.
    pub fn open_local(&mut self, local: &Local, remote: SocketAddr, allow_missing: bool) -> Result<LocalId, Error> {
        let (v4, transport, udp_port) = (remote.is_ipv4(), self.transport, self.udp_port);
        if let Some(id) = self.locals.requested(local, v4) {
            let up = self.locals.get(id).is_some_and(|s| s.up);
            if up || allow_missing {
                return Ok(id);
            }
            // It was there once. Say what is wrong with it now, unless it has just come back.
            let all = interface::list().map_err(Error::Driver)?;
            return interface::resolve(&all, local, remote, None).map(|_| id);
        }
        let all = interface::list().map_err(Error::Driver)?;
        let opened =
            interface::resolve(&all, local, remote, None).and_then(|b| Ok((socket::open(transport, &b, udp_port)?, b)));
        let (s, binding) = match opened {
            Ok((s, b)) => (Some(s), Some(b)),
            Err(e) if allow_missing && e.is_missing() => (None, None),
            Err(e) => return Err(e),
        };
        let mut address = match &s {
            Some(s) => socket::address_of(transport, s).map_err(Error::Driver)?,
            None => SocketAddr::new(if v4 { [0; 4].into() } else { [0; 16].into() }, 0),
        };
        if *local == Local::Any
            && let Some(ip) = socket::source_towards(remote)
        {
            address.set_ip(ip);
        }
        let bound = if *local == Local::Any { Bound::Nothing } else { Bound::Address };
        let (slot, id) = self.locals.add(local.to_string(), address, bound, s.is_some()).ok_or_else(no_numbers)?;
        self.locals.remember(local.clone(), v4, id);
        let watch = Watch { local: local.clone(), remote, binding, udp_port };
        self.commands.push(Command { slot, local: id, socket: s, watch: Some(watch) });
        Ok(id)
    }
}
