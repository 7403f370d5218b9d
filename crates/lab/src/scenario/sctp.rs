//! `transport = "sctp"`: policies and limits of an association.

use super::flow::{Transport, refuse_strangers};
use super::units::{BitRate, ByClass, Interval, Limit, Size, Time, Window};
use crate::document::{Node, Part, Problem, read as read_keys};
use crate::node::{Delivery, Streams};
use anabranch_base::Rate;
use anabranch_engine::AssocConfig;
use anabranch_engine::config::OwnParameter;
use anabranch_media::MediaHint;
use anabranch_policy::registry::{Hook, Profile, Value as ParamValue};
use serde::Deserialize;
use std::collections::BTreeMap;

/// How the engine carries a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Sctp {
    /// Policies of the association.
    pub profile: Profile,
    /// Those of the receiver, with the limits that come with them; without, both ends have one profile.
    pub peer: Option<Profile>,
    /// What differs from the profile's limits.
    pub limits: Limits,
    /// How messages are sent.
    pub delivery: Delivery,
    /// How fast the receiver reads; at once without.
    pub read_rate: Option<Rate>,
    /// Paths used; all that there are without.
    pub paths: Option<usize>,
    /// Bytes in front of each SCTP packet.
    pub overhead: u32,
    /// How many other flows send on its association.
    pub shared_by: usize,
    /// The streams of those flows.
    pub shared_streams: u16,
}

impl Sctp {
    /// Does its handshake say which classes of a film go on which streams?
    pub(super) fn says_media_hint(&self) -> bool {
        self.limits.media_hint == Some(true)
    }

    /// Does its retransmission policy read the true loss rates of its paths (RTX-LOSSRATE's `oracle`)?
    pub fn reads_true_loss(&self) -> bool {
        let oracle = self.profile.value(Hook::Retransmission, "oracle");
        matches!(oracle, Some(ParamValue::Number(n)) if n != 0.0)
    }
}

/// Limits and constants of an association that a scenario gives.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    packet_size: Option<Size>,
    receive_buffer: Option<Size>,
    send_buffer: Option<Size>,
    max_burst: Option<u16>,
    sack_delay: Option<Time>,
    heartbeat_interval: Option<Interval>,
    path_max_retrans: Option<u16>,
    association_max_retrans: Option<u16>,
    initial_window: Option<Window>,
    initial_ssthresh: Option<Window>,
    receive_overhead: Option<Size>,
    ecn: Option<bool>,
    media_hint: Option<bool>,
    #[serde(default)]
    settings: BTreeMap<String, u64>,
}

pub(super) const OF_SCTP: [&str; 10] = [
    "profile",
    "peer",
    "class",
    "streams",
    "class-streams",
    "unordered",
    "lifetime",
    "max-retransmissions",
    "read-rate",
    "paths",
];
pub(super) const LIMITS: [&str; 14] = [
    "packet-size",
    "receive-buffer",
    "send-buffer",
    "max-burst",
    "sack-delay",
    "heartbeat-interval",
    "path-max-retrans",
    "association-max-retrans",
    "initial-window",
    "initial-ssthresh",
    "receive-overhead",
    "ecn",
    "media-hint",
    "settings",
];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SctpKeys {
    profile: Option<String>,
    peer: Option<String>,
    class: Option<u8>,
    streams: Option<u16>,
    unordered: Option<bool>,
    class_streams: Option<u16>,
    lifetime: Option<ByClass<Limit<Time>>>,
    max_retransmissions: Option<ByClass<Limit<u16>>>,
    read_rate: Option<BitRate>,
    paths: Option<usize>,
    encapsulation: Option<String>,
}

/// Reads what a flow over SCTP says of itself, and the payload of a message that fills a packet.
pub(super) fn sctp(part: Part<'_>) -> Result<(Transport, u32), Problem> {
    let mut keys = part.table.clone();
    let limits = keys.split(|key| LIMITS.contains(&key));
    let hooks = keys.split(|key| key.parse::<Hook>().is_ok());
    let known: Vec<&str> = OF_SCTP.iter().chain(&["encapsulation"]).copied().collect();
    let mut all = known.clone();
    all.extend(LIMITS);
    let dashed: Vec<String> = Hook::ALL.iter().map(|h| h.name().replace('_', "-")).collect();
    all.extend(dashed.iter().map(String::as_str));
    if keys.keys().any(|k| !known.contains(&k)) {
        refuse_strangers(Part::new(part.name, &keys), "sctp", &all)?;
    }
    let keys: SctpKeys = read_keys(Part::new(part.name, &keys))?;
    let limits: Limits = read_keys(Part::new(part.name, &limits))?;
    let mut profile =
        Profile::named(keys.profile.as_deref().unwrap_or("cmt")).map_err(|e| part.at("profile", e.to_string()))?;
    // In the order of the hooks, not of their names.
    let hooks: BTreeMap<Hook, (&str, &Node)> =
        hooks.iter().filter_map(|(key, node)| Some((key.parse::<Hook>().ok()?, (key, node)))).collect();
    let named: Vec<Hook> = hooks.keys().copied().collect();
    for (hook, (key, node)) in hooks {
        let spec = node.as_text().ok_or_else(|| part.at(key, "needs a policy, such as \"rtx_csi:tau=30\""))?;
        profile.set(hook, spec).map_err(|e| part.at(key, e.to_string()))?;
    }
    profile.yield_to(&named);
    let peer = keys.peer.as_deref().map(Profile::named).transpose().map_err(|e| part.at("peer", e.to_string()))?;
    let overhead = match keys.encapsulation.as_deref() {
        None | Some("none") => 20,
        Some("udp") => 28,
        Some(other) => return Err(part.at("encapsulation", format!("is none or udp, not `{other}`"))),
    };
    if keys.streams == Some(0) {
        return Err(part.at("streams", "needs one stream or more"));
    }
    let streams = match (keys.streams, keys.class_streams) {
        (Some(_), Some(_)) => {
            return Err(part.at("class-streams", "is for streams by class, `streams` for those in turn"));
        }
        (_, Some(n @ 1..=3)) => Streams::ByClass(n),
        (_, Some(_)) => return Err(part.at("class-streams", "is 1, 2 or 3")),
        (n, None) => Streams::InTurn(n.unwrap_or(1)),
    };
    let delivery = Delivery {
        streams,
        unordered: keys.unordered.unwrap_or(false),
        lifetime: keys.lifetime.map_or([None; 3], |l| l.each().map(|t| t.0.map(|t| t.0))),
        max_retransmissions: keys.max_retransmissions.map_or([None; 3], |m| m.each().map(|m| m.0)),
        class: keys.class.unwrap_or(Delivery::default().class),
        first_stream: 0,
    };
    let read_rate = keys.read_rate.map(|r| r.0);
    let sctp = Sctp {
        profile,
        peer,
        limits,
        delivery,
        read_rate,
        paths: keys.paths,
        overhead,
        shared_by: 0,
        shared_streams: 0,
    };
    let wrong = |e: LimitError| part.about(e.key, e.to_string());
    let full = sctp.config(0).map_err(wrong)?.1;
    Ok((Transport::Sctp(Box::new(sctp)), full))
}

/// A limit that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{key}` {says}")]
pub(crate) struct LimitError {
    /// The key of the limit.
    pub key: &'static str,
    says: String,
}

impl Sctp {
    /// The association's configuration and the payload of a message that fills a packet.
    ///
    /// # Errors
    /// A limit that cannot be.
    pub(crate) fn config(&self, seed: u64) -> Result<(AssocConfig, u32), LimitError> {
        let mut a = self.config_of(&self.profile, seed)?;
        let peer = self.peer_config(seed)?;
        let full = a.full_payload(peer.as_ref().unwrap_or(&a));
        // What is acknowledged counts, and so do windows: payload without headers.
        let bytes = |window: Option<Window>| window.map(|w| w.bytes(full as u64));
        a.sending.initial_window = bytes(self.limits.initial_window).or(a.sending.initial_window);
        a.sending.initial_ssthresh = bytes(self.limits.initial_ssthresh).unwrap_or(a.sending.initial_ssthresh);
        Ok((a, full as u32))
    }

    /// The configuration of the receiver, where it is another one. Of what the flow says, buffers and the size of packets are
    /// those of both ends; delays and counts are the sender's.
    ///
    /// # Errors
    /// A limit that cannot be.
    pub(crate) fn peer_config(&self, seed: u64) -> Result<Option<AssocConfig>, LimitError> {
        let Some(peer) = &self.peer else { return Ok(None) };
        let Limits { packet_size, receive_buffer, send_buffer, receive_overhead, ecn, media_hint, .. } =
            self.limits.clone();
        let limits =
            Limits { packet_size, receive_buffer, send_buffer, receive_overhead, ecn, media_hint, ..Limits::default() };
        Sctp { limits, ..self.clone() }.config_of(peer, seed).map(Some)
    }

    fn config_of(&self, profile: &Profile, seed: u64) -> Result<AssocConfig, LimitError> {
        let wrong = |key, says: String| Err(LimitError { key, says });
        let mut a = AssocConfig::new(profile.clone());
        let l = &self.limits;
        a.seed = seed;
        // Addresses that INIT lists need not be learnt.
        a.extensions.dynamic_addresses = false;
        // A frame or a transfer may be larger than the receiver's buffer; who reads it takes what there is.
        a.messages.partial_delivery = true;
        a.limits.outbound_streams = a.limits.outbound_streams.max(self.delivery.stream_count() + self.shared_streams);
        let mtu = l.packet_size.map_or(1_500, |s| s.0);
        let smallest = (AssocConfig::MIN_PACKET_SIZE as u64) + u64::from(self.overhead);
        if !(smallest..=65_535).contains(&mtu) {
            return wrong("packet-size", format!("is {mtu}, and must lie between {smallest} and 65535 bytes"));
        }
        a.mtu.packet_size = (mtu - u64::from(self.overhead)) as usize;
        if let Some(Size(bytes)) = l.receive_buffer {
            if !(1_500..=1 << 32).contains(&bytes) {
                return wrong("receive-buffer", format!("is {bytes}, and must lie between 1500 bytes and 4GB"));
            }
            a.limits.receive_buffer = bytes as usize;
        }
        // As much again as may be outstanding, so that there is always more to send.
        a.limits.send_buffer = l.send_buffer.map_or((4 * a.limits.receive_buffer).max(256 << 10), |s| s.0 as usize);
        if a.limits.send_buffer < a.mtu.packet_size {
            let (buffer, packet) = (a.limits.send_buffer, a.mtu.packet_size);
            return wrong("send-buffer", format!("is {buffer}, and must hold a packet of {packet} bytes"));
        }
        let set = |slot: &mut u16, value: Option<u16>| *slot = value.unwrap_or(*slot);
        set(&mut a.sending.max_burst, l.max_burst);
        set(&mut a.failure.max_path_retrans, l.path_max_retrans);
        set(&mut a.failure.max_association_retrans, l.association_max_retrans);
        if l.association_max_retrans.is_some() {
            // Who names a count wants it to end the association.
            a.failure.peer_timeout = None;
        }
        a.timers.sack_delay = l.sack_delay.map_or(a.timers.sack_delay, |t| t.0);
        a.timers.heartbeat_interval = l.heartbeat_interval.map_or(a.timers.heartbeat_interval, |t| t.0);
        a.limits.receive_overhead = l.receive_overhead.map_or(a.limits.receive_overhead, |s| s.0 as usize);
        a.extensions.ecn = l.ecn.unwrap_or(a.extensions.ecn);
        if let (Some(true), Streams::ByClass(streams)) = (l.media_hint, self.delivery.streams) {
            let hint = MediaHint::mpeg_on(streams).encode().to_vec();
            a.extensions.own_parameters = vec![OwnParameter::said(MediaHint::PARAMETER, hint)];
        }
        if let Some((name, _)) = l.settings.iter().find(|(name, value)| !a.set(name, **value)) {
            return wrong("settings", format!("has no `{name}`; there are {}", AssocConfig::SETTINGS.join(", ")));
        }
        Ok(a)
    }
}
