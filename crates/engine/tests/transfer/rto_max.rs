//! RTO.Max of an association is the ceiling of every timer that waits for an answer.

use crate::common::*;
use anabranch_base::{Duration, StreamId};
use anabranch_engine::{AssocConfig, LocalId, SendOptions, TimerReason};
use anabranch_policy::registry::Hook;

/// The longest that any timer of the client was set ahead while `time` passes in the dark. HEARTBEATs of an idle path
/// wait for their interval, half an RTO of jitter included.
fn longest(b: &mut Bench, config: &AssocConfig, time: Duration) -> (Duration, TimerReason) {
    let mut most = (Duration::ZERO, TimerReason::Control);
    let until = b.now + time;
    while b.now < until {
        b.run_for(ms(20));
        let Some(a) = b.client.association(b.client_id) else { break };
        for (at, why) in a.timers() {
            let ahead = at.since(b.now);
            let allowed = match why {
                TimerReason::Heartbeat(_) => config.timers.heartbeat_interval + config.timers.rto_max / 2,
                // Looks whether a path is silent; T3 beside it does not wait for that.
                TimerReason::Suspect(_) => continue,
                _ => Duration::ZERO,
            };
            let ahead = Duration::from_nanos(ahead.as_nanos().saturating_sub(allowed.as_nanos()));
            most = if ahead > most.0 { (ahead, why) } else { most };
        }
    }
    most
}

fn config(profile: &str, max: u64) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.timers.rto_max = ms(max);
        c.failure.max_association_retrans = 1_000;
        c.failure.max_init_retrans = 1_000;
        c.extensions.stream_reconfiguration = true;
    })
}

const PROFILES: [&str; 8] = ["sctp", "cmt", "live", "low-latency", "thin", "media", "confluent", "cmt-rtx-csi"];

#[test]
fn nothing_waits_longer_in_the_dark() {
    for profile in PROFILES {
        for max in [350, 1_000, 3_000, 9_000] {
            for paths in [1, 2] {
                for delay in [5, 150] {
                    let c = config(profile, max);
                    let links: Vec<_> = (0..paths).map(|_| (link(10, delay), link(10, delay))).collect();
                    let mut b = Bench::connected(7, &c, &links);
                    b.filter = Some(Box::new(|_| false));
                    let options = SendOptions { stream: StreamId(1), ..SendOptions::default() };
                    for _ in 0..30 {
                        b.send(Side::Client, options, vec![1; 900]);
                    }
                    let (most, why) = longest(&mut b, &c, ms(40_000));
                    let what = format!("{profile}, {paths} paths, {delay} ms, RTO.Max {max}: {most} of {why:?}");
                    assert!(most <= ms(max), "{what}");
                    assert!(b.path(Side::Client, 0).rto <= ms(max), "{what}");
                }
            }
        }
    }
}

#[test]
fn nor_while_it_begins_reconfigures_or_ends() {
    for profile in ["sctp", "live", "low-latency"] {
        for max in [350, 3_000] {
            let c = config(profile, max);
            // INIT.
            let mut b = Bench::new(5, &c);
            b.paths.add("path0", link(10, 20), link(10, 20));
            b.filter = Some(Box::new(|_| false));
            b.connect(&c);
            let (most, why) = longest(&mut b, &c, ms(30_000));
            assert!(most <= ms(max), "{profile} begins: {most} of {why:?}");
            // A request to reset streams, another address, and the end.
            for what in 0..3 {
                let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
                b.paths.add("path2", link(10, 20), link(10, 20));
                b.filter = Some(Box::new(|_| false));
                let now = b.now;
                match what {
                    0 => assert!(b.assoc(Side::Client).reset_streams(now, &[StreamId(1)], true, false).is_ok()),
                    1 => assert!(b.assoc(Side::Client).add_path(now, LocalId(2), server_addr(2)).is_some()),
                    _ => b.assoc(Side::Client).shutdown(now),
                }
                // The guard of the shutdown is five times RTO.Max (§9.2).
                let most = if what == 2 { ms(max * 5) } else { ms(max) };
                let (seen, why) = longest(&mut b, &c, ms(20_000));
                assert!(seen <= most, "{profile} {what}: {seen} of {why:?}");
            }
        }
    }
}

/// RFC 6458 §8.1.3: the ceiling of the handshake says nothing about data, and theirs nothing about the handshake.
#[test]
fn the_handshake_may_have_its_own() {
    for (own, general, wanted) in [(Some(500), 60_000, 500), (Some(8_000), 2_000, 8_000), (None, 2_000, 2_000)] {
        let mut c = config("sctp", general);
        c.timers.max_init_timeout = own.map(ms);
        c.profile.set(Hook::Timer, "rfc9260:rto_min=200,rto_initial=200").expect("registered");
        let mut b = Bench::new(5, &c);
        b.paths.add("path0", link(10, 20), link(10, 20));
        b.filter = Some(Box::new(|_| false));
        b.connect(&c);
        let most = longest(&mut b, &c, ms(40_000)).0;
        assert!(most <= ms(wanted) && most >= ms(wanted - 20), "{own:?}: {most}");
        let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20))]);
        b.filter = Some(Box::new(|_| false));
        b.send(Side::Client, SendOptions::default(), vec![1; 900]);
        b.run_for(ms(150_000));
        let rto = b.path(Side::Client, 0).rto;
        assert_eq!(rto, ms(general).min(rto.max(ms(51_200))), "{own:?}");
    }
}
