//! All timers of an association: when the next fires, and what happens then.

use super::{Association, Phase, TimerReason};
use crate::association::path_table::list::Shown;
use crate::event::CloseReason;
use crate::path::PathTimer;
use anabranch_base::{Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::path_scheduler::Occasion;

impl Association {
    /// The next instant at which [`Association::handle_timeout`] has something to do, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, TimerReason)> {
        let mut next: Option<(Instant, TimerReason)> = None;
        self.offer_timers(|at, why| {
            if let Some(at) = at
                && next.is_none_or(|(t, _)| at < t)
            {
                next = Some((at, why));
            }
        });
        next
    }

    /// All timers that run, in no order, for logs and tests.
    pub fn timers(&self) -> Vec<(Instant, TimerReason)> {
        let mut list = vec![];
        self.offer_timers(|at, why| list.extend(at.map(|at| (at, why))));
        list
    }

    /// When the next one fires, without the reason.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        const NEVER: u64 = u64::MAX;
        let mut next = NEVER;
        self.offer_timers(|at, _| next = next.min(at.map_or(NEVER, Instant::as_nanos)));
        (next != NEVER).then(|| Instant::from_nanos(next))
    }

    /// All timers, running or not.
    #[inline(always)]
    fn offer_timers(&self, mut offer: impl FnMut(Option<Instant>, TimerReason)) {
        if self.phase() == Phase::Closed {
            return;
        }
        offer(self.handshake.deadline(), TimerReason::Control);
        offer(self.handshake.guard_deadline(), TimerReason::Control);
        offer(self.peer_deadline(), TimerReason::Control);
        offer(self.addresses.deadline(), TimerReason::Asconf);
        if !self.stream_reset.is_empty() {
            offer(self.stream_reset.deadline(), TimerReason::Reconfig);
        }
        offer(self.acknowledger.deadline(), TimerReason::Sack);
        for (at, why) in self.sender.deadlines() {
            offer(at, why);
        }
        if self.policies.ask(Asks::QUALITY) && self.handshake.state().is_connected() {
            offer(self.policies.quality_wakeup(), TimerReason::Policy);
        }
        let waiting = self.sender.has_waiting_data();
        for p in self.paths.iter() {
            offer(p.timers.deadline(PathTimer::T3), TimerReason::Retransmission(p.id()));
            offer(p.timers.deadline(PathTimer::TailProbe), TimerReason::Loss(p.id()));
            offer(p.timers.deadline(PathTimer::WindowProbe), TimerReason::Loss(p.id()));
            offer(p.timers.deadline(PathTimer::Reordering), TimerReason::Loss(p.id()));
            offer(p.timers.deadline(PathTimer::Suspicion), TimerReason::Suspect(p.id()));
            offer(p.timers.deadline(PathTimer::Heartbeat), TimerReason::Heartbeat(p.id()));
            offer(p.mtu.discovery().and_then(|d| d.deadline()), TimerReason::PathMtu(p.id()));
            if waiting && p.congestion.has_room(p.flight.bytes()) {
                offer(p.pace.wakeup(), TimerReason::Policy);
            }
        }
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.phase() == Phase::Closed {
            return;
        }
        let due = |t: Option<Instant>| t.is_some_and(|t| t <= now);
        self.sender.end_user_send();
        self.opportunity();
        if due(self.handshake.deadline()) {
            self.on_control_timer(now);
        }
        if due(self.handshake.guard_deadline()) {
            self.on_guard_timer(now);
        }
        if due(self.peer_deadline()) {
            return self.give_up_on_peer(now, CloseReason::PeerGone);
        }
        if due(self.addresses.deadline()) {
            self.on_asconf_timer(now);
        }
        if due(self.stream_reset.deadline()) {
            self.on_reconfig_timer(now);
        }
        if due(self.acknowledger.deadline()) {
            self.acknowledger.on_timer();
        }
        self.sender.on_timers(now);
        if self.policies.ask(Asks::QUALITY)
            && self.handshake.state().is_connected()
            && due(self.policies.quality_wakeup())
        {
            self.tick_quality(now);
        }
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            if self.paths[i].timers.is_due(PathTimer::Suspicion, now) {
                self.on_suspect(now, id);
            }
            if self.paths[i].timers.is_due(PathTimer::Reordering, now) {
                self.on_reorder_timer(now, id);
            }
            if self.paths[i].timers.is_due(PathTimer::TailProbe, now) {
                self.on_loss_timer(now, id);
            }
            if self.paths[i].timers.is_due(PathTimer::T3, now) {
                self.on_t3(now, id);
            }
            if self.paths[i].timers.is_due(PathTimer::WindowProbe, now) {
                self.on_probe_timer(now, id);
            }
            if self.paths[i].timers.is_due(PathTimer::Heartbeat, now) {
                self.on_heartbeat_timer(now, id);
            }
            if due(self.paths[i].mtu.discovery().and_then(|d| d.deadline())) {
                self.on_path_mtu_timer(now, id);
            }
            self.paths.get_for(i, Shown::Nothing).into_iter().for_each(|p| p.pace.wake(now));
        }
        self.couple_changed_paths(now);
        self.give_up_waiting(now);
        self.note_carried(now);
    }

    /// The quality estimator's own clock: publish, tell the scheduler of a new period, probe with heartbeat pairs.
    fn tick_quality(&mut self, now: Instant) {
        self.policies.begin_quality_tick(now);
        self.give_up_pairs(now);
        let mut board = self.views.board().clone();
        board.signals.resize(self.paths.len(), anabranch_policy::view::Signals::default());
        let before = board.period.serial;
        let pairs = {
            let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
            self.policies.path_quality.tick(&cx, &mut board)
        };
        board.signals.resize(self.paths.len(), anabranch_policy::view::Signals::default());
        let new_period = board.period.serial != before;
        self.views.replace_board(board, &mut self.paths);
        if new_period {
            let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
            self.policies.path_scheduler.observe(&cx, &self.sender.ahead_view(), Occasion::Period);
        }
        for id in pairs.and(anabranch_base::PathSet::first(self.paths.len())).iter() {
            self.send_heartbeat_pair(now, id);
        }
    }
}
