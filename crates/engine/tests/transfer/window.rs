//! The peer's window from the sender's side (§6.1 A): no dribbles, and what a closed one lets out.

use crate::common::manual::*;

/// Shows: 9260/D3.
#[test]
fn a_window_that_opens_by_little_lets_out_little_by_little_nothing() {
    // A long message: no fragment is made smaller to fit the window.
    let mut m = Manual::single("sctp");
    m.send(1, 20_000);
    assert_eq!(m.sent(), [0, 1, 2, 3]);
    for room in [1, 100, 600, FULL as u32 - 1] {
        m.sack_on(0, 2, 2 * FULL as u32 + room, &[]);
        assert!(m.sent().is_empty(), "{room} bytes");
    }
    m.sack_on(0, 2, 3 * FULL as u32, &[]);
    let seen = m.packets();
    assert_eq!(seen[0].data.iter().map(|d| d.payload.len()).collect::<Vec<_>>(), [FULL]);
    // Short messages: they wait for a packet's worth of window while something is under way, and leave together.
    let mut m = Manual::single("sctp");
    m.send(200, 50);
    let first = m.sent().len() as u32;
    assert!(first > 40);
    let outstanding = u64::from(first - 20) * 50;
    for room in [50, 300, 1_100] {
        m.sack_on(0, 20, outstanding as u32 + room, &[]);
        assert!(m.sent().is_empty(), "{room} bytes");
    }
    m.sack_on(0, 20, outstanding as u32 + FULL as u32, &[]);
    assert!(m.sent().len() > 10);
    // The last few bytes need not wait for company.
    let mut m = Manual::single("sctp");
    m.send(2, 1_000);
    m.sent();
    m.sack_on(0, 1, 1_100, &[]);
    m.send(1, 60);
    assert_eq!(m.sent(), [2]);
}

#[test]
fn with_nothing_under_way_a_small_window_is_used() {
    let mut m = Manual::single("sctp");
    m.send(200, 50);
    let all = m.sent().len() as u32;
    assert!(all < 150, "{all}");
    m.sack_on(0, all, 300, &[]);
    assert_eq!(m.sent().len(), 6, "as many as the window holds");
}
