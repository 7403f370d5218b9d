//! What a run allocates once it is under way: in one link transmission of fifteen at most, of fifty on one path.
//!
//! On one path an allocation comes with each refill of the send buffer and with losses. On several paths the messages
//! that wait for an earlier one are in the engine's ordered map, whose nodes come and go.

use anabranch_base::{Duration, Instant, Rate};
use anabranch_engine::AssocConfig;
use anabranch_lab::metrics::{Record, Wanted};
use anabranch_lab::node::{Application, Delivery, End, Pairs, SctpAgent, SctpConfig, SctpPacket};
use anabranch_policy::registry::Profile;
use anabranch_sim::network::{AgentId, LinkId, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Bulk, TrafficConfig};
use anabranch_sim::{Limit, LinkConfig, LossConfig};
use std::cell::RefCell;
use std::rc::Rc;

/// A greedy association over `paths` paths of 10 Mbit/s.
fn network(profile: &str, paths: usize, loss: &LossConfig, wanted: Wanted) -> Network<SctpPacket> {
    let mut t = Topology::new();
    let (a, b) = (t.host("a"), t.host("b"));
    let link = LinkConfig::fixed(Some(Rate::from_bits_per_sec(10_000_000)), Duration::from_millis(10));
    let link = link.with_limit(Limit::packets(50));
    for i in 0..paths {
        t.cable(&format!("path{i}"), a, b, link.clone().with_loss(loss.clone()), link.clone());
    }
    let mut network = Network::new(&t, 1).expect("a topology");
    let pairs = Pairs::of(network.addresses(a), network.addresses(b));
    let mut association = AssocConfig::new(Profile::named(profile).expect("registered"));
    association.mtu.packet_size = 1_480;
    association.limits.receive_buffer = 256 << 10;
    association.extensions.dynamic_addresses = false;
    let config = |end, peer| SctpConfig {
        end,
        association: association.clone(),
        pairs: pairs.clone(),
        peer: AgentId(peer),
        overhead: 20,
        seed: 7,
        flow: "main".into(),
    };
    let record = Rc::new(RefCell::new(Record::with(Instant::ZERO, Duration::from_secs(1_000), wanted)));
    let bulk = TrafficConfig::Bulk(Bulk { size: 1_400, total: None }).build(7, "main");
    let client = SctpAgent::new(config(End::Client, 0), record.clone());
    network.add(Box::new(SctpAgent::new(config(End::Server, 1), record)), Instant::ZERO);
    network.add(Box::new(client.sending(Application::new(bulk, Delivery::default()))), Instant::ZERO);
    network
}

fn transmissions(n: &Network<SctpPacket>) -> u64 {
    let links = (0..n.links()).filter_map(|i| n.link(LinkId(i as u32)));
    links.map(|l| l.counters().delivered.packets).sum()
}

/// The rest are nodes of the tree in which the receiver holds what waits for its turn.
#[test]
fn few_transmissions_allocate() {
    // One allocation in so many transmissions of a link at most.
    for (profile, paths, least) in [("ns2-era", 1, 50), ("ns2-era-cmt", 2, 15), ("cmt", 2, 15)] {
        for loss in [LossConfig::None, LossConfig::bernoulli(0.01)] {
            for wanted in [Wanted::NOTHING, Wanted::ALL] {
                let mut n = network(profile, paths, &loss, wanted);
                n.run_until(Instant::ZERO + Duration::from_secs(60));
                let before = transmissions(&n);
                let counted = allocation_counter::measure(|| n.run_until(Instant::ZERO + Duration::from_secs(90)));
                let (count, packets) = (counted.count_total, transmissions(&n) - before);
                assert!(packets > 20_000, "{profile}, {loss:?}: {packets} packets");
                let case = format!("{profile}, {loss:?}, {wanted:?}");
                assert!(count * least <= packets, "{case}: {count} allocations for {packets} packets");
            }
        }
    }
}
