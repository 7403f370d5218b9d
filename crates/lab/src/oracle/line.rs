//! A path of which everything is known, packet by packet as the simulated link has it.

use super::fates::Fates;
use anabranch_base::{Duration, RandomStream, Rate};
use anabranch_sim::link::{Change, Setting};
use anabranch_sim::{Jitter, LinkConfig, LossConfig, LossPoint};

/// Bytes per second of a link whose rate has no limit.
const UNLIMITED: u64 = 1_000_000_000_000;

/// How a link is from a time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Since when, nanoseconds.
    pub from: u64,
    /// Until when.
    pub until: u64,
    /// Bytes per second.
    pub rate: u64,
    pub up: bool,
    pub delay: Duration,
    pub jitter: Jitter,
    pub mtu: u32,
    /// Place of its loss model.
    pub loss: usize,
    /// Everything is lost.
    pub deaf: bool,
}

/// A path of which everything is known: one link that has a rate, and a constant time for all before and behind it.
pub struct Line {
    pub(super) spans: Vec<Span>,
    pub(super) overhead: u32,
    /// Time on the other links.
    pub(super) beside: Duration,
    fates: Vec<Fates>,
    loss_point: LossPoint,
    pub(super) reorders: bool,
    /// Some packets skip the delay.
    pub(super) skips: bool,
    jitter: RandomStream,
}

/// What has happened on a line so far.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The last packet has left, nanoseconds.
    pub free: u64,
    /// Work done beyond it, byte-nanoseconds per second.
    surplus: u64,
    last_arrival: u64,
    /// Loss model, and how many packets it was asked for.
    asked: (usize, usize),
    jitter: RandomStream,
}

/// A packet on a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It came then.
    Arrives(u64),
    /// It was lost.
    Lost,
    /// It would not come before this: the link is down or loses all, or goes down over it.
    Wait(u64),
    /// It is too large.
    TooLarge,
}

impl Line {
    /// The link called `name` in a run of `seed`, up to `end`. It has a rate, not a recording; `share` of it is free for
    /// use.
    pub fn new(name: &str, seed: u64, config: &LinkConfig, share: f64, beside: Duration, end: Duration) -> Self {
        let mut losses = vec![config.loss.clone()];
        let spans = spans(config, share, end.as_nanos(), &mut losses);
        let fate = |(i, loss): (usize, &LossConfig)| {
            // A model that begins later goes on with the numbers that those before it left, which is not known here.
            let stream = if i == 0 { format!("{name}.loss") } else { format!("{name}.loss.{i}") };
            Fates::new(loss, seed, &stream)
        };
        Line {
            spans,
            overhead: config.overhead,
            beside,
            fates: losses.iter().enumerate().map(fate).collect(),
            loss_point: config.loss_point,
            reorders: config.jitter_reorders,
            skips: config.reorder > 0.0,
            jitter: RandomStream::named(seed, &format!("{name}.jitter")),
        }
    }

    /// Before anything was sent.
    pub(super) fn fresh(&self) -> State {
        State { free: 0, surplus: 0, last_arrival: 0, asked: (0, 0), jitter: self.jitter.clone() }
    }

    fn place(&self, at: u64) -> usize {
        self.spans.partition_point(|s| s.until <= at).min(self.spans.len().saturating_sub(1))
    }

    /// The next change after `at`.
    pub(super) fn next_change(&self, at: u64) -> Option<u64> {
        self.spans.get(self.place(at)).map(|s| s.until).filter(|u| *u < u64::MAX)
    }

    /// Largest packet at this time, without overhead.
    pub(super) fn mtu(&self, at: u64) -> u32 {
        self.spans.get(self.place(at)).map_or(0, |s| s.mtu)
    }

    /// Sends a packet at `start`, not before the line is free. The state changes unless it has to wait or is too large.
    pub(super) fn send(&mut self, state: &mut State, start: u64, size: u32) -> Fate {
        let mut k = self.place(start);
        let Some(mut span) = self.spans.get(k).copied() else { return Fate::TooLarge };
        if size > span.mtu {
            return Fate::TooLarge;
        }
        if !span.up || span.deaf {
            return Fate::Wait(span.until);
        }
        if self.loss_point == LossPoint::Entry && self.loses(state, &span, start) {
            return Fate::Lost;
        }
        let surplus = if start == state.free { state.surplus } else { 0 };
        let charged = u64::from(size) + u64::from(self.overhead);
        let (mut work, mut at) = (charged.saturating_mul(1_000_000_000).saturating_sub(surplus), start);
        let finish = loop {
            let finish = at.saturating_add(work.div_ceil(span.rate.max(1)));
            // What leaves at the very instant of a change has left.
            if finish <= span.until {
                break finish;
            }
            work = work.saturating_sub(span.rate.saturating_mul(span.until - at));
            (at, k) = (span.until, k + 1);
            match self.spans.get(k) {
                Some(next) if next.up => span = *next,
                Some(next) => return Fate::Wait(next.until),
                None => return Fate::Wait(u64::MAX),
            }
        };
        state.surplus = span.rate.saturating_mul(finish - at).saturating_sub(work);
        state.free = finish;
        if self.loss_point == LossPoint::Wire && self.loses(state, &span, finish) {
            return Fate::Lost;
        }
        let on_the_way = span.jitter.vary(span.delay, &mut state.jitter);
        let mut arrival = finish.saturating_add(on_the_way.as_nanos());
        if !self.reorders {
            arrival = self.hurried(k, arrival.max(state.last_arrival));
            state.last_arrival = arrival;
        }
        Fate::Arrives(arrival.saturating_add(self.beside.as_nanos()))
    }

    /// When a packet arrives that left in span `k` and is on the way until `arrival`: a delay that falls hurries it.
    fn hurried(&self, k: usize, arrival: u64) -> u64 {
        let mut by = arrival;
        for pair in self.spans.get(k..).unwrap_or_default().windows(2) {
            let [before, s] = pair else { continue };
            if s.from >= by {
                break;
            }
            if s.delay < before.delay {
                by = by.min(s.from.saturating_add(s.delay.as_nanos()));
            }
        }
        by
    }

    fn loses(&mut self, state: &mut State, span: &Span, at: u64) -> bool {
        if state.asked.0 != span.loss {
            state.asked = (span.loss, 0);
        }
        let number = state.asked.1;
        state.asked.1 += 1;
        self.fates.get_mut(span.loss).is_some_and(|f| f.loses(number, at))
    }
}

/// What a link is like over time.
fn spans(config: &LinkConfig, share: f64, end: u64, losses: &mut Vec<LossConfig>) -> Vec<Span> {
    let rate = |r: Option<Rate>| {
        let bytes = r.map_or(UNLIMITED, Rate::bytes_per_sec);
        if share < 1.0 { ((bytes as f64 * share) as u64).max(1) } else { bytes }
    };
    let mut now = Span {
        from: 0,
        until: u64::MAX,
        rate: rate(config.rate),
        up: true,
        delay: config.delay,
        jitter: config.jitter,
        mtu: config.mtu.unwrap_or(u32::MAX),
        loss: 0,
        deaf: certain(&config.loss),
    };
    let mut spans = Vec::new();
    for (at, set) in changes(config, end) {
        if at > now.from {
            spans.push(Span { until: at, ..now });
            now.from = at;
        }
        match set {
            Setting::Rate(r) => now.rate = rate(*r),
            Setting::Delay(delay) => now.delay = *delay,
            Setting::Jitter(jitter) => now.jitter = *jitter,
            Setting::Loss(loss) => {
                losses.push(loss.clone());
                (now.loss, now.deaf) = (losses.len() - 1, certain(loss));
            }
            Setting::Mtu(mtu) => now.mtu = mtu.unwrap_or(u32::MAX),
            Setting::Down => now.up = false,
            Setting::Up => now.up = true,
            // Nothing waits in a queue; copies and packets out of order come no later.
            Setting::Limit(_) | Setting::Duplicate(_) | Setting::Reorder(_) => {}
            // Which packets are damaged is not known in advance; a plan that takes all of them for whole stays a bound.
            Setting::Damage(_) => {}
        }
    }
    spans.push(now);
    spans
}

fn certain(loss: &LossConfig) -> bool {
    loss.models().iter().any(|m| matches!(m, LossConfig::Bernoulli { p } if *p >= 1.0))
}

/// All changes up to `end` with their times in nanoseconds.
fn changes(config: &LinkConfig, end: u64) -> impl Iterator<Item = (u64, &Setting)> {
    let period = config.schedule.period().map_or(0, Duration::as_nanos);
    let rounds = if period == 0 { 1 } else { end.div_ceil(period) };
    let changes: &[Change] = config.schedule.changes();
    (0..rounds)
        .flat_map(move |n| changes.iter().map(move |c| (n * period + c.at.as_nanos(), &c.set)))
        .filter(move |(at, _)| *at <= end)
}
