//! The congestion window of a path and what governs it (RFC 9260 §7).

use super::FirstWindow;
use anabranch_base::{Duration, Instant, PathId, Ppm, Rate};
use anabranch_policy::loss_cause::{Cause, LossEvent};
use anabranch_policy::recovery::{Loss, Progress};
use anabranch_policy::view::{AssocView, PathView};
use anabranch_policy::window::{AckOnPath, UNLIMITED, Window, WindowChange, WindowState};

/// The window, its threshold, the episode of losses it may be in, and what may leave at once.
pub(crate) struct Congestion {
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    /// Growth that coupling granted only in part, in millionths of a byte.
    growth_carry: u64,
    window: Box<dyn Window>,
    reference_rtt: Duration,
    /// Fast recovery ends when nothing sent at or before this serial is in flight.
    recovery_exit: Option<u64>,
    /// Highest TSN sent when the last recovery episode began.
    recover_tsn: u64,
    /// One packet may ignore the window (RFC 9260 §7.2.4 step 3, §6.3.3 E3).
    may_exceed_cwnd_once: bool,
    /// Packets that may still leave in the opportunity at hand.
    burst_left: u16,
    /// Until when the window's decay while idle is accounted for.
    decayed_until: Instant,
}

/// What a window makes of an acknowledgement, before coupling has its say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proposal {
    change: WindowChange,
    /// A window in recovery does not grow.
    recovering: bool,
}

impl Proposal {
    /// Bytes by which it would grow.
    pub fn grow(&self) -> u64 {
        if self.recovering { 0 } else { self.change.grow }
    }
}

impl Congestion {
    /// A window that begins there.
    pub fn new(start: FirstWindow, window: Box<dyn Window>) -> Congestion {
        Congestion {
            cwnd: begins_with(start, window.as_ref()),
            ssthresh: start.ssthresh,
            partial_bytes_acked: 0,
            growth_carry: 0,
            window,
            reference_rtt: Duration::ZERO,
            recovery_exit: None,
            recover_tsn: 0,
            may_exceed_cwnd_once: false,
            burst_left: 0,
            decayed_until: Instant::ZERO,
        }
    }

    /// Another route (RFC 9260 §7.2.5): the window begins again, by another controller.
    pub fn restart(&mut self, start: FirstWindow, window: Box<dyn Window>) {
        (self.cwnd, self.ssthresh) = (begins_with(start, window.as_ref()), start.ssthresh);
        self.restart_growth();
        self.window = window;
        self.recovery_exit = None;
    }

    /// TSNs begin anew.
    pub fn begin_anew(&mut self) {
        self.recover_tsn = 0;
    }

    // ---- the window

    /// The window, bytes.
    #[inline(always)]
    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The slow-start threshold, bytes.
    #[inline(always)]
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    #[inline(always)]
    pub fn partial_bytes_acked(&self) -> u64 {
        self.partial_bytes_acked
    }

    /// May more leave beside so many bytes in flight?
    #[inline(always)]
    pub fn has_room(&self, in_flight: u64) -> bool {
        in_flight < self.cwnd
    }

    /// The window has so many bytes at least: a packet fits whatever size it has by now, or the path is known to carry
    /// that.
    pub fn widen(&mut self, least: u64) {
        self.cwnd = self.cwnd.max(least);
    }

    /// A path that failed begins with so many bytes at most, and has room for a packet.
    pub fn narrow(&mut self, most: u64, packet: u64) {
        if self.is_controlled() {
            self.cwnd = self.cwnd.min(most).max(packet);
        }
    }

    /// Is there congestion control? Without, neither what is in flight nor silence holds anything back.
    pub fn is_controlled(&self) -> bool {
        self.window.controls_congestion()
    }

    /// The path takes over from another one, which is no reason to exceed the threshold beyond which it met losses: room
    /// for so many bytes more beside those in flight.
    pub fn take_over(&mut self, in_flight: u64, more: u64) {
        self.widen(if in_flight == 0 { more } else { (in_flight + more).min(self.ssthresh) });
    }

    /// Coupling sets it.
    pub fn set(&mut self, to: &WindowState, packet: u64) {
        self.cwnd = to.cwnd.max(packet);
        self.ssthresh = to.ssthresh;
        self.partial_bytes_acked = to.partial_bytes_acked;
    }

    /// Something was lost or marked: it is cut, and what had been granted of growth is gone.
    pub fn cut(&mut self, to: &WindowState, packet: u64) {
        self.set(to, packet);
        self.growth_carry = 0;
    }

    /// What the window makes of a loss. Nothing is cut yet.
    pub fn judge_loss(&mut self, cx: &AssocView<'_>, me: PathId, e: &LossEvent, cause: Cause) -> WindowState {
        self.window.on_loss(cx, me, e, cause)
    }

    /// What the window makes of an acknowledgement. Nothing grows yet.
    pub fn judge_ack(&mut self, cx: &AssocView<'_>, me: PathId, ack: &AckOnPath) -> Proposal {
        let change = self.window.on_ack(cx, me, ack);
        Proposal { change, recovering: self.in_recovery() && !self.window.grows_in_recovery() }
    }

    /// Carries out a proposal to the share that coupling grants; `idle`: nothing is in flight (RFC 9260 §7.2.2).
    pub fn grow(&mut self, p: &Proposal, share: Ppm, packet: u64, idle: bool) {
        let change = &p.change;
        self.ssthresh = change.ssthresh;
        if let Some(window) = change.set {
            (self.cwnd, self.growth_carry) = (window.max(packet), 0);
            self.partial_bytes_acked = change.partial_bytes_acked;
        } else if !p.recovering {
            // What is less than a byte is kept.
            let grant = change.grow.saturating_mul(u64::from(share.0)) + self.growth_carry;
            self.cwnd = self.cwnd.saturating_add(grant / 1_000_000);
            self.growth_carry = grant % 1_000_000;
            self.partial_bytes_acked = if idle { 0 } else { change.partial_bytes_acked };
        }
    }

    /// Growth begins anew from the window as it is.
    fn restart_growth(&mut self) {
        (self.partial_bytes_acked, self.growth_carry) = (0, 0);
    }

    /// Is the window worth a look when the path has been idle?
    pub fn may_decay(&self, packet: u64) -> bool {
        self.cwnd > 4 * packet && self.window.decays_while_idle()
    }

    /// An idle path knows less and less about its network: half the window for each `rto` without DATA, down to four
    /// packets, and a threshold that remembers where it was (RFC 9260 §7.2.1). DATA left last at `last`.
    pub fn decay(&mut self, now: Instant, last: Instant, rto: Duration, packet: u64) {
        let first = self.decayed_until <= last;
        let since = self.decayed_until.max(last);
        let rounds = now.since(since).as_nanos() / rto.as_nanos().max(1);
        if rounds == 0 {
            return;
        }
        self.decayed_until = since + rto * rounds;
        if first {
            self.ssthresh = self.window.idle_threshold(self.cwnd, self.ssthresh);
        }
        self.cwnd = (self.cwnd >> rounds.min(63)).max(4 * packet);
        self.restart_growth();
    }

    // ---- recovery

    /// Is the path in an episode of losses?
    #[inline(always)]
    pub fn in_recovery(&self) -> bool {
        self.recovery_exit.is_some()
    }

    /// What a loss is beside the episodes so far; `highest` is the highest TSN lost.
    pub fn place_loss(&self, highest: u64) -> Loss {
        Loss { in_episode: self.in_recovery(), beyond: highest > self.recover_tsn }
    }

    /// Did the packet with this serial leave after what the episode is about, if there is one?
    pub fn is_after_episode(&self, tx_seq: u64) -> bool {
        self.recovery_exit.is_none_or(|exit| tx_seq > exit)
    }

    /// An episode begins that ends when nothing up to the serial `newest` is in flight.
    pub fn begin_episode(&mut self, newest: Option<u64>) {
        self.recovery_exit = newest;
    }

    /// All TSNs up to this one had been sent when the episode began.
    pub fn note_sent_end(&mut self, tsn: u64) {
        self.recover_tsn = tsn;
    }

    /// What has been acknowledged of an episode that the path is in: `oldest` is the serial of the oldest packet in
    /// flight, `cumulative` the TSN up to which all has arrived.
    #[inline]
    pub fn progress(&self, oldest: impl FnOnce() -> Option<u64>, cumulative: u64) -> Option<Progress> {
        let exit = self.recovery_exit?;
        Some(Progress { own: oldest().is_none_or(|s| s > exit), all: cumulative >= self.recover_tsn })
    }

    /// The episode is over.
    pub fn end_episode(&mut self) {
        self.recovery_exit = None;
    }

    // ---- what may leave at once

    /// One packet may ignore the window.
    pub fn give_pass(&mut self) {
        self.may_exceed_cwnd_once = true;
    }

    /// May one?
    #[inline(always)]
    pub fn has_pass(&self) -> bool {
        self.may_exceed_cwnd_once
    }

    /// It has left, or has had its chance.
    pub fn end_pass(&mut self) {
        self.may_exceed_cwnd_once = false;
    }

    /// So many packets may leave in this opportunity (RFC 9260 §6.1 D).
    #[inline(always)]
    pub fn allow_burst(&mut self, packets: u16) {
        self.burst_left = packets;
    }

    /// May another one? Where packets are paced at a rate that is `known`, that bounds bursts, to less than a count would
    /// on a slow path.
    #[inline(always)]
    pub fn allows_burst(&self, known: bool) -> bool {
        self.burst_left > 0 || known && self.window.paces()
    }

    /// A packet with DATA left; `tx_seq` is its serial. Answers how many more may.
    #[inline]
    pub fn spend_burst(&mut self) -> u16 {
        self.burst_left = self.burst_left.saturating_sub(1);
        self.burst_left
    }

    // ---- the controller

    /// A packet with DATA left; the pace at which the next ones may, if there is one.
    #[inline]
    pub fn send(&mut self, now: Instant, tx_seq: u64, me: &PathView) -> Option<Rate> {
        self.window.on_sent(now, tx_seq, me);
        self.window.pace(me).filter(|r| *r > Rate::ZERO)
    }

    /// Does the window pace?
    pub fn paces(&self) -> bool {
        self.window.paces()
    }

    /// Does the window want to know what the path carries before it carries anything?
    pub fn wants_train(&self) -> bool {
        self.window.wants_train()
    }

    /// A train showed that.
    pub fn learn(&mut self, now: Instant, me: &PathView) {
        if let Some(window) = self.window.on_train(now, me) {
            self.widen(window);
        }
    }

    /// The smaller round trip of two HEARTBEATs back to back.
    pub fn reference_rtt(&self) -> Duration {
        self.reference_rtt
    }

    /// A pair of HEARTBEATs was answered.
    pub fn refer_to(&mut self, rtt: Duration) {
        self.reference_rtt = rtt;
    }
}

/// Where a window begins, bytes.
fn begins_with(start: FirstWindow, window: &dyn Window) -> u64 {
    if window.controls_congestion() { start.cwnd } else { UNLIMITED }
}

#[cfg(test)]
#[path = "congestion_tests.rs"]
mod tests;
