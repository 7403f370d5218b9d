//! Handshake, data, end, over one path.

use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{CloseReason, Event, SendOptions};

#[test]
fn connects_sends_both_ways_and_shuts_down() {
    let mut b = Bench::connected(1, &assoc_config("sctp"), &[(link(10, 20), link(10, 20))]);
    let big = pattern(1, 100_000);
    assert!(b.send(Side::Client, SendOptions::default(), big.clone()));
    assert!(b.send(Side::Server, SendOptions { stream: StreamId(3), ..SendOptions::default() }, &b"hello"[..]));
    b.run_for(ms(5_000));
    assert_eq!(b.at_server.len(), 1);
    assert_eq!(b.at_server[0].payload.clone().into_bytes(), big);
    assert_eq!(b.at_client[0].stream, StreamId(3));
    let now = b.now;
    b.assoc(Side::Client).shutdown(now);
    b.run_for(ms(5_000));
    assert!(b.client_events.contains(&Event::Closed(CloseReason::Shutdown)), "{:?}", b.client_events);
    assert!(b.server_events.contains(&Event::Closed(CloseReason::Shutdown)), "{:?}", b.server_events);
}
