//! A peer that is given up by time (`peer_timeout`): so long after the first packet that it left unanswered, however long
//! nothing had been asked of it before.

use crate::common::*;
use anabranch_base::{Duration, RandomStream};
use anabranch_engine::{AssocConfig, CloseReason, Event, SendOptions};

fn config(profile: &str, heartbeat_s: u64, timeout_s: u64) -> AssocConfig {
    changed(assoc_config(profile), |c| {
        c.timers.heartbeat_interval = Duration::from_secs(heartbeat_s);
        c.timers.rto_max = Duration::from_secs(3);
        c.failure.peer_timeout = Some(Duration::from_secs(timeout_s));
    })
}

/// Every profile, with no HEARTBEATs at all and with few, against both timeouts that pages name.
fn cases() -> impl Iterator<Item = (&'static str, u64, u64)> {
    let profiles = ["low-latency", "live", "sctp"].into_iter();
    profiles.flat_map(|p| [0, 30, 300].into_iter().flat_map(move |h| [10, 60].map(move |t| (p, h, t))))
}

fn connected(c: &AssocConfig) -> Bench {
    let mut b = Bench::connected(7, c, &[(link(10, 20), link(10, 20))]);
    b.largest = 1_500;
    b
}

fn lost(b: &Bench) -> bool {
    let over = |e: &Event| matches!(e, Event::Closed(_));
    b.client_events.iter().chain(&b.server_events).any(over)
}

fn ask(b: &mut Bench, n: u32) {
    assert!(b.send(Side::Client, SendOptions::default(), numbered(0, n, 40)));
}

/// One packet in twenty is lost, either way, and a message leaves every minute for a day.
#[test]
fn one_lost_packet_does_not_end_what_was_idle() {
    for (profile, heartbeat, timeout) in cases() {
        let mut b = connected(&config(profile, heartbeat, timeout));
        let mut r = RandomStream::named(11, "loss");
        b.filter = Some(Box::new(move |_| !r.u64().is_multiple_of(20)));
        for n in 0..24 * 60 {
            ask(&mut b, n);
            b.run_for(Duration::from_secs(60));
            assert!(!lost(&b), "{profile}, heartbeats {heartbeat} s, timeout {timeout} s: over after {n} minutes");
        }
        assert_eq!(b.at_server.len(), 24 * 60, "{profile}, heartbeats {heartbeat} s, timeout {timeout} s");
    }
}

/// An outage of 48 s is survived by a timeout of 60 s, whatever part of it was idle before.
#[test]
fn an_outage_below_the_timeout_is_survived() {
    for (profile, heartbeat, idle) in
        cases().filter(|(_, _, t)| *t == 60).flat_map(|(p, h, _)| [1, 59, 61, 600].map(|idle| (p, h, idle)))
    {
        let mut b = connected(&config(profile, heartbeat, 60));
        ask(&mut b, 0);
        b.run_for(Duration::from_secs(idle));
        b.cut(0);
        ask(&mut b, 1);
        b.run_for(Duration::from_secs(48));
        b.restore(0);
        b.run_for(Duration::from_secs(10));
        assert!(!lost(&b), "{profile}, heartbeats {heartbeat} s, idle {idle} s");
        assert_eq!(b.at_server.len(), 2, "{profile}, heartbeats {heartbeat} s, idle {idle} s");
    }
}

/// One of three minutes is not: the end comes as long after the first message without an answer as was asked for.
#[test]
fn a_longer_one_ends_the_timeout_after_the_first_unanswered_message() {
    for (profile, heartbeat, timeout) in cases() {
        for idle in [1, 59, 601] {
            let mut b = connected(&config(profile, heartbeat, timeout));
            ask(&mut b, 0);
            b.run_for(Duration::from_secs(idle));
            b.cut(0);
            let cut = b.now;
            ask(&mut b, 1);
            while !lost(&b) && b.now.since(cut) < Duration::from_secs(180) {
                b.run_for(ms(20));
            }
            let ended = b.client_events.contains(&Event::Closed(CloseReason::PeerGone));
            let after: Duration = b.now.since(cut);
            let name = format!("{profile}, heartbeats {heartbeat} s, timeout {timeout} s, idle {idle} s");
            assert!(ended, "{name}: not over");
            let from = Duration::from_secs(timeout);
            assert!((from..from + ms(100)).contains(&after), "{name}: over after {after:?}");
        }
    }
}
