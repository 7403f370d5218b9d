//! After an outage a path is used as soon as it answers: what waits does not wait for a T3 that was backed off in the
//! dark.

use crate::common::*;
use anabranch_base::{Duration, Instant};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_wire::kind;

/// The program's constants.
fn as_the_program(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.timers.rto_max = ms(3_000);
        c.timers.heartbeat_interval = ms(1_000);
        c.timers.sack_delay = ms(20);
        c.failure.max_association_retrans = 1_000;
    })
}

/// Everything is lost for `outage` on all paths, with `before` messages in flight when it begins and `during` handed
/// over in it. From the first answer afterwards to the last message at the server.
fn after_darkness(
    config: &AssocConfig,
    delays: &[u64],
    outage: u64,
    before: usize,
    during: usize,
) -> (Duration, String) {
    let links: Vec<_> = delays.iter().map(|d| (link(10, *d), link(10, *d))).collect();
    let mut b = Bench::connected(outage + 7, config, &links);
    b.strict = true;
    let send = |b: &mut Bench, n: usize| {
        (0..n).for_each(|_| assert!(b.send(Side::Client, SendOptions::default(), vec![7; 100])))
    };
    for _ in 0..40 {
        send(&mut b, 1);
        b.run_for(ms(50));
    }
    b.run_for(ms(2_000));
    assert_eq!(b.at_server.len(), 40);
    send(&mut b, before);
    b.filter = Some(Box::new(|_| false));
    let steps = 10;
    for i in 0..steps {
        b.run_for(ms(outage / steps));
        send(&mut b, during * (i as usize + 1) / steps as usize - during * i as usize / steps as usize);
    }
    b.filter = None;
    b.arrived = Some(vec![]);
    let restored = b.now;
    let total = 40 + before + during;
    let mut came: Option<Instant> = None;
    while came.is_none() && b.now < restored + ms(60_000) {
        b.run_for(ms(1));
        came = (b.at_server.len() == total).then_some(b.now);
    }
    let answer = |e: &&(Instant, Side, usize, bytes::Bytes)| {
        e.1 == Side::Server && kinds(&e.3).iter().any(|k| [kind::SACK, kind::HEARTBEAT_ACK].contains(k))
    };
    let came = came.expect("arrives");
    let first = b.arrived.as_ref().and_then(|a| a.iter().find(answer).map(|e| e.0)).unwrap_or(came);
    (came.since(first), format!("{} after the end, first answer {}", came.since(restored), first.since(restored)))
}

#[test]
fn what_waits_leaves_with_the_first_answer() {
    let mut late = vec![];
    for profile in ["live", "low-latency"] {
        for delays in [&[10][..], &[60], &[10, 25], &[50, 100]] {
            for outage in [300, 1_000, 3_000, 10_000, 37_000, 60_000] {
                for (before, during) in [(0, 3), (3, 0), (3, 30), (30, 0), (1, 9)] {
                    for config in
                        [as_the_program(profile), changed(as_the_program(profile), |c| c.timers.rto_max = ms(60_000))]
                    {
                        let (took, how) = after_darkness(&config, delays, outage, before, during);
                        // There, and once more for what did not fit the first window.
                        let most = ms(delays.iter().max().unwrap() * 4 + 40);
                        let what = format!(
                            "{profile} {delays:?} dark for {outage}, {before} + {during}, {}",
                            config.timers.rto_max
                        );
                        if took > most {
                            late.push(format!("{what}: {took}, {how}"));
                        }
                    }
                }
            }
        }
    }
    assert!(late.is_empty(), "{}", late.join("\n"));
}
