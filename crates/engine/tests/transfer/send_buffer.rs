//! The send buffer: it fills as fast as it drains, and its user is not woken for each packet.

use crate::common::sampled::Sample;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocConfig, Event, SendOptions};

/// Payload delivered in ten seconds to a user who sends when there is room and sleeps when there is none, bytes; how
/// often he was woken, and packets that the link carried.
fn bulk(config: &AssocConfig, mbit: u64, rtt: u64, message: usize) -> (u64, u64, u64) {
    let mut b = Bench::connected(1, config, &[(link(mbit, rtt / 2), link(mbit, rtt / 2))]);
    let (mut number, mut woken) = (0, 0);
    let mut packets = 0;
    let (warm, until) = (b.now + ms(5_000), b.now + ms(15_000));
    let mut at_warm = 0;
    while b.now < until {
        let o = SendOptions { stream: StreamId(0), ..SendOptions::default() };
        while b.send(Side::Client, o, numbered(0, number, message)) {
            number += 1;
        }
        let limit = if b.now < warm { warm } else { until };
        b.client_events.clear();
        let some = b.run_until(limit, |b| b.client_events.contains(&Event::Writable));
        woken += u64::from(some && b.now >= warm);
        if !some {
            b.now = limit;
            if limit == warm {
                at_warm = b.assoc(Side::Server).stats().bytes_received;
                packets = b.path(Side::Client, 0).counters.packets_sent;
            }
        }
        b.at_server.clear();
    }
    let got = b.assoc(Side::Server).stats().bytes_received - at_warm;
    (got, woken, b.path(Side::Client, 0).counters.packets_sent - packets)
}

#[test]
fn it_carries_what_a_receive_buffer_of_its_size_carries() {
    let mut sample = Sample::one_in(7);
    for (mbit, rtt) in [(10, 100), (2, 300), (10, 20), (50, 60), (5, 200)] {
        for kib in [16, 64, 256] {
            for message in [400, 1_000, 1_172, 3_000].into_iter().filter(|_| sample.takes()) {
                let large = changed(assoc_config("sctp"), |c| {
                    c.limits.send_buffer = 16 << 20;
                    c.limits.receive_buffer = 16 << 20;
                });
                let received = changed(large.clone(), |c| c.limits.receive_buffer = kib << 10);
                let sent = changed(large, |c| c.limits.send_buffer = kib << 10);
                let (wanted, ..) = bulk(&received, mbit, rtt, message);
                let (got, woken, packets) = bulk(&sent, mbit, rtt, message);
                let what = format!(
                    "{kib} KiB, {mbit} Mbit/s, {rtt} ms, messages of {message}: {got} bytes, by a receive buffer \
                     {wanted}; woken {woken} times for {packets} packets"
                );
                println!("{what}");
                assert!(got * 100 >= wanted * 95, "{what}");
                assert!(woken * 10 <= packets * 6, "{what}");
            }
        }
    }
}
