//! One path: a pair of local interface and remote address with its own window, timers and estimators.

mod access;
mod answers;
pub(crate) mod capacity;
mod congestion;
mod contact;
mod delivered;
pub(crate) mod discovery;
mod doubted;
pub(crate) mod expiry;
pub(crate) mod flight;
mod followed;
mod given_up;
mod health;
mod heartbeats;
mod jumps;
mod least;
mod mtu;
pub(crate) mod one_way;
mod pace;
pub(crate) mod probing;
mod progress;
mod pseudo_cumulative;
pub(crate) mod rate;
pub(crate) mod rtt;
mod shown;
mod suspicion;
pub(crate) mod timers;
pub(crate) mod train;
mod window;

use crate::lazy_box::LazyBox;
use crate::stats::PathCounters;
use access::Access;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::view::PathState;
use anabranch_policy::window::Window;
use capacity::Capacity;
use congestion::Congestion;
use expiry::Expiries;
use flight::Flight;
use followed::Followed;
use given_up::AllGivenUp;
use health::Health;
pub(crate) use heartbeats::PendingHeartbeat;
use mtu::PathMtu;
use one_way::OneWay;
use pace::Pace;
use probing::Probing;
pub(crate) use progress::Fate;
use progress::Progress;
use rate::RateEstimator;
use rtt::RttEstimator;
use std::net::SocketAddr;
pub(crate) use timers::PathTimer;
use timers::Timers;

/// A local interface or socket, numbered by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LocalId(pub u16);

/// How often a path is probed while nothing else tells of it (RFC 9260 §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HeartbeatSetting {
    /// As the association is configured.
    #[default]
    Configured,
    /// HB.interval of this path.
    Every(Duration),
    /// Never, once the path is confirmed.
    Off,
}

/// Limits of one path in place of the association's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathLimits {
    /// Path.Max.Retrans.
    pub max_retrans: Option<u16>,
    /// PF.Max.Retrans, errors above which data leaves the path (RFC 7829).
    pub potentially_failed: Option<u16>,
}

impl PathLimits {
    /// Path.Max.Retrans, where the association's is `configured`.
    pub(crate) fn max_retrans(self, configured: u16) -> u16 {
        self.max_retrans.unwrap_or(configured)
    }

    /// The state after an error, where the association's policy says `to`.
    fn judged(self, errors: u16, state: PathState, to: PathState) -> PathState {
        match (self.potentially_failed, to) {
            (Some(most), PathState::PotentiallyFailed) if errors <= most => state,
            (Some(most), PathState::Active | PathState::Suspected) if errors > most => PathState::PotentiallyFailed,
            _ => to,
        }
    }
}

/// How a path of ours became known to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The handshake ran over it.
    Handshake,
    /// We add it by ASCONF, and again whenever it fell silent (a new address behind the NAT).
    AddedByUs,
    /// The peer added it.
    AddedByPeer,
    /// INIT or INIT ACK listed its addresses.
    Listed,
}

/// What belongs together of a path is a group with private fields, in a file of its own; a path itself changes by the
/// verbs below.
pub(crate) struct Path {
    id: PathId,
    local: LocalId,
    remote: SocketAddr,
    state: PathState,
    pub flight: Flight,
    pub rtt: RttEstimator,
    pub one_way: OneWay,
    pub rate: RateEstimator,
    /// Of a path that has carried data.
    pub capacity: LazyBox<Capacity>,
    pub counters: PathCounters,
    pub access: Access,
    pub mtu: PathMtu,
    pub congestion: Congestion,
    pub timers: Timers,
    pub expiry: Expiries,
    pub health: Health,
    pub probing: Probing,
    pub progress: Progress,
    pub pace: Pace,
    /// Of a path that carried what was given up.
    given_up: Option<Box<AllGivenUp>>,
    /// What few policies ask for.
    followed: Option<Box<Followed>>,
}

/// Where the window of a path begins, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstWindow {
    pub cwnd: u64,
    pub ssthresh: u64,
}

/// The initial window of RFC 9260 §7.2.1, in bytes, for packets that carry `mtu` bytes of payload; or the one that was
/// configured.
pub(crate) fn initial_window(configured: Option<u64>, mtu: u64, remote: SocketAddr) -> u64 {
    if let Some(bytes) = configured {
        return bytes.max(mtu);
    }
    let fixed = if remote.is_ipv4() { 4_404 } else { 4_344 };
    (4 * mtu).min((2 * mtu).max(fixed))
}

impl Path {
    pub fn new(
        id: PathId,
        local: LocalId,
        remote: SocketAddr,
        origin: Origin,
        start: FirstWindow,
        window: Box<dyn Window>,
    ) -> Self {
        Path {
            id,
            local,
            remote,
            state: PathState::Unconfirmed,
            flight: Flight::default(),
            rtt: RttEstimator::default(),
            one_way: OneWay::default(),
            rate: RateEstimator::default(),
            capacity: LazyBox::empty(),
            counters: PathCounters::default(),
            access: Access::new(origin),
            mtu: PathMtu::new(),
            congestion: Congestion::new(start, window),
            timers: Timers::default(),
            expiry: Expiries::default(),
            health: Health::default(),
            probing: Probing::default(),
            progress: Progress::default(),
            pace: Pace::default(),
            given_up: None,
            followed: None,
        }
    }

    // ---- which path it is

    #[inline(always)]
    pub fn id(&self) -> PathId {
        self.id
    }

    /// Our end of it.
    #[inline(always)]
    pub fn local(&self) -> LocalId {
        self.local
    }

    /// The peer's end of it.
    #[inline(always)]
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// How it became known to the peer.
    #[inline(always)]
    pub fn origin(&self) -> Origin {
        self.access.origin()
    }

    #[inline(always)]
    pub fn state(&self) -> PathState {
        self.state
    }

    /// Its state is `to` from now on; answers what it was.
    pub fn enter(&mut self, to: PathState) -> PathState {
        core::mem::replace(&mut self.state, to)
    }

    /// Another host may have its addresses by now: whoever answers there has to show that it is the peer (RFC 5061 §5.3
    /// F14).
    pub fn doubt_owner(&mut self) {
        self.state = PathState::Unconfirmed;
        self.health.forget_errors();
    }

    /// The peer is at another UDP port of its address, or at none.
    pub fn follow_port(&mut self, port: u16) {
        self.remote.set_port(port);
    }

    /// The handshake goes on between other addresses, which are to be confirmed as those of a list are.
    pub fn move_to(&mut self, local: LocalId, remote: SocketAddr) {
        (self.local, self.remote) = (local, remote);
        self.access.come_from(Origin::Listed);
    }

    /// The handshake runs over this path, or over another one, so that the peer is to learn this one.
    pub fn take_part_in_handshake(&mut self, yes: bool) {
        self.access.come_from(if yes { Origin::Handshake } else { Origin::AddedByUs });
        if yes { self.access.become_known() } else { self.access.become_unknown() }
    }

    /// The peer took its address away, and only the peer brings it back.
    pub fn leave_to_peer(&mut self) {
        self.access.come_from(Origin::AddedByPeer);
    }

    // ---- what happens on it

    /// TSNs begin anew, and nothing is in flight.
    pub fn begin_anew(&mut self) {
        self.timers.begin_anew();
        self.congestion.begin_anew();
        self.given_up = None;
        if let Some(followed) = self.followed_mut() {
            *followed = Followed::default();
        }
    }

    /// The policy's answer, unless the path is suspected already.
    pub fn suspect_at(&mut self, at: Option<Instant>) {
        if self.state != PathState::Suspected {
            self.timers.plan_suspicion(at);
        }
    }

    /// DATA is about to leave on this path.
    pub fn notice_sending(&mut self, now: Instant) {
        let nothing_in_flight = self.flight.bytes() == 0;
        self.health.send(now, nothing_in_flight);
    }

    /// A round trip over this path both ways.
    pub fn sample_own_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(now, rtt);
        self.sample_own_ways(now, rtt);
        if self.flight.bytes() == 0 {
            self.rtt.was_unloaded(now, self.progress.reorders(now));
        }
    }

    /// How such a round trip divides into the way there and the way back.
    fn sample_own_ways(&mut self, now: Instant, rtt: Duration) {
        self.one_way.own_round_trip(now, rtt);
        self.one_way.sample(now, rtt, self.one_way.back().unwrap_or(rtt / 2));
    }

    /// To be probed by turns (RFC 9260 §5.4).
    pub fn is_listed_unconfirmed(&self) -> bool {
        self.origin() == Origin::Listed
            && self.state == PathState::Unconfirmed
            && self.access.is_up()
            && !self.access.is_disowned()
    }

    /// Congestion state back to where it began (RFC 9260 §7.2.5: another route).
    pub fn reset_congestion(&mut self, start: FirstWindow, window: Box<dyn Window>) {
        self.congestion.restart(start, window);
        self.rtt = RttEstimator::default();
        self.one_way = OneWay::default();
        self.rate.restart();
        self.progress.forget_order();
        self.probing.forget_train();
        self.given_up = None;
        if let Some(capacity) = self.capacity.used() {
            capacity.restart();
        }
        self.expiry.end_backoff();
    }

    /// Idle for longer than a round trip, which no RTO is below, with a window that is worth a look.
    pub fn may_decay(&self, now: Instant, mtu: u64) -> bool {
        let idle = self.flight.bytes() == 0 && self.pace.has_idled(now, self.rtt.srtt());
        idle && self.congestion.may_decay(mtu)
    }

    /// Its window is what it would be by now (RFC 9260 §7.2.1).
    pub fn decay_while_idle(&mut self, now: Instant, rto: Duration, mtu: u64) {
        if let Some(last) = self.pace.last_data_sent() {
            self.congestion.decay(now, last, rto, mtu);
        }
    }
}
