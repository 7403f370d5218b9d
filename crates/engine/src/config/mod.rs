//! The configuration of an endpoint and of an association, in groups.
//!
//! An [`AssocConfig`] is made from a profile, and then its fields are changed:
//!
//! ```
//! use anabranch_engine::AssocConfig;
//! use anabranch_policy::registry::Profile;
//!
//! let mut config = AssocConfig::new(Profile::named("cmt")?);
//! config.limits.receive_buffer = 1 << 20;
//! config.failure.max_path_retrans = 3;
//! config.extensions.interleaving = true;
//! # Ok::<(), anabranch_policy::registry::PolicyError>(())
//! ```

mod addresses;
mod authentication;
mod compatibility;
mod constants;
mod endpoint;
mod extensions;
mod failure;
mod limits;
mod messages;
mod mtu;
mod own_parameters;
mod sending;
mod timers;

pub use addresses::{Addresses, ListedAddress};
pub use authentication::AuthConfig;
pub use compatibility::Compatibility;
pub use constants::Constants;
pub use endpoint::EndpointConfig;
pub use extensions::Extensions;
pub use failure::Failure;
pub use limits::Limits;
pub use messages::Messages;
pub use mtu::Mtu;
pub use own_parameters::OwnParameter;
pub use sending::Sending;
pub use timers::Timers;

use crate::auth::ChunkTypes;
use crate::path::discovery::PathMtuDiscovery;
use anabranch_base::Duration;
use anabranch_policy::Asks;
use anabranch_policy::registry::{Hook, PolicyError, Profile};
use anabranch_wire::kind;

/// Policies, limits and constants of an association. Defaults are RFC 9260 §16's unless a line, or [`Constants`], says
/// otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AssocConfig {
    /// Policies by name.
    pub profile: Profile,
    /// Seed of the policies' random streams.
    pub seed: u64,
    /// Streams, buffers and paths.
    pub limits: Limits,
    /// How long timers run.
    pub timers: Timers,
    /// When paths and peers are given up.
    pub failure: Failure,
    /// How large packets are.
    pub mtu: Mtu,
    /// First windows, bursts and Nagle's algorithm.
    pub sending: Sending,
    /// How messages are cut, delivered and given back.
    pub messages: Messages,
    /// Extensions to announce and to use.
    pub extensions: Extensions,
    /// What has to be authenticated and with which keys (RFC 4895).
    pub auth: AuthConfig,
    /// What we say of our addresses.
    pub addresses: Addresses,
    /// What other stacks and older standards do otherwise.
    pub compatibility: Compatibility,
}

impl AssocConfig {
    /// The defaults with the given profile and its [`Constants`].
    pub fn new(profile: Profile) -> Self {
        let constants = Constants::of(&profile);
        Self::with(profile, constants)
    }

    /// The defaults with the constants of another purpose, to compare profiles under equal ones.
    pub fn with(profile: Profile, constants: Constants) -> Self {
        let mut config = AssocConfig {
            profile,
            seed: 0,
            limits: Limits::default(),
            timers: Timers::default(),
            failure: Failure::default(),
            mtu: Mtu::default(),
            sending: Sending::default(),
            messages: Messages::default(),
            extensions: Extensions::default(),
            auth: AuthConfig::default(),
            addresses: Addresses::default(),
            compatibility: Compatibility::default(),
        };
        constants.apply(&mut config);
        if config.profile.finds_packet_size() {
            config.mtu.discovery = Some(PathMtuDiscovery::up_to(Mtu::LARGEST_SOUGHT));
        }
        for (name, value) in config.profile.settings() {
            config.set(name, value);
        }
        config
    }

    /// Refuses limits that contradict each other, with the reason.
    ///
    /// # Errors
    /// [`PolicyError::Refused`], or a policy that cannot be built.
    pub fn check(&self) -> Result<(), PolicyError> {
        OwnParameter::check(&self.extensions.own_parameters)?;
        let Some(switchover) = self.failure.primary_switchover else { return Ok(()) };
        let (path_state, max) = (self.profile.build(self.seed)?.path_state, self.failure.max_path_retrans);
        if switchover >= path_state.leaves_above(max) {
            return Ok(());
        }
        Err(PolicyError::Refused {
            first: format!("primary_switchover {switchover}"),
            second: format!("path_state {} and {max} path retransmissions", self.profile.spec(Hook::PathState)),
            reason: "the primary path would change before data leaves it (RFC 7829 §5)",
        })
    }

    /// Refuses values with which nothing works, each by its name. [`check`](Self::check) leaves them: an engine that is
    /// driven by a test or a simulation makes do with them.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn check_values(&self) -> Result<(), PolicyError> {
        let wrong = |policy, param, value: String, expected: &str| {
            Err(PolicyError::BadValue { policy, param, value, expected: expected.into() })
        };
        let (l, t, size) = (&self.limits, &self.timers, self.mtu.packet_size);
        if l.receive_buffer < 1_500 {
            return wrong("limits", "receive_buffer", l.receive_buffer.to_string(), "1500 bytes or more");
        }
        if l.send_buffer == 0 {
            return wrong("limits", "send_buffer", "0".into(), "no message is larger than it");
        }
        if l.max_paths == 0 {
            return wrong("limits", "max_paths", "0".into(), "1 or more");
        }
        if !(Self::MIN_PACKET_SIZE..=Self::MAX_PACKET_SIZE).contains(&size) {
            let (least, most) = (Self::MIN_PACKET_SIZE, Self::MAX_PACKET_SIZE);
            return wrong("mtu", "packet_size", size.to_string(), &format!("from {least} to {most} bytes"));
        }
        for (param, value) in [("rto_initial", t.rto_initial), ("rto_max", t.rto_max)] {
            if value.is_zero() {
                return wrong("timers", param, "0".into(), "more than no time");
            }
        }
        if t.max_init_timeout.is_some_and(Duration::is_zero) {
            return wrong("timers", "max_init_timeout", "0".into(), "more than no time, or none for `rto_max`");
        }
        if t.sack_delay > Duration::from_millis(500) {
            let value = format!("{} ms", t.sack_delay.as_millis());
            return wrong("timers", "sack_delay", value, "at most 500 ms (RFC 9260 §6.2)");
        }
        if t.heartbeat_max_burst == 0 {
            return wrong("timers", "heartbeat_max_burst", "0".into(), "1 or more");
        }
        Ok(())
    }

    /// Does it take part in chunk authentication?
    pub(crate) fn authenticates(&self) -> bool {
        self.extensions.dynamic_addresses || !self.auth.chunks.is_empty() || !self.auth.keys.is_empty()
    }

    /// Value of our CHUNKS parameter: types that the peer must authenticate.
    pub(crate) fn chunks_to_authenticate(&self) -> ChunkTypes {
        let mut out =
            ChunkTypes::from_slice(if self.extensions.dynamic_addresses { crate::auth::OUR_CHUNKS } else { &[] });
        for &k in &self.auth.chunks {
            // RFC 4895 §3.2.
            let never = matches!(k, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH);
            if !never && !out.contains(&k) {
                out.push(k);
            }
        }
        out
    }

    /// Smallest packet the engine can work with: a SACK, an INIT ACK with its cookie and one byte of DATA fit.
    pub const MIN_PACKET_SIZE: usize = 512;

    /// Largest packet: what fits a datagram over IPv4, with the headers of IP and UDP.
    pub const MAX_PACKET_SIZE: usize = 65_507;

    /// Parity is made or read here, and nothing forbids it: an unsigned chunk must not become DATA that has to be signed,
    /// nor acknowledge what only a signed SACK may, and an NR-SACK must not vouch for what did not come by itself.
    pub(crate) fn takes_parity(&self) -> bool {
        let e = &self.extensions;
        let wanted = e.parity || self.profile.asks().any(Asks::PARITY.and(Asks::REPAIR));
        let signed = |k: &u8| matches!(*k, kind::DATA | kind::I_DATA | kind::SACK | kind::NR_SACK);
        let signed = || self.auth.chunks.iter().any(signed);
        wanted && e.partial_reliability && (!e.nr_sack || e.nr_sack_covers_undelivered) && !signed()
    }

    /// The largest DATA payload of one packet.
    pub(crate) fn max_payload(&self) -> usize {
        Self::payload_of(self.mtu.packet_size)
    }

    /// The largest DATA payload of a packet of `size` bytes.
    pub(crate) fn payload_of(size: usize) -> usize {
        let room = size.max(Self::MIN_PACKET_SIZE);
        (room - anabranch_wire::COMMON_HEADER_LEN - anabranch_wire::DATA_HEADER_LEN) & !3
    }
}
