//! HEARTBEATs switched off, by an interval of zero: paths are confirmed all the same (RFC 9260 §5.4). That each carries data
//! and a failed one comes back is a test of the lab (`run/tests.rs`).

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
