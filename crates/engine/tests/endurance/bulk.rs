//! Much data over a bad link arrives whole: nothing lost, doubled or changed, checked by content.
//!
//! `ANABRANCH_BULK_MB` sets the volume (default 32); `just bulk` runs the gigabyte.

use crate::common::*;
use anabranch_base::{Duration, StreamId};
use anabranch_engine::SendOptions;
use anabranch_sim::{Jitter, Limit, LinkConfig, LossConfig};

fn bad_link(mbit: u64, delay: u64) -> LinkConfig {
    let mut l = link(mbit, delay).with_loss(LossConfig::bernoulli(0.05)).with_limit(Limit::packets(200));
    l.jitter = Jitter::Uniform(Duration::from_millis(2));
    l.jitter_reorders = true;
    l.duplicate = 0.01;
    l
}

/// Streams `volume` bytes in messages of mixed sizes and checks each byte.
fn transfer(profile: &str, links: &[(LinkConfig, LinkConfig)], volume: usize) -> Bench {
    let config = assoc_config(profile);
    let mut b = Bench::connected(7, &config, links);
    let source = pattern(9, 1 << 20);
    let mut offset = 0; // into an endless repetition of `source`
    let (mut sent, mut got) = (0usize, 0usize);
    let (mut next_out, mut next_in) = (0usize, 0usize);
    let size = |n: usize| 1 + (n * 7_919) % 5_000;
    while got < volume {
        while sent < volume {
            let len = size(next_out);
            let at = offset % (source.len() - 5_000);
            if !b.send(
                Side::Client,
                SendOptions { stream: StreamId(1), ..SendOptions::default() },
                source.slice(at..at + len),
            ) {
                break;
            }
            offset += len;
            sent += len;
            next_out += 1;
        }
        let until = b.now + ms(60_000);
        let held = b.at_server.len();
        assert!(
            b.run_until(until, |b| b.at_server.len() > held + 50 || b.at_server.len() > held && sent >= volume),
            "stalled after {got} of {volume} bytes"
        );
        for m in b.at_server.drain(..) {
            let len = size(next_in);
            let at = got % (source.len() - 5_000);
            assert!(m.payload.into_bytes() == source.slice(at..at + len), "message {next_in} differs");
            got += len;
            next_in += 1;
        }
    }
    assert_eq!(got, sent);
    b
}

fn volume() -> usize {
    let mb: usize = std::env::var("ANABRANCH_BULK_MB").ok().and_then(|v| v.parse().ok()).unwrap_or(32);
    mb << 20
}

#[test]
fn one_path_with_loss_reordering_and_duplicates() {
    let mut b = transfer("sctp", &[(bad_link(50, 10), bad_link(50, 10))], volume());
    let s = b.assoc(Side::Client).stats();
    assert!(s.retransmissions > 0);
    println!("{:.1} virtual seconds, {s:?}", b.now.as_secs_f64());
}

#[test]
fn two_paths_with_loss_reordering_and_duplicates() {
    let links = [(bad_link(50, 10), bad_link(50, 10)), (bad_link(20, 40), bad_link(20, 40))];
    let mut b = transfer("cmt", &links, volume() / 4);
    let now = b.now;
    for (id, p) in b.assoc(Side::Client).paths() {
        println!("{id:?} {:.1}s {:?} {:?}", now.as_secs_f64(), p.state, p.counters);
        assert!(p.counters.data_sent > 0);
    }
}
