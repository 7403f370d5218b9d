//! Delayed acknowledgement for CMT: gaps between paths hurry no SACK, and a SACK says how many packets it answers.

use crate::common::raw::{PEER_TAG, PEER_TSN, Raw, bytes, data};
use crate::common::*;
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Hook;
use anabranch_sim::LossConfig;
use anabranch_wire::{Chunk, Packet, Parameter, Verify, kind};
use bytes::Bytes;

fn config(counting: bool, acknowledge: &str) -> AssocConfig {
    let mut c = assoc_config("cmt");
    c.profile.set(Hook::LossCount, if counting { "delayed_ack_cmt" } else { "per_path" }).expect("registered");
    c.profile.set(Hook::Acknowledge, acknowledge).expect("registered");
    c
}

/// Two paths of very different delay, so that gaps are the normal case.
fn pair(client: &AssocConfig, server: &AssocConfig, loss: f64) -> Bench {
    let one = |d| link(10, d).with_loss(LossConfig::bernoulli(loss));
    let mut b = Bench::pair(6, client, server);
    for (i, d) in [10, 40].into_iter().enumerate() {
        b.paths.add(&format!("path{i}"), one(d), one(d));
    }
    b.tap = Some(vec![]);
    b.strict = true;
    b.connect(client);
    b.run_for(ms(3_000));
    b
}

/// The counts of the server's SACKs.
fn counts(b: &Bench) -> Vec<u8> {
    let of = |bytes: &Bytes| {
        let p = Packet::parse(bytes, Verify::Checksum).expect("a packet");
        p.chunks().flatten().find_map(|c| if c.kind == kind::SACK { Some(c.flags) } else { None })
    };
    b.tapped(Side::Server, kind::SACK).iter().filter_map(|t| of(&t.3)).collect()
}

fn announced(b: &Bench, side: Side, chunk: u8) -> bool {
    let t = b.tapped(side, chunk)[0];
    let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
    p.chunks().flatten().any(|c| match c.decode() {
        Ok(Chunk::Init(i)) => i.params.iter().flatten().any(|p| p == Parameter::PacketCount),
        Ok(Chunk::InitAck(i)) => i.params.iter().flatten().any(|p| p == Parameter::PacketCount),
        _ => false,
    })
}

/// Shows: ext/L6.
#[test]
fn announced_by_who_counts_and_answered_by_who_does_too() {
    for (client, server) in [(true, true), (true, false), (false, true), (false, false)] {
        let (c, s) = (config(client, "delayed_ack_cmt"), config(server, "delayed_ack_cmt"));
        let mut b = pair(&c, &s, 0.0);
        assert_eq!(announced(&b, Side::Client, kind::INIT), client);
        assert_eq!(announced(&b, Side::Server, kind::INIT_ACK), client && server);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 500, ms(10_000)).expect("arrives");
        let list = counts(&b);
        if client {
            assert!(list.iter().filter(|n| **n == 2).count() > list.len() / 2, "{list:?}");
            assert!(list.iter().all(|n| *n <= 3));
        } else {
            assert!(list.iter().all(|n| *n == 0), "a peer that did not ask gets plain SACKs");
        }
    }
}

/// Shows: ext/L6.
///
/// Each SACK counts the packets since the one before it, no more and no less.
#[test]
fn the_counter_begins_anew_with_every_sack() {
    let mut r = Raw::with(&config(false, "delayed_ack_cmt"), |_| {});
    r.handshake(PEER_TAG, &bytes(&Parameter::PacketCount));
    r.take();
    let mut tsn = PEER_TSN;
    let mut ssn = 0;
    let mut give = |r: &mut Raw, skip: u32| {
        tsn = tsn.plus(skip);
        r.give(&[&data(tsn, ssn, b"x")]);
        (tsn, ssn) = (tsn.next(), ssn + 1);
    };
    let counted = |r: &mut Raw| -> Vec<u8> {
        let sacks = r.take().into_iter().filter(|s| s.kinds() == [kind::SACK]);
        sacks.map(|s| s.flags()).collect()
    };
    // The first packet of all is acknowledged at once.
    give(&mut r, 0);
    assert_eq!(counted(&mut r), [1]);
    for _ in 0..3 {
        give(&mut r, 0);
        assert_eq!(counted(&mut r), []);
        give(&mut r, 0);
        assert_eq!(counted(&mut r), [2], "two");
    }
    // One, and the timer.
    for _ in 0..3 {
        give(&mut r, 0);
        r.run_for(ms(250));
        assert_eq!(counted(&mut r), [1], "the timer");
    }
    // A gap hurries nothing: again two by two.
    give(&mut r, 1);
    assert_eq!(counted(&mut r), []);
    give(&mut r, 0);
    assert_eq!(counted(&mut r), [2], "beside a gap");
    give(&mut r, 0);
    r.run_for(ms(250));
    assert_eq!(counted(&mut r), [1], "beside a gap, the timer");
}

/// Shows: ext/L5.
#[test]
fn reordering_between_paths_costs_half_the_acknowledgements() {
    let sacks = |acknowledge| {
        let c = config(true, acknowledge);
        let mut b = pair(&c, &c, 0.0);
        let mut flow = Flow::new(Side::Client, 0, 1_000);
        flow.transfer(&mut b, 3_000, ms(30_000)).expect("arrives");
        assert_eq!(b.assoc(Side::Client).stats().retransmissions, 0, "{acknowledge}: nothing was lost");
        b.assoc(Side::Server).stats().sacks_sent
    };
    let (hurried, delayed) = (sacks("rfc9260"), sacks("delayed_ack_cmt"));
    assert!(delayed * 10 < hurried * 7, "{delayed} against {hurried}");
}

#[test]
fn losses_are_still_noticed_by_reports() {
    let c = config(true, "delayed_ack_cmt");
    let mut b = pair(&c, &c, 0.01);
    let mut flow = Flow::new(Side::Client, 0, 1_000);
    assert!(flow.transfer(&mut b, 4_000, ms(60_000)).is_some(), "{}", flow.got);
    let total = |f: fn(&anabranch_engine::PathCounters) -> u64, b: &mut Bench| -> u64 {
        b.assoc(Side::Client).paths().map(|(_, p)| f(&p.counters)).sum()
    };
    let (reported, timed_out) = (total(|c| c.lost_by_report, &mut b), total(|c| c.timeouts, &mut b));
    assert!(reported > 20 && timed_out * 5 < reported, "{reported} by reports, {timed_out} timeouts");
}
