//! What a simulated SCTP packet costs with few and with many associations: nanoseconds of CPU per link transmission.
//!
//! ```text
//! cargo run --release -p anabranch-lab --example flows [-- ASSOCIATIONS [ROUNDS]]
//! ```
//! Each association has ten messages of 1,000 bytes a second to send over a cable that all share, for so long that each
//! case has the same number of messages. The cases (1, 10, 100 and 1,000) are run in turn, `ROUNDS` times (3), and the
//! least of each is printed. The first second, with the handshakes, does not count. CPU time is Linux's.

use anabranch_base::{Duration, Instant, Rate};
use anabranch_engine::AssocConfig;
use anabranch_lab::metrics::{Record, Wanted};
use anabranch_lab::node::{Application, Delivery, End, Pairs, SctpAgent, SctpConfig, SctpPacket};
use anabranch_policy::registry::Profile;
use anabranch_sim::network::{AgentId, LinkId, Network};
use anabranch_sim::topology::Topology;
use anabranch_sim::traffic::{Cbr, TrafficConfig};
use anabranch_sim::{Limit, LinkConfig};
use std::cell::RefCell;
use std::rc::Rc;

const CASES: [u64; 4] = [1, 10, 100, 1_000];
/// Seconds of all associations together.
const SECONDS: u64 = 50_000;

fn main() {
    let argument = |i| std::env::args().nth(i).and_then(|a| a.parse::<u64>().ok());
    let cases = argument(1).map_or(CASES.to_vec(), |flows| vec![flows.clamp(1, SECONDS)]);
    let mut results = vec![(f64::MAX, 0); cases.len()];
    for _ in 0..argument(2).unwrap_or(3) {
        for (&flows, (least, sent)) in cases.iter().zip(&mut results) {
            let mut network = network(flows);
            let begin = Instant::ZERO + Duration::from_secs(1);
            network.run_until(begin);
            let before = (cpu_ns(), transmissions(&network));
            network.run_until(begin + Duration::from_secs(SECONDS / flows));
            *sent = transmissions(&network) - before.1;
            *least = least.min((cpu_ns() - before.0) as f64 / *sent as f64);
        }
    }
    println!("associations  virtual s  transmissions  ns of CPU each");
    for (flows, (least, sent)) in cases.into_iter().zip(results) {
        println!("{flows:>12} {:>10} {sent:>14} {least:>15.1}", SECONDS / flows);
    }
}

fn network(flows: u64) -> Network<SctpPacket> {
    let rate = Rate::from_bits_per_sec(1_000_000_000);
    let link = LinkConfig::fixed(Some(rate), Duration::from_millis(10)).with_limit(Limit::packets(5_000));
    let topology = Topology::single_path((link.clone(), link));
    let mut network = Network::new(&topology, 1).expect("the topology is sound");
    let hosts = ["sender", "receiver"].map(|host| {
        let node = network.node(host).expect("the host is there");
        network.addresses(node).to_vec()
    });
    let pairs = Pairs::of(&hosts[0], &hosts[1]);
    let profile = Profile::named("sctp").expect("a profile of the program");
    let mut association = AssocConfig::new(profile);
    association.mtu.packet_size = 1_480;
    association.limits.receive_buffer = 64 << 10;
    association.extensions.dynamic_addresses = false;
    for i in 0..flows {
        let flow = format!("flow{i}");
        let first = network.next_id();
        let config = |end, peer| SctpConfig {
            end,
            association: association.clone(),
            pairs: pairs.clone(),
            peer,
            overhead: 20,
            seed: 1,
            flow: flow.clone(),
        };
        let second = AgentId(first.0 + 1);
        let end = Duration::from_secs(1_000_000);
        let record = Rc::new(RefCell::new(Record::with(Instant::ZERO, end, Wanted::NOTHING)));
        let steady = Cbr { rate: Rate::from_bits_per_sec(80_000), size: 1_000, burst: 1 };
        let messages = TrafficConfig::Cbr(steady).build(1, &flow);
        let client = SctpAgent::new(config(End::Client, second), record.clone());
        let client = client.sending(Application::new(messages, Delivery::default()));
        let start = Instant::ZERO + Duration::from_micros(i * 97);
        network.add(Box::new(client), start);
        network.add(Box::new(SctpAgent::new(config(End::Server, first), record)), Instant::ZERO);
    }
    network
}

fn transmissions(network: &Network<SctpPacket>) -> u64 {
    let links = (0..network.links()).filter_map(|i| network.link(LinkId(i as u32)));
    links.map(|l| l.counters().delivered.packets).sum()
}

/// Time this thread has been on a CPU.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
