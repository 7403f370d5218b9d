//! The sending end: what Tahoe, Reno, NewReno and SACK have in common.

use super::cubic::Cubic;
use super::first_sent::FirstSent;
use super::growth::{Terms, Usage};
use super::hystart::HyStart;
use super::rack_recovery::ByTime;
use super::sack::Scoreboard;
use super::supply::{Data, Supply};
use super::{AckSegment, Congestion, DataSegment, Recovery, Rto, TcpConfig};
use anabranch_base::{Duration, Instant};

/// Duplicate acknowledgements that mean a loss (RFC 5681 §3.2).
pub(super) const DUPLICATES: u32 = 3;

/// What a sender did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Segments sent, the SYN and those sent again included.
    pub sent: u64,
    /// Segments sent again.
    pub again: u64,
    /// Fast retransmits: losses noticed by acknowledgements.
    pub fast_retransmits: u64,
    /// Losses noticed by the timer.
    pub timeouts: u64,
    /// Tail loss probes (RFC 8985 §7).
    pub probes: u64,
}

impl SenderCounters {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: SenderCounters) -> Self {
        SenderCounters {
            sent: self.sent + other.sent,
            again: self.again + other.again,
            fast_retransmits: self.fast_retransmits + other.fast_retransmits,
            timeouts: self.timeouts + other.timeouts,
            probes: self.probes + other.probes,
        }
    }
}

/// How the latest loss was noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// None is being repaired.
    Open,
    /// By acknowledgements, and its repair is not over.
    Recovering,
    /// By the timer.
    TimedOut,
}

/// Sends one connection.
pub struct Sender {
    /// The first segment not acknowledged.
    pub(super) una: u64,
    /// The next to send; after a time-out below `max`.
    pub(super) next: u64,
    /// One past the highest ever sent.
    pub(super) max: u64,
    /// One past the highest sent when the latest loss was noticed. Losses below are of the same window and reduce it
    /// only once.
    pub(super) recover: u64,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    pub(super) duplicates: u32,
    /// Segments known to have left the network in fast recovery.
    pub(super) inflation: u32,
    pub(super) phase: Phase,
    /// NewReno: has this recovery seen a partial acknowledgement?
    pub(super) partial_seen: bool,
    pub(super) config: TcpConfig,
    pub(super) data: Data,
    pub(super) rto: Rto,
    pub(super) board: Option<Box<Scoreboard>>,
    pub(super) cubic: Option<Box<Cubic>>,
    /// Until the first slow start is over.
    pub(super) hystart: Option<Box<HyStart>>,
    /// Of [`Recovery::Rack`].
    by_time: Option<Box<ByTime>>,
    first_sent: Option<Box<FirstSent>>,
    /// Of [`TcpConfig::validate_window`].
    pub(super) usage: Usage,
    /// Of a subflow whose window is coupled with others.
    pub(super) terms: Option<Terms>,
    flow: u32,
    pub(super) timer: Instant,
    /// When there will be more to send.
    pub(super) wake: Instant,
    /// The segment whose round trip is being measured, and when it left.
    timed: Option<(u64, Instant)>,
    /// Segments sent by limited transmit since the latest new acknowledgement.
    pub(super) limited: u64,
    done: Option<Instant>,
    pub(super) counters: SenderCounters,
}

impl Sender {
    /// Nothing sent. `phase` is where in a tick the connection's clock begins.
    pub fn new(config: TcpConfig, flow: u32, supply: Supply, phase: Duration) -> Self {
        let board = matches!(config.recovery, Recovery::Sack(_)).then(Box::default);
        let cubic =
            matches!(config.congestion, Congestion::Cubic).then(|| Box::new(Cubic::new(config.fast_convergence)));
        let hystart = (cubic.is_some() && config.hystart).then(|| Box::new(HyStart::new()));
        Sender {
            una: 0,
            next: 0,
            max: 0,
            recover: 1,
            cwnd: 1.0,
            ssthresh: f64::from(config.initial_ssthresh.unwrap_or(config.window)),
            duplicates: 0,
            inflation: 0,
            phase: Phase::Open,
            partial_seen: false,
            data: Data::new(supply, &config),
            rto: Rto::new(config.rto, phase),
            first_sent: config.keep_first_sent.then(Box::default),
            config,
            board,
            cubic,
            hystart,
            by_time: matches!(config.recovery, Recovery::Rack).then(Box::default),
            usage: Usage::default(),
            terms: None,
            flow,
            timer: Instant::FAR,
            wake: Instant::FAR,
            timed: None,
            limited: 0,
            done: None,
            counters: SenderCounters::default(),
        }
    }

    /// Begins with the SYN.
    pub fn start(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        self.data.begin(now);
        self.send_window(now, None, out);
        self.with_by_time(|_, s| s.begins(now));
    }

    /// Takes an acknowledgement and sends what it allows.
    pub fn acknowledge(&mut self, now: Instant, ack: &AckSegment, out: &mut impl FnMut(DataSegment)) {
        // Nothing that was not sent can be acknowledged.
        let next = ack.next.min(self.max);
        if next == self.una && self.una == self.max && self.by_time.is_none() {
            return; // A duplicate tells of a loss only while something is outstanding (RFC 5681 §2).
        }
        match self.config.recovery {
            Recovery::Tahoe => self.tahoe(now, next, out),
            Recovery::Reno => self.reno(now, next, out),
            Recovery::NewReno => self.newreno(now, next, out),
            Recovery::Sack(rule) => self.sack(now, next, ack, rule, out),
            Recovery::Rack => self.with_by_time(|sender, s| sender.by_time(now, next, ack, s, out)),
        }
        self.data.forget_below(self.una);
        if let Some(first) = &mut self.first_sent {
            first.forget_below(self.una);
        }
        if self.una == self.max && self.una > 0 && self.done.is_none() && self.data.is_last(self.una - 1) {
            self.done = Some(now);
        }
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come.
    pub fn timeout(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        if self.by_time.is_some() {
            return self.with_by_time(|sender, s| sender.timeout_by_time(now, s, out));
        }
        if self.una < self.max && self.timer <= now {
            self.expire(now, out);
        }
        if self.wake <= now {
            self.wake = Instant::FAR;
            // In a selective recovery what may leave is decided on acknowledgements.
            if self.board.is_none() || self.phase != Phase::Recovering {
                self.send_window(now, None, out);
            }
        }
    }

    /// When to call [`timeout`](Self::timeout).
    #[inline]
    pub fn next_timeout(&self) -> Option<Instant> {
        let alarm = self.by_time.as_ref().and_then(|s| s.alarm());
        let timer = if self.una < self.max { alarm.unwrap_or(self.timer) } else { Instant::FAR };
        let next = timer.min(self.wake);
        (next != Instant::FAR).then_some(next)
    }

    /// Does a step of [`Recovery::Rack`].
    fn with_by_time(&mut self, step: impl FnOnce(&mut Self, &mut ByTime)) {
        if let Some(mut s) = self.by_time.take() {
            step(self, &mut s);
            self.by_time = Some(s);
        }
    }

    /// Sends something more that has been handed over, if the window has room now. What is lost goes first.
    pub(in crate::transport) fn resume(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        let in_recovery = self.phase == Phase::Recovering;
        match self.config.recovery {
            Recovery::Rack => self.with_by_time(|sender, s| sender.resume_by_time(now, s, out)),
            Recovery::Sack(rule) if in_recovery => self.resume_sack(now, rule, out),
            _ if self.duplicates == 0 => self.send_window(now, None, out),
            _ if self.duplicates < DUPLICATES => self.send_limited(now, out),
            Recovery::Sack(_) => {}
            _ => self.send_window(now, self.config.recovery_burst, out),
        }
    }

    /// The number that the next new segment will have.
    pub(in crate::transport) fn next_new(&self) -> u64 {
        self.max
    }

    /// Hands over one more segment of so many bytes ([`Supply::Handed`]).
    pub(in crate::transport) fn hand(&mut self, bytes: u32) {
        self.data.hand(bytes);
    }

    /// Takes back what has been handed over and has not left.
    pub(in crate::transport) fn take_back(&mut self) {
        self.data.take_back(self.max);
    }

    /// How the window grows and falls from now on.
    pub(in crate::transport) fn couple(&mut self, terms: Terms) {
        self.terms = Some(terms);
    }

    /// Halves the window, for a reason that is no loss.
    pub(in crate::transport) fn halve(&mut self) {
        let slow_start = self.cwnd < self.ssthresh;
        self.cwnd = (self.cwnd / 2.0).max(1.0);
        if !slow_start {
            self.ssthresh = self.cwnd.max(2.0);
        }
    }

    /// Has the timer expired, and is something of what was outstanding then not acknowledged?
    pub(in crate::transport) fn is_timed_out(&self) -> bool {
        self.phase == Phase::TimedOut && self.una < self.recover
    }

    /// Is no loss being repaired?
    pub(in crate::transport) fn is_plain(&self) -> bool {
        self.phase == Phase::Open || (self.phase == Phase::TimedOut && self.una >= self.recover)
    }

    /// Is a loss being repaired that acknowledgements have shown?
    pub(in crate::transport) fn is_recovering(&self) -> bool {
        self.phase == Phase::Recovering
    }

    fn expire(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        self.counters.timeouts += 1;
        self.cwnd = self.cwnd.max(1.0);
        self.recover = self.max;
        if self.una == 0 {
            self.config.initial_window = 1;
        }
        self.inflation = 0;
        self.reduce(Some(1.0));
        if self.config.recovery != Recovery::Tahoe {
            self.duplicates = 0;
        }
        if let (Some(board), Recovery::Sack(rule)) = (&mut self.board, self.config.recovery) {
            board.timed_out(rule);
        }
        self.phase = Phase::TimedOut;
        self.rto.back_off();
        self.go_back(now);
        self.send_window(now, None, out);
    }

    /// Sends everything from the first unacknowledged segment again, as the window allows.
    pub(super) fn go_back(&mut self, now: Instant) {
        self.next = self.una;
        self.timed = None;
        self.restart_timer(now);
    }

    pub(super) fn restart_timer(&mut self, now: Instant) {
        self.timer = now + self.rto.timeout();
    }

    /// Something new up to `next` has been acknowledged: takes it off the books.
    pub(super) fn advance(&mut self, now: Instant, next: u64) {
        self.duplicates = 0;
        self.limited = 0;
        self.una = next;
        self.next = self.next.max(next);
        self.measure(now);
        self.restart_timer(now);
    }

    fn measure(&mut self, now: Instant) {
        if let Some((number, sent)) = self.timed
            && number < self.una
        {
            self.timed = None;
            self.rto.end_back_off();
            self.rto.sample(sent, now);
        }
    }

    /// As [`measure`](Self::measure), for a round trip that contains a repair: the path is alive, its length unknown.
    pub(super) fn discard_measurement(&mut self) {
        if self.timed.is_some_and(|(number, _)| number < self.una) {
            self.timed = None;
            self.rto.end_back_off();
        }
    }

    /// Is a third duplicate a new loss, and not the echo of one repaired (RFC 6582 §3.2 step 1)?
    pub(super) fn is_new_loss(&self) -> bool {
        self.una > self.recover || self.una == 1
    }

    /// A loss has been noticed by acknowledgements.
    pub(super) fn note_loss(&mut self, now: Instant) {
        self.counters.fast_retransmits += 1;
        self.recover = self.max;
        self.phase = Phase::Recovering;
        self.timed = None;
        self.restart_timer(now);
    }

    /// Segments that may be outstanding.
    pub(super) fn window(&self) -> u64 {
        (self.cwnd as u64 + u64::from(self.inflation)).min(u64::from(self.config.window))
    }

    /// Sends while the window allows, at most `burst` segments.
    pub(super) fn send_window(&mut self, now: Instant, burst: Option<u32>, out: &mut impl FnMut(DataSegment)) {
        self.restart_after_silence(now);
        // Half of a window of one allows nothing; but with nothing outstanding there is no timer to open it again.
        let end = self.una + self.window().max(u64::from(self.una == self.max));
        let mut left = burst.unwrap_or(u32::MAX);
        while self.next < end && left > 0 && self.has_next(now) {
            self.transmit(now, self.next, out);
            self.next += 1;
            left -= 1;
        }
        if left < burst.unwrap_or(u32::MAX) || self.next >= end {
            self.usage.note(self.next >= end, self.una, self.next);
        }
        if self.cubic.is_some() {
            let waits = self.next >= end && self.has_next(now);
            self.window_limits(now, waits);
        }
    }

    /// Is there something to send at `next`? If not yet, sees to it that the sender is woken.
    pub(super) fn has_next(&mut self, now: Instant) -> bool {
        let has = self.data.has(now, self.next, self.una, self.max);
        if !has {
            self.wake = self.data.next_at().unwrap_or(Instant::FAR);
        }
        has
    }

    /// RFC 5681 §4.1.
    pub(super) fn restart_after_silence(&mut self, now: Instant) {
        if self.una == self.max
            && self.timer <= now
            && let Some(window) = self.config.restart_window
        {
            self.cwnd = self.cwnd.min(f64::from(window));
        }
    }

    /// One new segment on a first or second duplicate (RFC 3042).
    pub(super) fn send_limited(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        let ahead = self.next - self.una;
        if self.config.limited_transmit
            && ahead < u64::from(self.config.window)
            && (ahead + 1) as f64 <= self.cwnd + f64::from(self.duplicates)
            && self.has_next(now)
        {
            self.transmit(now, self.next, out);
            self.next += 1;
            self.limited += 1;
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, number: u64, out: &mut impl FnMut(DataSegment)) {
        let again = number < self.max;
        if self.timer == Instant::FAR || self.una == self.max {
            self.restart_timer(now);
        }
        self.counters.sent += 1;
        self.counters.again += u64::from(again);
        if !again {
            self.max = number + 1;
            self.timed.get_or_insert((number, now));
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.leaves(number, now);
        }
        let (bytes, last) = (self.data.bytes(number), self.data.is_last(number));
        let sent = self.first_sent.as_mut().map_or(now, |f| f.leaves(number, now));
        out(DataSegment { flow: self.flow, bytes, number, sent, again, last });
    }

    /// Congestion window, in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold, in segments.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// The time-out now in force.
    pub fn rto(&self) -> Duration {
        self.rto.timeout()
    }

    /// Segments acknowledged, the SYN included.
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Segments sent and not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.max - self.una
    }

    /// Is something outstanding of what was when the latest loss was noticed?
    pub fn is_repairing(&self) -> bool {
        self.phase != Phase::Open && self.una < self.recover
    }

    /// What it did.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// When the last segment was acknowledged.
    pub fn done(&self) -> Option<Instant> {
        self.done
    }
}
