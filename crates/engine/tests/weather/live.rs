//! The demo's question in virtual time: one live video over an emulated WLAN and a 3G link, whole frames in time.
//!
//! 8 Mbit/s of media, constant rate, 25 frames a second in groups of 24 (I B B P …), six transport stream packets a
//! message, 300 ms of latency. A frame is unusable when one of its messages is missing 300 ms after it was made.

use crate::common::*;
use crate::film::note;
use anabranch_base::{Duration, Instant, Rate, StreamId};
use anabranch_engine::SendOptions;
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::{Limit, LinkConfig, LossConfig};

const LATENCY: Duration = Duration::from_millis(300);

fn wlan() -> (LinkConfig, LinkConfig) {
    demo_link(6, 30, 0.001)
}
fn umts() -> (LinkConfig, LinkConfig) {
    demo_link(4, 160, 0.0)
}
fn demo_link(mbit: u64, delay: u64, loss: f64) -> (LinkConfig, LinkConfig) {
    let mut forward = link(mbit, delay).with_loss(LossConfig::bernoulli(loss)).with_limit(Limit::packets(40));
    forward.overhead = 28;
    let mut back =
        LinkConfig::fixed(Some(Rate::from_bits_per_sec(mbit * 1_000_000)), ms(5)).with_limit(Limit::packets(40));
    back.overhead = 28;
    (forward, back)
}

struct Frame {
    class: u8,
    messages: Vec<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    frames: usize,
    unusable: usize,
    by_class: [usize; 3],
    late_or_lost: usize,
    messages: usize,
    first_second: usize,
    retransmissions: u64,
    timeouts: u64,
}

/// Class of each frame of a group of 24 in decoding order, and its share of the group's bytes.
fn group() -> Vec<(u8, u32)> {
    let mut g = vec![(0, 12)];
    for _ in 0..8 {
        g.push((1, 5));
        g.push((2, 3));
        g.push((2, 3));
    }
    g.truncate(24);
    g
}

fn run(profile: &Profile, links: &[(LinkConfig, LinkConfig)], seed: u64, seconds: u64) -> Outcome {
    let mut config = assoc_config("cmt");
    config.profile = profile.clone();
    config.seed = seed;
    let mut b = Bench::connected(seed, &config, links);
    let start = b.now;
    let total: u32 = group().iter().map(|g| g.1).sum();
    let group_messages = 8_000_000.0 / 8.0 / 1_128.0 * (24.0 / 25.0);
    let gap = Duration::from_secs_f64(1_128.0 * 8.0 / 8_000_000.0);
    let mut frames: Vec<Frame> = vec![];
    let mut sequence = 0u32;
    let mut at = start;
    let mut arrived: Vec<Option<Instant>> = vec![];
    let mut made: Vec<Instant> = vec![];
    while at < start + Duration::from_secs(seconds) {
        for (class, share) in group() {
            let n = (group_messages * f64::from(share) / f64::from(total)).round().max(1.0) as u32;
            let mut f = Frame { class, messages: vec![] };
            for _ in 0..n {
                b.run_until(at, |_| false);
                b.now = at;
                let options = SendOptions {
                    stream: StreamId(u16::from(class)),
                    unordered: true,
                    class,
                    group: Some(frames.len() as u32),
                    deadline: Some(at + LATENCY),
                    ..SendOptions::default()
                };
                let mut payload = pattern(1, 1_148).to_vec();
                payload[..4].copy_from_slice(&sequence.to_be_bytes());
                let _ = b.send(Side::Client, options, payload);
                note(&mut b, &mut arrived);
                f.messages.push(sequence);
                made.push(at);
                sequence += 1;
                at += gap;
            }
            frames.push(f);
        }
    }
    for _ in 0..100 {
        b.run_for(ms(10));
        note(&mut b, &mut arrived);
    }
    arrived.resize(sequence as usize, None);
    let late = |i: u32| arrived[i as usize].is_none_or(|t| t > made[i as usize] + LATENCY + ms(1));
    let mut o = Outcome { frames: frames.len(), messages: sequence as usize, ..Outcome::default() };
    for f in &frames {
        if f.messages.iter().any(|m| late(*m)) {
            o.unusable += 1;
            o.by_class[usize::from(f.class)] += 1;
            o.first_second += usize::from(made[f.messages[0] as usize] < start + ms(1_000));
        }
    }
    o.late_or_lost = (0..sequence).filter(|i| late(*i)).count();
    if std::env::var("LIVE_TRACE").is_ok() {
        for s in 0..seconds * 10 {
            let from = start + ms(100 * s);
            let list: Vec<u32> =
                (0..sequence).filter(|i| made[*i as usize] >= from && made[*i as usize] < from + ms(100)).collect();
            let bad = list.iter().filter(|i| late(**i)).count();
            if bad > 0 {
                eprintln!("t={:.1} late {bad}/{}", s as f64 / 10.0, list.len());
            }
        }
    }
    o.retransmissions = b.assoc(Side::Client).stats().retransmissions;
    for (_, p) in b.assoc(Side::Client).paths() {
        o.timeouts += p.counters.timeouts;
        if std::env::var("LIVE_TRACE").is_ok() {
            eprintln!("{:?}", p);
        }
    }
    if std::env::var("LIVE_TRACE").is_ok() {
        eprintln!("{:?}", b.assoc(Side::Client).stats());
        eprintln!("{:?}", b.client_events);
    }
    o
}

/// The round-robin run of the demo: plain CMT, with what every media run has.
fn round_robin() -> Profile {
    Profile::named("cmt").expect("registered")
}

#[test]
fn live_beats_single_paths_and_round_robin() {
    let live = Profile::named("live").expect("registered");
    let (mut sum_best, mut sum_wlan, mut sum_3g, mut sum_rr) = (0, 0, 0, 0);
    for seed in 1..=3 {
        let best = run(&live, &[wlan(), umts()], seed, 15);
        let w = run(&live, &[wlan()], seed, 15);
        let g = run(&live, &[umts()], seed, 15);
        let rr = run(&round_robin(), &[wlan(), umts()], seed, 15);
        println!("seed {seed}\n best {best:?}\n wlan {w:?}\n 3g   {g:?}\n rr   {rr:?}");
        assert_eq!((best.frames, best.messages), (rr.frames, rr.messages), "all runs carry the same stream");
        assert!(best.unusable < w.unusable && best.unusable < g.unusable);
        sum_best += best.unusable;
        sum_wlan += w.unusable;
        sum_3g += g.unusable;
        sum_rr += rr.unusable;
    }
    assert!(2 * sum_best <= sum_wlan.min(sum_3g), "{sum_best} of {sum_wlan} and {sum_3g}");
    assert!(sum_best < sum_rr, "{sum_best} against {sum_rr}");
}

/// For tuning: `LIVE_SET="path_scheduler=min_rtt window=rfc9260" cargo test --test live variant -- --nocapture --ignored`.
#[test]
#[ignore = "a tool for tuning, asserts nothing"]
fn variant() {
    let mut p = Profile::named(&std::env::var("LIVE_PROFILE").unwrap_or("live".into())).expect("registered");
    for s in std::env::var("LIVE_SET").unwrap_or_default().split_whitespace() {
        let (hook, spec) = s.split_once('=').expect("hook=policy");
        p.set(hook.parse::<Hook>().expect("a hook"), spec).expect("a policy");
    }
    let seeds: u64 = std::env::var("LIVE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3);
    for seed in 1..=seeds {
        println!("{:?}", run(&p, &[wlan(), umts()], seed, 15));
    }
}
