//! I-DATA (RFC 8260), streams that begin anew (RFC 6525), packets without a checksum (RFC 9653), restarts: used, as the
//! wire shows, and not only agreed on.

use anabranch_base::Duration;
use anabranch_interop::{Dcsctp, Flow, Network, Note, Peer, SctpProto, Setup, World};
use anabranch_wire::kind;

fn exchange<T: Peer>(w: &mut World<T>, generation: u32) {
    w.send(0, Flow { generation, ..Flow::default() });
    w.send(1, Flow { generation, ..Flow::default() });
    let done = w.run(Duration::from_secs(300), World::transferred);
    assert!(done, "given {:?}, arrived at us {}, there {}", w.given, w.seen[0].received, w.seen[1].received);
    w.assert_clean();
}

#[test]
fn dcsctp_and_we_interleave() {
    for (seed, we_open) in [(1, true), (2, false), (3, true)] {
        let setup = Setup { seed, interleaving: true, ..Setup::default() };
        let network = if seed == 3 { Network::good(3) } else { Network::bad(seed) };
        let mut w = World::<Dcsctp>::connected(setup, network, we_open);
        exchange(&mut w, 0);
        assert!(w.theirs.interleaves(), "dcsctp knows");
        for wire in &w.network.wire {
            assert!(wire.count(kind::I_DATA) > 500 && wire.count(kind::DATA) == 0, "{wire:?}");
        }
    }
}

/// One side has it switched on alone: both send DATA.
#[test]
fn interleaving_needs_both() {
    for ours in [true, false] {
        let theirs = Setup { interleaving: !ours, ..Setup::default() };
        let mut w =
            World::<Dcsctp>::with(Setup { interleaving: ours, ..Setup::default() }, Network::good(1), true, false);
        w.theirs = Dcsctp::new(&theirs, false, 0, w.now);
        assert!(w.run(Duration::from_secs(5), |w| w.both(|n| *n == Note::Connected)), "{:?}", w.notes);
        exchange(&mut w, 0);
        assert!(w.network.wire.iter().all(|w| w.count(kind::I_DATA) == 0 && w.count(kind::DATA) > 500));
    }
    // sctp-proto knows none.
    let setup = Setup { interleaving: true, ..Setup::default() };
    let mut w = World::<SctpProto>::connected(setup, Network::good(1), true);
    exchange(&mut w, 0);
    assert_eq!(w.network.wire[0].count(kind::I_DATA), 0);
}

#[test]
fn dcsctp_and_we_leave_the_checksum_out() {
    for (seed, we_open) in [(1, true), (2, false)] {
        let setup = Setup { seed, zero_checksum: true, ..Setup::default() };
        let mut w = World::<Dcsctp>::connected(setup, Network::bad(seed), we_open);
        exchange(&mut w, 0);
        for wire in &w.network.wire {
            assert!(wire.unsummed > 400, "{wire:?}");
        }
    }
}

/// One side has it switched on alone: every packet is summed.
#[test]
fn zero_checksum_needs_both() {
    for ours in [true, false] {
        let theirs = Setup { zero_checksum: !ours, ..Setup::default() };
        let mut w =
            World::<Dcsctp>::with(Setup { zero_checksum: ours, ..Setup::default() }, Network::good(1), true, false);
        w.theirs = Dcsctp::new(&theirs, false, 0, w.now);
        assert!(w.run(Duration::from_secs(5), |w| w.both(|n| *n == Note::Connected)), "{:?}", w.notes);
        exchange(&mut w, 0);
        assert_eq!(w.network.wire.each_ref().map(|w| w.unsummed), [0, 0]);
    }
}

fn was_reset(notes: &[Note], incoming: bool, streams: &[u16]) -> bool {
    let of = |n: &Note| match n {
        Note::Reset { incoming: i, streams } if *i == incoming => streams.clone(),
        _ => Vec::new(),
    };
    let mut all: Vec<u16> = notes.iter().flat_map(of).collect();
    all.sort_unstable();
    all == streams
}

/// Our streams begin anew between two lots of messages, then theirs.
fn reset(seed: u64, interleaving: bool) {
    let setup = Setup { seed, interleaving, ..Setup::default() };
    let mut w = World::<Dcsctp>::connected(setup, Network::bad(seed), true);
    exchange(&mut w, 0);
    w.ours.reset(w.now, &[1, 3]);
    let done = w.run(Duration::from_secs(60), |w| {
        was_reset(&w.notes[0], false, &[1, 3]) && was_reset(&w.notes[1], true, &[1, 3])
    });
    assert!(done, "ours, seed {seed}: {:?}", w.notes);
    exchange(&mut w, 1);
    w.theirs.reset(w.now, &[0, 2]);
    let done = w.run(Duration::from_secs(60), |w| {
        was_reset(&w.notes[0], true, &[0, 2]) && was_reset(&w.notes[1], false, &[0, 2])
    });
    assert!(done, "theirs, seed {seed}: {:?}", w.notes);
    w.ours.sequence.clear();
    exchange(&mut w, 2);
    if !interleaving {
        for stream in 0..4 {
            let first = w.ours.sequence.iter().find(|(s, _)| *s == stream).expect("some").1;
            let anew = stream == 0 || stream == 2;
            assert_eq!(first == Some(0), anew, "stream {stream} goes on at {first:?}");
        }
    }
    assert!(w.network.wire.iter().all(|w| w.count(kind::RE_CONFIG) > 0));
}

#[test]
fn streams_of_dcsctp_and_ours_begin_anew() {
    for seed in 1..=4 {
        reset(seed, seed > 2);
    }
}

/// WebRTC closes a data channel so: one end resets its stream, the other resets the same one in turn.
#[test]
fn a_data_channel_of_sctp_proto_is_closed_and_opened_again() {
    for seed in 1..=3 {
        for we_begin in [true, false] {
            let mut w = World::<SctpProto>::connected(Setup { seed, ..Setup::default() }, Network::bad(seed), true);
            exchange(&mut w, 0);
            if we_begin {
                w.ours.reset(w.now, &[1]);
                let asked = w.run(Duration::from_secs(60), |w| was_reset(&w.notes[0], true, &[1]));
                assert!(asked, "it closes its side too: {:?}", w.notes);
            } else {
                w.theirs.reset(w.now, &[1]);
                assert!(w.run(Duration::from_secs(60), |w| was_reset(&w.notes[0], true, &[1])), "{:?}", w.notes);
                w.ours.reset(w.now, &[1]);
            }
            let done = w.run(Duration::from_secs(60), |w| {
                let closed = |n: &Note| matches!(n, Note::Reset { incoming: false, streams } if streams == &[1]);
                was_reset(&w.notes[0], false, &[1]) && w.notes[1].iter().any(closed)
            });
            assert!(done, "{:?}", w.notes);
            exchange(&mut w, 1);
        }
    }
}

/// An end loses its memory and opens the association anew from the same address and port.
fn restart(end: usize) {
    for (seed, network) in [(1, Network::good(1)), (2, Network::bad(2)), (3, Network::bad(3))] {
        let mut w = World::<Dcsctp>::connected(Setup { seed, ..Setup::default() }, network, true);
        exchange(&mut w, 0);
        w.restart(end);
        let other = 1 - end;
        let again = w.run(Duration::from_secs(60), |w| {
            let opened = w.notes[end].iter().filter(|n| **n == Note::Connected).count();
            opened == 2 && w.notes[other].contains(&Note::Restarted)
        });
        assert!(again, "{:?}", w.notes);
        exchange(&mut w, 1);
        assert!(!w.both(|n| matches!(n, Note::Closed(_))), "{:?}", w.notes);
    }
}

#[test]
fn dcsctp_restarts() {
    restart(1);
}

#[test]
fn we_restart_towards_dcsctp() {
    restart(0);
}
