//! Path MTU discovery by probes (RFC 8899) over links that swallow what is larger than they carry.

use crate::common::*;
use anabranch_base::Instant;
use anabranch_engine::{AssocConfig, DiscoveryState, Event, PathMtuDiscovery, SendOptions};
use anabranch_sim::{Direction, Setting};
use anabranch_wire::kind;

fn config(profile: &str, max: usize) -> AssocConfig {
    changed(assoc_config(profile), |c| c.mtu.discovery = Some(PathMtuDiscovery::up_to(max)))
}

/// Both directions of `path` carry packets up to `mtu` bytes from now on.
fn set_mtu(b: &mut Bench, path: usize, mtu: u32) {
    let now = b.now;
    for d in [Direction::Forward, Direction::Backward] {
        b.paths.get_mut(path).expect("a path").apply(now, d, Setting::Mtu(Some(mtu)));
    }
}

/// Connected over paths that carry these sizes.
fn over(config: &AssocConfig, mtus: &[u32]) -> Bench {
    let mut b = Bench::new(5, config);
    for (i, _) in mtus.iter().enumerate() {
        b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
    }
    for (i, mtu) in mtus.iter().enumerate() {
        set_mtu(&mut b, i, *mtu);
    }
    b.strict = true;
    b.largest = 9_000;
    b.tap = Some(vec![]);
    b.connect(config);
    b.run_for(ms(3_000));
    b
}

/// Sizes of the client's probes on `path`: packets with a HEARTBEAT and a PAD chunk.
fn probes(b: &Bench, path: usize) -> Vec<usize> {
    let of = b.tapped(Side::Client, kind::PAD);
    of.iter().filter(|t| t.2 == path && kinds(&t.3) == [kind::HEARTBEAT, kind::PAD]).map(|t| t.3.len()).collect()
}

/// Largest packet with DATA of the client since the tap was opened.
fn largest_data(b: &mut Bench) -> usize {
    let largest = b.tapped(Side::Client, kind::DATA).iter().map(|t| t.3.len()).max();
    b.tap = Some(vec![]);
    largest.unwrap_or(0)
}

fn size(b: &mut Bench, path: usize) -> (usize, Option<DiscoveryState>) {
    let p = b.path(Side::Client, path);
    (p.packet_size, p.discovery)
}

fn bulk(b: &mut Bench, flow: &mut Flow) -> usize {
    b.tap = Some(vec![]);
    flow.transfer(b, 20, ms(60_000)).expect("arrives");
    largest_data(b)
}

/// Shows: 9260/C12.
#[test]
fn a_path_that_carries_more_is_used_to_the_full() {
    let mut b = over(&config("sctp", 1_472), &[1_472]);
    assert_eq!(probes(&b, 0), [1_200, 1_472], "the base size, then all at once");
    assert_eq!(size(&mut b, 0), (1_472, Some(DiscoveryState::Complete)));
    let mut flow = Flow::new(Side::Client, 0, 20_000);
    assert_eq!(bulk(&mut b, &mut flow), 1_472);
    b.run_for(ms(3_600_000));
    assert!(probes(&b, 0).is_empty(), "data confirms it, and there is no more to find");
}

/// Without it nothing changes: no larger packet, and no probe but the train that measures the path.
#[test]
fn off_by_default() {
    let mut b = over(&assoc_config("low-latency"), &[1_472]);
    let mut flow = Flow::new(Side::Client, 0, 20_000);
    assert!(probes(&b, 0).iter().all(|size| *size <= 1_200));
    assert!(bulk(&mut b, &mut flow) <= 1_200);
    assert_eq!(size(&mut b, 0), (1_200, None));
}

/// Shows: 9260/C12.
#[test]
fn probes_that_are_lost_are_neither_errors_nor_congestion() {
    for carries in [1_250, 1_400, 1_468] {
        let mut b = over(&config("sctp", 1_472), &[carries]);
        let before = b.path(Side::Client, 0);
        b.run_for(ms(60_000));
        let p = b.path(Side::Client, 0);
        assert_eq!((p.errors, p.counters.timeouts, p.counters.recoveries), (0, 0, 0));
        // A larger packet raises a window of one packet's size, nothing lowers it.
        assert!(p.cwnd >= before.cwnd && p.ssthresh == before.ssthresh);
        assert!(p.packet_size <= carries as usize && p.packet_size + 16 >= carries as usize, "{}", p.packet_size);
        assert_eq!(p.discovery, Some(DiscoveryState::Complete));
        let list = probes(&b, 0);
        assert_eq!(list.iter().filter(|s| **s == 1_472).count(), 3, "MAX_PROBES: {list:?}");
        let mut flow = Flow::new(Side::Client, 0, 20_000);
        assert_eq!(bulk(&mut b, &mut flow), p.packet_size & !3);
        assert_eq!(b.path(Side::Client, 0).counters.timeouts, 0);
    }
}

/// The path comes to carry more: found when the raise timer fires, not before.
#[test]
fn more_is_tried_again_after_the_raise_timer() {
    let mut b = over(&config("sctp", 1_472), &[1_300]);
    b.run_for(ms(60_000));
    assert!(size(&mut b, 0).0 <= 1_300);
    set_mtu(&mut b, 0, 1_500);
    b.tap = Some(vec![]);
    b.run_for(ms(500_000));
    assert!(probes(&b, 0).is_empty());
    b.run_for(ms(110_000));
    assert_eq!(size(&mut b, 0), (1_472, Some(DiscoveryState::Complete)));
    let mut flow = Flow::new(Side::Client, 0, 20_000);
    assert_eq!(bulk(&mut b, &mut flow), 1_472);
}

/// Packets of the size found vanish without a word. What was cut already leaves so that IP may divide it; all that is
/// cut later fits.
///
/// Shows: 9260/C12.
#[test]
fn a_black_hole_is_found_by_the_loss_of_large_packets() {
    for profile in ["sctp", "cmt", "live"] {
        let mut b = over(&config(profile, 1_472), &[1_472]);
        let mut flow = Flow::new(Side::Client, 0, 20_000);
        assert_eq!(bulk(&mut b, &mut flow), 1_472);
        assert_eq!(b.divisible, 0);
        set_mtu(&mut b, 0, 1_250);
        let took = flow.transfer(&mut b, 20, ms(60_000));
        assert!(took.is_some_and(|t| t < ms(20_000)), "{profile}: {took:?}");
        assert!(b.divisible > 0, "{profile}: what was cut before");
        b.run_for(ms(30_000));
        let (found, state) = size(&mut b, 0);
        assert!((1_232..=1_250).contains(&found) && state == Some(DiscoveryState::Complete), "{profile}: {found}");
        let before = b.divisible;
        assert_eq!(bulk(&mut b, &mut flow), found & !3, "{profile}");
        assert_eq!(b.divisible, before, "{profile}: nothing more has to be divided");
    }
}

/// One path of two, or both, carry only small packets from some moment on. Live goes on over both; its user hears of it,
/// and hears again when the path takes whole packets.
#[test]
fn a_path_that_comes_to_carry_small_packets_only_is_named_and_used() {
    for (mtu, both) in [(600, false), (600, true), (900, false), (1_199, true)] {
        let c = changed(assoc_config("live"), |c| c.mtu.packet_size = 1_472);
        let mut b = over(&c, &[1_472, 1_472]);
        let mut flow = Flow::new(Side::Client, 0, 10_000);
        flow.transfer(&mut b, 50, ms(60_000)).expect("arrives");
        b.client_events.clear();
        b.strict = false;
        // What was cut already fits neither path, so IP divides it; one path of two takes it whole.
        b.divides = both;
        (0..1 + usize::from(both)).for_each(|path| set_mtu(&mut b, path, mtu));
        for _ in 0..20 {
            flow.send_to(&mut b, flow.sent + 10_000);
            b.run_for(ms(100));
        }
        let named = |b: &Bench, path: usize| -> Vec<usize> {
            let of = |e: &Event| match e {
                Event::PacketSize { path: p, size } if p.index() == path => Some(*size),
                _ => None,
            };
            b.client_events.iter().filter_map(of).collect()
        };
        assert_eq!(named(&b, 0), [512], "{mtu} {both}");
        assert_eq!(named(&b, 1), if both { vec![512] } else { vec![] }, "{mtu} {both}");
        let took = flow.transfer(&mut b, 5, ms(60_000));
        assert!(took.is_some_and(|t| t < ms(2_000)), "{mtu} {both}: {took:?}");
        (0..2).for_each(|path| set_mtu(&mut b, path, 1_472));
        b.run_for(ms(130_000));
        assert_eq!(named(&b, 0), [512, 1_472], "{mtu} {both}");
    }
}

/// Loss that has nothing to do with size costs no size.
#[test]
fn timeouts_between_which_large_packets_arrive_are_no_black_hole() {
    let mut b = over(&config("sctp", 1_472), &[1_472]);
    let mut flow = Flow::new(Side::Client, 0, 5_000);
    for _ in 0..4 {
        flow.transfer(&mut b, 5, ms(60_000)).expect("arrives");
        b.cut(0);
        flow.send_to(&mut b, flow.sent + 1);
        let timeouts = b.path(Side::Client, 0).counters.timeouts;
        while b.path(Side::Client, 0).counters.timeouts < timeouts + 1 {
            b.run_for(ms(20));
        }
        b.restore(0);
        flow.transfer(&mut b, 5, ms(60_000)).expect("arrives");
        assert_eq!(size(&mut b, 0), (1_472, Some(DiscoveryState::Complete)));
    }
}

/// Not even the base size goes through: packets are divided by IP and the path is asked now and then.
#[test]
fn below_the_base_size_ip_divides_and_the_path_is_asked_again() {
    let mut b = over(&config("sctp", 1_472), &[900]);
    b.run_for(ms(2_000));
    assert_eq!(size(&mut b, 0), (512, Some(DiscoveryState::Error)));
    let mut flow = Flow::new(Side::Client, 0, 5_000);
    assert!(bulk(&mut b, &mut flow) <= 512);
    assert_eq!(b.path(Side::Client, 0).counters.timeouts, 0);
    set_mtu(&mut b, 0, 1_500);
    b.run_for(ms(130_000));
    assert_eq!(size(&mut b, 0), (1_472, Some(DiscoveryState::Complete)));
}

/// Messages are cut for the smallest of the paths in use: a chunk that has to move fits the others. A path that fails
/// does not hold the others down.
#[test]
fn messages_are_cut_for_the_smallest_path_in_use() {
    let mut b = over(&config("cmt", 1_472), &[1_472, 1_300]);
    b.run_for(ms(30_000));
    let (large, small) = (size(&mut b, 0).0, size(&mut b, 1).0);
    assert!(large == 1_472 && (1_280..=1_300).contains(&small), "{large} {small}");
    let mut flow = Flow::new(Side::Client, 0, 20_000);
    assert_eq!(bulk(&mut b, &mut flow), small & !3);
    b.cut(1);
    flow.transfer(&mut b, 100, ms(60_000)).expect("arrives");
    b.run_for(ms(10_000));
    assert_eq!(bulk(&mut b, &mut flow), 1_472, "alone");
    b.restore(1);
    b.run_for(ms(130_000));
    assert!(bulk(&mut b, &mut flow) <= 1_300, "together again");
    flow.transfer(&mut b, 200, ms(60_000)).expect("arrives");
}

/// A message that is cut in two sizes arrives whole.
#[test]
fn the_size_changes_in_the_middle_of_a_message() {
    for interleaving in [false, true] {
        let c = changed(config("sctp", 1_472), |c| {
            c.extensions.interleaving = interleaving;
            c.limits.receive_buffer = 8 << 20;
        });
        let mut b = Bench::new(5, &c);
        b.paths.add("path0", link(1, 200), link(1, 200));
        (b.strict, b.largest) = (true, 1_472);
        b.tap = Some(vec![]);
        b.connect(&c);
        let payload = pattern(7, 400_000);
        assert!(b.send(Side::Client, SendOptions::default(), payload.clone()));
        b.run_for(ms(30_000));
        let chunk = if interleaving { kind::I_DATA } else { kind::DATA };
        let sizes: Vec<usize> = b.tapped(Side::Client, chunk).iter().map(|t| t.3.len()).collect();
        assert!(sizes[0] <= 1_200 && sizes.contains(&1_472), "{:?}", &sizes[..4]);
        assert_eq!(b.at_server.len(), 1);
        assert!(b.at_server[0].payload.clone().into_bytes() == payload);
    }
}

/// Over a path that loses one packet in ten the size found is never above what the path carries, and all arrives.
#[test]
fn random_loss_does_not_mislead_for_long() {
    use anabranch_sim::LossConfig;
    for seed in 0..5 {
        let c = config("live", 1_472);
        let mut b = Bench::new(seed, &c);
        let lossy = || link(10, 20).with_loss(LossConfig::bernoulli(0.1));
        b.paths.add("path0", lossy(), lossy());
        set_mtu(&mut b, 0, 1_400);
        (b.strict, b.largest) = (true, 1_472);
        b.connect(&c);
        b.run_for(ms(30_000));
        let mut flow = Flow::new(Side::Client, 0, 10_000);
        flow.transfer(&mut b, 300, ms(300_000)).expect("arrives");
        assert!(size(&mut b, 0).0 <= 1_400);
        assert!(b.now > Instant::from_millis(31_000));
    }
}
