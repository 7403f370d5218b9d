//! Rules of older implementations that matter with several paths, each beside what happens without it.

use crate::common::manual::*;
use crate::common::*;
use anabranch_policy::registry::Hook;
use anabranch_wire::{CountedSack, GapBlock, SackOut, kind};

/// What is in flight when path 0 loses its first chunks: offsets on each path.
struct Loss {
    m: Manual,
    next: u32,
    on: [Vec<u32>; 2],
}

/// Two full windows. What is sent again goes to the path with the larger window, which is path 1 once path 0 lost.
fn loss(rule: &str, on: bool) -> Loss {
    let mut c = changed(assoc_config("cmt"), |c| c.sending.max_burst = 0);
    c.profile.set(Hook::Retransmission, "rtx_cwnd").expect("registered");
    choose(&mut c, rule, on);
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
fn reported(rule: &str, on: bool, lost: usize) -> (Vec<u32>, [usize; 2]) {
    let mut l = loss(rule, on);
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
        let (again, _) = reported("recovery=ns2_cmt", on, 12);
        assert_eq!(again.len(), usize::from(!on), "path 1 is the target and full");
    }
}

#[test]
fn what_is_given_as_lost_holds_its_place_in_the_window() {
    for on in [false, true] {
        let (again, new) = reported("recovery=ns2_cmt", on, 13);
        assert_eq!(again.len(), usize::from(!on), "its packet beside the window stays with the path that lost it");
        assert!(if on { new == [0, 0] } else { new[0] >= 5 && new[1] == 0 }, "{on}: {new:?}");
    }
}

#[test]
fn no_new_data_on_any_path_while_something_waits_to_be_sent_again() {
    for on in [false, true] {
        let (again, new) = reported("recovery=ns2_sctp", on, 3);
        assert_eq!(again.len(), 1, "two wait");
        assert!(if on { new == [0, 0] } else { new[0] >= 5 }, "{on}: {new:?}");
    }
}

#[test]
fn a_sack_goes_back_the_way_its_packet_came() {
    for on in [false, true] {
        let mut c = assoc_config("cmt");
        choose(&mut c, "sacks_follow_data", on);
        let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
        // The server's HEARTBEAT on path 0 is not answered.
        b.filter = Some(Box::new(|l| l.path != 0 || l.from == Side::Server || !l.has(kind::HEARTBEAT_ACK)));
        b.run_for(ms(60_000));
        b.tap = Some(vec![]);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 200, ms(20_000)).expect("arrives");
        let sent = |side, chunk, path| b.tapped(side, chunk).iter().filter(|t| t.2 == path).count();
        assert!(sent(Side::Client, kind::DATA, 0) > 20 && sent(Side::Client, kind::DATA, 1) > 20);
        let sacks = [0, 1].map(|path| sent(Side::Server, kind::SACK, path));
        assert!(if on { sacks[0] > 10 } else { sacks[0] == 0 } && sacks[1] > 10, "{on}: {sacks:?}");
    }
}

#[test]
fn what_is_acknowledged_cumulatively_makes_no_sack_one_of_two_paths() {
    for on in [false, true] {
        let mut c = changed(assoc_config("cmt"), |c| c.sending.max_burst = 0);
        c.profile.set(Hook::LossCount, "delayed_ack_cmt").expect("registered");
        c.profile.set(Hook::Acknowledge, "delayed_ack_cmt").expect("registered");
        choose(&mut c, "loss_count=delayed_ack_cmt:gaps=1", on);
        let mut m = Manual::new(&c, &[(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))]);
        m.open_window(10 * FULL as u64);
        m.send(40, FULL);
        let seen = m.packets();
        let of = |path| -> Vec<u32> { m.offsets(&seen.iter().filter(|p| p.path == path).cloned().collect::<Vec<_>>()) };
        // The chunk that is lost comes right after one of the other path.
        let after = |own: Vec<u32>, other: Vec<u32>| {
            let lost = own.iter().copied().find(|o| *o > 0 && other.contains(&(o - 1)))?;
            Some((lost, own.into_iter().filter(|o| *o > lost).collect::<Vec<u32>>()))
        };
        let (lost, later) = after(of(0), of(1)).or_else(|| after(of(1), of(0))).expect("both carry data");
        let mut sack = |next: u32, got: &[u32], packets| {
            let gaps: Vec<GapBlock> =
                got.iter().map(|o| (o - next + 1) as u16).map(|o| GapBlock { start: o, end: o }).collect();
            let cum_tsn = m.client_first.plus(next).minus(1);
            let sack = SackOut { cum_tsn, a_rwnd: ROOM, gaps: &gaps, duplicates: &[] };
            m.receive(0, &[&encoded(&CountedSack { sack, packets })]);
            m.sent().contains(&lost)
        };
        sack(lost - 1, &[], 2);
        assert!(!sack(lost, &later[..1], 2), "two reports, or one of two paths");
        assert_eq!(sack(lost, &later[..2], 1), on, "and one more");
    }
}
