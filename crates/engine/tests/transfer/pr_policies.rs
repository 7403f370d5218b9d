//! Partial reliability as each message asks for it (RFC 7496), and how it is counted.

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AbandonedCount, AbandonedStats, AssocConfig, Event, SendOptions};
use anabranch_policy::registry::Hook;

fn on(stream: u16) -> SendOptions {
    SendOptions { stream: StreamId(stream), ..SendOptions::default() }
}

fn single(config: &AssocConfig) -> Manual {
    Manual::new(config, &[(link(10, 20), link(10, 20))])
}

/// Shows: ext/F15.
#[test]
fn a_message_is_sent_again_as_often_as_it_is_worth() {
    for most in 0..3u16 {
        let mut m = single(&assoc_config("sctp"));
        let o = SendOptions { max_retransmissions: Some(most), ..on(4) };
        assert!(m.b.send(Side::Client, o, vec![1; 2_000]));
        assert_eq!(m.sent(), [0, 1]);
        let seen = m.during(ms(20_000));
        let times = m.offsets(&seen).iter().filter(|o| **o == 0).count();
        assert_eq!(times, usize::from(most));
        assert!(seen.iter().any(|p| p.has(anabranch_wire::kind::FORWARD_TSN)), "the peer has to skip it");
        // A timeout is congestion and backs off whatever became of the message.
        assert!(m.path(0).cwnd <= FULL as u64 && m.path(0).counters.timeouts > u64::from(most));
        let s = m.b.assoc(Side::Client).stats();
        let mut count = AbandonedStats::default();
        count.retransmissions = AbandonedCount { sent: 1, unsent: 0 };
        assert_eq!((s.abandoned, s.abandoned_sent), (count, 1));
        assert_eq!(m.b.assoc(Side::Client).abandoned_on(StreamId(4)), count);
        assert_eq!(m.b.assoc(Side::Client).abandoned_on(StreamId(3)), AbandonedStats::default());
        assert!(m.b.client_events.contains(&Event::Abandoned { messages: 1 }));
    }
}

/// Shows: ext/F4, ext/F15.
#[test]
fn one_fragment_over_the_limit_takes_its_message_along_and_others_stay() {
    let mut b = Bench::connected(3, &assoc_config("sctp"), &[(link(10, 20), link(10, 20))]);
    let mut first = true;
    b.filter = Some(Box::new(move |l| {
        let hit = l.from == Side::Client && l.has(anabranch_wire::kind::DATA) && core::mem::take(&mut first);
        !hit
    }));
    let o = SendOptions { max_retransmissions: Some(0), ..on(1) };
    assert!(b.send(Side::Client, o, numbered(1, 0, 3_000)));
    assert!(b.send(Side::Client, on(1), numbered(1, 1, 3_000)));
    b.run_for(ms(10_000));
    let got: Vec<_> = b.at_server.iter().map(number_of).collect();
    assert_eq!(got, [(1, 1)], "the reliable one of the same stream arrives");
}

/// Shows: ext/F16.
#[test]
fn what_is_less_important_makes_room() {
    let config = changed(assoc_config("sctp"), |c| c.limits.send_buffer = 20_000);
    let mut m = single(&config);
    let with = |p| SendOptions { discard_priority: Some(p), ..on(2) };
    let mut taken = 0;
    // Most of the first are under way at once; the rest wait in the buffer.
    while m.b.send(Side::Client, with(if taken < 8 { 5 } else { 7 }), numbered(2, taken, 1_000)) {
        taken += 1;
        m.b.flush();
    }
    assert!(taken >= 12, "{taken}");
    assert!(!m.b.send(Side::Client, with(7), numbered(2, 100, 1_000)), "as important as what is there");
    assert!(!m.b.send(Side::Client, with(9), numbered(2, 101, 1_000)), "less important");
    assert_eq!(m.b.assoc(Side::Client).stats().abandoned, AbandonedStats::default(), "nothing was dropped for that");
    assert!(m.b.send(Side::Client, with(6), numbered(2, 102, 1_000)));
    assert!(m.b.send(Side::Client, on(3), numbered(3, 103, 2_000)), "reliable: above all of them");
    let s = m.b.assoc(Side::Client).stats();
    let dropped = s.abandoned.priority.unsent;
    assert!((2..=4).contains(&dropped), "{dropped}");
    assert_eq!((s.abandoned_unsent, s.abandoned.priority.sent), (dropped, 0));
    assert_eq!(m.b.assoc(Side::Client).abandoned_on(StreamId(2)).priority.unsent, dropped);
    // What was dropped took neither TSN nor SSN.
    let mut next = 0;
    let mut ssn = 0;
    for _ in 0..30 {
        for d in m.packets().iter().flat_map(|p| &p.data) {
            next = d.tsn.distance(m.client_first) + 1;
            if d.stream == 2 {
                assert_eq!(d.ssn, ssn);
                ssn += 1;
            }
        }
        m.sack(next, &[]);
    }
    // One more of priority 6, and a reliable one of two fragments.
    assert_eq!(u64::from(next), u64::from(taken) + 3 - dropped);
}

#[test]
fn each_policy_alone_does_its_part_only() {
    for (spec, again, makes_room) in
        [("retransmissions", 0, false), ("priority", 3, true), ("lifetime", 3, false), ("never", 3, false)]
    {
        let mut config = changed(assoc_config("sctp"), |c| c.limits.send_buffer = 6_000);
        config.profile.set(Hook::Abandon, spec).expect("registered");
        let mut m = single(&config);
        let o = SendOptions { max_retransmissions: Some(0), ..on(1) };
        assert!(m.b.send(Side::Client, o, vec![1; 500]));
        m.packets();
        let seen = m.during(ms(7_500));
        assert_eq!(seen.iter().filter(|p| !p.data.is_empty()).count(), again, "{spec}");
        let low = SendOptions { discard_priority: Some(9), ..on(2) };
        while m.b.send(Side::Client, low, vec![1; 700]) {}
        assert_eq!(m.b.send(Side::Client, on(2), vec![1; 700]), makes_room, "{spec}");
    }
}

/// Shows: ext/F17.
#[test]
fn lifetimes_are_counted_by_whether_anything_left() {
    let mut m = single(&assoc_config("sctp"));
    let late = SendOptions { deadline: Some(m.b.now + ms(100)), ..on(7) };
    for _ in 0..10 {
        assert!(m.b.send(Side::Client, late, vec![1; FULL]));
    }
    assert_eq!(m.sent().len(), 4);
    m.b.run_for(ms(3_000));
    let mut wanted = AbandonedStats::default();
    wanted.lifetime = AbandonedCount { sent: 4, unsent: 6 };
    assert_eq!(m.b.assoc(Side::Client).abandoned_on(StreamId(7)), wanted);
}
