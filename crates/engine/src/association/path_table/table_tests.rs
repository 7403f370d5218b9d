//! The table of paths without an association.

use super::*;
use crate::path::discovery::PathMtuDiscovery;
use crate::path::rate::DeliveredAtSend;
use crate::path::{Fate, LocalId, Origin};
use anabranch_base::{Duration, PathSet, RandomStream};
use anabranch_policy::loss_cause::{Cause, LossEvent};
use anabranch_policy::view::{AssocView, PathState};
use anabranch_policy::window::{AckOnPath, Window, WindowChange, WindowState};
use std::collections::BTreeSet;

/// Never changes anything.
struct Still;

impl Window for Still {
    fn on_ack(&mut self, _: &AssocView<'_>, _: PathId, _: &AckOnPath) -> WindowChange {
        WindowChange::default()
    }
    fn on_loss(&mut self, _: &AssocView<'_>, _: PathId, _: &LossEvent, _: Cause) -> WindowState {
        WindowState::default()
    }
}

const STATES: [PathState; 5] = [
    PathState::Active,
    PathState::Suspected,
    PathState::PotentiallyFailed,
    PathState::Inactive,
    PathState::Unconfirmed,
];

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn remote(i: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, i + 1], 5_000))
}

/// Paths that leave by these interfaces, active all of them.
fn table(locals: &[u16]) -> PathTable {
    let mut t = PathTable::new(1_200, 1_000, None, remote(0), &mut RandomStream::named(1, "table"));
    for (i, local) in locals.iter().enumerate() {
        let id = PathId(i as u8);
        let start = t.first_window(None, u64::MAX, remote(id.0));
        t.push(Path::new(id, LocalId(*local), remote(id.0), Origin::Handshake, start, Box::new(Still)));
        t[i].enter(PathState::Active);
    }
    t
}

/// Numbers in no order, the same ones in every run.
fn draw(random: &mut RandomStream, n: usize) -> usize {
    (random.u64() % n as u64) as usize
}

// ---- marks

/// Whatever the paths are asked for, a view is marked as out of date exactly as far as the way it was asked for says,
/// until it is shown.
#[test]
fn marks_say_how_far_views_are_out_of_date() {
    let mut random = RandomStream::named(7, "marks");
    let mut t = table(&[0, 1, 2, 3]);
    let mut marks: [BTreeSet<u8>; 4] = Default::default();
    marks[0] = (0..4).collect();
    for step in 0..20_000 {
        let i = draw(&mut random, 5);
        let known = i < t.len();
        let mark = match draw(&mut random, 9) {
            0 => t.get_mut(i).map(|_| 0),
            1 if known => {
                _ = &mut t[i];
                Some(0)
            }
            2 => t.get_for(i, Shown::Window).map(|_| 1),
            3 => t.get_for(i, Shown::Flight).map(|_| 2),
            4 => t.get_for(i, Shown::FlightBytes).map(|_| 3),
            5 => {
                _ = (t.get_for(i, Shown::Nothing).is_some(), t.get(i).is_some(), t.iter_unseen().count());
                None
            }
            6 => {
                _ = t.iter_mut().count();
                marks[0] = (0..4).collect();
                None
            }
            7 => {
                t.set_mtu(1_000 + step);
                marks[0] = (0..4).collect();
                None
            }
            _ => {
                t.note_shown();
                marks = Default::default();
                None
            }
        };
        if let Some(mark) = mark {
            assert!(known, "step {step}: there is no path {i}");
            marks[mark].insert(i as u8);
        }
        let seen = [t.touched().whole, t.touched().window, t.touched().flight, t.touched().flight_bytes];
        for (expected, found) in marks.iter().zip(seen) {
            assert_eq!(*expected, found.iter().map(|p| p.0).collect(), "step {step}");
        }
        assert_eq!(t.touched().is_none(), marks.iter().all(BTreeSet::is_empty), "step {step}");
    }
}

#[test]
fn a_path_that_comes_marks_all_views_and_changes_the_addresses() {
    let mut t = table(&[0]);
    for n in 1..PathSet::CAPACITY as u8 {
        t.note_shown();
        let before = t.addresses_changed();
        let start = t.first_window(None, u64::MAX, remote(n));
        t.push(Path::new(PathId(n), LocalId(0), remote(n), Origin::Listed, start, Box::new(Still)));
        assert_eq!((t.touched().whole.len(), t.addresses_changed()), (usize::from(n) + 1, before + 1));
        assert!((0..=n).all(|i| t[usize::from(i)].id() == PathId(i)));
    }
}

// ---- which paths carry data

/// The properties that RFC 7829 §3.2 and RFC 9260 §8.2 ask of the set, in each state of three paths on two interfaces:
/// 20 cases for each of them.
#[test]
fn an_association_never_stands_still_while_a_path_may_work() {
    let cases: Vec<_> = STATES
        .into_iter()
        .flat_map(|s| [(s, false, false), (s, false, true), (s, true, false), (s, true, true)])
        .collect();
    for n in 0..cases.len().pow(3) {
        let mut t = table(&[0, 0, 1]);
        for i in 0..3 {
            let (state, up, standby) = cases[n / cases.len().pow(i) % cases.len()];
            let p = &mut t[i as usize];
            p.enter(state);
            p.access.reserve(standby);
            if !up {
                p.access.go_down();
            }
        }
        check_usable(&t, n);
    }
}

fn check_usable(t: &PathTable, case: usize) {
    let usable = t.usable();
    let active: Vec<&Path> = t.iter().filter(|p| p.is_in_use()).collect();
    if active.is_empty() {
        let confirmed: Vec<&Path> = t.iter().filter(|p| p.is_confirmed()).collect();
        assert_eq!(usable.len(), confirmed.len().min(1), "case {case}: one of those that may work");
        let rank = |p: &Path| STATES.iter().position(|s| *s == p.state());
        let chosen = usable.iter().next().map(|id| rank(&t[id.index()]));
        assert_eq!(chosen, confirmed.iter().map(|p| rank(p)).min(), "case {case}: the one in the best state");
        return;
    }
    assert!(usable.iter().all(|id| active.iter().any(|p| p.id() == id)), "case {case}: only what works is used");
    for local in [LocalId(0), LocalId(1)] {
        let here: Vec<&&Path> = active.iter().filter(|p| p.local() == local).collect();
        let used: Vec<&&&Path> = here.iter().filter(|p| usable.has(p.id())).collect();
        let first = here.iter().filter(|p| !p.access.is_standby()).count();
        let expected = if first > 0 { first } else { here.len().min(1) };
        assert_eq!(used.len(), expected, "case {case}: those in use, or one in reserve, of {local:?}");
        assert!(first == 0 || used.iter().all(|p| !p.access.is_standby()), "case {case}: no reserve beside others");
    }
}

/// Among paths that may work all alike, the one with the fewest errors, and of these the one that answered last.
#[test]
fn the_best_of_silent_paths_is_the_one_with_fewest_errors_that_answered_last() {
    for (errors, heard) in (0..27).flat_map(|e| (0..27).map(move |h| (e, h))) {
        let digits = |n: u64| [n % 3, n / 3 % 3, n / 9];
        let mut t = table(&[0, 1, 2]);
        for (i, (e, h)) in digits(errors).into_iter().zip(digits(heard)).enumerate() {
            t[i].enter(PathState::Inactive);
            t[i].health.answer(at(10 * h));
            (0..e).for_each(|_| _ = t[i].health.fail());
        }
        let (fewest, last) = (digits(errors), digits(heard));
        let best = (0..3).min_by_key(|i| (fewest[*i], u64::MAX - last[*i], *i));
        assert_eq!(t.usable().iter().map(PathId::index).collect::<Vec<_>>(), Vec::from_iter(best));
    }
}

#[test]
fn a_path_that_the_peer_does_not_know_is_no_way_out() {
    let mut t = table(&[0, 1]);
    for i in 0..2 {
        t[i].enter(PathState::PotentiallyFailed);
    }
    t[0].access.become_unknown();
    assert_eq!(t.usable(), PathSet::only(PathId(1)));
    t[1].access.become_unknown();
    assert!(t.usable().is_empty());
}

// ---- the primary path

/// Whichever paths are usable, the role goes to the next of them in the order of ids, around the end, and never to the
/// one that has it.
#[test]
fn the_role_of_the_primary_goes_around() {
    for (primary, usable) in (0..4).flat_map(|p| (0..16).map(move |u| (p, u))) {
        let mut t = table(&[0, 1, 2, 3]);
        assert!(t.choose_primary(PathId(primary)));
        for i in (0..4).filter(|i| usable & 1 << i == 0) {
            // Not confirmed, so that it is not even the best of those that do not answer.
            t[i].enter(PathState::Unconfirmed);
        }
        // One that is usable itself keeps it.
        let first = (0..4).map(|i| (primary + i) % 4).find(|i| usable & 1 << i != 0);
        let expected = first.filter(|i| *i != primary).map(PathId);
        assert_eq!(t.after_primary(), expected, "{primary} of {usable:04b}");
    }
}

#[test]
fn only_a_path_that_is_there_becomes_primary() {
    for n in 1..5 {
        let mut t = table(&vec![0; n]);
        for i in 0..8 {
            let before = t.primary();
            let known = usize::from(i) < n;
            assert_eq!(t.choose_primary(PathId(i)), known);
            assert_eq!(t.primary(), if known { PathId(i) } else { before });
        }
    }
}

// ---- sizes and windows

/// Messages are cut for the smallest packet of all paths; where sizes are looked for, of those in use only.
#[test]
fn the_smallest_packet_of_those_that_count() {
    for (sizes, down) in (0..27).flat_map(|s| (0..8).map(move |d| (s, d))) {
        let size = |i: usize| [600, 1_000, 1_400][sizes / 3usize.pow(i as u32) % 3];
        let mut t = table(&[0, 1, 2]);
        for i in 0..3 {
            t[i].mtu.limit(size(i));
            if down & 1 << i != 0 {
                t[i].access.go_down();
            }
        }
        for (configured, reserved) in [(500, 0), (1_200, 0), (1_200, 28), (9_000, 28)] {
            (t.configured, t.reserved) = (configured, reserved);
            let least = |which: &dyn Fn(usize) -> bool| (0..3).filter(|i| which(*i)).map(size).min();
            let all = least(&|_| true).map_or(configured, |s| s.min(configured));
            let in_use = least(&|i| down & 1 << i == 0).map_or(configured, |s| s.min(configured));
            let expected = (all - reserved, in_use - reserved);
            assert_eq!((t.smallest_packet(false), t.smallest_packet(true)), expected);
            for i in 0..3 {
                let whole = size(i).min(configured);
                assert_eq!(
                    (t.whole_packet(PathId(i as u8)), t.packet_size(PathId(i as u8))),
                    (whole, whole - reserved)
                );
            }
            for len in [400, 900, 1_300, 9_000] {
                let takes = |i: &usize| 12 + t.chunk_len(len) <= size(*i).min(configured) - reserved;
                let whole: PathSet = (0..3).filter(takes).map(|i| PathId(i as u8)).collect();
                let expected = if whole.is_empty() { PathSet::first(3) } else { whole };
                assert_eq!(t.taking_whole(PathSet::first(3), len as u64), expected, "{len} bytes");
            }
        }
    }
}

/// RFC 9260 §7.2.1: min(4 MTU, max(2 MTU, 4,404 bytes)), and what is configured instead is a packet at least.
#[test]
fn the_initial_window_is_two_to_four_packets() {
    let mut t = table(&[0]);
    for mtu in 500..9_000 {
        t.set_mtu(mtu);
        t.note_initial_window(None);
        let window = t.initial_cwnd();
        assert!((2 * mtu..=4 * mtu).contains(&window), "{window} bytes for {mtu}");
        assert!(window >= 4_404 || window == 4 * mtu, "{window} bytes for {mtu}");
        assert!(window <= 4_404 || window == 2 * mtu, "{window} bytes for {mtu}");
        for configured in [1, mtu, 100_000] {
            t.note_initial_window(Some(configured));
            assert_eq!(t.initial_cwnd(), configured.max(mtu));
            assert_eq!(t.first_window(Some(configured), 7, remote(0)).cwnd, configured.max(mtu));
        }
    }
}

// ---- the peer

/// A peer is silent since it was asked and did not answer, or since any path heard of it after that; and only while it
/// owes an answer. How long it had been idle before does not count.
#[test]
fn a_peer_is_silent_since_it_owes_an_answer() {
    for heard in [vec![], vec![(0, 100)], vec![(0, 100), (1, 700)], vec![(1, 700), (0, 950)], vec![(1, 990), (0, 100)]]
    {
        let mut t = table(&[0, 1]);
        for (path, ms) in &heard {
            t[*path].health.answer(at(*ms));
        }
        assert_eq!(t.silent_since(), None, "it owes nothing");
        assert!(t.errors.note(at(1_000), at(900), Duration::from_secs(1)));
        let last = heard.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
        assert_eq!(t.silent_since(), Some(at(last.max(900))), "{heard:?}");
        t.clear_peer_errors();
        assert_eq!(t.silent_since(), None);
    }
}

/// Nonces of two associations that began alike differ from the first on, and none comes twice.
#[test]
fn nonces_do_not_repeat() {
    let of = |seed| PathTable::new(1_200, 1_000, None, remote(0), &mut RandomStream::named(seed, "table"));
    let mut tables = [of(1), of(2)];
    let drawn: BTreeSet<u64> = (0..1_000).map(|i| tables[i % 2].next_nonce()).collect();
    assert_eq!(drawn.len(), 1_000);
}

// ---- what leaves the flight

/// Three packets of a size are lost, smaller ones arrive, and a fourth of that size meets its fate: only one that arrived says
/// that the path carries it. One whose chunk came by another path, or as another copy, does not.
#[test]
fn only_what_arrived_shows_that_a_path_carries_its_size() {
    for (fate, vanishes) in [(Fate::Arrived, false), (Fate::Unknown, true), (Fate::Lost, true)] {
        let mut t = table(&[0]);
        let p = t.get_mut(0).unwrap();
        p.mtu.search(PathMtuDiscovery::up_to(1_200), 1_200, 512);
        let sent = |p: &mut Path, n: u64| {
            let seq = p.flight.begin_packet(at(100 + 30 * n), DeliveredAtSend::default());
            p.flight.add_copy(n, 1_100);
            p.flight.note_size(1_200);
            seq
        };
        let all: Vec<_> = (0..4).map(|n| sent(p, n)).collect();
        all[..3].iter().for_each(|seq| p.take_off(*seq, 1_100, Fate::Lost));
        p.take_off(all[3], 1_100, fate);
        let d = p.mtu.discovery_mut().unwrap();
        d.small_arrived(at(250));
        assert_eq!(d.black_hole(at(300), Duration::from_millis(50)), vanishes, "{fate:?}");
    }
}
