//! Loss noticed by reports (§7.2.4).

use crate::common::manual::*;
use crate::common::*;
use anabranch_engine::AssocConfig;

fn unlimited(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| c.sending.max_burst = 0)
}

fn single() -> Manual {
    Manual::new(&unlimited("sctp"), &[(link(10, 20), link(10, 20))])
}

/// Shows: 9260/C7.
#[test]
fn two_reports_are_not_enough_and_three_are() {
    let mut m = single();
    m.send(20, FULL);
    assert_eq!(m.sent(), [0, 1, 2, 3]);
    m.sack(0, &[(1, 1)]);
    m.sack(0, &[(1, 2)]);
    assert!(!m.sent().contains(&0));
    m.sack(0, &[(1, 3)]);
    assert_eq!(m.sent()[0], 0);
}

/// Shows: 9260/C7.
#[test]
fn only_news_above_it_is_a_report() {
    let mut m = single();
    m.send(20, 1_000);
    m.sent();
    // Equal blocks again and again acknowledge nothing new.
    for _ in 0..5 {
        m.sack(0, &[(2, 2)]);
    }
    assert!(!m.sent().contains(&0), "one report");
    // Newly acknowledged below the other hole: a report for 0 and none for 3.
    m.sack(0, &[(1, 2)]);
    m.sack(0, &[(1, 2), (4, 4)]);
    let again = m.sent();
    assert!(again.contains(&0) && !again.contains(&3), "{again:?}");
}

/// Shows: 9260/C7, 9260/C9.
#[test]
fn in_recovery_each_advance_counts_against_every_hole() {
    let mut m = single();
    let next = m.open_window(20 * FULL as u64);
    m.send(20, FULL);
    m.sent();
    // 0 and 6 are lost; 0 is found.
    for i in 3..=5 {
        m.sack(next, &[(1, i)]);
    }
    assert_eq!(m.sent()[0], next);
    let cut = m.path(0).cwnd;
    // One report against 6 by something new, and then only the cumulative TSN moves.
    m.sack(next, &[(1, 5), (7, 9)]);
    m.sack(next + 1, &[(0, 4), (6, 8)]);
    assert!(!m.sent().contains(&(next + 6)));
    m.sack(next + 3, &[(0, 2), (4, 6)]);
    assert!(m.sent().contains(&(next + 6)), "three");
    assert_eq!(m.path(0).cwnd, cut, "the window is cut once");
}

/// Shows: 9260/C8, 9260/D5.
#[test]
fn one_packet_of_the_lowest_leaves_whatever_the_window_says() {
    let mut m = single();
    let next = m.open_window(20 * FULL as u64);
    m.send(60, 400);
    let first = m.sent();
    // The first packet's chunks and the third's are lost, all else arrives.
    let last = *first.last().expect("sent") - next;
    assert!(last > 30);
    for end in [10, 11, 12] {
        m.sack(next, &[(5, end)]);
    }
    let p = m.path(0);
    assert!(p.in_flight >= p.cwnd, "{} of {}", p.in_flight, p.cwnd);
    let again = m.packets();
    assert_eq!(again.len(), 1, "one packet, although the window is full: {again:?}");
    assert_eq!(m.offsets(&again), [next, next + 1], "as many of the lowest as fit");
    // Then as the window allows, and what is marked before what is new.
    m.send(20, 400);
    m.sack(next + 2, &[(3, last as u16 - 2)]);
    let more = m.sent();
    assert_eq!(more[..3], [next + 2, next + 3, next + 4], "{more:?}");
    assert!(more[3..].iter().all(|o| *o > next + last));
}

/// Shows: 9260/C8.
#[test]
fn a_tsn_is_fast_retransmitted_once() {
    let mut m = single();
    let next = m.open_window(20 * FULL as u64);
    m.send(40, FULL);
    m.sent();
    for i in 1..=3 {
        m.sack(next, &[(1, i)]);
    }
    assert_eq!(m.sent()[0], next);
    // The retransmission is lost as well: reports do not bring it back, the timer does.
    for i in 4..=12 {
        m.sack(next, &[(1, i)]);
        assert!(!m.sent().contains(&next), "report {i}");
    }
    let later = m.during(ms(1_001));
    assert_eq!(m.offsets(&later)[0], next);
}

/// Shows: 9260/H3.
#[test]
fn fast_retransmits_stay_on_their_path_and_timeouts_move() {
    let links = [(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))];
    let mut m = Manual::new(&unlimited("sctp"), &links);
    m.send(10, FULL);
    assert!(m.packets().iter().all(|p| p.path == 0));
    for i in 1..=3 {
        m.sack(0, &[(1, i)]);
    }
    let again = m.packets();
    assert_eq!((again[0].path, m.offsets(&again)[0]), (0, 0), "by reports: the same path");
    let later = m.during(ms(1_001));
    let timed_out: Vec<&Seen> = later.iter().filter(|p| !p.data.is_empty()).collect();
    assert_eq!((timed_out[0].path, m.offsets(&[timed_out[0].clone()])[0]), (1, 0), "by the timer: the other one");
}
