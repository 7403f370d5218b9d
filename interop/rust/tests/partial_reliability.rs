//! Messages that are given up (RFC 3758, RFC 7496), with FORWARD-TSN and with I-FORWARD-TSN.

use anabranch_base::Duration;
use anabranch_interop::{Dcsctp, Flow, Network, Note, Peer, SctpProto, Setup, World};
use anabranch_wire::kind;

fn abandoned(notes: &[Note]) -> u64 {
    let of = |n: &Note| if let Note::Abandoned(n) = n { *n } else { 0 };
    notes.iter().map(of).sum()
}

/// One end sends what it gives up; the other sends reliably. Afterwards the first sends reliably too: a receiver that
/// waits for what was given up would show now.
fn gives_up<T: Peer>(end: usize, what: &Flow, interleaving: bool, accounted: bool) {
    for seed in 1..=3 {
        let setup = Setup { seed, interleaving, profile: "cmt", ..Setup::default() };
        let network = Network::lossy(seed, 0.08);
        let mut w = World::<T>::connected(setup, network, seed % 2 == 0);
        let context = format!("{} seed {seed}", T::NAME);
        w.send(end, what.clone());
        w.send(1 - end, Flow { messages: 200, every: Some(Duration::from_millis(20)), ..Flow::default() });
        let length = Duration::from_millis(u64::from(what.messages) * 10 + 20_000);
        w.run(length, |_| false);
        w.assert_clean();
        let lossy = [w.given[end], w.seen[1 - end].received];
        assert_eq!(lossy[0], u64::from(what.messages), "{context}: taken");
        assert_eq!(w.seen[end].received, w.given[1 - end], "{context}: the reliable side");
        let missing = lossy[0] - lossy[1];
        assert!(missing > 0 && missing < lossy[0] * 2 / 3, "{context}: {missing} of {} given up", lossy[0]);
        if accounted {
            let reported = abandoned(&w.notes[end]);
            assert!(reported >= missing, "{context}: {missing} are missing, {reported} were given up");
        }
        let skips = if interleaving { kind::I_FORWARD_TSN } else { kind::FORWARD_TSN };
        assert!(w.network.wire[end].count(skips) > 0, "{context}: {:?}", w.network.wire[end]);
        // On all streams, and all of it.
        let before = w.seen[1 - end].received;
        w.send(end, Flow { generation: 1, messages: 120, ..Flow::default() });
        let all = |w: &World<T>| w.seen[1 - end].received == before + 120;
        assert!(w.run(Duration::from_secs(120), all), "{context}: {} of 120 later", w.seen[1 - end].received - before);
        w.assert_clean();
    }
}

/// Small ones that a packet holds, and large ones of which a part may have arrived.
fn timed() -> Flow {
    let every = Some(Duration::from_millis(10));
    Flow { messages: 600, every, lifetime: Some(Duration::from_millis(40)), ..Flow::default() }
}

fn never_again() -> Flow {
    Flow { lifetime: None, retransmissions: Some(0), ..timed() }
}

/// None waits for another: what is missing was given up.
fn unordered(flow: Flow) -> Flow {
    Flow { unordered: flow.streams, ..flow }
}

#[test]
fn we_give_up_towards_dcsctp() {
    for interleaving in [false, true] {
        for what in [timed(), never_again()] {
            gives_up::<Dcsctp>(0, &unordered(what.clone()), interleaving, true);
            // dcsctp throws away ordered messages that have come when it has to skip the one they wait for.
            gives_up::<Dcsctp>(0, &what, interleaving, false);
        }
    }
}

#[test]
fn dcsctp_gives_up_towards_us() {
    for interleaving in [false, true] {
        gives_up::<Dcsctp>(1, &never_again(), interleaving, true);
        gives_up::<Dcsctp>(1, &Flow { length: Some(700), ..timed() }, interleaving, true);
    }
}

/// dcsctp 0.1.16 takes a message that expires between two of its fragments out of its queue without an end, and goes
/// on with the first fragment of the next. Linux does so too. What is there of such a message is dropped; the others
/// come. (An ordered stream then waits for ever for what dcsctp does not skip.)
#[test]
fn dcsctp_leaves_messages_without_an_end() {
    gives_up::<Dcsctp>(1, &unordered(timed()), false, true);
}

#[test]
fn we_give_up_towards_sctp_proto() {
    gives_up::<SctpProto>(0, &timed(), false, true);
    gives_up::<SctpProto>(0, &never_again(), false, true);
}

#[test]
fn sctp_proto_gives_up_towards_us() {
    gives_up::<SctpProto>(1, &timed(), false, false);
    gives_up::<SctpProto>(1, &never_again(), false, false);
}
