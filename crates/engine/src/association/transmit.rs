//! The next packet, in four steps from the first day: control, retransmission, new data, acknowledgement and repair.

use super::Association;
use crate::association::path_table::list::Shown;
use crate::association::sender::sack::gap_memory::GapScratch;
use crate::path::Path;
use crate::transmit::Transmit;
use anabranch_base::{Instant, PathId, Tsn};
use anabranch_base::{Ssn, StreamId};
use anabranch_policy::Asks;
use anabranch_policy::loss_cause::LostPackets;
use anabranch_policy::path_quality::Notice;
use anabranch_wire::{GapBlock, kind};

/// Buffers reused from packet to packet.
#[derive(Default)]
pub(crate) struct Scratch {
    pub gaps: Vec<GapBlock>,
    /// Those that will not be taken back (NR-SACK).
    pub kept: Vec<GapBlock>,
    pub duplicates: Vec<Tsn>,
    /// Extended TSNs of the packet under construction.
    pub packet: Vec<u64>,
    pub skipped: Vec<(StreamId, Ssn)>,
    /// Rank and TSN of marked chunks that do not fit the packet.
    pub aside: Vec<(u64, u64)>,
    pub copies: Vec<crate::path::flight::CopyRef>,
    /// Extended TSNs of what may have become worthless.
    pub swept: Vec<u64>,
    pub adjust: Vec<anabranch_policy::coupling::Adjust>,
    pub acks: Vec<crate::association::sender::sack::tally::PathTally>,
    pub newest: Vec<Option<u64>>,
    pub oldest: Vec<Option<u64>>,
    /// DATA packets the SACK at hand answers, as the peer counted them.
    pub packets_reported: u8,
    /// Highest TSN that the SACK at hand newly acknowledged.
    pub highest_acked: Option<u64>,
    pub flight_before: Vec<u32>,
    /// The path that the acknowledgement at hand came back over.
    pub sack_came_by: Option<PathId>,
    /// What was taken for lost since a policy was asked for a cause, and on which path.
    pub lost: Option<(PathId, LostPackets)>,
    /// When the packet at hand left its sender, by its clock, microseconds.
    pub stamp: Option<u32>,
    pub gap_ranges: GapScratch,
}

impl Scratch {
    /// Nothing in it.
    pub const EMPTY: Scratch = Scratch {
        gaps: Vec::new(),
        kept: Vec::new(),
        duplicates: Vec::new(),
        packet: Vec::new(),
        skipped: Vec::new(),
        aside: Vec::new(),
        copies: Vec::new(),
        swept: Vec::new(),
        adjust: Vec::new(),
        acks: Vec::new(),
        newest: Vec::new(),
        oldest: Vec::new(),
        packets_reported: 0,
        highest_acked: None,
        lost: None,
        flight_before: Vec::new(),
        sack_came_by: None,
        stamp: None,
        gap_ranges: GapScratch::EMPTY,
    };
}

/// Builds the next packet into `out`; false when there is none now.
pub(super) fn poll(a: &mut Association, now: Instant, out: &mut Transmit) -> bool {
    a.sender.begin_packet();
    if !a.stream_reset.is_idle() {
        a.advance_reconfig(now);
    }
    if a.transmit_control(now, out) {
        return true;
    }
    if a.handshake.state().sends_data() {
        if !a.has_data_work() {
            a.sender.end_waiting();
            a.paths.note_app_limited(now);
        } else if a.transmit_data(now, out) {
            return true;
        }
        if a.handshake.state().is_ending() {
            a.continue_shutdown(now);
        }
        if a.transmit_control(now, out) {
            return true;
        }
    }
    a.transmit_sack(now, out)
}

impl Association {
    /// Is nothing to be sent, and nothing to be noted about that? Then [`poll`] would do nothing.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.has_nothing_but_data() && !self.has_data_work() && self.paths.iter().all(|p| !has_unfilled_window(p, now))
    }

    /// Right after a packet: may nothing follow it at this moment?
    pub(crate) fn is_spent(&mut self, now: Instant) -> bool {
        let spent = self.sender.take_window_spent();
        if !self.has_nothing_but_data() || !spent {
            return self.is_idle(now);
        }
        let late = self.peer.forward_tsn && self.sender.is_sweep_due(now);
        let asks = self.policies.ask(Asks::EXTRA)
            || self.policies.ask(Asks::QUALITY)
            || self.policies.ask(Asks::OUTCOMES)
            || self.policies.ask(Asks::LOOK_AHEAD);
        let repairs = self.sender.has_repairs();
        let stalled = self.paths.iter().any(|p| p.health.stalled_since().is_some());
        let spent = !late && !asks && !repairs && !stalled && !self.sender.ahead().is_empty();
        if spent {
            self.scratch.packet.clear();
        }
        spent
    }

    /// Nothing of what comes before DATA and after it is to be sent or done.
    fn has_nothing_but_data(&self) -> bool {
        let open = self.handshake.state().sends_data() && !self.handshake.state().is_ending();
        open && self.control.is_empty() && !self.acknowledger.is_due() && self.stream_reset.is_idle()
    }
}

/// Could more have been in flight, and was that not noted yet?
fn has_unfilled_window(p: &Path, now: Instant) -> bool {
    !p.rate.is_app_limited(p.flight.bytes()) && p.has_window(now) && !p.is_busy(now)
}

/// Starts a packet on `path`.
#[inline]
pub(super) fn start_packet(a: &Association, path: PathId, out: &mut Transmit) {
    out.path = Some(path);
    (out.may_divide, out.probe, out.may_be_marked) = (false, false, false);
    if let Some(p) = a.paths.get(path.index()) {
        out.local = p.local();
        out.remote = p.remote();
    }
    out.packet.start(a.handshake.header());
}

/// Packets with these are looked at before their association is known (RFC 9653 §5.2).
const fn needs_checksum(chunk_kind: u8) -> bool {
    matches!(chunk_kind, kind::INIT | kind::COOKIE_ECHO | kind::ASCONF)
}

impl Association {
    /// Is there anything that the steps for DATA could send or settle?
    fn has_data_work(&self) -> bool {
        self.sender.has_work()
            || self.policies.ask(Asks::EXTRA)
            || self
                .paths
                .iter()
                .any(|p| p.pace.has_released() || p.health.stalled_since().is_some() || p.expiry.may_probe())
    }

    /// One packet of what there is to send beside control: what was lost, what is new, what repeats, what is to be skipped.
    #[inline(always)]
    fn transmit_data(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.decay_idle_windows(now);
        if self.transmit_probe(now, out) || self.transmit_retransmission(now, out) || self.transmit_due_copy(now, out) {
            return true;
        }
        let early = self.policies.ask(Asks::EXTRA_FIRST);
        let last = !early || self.policies.ask(Asks::EXTRA_LAST);
        if early && self.transmit_extra(now, false, out)
            || self.transmit_new(now, out)
            || last && self.transmit_extra(now, true, out)
        {
            return true;
        }
        if self.transmit_forward_tsn(now, out) {
            return true;
        }
        if self.policies.ask(Asks::QUALITY) {
            self.end_opportunity(now);
        }
        false
    }

    /// Before anything may leave on a path that was idle, its window is what it would be by now (§7.2.1).
    #[inline]
    pub(super) fn decay_idle_windows(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            if self.paths[i].may_decay(now, self.paths.mtu()) {
                let rto = self.views.rto(&self.paths, &self.policies, PathId(i as u8));
                let mtu = self.paths.mtu();
                self.paths[i].decay_while_idle(now, rto, mtu);
            }
        }
    }

    /// Counts a packet that is complete.
    #[inline]
    pub(super) fn sent_packet(&mut self, _now: Instant, path: PathId, out: &mut Transmit) {
        if self.handshake.auth().signs_packets() {
            self.authenticate(out);
        }
        self.note_size(path, out);
        if self.peer.zero_checksum && !out.packet.chunk_kinds().iter().any(|k| needs_checksum(*k)) {
            out.packet.leave_checksum_zero();
        }
        if let Some(p) = self.paths.get_for(path.index(), Shown::Nothing) {
            p.counters.packets_sent += 1;
            p.counters.bytes_sent += out.packet.len() as u64;
            self.stats.control_sent += out.packet.control_chunks() as u64;
        }
    }

    /// Nothing more leaves now: the quality estimator learns what the opportunity released on each path.
    #[inline(never)]
    pub(super) fn end_opportunity(&mut self, now: Instant) {
        if !self.paths.iter().any(|p| p.pace.has_released()) {
            return;
        }
        let cx = self.views.look(now, &mut self.paths, &self.sender, &self.policies);
        for p in self.paths.iter_unseen() {
            let bytes = p.pace.take_released();
            if bytes > 0 {
                self.policies.path_quality.observe(&cx, Notice::Released { path: p.id(), bytes });
            }
        }
    }
}
