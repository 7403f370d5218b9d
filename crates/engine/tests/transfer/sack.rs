//! Acknowledgements: when a SACK leaves, what is in it, and what one does at the sender (§6.2, §6.7).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::AssocConfig;
use anabranch_wire::{DataFlags, kind};

/// The first DATA of an association is acknowledged at once; from here on the rules are the usual ones.
fn begun(config: &AssocConfig) -> Manual {
    let mut m = Manual::new(config, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    m.message(0, 100);
    assert_eq!(sacks(&m.packets()).len(), 1);
    m
}

fn sacks(seen: &[Seen]) -> Vec<SeenSack> {
    seen.iter().filter_map(|p| p.sack.clone()).collect()
}

/// Shows: 9260/S2.
#[test]
fn every_second_packet_or_after_the_delay() {
    let mut m = begun(&assoc_config("sctp"));
    m.message(1, 100);
    assert!(sacks(&m.packets()).is_empty());
    m.message(2, 100);
    assert_eq!(sacks(&m.packets()).len(), 1, "the second packet");
    m.message(3, 100);
    assert!(sacks(&m.during(ms(199))).is_empty());
    let late = m.during(ms(1));
    assert_eq!(sacks(&late)[0].cum, m.server_first.plus(3), "after 200 ms");
    for offset in 4..104 {
        m.message(offset, 100);
        let due = m.packets();
        assert_eq!(sacks(&due).len() as u32, u32::from(offset % 2 == 1), "packet {offset}");
    }
}

/// Shows: 9260/S2.
#[test]
fn no_setting_delays_a_sack_beyond_half_a_second() {
    let config = changed(assoc_config("sctp"), |c| c.timers.sack_delay = Duration::from_secs(30));
    let mut m = begun(&config);
    m.message(1, 100);
    assert_eq!(sacks(&m.during(ms(500))).len(), 1);
}

/// Shows: 9260/S1, 9260/S3, 9260/S6.
#[test]
fn a_gap_is_reported_at_once_by_each_packet_until_it_is_filled() {
    let mut m = begun(&assoc_config("sctp"));
    for offset in 2..12 {
        m.message(offset, 100);
        let due = sacks(&m.packets());
        assert_eq!(due.len(), 1, "one for each packet");
        assert_eq!((due[0].cum, &due[0].gaps[..]), (m.server_first, &[(2, offset as u16)][..]));
    }
    m.message(1, 100);
    let due = sacks(&m.packets());
    assert_eq!((due.len(), due[0].cum), (1, m.server_first.plus(11)), "the filler too");
    assert!(due[0].gaps.is_empty());
    m.message(12, 100);
    assert!(sacks(&m.packets()).is_empty(), "back to normal");
}

/// Shows: 9260/S1, 9260/S3.
#[test]
fn whatever_the_order_all_of_the_window_is_acknowledged_and_a_packet_gets_one_sack() {
    let mut m = begun(&assoc_config("sctp"));
    let mut r = anabranch_base::RandomStream::named(4, "order");
    let mut left: Vec<u32> = (1..300).collect();
    while !left.is_empty() {
        let chunks: Vec<Vec<u8>> = (0..3)
            .filter_map(|_| {
                let at = r.below(left.len().max(1) as u64) as usize;
                (at < left.len()).then(|| left.swap_remove(at))
            })
            .map(|o| m.data(o, 1, 0, DataFlags { unordered: true, ..WHOLE }, b"abc"))
            .collect();
        let list: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        m.receive(0, &list);
        assert!(sacks(&m.packets()).len() <= 1);
    }
    let last = m.during(ms(200));
    let cum = sacks(&last).last().map(|s| s.cum);
    assert!(cum.is_none_or(|c| c == m.server_first.plus(299)));
    assert_eq!(m.read().len(), 300);
    m.message(300, 10);
    m.message(301, 10);
    assert_eq!(sacks(&m.packets())[0].cum, m.server_first.plus(301));
}

/// Shows: 9260/S4.
#[test]
fn a_packet_with_nothing_but_duplicates_is_answered_at_once_and_lists_them() {
    let mut m = begun(&assoc_config("sctp"));
    m.message(1, 100);
    m.message(2, 100);
    m.packets();
    m.message(1, 100);
    let due = sacks(&m.packets());
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].duplicates, [m.server_first.plus(1)]);
    m.message(3, 100);
    m.message(4, 100);
    assert!(sacks(&m.packets())[0].duplicates.is_empty(), "reported once");
    assert_eq!(m.read().len(), 5);
}

/// Shows: 9260/S5, ext/B1.
#[test]
fn the_i_bit_is_obeyed() {
    let mut m = begun(&assoc_config("sctp"));
    let urgent = m.data(1, 0, 0, DataFlags { immediate: true, unordered: true, ..WHOLE }, b"now");
    m.receive(0, &[&urgent]);
    assert_eq!(sacks(&m.packets()).len(), 1);
}

/// Whatever stands around the bit: first, middle or last fragment, ordered or not, new or a repetition; and a chunk
/// without it is acknowledged as ever.
///
/// Shows: ext/B3.
#[test]
fn the_i_bit_needs_no_reason() {
    let mut m = begun(&assoc_config("sctp"));
    let flags = |immediate, begin, end| DataFlags { immediate, unordered: false, begin, end };
    for (offset, begin, end) in [(1, true, false), (3, false, false), (5, false, true)] {
        let chunk = m.data(offset, 0, 0, flags(true, begin, end), b"now");
        m.receive(0, &[&chunk]);
        assert_eq!(sacks(&m.packets()).len(), 1, "{offset}");
        if !end {
            let between = m.data(offset + 1, 0, 0, flags(false, false, false), b"on");
            m.receive(0, &[&between]);
        }
        m.packets();
        m.receive(0, &[&chunk]);
        assert_eq!(sacks(&m.packets()).len(), 1, "a repetition");
    }
    let mut m = begun(&assoc_config("sctp"));
    m.message(1, 100);
    assert!(sacks(&m.packets()).is_empty(), "without it a lone packet waits for the next");
    assert_eq!(sacks(&m.during(ms(201))).len(), 1);
}

/// Shows: 9260/S7, 9260/P14.
#[test]
fn as_many_gap_blocks_as_fit_the_lowest_first() {
    let mut m = begun(&assoc_config("sctp"));
    for i in 1..=400 {
        m.message(2 * i, 1);
    }
    let due = m.packets();
    let (packet, last) = (due.last().expect("a packet"), sacks(&due).pop().expect("a SACK"));
    assert!(packet.len > 1_200 - 8 && packet.len <= 1_200, "{} bytes", packet.len);
    let wanted: Vec<(u16, u16)> = (1..=last.gaps.len() as u16).map(|i| (2 * i, 2 * i)).collect();
    assert_eq!(last.gaps, wanted, "rising, apart, none left out");
    assert!(last.gaps.len() >= 290, "{}", last.gaps.len());
}

/// Shows: 9260/S8, 9260/S9.
#[test]
fn a_full_buffer_drops_what_is_new_at_the_top_and_keeps_what_it_acknowledged() {
    let config = changed(assoc_config("sctp"), |c| c.limits.receive_buffer = 20_000);
    let mut m = begun(&config);
    m.b.auto_read = false;
    m.read();
    let mut top = 1;
    // A hole at 1 from the start.
    let last = loop {
        top += 1;
        assert!(top < 40);
        m.message(top, 1_000);
        let due = sacks(&m.packets());
        assert_eq!(due.len(), 1, "at once");
        if due[0].a_rwnd == 0 {
            break due[0].clone();
        }
    };
    let held = last.gaps.clone();
    for beyond in 1..6 {
        m.message(top + beyond, 1_000);
        let due = sacks(&m.packets());
        assert_eq!((due.len(), due[0].a_rwnd), (1, 0), "dropped, and reported at once");
        assert_eq!(due[0].gaps, held, "the dropped one is not reported, the others still are");
    }
    m.message(1, 1_000);
    let due = sacks(&m.packets());
    assert_eq!(due[0].cum, m.server_first.plus(u32::from(held[0].1)), "the lower one was taken");
    m.b.auto_read = true;
    assert_eq!(m.read().len(), 1 + usize::from(held[0].1), "all that was acknowledged is there");
}

/// Shows: 9260/S14.
#[test]
fn a_sack_goes_where_the_last_data_came_from() {
    let mut m = begun(&assoc_config("cmt"));
    for (offset, path) in [(1, 1), (3, 0), (5, 1), (7, 1), (9, 0)] {
        for o in [offset, offset + 1] {
            let chunk = m.data(o, 0, 0, DataFlags { unordered: true, ..WHOLE }, b"x");
            m.receive(path, &[&chunk]);
        }
        let due: Vec<usize> = m.packets().iter().filter(|p| p.sack.is_some()).map(|p| p.path).collect();
        assert_eq!(due, [path]);
    }
}

/// Shows: 9260/S11.
#[test]
fn after_our_shutdown_it_acknowledges_alone_unless_there_is_a_gap() {
    let mut m = begun(&assoc_config("sctp"));
    let now = m.b.now;
    m.b.assoc(Side::Client).shutdown(now);
    assert!(m.packets().iter().any(|p| p.has(kind::SHUTDOWN)));
    m.message(1, 100);
    let due = m.packets();
    assert!(due.iter().any(|p| p.has(kind::SHUTDOWN)) && sacks(&due).is_empty(), "{due:?}");
    m.message(3, 100);
    let due = m.packets();
    assert!(due.iter().any(|p| p.has(kind::SHUTDOWN)), "{due:?}");
    assert_eq!(sacks(&due)[0].gaps, [(2, 2)]);
    m.message(1, 100);
    let due = m.packets();
    assert!(due.iter().any(|p| p.has(kind::SHUTDOWN)), "{due:?}");
    assert_eq!(sacks(&due)[0].duplicates, [m.server_first.plus(1)]);
}

/// Shows: 9260/S12.
#[test]
fn an_older_sack_is_no_news_and_the_window_counts_from_the_newest() {
    let mut m = Manual::single("sctp");
    m.send(10, FULL);
    assert_eq!(m.sent(), [0, 1, 2, 3]);
    // Two acknowledged; the window holds what is outstanding and not a byte more.
    m.sack_on(0, 2, 2 * FULL as u32, &[]);
    assert!(m.packets().is_empty());
    m.sack_on(0, 1, ROOM, &[]);
    assert!(m.packets().is_empty(), "an older one opens nothing");
    assert_eq!(m.b.assoc(Side::Client).stats().outstanding, 2 * FULL as u64);
    m.sack_on(0, 2, 3 * FULL as u32, &[]);
    assert_eq!(m.sent(), [4]);
    // What is marked for retransmission counts no longer: after the expiry its room is free again.
    m.sack_on(0, 2, 3 * FULL as u32, &[]);
    assert!(m.packets().is_empty());
}

/// Shows: 9260/S13.
#[test]
fn a_withdrawal_is_a_report_and_two_more_are_a_loss() {
    let mut m = Manual::single("sctp");
    m.send(45, 100);
    assert!(m.sent().len() >= 40);
    m.sack(0, &[(1, 3)]);
    m.sack(0, &[(2, 4)]);
    m.sack(1, &[(1, 4)]);
    assert!(!m.sent().contains(&1), "two reports");
    m.sack(1, &[(1, 5)]);
    assert_eq!(m.sent().first(), Some(&1), "three");
    // Taken back and given again before that: nothing happened.
    let mut m = Manual::single("sctp");
    m.send(45, 100);
    m.sent();
    m.sack(0, &[(1, 3)]);
    m.sack(0, &[(2, 4)]);
    m.sack(1, &[(0, 4)]);
    m.sack(1, &[(0, 5)]);
    m.sack(1, &[(0, 6)]);
    assert!(!m.sent().contains(&1));
}

/// Shows: 9260/S13.
#[test]
fn what_the_peer_withdraws_is_sent_again() {
    let mut m = Manual::single("sctp");
    m.send(4, 100);
    m.packets();
    m.sack(0, &[(1, 3)]);
    // Now nothing is in flight, and the second is missing again.
    m.sack(1, &[(1, 2)]);
    let withdrawn = m.b.now;
    assert!(m.during(ms(990)).is_empty());
    let again = m.during(ms(20));
    assert_eq!(m.offsets(&again), [1], "{again:?}");
    assert_eq!(again[0].at, withdrawn + ms(1_000), "one RTO later");
}
