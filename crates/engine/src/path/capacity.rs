//! What a path can carry, from what it delivers.
//!
//! Two kinds of evidence. Samples of the delivery rate (see [`super::rate`]) bound it from below: the largest of the
//! last spans is the estimate while the path holds no queue. Where a queue stands (round trips exceed the smallest
//! by more than their usual variation), what comes out of it is the rate of the bottleneck, whatever was believed: the
//! estimate is at most that while the queue lasts, and is replaced by it when that goes on; largest samples that are a
//! little above it are lowered to it when the queue is gone. A path that became longer
//! looks alike, and must not: what came as fast as it was sent, apart from a single jump, waited in no queue, unless the
//! sender paused meanwhile and the path did not.
//! The largest of many samples is one that chance made large, where packets take times of their own: there each counts for a
//! little longer than it took ([`RateSample::of_a_varying_path`]).
//! Silence says nothing of the rate: without acknowledgements the estimate stays what it was.

use super::jumps::Jumps;
use super::train::TrainRate;
use crate::lazy_box::Empty;
use anabranch_base::{Duration, Instant, Rate};

/// Least length of a span whose largest sample counts, and of a measurement of what leaves a queue.
const SPAN: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_millis(80);
/// Length of one that says more than a sample of the delivery rate.
const LONGER: Duration = Duration::from_millis(200);
/// Longest measurement; slower paths have too few packets in it.
const LONGEST: Duration = Duration::from_millis(400);
/// Packets that make a measurement.
const ENOUGH: u32 = 5;
/// Mean deviations of its packets by which the time of the largest sample of a path is too short.
const LUCKY: u64 = 2;
/// Points of the way between two measurements.
const MARKS: usize = 8;
/// A bottleneck that was idle for so long, as far as is known, held nothing: a rate that is a little less than was
/// believed leaves it idle for part of a packet's time only.
const IDLE: Duration = Duration::from_millis(5);
/// A packet, for that, bytes.
const PACKET: u64 = 1_500;
/// Least length of a burst that is a measurement, and its packets.
const BURST: Duration = Duration::from_millis(20);
const BURST_PACKETS: u32 = 8;
/// So many of them in a row replace the estimate.
const BURSTS: u8 = 3;
/// What left within so many parts of ten of the time in which it arrived says that the path is slower; delays that rise
/// by half a second each second spread it less.
const SPREAD: u64 = 6;

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Instant,
    delivered: u64,
    packets: u32,
    /// When the newest of them had left.
    sent: Instant,
    /// Of the steps since the mark before.
    jumps: Jumps,
}

/// The newest marks. They take no memory before there is one: most paths of a server never carry data from it.
#[derive(Clone, Debug, Default)]
struct Marks {
    all: Option<Box<[Mark; MARKS]>>,
    next: usize,
}

impl Marks {
    /// The newest but `i`.
    fn before(&self, i: usize) -> Mark {
        let at = (self.next + MARKS - 1 - i % MARKS) % MARKS;
        self.all.as_deref().and_then(|all| all.get(at)).copied().unwrap_or_default()
    }

    /// Takes the place of the oldest.
    fn push(&mut self, mark: Mark) {
        if let Some(m) = self.all.get_or_insert_default().get_mut(self.next) {
            *m = mark;
        }
        self.next = (self.next + 1) % MARKS;
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    /// Largest samples of the current and the previous span.
    best: [Rate; 2],
    /// Was there a sample in them that the source did not limit?
    filled: [bool; 2],
    span_began: Instant,
    /// What was delivered up to points in the past.
    marks: Marks,
    total: Mark,
    /// When all that has left will have passed the bottleneck, at the rate that is believed; and when the first left of
    /// what has kept it busy since.
    free_at: Instant,
    burst: Instant,
    /// Of the newest burst that was heard of: when its first packet left, and how things stood when that had arrived.
    heard: Option<(Instant, Mark)>,
    /// Of the steps of that burst.
    burst_jumps: Jumps,
    /// Of the pauses between bursts.
    pauses: Pauses,
    /// Bursts in a row that came slower than they left, and the largest rate at which one did.
    slower: (u8, Rate),
    /// Since when a queue stands without a break.
    queued_since: Option<Instant>,
    /// Since when it empties far slower than was believed.
    slow_since: Option<Instant>,
    drain: Option<Rate>,
    /// The largest rate at which it has emptied over a longer time.
    drained: Option<Rate>,
    /// What a train of packets showed, and until when that counts.
    guess: Option<(TrainRate, Instant)>,
    /// A rate, bytes, and how long they take at it.
    divided: (Rate, u64, Duration),
}

/// Pauses between bursts, as they left and as they came, newer ones counting twice as much as the one before.
///
/// A bottleneck that still works on the burst before closes the pause; a path that became longer leaves it as it was.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    left: Duration,
    came: Duration,
}

impl Pauses {
    fn add(&mut self, left: Duration, came: Duration) {
        self.left = self.left / 2 + left;
        self.came = self.came / 2 + came.min(left * 2);
    }
    fn close(self) -> bool {
        self.came * 2 < self.left
    }
    /// Nothing was there that could have closed them.
    fn stay(self) -> bool {
        self.came >= self.left && !self.left.is_zero()
    }
}

/// What an acknowledgement says was delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub bytes: u64,
    pub packets: u32,
    /// When the newest of them had left.
    pub sent_at: Instant,
    /// When the first left of the burst it belongs to.
    pub burst: Instant,
    /// By how much they came later, where that is more than round trips without a queue vary.
    pub queued: Option<Duration>,
    /// By how much packets come apart that overtake each other on their way, which is no queue's doing; zero on a path where
    /// they do not.
    pub varies: Duration,
}

/// What came out of a queue since a point in the past, how long it took to leave the sender and to arrive.
struct Outflow {
    left: Duration,
    arrived: Duration,
    rate: Rate,
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    pub rate: Rate,
    /// The time in which it was delivered.
    pub span: Duration,
    /// The sender had less to send than the path would have taken.
    pub app_limited: bool,
}

impl RateSample {
    /// This sample of a path whose packets come apart by `varies`, a mean deviation: it begins with one that came a little
    /// late and ends with one that came a little early, or it would not be the largest. Taken for longer by what that may
    /// be, and by an eighth at most, it is as often too large as too small.
    pub fn of_a_varying_path(self, varies: Duration) -> RateSample {
        let longer = (varies * LUCKY).min(self.span / 8);
        let (span, all) = (self.span.as_nanos(), (self.span + longer).as_nanos().max(1));
        let rate = u128::from(self.rate.bytes_per_sec()) * u128::from(span) / u128::from(all);
        RateSample { rate: Rate::from_bytes_per_sec(rate as u64), ..self }
    }
}

impl Empty for Capacity {
    const EMPTY: &'static Capacity = &Capacity {
        best: [Rate::ZERO; 2],
        filled: [false; 2],
        span_began: Instant::ZERO,
        marks: Marks { all: None, next: 0 },
        total: Mark { at: Instant::ZERO, delivered: 0, packets: 0, sent: Instant::ZERO, jumps: Jumps::NONE },
        free_at: Instant::ZERO,
        burst: Instant::ZERO,
        heard: None,
        burst_jumps: Jumps::NONE,
        pauses: Pauses { left: Duration::ZERO, came: Duration::ZERO },
        slower: (0, Rate::ZERO),
        queued_since: None,
        slow_since: None,
        drain: None,
        drained: None,
        guess: None,
        divided: (Rate::ZERO, 0, Duration::ZERO),
    };
}

impl Capacity {
    /// A sample of the delivery rate, taken on a path with this round trip.
    pub fn sample(&mut self, now: Instant, s: RateSample, rtt: Duration) {
        // A source that offers less than the path carries shows nothing better.
        if !s.app_limited && self.guess.is_some_and(|(_, until)| now > until) {
            self.guess = None;
        }
        if s.app_limited && s.rate <= self.best() {
            return;
        }
        // Only what could have shown more ends a span: a source that pauses has shown nothing.
        if now.since(self.span_began) > SPAN.max(rtt * 8) {
            self.best = [Rate::ZERO, self.best[0]];
            self.filled = [false, self.filled[0]];
            self.span_began = now;
        }
        self.filled[0] |= !s.app_limited;
        self.best[0] = self.best[0].max(s.rate);
    }

    /// Is it at least four fifths of what is believed? Chance alone explains so much less.
    pub fn is_nearly_all(&self, rate: Rate) -> bool {
        rate.bytes_per_sec() >= self.rate().max(self.best()).bytes_per_sec() / 5 * 4
    }

    /// Does this say anything beside what is known? The least of a rate does where it is more, unless a queue was measured,
    /// which showed the rate itself; and not where it is far less than `window`, which leaves in a round trip without it: it
    /// was a stall then.
    pub fn is_news(&self, shown: TrainRate, window: Rate) -> bool {
        match shown {
            TrainRate::Exact(_) => true,
            TrainRate::AtLeast(least) => {
                self.drain.is_none() && least > self.rate() && least.bytes_per_sec() * 4 > window.bytes_per_sec()
            }
        }
    }

    /// What a train of packets showed: better than nothing until data show what the path carries.
    pub fn guess(&mut self, now: Instant, rate: TrainRate, rtt: Duration) {
        self.guess = Some((rate, now + SPAN.max(rtt * 8)));
    }

    /// `bytes` leave. Answers when the first packet left of the burst that they belong to: the bottleneck had nothing to do
    /// before that, if the path is as it is believed to be, and has been busy since.
    pub fn on_sent(&mut self, now: Instant, bytes: u64) -> Instant {
        let rate = self.rate();
        let idle = now.since(self.free_at);
        // Divided only where the answer depends on it: this is asked for each chunk.
        if rate == Rate::ZERO || idle >= IDLE && idle >= rate.time_for(PACKET) * 2 {
            self.burst = now;
        }
        if rate > Rate::ZERO {
            self.free_at = self.free_at.max(now) + self.time_for(rate, bytes);
        }
        self.burst
    }

    /// [`Rate::time_for`], divided once for chunks in a row that are alike.
    #[inline]
    fn time_for(&mut self, rate: Rate, bytes: u64) -> Duration {
        if (self.divided.0, self.divided.1) != (rate, bytes) {
            self.divided = (rate, bytes, rate.time_for(bytes));
        }
        self.divided.2
    }

    /// Before [`Self::delivered`]: what the pause says, if this is the first that is heard of another burst.
    pub fn hear_pause(&mut self, arrived: Instant, sent_at: Instant, burst: Instant, bytes: u64) {
        let last = self.total;
        if last.packets == 0 || self.heard.is_none_or(|(b, _)| b == burst) {
            return;
        }
        let left = sent_at.since(last.sent);
        // Before anything is divided: most often there was none.
        if left < IDLE {
            return;
        }
        let busy = self.rate().time_for(bytes);
        let left = left.saturating_sub(busy);
        if left >= IDLE {
            self.pauses.add(left, arrived.since(last.at).saturating_sub(busy));
        }
    }

    /// The sender paused between bursts, and the path did not: it still had the burst before to carry.
    pub fn closes_pauses(&self) -> bool {
        self.pauses.close()
    }

    /// What was acknowledged; `rtt` is the smallest round trip.
    ///
    /// True when the estimate was far too high for a while: what was concluded from it is void.
    pub fn delivered(&mut self, now: Instant, d: Delivered, rtt: Duration) -> bool {
        let last = self.total;
        let longer = now.since(last.at).saturating_sub(d.sent_at.since(last.sent));
        self.total = Mark {
            at: now,
            delivered: last.delivered.saturating_add(d.bytes),
            packets: last.packets.wrapping_add(d.packets),
            sent: d.sent_at.max(last.sent),
            jumps: last.jumps.with(longer),
        };
        let mut mistaken = false;
        if self.heard.is_none_or(|(burst, _)| burst != d.burst) {
            mistaken = self.judge_burst(now, last, d.varies);
            self.heard = Some((d.burst, self.total));
            self.burst_jumps = Jumps::default();
        } else {
            self.burst_jumps.add(longer);
        }
        if d.queued.is_none() {
            self.end_queue();
        }
        // A queue takes as long to build, at the least, as it makes packets wait.
        self.queued_since = d.queued.map(|longer| self.queued_since.unwrap_or(now - longer.min(LONGEST)));
        match self.queued_since {
            Some(since) => self.measure(now, since, rtt, d.varies),
            None => self.slow_since = None,
        }
        if now.since(self.marks.before(0).at) >= LONGEST / MARKS as u64 {
            self.marks.push(self.total);
            self.total.jumps = Jumps::default();
        }
        mistaken
    }

    /// No queue stands any more. What came out of one that stood for a while says more than the largest samples, which are
    /// of packets that came a little early after one that came a little late. What is far less is not corrected but
    /// replaced, and not by one queue alone: a path whose delay rose looks alike.
    fn end_queue(&mut self) {
        self.drain = None;
        let least = self.best().bytes_per_sec() / 5 * 4;
        if let Some(most) = self.drained.take().filter(|d| d.bytes_per_sec() >= least) {
            self.best = self.best.map(|b| b.min(most));
        }
    }

    /// A burst has arrived, its last packet at `end`. One that was spread out on its way shows what the path carries; some
    /// in a row are no chance.
    fn judge_burst(&mut self, now: Instant, end: Mark, varies: Duration) -> bool {
        let Some((_, begin)) = self.heard else { return false };
        let packets = end.packets.wrapping_sub(begin.packets);
        let arrived = end.at.since(begin.at).saturating_sub(self.burst_jumps.sum());
        if packets < BURST_PACKETS || arrived < BURST {
            return false;
        }
        let bytes = end.delivered.saturating_sub(begin.delivered);
        let rate = Rate::of(self.burst_jumps.without(bytes, packets), arrived);
        let below = rate.bytes_per_sec() < self.best().bytes_per_sec() / 5 * 4;
        if !is_spread(end.sent.since(begin.sent), arrived.saturating_sub(varies)) || !below {
            self.slower.0 = self.slower.0.saturating_sub(1);
            if self.slower.0 == 0 {
                self.slower.1 = Rate::ZERO;
            }
            return false;
        }
        self.slower = (self.slower.0 + 1, self.slower.1.max(rate));
        if self.slower.0 < BURSTS {
            return false;
        }
        self.replace(now, self.slower.1);
        self.guess = None;
        self.slower = (0, Rate::ZERO);
        true
    }

    fn replace(&mut self, now: Instant, rate: Rate) {
        self.best = [rate, Rate::ZERO];
        self.filled = [true, false];
        self.span_began = now;
        self.slow_since = None;
    }

    /// Does nothing speak against the estimate being what the path carries? What seemed to leave a queue speaks for it if it
    /// left as fast as is believed, and the sender's pauses arrived as long as they were.
    pub fn is_sound(&self) -> bool {
        let as_fast = |d: Rate| d.bytes_per_sec() >= self.best().bytes_per_sec() / 5 * 4;
        let soundly = self.drain.is_none_or(|d| as_fast(d) && self.pauses.stay());
        self.slower.0 == 0 && soundly && self.rate() > Rate::ZERO
    }

    /// What came out of a queue that has stood since then, over so long a time at the least.
    fn outflow(&self, now: Instant, since: Instant, least: Duration) -> Option<Outflow> {
        let mut jumps = self.total.jumps;
        let mut found = None;
        for i in 0..MARKS {
            let m = self.marks.before(i);
            let enough = self.total.packets.wrapping_sub(m.packets) >= ENOUGH;
            if now.since(m.at) >= least && enough && m.at >= since {
                found = Some(m);
                break;
            }
            if m.at >= since {
                jumps = jumps.and(m.jumps);
            }
        }
        let from = found.filter(|m| now.since(m.at) <= LONGEST * 2)?;
        let (bytes, packets) = (self.total.delivered - from.delivered, self.total.packets.wrapping_sub(from.packets));
        let (arrived, left) = (now.since(from.at).saturating_sub(jumps.sum()), self.total.sent.since(from.sent));
        let rate = Rate::of(jumps.without(bytes, packets), arrived.max(Duration::from_millis(1)));
        Some(Outflow { left, arrived, rate })
    }

    /// What left the queue between a point in the past and now.
    fn measure(&mut self, now: Instant, since: Instant, rtt: Duration, varies: Duration) {
        let Some(Outflow { left, arrived, rate }) = self.outflow(now, since, MEASURE) else { return };
        let closed = varies.is_zero() && self.pauses.close();
        if !is_spread(left, arrived.saturating_sub(varies)) && !closed {
            self.drain = self.drain.map(|d| d.max(rate));
            self.slow_since = None;
            return;
        }
        if self.drain.is_none_or(|d| d > rate) {
            // What is in the queue has to leave at that rate.
            self.free_at = self.free_at.max(now + now.since(self.total.sent).saturating_sub(rtt));
        }
        self.drain = Some(rate);
        if let Some(longer) = self.outflow(now, since, LONGER) {
            self.drained = self.drained.max(Some(longer.rate));
        }
        self.guess = None;
        let best = self.best();
        if rate.bytes_per_sec() >= best.bytes_per_sec() / 5 * 4 {
            self.slow_since = None;
            return;
        }
        let slow = *self.slow_since.get_or_insert(now);
        if now.since(slow) >= (MEASURE * 2).max(rtt) {
            self.replace(now, rate);
        }
    }

    fn best(&self) -> Rate {
        self.best[0].max(self.best[1])
    }

    /// The estimate; zero before there is any evidence.
    pub fn rate(&self) -> Rate {
        let best = self.guess.map_or(self.best(), |(g, _)| g.rate().max(self.best()));
        self.drain.map_or(best, |d| d.min(best))
    }

    /// Only a source that offered less has shown it, or a train that jitter had spread: the path carries that much, and may
    /// carry more.
    pub fn is_lower_bound(&self) -> bool {
        let guessed = match self.guess {
            None => false,
            Some((TrainRate::Exact(_), _)) => return false,
            Some((TrainRate::AtLeast(least), _)) => least > self.best(),
        };
        self.drain.is_none() && (guessed || self.filled == [false; 2])
    }

    /// Another route: nothing learnt holds.
    pub fn restart(&mut self) {
        *self = Capacity { total: self.total, ..Capacity::default() };
    }
}

/// Did what left in this time take much longer to arrive?
fn is_spread(left: Duration, arrived: Duration) -> bool {
    left.as_nanos() * 10 < arrived.as_nanos() * SPREAD
}

#[cfg(test)]
#[path = "capacity_tests.rs"]
mod tests;
