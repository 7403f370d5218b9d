//! From INIT to the end: handshake, restart, shutdown, and what both ends agreed on.

pub(crate) mod announced;
pub(in crate::association) mod authentication;
pub(in crate::association) mod control_timer;
pub(in crate::association) mod create;
pub(in crate::association) mod init;
pub(crate) mod own_parameters;
pub(in crate::association) mod peer;
pub(crate) mod restart;
pub(in crate::association) mod shutdown;
pub(in crate::association) mod state;

use crate::auth::AuthParams;
use crate::config::OwnParameter;
use crate::path::LocalId;
use anabranch_base::{Duration, Entropy, Instant, PathId, Tsn};
use anabranch_wire::CommonHeader;
use authentication::Authentication;
use state::State;
use std::net::SocketAddr;

/// What an association starts from: both ways into life, connecting and accepting, end here.
pub(crate) struct Identity {
    pub local_port: u16,
    pub peer_port: u16,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_initial: Tsn,
    pub local_auth: AuthParams,
    pub local: LocalId,
    pub remote: SocketAddr,
}

/// Who the two ends are, and the chunks of handshake and shutdown that are repeated until they are answered.
pub(crate) struct Handshake {
    state: State,
    local_port: u16,
    peer_port: u16,
    local_tag: u32,
    peer_tag: u32,
    local_initial: Tsn,
    local_auth: AuthParams,
    /// What both ends sign.
    auth: Authentication,
    /// Tie-Tags: they recognise the cookies of INITs that came while the association existed (RFC 9260 §5.2.2).
    ties: (u32, u32),
    /// The path that INIT and COOKIE ECHO leave on first.
    path: PathId,
    /// T1-init, T1-cookie or T2-shutdown.
    timer: Option<Instant>,
    /// How often the chunk of that timer was repeated.
    attempts: u16,
    /// It was repeated before that timer expired.
    hurried: bool,
    /// When the first of them left.
    sent_at: Instant,
    /// Stale Cookie errors of this handshake, and by how much longer the next cookie should live (§5.2.6).
    stale_cookies: u16,
    cookie_wish: Option<Duration>,
    /// Causes about the INIT ACK, to leave beside the COOKIE ECHO (§3.2.2).
    echo_report: Box<[u8]>,
    /// What the peer said by parameters of the user's own.
    peer_said: Box<[OwnParameter]>,
    /// T5-shutdown-guard.
    guard: Option<Instant>,
    /// Cumulative TSN when the guard was set.
    guarded_from: u64,
}

impl Handshake {
    fn new(identity: Identity, state: State, entropy: &mut dyn Entropy) -> Handshake {
        Handshake {
            state,
            local_port: identity.local_port,
            peer_port: identity.peer_port,
            local_tag: identity.local_tag,
            peer_tag: identity.peer_tag,
            local_initial: identity.local_initial,
            local_auth: identity.local_auth,
            auth: Authentication::default(),
            ties: (entropy.u32().max(1), entropy.u32().max(1)),
            path: PathId(0),
            timer: None,
            attempts: 0,
            hurried: false,
            sent_at: Instant::ZERO,
            stale_cookies: 0,
            cookie_wish: None,
            echo_report: Box::default(),
            peer_said: Box::default(),
            guard: None,
            guarded_from: 0,
        }
    }

    pub fn peer_port(&self) -> u16 {
        self.peer_port
    }

    /// The verification tag of packets that come.
    pub fn local_tag(&self) -> u32 {
        self.local_tag
    }

    /// The verification tag of packets that leave; 0 before the INIT ACK.
    pub fn peer_tag(&self) -> u32 {
        self.peer_tag
    }

    /// Our first TSN.
    pub fn local_initial(&self) -> Tsn {
        self.local_initial
    }

    /// What our INIT said of authentication.
    pub fn local_auth(&self) -> &AuthParams {
        &self.local_auth
    }

    /// What both ends sign.
    pub fn auth(&self) -> &Authentication {
        &self.auth
    }

    /// The path that INIT and COOKIE ECHO leave on first.
    pub fn path(&self) -> PathId {
        self.path
    }

    /// The common header of packets to the peer.
    pub fn header(&self) -> CommonHeader {
        CommonHeader { src_port: self.local_port, dst_port: self.peer_port, vtag: self.peer_tag }
    }

    /// What the peer said by parameters of the user's own.
    pub fn peer_said(&self) -> &[OwnParameter] {
        &self.peer_said
    }

    /// When the chunk under way was first sent.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// The last chunk is about to leave: ABORT or SHUTDOWN COMPLETE.
    pub fn ends(&mut self, now: Instant) {
        self.sent_at = now;
    }

    /// Causes about the INIT ACK, once, where an ERROR with them fits in `room`.
    pub fn take_echo_report(&mut self, room: usize) -> Option<Box<[u8]>> {
        let fits = !self.echo_report.is_empty() && room >= 4 + self.echo_report.len();
        fits.then(|| core::mem::take(&mut self.echo_report))
    }

    /// When T1 or T2 expires.
    pub fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// When T5-shutdown-guard expires.
    pub fn guard_deadline(&self) -> Option<Instant> {
        self.guard
    }

    /// Where the association is in its life.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The association is over: no timer runs any more.
    pub fn set_closed(&mut self) {
        self.state = State::Closed;
        (self.timer, self.guard) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::RANDOM_LEN;

    /// Draws nothing but zeros.
    struct Zeros;

    impl Entropy for Zeros {
        fn fill(&mut self, dst: &mut [u8]) {
            dst.fill(0);
        }
    }

    fn handshake() -> Handshake {
        let identity = Identity {
            local_port: 9_899,
            peer_port: 5_000,
            local_tag: 1,
            peer_tag: 0,
            local_initial: Tsn(1),
            local_auth: AuthParams { random: [0; RANDOM_LEN] },
            local: LocalId(0),
            remote: ([192, 0, 2, 1], 9_899).into(),
        };
        Handshake::new(identity, State::Closed, &mut Zeros)
    }

    /// Zeros in a cookie say that it belongs to no association (RFC 9260 §5.2.4).
    #[test]
    fn tie_tags_are_never_zero() {
        assert!(handshake().ties.0 != 0 && handshake().ties.1 != 0);
    }

    #[test]
    fn causes_about_the_init_ack_leave_once_and_whole() {
        let mut h = handshake();
        assert_eq!(h.take_echo_report(1_000), None);
        h.echo_report = vec![7; 20].into();
        assert_eq!(h.take_echo_report(23), None, "no room for the chunk's header");
        assert_eq!(h.take_echo_report(24).as_deref(), Some(&[7; 20][..]));
        assert_eq!(h.take_echo_report(1_000), None);
    }

    #[test]
    fn once_closed_no_timer_runs() {
        let mut h = handshake();
        (h.timer, h.guard) = (Some(Instant::ZERO), Some(Instant::ZERO));
        h.set_closed();
        assert_eq!((h.deadline(), h.guard_deadline()), (None, None));
    }
}
