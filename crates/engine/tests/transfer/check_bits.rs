//! Check bits over links that damage packets: what is reliable comes once, as it was sent, whatever the bits say.

use crate::common::*;
use anabranch_base::{RandomStream, StreamId};
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_sim::{DamageConfig, Direction, Jitter, LinkConfig, LossConfig, Setting};
use anabranch_wire::{COMMON_HEADER_LEN, kind, packet_checksum};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

/// First byte of records of check bits.
const CHECKS: u8 = 2;
/// Bytes of a PARITY chunk in front of its record.
const HEAD: usize = 8;

fn with_check_bits(redundancy: &str, repair: &str) -> AssocConfig {
    changed(assoc_config("cmt"), |c| {
        c.profile.set(Hook::Redundancy, redundancy).expect("registered");
        c.profile.set(Hook::Repair, repair).expect("registered");
    })
}

/// Where the PARITY chunks of a packet are, padding left out.
fn parity_in(packet: &[u8]) -> Vec<core::ops::Range<usize>> {
    let (mut at, mut found) = (COMMON_HEADER_LEN, vec![]);
    while let Some(&[kind, _, l0, l1]) = packet.get(at..at + 4) {
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if kind == kind::PARITY {
            found.push(at..at + len);
        }
        at += len.next_multiple_of(4).max(4);
    }
    found
}

/// What a lying peer makes of a record; the newest of those that came the other way are at hand.
fn forge(record: &[u8], theirs: &VecDeque<Vec<u8>>, r: &mut RandomStream) -> Vec<u8> {
    let mut forged = record.to_vec();
    match r.below(8) {
        // Anything at all, or anything that says of itself that it is check bits.
        0 => forged.iter_mut().for_each(|b| *b = r.u64() as u8),
        1 => forged.iter_mut().skip(1).for_each(|b| *b = r.u64() as u8),
        2 => return theirs.get(r.below(theirs.len().max(1) as u64) as usize).cloned().unwrap_or(forged),
        3 => forged.truncate(1 + r.below(record.len() as u64) as usize),
        4 => forged.extend_from_slice(&record[1..]),
        // The right packets, and wrong bits.
        5 => forged.iter_mut().skip(7).step_by(5).for_each(|b| *b ^= 1 << r.below(8)),
        6 => {
            let bit = r.below(record.len() as u64 * 8) as usize;
            forged[bit / 8] ^= 1 << (bit % 8);
        }
        _ => {}
    }
    forged
}

/// Both ends lie in their check bits, and in nothing else.
fn liars(seed: u64) -> Option<Forger> {
    let mut r = RandomStream::named(seed, "lies");
    let mut newest = [VecDeque::new(), VecDeque::new()];
    Some(Box::new(move |l| {
        let (mut out, mut end) = (vec![], 0);
        for chunk in parity_in(l.bytes) {
            let record = &l.bytes[chunk.start + HEAD..chunk.end];
            if record.first() != Some(&CHECKS) {
                continue;
            }
            let (ours, theirs) = (usize::from(l.from == Side::Server), usize::from(l.from == Side::Client));
            let forged = forge(record, &newest[theirs], &mut r);
            newest[ours].push_back(record.to_vec());
            newest[ours].drain(..newest[ours].len().saturating_sub(8));
            out.extend_from_slice(&l.bytes[end..chunk.start + HEAD]);
            let at = out.len();
            out[at - HEAD + 2..at - HEAD + 4].copy_from_slice(&((HEAD + forged.len()) as u16).to_be_bytes());
            out.extend_from_slice(&forged);
            out.resize(out.len().next_multiple_of(4), 0);
            end = chunk.end.next_multiple_of(4);
        }
        if out.is_empty() {
            return None;
        }
        out.extend_from_slice(&l.bytes[end..]);
        let sum = packet_checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        Some(Bytes::from(out))
    }))
}

/// Connects in fair weather, since an INIT leaves ever less often; then the links are as they are.
fn connected(seed: u64, config: &AssocConfig, links: &[(LinkConfig, LinkConfig)]) -> Bench {
    let calm = |l: &LinkConfig| LinkConfig { damage: DamageConfig::None, ..l.clone().with_loss(LossConfig::default()) };
    let fair: Vec<_> = links.iter().map(|(there, back)| (calm(there), calm(back))).collect();
    let mut b = Bench::connected(seed, config, &fair);
    for (i, (there, back)) in links.iter().enumerate() {
        let path = b.paths.get_mut(i).expect("a path");
        for (direction, l) in [(Direction::Forward, there), (Direction::Backward, back)] {
            path.apply(b.now, direction, Setting::Loss(l.loss.clone()));
            path.apply(b.now, direction, Setting::Damage(l.damage));
        }
    }
    b.strict = true;
    b
}

/// So many messages each way, by streams 1 and 2, within two minutes; how many came.
fn deliver(b: &mut Bench, messages: u32, size: usize) -> [u32; 2] {
    let mut flows = [Flow::new(Side::Client, 1, size), Flow::new(Side::Server, 2, size)];
    let until = b.now + ms(120_000);
    let mut total = 0;
    while b.now < until && flows.iter().any(|f| f.got < messages) {
        total = (total + 3).min(messages);
        for f in &mut flows {
            f.send_to(b, total);
        }
        b.run_for(ms(10));
        flows.iter_mut().for_each(|f| f.check(b));
    }
    flows.map(|f| f.got)
}

fn corrected(b: &mut Bench) -> u64 {
    [Side::Client, Side::Server].into_iter().map(|s| b.assoc(s).stats().repaired).sum()
}

/// Over links that damage every tenth packet a little, many are corrected; where most records are lies fewer are, and all of
/// it comes nevertheless.
#[test]
fn damaged_packets_are_corrected_beside_lies() {
    let config = with_check_bits("split_error_correction:delay=5", "split_error_correction");
    let damage = DamageConfig::Blocks { packets: 0.1, blocks: 0.02 };
    let links =
        [20, 25].map(|delay| (LinkConfig { damage, ..link(20, delay) }, LinkConfig { damage, ..link(20, delay) }));
    let run = |forger: Option<Forger>| {
        let mut b = connected(5, &config, &links);
        b.forger = forger;
        assert_eq!(deliver(&mut b, 1_000, 1_000), [1_000; 2]);
        corrected(&mut b)
    };
    let (honest, beside_lies) = (run(None), run(liars(5)));
    assert!(honest > 30, "{honest}");
    assert!((10..honest).contains(&beside_lies), "{beside_lies} of {honest}");
}

/// Two thousand messages without repetitions, in packets of which some come with a wrong bit, and check bits for them over a
/// path that takes so long: how many were read, none of them twice, and how many packets were corrected.
fn without_repetitions(packets: f64, delay: u64, interleaving: bool) -> (usize, u64) {
    let config = changed(with_check_bits("split_error_correction", "split_error_correction"), |c| {
        c.profile.set(Hook::PathScheduler, "primary_only").expect("registered");
        // A window that losses cut leaves no room for some records, which are dropped then.
        c.profile.set(Hook::Window, "none").expect("registered");
        c.extensions.interleaving = interleaving;
    });
    let damaging = LinkConfig { damage: DamageConfig::OneBit { packets }, ..link(20, 20) };
    let mut b = connected(7, &config, &[(damaging, link(20, 20)), (link(20, delay), link(20, delay))]);
    let options =
        SendOptions { stream: StreamId(3), unordered: true, max_retransmissions: Some(0), ..SendOptions::default() };
    let mut read = BTreeSet::new();
    // Until all has left, however small losses make the window, and the last check bits are there.
    for n in 0..60_000u32 {
        if n < 2_000 {
            assert!(b.send(Side::Client, options, numbered(3, n, 1_000)));
        } else if read.len() == 2_000 {
            break;
        }
        b.run_for(ms(2));
        for m in core::mem::take(&mut b.at_server) {
            assert!(read.insert(number_of(&m).1), "twice");
        }
    }
    (read.len(), corrected(&mut b))
}

/// The sender gives up what was damaged before its check bits can be there, where these take long: an unordered message is
/// read nevertheless, however rarely packets are damaged.
#[test]
fn what_was_given_up_is_corrected_nevertheless() {
    for packets in [0.001, 0.01, 0.05] {
        for delay in [20, 60, 100, 150] {
            for interleaving in [false, true] {
                let (read, corrected) = without_repetitions(packets, delay, interleaving);
                assert_eq!(read, 2_000, "{packets} damaged, {delay} ms, {interleaving}");
                assert!(corrected > 0, "{packets} damaged, {delay} ms");
            }
        }
    }
}

/// A sender makes check bits for a receiver that reads them, and for no other.
#[test]
fn no_parity_leaves_for_who_reads_another_kind() {
    let kinds = ["none", "erasure", "split_error_correction"];
    for (made, read) in kinds.iter().flat_map(|m| kinds.map(|r| (*m, r))) {
        let made_here = if made == "erasure" { "erasure:latency=60,rate=0.5" } else { made };
        let (ours, theirs) = (with_check_bits(made_here, "none"), with_check_bits("none", read));
        let damaging = LinkConfig { damage: DamageConfig::OneBit { packets: 0.05 }, ..link(20, 30) };
        let links = [(damaging.clone(), link(20, 30)), (damaging, link(20, 30))];
        let mut b = Bench::connected_pair(3, &ours, &theirs, &links);
        deliver(&mut b, 500, 1_000);
        let stats = b.assoc(Side::Client).stats();
        let fits = made == read && made != "none";
        assert_eq!((stats.parity_sent > 0, stats.parity_agreed), (fits, fits), "{made} for {read}");
    }
}

fn damage() -> impl Strategy<Value = DamageConfig> {
    prop_oneof![
        Just(DamageConfig::None),
        (0.0..0.1f64).prop_map(|packets| DamageConfig::OneBit { packets }),
        (0.0..1e-5f64).prop_map(|rate| DamageConfig::Bits { rate }),
        (0.0..0.1f64, 0.0..0.1f64).prop_map(|(packets, blocks)| DamageConfig::Blocks { packets, blocks }),
    ]
}

fn weather() -> impl Strategy<Value = (LinkConfig, LinkConfig)> {
    (damage(), 0.0..0.1f64, 1u64..60, 0u64..30, any::<bool>(), 0.0..0.1f64).prop_map(
        |(damage, loss, delay, jitter, jitter_reorders, duplicate)| {
            let jitter_by = Jitter::Uniform(ms(jitter));
            let l = link(10, delay + jitter).with_loss(LossConfig::bernoulli(loss));
            let l = LinkConfig { damage, jitter: jitter_by, jitter_reorders, duplicate, ..l };
            (l.clone(), l)
        },
    )
}

fn either(hook: Hook) -> impl Strategy<Value = String> {
    let check_bits = match hook {
        Hook::Redundancy => (0u64..100).prop_map(|delay| format!("split_error_correction:delay={delay}")).boxed(),
        _ => (1u64..100).prop_map(|packets| format!("split_error_correction:packets={packets}")).boxed(),
    };
    let sums = match hook {
        Hook::Redundancy => (1u64..300, any::<bool>())
            .prop_map(|(latency, xor)| {
                format!("erasure:rate=0.5,latency={latency},code={}", if xor { "xor" } else { "rlc" })
            })
            .boxed(),
        _ => Just("erasure".to_owned()).boxed(),
    };
    prop_oneof![4 => check_bits, 1 => sums]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    /// Any path scheduler, weather and damage; check bits that are right, random, reflected, cut off or doubled; sums at one
    /// end or at both; DATA or I-DATA; messages of one chunk or of several.
    #[test]
    fn nothing_reliable_is_lost_or_doubled_over_links_that_damage(
        scheduler in prop::sample::select(Hook::PathScheduler.policies()),
        links in prop::collection::vec(weather(), 1..4),
        (redundancy, repair) in (either(Hook::Redundancy), either(Hook::Repair)),
        lies: bool,
        interleaving: bool,
        size in prop_oneof![50usize..1_150, 1_150usize..4_000],
        seed in 0u64..1_000,
    ) {
        let mut config = with_check_bits(&redundancy, &repair);
        config.seed = seed;
        if config.profile.set(Hook::PathScheduler, scheduler.name).is_err() || config.profile.check(links.len()).is_err() {
            return Ok(());
        }
        config.extensions.interleaving = interleaving;
        let mut b = connected(seed, &config, &links);
        b.forger = if lies { liars(seed) } else { None };
        let got = deliver(&mut b, 150, size);
        prop_assert_eq!(got, [150; 2], "of 150");
        let now = b.now;
        b.assoc(Side::Client).shutdown(now);
        b.run_for(ms(200_000));
        prop_assert_eq!(b.client.associations().count() + b.server.associations().count(), 0, "over");
    }
}
