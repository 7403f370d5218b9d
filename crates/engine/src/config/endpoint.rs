//! The configuration of an endpoint.

use super::AssocConfig;
use anabranch_base::Duration;

/// The configuration of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointConfig {
    /// Our SCTP port, never 0.
    pub port: u16,
    /// Accept associations from peers.
    pub accept: bool,
    /// For accepted associations.
    pub association: AssocConfig,
    /// Valid.Cookie.Life.
    pub cookie_life: Duration,
    /// A peer that restarts (RFC 9260 §5.2.4 A) keeps its association's id, and the user learns of it by
    /// [`Event::Restarted`](crate::Event::Restarted). False ends the old one with
    /// [`CloseReason::PeerRestarted`](crate::CloseReason::PeerRestarted) and begins another, for users to whom an
    /// association is a session.
    pub restart_keeps_id: bool,
    /// Associations that may live at once; further COOKIE ECHOes are dropped.
    pub max_associations: usize,
    /// Packets without a checksum that belong to no association are answered too (RFC 9653 §5.3).
    pub unsummed_strangers: bool,
    /// Packets to any port are answered, from that port: for an endpoint that answers for all ports without an owner. It
    /// must neither accept nor begin associations.
    pub any_port: bool,
}

impl EndpointConfig {
    /// The defaults on `port`.
    pub fn new(port: u16, association: AssocConfig) -> Self {
        EndpointConfig {
            port,
            accept: false,
            association,
            cookie_life: Duration::from_secs(60),
            restart_keeps_id: true,
            max_associations: 100_000,
            unsummed_strangers: false,
            any_port: false,
        }
    }
}
