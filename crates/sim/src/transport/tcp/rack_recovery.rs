//! A sender that tells losses by time: RACK (`rack.rs`) says what is lost, PRR (`prr.rs`) how much leaves in a
//! recovery, `tail_probe.rs` what leaves where acknowledgements stay away. There is one timer for the three of
//! reordering, probe and time-out (RFC 8985 §8).
//!
//! Where the RFCs leave a choice it is Linux's: the loss of a repetition is repaired in the recovery that is going on
//! and does not reduce the window again, nor does a time-out in a recovery; after a time-out one segment leaves beyond
//! what may still be in flight. Reductions are not undone when they turn out to be spurious.

use super::flight::Flight;
use super::prr::Prr;
use super::rack::{News, Rack};
use super::sender::{Phase, Sender};
use super::tail_probe::TailProbe;
use super::undo::Undo;
use super::{AckSegment, DataSegment};
use anabranch_base::Instant;

/// What such a sender knows beyond the others.
#[derive(Debug, Default)]
pub(super) struct ByTime {
    flight: Flight,
    rack: Rack,
    probe: TailProbe,
    prr: Option<Prr>,
    undo: Option<Undo>,
    /// In place of the time-out.
    alarm: Option<(Instant, Alarm)>,
    /// The next round trip is measured with a segment from here on: once in each.
    measure_from: u64,
    /// The timer has expired, and nothing has been acknowledged since.
    expired: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alarm {
    Reordering,
    Probe,
}

/// What gives rise to a probe (RFC 8985 §7.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// New data left, or was acknowledged.
    Progress,
    /// Anything else.
    Other,
}

impl ByTime {
    /// The SYN leaves.
    pub fn begins(&mut self, now: Instant) {
        self.flight.leaves(0, now);
    }

    /// When to look, if not at the time-out.
    pub fn alarm(&self) -> Option<Instant> {
        self.alarm.map(|a| a.0)
    }
}

impl Sender {
    /// An acknowledgement.
    pub(super) fn by_time(
        &mut self,
        now: Instant,
        next: u64,
        ack: &AckSegment,
        s: &mut ByTime,
        out: &mut impl FnMut(DataSegment),
    ) {
        let next = next.max(self.una);
        let acked = next - self.una;
        let news = s.rack.acknowledged(now, next, ack, &mut s.flight);
        self.measure_once(now, &news, s);
        if acked > 0 {
            self.una = next;
            s.expired = false;
            self.restart_timer(now);
        }
        let plain = acked == 0 && ack.block_count() == 0;
        if s.probe.acknowledged(next, ack.duplicate(), plain) {
            self.counters.fast_retransmits += 1;
            self.reduce_by_time(s.flight.outstanding(), None);
        }
        if let Some(number) = ack.duplicate() {
            self.undo_reduction(number, s);
        }
        let recovered = self.phase != Phase::Open && self.una >= self.recover;
        if recovered {
            if self.phase == Phase::Recovering {
                self.cwnd = self.ssthresh; // RFC 9937 §6.4.
            }
            self.phase = Phase::Open;
            s.prr = None;
        }
        s.rack.adapt(self.una, self.max, ack.duplicate().is_some(), recovered);
        let found = self.look_for_losses(now, &news, s);
        if self.phase == Phase::Recovering {
            if news.delivered > 0 {
                self.proportional(&news, s, acked > 0 && found.0 == 0);
            }
        } else if acked > 0 {
            self.grow_by(now, acked);
        }
        let sent = self.send_by_time(now, s, out);
        self.arm(now, s, found.1, if sent || acked > 0 { Cause::Progress } else { Cause::Other });
    }

    /// The round trip, from the oldest segment acknowledged that left once.
    fn measure_once(&mut self, now: Instant, news: &News, s: &mut ByTime) {
        let Some((oldest, _, highest)) = news.once else { return };
        self.rto.end_back_off();
        s.probe.measured();
        if highest >= s.measure_from {
            self.rto.sample(oldest, now);
            s.measure_from = self.max;
        }
    }

    /// RACK's steps 4 and 5: how many losses there are, and when to look again. The first begins a recovery.
    fn look_for_losses(&mut self, now: Instant, news: &News, s: &mut ByTime) -> (u64, Option<Instant>) {
        let verdict = s.rack.detect(now, self.phase != Phase::Open, self.rto.srtt(), &mut s.flight);
        if s.flight.lost() > 0 && self.phase == Phase::Open {
            self.note_loss(now);
            s.undo = Some(self.before_reduction());
            let flight = s.flight.flying() + s.flight.lost() + news.delivered;
            self.reduce_by_time(flight, None);
            s.probe.forget();
            s.prr = self.config.prr.then(|| Prr::new(flight));
        }
        (verdict.lost, verdict.look_again)
    }

    fn before_reduction(&self) -> Undo {
        Undo::new(self.cwnd, self.ssthresh, self.cubic.as_deref().copied(), self.una)
    }

    /// Segment `number` came although it was there.
    fn undo_reduction(&mut self, number: u64, s: &mut ByTime) {
        let Some(before) = s.undo.take_if(|undo| undo.duplicate(number)) else { return };
        if self.cwnd < before.cwnd {
            (self.cwnd, self.ssthresh) = (before.cwnd, before.ssthresh.max(self.ssthresh));
            if let (Some(cubic), Some(before)) = (self.cubic.as_deref_mut(), before.cubic) {
                *cubic = before;
            }
        }
        (self.phase, s.prr) = (Phase::Open, None);
    }

    /// Reduces the window. `flight` is without what left on duplicates (RFC 5681 §3.2 step 2).
    fn reduce_by_time(&mut self, flight: u64, window: Option<f64>) {
        self.limited = (self.max - self.una).saturating_sub(flight);
        self.reduce(window);
    }

    fn proportional(&mut self, news: &News, s: &mut ByTime, safe: bool) {
        let (flying, target) = (s.flight.flying(), self.ssthresh as u64);
        if let Some(prr) = &mut s.prr {
            self.cwnd = prr.window(news.delivered, flying, target, safe) as f64;
        }
    }

    /// Sends while fewer segments are in flight than the window allows: lost ones, then new ones. Says whether new ones
    /// were among them.
    fn send_by_time(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) -> bool {
        self.restart_after_silence(now);
        let first_new = self.max;
        let end = self.una + u64::from(self.config.window);
        let mut left = false;
        loop {
            let full = s.flight.flying() >= (self.cwnd as u64).max(1);
            if full || left {
                self.usage.note(full, self.una, self.max);
            }
            let number = match s.flight.first_lost() {
                Some(lost) => lost,
                None if self.max < end && self.has_next(now) => self.max,
                None => {
                    self.window_limits(now, false);
                    break;
                }
            };
            if full {
                self.window_limits(now, true);
                break;
            }
            self.leave(now, number, s, out);
            left = true;
        }
        self.max > first_new
    }

    fn leave(&mut self, now: Instant, number: u64, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        if number < self.max
            && self.phase != Phase::Open
            && let Some(undo) = &mut s.undo
        {
            undo.leaves_again();
        }
        self.transmit(now, number, out);
        self.next = self.max;
        s.flight.leaves(number, now);
        if let Some(prr) = &mut s.prr {
            prr.leaves();
        }
    }

    /// Which of the three timers runs.
    fn arm(&mut self, now: Instant, s: &mut ByTime, look_again: Option<Instant>, cause: Cause) {
        let quiet = s.flight.arrived() == 0 && s.flight.lost() == 0;
        let probes = self.config.tail_probe && self.phase == Phase::Open && quiet && self.una > 0;
        s.alarm = match s.alarm {
            _ if s.flight.outstanding() == 0 => None,
            _ if look_again.is_some() => look_again.map(|at| (at, Alarm::Reordering)),
            _ if probes && cause == Cause::Progress => {
                let wait = TailProbe::wait(self.rto.srtt(), s.flight.flying(), self.config.longest_ack_delay());
                Some(((now + wait).min(self.timer), Alarm::Probe))
            }
            alarm => alarm.filter(|a| probes && a.1 == Alarm::Probe),
        };
    }

    /// The time of the alarm, of the time-out or of new data has come.
    pub(super) fn timeout_by_time(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        match s.alarm {
            Some((at, kind)) if at <= now => {
                s.alarm = None;
                match kind {
                    Alarm::Reordering => self.reordering_is_over(now, s, out),
                    Alarm::Probe => self.send_probe(now, s, out),
                }
            }
            None if self.una < self.max && self.timer <= now => self.expire_by_time(now, s, out),
            _ => {}
        }
        if self.wake <= now {
            self.wake = Instant::FAR;
            self.resume_by_time(now, s, out);
        }
    }

    /// Sends what has been handed over since the latest acknowledgement.
    pub(super) fn resume_by_time(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        if self.send_by_time(now, s, out) {
            self.arm(now, s, s.alarm.filter(|a| a.1 == Alarm::Reordering).map(|a| a.0), Cause::Progress);
        }
    }

    fn reordering_is_over(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        let (lost, look_again) = self.look_for_losses(now, &News::default(), s);
        if lost > 0 && self.phase == Phase::Recovering {
            self.proportional(&News::default(), s, false);
        }
        self.send_by_time(now, s, out);
        self.arm(now, s, look_again, Cause::Other);
    }

    /// RFC 8985 §7.3: something new, or else the last segment again. The time-out follows, in any case.
    fn send_probe(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        if s.probe.is_due() {
            let new = self.max < self.una + u64::from(self.config.window) && self.has_next(now);
            self.leave(now, if new { self.max } else { self.max - 1 }, s, out);
            s.probe.leaves(self.max, !new);
            self.counters.probes += 1;
        }
        self.restart_timer(now);
    }

    fn expire_by_time(&mut self, now: Instant, s: &mut ByTime, out: &mut impl FnMut(DataSegment)) {
        self.counters.timeouts += 1;
        if self.una == 0 {
            self.config.initial_window = 1;
        }
        if self.phase != Phase::Recovering && !s.expired && self.una > 0 {
            s.undo = Some(self.before_reduction());
            self.reduce_by_time(s.flight.flying() + s.flight.lost(), Some(1.0));
        }
        s.rack.timed_out(now, self.una, self.rto.srtt(), &mut s.flight);
        self.cwnd = s.flight.flying() as f64 + 1.0;
        (self.recover, self.phase) = (self.max, Phase::TimedOut);
        (s.prr, s.expired) = (None, true);
        s.probe.forget();
        self.rto.back_off();
        self.restart_timer(now);
        self.send_by_time(now, s, out);
        self.arm(now, s, None, Cause::Other);
    }
}
