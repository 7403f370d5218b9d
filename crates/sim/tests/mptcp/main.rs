//! Multipath TCP as a whole: what it delivers over bad networks, how its windows share links, and what it costs.

mod allocations;
mod coded;
mod delivery;
mod receive_buffer;
mod sharing;

use anabranch_base::{Duration, Instant, RandomStream, Rate};
use anabranch_sim::network::{AgentId, Network, Peer};
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::mptcp::{MptcpConfig, MptcpSink, MptcpSource};
use anabranch_sim::transport::tcp::Supply;
use anabranch_sim::{Limit, LinkConfig};

/// One connection over these ways, there and back; the source is agent 0.
fn connect(config: MptcpConfig, supply: Supply, ways: Vec<(LinkConfig, LinkConfig)>, seed: u64) -> Network<()> {
    let mut network = Network::new(&Topology::disjoint_paths(ways), seed).unwrap();
    let [from, to] = ["sender", "receiver"].map(|host| network.addresses(network.node(host).unwrap()).to_vec());
    let paths: Vec<_> =
        from.iter().zip(&to).map(|(from, to)| (*from, Peer { address: *to, agent: AgentId(1) })).collect();
    let mut random = RandomStream::named(seed, "clock");
    network.add(Box::new(MptcpSource::new(config, &paths, supply, &mut random)), Instant::ZERO);
    network.add(Box::new(MptcpSink::new(config)), Instant::ZERO);
    network
}

fn source(network: &Network<()>) -> &MptcpSource {
    network.agent(AgentId(0)).unwrap()
}

fn sink(network: &Network<()>) -> &MptcpSink {
    network.agent(AgentId(1)).unwrap()
}

/// A link of so many kbit/s and ms, with a queue of so many packets.
fn link(kbit: u64, ms: u64, queue: usize) -> LinkConfig {
    let link = LinkConfig::fixed(Some(Rate::from_bits_per_sec(kbit * 1_000)), Duration::from_millis(ms));
    link.with_limit(Limit::packets(queue as _))
}

fn both(link: LinkConfig) -> (LinkConfig, LinkConfig) {
    (link.clone(), link)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}
