//! What users name: peers as `anabranch://host:port?…`, inputs and outputs as `udp://…`, `file:…` or `-`.

use crate::exit::Failure;
use crate::session::StreamName;
use crate::units;
use anabranch_media::rtp;
use anabranch_net::Transport;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// UDP port of a peer, or SCTP port on raw IP, unless the address names another (RFC 6951 §5.1).
pub const DEFAULT_PORT: u16 = 9_899;

/// A peer, or where to wait for one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PeerUri {
    /// Host name or address; none means every address of this machine.
    pub host: Option<String>,
    /// UDP port; SCTP port on raw IP.
    pub port: u16,
    /// `latency=` in milliseconds, or with a unit.
    pub latency: Option<Duration>,
    /// `profile=`.
    pub profile: Option<String>,
    /// `scheduler=`.
    pub scheduler: Option<String>,
    /// `mode=`.
    pub mode: Option<String>,
    /// `transport=`.
    pub transport: Option<Transport>,
    /// `streamid=`: which of several streams; where one waits for senders, those that are let in.
    pub streamid: Vec<StreamName>,
}

impl PeerUri {
    /// Reads `anabranch://host:port?latency=300&…`. The scheme may be left out.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let rest = match text.split_once("://") {
            Some(("anabranch", rest)) => rest,
            Some((other, _)) => {
                return Err(Failure::usage(format!(
                    "`{text}` begins with {other}://; a peer is written anabranch://host:port"
                )));
            }
            None => text,
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = host_and_port(place, text)?;
        let mut uri = PeerUri { host, port: port.unwrap_or(DEFAULT_PORT), ..Default::default() };
        for (key, value) in pairs(query) {
            uri.set(key, value, text)?;
        }
        Ok(uri)
    }

    /// A tunnel carries datagrams alone, and has one peer at each end.
    ///
    /// # Errors
    /// A setting of the address that has no meaning for it.
    pub fn for_tunnel(text: &str) -> Result<Self, Failure> {
        let uri = Self::parse(text)?;
        let settings =
            [("mode", uri.mode.is_some()), ("streamid", !uri.streamid.is_empty()), ("latency", uri.latency.is_some())];
        match settings.iter().find(|(_, given)| *given) {
            Some(("latency", _)) => Err(Failure::usage(format!("`{text}`: the latency of a tunnel is --latency TIME"))),
            Some((name, _)) => Err(Failure::usage(format!(
                "`{text}`: `{name}` is a setting of send and recv; a tunnel carries datagrams"
            ))),
            None => Ok(uri),
        }
    }

    fn set(&mut self, key: &str, value: &str, text: &str) -> Result<(), Failure> {
        match key {
            "latency" => self.latency = Some(units::latency(value).map_err(Failure::usage)?),
            "profile" => self.profile = Some(value.into()),
            "scheduler" => self.scheduler = Some(value.into()),
            "mode" => self.mode = Some(value.into()),
            "streamid" => {
                let names = value.split(',').map(str::parse).collect::<Result<_, String>>();
                self.streamid = names.map_err(Failure::usage)?;
            }
            "transport" => self.transport = Some(value.parse().map_err(Failure::usage)?),
            _ => {
                return Err(Failure::usage(format!(
                    "`{text}`: there is no setting called `{key}`; there are latency, profile, scheduler, mode, \
                     streamid and transport"
                )));
            }
        }
        Ok(())
    }

    /// The addresses of a peer, which needs a name; there is one or more.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, Failure> {
        let host = self.host.as_deref();
        let host = host.ok_or_else(|| Failure::usage("no host is named; a peer is written anabranch://host:port"))?;
        resolve_all(host, self.port)
    }

    /// `host:port` for messages.
    pub fn place(&self) -> String {
        match &self.host {
            Some(h) if h.contains(':') => format!("[{h}]:{}", self.port),
            Some(h) => format!("{h}:{}", self.port),
            None => format!(":{}", self.port),
        }
    }
}

/// What holds of a flag and the setting of that name in an address: the flag, which is said where they differ.
pub fn prefer<T: PartialEq>(name: &str, flag: Option<T>, setting: Option<T>) -> Option<T> {
    if flag.is_some() && setting.is_some() && flag != setting {
        tracing::info!("--{name} holds, not the {name}= of the address");
    }
    flag.or(setting)
}

/// Where a stream comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputUri {
    /// Datagrams that arrive on an address, or for a multicast group.
    Udp {
        /// Address to listen on, or the group.
        address: SocketAddr,
        /// Interface to join the group on, by name.
        interface: Option<String>,
    },
    /// A transport stream in RTP that arrives on an address, or for a multicast group.
    Rtp {
        /// Address to listen on, or the group.
        address: SocketAddr,
        /// Interface to join the group on, by name.
        interface: Option<String>,
        /// How long a missing packet is waited for.
        reorder: Duration,
    },
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// Where a stream goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputUri {
    /// Datagrams to an address or a multicast group.
    Udp {
        /// The address.
        address: SocketAddr,
        /// Hops of multicast datagrams.
        ttl: Option<u32>,
        /// Interface for multicast, by name.
        interface: Option<String>,
    },
    /// A transport stream in RTP to an address or a multicast group.
    Rtp {
        /// The address.
        address: SocketAddr,
        /// Hops of multicast datagrams.
        ttl: Option<u32>,
        /// Interface for multicast, by name.
        interface: Option<String>,
        /// Payload type.
        payload_type: u8,
        /// Name of the source; none for a random one.
        ssrc: Option<u32>,
    },
    /// A file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

impl InputUri {
    /// Do datagrams come from the network, rather than a stream from this machine?
    pub fn is_datagrams(&self) -> bool {
        matches!(self, InputUri::Udp { .. } | InputUri::Rtp { .. })
    }

    /// Reads an input.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match scheme(text)? {
            Place::Udp(place) => {
                let udp = Udp::parse(place, text, &UDP, true)?;
                if udp.ttl.is_some() {
                    return Err(Failure::usage(format!("`{text}`: ttl is a setting of outputs")));
                }
                Ok(InputUri::Udp { address: udp.address, interface: udp.interface })
            }
            Place::Rtp(place) => {
                let rtp = Udp::parse(place, text, &RTP_IN, true)?;
                let reorder = rtp.reorder.unwrap_or(rtp::DEFAULT_WINDOW.into());
                Ok(InputUri::Rtp { address: rtp.address, interface: rtp.interface, reorder })
            }
            Place::File(path) => Ok(InputUri::File(path)),
            Place::Standard => Ok(InputUri::Stdin),
        }
    }
}

impl OutputUri {
    /// Is it played while it arrives? Files and pipes wait.
    pub fn is_live(&self) -> bool {
        !matches!(self, OutputUri::File(_) | OutputUri::Stdout)
    }

    /// Reads an output.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match scheme(text)? {
            Place::Udp(place) => {
                let Udp { address, interface, ttl, .. } = Udp::parse(place, text, &UDP, false)?;
                Ok(OutputUri::Udp { address, ttl, interface })
            }
            Place::Rtp(place) => {
                let Udp { address, interface, ttl, payload_type, ssrc, .. } = Udp::parse(place, text, &RTP_OUT, false)?;
                let payload_type = payload_type.unwrap_or(rtp::PAYLOAD_TYPE);
                Ok(OutputUri::Rtp { address, ttl, interface, payload_type, ssrc })
            }
            Place::File(path) => Ok(OutputUri::File(path)),
            Place::Standard => Ok(OutputUri::Stdout),
        }
    }
}

/// Reads `udp://address:port` of a tunnel: no group, no settings.
pub fn udp_address(text: &str, listen: bool) -> Result<SocketAddr, Failure> {
    let place = text.strip_prefix("udp://").unwrap_or(text);
    let udp = Udp::parse(place, text, &UDP, listen)?;
    if udp.interface.is_some() || udp.ttl.is_some() || udp.address.ip().is_multicast() {
        return Err(Failure::usage(format!("`{text}`: a tunnel takes a plain udp://address:port")));
    }
    Ok(udp.address)
}

enum Place<'a> {
    Udp(&'a str),
    Rtp(&'a str),
    File(PathBuf),
    Standard,
}

fn scheme(text: &str) -> Result<Place<'_>, Failure> {
    if text == "-" {
        return Ok(Place::Standard);
    }
    if let Some(rest) = text.strip_prefix("udp://") {
        return Ok(Place::Udp(rest));
    }
    if let Some(rest) = text.strip_prefix("rtp://") {
        return Ok(Place::Rtp(rest));
    }
    let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
    if let Some((other, _)) = path.split_once("://") {
        return Err(Failure::usage(format!(
            "`{text}`: {other}:// is neither an input nor an output; there are udp://address:port, rtp://address:port, \
             file:PATH and -"
        )));
    }
    if path.is_empty() {
        return Err(Failure::usage("an empty name is no file; give udp://address:port, file:PATH or -"));
    }
    Ok(Place::File(path.into()))
}

/// What may be part of an address of datagrams.
struct Scheme {
    /// The port unless one is named.
    port: Option<u16>,
    settings: &'static [&'static str],
}

const UDP: Scheme = Scheme { port: None, settings: &["iface", "ttl"] };
const RTP_IN: Scheme = Scheme { port: Some(rtp::DEFAULT_PORT), settings: &["iface", "reorder"] };
const RTP_OUT: Scheme = Scheme { port: Some(rtp::DEFAULT_PORT), settings: &["iface", "ttl", "pt", "ssrc"] };

struct Udp {
    address: SocketAddr,
    interface: Option<String>,
    ttl: Option<u32>,
    reorder: Option<Duration>,
    payload_type: Option<u8>,
    ssrc: Option<u32>,
}

impl Udp {
    fn parse(place: &str, text: &str, scheme: &Scheme, listen: bool) -> Result<Self, Failure> {
        let (place, query) = place.split_once('?').unwrap_or((place, ""));
        let place = place.strip_prefix('@').unwrap_or(place);
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = host_and_port(place, text)?;
        let port = port.or(scheme.port).ok_or_else(|| Failure::usage(format!("`{text}` names no port")))?;
        let address = match host {
            Some(host) => resolve(&host, port)?,
            None if listen => SocketAddr::from(([0, 0, 0, 0], port)),
            None => return Err(Failure::usage(format!("`{text}` names no address to send to"))),
        };
        if !listen && (address.ip().is_unspecified() || address.port() == 0) {
            return Err(Failure::usage(format!("`{text}` needs an address and a port to send to")));
        }
        let mut udp = Udp { address, interface: None, ttl: None, reorder: None, payload_type: None, ssrc: None };
        for (key, value) in pairs(query) {
            let key = if key == "interface" { "iface" } else { key };
            if !scheme.settings.contains(&key) {
                return Err(Failure::usage(format!(
                    "`{text}`: there is no setting called `{key}`; there are {}",
                    listed(scheme.settings)
                )));
            }
            udp.set(key, value).map_err(|what| Failure::usage(format!("`{text}`: {what}")))?;
        }
        Ok(udp)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |least: u64, most: u64| {
            let wrong = || format!("{key} is a number from {least} to {most}");
            let digits = value.strip_prefix("0x").map_or(value.parse(), |hex| u64::from_str_radix(hex, 16));
            digits.ok().filter(|n| (least..=most).contains(n)).ok_or_else(wrong)
        };
        match key {
            "ttl" => self.ttl = Some(number(1, 255)? as u32),
            "pt" => self.payload_type = Some(number(0, 127)? as u8),
            "ssrc" => self.ssrc = Some(number(0, u32::MAX.into())? as u32),
            "reorder" => {
                let most = Duration::from(rtp::WINDOW_MAX);
                let time = units::latency(value).ok().filter(|t| *t <= most);
                let wrong = || format!("reorder is a time from 0 to {} ms", most.as_millis());
                self.reorder = Some(time.ok_or_else(wrong)?);
            }
            _ => self.interface = Some(value.to_owned()),
        }
        Ok(())
    }
}

/// The first address of a host.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    resolve_all(host, port)?.first().copied().ok_or_else(|| no_address(host))
}

/// All addresses of a host, one or more, the preferred one first.
pub fn resolve_all(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|e| Failure::network(format!("the name {host} cannot be resolved: {e}")))?;
    let found: Vec<_> = found.collect();
    if found.is_empty() { Err(no_address(host)) } else { Ok(found) }
}

fn no_address(host: &str) -> Failure {
    Failure::network(format!("the name {host} has no address"))
}

/// Splits `host:port`; brackets around IPv6. An empty host is none.
fn host_and_port(place: &str, text: &str) -> Result<(Option<String>, Option<u16>), Failure> {
    let wrong = || Failure::usage(format!("`{text}` is no host:port; IPv6 goes into brackets, as in [::1]:9899"));
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(wrong());
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, port),
                None if rest.is_empty() => (host, ""),
                None => return Err(wrong()),
            }
        }
        None => place.rsplit_once(':').unwrap_or((place, "")),
    };
    if port.is_empty() && !host.is_empty() && host.chars().all(|c| c.is_ascii_digit()) {
        return Err(Failure::usage(format!("`{text}` is only a number; a port is written :{host}, or HOST:{host}")));
    }
    let odd = |c: char| c.is_whitespace() || "/@?#".contains(c);
    if (host.contains(':') && !place.starts_with('[')) || host.contains(odd) {
        return Err(wrong());
    }
    let port = match port {
        "" => None,
        digits => Some(digits.parse::<u16>().map_err(|_| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => Failure::usage(format!("`{text}`: a port is at most 65535")),
            false => wrong(),
        })?),
    };
    Ok(((!host.is_empty() && host != "*").then(|| host.to_owned()), port))
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        all => all.concat(),
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers() {
        let u = PeerUri::parse("anabranch://host.example:1234?latency=250&profile=cmt&mode=media").unwrap();
        assert_eq!((u.host.as_deref(), u.port), (Some("host.example"), 1234));
        assert_eq!(u.latency, Some(Duration::from_millis(250)));
        assert_eq!((u.profile.as_deref(), u.mode.as_deref()), (Some("cmt"), Some("media")));
        assert_eq!((u.place().as_str(), u.transport), ("host.example:1234", None));
        assert_eq!(PeerUri::parse("h?transport=raw").unwrap().transport, Some(Transport::RawIp));
        let u = PeerUri::parse("anabranch://:9899?streamid=a,b-2").unwrap();
        assert_eq!(u.streamid.iter().map(StreamName::as_str).collect::<Vec<_>>(), ["a", "b-2"]);
        let u = PeerUri::parse("anabranch://:9899").unwrap();
        assert_eq!((u.host, u.port), (None, 9899));
        assert_eq!(PeerUri::parse(":7000").unwrap().port, 7000);
        assert_eq!(PeerUri::parse("anabranch://[::1]").unwrap().place(), "[::1]:9899");
        assert_eq!(PeerUri::parse("anabranch://h/?latency=1s").unwrap().latency, Some(Duration::from_secs(1)));
        for bad in [
            "srt://h:1",
            "anabranch://h:99999",
            "anabranch://h?frob=1",
            "anabranch://::1",
            "anabranch://[::1",
            "anabranch://a b:1",
            "anabranch://[x]:1",
            "anabranch://h?latency=fast",
            "anabranch://h?transport=tcp",
            "anabranch://h?streamid=a/b",
            "anabranch://h?streamid=a,",
        ] {
            assert!(matches!(PeerUri::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn inputs() {
        let udp = |s: &str| match InputUri::parse(s) {
            Ok(InputUri::Udp { address, interface }) => (address.to_string(), interface),
            other => panic!("{s}: {other:?}"),
        };
        assert_eq!(udp("udp://:5001"), ("0.0.0.0:5001".into(), None));
        assert_eq!(udp("udp://@239.1.1.1:5000?iface=eth0"), ("239.1.1.1:5000".into(), Some("eth0".into())));
        assert_eq!(udp("udp://[::1]:5"), ("[::1]:5".into(), None));
        assert_eq!(InputUri::parse("-"), Ok(InputUri::Stdin));
        assert_eq!(InputUri::parse("file:a b.ts"), Ok(InputUri::File("a b.ts".into())));
        assert_eq!(InputUri::parse("file:///tmp/x"), Ok(InputUri::File("/tmp/x".into())));
        assert_eq!(InputUri::parse("x.ts"), Ok(InputUri::File("x.ts".into())));
        let rtp = |s: &str| match InputUri::parse(s) {
            Ok(InputUri::Rtp { address, interface, reorder }) => (address.to_string(), interface, reorder.as_millis()),
            other => panic!("{s}: {other:?}"),
        };
        assert_eq!(rtp("rtp://"), ("0.0.0.0:5004".into(), None, 30));
        assert_eq!(rtp("rtp://127.0.0.1"), ("127.0.0.1:5004".into(), None, 30));
        assert_eq!(rtp("rtp://@239.1.1.1:6?iface=lo&reorder=50"), ("239.1.1.1:6".into(), Some("lo".into()), 50));
        assert_eq!(rtp("rtp://:7?reorder=0").2, 0);
        for bad in
            ["rtp://:7?reorder=1h", "rtp://:7?reorder=x", "rtp://:7?ttl=3", "rtp://:7?pt=33", "udp://:7?reorder=3"]
        {
            assert!(matches!(InputUri::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
        for bad in ["", "rtsp://x", "udp://", "udp://1.2.3.4", "udp://:5000?ttl=3", "udp://:5000?x=3"] {
            assert!(matches!(InputUri::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn outputs() {
        let multicast = OutputUri::parse("udp://239.1.1.1:5000?ttl=3&iface=lo").unwrap();
        let address = "239.1.1.1:5000".parse().unwrap();
        assert_eq!(multicast, OutputUri::Udp { address, ttl: Some(3), interface: Some("lo".into()) });
        assert_eq!(OutputUri::parse("-"), Ok(OutputUri::Stdout));
        let rtp = |s: &str| match OutputUri::parse(s) {
            Ok(OutputUri::Rtp { address, ttl, payload_type, ssrc, .. }) => {
                (address.to_string(), ttl, payload_type, ssrc)
            }
            other => panic!("{s}: {other:?}"),
        };
        assert_eq!(rtp("rtp://1.2.3.4"), ("1.2.3.4:5004".into(), None, 33, None));
        assert_eq!(rtp("rtp://1.2.3.4:6?pt=96&ssrc=0xdeadbeef"), ("1.2.3.4:6".into(), None, 96, Some(0xdead_beef)));
        assert_eq!(rtp("rtp://239.1.1.1:6?ttl=9&ssrc=7"), ("239.1.1.1:6".into(), Some(9), 33, Some(7)));
        for bad in
            ["rtp://", "rtp://:5", "rtp://1.2.3.4?pt=128", "rtp://1.2.3.4?ssrc=4294967296", "rtp://1.2.3.4?reorder=9"]
        {
            assert!(matches!(OutputUri::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
        for bad in ["udp://:5000", "udp://1.2.3.4:5?ttl=0", "udp://1.2.3.4:0"] {
            assert!(matches!(OutputUri::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn tunnels() {
        assert_eq!(udp_address("udp://127.0.0.1:5", true).unwrap().port(), 5);
        assert!(udp_address("udp://239.1.1.1:5", true).is_err());
        assert!(udp_address("udp://:5", false).is_err());
    }
}
