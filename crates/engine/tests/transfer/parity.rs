//! Parity: what is lost is restored without being sent again, counts as lost nevertheless, and does no harm whatever is
//! lost, late or forged.

use crate::common::page::{figure, grouped, memory};
use crate::common::raw::{self, PEER_TAG, PEER_TSN, Raw};
use crate::common::*;
use anabranch_base::{Duration, Tsn};
use anabranch_engine::{AssocConfig, Phase, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_sim::{Direction, Jitter, LinkConfig, LossConfig, Setting};
use anabranch_wire::{Chunk, Packet, Parameter, Parity, RepairedOut, Verify, kind};
use proptest::prelude::*;

/// Both ends make parity for messages that are due 60 ms after they were handed over, and restore from it.
fn with_parity(profile: &str, redundancy: &str) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.profile.set(Hook::Redundancy, redundancy).expect("registered");
        c.profile.set(Hook::Repair, "erasure").expect("registered");
    })
}

const TIGHT: &str = "erasure:latency=60";

fn two_paths() -> [(LinkConfig, LinkConfig); 2] {
    [(link(20, 20), link(20, 20)), (link(20, 25), link(20, 25))]
}

/// A message of 1,000 bytes every 2 ms for `ms_long`, on stream 3, unordered; how long each took that came.
fn stream(b: &mut Bench, ms_long: u64) -> Vec<Option<Duration>> {
    let mut sent = vec![];
    let mut took = vec![];
    let until = b.now + ms(ms_long);
    let mut take = |b: &mut Bench, sent: &[anabranch_base::Instant]| {
        took.resize(sent.len(), None);
        for m in core::mem::take(&mut b.at_server) {
            let n = number_of(&m).1 as usize;
            assert!(took[n].replace(b.now.since(sent[n])).is_none(), "message {n} twice");
        }
        took.clone()
    };
    while b.now < until {
        let options = SendOptions { stream: anabranch_base::StreamId(3), unordered: true, ..SendOptions::default() };
        assert!(b.send(Side::Client, options, numbered(3, sent.len() as u32, 1_000)));
        sent.push(b.now);
        let next = b.now + ms(2);
        while b.run_until(next, |b| !b.at_server.is_empty()) {
            take(b, &sent);
        }
        b.now = next;
        take(b, &sent);
    }
    for _ in 0..3_000 {
        b.run_for(ms(1));
        take(b, &sent);
    }
    take(b, &sent)
}

/// A filter that drops every `every`th packet with DATA of the client on path 0.
fn drop_some(every: u32) -> Option<Filter> {
    let mut n = 0;
    Some(Box::new(move |l| {
        let data = l.from == Side::Client && l.path == 0 && l.has(kind::DATA);
        n += u32::from(data);
        !(data && n.is_multiple_of(every))
    }))
}

fn late(took: &[Option<Duration>]) -> usize {
    took.iter().filter(|t| t.is_none_or(|t| t > ms(60))).count()
}

/// Shows what the whole of it is for: with a deadline too short for a repetition, parity saves most of what is lost;
/// windows are cut as often as before, and next to nothing is sent again.
#[test]
fn what_is_lost_is_restored_in_time_and_counts_as_lost() {
    let run = |config: &AssocConfig| {
        let mut b = Bench::connected(5, config, &two_paths());
        b.strict = true;
        stream(&mut b, 1_000);
        b.filter = drop_some(20);
        let took = stream(&mut b, 10_000);
        let there = b.assoc(Side::Client).stats();
        let here = b.assoc(Side::Server).stats();
        let lost: u64 = b.assoc(Side::Client).paths().map(|p| p.1.counters.lost_by_report).sum();
        (late(&took), took.len(), there, here, lost)
    };
    let (late_without, all, plain, _, lost_without) = run(&assoc_config("cmt"));
    let (late_with, _, sender, receiver, lost_with) = run(&with_parity("cmt", TIGHT));
    assert!(late_without > all / 50, "{late_without} of {all} late without parity");
    assert!(late_with * 3 < late_without, "{late_with} and {late_without} of {all} late");
    assert_eq!(sender.repaired_by_peer + receiver.repaired_needlessly, receiver.repaired);
    assert!(lost_with >= receiver.repaired - receiver.repaired_needlessly);
    // A sum leaves for every tenth message, every 20 ms: some come after the loss was noticed.
    assert!(sender.retransmissions * 3 < plain.retransmissions * 2, "{sender:?} {plain:?}");
    assert!(lost_without > 100 && lost_with * 5 > lost_without * 4, "{lost_with} {lost_without}");
    assert!(sender.parity_bytes_sent * 10 <= sender.bytes_sent + 20_000, "{sender:?}");
    assert_eq!(receiver.parity_received, sender.parity_sent);
}

/// A damaged packet is corrected by check bits that came by the other path, and what was in it is read long before it would be
/// sent again; not where a block has two wrong bits, nor where both ends do not do it.
#[test]
fn a_damaged_packet_is_corrected() {
    let with = changed(assoc_config("cmt"), |c| {
        c.profile.set(Hook::PathScheduler, "primary_only").expect("registered");
        c.profile.set(Hook::Redundancy, "split_error_correction").expect("registered");
        c.profile.set(Hook::Repair, "split_error_correction").expect("registered");
    });
    for (config, flips, read) in [(&with, 0x10, 3), (&with, 0x30, 1), (&assoc_config("cmt"), 0x10, 1)] {
        let mut b = Bench::connected(3, config, &two_paths());
        b.strict = true;
        b.run_for(ms(1_000));
        let (filter, caught) = catch_second();
        b.filter = filter;
        for i in 0..3 {
            assert!(b.send(Side::Client, SendOptions::default(), numbered(0, i, 1_000)));
        }
        b.run_for(ms(22));
        let (path, packet) = caught.borrow()[0].clone();
        let mut packet = packet.to_vec();
        let sum = anabranch_wire::packet_checksum(&packet);
        packet[8..12].copy_from_slice(&sum.to_le_bytes());
        // One wrong bit in several blocks, in that with the checksum too.
        for at in [10, 40, 500, 1_001] {
            packet[at] ^= flips;
        }
        b.inject_summed(Side::Server, path, &packet);
        b.run_for(ms(38));
        assert_eq!(b.at_server.len(), read, "60 ms later, {flips}");
        let stats = b.assoc(Side::Server).stats();
        assert_eq!(stats.repaired, u64::from(read == 3));
        b.run_for(ms(5_000));
        assert_eq!(b.at_server.len(), 3, "in the end");
    }
}

/// A window earns nothing by parity: of a source that offers less than the path carries it grows no wider than without.
#[test]
fn parity_opens_no_window() {
    let run = |config: &AssocConfig| {
        let mut b = Bench::connected(5, config, &[(link(20, 20), link(20, 20))]);
        b.strict = true;
        b.filter = drop_some(60);
        let (mut sum, mut all) = (0, 0);
        for n in 0..6_000 {
            let options =
                SendOptions { stream: anabranch_base::StreamId(3), unordered: true, ..SendOptions::default() };
            b.send(Side::Client, options, numbered(3, n, 1_000));
            b.run_for(ms(6));
            b.at_server.clear();
            if n > 1_000 {
                let cwnd = b.assoc(Side::Client).paths().map(|p| p.1.cwnd).sum::<u64>();
                (sum, all) = (sum + cwnd, all + 1);
            }
        }
        (sum / all, b.assoc(Side::Client).stats().parity_sent)
    };
    let (without, _) = run(&assoc_config("sctp"));
    let (with, sums) = run(&with_parity("sctp", "erasure:latency=60,rate=1"));
    assert!(sums > 50, "{sums}");
    assert!(with * 20 <= without * 21, "{with} bytes on the mean with parity, {without} without");
}

/// Nothing of it is on the wire for a peer that does not take it, nor is anything sent for it.
#[test]
fn a_peer_without_it_never_sees_it() {
    for server in [assoc_config("cmt"), changed(with_parity("cmt", TIGHT), |c| c.auth.chunks = vec![kind::DATA])] {
        let mut b = Bench::connected_pair(5, &with_parity("cmt", TIGHT), &server, &two_paths());
        (b.tap, b.filter) = (Some(vec![]), drop_some(20));
        stream(&mut b, 2_000);
        for side in [Side::Client, Side::Server] {
            assert!(b.tapped(side, kind::PARITY).is_empty() && b.tapped(side, kind::REPAIRED).is_empty());
        }
        assert_eq!(b.assoc(Side::Client).stats().parity_sent, 0);
    }
}

/// Messages stay whole and associations end, whatever becomes of parity and of what is said about it.
#[test]
fn every_chunk_of_it_may_be_lost() {
    for (from, lost) in [(Side::Client, kind::PARITY), (Side::Server, kind::REPAIRED), (Side::Client, kind::REPAIRED)] {
        let mut b = Bench::connected(5, &with_parity("cmt", TIGHT), &two_paths());
        b.strict = true;
        stream(&mut b, 500);
        let mut drops = drop_some(20).expect("a filter");
        let mut n = 0u32;
        b.filter = Some(Box::new(move |l| {
            n += 1;
            drops(l) && !(l.from == from && l.has(lost) && !n.is_multiple_of(3))
        }));
        let took = stream(&mut b, 4_000);
        assert!(took.iter().all(Option::is_some), "{lost}");
        let now = b.now;
        b.assoc(Side::Client).shutdown(now);
        b.run_for(ms(60_000));
        assert_eq!(b.client.associations().count() + b.server.associations().count(), 0, "{lost}: over");
    }
}

/// An end that takes parity, with a peer of ours that can do anything.
fn taker() -> (Raw, anabranch_engine::AssocId) {
    let mut r = Raw::with(&with_parity("cmt", TIGHT), |_| {});
    let both = [raw::bytes(&Parameter::ForwardTsnSupported), raw::bytes(&Parameter::Parity(None))].concat();
    r.handshake(PEER_TAG, &both);
    let id = r.only();
    (r, id)
}

/// A record over the TSNs before `number`.
fn record(number: u32, covers: u8, seed: u16, sum: &[u8]) -> Vec<u8> {
    let mut record = vec![1, covers];
    record.extend(u16::from(covers).to_be_bytes());
    record.extend(seed.to_be_bytes());
    record.resize(6 + usize::from(covers).div_ceil(8), 0xff);
    if !covers.is_multiple_of(8) {
        *record.last_mut().expect("bits") = 0xff >> (8 - covers % 8);
    }
    record.extend_from_slice(sum);
    raw::bytes(&Parity { tsn: Tsn(PEER_TSN.0.wrapping_add(number)), record: &record })
}

/// Parity that restores nonsense is nothing; what is said of TSNs that were never sent is nothing either; and what a
/// peer makes us hold has an end.
#[test]
fn forged_parity_costs_no_more_than_a_bounded_memory() {
    let (mut r, id) = taker();
    let plain = r.endpoint.association(id).expect("alive").stats();
    let mut records = 0;
    let used = allocation_counter::measure(|| {
        for n in 0..3_000u32 {
            // TSN 0, 4, 8, ... never come; parity covers them with anything.
            let tsn = Tsn(PEER_TSN.0.wrapping_add(n));
            match n % 4 {
                0 => {}
                1 => r.give(&[&raw::data(tsn, n as u16, &[n as u8; 1_000])]),
                _ => {
                    records += 1;
                    // One in two lacks nothing but the TSN that never comes, and restores it to nonsense.
                    let covers = if n % 4 == 2 { 2 } else { 200.min(n) };
                    r.give(&[&record(n, covers as u8, n as u16, &[n as u8; 1_100])]);
                }
            }
            if n % 8 == 0 {
                let unsent: Vec<Tsn> = (0..60).map(|i| Tsn(r.first_tsn.0.wrapping_add(i * n))).collect();
                r.give(&[&raw::bytes(&RepairedOut { settled: n % 16 == 0, tsns: &unsent })]);
            }
            r.take();
        }
    });
    assert_eq!(r.phase(id), Phase::Established, "it goes on");
    let a = r.endpoint.association(id).expect("it goes on");
    a.check_invariants().expect("the books agree");
    let stats = a.stats();
    let counted = |name| a.policy_counters().find(|(h, c)| *h == Hook::Repair && c.0 == name).expect("counted").1.1;
    let (solved, taken) = (counted("repaired"), stats.repaired - plain.repaired);
    assert!(solved > 500 && taken == 0, "{solved} chunks of nonsense, {taken} of them taken");
    figure(
        "transfer/parity.rs::forged_parity_costs_no_more_than_a_bounded_memory",
        &format!(
            "{} records of parity: {} solved to nonsense, none of it taken, {} not looked into or useless, {} held with \
             the data",
            grouped(records),
            grouped(solved),
            grouped(counted("parity-useless")),
            memory(used.bytes_current)
        ),
    );
}

/// What a receiver says it restored need not be sent again, and it is answered until it knows that the sender knows.
#[test]
fn the_answer_is_repeated_until_it_is_heard() {
    let mut b = Bench::connected(5, &with_parity("cmt", TIGHT), &two_paths());
    stream(&mut b, 500);
    b.filter = drop_some(20);
    b.tap = Some(vec![]);
    stream(&mut b, 2_000);
    let settled = |t: &&(anabranch_base::Instant, Side, usize, bytes::Bytes)| {
        let p = Packet::parse(&t.3, Verify::Trusted).expect("a packet");
        p.chunks().flatten().any(|c| matches!(c.decode(), Ok(Chunk::Repaired(r)) if r.settled))
    };
    let repaired = b.assoc(Side::Server).stats().repaired;
    let answers = b.tapped(Side::Client, kind::REPAIRED).into_iter().filter(settled).count() as u64;
    assert!(repaired > 10 && (1..=2 * repaired).contains(&answers), "{answers} answers about {repaired}");
    assert!(b.tapped(Side::Server, kind::REPAIRED).iter().all(|t| !settled(t) && kinds(&t.3).contains(&kind::SACK)));
}

fn weather() -> impl Strategy<Value = (LinkConfig, LinkConfig)> {
    let loss = prop_oneof![
        (0.0..0.2f64).prop_map(LossConfig::bernoulli),
        (0.005..0.05f64, 2.0..8.0f64).prop_map(|(share, mean)| LossConfig::bursts(share, mean)),
    ];
    (loss, 1u64..60, 0u64..30, any::<bool>(), 0.0..0.05f64).prop_map(|(loss, delay, jitter, reorders, twice)| {
        let one = || {
            let mut l = link(10, delay + jitter).with_loss(loss.clone());
            (l.jitter, l.jitter_reorders, l.duplicate) = (Jitter::Uniform(ms(jitter)), reorders, twice);
            l
        };
        (one(), one())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    /// Any path scheduler, code, weather and amount of parity; DATA or I-DATA; messages of one chunk or of several.
    #[test]
    fn nothing_reliable_is_lost_or_doubled(
        scheduler in prop::sample::select(Hook::PathScheduler.policies()),
        links in prop::collection::vec(weather(), 1..4),
        rate in 0.02..1.0f64,
        latency in 1u64..300,
        (xor, late, copies) in any::<(bool, bool, bool)>(),
        interleaving: bool,
        size in prop_oneof![50usize..1_150, 1_150usize..4_000],
        seed in 0u64..1_000,
    ) {
        let code = if xor { "xor" } else { "rlc" };
        let (late, copies) = (u8::from(late), u8::from(copies));
        let redundancy = format!("erasure:rate={rate},latency={latency},code={code},late={late},copies={copies}");
        let mut config = with_parity("cmt", &redundancy);
        config.seed = seed;
        if config.profile.set(Hook::PathScheduler, scheduler.name).is_err() || config.profile.check(links.len()).is_err() {
            return Ok(());
        }
        config.extensions.interleaving = interleaving;
        // Fair weather until it is connected: bursts are counted in packets, and an INIT leaves ever less often.
        let calm = |l: &LinkConfig| l.clone().with_loss(LossConfig::default());
        let calm: Vec<_> = links.iter().map(|(there, back)| (calm(there), calm(back))).collect();
        let mut b = Bench::connected(seed, &config, &calm);
        for (i, (there, back)) in links.iter().enumerate() {
            let path = b.paths.get_mut(i).expect("a path");
            path.apply(b.now, Direction::Forward, Setting::Loss(there.loss.clone()));
            path.apply(b.now, Direction::Backward, Setting::Loss(back.loss.clone()));
        }
        b.strict = true;
        let mut flows = [Flow::new(Side::Client, 1, size), Flow::new(Side::Server, 2, size)];
        let until = b.now + ms(120_000);
        let mut total = 0;
        while b.now < until && flows.iter().any(|f| f.got < 150) {
            total = (total + 3).min(150);
            for f in &mut flows {
                f.send_to(&mut b, total);
            }
            b.run_for(ms(10));
            flows.iter_mut().for_each(|f| f.check(&mut b));
        }
        prop_assert!(flows.iter().all(|f| f.got == 150), "{} and {} of 150 came", flows[0].got, flows[1].got);
        let now = b.now;
        b.assoc(Side::Client).shutdown(now);
        b.run_for(ms(200_000));
        prop_assert_eq!(b.client.associations().count() + b.server.associations().count(), 0, "over");
    }
}
