//! Deaths of a path in use, each 20 times, in every profile that keeps path truth.

use super::measure::{Links, PROFILES, Run, judge, links};
use crate::common::*;
use anabranch_base::{Duration, Rate};
use anabranch_policy::view::PathState;
use anabranch_sim::{Direction, Jitter, LinkConfig};
use anabranch_wire::kind;

/// How a path dies, and comes back.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Death {
    /// Both ways.
    Silent,
    /// Only what we send is lost.
    OneWay,
    /// Only the answers are.
    Reverse,
}

impl Death {
    fn set(self, b: &mut Bench, path: usize, up: bool) {
        if self != Death::Reverse {
            b.set_up(path, Direction::Forward, up);
        }
        if self != Death::OneWay {
            b.set_up(path, Direction::Backward, up);
        }
    }
}

/// Path 0 dies `n` twentieths of a gap after a packet: the take-over time and its bound.
fn die(what: &str, death: Death, run: &mut Run, n: u64) -> (Duration, Duration) {
    // A path that comes back from T3 starts small; the bound is for one with twenty packets a second.
    for second in 0.. {
        run.forget();
        run.go(ms(1_000));
        if run.packets_on(0) >= 20 {
            break;
        }
        assert!(second < 60, "{what}: death {n}: only {} packets a second", run.packets_on(0));
    }
    let bound = run.bound();
    run.go(run.gap * n / 20);
    let before = run.b.path(Side::Client, 0);
    death.set(&mut run.b, 0, false);
    let died = run.b.now;
    while run.b.path(Side::Client, 0).state == PathState::Active && run.b.now.since(died) < ms(1_000) {
        run.go(ms(5));
    }
    let after = run.b.path(Side::Client, 0);
    assert_eq!(after.state, PathState::Suspected, "{what}: death {n} unnoticed: {before:?}");
    // Without anything in flight there is no T3 to wait for.
    let expired = after.counters.timeouts > before.counters.timeouts || before.in_flight == 0;
    // A window that follows a model moves a little by itself.
    let blamed = after.cwnd < before.cwnd - before.cwnd / 4 || after.errors > 0;
    assert!(expired || !blamed, "{what}: blamed before T3: {after:?}");
    let rest = (died + ms(2_000)).since(run.b.now);
    run.go(rest);
    // A path that answers nothing delivers all the same: then what counts is when its last answer came.
    let (from, left) = match death {
        Death::Reverse => (Side::Server, run.last_data_on(0)),
        _ => (Side::Client, run.left_at(0)),
    };
    let last = run.last_arrival(from, 0).unwrap_or(died);
    death.set(&mut run.b, 0, true);
    run.go(ms(4_000));
    let back = run.b.path(Side::Client, 0);
    assert_eq!(back.state, PathState::Active, "{what}: not back after 4 s");
    (left.expect("data left").since(last), bound)
}

/// Twenty deaths of path 0, each at another moment between two packets: one after the other, or each of another flow
/// where the deaths before would show. `live` stays where it is well off, the peer remembers for long that its answers
/// are lost, and over 200 ms what T3 does to a window outlasts the pause between two deaths.
fn twenty(what: &str, death: Death, profile: &str, links: &Links, rate: u64) {
    let alone = death == Death::Reverse || ["live", "media"].contains(&profile) || links[0].0.delay >= ms(100);
    let mut run = Run::new(11, profile, links, rate);
    run.go(ms(3_000));
    let (mut times, mut bounds) = (vec![], vec![]);
    for n in 0..20 {
        if alone && n > 0 {
            run.settle();
            run = Run::new(11 + n, profile, links, rate);
            run.go(ms(3_000));
        }
        let (time, bound) = die(&format!("{what}, {profile}"), death, &mut run, n);
        times.push(time);
        bounds.push(bound);
    }
    run.settle();
    judge(what, profile, bounds.into_iter().min().unwrap_or_default(), &mut times);
}

/// Path 0 is the primary one and the faster, so every profile uses it.
fn near() -> Links {
    links((10, 10), (25, 25))
}
fn far() -> Links {
    links((100, 100), (110, 110))
}
fn lopsided() -> Links {
    links((30, 5), (60, 5))
}
/// Nearly equal: what one path loses is soon acknowledged by way of the other.
fn twins() -> Links {
    links((15, 15), (18, 18))
}

/// Messages a second so that each path of a profile that spreads them carries 25 packets.
fn rate(profile: &str) -> u64 {
    if ["cmt", "cmt-rtx-csi", "confluent"].contains(&profile) { 50 } else { 25 }
}

#[test]
fn silent() {
    for p in PROFILES {
        twenty("silent, 20 ms", Death::Silent, p, &near(), rate(p));
        twenty("silent, 35 ms", Death::Silent, p, &lopsided(), rate(p));
        twenty("silent, 200 ms", Death::Silent, p, &far(), rate(p));
    }
}

/// Four times as many messages: the path is never empty when the next one leaves.
#[test]
fn silent_under_more() {
    for p in PROFILES {
        twenty("silent, 30 ms, 50 to 100/s", Death::Silent, p, &twins(), 2 * rate(p));
        twenty("silent, 35 ms, 100 to 200/s", Death::Silent, p, &lopsided(), 4 * rate(p));
    }
}

#[test]
fn one_way() {
    for p in PROFILES {
        twenty("one way, 35 ms", Death::OneWay, p, &lopsided(), rate(p));
        twenty("one way, 200 ms", Death::OneWay, p, &far(), rate(p));
    }
}

/// A path whose answers alone are lost is left by those who use no other; with others beside it, acknowledgements come
/// by those, and it goes on delivering: so do copies of `low-latency` where the round trip is long.
#[test]
fn reverse_only() {
    twenty("only the way back, 35 ms", Death::Reverse, "low-latency", &lopsided(), 25);
    for p in ["media", "live", "thin"] {
        twenty("only the way back, 35 ms", Death::Reverse, p, &lopsided(), rate(p));
        twenty("only the way back, 200 ms", Death::Reverse, p, &far(), rate(p));
    }
}

/// Between equal paths whose round trips vary, a sender leaves one for the other by itself now and then, also just after
/// it died: what the other brings back then must not make the dead one look alive. Here the path dies that carried the
/// newest packet. Where the sender had left it for longer than two packets in a second are apart, the time begins that
/// long before the first packet that was lost.
#[test]
fn silent_between_equals() {
    let link = |delay, jitter| {
        let mut l = LinkConfig::fixed(Some(Rate::from_bits_per_sec(100_000_000)), Duration::from_micros(delay));
        l.jitter = Jitter::Exponential(Duration::from_micros(jitter));
        (l.clone(), l)
    };
    for (delay, jitter) in [(100, 100), (100, 500), (500, 1_000)] {
        let mut times = vec![];
        for n in 0..40 {
            let mut run = Run::new(11 + n, "live", &[link(delay, jitter), link(delay, jitter)], 100);
            run.go(ms(3_000));
            run.forget();
            run.go(ms(1_000) + run.gap * n / 40);
            let path = (0..2).max_by_key(|i| run.last_data_on(*i)).unwrap_or(0);
            let died = run.b.now;
            Death::Silent.set(&mut run.b, path, false);
            run.go(ms(1_000));
            let lost = run.b.tapped(Side::Client, kind::DATA).iter().find(|e| e.2 == path && e.0 >= died).map(|e| e.0);
            let last = run.last_arrival(Side::Client, path).unwrap_or(died);
            let since = lost.map_or(last, |t| last.max(t - ms(50)));
            times.push(run.left_at(path).expect("data left").since(since));
        }
        times.sort_unstable();
        let most = ms(130) + Duration::from_micros(8 * jitter);
        assert!(times[39] <= most, "{delay} and {jitter} us: above {most}: {times:?}");
    }
}
