//! Packets by their numbers: put in order, repeated ones dropped, missing ones waited for as long as is worth it.
//!
//! - The next packet in order leaves at once. One that is missing is waited for until `window` after the first of
//!   those behind it arrived, or until 1,024 numbers or 4 MiB lie behind it; then it is given up.
//! - At the beginning the first packet may have overtaken others: for `window` all is held, and the lowest number, up
//!   to 128 before the first, is where the stream begins.
//! - A packet's instant is its arrival, or that of the first packet behind it if that was here before: it had left
//!   the sender by then. So instants rise with the numbers.
//! - A packet of another source, or with a number that is far off, is a stray. Three strays that belong together,
//!   with nothing of the stream in between, are where the stream goes on (as RFC 3550 A.1 does with two). So are 32
//!   late or repeated packets in a row whose numbers rise, and whatever comes after a second of silence.

use anabranch_base::{Duration, Instant};
use bytes::Bytes;
use std::collections::VecDeque;

/// Numbers behind a missing packet.
const SLOTS: usize = 1_024;
/// Bytes behind a missing packet.
const BYTES_MAX: usize = 4 << 20;
/// Numbers before the first packet that may still come.
const BEFORE: u16 = 128;
/// Strays that are a stream.
const STRAYS: usize = 3;
/// Distance between strays that belong together.
const TOGETHER: i16 = 16;
/// Late packets in a row that are a stream which has begun anew.
const LATE_RUN: u32 = 32;
/// After so long a silence whatever comes is the stream.
const SILENCE: Duration = Duration::from_secs(1);

/// Counters of what was put in order, lost, late, repeated or strange.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReorderStats {
    /// Packets put out.
    pub packets: u64,
    /// Of them, those that others had overtaken.
    pub reordered: u64,
    /// Packets given up.
    pub lost: u64,
    /// Packets that came after they were given up, or from before the beginning.
    pub late: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets of other sources or with numbers far off, dropped.
    pub strays: u64,
    /// How often the stream went on with another source or other numbers.
    pub restarts: u64,
}

struct Held {
    at: Instant,
    payload: Bytes,
}

struct Stray {
    at: Instant,
    ssrc: u32,
    sequence: u16,
    payload: Bytes,
}

/// A packet that is missing.
#[derive(Clone, Copy)]
struct Gap {
    /// Numbers from it to the first packet that is here.
    length: u16,
    /// When the first of those behind it arrived.
    since: Instant,
}

/// The source that is followed.
#[derive(Clone, Copy)]
struct Source {
    ssrc: u32,
    /// The number that is due.
    next: u16,
    /// The first number that came, and until when lower ones are waited for.
    first: u16,
    opens: Option<Instant>,
    /// Which of the 128 numbers before `next` came; the lowest bit is the last of them.
    came: u128,
    /// Last arrival of anything that belongs to it.
    heard: Instant,
    /// Late packets in a row whose numbers rise, and the last of them.
    late_run: u32,
    late_last: u16,
}

/// Puts packets in order. Feed it with [`push`](Reorder::push), call [`on_timeout`](Reorder::on_timeout) at
/// [`deadline`](Reorder::deadline), and after each of both take packets until there is none.
pub struct Reorder {
    window: Duration,
    source: Option<Source>,
    slots: Box<[Option<Held>]>,
    held: usize,
    bytes: usize,
    gap: Option<Gap>,
    strays: Vec<Stray>,
    ready: VecDeque<(Instant, Bytes)>,
    stats: ReorderStats,
}

impl Reorder {
    /// Waits so long for what is missing.
    pub fn new(window: Duration) -> Self {
        Reorder {
            window,
            source: None,
            slots: std::iter::repeat_with(|| None).take(SLOTS).collect(),
            held: 0,
            bytes: 0,
            gap: None,
            strays: Vec::with_capacity(STRAYS),
            ready: VecDeque::new(),
            stats: ReorderStats::default(),
        }
    }

    /// Takes in a packet that arrived at `now`; instants never fall.
    pub fn push(&mut self, now: Instant, ssrc: u32, sequence: u16, payload: Bytes) {
        if self.source.is_some_and(|s| now.since(s.heard) >= SILENCE) {
            self.on_timeout(now);
        }
        // First, so that it may be what is due to be given up: if we were slow, it did not come late.
        self.take(now, ssrc, sequence, payload);
        self.on_timeout(now);
    }

    fn take(&mut self, now: Instant, ssrc: u32, sequence: u16, payload: Bytes) {
        let Some(source) = self.source else { return self.begin(now, ssrc, sequence, payload) };
        let ahead = sequence.wrapping_sub(source.next) as i16;
        let near = ssrc == source.ssrc && ahead.unsigned_abs() < SLOTS as u16;
        let expected = near && ahead >= 0;
        if !expected && now.since(source.heard) >= SILENCE {
            self.restart();
            return self.begin(now, ssrc, sequence, payload);
        }
        if !near {
            return self.stray(Stray { at: now, ssrc, sequence, payload });
        }
        match source.opens {
            Some(_) if !expected && source.first.wrapping_sub(sequence) <= BEFORE => {
                self.source = Some(Source { next: sequence, ..source });
                self.place(now, sequence, payload);
            }
            _ if !expected => self.behind(now, sequence, payload),
            opens => {
                if opens.is_some() && ahead as u16 >= SLOTS as u16 - BEFORE {
                    self.open();
                }
                self.place(now, sequence, payload);
            }
        }
    }

    /// When [`on_timeout`](Reorder::on_timeout) is due, if a packet is missing.
    pub fn deadline(&self) -> Option<Instant> {
        let opens = self.source.and_then(|s| s.opens);
        opens.or(self.gap.map(|gap| gap.since + self.window))
    }

    /// Gives up what has been waited for long enough. Calling it early does nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.source.is_some_and(|s| s.opens.is_some_and(|at| now >= at)) {
            self.open();
        }
        while let Some(gap) = self.gap
            && now >= gap.since + self.window
        {
            self.skip(gap.length);
        }
    }

    /// No more will come: what is here goes out without what is missing.
    pub fn finish(&mut self) {
        self.open();
        while let Some(gap) = self.gap {
            self.skip(gap.length);
        }
    }

    /// The next packet in order, with its instant.
    pub fn poll(&mut self) -> Option<(Instant, Bytes)> {
        self.ready.pop_front()
    }

    /// Is this a packet of the source that is followed, at its turn or soon?
    pub fn expects(&self, ssrc: u32, sequence: u16) -> bool {
        self.source.is_some_and(|s| s.ssrc == ssrc && usize::from(sequence.wrapping_sub(s.next)) < SLOTS)
    }

    /// Counters of what was put in order, lost, late, repeated or strange.
    pub fn stats(&self) -> ReorderStats {
        self.stats
    }

    /// Packets and bytes that wait behind a missing one.
    pub fn waiting(&self) -> (usize, usize) {
        (self.held, self.bytes)
    }

    fn begin(&mut self, now: Instant, ssrc: u32, sequence: u16, payload: Bytes) {
        self.follow(now, ssrc, sequence);
        self.place(now, sequence, payload);
    }

    fn follow(&mut self, now: Instant, ssrc: u32, first: u16) {
        let opens = Some(now + self.window);
        self.source = Some(Source { ssrc, next: first, first, opens, came: 0, heard: now, late_run: 0, late_last: 0 });
    }

    /// The lowest number so far is where the stream begins.
    fn open(&mut self) {
        if let Some(source) = &mut self.source {
            source.opens = None;
        }
        self.release();
    }

    /// Everything of the old numbering goes out.
    fn restart(&mut self) {
        self.finish();
        self.source = None;
        self.stats.restarts += 1;
        self.stats.strays += self.strays.len() as u64;
        self.strays.clear();
    }

    /// A packet at or behind the one that is due.
    fn place(&mut self, now: Instant, sequence: u16, payload: Bytes) {
        let Some(source) = &mut self.source else { return };
        (source.heard, source.late_run) = (now, 0);
        let next = source.next;
        self.stats.strays += self.strays.len() as u64;
        self.strays.clear();
        if self.slot(sequence).is_some() {
            self.stats.duplicates += 1;
            return;
        }
        // What follows it was sent later and is here already.
        let offset = sequence.wrapping_sub(next);
        let overtaken = (self.held > 0)
            .then(|| (offset..SLOTS as u16).find_map(|o| self.slot(next.wrapping_add(o)).as_ref().map(|h| h.at)));
        let overtaken = overtaken.flatten();
        self.stats.reordered += u64::from(overtaken.is_some());
        self.bytes += payload.len();
        self.held += 1;
        *self.slot(sequence) = Some(Held { at: overtaken.unwrap_or(now), payload });
        if self.bytes > BYTES_MAX {
            self.open();
        } else {
            self.release();
        }
        while self.bytes > BYTES_MAX
            && let Some(gap) = self.gap
        {
            self.skip(gap.length);
        }
    }

    /// A packet whose turn is over.
    fn behind(&mut self, now: Instant, sequence: u16, payload: Bytes) {
        let Some(source) = &mut self.source else { return };
        let step = sequence.wrapping_sub(source.late_last) as i16;
        source.late_run = if (1..=TOGETHER).contains(&step) { source.late_run + 1 } else { 1 };
        source.late_last = sequence;
        if source.late_run >= LATE_RUN {
            let ssrc = source.ssrc;
            self.restart();
            return self.begin(now, ssrc, sequence, payload);
        }
        source.heard = now;
        let back = u32::from(source.next.wrapping_sub(sequence)) - 1;
        let came = source.came.checked_shr(back).is_some_and(|c| c & 1 == 1);
        if came {
            self.stats.duplicates += 1;
        } else {
            self.stats.late += 1;
        }
    }

    fn stray(&mut self, stray: Stray) {
        let apart = self.strays.last().map(|s| (s.ssrc, stray.sequence.wrapping_sub(s.sequence) as i16));
        let together =
            apart.is_some_and(|(ssrc, d)| ssrc == stray.ssrc && d != 0 && (-TOGETHER..=TOGETHER).contains(&d));
        if !together {
            self.stats.strays += self.strays.len() as u64;
            self.strays.clear();
        }
        self.strays.push(stray);
        if self.strays.len() < STRAYS {
            return;
        }
        let mut found = std::mem::take(&mut self.strays);
        self.restart();
        let Some(reference) = found.first().map(|s| s.sequence) else { return };
        let first = found.iter().min_by_key(|s| s.sequence.wrapping_sub(reference) as i16);
        if let Some((at, ssrc, sequence)) = first.map(|s| (s.at, s.ssrc, s.sequence)) {
            self.follow(at, ssrc, sequence);
        }
        for s in found.drain(..) {
            self.place(s.at, s.sequence, s.payload);
        }
        self.strays = found;
    }

    fn slot(&mut self, sequence: u16) -> &mut Option<Held> {
        &mut self.slots[usize::from(sequence) % SLOTS]
    }

    /// Moves over a gap.
    fn skip(&mut self, length: u16) {
        if let Some(source) = &mut self.source {
            source.next = source.next.wrapping_add(length);
            source.came = source.came.checked_shl(u32::from(length)).unwrap_or(0);
        }
        self.stats.lost += u64::from(length);
        self.release();
    }

    /// Hands on what is in order, and looks for what is missing next.
    fn release(&mut self) {
        let Some(mut source) = self.source.filter(|s| s.opens.is_none()) else { return };
        while let Some(held) = self.slot(source.next).take() {
            self.held -= 1;
            self.bytes -= held.payload.len();
            self.stats.packets += 1;
            self.ready.push_back((held.at, held.payload));
            source.next = source.next.wrapping_add(1);
            source.came = source.came << 1 | 1;
        }
        self.source = Some(source);
        let mut behind = 1..if self.held > 0 { SLOTS as u16 } else { 0 };
        self.gap = behind.find_map(|length| {
            let since = self.slot(source.next.wrapping_add(length)).as_ref()?.at;
            Some(Gap { length, since })
        });
    }
}
