//! All timers of an association: when the next fires, and what happens then.

use super::{Association, Phase, TimerReason};
use crate::event::CloseReason;
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::path_scheduler::Occasion;
use anabranch_policy::view::QueueView;

/// Least time between two ticks of the quality estimator.
const QUALITY_TICK: Duration = Duration::from_millis(1);

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
        offer(self.asconf.deadline(), TimerReason::Asconf);
        if !self.reconfig.is_nothing() {
            offer(self.reconfig.deadline(), TimerReason::Reconfig);
        }
        offer(self.acknowledger.deadline(), TimerReason::Sack);
        offer(self.forward_timer, TimerReason::ForwardTsn);
        offer(self.scheduler_wakeup, TimerReason::Policy);
        offer(self.peer_window.deadline(), TimerReason::WindowProbe);
        offer(self.redundancy_wakeup, TimerReason::Policy);
        if self.asks.quality && self.state.is_connected() {
            offer(self.quality_wakeup(), TimerReason::Policy);
        }
        let waiting = !self.queue.is_empty() || !self.board.ahead().is_empty() || self.board.has_marked();
        for p in self.paths.iter() {
            offer(p.t3, TimerReason::Retransmission(p.id));
            offer(p.loss_timer, TimerReason::Loss(p.id));
            offer(p.probe_timer, TimerReason::Loss(p.id));
            offer(p.reorder_timer, TimerReason::Loss(p.id));
            offer(p.suspect_timer, TimerReason::Suspect(p.id));
            offer(p.heartbeat_timer, TimerReason::Heartbeat(p.id));
            offer(p.discovery.as_ref().and_then(|d| d.deadline()), TimerReason::PathMtu(p.id));
            if p.pace_pending && waiting && p.next_paced > Instant::ZERO && p.flight.bytes() < p.cwnd {
                offer(Some(p.next_paced), TimerReason::Policy);
            }
        }
    }

    /// Fires what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.phase() == Phase::Closed {
            return;
        }
        let due = |t: Option<Instant>| t.is_some_and(|t| t <= now);
        self.touch_views();
        self.user_sends = false;
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
        if due(self.asconf.deadline()) {
            self.on_asconf_timer(now);
        }
        if due(self.reconfig.deadline()) {
            self.on_reconfig_timer(now);
        }
        if due(self.acknowledger.deadline()) {
            self.acknowledger.on_timer(!self.config.quirks.timer_counts_none);
        }
        if due(self.forward_timer) {
            self.forward_timer = None;
            self.forward_due = true;
        }
        if due(self.peer_window.deadline()) {
            self.peer_window.allow_probe();
        }
        if due(self.scheduler_wakeup) {
            self.scheduler_wakeup = None;
        }
        if due(self.redundancy_wakeup) {
            self.redundancy_wakeup = None;
        }
        if self.asks.quality && self.state.is_connected() && due(self.quality_wakeup()) {
            self.tick_quality(now);
        }
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            if due(self.paths[i].suspect_timer) {
                self.on_suspect(now, id);
            }
            if due(self.paths[i].reorder_timer) {
                self.on_reorder_timer(now, id);
            }
            if due(self.paths[i].loss_timer) {
                self.on_loss_timer(now, id);
            }
            if due(self.paths[i].t3) {
                self.on_t3(now, id);
            }
            if due(self.paths[i].probe_timer) {
                self.on_probe_timer(now, id);
            }
            if due(self.paths[i].heartbeat_timer) {
                self.on_heartbeat_timer(now, id);
            }
            if due(self.paths[i].discovery.as_ref().and_then(|d| d.deadline())) {
                self.on_path_mtu_timer(now, id);
            }
            if self.paths[i].next_paced <= now {
                self.paths[i].pace_pending = false;
            }
        }
        self.couple_changed_paths(now);
        self.note_carried(now);
    }

    /// When the quality estimator ticks next. One that always asks for the past must not stop the time.
    fn quality_wakeup(&self) -> Option<Instant> {
        self.policies.path_quality.wakeup().map(|t| t.max(self.quality_floor))
    }

    /// The quality estimator's own clock: publish, tell the scheduler of a new period, probe with heartbeat pairs.
    fn tick_quality(&mut self, now: Instant) {
        self.quality_floor = now + QUALITY_TICK;
        self.refresh_views();
        let facts = self.facts(now);
        let mut board = self.views.board.clone();
        board.signals.resize(self.paths.len(), anabranch_policy::view::Signals::default());
        let before = board.period.serial;
        let pairs = {
            let cx = facts.view(&self.views);
            self.policies.path_quality.tick(&cx, &mut board)
        };
        board.signals.resize(self.paths.len(), anabranch_policy::view::Signals::default());
        let new_period = board.period.serial != before;
        self.views.board = board;
        self.refresh_views();
        if new_period {
            let facts = self.facts(now);
            let cx = facts.view(&self.views);
            self.policies.path_scheduler.observe(&cx, &QueueView { chunks: self.board.ahead() }, Occasion::Period);
        }
        for id in pairs.and(anabranch_base::PathSet::first(self.paths.len())).iter() {
            self.send_heartbeat_pair(now, id);
        }
    }
}
