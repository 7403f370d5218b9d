//! The peer's receive window, and what we do while it is closed (§6.1 A).

use super::Sender;
use crate::association::Association;
use crate::association::policies::set::Policies;
use crate::path::PathTimer;
use crate::path::flight::CopyRef;
use crate::repair::TransmissionCause;
use anabranch_base::{Instant, PathId};

/// One chunk that the window has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    Idle,
    At(Instant),
    /// It is time; the chunk leaves with the next opportunity.
    Due,
}

/// What the peer announced, and the probing of a closed window.
#[derive(Debug, Default)]
pub(crate) struct PeerWindow {
    /// Newest a_rwnd, bytes.
    a_rwnd: u64,
    /// Since when it has been too small for a full packet.
    closed_since: Option<Instant>,
    probe: Probe,
    backoff: u8,
    /// Newest SACK.
    heard: Option<Instant>,
}

/// Probes are at most this many doublings apart; RTO.Max caps the interval anyway.
const MAX_BACKOFF: u8 = 16;

impl PeerWindow {
    /// The window of the handshake.
    pub fn starts_at(&mut self, a_rwnd: u32) {
        self.a_rwnd = u64::from(a_rwnd);
    }
    /// When to look again.
    pub fn deadline(&self) -> Option<Instant> {
        match self.probe {
            Probe::At(t) => Some(t),
            Probe::Idle | Probe::Due => None,
        }
    }
    /// The deadline has passed.
    pub fn allow_probe(&mut self) {
        self.probe = Probe::Due;
    }
}

impl Sender {
    /// Payload bytes the peer can still take.
    #[inline]
    pub(in crate::association) fn peer_rwnd(&self, policies: &Policies) -> u64 {
        let held = if self.holds_place(policies) { self.board.marked_bytes() } else { 0 };
        let overhead = self.peer_chunk_overhead * (self.board.outstanding_chunks() + 1);
        self.peer_window.a_rwnd.saturating_sub(self.board.outstanding_bytes() + held + overhead)
    }

    /// Does what was given as lost keep its place in the windows until it was sent again?
    #[inline]
    pub(in crate::association) fn holds_place(&self, policies: &Policies) -> bool {
        self.board.has_marked() && policies.recovery.holds_place()
    }

    /// Was the window that the peer announced last too small for so many bytes?
    pub(in crate::association) fn peer_has_no_room_for(&self, len: u64) -> bool {
        self.peer_window.a_rwnd < len
    }

    /// Does the peer have no room for a packet of so many bytes, so that it may drop what comes?
    pub(in crate::association) fn peer_is_full(&self, packet: u64) -> bool {
        self.peer_window.closed_since.is_some() || self.peer_has_no_room_for(packet)
    }

    /// Neither outstanding nor waiting to be sent again.
    pub(in crate::association) fn has_nothing_in_flight(&self) -> bool {
        self.board.outstanding_bytes() == 0 && !self.board.has_marked()
    }
}

impl Association {
    /// How many chunks of the look-ahead may leave now, the first of which has `len` bytes; none when the window is
    /// closed. What is lower than a TSN that was sent is a hole for the peer and may always leave, as a retransmission
    /// may: the peer keeps room for it, and nothing above it will ever be read before it. A probe of a closed window is
    /// the first of all, which the peer takes rather than any other. `room` is what the peer can still take.
    pub(in crate::association) fn chunks_for_window(&mut self, now: Instant, len: u64, room: u64) -> Option<usize> {
        if len > room {
            let holes = self.sender.board.ahead_holes();
            if holes > 0 {
                return Some(holes);
            }
        }
        let shown = if len > room { 1 } else { self.sender.board.ahead().len() };
        self.peer_takes(now, len, room).then_some(shown)
    }

    /// A chunk of `len` may leave: the window has room, or nothing is in flight and it is time to probe a closed one.
    /// The first probe leaves one RTO after the window was found closed, the next ones less and less often.
    fn peer_takes(&mut self, now: Instant, len: u64, room: u64) -> bool {
        if self.would_dribble(room) {
            return false;
        }
        if len <= room {
            self.sender.peer_window.probe = Probe::Idle;
            self.sender.peer_window.backoff = 0;
            return true;
        }
        if !self.sender.has_nothing_in_flight() {
            return false;
        }
        self.config.compatibility.probe_at_once || self.probes_now(now)
    }

    #[inline(never)]
    fn probes_now(&mut self, now: Instant) -> bool {
        match self.sender.peer_window.probe {
            Probe::Due => {
                self.sender.peer_window.probe = Probe::Idle;
                self.sender.peer_window.backoff = (self.sender.peer_window.backoff + 1).min(MAX_BACKOFF);
                true
            }
            Probe::At(_) => false,
            Probe::Idle => {
                let rto =
                    self.views.rto(&self.paths, &self.policies, self.paths.usable().iter().next().unwrap_or(PathId(0)));
                self.sender.peer_window.probe =
                    Probe::At(now + self.config.timers.doubled(rto, self.sender.peer_window.backoff.into()));
                false
            }
        }
    }

    /// A packet that begins now could not be filled for lack of window, although there is enough to fill it with, and
    /// an answer is on its way that may open the window (§6.1 A, silly window avoidance).
    fn would_dribble(&self, room: u64) -> bool {
        room < self.paths.mtu()
            && self.scratch.packet.is_empty()
            && self.sender.queue.bytes() + self.sender.board.ahead_bytes() > room
            && !self.sender.has_nothing_in_flight()
    }

    /// A SACK announces `a_rwnd`; `progress`: it acknowledged something.
    pub(in crate::association) fn on_peer_window(&mut self, now: Instant, a_rwnd: u32, progress: bool) {
        let w = &mut self.sender.peer_window;
        w.a_rwnd = u64::from(a_rwnd);
        w.heard = Some(now);
        if progress && a_rwnd > 0 {
            w.backoff = 0;
        }
        if w.a_rwnd < self.paths.mtu() {
            w.closed_since.get_or_insert(now);
            // An answered probe is no sign of a dead peer (§6.1 A).
            self.paths.clear_peer_errors();
        } else if let Some(since) = w.closed_since.take() {
            w.probe = Probe::Idle;
            w.backoff = 0;
            if self.config.compatibility.resend_probes {
                self.resend_probes(now, since);
            }
        }
    }

    /// The peer answers, it only has no room: what T3 finds unacknowledged then is no error of the path.
    pub(in crate::association) fn probing_in_vain(&self, path: PathId) -> bool {
        let w = &self.sender.peer_window;
        let sent = self.paths.get(path.index()).and_then(|p| p.pace.last_data_sent());
        w.closed_since.is_some() && w.heard >= sent
    }

    /// The window is open again: what left while it was closed was dropped there most likely, and its timer may have
    /// been backed off to a minute. It is sent again at once; no congestion, so the windows stay.
    #[cold]
    fn resend_probes(&mut self, now: Instant, since: Instant) {
        for i in 0..self.paths.len() {
            let path = PathId(i as u8);
            let mut list = core::mem::take(&mut self.scratch.copies);
            list.clear();
            if let Some(p) = self.paths.get_mut(i) {
                p.expiry.end_backoff();
                list.extend(p.flight.copies_since(since));
            }
            for c in &list {
                self.copy_lost(now, path, &CopyRef { ..*c }, TransmissionCause::Probe);
            }
            list.clear();
            self.scratch.copies = list;
            let watches = self.sender.board.reneged() > 0;
            if let Some(p) = self.paths.get_mut(i).filter(|p| p.flight.bytes() == 0 && !watches) {
                p.timers.stop(PathTimer::T3);
            }
        }
    }
}
