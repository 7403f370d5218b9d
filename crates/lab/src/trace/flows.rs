//! A run and its flows as given to a trace.

use super::line::{FlowLine, OnLink, Way};
use crate::node::{SctpPacket, ip};
use anabranch_policy::registry::{Hook, Profile};
use anabranch_sim::network::{Address, AgentId, LinkId, Network, Packet};

/// What was run, for the first line of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedRun {
    /// The scenario.
    pub scenario: String,
    /// The values of its sweep keys.
    pub point: String,
    /// The seed.
    pub seed: u64,
}

/// A flow to be traced.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedFlow {
    /// Its name.
    pub name: String,
    /// `sctp`, `tcp`, `udp` or `mptcp`.
    pub transport: String,
    /// The agent that sends data.
    pub sender: AgentId,
    /// The agent that receives it.
    pub receiver: AgentId,
    /// Its paths in order, sender's address first.
    pub pairs: Vec<(Address, Address)>,
    /// The links of each path, there and back.
    pub links: Vec<(LinkId, usize, Way)>,
    /// Its path scheduler and its retransmission policy, where it has them.
    pub policies: Option<(String, String)>,
}

impl TracedFlow {
    /// A flow over these paths of `network`.
    pub fn new(
        network: &Network<SctpPacket>,
        (name, transport): (&str, &str),
        (sender, receiver): (AgentId, AgentId),
        pairs: Vec<(Address, Address)>,
    ) -> Self {
        let on = |from, to, path, way| {
            network.way(from, to).unwrap_or_default().into_iter().map(move |l: LinkId| (l, path, way))
        };
        let both = |(path, &(a, b)): (usize, &(Address, Address))| {
            on(a, b, path, Way::Data).chain(on(b, a, path, Way::Back)).collect::<Vec<_>>()
        };
        let links = pairs.iter().enumerate().flat_map(both).collect();
        let (name, transport) = (name.to_owned(), transport.to_owned());
        TracedFlow { name, transport, sender, receiver, pairs, links, policies: None }
    }

    /// This flow with the names of the policies that choose its paths.
    #[must_use]
    pub fn choosing(mut self, profile: &Profile) -> Self {
        self.policies = Some((profile.spec(Hook::PathScheduler), profile.spec(Hook::Retransmission)));
        self
    }

    /// Its line in the log.
    pub(super) fn line(&self) -> FlowLine {
        FlowLine {
            name: self.name.clone(),
            transport: self.transport.clone(),
            paths: self.pairs.iter().map(|(a, b)| (ip(*a).to_string(), ip(*b).to_string())).collect(),
            path_scheduler: self.policies.as_ref().map(|p| p.0.clone()),
            retransmission: self.policies.as_ref().map(|p| p.1.clone()),
        }
    }

    /// The path of a packet, whichever way it goes.
    pub(super) fn path(&self, p: &Packet<SctpPacket>) -> Option<usize> {
        if self.pairs.is_empty() {
            return Some(0);
        }
        let there =
            |pair: &(Address, Address)| *pair == (p.source, p.destination) || *pair == (p.destination, p.source);
        self.pairs.iter().position(there)
    }
}

/// The paths that lie on a link.
pub(super) fn on_link(flows: &[TracedFlow], link: LinkId) -> Vec<OnLink> {
    let of = |f: &TracedFlow| {
        let here = f.links.iter().filter(|(l, _, _)| *l == link);
        here.map(|&(_, path, way)| OnLink { flow: f.name.clone(), path, way }).collect::<Vec<_>>()
    };
    flows.iter().flat_map(of).collect()
}
