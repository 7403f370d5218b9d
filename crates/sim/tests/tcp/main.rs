//! TCP as a whole: what it delivers over a bad network, how fast, and what it costs.

mod allocations;
mod alone;
mod cubic;
mod delivery;
mod rack;
mod square_root;

use anabranch_base::{Instant, RandomStream};
use anabranch_sim::LinkConfig;
use anabranch_sim::network::{AgentId, Network, Peer};
use anabranch_sim::topology::Topology;
use anabranch_sim::transport::tcp::{Sender, Supply, TcpConfig, TcpSink, TcpSource};

/// One connection over one cable; the source is agent 0.
fn connect(config: TcpConfig, supply: Supply, there: LinkConfig, back: LinkConfig, seed: u64) -> Network<()> {
    let mut network = Network::new(&Topology::single_path((there, back)), seed).unwrap();
    let [from, to] = ["sender", "receiver"].map(|host| network.addresses(network.node(host).unwrap())[0]);
    let peer = Peer { address: to, agent: AgentId(1) };
    let mut random = RandomStream::named(seed, "clock");
    network.add(Box::new(TcpSource::new(config, from, peer, supply, &mut random)), Instant::ZERO);
    network.add(Box::new(TcpSink::new(config)), Instant::ZERO);
    network
}

fn sender(network: &Network<()>) -> &Sender {
    network.agent::<TcpSource>(AgentId(0)).unwrap().sender()
}

fn sink(network: &Network<()>) -> &TcpSink {
    network.agent(AgentId(1)).unwrap()
}
