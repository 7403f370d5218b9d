use super::*;
use crate::testing::{Scene, ms};
use anabranch_base::{PathId, Rate};

fn policy() -> EarliestArrival {
    EarliestArrival { look_ahead: ms(50), ..EarliestArrival::default() }
}
/// 30 ms and 1 byte/us; 160 ms and half of that. Both windows are one and a half pipes.
fn scene(chunks: u32) -> Scene {
    let mut s = Scene::new(2, chunks);
    s.rtt(0, 30).cwnd = 45_000;
    s.rtt(1, 160).cwnd = 120_000;
    for (i, rate) in [(0, 1_000_000), (1, 500_000)] {
        s.paths[i].cwnd = [45_000, 120_000][i];
        s.paths[i].capacity = Rate::from_bytes_per_sec(rate);
    }
    s
}
fn due(s: &mut Scene, millis: u64) {
    for c in &mut s.chunks {
        c.deadline = Some(s.now + ms(millis));
    }
}

#[test]
fn the_fast_path_while_it_has_room() {
    let s = scene(3);
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(0) });
}

#[test]
fn waits_for_a_full_path_that_is_still_earlier() {
    let mut s = scene(3);
    s.close(0);
    assert_eq!(s.ask(&policy()), Decision::Blocked);
    s.paths[0].in_flight = 0;
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(1) }, "nothing would wake it");
}

/// One heartbeat that came in 10 ms over a path that takes 80 as a rule.
#[test]
fn one_quick_answer_makes_no_fast_path() {
    for quickest in [1, 10, 20, 28] {
        let mut s = scene(3);
        s.rtt(1, quickest);
        (s.paths[1].unloaded_rtt, s.paths[1].jitter) = (ms(160), ms(80));
        assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(0) }, "{quickest} ms");
        s.close(0);
        assert_eq!(s.ask(&policy()), Decision::Blocked, "{quickest} ms");
    }
}

#[test]
fn the_slow_path_takes_what_the_fast_one_would_not_deliver_earlier() {
    let mut s = scene(200);
    s.close(0);
    let Decision::Send { index, path } = s.ask(&policy()) else { panic!("blocked") };
    assert_eq!(path, PathId(1));
    // Slow: 80 + 1144/750 ms. Fast: 15 ms and the queue at 45000 per 30 ms.
    let slow = 80_000 + 1_144_000 / 750;
    let fast = |k: u64| 15_000 + (k + 1) * 1_144_000 / 1_500;
    assert!(fast(index as u64) >= slow && fast(index as u64 - 1) < slow, "{index}");
}

#[test]
fn a_deadline_that_holds_is_enough() {
    let mut s = scene(3);
    s.close(0);
    due(&mut s, 300);
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(1) });
    due(&mut s, 100);
    assert_eq!(s.ask(&policy()), Decision::Blocked, "80 ms, the guard and one chunk are more than 100");
    s.paths[1].jitter = ms(60);
    due(&mut s, 200);
    assert_eq!(s.ask(&policy()), Decision::Blocked, "an unsteady path needs more to spare");
    s.paths[1].jitter = ms(10);
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(1) });
}

/// The fast path carries 1 MB a second; over the other one, whose packets overtake each other, half come within 170 ms.
fn unsteady(offered: u64, age: u64, life: u64) -> Scene {
    let mut s = scene(60);
    s.close(0);
    s.paths[0].ssthresh = 20_000;
    let now = s.now;
    let p = &mut s.paths[1];
    (p.mean_rtt, p.unloaded_rtt, p.unloaded_deviation, p.jitter) = (ms(340), ms(340), ms(60), ms(60));
    (p.overtaken_at, p.sampled_at, p.recent_rtt, p.recent_one_way) = (Some(now), Some(now), ms(200), ms(30));
    (p.min_rtt, p.one_way) = (ms(200), ms(30));
    (p.in_flight, p.packets_in_flight) = (20_000, 18);
    for c in &mut s.chunks {
        (c.queued_at, c.deadline) = (now - ms(age), Some(now + ms(life - age)));
    }
    s.class_rates[2] = Rate::from_bytes_per_sec(offered);
    s
}

#[test]
fn what_not_all_can_be_in_time_overflows_onto_a_path_where_it_is_likely_to_be() {
    let on_slow = |s: &Scene| match s.ask(&policy()) {
        Decision::Send { index, path } => Some((index, path)).filter(|(_, p)| *p == PathId(1)),
        _ => None,
    };
    for life in [200, 250] {
        let first = on_slow(&unsteady(1_500_000, 0, life)).expect("it is fresh").0;
        // So much is left to the fast path, with 13.5 kB in its queue, that it is busy for a seventh of a message's life.
        let busy = (13_500 + first as u64 * 1_144) / 1_050;
        assert!((life / 7..life / 7 + 2).contains(&busy), "{life} ms: {first}");
        for offered in [500_000, 900_000, 1_040_000] {
            assert_eq!(on_slow(&unsteady(offered, 0, life)), None, "the fast path carries {offered}");
        }
        assert!(on_slow(&unsteady(1_500_000, life - 171, life)).is_some());
        assert_eq!(on_slow(&unsteady(1_500_000, life - 169, life)), None, "it is too old for that path");
        let mut few = unsteady(1_500_000, life - 169, life);
        few.paths[1].packets_in_flight = 3;
        assert!(on_slow(&few).is_some(), "a few packets ask how the path is now");
        let mut full = unsteady(1_500_000, 0, life);
        full.paths[1].mean_rtt = ms(340 + life - 169);
        assert_eq!(on_slow(&full), None, "its round trips show a queue");
        for class in [0, 1] {
            let mut s = unsteady(1_500_000, 0, life);
            s.chunks.iter_mut().for_each(|c| c.class = class);
            assert_eq!(on_slow(&s), None, "others depend on class {class}");
        }
    }
}

/// A long frame that the fast path has to work on for `busy` ms; over the slow one half of what leaves now comes within
/// 170 ms, and packets overtake each other there, or not.
fn long_frame(busy: u64, life: u64, overtakes: bool) -> Decision {
    let mut s = unsteady(500_000, 0, life);
    s.paths[1].overtaken_at = s.paths[1].overtaken_at.filter(|_| overtakes);
    s.chunks.iter_mut().for_each(|c| c.class = 0);
    s.chunks.truncate(1);
    s.unsent = busy * 1_050;
    s.ask(&policy())
}

#[test]
fn a_sooner_arrival_that_is_less_likely_to_be_in_time_is_worth_nothing() {
    let slow = Decision::Send { index: 0, path: PathId(1) };
    for life in [200, 220, 250] {
        // The flight of the fast path is 15 ms, its queue 13 ms, the time to spare there 20 ms, and all that waits counts for
        // a tenth more.
        for busy in (130..(life - 40) * 10 / 11).step_by(5) {
            assert_eq!(long_frame(busy, life, true), Decision::Blocked, "{busy} of {life} ms");
        }
        for busy in [life - 25, life, life * 2] {
            assert_eq!(long_frame(busy, life, true), slow, "late on the fast path: {busy} of {life} ms");
        }
    }
    for life in [200, 220, 250, 300] {
        // What has to wait so long that a tenth more of it would be too late does not count on the fast path.
        let most =
            (100..life).rev().find(|busy| long_frame(*busy, life, true) == Decision::Blocked).expect("some wait");
        let there = 28 + most * 11 / 10;
        assert!((life - 25..=life).contains(&there), "{most} ms of work of {life}");
    }
    assert_eq!(long_frame(190, 250, false), slow, "where nothing is overtaken the sooner arrival counts");
    let mut s = unsteady(500_000, 0, 250);
    (s.unsent, s.chunks) = (190 * 1_050, s.chunks.drain(..1).collect());
    assert_eq!(s.ask(&policy()), slow, "nor for what nothing depends on");
}

/// A chunk of a frame that others depend on is weighed with as much of that frame as the longer window holds.
#[test]
fn it_looks_further_where_packets_overtake_each_other() {
    let mut s = unsteady(500_000, 0, 200);
    let steady = {
        let mut s = unsteady(500_000, 0, 200);
        s.paths.iter_mut().for_each(|p| p.overtaken_at = None);
        policy().look_ahead(&s.cx()).bytes
    };
    assert_eq!(policy().look_ahead(&s.cx()).bytes, steady * FURTHER);
    s.now += ms(60_000);
    assert_eq!(policy().look_ahead(&s.cx()).bytes, steady, "that was a minute ago");
}

/// The slow path has the time to spare that its variation asks for; the fast one, which varies little, has more of it.
#[test]
fn time_to_spare_is_not_enough_where_the_fast_path_is_surer() {
    // The flight takes 170 ms; to spare are 20 ms and two mean deviations.
    for deviation in [5, 15, 30] {
        let slack = 20 + 2 * deviation;
        let ask = |life: u64, class: u8| {
            let mut s = unsteady(500_000, 0, life);
            (s.paths[1].unloaded_deviation, s.paths[1].jitter) = (ms(deviation), ms(deviation));
            (s.paths[1].recent_rtt, s.paths[1].recent_one_way) = (ms(340), ms(170));
            s.chunks.iter_mut().for_each(|c| c.class = class);
            s.chunks.truncate(1);
            s.ask(&policy())
        };
        let slow = Decision::Send { index: 0, path: PathId(1) };
        for spare in [slack + 5, 2 * slack - 5] {
            assert_eq!(ask(170 + spare, 2), slow, "nothing depends on it");
            assert_eq!(ask(170 + spare, 1), Decision::Blocked, "{spare} ms to spare of {slack}");
        }
        assert_eq!(ask(170 + 2 * slack + 5, 1), slow, "twice that");
    }
}

#[test]
fn what_cannot_wait_is_left_to_the_fast_path() {
    let mut s = scene(3);
    s.close(0);
    due(&mut s, 300);
    s.chunks[0].deadline = Some(s.now + ms(60));
    assert_eq!(s.ask(&policy()), Decision::Send { index: 1, path: PathId(1) });
}

#[test]
fn what_others_depend_on_goes_first_and_where_a_loss_can_be_repaired() {
    let mut s = scene(3);
    (s.paths[1].mean_rtt, s.paths[1].loss) = (ms(160), Ppm(5_000));
    (s.chunks[0].class, s.chunks[1].class) = (2, 0);
    due(&mut s, 300);
    assert_eq!(s.ask(&policy()), Decision::Send { index: 1, path: PathId(0) }, "it overtakes");
    s.close(0);
    // A loss on the slow path is noticed 160 ms after the chunk left, and its repetition takes 15 ms more.
    due(&mut s, 230);
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(1) }, "what is less important goes there");
    (s.chunks[0].class, s.chunks[2].class) = (1, 1);
    due(&mut s, 190);
    assert_eq!(s.ask(&policy()), Decision::Blocked, "the fast path is in time");
    s.paths[1].loss = Ppm(0);
    assert!(matches!(s.ask(&policy()), Decision::Send { path: PathId(1), .. }), "a path that loses nothing");
    s.paths[1].loss = Ppm(5_000);
    due(&mut s, 300);
    assert!(matches!(s.ask(&policy()), Decision::Send { path: PathId(1), .. }));
}

#[test]
fn long_backlog_behind_the_window_uses_the_slow_path() {
    let mut s = scene(3);
    s.close(0);
    s.unsent = 10_000_000;
    assert_eq!(s.ask(&policy()), Decision::Send { index: 2, path: PathId(1) });
}

#[test]
fn queue_cost_moves_load_before_the_queue_is_long() {
    let mut s = scene(3);
    due(&mut s, 300);
    s.paths[0].in_flight = 45_000 + 30_000;
    assert_eq!(s.ask(&policy()), Decision::Send { index: 0, path: PathId(0) });
    let spread = EarliestArrival { queue_cost: Ppm(5_000_000), ..policy() };
    assert_eq!(s.ask(&spread), Decision::Send { index: 0, path: PathId(1) });
    s.paths[0].in_flight = 0;
    assert_eq!(s.ask(&spread), Decision::Send { index: 0, path: PathId(0) }, "no queue, no cost");
    due(&mut s, 90);
    s.paths[0].in_flight = 75_000;
    assert_eq!(s.ask(&spread), Decision::Send { index: 0, path: PathId(0) }, "the slow path would be late");
}
