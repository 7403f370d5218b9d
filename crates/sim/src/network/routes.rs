//! Shortest ways, found once.

use super::{Address, LinkId};
use crate::Direction;
use crate::topology::{CableId, NodeId, Role, Topology};
use anabranch_base::Duration;
use std::collections::BTreeSet;

/// No way.
const NONE: u32 = u32::MAX;

/// The place of a router's ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row(u32);

/// For each router and address, the link to take.
#[derive(Debug)]
pub(super) struct Routes {
    /// Per address: its host and the link that leaves it.
    ends: Vec<(NodeId, LinkId)>,
    by_node: Vec<Vec<Address>>,
    /// Per node: the first place of its row in `next`; hosts have none.
    rows: Vec<u32>,
    /// Row per router, column per address.
    next: Vec<u32>,
}

impl Routes {
    /// The topology must have passed its check.
    pub(super) fn new(t: &Topology) -> Self {
        let mut r =
            Routes { ends: Vec::new(), by_node: vec![Vec::new(); t.nodes.len()], rows: Vec::new(), next: Vec::new() };
        // Per node, the links that lead to it: where from, which, and how long.
        let mut into = vec![Vec::new(); t.nodes.len()];
        for (i, c) in t.cables.iter().enumerate() {
            let id = CableId(i as u32);
            for (node, direction) in [(c.a, Direction::Forward), (c.b, Direction::Backward)] {
                if t.nodes[node.0 as usize].role == Role::Host {
                    r.by_node[node.0 as usize].push(Address(r.ends.len() as u32));
                    r.ends.push((node, LinkId::of(id, direction)));
                }
            }
            into[c.b.0 as usize].push((c.a, LinkId::of(id, Direction::Forward), c.forward.delay));
            into[c.a.0 as usize].push((c.b, LinkId::of(id, Direction::Backward), c.backward.delay));
        }
        let mut routers = 0;
        for n in &t.nodes {
            let router = n.role == Role::Router;
            r.rows.push(if router { routers * r.ends.len() as u32 } else { NONE });
            routers += u32::from(router);
        }
        r.next = vec![NONE; routers as usize * r.ends.len()];
        for address in 0..r.ends.len() {
            r.spread(t, &into, address);
        }
        r
    }

    /// Walks from an address outwards by delay, then hops, then cable number: the last hop is the address's own cable.
    fn spread(&mut self, t: &Topology, into: &[Vec<(NodeId, LinkId, Duration)>], address: usize) {
        let (host, out) = self.ends[address];
        let cable = &t.cables[(out.0 / 2) as usize];
        let neighbour = if cable.a == host { cable.b } else { cable.a };
        let mut open = BTreeSet::from([(Duration::ZERO, 0u32, neighbour, LinkId(out.0 ^ 1))]);
        while let Some((far, hops, node, link)) = open.pop_first() {
            let row = self.rows[node.0 as usize];
            if row == NONE {
                continue; // Hosts do not forward.
            }
            let place = &mut self.next[row as usize + address];
            if *place != NONE {
                continue;
            }
            *place = link.0;
            let routers = into[node.0 as usize].iter().filter(|(from, ..)| self.rows[from.0 as usize] != NONE);
            open.extend(routers.map(|(from, link, delay)| (far + *delay, hops + 1, *from, *link)));
        }
    }

    pub(super) fn addresses(&self, node: NodeId) -> &[Address] {
        self.by_node.get(node.0 as usize).map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(super) fn host(&self, a: Address) -> Option<NodeId> {
        Some(self.ends.get(a.0 as usize)?.0)
    }

    /// The link on which a packet leaves its host: that of its source address.
    pub(super) fn first(&self, source: Address) -> Option<LinkId> {
        Some(self.ends.get(source.0 as usize)?.1)
    }

    /// Every address, and the link on which a packet leaves from it.
    pub(super) fn ways_out(&self) -> impl Iterator<Item = (Address, LinkId)> + '_ {
        self.ends.iter().enumerate().map(|(i, (_, link))| (Address(i as u32), *link))
    }

    /// The ways out of a router; a host has none.
    pub(super) fn row(&self, at: NodeId) -> Option<Row> {
        let row = *self.rows.get(at.0 as usize)?;
        (row != NONE).then_some(Row(row))
    }

    /// The link to take at a router.
    pub(super) fn next(&self, at: NodeId, to: Address) -> Option<LinkId> {
        self.onward(self.row(at)?, to)
    }

    /// [`next`](Self::next) for a router whose row is known.
    #[inline]
    pub(super) fn onward(&self, row: Row, to: Address) -> Option<LinkId> {
        if to.0 as usize >= self.ends.len() {
            return None;
        }
        let link = *self.next.get((row.0 + to.0) as usize)?;
        (link != NONE).then_some(LinkId(link))
    }
}
