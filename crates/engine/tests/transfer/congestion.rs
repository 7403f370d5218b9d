//! Congestion windows (§7.2), and how much they let out (§6.1).

use crate::common::manual::*;
use crate::common::*;
use anabranch_engine::{AssocConfig, LocalId};
use anabranch_policy::registry::Hook;

const MTU: u64 = FULL as u64;
const INITIAL: u64 = 4_404;

fn unlimited(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| c.sending.max_burst = 0)
}

fn single(config: &AssocConfig) -> Manual {
    Manual::new(config, &[(link(10, 20), link(10, 20))])
}

/// Shows: 9260/C2, 9260/D4.
#[test]
fn the_initial_window_and_one_packet_at_most_beyond_it() {
    for size in [FULL, 700, 300, 1] {
        let mut m = single(&unlimited("sctp"));
        assert_eq!(m.path(0).cwnd, INITIAL, "4404 bytes over IPv4");
        for _ in 0..5_000.min(100_000 / size) {
            m.send(1, size);
        }
        m.packets();
        let in_flight = m.path(0).in_flight;
        assert!((INITIAL..INITIAL + MTU).contains(&in_flight), "messages of {size}: {in_flight}");
    }
}

/// Shows: 9260/C2, 9260/T4.
#[test]
fn after_an_expiry_one_packet_until_it_is_answered() {
    let mut m = single(&unlimited("sctp"));
    let next = m.open_window(12 * MTU);
    let before = m.path(0).cwnd;
    m.send(40, FULL);
    assert!(m.sent().len() >= 12);
    let again = m.during(ms(1_001));
    assert_eq!(m.offsets(&again), [next], "one packet, the lowest TSN");
    let p = m.path(0);
    assert_eq!((p.cwnd, p.ssthresh), (MTU, before / 2));
    assert!(m.during(ms(1_900)).is_empty(), "and not more until it is answered");
    m.sack(next + 1, &[]);
    let more = m.sent();
    assert_eq!(more[..1], [next + 1], "what was marked goes on: {more:?}");
    assert!(m.path(0).in_flight < 2 * MTU + MTU);
}

/// Shows: 9260/C3.
#[test]
fn slow_start_grows_by_what_was_acknowledged_and_only_a_full_window() {
    let mut m = single(&unlimited("sctp"));
    m.send(1, FULL);
    m.packets();
    m.sack(1, &[]);
    assert_eq!(m.path(0).cwnd, INITIAL, "the window was not in full use");
    m.send(40, FULL);
    assert_eq!(m.sent(), [1, 2, 3, 4]);
    m.sack(2, &[]);
    assert_eq!(m.path(0).cwnd, INITIAL + MTU);
    // Three packets with one acknowledgement: one packet of growth (L = 1).
    let sent = m.sent();
    assert_eq!(sent, [5, 6]);
    m.sack(5, &[]);
    assert_eq!(m.path(0).cwnd, INITIAL + 2 * MTU);
    m.packets();
    // Small chunks: no more than their bytes.
    let mut m = single(&unlimited("sctp"));
    m.send(100, 100);
    assert_eq!(m.sent().len(), 45);
    m.sack(3, &[]);
    assert_eq!(m.path(0).cwnd, INITIAL + 300);
}

/// Shows: 9260/C5.
#[test]
fn avoidance_grows_by_a_packet_for_each_window_acknowledged() {
    let mut m = single(&unlimited("sctp"));
    let next = m.open_window(16 * MTU);
    m.send(600, FULL);
    let mut waiting = std::collections::VecDeque::from(m.sent());
    // Three reports against the first: half.
    for i in 1..=3 {
        m.sack(next, &[(1, i)]);
    }
    let cut = m.path(0);
    assert_eq!(cut.cwnd, cut.ssthresh);
    waiting.extend(m.sent());
    let all = waiting.iter().max().expect("sent") + 1;
    m.sack(all, &[]);
    let (mut sizes, mut acked) = (vec![], 0);
    waiting = m.sent().into();
    while let Some(o) = waiting.pop_front().filter(|_| sizes.len() < 12) {
        let before = m.path(0).cwnd;
        m.sack(o + 1, &[]);
        acked += MTU;
        if m.path(0).cwnd > before {
            assert_eq!(m.path(0).cwnd, before + MTU, "one packet");
            sizes.push((before, acked));
            acked = 0;
        }
        waiting.extend(m.sent());
    }
    assert_eq!(sizes.len(), 12);
    for (cwnd, acked) in &sizes[1..] {
        assert!(*acked + MTU > *cwnd && *acked < cwnd + MTU, "{acked} bytes for a window of {cwnd}");
    }
}

/// Shows: 9260/C6, 9260/C9.
#[test]
fn a_loss_halves_the_window_once() {
    let mut m = single(&unlimited("sctp"));
    let next = m.open_window(20 * MTU);
    m.send(80, FULL);
    let sent = m.sent();
    // Two are lost, the second is found later: still one cut.
    m.sack(next, &[(1, 1), (3, 3)]);
    m.sack(next, &[(1, 1), (3, 4)]);
    let before = m.path(0);
    m.sack(next, &[(1, 1), (3, 5)]);
    let cut = m.path(0);
    assert_eq!((cut.cwnd, cut.ssthresh), (before.cwnd / 2, before.cwnd / 2));
    for i in 6..12 {
        m.sack(next, &[(1, 1), (3, i)]);
    }
    assert_eq!(m.path(0).cwnd, cut.cwnd, "no second cut, no growth meanwhile");
    let last = *sent.last().expect("sent") + 1;
    m.packets();
    m.sack(last - 1, &[]);
    assert_eq!(m.path(0).cwnd, cut.cwnd, "not over before all of that flight is acknowledged");
    m.packets();
    m.sack(last, &[]);
    m.send(10, FULL);
    assert!(m.path(0).cwnd >= cut.cwnd);
    // Four packets are the floor.
    let mut m = single(&unlimited("sctp"));
    m.send(8, FULL);
    m.packets();
    for i in 1..=3 {
        m.sack(0, &[(1, i)]);
    }
    assert_eq!((m.path(0).cwnd, m.path(0).ssthresh), (4 * MTU, 4 * MTU));
}

/// Shows: 9260/C10.
#[test]
fn growth_comes_before_the_cut_when_the_cumulative_tsn_moves() {
    let mut m = single(&unlimited("sctp"));
    let next = m.open_window(20 * MTU);
    m.send(80, FULL);
    m.packets();
    let before = m.path(0);
    assert!(before.cwnd <= before.ssthresh, "slow start");
    // The second is reported missing twice; the third report acknowledges the first too.
    m.sack(next, &[(2, 2)]);
    m.packets();
    m.sack(next, &[(2, 3)]);
    m.packets();
    let grown = m.path(0).cwnd;
    assert!(m.path(0).in_flight >= grown, "used in full");
    m.sack(next + 1, &[(1, 3)]);
    assert_eq!(m.path(0).cwnd, (grown + MTU) / 2);
}

/// Shows: 9260/D6.
#[test]
fn a_burst_is_four_packets_and_the_window_stays() {
    let mut m = Manual::single("sctp");
    let next = m.open_window(20 * MTU);
    let before = m.path(0).cwnd;
    m.send(60, FULL);
    let offsets = m.sent();
    assert_eq!(offsets.len(), 4, "{offsets:?}");
    // The first answer is the next opportunity.
    m.sack(next + 1, &[]);
    assert_eq!(m.sent().len(), 4);
    assert!(m.path(0).cwnd >= before);
    assert!(m.path(0).in_flight < before / 2, "it was not the window");
}

/// Shows: 9260/C1, 9260/H4.
#[test]
fn each_path_has_a_window_of_its_own_and_the_peers_is_shared() {
    let config = changed(unlimited("cmt"), |c| c.profile.set(Hook::Timer, "rfc9260").expect("registered"));
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    m.send(40, FULL);
    let seen = m.packets();
    let on = |path| seen.iter().filter(|p| p.path == path).flat_map(|p| &p.data).count() as u64;
    assert_eq!((on(0), on(1)), (4, 4), "two initial windows");
    assert_eq!((m.path(0).in_flight, m.path(1).in_flight), (4 * MTU, 4 * MTU));
    let first: Vec<u32> = m.offsets(&seen.iter().filter(|p| p.path == 0).cloned().collect::<Vec<_>>());
    // All of path 1 is acknowledged, nothing of path 0.
    let second: Vec<u32> = m.offsets(&seen.iter().filter(|p| p.path == 1).cloned().collect::<Vec<_>>());
    let gaps: Vec<(u16, u16)> = second.iter().map(|&o| (o as u16, o as u16)).collect();
    let merged = merge(&gaps);
    m.sack_on(1, 0, 5 * MTU as u32, &merged);
    let more = m.packets();
    assert_eq!(more.iter().map(|p| p.path).collect::<Vec<_>>(), [1], "four packets outstanding, room for five");
    assert_eq!((m.path(0).cwnd, m.path(1).cwnd), (INITIAL, INITIAL + MTU));
    // Path 0 expires: its chunks move, and so do the counts.
    m.b.run_for(ms(500));
    let newest = m.offsets(&more)[0] as u16;
    m.sack_on(1, 0, ROOM, &merge(&[&gaps[..], &[(newest, newest)]].concat()));
    m.b.run_for(ms(499));
    m.packets();
    let later = m.during(ms(1_500));
    let moved: Vec<u32> = m.offsets(&later.iter().filter(|p| p.path == 1).cloned().collect::<Vec<_>>());
    assert!(!moved.is_empty() && moved.iter().all(|o| first.contains(o)), "{moved:?}");
    assert_eq!(m.path(0).in_flight, 0);
}

fn merge(list: &[(u16, u16)]) -> Vec<(u16, u16)> {
    let mut out: Vec<(u16, u16)> = vec![];
    for &(a, b) in list {
        match out.last_mut() {
            Some(l) if l.1 + 1 == a => l.1 = b,
            _ => out.push((a, b)),
        }
    }
    out
}

/// Shows: 9260/C4.
#[test]
fn an_idle_window_decays_by_half_each_rto() {
    let mut m = single(&unlimited("sctp"));
    let next = m.open_window(40 * MTU);
    let before = m.path(0).cwnd;
    assert_eq!(m.path(0).rto, ms(1_000));
    m.b.run_for(ms(900));
    m.send((before / MTU) as usize + 1, FULL);
    let full = m.sent().len() as u32;
    assert!(u64::from(full) * MTU >= before, "not idle yet");
    let next = next + full;
    m.sack(next, &[]);
    let (before, ssthresh) = (m.path(0).cwnd, m.path(0).ssthresh);
    m.b.run_for(ms(3_500));
    m.send(1, FULL);
    m.packets();
    let after = m.path(0);
    assert_eq!(after.cwnd, before / 8, "three RTOs");
    assert!(ssthresh >= before && after.ssthresh == before, "{} of {before}", after.ssthresh);
    // Ten minutes leave four packets, and the threshold is where the window first was.
    let mut m = single(&unlimited("sctp"));
    m.open_window(40 * MTU);
    let before = m.path(0).cwnd;
    m.b.filter = None;
    m.b.run_for(ms(600_000));
    m.send(1, FULL);
    m.b.flush();
    assert_eq!((m.path(0).cwnd, m.path(0).ssthresh), (4 * MTU, before));
}

/// Shows: 9260/C11.
#[test]
fn another_source_address_begins_again() {
    let config = unlimited("cmt");
    let mut b = Bench::connected(5, &config, &[(link(50, 20), link(50, 20)), (link(50, 20), link(50, 20))]);
    let mut flow = Flow::new(Side::Client, 0, FULL);
    flow.transfer(&mut b, 2_000, ms(20_000)).expect("arrives");
    let grown = b.path(Side::Client, 1);
    assert!(grown.cwnd > 2 * INITIAL && b.path(Side::Client, 0).cwnd > 2 * INITIAL);
    let now = b.now;
    b.assoc(Side::Client).interface_down(now, LocalId(1));
    b.nat[1] = ([203, 0, 113, 7], 1_234).into();
    b.run_for(ms(50));
    let (now, other) = (b.now, b.path(Side::Client, 0).cwnd);
    b.assoc(Side::Client).interface_up(now, LocalId(1));
    let p = b.path(Side::Client, 1);
    assert_eq!((p.cwnd, p.srtt.is_zero()), (INITIAL, true), "its window and its round trips are forgotten");
    assert!(p.ssthresh > grown.cwnd);
    assert_eq!(b.path(Side::Client, 0).cwnd, other, "the other path's are not");
    b.run_for(ms(1_000));
    flow.transfer(&mut b, 2_000, ms(20_000)).expect("arrives");
}

/// Shows: 9260/C1.
#[test]
fn whatever_the_profile_a_window_never_lets_out_more_than_the_rules() {
    for profile in ["sctp", "cmt", "live"] {
        let mut config = assoc_config(profile);
        config.profile.set(Hook::Window, "rfc9260").expect("registered");
        let mut m = single(&config);
        for _ in 0..30 {
            m.send(4, FULL);
        }
        m.packets();
        assert!(m.path(0).in_flight < INITIAL + MTU, "{profile}");
    }
}
