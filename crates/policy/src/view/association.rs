//! The association, as its policies see it.

use super::{PathView, Period};
use anabranch_base::{Instant, PathId, PathSet, Ppm, Rate};

/// The association as its policies see it.
#[derive(Clone, Copy)]
pub struct AssocView<'a> {
    /// Current time.
    pub now: Instant,
    /// All paths, indexed by id.
    pub paths: &'a [PathView],
    /// Paths on which the engine would accept new data now: usable, window, burst and peer window open.
    /// A wrapper narrows it; a policy may still look at all of `paths`.
    pub eligible: PathSet,
    /// Paths that are in use and take no part in sending, for as long as others do ([`Signals::sidelined`]). None of them
    /// is eligible, a candidate of a retransmission, or among the active ones.
    ///
    /// [`Signals::sidelined`]: super::Signals::sidelined
    pub aside: PathSet,
    /// The user's choice for new data where one path carries all (RFC 9260 §6.4).
    pub primary: PathId,
    /// Peer's window less what is outstanding, bytes.
    pub peer_rwnd: u64,
    /// Bytes outstanding on all paths, each chunk once.
    pub outstanding: u64,
    /// Bytes not yet transmitted, look-ahead included.
    pub unsent: u64,
    /// New data were offered to the eligible paths at this moment, and none takes any.
    pub declined: bool,
    /// The peer reads the kind of parity that is made here; known where [`Redundancy`](crate::redundancy::Redundancy) is asked.
    pub parity_agreed: bool,
    /// Initial window of a path, bytes.
    pub initial_cwnd: u64,
    /// Current distribution period.
    pub period: Period,
    /// Association-wide window, published by coupling (Xu et al. 2014 §V, fwnd).
    pub aggregate_window: Option<u64>,
    /// Fill of the send buffer, for who asks [`LOAD`](crate::Asks::LOAD) as the next two are: others see nothing there.
    pub send_buffer_fill: Ppm,
    /// When DATA last left, on whatever path.
    pub data_sent_at: Option<Instant>,
    /// What the user hands over with a deadline, bytes a second by class, 2 and above together; zero while unknown.
    pub class_rates: [Rate; 3],
    /// T3 expiries per path, oldest first; kept by the engine so that a policy can be exchanged.
    pub timeouts: &'a [TimeoutLog],
}

impl<'a> AssocView<'a> {
    /// An association with nothing to send, of whose paths those in use take data, as a starting point for tests.
    pub fn of(now: Instant, paths: &'a [PathView]) -> Self {
        AssocView {
            now,
            paths,
            eligible: paths.iter().filter(|p| p.state.usable()).fold(PathSet::EMPTY, |set, p| set.with(p.id)),
            aside: PathSet::EMPTY,
            primary: PathId(0),
            peer_rwnd: 1 << 20,
            outstanding: paths.iter().map(|p| p.in_flight).sum(),
            unsent: 0,
            declined: false,
            parity_agreed: true,
            initial_cwnd: 4_404,
            period: Period::default(),
            aggregate_window: None,
            send_buffer_fill: Ppm(0),
            data_sent_at: None,
            class_rates: [Rate::ZERO; 3],
            timeouts: &[],
        }
    }
    /// The view of path `p`.
    pub fn path(&self, p: PathId) -> Option<&'a PathView> {
        self.paths.get(p.index())
    }
    /// Active paths that take part in sending.
    pub fn active(&self) -> impl Iterator<Item = &'a PathView> + Clone + use<'a> {
        let aside = self.aside;
        self.paths.iter().filter(move |p| p.state.usable() && !aside.has(p.id))
    }
    /// Active paths, those that take no part in sending among them.
    pub fn in_use(&self) -> impl Iterator<Item = &'a PathView> + Clone + use<'a> {
        self.paths.iter().filter(|p| p.state.usable())
    }
    /// Eligible paths.
    pub fn open(&self) -> impl Iterator<Item = &'a PathView> + Clone + use<'a> {
        let eligible = self.eligible;
        self.paths.iter().filter(move |p| eligible.has(p.id))
    }
    /// This view with fewer eligible paths.
    #[must_use]
    pub fn narrowed(&self, eligible: PathSet) -> AssocView<'a> {
        AssocView { eligible: eligible.and(self.eligible), ..*self }
    }
    /// T3 expiries of `p` after `t`.
    pub fn timeouts_since(&self, p: PathId, t: Instant) -> usize {
        self.timeouts.get(p.index()).map_or(0, |l| l.since(t))
    }
    /// Sum of the windows of active paths, bytes.
    pub fn window_sum(&self) -> u64 {
        self.active().map(|p| p.cwnd).sum()
    }
}

/// T3 expiries of one path, newest last, at most [`TimeoutLog::KEPT`].
#[derive(Clone, Debug, Default)]
pub struct TimeoutLog {
    at: std::collections::VecDeque<Instant>,
}

impl TimeoutLog {
    /// How many are kept.
    pub const KEPT: usize = 64;

    /// Notes an expiry.
    pub fn push(&mut self, at: Instant) {
        if self.at.len() == Self::KEPT {
            self.at.pop_front();
        }
        self.at.push_back(at);
    }
    /// How many came after `t`.
    pub fn since(&self, t: Instant) -> usize {
        self.at.iter().rev().take_while(|&&x| x > t).count()
    }
}
