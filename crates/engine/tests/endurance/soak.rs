//! Hours of random weather on one to three paths: while a path can carry the stream, nothing starves.
//!
//! `ANABRANCH_SOAK_HOURS` sets the virtual hours of each profile (default a twelfth of an hour); `just soak` runs two.
//! `ANABRANCH_SOAK_FIRST` begins with another spell, so that a run that failed is looked at alone.
//!
//! A path can carry the stream while it is up both ways with its normal rate and delay; the stream needs at most 60 % of
//! the slowest path. What befalls paths is drawn in `soak/sky.rs`. Between two messages that come in time no path may be
//! able without a break for longer than the latency and one second.

mod sky;

use crate::common::*;
use anabranch_base::{Duration, Instant, RandomStream, StreamId};
use anabranch_engine::{AssocConfig, Event, SendOptions};
use anabranch_policy::registry::Profile;
use sky::Sky;

/// Virtual milliseconds of one association.
const SPELL: u64 = 600_000;
const MESSAGE: usize = 1_146;
/// Between two frames.
const GAP: u64 = 40;

/// A time in which nothing came in time although a path was able.
#[derive(Clone)]
struct Starved {
    lasted: Duration,
    /// Beyond the stream's latency.
    beyond: Duration,
    latency: u64,
    spell: u64,
    at: Instant,
    /// What befell the paths before, and what the sender thought of them.
    story: Vec<String>,
}

impl std::fmt::Display for Starved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, lasted) = (self.at.since(Instant::ZERO).as_millis(), self.lasted.as_millis());
        write!(f, "  spell {} at {at} ms: {lasted} ms, latency {} ms", self.spell, self.latency)?;
        self.story.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// What a profile made of its weather.
#[derive(Default)]
struct Outcome {
    lived: Duration,
    events: u64,
    messages: u64,
    in_time: u64,
    worst: Option<Starved>,
    /// Times of more than one second and the latency.
    long: Vec<Starved>,
}

/// One association in random weather.
struct Spell {
    number: u64,
    b: Bench,
    sky: Sky,
    latency: u64,
    /// Messages of a frame.
    burst: u64,
    /// When each message was made, by its number.
    made: Vec<Instant>,
    frames: u64,
    last_in_time: Instant,
    /// Which of `Outcome::long` goes on.
    goes_on: Option<usize>,
}

/// The constants of the program.
fn config(profile: &str, seed: u64) -> AssocConfig {
    changed(AssocConfig::new(Profile::named(profile).expect("a profile that is registered")), |c| {
        c.seed = seed;
        c.timers.heartbeat_interval = ms(1_000);
        c.timers.sack_delay = ms(20);
        c.timers.rto_max = ms(3_000);
        c.failure.max_association_retrans = 60;
    })
}

impl Spell {
    fn new(profile: &str, number: u64) -> Spell {
        let mut r = RandomStream::named(number, "stream");
        let latency = [200, 300, 500, 800, 1_200, 2_000][r.below(6) as usize];
        let mut sky = Sky::new(number, latency);
        let config = config(profile, number);
        let mut b = Bench::new(number, &config);
        b.largest = 1_452;
        for (i, l) in sky.links().into_iter().enumerate() {
            b.paths.add(&format!("path{i}"), l.clone(), l);
        }
        b.connect(&config);
        while !b.client_events.contains(&Event::Connected) {
            b.run_for(ms(1));
        }
        // As `anabranch send` does.
        let until = b.now + ms(1_500);
        while b.now < until && !b.is_warm() {
            b.run_for(ms(5));
        }
        sky.begin(b.now);
        let slowest = sky.roads.iter().map(|r| r.rate).min().unwrap_or(0);
        let share = 30 + r.below(31);
        let burst = (slowest * share / 100 * GAP / 1_000 / 8 / MESSAGE as u64).max(1);
        let last_in_time = b.now;
        Spell { number, b, sky, latency, burst, made: vec![], frames: 0, last_in_time, goes_on: None }
    }

    /// Frames of I, P and B, as `anabranch send` sends them.
    fn send(&mut self) {
        let now = self.b.now;
        let class = match self.frames % 50 {
            0 => 0,
            n if n.is_multiple_of(3) => 1,
            _ => 2,
        };
        for _ in 0..self.burst {
            let options = SendOptions {
                stream: StreamId(u16::from(class)),
                unordered: true,
                class,
                group: Some(self.frames as u32),
                deadline: Some(now + ms(self.latency)),
                ..SendOptions::default()
            };
            let mut payload = vec![0; MESSAGE];
            payload[..4].copy_from_slice(&(self.made.len() as u32).to_be_bytes());
            self.made.push(now);
            // A full buffer is weather too: the message is lost.
            let _ = self.b.send(Side::Client, options, payload);
        }
        self.frames += 1;
    }

    /// Looks at what arrived now.
    fn receive(&mut self, o: &mut Outcome) {
        let now = self.b.now;
        for m in self.b.at_server.drain(..) {
            let p = m.payload.into_bytes();
            let made = self.made[u32::from_be_bytes([p[0], p[1], p[2], p[3]]) as usize];
            if now <= made + ms(self.latency) {
                o.in_time += 1;
                self.last_in_time = now;
                self.goes_on = None;
            }
        }
    }

    /// For how long a path has been able while nothing came in time.
    fn starving(&self) -> Duration {
        let since = self.sky.roads.iter().filter_map(|r| r.able_since).min();
        since.map_or(Duration::ZERO, |s| self.b.now.since(s.max(self.last_in_time)))
    }

    /// Notes the worst.
    fn watch(&mut self, o: &mut Outcome) {
        let lasted = self.starving();
        let beyond = lasted.saturating_sub(ms(self.latency));
        let worse = o.worst.as_ref().is_none_or(|w| beyond > w.beyond);
        if beyond <= ms(1_000) && !worse {
            return;
        }
        let (at, story) = (self.b.now, self.story());
        let s = Starved { lasted, beyond, latency: self.latency, spell: self.number, at, story };
        if beyond > ms(1_000) {
            let i = *self.goes_on.get_or_insert(o.long.len());
            o.long.truncate(i);
            o.long.push(s.clone());
        }
        if worse {
            o.worst = Some(s);
        }
    }

    fn story(&mut self) -> Vec<String> {
        let from = self.b.now - ms(30_000);
        let log = self.sky.log.iter().filter(|(at, _)| *at >= from);
        let mut story: Vec<String> =
            log.map(|(at, what)| format!("{:9} {what}", at.since(Instant::ZERO).as_millis())).collect();
        for (i, r) in self.sky.roads.iter().enumerate() {
            story.push(format!("path {i}: {} bit/s, {} ms, able since {:?}", r.rate, r.delay, r.able_since));
        }
        for (id, p) in self.b.assoc(Side::Client).paths() {
            story.push(format!(
                "{id:?} {:?} window {} flight {} srtt {} min {} rto {} capacity {} way {} timeouts {}",
                p.state,
                p.cwnd,
                p.in_flight,
                p.srtt,
                p.min_rtt,
                p.rto,
                p.capacity.bytes_per_sec() * 8,
                p.one_way,
                p.counters.timeouts
            ));
        }
        story
    }

    fn run(mut self, length: u64, o: &mut Outcome) {
        let (start, mut next_frame) = (self.b.now, self.b.now);
        let end = start + ms(length);
        while self.b.now < end {
            if self.b.now >= next_frame {
                self.send();
                next_frame += ms(GAP);
            }
            self.sky.advance(&mut self.b);
            let until = next_frame.min(self.sky.next_change()).min(end).max(self.b.now + Duration::from_nanos(1));
            if !self.b.run_until(until, |b| !b.at_server.is_empty()) {
                self.b.now = until;
            }
            self.watch(o);
            self.receive(o);
        }
        self.b.check();
        o.lived += end.since(start);
        o.events += self.sky.events;
        o.messages += self.made.len() as u64;
    }
}

/// Hours of weather for a profile, in which nothing may starve for longer than the latency and one second.
fn soak(profile: &str) {
    let var = |name| std::env::var(name).ok();
    let hours: f64 = var("ANABRANCH_SOAK_HOURS").and_then(|v| v.parse().ok()).unwrap_or(1.0 / 12.0);
    let first: u64 = var("ANABRANCH_SOAK_FIRST").and_then(|v| v.parse().ok()).unwrap_or(0);
    let mut left = (hours * 3.6e6) as u64;
    let (mut o, mut spell) = (Outcome::default(), first);
    while left > 0 {
        let length = left.min(SPELL);
        Spell::new(profile, spell).run(length, &mut o);
        (left, spell) = (left - length, spell + 1);
    }
    let worst = o.worst.expect("time passed");
    println!(
        "{profile}: {:.2} h, {} events, {} messages, {:.2} % in time; starved for {:.3} s at most, {:.3} s beyond the \
         latency, {} times for more than 1 s beyond it",
        o.lived.as_secs_f64() / 3_600.0,
        o.events,
        o.messages,
        100.0 * o.in_time as f64 / o.messages as f64,
        worst.lasted.as_secs_f64(),
        worst.beyond.as_secs_f64(),
        o.long.len()
    );
    println!("{worst}");
    o.long.iter().filter(|s| s.beyond < worst.beyond).for_each(|s| println!("{s}"));
    assert!(worst.beyond <= ms(1_000), "{profile} starved for {} in spell {}", worst.lasted, worst.spell);
}

#[test]
fn live_never_starves() {
    soak("live");
}

#[test]
fn low_latency_never_starves() {
    soak("low-latency");
}

/// What it waited for in the dark was T3, which RFC 9260 doubles: 3.3 s beyond the latency. A packet in each two round trips
/// beside it brings the answer.
#[test]
fn cmt_never_starves() {
    soak("cmt");
}

/// Over its primary path alone and without a look at deadlines it came too late for 17 s while the other path was idle.
#[test]
fn media_never_starves() {
    soak("media");
}

/// One path came back while the other one was slow, and was left to T3 because that one answered: 1.4 s beyond the latency.
#[test]
fn a_path_that_is_back_is_used_beside_a_slow_one() {
    let mut o = Outcome::default();
    Spell::new("low-latency", 5_002).run(340_000, &mut o);
    let worst = o.worst.expect("time passed");
    assert!(worst.beyond <= ms(1_000), "{worst}");
}
