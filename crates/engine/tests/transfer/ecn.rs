//! Explicit congestion notification: queues mark, ECNE tells the sender, CWR answers
//! (draft-stewart-tsvwg-sctpecn as coded elsewhere; RFC 4960 appendix A; RFC 3168).

use crate::common::manual::*;
use crate::common::page::{count, figure};
use crate::common::*;
use anabranch_engine::AssocConfig;
use anabranch_wire::{Chunk, Cwr, Ecne, Packet, Parameter, Verify, kind};

fn config(profile: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.extensions.ecn = true;
        c.sending.max_burst = 0;
    })
}

fn one(config: &AssocConfig, server: &AssocConfig) -> Bench {
    let mut b = Bench::pair(5, config, server);
    b.paths.add("path0", link(10, 20), link(10, 20));
    b.strict = true;
    b.tap = Some(vec![]);
    b.connect(config);
    b.run_for(ms(3_000));
    b
}

fn announced(b: &Bench, side: Side, chunk: u8) -> bool {
    let t = b.tapped(side, chunk)[0];
    let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
    p.chunks().flatten().any(|c| match c.decode() {
        Ok(Chunk::Init(i)) => i.params.iter().flatten().any(|p| p == Parameter::EcnCapable),
        Ok(Chunk::InitAck(i)) => i.params.iter().flatten().any(|p| p == Parameter::EcnCapable),
        _ => false,
    })
}

/// Marks the `n`th packet that may be marked, counted from 0.
fn mark_nth(n: usize) -> Option<Filter> {
    let mut seen = 0;
    Some(Box::new(move |_| {
        seen += 1;
        seen == n + 1
    }))
}

fn ecne(b: &Bench) -> Vec<Ecne> {
    let of = |t: &&(anabranch_base::Instant, Side, usize, bytes::Bytes)| {
        let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
        p.chunks().flatten().find_map(|c| if let Ok(Chunk::Ecne(e)) = c.decode() { Some(e) } else { None })
    };
    b.tapped(Side::Server, kind::ECNE).iter().filter_map(of).collect()
}

#[test]
fn it_is_used_when_both_announced_it_and_never_else() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let with = |ecn| changed(assoc_config("sctp"), |c| c.extensions.ecn = ecn);
        let mut b = one(&with(ours), &with(theirs));
        assert_eq!(announced(&b, Side::Client, kind::INIT), ours);
        assert_eq!(announced(&b, Side::Server, kind::INIT_ACK), ours && theirs);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 100, ms(10_000)).expect("arrives");
        assert_eq!(b.markable > 0, ours && theirs);
    }
}

/// Only packets with nothing but new data may be marked.
#[test]
fn repetitions_and_control_leave_without_the_bits() {
    let mut b = one(&config("sctp"), &config("sctp"));
    b.filter = drop_first(Side::Client, kind::DATA, 3);
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 3, ms(10_000)).expect("arrives");
    // The three that were dropped left before the count; their repetitions are all there is.
    assert_eq!(b.markable, 0);
    assert!(b.tapped(Side::Client, kind::DATA).len() > 3);
}

/// A mark costs what a loss costs, without the loss: half the window, once for all that was in flight.
#[test]
fn marks_cut_the_window_once_for_each_window() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = one(&config(profile), &config(profile));
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 200, ms(20_000)).expect("arrives");
        b.run_for(ms(200));
        let before = b.path(Side::Client, 0);
        assert_eq!(before.counters.cuts_by_mark, 0);
        b.tap = Some(vec![]);
        // Every packet of one window's worth is marked.
        let mut left = 20;
        b.marker = Some(Box::new(move |_| {
            left -= i32::from(left > 0);
            left > 0
        }));
        flow.transfer(&mut b, 20, ms(20_000)).expect("arrives");
        b.run_for(ms(200));
        let after = b.path(Side::Client, 0);
        assert_eq!(after.counters.cuts_by_mark, 1, "{profile}: {} packets in flight", before.cwnd / 1_000);
        assert!(after.cwnd < before.cwnd, "{profile}: {} after {}", after.cwnd, before.cwnd);
        assert_eq!(after.counters.data_retransmitted, before.counters.data_retransmitted, "nothing was lost");
        let arrived = b.path(Side::Server, 0).counters.marked_received;
        assert!(arrived >= 19, "{arrived}");
        // In the next window it is news.
        b.run_for(ms(1_000));
        b.marker = mark_nth(0);
        flow.transfer(&mut b, 20, ms(20_000)).expect("arrives");
        b.run_for(ms(200));
        assert_eq!(b.path(Side::Client, 0).counters.cuts_by_mark, 2, "{profile}");
    }
}

/// The receiver repeats itself in front of each SACK until CWR comes.
#[test]
fn the_echo_goes_on_until_the_answer_comes() {
    let mut b = one(&config("sctp"), &config("sctp"));
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 50, ms(20_000)).expect("arrives");
    b.tap = Some(vec![]);
    b.marker = mark_nth(0);
    b.filter = Some(Box::new(|l| !l.has(kind::CWR)));
    flow.transfer(&mut b, 30, ms(20_000)).expect("arrives");
    let list = ecne(&b);
    assert!(list.len() > 5 && list.iter().all(|e| *e == list[0]) && list[0].marked == 1, "{list:?}");
    let sacks = b.tapped(Side::Server, kind::ECNE);
    assert!(sacks.iter().all(|t| kinds(&t.3).starts_with(&[kind::ECNE, kind::SACK])), "in front of the SACK");
    assert!(!b.tapped(Side::Client, kind::CWR).is_empty(), "each echo is answered");
    assert_eq!(b.path(Side::Client, 0).counters.cuts_by_mark, 1, "and cuts once");
    b.filter = None;
    flow.transfer(&mut b, 10, ms(20_000)).expect("arrives");
    b.run_for(ms(500));
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 30, ms(20_000)).expect("arrives");
    assert!(ecne(&b).is_empty(), "answered");
}

/// What a peer makes up costs at most what a mark costs, and answers stay as few as its packets.
#[test]
fn made_up_marks_are_no_news_twice_and_none_of_what_was_never_sent() {
    let mut m = Manual::new(&config("sctp"), &[(link(10, 20), link(10, 20))]);
    m.send(20, FULL);
    let sent = m.sent().len() as u32;
    let before = m.path(0).cwnd;
    let tell = |m: &mut Manual, offset: u32| {
        let e = encoded(&Ecne { tsn: m.client_first.plus(offset), marked: 1 });
        m.receive(0, &[&e, &e, &e]);
        m.packets().iter().filter(|p| p.has(kind::CWR)).count()
    };
    assert_eq!(tell(&mut m, sent + 5), 0, "never sent: not even an answer");
    assert_eq!((m.path(0).cwnd, m.path(0).counters.cuts_by_mark), (before, 0));
    assert_eq!(tell(&mut m, 0), 1, "three in one packet have one answer");
    for offset in 0..sent {
        tell(&mut m, offset);
    }
    let cuts = m.path(0).counters.cuts_by_mark;
    figure(
        "transfer/ecn.rs::made_up_marks_are_no_news_twice_and_none_of_what_was_never_sent",
        &format!("every TSN in flight marked three times: {}", count(cuts, "cut")),
    );
    // And a made-up answer only stops the echo.
    let e = encoded(&Cwr { flags: 0, tsn: m.client_first });
    m.receive(0, &[&e]);
}

/// To a peer that did not agree the chunks are unknown.
#[test]
fn without_agreement_the_chunks_mean_nothing() {
    let mut m = Manual::new(&assoc_config("sctp"), &[(link(10, 20), link(10, 20))]);
    m.send(10, FULL);
    m.packets();
    let e = encoded(&Ecne { tsn: m.client_first, marked: 1 });
    m.receive(0, &[&e]);
    assert_eq!(m.path(0).counters.cuts_by_mark, 0);
    assert!(m.packets().iter().all(|p| !p.has(kind::CWR)));
}

/// Two paths: the mark is of the one that carried the packet.
#[test]
fn only_the_window_of_the_marked_path_is_cut() {
    let c = config("cmt");
    let mut b = Bench::connected(5, &c, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    flow.transfer(&mut b, 300, ms(20_000)).expect("arrives");
    b.marker = Some(Box::new(|l| l.from == Side::Client && l.path == 1));
    flow.transfer(&mut b, 300, ms(20_000)).expect("arrives");
    let cuts = [0, 1].map(|p| b.path(Side::Client, p).counters.cuts_by_mark);
    assert!(cuts[0] == 0 && cuts[1] >= 2, "{cuts:?}");
}
