//! A loss beside packets that met the queue near its fullest is congestion, any other is radio.
//!
//! Source: ours. A drop-tail queue drops when it is full, so the packets that left just before and after one that it
//! dropped took nearly as long as packets ever do on this path, while the radio loses at any fill. The greater of the two
//! round trips beside the loss is held against the shortest and the longest of the last half minute to a minute: in the
//! upper part of that range it speaks for the queue. Where many packets take that long anyway, because others fill the
//! queue or because nothing but a burst of ours is there, the radio loses some of them too: it is congestion only when
//! losses are so many times as frequent there as below, counted over the last losses.
//! A round trip whose acknowledgement waited for a companion says nothing and is left out. Timeouts are told apart in
//! the same way; no policy of windows keeps a window because of it. Losses that nothing shows (marks, copies that a
//! policy took off) are congestion, and so is everything before the first round trip.
//! What it cannot do: a queue of a few packets, which a burst of two fills, looks the same as none (docs of the
//! experiment `fairness` have the bound), and active queue management drops before the queue is full.
//! Parameters: `top`, part of the range from which on a queue counts as full; `odds`, how many times as frequent;
//! `memory` s; `losses` after which what was counted before weighs half.

use super::{Cause, LossCause, LossEvent, Sample};
use crate::registry::{Hook, ParamInfo, Params, Policy, PolicyInfo};
use crate::view::AssocView;
use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

pub(super) const POLICY: Policy<dyn LossCause> = Policy {
    info: PolicyInfo {
        hook: Hook::LossCause,
        name: "full_queue",
        source: "ours",
        file: file!(),
        summary: "Congestion where the packets beside a loss took nearly as long as any, and losses are frequent there; else radio.",
        params: &[
            ParamInfo::number("top", 0.75, "of the range", 0.0, 1.0, "from which on a queue counts as full"),
            ParamInfo::number("odds", 1.5, "", 0.0, 100.0, "how many times as frequent losses are there as below"),
            ParamInfo::number("memory", 30.0, "s", 1.0, 3_600.0, "for which extremes are kept at least"),
            ParamInfo::count("losses", 64, "", 4, 10_000, "after which what was counted before weighs half"),
        ],
    },
    build: |p| Box::new(FullQueue::new(p)),
};

/// Round trips kept to find those beside a loss.
const KEPT: usize = 64;

struct FullQueue {
    top: f64,
    odds: f64,
    memory: Duration,
    losses: f64,
    paths: Vec<Path>,
}

/// What is known of a path.
#[derive(Clone, Debug, Default)]
struct Path {
    /// Newest round trips with their serials.
    recent: VecDeque<(u64, Duration)>,
    /// Shortest and longest of this half of the memory and of the one before, and when this one began.
    least: [Option<Duration>; 2],
    most: [Duration; 2],
    since: Instant,
    high: Counts,
    low: Counts,
}

/// Packets and losses in a part of the range.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: f64,
    lost: f64,
}

impl Counts {
    fn halve(&mut self) {
        (self.packets, self.lost) = (self.packets / 2.0, self.lost / 2.0);
    }
}

impl Path {
    /// Round trip from which on a queue counts as full; none while all took the same.
    fn mark(&self, top: f64) -> Option<f64> {
        let least = self.least.iter().flatten().min()?.as_secs_f64();
        let most = self.longest().as_secs_f64();
        (most > least).then_some(least + top * (most - least))
    }
    fn longest(&self) -> Duration {
        self.most[0].max(self.most[1])
    }
    fn is_full(&self, rtt: Duration, top: f64) -> bool {
        self.mark(top).is_some_and(|mark| rtt.as_secs_f64() >= mark)
    }
    fn sample(&mut self, now: Instant, s: &Sample, memory: Duration, top: f64) {
        if self.recent.is_empty() {
            self.since = now;
        } else if now.since(self.since) > memory {
            (self.least, self.most, self.since) = ([None, self.least[0]], [Duration::ZERO, self.most[0]], now);
        }
        let (before, longest) = (self.mark(top), self.longest());
        self.least[0] = Some(self.least[0].map_or(s.rtt, |l| l.min(s.rtt)));
        self.most[0] = self.most[0].max(s.rtt);
        if s.rtt > longest {
            self.raise(before, longest, top);
        }
        // Of two neighbours the greater, as beside a loss.
        let beside = self.recent.back().map_or(s.rtt, |(_, rtt)| s.rtt.max(*rtt));
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back((s.seq, s.rtt));
        let part = if self.is_full(beside, top) { &mut self.high } else { &mut self.low };
        part.packets += f64::from(s.packets.max(1));
    }
    /// The longest round trip is no longer `longest`, so that some of what was counted from the mark `before` on lies
    /// below the mark now: a part as if it had been spread evenly.
    fn raise(&mut self, before: Option<f64>, longest: Duration, top: f64) {
        let (Some(before), Some(now)) = (before, self.mark(top)) else { return };
        let span = longest.as_secs_f64() - before;
        let part = if span > 0.0 { ((now - before) / span).clamp(0.0, 1.0) } else { 1.0 };
        let (packets, lost) = (part * self.high.packets, part * self.high.lost);
        (self.high.packets, self.high.lost) = (self.high.packets - packets, self.high.lost - lost);
        (self.low.packets, self.low.lost) = (self.low.packets + packets, self.low.lost + lost);
    }
    /// The greater of the round trips of the packets before `first` and after `last`.
    fn beside(&self, first: u64, last: u64) -> Option<Duration> {
        let before = self.recent.iter().rev().find(|(seq, _)| *seq < first).map(|(_, rtt)| *rtt);
        let after = self.recent.iter().filter(|(seq, _)| *seq > last).min_by_key(|(seq, _)| *seq).map(|(_, rtt)| *rtt);
        before.max(after).or(self.recent.back().map(|(_, rtt)| *rtt))
    }
}

impl FullQueue {
    fn new(p: &Params) -> Self {
        FullQueue {
            top: p.number("top"),
            odds: p.number("odds"),
            memory: p.secs("memory"),
            losses: p.number("losses"),
            paths: Vec::new(),
        }
    }
}

impl LossCause for FullQueue {
    fn sample(&mut self, now: Instant, s: &Sample) {
        let i = s.path.index();
        if i >= self.paths.len() {
            self.paths.resize_with(i + 1, Path::default);
        }
        if let Some(p) = self.paths.get_mut(i).filter(|_| s.prompt) {
            p.sample(now, s, self.memory, self.top);
        }
    }
    fn classify(&mut self, _cx: &AssocView<'_>, e: &LossEvent) -> Cause {
        let path = self.paths.get_mut(e.path.index());
        let (Some(p), Some(lost)) = (path, e.packets) else { return Cause::Congestion };
        let Some(rtt) = p.beside(lost.first, lost.last) else { return Cause::Congestion };
        let full = p.is_full(rtt, self.top);
        let part = if full { &mut p.high } else { &mut p.low };
        part.lost += f64::from(lost.chunks);
        // Half a loss in ten packets stands for what is not known yet.
        let there = p.high.lost / (p.high.packets + 1.0);
        let below = (p.low.lost + 0.5) / (p.low.packets + 10.0);
        let congestion = full && there >= self.odds * below;
        if p.high.lost + p.low.lost > self.losses {
            p.high.halve();
            p.low.halve();
        }
        if congestion { Cause::Congestion } else { Cause::Radio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_cause::LostPackets;
    use crate::testing::{Scene, loss, ms};
    use anabranch_base::PathId;

    fn policy() -> FullQueue {
        FullQueue::new(&Params::defaults(&POLICY.info, 0))
    }
    fn sample(p: &mut FullQueue, s: &mut Scene, seq: u64, rtt: u64) {
        s.now += ms(10);
        p.sample(s.now, &Sample { path: PathId(0), seq, rtt: ms(rtt), packets: 1, prompt: true });
    }
    fn lose(p: &mut FullQueue, s: &Scene, seq: u64) -> Cause {
        p.classify(&s.cx(), &LossEvent { packets: Some(LostPackets::and(None, seq)), ..loss(0) })
    }
    /// A queue that grows from 50 to 99 ms again and again.
    fn saw(p: &mut FullQueue, s: &mut Scene, rounds: u64) -> u64 {
        let n = rounds * 50;
        (0..n).for_each(|i| sample(p, s, 2 * i, 50 + i % 50));
        2 * n
    }

    #[test]
    fn what_the_packets_beside_it_took_decides() {
        let (mut p, mut s) = (policy(), Scene::new(1, 0));
        assert_eq!(lose(&mut p, &s, 1), Cause::Congestion, "nothing is known");
        let n = saw(&mut p, &mut s, 10);
        // Three quarters of the range from 50 to 99 ms end at 86.75 ms.
        for (before, after, cause) in
            [(60, 60, Cause::Radio), (86, 86, Cause::Radio), (99, 98, Cause::Congestion), (60, 87, Cause::Congestion)]
        {
            let mut p = FullQueue { paths: p.paths.clone(), ..policy() };
            sample(&mut p, &mut s, n, before);
            sample(&mut p, &mut s, n + 2, after);
            sample(&mut p, &mut s, n + 4, 50);
            assert_eq!(lose(&mut p, &s, n + 1), cause, "{before} {after}");
        }
    }

    #[test]
    fn losses_at_any_fill_are_the_radios() {
        let (mut p, mut s) = (policy(), Scene::new(1, 0));
        let mut r = anabranch_base::RandomStream::named(1, "radio");
        saw(&mut p, &mut s, 4);
        let mut wrong = 0;
        for i in 0..2_000 {
            let seq = 1_000 + 2 * i;
            sample(&mut p, &mut s, seq, 50 + r.below(50));
            if r.chance(0.1) {
                sample(&mut p, &mut s, seq + 2, 50 + r.below(50));
                wrong += u32::from(lose(&mut p, &s, seq + 1) == Cause::Congestion);
            }
        }
        assert!(wrong < 20, "{wrong} of some 200, of which half have a neighbour above 86 ms");
    }

    #[test]
    fn an_acknowledgement_that_waited_says_nothing() {
        let (mut p, mut s) = (policy(), Scene::new(1, 0));
        let n = saw(&mut p, &mut s, 2);
        p.sample(s.now, &Sample { path: PathId(0), seq: n, rtt: ms(250), packets: 1, prompt: false });
        sample(&mut p, &mut s, n + 2, 99);
        assert_eq!(lose(&mut p, &s, n + 3), Cause::Congestion, "250 ms would be the fullest");
    }

    #[test]
    fn extremes_are_forgotten() {
        let (mut p, mut s) = (policy(), Scene::new(1, 0));
        sample(&mut p, &mut s, 0, 400);
        for i in 1..6_100 {
            sample(&mut p, &mut s, i, 50 + i % 50);
        }
        assert_eq!(p.paths[0].longest(), ms(99));
        assert_eq!(p.paths[0].recent.len(), KEPT);
    }

    #[test]
    fn what_no_packet_shows_is_congestion() {
        let (mut p, mut s) = (policy(), Scene::new(1, 0));
        saw(&mut p, &mut s, 1);
        assert_eq!(p.classify(&s.cx(), &loss(0)), Cause::Congestion);
    }
}
