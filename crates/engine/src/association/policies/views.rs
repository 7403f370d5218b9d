//! What the policies are shown. There is one way to it, [`Views::see`], and what was touched since is made anew there.

use super::facts::Facts;
use super::set::Policies;
use crate::association::path_table::PathTable;
use crate::association::path_table::list::Touched;
use crate::association::sender::Sender;
use crate::lazy_box::{Empty, LazyBox};
use crate::path::Path;
use anabranch_base::{Duration, Instant, PathId, PathSet, Rate};
use anabranch_policy::Asks;
use anabranch_policy::path_quality::{Board, PathQuality};
use anabranch_policy::view::{AssocView, PathView, Period, Signals, TimeoutLog};

/// Views and what outlives an exchange of policies: the board of facts and the timeout logs, both as far as a policy
/// wrote them.
#[derive(Default)]
pub(crate) struct Views {
    /// As of the last look; what was touched since is out of date, so only `see` gives them away.
    paths: Vec<PathView>,
    kept: LazyBox<Kept>,
    #[cfg(debug_assertions)]
    looks: u32,
}

/// The board of facts and the timeout logs.
#[derive(Default)]
struct Kept {
    timeouts: Vec<TimeoutLog>,
    board: Board,
}

impl Empty for Kept {
    const EMPTY: &'static Kept = &Kept {
        timeouts: Vec::new(),
        board: Board {
            signals: Vec::new(),
            period: Period { serial: 0, start: Instant::ZERO, length: Duration::ZERO },
        },
    };
}

impl Views {
    /// What the policies see at this moment.
    #[inline]
    pub fn look<'a>(
        &'a mut self,
        now: Instant,
        paths: &mut PathTable,
        sender: &Sender,
        policies: &Policies,
    ) -> AssocView<'a> {
        let facts = Facts::of(now, paths, sender, policies);
        self.see(paths, policies, &facts)
    }

    /// What the policies see at this moment, of which the facts are known.
    #[inline]
    pub fn see<'a>(&'a mut self, paths: &mut PathTable, policies: &Policies, facts: &Facts) -> AssocView<'a> {
        self.catch_up(paths, policies);
        AssocView {
            now: facts.now,
            paths: &self.paths,
            eligible: facts.eligible,
            aside: facts.aside,
            primary: facts.primary,
            peer_rwnd: facts.peer_rwnd,
            outstanding: facts.outstanding,
            unsent: facts.unsent,
            declined: facts.declined,
            parity_agreed: facts.parity_agreed,
            initial_cwnd: facts.initial_cwnd,
            period: self.kept.board.period,
            aggregate_window: facts.aggregate_window,
            send_buffer_fill: facts.load.send_buffer_fill,
            data_sent_at: facts.load.data_sent_at,
            class_rates: facts.load.class_rates,
            timeouts: &self.kept.timeouts,
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
        #[cfg(debug_assertions)]
        self.compare(paths, policies);
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
        let Touched { whole, window, flight, flight_bytes } = *paths.touched();
        if !whole.is_empty() {
            self.make_whole(paths, policies, whole);
        }
        // What was made whole shows the rest too.
        if !window.or(flight).or(flight_bytes).except(whole).is_empty() {
            self.make_parts(paths, policies);
        }
        paths.note_shown();
    }

    /// Makes anew what was touched of views that are not out of date in whole.
    #[inline]
    fn make_parts(&mut self, paths: &PathTable, policies: &Policies) {
        let Touched { whole, window, flight, flight_bytes } = *paths.touched();
        for id in window.or(flight).or(flight_bytes).except(whole).iter() {
            let (Some(p), Some(v)) = (paths.get(id.index()), self.paths.get_mut(id.index())) else { continue };
            if flight.has(id) {
                show_flight(p, v, quality(policies));
            } else if flight_bytes.has(id) {
                v.in_flight = p.flight.bytes();
            }
            if window.has(id) {
                (v.cwnd, v.ssthresh) = (p.congestion.cwnd(), p.congestion.ssthresh());
                v.partial_bytes_acked = p.congestion.partial_bytes_acked();
            }
        }
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
                show(p, v, mtu, signals_of(&self.kept.board, p.id()), quality);
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

    /// Holds what is shown against what is so. Not at every look: that would double what tests take, and a mark that is
    /// forgotten is forgotten at each of thousands of looks.
    #[cfg(debug_assertions)]
    fn compare(&mut self, paths: &PathTable, policies: &Policies) {
        const EVERY: u32 = 13;
        self.looks = self.looks.wrapping_add(1);
        let due = cfg!(test) || self.looks.is_multiple_of(EVERY);
        assert!(!due || self.are_fresh(paths, policies), "a view shows what is no longer so");
    }

    #[cfg(debug_assertions)]
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
        &self.kept.board
    }

    /// The quality estimator wrote on the board.
    pub fn replace_board(&mut self, board: Board, paths: &mut PathTable) {
        let aside = board.signals.iter().enumerate().filter(|(_, s)| s.sidelined);
        paths.sideline(aside.map(|(i, _)| PathId(i as u8)).collect());
        self.kept.board = board;
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
        let Some(kept) = self.kept.used() else { return };
        if let Some(log) = kept.timeouts.get_mut(p.index()) {
            *log = TimeoutLog::default();
        }
        if let Some(s) = kept.board.signals.get_mut(p.index()) {
            *s = Signals::default();
        }
    }
    /// T3 expired on a path.
    pub fn note_timeout(&mut self, p: PathId, now: Instant) {
        let list = &mut self.kept.timeouts;
        if list.len() <= p.index() {
            list.resize_with(p.index() + 1, TimeoutLog::default);
        }
        list[p.index()].push(now);
    }
    /// Keeps the signals of a path. Most policies write none, and nothing is held for them.
    pub fn keep_signals(&mut self, p: PathId, s: Signals) {
        if self.kept.board.signals.len() <= p.index() && s == Signals::default() {
            return;
        }
        let list = &mut self.kept.board.signals;
        if list.len() <= p.index() {
            list.resize(p.index() + 1, Signals::default());
        }
        list[p.index()] = s;
    }
    pub fn signals(&self, p: PathId) -> Signals {
        signals_of(&self.kept.board, p)
    }
}

fn signals_of(board: &Board, p: PathId) -> Signals {
    board.signals.get(p.index()).copied().unwrap_or_default()
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
    v.packets_sent = p.flight.next_seq();
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
