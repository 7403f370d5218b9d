//! What a packet is made of (§6.10), and how messages become chunks (§6.9).

use crate::common::manual::*;
use crate::common::*;
use anabranch_base::StreamId;
use anabranch_engine::SendOptions;
use anabranch_sim::LossConfig;
use anabranch_wire::{Heartbeat, kind};

/// Shows: 9260/D7.
#[test]
fn a_pending_acknowledgement_rides_on_data_that_leaves() {
    let mut m = Manual::single("sctp");
    m.message(0, 100);
    m.packets();
    // One packet: its SACK may wait 200 ms, but not when something leaves.
    m.message(1, 100);
    assert!(m.packets().is_empty());
    m.b.run_for(ms(50));
    m.send(1, 100);
    let seen = m.packets();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].kinds, [kind::SACK, kind::DATA]);
    assert!(m.during(ms(300)).is_empty(), "it is not said twice");
    // Where it does not fit, the data leaves full and the SACK by itself.
    m.sack(1, &[]);
    m.message(2, 100);
    m.message(3, 100);
    m.send(1, FULL);
    let seen = m.packets();
    assert!(seen.iter().any(|p| p.data.iter().any(|d| d.payload.len() == FULL)), "{seen:?}");
    assert_eq!(seen.iter().filter(|p| p.sack.is_some()).count(), 1);
}

/// Shows: 9260/D17.
#[test]
fn control_before_data_tsns_rising_nothing_larger_than_the_path() {
    for profile in ["sctp", "cmt", "live", "low-latency", "confluent", "media"] {
        let lossy = |d| link(10, d).with_loss(LossConfig::bernoulli(0.02));
        let mut b = Bench::connected(11, &assoc_config(profile), &[(lossy(20), lossy(20)), (lossy(35), lossy(35))]);
        b.tap = Some(vec![]);
        for n in 0..600u32 {
            let stream = StreamId((n % 7) as u16);
            let size = 10 + (n as usize * 37) % 3_000;
            for side in [Side::Client, Side::Server] {
                let o = SendOptions { stream, unordered: n % 5 == 0, ..SendOptions::default() };
                b.send(side, o, numbered(stream.0, n, size));
            }
            // Several at once: a sender that is not held up has nothing to bundle otherwise.
            if n % 4 == 3 {
                b.run_for(ms(12));
            }
        }
        b.run_for(ms(20_000));
        let mut bundled = 0;
        for t in b.tap.take().expect("tapped") {
            let p = Seen::read(t.0, t.2, &t.3);
            assert!(p.len <= 1_200);
            let first_data = p.kinds.iter().position(|k| *k == kind::DATA).unwrap_or(p.kinds.len());
            assert!(p.kinds[first_data..].iter().all(|k| *k == kind::DATA), "{profile}: {:?}", p.kinds);
            assert!(p.data.windows(2).all(|w| w[0].tsn.before(w[1].tsn)), "{profile}: {:?}", p.data);
            bundled += usize::from(p.data.len() > 1);
        }
        assert!(bundled > 50, "{profile}: {bundled} packets with several");
        assert_eq!((b.at_server.len(), b.at_client.len()), (600, 600), "{profile}");
    }
}

/// Shows: 9260/D17.
#[test]
fn chunks_are_processed_in_order_and_a_partial_one_ends_the_packet() {
    let mut m = Manual::single("sctp");
    let asked = encoded(&Heartbeat::new(b"first"));
    let one = m.data(0, 0, 0, WHOLE, b"one");
    let two = m.data(1, 0, 1, WHOLE, b"two");
    let cut = &m.data(2, 0, 2, WHOLE, b"three is cut off")[..20];
    m.receive(0, &[&asked, &one, &two, cut]);
    let texts: Vec<_> = m.read().into_iter().map(|m| m.payload.into_bytes()).collect();
    assert_eq!(texts, [&b"one"[..], b"two"]);
    let seen = m.packets();
    assert_eq!(seen[0].kinds[0], kind::HEARTBEAT_ACK);
    assert_eq!(seen.iter().find_map(|p| p.sack.clone()).map(|s| s.cum), Some(m.server_first.plus(1)));
}

/// Shows: 9260/D13.
#[test]
fn fragments_are_neighbours_and_say_where_they_stand() {
    let mut m = Manual::single("sctp");
    let o = SendOptions { stream: StreamId(3), ..SendOptions::default() };
    assert!(m.b.send(Side::Client, o, pattern(1, 3 * FULL + 17)));
    let o = SendOptions { stream: StreamId(4), unordered: true, ..SendOptions::default() };
    assert!(m.b.send(Side::Client, o, pattern(2, 2 * FULL)));
    let mut all: Vec<SeenData> = m.packets().into_iter().flat_map(|p| p.data).collect();
    m.sack(4, &[]);
    all.extend(m.packets().into_iter().flat_map(|p| p.data));
    let place: Vec<(bool, bool)> = all.iter().map(|d| (d.flags.begin, d.flags.end)).collect();
    assert_eq!(place, [(true, false), (false, false), (false, false), (false, true), (true, false), (false, true)]);
    assert!(all.windows(2).all(|w| w[0].tsn.next() == w[1].tsn));
    assert!(all[..4].iter().all(|d| (d.stream, d.ssn, d.flags.unordered) == (3, 0, false)));
    assert!(all[4..].iter().all(|d| d.stream == 4 && d.flags.unordered && d.ssn == all[4].ssn));
    let joined: Vec<u8> = all[..4].iter().flat_map(|d| d.payload.to_vec()).collect();
    assert_eq!(joined, pattern(1, 3 * FULL + 17));
}

/// Shows: 9260/C12.
#[test]
fn each_path_has_a_size_and_messages_are_cut_for_the_smallest() {
    let config = changed(assoc_config("cmt"), |c| c.sending.max_burst = 0);
    let links = [(link(10, 20), link(10, 20)), (link(10, 20), link(10, 20))];
    let mut b = Bench::connected(5, &config, &links);
    assert!(b.assoc(Side::Client).set_path_mtu(anabranch_base::PathId(1), 700));
    b.tap = Some(vec![]);
    let mut flow = Flow::new(Side::Client, 1, 3_000);
    flow.transfer(&mut b, 200, ms(20_000)).expect("arrives");
    // Short messages fill each path's packets as far as they go.
    let mut short = Flow::new(Side::Client, 2, 100);
    short.transfer(&mut b, 3_000, ms(20_000)).expect("arrives");
    let tap = b.tap.take().expect("tapped");
    let seen: Vec<Seen> = tap.iter().filter(|t| t.1 == Side::Client).map(|t| Seen::read(t.0, t.2, &t.3)).collect();
    let largest = |path| seen.iter().filter(|p| p.path == path).map(|p| p.len).max().unwrap_or(0);
    assert!((600..=700).contains(&largest(1)), "{}", largest(1));
    assert!((1_000..=1_200).contains(&largest(0)), "{}", largest(0));
    let chunks = seen.iter().flat_map(|p| &p.data).map(|d| d.payload.len()).max();
    assert_eq!(chunks, Some(672), "a fragment fits either path");
}

/// Shows: 9260/D15.
#[test]
fn what_is_cut_already_is_not_cut_again() {
    let config = changed(assoc_config("sctp"), |c| c.sending.max_burst = 0);
    let mut m = Manual::new(&config, &[(link(10, 20), link(10, 20))]);
    m.send(1, 20_000);
    let first = m.packets();
    assert!(first.iter().all(|p| p.data[0].payload.len() == FULL));
    assert!(m.b.assoc(Side::Client).set_path_mtu(anabranch_base::PathId(0), 600));
    let again = m.during(ms(1_001));
    assert_eq!(
        (again[0].data.len(), &again[0].data[0]),
        (1, &first[0].data[0]),
        "the same chunk, larger than the path"
    );
    m.sack(4, &[]);
    let rest = m.packets();
    assert_eq!(m.offsets(&rest), [4]);
    m.sack(5, &[]);
    let rest = m.packets();
    let sizes: Vec<usize> = rest.iter().flat_map(|p| &p.data).map(|d| d.payload.len()).collect();
    // The one before had its TSN already.
    assert!(sizes.len() > 1 && sizes.iter().all(|s| *s <= 572), "{sizes:?}");
}
