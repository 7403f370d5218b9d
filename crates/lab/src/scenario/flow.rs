//! `[[flow]]`: who talks to whom, and how.

use super::mptcp::{self, OF_MPTCP};
use super::sctp::{LIMITS, OF_SCTP, Sctp, sctp};
use super::tcp_udp::{self, OF_TCP};
use super::traffic::{self, Traffic};
use super::units::{BitRate, Names, Time};
use crate::document::{Part, Problem, Table, Value, read as read_keys};
use crate::metrics::{Cut, Dependence};
use crate::node::{Delivery, Follow, Follows, Streams};
use anabranch_base::{Duration, Rate};
use anabranch_policy::registry::Hook;
use anabranch_sim::traffic::{ParetoOnOff, Sizes, TrafficConfig, Video, VideoTrace};
use anabranch_sim::transport::mptcp::{Coding, MptcpConfig};
use anabranch_sim::transport::tcp::TcpConfig;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A flow, ready to run. Several of one name are a group.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Name of its group: `main`.
    pub group: String,
    /// Its own name, unique: `main`, or `background.3`.
    pub name: String,
    /// The group whose association carries it, where that is not its own.
    pub association: Option<String>,
    /// Host that sends.
    pub from: String,
    /// Host that receives.
    pub to: String,
    /// When it starts.
    pub start: Duration,
    /// It starts evenly within this time after `start`.
    pub start_within: Duration,
    /// Its sender's host takes a time for each packet, drawn evenly from 0 to this.
    pub processing: Duration,
    /// What it sends.
    pub traffic: TrafficConfig,
    /// How it is carried.
    pub transport: Transport,
    /// How its frames are watched.
    pub playout: Option<Playout>,
    /// How its frames are cut into messages; a frame that is not is one message.
    pub cut: Option<Cut>,
    /// How its encoder follows what the paths carry.
    pub follow: Option<Follow>,
    /// How long a message is of use. Nothing is sent otherwise for that.
    pub deadline: Option<Duration>,
    /// The rate of the stream that its picture needs, where the flow says it.
    pub psnr_rate: Option<Rate>,
}

impl Flow {
    /// The rate of the stream that its picture needs: as said, or what its traffic makes.
    pub fn picture_rate(&self) -> Option<Rate> {
        let made = match &self.traffic {
            TrafficConfig::Cbr(cbr) => Some(cbr.rate),
            TrafficConfig::Vbr(vbr) => Some(vbr.rate),
            _ => None,
        };
        self.psnr_rate.or(made)
    }
}

/// A viewer of a flow of video frames.
#[derive(Clone, PartialEq, Debug)]
pub struct Playout {
    /// A frame is shown so long after it was made.
    pub after: Duration,
    /// Frames per second.
    pub fps: f64,
    /// What a frame needs to be decoded.
    pub dependence: Dependence,
}

/// Payload of the largest datagram of a UDP flow: what is larger leaves as several.
pub const LARGEST_DATAGRAM: u32 = 1_472;

/// How a flow is carried.
#[derive(Clone, PartialEq, Debug)]
pub enum Transport {
    /// The engine.
    Sctp(Box<Sctp>),
    /// A TCP of the simulator.
    Tcp(TcpConfig),
    /// Datagrams, with this many header bytes each.
    Udp(u32),
    /// A Multipath TCP of the simulator, or what is reconstructed on it.
    Mptcp(Mptcp),
}

/// How a Multipath TCP carries a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mptcp {
    /// How it behaves.
    pub config: MptcpConfig,
    /// Paths used; all that there are without.
    pub paths: Option<usize>,
}

impl Transport {
    /// Its name in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Sctp(_) => "sctp",
            Transport::Tcp(_) => "tcp",
            Transport::Udp(_) => "udp",
            Transport::Mptcp(m) => match m.config.coding {
                Coding::Plain => "mptcp",
                Coding::Nc(_) => "nc-mptcp",
                Coding::Fmtcp(_) => "fmtcp",
            },
        }
    }

    /// How many of the paths between its hosts it uses at most.
    pub fn most_paths(&self) -> usize {
        match self {
            Transport::Sctp(s) => s.paths.unwrap_or(usize::MAX),
            Transport::Mptcp(m) => m.paths.unwrap_or(usize::MAX),
            Transport::Tcp(_) | Transport::Udp(_) => 1,
        }
    }
}

const BASIC: [&str; 16] = [
    "name",
    "transport",
    "from",
    "to",
    "start",
    "start-within",
    "processing",
    "enabled",
    "traffic",
    "playout",
    "deadline",
    "psnr-rate",
    "follow-rate",
    "least-rate",
    "rate-lag",
    "note",
];
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Basic {
    transport: String,
    from: Option<Names>,
    to: Option<Names>,
    start: Option<Time>,
    start_within: Option<Time>,
    processing: Option<Time>,
    #[serde(rename = "traffic")]
    _traffic: Option<IgnoredAny>,
    playout: Option<Time>,
    deadline: Option<Time>,
    psnr_rate: Option<BitRate>,
    follow_rate: Option<String>,
    least_rate: Option<BitRate>,
    rate_lag: Option<Time>,
}

/// May a flow have this name?
fn may_be_called(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '*', ',', '"'])
}

/// The name of the flow in `table`.
pub(super) fn name(table: &Table) -> Result<&str, Problem> {
    let part = Part::new("[[flow]]", table);
    let node = table.get("name").ok_or_else(|| part.wrong("the key `name` is missing"))?;
    let wrong = || part.at("name", "needs letters, without dots, stars, commas and quotes");
    node.as_text().filter(|name| may_be_called(name)).ok_or_else(wrong)
}

/// Reads a flow or a group of them; none when it is not enabled.
pub(super) fn read(table: &Table) -> Result<Vec<Flow>, Problem> {
    let group = name(table)?.to_owned();
    let place = format!("flow `{group}`");
    let part = Part::new(&place, table);
    let enabled = match table.get("enabled").map(|node| &node.value) {
        None => true,
        Some(Value::Boolean(b)) => *b,
        Some(_) => return Err(part.at("enabled", "is true or false")),
    };
    let mut own = table.clone();
    own.split(|key| matches!(key, "name" | "enabled" | "note"));
    let basic = own.split(|key| BASIC.contains(&key));
    let said = Said::of(&own);
    let own = Part::new(&place, &own);
    let basic: Basic = read_keys(Part::new(&place, &basic))?;
    let (mut transport, full) = match basic.transport.as_str() {
        "sctp" => sctp(own)?,
        "tcp" => tcp_udp::tcp(own)?,
        "udp" => tcp_udp::udp(own)?,
        name @ ("mptcp" | "nc-mptcp" | "fmtcp") => mptcp::mptcp(own, name)?,
        other => {
            let what = format!("is sctp, tcp, udp, mptcp, nc-mptcp or fmtcp, not `{other}`");
            return Err(part.at("transport", what));
        }
    };
    let traffic = traffic::read(part)?;
    let clocked = !matches!(traffic, Traffic::Bulk { .. }) || !matches!(transport, Transport::Udp(_));
    if !clocked {
        return Err(part.at("traffic", "bulk has no clock, which udp needs: choose cbr or another"));
    }
    if matches!((&traffic, &transport), (Traffic::Web { .. }, Transport::Mptcp(_))) {
        let what = format!("web has a connection for each transfer, and {} is one: choose another", transport.name());
        return Err(part.at("traffic", what));
    }
    let dependence = traffic.dependence();
    let traffic = traffic.config(full).map_err(|e| part.at("traffic", e))?;
    if let Transport::Sctp(s) = &transport {
        fits_send_buffer(part, &traffic, s)?;
    }
    let playout = playout(part, &basic, &traffic, dependence)?;
    let follow = follow(part, &basic, &traffic, &transport)?;
    let psnr_rate = basic.psnr_rate.as_ref().map(|r| r.0);
    if psnr_rate.is_some_and(|r| r.bits_per_sec() == 0) {
        return Err(part.at("psnr-rate", "needs a rate above zero"));
    }
    let deadline = deadline(part, &basic, &traffic, &transport, playout.is_some())?;
    let video = matches!(traffic, TrafficConfig::Video(_) | TrafficConfig::VideoTrace(_));
    let mut cut = playout.as_ref().map(|_| Cut::plain(full));
    if let Transport::Sctp(s) = &mut transport {
        if video && said.class {
            return Err(part.at("class", "is that of each frame in traffic of kind video or video-trace: remove it"));
        }
        if video {
            cut = Some(Cut::media());
            s.delivery = said.of_video(s.delivery, playout.as_ref());
        } else if let Some(key) = said.by_class {
            return Err(part.at(key, "is a list by class of frames: traffic of other kinds takes one value"));
        }
        if !video && matches!(s.delivery.streams, Streams::ByClass(_)) {
            return Err(part.at("class-streams", "is for traffic of kind video or video-trace: remove it"));
        }
        if s.says_media_hint() && !matches!(s.delivery.streams, Streams::ByClass(_)) {
            return Err(part.at("media-hint", "is for video whose classes have streams of their own: remove it"));
        }
    }
    let (start, within, processing) = (basic.start, basic.start_within, basic.processing);
    let ends = ends(part, basic.from.as_ref(), basic.to.as_ref())?;
    let single = ends.len() == 1;
    let flow = |(i, (from, to)): (usize, (String, String))| Flow {
        name: if single { group.clone() } else { format!("{group}.{}", i + 1) },
        group: group.clone(),
        association: None,
        from,
        to,
        start: start.map_or(Duration::ZERO, |t| t.0),
        start_within: within.map_or(Duration::ZERO, |t| t.0),
        processing: processing.map_or(Duration::ZERO, |t| t.0),
        traffic: traffic.clone(),
        transport: transport.clone(),
        playout: playout.clone(),
        cut,
        follow,
        deadline,
        psnr_rate,
    };
    let flows: Vec<Flow> = ends.into_iter().enumerate().map(flow).collect();
    Ok(if enabled { flows } else { Vec::new() })
}

/// An association takes no message that is larger than its send buffer. Transfers of web clients and frames vary, and are
/// found while they are sent.
fn fits_send_buffer(part: Part<'_>, traffic: &TrafficConfig, s: &Sctp) -> Result<(), Problem> {
    let (key, size) = match traffic {
        TrafficConfig::Bulk(b) => ("size", u64::from(b.size).min(b.total.unwrap_or(u64::MAX))),
        TrafficConfig::Cbr(c) => ("size", u64::from(c.size)),
        TrafficConfig::Vbr(v) => ("max-size", u64::from(v.max_size)),
        TrafficConfig::ParetoOnOff(ParetoOnOff { sizes: Sizes::Fixed(size), .. }) => ("size", u64::from(*size)),
        _ => return Ok(()),
    };
    let Ok((config, _)) = s.config(0) else { return Ok(()) };
    let buffer = config.limits.send_buffer as u64;
    if size <= buffer {
        return Ok(());
    }
    let what = format!("messages of {size} bytes do not fit the send buffer of {buffer}: raise `send-buffer`");
    Err(part.at(&format!("traffic.{key}"), what))
}

/// What is shown of a flow of frames, and when.
fn playout(
    part: Part<'_>,
    keys: &Basic,
    traffic: &TrafficConfig,
    pattern: Dependence,
) -> Result<Option<Playout>, Problem> {
    let Some(Time(after)) = keys.playout.as_ref() else { return Ok(None) };
    match traffic {
        TrafficConfig::Video(Video { fps, .. }) => Ok(Some(Playout { after: *after, fps: *fps, dependence: pattern })),
        TrafficConfig::VideoTrace(VideoTrace { needs, fps, .. }) => {
            let dependence = needs.clone().map_or(pattern, Dependence::Named);
            Ok(Some(Playout { after: *after, fps: *fps, dependence }))
        }
        _ => Err(part.at("playout", "is for traffic of kind video or video-trace: remove it")),
    }
}

/// When a message of a flow is late.
fn deadline(
    part: Part<'_>,
    keys: &Basic,
    traffic: &TrafficConfig,
    transport: &Transport,
    is_shown: bool,
) -> Result<Option<Duration>, Problem> {
    let Some(Time(deadline)) = keys.deadline.as_ref() else { return Ok(None) };
    if is_shown {
        return Err(part.at("deadline", "is that of `playout` in a flow that has it: remove it"));
    }
    if matches!((transport, traffic), (Transport::Tcp(_) | Transport::Mptcp(_), TrafficConfig::Bulk(_))) {
        let over = transport.name();
        let what = format!("bulk over {over} is a stream without messages: choose cbr or another");
        return Err(part.at("deadline", what));
    }
    Ok(Some(*deadline))
}

/// How the encoder of a flow follows what its paths carry.
fn follow(
    part: Part<'_>,
    keys: &Basic,
    traffic: &TrafficConfig,
    transport: &Transport,
) -> Result<Option<Follow>, Problem> {
    let wrong = |key: &str, what: &str| Err(part.at(key, what));
    let what = match keys.follow_rate.as_deref() {
        None | Some("none") if keys.least_rate.is_some() => {
            return wrong("least-rate", "is for a flow with `follow-rate`: remove it");
        }
        None | Some("none") if keys.rate_lag.is_some() => {
            return wrong("rate-lag", "is for a flow with `follow-rate`: remove it");
        }
        None | Some("none") => return Ok(None),
        Some("low") => Follows::Low,
        Some("middle") => Follows::Middle,
        Some(other) => return wrong("follow-rate", &format!("is low, middle or none, not `{other}`")),
    };
    match (traffic, transport) {
        (TrafficConfig::Video(video), Transport::Sctp(_)) => {
            let least = Rate::from_bytes_per_sec(video.rate.bytes_per_sec() / LEAST);
            let least = keys.least_rate.as_ref().map_or(least, |r| r.0);
            Ok(Some(Follow { what, least, lag: keys.rate_lag.as_ref().map_or(LAG, |t| t.0) }))
        }
        _ => wrong("follow-rate", "is for traffic of kind video over sctp: remove it"),
    }
}

/// Time in which an encoder makes 95 % of a step where the flow does not say it.
const LAG: Duration = Duration::from_secs(1);

/// Part of its rate that an encoder makes at least where the flow does not say it.
const LEAST: u64 = 20;

/// What a flow says of how its messages are sent; video has other defaults.
struct Said {
    streams: bool,
    unordered: bool,
    lifetime: bool,
    class: bool,
    /// The key that has values by class.
    by_class: Option<&'static str>,
}

impl Said {
    fn of(own: &Table) -> Self {
        let has = |key| own.contains(key);
        let listed = |key: &&str| own.get(key).is_some_and(|node| node.as_list().is_some());
        let by_class = ["lifetime", "max-retransmissions"].iter().find(|k| listed(k)).copied();
        Said {
            streams: has("streams") || has("class-streams"),
            unordered: has("unordered"),
            lifetime: has("lifetime"),
            class: has("class"),
            by_class,
        }
    }

    /// The frames of a video go as `anabranch send` sends them, but for what the flow says.
    fn of_video(&self, d: Delivery, playout: Option<&Playout>) -> Delivery {
        let own = Delivery::of_video(playout.map(|p| p.after));
        Delivery {
            streams: if self.streams { d.streams } else { own.streams },
            unordered: if self.unordered { d.unordered } else { own.unordered },
            lifetime: if self.lifetime { d.lifetime } else { own.lifetime },
            ..d
        }
    }
}

/// Who talks to whom: two lists of one length, or one end for all.
fn ends(part: Part<'_>, from: Option<&Names>, to: Option<&Names>) -> Result<Vec<(String, String)>, Problem> {
    let list = |names: Option<&Names>, fallback: &str| names.map_or(vec![fallback.to_owned()], |n| n.all().to_vec());
    let (from, to) = (list(from, "sender"), list(to, "receiver"));
    let n = from.len().max(to.len());
    if from.is_empty() || to.is_empty() || [&from, &to].iter().any(|l| l.len() != 1 && l.len() != n) {
        return Err(part.wrong("`from` and `to` need lists of one length, or one name for all"));
    }
    let at = |list: &[String], i: usize| list.get(i).or(list.first()).cloned().unwrap_or_default();
    Ok((0..n).map(|i| (at(&from, i), at(&to, i))).collect())
}

/// Does any flow over SCTP have this key? If not it is a mistake for one of `near`.
pub(super) fn known_over_sctp(part: Part<'_>, key: &str, near: &[&str]) -> Result<(), Problem> {
    let known = BASIC.iter().chain(&OF_SCTP).chain(&LIMITS).chain(&["encapsulation"]).any(|k| *k == key);
    if known || key.parse::<Hook>().is_ok() { Ok(()) } else { Err(part.unknown(key, near)) }
}

pub(super) fn refuse_strangers(part: Part<'_>, transport: &str, known: &[&str]) -> Result<(), Problem> {
    let Some(key) = part.table.keys().find(|k| !known.contains(k)) else { return Ok(()) };
    let elsewhere =
        OF_SCTP.iter().chain(&LIMITS).chain(&OF_TCP).chain(&OF_MPTCP).any(|k| *k == key) || key.parse::<Hook>().is_ok();
    if elsewhere {
        return Err(part.named(key, format!("`{key}` says nothing in a flow over {transport}: remove it")));
    }
    let all: Vec<&str> = BASIC.iter().chain(known).copied().collect();
    Err(part.unknown(key, &all))
}
