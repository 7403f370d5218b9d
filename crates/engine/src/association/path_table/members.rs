//! Paths: coming, going, and how their health changes.

use crate::association::Association;
use crate::event::{Event, PathReason};
use crate::path::{FirstWindow, LocalId, Origin, Path, PathTimer, initial_window};
use anabranch_base::{Instant, PathId};
use anabranch_policy::view::{FrameErrors, PathState};
use std::net::SocketAddr;

impl Association {
    /// Adds a path; an inactive one makes room when the association is full.
    pub(in crate::association) fn new_path(
        &mut self,
        local: LocalId,
        remote: SocketAddr,
        origin: Origin,
    ) -> Option<PathId> {
        let window = (self.policies.window)();
        if self.paths.len() >= self.config.limits.max_paths.clamp(1, anabranch_base::PathSet::CAPACITY) {
            return self.recycle_path(local, remote, origin);
        }
        let id = PathId(self.paths.len() as u8);
        self.paths.push(Path::new(id, local, remote, origin, self.first_window(remote), window));
        self.begin_path(id);
        Some(id)
    }

    /// What a new path needs by its association's configuration only.
    fn begin_path(&mut self, id: PathId) {
        if let Some(wanted) = self.config.mtu.discovery
            && let Some(p) = self.paths.get_mut(id.index())
        {
            let (base, floor) = (self.config.mtu.packet_size, crate::AssocConfig::MIN_PACKET_SIZE);
            p.mtu.search(wanted, base, floor.min(base));
        }
        self.follow_tsns();
    }

    /// Paths keep what their policies want to be followed by its TSN.
    pub(in crate::association) fn follow_tsns(&mut self) {
        if self.policies.follow_tsns() {
            let runs_on = self.policies.t3_runs_on();
            self.paths.iter_mut().for_each(|p| p.follow(runs_on));
        }
    }

    fn first_window(&self, remote: SocketAddr) -> FirstWindow {
        self.paths.first_window(self.config.sending.initial_window, self.config.sending.initial_ssthresh, remote)
    }

    /// Reuses the number of the path that has been useless for longest. Paths that carry something stay.
    fn recycle_path(&mut self, local: LocalId, remote: SocketAddr, origin: Origin) -> Option<PathId> {
        let free = |p: &&Path| {
            matches!(p.state(), PathState::Inactive | PathState::Unconfirmed)
                && p.flight.bytes() == 0
                && matches!(p.origin(), Origin::AddedByPeer | Origin::Listed)
        };
        let id = self.paths.iter().filter(free).min_by_key(|p| p.health.last_received()).map(|p| p.id())?;
        self.paths.addresses_changed += 1;
        self.addresses.forget_path(id);
        let window = (self.policies.window)();
        self.paths[id.index()] = Path::new(id, local, remote, origin, self.first_window(remote), window);
        self.begin_path(id);
        self.views.forget(id);
        self.paths.readmit(id);
        self.paths.note_initial_window(self.config.sending.initial_window);
        Some(id)
    }

    /// Adds one of our own interfaces as a further path to `remote`. It joins by ASCONF under AUTH and is used once
    /// its nonce came back; towards a peer without these extensions nothing is sent from it (ARCHITECTURE decision 2).
    /// None when the association has no room for another path.
    pub fn add_path(&mut self, now: Instant, local: LocalId, remote: SocketAddr) -> Option<PathId> {
        for kept in self.addresses.keeps(local) {
            self.name_address(kept.local, kept.ip);
        }
        let known = self.paths.iter_mut().find(|p| p.local() == local && p.remote() == remote);
        let known = known.map(|p| (p.id(), p.access.name_again(p.origin() == Origin::AddedByPeer)));
        if let Some((id, was_down)) = known {
            self.readd_path(now, id, was_down);
            return Some(id);
        }
        let listed =
            self.handshake.state().is_connected() && self.config.addresses.listed.iter().any(|a| a.local == local);
        let id = self.new_path(local, remote, if listed { Origin::Listed } else { Origin::AddedByUs })?;
        self.events.push_back(Event::PathAdded { path: id });
        if listed {
            self.send_heartbeat(now, id);
        } else {
            self.request_add(now, id);
        }
        Some(id)
    }

    /// `size` bytes is the largest SCTP packet that `path` carries, as the user found (§7.3); never above the
    /// association's packet size, or what discovery ([`discovery`](crate::config::Mtu)) finds.
    /// Messages are cut for the smallest of all paths, so that a chunk fits any of them. What is cut already stays as it
    /// is and is left to IP to divide (§6.9), see [`Transmit::may_divide`](crate::Transmit). False when there is no such
    /// path.
    pub fn set_path_mtu(&mut self, path: PathId, size: usize) -> bool {
        let Some(p) = self.paths.get_mut(path.index()) else { return false };
        p.mtu.limit(size.max(crate::AssocConfig::MIN_PACKET_SIZE));
        self.settle_mtu();
        for p in self.paths.list.iter_mut() {
            p.congestion.widen(self.paths.mtu);
        }
        true
    }

    /// Where new data goes while one path carries all (§6.4). False when there is no such path.
    pub fn set_primary(&mut self, path: PathId) -> bool {
        let known = self.paths.choose_primary(path);
        if known {
            self.opportunity();
        }
        known
    }

    /// The driver says that an interface is gone: its paths carry nothing until [`Association::interface_up`].
    pub fn interface_down(&mut self, now: Instant, local: LocalId) {
        for i in 0..self.paths.len() {
            let p = &mut self.paths[i];
            if p.local() != local || !p.access.go_down() {
                continue;
            }
            let id = p.id();
            if p.state() != PathState::Unconfirmed {
                self.leave_path(now, id, PathState::Inactive, PathReason::InterfaceGone);
            }
        }
        self.opportunity();
    }

    /// The interface is back, perhaps with another address: its paths ask to join again.
    pub fn interface_up(&mut self, now: Instant, local: LocalId) {
        for i in 0..self.paths.len() {
            let p = self.paths.list.at_mut(i);
            if p.local() == local && p.access.come_up() {
                let id = p.id();
                // From an address the peer has not learnt nothing but the request may leave (ARCHITECTURE decision 2).
                if self.peer.asconf {
                    p.access.become_unknown();
                }
                let start = FirstWindow {
                    cwnd: initial_window(self.config.sending.initial_window, self.paths.mtu, p.remote()),
                    ssthresh: self.config.sending.initial_ssthresh,
                };
                p.reset_congestion(start, (self.policies.window)());
                if let Some(d) = p.mtu.discovery_mut() {
                    d.disconnected(true);
                }
                self.readd_path(now, id, true);
            }
        }
        self.opportunity();
    }

    /// The link layer of an interface reports on its frames, with counts that go on; the paths through it show the
    /// newest report to their policies (Xu et al. 2014 §IV.A).
    pub fn link_report(&mut self, local: LocalId, report: FrameErrors) {
        for p in self.paths.iter_mut().filter(|p| p.local() == local) {
            p.access.report(report);
        }
    }

    /// Asks the peer to learn our current address on this path, and probes it. `changed`: the address the handshake
    /// was made with may be gone.
    pub(in crate::association) fn readd_path(&mut self, now: Instant, id: PathId, changed: bool) {
        if changed {
            self.request_learning(now, id);
        } else {
            self.request_add(now, id);
        }
        if self.paths.get(id.index()).is_some_and(|p| p.access.is_known()) {
            self.probe_soon(now, id);
        }
    }

    /// A path that does not answer, or not yet, beside one that does.
    pub(in crate::association) fn is_on_trial(&self, id: PathId) -> bool {
        let in_use = |p: &Path| p.is_in_use();
        self.handshake.state().is_connected()
            && self.paths.get(id.index()).is_some_and(|p| p.state() != PathState::Active)
            && self.paths.iter().any(|p| p.id() != id && in_use(p))
    }

    /// A probe of a path on trial was answered as one that belongs to no association. Whoever sent that knows nothing
    /// of this address: a peer that says it learnt ours and did not (usrsctp takes the wildcard of RFC 5061 §4.2.1 for
    /// an address unless it names others), one to which our address has changed, or a stranger at an address that the
    /// peer lists. The association lives on its other paths; were the peer really gone, those would say so.
    pub(in crate::association) fn unknown_there(&mut self, id: PathId) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        tracing::debug!(path = ?id, remote = %p.remote(), "this path is not known at its other end");
        if p.origin() == Origin::AddedByUs && p.state() == PathState::Unconfirmed {
            p.access.become_unknown();
            p.probing.withdraw();
            p.timers.stop(PathTimer::Heartbeat);
        }
        if p.origin() == Origin::Listed && p.state() == PathState::Unconfirmed {
            // It is free for its owner (RFC 5062 §2).
            p.access.disown();
            p.probing.withdraw();
            p.timers.stop(PathTimer::Heartbeat);
            self.paths.addresses_changed += 1;
        }
    }

    // ---- state

    pub(in crate::association) fn set_path_state(
        &mut self,
        now: Instant,
        id: PathId,
        to: PathState,
        reason: PathReason,
    ) {
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        if p.state() == to {
            return;
        }
        let from = p.enter(to);
        self.paths.uncoupled = true;
        self.note_connectivity(now, id);
        let (from, to) = (self.config.failure.shown(from), self.config.failure.shown(to));
        if from == to {
            return;
        }
        self.events.push_back(Event::PathChanged { path: id, from, to, reason });
    }

    /// Unambiguous news from a path: a chunk with a single copy acknowledged, or a HEARTBEAT answered.
    pub(in crate::association) fn path_answered(&mut self, now: Instant, id: PathId) {
        self.path_heard(now, id, now);
    }

    /// Such news, of what the peer had from the path at `heard`.
    pub(in crate::association) fn path_heard(&mut self, now: Instant, id: PathId, heard: Instant) {
        let Some(p) = self.paths.list.get_mut(id.index()) else { return };
        p.health.answer(heard);
        p.timers.stop(PathTimer::Suspicion);
        if p.state() != PathState::Active {
            self.path_is_back(now, id);
        }
    }

    /// A path that was not in use, or in doubt, answers.
    #[inline(never)]
    fn path_is_back(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.list.get_mut(id.index()) else { return };
        let removed = p.state() == PathState::Inactive && !p.access.is_known();
        if p.is_confirmed() && !removed {
            if matches!(p.state(), PathState::PotentiallyFailed | PathState::Inactive) {
                // A failed path starts again from a small window (RFC 7829 §3.2: one packet or the initial window).
                let first = initial_window(self.config.sending.initial_window, self.paths.mtu, p.remote());
                p.congestion.narrow(first, self.paths.mtu);
                p.expiry.end_backoff();
                self.send_train(now, id);
            }
            if self.policies.timer.resumes()
                && let Some(p) = self.paths.get_mut(id.index())
            {
                p.expiry.come_back();
            }
            self.set_path_state(now, id, PathState::Active, PathReason::Answered);
            self.schedule_heartbeat(now, id);
        }
    }

    /// Path.Max.Retrans of a path.
    pub(in crate::association) fn max_retrans_of(&self, id: PathId) -> u16 {
        let own = self.paths.get(id.index()).and_then(|p| p.health.limits().max_retrans);
        own.unwrap_or(self.config.failure.max_path_retrans)
    }

    /// One more error on a path; its policy says what that means.
    pub(in crate::association) fn path_error(&mut self, now: Instant, id: PathId, reason: PathReason) {
        let max = self.max_retrans_of(id);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        let (errors, state) = (p.health.fail(), p.state());
        if errors >= 2 {
            // Our address may have changed behind a NAT: ask to be learnt again.
            self.request_add(now, id);
        }
        if state == PathState::Unconfirmed {
            return;
        }
        let Some(p) = self.paths.get(id.index()) else { return };
        let signals = self.views.signals(id);
        let to = self.policies.path_state.after_timeout(&p.view(self.paths.mtu, signals), max);
        let to = p.health.judge(state, to);
        // With nowhere else to go a failure that is only likely must not keep data back (RFC 7829 §3.1).
        let elsewhere = |o: &Path| o.id() != id && o.is_confirmed();
        let doubtful = match to {
            PathState::Suspected => true,
            PathState::PotentiallyFailed => !self.policies.path_state.doubts_the_only_path(),
            _ => false,
        };
        let alone = doubtful && !self.paths.iter().any(elsewhere);
        // Without congestion control silence holds nothing back.
        let silent = matches!(to, PathState::Suspected | PathState::PotentiallyFailed);
        let stays = alone || silent && !p.congestion.is_controlled();
        if to != PathState::Active && to != p.state() && !stays {
            self.leave_path(now, id, to, reason);
        }
        if id == self.paths.primary {
            self.switch_primary(errors);
        }
    }

    /// The primary path has this many errors: perhaps the one that is used in its place takes its role (RFC 7829 §5).
    fn switch_primary(&mut self, errors: u16) {
        let Some(limit) = self.config.failure.primary_switchover else { return };
        let max = self.max_retrans_of(self.paths.primary);
        let own = self.paths.get(self.paths.primary.index()).and_then(|p| p.health.limits().potentially_failed);
        let lowest = own.map_or(self.policies.path_state.leaves_above(max), |most| most.min(max));
        if errors <= limit.max(lowest) {
            return;
        }
        let Some(path) = self.paths.after_primary() else { return };
        self.set_primary(path);
        self.events.push_back(Event::PrimarySwitched { path });
    }

    /// One of its addresses is no longer one: nothing leaves by it, and late answers do not bring it back.
    pub(in crate::association) fn remove_path(&mut self, now: Instant, id: PathId) {
        self.leave_path(now, id, PathState::Inactive, PathReason::Removed);
        let Some(p) = self.paths.get_mut(id.index()) else { return };
        p.access.remove();
        p.timers.stop(PathTimer::Heartbeat);
        p.probing.withdraw_all();
        self.addresses.forget_path(id);
        // Timers repeat what the peer needs, by another path.
        let waiting = self.control.forget_path(id);
        if waiting {
            self.repeat_request(now);
        }
    }

    /// The peer knows both addresses. Those of a path that was removed have to be confirmed again, for another host may
    /// have them by now (RFC 5061 §5.3 F14).
    pub(in crate::association) fn know_path(&mut self, id: PathId) {
        let Some(p) = self.paths.list.get_mut(id.index()) else { return };
        if !p.access.is_known() && p.state() == PathState::Inactive {
            p.doubt_owner();
            self.paths.uncoupled = true;
        }
        p.access.restore();
    }

    /// What left at `sent` is not answered: one more error in a row of the association; too many end it (§8.1).
    pub(in crate::association) fn association_error(&mut self, now: Instant, sent: Instant) {
        if self.paths.errors.note(now, sent, self.config.timers.rto_initial)
            && self.paths.errors.count() > self.config.failure.max_association_retrans
            && self.peer_deadline().is_none()
        {
            self.give_up_on_peer(now, crate::event::CloseReason::PeerGone);
        }
    }

    /// When a peer that owes an answer is given up, where that is a matter of time.
    pub(in crate::association) fn peer_deadline(&self) -> Option<Instant> {
        Some(self.paths.silent_since()? + self.config.failure.peer_timeout?)
    }
}
