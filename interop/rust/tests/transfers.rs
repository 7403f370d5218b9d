//! Messages of all lengths, ordered and not, both ways at once.

use anabranch_base::Duration;
use anabranch_interop::{Dcsctp, Flow, Network, Peer, SctpProto, Setup, World};

fn transfer<T: Peer>(setup: Setup, network: Network, we_open: bool) -> World<T> {
    let bad = network.loss > 0.0;
    let mut w = World::<T>::connected(setup, network, we_open);
    w.send(0, Flow::default());
    w.send(1, Flow::default());
    let done = w.run(Duration::from_secs(300), World::transferred);
    w.assert_clean();
    assert!(done, "given {:?}, arrived at us {}, there {}", w.given, w.seen[0].received, w.seen[1].received);
    for wire in &w.network.wire {
        assert!(!bad || (wire.lost > 10 && wire.doubled > 10 && wire.overtaken > 10), "{wire:?}");
    }
    w
}

fn all<T: Peer>() {
    for we_open in [true, false] {
        transfer::<T>(Setup::default(), Network::good(1), we_open);
        for seed in 1..=4 {
            let profile = ["live", "cmt", "sctp", "thin"][seed as usize - 1];
            transfer::<T>(Setup { seed, profile, ..Setup::default() }, Network::bad(seed), we_open);
        }
    }
}

#[test]
fn dcsctp_both_ways_with_loss_duplicates_and_reordering() {
    all::<Dcsctp>();
}

#[test]
fn sctp_proto_both_ways_with_loss_duplicates_and_reordering() {
    all::<SctpProto>();
}
