//! Random configurations at both ends, random policies and random weather: what is reliable arrives once and in order,
//! no DATA is empty, and nothing ever stands still for good.
//!
//! `ANABRANCH_CONFIGURATIONS` says how many (500), `ANABRANCH_FIRST` the number of the first (0); a number is the whole
//! of a case. `just random-configurations 20000` runs so many.

use crate::common::*;
use crate::random_configuration::Case;
use anabranch_base::{Duration, RandomStream, StreamId};
use anabranch_engine::{Event, SendOptions};
use anabranch_sim::{Direction, Setting};
use anabranch_wire::{Chunk, Packet, Verify};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A handshake may take so long: timers back off to a minute.
const HANDSHAKE: u64 = 900_000;
/// Streams 0 and 1 are ordered, 2 is unordered, 3 has deadlines.
const STREAMS: u64 = 4;

/// What one side sends, and what the other one got of it.
struct Ledger {
    from: Side,
    largest: u64,
    streams: u64,
    left: u32,
    /// A message that was refused, for the next attempt.
    next: Option<(SendOptions, u32, usize)>,
    numbers: [u32; STREAMS as usize],
    missing: BTreeSet<(u16, u32)>,
    /// What is reliable, in the order in which it was handed over, from the first on that is missing.
    waiting: VecDeque<(u16, u32)>,
    got: BTreeSet<(u16, u32)>,
    newest: BTreeMap<u16, u32>,
}

impl Ledger {
    fn new(from: Side, case: &Case, messages: u64) -> Ledger {
        let (largest, streams) = (case.largest, case.streams(from == Side::Client).min(STREAMS));
        let (missing, waiting, got, newest) = (BTreeSet::new(), VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        let (left, next, numbers) = (messages as u32, None, [0; 4]);
        Ledger { from, largest, streams, left, next, numbers, missing, waiting, got, newest }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.next.is_none() && self.missing.is_empty()
    }

    /// Hands over what the send buffer takes, `most` messages at most.
    fn send(&mut self, b: &mut Bench, r: &mut RandomStream, most: u64) {
        for _ in 0..most {
            if self.next.is_none() && self.left > 0 {
                self.left -= 1;
                let stream = r.below(self.streams) as u16;
                let (now, late) = (b.now, r.chance(0.5));
                let options = SendOptions {
                    stream: StreamId(stream),
                    unordered: stream == 2,
                    class: r.below(4) as u8,
                    deadline: (stream == 3 && late).then(|| now + ms(r.below(500))),
                    max_retransmissions: (stream == 3 && !late).then(|| r.below(3) as u16),
                    immediate_ack: r.chance(0.1),
                    ..SendOptions::default()
                };
                let number = self.numbers[usize::from(stream)];
                self.numbers[usize::from(stream)] += 1;
                let len = if r.chance(0.5) { 10 + r.below(200) } else { 10 + r.below(self.largest) };
                self.next = Some((options, number, len as usize));
            }
            let Some((options, number, len)) = self.next else { return };
            if !b.send(self.from, options, numbered(options.stream.0, number, len)) {
                return;
            }
            self.next = None;
            if options.stream.0 < 3 {
                self.missing.insert((options.stream.0, number));
                self.waiting.push_back((options.stream.0, number));
            }
        }
    }

    /// Takes what arrived; true when what was missing for longest did, or something while nothing reliable is missing:
    /// what goes round the oldest message is no progress.
    fn check(&mut self, b: &mut Bench) -> Result<bool, String> {
        let list = if self.from == Side::Client { &mut b.at_server } else { &mut b.at_client };
        let mut on = self.waiting.is_empty() && !list.is_empty();
        for m in list.drain(..) {
            let id = number_of(&m);
            self.missing.remove(&id);
            if !self.got.insert(id) {
                return Err(format!("message {} of stream {} twice", id.1, id.0));
            }
            if let Some(before) = self.newest.insert(id.0, id.1).filter(|before| id.0 != 2 && *before > id.1) {
                return Err(format!("message {} of stream {} after {before}", id.1, id.0));
            }
        }
        while self.waiting.front().is_some_and(|id| !self.missing.contains(id)) {
            self.waiting.pop_front();
            on = true;
        }
        Ok(on)
    }
}

/// No packet has DATA without payload.
fn no_empty_data() -> Option<Filter> {
    Some(Box::new(|l: &Leaving<'_>| {
        let packet = Packet::parse(l.bytes, Verify::Trusted).expect("a packet");
        for c in packet.chunks().flatten() {
            let empty = match c.decode() {
                Ok(Chunk::Data(d)) => d.payload.is_empty(),
                Ok(Chunk::IData(d)) => d.payload.is_empty(),
                _ => false,
            };
            assert!(!empty, "{:?} sends DATA without payload at {:?}", l.from, l.now);
        }
        true
    }))
}

/// The weather changes: a path goes dark, or its rate falls; all is well again at the end.
fn weather(b: &mut Bench, case: &Case, step: u64) {
    for e in case.weather.iter().filter(|e| e.from == step || e.until == step) {
        let bad = e.from == step;
        match e.rate {
            None if bad => b.cut(e.path),
            None => b.restore(e.path),
            Some(rate) => {
                let rate = if bad { rate } else { case.rates[e.path] };
                for d in [Direction::Forward, Direction::Backward] {
                    let now = b.now;
                    b.paths.get_mut(e.path).expect("a path").apply(now, d, Setting::Rate(Some(rate)));
                }
            }
        }
    }
}

/// Over lossy paths a handshake may take its time: timers back off to a minute.
fn connected(case: &Case) -> Result<Bench, String> {
    let mut b = Bench::pair(case.number, &case.client, &case.server);
    b.largest = 1_500;
    for (i, (f, r)) in case.links.iter().enumerate() {
        b.add_path(&format!("path{i}"), f.clone(), r.clone());
    }
    b.connect(&case.client);
    let until = b.now + ms(HANDSHAKE);
    let done = b.run_until(until, |b| b.client_events.contains(&Event::Connected) && b.server_newest.is_some());
    if done { Ok(b) } else { Err(format!("not connected: {:?}, {:?}", b.client_events, b.server_events)) }
}

/// For how long the oldest message may be missing although all paths work: a few of the longest timeouts in a row, each
/// lost again.
fn patience(case: &Case) -> Duration {
    let longest = case.client.timers.rto_max.max(case.server.timers.rto_max);
    ms(30_000) + longest * 4
}

fn run(case: &Case) -> Result<(), String> {
    let mut r = RandomStream::named(case.number, "traffic");
    let mut b = connected(case)?;
    (b.strict, b.filter) = (true, no_empty_data());
    let (there, back) = (30 + r.below(300), r.below(200));
    let mut flows = [Ledger::new(Side::Client, case, there), Ledger::new(Side::Server, case, back)];
    let reads = r.chance(0.7);
    let mut progress = b.now;
    for step in 0u64.. {
        if flows.iter().all(Ledger::is_done) {
            return Ok(());
        }
        weather(&mut b, case, step);
        // A user who reads now and then, at first.
        b.auto_read = reads || step > 400 || step % 50 == 0;
        for f in &mut flows {
            let most = r.below(8);
            f.send(&mut b, &mut r, most);
        }
        let next = b.now + ms(if step < 1_000 { 20 } else { 500 });
        b.run_until(next, |_| false);
        b.now = next;
        for f in &mut flows {
            if f.check(&mut b)? || case.weather.iter().any(|e| step < e.until) || step < 400 {
                progress = b.now;
            }
        }
        let closed = |e: &&Event| matches!(e, Event::Closed(_));
        if let Some(e) = b.client_events.iter().chain(&b.server_events).find(closed) {
            return Err(format!("{e:?} at {:?}: {}", b.now, left(&flows)));
        }
        if b.now.since(progress) > patience(case) {
            let state: Vec<String> = [Side::Client, Side::Server].iter().map(|s| state(&mut b, *s)).collect();
            return Err(format!("stands still since {:?}: {}\n{}", progress, left(&flows), state.join("\n")));
        }
    }
    Ok(())
}

/// What a side has under way, for the report of a failure.
fn state(b: &mut Bench, side: Side) -> String {
    let a = b.assoc(side);
    let s = a.stats();
    let paths = a.paths().map(|(id, p)| {
        format!(
            "{id:?} {:?} window {} of which {} in flight, {} timeouts",
            p.state, p.cwnd, p.in_flight, p.counters.timeouts
        )
    });
    let paths = paths.collect::<Vec<_>>().join("; ");
    format!(
        "  {side:?}: {} bytes unsent, {} outstanding, {} read; {paths}; {:?}",
        s.unsent,
        s.outstanding,
        s.bytes_received,
        a.timers()
    )
}

fn left(flows: &[Ledger]) -> String {
    let of = |f: &Ledger| format!("{:?} misses {:?} and has {} to send", f.from, f.missing.len(), f.left);
    flows.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn random_configurations() {
    let (first, wanted) = (setting("ANABRANCH_FIRST", 0), setting("ANABRANCH_CONFIGURATIONS", 500));
    let (mut refused, mut failed, mut ran, mut number) = (0, vec![], 0, first);
    let mut used: BTreeMap<&'static str, u32> = BTreeMap::new();
    while ran < wanted {
        let case = Case::draw(number);
        number += 1;
        let Some(case) = case else {
            refused += 1;
            continue;
        };
        ran += 1;
        case.profiles.iter().for_each(|p| *used.entry(p).or_default() += 1);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&case)));
        let why = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(panic) => format!(
                "panicked: {}",
                panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref().copied()).unwrap_or("?")
            ),
        };
        println!("FAILED {}: {why}\n{case}", case.number);
        failed.push(case.number);
    }
    println!("{ran} configurations from number {first} on, {refused} more refused by the registry; profiles {used:?}");
    assert!(failed.is_empty(), "{} of {ran} failed: {failed:?}", failed.len());
}
