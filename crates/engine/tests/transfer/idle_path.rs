//! Messages with a deadline that the path meets with ease: what is lost is lost, and nothing else is missed.

use crate::common::*;
use anabranch_base::Duration;
use anabranch_engine::SendOptions;
use anabranch_sim::{Limit, LinkConfig, LossConfig};

/// A message of `bytes` each `gap` ms, worthless after `life` ms, over 2 Mbit/s and `delay` ms: the part of 1,500 messages
/// that did not arrive in time.
fn missed(profile: &str, sack_delay: u64, [bytes, gap, delay, life]: [u64; 4], loss: f64, class: u8) -> f64 {
    let lossy =
        LinkConfig { ..link(2, delay) }.with_limit(Limit::packets(200)).with_loss(LossConfig::Bernoulli { p: loss });
    let (client, mut server) = (assoc_config(profile), assoc_config(profile));
    server.timers.sack_delay = ms(sack_delay);
    let mut b = Bench::connected_pair(delay + life, &client, &server, &[(lossy, link(2, delay))]);
    let (count, mut made, mut in_time, mut seen) = (1_500u32, vec![], 0, 0);
    for n in 0..count {
        let options =
            SendOptions { unordered: true, class, deadline: Some(b.now + ms(life)), ..SendOptions::default() };
        made.push(b.now);
        b.send(Side::Client, options, numbered(0, n, bytes as usize));
        for _ in 0..gap * 2 {
            b.run_for(Duration::from_micros(500));
            for m in &b.at_server[seen..] {
                in_time += u32::from(b.now.since(made[number_of(m).1 as usize]) <= ms(life + 1));
            }
            seen = b.at_server.len();
        }
    }
    1.0 - f64::from(in_time) / f64::from(count)
}

#[test]
fn nothing_is_given_up_for_what_acknowledgements_waited() {
    let mut bad = vec![];
    for profile in ["cmt", "cmt-fair", "media", "low-latency", "live", "sctp"] {
        for shape in [
            [500, 20, 40, 60],
            [500, 20, 40, 80],
            [500, 20, 40, 110],
            [100, 50, 20, 45],
            [400, 30, 60, 100],
            [300, 200, 30, 50],
        ] {
            for (loss, class, sack_delay) in
                [(0.0, 2, 200), (0.01, 2, 20), (0.01, 2, 200), (0.01, 1, 200), (0.05, 2, 200)]
            {
                let missed = missed(profile, sack_delay, shape, loss, class);
                if missed > loss * 1.3 + 0.02 {
                    bad.push(format!(
                        "{profile}, {shape:?}, loss {loss}, class {class}, SACKs wait {sack_delay} ms: {missed:.3}"
                    ));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
