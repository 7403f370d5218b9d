//! NC-MPTCP (Li et al. 2012), a reconstruction: regular subflows carry the connection's segments in order, one more
//! carries random sums of them over GF(256), so many that a slow or lossy subflow holds nothing up.
//!
//! Where this file has to choose it is ours. Segments are numbered into generations of equal size. The subflow with the
//! largest product of loss and round trip carries the sums, so long as another is left. It makes up for what a generation
//! misses, then for what is expected to be lost or late of it, and else takes its part of a generation further ahead, by as
//! much as the regular ones will send until its sums arrive; regular subflows leave out what is covered so. What a time-out
//! finds outstanding counts as lost. A segment that has been solved is not sent again: a sum takes its place.

use super::super::source::PathView;
use super::super::{Content, MptcpAck, MptcpConfig, NcConfig, Plain, content};
use super::flights::Flights;
use super::{Coded, Group, MOST_SYMBOLS, coefficients, unit};
use crate::transport::tcp::{Data, Supply};
use anabranch_base::Instant;
use anabranch_code::gf256;
use std::collections::VecDeque;

/// Bytes in front of a sum.
const SUM_HEADER: u32 = 8;

/// A generation that is not in order at the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Generation {
    /// Segments of it that regular subflows have sent, from its first on.
    next: u16,
    /// Independent sums that the receiver has, segments included.
    rank: u16,
    /// Segments and sums on their way.
    flying: u16,
}

/// What a segment of a subflow carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Carries {
    #[default]
    Nothing,
    Original(u64),
    Sum(u32),
}

/// The data of a connection and what is on its way of them.
pub(in crate::transport::mptcp) struct Network {
    size: u16,
    /// Bytes of a sum: of a full segment.
    segment: u32,
    data: Data,
    /// Number of the first of `generations`.
    first: u32,
    generations: VecDeque<Generation>,
    /// Bytes of the segments from the first generation's first on, and when each left first.
    units: VecDeque<(u32, Instant)>,
    /// The next segment to be taken from the application, and the first that is not acknowledged.
    next: u64,
    una: u64,
    bytes: u64,
    edge: u64,
    flights: Vec<Flights<Carries>>,
    planned: Carries,
    serial: u32,
    stopped: bool,
    done: Option<Instant>,
    pub sums: u64,
    pub window_stops: u64,
}

impl Network {
    pub fn new(supply: Supply, config: &MptcpConfig, own: NcConfig, subflows: usize) -> Self {
        Network {
            size: own.generation.max(1),
            segment: config.tcp.segment,
            data: Data::new(supply, &config.tcp),
            first: 0,
            generations: VecDeque::new(),
            units: VecDeque::new(),
            next: 1,
            una: 1,
            bytes: 0,
            edge: config.receive_buffer,
            flights: (0..subflows).map(|_| Flights::new()).collect(),
            planned: Carries::Nothing,
            serial: 0,
            stopped: false,
            done: None,
            sums: 0,
            window_stops: 0,
        }
    }

    pub fn begin(&mut self, now: Instant) {
        self.data.begin(now);
    }

    pub fn next_at(&self) -> Option<Instant> {
        self.data.next_at()
    }

    pub fn done(&self) -> Option<Instant> {
        self.done
    }

    /// The first segment that is not acknowledged, and the next to be taken from the application.
    pub fn span(&self) -> (u64, u64) {
        (self.una, self.next)
    }

    /// The first segment of a generation.
    fn start(&self, generation: u32) -> u64 {
        u64::from(generation) * u64::from(self.size) + 1
    }

    /// How many segments of a generation there are by now.
    fn units(&self, generation: u32) -> u16 {
        self.next.saturating_sub(self.start(generation)).min(u64::from(self.size)) as u16
    }

    fn generation(&self, number: u32) -> Generation {
        let place = number.checked_sub(self.first).and_then(|n| self.generations.get(n as usize));
        place.copied().unwrap_or_default()
    }

    fn generation_mut(&mut self, number: u32) -> Option<&mut Generation> {
        let place = number.checked_sub(self.first)? as usize;
        while self.generations.len() <= place {
            self.generations.push_back(Generation::default());
        }
        self.generations.get_mut(place)
    }

    /// Takes what there is up to segment `number` from the application, as far as the receive window allows; says whether
    /// that is there.
    fn reach(&mut self, now: Instant, number: u64) -> bool {
        while self.next <= number {
            let was_stopped = core::mem::replace(&mut self.stopped, false);
            if !self.data.has(now, self.next, self.una, self.next) {
                return false;
            }
            let bytes = self.data.bytes(self.next);
            if self.bytes + u64::from(bytes) > self.edge {
                self.stopped = true;
                self.window_stops += u64::from(!was_stopped);
                return false;
            }
            self.bytes += u64::from(bytes);
            self.units.push_back((bytes, Instant::FAR));
            self.next += 1;
        }
        true
    }

    /// The subflow that carries sums: of those in use the one with the largest product of loss and round trip, if it is
    /// not the only one.
    fn sums_on(&self, paths: &[PathView]) -> Option<usize> {
        let usable = || paths.iter().enumerate().filter(|(_, p)| p.usable);
        let cost = |(i, p): &(usize, &PathView)| (self.flights.get(*i).map_or(0.0, Flights::loss) * p.rtt, p.rtt);
        let order = |a: &(usize, &PathView), b: &(usize, &PathView)| {
            let (a, b) = (cost(a), cost(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        };
        (usable().count() > 1).then(|| usable().max_by(order))?.map(|(i, _)| i)
    }

    /// What the next segment on subflow `on` carries: its bytes; none where it has nothing to do.
    pub fn offer(&mut self, now: Instant, on: usize, paths: &[PathView]) -> Option<u32> {
        let sums = self.sums_on(paths);
        self.planned = if sums == Some(on) { self.next_sum(now, on, paths) } else { self.next_original(now) }?;
        Some(self.size(self.planned))
    }

    /// The next segment that nothing covers; where all of a generation have left and too little is on its way, a sum.
    fn next_original(&mut self, now: Instant) -> Option<Carries> {
        let mut number = self.first;
        loop {
            let (g, start) = (self.generation(number), self.start(number));
            let covered = g.rank + g.flying;
            // Sums may cover more than the regular subflows have sent: what to ask the application for is behind both.
            self.reach(now, start + u64::from(covered.max(g.next).min(self.size - 1)));
            let units = self.units(number);
            if units == 0 {
                return None;
            }
            if covered < units {
                let next = start + u64::from(g.next);
                return Some(if g.next < units { Carries::Original(next) } else { Carries::Sum(number) });
            }
            number += 1;
        }
    }

    /// The sum that does most good.
    fn next_sum(&mut self, now: Instant, on: usize, paths: &[PathView]) -> Option<Carries> {
        let mut number = self.first;
        // What has left whole: what it misses, then what it will.
        loop {
            let (g, units) = (self.generation(number), self.units(number));
            let covered = g.rank + g.flying;
            if units == 0 || g.next < units && covered < units {
                break;
            }
            if g.rank < units && f64::from(covered) < f64::from(units) + self.expected(now, number, on, paths).ceil() {
                return Some(Carries::Sum(number));
            }
            number += 1;
        }
        let ahead = number + 1 + self.lag(on, paths);
        for far in ahead..ahead + u32::from(u16::MAX) {
            let start = self.start(far);
            self.reach(now, start + u64::from(self.size) - 1);
            let (g, units) = (self.generation(far), self.units(far));
            if units == 0 {
                break;
            }
            if g.rank + g.flying < units {
                return Some(Carries::Sum(far));
            }
        }
        // The data end: this one helps with what is left.
        let (g, units) = (self.generation(number), self.units(number));
        (!self.stopped && g.rank + g.flying < units).then_some(Carries::Sum(number))
    }

    /// By how many generations the regular subflows get on until a sum that leaves now arrives, less the time that their
    /// own segments take.
    fn lag(&self, on: usize, paths: &[PathView]) -> u32 {
        let regular = || paths.iter().enumerate().filter(|(i, p)| *i != on && p.usable).map(|(_, p)| p);
        let rate: f64 = regular().map(|p| p.window / p.rtt.max(1e-6)).sum();
        let least = regular().map(|p| p.rtt).fold(f64::INFINITY, f64::min);
        let later = paths.get(on).map_or(0.0, |p| (p.rtt - least) / 2.0).max(0.0);
        (later * rate / f64::from(self.size)).min(1_000.0) as u32
    }

    /// How many of the segments of a generation on their way over regular subflows will be lost, or arrive later than a sum
    /// that leaves now: those that are overdue by half a round trip wait for the time-out.
    fn expected(&self, now: Instant, number: u32, on: usize, paths: &[PathView]) -> f64 {
        let of = self.start(number)..self.start(number) + u64::from(self.size);
        let sum_arrives = paths.get(on).map_or(0.0, |p| p.rtt / 2.0);
        let regular = self.flights.iter().zip(paths).enumerate().filter(|(i, _)| *i != on);
        let mut expected = 0.0;
        for (_, (flights, path)) in regular {
            for (carries, left) in flights.flying() {
                let Carries::Original(n) = carries else { continue };
                if !of.contains(&n) {
                    continue;
                }
                let age = now.since(left).as_secs_f64();
                let arrives = if age > 1.5 * path.rtt { path.rto + path.rtt / 2.0 } else { path.rtt / 2.0 } - age;
                expected += if arrives > sum_arrives { 1.0 } else { flights.loss() };
            }
        }
        expected
    }

    fn size(&self, carries: Carries) -> u32 {
        match carries {
            Carries::Nothing => 0,
            Carries::Original(number) => self.unit(number).map_or(0, |u| u.0),
            Carries::Sum(_) => self.segment + SUM_HEADER,
        }
    }

    fn unit(&self, number: u64) -> Option<(u32, Instant)> {
        self.units.get(number.checked_sub(self.start(self.first))? as usize).copied()
    }

    /// What takes the place of a segment that is sent again: itself, unless it has been solved; else a sum.
    fn again(&self, carries: Option<Carries>) -> Carries {
        let incomplete = |number: u32| self.generation(number).rank < self.units(number);
        if let Some(Carries::Original(n)) = carries
            && n >= self.una
            && incomplete(((n - 1) / u64::from(self.size)) as u32)
        {
            return Carries::Original(n);
        }
        let mut all = self.first..self.first + self.generations.len() as u32;
        all.find(|n| incomplete(*n)).map_or(Carries::Nothing, Carries::Sum)
    }

    /// Segment `number` leaves on subflow `on`: what it carries, its bytes, and when that left first.
    pub fn fill(&mut self, now: Instant, on: usize, number: u64, again: bool) -> (Content, u32, Instant) {
        let carries = match again {
            true => self.again(self.flights.get(on).and_then(|f| f.carries(number))),
            false => core::mem::take(&mut self.planned),
        };
        if let Some(lost) = self.flights.get_mut(on).and_then(|f| f.leaves(number, now, carries)) {
            self.landed(lost);
        }
        let bytes = self.size(carries);
        match carries {
            Carries::Nothing => (Content::Nothing, 0, now),
            Carries::Original(n) => {
                let (size, start) = (u64::from(self.size), self.start(self.first));
                let place = ((n - 1) % size) as u16;
                if let Some(g) = self.generation_mut(((n - 1) / size) as u32) {
                    g.flying += 1;
                    g.next = g.next.max(place + 1);
                }
                let first = match self.units.get_mut(n.saturating_sub(start) as usize) {
                    Some((_, first)) => {
                        *first = (*first).min(now);
                        *first
                    }
                    None => now,
                };
                (Content::Plain(Plain { number: n, value: content(n), last: self.data.is_last(n) }), bytes, first)
            }
            Carries::Sum(g) => (Content::Coded(self.sum(g)), bytes, now),
        }
    }

    /// A sum over what there is of a generation.
    fn sum(&mut self, number: u32) -> Coded {
        let (first, units) = (self.start(number), self.units(number));
        if let Some(g) = self.generation_mut(number) {
            g.flying += 1;
        }
        self.sums += 1;
        let seed = self.serial;
        self.serial = self.serial.wrapping_add(1);
        let mut sum = [0; 4];
        for (n, c) in (first..).zip(coefficients(seed, 0, false, units)) {
            let Some((bytes, _)) = self.unit(n) else { continue };
            sum.iter_mut().zip(unit(bytes, content(n))).for_each(|(to, u)| *to ^= gf256::mul(u, c));
        }
        let mut sums = [[0; 4]; MOST_SYMBOLS];
        sums[0] = sum;
        let last = units > 0 && self.data.is_last(first + u64::from(units) - 1);
        let group = Group { block: number, first, units, count: 1, last };
        Coded { seed, binary: false, groups: [group, Group::default()], sums }
    }

    /// This is no longer on its way.
    fn landed(&mut self, carries: Carries) {
        let number = match carries {
            Carries::Nothing => return,
            Carries::Original(n) => ((n - 1) / u64::from(self.size)) as u32,
            Carries::Sum(g) => g,
        };
        if let Some(g) = number.checked_sub(self.first).and_then(|n| self.generations.get_mut(n as usize)) {
            g.flying = g.flying.saturating_sub(1);
        }
    }

    /// An acknowledgement came for subflow `on`.
    pub fn acknowledged(&mut self, now: Instant, on: usize, ack: &MptcpAck) {
        if let Some(mut flights) = self.flights.get_mut(on).map(|f| core::mem::replace(f, Flights::new())) {
            flights.acknowledged(&ack.segment, |carries| self.landed(carries));
            if let Some(place) = self.flights.get_mut(on) {
                *place = flights;
            }
        }
        self.edge = self.edge.max(ack.edge);
        self.una = self.una.max(ack.next.min(self.next));
        for (g, number) in self.generations.iter_mut().zip(self.first..) {
            let rank = if number < ack.ranks.first { Some(self.size) } else { ack.ranks.get(number) };
            g.rank = g.rank.max(rank.unwrap_or(0));
        }
        while self.start(self.first + 1) <= self.una {
            self.generations.pop_front();
            self.units.drain(..usize::from(self.size).min(self.units.len()));
            self.first += 1;
        }
        self.data.forget_below(self.una);
        if self.una == self.next && self.done.is_none() && self.data.ended(now, self.una) {
            self.done = Some(now);
        }
    }

    /// The timer of subflow `on` has expired: what it had on its way does not count any more.
    pub fn timed_out(&mut self, on: usize) {
        if let Some(mut flights) = self.flights.get_mut(on).map(|f| core::mem::replace(f, Flights::new())) {
            flights.give_up(|carries| self.landed(carries));
            if let Some(place) = self.flights.get_mut(on) {
                *place = flights;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rtt: f64, usable: bool) -> PathView {
        PathView { rtt, rto: 1.0, window: 10.0, in_flight: 0, usable }
    }

    fn network(losses: &[f64]) -> Network {
        let mut n = Network::new(Supply::Endless, &MptcpConfig::rfc(), NcConfig { generation: 8 }, losses.len());
        n.flights = losses.iter().map(|&p| Flights::of_a_path_that_loses(p)).collect();
        n
    }

    /// Sums go by the subflow with the largest product of loss and round trip, the longer one of equals, never the only one.
    #[test]
    fn the_worst_subflow_carries_the_sums() {
        let on = |losses: &[f64], paths: &[PathView]| network(losses).sums_on(paths);
        assert_eq!(on(&[0.01, 0.05], &[path(0.1, true), path(0.03, true)]), Some(1));
        assert_eq!(on(&[0.01, 0.05], &[path(0.2, true), path(0.03, true)]), Some(0));
        assert_eq!(on(&[0.0, 0.0], &[path(0.1, true), path(0.2, true)]), Some(1));
        assert_eq!(on(&[0.01, 0.05], &[path(0.1, true), path(0.03, false)]), None);
    }

    /// As many generations ahead as the regular subflows get on while a sum travels longer than theirs.
    #[test]
    fn sums_run_ahead_by_the_difference_of_the_ways() {
        let n = network(&[0.0, 0.0]);
        // 10 segments in 0.1 s for 0.2 s are 20, two generations of 8.
        assert_eq!(n.lag(1, &[path(0.1, true), path(0.5, true)]), 2);
        assert_eq!(n.lag(1, &[path(0.1, true), path(0.1, true)]), 0);
    }

    /// What a generation will lack when a sum arrives: the part that its subflow loses, and all that comes later.
    #[test]
    fn a_generation_lacks_what_is_lost_or_late() {
        let ms = Instant::from_millis;
        let mut n = network(&[0.1, 0.0]);
        for number in 1..=4 {
            n.flights[0].leaves(number, ms(1_000), Carries::Original(number));
        }
        let paths = |sums: f64| [path(0.1, true), path(sums, true)];
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} and not {b}");
        close(n.expected(ms(1_000), 0, 1, &paths(0.2)), 0.4);
        close(n.expected(ms(1_000), 0, 1, &paths(0.05)), 4.0);
        close(n.expected(ms(1_200), 0, 1, &paths(0.2)), 4.0);
        close(n.expected(ms(1_000), 1, 1, &paths(0.2)), 0.0);
    }
}
