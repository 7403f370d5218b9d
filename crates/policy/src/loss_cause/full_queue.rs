//! Congestion where packets next to the lost one waited as long as a full queue makes them wait, radio elsewhere.
//!
//! Source: ours. A drop-tail queue drops a packet because there is less room than a packet, so what passed it just before
//! and just after waited within a packet's time of the longest wait there is; a radio loses packets whatever the queue
//! holds. Neighbours are the two newest round trips known of packets before the loss and the two oldest of packets after
//! it; their median is near the longest when it falls short of it by no more than `slack` packets' times or by `share` of
//! all that round trips vary, whichever is more.
//! The longest and the shortest are those of `window`. The longest is of the smallest of three round trips in a row, and of
//! those alone whose acknowledgement cannot have waited for a second packet, where a peer has such. A packet's time is how far apart
//! acknowledgements are for each packet that they pass, at the `pace` of the quickest of the newest 128: what left back to
//! back is parted by the bottleneck.
//! Where a queue holds a packet or two every round trip is near the longest, and so it is where there is no queue yet. All
//! losses are congestion there, until some neighbour was quicker. Where round trips vary by less than a sixteenth, two losses
//! with less than five eighths under way of what was under way at an earlier one end that too: a queue overflows by what is
//! under way, a radio loses whatever that is. From then on losses are radio's until a queue shows. A timeout is judged in the
//! same way; it restarts the window whatever its cause.
//! Wrong for queues that drop before they are full (RED, CoDel), and of radio losses in a queue that stands nearly full.
//! Parameters: `window`, `slack`, `share`, `pace`.

use super::{Cause, Left, LossCause, LossEvent, LostPackets, Sample};
use crate::asks::{Asks, Counter};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::{Duration, Instant, Ppm};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn LossCause> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCause,
        name: "full_queue",
        source: "ours",
        file: file!(),
        summary: "Losses are congestion when packets around them waited within a packet's time of the longest wait, else radio.",
        params: &[
            ParamInfo::millis("window", 30_000, 100, 600_000, "of which the longest and shortest round trips are"),
            ParamInfo::number(
                "slack",
                1.5,
                "packets",
                0.0,
                100.0,
                "times of packets that neighbours may be quicker by",
            ),
            ParamInfo::number("share", 0.15, "of one", 0.0, 1.0, "part of the variation that they may be quicker by"),
            ParamInfo::number(
                "pace",
                0.2,
                "of one",
                0.0,
                1.0,
                "share of gaps between packets that are shorter than one's time",
            ),
        ],
    },
    build: |p| Box::new(FullQueue::new(p)),
};

/// Round trips that are kept to find neighbours among.
const KEPT: usize = 512;
/// Gaps that are kept.
const GAPS: usize = 128;
/// A peer that waits with its acknowledgements has some in so many that did not.
const PROMPT: u32 = 512;

struct FullQueue {
    window: Duration,
    slack: Ppm,
    share: Ppm,
    pace: Ppm,
    paths: Vec<Seen>,
    counters: [Counter; 2],
}

impl FullQueue {
    fn new(p: &Params) -> Self {
        FullQueue {
            window: p.millis("window"),
            slack: Ppm(p.ppm("slack") as u32),
            share: Ppm(p.ppm("share") as u32),
            pace: Ppm(p.ppm("pace") as u32),
            paths: Vec::new(),
            counters: [("radio", 0), ("congestion", 0)],
        }
    }
    fn is_congestion(&mut self, now: Instant, e: &LossEvent, in_flight: u64) -> bool {
        let (Some(seen), Some(lost)) = (self.paths.get_mut(e.path.index()), e.packets) else { return true };
        seen.forget_before(now - self.window);
        let (Some(beside), Some(longest), Some(shortest)) = (seen.beside(lost), seen.longest(), seen.shortest()) else {
            return true;
        };
        let least = self.slack.of(seen.packet_time(self.pace));
        let is_near = |trip: u64, longest: u64| {
            trip.saturating_add(least.max(self.share.of(longest.saturating_sub(shortest)))) >= longest
        };
        if is_near(beside, longest) {
            seen.radio.clear();
            let quiet = longest.saturating_sub(shortest) < shortest / QUIET;
            return !(quiet && seen.is_bare(now - self.window, now, in_flight, e.new_episode));
        }
        if !e.new_episode {
            return false;
        }
        push(&mut seen.radio, (now, beside), AT_THE_TOP);
        let since = seen.radio.front().map_or(now, |l| l.0);
        let long_enough = seen.radio.len() == AT_THE_TOP && now.since(since).as_nanos() >= LASTS * longest;
        let Some(newly) = seen.longest_since(since).filter(|_| long_enough) else { return false };
        if newly < shortest + 2 * least || !seen.radio.iter().all(|l| is_near(l.1, newly)) {
            return false;
        }
        seen.forget_before(since);
        seen.radio.clear();
        true
    }
}

/// Losses in a row, over `LASTS` round trips at least, that radio would hardly put beside the longest ones of their time.
const AT_THE_TOP: usize = 4;
const LASTS: u64 = 8;

/// Round trips that vary by less than one part in so many of the shortest show no queue.
const QUIET: u64 = 16;
/// Losses without a queue, with far less under way than at another, that show a radio.
const BARE: usize = 2;

/// What is known of a path; times in nanoseconds.
struct Seen {
    /// Serials and their round trips, in the order in which they were seen.
    trips: VecDeque<(u64, u64)>,
    /// Gaps between news for each packet that it passed.
    gaps: VecDeque<u64>,
    /// Time and serial of the newest.
    newest: Option<(Instant, u64)>,
    /// The last two round trips that may be the longest.
    before: [u64; 2],
    /// Samples since the last of a second packet.
    alone: u32,
    /// Candidates for the longest, each longer than all after it, and for the shortest.
    long: VecDeque<(Instant, u64)>,
    short: VecDeque<(Instant, u64)>,
    /// The newest losses that were put down to radio, and what packets next to them had waited.
    radio: VecDeque<(Instant, u64)>,
    /// Most bytes under way at a loss without a queue, and when; and when the newest losses with far fewer came.
    top: (Instant, u64),
    bare: VecDeque<Instant>,
}

impl Default for Seen {
    fn default() -> Self {
        let (trips, gaps, long, short, radio, bare) = Default::default();
        let (newest, before, alone, top) = (None, [u64::MAX; 2], PROMPT, (Instant::ZERO, 0));
        Seen { trips, gaps, newest, before, alone, long, short, radio, top, bare }
    }
}

fn push<T>(list: &mut VecDeque<T>, x: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(x);
}

/// Adds a candidate behind those that it does not outdo.
fn contend(list: &mut VecDeque<(Instant, u64)>, now: Instant, x: u64, outdone: impl Fn(u64) -> bool) {
    while list.back().is_some_and(|l| outdone(l.1)) {
        list.pop_back();
    }
    push(list, (now, x), KEPT);
}

impl Seen {
    fn sample(&mut self, now: Instant, s: &Sample) {
        let rtt = s.rtt.as_nanos();
        if let Some((at, seq)) = self.newest
            && let Some(packets) = s.seq.checked_sub(seq).filter(|n| *n > 0)
        {
            push(&mut self.gaps, now.since(at).as_nanos() / packets, GAPS);
        }
        self.newest = Some((now, s.seq));
        self.alone = if s.left == Left::Second { 0 } else { self.alone.saturating_add(1) };
        if s.left != Left::Alone || self.alone > PROMPT {
            push(&mut self.trips, (s.seq, rtt), KEPT);
            let least = rtt.min(self.before[0]).min(self.before[1]);
            self.before = [rtt, self.before[0]];
            contend(&mut self.long, now, least, |l| l <= least);
        }
        contend(&mut self.short, now, rtt, |l| l >= rtt);
    }
    /// The newest candidate stays however old it is.
    fn forget_before(&mut self, t: Instant) {
        for list in [&mut self.long, &mut self.short] {
            while list.len() > 1 && list.front().is_some_and(|l| l.0 < t) {
                list.pop_front();
            }
        }
    }
    /// A loss without a queue, with so much under way: does the path lose by itself, as far as what came since `t` shows?
    fn is_bare(&mut self, t: Instant, now: Instant, in_flight: u64, counts: bool) -> bool {
        if self.top.0 < t {
            self.top = (now, 0);
        }
        if counts && in_flight < self.top.1 / 8 * 5 {
            push(&mut self.bare, now, BARE);
        }
        if in_flight > self.top.1 {
            self.top = (now, in_flight);
        }
        self.bare.len() == BARE && self.bare.front().is_some_and(|first| *first >= t)
    }
    fn longest(&self) -> Option<u64> {
        self.long.front().map(|l| l.1)
    }
    fn longest_since(&self, t: Instant) -> Option<u64> {
        self.long.iter().find(|l| l.0 >= t).map(|l| l.1)
    }
    fn shortest(&self) -> Option<u64> {
        self.short.front().map(|l| l.1)
    }
    fn packet_time(&self, pace: Ppm) -> u64 {
        let mut gaps: Vec<u64> = self.gaps.iter().copied().collect();
        let at = pace.of(gaps.len() as u64) as usize;
        if gaps.is_empty() { 0 } else { *gaps.select_nth_unstable(at.min(self.gaps.len() - 1)).1 }
    }
    /// The median round trip of the packets around these.
    fn beside(&self, lost: LostPackets) -> Option<u64> {
        let before = self.trips.iter().rev().filter(|t| t.0 < lost.first).take(2);
        let after = self.trips.iter().filter(|t| t.0 > lost.last).take(2);
        let mut near: Vec<u64> = before.chain(after).map(|t| t.1).collect();
        near.sort_unstable();
        let (low, high) = (near.get(near.len().checked_sub(1)? / 2)?, near.get(near.len() / 2)?);
        Some(low.midpoint(*high))
    }
}

impl LossCause for FullQueue {
    fn asks(&self) -> Asks {
        Asks::SAMPLES
    }
    fn counters(&self) -> &[Counter] {
        &self.counters
    }
    fn sample(&mut self, now: Instant, s: &Sample) {
        let i = s.path.index();
        if self.paths.len() <= i {
            self.paths.resize_with(i + 1, Seen::default);
        }
        if let Some(seen) = self.paths.get_mut(i) {
            seen.sample(now, s);
        }
    }
    fn classify(&mut self, cx: &AssocView<'_>, e: &LossEvent) -> Cause {
        let in_flight = cx.path(e.path).map_or(0, |p| p.in_flight + e.bytes);
        let congestion = self.is_congestion(cx.now, e, in_flight);
        if e.new_episode {
            self.counters[usize::from(congestion)].1 += 1;
        }
        if congestion { Cause::Congestion } else { Cause::Radio }
    }
}

#[cfg(test)]
#[path = "full_queue_tests.rs"]
mod tests;
