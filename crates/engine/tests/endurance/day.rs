//! A day on two bad paths: loss, outages, new addresses, restarts of either end, and every message accounted for by
//! the hash of its content.
//!
//! `ANABRANCH_DAY_HOURS` sets the virtual hours (default 1); `just day` runs 24.
//!
//! Each hour ends at rest: nothing is sent for a while, and then every message was delivered exactly once, or given up
//! as its deadline allowed, or was on its way when one of the ends lost its memory. Memory is sampled there.

mod ledger;

use crate::common::*;
use anabranch_base::{Instant, RandomStream, StreamId};
use anabranch_engine::{AssocConfig, CloseReason, Endpoint, EndpointConfig, Event, LocalId, PathReason, SendOptions};
use anabranch_sim::{Direction, LossConfig, Setting};
use ledger::{Ledger, PARTIAL, UNORDERED, message};

const TICK: u64 = 40;
const HOUR: u64 = 3_600_000;
/// Nothing is sent so long before an hour ends.
const REST: u64 = 40_000;
/// What both ends and the bench with its ledgers may hold at rest, bytes: buffers keep the room that they once needed
/// until their association ends.
const AT_REST: i64 = 1 << 20;
/// Most bytes held while data flows and paths fail.
const PEAK: u64 = 4 << 20;
/// How much more the second half of a long run may hold at rest than the first, on average, bytes.
const GROWTH: i64 = 64 << 10;

/// How often each thing happened.
#[derive(Default, Debug)]
struct Tally {
    outages: u32,
    new_ports: u32,
    new_addresses: u32,
    interfaces_lost: u32,
    client_restarts: u32,
    server_restarts: u32,
    restarted_events: u32,
    connects: u32,
    paths_left: u32,
    paths_back: u32,
    refused: u32,
}

struct Day {
    b: Bench,
    config: AssocConfig,
    r: RandomStream,
    to_server: Ledger,
    to_client: Ledger,
    reported_abandoned: u64,
    tally: Tally,
    /// When each path comes back.
    down_until: [Option<Instant>; 2],
    next_trouble: Instant,
    next_restart: Instant,
    lives: u64,
    /// The server forgot the client, which has not noticed.
    orphaned: bool,
    /// The client forgot the server, which has not noticed.
    forgotten: bool,
}

fn endpoint(name: &str, life: u64, accept: bool, config: &AssocConfig, now: Instant) -> Endpoint {
    let mut c = EndpointConfig::new(PORT, config.clone());
    c.accept = accept;
    Endpoint::new(c, Box::new(RandomStream::named(life, name)), now)
}

impl Day {
    fn new(profile: &str, seed: u64) -> Day {
        let config = changed(assoc_config(profile), |c| {
            c.timers.heartbeat_interval = ms(5_000);
            // While one path is down, a burst of losses on the other may hold ten probes in a row: a day must not end so.
            c.failure.max_association_retrans = 60;
        });
        let b = Bench::connected(seed, &config, &[(link(10, 15), link(10, 15)), (link(4, 40), link(4, 40))]);
        let now = b.now;
        let mut d = Day {
            b,
            config,
            r: RandomStream::named(seed, "day"),
            to_server: Ledger::default(),
            to_client: Ledger::default(),
            reported_abandoned: 0,
            tally: Tally::default(),
            down_until: [None; 2],
            next_trouble: now,
            next_restart: now + ms(600_000),
            lives: 0,
            orphaned: false,
            forgotten: false,
        };
        d.take_events();
        d
    }

    fn pick(&mut self, from: u64, to: u64) -> u64 {
        from + self.r.below(to - from)
    }

    fn length(&mut self) -> usize {
        let (from, to) = match self.r.below(100) {
            0..60 => (20, 300),
            60..90 => (300, 1_200),
            90..98 => (1_200, 6_000),
            _ => (6_000, 30_000),
        };
        self.pick(from, to) as usize
    }

    /// One message each way, more or less.
    fn send(&mut self) {
        for side in [Side::Client, Side::Server] {
            for _ in 0..self.r.below(3) {
                let known = match side {
                    Side::Client => self.b.client.association(self.b.client_id).is_some(),
                    Side::Server => self.b.server_id.is_some_and(|id| self.b.server.association(id).is_some()),
                };
                if !known {
                    continue;
                }
                let stream = self.r.below(4) as u16;
                let (len, life) = (self.length(), self.pick(30, 800));
                let now = self.b.now;
                let o = SendOptions {
                    stream: StreamId(stream),
                    unordered: stream == UNORDERED,
                    deadline: (stream == PARTIAL).then(|| now + ms(life)),
                    ..SendOptions::default()
                };
                let ledger = if side == Side::Client { &mut self.to_server } else { &mut self.to_client };
                let (payload, entry) = message(ledger.epoch, stream, ledger.next_number(stream), len);
                if self.b.send(side, o, payload) {
                    ledger.sent(stream, entry, len);
                } else {
                    self.tally.refused += 1;
                }
            }
        }
    }

    /// What arrived goes through the books.
    fn receive(&mut self) {
        for m in self.b.at_server.drain(..) {
            self.to_server.arrived(m);
        }
        for m in self.b.at_client.drain(..) {
            self.to_client.arrived(m);
        }
    }

    fn take_events(&mut self) {
        let (mut connected, mut closed) = (false, None);
        for e in self.b.client_events.drain(..).chain(self.b.server_events.drain(..)) {
            match e {
                Event::Abandoned { messages } => self.reported_abandoned += messages,
                Event::PathChanged { reason, .. } => match reason {
                    PathReason::Silent | PathReason::Timeout | PathReason::HeartbeatLost => self.tally.paths_left += 1,
                    PathReason::Answered => self.tally.paths_back += 1,
                    _ => {}
                },
                Event::Connected => {
                    self.tally.connects += 1;
                    connected = true;
                }
                Event::Restarted => {
                    self.tally.restarted_events += 1;
                    connected = true;
                }
                Event::Closed(why) => closed = Some(why),
                _ => {}
            }
        }
        let Some(newest) = self.b.server.associations().last() else {
            self.b.server_id = None;
            return self.reconnect_if_closed(closed);
        };
        self.b.server_id = Some(newest);
        if connected && self.forgotten {
            // The server knows that its peer began anew: what it sends now is for the new one.
            self.forgotten = false;
            self.to_client.begin_epoch();
        }
        self.reconnect_if_closed(closed);
    }

    fn reconnect_if_closed(&mut self, closed: Option<CloseReason>) {
        let Some(why) = closed else { return };
        if self.b.client.association(self.b.client_id).is_some() {
            return;
        }
        // Only a server without memory ends an association of this day.
        assert!(self.orphaned && matches!(why, CloseReason::PeerAborted(_)), "{why:?} at {:?}", self.b.now);
        self.orphaned = false;
        self.to_server.begin_epoch();
        self.to_client.begin_epoch();
        self.connect();
    }

    /// A handshake runs over one path and gives up after two minutes, less than an outage may last: it gets its time.
    fn connect(&mut self) {
        self.heal();
        self.next_trouble = self.next_trouble.max(self.b.now + ms(30_000));
        self.b.connect(&self.config);
    }

    fn restart(&mut self) {
        self.lives += 1;
        self.b.flush();
        let now = self.b.now;
        if self.lives.is_multiple_of(2) {
            self.tally.client_restarts += 1;
            self.b.client = endpoint("client", self.lives, false, &self.config, now);
            self.to_server.begin_epoch();
            self.forgotten = true;
            self.connect();
        } else {
            self.tally.server_restarts += 1;
            self.b.server = endpoint("server", self.lives, true, &self.config, now);
            self.b.server_id = None;
            self.orphaned = true;
        }
    }

    fn weather(&mut self) {
        let now = self.b.now;
        for path in 0..2 {
            for d in Direction::BOTH {
                let p = self.pick(1, 51) as f64 / 1_000.0;
                let burst = self.pick(2, 10) as f64;
                let loss = if self.r.chance(0.5) { LossConfig::bernoulli(p) } else { LossConfig::bursts(p, burst) };
                self.b.paths.get_mut(path).expect("a path").apply(now, d, Setting::Loss(loss));
            }
        }
    }

    /// One thing goes wrong.
    fn trouble(&mut self) {
        let now = self.b.now;
        let path = self.r.below(2) as usize;
        match self.r.below(7) {
            0 | 1 if self.down_until[1 - path].is_none() => {
                self.tally.outages += 1;
                let long = if self.r.chance(0.3) { self.pick(30_000, 180_000) } else { self.pick(1_000, 20_000) };
                self.b.cut(path);
                self.down_until[path] = Some(now + ms(long));
            }
            // Both at once, for less than it takes to lose hope.
            2 => {
                self.tally.outages += 2;
                let short = self.pick(1_000, 5_000);
                for p in 0..2 {
                    self.b.cut(p);
                    self.down_until[p] = Some(now + ms(short));
                }
            }
            3 => {
                self.tally.new_ports += 1;
                let port = 20_000 + self.r.below(30_000) as u16;
                self.b.nat[path].set_port(port);
            }
            4 => {
                self.tally.new_addresses += 1;
                let host = 1 + self.r.below(250) as u8;
                self.b.nat[path] = ([203, 0, 113 + path as u8, host], 20_000 + path as u16).into();
            }
            5 => {
                self.tally.interfaces_lost += 1;
                let local = LocalId(path as u16);
                let id = self.b.client_id;
                if let Some(mut a) = self.b.client.association_mut(id) {
                    a.interface_down(now, local);
                    a.interface_up(now, local);
                }
            }
            _ => self.weather(),
        }
    }

    fn tick(&mut self, sending: bool) {
        let until = self.b.now + ms(TICK);
        for path in 0..2 {
            if self.down_until[path].is_some_and(|t| t <= self.b.now) {
                self.down_until[path] = None;
                self.b.restore(path);
            }
        }
        if sending {
            self.send();
        }
        self.b.run_until(until, |_| false);
        self.b.now = until;
        self.receive();
        self.take_events();
    }

    fn heal(&mut self) {
        for path in 0..2 {
            self.down_until[path] = None;
            self.b.restore(path);
        }
    }

    /// One virtual hour, and the rest at its end.
    fn hour(&mut self) {
        let end = self.b.now + ms(HOUR);
        let quiet = end - ms(REST);
        self.weather();
        while self.b.now < quiet {
            if self.b.now >= self.next_trouble {
                self.next_trouble = self.b.now + ms(self.r.below(240_000) + 5_000);
                self.trouble();
            }
            // With time to notice before the hour ends.
            if self.b.now >= self.next_restart && self.b.now + ms(120_000) < quiet {
                self.next_restart = self.b.now + ms(self.r.below(2_400_000) + 600_000);
                self.restart();
            }
            self.tick(true);
        }
        self.heal();
        while self.b.now < end {
            self.tick(false);
        }
        assert!(!self.orphaned && !self.forgotten, "a restart that was not noticed");
        self.to_server.settle();
        self.to_client.settle();
        self.b.check();
        assert_eq!((self.b.client.associations().count(), self.b.server.associations().count()), (1, 1));
    }
}

fn live(hours: u64) {
    let mut live = 0i64;
    let mut at_rest = Vec::with_capacity(hours as usize);
    let mut peak = 0;
    let mut day = None;
    let memory = allocation_counter::measure(|| day = Some(Day::new("live", 24)));
    live += memory.bytes_current;
    let mut day = day.expect("begun");
    for hour in 1..=hours {
        let before = live;
        let memory = allocation_counter::measure(|| day.hour());
        live += memory.bytes_current;
        at_rest.push(live);
        peak = peak.max(before.max(0) as u64 + memory.bytes_max);
        println!(
            "hour {hour:>2}: {:>8} messages delivered, {:>6} given up, {:>5} lost by restarts; {live:>7} bytes at rest",
            day.to_server.delivered + day.to_client.delivered,
            day.to_server.given_up + day.to_client.given_up,
            day.to_server.lost + day.to_client.lost,
        );
    }
    println!("{:#?}", day.tally);
    let (a, b) = (&day.to_server, &day.to_client);
    for (name, l) in [("to the server", a), ("to the client", b)] {
        println!(
            "{name}: {} messages with {} bytes sent = {} delivered + {} given up + {} lost by restarts ({} on their way \
             then)",
            l.messages, l.bytes, l.delivered, l.given_up, l.lost, l.on_the_way
        );
        assert_eq!(l.messages, l.delivered + l.given_up + l.lost, "each message is accounted for");
        assert!(l.lost <= l.on_the_way, "nothing is lost but what was on its way");
    }
    let (first, second) = at_rest.split_at(at_rest.len() / 2);
    let mean = |l: &[i64]| l.iter().sum::<i64>() / l.len().max(1) as i64;
    let most = at_rest.iter().max().copied().unwrap_or(0);
    println!("memory: {most} bytes at rest at most, {peak} under way at most");
    // Few samples say nothing of a trend.
    if hours >= 12 {
        println!("memory at rest: {} bytes in the mean of the first half, {} of the second", mean(first), mean(second));
        assert!(mean(second) <= mean(first) + GROWTH, "memory grows: {at_rest:?}");
    }
    // What the sender gave up may have arrived all the same, but never the other way round.
    assert!(a.given_up + b.given_up <= day.reported_abandoned);
    assert!(most <= AT_REST && peak <= PEAK, "{at_rest:?} {peak}");
    let t = &day.tally;
    let per_hour = (day.to_server.messages + day.to_client.messages) / hours;
    assert!(per_hour > 150_000, "{per_hour} messages in an hour");
    assert!(t.client_restarts + t.server_restarts > 0 && t.outages > 0 && t.new_ports + t.new_addresses > 0);
}

#[test]
fn every_message_of_a_day_is_accounted_for() {
    let hours: u64 = std::env::var("ANABRANCH_DAY_HOURS").ok().and_then(|v| v.parse().ok()).unwrap_or(1);
    live(hours);
}
