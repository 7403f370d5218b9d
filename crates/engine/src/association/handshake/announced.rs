//! What INIT and INIT ACK tell besides their fixed fields: read from the peer's, written into ours.

use super::own_parameters;
use crate::auth::{AuthParams, RANDOM_LEN};
use crate::config::{AssocConfig, OwnParameter};
use crate::cookie::{Cookie, MAX_LISTED, PeerAuth};
use crate::parity_kind::ParityKind;
use anabranch_base::Duration;
use anabranch_policy::Asks;
use anabranch_wire::{Encode, Parameter, Params, UnknownAction, kind, list_u16, parameter_kind};
use smallvec::SmallVec;
use std::net::IpAddr;

/// What the parameters of an INIT or INIT ACK tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announced<'a> {
    pub cookie: Option<&'a [u8]>,
    pub forward_tsn: bool,
    /// By its own parameter, too.
    pub forward_tsn_named: bool,
    pub asconf: bool,
    /// It reads how many packets a SACK answers.
    pub packet_count: bool,
    pub time_stamps: bool,
    pub parity: bool,
    /// The kind of parity that it reads.
    pub parity_read: Option<ParityKind>,
    pub reconfig: bool,
    /// I-DATA, and I-FORWARD-TSN where it is PR-SCTP's too.
    pub interleaving: bool,
    pub i_forward_tsn: bool,
    pub nr_sack: bool,
    pub ecn: bool,
    pub packet_drop: bool,
    /// With what it takes packets without a checksum; the first that it named.
    pub error_detection: Option<u32>,
    /// Adaptation code point.
    pub adaptation: Option<u32>,
    pub auth: Option<PeerAuth>,
    /// By parameters of our user's own; who reads the chunk fills it in.
    pub own: Vec<OwnParameter>,
    /// A Host Name Address as it stood there.
    pub host_name: Option<&'a [u8]>,
    /// Addresses that can be sent to, each once, at most [`MAX_LISTED`].
    pub addresses: Vec<IpAddr>,
    /// Address types of "Supported Address Types", when there was one.
    pub families: Option<Vec<u16>>,
    /// By how much longer the peer wants its cookie to live.
    pub preservative: Option<Duration>,
    /// A parameter that we know does not have its format, or the list has no shape.
    pub broken: bool,
    /// Unknown parameters to be reported, complete (§3.2.2).
    pub report: Vec<u8>,
}

/// Most bytes of unknown parameters that are reported back: the answer stays small whatever was sent.
const MAX_REPORT: usize = 512;

/// The parameter as it is always written (RFC 3758 §3.1).
const FORWARD_TSN_SUPPORTED: [u8; 4] = [0xc0, 0, 0, 4];

/// In a cookie stands only that the method was the one we know.
pub(crate) const ANNOUNCED_AS_OURS: u32 = u32::MAX;

impl<'a> Announced<'a> {
    /// May packets to the peer leave without a checksum (RFC 9653 §5.2)?
    pub fn takes_zero_checksum(&self, config: &AssocConfig) -> bool {
        let ours = |method: u32| method == ANNOUNCED_AS_OURS || Some(method) == config.extensions.error_detection;
        config.extensions.error_detection.is_some() && self.error_detection.is_some_and(ours)
    }

    /// Reads parameters; stops where a broken one or one of the "stop" kind stands.
    pub fn read(params: Params<'a>) -> Announced<'a> {
        let mut a = Announced::default();
        let (mut random, mut chunks, mut hmacs) = (None, None, None);
        for p in params.iter() {
            let Ok(p) = p else {
                a.broken = true;
                continue;
            };
            match p {
                Parameter::Cookie(c) => a.cookie = Some(c),
                Parameter::Ipv4(v4) => a.address(v4.into()),
                Parameter::Ipv6(v6) => a.address(v6.into()),
                Parameter::SupportedAddressTypes(types) => a.families = Some(list_u16(types).take(16).collect()),
                Parameter::CookiePreservative(ms) => a.preservative = Some(Duration::from_millis(ms.into())),
                Parameter::ForwardTsnSupported => (a.forward_tsn, a.forward_tsn_named) = (true, true),
                Parameter::PacketCount => a.packet_count = true,
                Parameter::TimeStamps => a.time_stamps = true,
                Parameter::Parity(said) => (a.parity, a.parity_read) = (true, ParityKind::announced(said)),
                Parameter::AdaptationIndication(code) => a.adaptation = Some(code),
                Parameter::EcnCapable => a.ecn = true,
                Parameter::SupportedExtensions(list) => {
                    a.forward_tsn |= list.contains(&kind::FORWARD_TSN);
                    a.asconf |= list.contains(&kind::ASCONF) && list.contains(&kind::ASCONF_ACK);
                    a.reconfig |= list.contains(&kind::RE_CONFIG);
                    a.interleaving |= list.contains(&kind::I_DATA);
                    a.i_forward_tsn |= list.contains(&kind::I_FORWARD_TSN);
                    a.nr_sack |= list.contains(&kind::NR_SACK);
                    a.packet_drop |= list.contains(&kind::PACKET_DROP);
                }
                Parameter::ZeroChecksum(method) if method != ANNOUNCED_AS_OURS => {
                    a.error_detection = a.error_detection.or(Some(method));
                }
                Parameter::Random(r) => {
                    // Another length ends the association (RFC 4895 §6.1).
                    a.broken |= r.len() != RANDOM_LEN;
                    random = Some(r);
                }
                Parameter::ChunkList(c) => chunks = Some(c),
                Parameter::HmacAlgo(h) => hmacs = Some(h),
                Parameter::HostName => a.host_name = host_name(params),
                Parameter::Unknown(raw) => {
                    let action = raw.unknown_action();
                    a.report(action, raw.whole);
                    if action.stops() {
                        break;
                    }
                }
                _ => {}
            }
        }
        a.auth = random.zip(hmacs).and_then(|(r, h)| PeerAuth::new(r, chunks, h));
        a
    }

    /// What a cookie kept of an INIT's parameters.
    pub fn of_cookie(cookie: &Cookie) -> Announced<'static> {
        Announced {
            forward_tsn: cookie.features.forward_tsn,
            asconf: cookie.features.asconf,
            packet_count: cookie.features.packet_count,
            time_stamps: cookie.features.time_stamps,
            parity: cookie.features.parity,
            parity_read: match (cookie.features.parity_sums, cookie.features.parity_checks) {
                (_, true) => Some(ParityKind::CheckBits),
                (true, false) => Some(ParityKind::Sums),
                (false, false) => None,
            },
            reconfig: cookie.features.reconfig,
            interleaving: cookie.features.interleaving,
            i_forward_tsn: cookie.features.i_forward_tsn,
            nr_sack: cookie.features.nr_sack,
            ecn: cookie.features.ecn,
            packet_drop: cookie.features.packet_drop,
            error_detection: cookie.features.zero_checksum.then_some(ANNOUNCED_AS_OURS),
            adaptation: cookie.adaptation,
            own: cookie.own.clone(),
            auth: cookie.peer_auth.clone(),
            addresses: cookie.listed.clone(),
            ..Announced::default()
        }
    }

    /// Takes an address, unless packets to it could reach no host or many (§8.4).
    fn address(&mut self, ip: IpAddr) {
        let broadcast = ip == IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
        let unusable = ip.is_unspecified() || ip.is_multicast() || broadcast;
        if !unusable && self.addresses.len() < MAX_LISTED && !self.addresses.contains(&ip) {
            self.addresses.push(ip);
        }
    }

    /// Unknown parameters of a chunk that is no INIT and no ASCONF, to be reported (§3.2.1). `own`: a type that only
    /// this chunk knows.
    pub fn unknown_beside(own: u16, params: Params<'_>) -> Vec<u8> {
        let mut a = Announced::default();
        for p in params.iter().flatten() {
            if let Parameter::Unknown(raw) = p
                && raw.kind != own
            {
                a.report(raw.unknown_action(), raw.whole);
                if raw.unknown_action().stops() {
                    break;
                }
            }
        }
        a.report
    }

    /// Its own parameter of PR-SCTP is one that we do not know (RFC 3758 §3.3.1). Only an INIT ACK is answered so: ours is to
    /// be small, and does not name PR-SCTP.
    pub fn report_forward_tsn(&mut self) {
        if self.forward_tsn_named {
            self.report(UnknownAction::SkipReport, &FORWARD_TSN_SUPPORTED);
        }
    }

    fn report(&mut self, action: UnknownAction, whole: &[u8]) {
        if action.reports() && self.report.len() + whole.len() <= MAX_REPORT {
            // Padded between, not at the end: that is no part of the last one (§3.2.1).
            self.report.resize(self.report.len().next_multiple_of(4), 0);
            self.report.extend_from_slice(whole);
        }
    }

    /// May this address of ours be announced to the peer? A family that it uses itself counts as supported (§5.1.2).
    pub fn supports(&self, ours: IpAddr, source: IpAddr) -> bool {
        let Some(types) = &self.families else { return true };
        let of = |a: &IpAddr| if a.is_ipv4() { parameter_kind::IPV4 } else { parameter_kind::IPV6 };
        let family = of(&ours);
        types.contains(&family) || of(&source) == family || self.addresses.iter().any(|a| of(a) == family)
    }
}

/// Parameters of our INIT, and of the INIT ACK to a peer that announced something from an address: an answer names
/// only what both can do, for it goes to whoever stands as the source and shall be small (RFC 5062 §9.3).
pub(crate) fn announce(
    config: &AssocConfig,
    auth: &AuthParams,
    peer: Option<(&Announced<'_>, IpAddr)>,
    out: &mut Vec<u8>,
) {
    let both = |can: fn(&Announced<'_>) -> bool| {
        config.compatibility.advertise_unrequested_extensions || peer.is_none_or(|(p, _)| can(p))
    };
    let useful = |ours: IpAddr| peer.is_none_or(|(p, source)| p.supports(ours, source));
    for a in config.addresses.listed.iter().filter(|a| useful(a.ip)).take(MAX_LISTED) {
        Parameter::from(a.ip).encode(out);
    }
    // Not only to a peer that announced it too: it may send without a checksum and want to receive with one.
    if let Some(method) = config.extensions.error_detection {
        Parameter::ZeroChecksum(method).encode(out);
    }
    if let Some(code) = config.extensions.adaptation {
        Parameter::AdaptationIndication(code).encode(out);
    }
    own_parameters::write(peer.map_or(&config.extensions.own_parameters, |(p, _)| &p.own), out);
    if config.extensions.ecn && both(|p| p.ecn) {
        Parameter::EcnCapable.encode(out);
    }
    let mut extensions = SmallVec::<[u8; 8]>::new();
    if config.extensions.partial_reliability && both(|p| p.forward_tsn) {
        Parameter::ForwardTsnSupported.encode(out);
        extensions.push(kind::FORWARD_TSN);
    }
    if config.extensions.interleaving && both(|p| p.interleaving) {
        if config.extensions.partial_reliability && both(|p| p.i_forward_tsn) {
            extensions.push(kind::I_FORWARD_TSN);
        }
        extensions.push(kind::I_DATA);
    }
    let asks = config.profile.asks();
    if asks.any(Asks::PACKET_COUNTS) && both(|p| p.packet_count) {
        Parameter::PacketCount.encode(out);
    }
    if asks.any(Asks::TIME_STAMPS) && both(|p| p.time_stamps) {
        Parameter::TimeStamps.encode(out);
    }
    if config.takes_parity() && both(|p| p.parity) {
        Parameter::Parity(Some(ParityKind::code(ParityKind::read(asks)))).encode(out);
    }
    if config.authenticates() && both(|p| p.auth.is_some()) {
        extensions.push(kind::AUTH);
        if config.extensions.dynamic_addresses {
            extensions.extend([kind::ASCONF, kind::ASCONF_ACK]);
        }
        auth.encode(&config.chunks_to_authenticate(), out);
    }
    if config.extensions.stream_reconfiguration && both(|p| p.reconfig) {
        extensions.push(kind::RE_CONFIG);
    }
    if config.extensions.nr_sack && both(|p| p.nr_sack) {
        extensions.push(kind::NR_SACK);
    }
    if config.extensions.packet_drop_reports && both(|p| p.packet_drop) {
        extensions.push(kind::PACKET_DROP);
    }
    if !extensions.is_empty() {
        Parameter::SupportedExtensions(&extensions).encode(out);
    }
    if peer.is_none() && !config.addresses.types.is_empty() {
        let list: Vec<u8> = config.addresses.types.iter().flat_map(|t| t.to_be_bytes()).collect();
        Parameter::SupportedAddressTypes(&list).encode(out);
    }
}

/// The first Host Name Address, whole, for the cause that returns it (§3.3.10.5).
fn host_name(params: Params<'_>) -> Option<&[u8]> {
    params.iter_raw().flatten().find(|p| p.kind == parameter_kind::HOST_NAME).map(|p| p.whole)
}
