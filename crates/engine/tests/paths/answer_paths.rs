//! By which path acknowledgements leave: where the peer hears them, whatever was once lost there.

use crate::common::*;
use anabranch_base::PathId;
use anabranch_policy::view::PathState;
use anabranch_sim::Direction;
use anabranch_wire::kind;

/// The client's path 0 carries its messages; an answer of the server was lost there once, so it acknowledges by path 1.
/// Then path 1 dies, and path 0 is whole again.
fn forsaken(profile: &str) -> (Bench, Flow) {
    let config = assoc_config(profile);
    let mut b = Bench::connected(5, &config, &[(link(10, 20), link(10, 20)), (link(10, 30), link(10, 30))]);
    let mut flow = Flow::new(Side::Client, 0, 900);
    flow.transfer(&mut b, 50, ms(5_000)).expect("arrives");
    b.set_up(0, Direction::Backward, false);
    let now = b.now;
    assert!(b.assoc(Side::Server).request_heartbeat(now, PathId(0)));
    b.run_for(ms(1_500));
    b.set_up(0, Direction::Backward, true);
    b.tap = Some(vec![]);
    (b, flow)
}

/// Where acknowledgements went since the last look.
fn by_path(b: &mut Bench) -> [usize; 2] {
    let of = |b: &Bench, path| b.tapped(Side::Server, kind::SACK).iter().filter(|(_, _, p, _)| *p == path).count();
    let counts = [of(b, 0), of(b, 1)];
    b.tap = Some(vec![]);
    counts
}

#[test]
fn a_path_that_answers_again_carries_acknowledgements_again() {
    for profile in ["sctp", "live", "media"] {
        let (mut b, mut flow) = forsaken(profile);
        flow.stream(&mut b, ms(20), ms(1_000));
        let there = by_path(&mut b);
        flow.stream(&mut b, ms(20), ms(1_000));
        let then = by_path(&mut b);
        assert!(then[0] > 10 && then[1] == 0, "{profile}: {there:?}, then {then:?}");
    }
}

#[test]
fn acknowledgements_that_are_lost_leave_by_the_way_that_the_repetitions_came() {
    for profile in ["live", "thin", "cmt"] {
        let (mut b, mut flow) = forsaken(profile);
        // No HEARTBEAT of the server finds out that path 0 is whole.
        b.filter = drop_first(Side::Server, kind::HEARTBEAT, usize::MAX);
        b.cut(1);
        // Nothing but a repetition shows that the answers were lost; without this it takes 27 s in two of the three.
        let took = flow.transfer(&mut b, 20, ms(2_500));
        assert!(took.is_some(), "{profile}: {:?}", by_path(&mut b));
    }
}

/// A peer may list any address, and anybody may send from one: nothing but HEARTBEATs goes to those that never answered.
#[test]
fn repetitions_from_an_address_that_is_not_confirmed_are_answered_elsewhere() {
    let config = assoc_config("live");
    let mut b = Bench::new(5, &config);
    for i in 0..2 {
        b.paths.add(&format!("path{i}"), link(10, 20), link(10, 20));
    }
    // What the server asks there is never answered.
    b.set_up(1, Direction::Backward, false);
    b.connect(&config);
    b.run_for(ms(100));
    let mut flow = Flow::new(Side::Client, 0, 900);
    b.tap = Some(vec![]);
    flow.transfer(&mut b, 50, ms(5_000)).expect("arrives");
    let data = b.tapped(Side::Client, kind::DATA).first().map(|t| t.3.clone()).expect("some");
    assert_eq!(b.path(Side::Server, 1).state, PathState::Unconfirmed);
    b.tap = Some(vec![]);
    for _ in 0..20 {
        b.inject(Side::Server, 1, &data);
        b.run_for(ms(20));
    }
    let there = by_path(&mut b);
    assert!(there[0] >= 20 && there[1] == 0, "{there:?}");
}
