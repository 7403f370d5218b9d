use super::possible::{least_work, pieces};
use super::*;
use anabranch_base::{RandomStream, Rate};
use anabranch_sim::link::{Change, Schedule, Setting};
use anabranch_sim::queue::Limit;
use anabranch_sim::{Jitter, Link, LinkConfig, LossConfig, Verdict};

const MS: fn(u64) -> Duration = Duration::from_millis;
const END: Duration = Duration::from_secs(12);

fn carriage(packet: u32) -> Carriage {
    Carriage { cut: Cut::media(), chunk: 16, packet: 40, largest: packet, limit: packet }
}

fn film(random: &mut RandomStream, seconds: u64) -> Film {
    let fps = 10 + random.below(40);
    let mean = 1_000 + random.below(25_000);
    let class = |n: u64| match n % 12 {
        0 => (FrameClass::I, 5),
        n if n % 3 == 0 => (FrameClass::P, 2),
        _ => (FrameClass::B, 1),
    };
    let frame = |n: u64| {
        let (class, times) = class(n);
        let bytes = mean * times / 2 + random.below(mean) + 1;
        Frame { at: Instant::from_millis(n * 1_000 / fps), class, bytes }
    };
    let frames = (0..seconds * fps).map(frame).collect();
    Film { frames, latency: MS(100 + random.below(1_500)), carriage: carriage(1_228) }
}

/// Whatever may happen to a link. With `exact`, only what the simulated link takes from the same random numbers.
fn link(random: &mut RandomStream, exact: bool) -> LinkConfig {
    let rate = |r: &mut RandomStream| Some(Rate::from_bits_per_sec(200_000 + r.below(9_000_000)));
    let delay = |r: &mut RandomStream| {
        let most = if r.chance(0.2) { 3_000 } else { 200 };
        MS(r.below(most))
    };
    let loss = |r: &mut RandomStream| match r.below(5) {
        0 => LossConfig::bernoulli(0.05),
        1 => LossConfig::bursts(0.03, 4.0),
        4 => LossConfig::Series(vec![LossConfig::bernoulli(0.02), LossConfig::bursts(0.02, 3.0)]),
        2 => LossConfig::TimedTwoState { mean_good: MS(900), mean_bad: MS(60) },
        _ => LossConfig::None,
    };
    let jitter = |r: &mut RandomStream| match r.below(5) {
        0 => Jitter::Uniform(MS(1 + r.below(60))),
        1 => Jitter::Normal(MS(1 + r.below(30))),
        2 => Jitter::Exponential(MS(1 + r.below(30))),
        _ => Jitter::None,
    };
    let mut changes = Vec::new();
    for _ in 0..random.below(8) {
        let set = match random.below(if exact { 6 } else { 8 }) {
            0 => Setting::Rate(rate(random)),
            1 | 2 => Setting::Delay(delay(random)),
            3 => Setting::Down,
            4 => Setting::Up,
            5 => Setting::Mtu(Some(600 + random.below(1_000) as u32)),
            6 => Setting::Loss(if random.chance(0.5) { LossConfig::bernoulli(1.0) } else { loss(random) }),
            _ => Setting::Jitter(jitter(random)),
        };
        changes.push(Change { at: MS(random.below(12_000)), set });
    }
    let mut config = LinkConfig { overhead: random.below(40) as u32, ..LinkConfig::fixed(rate(random), delay(random)) };
    config.jitter = jitter(random);
    config.jitter_reorders = random.chance(0.5);
    config.loss = loss(random);
    if exact && matches!(config.loss, LossConfig::TimedTwoState { .. }) {
        config.loss = LossConfig::None;
    }
    config.schedule = if !exact && random.chance(0.2) {
        Schedule::every(MS(13_000).max(MS(12_001)), changes)
    } else {
        Schedule::once(changes)
    };
    config.limit = Limit::NONE;
    config
}

fn lines(configs: &[LinkConfig], seed: u64) -> Vec<Line> {
    let line = |(i, c): (usize, &LinkConfig)| Line::new(&format!("path{i}"), seed, c, 1.0, Duration::ZERO, END);
    configs.iter().enumerate().map(line).collect()
}

#[test]
fn no_plan_has_more_than_is_possible() {
    let (mut planned, mut bound, mut all) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = RandomStream::named(seed, "weather");
        let film = film(&mut random, 8);
        let configs: Vec<LinkConfig> = (0..1 + random.below(3)).map(|_| link(&mut random, false)).collect();
        let mut lines = lines(&configs, seed);
        let most = possible(&film, &lines);
        let plan = offline(&film, &mut lines);
        let whole = plan.whole.iter().filter(|w| **w).count();
        assert!(whole <= most, "seed {seed}: {whole} planned, {most} possible");
        (planned, bound, all) = (planned + whole, bound + most, all + film.frames.len());
    }
    // Both say something: neither everything nor nothing is possible, and plans come near.
    assert!(bound < all * 9 / 10 && bound > all / 3, "{bound} of {all}");
    assert!(planned > bound * 8 / 10, "{planned} of {bound}");
}

/// The packets of a plan are given to simulated links of the same name and seed: each comes when the plan says.
#[test]
fn a_plan_is_what_the_links_do() {
    let (mut packets, mut lost) = (0, 0);
    for seed in 0..200 {
        let mut random = RandomStream::named(seed, "weather");
        let film = film(&mut random, 4);
        let configs: Vec<LinkConfig> = (0..1 + random.below(3)).map(|_| link(&mut random, true)).collect();
        let plan = offline(&film, &mut lines(&configs, seed));
        for (i, config) in configs.iter().enumerate() {
            let mut link: Link<usize> = Link::new(&format!("path{i}"), seed, config.clone());
            let own: Vec<&Sent> = plan.sent.iter().filter(|s| s.line == i).collect();
            assert!(own.windows(2).all(|w| w[0].at <= w[1].at), "seed {seed}: out of order");
            for (number, s) in own.iter().enumerate() {
                assert_eq!(link.enqueue(s.at, s.size, number), Verdict::Queued, "seed {seed}");
            }
            let mut came = vec![None; own.len()];
            while let Some(d) = link.poll_delivery(Instant::from_millis(60_000)) {
                came[d.payload] = Some(d.at);
            }
            let planned: Vec<_> = own.iter().map(|s| s.arrival).collect();
            assert_eq!(came, planned, "seed {seed}, path {i}");
            lost += planned.iter().filter(|a| a.is_none()).count();
            packets += planned.len();
        }
        // Nothing leaves before it is made or comes late, and whole frames are whole.
        for (number, (f, whole)) in film.frames.iter().zip(&plan.whole).enumerate() {
            let of = plan.sent.iter().filter(|s| s.frame == number);
            let in_time = |s: &Sent| s.arrival.is_none_or(|at| at <= f.at + film.latency) && s.at >= f.at;
            assert!(of.clone().all(in_time), "seed {seed}");
            let came: u64 = of.filter(|s| s.arrival.is_some()).map(|s| u64::from(s.size - 40)).sum();
            let least: u64 = film.carriage.chunks(f).sum();
            assert!(if *whole { came >= least } else { came == 0 }, "seed {seed}: {came} of {least}");
        }
    }
    assert!(packets > 50_000 && lost > 300, "{packets} {lost}");
}

/// The most frames for which all inequalities of the proof hold, found by trying every choice; the bytes between two
/// frames are counted from the pieces one by one.
fn by_trying(film: &Film, lines: &[Line]) -> usize {
    let all: Vec<_> = lines.iter().flat_map(|l| pieces(l, film)).collect();
    let overhead = lines.iter().map(|l| l.overhead).min().unwrap_or(0);
    let n = film.frames.len();
    let carries = |i: usize, j: usize| -> u128 {
        let (made, due) = (film.frames[i].at.as_nanos(), (film.frames[j].at + film.latency).as_nanos());
        let one = |p: &super::possible::Piece| {
            let all_there = due >= p.by;
            let last = if all_there { p.until } else { due.saturating_sub(p.delay) };
            let (from, until) = (p.from.max(made), p.until.min(last).min(due));
            let lump =
                if p.from >= made && p.from <= due && p.from + p.delay.min(p.by - p.from) <= due { p.lump } else { 0 };
            let any = all_there || due >= p.delay;
            lump + if any { u128::from(p.rate) * u128::from(until.saturating_sub(from)) } else { 0 }
        };
        all.iter().map(one).sum()
    };
    let work: Vec<u128> = film.frames.iter().map(|f| least_work(film, f, overhead)).collect();
    let holds = |set: u32| {
        let taken = |k: usize| set >> k & 1 == 1;
        (0..n).all(|i| (i..n).all(|j| (i..=j).filter(|k| taken(*k)).map(|k| work[k]).sum::<u128>() <= carries(i, j)))
    };
    (0..1_u32 << n).filter(|s| holds(*s)).map(|s| s.count_ones() as usize).max().unwrap_or(0)
}

#[test]
fn the_bound_is_the_most_for_which_the_inequalities_hold() {
    let mut different = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let mut random = RandomStream::named(seed, "few");
        let mut film = film(&mut random, 1);
        // A few frames, close together or apart, over links that change all the time.
        film.frames.truncate(9);
        for f in &mut film.frames {
            f.bytes *= 1 + random.below(4);
            f.at += MS(if random.chance(0.3) { random.below(400) } else { 0 });
        }
        film.frames.sort_by_key(|f| f.at);
        film.latency = MS(50 + random.below(500));
        let mut configs: Vec<LinkConfig> = (0..1 + random.below(2)).map(|_| link(&mut random, false)).collect();
        for c in &mut configs {
            let sooner = |ch: &Change| Change { at: MS(ch.at.as_nanos() / 12_000_000), set: ch.set.clone() };
            c.schedule = Schedule::once(c.schedule.changes().iter().map(sooner).collect());
        }
        let lines = lines(&configs, seed);
        let found = possible(&film, &lines);
        assert_eq!(found, by_trying(&film, &lines), "seed {seed}");
        different.insert(found);
    }
    assert!(different.len() > 7, "{different:?}");
}

#[test]
fn a_line_carries_what_can_be_reckoned_by_hand() {
    // 125,000 bytes a second, and a frame of 5,640 bytes each 20 ms: five messages of 1146 and 16 bytes, 40 more for
    // each packet. So 6,020 bytes on the wire take 48.2 ms.
    let frame = |n: u64| Frame { at: Instant::from_millis(n * 20), class: FrameClass::B, bytes: 5 * 1_128 };
    let config = LinkConfig::fixed(Some(Rate::from_bytes_per_sec(125_000)), MS(50));
    let film = Film { frames: (0..100).map(frame).collect(), latency: MS(200), carriage: carriage(1_204) };
    let mut one = lines(std::slice::from_ref(&config), 1);
    // The last is due at 1980 + 200 ms; 2,130 ms on the wire are 44.2 frames.
    assert_eq!(possible(&film, &one), 44);
    let whole = offline(&film, &mut one).whole.iter().filter(|w| **w).count();
    assert_eq!(whole, 44, "with packets as full as can be the plan is the bound");
    // Darkness between 500 ms and a second takes 500 ms from it.
    let dark = config.with_schedule(Schedule::outage(MS(500), MS(1_000)));
    let mut one = lines(&[dark], 1);
    let (most, whole) = (possible(&film, &one), offline(&film, &mut one).whole);
    assert!(most <= 33 && whole.iter().filter(|w| **w).count() >= most - 2, "{most} {whole:?}");
}

/// A packet leaves over a change: most of it while what leaves arrives too late, its last bit when the delay is short.
#[test]
fn a_packet_over_a_change_counts_from_its_last_bit() {
    let change = Change { at: MS(1_000), set: Setting::Delay(MS(10)) };
    let config = LinkConfig::fixed(Some(Rate::from_bytes_per_sec(12_500)), MS(5_000));
    let configs = [config.with_schedule(Schedule::once(vec![change]))];
    // 1202 bytes on the wire take 96 ms, and come 106 ms after the frame was made.
    let frames = vec![Frame { at: Instant::from_millis(950), class: FrameClass::I, bytes: 1_128 }];
    let film = Film { frames, latency: MS(120), carriage: carriage(1_228) };
    assert_eq!(offline(&film, &mut lines(&configs, 1)).whole, [true]);
    assert_eq!(possible(&film, &lines(&configs, 1)), 1);
    let hurried = Film { latency: MS(9), ..film };
    assert_eq!(possible(&hurried, &lines(&configs, 1)), 0, "it comes after 10 ms at best");
}

#[test]
fn important_frames_come_first_when_not_all_can() {
    let class = |n: u64| if n.is_multiple_of(10) { FrameClass::I } else { FrameClass::B };
    let frame = |n: u64| Frame {
        at: Instant::from_millis(n * 40),
        class: class(n),
        bytes: if n.is_multiple_of(10) { 20_000 } else { 5_000 },
    };
    let film = Film { frames: (0..200).map(frame).collect(), latency: MS(600), carriage: carriage(1_228) };
    // 75,000 bytes a second, of which the I frames take 53,000.
    let config = LinkConfig::fixed(Some(Rate::from_bits_per_sec(600_000)), MS(30));
    let whole = offline(&film, &mut lines(&[config], 1)).whole;
    let of = |c: FrameClass| film.frames.iter().zip(&whole).filter(|(f, w)| f.class == c && **w).count();
    assert!(
        of(FrameClass::I) == 20 && (25..40).contains(&of(FrameClass::B)),
        "{} {}",
        of(FrameClass::I),
        of(FrameClass::B)
    );
}
