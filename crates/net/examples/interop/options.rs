//! The options of a run.

use crate::Anything;
use anabranch_net::{AssocConfig, Duration, Profile, Transport};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Shutdown,
    Abort,
    Wait,
}

pub struct Options {
    pub server: bool,
    pub local: Vec<IpAddr>,
    pub remotes: Vec<SocketAddr>,
    pub listen_udp: Option<u16>,
    pub port: u16,
    pub peer_port: u16,
    pub messages: u32,
    pub streams: u16,
    pub rate: f64,
    pub lifetime: Option<Duration>,
    pub retransmissions: Option<u16>,
    pub end: End,
    pub seconds: u64,
    pub linger: u64,
    pub fast: Option<(u64, u64)>,
    pub gaps: bool,
    pub list: bool,
    pub no_asconf: bool,
    pub no_pr: bool,
    pub extensions: String,
    pub reset: bool,
    pub profile: String,
    pub pcap: Option<String>,
    /// No message is larger.
    pub largest: usize,
    /// An address of ours that is added after a quarter of the messages, and where its path leads; after three quarters
    /// the first of `local` is removed.
    pub swap: Option<(IpAddr, IpAddr)>,
    pub key: Option<String>,
    /// How often this side has begun anew.
    pub epoch: u32,
}

impl Options {
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Anything> {
        let server = words.next().ok_or("server or client?")? == "server";
        let mut flags = Vec::new();
        let mut values = BTreeMap::new();
        while let Some(word) = words.next() {
            if matches!(word.as_str(), "--gaps" | "--list" | "--no-asconf" | "--no-pr" | "--reset") {
                flags.push(word);
            } else {
                let value = words.next().ok_or(format!("{word} needs a value"))?;
                values.insert(word, value);
            }
        }
        let mut take = |name: &str| values.remove(name);
        let udp = take("--udp");
        let (listen_udp, peer_udp) = match udp.as_deref().map(|u| u.split_once(':').unwrap_or((u, "0"))) {
            Some((own, peer)) => (Some(own.parse()?), peer.parse()?),
            None => (None, 0),
        };
        let list = |text: String| text.split(',').map(str::parse).collect::<Result<Vec<IpAddr>, _>>();
        let peers = list(take("--peer").unwrap_or_default()).unwrap_or_default();
        let mut remotes: Vec<SocketAddr> = peers.into_iter().map(|a| SocketAddr::new(a, peer_udp)).collect();
        if let Some(paths) = take("--paths") {
            remotes = paths.split(',').map(str::parse).collect::<Result<_, _>>()?;
        }
        let pr = take("--pr");
        if pr.as_ref().is_some_and(|p| !p.starts_with("ttl:") && !p.starts_with("rtx:")) {
            return Err("--pr is ttl:MS or rtx:N".into());
        }
        let pr_value = |kind: &str| pr.as_deref().and_then(|p| p.strip_prefix(kind));
        let range = |text: String| Some(text.split_once(':').map(|(a, b)| (a.parse().ok(), b.parse().ok())));
        let o = Options {
            server,
            local: list(take("--local").ok_or("--local is needed")?)?,
            remotes,
            listen_udp,
            port: take("--port").map_or(Ok(0), |p| p.parse())?,
            peer_port: take("--peer-port").map_or(Ok(0), |p| p.parse())?,
            messages: take("--messages").map_or(Ok(0), |p| p.parse())?,
            streams: take("--streams").map_or(Ok(1), |p| p.parse())?,
            rate: take("--rate").map_or(Ok(f64::INFINITY), |p| p.parse())?,
            lifetime: pr_value("ttl:").map(|ms| ms.parse().map(Duration::from_millis)).transpose()?,
            retransmissions: pr_value("rtx:").map(str::parse).transpose()?,
            end: match take("--end").as_deref() {
                Some("abort") => End::Abort,
                Some("wait") => End::Wait,
                _ => End::Shutdown,
            },
            seconds: take("--seconds").map_or(Ok(60), |p| p.parse())?,
            linger: take("--linger").map_or(Ok(0), |p| p.parse())?,
            fast: take("--rto").and_then(range).flatten().and_then(|(a, b)| a.zip(b)),
            gaps: flags.iter().any(|f| f == "--gaps"),
            list: flags.iter().any(|f| f == "--list"),
            no_asconf: flags.iter().any(|f| f == "--no-asconf"),
            no_pr: flags.iter().any(|f| f == "--no-pr"),
            extensions: take("--extensions").unwrap_or_default(),
            reset: flags.iter().any(|f| f == "--reset"),
            profile: take("--profile").unwrap_or("cmt".into()),
            pcap: take("--pcap"),
            largest: take("--largest").map_or(Ok(usize::MAX), |n| n.parse())?,
            swap: match take("--swap") {
                Some(pair) => match list(pair)?[..] {
                    [own, peer] => Some((own, peer)),
                    _ => return Err("this side knows --swap OWN,PEER only".into()),
                },
                None => None,
            },
            key: take("--key"),
            epoch: take("--epoch").map_or(Ok(0), |n| n.parse())?,
        };
        match values.keys().next() {
            Some(unknown) => Err(format!("{unknown} is no option").into()),
            None => Ok(o),
        }
    }

    pub fn transport(&self) -> Transport {
        if self.listen_udp.is_none() { Transport::RawIp } else { Transport::Udp }
    }

    pub fn association(&self) -> Result<AssocConfig, Anything> {
        let mut c = AssocConfig::new(Profile::named(&self.profile)?);
        c.limits.outbound_streams = self.streams;
        c.extensions.dynamic_addresses = !self.no_asconf;
        c.extensions.partial_reliability = !self.no_pr;
        for name in self.extensions.split(',').filter(|e| !e.is_empty()) {
            match name {
                "idata" => c.extensions.interleaving = true,
                "reconf" => c.extensions.stream_reconfiguration = true,
                "nrsack" => c.extensions.nr_sack = true,
                _ => return Err(format!("there is no extension {name}").into()),
            }
        }
        if let Some(key) = &self.key {
            c.auth.keys.push((1, key.clone().into_bytes().into()));
            c.auth.active_key = 1;
        }
        if let Some((min, max)) = self.fast {
            c.timers.rto_initial = Duration::from_millis(min);
            c.timers.rto_max = Duration::from_millis(max);
            c.failure.max_path_retrans = 2;
            c.timers.heartbeat_interval = Duration::from_millis(500);
        }
        Ok(c)
    }
}
