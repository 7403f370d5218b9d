//! Configuration of endpoints and connections.

use crate::error::Error;
use crate::interface;
use anabranch_engine::AssocConfig;
use anabranch_policy::Hook;
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// UDP port registered for SCTP over UDP (RFC 6951 §5.1), and our SCTP port too by default.
pub const DEFAULT_PORT: u16 = 9_899;

/// What carries SCTP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transport {
    /// UDP (RFC 6951): passes NATs and firewalls, needs no right.
    #[default]
    Udp,
    /// IP itself, protocol 132, as most SCTP stacks speak it. Needs the right CAP_NET_RAW. There are no UDP ports:
    /// those of addresses are not looked at, the SCTP ports of endpoint and peer tell everything.
    RawIp,
}

impl Transport {
    /// The address as the engine sees it: as the kernel reports it, and without a port where there is none.
    pub(crate) fn normal(self, address: SocketAddr) -> SocketAddr {
        let mut address = normal(address);
        if self == Transport::RawIp {
            address.set_port(0);
        }
        address
    }
}

impl FromStr for Transport {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "udp" => Ok(Transport::Udp),
            "raw" => Ok(Transport::RawIp),
            _ => Err(Error::Config(format!("`{s}` carries no SCTP; there are udp and raw"))),
        }
    }
}

/// Where packets of a path leave.
///
/// An interface or one of its addresses binds the socket to the device, so packets leave there whatever the routing
/// table prefers. Loopback and [`Local::Any`] are bound to no device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Local {
    /// Wherever the routing table says.
    #[default]
    Any,
    /// An interface by name. Its first suitable address is used; when it comes back with another one, that.
    Interface(String),
    /// An address of this machine, and the interface that owns it. When the address is gone for good but the
    /// interface has another one of its family, that is used.
    Address(IpAddr),
}

impl FromStr for Local {
    type Err = Error;

    /// An address, `*` for any, or else the name of an interface.
    fn from_str(s: &str) -> Result<Self, Error> {
        if let Ok(address) = s.parse::<IpAddr>() {
            return Ok(if address.is_unspecified() { Local::Any } else { Local::Address(address) });
        }
        match s {
            "" => Err(Error::Config("an empty name is no interface".into())),
            "*" => Ok(Local::Any),
            name => Ok(Local::Interface(name.into())),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Any => f.write_str("*"),
            Local::Interface(name) => f.write_str(name),
            Local::Address(address) => address.fmt(f),
        }
    }
}

/// One path of a connection: where it leaves and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSpec {
    /// Our side.
    pub local: Local,
    /// Address and UDP port of the peer on this path; with [`Transport::RawIp`] the port is not looked at.
    pub remote: SocketAddr,
}

impl PathSpec {
    /// A path from `local` to `remote`.
    pub fn new(local: Local, remote: SocketAddr) -> Self {
        PathSpec { local, remote }
    }

    /// A path that leaves wherever the routing table says.
    pub fn to(remote: SocketAddr) -> Self {
        PathSpec { local: Local::Any, remote }
    }
}

/// An endpoint that accepts associations (and may begin some).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// What carries the packets.
    pub transport: Transport,
    /// UDP addresses to listen on. A wildcard listens on its own family only; name both for both. With
    /// [`Transport::RawIp`] their ports are not looked at.
    pub listen: Vec<SocketAddr>,
    /// Our SCTP port.
    pub port: u16,
    /// List in the handshake all addresses that we listen on (RFC 9260 §5.1.2); a wildcard means those the
    /// machine has now. Otherwise a peer knows those that it asked. Not for a server behind a NAT.
    pub list_addresses: bool,
    /// For accepted associations.
    pub association: AssocConfig,
    /// Associations that may live at once.
    pub max_associations: usize,
    /// Only packets from these networks are looked at, on every path; empty for all.
    pub from: Vec<IpNet>,
    /// Writes every packet to this pcapng file.
    pub pcap: Option<PathBuf>,
}

impl ServerConfig {
    /// Listens on one address.
    pub fn new(listen: SocketAddr, association: AssocConfig) -> Self {
        ServerConfig {
            transport: Transport::default(),
            listen: vec![listen],
            port: DEFAULT_PORT,
            list_addresses: false,
            association,
            max_associations: 100_000,
            from: Vec::new(),
            pcap: None,
        }
    }

    /// Listens on UDP port `port` of every address of the machine: IPv4, and IPv6 where the machine has it.
    pub fn everywhere(port: u16, association: AssocConfig) -> Self {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let mut config = Self::new(v4, association);
        if crate::socket::has_ipv6() {
            config.listen.push(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port));
        }
        config
    }
}

/// An endpoint that only begins associations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClientConfig {
    /// What carries the packets.
    pub transport: Transport,
    /// Our SCTP port; none draws one at random from the dynamic range.
    pub port: Option<u16>,
    /// UDP port of all our sockets, as RFC 6951 §5.1 has one for a stack; 0 takes a free one for each. Paths that leave
    /// from the same address cannot share it.
    pub udp_port: u16,
    /// Writes every packet to this pcapng file.
    pub pcap: Option<PathBuf>,
}

/// How to reach a peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The peer's SCTP port.
    pub peer_port: u16,
    /// Paths. The handshake begins on the first; without an answer the next follows after 250 ms, and the others after
    /// that. Whichever answers first carries it, and the others join. Where one path carries all it is the first.
    pub paths: Vec<PathSpec>,
    /// Limits, constants and policies.
    pub association: AssocConfig,
    /// Give up when no path has answered for this long.
    pub timeout: Duration,
    /// Begin although some of the interfaces are not there (not all); they join when they appear.
    pub allow_missing: bool,
    /// List in the handshake the addresses that the paths leave from (RFC 9260 §5.1.2), for peers that know no ASCONF.
    /// Not behind a NAT, where they mean nothing outside.
    pub list_addresses: bool,
}

impl ConnectOptions {
    /// Default time that a peer has to answer.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// A connection over one path that leaves wherever the routing table says.
    pub fn new(remote: SocketAddr, association: AssocConfig) -> Self {
        Self::over(vec![PathSpec::to(remote)], association)
    }

    /// A connection over these paths.
    pub fn over(paths: Vec<PathSpec>, association: AssocConfig) -> Self {
        ConnectOptions {
            peer_port: DEFAULT_PORT,
            paths,
            association,
            timeout: Self::DEFAULT_TIMEOUT,
            allow_missing: false,
            list_addresses: false,
        }
    }

    pub(crate) fn check(&self, transport: Transport) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Config(what));
        if self.peer_port == 0 {
            return wrong("SCTP port 0 cannot be reached".into());
        }
        if self.paths.is_empty() {
            return wrong("a connection needs at least one path".into());
        }
        if self.paths.len() > self.association.limits.max_paths {
            return wrong(format!(
                "{} paths, but at most {} allowed",
                self.paths.len(),
                self.association.limits.max_paths
            ));
        }
        for (i, p) in self.paths.iter().enumerate() {
            check_path(transport, p)?;
            if self.paths.iter().take(i).any(|q| q == p) {
                return wrong(format!("path {} to {} is given twice", p.local, p.remote));
            }
        }
        check_association(&self.association)?;
        for p in &self.paths {
            check_congestion_control(&self.association, [p.remote], &p.local)?;
        }
        Ok(self.association.profile.check(self.paths.len())?)
    }
}

/// What no connection could work with.
pub(crate) fn check_association(association: &AssocConfig) -> Result<(), Error> {
    association.check_values()?;
    Ok(association.check()?)
}

/// Without congestion control nothing may leave this machine: `ends` are where packets would leave from or go to, and
/// `local` what they would leave by, whatever address they are for. The emulator's relays are on loopback.
pub(crate) fn check_congestion_control(
    association: &AssocConfig,
    ends: impl IntoIterator<Item = SocketAddr>,
    local: &Local,
) -> Result<(), Error> {
    if association.profile.controls_congestion() {
        return Ok(());
    }
    let far = ends.into_iter().map(|e| e.ip()).find(|ip| !ip.to_canonical().is_loopback());
    let place = match far {
        Some(ip) => ip.to_string(),
        None if interface::is_loopback(local).map_err(Error::Driver)? => return Ok(()),
        None => local.to_string(),
    };
    let window = association.profile.spec(Hook::Window);
    Err(Error::Config(format!(
        "window={window} has no congestion control and would congest the network at {place}: choose another window, or \
         use loopback addresses and no other interface than theirs, as with `anabranch emulate`"
    )))
}

pub(crate) fn check_path(transport: Transport, p: &PathSpec) -> Result<(), Error> {
    let remote = p.remote;
    let no_port = transport == Transport::Udp && remote.port() == 0;
    if no_port || remote.ip().is_unspecified() || remote.ip().is_multicast() {
        return Err(Error::Config(format!("{remote} is no address a peer can have")));
    }
    match p.local {
        Local::Address(a) if a.is_ipv4() != remote.is_ipv4() => {
            Err(Error::Config(format!("a path cannot lead from {a} to {remote}: one is IPv4, one is IPv6")))
        }
        _ => Ok(()),
    }
}

/// No flow label, a scope only where it means something.
fn normal(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut a) => {
            a.set_flowinfo(0);
            if !a.ip().is_unicast_link_local() {
                a.set_scope_id(0);
            }
            SocketAddr::V6(a)
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration as Span;
    use anabranch_policy::registry::Profile;

    fn options(paths: &[(&str, &str)]) -> ConnectOptions {
        let path = |(l, r): &(&str, &str)| PathSpec::new(l.parse().unwrap(), r.parse().unwrap());
        ConnectOptions::over(paths.iter().map(path).collect(), AssocConfig::new(Profile::named("cmt").unwrap()))
    }

    type Change = fn(&mut AssocConfig);
    const WRONG: [(Change, &str); 11] = [
        (|c| c.limits.receive_buffer = 0, "limits: receive_buffer=0 "),
        (|c| c.limits.receive_buffer = 1_499, "limits: receive_buffer=1499 "),
        (|c| c.limits.send_buffer = 0, "limits: send_buffer=0 "),
        (|c| c.mtu.packet_size = 100, "mtu: packet_size=100 "),
        (|c| c.mtu.packet_size = 511, "mtu: packet_size=511 "),
        (|c| c.mtu.packet_size = 100_000, "mtu: packet_size=100000 "),
        (|c| c.timers.rto_initial = Span::ZERO, "timers: rto_initial=0 "),
        (|c| c.timers.rto_max = Span::ZERO, "timers: rto_max=0 "),
        (|c| c.timers.max_init_timeout = Some(Span::ZERO), "timers: max_init_timeout=0 "),
        (|c| c.timers.sack_delay = Span::from_millis(501), "timers: sack_delay=501 ms "),
        (|c| c.timers.heartbeat_max_burst = 0, "timers: heartbeat_max_burst=0 "),
    ];

    #[test]
    fn servers_are_refused_the_same() {
        for (change, name) in WRONG {
            let mut association = options(&[]).association;
            change(&mut association);
            let e = crate::Endpoint::server(ServerConfig::new("127.0.0.1:0".parse().unwrap(), association));
            let e = e.map(drop).unwrap_err();
            assert!(e.to_string().starts_with(name) && e.kind() == crate::ErrorKind::Usage, "{name}: {e}");
        }
    }

    #[test]
    fn locals_from_words() {
        assert_eq!("wlan0".parse::<Local>().unwrap(), Local::Interface("wlan0".into()));
        assert_eq!("10.0.0.1".parse::<Local>().unwrap(), Local::Address("10.0.0.1".parse().unwrap()));
        assert_eq!("::".parse::<Local>().unwrap(), Local::Any);
        assert_eq!("*".parse::<Local>().unwrap().to_string(), "*");
        assert!("".parse::<Local>().is_err());
    }

    #[test]
    fn transports() {
        assert_eq!("raw".parse::<Transport>().unwrap(), Transport::RawIp);
        assert!("tcp".parse::<Transport>().unwrap_err().to_string().contains("udp and raw"));
        let a = "192.0.2.1:9899".parse().unwrap();
        assert_eq!(Transport::Udp.normal(a), a);
        assert_eq!(Transport::RawIp.normal(a), "192.0.2.1:0".parse().unwrap());
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        let check = |o: ConnectOptions| o.check(Transport::Udp);
        let text = |o: ConnectOptions| check(o).unwrap_err().to_string();
        assert!(check(options(&[("lo", "127.0.0.1:9"), ("eth0", "127.0.0.1:9")])).is_ok());
        assert!(text(options(&[])).contains("at least one path"));
        assert!(text(options(&[("lo", "127.0.0.1:9"), ("lo", "127.0.0.1:9")])).contains("twice"));
        assert!(text(options(&[("10.0.0.1", "[::1]:9")])).contains("one is IPv6"));
        assert!(text(options(&[("lo", "0.0.0.0:9")])).contains("no address a peer can have"));
        assert!(text(options(&[("lo", "127.0.0.1:0")])).contains("no address a peer can have"));
        assert!(options(&[("lo", "127.0.0.1:0")]).check(Transport::RawIp).is_ok(), "raw IP has no ports");
        let mut o = options(&[("lo", "127.0.0.1:9")]);
        o.association.profile.set(Hook::Window, "none").unwrap();
        assert!(check(o.clone()).is_ok(), "an emulator may be there");
        for (local, remote) in [
            ("eth0", "192.0.2.1:9"),
            ("2001:db8::1", "[2001:db8::2]:9"),
            ("lo", "[::ffff:10.0.0.1]:9"),
            ("192.0.2.7", "127.0.0.1:9"),
        ] {
            o.paths.push(PathSpec::new(local.parse().unwrap(), remote.parse().unwrap()));
            let what = text(o.clone());
            assert!(what.starts_with("window=none has no congestion control") && !what.contains('\n'), "{what}");
            o.paths.pop();
        }
        // At either end.
        let mut o = options(&[("lo", "127.0.0.1:9")]);
        o.association.profile.set(Hook::Window, "bbr").unwrap();
        o.association.profile.set(Hook::Coupling, "lia").unwrap();
        let listens = ServerConfig::new("127.0.0.1:0".parse().unwrap(), o.association.clone());
        let server = crate::Endpoint::server(listens).err().map(|e| e.to_string()).unwrap();
        assert!(server.contains("use coupling=uncoupled"), "{server}");
        assert_eq!(text(o), server);
        for (change, name) in WRONG {
            let mut o = options(&[("lo", "127.0.0.1:9")]);
            change(&mut o.association);
            let what = text(o);
            assert!(
                what.starts_with(name) && what.contains("does not fit: ") && !what.contains('\n'),
                "{name}: {what}"
            );
        }
        let mut o = options(&[("lo", "127.0.0.1:9")]);
        o.peer_port = 0;
        assert!(text(o).contains("port 0"));
    }
}
