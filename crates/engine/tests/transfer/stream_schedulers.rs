//! Which stream is next (RFC 8260 §3).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::Hook;
use anabranch_wire::{Chunk, Packet, Verify};

fn config(scheduler: &str) -> AssocConfig {
    let mut c = changed(assoc_config("sctp"), |c| {
        c.sending.initial_window = Some(60_000);
        c.sending.max_burst = 0;
    });
    c.profile.set(Hook::StreamScheduler, scheduler).expect("registered");
    c
}

fn manual(config: &AssocConfig) -> Manual {
    Manual::new(config, &[(link(10, 20), link(10, 20))])
}

fn queue(m: &mut Manual, stream: u16, n: usize, size: usize) {
    let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
    for _ in 0..n {
        assert!(m.b.send(Side::Client, options, vec![7; size]));
    }
}

/// Streams of the chunks in each packet, once all was handed over.
fn packets(m: &mut Manual) -> Vec<Vec<u16>> {
    m.packets().iter().map(|p| p.data.iter().map(|d| d.stream).collect()).collect()
}

fn order(m: &mut Manual) -> Vec<u16> {
    packets(m).concat()
}

/// Shows: ext/I13.
#[test]
fn in_the_order_of_arrival_or_in_turn() {
    for (scheduler, wanted) in [("fcfs", [3, 3, 1, 1, 2, 2]), ("round_robin", [1, 2, 3, 1, 2, 3])] {
        let mut m = manual(&config(scheduler));
        [3, 1, 2].into_iter().for_each(|s| queue(&mut m, s, 2, 100));
        assert_eq!(order(&mut m), wanted, "{scheduler}");
    }
}

/// Messages fill a packet as long as their stream has some; another stream's begin the next one.
///
/// Shows: ext/I13.
#[test]
fn a_packet_of_one_stream_then_one_of_the_next() {
    let mut m = manual(&config("round_robin_packet"));
    queue(&mut m, 1, 20, 100);
    queue(&mut m, 2, 4, 500);
    queue(&mut m, 3, 3, 100);
    let list = packets(&mut m);
    let shapes: Vec<(u16, usize)> = list.iter().map(|p| (p[0], p.len())).collect();
    assert!(list.iter().all(|p| p.iter().all(|s| *s == p[0])), "{list:?}");
    assert_eq!(shapes, [(1, 10), (2, 2), (3, 3), (1, 10), (2, 2)]);
}

/// Shows: ext/I13.
#[test]
fn strict_priority_by_the_users_values() {
    let mut m = manual(&config("priority"));
    for (stream, value) in [(1, Some(9)), (2, Some(0)), (3, Some(4))] {
        m.b.assoc(Side::Client).set_stream_value(StreamId(stream), value);
        queue(&mut m, stream, 2, 100);
    }
    assert_eq!(order(&mut m), [2, 2, 3, 3, 1, 1]);
    // Changed while messages wait; without a value the number counts.
    for stream in [8, 7] {
        queue(&mut m, stream, 1, 100);
    }
    m.b.assoc(Side::Client).set_stream_value(StreamId(8), Some(1));
    assert_eq!(order(&mut m), [8, 7]);
}

fn bytes_of(m: &mut Manual, streams: [u16; 2]) -> [usize; 2] {
    let seen = m.packets();
    streams.map(|s| seen.iter().flat_map(|p| &p.data).filter(|d| d.stream == s).map(|d| d.payload.len()).sum())
}

/// Shows: ext/I13.
#[test]
fn equal_bytes_or_bytes_by_weight() {
    for (scheduler, ratio) in [("fair_capacity", 1.0), ("weighted_fair", 3.0)] {
        let mut m = manual(&config(scheduler));
        for (stream, size, weight) in [(1, 1_000, 3), (2, 100, 1)] {
            m.b.assoc(Side::Client).set_stream_value(StreamId(stream), Some(weight));
            queue(&mut m, stream, 100_000 / size, size);
        }
        let [a, b] = bytes_of(&mut m, [1, 2]);
        assert!(a + b > 50_000 && a + b < 100_000, "both had more to send: {a} {b}");
        let got = a as f64 / b as f64;
        assert!((got / ratio - 1.0).abs() < 0.1, "{scheduler}: {got}");
    }
}

/// With I-DATA the weights hold between messages that are larger than the window; with DATA the first one holds up the
/// other.
///
/// Shows: ext/I15.
#[test]
fn weights_hold_in_the_middle_of_large_messages() {
    for interleaving in [true, false] {
        let mut m = manual(&changed(config("weighted_fair"), |c| c.extensions.interleaving = interleaving));
        for (stream, weight) in [(1, 4), (2, 1)] {
            m.b.assoc(Side::Client).set_stream_value(StreamId(stream), Some(weight));
            queue(&mut m, stream, 1, 100_000);
        }
        m.b.flush();
        let tap = m.b.tap.replace(vec![]).expect("tapped");
        let (mut sent, mut data) = ([0, 0], 0);
        for t in tap.iter().filter(|t| t.1 == Side::Client) {
            let p = Packet::parse(&t.3, Verify::Checksum).expect("a packet");
            for c in p.chunks().flatten() {
                match c.decode() {
                    Ok(Chunk::IData(d)) => sent[usize::from(d.header.stream.0) - 1] += d.payload.len(),
                    Ok(Chunk::Data(d)) => data += usize::from(d.header.stream.0 == 2),
                    _ => {}
                }
            }
        }
        if interleaving {
            let got = sent[0] as f64 / sent[1] as f64;
            assert!((3.6..4.4).contains(&got), "{sent:?}");
        } else {
            assert_eq!((sent, data), ([0, 0], 0), "nothing of the second message yet");
        }
    }
}
