//! Random weather: what befalls each path, drawn from a seed, and since when each could carry the stream.

use crate::common::*;
use anabranch_base::{Instant, RandomStream, Rate};
use anabranch_sim::{Direction, Jitter, Limit, LinkConfig, LossConfig, Setting};
use std::collections::VecDeque;

/// Weather that the log remembers.
const REMEMBERED: usize = 40;
/// Between two things that befall one path, milliseconds.
const CALM: (u64, u64) = (1_000, 12_000);
/// Between two things that befall all paths at once, milliseconds.
const COMMON_CALM: (u64, u64) = (8_000, 60_000);

/// What befalls a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// Packets take so many milliseconds longer. When it ends, all that were on their way arrive.
    Spike(u64),
    /// A tenth of the rate.
    Collapse,
    /// Nothing passes, in these directions.
    Dark(&'static [Direction]),
    /// Loss in bursts: share, and packets of a burst.
    Bursts(f64, f64),
    /// Loss, and milliseconds of jitter. The path can still carry the stream.
    Messy(f64, u64),
    /// Another base station: so many milliseconds of delay from now on.
    Handover(u64),
}

impl Trouble {
    /// Can the path not carry the stream while this lasts?
    fn disables(self) -> bool {
        !matches!(self, Trouble::Messy(..) | Trouble::Handover(_))
    }
}

/// One path.
pub struct Road {
    /// Bits per second in good times.
    pub rate: u64,
    /// Milliseconds in good times.
    pub delay: u64,
    /// Packets that its queue holds.
    pub limit: u64,
    /// What befalls it now, and until when.
    trouble: Option<(Trouble, Instant)>,
    /// When the next thing befalls it.
    next: Instant,
    /// Since when it could carry the stream.
    pub able_since: Option<Instant>,
}

/// All paths, and what befalls them.
pub struct Sky {
    r: RandomStream,
    pub roads: Vec<Road>,
    /// Delays are at most so long in good times, milliseconds.
    longest: u64,
    next_common: Instant,
    pub log: VecDeque<(Instant, String)>,
    pub events: u64,
}

/// From `from` to `to`, both possible.
fn between(r: &mut RandomStream, (from, to): (u64, u64)) -> u64 {
    from + r.below(to - from + 1)
}

impl Sky {
    /// One to three paths for a stream with this latency in milliseconds. Their delays are at most a third of it, so that
    /// a loss can be repaired in time.
    pub fn new(seed: u64, latency: u64) -> Sky {
        let mut r = RandomStream::named(seed, "sky");
        let longest = (latency / 3).min(200);
        let mut roads = vec![];
        for _ in 0..between(&mut r, (1, 3)) {
            let rate = between(&mut r, (2_000, 10_000)) * 1_000;
            // A queue of 100 to 500 ms in good times.
            let limit = rate * between(&mut r, (100, 500)) / 1_000 / 9_600;
            roads.push(Road {
                rate,
                delay: between(&mut r, (10, longest)),
                limit,
                trouble: None,
                next: Instant::ZERO,
                able_since: None,
            });
        }
        Sky { r, roads, longest, next_common: Instant::ZERO, log: VecDeque::new(), events: 0 }
    }

    /// The links, both ways alike.
    pub fn links(&self) -> Vec<LinkConfig> {
        let of = |road: &Road| LinkConfig {
            limit: Limit::packets(road.limit),
            ..LinkConfig::fixed(Some(Rate::from_bits_per_sec(road.rate)), ms(road.delay))
        };
        self.roads.iter().map(of).collect()
    }

    /// The weather begins.
    pub fn begin(&mut self, now: Instant) {
        for road in &mut self.roads {
            road.able_since = Some(now);
            road.next = now + ms(between(&mut self.r, CALM));
        }
        self.next_common = now + ms(between(&mut self.r, COMMON_CALM));
    }

    /// When something changes next.
    pub fn next_change(&self) -> Instant {
        let of = |r: &Road| r.trouble.map_or(r.next, |(_, until)| until);
        self.roads.iter().map(of).fold(self.next_common, Instant::min)
    }

    /// Changes what is due.
    pub fn advance(&mut self, b: &mut Bench) {
        let now = b.now;
        for i in 0..self.roads.len() {
            if self.roads[i].trouble.is_some_and(|(_, until)| until <= now) {
                self.end(b, i);
            } else if self.roads[i].trouble.is_none() && self.roads[i].next <= now {
                let (trouble, lasts) = self.draw();
                self.begin_trouble(b, i, trouble, lasts);
            }
        }
        if self.next_common <= now {
            self.next_common = now + ms(between(&mut self.r, COMMON_CALM));
            let (trouble, lasts) = match self.r.below(3) {
                0 => (Trouble::Dark(&Direction::BOTH), between(&mut self.r, (300, 8_000))),
                1 => (Trouble::Spike(between(&mut self.r, (300, 5_000))), between(&mut self.r, (300, 5_000))),
                _ => (Trouble::Collapse, between(&mut self.r, (1_000, 8_000))),
            };
            for i in 0..self.roads.len() {
                self.end(b, i);
                self.begin_trouble(b, i, trouble, lasts);
            }
        }
    }

    /// What befalls one path, and for how many milliseconds.
    fn draw(&mut self) -> (Trouble, u64) {
        let r = &mut self.r;
        match r.below(10) {
            0 | 1 => (Trouble::Spike(between(r, (300, 5_000))), between(r, (300, 5_000))),
            2 | 3 => (Trouble::Collapse, between(r, (1_000, 8_000))),
            4 => (Trouble::Dark(&Direction::BOTH), between(r, (200, 20_000))),
            5 => (Trouble::Dark(&[Direction::Forward]), between(r, (200, 5_000))),
            6 => (Trouble::Dark(&[Direction::Backward]), between(r, (200, 5_000))),
            7 => {
                let (share, packets) = (between(r, (10, 40)) as f64 / 100.0, between(r, (4, 20)) as f64);
                (Trouble::Bursts(share, packets), between(r, (500, 8_000)))
            }
            8 => {
                (Trouble::Messy(between(r, (5, 50)) as f64 / 1_000.0, between(r, (1, 30))), between(r, (2_000, 15_000)))
            }
            _ => (Trouble::Handover(between(r, (10, self.longest))), 0),
        }
    }

    fn begin_trouble(&mut self, b: &mut Bench, i: usize, trouble: Trouble, lasts: u64) {
        let now = b.now;
        let road = &mut self.roads[i];
        let mut set = |directions: &[Direction], s: Setting| {
            for d in directions {
                b.paths.get_mut(i).expect("a path").apply(now, *d, s.clone());
            }
        };
        let both = &Direction::BOTH;
        match trouble {
            Trouble::Spike(longer) => set(both, Setting::Delay(ms(road.delay + longer))),
            Trouble::Collapse => set(both, Setting::Rate(Some(Rate::from_bits_per_sec(road.rate / 10)))),
            Trouble::Dark(directions) => set(directions, Setting::Down),
            Trouble::Bursts(share, packets) => set(both, Setting::Loss(LossConfig::bursts(share, packets))),
            Trouble::Messy(loss, jitter) => {
                set(both, Setting::Loss(LossConfig::bernoulli(loss)));
                set(both, Setting::Jitter(Jitter::Uniform(ms(jitter.min(road.delay)))));
            }
            Trouble::Handover(delay) => {
                road.delay = delay;
                set(both, Setting::Delay(ms(delay)));
            }
        }
        if trouble.disables() {
            road.able_since = None;
        }
        road.trouble = Some((trouble, now + ms(lasts)));
        self.events += 1;
        self.note(now, format!("path {i}: {trouble:?} for {lasts} ms"));
    }

    /// Good times again.
    fn end(&mut self, b: &mut Bench, i: usize) {
        let now = b.now;
        let road = &mut self.roads[i];
        let Some((trouble, _)) = road.trouble.take() else { return };
        let settings = [
            Setting::Up,
            Setting::Rate(Some(Rate::from_bits_per_sec(road.rate))),
            Setting::Delay(ms(road.delay)),
            Setting::Jitter(Jitter::None),
            Setting::Loss(LossConfig::None),
        ];
        for d in Direction::BOTH {
            for s in &settings {
                b.paths.get_mut(i).expect("a path").apply(now, d, s.clone());
            }
        }
        road.able_since.get_or_insert(now);
        road.next = now + ms(between(&mut self.r, CALM));
        if !matches!(trouble, Trouble::Handover(_)) {
            self.note(now, format!("path {i}: well again"));
        }
    }

    fn note(&mut self, now: Instant, what: String) {
        if self.log.len() == REMEMBERED {
            self.log.pop_front();
        }
        self.log.push_back((now, what));
    }
}
