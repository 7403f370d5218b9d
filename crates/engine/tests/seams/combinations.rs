//! Random combinations of the registered policies, with and without those of Xu et al. 2014, at 5 % loss both ways, and
//! over links of which every other one damages packets: nothing is lost, doubled, changed or out of order.
//!
//! `SEAMS_COMBINATIONS` sets how many (default 300), `SEAMS_FIRST` the number of the first.

use super::cmt_cl_fd;
use super::two_paths::*;
use anabranch_base::{RandomStream, StreamId};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::{Hook, ParamInfo, PolicyError, PolicyInfo, Profile, Value, policies as registered};
use anabranch_sim::{DamageConfig, Jitter, Limit, LinkConfig, LossConfig};
use std::collections::{BTreeMap, BTreeSet};

/// A value that `p` allows: any word or switch, numbers up to a factor of two from their default.
fn value(p: &ParamInfo, r: &mut RandomStream) -> String {
    if !p.words.is_empty() {
        return p.words[r.below(p.words.len() as u64) as usize].to_owned();
    }
    let Value::Number(default) = p.default else { return p.default.to_string() };
    if p.whole && p.max == 1.0 {
        return r.below(2).to_string();
    }
    let n = (default * [0.5, 1.0, 2.0][r.below(3) as usize]).clamp(p.min, p.max);
    if p.whole { format!("{}", n.round()) } else { n.to_string() }
}

fn spec(p: &PolicyInfo, r: &mut RandomStream) -> String {
    let mut params: Vec<_> = p.params.iter().map(|p| (p.name, value(p, r))).collect();
    // A scheduler around another one takes what that one takes.
    let inner = params.iter().find(|(name, _)| *name == "inner").and_then(|(_, inner)| p.hook.policy(inner).ok());
    if let Some(inner) = inner {
        params.retain(|(n, _)| ["inner", "estimate"].contains(n) || inner.params.iter().any(|i| i.name == *n));
    }
    let params: Vec<_> = params.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    if params.is_empty() { p.name.to_owned() } else { format!("{}:{}", p.name, params.join(",")) }
}

/// A profile of random choices that the registry accepts on two paths; how many it refused before.
fn random_profile(r: &mut RandomStream) -> (Profile, u32) {
    for refused in 0.. {
        let mut p = Profile::named("sctp").expect("registered");
        let mut in_order = true;
        for hook in Hook::ALL {
            let all = hook.policies();
            let choice = all[r.below(all.len() as u64) as usize];
            match p.set(hook, &spec(choice, r)) {
                Err(PolicyError::Above { .. }) => in_order = false,
                other => other.expect("an allowed value"),
            }
        }
        if in_order && p.check(2).is_ok() {
            return (p, refused);
        }
    }
    unreachable!("the loop has no end")
}

fn describe(p: &Profile) -> String {
    Hook::ALL.map(|h| format!("{h} {}", p.spec(h))).join("\n  ")
}

fn links(r: &mut RandomStream) -> [(LinkConfig, LinkConfig); 2] {
    let mut one = || {
        let mut l = link(2 + r.below(20), 5 + r.below(80)).with_limit(Limit::packets(40));
        l.loss = LossConfig::bernoulli(0.05);
        l.jitter = Jitter::Uniform(ms(r.below(4)));
        l.jitter_reorders = r.chance(0.5);
        l
    };
    [(one(), one()), (one(), one())]
}

/// Half of the links damage packets, drawn apart: all else of a combination is what it is without.
fn damaging(number: u64, mut links: [(LinkConfig, LinkConfig); 2]) -> [(LinkConfig, LinkConfig); 2] {
    let mut r = RandomStream::named(number, "damage");
    for l in links.iter_mut().flat_map(|(there, back)| [there, back]) {
        l.damage = match r.below(4) {
            0 => DamageConfig::BECKE,
            1 => DamageConfig::Bits { rate: 5e-6 },
            _ => DamageConfig::None,
        };
    }
    links
}

/// Streams 0 and 1 are ordered and reliable, 2 unordered and reliable, 3 has deadlines.
const STREAMS: u64 = 4;

struct Outcome {
    refused_decisions: u64,
    abandoned: u64,
    retransmissions: u64,
    /// Chunks out of damaged packets and from sums.
    repaired: u64,
    seconds: f64,
}

fn run(number: u64, profile: &Profile, p1_hooks: u8, r: &mut RandomStream) -> Outcome {
    let mut config = AssocConfig::with(profile.clone(), anabranch_engine::Constants::RFC);
    config.seed = number;
    let seen = cmt_cl_fd::Seen::default();
    let set = cmt_cl_fd::install(profile.build(number).expect("registered"), &seen, true, p1_hooks);
    let mut b = connected_with(number, &config, set, &damaging(number, links(r)));
    let (mut next, mut reliable) = ([0u32; STREAMS as usize], BTreeSet::new());
    let (mut got, mut newest) = (BTreeSet::new(), BTreeMap::new());
    for step in 0..600 {
        // Bursts and pauses for two seconds, then silence.
        for _ in 0..if step < 20 { r.below(12) } else { 0 } {
            let stream = r.below(STREAMS) as u16;
            let options = SendOptions {
                stream: StreamId(stream),
                unordered: stream == 2,
                class: r.below(3) as u8,
                deadline: (stream == 3).then(|| b.now + ms(20 + r.below(400))),
                ..SendOptions::default()
            };
            let number = next[usize::from(stream)];
            next[usize::from(stream)] += 1;
            let len = if r.chance(0.1) { 1_000 + r.below(6_000) } else { 10 + r.below(1_300) };
            assert!(b.send(Side::Client, options, numbered(stream, number, len as usize)), "the buffer is large");
            if stream < 3 {
                reliable.insert((stream, number));
            }
        }
        b.run_for(ms(if step < 20 { 100 } else { 1_000 }));
        for m in b.at_server.drain(..) {
            let id = number_of(&m);
            assert!(got.insert(id), "{id:?} arrived twice");
            if id.0 != 2 {
                let before = newest.insert(id.0, id.1);
                assert!(before < Some(id.1), "{id:?} after {before:?}");
            }
        }
        let s = b.assoc(Side::Client).stats();
        if step >= 20 && reliable.is_subset(&got) && s.outstanding == 0 && s.unsent == 0 {
            break;
        }
    }
    b.check();
    let missing: Vec<_> = reliable.difference(&got).collect();
    assert!(missing.is_empty(), "missing after {:.0} s: {missing:?}", b.now.as_secs_f64());
    let s = b.assoc(Side::Client).stats();
    assert_eq!((s.unsent, s.outstanding), (0, 0));
    assert!(b.assoc(Side::Client).paths().all(|(_, p)| p.in_flight == 0));
    Outcome {
        refused_decisions: s.decisions_refused,
        abandoned: s.abandoned_sent + s.abandoned_unsent,
        retransmissions: s.retransmissions,
        repaired: s.repaired_by_peer,
        seconds: b.now.as_secs_f64(),
    }
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn random_combinations_lose_and_double_nothing() {
    let (first, n) = (env("SEAMS_FIRST", 0), env("SEAMS_COMBINATIONS", 300));
    let mut used: BTreeMap<(Hook, &str), u32> = BTreeMap::new();
    let (mut refused, mut abandoned, mut again, mut corrected, mut longest) = (0, 0, 0, 0, 0.0f64);
    for number in first..first + n {
        let mut r = RandomStream::named(number, "combination");
        let (profile, no) = random_profile(&mut r);
        refused += no;
        // Xu et al. 2014 as a whole in one of four, a part of it in another one.
        let hooks = [0, 0, 0b1_1111, r.below(32) as u8][r.below(4) as usize];
        let permutes_wrongly = profile.get(Hook::AckCredit) == "cumulative" || profile.get(Hook::LossCount) == "tsn";
        let hooks = if permutes_wrongly { hooks & !0b10 } else { hooks };
        // Budgets without periods would never be renewed.
        let hooks = if hooks & 0b10 != 0 { hooks | 1 } else { hooks };
        for h in Hook::ALL {
            *used.entry((h, profile.get(h))).or_default() += 1;
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(number, &profile, hooks, &mut r)));
        let Ok(o) = done else { panic!("combination {number}, Xu et al. 2014 {hooks:#b}:\n  {}", describe(&profile)) };
        assert_eq!(
            o.refused_decisions,
            0,
            "combination {number}, Xu et al. 2014 {hooks:#b}:\n  {}",
            describe(&profile)
        );
        abandoned += o.abandoned;
        again += o.retransmissions;
        if profile.get(Hook::Redundancy) == "split_error_correction" {
            corrected += o.repaired;
        }
        longest = longest.max(o.seconds);
    }
    println!(
        "{n} combinations, {refused} refused by the registry; {again} chunks sent again, {corrected} out of damaged \
         packets, {abandoned} messages given up, the longest took {longest:.0} s"
    );
    let unused: Vec<_> = registered().map(|p| (p.hook, p.name)).filter(|p| !used.contains_key(p)).collect();
    assert!(n < 200 || unused.is_empty(), "never in use: {unused:?}");
    assert!(n < 200 || corrected > 0, "no damaged packet was corrected");
}
