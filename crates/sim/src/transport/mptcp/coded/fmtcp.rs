//! FMTCP (Cui et al. 2015), a reconstruction: the stream is cut into blocks of symbols, packets carry random sums of a
//! block's symbols over GF(2), and what is lost is made up for by other sums rather than sent again.
//!
//! Where this file has to choose it is ours: the part of packets lost is smoothed with a weight of 1/64; a block whose
//! data have run out is shorter than others; what its subflow's TCP would send again, to go on with its sequence, is
//! filled with new sums; the receiver says how many independent sums of each block it has, and a block is sent until
//! those and what is expected to arrive lie ten above its size, where one in a thousand is not solved.

use super::super::source::PathView;
use super::super::{FmtcpConfig, MptcpAck, MptcpConfig, content};
use super::flights::Flights;
use super::{Coded, Group, MOST_SYMBOLS, coefficients, unit};
use crate::transport::tcp::{Data, Supply, TcpConfig};
use anabranch_base::{Duration, Instant};
use std::collections::VecDeque;

/// Bytes in front of the sums of each block in a packet.
const GROUP_HEADER: u32 = 8;

/// A block that is not complete at the receiver.
#[derive(Debug, Default)]
struct Sending {
    first: u64,
    units: u16,
    /// Independent sums that the receiver has.
    rank: u16,
    /// Sums on their way, by subflow.
    flying: Vec<u32>,
}

/// Which sums a packet carries: blocks and counts.
type Groups = [(u32, u16); 2];

/// The data of a connection and what is on its way of them.
pub(in crate::transport::mptcp) struct Fountain {
    config: FmtcpConfig,
    data: Data,
    per_packet: u16,
    /// Number of the first of `blocks`, and of the next symbol that belongs to none.
    first: u32,
    next: u64,
    blocks: VecDeque<Sending>,
    spare: Vec<Sending>,
    flights: Vec<Flights<Groups>>,
    /// Sizes of the symbols in `blocks`, the first of which is this one.
    una: u64,
    sizes: VecDeque<u32>,
    bytes: u64,
    edge: u64,
    /// What the next new packet carries.
    planned: Groups,
    serial: u32,
    stopped: bool,
    done: Option<Instant>,
    /// For the simulation of arrivals: times, and what blocks need.
    arrivals: Vec<f64>,
    needs: Vec<f64>,
    pub sums: u64,
    pub window_stops: u64,
}

impl Fountain {
    pub fn new(supply: Supply, config: &MptcpConfig, own: FmtcpConfig, subflows: usize) -> Self {
        let symbol = own.symbol.clamp(1, config.tcp.segment.max(1));
        let tcp = TcpConfig { segment: symbol, nagle: false, ..config.tcp };
        let room = config.tcp.segment.saturating_sub(GROUP_HEADER) / symbol;
        Fountain {
            config: own,
            data: Data::new(supply, &tcp),
            per_packet: room.clamp(1, MOST_SYMBOLS as u32) as u16,
            first: 0,
            next: 1,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            flights: (0..subflows).map(|_| Flights::new()).collect(),
            una: 1,
            sizes: VecDeque::new(),
            bytes: 0,
            edge: config.receive_buffer,
            planned: Groups::default(),
            serial: 0,
            stopped: false,
            done: None,
            arrivals: Vec::new(),
            needs: Vec::new(),
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

    /// The first symbol that is not acknowledged, and the next to be put into a block.
    pub fn span(&self) -> (u64, u64) {
        (self.una, self.next)
    }

    /// Sums of a block that are still to be sent: what is missing and the margin, less what is expected to arrive.
    fn need(&self, block: &Sending) -> f64 {
        if block.rank >= block.units {
            return 0.0;
        }
        let arrives = block.flying.iter().zip(&self.flights).map(|(n, f)| f64::from(*n) * (1.0 - f.loss()));
        f64::from(block.units - block.rank + self.config.margin) - arrives.sum::<f64>()
    }

    /// What the next packet on subflow `on` carries, bytes with headers; none where others are to send whatever is needed.
    pub fn offer(&mut self, now: Instant, on: usize, paths: &[PathView]) -> Option<u32> {
        self.expect(now, paths);
        self.needs.clear();
        for i in 0..self.blocks.len() {
            let need = self.blocks.get(i).map_or(0.0, |b| self.need(b));
            self.needs.push(need);
        }
        let mut place = 0;
        loop {
            // Everything is given out in the order of arrivals until it is this one's turn.
            let (at, first) = self.arrivals.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
            if first.is_infinite() {
                return None;
            }
            let loss = self.flights.get(at).map_or(0.0, Flights::loss).min(0.9);
            let mut groups = Groups::default();
            let mut left = self.per_packet;
            for group in &mut groups {
                while left > 0 && self.needs.get(place).is_some_and(|n| *n <= 0.0) {
                    place += 1;
                }
                if left == 0 || place >= self.needs.len() && !self.open(now) {
                    break;
                }
                let block = self.first + place as u32;
                let Some(need) = self.needs.get_mut(place) else { break };
                let count = ((*need / (1.0 - loss)).ceil().max(1.0) as u16).min(left);
                *need -= f64::from(count) * (1.0 - loss);
                left -= count;
                *group = (block, count);
            }
            if groups[0].1 == 0 {
                return None;
            }
            if at == on {
                self.planned = groups;
                return Some(self.size(&groups));
            }
            let path = paths.get(at)?;
            *self.arrivals.get_mut(at)? += path.rtt / path.window.max(1.0);
        }
    }

    /// When a packet given to each subflow now would arrive: `EDT = RTT / 2 + RT p / (1 - p)` with the time until an answer
    /// `RT = (1 - p) RTT + p RTO`; where the window has no room, after the answer to the oldest packet.
    fn expect(&mut self, now: Instant, paths: &[PathView]) {
        self.arrivals.clear();
        for (path, flights) in paths.iter().zip(&self.flights) {
            let p = flights.loss().min(0.9);
            let answer = (1.0 - p) * path.rtt + p * path.rto;
            let delivery = path.rtt / 2.0 + answer * p / (1.0 - p);
            let age = flights.oldest().map_or(Duration::ZERO, |at| now.since(at)).as_secs_f64();
            let waits = if path.has_room() { 0.0 } else { (answer - age).max(0.0) };
            self.arrivals.push(if path.usable { delivery + waits } else { f64::INFINITY });
        }
    }

    /// Puts what there is into a new block, as far as the receive window allows.
    fn open(&mut self, now: Instant) -> bool {
        let first = self.next;
        let mut units = 0;
        let was_stopped = core::mem::replace(&mut self.stopped, false);
        while units < self.config.block && self.data.has(now, self.next, self.una, self.next) {
            let bytes = self.data.bytes(self.next);
            if self.bytes + u64::from(bytes) > self.edge {
                self.stopped = true;
                self.window_stops += u64::from(!was_stopped);
                break;
            }
            self.bytes += u64::from(bytes);
            self.sizes.push_back(bytes);
            self.next += 1;
            units += 1;
        }
        if units == 0 {
            return false;
        }
        let mut block = self.spare.pop().unwrap_or_default();
        (block.first, block.units, block.rank) = (first, units, 0);
        block.flying.clear();
        block.flying.resize(self.flights.len(), 0);
        self.blocks.push_back(block);
        self.needs.push(f64::from(units + self.config.margin));
        true
    }

    /// What is filled in where a subflow's TCP sends a segment again: the first block that needs more, or else the first
    /// that is not complete.
    fn filler(&self) -> Groups {
        let needs = self.blocks.iter().position(|b| self.need(b) > 0.0);
        let place = needs.or_else(|| self.blocks.iter().position(|b| b.rank < b.units));
        let count = place.map_or(0, |_| self.per_packet);
        [(self.first + place.unwrap_or(0) as u32, count), (0, 0)]
    }

    fn size(&self, groups: &Groups) -> u32 {
        let symbol = self.config.symbol;
        groups.iter().filter(|g| g.1 > 0).map(|g| GROUP_HEADER + u32::from(g.1) * symbol).sum()
    }

    /// Segment `number` leaves on subflow `on`: what it carries, and its bytes.
    pub fn fill(&mut self, now: Instant, on: usize, number: u64, again: bool) -> (Coded, u32) {
        let mut groups = if again { self.filler() } else { core::mem::take(&mut self.planned) };
        groups.iter_mut().for_each(|g| g.1 = g.1.min(self.per_packet));
        if let Some(lost) = self.flights.get_mut(on).and_then(|f| f.leaves(number, now, groups)) {
            self.landed(on, lost);
        }
        let seed = self.serial;
        self.serial = self.serial.wrapping_add(1);
        let mut coded = Coded { seed, binary: true, groups: Default::default(), sums: [[0; 4]; MOST_SYMBOLS] };
        let mut index = 0;
        for ((block, count), group) in groups.into_iter().zip(&mut coded.groups) {
            let Some(b) = block.checked_sub(self.first).and_then(|n| self.blocks.get_mut(n as usize)) else { continue };
            let last = self.data.is_last(b.first + u64::from(b.units) - 1);
            *group = Group { block, first: b.first, units: b.units, count, last };
            if let Some(n) = b.flying.get_mut(on) {
                *n += u32::from(count);
            }
            self.sums += u64::from(count);
            let skip = (b.first - self.una) as usize;
            for sum in coded.sums.iter_mut().skip(index).take(usize::from(count)) {
                let units = (b.first..).zip(self.sizes.range(skip.min(self.sizes.len())..));
                for ((number, bytes), _) in units.zip(coefficients(seed, index, true, b.units)).filter(|(_, c)| *c != 0)
                {
                    let unit = unit(*bytes, content(number));
                    sum.iter_mut().zip(unit).for_each(|(to, u)| *to ^= u);
                }
                index += 1;
            }
        }
        let bytes = self.size(&groups);
        (coded, bytes)
    }

    /// These sums are no longer on their way.
    fn landed(&mut self, on: usize, groups: Groups) {
        for (block, count) in groups {
            let Some(b) = block.checked_sub(self.first).and_then(|n| self.blocks.get_mut(n as usize)) else { continue };
            if let Some(n) = b.flying.get_mut(on) {
                *n = n.saturating_sub(u32::from(count));
            }
        }
    }

    /// An acknowledgement came for subflow `on`.
    pub fn acknowledged(&mut self, now: Instant, on: usize, ack: &MptcpAck) {
        if let Some(mut flights) = self.flights.get_mut(on).map(|f| core::mem::replace(f, Flights::new())) {
            flights.acknowledged(&ack.segment, |groups| self.landed(on, groups));
            if let Some(place) = self.flights.get_mut(on) {
                *place = flights;
            }
        }
        self.edge = self.edge.max(ack.edge);
        for (block, number) in self.blocks.iter_mut().zip(self.first..) {
            // What is before the first of them is complete.
            let rank = if number < ack.ranks.first { Some(block.units) } else { ack.ranks.get(number) };
            block.rank = block.rank.max(rank.unwrap_or(0));
        }
        while self.blocks.front().is_some_and(|b| b.first + u64::from(b.units) <= ack.next)
            && let Some(block) = self.blocks.pop_front()
        {
            self.first += 1;
            self.una = block.first + u64::from(block.units);
            self.sizes.drain(..usize::from(block.units).min(self.sizes.len()));
            self.spare.push(block);
        }
        self.data.forget_below(self.una);
        if self.una == self.next && self.done.is_none() && self.data.ended(now, self.una) {
            self.done = Some(now);
        }
    }

    /// The timer of subflow `on` has expired: what it had on its way does not count any more.
    pub fn timed_out(&mut self, on: usize) {
        if let Some(mut flights) = self.flights.get_mut(on).map(|f| core::mem::replace(f, Flights::new())) {
            flights.give_up(|groups| self.landed(on, groups));
            if let Some(place) = self.flights.get_mut(on) {
                *place = flights;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rtt: f64, rto: f64, room: bool) -> PathView {
        PathView { rtt, rto, window: 10.0, in_flight: if room { 0 } else { 10 }, usable: true }
    }

    fn fountain(losses: &[f64]) -> Fountain {
        let mut f = Fountain::new(Supply::Endless, &MptcpConfig::rfc(), FmtcpConfig::DEFAULT, losses.len());
        f.flights = losses.iter().map(|&p| Flights::of_a_path_that_loses(p)).collect();
        f
    }

    /// Cui et al. 2015: EDT = RTT/2 + RT p/(1-p) with RT = (1-p) RTT + p RTO; without room the answer to the oldest packet
    /// comes first (EAT).
    #[test]
    fn a_packet_is_expected_after_the_repetitions_that_its_path_needs() {
        let now = Instant::from_millis(1_000);
        let mut f = fountain(&[0.0, 0.1, 0.1]);
        f.flights[2].leaves(1, Instant::from_millis(970), Groups::default());
        f.expect(now, &[path(0.1, 0.3, true), path(0.1, 0.3, true), path(0.1, 0.3, false)]);
        // RT = 0.9 * 0.1 + 0.1 * 0.3 = 0.12, a ninth of which is 0.0133; 0.03 of it have passed where the window is full.
        let expected = [0.05, 0.05 + 0.12 / 9.0, 0.05 + 0.12 / 9.0 + 0.12 - 0.03];
        for (arrival, expected) in f.arrivals.iter().zip(expected) {
            assert!((arrival - expected).abs() < 1e-9, "{:?}", f.arrivals);
        }
        f.expect(now, &[PathView { usable: false, ..path(0.1, 0.3, true) }]);
        assert!(f.arrivals[0].is_infinite());
    }

    /// What a block still needs: its size and the margin, less the rank at the receiver and what is expected to arrive.
    #[test]
    fn a_block_needs_what_is_not_expected_to_arrive() {
        let f = fountain(&[0.0, 0.25]);
        let block = |rank, flying: [u32; 2]| Sending { first: 1, units: 64, rank, flying: flying.to_vec() };
        assert_eq!(f.need(&block(0, [0, 0])), 74.0);
        assert_eq!(f.need(&block(20, [0, 0])), 54.0);
        assert_eq!(f.need(&block(20, [30, 20])), 54.0 - 30.0 - 15.0);
        assert_eq!(f.need(&block(64, [0, 0])), 0.0, "it is solved");
    }
}
