//! Cheng et al. 2011: what is important is repaired first, age guards the rest, and windows follow the estimated
//! bandwidth.

use super::two_paths::*;
use anabranch_base::{Duration, Rate, StreamId};
use anabranch_engine::{OwnParameter, Phase, SendOptions};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::{Direction, Limit, LinkConfig, Setting};
use anabranch_wire::kind;
use std::collections::BTreeMap;

/// The profile with the timer of the standard: T3 alone decides what leaves after an expiry.
fn media(choices: &[(Hook, &str)]) -> Profile {
    let mut p = profile("media", &[(Hook::Timer, "rfc9260")]);
    for (hook, spec) in choices {
        p.set(*hook, spec).expect("registered");
    }
    p
}

/// Sends messages of these classes, each on the stream of its class, and loses every first transmission; the link
/// slows down to `kbit` kbit/s. The departures after that, and the class of each TSN.
fn all_lost(profile: &Profile, classes: &[u8], size: usize, kbit: u64) -> (Vec<Departure>, BTreeMap<u32, u8>) {
    let mut b = connected_by(41, policies(profile, 1), &[both_ways(link(10, 20))]);
    let mut flow = Flow::new(Side::Client, 9, 1_000);
    flow.transfer(&mut b, 400, ms(20_000)).expect("a window that takes them all, and round trips");
    // Less than a timeout: an idle window decays.
    b.run_for(ms(500));
    b.tap = Some(vec![]);
    let (now, slow) = (b.now, Setting::Rate(Some(Rate::from_bits_per_sec(kbit * 1_000))));
    b.paths.get_mut(0).expect("a path").apply(now, Direction::Forward, slow);
    let mut seen = std::collections::BTreeSet::new();
    b.filter = Some(Box::new(move |l| {
        let new = l.from == Side::Client && tsns(l.bytes).iter().any(|t| seen.insert(*t));
        !new
    }));
    for (i, class) in classes.iter().enumerate() {
        let stream = StreamId(u16::from(*class));
        let options = SendOptions { stream, class: *class, ..SendOptions::default() };
        assert!(b.send(Side::Client, options, numbered(stream.0, i as u32, size)));
        b.flush(); // each hand-over is an opportunity of its own: no burst limit in the way
    }
    b.run_for(ms(30_000));
    b.at_server.iter().for_each(|m| assert!(number_of(m).0 < 3));
    let mut got: Vec<_> = b.at_server.iter().map(|m| number_of(m).1).collect();
    got.sort_unstable();
    assert_eq!(got, (0..classes.len() as u32).collect::<Vec<_>>(), "nothing lost, nothing doubled");
    let all = departures(&b);
    let (first, again) = first_and_again(&all);
    let class = |d: &&Departure| d.tsns.iter().copied().zip(d.streams.iter().map(|s| *s as u8)).collect::<Vec<_>>();
    (again.into_iter().cloned().collect(), first.iter().flat_map(class).collect())
}

#[test]
fn retransmissions_leave_in_the_order_of_their_class() {
    // A group of pictures: I at the end, so that its TSNs are the highest.
    let classes = [2, 2, 1, 2, 2, 1, 2, 2, 1, 0, 0, 0];
    let (again, _) = all_lost(&media(&[]), &classes, 1_000, 10_000);
    let order: Vec<u16> = again.iter().flat_map(|d| d.streams.clone()).collect();
    assert_eq!(order, [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
    // Inside a class by TSN.
    assert!(again.chunk_by(|a, b| a.streams == b.streams).all(|run| run.is_sorted_by_key(|d| d.tsns[0])));
    let plain = media(&[(Hook::RetransmissionOrder, "tsn")]);
    let (again, _) = all_lost(&plain, &classes, 1_000, 10_000);
    let order: Vec<u16> = again.iter().flat_map(|d| d.streams.clone()).collect();
    assert_eq!(order, classes.map(u16::from), "by TSN without it");
}

#[test]
fn a_packet_is_filled_from_the_most_important_class() {
    // Twelve messages of each class in turn, five to a packet.
    let classes: Vec<u8> = (0..36).map(|i| 2 - i % 3).collect();
    let (again, _) = all_lost(&media(&[]), &classes, 200, 10_000);
    let in_order: Vec<u16> = again
        .iter()
        .flat_map(|d| {
            let mut s = d.streams.clone();
            s.sort_unstable();
            s
        })
        .collect();
    assert!(in_order.is_sorted(), "{in_order:?}");
    assert_eq!(in_order.len(), 36);
    assert!(again[0].streams.len() == 5 && again.iter().all(|d| d.tsns.is_sorted()), "{:?}", again[0]);
}

/// So many that the last of them leave when the first are old.
const MANY: usize = 150;

/// Where in the order of retransmission the one message of class 2 left, and how long after the first.
fn lowest_of_many(order: &str) -> (usize, Duration) {
    let mut classes = vec![2];
    classes.resize(MANY, 0);
    let (again, _) =
        all_lost(&media(&[(Hook::RetransmissionOrder, order), (Hook::Window, "rfc9260")]), &classes, 1_000, 150);
    let at = again.iter().position(|d| d.streams.contains(&2)).expect("sent again");
    (at, again[at].at - again[0].at)
}

#[test]
fn age_lets_the_unimportant_through() {
    let (last, _) = lowest_of_many("class_then_tsn:rto_floor=60000");
    assert_eq!(last, MANY - 1, "after everything of class 0");
    // Smoothed 56 ms with a variation of 21: after twice two timeouts it counts as class 0 and has the lowest TSN.
    let (at, waited) = lowest_of_many("class_then_tsn:rto_floor=1");
    assert!(at > 3 && at < MANY - 1, "{at}");
    assert!(waited >= ms(500), "{waited:?}");
    // A longer floor makes it wait longer.
    let (later, longer) = lowest_of_many("class_then_tsn:rto_floor=400");
    assert!(later > at && later < MANY - 1 && longer > waited, "{later} {longer:?}");
}

/// 8 Mbit/s, 100 ms: the window after a single loss in a long transfer, and threshold and pipe.
fn after_one_loss(window: &str) -> (u64, u64, u64, u64) {
    let links: [(LinkConfig, LinkConfig); 1] = [(link(8, 50).with_limit(Limit::packets(100)), link(8, 50))];
    let mut b = connected_by(42, policies(&media(&[(Hook::Window, window)]), 1), &links);
    let mut flow = Flow::new(Side::Client, 0, 1_100);
    // Until the window is larger than the pipe, and part of the queue stands.
    for _ in 0..120 {
        flow.send_to(&mut b, flow.got + 1_000);
        b.run_for(ms(50));
        flow.check(&mut b);
    }
    let before = b.path(Side::Client, 0);
    assert!(before.cwnd > 105_000, "{}", before.cwnd);
    let (cuts, cwnd) = (before.counters.recoveries, before.cwnd);
    let mut armed = true;
    b.filter = Some(Box::new(move |l| {
        let hit = armed && l.from == Side::Client && !tsns(l.bytes).is_empty();
        armed &= !hit;
        !hit
    }));
    let until = b.now + ms(1_000);
    let cut = b.run_until(until, |b| {
        let a = b.client.association(b.client_id).expect("alive");
        a.paths().any(|(_, p)| p.counters.recoveries > cuts)
    });
    assert!(cut, "the loss was noticed");
    let p = b.path(Side::Client, 0);
    assert_eq!((p.counters.recoveries, p.counters.timeouts), (cuts + 1, before.counters.timeouts));
    let pipe = Rate::from_bits_per_sec(8_000_000).bytes_in(p.min_rtt);
    flow.transfer(&mut b, 100, ms(20_000)).expect("arrives");
    (cwnd, p.cwnd, p.ssthresh, pipe)
}

#[test]
fn the_window_falls_to_the_estimated_pipe() {
    let (before, cwnd, ssthresh, pipe) = after_one_loss("bandwidth_estimate");
    // Payload is 1100 of the 1128 bytes on the wire; smoothing and the burst at the start add their share.
    assert!(ssthresh as f64 > 0.8 * pipe as f64 && (ssthresh as f64) < 1.2 * pipe as f64, "{ssthresh} of {pipe}");
    assert_eq!(cwnd, ssthresh.min(before));
    let (before, cwnd, ssthresh, _) = after_one_loss("rfc9260");
    assert!((cwnd, ssthresh) == (before / 2, before / 2) || cwnd.abs_diff(before / 2) < 2_000, "{before} {cwnd}");
}

/// The example of Cheng et al. 2011 §III: 20 ms each way, INIT with the hint at 0.5 s, its answer at 0.54, data from
/// 0.58 on, and a SACK for two of three packets at 0.62. What the paper sends next are four packets; RFC 9260 §7.2.1 lets
/// a SACK for two of them open the window by one, so that it is three.
#[test]
fn the_handshake_and_the_first_flight_of_the_example() {
    const HINT: u16 = 0xbf43;
    const MPEG: [u8; 5] = [1, 3, 0, 1, 2];
    let config = changed(assoc_config("media"), |c| {
        c.mtu.packet_size = 12 + 16 + 1_024;
        c.sending.initial_window = Some(3 * 1_024);
        // A SACK for every second packet, the first one included.
        (c.timers.sack_delay, c.compatibility.first_data_waits) = (ms(200), true);
        c.extensions.own_parameters = vec![OwnParameter::said(HINT, &MPEG[..])];
    });
    let server = changed(config.clone(), |c| c.extensions.own_parameters = vec![OwnParameter::known(HINT)]);
    let mut b = Bench::pair(5, &config, &server);
    b.paths.add("path", link(10_000, 20), link(10_000, 20));
    b.run_for(ms(500));
    let zero = b.now - ms(500);
    b.tap = Some(vec![]);
    b.connect(&config);
    let up = b.now + ms(1_000);
    let established = |b: &Bench| b.client.association(b.client_id).is_some_and(|a| a.phase() == Phase::Established);
    assert!(b.run_until(up, established));
    assert_eq!(b.assoc(Side::Client).peer_parameter(HINT), Some(&MPEG[..]), "repeated");
    assert_eq!(b.assoc(Side::Server).peer_parameter(HINT), Some(&MPEG[..]), "kept by the cookie");
    for (i, frame) in "ibbpbbpbbpbb".chars().enumerate() {
        let class = "ipb".find(frame).expect("a class") as u8;
        let options = SendOptions { stream: StreamId(u16::from(class)), class, ..SendOptions::default() };
        assert!(b.send(Side::Client, options, numbered(u16::from(class), i as u32, 1_024)));
    }
    b.flush();
    b.run_for(ms(59));
    let at = |side, chunk| {
        let all = b.tapped(side, chunk).into_iter();
        all.map(|(at, _, _, bytes)| (at.since(zero).as_millis(), bytes.clone())).collect::<Vec<_>>()
    };
    let times = |side, chunk| at(side, chunk).iter().map(|(t, _)| *t).collect::<Vec<_>>();
    assert_eq!(times(Side::Client, kind::INIT), [500]);
    assert_eq!(times(Side::Server, kind::INIT_ACK), [520], "at the client at 540");
    assert_eq!(times(Side::Client, kind::COOKIE_ECHO), [540]);
    assert_eq!(times(Side::Server, kind::COOKIE_ACK), [560], "at the client at 580");
    assert_eq!(times(Side::Server, kind::SACK), [600], "for two of three, at the client at 620");
    let data: Vec<(u64, u16)> = departures(&b).iter().map(|d| (d.at.since(zero).as_millis(), d.streams[0])).collect();
    assert_eq!(data, [(580, 0), (580, 2), (580, 2), (620, 1), (620, 2), (620, 2)]);
}
