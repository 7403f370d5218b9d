//! Sparse messages towards a peer that delays its acknowledgements: what arrived is not sent again.

use crate::common::*;
use anabranch_base::{Duration, RandomStream};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_wire::kind;
use std::cell::Cell;
use std::rc::Rc;

/// One message each `gap` without any loss, the peer acknowledging late; answers messages and repetitions.
fn repeated(config: &AssocConfig, delay: u64, gap: u64, sack_delay: u64) -> (u64, u64) {
    let peer = changed(assoc_config("sctp"), |c| c.timers.sack_delay = ms(sack_delay));
    let mut b = Bench::connected_pair(delay + gap, config, &peer, &[(link(10, delay), link(10, delay))]);
    b.strict = true;
    let n = 400;
    for _ in 0..n {
        assert!(b.send(Side::Client, SendOptions::default(), vec![7; 100]));
        b.run_for(ms(gap));
    }
    b.run_for(ms(3_000));
    assert_eq!(b.at_server.len() as u64, n);
    (n, b.assoc(Side::Client).stats().retransmissions)
}

fn with_timer(profile: &str, change: impl Fn(&str) -> String) -> AssocConfig {
    let mut c = assoc_config(profile);
    let spec = change(&c.profile.spec_in_full(Hook::Timer));
    c.profile.set(Hook::Timer, &spec).expect("registered");
    // Probes before T3 are another matter: they ask for what is late.
    c.profile.set(Hook::LossTimer, "none").expect("registered");
    c
}

const GAPS: [u64; 8] = [60, 100, 150, 200, 250, 350, 500, 1_000];

#[test]
fn a_peer_that_reads_the_bit_answers_in_time() {
    let mut bad = vec![];
    for profile in ["thin", "low-latency"] {
        for delay in [2, 25, 50, 99, 150, 300] {
            for gap in GAPS {
                for sack_delay in [40, 200, 500] {
                    let (_, n) = repeated(&with_timer(profile, str::to_owned), delay, gap, sack_delay);
                    if n > 0 {
                        bad.push(format!("{profile} {delay} ms, each {gap} ms, SACK.Delay {sack_delay}: {n}"));
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// RFC 7053 is young: a peer without it is learnt by the duplicates that it reports.
#[test]
fn one_that_does_not_is_learnt() {
    let mut bad = vec![];
    for profile in ["thin", "low-latency"] {
        for delay in [2, 25, 50, 99, 150] {
            for gap in GAPS {
                for sack_delay in [40, 200, 500] {
                    let config = with_timer(profile, |spec| spec.replace("ask=1", "ask=0"));
                    assert!(config.profile.spec_in_full(Hook::Timer).contains("ask=0"));
                    let (_, n) = repeated(&config, delay, gap, sack_delay);
                    if n > 12 {
                        bad.push(format!("{profile} {delay} ms, each {gap} ms, SACK.Delay {sack_delay}: {n}"));
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// What was learnt of needless repetitions is no reason to wait for ever: losses are repaired as soon again.
#[test]
fn patience_has_its_end() {
    let config = with_timer("thin", |spec| spec.replace("ask=1", "ask=0"));
    let peer = changed(assoc_config("sctp"), |c| c.timers.sack_delay = ms(200));
    let mut b = Bench::connected_pair(3, &config, &peer, &[(link(10, 25), link(10, 25))]);
    let mut longest = Duration::ZERO;
    for i in 0..600 {
        assert!(b.send(Side::Client, SendOptions::default(), vec![7; 100]));
        b.run_for(ms(250));
        if i > 50 {
            longest = longest.max(b.path(Side::Client, 0).rto);
        }
    }
    assert!(longest <= ms(850), "{longest}");
}

/// What left a moment before T3 expired was not answered because it could not be: an expiry sends the lost ones again
/// and nothing else, and they come soon.
#[test]
fn an_expiry_repeats_only_what_is_overdue() {
    let mut bad = vec![];
    for (delay, gaps) in [(10, [10, 25, 60]), (50, [40, 60, 100]), (50, [30, 150, 400]), (150, [80, 200, 300])] {
        for gap in gaps {
            for seed in 1..=10 {
                let config = assoc_config("low-latency");
                let mut b = Bench::connected(seed, &config, &[(link(10, delay), link(10, delay))]);
                b.strict = true;
                let mut r = RandomStream::named(seed, "losses");
                let lost = Rc::new(Cell::new(0u64));
                let count = lost.clone();
                b.filter = Some(Box::new(move |l| {
                    let hit = l.from == Side::Client && l.has(kind::DATA) && r.u64().is_multiple_of(25);
                    count.set(count.get() + u64::from(hit));
                    !hit
                }));
                for _ in 0..400 {
                    let o = SendOptions { unordered: true, ..SendOptions::default() };
                    assert!(b.send(Side::Client, o, vec![7; 100]));
                    b.run_for(ms(gap));
                }
                b.run_for(ms(3_000));
                assert_eq!(b.at_server.len(), 400);
                let again = b.assoc(Side::Client).stats().retransmissions;
                if again > lost.get() + 2 {
                    bad.push(format!("{delay} ms, each {gap} ms, seed {seed}: {again} for {} lost", lost.get()));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
