//! Flags about paths and policies, shared by the commands that open connections.

use crate::exit::Failure;
use crate::mediahint::{self, MediaHintType};
use crate::units;
use crate::uri::{self, PeerUri};
use anabranch_media::MediaHint;
use anabranch_net::{
    AssocConfig, ConnectOptions, Constants, Local, OwnParameter, PathMtuDiscovery, PathSpec, Profile, Transport,
};
use anabranch_policy::Hook;
use anabranch_policy::registry::Yielded;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

/// Bytes of the headers of IPv6 and UDP, the largest in front of SCTP.
const HEADERS: usize = 48;

/// How large a packet to look for on each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtu {
    /// Not at all.
    None,
    /// IP packets of up to so many bytes.
    UpTo(u16),
}

fn mtu(text: &str) -> Result<Mtu, String> {
    match text {
        "auto" => Ok(Mtu::UpTo(1_500)),
        "none" => Ok(Mtu::None),
        _ => text
            .parse()
            .ok()
            .filter(|n| *n >= 1_280)
            .map(Mtu::UpTo)
            .ok_or_else(|| format!("{text} is no size of a packet; write auto, none, or bytes from 1280 to 65535")),
    }
}

/// Policies and limits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Transport")]
pub struct PolicyArgs {
    /// Policies by the name of a profile; `anabranch policies` lists them
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Path scheduler, instead of the profile's
    #[arg(long, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// Any policy by name, such as timer=thin:rto_min=200; repeatable
    #[arg(long, value_name = "HOOK=POLICY[:PARAM=VALUE,…]")]
    pub set: Vec<String>,
    /// What carries SCTP: udp, or raw for IP itself (needs the right CAP_NET_RAW)
    #[arg(long, value_name = "udp|raw")]
    pub transport: Option<Transport>,
    /// Tell the peer our addresses in the handshake, for peers that cannot learn them later (ASCONF); not behind a NAT
    #[arg(long)]
    pub list_addresses: bool,
    /// Look on each path for IP packets up to so many bytes, auto for 1500 (live and live-parity do); with none, packets have
    /// 1200 bytes of SCTP and less on no path
    #[arg(long, value_name = "BYTES|auto|none", value_parser = mtu)]
    pub mtu: Option<Mtu>,
    /// Type of the parameter in the handshake by which `send --profile media` says that it sends a film, and by which
    /// others read it; 0x8000 to 0xbfff, or none
    #[arg(long, value_name = "TYPE|none", default_value = "0xbf43", value_parser = mediahint::parse)]
    pub media_hint: MediaHintType,
    /// What is sent is a film, as far as is known.
    #[arg(skip)]
    pub sends_film: bool,
    /// Flags from a TOML file, by their names without dashes in front; what the command line names wins. SIGHUP reads
    /// its paths anew
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A peer from whom nothing came for so long is gone. Until then a session survives the silence of all paths, and goes
    /// on when one returns
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::patience)]
    pub peer_timeout: Duration,
    /// Write every packet to a pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

/// How to reach the peer.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Transport")]
pub struct PathArgs {
    /// A path by the interface or address it leaves from, each bound to its device; with via= it leads to another
    /// address of the peer, or to a relay; repeatable
    #[arg(long = "path", value_name = "IFACE|ADDRESS[,via=HOST:PORT]")]
    pub paths: Vec<String>,
    /// A peer that has not answered for so long cannot be reached: the end with --once and for a file, otherwise the end of
    /// one try of many [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::patience)]
    pub connect_timeout: Option<Duration>,
    /// Begin although some interfaces are not there; they join when they appear
    #[arg(long)]
    pub allow_missing: bool,
}

impl PolicyArgs {
    /// The profile, with everything set on it.
    pub fn profile(&self, uri: &PeerUri) -> Result<Profile, Failure> {
        let name = self.profile.as_deref().or(uri.profile.as_deref()).unwrap_or(DEFAULT_PROFILE);
        let mut profile = Profile::named(name).map_err(Failure::usage)?;
        let mut named = Vec::new();
        if let Some(scheduler) = self.scheduler.as_deref().or(uri.scheduler.as_deref()) {
            profile.set(Hook::PathScheduler, scheduler).map_err(Failure::usage)?;
            named.push(Hook::PathScheduler);
        }
        for setting in &self.set {
            let (hook, spec) = setting.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--set {setting}: write HOOK=POLICY, for example window=rfc9260"))
            })?;
            let hook = hook.trim().parse().map_err(Failure::usage)?;
            profile.set(hook, spec.trim()).map_err(Failure::usage)?;
            named.push(hook);
        }
        let yielded = profile.yield_to(&named);
        if !yielded.is_empty() {
            static SAID: Once = Once::new();
            SAID.call_once(|| yielded.iter().for_each(|y| tracing::info!("{}", said(y, name, &profile))));
        }
        Ok(profile)
    }

    /// What carries SCTP.
    pub fn transport(&self, uri: &PeerUri) -> Transport {
        self.transport.or(uri.transport).unwrap_or_default()
    }

    /// Limits and constants for use over networks that come and go.
    pub fn association(&self, uri: &PeerUri) -> Result<AssocConfig, Failure> {
        let mut config = AssocConfig::new(self.profile(uri)?);
        // Whatever the profile: paths and peers that die are noticed by HEARTBEATs, and silence is no bad sign before.
        config.timers.heartbeat_interval = config.timers.heartbeat_interval.min(Constants::OURS.heartbeat_interval);
        // The peer is given up by time (--peer-timeout), not by count.
        config.failure.peer_timeout = Some(self.peer_timeout.into());
        config.failure.max_init_retrans = u16::MAX;
        config.mtu.discovery = match self.mtu {
            None => config.mtu.discovery,
            Some(Mtu::None) => None,
            Some(Mtu::UpTo(m)) => Some(PathMtuDiscovery::up_to(usize::from(m) - HEADERS)),
        };
        if let Some(kind) = self.media_hint.0 {
            let film = self.sends_film && config.profile.announces_film();
            let hint = OwnParameter { kind, value: film.then(|| MediaHint::mpeg().encode().to_vec().into()) };
            config.extensions.own_parameters = vec![hint];
            config.check().map_err(Failure::usage)?;
        }
        Ok(config)
    }
}

/// What was switched off in profile `name`, and why.
fn said(y: &Yielded, name: &str, profile: &Profile) -> String {
    let Yielded { hook, was, to } = y;
    let (to, chosen) = (to.name(), profile.get(*to));
    let why = match hook {
        Hook::Redundancy => "sends every chunk on every path",
        _ => "sets itself, whatever a coupling says",
    };
    format!("{hook} {was} of profile {name} is off: {to} {chosen} {why}")
}

/// Our own best for live use.
const DEFAULT_PROFILE: &str = "live";

impl PathArgs {
    /// How long a peer has to answer.
    pub fn patience(&self) -> Duration {
        self.connect_timeout.unwrap_or(ConnectOptions::DEFAULT_TIMEOUT)
    }

    /// The paths towards a peer with these addresses; one that leaves anywhere when none is named.
    pub fn specs(&self, remotes: &[SocketAddr]) -> Result<Vec<PathSpec>, Failure> {
        if self.paths.is_empty() {
            return Ok(vec![PathSpec::to(towards(&Local::Any, remotes)?)]);
        }
        self.paths.iter().map(|text| path(text, remotes)).collect()
    }
}

/// The first of a host's addresses that can be reached from there: one of the family of a local address.
fn towards(local: &Local, remotes: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    let fits = |r: &&SocketAddr| !matches!(local, Local::Address(ip) if ip.is_ipv4() != r.is_ipv4());
    let remote = remotes.iter().find(fits).or(remotes.first());
    remote.copied().ok_or_else(|| Failure::network("the peer has no address"))
}

fn path(text: &str, remotes: &[SocketAddr]) -> Result<PathSpec, Failure> {
    let mut parts = text.split(',').map(str::trim);
    let local: Local = parts.next().unwrap_or("").parse().map_err(|e| Failure::usage(format!("--path {text}: {e}")))?;
    let remote = towards(&local, remotes)?;
    let mut spec = PathSpec::new(local, remote);
    for part in parts {
        let via = part.strip_prefix("via=").ok_or_else(|| {
            Failure::usage(format!("--path {text}: `{part}` is not known; write for example wlan0,via=192.0.2.7:9899"))
        })?;
        let via = PeerUri::parse(via)?;
        let host = via.host.ok_or_else(|| Failure::usage(format!("--path {text}: via= needs a host")))?;
        spec.remote = towards(&spec.local, &uri::resolve_all(&host, via.port)?)?;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn args(profile: Option<&str>, scheduler: Option<&str>, set: &[&str]) -> PolicyArgs {
        PolicyArgs {
            profile: profile.map(Into::into),
            scheduler: scheduler.map(Into::into),
            set: set.iter().map(|s| s.to_string()).collect(),
            transport: None,
            list_addresses: false,
            mtu: None,
            media_hint: MediaHintType(Some(MediaHint::PARAMETER)),
            sends_film: false,
            config: None,
            peer_timeout: Duration::from_secs(10),
            pcap: None,
        }
    }

    #[test]
    fn flags_win_over_the_address() {
        let uri = PeerUri::parse("h?profile=sctp&scheduler=round_robin").unwrap();
        let p = args(None, None, &[]).profile(&uri).unwrap();
        assert_eq!((p.name(), p.get(Hook::PathScheduler)), ("sctp", "round_robin"));
        let p = args(Some("cmt"), Some("min-rtt"), &["loss_threshold=early_retransmit"]).profile(&uri).unwrap();
        assert_eq!((p.name(), p.get(Hook::PathScheduler)), ("cmt", "min_rtt"));
        assert_eq!(p.get(Hook::LossThreshold), "early_retransmit");
        for bad in [args(Some("nope"), None, &[]), args(None, Some("nope"), &[]), args(None, None, &["window"])] {
            assert!(matches!(bad.profile(&uri), Err(Failure::Usage(_))));
        }
    }

    /// A scheduler that the user names switches off what only comes with the profile, and nothing that is named too.
    #[test]
    fn a_named_scheduler_wins_over_the_redundancy_of_the_profile() {
        let uri = |query: &str| PeerUri::parse(&format!("h{query}")).unwrap();
        for name in Profile::names() {
            let own = Profile::named(name).unwrap();
            let counts_by_tsn = own.get(Hook::LossCount) == "tsn";
            for (query, scheduler, set) in [
                ("", Some("redundant"), &[][..]),
                ("?scheduler=redundant", None, &[]),
                ("", None, &["path_scheduler=redundant"]),
                ("?scheduler=min_rtt", Some("redundant"), &[]),
                ("?scheduler=redundant", None, &["redundancy=none"]),
            ] {
                let p = args(Some(name), scheduler, set).profile(&uri(query)).unwrap();
                assert_eq!((p.get(Hook::PathScheduler), p.get(Hook::Redundancy)), ("redundant", "none"), "{name}");
                let checked = p.check(2).map_err(|e| e.to_string());
                let by_tsn = |e: &String| e.contains("loss_count=per_path");
                assert!(if counts_by_tsn { checked.as_ref().is_err_and(by_tsn) } else { checked.is_ok() }, "{name}");
            }
            let per_path = args(Some(name), Some("redundant"), &["loss_count=per_path"]);
            assert_eq!(per_path.profile(&uri("")).unwrap().check(2), Ok(()), "{name}");
            for copies in ["deadline_copy", "preventive_copy", "erasure"] {
                let set = [&format!("redundancy={copies}"), "loss_count=per_path"];
                let p = args(Some(name), Some("redundant"), &set).profile(&uri("")).unwrap();
                assert_eq!(p.get(Hook::Redundancy), copies, "{name}");
                assert!(p.check(2).is_err_and(|e| e.to_string().contains("take redundancy=none")), "{name}");
            }
            for other in ["min_rtt", "primary_only"] {
                let p = args(Some(name), Some(other), &[]).profile(&uri("")).unwrap();
                assert_eq!(p.spec(Hook::Redundancy), own.spec(Hook::Redundancy), "{name}");
            }
        }
    }

    /// So does a window that sets itself over the profile's coupling; a coupling that is named is not switched off.
    #[test]
    fn a_named_window_wins_over_the_coupling_of_the_profile() {
        let uri = PeerUri::parse("h").unwrap();
        for (name, coupling) in [("cmt-fair", "one_flow:growth=0.3"), ("cmt-cl-fd", "friendliness_window")] {
            for (window, is_off) in [("bbr", true), ("bbr3", true), ("none", true), ("cubic", false)] {
                let set = format!("window={window}");
                let p = args(Some(name), None, &[&set]).profile(&uri).unwrap();
                assert_eq!(p.spec(Hook::Coupling), if is_off { "uncoupled" } else { coupling }, "{name} {window}");
                assert_eq!(p.check(2), Ok(()), "{name} {window}");
                let named = args(Some(name), None, &[&set, "coupling=lia"]).profile(&uri).unwrap();
                assert_eq!((named.get(Hook::Coupling), named.check(2).is_err()), ("lia", is_off), "{name} {window}");
            }
        }
        let mut p = Profile::named("cmt-fair").unwrap();
        p.set(Hook::Window, "bbr3").unwrap();
        assert_eq!(
            p.yield_to(&[Hook::Window]).iter().map(|y| said(y, "cmt-fair", &p)).collect::<Vec<_>>(),
            [
                "coupling one_flow:growth=0.3 of profile cmt-fair is off: window bbr3 sets itself, whatever a coupling says"
            ]
        );
    }

    /// The hint is said by who sends a film with profile `media`; everyone else repeats it, or with `none` leaves it out.
    #[test]
    fn the_media_hint_goes_with_its_profile() {
        let uri = PeerUri::parse("h").unwrap();
        let own = |a: PolicyArgs| a.association(&uri).unwrap().extensions.own_parameters;
        let film = |profile, film| PolicyArgs { sends_film: film, ..args(Some(profile), None, &[]) };
        let hint = OwnParameter::said(0xbf43, vec![1, 3, 0, 1, 2]);
        assert_eq!(own(film("media", true)), [hint]);
        for other in [film("media", false), film("live", true)] {
            assert_eq!(own(other), [OwnParameter::known(0xbf43)]);
        }
        assert_eq!(own(PolicyArgs { media_hint: MediaHintType(None), ..film("media", true) }), []);
        let own_type = PolicyArgs { media_hint: mediahint::parse("0x9123").unwrap(), ..film("live", false) };
        assert_eq!(own(own_type), [OwnParameter::known(0x9123)]);
    }

    /// One set of defaults: what is named here is all that the program has of its own.
    #[test]
    fn constants_are_those_of_the_profile() {
        let uri = PeerUri::parse("h").unwrap();
        for name in Profile::names() {
            let ours = args(Some(name), None, &[]).association(&uri).unwrap();
            let default = AssocConfig::new(Profile::named(name).unwrap());
            assert_eq!(
                (ours.timers.sack_delay, ours.timers.rto_max),
                (default.timers.sack_delay, default.timers.rto_max),
                "{name}"
            );
            assert_eq!(ours.timers.heartbeat_interval, Constants::OURS.heartbeat_interval, "{name}");
            let is_ours = default.profile.is_ours();
            assert_eq!(default.timers.heartbeat_interval == Constants::OURS.heartbeat_interval, is_ours, "{name}");
        }
    }

    #[test]
    fn sizes_to_look_for() {
        let uri = PeerUri::parse("h").unwrap();
        let by = |profile, mtu| {
            PolicyArgs { mtu, ..args(Some(profile), None, &[]) }.association(&uri).unwrap().mtu.discovery
        };
        let looks = |mtu| by("cmt", mtu);
        assert_eq!(looks(None), None, "off unless asked for");
        assert_eq!(by("live", None).map(|d| d.max), Some(1_452));
        assert_eq!(by("live", mtu("none").ok()), None);
        assert_eq!(looks(mtu("auto").ok()).map(|d| d.max), Some(1_452));
        assert_eq!(looks(mtu("9000").ok()).map(|d| d.max), Some(8_952));
        for bad in ["", "1279", "65536", "Auto", "-1", "1500b"] {
            assert!(mtu(bad).is_err_and(|e| e.contains("auto")), "{bad}");
        }
    }

    /// Each path leads to the host's first address of its own family.
    #[test]
    fn a_path_leads_to_an_address_of_its_family() {
        let [a4, b4, a6, b6] =
            ["192.0.2.1:9", "192.0.2.2:9", "[2001:db8::1]:9", "[2001:db8::2]:9"].map(|a| a.parse().unwrap());
        for (remotes, any, v4, v6) in [
            (&[a4, b4, a6, b6][..], a4, a4, a6),
            (&[a6, a4, b6], a6, a4, a6),
            (&[b6, b4], b6, b4, b6),
            // There is none: the first, whose family is said where the path is bound.
            (&[a4, b4], a4, a4, a4),
            (&[a6], a6, a6, a6),
        ] {
            for (local, want) in [("wlan0", any), ("*", any), ("192.0.2.9", v4), ("::1", v6), ("2001:db8::9", v6)] {
                assert_eq!(path(local, remotes).unwrap().remote, want, "{local} to {remotes:?}");
                assert_eq!(
                    path(&format!("{local},via=192.0.2.7:1"), remotes).unwrap().remote,
                    "192.0.2.7:1".parse().unwrap()
                );
            }
        }
    }

    #[test]
    fn paths() {
        let remote: SocketAddr = "192.0.2.1:9899".parse().unwrap();
        let path = |text, remote| path(text, &[remote]);
        let p = path("127.0.0.2,via=127.0.0.1:7001", remote).unwrap();
        assert_eq!(p.local, Local::Address(IpAddr::from([127, 0, 0, 2])));
        assert_eq!(p.remote, "127.0.0.1:7001".parse().unwrap());
        let p = path("wlan0", remote).unwrap();
        assert_eq!((p.local, p.remote), (Local::Interface("wlan0".into()), remote));
        for bad in ["", "wlan0,to=1.2.3.4:5", "wlan0,via=:9"] {
            assert!(matches!(path(bad, remote), Err(Failure::Usage(_))), "{bad}");
        }
    }
}
