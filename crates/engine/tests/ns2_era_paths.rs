//! The switches of older implementations that matter with several paths, each beside what happens without it.

mod common;

use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Hook;
use anabranch_wire::{Packet, Verify, kind};
use common::manual::*;
use common::*;

/// What is in flight when path 0 loses its first chunks: offsets on each path.
struct Loss {
    m: Manual,
    next: u32,
    on: [Vec<u32>; 2],
}

/// Two full windows. What is sent again goes to the path with the larger window, which is path 1 once path 0 lost.
fn loss(quirk: &str, on: bool) -> Loss {
    let mut c = AssocConfig { max_burst: 0, ..assoc_config("cmt") };
    c.profile.set(Hook::Retransmission, "rtx_cwnd").expect("registered");
    assert!(c.quirks.set(quirk, on), "{quirk}");
    let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
    let next = m.open_window(20 * FULL as u64);
    m.send(90, FULL);
    let seen = m.packets();
    let of = |path| -> Vec<u32> { m.offsets(&seen.iter().filter(|p| p.path == path).cloned().collect::<Vec<_>>()) };
    let sent = [of(0), of(1)];
    assert!(sent[0].len() >= 18 && sent[1].len() >= 10, "{sent:?}");
    Loss { m, next, on: sent }
}

impl Loss {
    /// The gap blocks that acknowledge these, and the cumulative TSN.
    fn report(&mut self, got: &[u32]) {
        let gaps: Vec<(u16, u16)> = got.iter().map(|o| ((o - self.next) as u16, (o - self.next) as u16)).collect();
        self.m.sack(self.next, &gaps);
    }
}

/// Three SACKs that report everything of path 0 but its first `lost` chunks; answers what leaves after the third: what
/// is sent again, and what is new on path 0 and on path 1.
fn reported(quirk: &str, on: bool, lost: usize) -> (Vec<u32>, [usize; 2]) {
    let mut l = loss(quirk, on);
    let first = l.on[0].clone();
    l.report(&first[lost..lost + 1]);
    l.report(&first[lost..lost + 2]);
    let top = l.m.sent().into_iter().chain(first.iter().copied()).chain(l.on[1].clone()).max().expect("some");
    l.report(&first[lost..]);
    let (halved, other) = (l.m.path(0), l.m.path(1));
    assert!(halved.cwnd < other.cwnd, "cut: {} {}", halved.cwnd, other.cwnd);
    let seen = l.m.packets();
    let again: Vec<u32> = l.m.offsets(&seen).into_iter().filter(|o| *o <= top).collect();
    assert!(again.iter().all(|o| first[..lost].contains(o)), "{again:?}");
    let new = |path| {
        let of: Vec<Seen> = seen.iter().filter(|p| p.path == path).cloned().collect();
        l.m.offsets(&of).iter().filter(|o| **o > top).count()
    };
    (again, [new(0), new(1)])
}

#[test]
fn the_packet_beside_the_window_stays_with_the_path_that_lost_it() {
    for on in [false, true] {
        let (again, _) = reported("pass_on_lossy_path", on, 12);
        assert_eq!(again.len(), usize::from(!on), "path 1 is the target and full");
    }
}

#[test]
fn what_is_given_as_lost_holds_its_place_in_the_window() {
    for on in [false, true] {
        let (again, new) = reported("marked_hold_window", on, 13);
        assert_eq!(again.len(), 1);
        assert!(if on { new == [0, 0] } else { new[0] >= 5 && new[1] == 0 }, "{on}: {new:?}");
    }
}

#[test]
fn no_new_data_on_any_path_while_something_waits_to_be_sent_again() {
    for on in [false, true] {
        let (again, new) = reported("repairs_first", on, 3);
        assert_eq!(again.len(), 1, "two wait");
        assert!(if on { new == [0, 0] } else { new[0] >= 5 }, "{on}: {new:?}");
    }
}

#[test]
fn a_sack_of_the_delay_timer_counts_no_packet() {
    for on in [false, true] {
        let mut c = assoc_config("cmt");
        c.profile.set(Hook::LossCount, "delayed_ack_cmt").expect("registered");
        c.profile.set(Hook::Acknowledge, "delayed_ack_cmt").expect("registered");
        assert!(c.quirks.set("timer_counts_none", on));
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20))]);
        let mut counts = |messages: core::ops::Range<u32>| {
            messages.for_each(|i| m.message(i, 100));
            m.b.run_for(ms(300));
            let tap = m.b.tap.replace(vec![]).expect("tapped");
            let count = |bytes: &bytes::Bytes| {
                let p = Packet::parse(bytes, Verify::Checksum).expect("a packet");
                p.chunks().flatten().find_map(|c| (c.kind == kind::SACK).then_some(c.flags))
            };
            tap.iter().filter_map(|t| count(&t.3)).collect::<Vec<u8>>()
        };
        assert_eq!(counts(0..1), [1], "the first DATA is acknowledged at once");
        assert_eq!(counts(1..2), [u8::from(!on)], "this one waits for the timer");
        assert_eq!(counts(2..4), [2], "and the count begins anew");
    }
}
