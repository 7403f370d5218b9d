//! The deaths that come differently: slow, flapping, from the start, with another address, only half, or both paths.

use super::measure::{PROFILES, Run, judge, links};
use super::table;
use crate::common::*;
use anabranch_base::{Duration, Instant};
use anabranch_engine::{Event, PathReason};
use anabranch_policy::view::PathState;
use anabranch_sim::{Direction, LossConfig, Setting};
use anabranch_wire::kind;

fn usual() -> super::measure::Links {
    links((30, 5), (60, 5))
}

fn rate(profile: &str) -> u64 {
    if ["cmt", "cmt-rtx-csi", "confluent"].contains(&profile) { 50 } else { 25 }
}

fn set(run: &mut Run, path: usize, direction: Direction, to: Setting) {
    let now = run.b.now;
    run.b.paths.get_mut(path).expect("a path").apply(now, direction, to);
}

/// The path takes 1.5 s more from one packet to the next: what its estimators say is stale. It is left in time, and
/// comes back with the round trip that it has now.
#[test]
fn slow_with_a_stale_round_trip() {
    for profile in ["cmt", "media", "live"] {
        let (mut times, mut bound) = (vec![], Duration::MAX);
        for seed in 0..20 {
            let mut run = Run::new(seed, profile, &usual(), rate(profile));
            run.go(ms(3_000) + run.gap * seed / 20);
            bound = bound.min(run.bound());
            run.forget();
            let slowed = run.b.now;
            set(&mut run, 0, Direction::Forward, Setting::Delay(ms(1_530)));
            run.b.client_events.clear();
            run.go(ms(1_200));
            times.push(run.last_data_on(0).expect("it was in use").since(slowed));
            run.go(ms(3_000));
            let answered = |e: &Event| matches!(e, Event::PathChanged { reason: PathReason::Answered, .. });
            assert!(run.b.client_events.iter().any(answered), "{profile}: {:?}", run.b.client_events);
            let srtt = run.b.path(Side::Client, 0).srtt;
            assert!(srtt > ms(1_000), "{profile}: still taken for a path of {srtt}");
            run.settle();
        }
        judge("slow, 35 ms to 1,535 ms", profile, bound, &mut times);
    }
}

/// Half a second dead, a second alive, again and again.
#[test]
fn flapping() {
    for profile in PROFILES {
        let mut run = Run::new(3, profile, &usual(), rate(profile));
        run.go(ms(3_000));
        let (began, before) = (run.b.now, run.flow.got);
        for _ in 0..20 {
            run.b.cut(0);
            run.go(ms(500));
            run.b.restore(0);
            run.go(ms(1_000));
        }
        // At most one bound without news per death.
        let (sent, got) = (run.flow.sent, run.flow.got - before);
        let all = rate(profile) as f64 * run.b.now.since(began).as_secs_f64();
        // What was on its way at the beginning may come beside all of those.
        let share = (f64::from(got) / all).min(1.0);
        println!("flapping {profile:12} {got} of {sent} messages came in time, {:.1} %", share * 100.0);
        table::odd("flapping: messages that come in time, %", profile, &format!("{:.1}", share * 100.0));
        run.settle();
    }
}

/// The second path never works: nothing is ever put on it.
#[test]
fn dead_from_the_start() {
    for profile in PROFILES {
        let config = assoc_config(profile);
        let mut b = Bench::new(4, &config);
        for (i, (f, r)) in usual().iter().enumerate() {
            b.paths.add(&format!("path{i}"), f.clone(), r.clone());
        }
        b.cut(1);
        b.connect(&config);
        b.run_for(ms(2_000));
        assert!(b.client_events.contains(&Event::Connected), "{profile}: {:?}", b.client_events);
        let mut run = Run::of(b, rate(profile));
        run.go(ms(5_000));
        assert_eq!(run.packets_on(1), 0, "{profile}: data on a path that never answered");
        run.settle();
    }
}

/// The path of the handshake is dead, and comes to life later: the other one opens the association.
#[test]
fn first_path_dead() {
    for profile in PROFILES {
        let config = assoc_config(profile);
        let mut b = Bench::new(4, &config);
        for (i, (f, r)) in usual().iter().enumerate() {
            b.paths.add(&format!("path{i}"), f.clone(), r.clone());
        }
        b.cut(0);
        let began = b.now;
        b.connect(&config);
        while !b.client_events.contains(&Event::Connected) && b.now.since(began) < ms(5_000) {
            b.run_for(ms(5));
        }
        let took = b.now.since(began);
        println!("first path dead {profile:12} connected after {took}");
        // T1 is RTO.Initial, a second (RFC 9260 §16), then a round trip for INIT and one for the cookie.
        assert!(took <= ms(1_145), "{profile}: {took}: {:?}", b.client_events);
        table::odd("the first path is dead: connected after, ms", profile, &format!("{:.0}", took.as_millis_f64()));
        let mut run = Run::of(b, rate(profile));
        run.go(ms(3_000));
        assert_eq!(run.packets_on(0), 0, "{profile}: data on a path that never answered");
        run.b.restore(0);
        run.settle();
    }
}

/// When DATA left on path 0 for the last time before a pause of 50 ms or more: the path is left, or back again.
fn left_at(run: &Run, since: Instant) -> Option<Instant> {
    let sent: Vec<Instant> =
        run.b.tapped(Side::Client, kind::DATA).iter().filter(|e| e.2 == 0 && e.0 >= since).map(|e| e.0).collect();
    let pause = sent.windows(2).find(|w| w[1].since(w[0]) >= ms(50)).map(|w| w[0]);
    pause.or(sent.last().copied())
}

/// The NAT of path 0 gives it another address and port: answers go nowhere until the peer has learnt it.
#[test]
fn address_change() {
    for profile in ["cmt", "media", "live"] {
        let (mut times, mut bound) = (vec![], Duration::MAX);
        for seed in 0..20 {
            let mut run = Run::new(seed, profile, &usual(), rate(profile));
            run.go(ms(3_000) + run.gap * seed / 20);
            bound = bound.min(run.bound());
            run.forget();
            let changed = run.b.now;
            run.b.nat[0] = nat_addr(7);
            run.go(ms(900));
            // The new address may be learnt, and the path be back, before the time is up.
            let answers = run.b.arrived.iter().flatten().filter(|e| (e.1, e.2) == (Side::Server, 0));
            let last = answers.map(|e| e.0).take_while(|t| *t <= changed + ms(5)).last().unwrap_or(changed);
            let doubted = left_at(&run, changed).unwrap_or_else(|| panic!("{profile}: not left"));
            times.push(doubted.since(last));
            run.go(ms(20_000));
            let state = run.b.path(Side::Client, 0).state;
            assert_eq!(state, PathState::Active, "{profile}: the new address was not learnt");
            run.settle();
        }
        judge("another address behind the NAT", profile, bound, &mut times);
    }
}

/// A path that loses three packets of ten is no dead path: it is doubted and taken back, and the flow goes on.
#[test]
fn loss_of_thirty_per_cent() {
    for profile in PROFILES {
        let mut run = Run::new(6, profile, &usual(), rate(profile));
        run.go(ms(3_000));
        set(&mut run, 0, Direction::Forward, Setting::Loss(LossConfig::bernoulli(0.3)));
        run.b.client_events.clear();
        let behind = [(); 4].map(|()| {
            run.go(ms(15_000));
            run.flow.sent - run.flow.got
        });
        let silent = |e: &&Event| matches!(e, Event::PathChanged { reason: PathReason::Silent, .. });
        let n = run.b.client_events.iter().filter(silent).count();
        table::odd("30 % loss: doubted in a minute", profile, &n.to_string());
        let on_their_way = behind.map(|n| n.to_string()).join(", ");
        table::odd("30 % loss: messages on their way after each quarter of it", profile, &on_their_way);
        run.settle();
    }
}

/// Both paths die, one comes back: all goes by that one soon after.
#[test]
fn both_then_one_back() {
    for profile in PROFILES {
        let first_message = [0, 1].map(|back| {
            let mut run = Run::new(8, profile, &usual(), rate(profile));
            run.go(ms(3_000));
            run.b.cut(0);
            run.b.cut(1);
            run.go(ms(3_000));
            run.forget();
            run.b.restore(back);
            let restored = run.b.now;
            let until = restored + ms(20_000);
            let before = run.flow.got;
            while run.flow.got == before && run.b.now < until {
                run.go(ms(10));
            }
            let took = run.b.now.since(restored);
            run.go(ms(5_000));
            assert_eq!(run.b.path(Side::Client, back).state, PathState::Active, "{profile}");
            run.settle();
            format!("{:.0}", took.as_millis_f64())
        });
        table::odd("both dead, one back: first message after, ms", profile, &first_message.join(", "));
    }
}
