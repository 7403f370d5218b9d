//! HEARTBEATs (§8.3): when they leave, what an answer or its absence says.

use super::PathTable;
use super::list::Shown;
use crate::association::Association;
use crate::association::addresses::asconf::Addresses;
use crate::association::control::What;
use crate::event::{CloseReason, PathReason};
use crate::path::probing::HeartbeatAnswer;
use crate::path::timers::TICK;
use crate::path::{HeartbeatSetting, Origin, Path, PathTimer, PendingHeartbeat};
use anabranch_base::{Duration, Instant, PathId};
use anabranch_policy::Asks;
use anabranch_policy::path_quality::Notice;
use anabranch_policy::view::PathState;

/// Floor of the time a HEARTBEAT may take: T3's own floor may be a second, far too slow to confirm a path.
const MIN_PROBE: Duration = Duration::from_millis(100);

impl Association {
    /// How often `path` is probed while it is idle. False when there is no such path.
    pub fn set_heartbeat(&mut self, now: Instant, path: PathId, setting: HeartbeatSetting) -> bool {
        let Some(p) = self.paths.get_mut(path.index()) else { return false };
        p.probing.set(setting);
        // An answer that is awaited decides when the next one leaves.
        let off = match setting {
            HeartbeatSetting::Configured => self.config.timers.heartbeat_interval.is_zero(),
            HeartbeatSetting::Every(_) => false,
            HeartbeatSetting::Off => true,
        };
        if p.state() != PathState::Unconfirmed && (!p.probing.awaits_answer() || off) {
            p.probing.withdraw();
            if self.handshake.state().is_connected() {
                self.schedule_heartbeat(now, path);
            }
        }
        true
    }

    /// Sends a HEARTBEAT on `path` now, whatever its setting. False when it cannot leave there.
    pub fn request_heartbeat(&mut self, now: Instant, path: PathId) -> bool {
        let able = |p: &Path| p.access.is_open();
        let can = self.handshake.state().is_connected() && self.paths.get(path.index()).is_some_and(able);
        if can {
            self.send_heartbeat(now, path);
        }
        can
    }

    /// The handshake's path is in use: its next HEARTBEAT is due when it has been idle, or at once where every path has
    /// to answer one before data leave ([`crate::AssocConfig::confirm_first`]).
    pub(in crate::association) fn begin_confirming(&mut self, now: Instant, id: PathId) {
        self.paths.confirming = self.config.compatibility.confirm_first;
        if self.paths.confirming {
            self.send_heartbeat(now, id);
        } else {
            self.schedule_heartbeat(now, id);
        }
    }

    /// The next HEARTBEAT leaves as soon as it can, if the path is probed at all.
    pub(in crate::association) fn probe_soon(&mut self, now: Instant, id: PathId) {
        let probed = |p: &Path| {
            p.state() == PathState::Unconfirmed || p.probing.interval(self.config.timers.heartbeat_interval).is_some()
        };
        if self.paths.get(id.index()).is_some_and(probed) {
            self.paths[id.index()].timers.plan_heartbeat(Some(now));
        }
    }

    /// Sets the next HEARTBEAT of a path.
    pub(in crate::association) fn schedule_heartbeat(&mut self, now: Instant, id: PathId) {
        let rto = self.probe_timeout(id);
        let jitter = self.paths.nonces.jitter(rto.as_nanos().max(1));
        let delay = self.heartbeat_delay(id, rto);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        // Half an RTO of jitter to either side (§8.3).
        p.timers.plan_heartbeat(delay.map(|d| now + d + Duration::from_nanos(jitter) - rto / 2));
    }

    /// From one HEARTBEAT to the next, as the policy of path states has it; none without any.
    fn heartbeat_delay(&self, id: PathId, rto: Duration) -> Option<Duration> {
        let p = self.paths.get(id.index())?;
        if p.state() == PathState::Unconfirmed {
            return Some(rto);
        }
        let interval = p.probing.interval(self.config.timers.heartbeat_interval)?;
        self.policies.path_state.heartbeat(&p.view(self.paths.mtu, self.views.signals(id)), rto, interval)
    }

    /// How long a probe may take: the path's own round trips, not the floor of T3, doubled by each error; but a
    /// policy that looks after a lost path more often is asked.
    pub(in crate::association) fn probe_timeout(&self, id: PathId) -> Duration {
        let Some(p) = self.paths.get(id.index()) else { return self.config.timers.rto_initial };
        let base = if p.rtt.srtt().is_zero() {
            self.config.timers.rto_initial
        } else {
            (p.rtt.srtt() + p.rtt.rttvar() * 4).max(MIN_PROBE)
        };
        let doubled = self.config.timers.doubled(base, p.health.errors().min(10).into());
        if matches!(p.state(), PathState::Active | PathState::Unconfirmed) {
            return doubled;
        }
        let revisit = self.heartbeat_delay(id, doubled);
        revisit.map_or(doubled, |r| doubled.min(r.max(base)))
    }

    pub(in crate::association) fn on_heartbeat_timer(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.timers.stop(PathTimer::Heartbeat);
        if !self.handshake.state().is_connected() || !p.access.is_up() {
            return;
        }
        let lost = p.probing.give_up(now);
        if let Some(h) = lost {
            let waited = h.deadline.since(h.sent_at);
            self.heartbeat_lost(now, id, &h);
            if self.paths.get(id.index()).is_some_and(|p| p.probing.awaits_answer()) {
                return;
            }
            let Some(delay) = self.heartbeat_delay(id, waited) else { return };
            // A path that is only idle waits for its turn; one in doubt is probed again at once (RFC 7829 §3.2).
            let active = self.paths.get(id.index()).is_some_and(|p| p.state() == PathState::Active);
            // Nor does one wait beyond the time at which the peer is given up.
            let in_time = self.peer_deadline().is_none_or(|at| h.sent_at + delay < at);
            if active && in_time && !self.paths.confirming && h.sent_at + delay > now {
                let jitter = Duration::from_nanos(self.paths.nonces.jitter(waited.as_nanos().max(1)));
                if let Some(p) = self.paths.get_mut(id.index()) {
                    p.timers.plan_heartbeat(Some((h.sent_at + delay + jitter - waited / 2).max(now)));
                }
                return;
            }
        }
        let Some(p) = self.paths.get(id.index()) else { return };
        if !p.access.is_known() {
            return;
        }
        if p.state() == PathState::Unconfirmed
            && p.origin() == Origin::AddedByPeer
            && p.health.errors() > p.health.limits().max_retrans(self.config.failure.max_path_retrans)
        {
            // An address that never answered may be a bystander's: it hears no more of us unless it is added again. It
            // was the last hope where nothing else is confirmed or still being asked.
            let hope = |o: &Path| o.id() != id && (o.timers.runs(PathTimer::Heartbeat) || o.probing.awaits_answer());
            let open = |o: &Path| o.access.is_known() && (o.state() != PathState::Unconfirmed || hope(o));
            if !self.paths.iter().any(open) {
                self.give_up_on_peer(now, CloseReason::PeerGone);
            }
            return;
        }
        let pause = if lost.is_some() { self.probe_pause(id) } else { Duration::ZERO };
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        if !pause.is_zero() {
            p.timers.plan_heartbeat(Some(now + pause));
            return;
        }
        let Some(p) = self.paths.get(id.index()) else { return };
        // Data that give an RTT make a heartbeat needless; a path that carries only what is sent again is idle (§8.3).
        let configured = self.config.timers.heartbeat_interval;
        let interval = p.probing.interval(configured).unwrap_or(configured);
        let recent = p.rtt.sampled_at().is_some_and(|t| now.since(t) < interval);
        if p.state() == PathState::Active && recent && p.flight.bytes() > 0 {
            self.schedule_heartbeat(now, id);
            return;
        }
        self.send_heartbeat(now, id);
    }

    /// A HEARTBEAT came by a path that we do not use: it works one way at least, so ours need not wait until the back-off
    /// of earlier ones is over. One at a time, and none sooner than it could have been answered.
    pub(in crate::association) fn ask_back(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get(id.index()) else { return };
        let doubted = p.state() != PathState::Active && self.policies.ask(Asks::SUSPECT);
        let out_of_use = (doubted || p.state() == PathState::Unconfirmed) && p.access.is_open();
        let least = p.rtt.srtt().max(MIN_PROBE);
        let waits = p.probing.asked_at().is_some_and(|t| now.since(t) < least)
            || p.timers.deadline(PathTimer::Heartbeat) == Some(now);
        if self.handshake.state().is_connected() && out_of_use && !waits {
            self.send_heartbeat(now, id);
        }
    }

    fn heartbeat_lost(&mut self, now: Instant, id: PathId, lost: &PendingHeartbeat) {
        let waited = lost.deadline.since(lost.sent_at);
        // Against the association count the probes of paths in use (§8.1), so never those of unconfirmed ones (§5.4);
        // and only patient ones: a blackout of seconds must not end what a timer of §6.3 would have kept. While T3 runs
        // it counts the same silence, and more probes must not make that one end sooner.
        let timed = self.paths.get(id.index()).is_some_and(|p| p.timers.runs(PathTimer::T3));
        let counts = self.paths.usable().has(id) && self.was_patient(now, id, waited) && !timed;
        if let Some(p) = self.paths.get_mut(id.index()) {
            p.health.lose_answer();
            // Data went by this path since, and it answered: it is not silent.
            let since = |t: Option<Instant>| t > Some(lost.sent_at);
            if since(p.pace.last_data_sent()) && since(p.health.last_heard()) {
                return;
            }
            // While a path is only suspected its T3 decides (see `on_suspect`).
            if p.state() == PathState::Suspected && p.timers.runs(PathTimer::Suspicion) {
                return;
            }
        }
        // While data of a path in use are on their way its T3 counts the same silence.
        let in_use = self.policies.ask(Asks::SUSPECT)
            && self.paths.get(id.index()).is_some_and(|p| p.state() == PathState::Active);
        if self.probe_confirms_silence(now, id) || timed && in_use {
            return;
        }
        self.path_error(now, id, PathReason::HeartbeatLost);
        if counts {
            self.association_error(now, lost.sent_at);
        }
    }

    /// Has a probe that was lost waited as long as a timer of §6.3 would have? Where a policy looks after a silent path
    /// more often, so many probes together count as one.
    fn was_patient(&self, now: Instant, id: PathId, waited: Duration) -> bool {
        let least = self.config.timers.rto_initial;
        let doubled = Duration::from_nanos(least.as_nanos().saturating_mul(1 << self.paths.errors.count().min(16)));
        let silent = |t: Option<Instant>, d: Duration| t.is_none_or(|t| now.since(t) >= d);
        let heard = self.paths.get(id.index()).and_then(|p| p.health.last_heard());
        waited >= least
            || silent(heard, least)
                && silent(self.paths.errors.last(), doubled.min(self.config.timers.rto_max).max(least))
    }

    pub(in crate::association) fn send_heartbeat(&mut self, now: Instant, id: PathId) {
        let nonce = self.paths.nonces.next();
        let timeout = self.probe_timeout(id);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.probing.ask(PendingHeartbeat { nonce, sent_at: now, deadline: now + timeout });
        p.timers.plan_heartbeat(Some(now + timeout));
        p.counters.heartbeats_sent += 1;
        self.control.push(id, What::Heartbeat(nonce));
    }

    pub(in crate::association) fn on_heartbeat_ack(&mut self, now: Instant, info: &[u8]) {
        let Some((&path, nonce)) = info.split_first() else { return };
        let Ok(nonce) = nonce.try_into().map(u64::from_be_bytes) else { return };
        let id = PathId(path);
        let unmeasured = self.paths.get(id.index()).is_some_and(|p| p.rtt.is_unmeasured());
        self.on_answer_of(now, id, nonce);
        if unmeasured && self.policies.timer.early() {
            self.shorten_first_t3(now, id);
        }
    }

    /// The first round trip of a path is known: what is in flight there was timed without it.
    fn shorten_first_t3(&mut self, now: Instant, id: PathId) {
        let rto = self.views.rto(&self.paths, &self.policies, id);
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        let Some(probe) = cx.path(id).map(|v| self.policies.tail_probe(&cx, v)) else { return };
        let Some(p) = self.paths.get_mut(id.index()).filter(|p| !p.rtt.is_unmeasured()) else { return };
        if let Some(oldest) = p.flight.oldest_sent().filter(|_| p.timers.runs(PathTimer::T3)) {
            p.timers.shorten_t3(Some((oldest + rto).max(now + TICK)), false);
            p.timers.plan_tail_probe(probe);
        }
    }

    fn on_answer_of(&mut self, now: Instant, id: PathId, nonce: u64) {
        if self.config.mtu.discovery.is_some() && self.probe_answered(now, id, nonce) {
            return;
        }
        if self.train_answered(now, id, nonce) {
            return;
        }
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        if let Some(both) = p.pair_answered(now, nonce) {
            if both {
                self.note_pair(now, id, 2);
            }
            self.path_answered(now, id);
            return;
        }
        let Some(HeartbeatAnswer { sent_at, awaits, .. }) = p.heartbeat_answered(now, nonce) else { return };
        if let Some(d) = p.mtu.discovery_mut() {
            d.small_arrived(sent_at);
            self.look_for_black_holes(now);
        }
        self.note_resumed(now, id, sent_at, true);
        let Some(p) = self.paths.list.get_mut(id.index()) else { return };
        p.expiry.end_backoff();
        self.paths.errors.clear();
        if p.state() == PathState::Unconfirmed {
            self.confirm(now, id);
        }
        self.path_answered(now, id);
        self.use_resumed_paths(now);
        match (awaits, self.paths.get_mut(id.index())) {
            (Some(deadline), Some(p)) => p.timers.plan_heartbeat(Some(deadline)),
            _ => self.schedule_heartbeat(now, id),
        }
        self.paths.goes_on_confirming(&self.addresses, self.config.failure.max_path_retrans);
    }

    /// The path leads to the peer and back: data may use it.
    pub(in crate::association) fn confirm(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.health.confirm(now);
        self.settle_standby(id);
        self.set_path_state(now, id, PathState::Active, PathReason::Confirmed);
        self.send_train(now, id);
    }

    /// Two HEARTBEATs back to back, asked for by the quality estimator.
    pub(in crate::association) fn send_heartbeat_pair(&mut self, now: Instant, id: PathId) {
        let nonces = [self.paths.nonces.next(), self.paths.nonces.next()];
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        if p.state() == PathState::Unconfirmed || !p.access.is_up() {
            return;
        }
        let former = p.probing.ask_pair(now, nonces);
        p.counters.heartbeats_sent += 2;
        for n in nonces {
            self.control.push(id, What::Heartbeat(n));
        }
        if let Some(answers) = former {
            self.note_pair(now, id, answers);
        }
    }

    /// Pairs whose answers are overdue are given up.
    pub(in crate::association) fn give_up_pairs(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            let id = PathId(i as u8);
            if !self.paths.get(i).is_some_and(|p| p.probing.awaits_pair()) {
                continue;
            }
            let rto = self.views.rto(&self.paths, &self.policies, id);
            let over = self.paths.get_for(i, Shown::Nothing).and_then(|p| p.probing.give_up_pair(now, rto));
            if let Some(answers) = over {
                self.note_pair(now, id, answers);
            }
        }
    }

    fn note_pair(&mut self, now: Instant, path: PathId, answers: u8) {
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        self.policies.path_quality.observe(&cx, Notice::Reference { path, answers });
    }
}

impl PathTable {
    /// Does new data still wait for a path to be confirmed? Not for one that the peer will never know, and for none that
    /// did not answer as often as makes a path fail.
    pub(in crate::association) fn goes_on_confirming(&mut self, addresses: &Addresses, max_retrans: u16) -> bool {
        let may_answer = |p: &Path| {
            let fails = p.health.errors() > p.health.limits().max_retrans(max_retrans);
            let given_up = fails || p.state() == PathState::Inactive;
            !given_up && p.access.is_up() && (p.access.is_known() || addresses.wants(p.id()))
        };
        let silent = |p: &Path| p.counters.heartbeats_answered == 0;
        self.confirming = self.confirming && self.iter().any(|p| silent(p) && may_answer(p));
        self.confirming
    }
}
