//! What `setsockopt` sets on a socket, and how it becomes the engine's configuration.

mod counters;
mod extensions;
mod failure;
mod get;
mod numbers;
mod scheduling;
mod set;

pub(super) use extensions::Extensions;
use failure::Failure;
pub(super) use numbers::SHORTEST_PROBE_INTERVAL;

use super::Settings;
use crate::abi::message::{InitMsg, SndInfo};
use crate::abi::notification::kind;
use anabranch_base::Duration;
use anabranch_engine::{AssocConfig, HeartbeatSetting, PathMtuDiscovery};
use anabranch_policy::registry::{Hook, Profile};
use std::collections::BTreeMap;
use zerocopy::FromZeros;

/// Options of level SOL_SOCKET that are given back and do nothing.
pub(super) const REMEMBERED: [i32; 8] = [
    libc::SO_KEEPALIVE,
    libc::SO_BROADCAST,
    libc::SO_OOBINLINE,
    libc::SO_PRIORITY,
    libc::SO_DONTROUTE,
    libc::SO_TIMESTAMP,
    libc::SO_DEBUG,
    libc::SO_MARK,
];

/// Types of notifications that can be subscribed to.
pub(super) const EVENT_KINDS: usize = 14;

/// Options of one socket. Associations take them over when they begin.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub rto_initial: Duration,
    pub rto_min: Duration,
    pub rto_max: Duration,
    pub association_retrans: u16,
    pub path_retrans: u16,
    pub heartbeat: HeartbeatSetting,
    pub cookie_life: Duration,
    pub init: InitMsg,
    pub no_delay: bool,
    pub fragments: bool,
    pub max_segment: u32,
    pub sack_delay: Duration,
    pub sack_frequency: u32,
    pub max_burst: u16,
    pub events: [bool; EVENT_KINDS],
    pub receive_info: bool,
    pub next_info: bool,
    /// SCTP_FRAGMENT_INTERLEAVE, which Linux has as a switch.
    pub interleave: bool,
    pub interleaving: bool,
    pub partial_delivery_point: u32,
    pub zero_checksum: u32,
    pub adaptation: Option<u32>,
    pub failure: Failure,
    /// SCTP_STREAM_SCHEDULER; the profile's without.
    pub scheduler: Option<u32>,
    pub ecn: bool,
    /// Remembered only: addresses are looked up once.
    pub auto_asconf: bool,
    /// SCTP_PLPMTUD_PROBE_INTERVAL, ms; 0 does not probe.
    pub probe_interval: u32,
    pub context: u32,
    pub default_send: SndInfo,
    /// SCTP_DEFAULT_PRINFO: policy and value.
    pub default_reliability: (u16, u32),
    pub default_ttl: u32,
    pub auto_close: u32,
    pub mapped: bool,
    pub reuse: bool,
    /// SO_LINGER, seconds.
    pub linger: Option<u32>,
    pub send_buffer: usize,
    pub receive_buffer: usize,
    /// SO_RCVTIMEO and SO_SNDTIMEO.
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
    pub partial_reliability: bool,
    pub extensions: Extensions,
    /// Numbers of [`REMEMBERED`] options.
    pub remembered: BTreeMap<i32, i32>,
}

impl Options {
    pub fn new(s: &Settings) -> Self {
        Options {
            rto_initial: s.rto_initial,
            rto_min: s.rto_min,
            rto_max: s.rto_max,
            association_retrans: s.association_retrans,
            path_retrans: s.path_retrans,
            heartbeat: HeartbeatSetting::Every(s.heartbeat_interval),
            cookie_life: s.cookie_life,
            init: InitMsg {
                outbound: s.outbound_streams.into(),
                inbound: s.inbound_streams.into(),
                attempts: s.init_retrans.into(),
                timeout: 0.into(),
            },
            no_delay: false,
            fragments: true,
            max_segment: 0,
            sack_delay: s.sack_delay,
            sack_frequency: s.sack_frequency,
            max_burst: s.max_burst,
            events: [false; EVENT_KINDS],
            receive_info: false,
            next_info: false,
            interleave: false,
            interleaving: false,
            partial_delivery_point: 0,
            zero_checksum: 0,
            adaptation: None,
            failure: Failure::new(s),
            scheduler: None,
            ecn: s.ecn,
            auto_asconf: s.auto_asconf,
            probe_interval: s.probe_interval,
            context: 0,
            default_send: SndInfo::new_zeroed(),
            default_reliability: (0, 0),
            default_ttl: 0,
            auto_close: 0,
            mapped: true,
            reuse: false,
            linger: None,
            send_buffer: s.send_buffer,
            receive_buffer: s.receive_buffer,
            receive_timeout: None,
            send_timeout: None,
            partial_reliability: s.partial_reliability,
            remembered: BTreeMap::new(),
            extensions: Extensions {
                authentication: s.authentication,
                dynamic_addresses: s.dynamic_addresses,
                stream_reset: s.stream_reset,
                ..Extensions::default()
            },
        }
    }

    /// Does the program want notifications of `kind`?
    pub fn tells(&self, kind: u16) -> bool {
        self.events.get(usize::from(kind & 0xff)).copied().unwrap_or(false)
    }

    /// The engine's configuration for an association of this socket.
    pub fn association(&self, s: &Settings, v6: bool) -> AssocConfig {
        // A name that is not there was refused when it was set.
        let profile = Profile::named(&s.profile).or_else(|_| Profile::named("sctp"));
        let Ok(mut profile) = profile else { unreachable!("the profile of RFC 9260 is always there") };
        set_timer(&mut profile, self.rto_initial, self.rto_min, self.rto_max);
        let (delay, frequency) = (self.sack_delay.as_millis(), self.sack_frequency);
        if frequency == 1 {
            let _ = profile.set(Hook::Acknowledge, "immediate");
        }
        if s.as_kernels && profile.get(Hook::Window) == "rfc9260" {
            let _ = profile.add(Hook::Window, "headers", s.mtu - payload(s, v6));
        }
        if s.as_kernels && profile.get(Hook::AckCredit) == "sack_bytes" {
            let _ = profile.set(Hook::AckCredit, "cumulative");
        }
        if let Some(spec) = self.scheduler.and_then(scheduling::policy) {
            let _ = profile.set(Hook::StreamScheduler, spec);
        }
        let switchover = self.failure.put(s, &mut profile, self.path_retrans);
        let mut c = AssocConfig::new(profile);
        // The standard's, and what options set.
        c.failure.peer_timeout = None;
        c.failure.primary_switchover = switchover;
        c.extensions.adaptation = self.adaptation;
        c.extensions.ecn = self.ecn;
        c.limits.outbound_streams = self.init.outbound.get().max(1);
        c.limits.inbound_streams = self.init.inbound.get().max(1);
        c.failure.max_init_retrans = self.init.attempts.get();
        c.timers.rto_initial = self.rto_initial;
        c.timers.rto_max = self.rto_max;
        c.timers.max_init_timeout = match self.init.timeout.get() {
            0 => None,
            ms => Some(Duration::from_millis(ms.into())),
        };
        c.failure.max_association_retrans = self.association_retrans;
        c.failure.max_path_retrans = self.path_retrans;
        if let HeartbeatSetting::Every(d) = self.heartbeat {
            c.timers.heartbeat_interval = d;
        }
        c.timers.sack_delay = Duration::from_millis(delay);
        c.sending.max_burst = self.max_burst;
        c.messages.fragmentation = self.fragments;
        c.messages.partial_delivery = true;
        c.mtu.packet_size = self.packet_size(s, v6);
        self.search_mtu(&mut c);
        c.limits.send_buffer = self.send_buffer;
        c.limits.receive_buffer = self.receive_buffer.max(1_500);
        c.extensions.partial_reliability = self.partial_reliability;
        let e = &self.extensions;
        c.extensions.dynamic_addresses = e.dynamic_addresses && e.authentication;
        c.extensions.stream_reconfiguration = e.stream_reset;
        if !e.keys.is_empty() || !e.chunks.is_empty() {
            (c.auth.chunks, c.auth.keys, c.auth.active_key) = (e.chunks.clone(), e.keys.clone(), e.active_key);
        }
        c.messages.return_given_up = self.tells(kind::SEND_FAILED) || self.tells(kind::SEND_FAILED_EVENT);
        c.extensions.nr_sack = s.nr_sack;
        c.extensions.nr_sack_covers_undelivered = !s.may_renege;
        c.extensions.interleaving = self.interleaving;
        c.extensions.error_detection = Some(self.zero_checksum).filter(|method| *method != 0);
        c.failure.abort_when_given_up = s.as_kernels;
        c.compatibility.probe_at_once = s.as_kernels;
        c.compatibility.resend_probes = !s.as_kernels;
        c.compatibility.retransmissions_ask = !s.as_kernels;
        c.compatibility.give_up_late_holes = s.as_kernels;
        c.compatibility.gap_blocks_alone = s.as_kernels;
        c.sending.nagle = s.nagle(!self.no_delay);
        c.compatibility.advertise_unrequested_extensions = s.as_kernels;
        c.addresses.types = if v6 { vec![IPV6, IPV4] } else { vec![IPV4] };
        if s.initial_window > 0 {
            c.sending.initial_window = Some(u64::from(s.initial_window) * c.mtu.packet_size as u64);
        }
        c
    }

    /// Packets begin small and grow to what the paths carry (RFC 8899), where the program or a setting asks for it.
    fn search_mtu(&self, c: &mut AssocConfig) {
        if self.probe_interval == 0 {
            return;
        }
        let raise_after = Duration::from_millis(self.probe_interval.into()) * RAISE;
        c.mtu.discovery = Some(PathMtuDiscovery { raise_after, ..PathMtuDiscovery::up_to(c.mtu.packet_size) });
        c.mtu.packet_size = c.mtu.packet_size.min(BASE_PACKET);
    }

    /// Largest SCTP packet: what IP leaves of the MTU, or what SCTP_MAXSEG asks for.
    fn packet_size(&self, s: &Settings, v6: bool) -> usize {
        let whole = s.mtu - headers(s, v6);
        match self.max_segment as usize {
            0 => whole,
            n => whole.min(n.next_multiple_of(4) + DATA_AND_COMMON_HEADER),
        }
    }
}

/// Headers of IP and UDP.
fn headers(s: &Settings, v6: bool) -> usize {
    let ip = if v6 { 40 } else { 20 };
    ip + if s.udp_port.is_some() { 8 } else { 0 }
}

/// Payload of the largest packet.
fn payload(s: &Settings, v6: bool) -> usize {
    s.mtu - headers(s, v6) - DATA_AND_COMMON_HEADER
}

/// Where the search for larger packets begins, bytes (RFC 8899 §5.1.2).
const BASE_PACKET: usize = 1_200;
/// Probe intervals after which a larger size is tried again, as in Linux.
const RAISE: u64 = 30;

/// Types of address parameters (RFC 9260 §3.3.2.1.1).
const IPV4: u16 = 5;
const IPV6: u16 = 6;

/// Common header and header of a DATA chunk.
const DATA_AND_COMMON_HEADER: usize = 28;

/// Puts limits of the RTO into the timer policy of a profile; those it refuses stay as they were.
pub(super) fn set_timer(profile: &mut Profile, initial: Duration, min: Duration, max: Duration) {
    for (key, value) in [("rto_max", max), ("rto_min", min), ("rto_initial", initial)] {
        let _ = profile.add(Hook::Timer, key, value.as_millis());
    }
}
