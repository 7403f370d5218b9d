//! Becke et al. 2013's own transport: no congestion control. The source alone says when something leaves, whatever is
//! in flight, was lost or has timed out; and what was lost is given up, sent again or replaced as ever.

use super::two_paths::*;
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_sim::{Direction, LinkConfig, LossConfig, Setting};

/// 30 and 160 ms there and back.
fn links() -> [(LinkConfig, LinkConfig); 2] {
    [both_ways(link(25, 15)), both_ways(link(4, 80))]
}

const STRICT: (Hook, &str) = (Hook::PathScheduler, "round_robin:strict=1");

/// Policies that would leave a path or hold data back at the first opportunity, with `window`.
fn open(window: &str, path_state: &str) -> Bench {
    let choices = [STRICT, (Hook::Window, window), (Hook::PathState, path_state), (Hook::Abandon, "rfc7496")];
    let set = policies(&profile("cmt", &choices), 2);
    let config =
        AssocConfig::with(profile("cmt", &[(Hook::Acknowledge, "immediate")]), anabranch_engine::Constants::RFC);
    let config = changed(config, |c| {
        c.sending.max_burst = 0;
        // Room for what a dark path holds until T3 expires.
        (c.limits.receive_buffer, c.limits.send_buffer) = (8 << 20, 8 << 20);
        c.failure.max_path_retrans = 50;
        c.failure.max_association_retrans = 100;
    });
    let mut b = connected_with(61, &config, set, &links());
    b.tap = Some(vec![]);
    b
}

/// Twenty messages of 1000 bytes every 25 ms for `ms_long`, worthless after 200 ms and never sent twice. Answers how many
/// were.
fn stream(b: &mut Bench, from: u32, ms_long: u64) -> u32 {
    let mut sent = from;
    for _ in 0..ms_long / 25 {
        let options = SendOptions {
            unordered: true,
            deadline: Some(b.now + ms(200)),
            max_retransmissions: Some(0),
            ..SendOptions::default()
        };
        for _ in 0..20 {
            assert!(b.send(Side::Client, options, numbered(0, sent, 1_000)));
            sent += 1;
        }
        b.run_for(ms(25));
    }
    sent
}

/// Packets with data by path.
fn by_path(b: &Bench) -> [usize; 2] {
    let all = departures(b);
    [0, 1].map(|path| all.iter().filter(|d| d.path == path).count())
}

#[test]
fn nothing_but_the_source_sets_the_pace() {
    for path_state in ["rfc9260", "potentially_failed", "path_truth"] {
        let mut b = open("none", path_state);
        let mut sent = stream(&mut b, 0, 2_000);
        assert_eq!(by_path(&b), [800, 800], "one to each path in turn, though the second carries a quarter of a turn");
        b.cut(1);
        sent = stream(&mut b, sent, 8_000);
        assert_eq!(by_path(&b), [4_000, 4_000], "{path_state}: a path that is dark for eight seconds");
        let dark = b.path(Side::Client, 1);
        assert!(dark.counters.timeouts > 1 && dark.state == PathState::Active, "{path_state}: {dark:?}");
        b.restore(1);
        sent = stream(&mut b, sent, 2_000);
        assert_eq!(by_path(&b), [4_800, 4_800]);
        b.run_for(ms(20_000));
        b.check();
        // Whatever became of each, nothing is left to be done about it.
        let mut seen = std::collections::BTreeSet::new();
        assert!(b.at_server.iter().all(|m| seen.insert(number_of(m))), "a message came twice");
        let lost = sent as usize - seen.len();
        assert!((3_200..3_400).contains(&lost), "{path_state}: {lost} of {sent} lost, 3200 of them in the dark");
        assert_eq!(b.assoc(Side::Client).stats().retransmissions, 0);
        for path in [0, 1] {
            assert_eq!(b.path(Side::Client, path).in_flight, 0);
        }
    }
}

#[test]
fn with_a_window_the_path_is_held_back() {
    for path_state in ["rfc9260", "path_truth"] {
        let mut b = open("rfc9260", path_state);
        b.cut(1);
        let options = SendOptions { unordered: true, max_retransmissions: Some(0), ..SendOptions::default() };
        for i in 0..2_000 {
            b.send(Side::Client, options, numbered(0, i, 1_000));
            b.run_for(ms(4));
        }
        let [_, dark] = by_path(&b);
        assert!(dark < 100, "{path_state}: {dark} packets into the dark");
    }
}

/// Reliable messages are sent again as ever, at once where the window would have waited.
#[test]
fn what_is_lost_is_sent_again_without_a_window() {
    let mut b = open("none", "rfc9260");
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    let loss = Setting::Loss(LossConfig::bernoulli(0.2));
    let now = b.now;
    b.paths.get_mut(0).expect("a path").apply(now, Direction::Forward, loss);
    flow.transfer(&mut b, 400, ms(60_000)).expect("arrives");
    assert!(b.assoc(Side::Client).stats().retransmissions > 20);
}
