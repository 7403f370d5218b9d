//! Tests of [`super`], after the example test cases of the draft. A path of a fixed rate, delay and queue carries packets
//! of one size; each is acknowledged at once, and three later ones that arrive make a packet lost.

use super::*;
use crate::loss_cause::LostPackets;
use crate::testing::{Scene, loss, ms};
use std::collections::VecDeque;

const SIZE: u64 = 1_000;

struct Path {
    s: Scene,
    w: Bbr3,
    random: RandomStream,
    /// Bytes a second, one way and back, packets.
    rate: u64,
    delay: Duration,
    queue: u64,
    loss: f64,
    /// Packets the source has; it gets one each `every`, or any number.
    every: Option<Duration>,
    next_packet: Instant,
    free_at: Instant,
    next_send: Instant,
    seq: u64,
    /// Serial, departure, arrival of the acknowledgement; none of what is lost.
    flight: VecDeque<(u64, Instant, Option<Instant>)>,
    limited: VecDeque<bool>,
    was_limited: bool,
    /// States in the order in which they were entered, and when.
    states: Vec<(State, Instant)>,
    delivered: u64,
    lost: u64,
}

impl Path {
    /// 10 Mbit/s and a round trip of 40 ms hold fifty packets.
    fn new(queue: u64) -> Self {
        let mut s = Scene::new(1, 0);
        (s.paths[0].mtu, s.paths[0].cwnd) = (SIZE, 10 * SIZE);
        let now = s.now;
        Path {
            s,
            w: Bbr3::new(&Params::defaults(&POLICY.info, 1)),
            random: RandomStream::named(7, "path"),
            rate: 1_250_000,
            delay: ms(40),
            queue,
            loss: 0.0,
            every: None,
            next_packet: now,
            free_at: now,
            next_send: now,
            seq: 0,
            flight: VecDeque::new(),
            limited: VecDeque::new(),
            was_limited: false,
            states: vec![(State::Startup, now)],
            delivered: 0,
            lost: 0,
        }
    }
    fn pipe(&self) -> u64 {
        Rate::from_bytes_per_sec(self.rate).bytes_in(self.delay)
    }
    fn view(&mut self) -> &mut PathView {
        &mut self.s.paths[0]
    }
    fn send(&mut self) {
        let now = self.s.now;
        let transmission = Rate::from_bytes_per_sec(self.rate).time_for(SIZE);
        let waits = self.free_at.since(now);
        let dropped = waits > transmission * self.queue || self.random.chance(self.loss);
        let back = if dropped {
            None
        } else {
            self.free_at = self.free_at.max(now) + transmission;
            Some(self.free_at + self.delay)
        };
        self.seq += 1;
        self.flight.push_back((self.seq, now, back));
        self.limited.push_back(self.was_limited);
        self.view().in_flight += SIZE;
        self.view().packets_in_flight += 1;
        self.w.on_sent(now, self.seq, &self.s.paths[0]);
        let pace = self.w.pace(&self.s.paths[0]).unwrap();
        self.next_send = now + pace.time_for(SIZE);
        if let Some(every) = self.every {
            self.next_packet += every;
        }
    }
    fn acknowledge(&mut self, at: usize) {
        let (seq, sent, back) = self.flight.remove(at).unwrap();
        let limited = self.limited.remove(at).unwrap();
        let now = back.unwrap();
        self.s.now = now;
        let full = self.s.paths[0].in_flight + SIZE > self.s.paths[0].cwnd;
        let rtt = now.since(sent);
        let v = self.view();
        v.in_flight -= SIZE;
        v.packets_in_flight -= 1;
        (v.last_rtt, v.srtt) = (rtt, rtt);
        // Those that the same acknowledgement shows as missing.
        let before = self.flight.iter().take_while(|f| f.0 + 3 <= seq);
        let missing: Vec<u64> = before.filter(|f| f.2.is_none()).map(|f| f.0).collect();
        if let Some(first) = missing.first() {
            self.lose(*first, *missing.last().unwrap(), missing.len() as u64);
        }
        self.delivered += SIZE;
        let ack = AckOnPath {
            bytes: SIZE,
            acked: SIZE,
            packets: 1,
            fully_used: full,
            newest_seq: Some(seq),
            rtt: Some(rtt),
            app_limited: limited,
        };
        let change = self.w.on_ack(&self.s.cx(), PathId(0), &ack);
        (self.s.paths[0].cwnd, self.s.paths[0].ssthresh) = (change.set.unwrap(), change.ssthresh);
        self.s.paths[0].in_recovery &= self.s.paths[0].in_flight > 0;
    }
    fn lose(&mut self, first: u64, last: u64, n: u64) {
        let gone = |f: &(u64, Instant, Option<Instant>)| f.2.is_none() && f.0 >= first && f.0 <= last;
        while let Some(i) = self.flight.iter().position(gone) {
            self.flight.remove(i);
            self.limited.remove(i);
        }
        self.lost += n * SIZE;
        let v = self.view();
        v.in_flight -= n * SIZE;
        v.packets_in_flight -= n as u32;
        v.in_recovery = true;
        let packets = Some(LostPackets { first, last, chunks: n as u32 });
        let e = LossEvent { bytes: n * SIZE, packets, ..loss(0) };
        let to = self.w.on_loss(&self.s.cx(), PathId(0), &e, Cause::Congestion);
        assert_eq!(to.cwnd, self.s.paths[0].cwnd, "a loss alone does not cut the window");
    }
    fn step(&mut self) {
        let next_ack = self.flight.iter().enumerate().find_map(|(i, f)| Some((f.2?, i)));
        let may = self.s.paths[0].in_flight + SIZE <= self.s.paths[0].cwnd;
        let source = if self.every.is_some() { self.next_packet } else { Instant::ZERO };
        let at = self.next_send.max(source).max(self.s.now);
        match next_ack {
            Some((t, i)) if !may || t <= at => self.acknowledge(i),
            _ if may => {
                self.was_limited = self.every.is_some() && source > self.next_send;
                self.s.now = at;
                self.send();
            }
            // All that is in flight is lost.
            _ => {
                let (first, last) = (self.flight[0].0, self.flight[self.flight.len() - 1].0);
                self.lose(first, last, self.flight.len() as u64);
            }
        }
        if self.states.last().is_none_or(|s| s.0 != self.w.state) {
            self.states.push((self.w.state, self.s.now));
        }
    }
    fn run(&mut self, time: Duration) -> f64 {
        let (end, before) = (self.s.now + time, self.delivered);
        while self.s.now < end {
            self.step();
        }
        (self.delivered - before) as f64 / time.as_secs_f64() / self.rate as f64
    }
    fn until(&mut self, state: State, at_most: Duration) {
        let end = self.s.now + at_most;
        while self.w.state != state {
            assert!(self.s.now < end, "{state:?} was not entered, {:?}", self.states);
            self.step();
        }
    }
}

#[test]
fn the_start_ends_when_the_rate_stops_growing_and_a_cycle_follows() {
    let mut p = Path::new(1_000);
    p.until(State::Drain, ms(2_000));
    let max = p.w.max_bw.get().bytes_per_sec() as f64 / p.rate as f64;
    assert!((0.98..=1.02).contains(&max), "{max} of the rate");
    assert!(p.w.full.reached && p.s.paths[0].in_flight > p.pipe());
    assert_eq!(p.w.state.pacing_gain(), Ppm(500_000));
    // With the queue of the start goes the reason to stay below the rate.
    p.until(State::Cruise, ms(1_000));
    assert!(p.s.paths[0].in_flight <= p.w.fills(&p.s.paths[0], p.w.bw()));
    p.until(State::Refill, ms(3_000));
    p.until(State::Up, ms(500));
    p.until(State::Down, ms(1_000));
    assert!(p.w.bounds.long_term.is_none(), "nothing was lost");
    let goodput = p.run(ms(10_000));
    assert!(goodput > 0.95, "{goodput}");
}

#[test]
fn a_source_that_offers_less_ends_no_start_without_losses() {
    let mut p = Path::new(1_000);
    p.every = Some(ms(4));
    p.run(ms(4_500));
    assert_eq!(p.w.state, State::Startup);
    p.loss = 0.2;
    p.until(State::Drain, ms(4_500));
    assert!(p.w.full.reached && p.w.bounds.long_term.is_some(), "losses do");
}

#[test]
fn a_source_that_offers_less_ends_no_probe_without_losses() {
    let mut p = Path::new(1_000);
    p.until(State::Up, ms(6_000));
    p.every = Some(ms(4));
    p.next_packet = p.s.now;
    p.run(ms(1_500));
    assert_eq!(p.w.state, State::Up, "{:?}", p.states);
    p.loss = 0.2;
    p.until(State::Down, ms(1_500));
    assert!(p.w.probe.was_too_high);
}

#[test]
fn a_drain_that_does_not_drain_ends_after_three_rounds() {
    let mut p = Path::new(1_000);
    p.until(State::Drain, ms(2_000));
    let mut others = p.s.paths[0];
    others.in_flight = 2 * p.pipe();
    p.w.rounds.count = p.w.drain_round + DRAIN_ROUNDS;
    p.w.check_drain(p.s.now, &others);
    assert_eq!(p.w.state, State::Drain);
    p.w.rounds.count += 1;
    p.w.check_drain(p.s.now, &others);
    assert_eq!(p.w.state, State::Down);
}

#[test]
fn after_a_probe_that_lost_too_much_the_next_one_stops_at_the_bound_and_goes_on_when_that_was_safe() {
    let mut p = Path::new(1_000);
    p.until(State::Refill, ms(6_000));
    p.w.probe.was_too_high = true;
    let bound = p.pipe() + 5 * SIZE;
    p.w.bounds.long_term = Some(bound);
    p.until(State::Up, ms(500));
    p.until(State::Down, ms(500));
    assert!(p.w.probe.was_precautionary && p.w.full.reached && !p.w.full.now);
    p.until(State::Refill, ms(200));
    p.until(State::Up, ms(200));
    p.until(State::Down, ms(1_500));
    assert!(!p.w.probe.was_precautionary);
    assert!(p.w.bounds.long_term > Some(bound), "a bound that does no harm is raised");
}

#[test]
fn a_probe_that_loses_too_much_sets_a_bound_with_headroom_below() {
    let mut p = Path::new(20);
    let end = p.s.now + ms(60_000);
    while !p.w.probe.was_too_high {
        p.step();
        assert!(p.s.now < end);
    }
    let bound = p.w.bounds.long_term.unwrap();
    assert!((p.pipe()..=p.pipe() + 24 * SIZE).contains(&bound), "{bound} of {}", p.pipe() + 20 * SIZE);
    p.until(State::Cruise, ms(500));
    assert!(p.s.paths[0].cwnd <= bound - Ppm(150_000).of(bound), "headroom is left");
    let goodput = p.run(ms(20_000));
    assert!(goodput > 0.85, "{goodput}");
    let lost = p.lost as f64 / (p.lost + p.delivered) as f64;
    assert!(lost < 0.02, "{lost} of all");
}

#[test]
fn a_round_that_loses_some_lowers_the_rate_by_as_much_until_the_next_probe() {
    let goodput = |loss| {
        let mut p = Path::new(10_000);
        (p.rate, p.loss) = (12_500_000, loss);
        p.run(ms(5_000));
        p.run(ms(40_000))
    };
    let lossless = goodput(0.0);
    for loss in [0.002, 0.005, 0.01] {
        // The mean over the 63 rounds between two probes, each of which leaves a share 1 - loss of the rate before.
        let expected = (1.0 - f64::powf(1.0 - loss, 63.0)) / (63.0 * loss);
        let got = goodput(loss) / lossless;
        assert!((got / expected - 1.0).abs() < 0.1, "{got} of {expected} at {loss}");
    }
    assert!(goodput(0.1) < 0.1, "far above what is tolerated");
}

#[test]
fn what_a_round_delivers_bounds_the_rate_until_the_next_probe() {
    let mut p = Path::new(1_000);
    p.until(State::Cruise, ms(5_000));
    p.loss = 0.3;
    p.run(ms(300));
    let bounded = p.w.bw();
    assert!(bounded < p.w.max_bw.get());
    assert!(p.s.paths[0].cwnd <= p.w.bounds.short_term());
    p.loss = 0.0;
    p.until(State::Refill, ms(4_000));
    assert_eq!((p.w.bounds.short_term(), p.w.bw()), (u64::MAX, p.w.max_bw.get()));
}

#[test]
fn the_queue_is_emptied_each_five_seconds_to_see_the_round_trip() {
    let mut p = Path::new(1_000);
    p.until(State::Cruise, ms(3_000));
    // The way becomes longer: the smallest round trip does not show again.
    p.delay = ms(60);
    p.until(State::ProbeRtt, ms(6_000));
    let (began, before) = (p.s.now, p.w.saved.cwnd);
    while p.w.state == State::ProbeRtt {
        assert!(p.s.paths[0].cwnd <= p.w.probe_rtt_window(&p.s.paths[0]).max(FLOOR * SIZE));
        p.step();
    }
    let took = p.s.now - began;
    assert!((200..600).contains(&took.as_millis()), "{took:?}");
    assert_eq!(p.w.state, State::Cruise);
    p.step();
    assert!(p.s.paths[0].cwnd >= before.min(p.w.pipe(p.w.bw(), Ppm(2_000_000))), "the window is back");
    p.run(ms(11_000));
    assert!(p.w.min_rtt.least >= ms(60), "{:?}", p.w.min_rtt.least);
}

#[test]
fn an_idle_time_makes_that_unnecessary() {
    let mut p = Path::new(1_000);
    p.until(State::Cruise, ms(3_000));
    // What it sent last was all that it had.
    p.every = Some(ms(10));
    p.next_packet = p.s.now;
    p.run(ms(200));
    p.next_packet = p.s.now + ms(6_000);
    let entered = p.states.len();
    p.run(ms(6_500));
    assert!(p.states[entered..].iter().all(|s| s.0 != State::ProbeRtt), "{:?}", &p.states[entered..]);
}

#[test]
fn a_timeout_leaves_one_packet_until_its_losses_are_made_up_for() {
    let mut p = Path::new(1_000);
    p.until(State::Cruise, ms(3_000));
    let before = p.s.paths[0].cwnd;
    let flight = p.s.paths[0].in_flight;
    p.flight.clear();
    p.limited.clear();
    (p.view().in_flight, p.view().packets_in_flight) = (0, 0);
    let e = LossEvent { kind: LossKind::Timeout, bytes: flight, ..loss(0) };
    let to = p.w.on_loss(&p.s.cx(), PathId(0), &e, Cause::Congestion);
    assert_eq!(to.cwnd, SIZE);
    p.view().cwnd = to.cwnd;
    let delivered = p.delivered;
    while p.w.saved.recovers_at.is_some() {
        p.step();
    }
    assert!(p.delivered - delivered >= flight);
    assert!(p.s.paths[0].cwnd > before / 2, "{} of {before}", p.s.paths[0].cwnd);
}

#[test]
fn radio_losses_say_nothing_and_a_mark_counts_while_it_probes() {
    let mut p = Path::new(1_000);
    p.until(State::Up, ms(6_000));
    let radio = LossEvent { bytes: 30 * SIZE, packets: None, ..loss(0) };
    p.w.on_loss(&p.s.cx(), PathId(0), &radio, Cause::Radio);
    assert_eq!((p.w.state, p.w.bounds.long_term), (State::Up, None));
    let mark = LossEvent { bytes: 0, packets: None, ..loss(0) };
    p.w.on_loss(&p.s.cx(), PathId(0), &mark, Cause::Congestion);
    assert_eq!(p.w.state, State::Down);
    assert!(p.w.bounds.long_term.is_some());
}

#[test]
fn acknowledgements_that_come_together_widen_the_window() {
    let mut a = Aggregation::default();
    let bw = Rate::from_bytes_per_sec(1_000_000);
    let s = Sample { acked: 30_000, ..Sample::default() };
    let mut now = Instant::from_millis(1_000);
    a.restart(now);
    for round in 0..8 {
        now += ms(30);
        a.update(now, &s, bw, 1 << 20, round > 0, true);
    }
    assert_eq!(a.extra(), 30_000, "a whole interval's at once");
}
