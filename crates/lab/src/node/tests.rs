use super::*;
use crate::metrics::{Record, SharedRecord};
use anabranch_base::{Duration, Instant, Rate};
use anabranch_engine::AssocConfig;
use anabranch_policy::registry::Profile;
use anabranch_sim::network::{AgentId, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Bulk, Cbr, TrafficConfig};
use anabranch_sim::{LinkConfig, LossConfig};

const SECOND: Duration = Duration::from_secs(1);

fn link(mbit: u64, ms: u64) -> LinkConfig {
    LinkConfig::fixed(Some(Rate::from_bits_per_sec(mbit * 1_000_000)), Duration::from_millis(ms))
}

/// Two hosts with one cable for each of these links, which carry both directions.
struct Scene {
    network: Network<SctpPacket>,
    record: SharedRecord,
}

impl Scene {
    fn new(profile: &str, links: &[LinkConfig], traffic: TrafficConfig, reader: Reader) -> Scene {
        let mut t = Topology::new();
        let (a, b) = (t.host("a"), t.host("b"));
        for (i, l) in links.iter().enumerate() {
            let back = l.clone().with_loss(LossConfig::None);
            t.cable(&format!("path{i}"), a, b, l.clone(), back);
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
        let record = Record::shared(Instant::ZERO, SECOND);
        let server = SctpAgent::new(config(End::Server, 1), record.clone()).reading(reader);
        let client = SctpAgent::new(config(End::Client, 0), record.clone())
            .sending(Application::new(traffic.build(7, "main"), Delivery::default()));
        network.add(Box::new(server), Instant::ZERO);
        network.add(Box::new(client), Instant::ZERO);
        Scene { network, record }
    }

    fn run(mut self, seconds: u64) -> (Record, Scene) {
        self.network.run_until(Instant::ZERO + SECOND * seconds);
        let record = self.record.borrow().clone();
        (record, self)
    }
}

fn bulk() -> TrafficConfig {
    TrafficConfig::Bulk(Bulk::endless(1_452))
}

#[test]
fn one_path_is_filled_and_two_are_summed() {
    let (one, _) = Scene::new("sctp", &[link(10, 20)], bulk(), Reader::at_once()).run(20);
    let (two, scene) = Scene::new("cmt", &[link(10, 20), link(10, 20)], bulk(), Reader::at_once()).run(20);
    // 1452 of 1500 bytes are payload; the start takes a moment.
    let full = 20.0 * 1.25e6 * 1_452.0 / 1_500.0;
    for (record, paths) in [(&one, 1.0), (&two, 2.0)] {
        let share = record.main().bytes as f64 / (full * paths);
        assert!((0.95..1.0).contains(&share), "{share} of {paths} paths");
    }
    let client = scene.network.agent::<SctpAgent>(AgentId(1)).expect("the client");
    assert!(client.refused().is_none() && client.closed().is_none());
    let sent: Vec<u64> = client.association().expect("alive").paths().map(|(_, p)| p.counters.data_sent).collect();
    assert!(sent.len() == 2 && sent.iter().all(|s| *s > 20_000_000), "{sent:?}");
}

#[test]
fn delays_are_those_of_the_link() {
    let cbr = TrafficConfig::Cbr(Cbr { rate: Rate::from_bits_per_sec(80_000), size: 1_000, burst: 1 });
    let (r, _) = Scene::new("sctp", &[link(10, 30)], cbr.clone(), Reader::at_once()).run(10);
    // 1000 + 16 + 12 + 20 bytes at 10 Mbit/s and 30 ms; the first messages wait for the handshake.
    let want = 0.030 + 1_048.0 * 8.0 / 10e6;
    for d in [&r.main().packet_delay, &r.main().in_order_delay, &r.main().message_delay] {
        let median = d.percentile(50.0).expect("messages");
        assert!((median / want - 1.0).abs() < 1e-3, "{median}");
    }
    assert!(r.main().messages >= 98, "{}", r.main().messages);

    let lossy = link(10, 30).with_loss(LossConfig::bernoulli(0.05));
    let (r, _) = Scene::new("sctp", &[lossy], cbr, Reader::at_once()).run(60);
    assert!(r.main().in_order_delay.max() > Some(0.3), "three more messages tell of a loss");
    assert!(r.main().in_order_delay.count() == r.main().messages && r.main().held.max() > 1_000);
}

#[test]
fn a_slow_reader_slows_the_sender() {
    let reader = Reader::at(Rate::from_bits_per_sec(1_000_000));
    let (r, _) = Scene::new("sctp", &[link(10, 20)], bulk(), reader).run(30);
    let rate = r.main().bytes as f64 * 8.0 / 30.0;
    assert!((0.9e6..1.01e6).contains(&rate), "{rate}");
}

#[test]
fn the_same_seed_delivers_the_same() {
    let run = |loss: f64| {
        let links = [link(10, 20).with_loss(LossConfig::bernoulli(loss)), link(5, 40)];
        Scene::new("cmt-rtx-csi", &links, bulk(), Reader::at_once()).run(10).0.fingerprint()
    };
    assert_eq!(run(0.02), run(0.02));
    assert_ne!(run(0.02), run(0.021));
}
