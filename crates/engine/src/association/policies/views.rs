//! What the policies are shown. There is one way to it, [`Views::see`], and what was touched since is made anew there.

use super::set::Policies;
use crate::association::Association;
use crate::association::path_table::PathTable;
use crate::path::Path;
use anabranch_base::{Duration, Instant, PathId, PathSet, Ppm, Rate};
use anabranch_policy::Asks;
use anabranch_policy::buffer::Share;
use anabranch_policy::path_quality::{Board, PathQuality};
use anabranch_policy::view::{AssocView, PathView, Signals, TimeoutLog};

/// Views and what outlives an exchange of policies: the board of facts and the timeout logs, both as far as a policy
/// wrote them.
pub(crate) struct Views {
    /// As of the last look; what was touched since is out of date, so only `see` gives them away.
    paths: Vec<PathView>,
    timeouts: Vec<TimeoutLog>,
    board: Board,
    /// Millionths of the send buffer that one byte fills, times 2^32: facts are gathered too often to divide.
    fill_scale: u64,
}

impl Views {
    /// None yet; the send buffer has so many bytes.
    pub fn new(send_buffer: usize) -> Views {
        Views {
            paths: Vec::new(),
            timeouts: Vec::new(),
            board: Board::default(),
            fill_scale: (1_000_000 << 32) / (send_buffer as u64).max(1),
        }
    }

    /// What the policies see at this moment.
    #[inline]
    pub fn see<'a>(&'a mut self, paths: &mut PathTable, policies: &Policies, facts: &Facts) -> AssocView<'a> {
        self.catch_up(paths, policies);
        AssocView {
            now: facts.now,
            paths: &self.paths,
            eligible: facts.eligible,
            primary: facts.primary,
            peer_rwnd: facts.peer_rwnd,
            outstanding: facts.outstanding,
            unsent: facts.unsent,
            initial_cwnd: facts.initial_cwnd,
            period: self.board.period,
            aggregate_window: facts.aggregate_window,
            send_buffer_fill: facts.send_buffer_fill,
            data_sent_at: facts.data_sent_at,
            class_rates: facts.class_rates,
            timeouts: &self.timeouts,
        }
    }

    /// What the policies see of one path at this moment.
    #[inline]
    pub fn path<'a>(&'a mut self, paths: &mut PathTable, policies: &Policies, id: PathId) -> Option<&'a PathView> {
        self.catch_up(paths, policies);
        self.paths.get(id.index())
    }

    #[inline]
    fn catch_up(&mut self, paths: &mut PathTable, policies: &Policies) {
        if !paths.touched().is_none() || policies.ask(Asks::BOARD) {
            self.make_anew(paths, policies);
        }
        debug_assert!(self.are_fresh(paths, policies), "a view shows what is no longer so");
    }

    /// Makes anew what was touched.
    #[inline(never)]
    fn make_anew(&mut self, paths: &mut PathTable, policies: &Policies) {
        let board = policies.ask(Asks::BOARD);
        if board {
            self.publish(paths, policies);
        }
        if board || self.paths.len() != paths.len() {
            paths.touch_all();
        }
        let touched = *paths.touched();
        if !touched.whole.is_empty() {
            self.make_whole(paths, policies, touched.whole);
        }
        for id in touched.flight.iter() {
            if let (Some(p), Some(v)) = (paths.get(id.index()), self.paths.get_mut(id.index())) {
                show_flight(p, v, quality(policies));
            }
        }
        for id in touched.flight_bytes.iter() {
            if let (Some(p), Some(v)) = (paths.get(id.index()), self.paths.get_mut(id.index())) {
                v.in_flight = p.flight.bytes();
            }
        }
        for id in touched.window.iter() {
            if let (Some(p), Some(v)) = (paths.get(id.index()), self.paths.get_mut(id.index())) {
                (v.cwnd, v.ssthresh) = (p.congestion.cwnd(), p.congestion.ssthresh());
                v.partial_bytes_acked = p.congestion.partial_bytes_acked();
            }
        }
        paths.note_shown();
    }

    #[inline(never)]
    fn make_whole(&mut self, paths: &PathTable, policies: &Policies, which: PathSet) {
        let (mtu, quality) = (paths.mtu(), quality(policies));
        self.paths.truncate(paths.len());
        for p in paths.iter() {
            if self.paths.len() <= p.id().index() {
                self.paths.push(PathView::idle(p.id()));
            }
            if let Some(v) = self.paths.get_mut(p.id().index()).filter(|_| which.has(p.id())) {
                show(p, v, mtu, signals_of(&self.board, p.id()), quality);
            }
        }
    }

    /// Puts on the board what scheduler and coupling have to say.
    fn publish(&mut self, paths: &PathTable, policies: &Policies) {
        for p in paths.iter() {
            let mut s = self.signals(p.id());
            s.direction = policies.path_scheduler.direction(p.id());
            s.bound_bytes = policies.path_scheduler.bound_bytes(p.id());
            policies.coupling.publish(p.id(), &mut s);
            self.keep_signals(p.id(), s);
        }
    }

    fn are_fresh(&self, paths: &PathTable, policies: &Policies) -> bool {
        let (mtu, quality) = (paths.mtu(), quality(policies));
        self.paths.len() == paths.len()
            && paths.iter().zip(&self.paths).all(|(p, v)| {
                let mut now = *v;
                show(p, &mut now, mtu, self.signals(p.id()), quality);
                now == *v
            })
    }

    /// The facts about all paths that policies keep for each other.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The quality estimator wrote on the board.
    pub fn replace_board(&mut self, board: Board, paths: &mut PathTable) {
        self.board = board;
        paths.touch_all();
    }

    /// The views of another association, whose place is taken by these.
    pub fn lend(&mut self, views: Vec<PathView>, paths: &mut PathTable) {
        self.paths = views;
        paths.touch_all();
    }

    /// Gives the list of views away; until another one comes there is none.
    pub fn take(&mut self) -> Vec<PathView> {
        core::mem::take(&mut self.paths)
    }

    /// The path with this number is another one now.
    pub fn forget(&mut self, p: PathId) {
        if let Some(log) = self.timeouts.get_mut(p.index()) {
            *log = TimeoutLog::default();
        }
        if let Some(s) = self.board.signals.get_mut(p.index()) {
            *s = Signals::default();
        }
    }
    /// T3 expired on a path.
    pub fn note_timeout(&mut self, p: PathId, now: Instant) {
        if self.timeouts.len() <= p.index() {
            self.timeouts.resize_with(p.index() + 1, TimeoutLog::default);
        }
        self.timeouts[p.index()].push(now);
    }
    /// Keeps the signals of a path. Most policies write none, and nothing is held for them.
    pub fn keep_signals(&mut self, p: PathId, s: Signals) {
        let list = &mut self.board.signals;
        if list.len() <= p.index() {
            if s == Signals::default() {
                return;
            }
            list.resize(p.index() + 1, Signals::default());
        }
        list[p.index()] = s;
    }
    pub fn signals(&self, p: PathId) -> Signals {
        signals_of(&self.board, p)
    }
}

fn signals_of(board: &Board, p: PathId) -> Signals {
    board.signals.get(p.index()).copied().unwrap_or_default()
}

impl Association {
    /// Paths on which new data may leave now.
    #[inline]
    pub(in crate::association) fn eligible(&self, now: Instant) -> PathSet {
        let (mut open, mut active, mut standby) = (PathSet::EMPTY, false, false);
        let holds = self.holds_place();
        for p in self.paths.iter().filter(|p| p.is_in_use()) {
            (active, standby) = (true, standby | p.access.is_standby());
            if has_window(p, now) && (!holds && !self.policies.ask(Asks::SHARE) || self.has_room(p, now)) {
                open = open.with(p.id());
            }
        }
        if active && !standby {
            return open;
        }
        let usable = self.paths.usable();
        self.paths.iter().filter(|p| usable.has(p.id()) && self.has_room(p, now)).map(|p| p.id()).collect()
    }

    /// One more packet of new data may leave on this path.
    fn has_room(&self, p: &Path, now: Instant) -> bool {
        let held = if self.holds_place() { self.sender.marked_bytes_on(p.id()) } else { 0 };
        has_window(p, now)
            && (p.expiry.may_probe() || p.congestion.has_room(p.flight.bytes() + held))
            && (!self.policies.ask(Asks::SHARE) || self.has_share(p))
    }

    /// One more packet is within the path's part of the buffers.
    #[inline(never)]
    fn has_share(&self, p: &Path) -> bool {
        let active = self.paths.iter().filter(|p| p.is_in_use()).count();
        let share = Share {
            paths: active as u64,
            on_path: p.flight.bytes(),
            outstanding: self.sender.outstanding_bytes(),
            packet: self.paths.mtu(),
            send_buffer: self.config.limits.send_buffer as u64,
            peer_rwnd: self.peer_rwnd(),
        };
        p.flight.bytes() == 0 || self.policies.buffer.allows(&share)
    }
}

/// The quality estimator, if it is to be asked.
#[inline]
fn quality(policies: &Policies) -> Option<&dyn PathQuality> {
    policies.ask(Asks::QUALITY).then_some(policies.path_quality.as_ref())
}

/// What a packet that left on the path has changed.
fn show_flight(p: &Path, v: &mut PathView, quality: Option<&dyn PathQuality>) {
    v.in_flight = p.flight.bytes();
    v.packets_in_flight = p.flight.packets();
    v.loss = p.flight.loss();
    v.oldest_sent = p.flight.oldest_sent();
    v.second_sent = p.flight.second_sent();
    v.unanswered_since = p.health.unanswered_since();
    v.send_rate = send_rate(p, quality);
}

/// The quality estimator's send rate where it has one.
#[inline]
fn send_rate(p: &Path, quality: Option<&dyn PathQuality>) -> Rate {
    let estimate = quality.map(|q| q.send_rate(p.id())).filter(|r| *r != Rate::ZERO);
    estimate.unwrap_or_else(|| p.rate.send_rate())
}

/// Shows all of `p`, with the quality estimator's send rate where it has one.
#[inline]
fn show(p: &Path, v: &mut PathView, mtu: u64, signals: Signals, quality: Option<&dyn PathQuality>) {
    p.show(v, mtu, signals);
    if quality.is_some() {
        v.send_rate = send_rate(p, quality);
    }
}

/// Packets that are paced leave together where they are due within this time: a timer for each costs more than it
/// smooths. On a fast path a timer each millisecond does too, and its queue takes more.
const PACED_TOGETHER: Duration = Duration::from_millis(1);
const FAST_TOGETHER: Duration = Duration::from_millis(3);
const FAST: Rate = Rate::from_bits_per_sec(30_000_000);

/// Window, burst and pace allow one more packet. After a timeout a single one may be in flight until something is
/// acknowledged, however small it is (RFC 9260 §7.2.1); or a probe, see [`Association::on_probe_timer`].
pub(in crate::association) fn has_window(p: &Path, now: Instant) -> bool {
    let proven = p.expiry.allows_beside(p.flight.packets());
    let known = p.capacity.rate();
    let together = if known >= FAST { FAST_TOGETHER } else { PACED_TOGETHER };
    let burst = p.congestion.allows_burst(known > Rate::ZERO);
    (p.expiry.may_probe() || proven && p.congestion.has_room(p.flight.bytes())) && burst && p.pace.allows(now, together)
}

/// Facts for an [`AssocView`] that are not in [`Views`], gathered before policies are borrowed.
#[derive(Clone, Copy)]
pub(in crate::association) struct Facts {
    pub now: Instant,
    pub eligible: PathSet,
    pub primary: PathId,
    pub peer_rwnd: u64,
    pub outstanding: u64,
    pub unsent: u64,
    pub initial_cwnd: u64,
    pub aggregate_window: Option<u64>,
    pub send_buffer_fill: Ppm,
    pub data_sent_at: Option<Instant>,
    pub class_rates: [Rate; 3],
}

impl Association {
    pub(in crate::association) fn facts(&self, now: Instant) -> Facts {
        self.facts_with(now, self.eligible(now))
    }

    /// Facts where the eligible paths are known.
    #[inline]
    pub(in crate::association) fn facts_with(&self, now: Instant, eligible: PathSet) -> Facts {
        let (unsent, send_buffer_fill) = self.unsent_and_fill();
        Facts {
            now,
            eligible,
            primary: self.paths.primary(),
            peer_rwnd: self.peer_rwnd(),
            outstanding: self.sender.outstanding_bytes(),
            unsent,
            initial_cwnd: self.paths.initial_cwnd(),
            aggregate_window: if self.policies.ask(Asks::PUBLISH) {
                self.policies.coupling.aggregate_window()
            } else {
                None
            },
            send_buffer_fill,
            data_sent_at: self.paths.iter().filter_map(|p| p.pace.last_data_sent()).max(),
            class_rates: self.sender.class_rates(now),
        }
    }

    /// Payload that has not left, bytes, and how much of the send buffer is in use.
    fn unsent_and_fill(&self) -> (u64, Ppm) {
        let unsent = self.sender.unsent_bytes();
        let held = unsent + self.sender.outstanding_bytes();
        let fill = (u128::from(held) * u128::from(self.views.fill_scale)) >> 32;
        (unsent, Ppm(fill.min(1_000_000) as u32))
    }

    /// `facts` after messages were cut, of which some may have been given up: nothing else differs.
    pub(in crate::association) fn facts_after_cutting(&self, facts: &mut Facts) {
        (facts.unsent, facts.send_buffer_fill) = self.unsent_and_fill();
    }

    /// `facts` after a chunk of the look-ahead was booked on `path`.
    pub(in crate::association) fn facts_after_taking(&self, facts: &mut Facts, path: PathId) {
        (facts.unsent, facts.send_buffer_fill) = self.unsent_and_fill();
        facts.outstanding = self.sender.outstanding_bytes();
        facts.peer_rwnd = self.peer_rwnd();
        if !self.paths.get(path.index()).is_some_and(|p| self.has_room(p, facts.now)) {
            facts.eligible = facts.eligible.without(path);
        }
    }
}
