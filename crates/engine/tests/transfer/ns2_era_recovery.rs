//! How two paths recover together by older rules, each beside what happens without it. New data take the primary path
//! only, and what is sent again takes the other one.

use crate::common::manual::*;
use crate::common::*;
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Hook;

/// Packets in the window of each path at first.
const WINDOW: u32 = 20;

fn config() -> AssocConfig {
    let initial_window = Some(u64::from(WINDOW) * FULL as u64);
    let mut c = changed(assoc_config("sctp"), |c| {
        c.sending.max_burst = 0;
        c.sending.initial_window = initial_window;
    });
    c.profile.set(Hook::Retransmission, "rfc9260:reports_move=1").expect("registered");
    c
}

fn two(c: &AssocConfig) -> Manual {
    Manual::new(c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))])
}

/// What leaves now: offsets on each path.
fn split(m: &mut Manual) -> [Vec<u32>; 2] {
    let seen = m.packets();
    [0, 1].map(|path| m.offsets(&seen.iter().filter(|p| p.path == path).cloned().collect::<Vec<_>>()))
}

#[test]
fn the_limit_of_bursts_is_one_of_all_paths() {
    for (rule, sent) in [("ns2_cmt", [4, 4]), ("ns2_sctp", [0, 4])] {
        let mut c = config();
        c.sending.max_burst = 4;
        c.profile.set(Hook::Recovery, rule).expect("registered");
        let mut m = two(&c);
        m.send(60, FULL);
        assert_eq!(m.sent().len(), 20, "no repair yet");
        m.sack(0, &[(1, 9)]);
        m.sack(0, &[(1, 9), (15, 15)]);
        m.sack(0, &[(1, 9), (15, 16)]);
        assert!(split(&mut m)[1].starts_with(&[0]));
        // Acknowledges the repair and gives five more as lost.
        m.sack(10, &[(5, 9)]);
        assert_eq!(split(&mut m).map(|s| s.len()), sent, "{rule}");
    }
}
