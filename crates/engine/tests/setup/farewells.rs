//! Packets that come for an association that was shut down a moment ago (RFC 9260 §8.4, §9.2).

use super::shutdown::{shutdown, shutdown_ack, shutdown_sent};
use crate::common::raw::*;
use crate::common::*;
use anabranch_base::{PathId, Tsn};
use anabranch_engine::{CloseReason, Event, SendOptions};
use anabranch_wire::{Heartbeat, kind};

/// The peer waits for SHUTDOWN COMPLETE still, and would take an ABORT for the end of it.
#[test]
fn what_comes_late_for_one_that_was_shut_down_is_not_answered_by_abort() {
    let late = [
        chunk(kind::HEARTBEAT_ACK, 0, &[0, 1, 0, 8, 1, 2, 3, 4]),
        bytes(&Heartbeat::new(&[1; 20])),
        data(PEER_TSN, 0, b"x"),
        sack(Tsn(1)),
        shutdown(Tsn(1)),
    ];
    for both in [false, true] {
        for l in &late {
            let (mut r, _, _) = shutdown_sent();
            if both {
                r.give(&[&shutdown(r.first_tsn.minus(1))]);
                r.take();
            }
            r.give(&[&shutdown_ack()]);
            for from in [peer(1), peer(2)] {
                r.give_from(from, r.tag, &[l]);
            }
            assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_COMPLETE]], "and nothing else");
            r.run_for(ms(9_000));
            r.give(&[l]);
            assert!(r.take().is_empty());
            r.give(&[&shutdown_ack()]);
            assert_eq!(r.take_kinds(), [[kind::SHUTDOWN_COMPLETE]]);
            r.run_for(ms(1_000));
            r.give(&[l]);
            assert_eq!(r.take_kinds(), [[kind::ABORT]], "forgotten");
        }
    }
}

/// Answers that come by one path while the end travels by the other.
#[test]
fn both_hear_of_a_good_end_whatever_the_paths_delays_are() {
    for profile in ["low-latency", "cmt", "sctp"] {
        // There by the one path, back by it; there by the other, back by it.
        let delays =
            [[1, 1, 1, 1], [1, 1, 1, 40], [20, 1, 1, 30], [60, 5, 10, 70], [100, 1, 1, 150], [100, 100, 20, 200]];
        for (seed, d) in (1..).zip(delays.repeat(6)) {
            let links = [(link(10, d[0]), link(10, d[1])), (link(10, d[2]), link(10, d[3]))];
            let mut b = Bench::connected(seed, &assoc_config(profile), &links);
            for n in 0..40 + seed as u32 {
                let side = if n % 3 == 0 { Side::Server } else { Side::Client };
                b.send(side, SendOptions::default(), numbered(0, n, 300));
                b.run_for(ms(7));
            }
            // Probes of both paths are on their way.
            b.run_for(ms(500));
            let now = b.now;
            (0..2).for_each(|path| _ = b.assoc(Side::Client).request_heartbeat(now, PathId(path)));
            b.assoc(Side::Client).shutdown(now);
            b.tap = Some(vec![]);
            b.run_for(ms(5_000));
            assert_eq!(b.tapped(Side::Client, kind::ABORT).len(), 0, "{profile}, {d:?}, {seed}");
            for (side, events) in [(Side::Client, &b.client_events), (Side::Server, &b.server_events)] {
                let ends: Vec<_> = events.iter().filter(|e| matches!(e, Event::Closed(_))).collect();
                assert_eq!(ends, [&Event::Closed(CloseReason::Shutdown)], "{profile}, {d:?}, {seed}, {side:?}");
            }
        }
    }
}
