//! What random configurations found, each as small as it gets.

use crate::common::raw::*;
use crate::common::*;
use anabranch_engine::{Event, PathMtuDiscovery, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_policy::view::PathState;
use anabranch_wire::{Chunk, GapBlock, NrSackOut, Packet, Parameter, SackOut, Verify, kind};

/// A SACK that was overtaken takes back what it does not know (`stale_sacks_count`), but not what an NR-SACK promised to
/// keep: its payload is gone, and would leave as DATA without any.
#[test]
fn what_the_peer_keeps_is_not_taken_back() {
    for profile in ["ns2-era", "ns2-era-cmt"] {
        let mut config = changed(assoc_config(profile), |c| c.extensions.nr_sack = true);
        config.compatibility.confirm_first = false;
        let mut r = Raw::with(&config, |_| {});
        r.handshake(PEER_TAG, &bytes(&Parameter::SupportedExtensions(&[kind::NR_SACK])));
        let id = r.only();
        let first = r.first_tsn;
        for _ in 0..3 {
            r.send(id, &[1; 1_000]);
        }
        let kept = [GapBlock { start: 2, end: 2 }];
        let cum_tsn = first.minus(1);
        r.give(&[&bytes(&NrSackOut { cum_tsn, a_rwnd: 100_000, gaps: &[], kept: &kept, duplicates: &[] })]);
        r.give(&[&bytes(&SackOut { cum_tsn, a_rwnd: 100_000, gaps: &[], duplicates: &[] })]);
        r.run_for(ms(20_000));
        let (mut seen, mut kept_again) = (0, 0);
        for s in r.take() {
            for c in s.chunks() {
                if let Chunk::Data(d) = c {
                    assert!(!d.payload.is_empty(), "{profile}: {:?} without payload", d.header.tsn);
                    seen += 1;
                    kept_again += u32::from(d.header.tsn == first.plus(1) && s.at > r.now - ms(15_000));
                }
            }
        }
        assert!(seen > 3 && kept_again == 0, "{profile}: {seen} chunks, {kept_again} that the peer keeps");
        r.endpoint.association(id).expect("alive").check_invariants().expect("the books agree");
    }
}

/// A request to learn an address is repeated from the other waiting paths before its answer can come, and does not tell
/// which of them was learnt: that must not go on for ever.
#[test]
fn addresses_are_learnt_however_short_the_first_timeout_is() {
    for (rto_initial, delay) in [(10, 50), (10, 300), (10, 900), (100, 1_500)] {
        let config = changed(assoc_config("cmt"), |c| c.timers.rto_initial = ms(rto_initial));
        let links: Vec<_> = (0..4).map(|i| (link(8, delay + i), link(8, delay + i))).collect();
        let mut b = Bench::connected(1, &config, &links);
        b.run_for(ms(120_000));
        let states: Vec<PathState> = b.assoc(Side::Client).paths().map(|(_, p)| p.state).collect();
        assert!(states.iter().all(|s| *s == PathState::Active), "{rto_initial} ms, {delay} ms: {states:?}");
    }
}

/// New data wait for an answer on every path (`confirm_first`), but not for one that the peer cannot learn, nor for ever
/// for one that is dead.
#[test]
fn data_do_not_wait_for_a_path_that_cannot_answer() {
    for profile in ["ns2-era", "ns2-era-cmt"] {
        for dead in [false, true] {
            let config = assoc_config(profile);
            let server = changed(assoc_config("cmt"), |c| c.extensions.dynamic_addresses = dead);
            let mut b = Bench::pair(1, &config, &server);
            b.largest = 1_500;
            for i in 0..2 {
                b.paths.add(&format!("path{i}"), link(8, 20), link(8, 20));
            }
            if dead {
                // It is learnt, and answers nothing.
                b.filter = Some(Box::new(|l| l.path == 0 || !l.has(kind::HEARTBEAT_ACK)));
            }
            b.connect(&config);
            b.run_for(ms(3_000));
            assert!(b.client_events.contains(&Event::Connected));
            let took = Flow::new(Side::Client, 0, 500).transfer(&mut b, 50, ms(600_000));
            assert!(took.is_some(), "{profile}, dead {dead}");
        }
    }
}

/// After an expiry of T3 new data wait until what was lost left again (`one_repair_per_loss`): not when there is nothing
/// of it, because it was given up or another path had it.
#[test]
fn new_data_do_not_wait_for_a_repair_that_never_comes() {
    for seed in 0..100 {
        let mut config = changed(assoc_config("ns2-era"), |c| c.extensions.partial_reliability = true);
        for (hook, policy) in [
            (Hook::Redundancy, "preventive_copy"),
            (Hook::PathState, "path_truth"),
            (Hook::Abandon, "lifetime"),
            (Hook::LossCount, "delayed_ack_cmt"),
            (Hook::RetransmissionOrder, "bundle_outstanding"),
        ] {
            config.profile.set(hook, policy).expect("a policy");
        }
        let lossy = |d| link(4, d).with_loss(anabranch_sim::LossConfig::bernoulli(0.15));
        let mut b = Bench::pair(seed, &config, &assoc_config("cmt"));
        b.largest = 1_500;
        for i in 0..2 {
            b.paths.add(&format!("path{i}"), lossy(20 + 60 * i), lossy(20 + 60 * i));
        }
        b.connect(&config);
        b.run_for(ms(60_000));
        // Of two messages one is worth nothing soon.
        for i in 0..60u32 {
            let due = (i % 2 == 1).then_some(b.now + ms(100 + u64::from(i) * 20));
            b.send(Side::Client, SendOptions { deadline: due, ..SendOptions::default() }, numbered(0, i, 700));
            b.run_for(ms(50));
        }
        let whole = |b: &Bench| b.at_server.iter().filter(|m| number_of(m).1.is_multiple_of(2)).count() == 30;
        let until = b.now + ms(1_800_000);
        assert!(b.run_until(until, whole), "seed {seed}: {} arrived", b.at_server.len());
    }
}

/// A peer without room takes nothing but what it waits for. While copies of another chunk filled each path after each
/// expiry of T3, what it waits for never left: it was meant for the path on which a copy was under way just then.
#[test]
fn copies_do_not_keep_back_what_is_marked() {
    let retransmissions =
        ["rtx_csi", "rtx_same", "rtx_asap", "rtx_ssthresh", "rtx_loss_rate", "rtx_cwnd", "predicted_arrival"];
    for (seed, retransmission) in retransmissions.into_iter().enumerate() {
        for delay in [7, 60, 178, 400] {
            let mut config = assoc_config("ns2-era-cmt");
            config.timers.rto_max = ms(1_000);
            for (hook, policy) in [
                (Hook::Redundancy, "preventive_copy"),
                (Hook::RetransmissionOrder, "class_then_tsn"),
                (Hook::Retransmission, retransmission),
            ] {
                config.profile.set(hook, policy).expect("a policy");
            }
            let mut b = Bench::pair(seed as u64, &config, &assoc_config("cmt"));
            b.largest = 1_500;
            b.paths.add("path0", link(8, delay), link(8, delay));
            b.paths.add("path1", link(6, 7), link(6, 7));
            b.connect(&config);
            b.run_for(ms(5_000));
            // The first chunk is lost four times, and until it came at last the peer takes nothing of the third one.
            let (mut first, mut lost) = (None, 0);
            b.filter = Some(Box::new(move |l| {
                if l.from != Side::Client {
                    return true;
                }
                let packet = Packet::parse(l.bytes, Verify::Trusted).expect("a packet");
                for c in packet.chunks().flatten() {
                    let Ok(Chunk::Data(data)) = c.decode() else { continue };
                    let tsn = data.header.tsn;
                    let first = *first.get_or_insert(tsn);
                    if tsn == first && lost < 4 {
                        lost += 1;
                        return false;
                    }
                    if tsn == first {
                        lost = u32::MAX;
                    }
                    if tsn == first.plus(2) && lost < u32::MAX {
                        return false;
                    }
                }
                true
            }));
            for i in 0..4u32 {
                let class = if i == 0 { 2 } else { 0 };
                b.send(Side::Client, SendOptions { class, ..SendOptions::default() }, numbered(0, i, 863));
            }
            let until = b.now + ms(60_000);
            assert!(
                b.run_until(until, |b| b.at_server.len() == 4),
                "{retransmission}, {delay} ms: {} came",
                b.at_server.len()
            );
        }
    }
}

/// A larger packet is found to pass while the window is as small as one of the size before, after an expiry of T3.
#[test]
fn a_window_has_room_for_a_packet_when_packets_grow() {
    for window in [1, 600, 1_000] {
        let config = changed(assoc_config("cmt"), |c| {
            c.mtu.packet_size = 512;
            c.sending.initial_window = Some(window);
            c.mtu.discovery = Some(PathMtuDiscovery::up_to(1_200));
        });
        let mut b = Bench::pair(1, &config, &config);
        b.paths.add("path0", link(8, 200), link(8, 200));
        let dark = b.now + ms(4_000);
        b.filter = Some(Box::new(move |l| l.now > dark || !l.has(kind::DATA)));
        b.connect(&config);
        b.strict = true;
        let until = b.now + ms(60_000);
        b.run_until(until, |b| b.client_events.contains(&Event::Connected));
        assert!(Flow::new(Side::Client, 0, 3_000).transfer(&mut b, 20, ms(60_000)).is_some());
    }
}
