//! A path dies under a live flow: how fast everything it held is sent again elsewhere, and what it costs.

use crate::common::sampled::Sample;
use crate::common::*;
use anabranch_base::{Duration, PathId, StreamId};
use anabranch_engine::{AssocConfig, Event, SendOptions};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_policy::view::PathState;

/// 2 Mbit/s in messages of 1,148 bytes with 300 ms to live, for `time`; answers how many arrived in all.
fn stream(b: &mut Bench, time: Duration) -> usize {
    let end = b.now + time;
    while b.now < end {
        let next = b.now + Duration::from_micros(4_592);
        let o = SendOptions {
            stream: StreamId(0),
            unordered: true,
            deadline: Some(b.now + ms(300)),
            ..SendOptions::default()
        };
        b.send(Side::Client, o, pattern(1, 1_148));
        b.run_until(next, |_| false);
        b.now = next;
    }
    b.at_server.len()
}

/// Path 0 is cut at 3 s and returns at 6 s.
fn cut(config: anabranch_engine::AssocConfig, cut_path: usize) -> (Bench, Option<Duration>) {
    let mut b = Bench::connected(3, &config, &[(link(6, 30), link(6, 5)), (link(6, 60), link(6, 5))]);
    stream(&mut b, ms(3_000));
    let now = b.now;
    b.paths.get_mut(cut_path).expect("a path").cut(now);
    b.client_events.clear();
    stream(&mut b, ms(3_000));
    let taken = b.client_events.iter().find_map(|e| match e {
        Event::TakenOver { path, after } if *path == PathId(cut_path as u8) => Some(*after),
        _ => None,
    });
    let now = b.now;
    b.paths.get_mut(cut_path).expect("a path").restore(now);
    b.client_events.clear();
    stream(&mut b, ms(3_000));
    (b, taken)
}

#[test]
fn live_leaves_a_silent_path_within_its_bound_and_returns() {
    // The faster path carries the whole flow, so it is the one that hurts.
    let (b, taken) = cut(assoc_config("live"), 0);
    // max(200 ms, 2 x the larger SRTT).
    let taken = taken.expect("taken over");
    assert!(taken <= ms(200), "{taken}");
    let back = |e: &Event| matches!(e, Event::PathChanged { path: PathId(0), to: PathState::Active, .. });
    assert!(b.client_events.iter().any(back), "never came back: {:?}", b.client_events);
    let lost = (9_000_000 / 4_592) as usize - b.at_server.len();
    println!("taken over after {taken}, {lost} of {} messages lost", b.at_server.len() + lost);
    assert!(lost < 60, "{lost} messages lost");
}

#[test]
fn without_path_truth_it_is_left_only_after_its_timer() {
    let mut profile = Profile::named("cmt").expect("registered");
    profile.set(Hook::PathState, "potentially_failed").expect("registered");
    let (_, taken) = cut(anabranch_engine::AssocConfig::with(profile, anabranch_engine::Constants::RFC), 0);
    assert!(taken.is_some_and(|t| t > ms(500)), "{taken:?}: the comparison means nothing");
}

/// When the client says that path 0 was taken over.
fn taken_over(b: &Bench) -> Vec<Duration> {
    let after = |e: &Event| match e {
        Event::TakenOver { path: PathId(0), after } => Some(*after),
        _ => None,
    };
    b.client_events.iter().filter_map(after).collect()
}

#[test]
fn a_path_that_was_idle_is_measured_from_what_it_did_not_deliver() {
    let mut b = Bench::connected(3, &assoc_config("live"), &[(link(6, 30), link(6, 5)), (link(6, 60), link(6, 5))]);
    stream(&mut b, ms(1_000));
    b.run_for(ms(5_000));
    b.cut(0);
    stream(&mut b, ms(1_000));
    let taken = taken_over(&b);
    assert!(taken.len() == 1 && taken[0] <= ms(300), "{taken:?}");
}

#[test]
fn what_held_nothing_is_not_taken_over() {
    let mut config = assoc_config("live");
    config.timers.heartbeat_interval = ms(1_000);
    let mut b = Bench::connected(3, &config, &[(link(6, 30), link(6, 5)), (link(6, 60), link(6, 5))]);
    stream(&mut b, ms(1_000));
    b.run_for(ms(1_000));
    b.cut(0);
    b.run_for(ms(60_000));
    assert_ne!(b.path(Side::Client, 0).state, PathState::Active, "left");
    assert_eq!(taken_over(&b), []);
}

#[test]
fn no_path_takes_over_the_only_one() {
    for profile in ["live", "cmt", "sctp"] {
        let mut b = Bench::connected(3, &assoc_config(profile), &[(link(6, 30), link(6, 5))]);
        stream(&mut b, ms(1_000));
        b.cut(0);
        stream(&mut b, ms(20_000));
        b.restore(0);
        stream(&mut b, ms(20_000));
        assert_eq!(taken_over(&b), [], "{profile}");
    }
}

/// Messages of `len` bytes each `gap` microseconds for `time`, with 300 ms to live; answers how many were sent, and how many came in time.
fn in_time(b: &mut Bench, gap: u64, len: usize, time: Duration) -> (usize, usize) {
    let (end, mut sent, mut came) = (b.now + time, 0, 0);
    let mut due = b.now;
    b.at_server.clear();
    while b.now < end {
        if b.now >= due {
            let mut v = b.now.as_nanos().to_be_bytes().to_vec();
            v.resize(len, 0);
            let o = SendOptions { unordered: true, deadline: Some(b.now + ms(300)), ..SendOptions::default() };
            b.send(Side::Client, o, v);
            (sent, due) = (sent + 1, due + Duration::from_micros(gap));
        }
        b.run_until(b.now + ms(1), |_| false);
        b.now = b.now.max(b.now + ms(1)).min(end);
        let now = b.now;
        for m in b.at_server.drain(..) {
            let bytes = m.payload.into_bytes();
            let at = u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
            came += usize::from(now.as_nanos() - at <= 300_000_000);
        }
    }
    (sent, came)
}

/// A path in reserve that never lost anything grows by slow start when it takes over, however long it idled.
#[test]
fn an_idle_path_in_reserve_takes_a_whole_stream_over() {
    let own = assoc_config("low-latency");
    // That of `cmt`, the other own profile whose window decays while it idles.
    let mut westwood = assoc_config("low-latency");
    westwood.profile.set(Hook::Window, "westwood").expect("registered");
    let (mut bad, mut sample) = (vec![], Sample::one_in(4));
    for config in [own, westwood] {
        for (rate, delays) in [(10, (20, 30)), (10, (20, 60)), (20, (10, 40)), (8, (40, 100))] {
            for warm in [1_000, 4_000, 12_000] {
                for idle in [2_000, 20_000, 90_000].into_iter().filter(|_| sample.takes()) {
                    // Silence for up to twice the round trip and 200 ms, then a slow start.
                    let rtt = 2 * delays.1 as usize;
                    let most = (200 + 2 * rtt + 3 * rtt) / 3;
                    let (sent, late) = taken_over_late(&config, rate, delays, warm, idle);
                    if late > most {
                        let window = config.profile.spec_in_full(Hook::Window);
                        let what =
                            format!("{rate} Mbit/s, {delays:?} ms, carried for {warm}, idle for {idle}, {window}");
                        bad.push(format!("{what}: {late} of {sent} not in time, at most {most}"));
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Three megabits a second over the quicker path, which fails; answers messages and those that were late.
fn taken_over_late(config: &AssocConfig, rate: u64, delays: (u64, u64), warm: u64, idle: u64) -> (usize, usize) {
    let links = [(link(rate, delays.0), link(rate, delays.0)), (link(rate, delays.1), link(rate, delays.1))];
    let mut b = Bench::connected(warm + idle, config, &links);
    b.strict = true;
    // The other one has carried a little, and idles while the better one carries everything.
    let now = b.now;
    b.paths.get_mut(0).expect("a path").cut(now);
    in_time(&mut b, 20_000, 400, ms(warm));
    let now = b.now;
    b.paths.get_mut(0).expect("a path").restore(now);
    b.run_for(ms(8_000));
    in_time(&mut b, 3_000, 1_125, ms(idle));
    let now = b.now;
    b.paths.get_mut(0).expect("a path").cut(now);
    let (sent, came) = in_time(&mut b, 3_000, 1_125, ms(6_000));
    (sent, sent - came)
}
