//! Acknowledgements that the peer withdrew are watched over by a timer, also when the path it ran on is left.

use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::{AssocConfig, SendOptions};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_policy::view::PathState;
use anabranch_wire::kind;
use bytes::Bytes;

fn message(b: &mut Bench, number: u32, life: u64) {
    let deadline = (life > 0).then(|| b.now + ms(life));
    let options = SendOptions { stream: StreamId(1), unordered: true, deadline, ..SendOptions::default() };
    assert!(b.send(Side::Client, options, numbered(1, number, 500)));
    b.run_for(ms(0));
}

#[test]
fn a_path_that_is_left_takes_no_watch_along() {
    let mut profile = Profile::named("cmt").expect("registered");
    for (hook, spec) in [
        (Hook::PathScheduler, "primary_only"),
        (Hook::Abandon, "lifetime"),
        (Hook::Acknowledge, "immediate"),
        (Hook::PathState, "path_truth:ack_delay=0"),
    ] {
        profile.set(hook, spec).expect("registered");
    }
    let links = [(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))];
    let mut b = Bench::connected(3, &AssocConfig::with(profile, anabranch_engine::Constants::RFC), &links);
    b.strict = true;
    b.tap = Some(vec![]);
    for n in 0..5 {
        message(&mut b, n, 0);
        b.run_for(ms(200));
    }
    let old: Bytes = b.tapped(Side::Server, kind::SACK).last().expect("acknowledged").3.clone();
    // One message is lost and soon worthless, the next arrives, and the peer withdraws it.
    b.filter = drop_first(Side::Client, kind::DATA, 1);
    message(&mut b, 5, 60);
    message(&mut b, 6, 0);
    b.run_for(ms(45));
    b.inject(Side::Client, 0, &old);
    b.check();
    b.cut(0);
    let until = b.now + ms(2_000);
    let left = b.run_until(until, |b| {
        b.check();
        let a = b.client.association(b.client_id).expect("alive");
        a.paths().any(|(_, p)| p.state == PathState::Suspected)
    });
    assert!(left, "the path is left");
    b.check();
    b.run_for(ms(3_000));
    let mut got: Vec<_> = b.at_server.iter().map(|m| number_of(m).1).collect();
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2, 3, 4, 6]);
    assert_eq!(b.assoc(Side::Client).stats().outstanding, 0);
}
