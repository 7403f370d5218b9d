//! Which nodes there are and how they are wired: data, before anything runs.

mod build;
mod check;

pub use build::{Both, DualDumbbell};
pub use check::TopologyError;

use crate::link::LinkConfig;

/// A place in a [`Topology`]: an index into its nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// A cable in a [`Topology`]: an index into its cables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CableId(pub u32);

/// What a node does with packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sends and receives; never forwards.
    Host,
    /// Forwards packets.
    Router,
}

/// A node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its name, unique in the topology.
    pub name: String,
    /// What it does.
    pub role: Role,
}

/// A cable between two nodes: one link each way.
#[derive(Clone, PartialEq, Debug)]
pub struct Cable {
    /// Its name, unique; the links are `{name}.forward` and `{name}.backward`.
    pub name: String,
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// The link from `a` to `b`.
    pub forward: LinkConfig,
    /// The link from `b` to `a`.
    pub backward: LinkConfig,
}

/// Nodes and cables.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Topology {
    /// Nodes by [`NodeId`].
    pub nodes: Vec<Node>,
    /// Cables by [`CableId`].
    pub cables: Vec<Cable>,
}

impl Topology {
    /// Nothing yet.
    pub fn new() -> Self {
        Topology::default()
    }

    /// Adds a host.
    pub fn host(&mut self, name: &str) -> NodeId {
        self.node(name, Role::Host)
    }

    /// Adds a router.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.node(name, Role::Router)
    }

    fn node(&mut self, name: &str, role: Role) -> NodeId {
        self.nodes.push(Node { name: name.to_owned(), role });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Wires `a` to `b`.
    pub fn cable(&mut self, name: &str, a: NodeId, b: NodeId, forward: LinkConfig, backward: LinkConfig) -> CableId {
        self.cables.push(Cable { name: name.to_owned(), a, b, forward, backward });
        CableId(self.cables.len() as u32 - 1)
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name).map(|i| NodeId(i as u32))
    }
}
