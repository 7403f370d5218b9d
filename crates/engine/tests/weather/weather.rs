//! Live video through the events that networks have, in virtual time: what `live` loses, and how soon it is whole again.

use crate::common::page::Page;
use crate::common::sampled::{Sample, all_cases};
use crate::common::*;
use crate::film::{links, note, program};
use anabranch_base::{Duration, Instant, StreamId};
use anabranch_engine::{Event, SendOptions};
use anabranch_policy::registry::{Hook, Profile};

/// A stream and the paths it takes.
#[derive(Clone)]
struct Scene {
    name: &'static str,
    /// Bits a second, with 25 frames each second in groups of 50.
    rate: u64,
    latency: u64,
    seconds: u64,
    paths: Vec<String>,
}

struct Frame {
    class: u8,
    made: Instant,
    messages: std::ops::Range<u32>,
}

/// What a viewer sees.
#[derive(Debug, Default, Clone)]
struct Seen {
    frames: usize,
    unusable: usize,
    undecodable: usize,
    first_second: usize,
    by_class: [usize; 3],
    /// Unusable frames by the second in which they were made.
    seconds: Vec<usize>,
    late_bytes: f64,
    overhead: f64,
}

const GAP: Duration = Duration::from_millis(40);
const MESSAGE: usize = 1_128;

fn frame_bytes(rate: u64, n: usize) -> (u8, usize) {
    // Shares of I, P and B in groups of 50 frames: 12, 5 and 3 with two B frames between anchors.
    let per_group = 12 + 5 * 16 + 3 * 33;
    let group = rate as usize / 8 * 2;
    let i = n % 50;
    let (class, share) = if i == 0 {
        (0, 12)
    } else if i.is_multiple_of(3) {
        (1, 5)
    } else {
        (2, 3)
    };
    (class, group * share / per_group)
}

fn watch(s: &Scene, profile: &Profile, seed: u64) -> Seen {
    let config = program(profile, seed);
    let mut b = Bench::new(seed, &config);
    b.largest = 1_452;
    for (i, words) in s.paths.iter().enumerate() {
        let (f, r) = links(words);
        b.paths.add(&format!("path{i}"), f, r);
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
    let start = b.now;
    let trace = std::env::var("TRACE").is_ok();
    let (mut frames, mut sequence, mut arrived) = (Vec::<Frame>::new(), 0u32, Vec::<Option<Instant>>::new());
    for n in 0..(s.seconds * 25) as usize {
        let made = start + GAP * n as u64;
        while b.now < made {
            b.run_for(ms(2).min(made - b.now));
            note(&mut b, &mut arrived);
        }
        let (class, bytes) = frame_bytes(s.rate, n);
        let first = sequence;
        for _ in 0..bytes.div_ceil(MESSAGE) {
            let options = SendOptions {
                stream: StreamId(u16::from(class)),
                unordered: true,
                class,
                group: Some(n as u32),
                deadline: Some(made + ms(s.latency)),
                ..SendOptions::default()
            };
            let mut payload = pattern(1, MESSAGE + 18).to_vec();
            payload[..4].copy_from_slice(&sequence.to_be_bytes());
            let _ = b.send(Side::Client, options, payload);
            sequence += 1;
        }
        note(&mut b, &mut arrived);
        frames.push(Frame { class, made, messages: first..sequence });
        if trace && n % 5 == 0 {
            for (id, p) in b.assoc(Side::Client).paths() {
                eprintln!(
                    "{:6} {id:?} {:?} cwnd {} flight {} srtt {} min {} cap {} jit {} 1w {} to {} ssth {}",
                    (made - start).as_millis(),
                    p.state,
                    p.cwnd,
                    p.in_flight,
                    p.srtt,
                    p.min_rtt,
                    p.capacity.bytes_per_sec(),
                    p.jitter,
                    p.one_way,
                    p.counters.timeouts,
                    p.ssthresh
                );
            }
        }
    }
    for _ in 0..(s.latency / 2 + 500) {
        b.run_for(ms(2));
        note(&mut b, &mut arrived);
    }
    arrived.resize(sequence as usize, None);
    let limit = |f: &Frame| f.made + ms(s.latency + 2);
    let mut seen = Seen { frames: frames.len(), seconds: vec![0; s.seconds as usize + 1], ..Seen::default() };
    let mut anchor = false;
    for f in &frames {
        let whole = f.messages.clone().all(|m| arrived[m as usize].is_some_and(|t| t <= limit(f)));
        seen.unusable += usize::from(!whole);
        seen.by_class[usize::from(f.class)] += usize::from(!whole);
        seen.first_second += usize::from(!whole && f.made < start + ms(1_000));
        seen.seconds[((f.made - start).as_millis() / 1_000) as usize] += usize::from(!whole);
        let shown = whole && (f.class == 0 || anchor);
        anchor = if f.class < 2 { shown } else { anchor };
        seen.undecodable += usize::from(!shown);
    }
    let late = frames.iter().flat_map(|f| f.messages.clone().map(move |m| (f, m)));
    let late = late.filter(|(f, m)| arrived[*m as usize].is_some_and(|t| t > limit(f))).count();
    seen.late_bytes = late as f64 / f64::from(sequence);
    let mut sent = 0;
    for (_, p) in b.assoc(Side::Client).paths() {
        sent += p.counters.bytes_sent;
    }
    seen.overhead = sent as f64 / (f64::from(sequence) * (MESSAGE + 18) as f64);
    if trace {
        eprintln!("{:?}", b.assoc(Side::Client).stats());
    }
    seen
}

fn scene(name: &'static str, rate: u64, latency: u64, seconds: u64, paths: &[&str]) -> Scene {
    Scene { name, rate, latency, seconds, paths: paths.iter().map(|p| (*p).to_string()).collect() }
}

fn scenes() -> Vec<Scene> {
    let m = 1_000_000;
    vec![
        scene("calm", 8 * m, 500, 10, &["rate 10mbit delay 20ms limit 200", "rate 10mbit delay 40ms limit 200"]),
        scene("calm80", 16 * m, 500, 10, &["rate 10mbit delay 20ms limit 200", "rate 10mbit delay 40ms limit 200"]),
        scene("start80-slow", 8 * m, 500, 10, &["rate 6mbit delay 30ms limit 100", "rate 4mbit delay 160ms limit 100"]),
        scene("start80-300", 8 * m, 300, 10, &["rate 6mbit delay 30ms limit 40", "rate 4mbit delay 160ms limit 40"]),
        scene(
            "spike600x1",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s delay 600ms at 9s delay 20ms",
                "rate 10mbit delay 40ms limit 200 at 8s delay 600ms at 9s delay 40ms",
            ],
        ),
        scene(
            "spike1500x2",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s delay 1500ms at 10s delay 20ms",
                "rate 10mbit delay 40ms limit 200 at 8s delay 1500ms at 10s delay 40ms",
            ],
        ),
        scene(
            "spike3000x3",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s delay 3s at 11s delay 20ms",
                "rate 10mbit delay 40ms limit 200 at 8s delay 3s at 11s delay 40ms",
            ],
        ),
        scene("spike3000x3one", 8 * m, 500, 20, &["rate 10mbit delay 20ms limit 200 at 8s delay 3s at 11s delay 20ms"]),
        scene(
            "spike-one-of-two",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s delay 600ms at 9s delay 20ms",
                "rate 10mbit delay 40ms limit 200",
            ],
        ),
        scene(
            "collapse1of2",
            8 * m,
            500,
            20,
            &["rate 8mbit delay 20ms limit 200 at 8s rate 1mbit at 14s rate 8mbit", "rate 10mbit delay 40ms limit 200"],
        ),
        scene(
            "collapse2of2",
            8 * m,
            500,
            20,
            &[
                "rate 8mbit delay 20ms limit 200 at 8s rate 800kbit at 12s rate 8mbit",
                "rate 10mbit delay 40ms limit 200 at 8s rate 1mbit at 12s rate 10mbit",
            ],
        ),
        scene(
            "dark1of2",
            8 * m,
            500,
            20,
            &["rate 10mbit delay 20ms limit 200 at 8s down at 12s up", "rate 10mbit delay 40ms limit 200"],
        ),
        scene(
            "dark2of2",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s down at 12s up",
                "rate 10mbit delay 40ms limit 200 at 8s down at 12s up",
            ],
        ),
        scene(
            "jitterloss",
            8 * m,
            500,
            20,
            &["rate 10mbit delay 30ms 10ms loss 2% limit 200", "rate 10mbit delay 30ms 10ms loss 2% limit 200"],
        ),
        scene(
            "jitterlossfree",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 30ms 10ms loss 2% limit 200 order free",
                "rate 10mbit delay 30ms 10ms loss 2% limit 200 order free",
            ],
        ),
        scene(
            "jitter50loss5",
            8 * m,
            800,
            20,
            &["rate 10mbit delay 60ms 50ms loss 5% limit 200", "rate 10mbit delay 60ms 50ms loss 5% limit 200"],
        ),
        scene(
            "loss0.5unlike",
            8 * m,
            300,
            20,
            &["rate 6mbit delay 30ms loss 0.5% limit 100", "rate 4mbit delay 160ms loss 0.5% limit 100"],
        ),
        scene("scarce60", 8 * m, 500, 20, &["rate 5mbit delay 30ms limit 100"]),
        scene("scarce60two", 8 * m, 500, 20, &["rate 3mbit delay 30ms limit 100", "rate 2mbit delay 60ms limit 100"]),
        scene("overload4of6", 6 * m, 300, 20, &["rate 4mbit delay 20ms limit 100"]),
        scene(
            "ramp",
            8 * m,
            500,
            20,
            &[
                "rate 10mbit delay 20ms limit 200 at 8s delay 200ms at 8.3s delay 400ms at 8.6s delay 600ms at 9s delay 400ms at 9.3s delay 200ms at 9.6s delay 20ms",
                "rate 10mbit delay 40ms limit 200",
            ],
        ),
        scene(
            "bursts",
            8 * m,
            500,
            20,
            &["rate 10mbit delay 20ms loss 1% burst 8 limit 200", "rate 10mbit delay 40ms loss 1% burst 8 limit 200"],
        ),
    ]
}

const PAGE: Page = Page {
    file: "MEASURED.md",
    command: "UPDATE=1 ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine --test weather events",
};
const SEEDS: u64 = 10;

/// What a scene cost, seed by seed, is what docs/MEASURED.md says, or within it where not all seeds are run.
fn hold(scene: &str, unusable: &[usize]) {
    let (least, most) = (unusable.iter().min().expect("seeds"), unusable.iter().max().expect("seeds"));
    let measured = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let rows = PAGE.hold("unusable frames of 500 (250)", |row| {
        (row.cell("scene")? == format!("`{scene}`")).then_some(())?;
        if all_cases() {
            return Some(measured.clone());
        }
        let says = row.cell("unusable frames of 500 (250)")?;
        let (from, to) = says.split_once(" to ").unwrap_or((says, says));
        let within =
            from.parse().is_ok_and(|from: usize| from <= *least) && to.parse().is_ok_and(|to: usize| *most <= to);
        assert!(within, "{scene}: {unusable:?}, and docs/MEASURED.md says {says}, written by {}", PAGE.command);
        Some(says.to_owned())
    });
    assert_eq!(rows, 1, "rows of docs/MEASURED.md for {scene}");
}

/// A packet of an outage is late whatever happens; frames beyond those are the sender's. A delay that falls back keeps
/// the order, so a spike of 3 s that ends at 11 s is over at 14 s.
fn events(which: fn(usize) -> bool) {
    let live = Profile::named("live").expect("registered");
    for (_, s) in scenes().into_iter().enumerate().filter(|(i, _)| which(*i)) {
        let mut sample = Sample::one_in(SEEDS as usize / 2);
        let seen: Vec<Seen> = (1..=SEEDS).filter(|_| sample.takes()).map(|seed| watch(&s, &live, seed)).collect();
        let (unusable, late): (Vec<_>, Vec<_>) = seen.iter().map(|o| (o.unusable, o.late_bytes)).unzip();
        println!("{}: {unusable:?} unusable, late {late:.4?}", s.name);
        assert!(late.iter().all(|late| *late <= 0.01), "{}: late {late:.4?}", s.name);
        hold(s.name, &unusable);
    }
}

#[test]
fn events_cost_what_is_known() {
    events(|i| i % 2 == 0);
}

/// Beside the others.
#[test]
fn more_events_cost_what_is_known() {
    events(|i| i % 2 == 1);
}

/// For tuning: `SCENES=spike PROFILE=live SEEDS=3 cargo test --test weather table -- --ignored --nocapture`.
#[test]
#[ignore = "a tool for tuning, asserts nothing"]
fn table() {
    let var = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
    let seeds: u64 = var("SEEDS", "2").parse().expect("a number");
    for name in var("PROFILE", "live").split(',') {
        let mut p = Profile::named(name).expect("registered");
        for set in var("SET", "").split_whitespace() {
            let (hook, spec) = set.split_once('=').expect("hook=policy");
            p.set(hook.parse::<Hook>().expect("a hook"), spec).expect("a policy");
        }
        for s in scenes().iter().filter(|s| s.name.contains(&var("SCENES", ""))) {
            for seed in 1..=seeds {
                let o = watch(s, &p, seed);
                println!(
                    "{name:12} {:18} unusable {:4} undecodable {:4} of {} class {:?} first {} late {:.4} sent {:.3} {:?}",
                    s.name,
                    o.unusable,
                    o.undecodable,
                    o.frames,
                    o.by_class,
                    o.first_second,
                    o.late_bytes,
                    o.overhead,
                    o.seconds
                );
            }
        }
    }
}
