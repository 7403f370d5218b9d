//! HEARTBEATs switched off, by an interval of zero: paths are confirmed all the same (RFC 9260 §5.4), and what failed can
//! come back.

use crate::common::*;
use anabranch_base::{Duration, PathId};
use anabranch_engine::HeartbeatSetting;
use anabranch_policy::view::PathState;
use anabranch_wire::kind;

const PROFILES: [&str; 6] = ["sctp", "cmt", "live", "low-latency", "ns2-era", "ns2-era-cmt"];

fn of(b: &mut Bench, path: usize) -> usize {
    b.tapped(Side::Client, kind::HEARTBEAT).iter().filter(|t| t.2 == path).count()
}

/// An interval of zero sends none, however long a path is idle or in use: but all paths are confirmed first.
#[test]
fn an_interval_of_zero_switches_them_off() {
    for profile in PROFILES {
        let config = changed(assoc_config(profile), |c| c.timers.heartbeat_interval = Duration::ZERO);
        let mut b = Bench::pair(5, &config, &config);
        b.largest = 1_500;
        b.paths.add("path0", link(10, 20), link(10, 20));
        b.paths.add("path1", link(10, 30), link(10, 30));
        b.connect(&config);
        b.run_for(ms(10_000));
        for side in [Side::Client, Side::Server] {
            let states: Vec<_> = b.assoc(side).paths().map(|(_, p)| p.state).collect();
            assert_eq!(states, [PathState::Active; 2], "{profile}");
        }
        // The trains of a side that sends are no probes of idle paths.
        b.is_warm();
        b.run_for(ms(1_000));
        for busy in [false, true] {
            b.tap = Some(vec![]);
            if busy {
                Flow::new(Side::Client, 0, 500).transfer(&mut b, 500, ms(60_000)).expect("arrives");
            }
            b.run_for(ms(1_000_000));
            let sent = b.tapped(Side::Client, kind::HEARTBEAT).len() + b.tapped(Side::Server, kind::HEARTBEAT).len();
            // Where few packets are in flight `low-latency` asks a path that falls silent under them (`path_truth:few`).
            let asks = busy && matches!(profile, "low-latency" | "live");
            assert!(sent == 0 || asks && sent < 5, "{profile}, busy {busy}: {sent}");
        }
    }
}

/// Who switched them off may ask for one, or for some on one path.
#[test]
fn where_the_interval_is_zero_a_path_may_have_its_own() {
    let config = changed(assoc_config("cmt"), |c| c.timers.heartbeat_interval = Duration::ZERO);
    let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    let now = b.now;
    assert!(b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Every(ms(1_000))));
    let sent = |b: &mut Bench| {
        b.tap = Some(vec![]);
        b.run_for(ms(60_000));
        [of(b, 0), of(b, 1)]
    };
    let [idle, probed] = sent(&mut b);
    assert!(idle == 0 && probed > 40, "{idle} {probed}");
    let now = b.now;
    assert!(b.assoc(Side::Client).set_heartbeat(now, PathId(1), HeartbeatSetting::Configured));
    b.run_for(ms(5_000));
    assert_eq!(sent(&mut b), [0, 0]);
}

/// Data go by every path of those that share them. One that failed is back at the latest when it is all that is left and data
/// are answered there; where both ends can do ASCONF, as here, asking to be learnt again finds it sooner.
#[test]
fn without_them_every_path_carries_data_and_a_failed_one_comes_back() {
    for profile in PROFILES {
        for n in 1..=3 {
            let config = changed(assoc_config(profile), |c| {
                c.timers.heartbeat_interval = Duration::ZERO;
                c.failure.max_path_retrans = 1;
            });
            let links: Vec<_> = (0..n).map(|i| (link(2, 20 + 5 * i), link(2, 20 + 5 * i))).collect();
            let mut b = Bench::connected(5, &config, &links);
            let n = n as usize;
            b.run_for(ms(5_000));
            let mut flow = Flow::new(Side::Client, 0, 1_000);
            flow.transfer(&mut b, 3_000, ms(60_000)).expect("arrives");
            let shared = !matches!(profile, "sctp" | "ns2-era");
            for path in 0..n {
                let p = b.path(Side::Client, path);
                assert_eq!(p.state, PathState::Active, "{profile}, {n}, {path}");
                let carried = p.counters.data_sent > 100;
                assert_eq!(carried, shared || path == 0, "{profile}, {n}, {path}: {}", p.counters.data_sent);
            }
            b.cut(0);
            flow.stream(&mut b, ms(50), ms(20_000));
            let gone = b.path(Side::Client, 0).state;
            assert_ne!(gone, PathState::Active, "{profile}, {n}");
            b.restore(0);
            flow.stream(&mut b, ms(50), ms(60_000));
            (1..n).for_each(|path| b.cut(path));
            flow.stream(&mut b, ms(50), ms(60_000));
            let back = b.path(Side::Client, 0).state;
            assert_eq!(back, PathState::Active, "{profile}, {n}");
            flow.transfer(&mut b, 1, ms(5_000)).expect("arrives");
        }
    }
}
