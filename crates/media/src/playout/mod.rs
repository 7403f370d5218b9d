//! The receiver's buffer: what arrived in time is put out in source order at a fixed latency.
//!
//! A message is due at its time stamp plus the latency (see [`ClockMode`]), and is put out at that instant
//! whether or not what lies before it has arrived. What arrives after its own instant is dropped and counted
//! late, also when nothing behind it has been put out yet: the latency is fixed. A frame is unusable when any
//! of its parts was not put out.

mod clock;
mod frames;

use crate::{MediaHeader, StreamEnd};
use anabranch_base::{Duration, Instant};
use bytes::Bytes;
use clock::Clock;
use frames::FrameTracker;
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, VecDeque};

pub use clock::ClockMode;
pub use frames::{FrameCounts, FrameOutcome};

/// Index of "class not known" in counts by class.
pub const UNKNOWN: usize = 3;

/// Memory charged for a message beside its payload.
const ENTRY_COST: usize = 128;

/// Gaps remembered to tell a late message from a repeated one.
const GAPS_MAX: usize = 1024;

/// Frame outcomes kept for [`PlayoutBuffer::poll_frame`]; the oldest go first.
const OUTCOMES_MAX: usize = 65_536;

/// Where a stream begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartAt {
    /// At sequence 0 and frame 0: what is missing before the first arrival counts as lost.
    #[default]
    Zero,
    /// At the first message put out: the stream was joined while it ran.
    FirstPlayed,
}

/// Settings of a [`PlayoutBuffer`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayoutConfig {
    /// Time from the sender's input to the output.
    pub latency: Duration,
    /// How the clocks of both ends are related.
    pub clock: ClockMode,
    /// Where the stream begins.
    pub start: StartAt,
    /// Most bytes held, payloads and 128 bytes for each message. Default 64 MiB.
    pub max_bytes: usize,
}

impl PlayoutConfig {
    /// Defaults with this latency.
    pub fn new(latency: Duration) -> Self {
        PlayoutConfig { latency, clock: ClockMode::default(), start: StartAt::default(), max_bytes: 64 << 20 }
    }
}

/// What became of a message handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// It will be put out when due.
    Accepted,
    /// Its instant has passed; dropped.
    Late,
    /// It was here before; dropped.
    Duplicate,
    /// The buffer is full; dropped.
    Overflow,
}

/// A message at its play-out instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlayoutItem {
    /// Its header.
    pub header: MediaHeader,
    /// Source bytes.
    pub payload: Bytes,
    /// When it was due.
    pub due: Instant,
    /// Messages missing directly before it.
    pub lost_before: u64,
}

/// Counters of a [`PlayoutBuffer`]. Every message of the source up to the play-out point is either put out,
/// late or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayoutStats {
    /// Messages handed in.
    pub received: u64,
    /// Messages put out.
    pub played: u64,
    /// Source bytes put out.
    pub bytes_played: u64,
    /// Messages that arrived after their instant.
    pub late: u64,
    /// Messages that had not arrived when what lies behind them was put out (less those that came late).
    pub lost: u64,
    /// Messages handed in more than once.
    pub duplicates: u64,
    /// Messages refused because the buffer was full; they count as lost too.
    pub overflow: u64,
    /// Messages whose frame or part contradicted earlier ones; put out, but not counted in frames.
    pub inconsistent: u64,
    /// Frames by class.
    pub frames: FrameCounts,
}

struct Entry {
    header: MediaHeader,
    payload: Bytes,
    sent_ns: i128,
    /// Arrived after its instant: it only marks the place.
    late: bool,
}

/// Orders messages and releases them at their instants.
///
/// A payload is held as it is handed in; let it own its memory, or a small slice keeps a big buffer alive.
pub struct PlayoutBuffer {
    config: PlayoutConfig,
    clock: Clock,
    waiting: BTreeMap<u64, Entry>,
    bytes: usize,
    /// Next sequence number to put out; `None` before the first when joining.
    next: Option<u64>,
    /// Missing before the item that comes next.
    gap: u64,
    /// Ranges `[from, to)` behind the play-out point that never arrived.
    gaps: VecDeque<(u64, u64)>,
    frames: FrameTracker,
    outcomes: VecDeque<FrameOutcome>,
    stats: PlayoutStats,
    delays: Histogram<u64>,
    end: Option<Option<StreamEnd>>,
    finished: bool,
}

impl PlayoutBuffer {
    /// An empty buffer.
    pub fn new(config: PlayoutConfig) -> Self {
        PlayoutBuffer {
            clock: Clock::new(config.clock),
            waiting: BTreeMap::new(),
            bytes: 0,
            next: (config.start == StartAt::Zero).then_some(0),
            gap: 0,
            gaps: VecDeque::new(),
            frames: FrameTracker::default(),
            outcomes: VecDeque::new(),
            stats: PlayoutStats::default(),
            delays: new_histogram(),
            end: None,
            finished: false,
            config,
        }
    }

    /// Takes in a message that arrived at `now`.
    pub fn insert(&mut self, now: Instant, header: MediaHeader, payload: Bytes) -> Inserted {
        self.stats.received += 1;
        let Some(sequence) = self.extend(header.sequence) else {
            self.stats.duplicates += 1;
            return Inserted::Duplicate;
        };
        if self.waiting.contains_key(&sequence) {
            self.stats.duplicates += 1;
            return Inserted::Duplicate;
        }
        if self.next.is_some_and(|next| sequence < next) {
            return self.behind(now, sequence, header.timestamp);
        }
        let sent_ns = self.clock.arrival(now, header.timestamp);
        self.record_delay(now, sent_ns);
        let late = now > self.clock.instant(sent_ns) + self.config.latency;
        let payload = if late { Bytes::new() } else { payload };
        let cost = payload.len() + ENTRY_COST;
        if self.bytes.saturating_add(cost) > self.config.max_bytes {
            self.stats.overflow += 1;
            return Inserted::Overflow;
        }
        self.bytes += cost;
        self.waiting.insert(sequence, Entry { header, payload, sent_ns, late });
        if late { Inserted::Late } else { Inserted::Accepted }
    }

    /// The next message that is due at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<PlayoutItem> {
        while let Some(first) = self.waiting.first_entry() {
            let due = self.clock.instant(first.get().sent_ns) + self.config.latency;
            if due > now {
                return None;
            }
            let (sequence, entry) = first.remove_entry();
            self.bytes -= entry.payload.len() + ENTRY_COST;
            self.advance(sequence, &entry);
            let outcomes = &mut self.outcomes;
            self.frames.observe(due, sequence, &entry.header, !entry.late, |o| keep(outcomes, o));
            if entry.late {
                self.stats.late += 1;
                self.gap += 1;
                continue;
            }
            self.stats.played += 1;
            self.stats.bytes_played += entry.payload.len() as u64;
            let lost_before = std::mem::take(&mut self.gap);
            return Some(PlayoutItem { header: entry.header, payload: entry.payload, due, lost_before });
        }
        if let (Some(end), false) = (self.end, self.finished) {
            self.finished = true;
            if let (Some(end), Some(next)) = (end, self.next) {
                self.skip_to(end.messages.max(next));
            }
            let outcomes = &mut self.outcomes;
            self.frames.finish(now, end, |o| keep(outcomes, o));
        }
        None
    }

    /// When [`poll`](PlayoutBuffer::poll) will have something.
    pub fn next_timeout(&self) -> Option<Instant> {
        let (_, entry) = self.waiting.first_key_value()?;
        Some(self.clock.instant(entry.sent_ns) + self.config.latency)
    }

    /// No more messages will come. `end` says how much the source held, if the sender said so; then what is
    /// missing behind the last arrival is counted too. Go on polling until [`is_finished`](Self::is_finished).
    pub fn finish(&mut self, end: Option<StreamEnd>) {
        self.end.get_or_insert(end);
    }

    /// After [`finish`](Self::finish): everything has been put out and counted.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The next frame whose outcome was decided. At most 65,536 are kept.
    pub fn poll_frame(&mut self) -> Option<FrameOutcome> {
        self.outcomes.pop_front()
    }

    /// Current counters.
    pub fn stats(&self) -> PlayoutStats {
        PlayoutStats { frames: self.frames.counts(), inconsistent: self.frames.inconsistent(), ..self.stats }
    }

    /// Time from the sender's input to the arrival, in microseconds, of every message that was neither
    /// repeated nor refused, late ones included. With an estimated clock it counts from the fastest arrival.
    pub fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }

    /// Messages and bytes waiting.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    fn extend(&self, sequence: u32) -> Option<u64> {
        // A stream that is joined starts one cycle up, so that earlier numbers have a place.
        let near = self.next.or_else(|| self.waiting.keys().next().copied()).unwrap_or(match self.config.start {
            StartAt::Zero => 0,
            StartAt::FirstPlayed => 1 << 32 | u64::from(sequence),
        });
        near.checked_add_signed(i64::from(sequence.wrapping_sub(near as u32) as i32))
    }

    /// A message behind the play-out point: late if it was missing, else a repetition.
    fn behind(&mut self, now: Instant, sequence: u64, timestamp: u32) -> Inserted {
        let Some(at) = self.gaps.iter().rposition(|(from, to)| (*from..*to).contains(&sequence)) else {
            self.stats.duplicates += 1;
            return Inserted::Duplicate;
        };
        let sent_ns = self.clock.arrival(now, timestamp);
        self.record_delay(now, sent_ns);
        if let Some((from, to)) = self.gaps.remove(at) {
            for (i, part) in [(from, sequence), (sequence + 1, to)].into_iter().filter(|(f, t)| f < t).enumerate() {
                self.gaps.insert(at + i, part);
            }
        }
        self.trim_gaps();
        self.stats.lost -= 1;
        self.stats.late += 1;
        Inserted::Late
    }

    fn record_delay(&mut self, now: Instant, sent_ns: i128) {
        self.delays.saturating_record(now.since(self.clock.instant(sent_ns)).as_micros());
    }

    fn advance(&mut self, sequence: u64, entry: &Entry) {
        if self.next.is_none() {
            self.next = Some(sequence);
            self.frames.join_at(sequence, 1 << 32 | u64::from(entry.header.frame));
        }
        self.skip_to(sequence);
        self.next = Some(sequence + 1);
    }

    /// Forgets the oldest gaps beyond the bound; what then still comes from them counts as a repetition.
    fn trim_gaps(&mut self) {
        while self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
    }

    /// Moves the play-out point over what is missing.
    fn skip_to(&mut self, sequence: u64) {
        let Some(next) = self.next else { return };
        let missing = sequence.saturating_sub(next);
        if missing > 0 {
            self.gap += missing;
            self.stats.lost += missing;
            self.gaps.push_back((next, sequence));
            self.trim_gaps();
            self.next = Some(sequence);
        }
    }
}

fn keep(outcomes: &mut VecDeque<FrameOutcome>, outcome: FrameOutcome) {
    if outcomes.len() == OUTCOMES_MAX {
        outcomes.pop_front();
    }
    outcomes.push_back(outcome);
}

/// Delays from 1 microsecond to 10 minutes, three digits.
fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests;
