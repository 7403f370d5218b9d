//! Any registered policy together with any other that the registry does not refuse: over two paths that lose 5 % and
//! damage every 30th packet nothing is lost, nothing doubled, and everything arrives in reasonable time.
//!
//! `ANABRANCH_COMBINATIONS` sets how many are tried, `ANABRANCH_COMBINATION` runs a single one by its number.

use crate::common::*;
use anabranch_base::{RandomStream, StreamId};
use anabranch_engine::{Event, SendOptions};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::{DamageConfig, LinkConfig, LossConfig};
use std::collections::{BTreeMap, BTreeSet};

/// The `n`th combination; none when the registry refuses it.
fn combination(n: u64) -> Option<Profile> {
    let mut r = RandomStream::named(n, "combination");
    let mut profile = Profile::named("cmt").expect("registered");
    for hook in Hook::ALL {
        let all = hook.policies();
        let name = all[r.below(all.len() as u64) as usize].name;
        profile.set(hook, name).expect("its own name");
    }
    profile.check(2).is_ok().then_some(profile)
}

fn describe(p: &Profile) -> String {
    Hook::ALL.map(|h| format!("{}={}", h.name(), p.spec(h))).join(" ")
}

/// Runs it; what went wrong, if anything.
fn run(n: u64, profile: &Profile) -> Result<(), String> {
    let config = changed(assoc_config("cmt"), |c| {
        c.seed = n;
        c.timers.heartbeat_interval = ms(5_000);
    });
    let config = changed(config, |c| c.profile = profile.clone());
    let damage = DamageConfig::BECKE;
    let lossy = |mbit, d| LinkConfig { damage, ..link(mbit, d).with_loss(LossConfig::bernoulli(0.05)) };
    let links = [(lossy(8, 15), lossy(8, 15)), (lossy(4, 45), lossy(4, 45))];
    let mut b = Bench::connected(n, &config, &links);
    b.strict = true;
    let mut r = RandomStream::named(n, "messages");
    let (mut sent, mut got) = (BTreeSet::new(), BTreeSet::new());
    let mut newest: BTreeMap<(bool, u16), u32> = BTreeMap::new();
    let cut = n.is_multiple_of(3);
    for i in 0..300u32 {
        let server = r.chance(0.2);
        let stream = r.below(4) as u16;
        let side = if server { Side::Server } else { Side::Client };
        let o = SendOptions {
            stream: StreamId(stream),
            unordered: stream == 3,
            class: r.below(4) as u8,
            ..SendOptions::default()
        };
        let len = if r.chance(0.1) { 10_000 } else { 10 + r.below(1_800) as usize };
        if b.send(side, o, numbered(stream, i, len)) {
            sent.insert((server, stream, i));
        }
        b.run_for(ms(r.below(8)));
        if cut && i == 150 {
            b.cut(1);
        }
    }
    let until = b.now + ms(240_000);
    let restore = b.now + ms(2_000);
    while got.len() < sent.len() && b.now < until {
        b.run_for(ms(100));
        if cut && b.now >= restore {
            b.restore(1);
        }
        let lists = [(false, std::mem::take(&mut b.at_server)), (true, std::mem::take(&mut b.at_client))];
        for (server, m) in lists.iter().flat_map(|(s, l)| l.iter().map(move |m| (*s, m))) {
            let (stream, i) = number_of(m);
            if !got.insert((server, stream, i)) {
                return Err(format!("message {i} of stream {stream} twice"));
            }
            let before = newest.insert((server, stream), i);
            if stream < 3 && before > Some(i) {
                return Err(format!("message {i} of stream {stream} after {before:?}"));
            }
        }
    }
    if got != sent {
        let over = b.client_events.iter().chain(&b.server_events).find(|e| matches!(e, Event::Closed(_)));
        return Err(format!("{} of {} arrived, {over:?}", got.len(), sent.len()));
    }
    let took = b.now.since(until - ms(240_000));
    if took > ms(120_000) { Err(format!("it took {took:?}")) } else { Ok(()) }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_combination_delivers() {
    if let Some(n) = setting("ANABRANCH_COMBINATION") {
        let p = combination(n).expect("not refused");
        println!("{}", describe(&p));
        run(n, &p).expect("delivers");
        return;
    }
    let wanted = setting("ANABRANCH_COMBINATIONS").unwrap_or(200);
    let tried = (0..).filter_map(|n| Some((n, combination(n)?))).take(wanted as usize);
    let mut failed = vec![];
    for (n, p) in tried {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(n, &p)));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(why)) => failed.push(format!("{n}: {why}: {}", describe(&p))),
            Err(_) => failed.push(format!("{n}: panicked: {}", describe(&p))),
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
