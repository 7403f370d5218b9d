//! The topologies every study begins with. Names count from 1.

use super::Topology;
use crate::link::LinkConfig;
use anabranch_base::{Duration, Rate};

/// A link each way: from left to right, and back.
pub type Both = (LinkConfig, LinkConfig);

/// Links of [`Topology::dual_dumbbell`].
#[derive(Clone, PartialEq, Debug)]
pub struct DualDumbbell {
    /// The cable between the two routers of each path, one for each path.
    pub middle: Vec<Both>,
    /// The cables between the sender or receiver and its router, from left to right and back.
    pub access: Both,
    /// The cables between an edge host and its router, from left to right and back.
    pub edge: Both,
    /// Edge hosts at each router.
    pub edge_hosts: usize,
}

impl DualDumbbell {
    /// The setting of Cao et al. 2012 §2.3 (RTX-CSI): 10 Mbit/s and 45 ms between the routers, 100 Mbit/s and 5 ms
    /// elsewhere, five edge hosts at each router. The queues are not stated there: 50 packets, what ns-2 takes.
    pub fn rtx_csi() -> Self {
        let link = |mbit: u64, ms| {
            let link = LinkConfig::fixed(Some(Rate::from_bits_per_sec(mbit * 1_000_000)), Duration::from_millis(ms));
            link.with_limit(crate::Limit::packets(50))
        };
        let both = |mbit, ms| (link(mbit, ms), link(mbit, ms));
        DualDumbbell { middle: vec![both(10, 45); 2], access: both(100, 5), edge: both(100, 5), edge_hosts: 5 }
    }
}

impl Topology {
    /// `sender` and `receiver`, joined by the cable `path1`.
    pub fn single_path(path: Both) -> Self {
        Topology::disjoint_paths(vec![path])
    }

    /// `sender` and `receiver`, joined by the cables `path1`, `path2` and so on.
    pub fn disjoint_paths(paths: Vec<Both>) -> Self {
        let mut t = Topology::new();
        let (a, b) = (t.host("sender"), t.host("receiver"));
        for (i, (forward, backward)) in paths.into_iter().enumerate() {
            t.cable(&format!("path{}", i + 1), a, b, forward, backward);
        }
        t
    }

    /// Paths, two in most studies, each over a pair of routers with hosts of its own at the edge.
    ///
    /// Path 1 is `sender` - `r1` - `r2` - `receiver`, path 2 `sender` - `r3` - `r4` - `receiver` and so on, over the
    /// cables `path1.left`, `path1`, `path1.right`. The edge hosts are `left1.1` (path 1, first host) and
    /// `right1.1` and so on, their cables have their names.
    pub fn dual_dumbbell(links: &DualDumbbell) -> Self {
        let mut t = Topology::new();
        let (sender, receiver) = (t.host("sender"), t.host("receiver"));
        for (i, (forward, backward)) in links.middle.iter().enumerate() {
            let path = i + 1;
            let (left, right) = (t.router(&format!("r{}", 2 * i + 1)), t.router(&format!("r{}", 2 * i + 2)));
            t.cable(&format!("path{path}.left"), sender, left, links.access.0.clone(), links.access.1.clone());
            t.cable(&format!("path{path}"), left, right, forward.clone(), backward.clone());
            t.cable(&format!("path{path}.right"), right, receiver, links.access.0.clone(), links.access.1.clone());
            for edge in 1..=links.edge_hosts {
                let (a, b) = (format!("left{path}.{edge}"), format!("right{path}.{edge}"));
                let (from, to) = (t.host(&a), t.host(&b));
                t.cable(&a, from, left, links.edge.0.clone(), links.edge.1.clone());
                t.cable(&b, right, to, links.edge.0.clone(), links.edge.1.clone());
            }
        }
        t
    }

    /// `sender1` and so on at the router `r1`, `receiver1` and so on at the router `r2`, and the cable `bottleneck`
    /// between the routers. `access` lists the links of the senders' and of the receivers' cables, pair by pair. Each host has
    /// one cable, which has its name, or as many as there are `paths`: `sender1.1` and so on.
    pub fn shared_bottleneck(bottleneck: Both, access: Vec<(Both, Both)>, paths: usize) -> Self {
        let mut t = Topology::new();
        let (left, right) = (t.router("r1"), t.router("r2"));
        t.cable("bottleneck", left, right, bottleneck.0, bottleneck.1);
        for (i, (near, far)) in access.into_iter().enumerate() {
            let (a, b) = (format!("sender{}", i + 1), format!("receiver{}", i + 1));
            let (from, to) = (t.host(&a), t.host(&b));
            for path in 1..=paths.max(1) {
                let cable = |host: &str| if paths > 1 { format!("{host}.{path}") } else { host.to_owned() };
                t.cable(&cable(&a), from, left, near.0.clone(), near.1.clone());
                t.cable(&cable(&b), right, to, far.0.clone(), far.1.clone());
            }
        }
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;

    fn ways(t: &Topology, pairs: &[(&str, usize, &str, usize)]) -> Vec<bool> {
        let n = Network::<()>::new(t, 1).unwrap();
        let address = |host: &str, i: usize| n.addresses(n.node(host).unwrap())[i];
        pairs.iter().map(|(a, i, b, j)| n.reaches(address(a, *i), address(b, *j))).collect()
    }

    #[test]
    fn the_dual_dumbbell_keeps_its_paths_apart() {
        let t = Topology::dual_dumbbell(&DualDumbbell::rtx_csi());
        assert_eq!((t.nodes.len(), t.cables.len()), (26, 26));
        let pairs = [
            ("sender", 0, "receiver", 0),
            ("receiver", 1, "sender", 1),
            ("left2.5", 0, "right2.5", 0),
            ("sender", 0, "receiver", 1),
            ("left1.1", 0, "right2.1", 0),
        ];
        assert_eq!(ways(&t, &pairs), [true, true, true, false, false]);
    }

    #[test]
    fn the_others_connect_their_pairs() {
        let line = || (LinkConfig::ideal(), LinkConfig::ideal());
        assert_eq!(ways(&Topology::single_path(line()), &[("sender", 0, "receiver", 0)]), [true]);
        let two = Topology::disjoint_paths(vec![line(), line()]);
        // A host takes what is for any of its addresses, by whatever cable it comes.
        assert_eq!(ways(&two, &[("sender", 1, "receiver", 1), ("sender", 0, "receiver", 1)]), [true; 2]);
        let shared = Topology::shared_bottleneck(line(), vec![(line(), line()); 3], 1);
        assert_eq!(ways(&shared, &[("sender3", 0, "receiver3", 0), ("receiver1", 0, "sender2", 0)]), [true; 2]);
        let three = Topology::shared_bottleneck(line(), vec![(line(), line()); 2], 3);
        assert_eq!(three.cables.len(), 1 + 2 * 2 * 3);
        assert_eq!(ways(&three, &[("sender1", 2, "receiver1", 2), ("receiver2", 1, "sender2", 1)]), [true; 2]);
    }
}
