//! The send buffer: it fills as fast as it drains, and its user is not woken for each packet.

use crate::common::page::Page;
use crate::common::sampled::{Sample, all_cases};
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

const PAGE: Page = Page {
    file: "MEASURED.md",
    command: "UPDATE=1 ANABRANCH_ALL_CASES=1 cargo test -p anabranch-engine --test transfer send_buffer",
};

/// The cell of docs/MEASURED.md where all cases are run, or no less than it says: Mbit/s of a buffer of 64 KiB, and the
/// least share.
fn hold(mbit: &[f64], least: f64) {
    let rows = PAGE.hold("now", |row| {
        row.cell("command")?.contains("--test transfer send_buffer").then_some(())?;
        let says = row.cell("now")?;
        if !all_cases() {
            let (_, share) = says.rsplit_once("at least ").expect("a share");
            let share: f64 = share.trim_end_matches(" % of it").parse().expect("a number");
            assert!(least * 100.0 >= share, "{least}, and the page says {share} %");
            return Some(says.to_owned());
        }
        let (slow, fast) = (mbit.iter().copied().fold(f64::MAX, f64::min), mbit.iter().copied().fold(0.0, f64::max));
        let least = (least * 1_000.0).floor() / 10.0;
        Some(format!(
            "{slow:.2} to {fast:.2} Mbit/s with either, by the size of messages; over five links, three buffers and four \
             sizes at least {least:.1} % of it"
        ))
    });
    assert_eq!(rows, 1, "rows of docs/MEASURED.md about the send buffer");
}

#[test]
fn it_carries_what_a_receive_buffer_of_its_size_carries() {
    let (mut sample, mut rates, mut least) = (Sample::one_in(7), vec![], f64::MAX);
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
                least = least.min(got as f64 / wanted as f64);
                if (kib, mbit, rtt) == (64, 10, 100) {
                    rates.extend([got, wanted].map(|bytes| bytes as f64 * 8.0 / 10e6));
                }
                assert!(woken * 10 <= packets * 6, "{what}");
            }
        }
    }
    hold(&rates, least);
}
