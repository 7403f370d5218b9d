//! State cookies: all that an INIT and our answer to it said, kept by the peer and authenticated by us, so that an
//! INIT costs us no memory (RFC 9260 §5.1.3 to §5.1.5).
//!
//! Layout, integers in network order: version, number of the secret, fields in the order of [`Cookie::encode`], and
//! a MAC over all of it. A cookie is not encrypted: nothing in it is unknown to who saw the handshake.

pub use crate::auth::PeerAuth;
use crate::auth::RANDOM_LEN;
use crate::config::OwnParameter;
use crate::mac::OwnKey;
use crate::path::LocalId;
use anabranch_base::{Duration, Entropy, Instant, Tsn};
use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use thiserror::Error;

/// Format of the fields; another version's cookies are refused.
const VERSION: u8 = 2;
/// Most addresses that a peer can list; with its source address they fill an association's paths.
pub const MAX_LISTED: usize = 15;
/// Bytes of the MAC.
const MAC_LEN: usize = 32;
/// No cookie of ours is longer, bytes: a forged one costs the MAC of so much at most.
const MAX_LEN: usize = 848;
/// How long a secret seals cookies; for as long again it still opens them (RFC 9260 §5.1.3: hourly).
const ROTATION: Duration = Duration::from_secs(3_600);
/// In place of the length of CHUNKS: the parameter was not sent.
const ABSENT: u16 = u16::MAX;

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        /// Extensions that the peer announced, or both ends, as the owner says.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Features {
            $($(#[$doc])* pub $name: bool,)*
        }

        impl Features {
            /// One bit each.
            pub const fn to_bits(self) -> u16 {
                0 $(| (self.$name as u16) << $bit)*
            }
            /// None when a bit has no meaning.
            pub const fn from_bits(bits: u16) -> Option<Self> {
                let f = Features { $($name: bits >> $bit & 1 == 1,)* };
                if f.to_bits() == bits { Some(f) } else { None }
            }
        }
    };
}

features! {
    /// Partial reliability (RFC 3758).
    forward_tsn = 0,
    /// Address changes (RFC 5061).
    asconf = 1,
    /// Chunk authentication (RFC 4895).
    auth = 2,
    /// Stream reconfiguration (RFC 6525).
    reconfig = 3,
    /// Interleaving of messages, I-DATA (RFC 8260).
    interleaving = 4,
    /// Packets without a checksum (RFC 9653).
    zero_checksum = 5,
    /// Explicit congestion notification.
    ecn = 6,
    /// Acknowledgements that cannot be taken back.
    nr_sack = 7,
    /// Ours: a SACK says how many packets it answers (delayed acknowledgement of CMT).
    packet_count = 8,
    /// Ours: parity is taken, and what is restored from it reported.
    parity = 9,
    /// It reads sums of chunks.
    parity_sums = 10,
    /// Partial reliability with I-DATA (RFC 8260 §2.3).
    i_forward_tsn = 11,
    /// Our INIT ACK said that we take packets without a checksum (RFC 9653 §5.3).
    unsummed_to_us = 12,
    /// Reports of dropped packets.
    packet_drop = 13,
    /// Ours: time stamps beside SACKs.
    time_stamps = 14,
    /// Ours: it reads check bits of packets.
    parity_checks = 15,
}

/// What we need to know when the peer returns with COOKIE ECHO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// When the INIT ACK was made.
    pub created: Instant,
    /// How long it may be used (Valid.Cookie.Life, or more at the peer's wish).
    pub lifespan: Duration,
    /// Tag that the peer must use.
    pub local_tag: u32,
    /// Tag that we must use.
    pub peer_tag: u32,
    /// Local tag of the association there was when the INIT came; 0 without one (RFC 9260 §5.2.2).
    pub local_tie: u32,
    /// Its peer tag.
    pub peer_tie: u32,
    /// Our SCTP port.
    pub local_port: u16,
    /// The peer's SCTP port.
    pub peer_port: u16,
    /// Our first TSN.
    pub local_initial_tsn: Tsn,
    /// The peer's first TSN.
    pub peer_initial_tsn: Tsn,
    /// a_rwnd of the INIT, bytes.
    pub peer_rwnd: u32,
    /// Streams from us to the peer.
    pub outbound_streams: u16,
    /// Streams from the peer to us.
    pub inbound_streams: u16,
    /// Where the INIT came from.
    pub remote: SocketAddr,
    /// Where it came to.
    pub local: LocalId,
    /// The peer's further addresses, as its INIT listed them; at most [`MAX_LISTED`].
    pub listed: Vec<IpAddr>,
    /// What the peer can do.
    pub features: Features,
    /// RANDOM of our INIT ACK (RFC 4895 §3.1); zeros without AUTH.
    pub local_random: [u8; RANDOM_LEN],
    /// The peer's side of AUTH, none when it does not take part.
    pub peer_auth: Option<PeerAuth>,
    /// Adaptation code point of the INIT (RFC 5061 §4.2.6).
    pub adaptation: Option<u32>,
    /// What the INIT said by parameters of our user's own; at most [`OwnParameter::MOST`].
    pub own: Vec<OwnParameter>,
}

/// Why a cookie is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CookieError {
    /// Not a cookie of this version: drop the packet.
    #[error("not a state cookie")]
    Malformed,
    /// Not made by us, or so long ago that its secret is gone: drop the packet.
    #[error("the cookie's MAC is wrong")]
    BadMac,
    /// Ours, but too old: answer ERROR "Stale Cookie", unless it belongs to a living association (RFC 9260 §5.2.4).
    #[error("the cookie expired {by:?} ago")]
    Stale {
        /// Time since it expired.
        by: Duration,
        /// What it says.
        cookie: Box<Cookie>,
    },
}

fn put_address(out: &mut Vec<u8>, a: SocketAddr) {
    match a {
        SocketAddr::V4(v4) => {
            out.push(4);
            out.extend_from_slice(&v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            // Scope and flow label matter only for link-local addresses.
            let plain = v6.scope_id() == 0 && v6.flowinfo() == 0;
            out.push(if plain { 6 } else { 7 });
            out.extend_from_slice(&v6.ip().octets());
            if !plain {
                out.extend_from_slice(&v6.scope_id().to_be_bytes());
                out.extend_from_slice(&v6.flowinfo().to_be_bytes());
            }
        }
    }
    out.extend_from_slice(&a.port().to_be_bytes());
}

fn put_ip(out: &mut Vec<u8>, a: IpAddr) {
    match a {
        IpAddr::V4(v4) => {
            out.push(4);
            out.extend_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.push(6);
            out.extend_from_slice(&v6.octets());
        }
    }
}

/// Takes fields from the front; none when too little is left.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }
    fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[b]| b)
    }
    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let kind = self.u8()?;
        if kind == 4 {
            let ip = Ipv4Addr::from(self.bytes::<4>()?);
            return Some(SocketAddr::new(IpAddr::V4(ip), self.u16()?));
        }
        let ip = Ipv6Addr::from(self.bytes::<16>()?);
        let (scope, flow) = match kind {
            6 => (0, 0),
            7 => (self.u32()?, self.u32()?),
            _ => return None,
        };
        Some(SocketAddr::V6(SocketAddrV6::new(ip, self.u16()?, flow, scope)))
    }

    fn listed(&mut self) -> Option<Vec<IpAddr>> {
        let n = usize::from(self.u8()?);
        if n > MAX_LISTED {
            return None;
        }
        (0..n)
            .map(|_| match self.u8()? {
                4 => Some(IpAddr::V4(Ipv4Addr::from(self.bytes::<4>()?))),
                6 => Some(IpAddr::V6(Ipv6Addr::from(self.bytes::<16>()?))),
                _ => None,
            })
            .collect()
    }

    fn own(&mut self) -> Option<Vec<OwnParameter>> {
        let n = usize::from(self.u8()?);
        if n == 0 || n > OwnParameter::MOST {
            return None;
        }
        (0..n)
            .map(|_| {
                let (kind, len) = (self.u16()?, usize::from(self.u8()?));
                Some(OwnParameter::said(kind, self.slice(len)?.to_vec()))
            })
            .collect()
    }

    fn peer_auth(&mut self) -> Option<PeerAuth> {
        let random = self.bytes::<RANDOM_LEN>()?;
        let chunks = match self.u16()? {
            ABSENT => None,
            len => Some(self.slice(usize::from(len))?),
        };
        let len = usize::from(self.u8()?);
        PeerAuth::new(&random, chunks, self.slice(len)?)
    }
}

impl Cookie {
    fn encode(&self, out: &mut Vec<u8>) {
        let tags = [self.local_tag, self.peer_tag, self.local_tie, self.peer_tie];
        let counters = [self.local_initial_tsn.0, self.peer_initial_tsn.0, self.peer_rwnd];
        let ports = [self.local_port, self.peer_port];
        let small = [self.outbound_streams, self.inbound_streams, self.features.to_bits()];
        out.extend_from_slice(&self.created.as_nanos().to_be_bytes());
        out.extend_from_slice(&self.lifespan.as_nanos().to_be_bytes());
        out.extend(tags.into_iter().chain(counters).flat_map(u32::to_be_bytes));
        out.extend(ports.into_iter().chain(small).flat_map(u16::to_be_bytes));
        put_address(out, self.remote);
        out.extend_from_slice(&self.local.0.to_be_bytes());
        let listed = self.listed.get(..MAX_LISTED).unwrap_or(&self.listed);
        out.push(listed.len() as u8);
        listed.iter().for_each(|a| put_ip(out, *a));
        let random = self.local_random != [0; RANDOM_LEN];
        let adaptation = u8::from(self.adaptation.is_some()) << 2;
        let own = u8::from(!self.own.is_empty()) << 3;
        out.push(u8::from(random) | u8::from(self.peer_auth.is_some()) << 1 | adaptation | own);
        if random {
            out.extend_from_slice(&self.local_random);
        }
        if let Some(peer) = &self.peer_auth {
            // Both lengths are bounded by PeerAuth: 256 and 64.
            let chunks = peer.chunks();
            out.extend_from_slice(peer.random());
            out.extend_from_slice(&chunks.map_or(ABSENT, |c| c.len() as u16).to_be_bytes());
            out.extend_from_slice(chunks.unwrap_or_default());
            out.push(peer.hmacs().len() as u8);
            out.extend_from_slice(peer.hmacs());
        }
        out.extend(self.adaptation.into_iter().flat_map(u32::to_be_bytes));
        if !self.own.is_empty() {
            // Both numbers are bounded where they are read: MOST and MAX_LEN.
            out.push(self.own.len() as u8);
        }
        for OwnParameter { kind, value } in &self.own {
            let value = value.as_deref().unwrap_or_default();
            out.extend_from_slice(&kind.to_be_bytes());
            out.push(value.len() as u8);
            out.extend_from_slice(value);
        }
    }

    fn decode(bytes: &[u8]) -> Option<Cookie> {
        let mut r = Reader(bytes);
        let mut cookie = Cookie {
            created: Instant::from_nanos(r.u64()?),
            lifespan: Duration::from_nanos(r.u64()?),
            local_tag: r.u32()?,
            peer_tag: r.u32()?,
            local_tie: r.u32()?,
            peer_tie: r.u32()?,
            local_initial_tsn: Tsn(r.u32()?),
            peer_initial_tsn: Tsn(r.u32()?),
            peer_rwnd: r.u32()?,
            local_port: r.u16()?,
            peer_port: r.u16()?,
            outbound_streams: r.u16()?,
            inbound_streams: r.u16()?,
            features: Features::from_bits(r.u16()?)?,
            remote: r.address()?,
            local: LocalId(r.u16()?),
            listed: r.listed()?,
            local_random: [0; RANDOM_LEN],
            peer_auth: None,
            adaptation: None,
            own: Vec::new(),
        };
        let present = r.u8()?;
        if present & 1 != 0 {
            cookie.local_random = r.bytes()?;
        }
        if present & 2 != 0 {
            cookie.peer_auth = Some(r.peer_auth()?);
        }
        if present & 4 != 0 {
            cookie.adaptation = Some(r.u32()?);
        }
        if present & 8 != 0 {
            cookie.own = r.own()?;
        }
        (r.0.is_empty() && present <= 15).then_some(cookie)
    }
}

struct Secret {
    /// Says which secret sealed a cookie, so that a forged one costs one MAC and not two.
    number: u8,
    key: OwnKey,
}

impl Secret {
    fn new(number: u8, entropy: &mut dyn Entropy) -> Self {
        let mut key = [0; 32];
        entropy.fill(&mut key);
        Secret { number, key: OwnKey::new(key) }
    }
}

/// Seals and opens the cookies of an endpoint with secrets that never leave it.
pub struct CookieJar {
    current: Secret,
    previous: Option<Secret>,
    rotated: Instant,
}

impl fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the secrets.
        f.debug_struct("CookieJar").field("rotated", &self.rotated).finish_non_exhaustive()
    }
}

impl CookieJar {
    /// A jar with a first secret.
    pub fn new(entropy: &mut dyn Entropy, now: Instant) -> Self {
        CookieJar { current: Secret::new(0, entropy), previous: None, rotated: now }
    }

    /// Bytes for another purpose that reveal nothing of the secret and cannot be guessed without it.
    pub(crate) fn derived(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (half, label) in out.chunks_exact_mut(MAC_LEN).zip([b"index of peers 0", b"index of peers 1"]) {
            // No cookie is as short as a label.
            half.copy_from_slice(&self.current.key.sign(label));
        }
        out
    }

    /// Takes a new secret when the current one is an hour old. To be called before [`CookieJar::seal`] and
    /// [`CookieJar::open`]; needs no timer.
    pub fn rotate_if_due(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        if now.since(self.rotated) < ROTATION {
            return;
        }
        let next = Secret::new(self.current.number.wrapping_add(1), entropy);
        self.previous = Some(core::mem::replace(&mut self.current, next));
        self.rotated = now;
    }

    /// Appends the sealed cookie: about 100 bytes, 170 with AUTH, 5 or 17 more for each address the peer lists;
    /// never above 848.
    pub fn seal(&self, cookie: &Cookie, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[VERSION, self.current.number]);
        cookie.encode(out);
        let mac = self.current.key.sign(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&mac);
    }

    /// The cookie in `bytes`, if it is ours and fresh. Its ports and tags are still to be compared with the packet's
    /// (RFC 9260 §5.1.5).
    ///
    /// # Errors
    /// See [`CookieError`]; nothing is read from a cookie whose MAC is wrong.
    pub fn open(&self, now: Instant, bytes: &[u8]) -> Result<Cookie, CookieError> {
        if bytes.len() > MAX_LEN {
            return Err(CookieError::Malformed);
        }
        let (signed, mac) = bytes.split_last_chunk::<MAC_LEN>().ok_or(CookieError::Malformed)?;
        let [VERSION, number, fields @ ..] = signed else { return Err(CookieError::Malformed) };
        let secret = [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|s| s.number == *number)
            .ok_or(CookieError::BadMac)?;
        if !secret.key.verify(signed, mac) {
            return Err(CookieError::BadMac);
        }
        let cookie = Cookie::decode(fields).ok_or(CookieError::Malformed)?;
        let age = now.since(cookie.created);
        if age > cookie.lifespan {
            let by = age.saturating_sub(cookie.lifespan);
            return Err(CookieError::Stale { by, cookie: Box::new(cookie) });
        }
        Ok(cookie)
    }
}

#[cfg(test)]
#[path = "cookie_tests.rs"]
mod tests;
