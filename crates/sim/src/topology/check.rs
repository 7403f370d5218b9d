//! What cannot run.

use super::{NodeId, Role, Topology};
use crate::link::ConfigError;
use std::collections::BTreeSet;

/// Why a topology cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TopologyError {
    /// Two nodes or two cables of one name.
    #[error("two parts of the topology are called `{0}`: give each its own name")]
    Twice(String),
    /// A cable ends at a node that is not there, or begins and ends at the same.
    #[error("cable `{0}` must join two different nodes")]
    Loose(String),
    /// A host without a cable.
    #[error("host `{0}` has no cable: wire it to something")]
    Unwired(String),
    /// A host from which no other host can be reached.
    #[error("host `{0}` reaches no other host: check the cables between them (hosts do not forward)")]
    Alone(String),
    /// A link that makes no sense.
    #[error("cable `{cable}`, {direction}: {error}")]
    Link {
        /// The cable.
        cable: String,
        /// `forward` or `backward`.
        direction: &'static str,
        /// What is wrong.
        error: ConfigError,
    },
}

impl Topology {
    /// What is wrong with it, if anything.
    ///
    /// # Errors
    /// [`TopologyError`] names the part.
    pub fn check(&self) -> Result<(), TopologyError> {
        self.check_names()?;
        for c in &self.cables {
            let there = |n: NodeId| (n.0 as usize) < self.nodes.len();
            if !there(c.a) || !there(c.b) || c.a == c.b {
                return Err(TopologyError::Loose(c.name.clone()));
            }
            for (direction, link) in [("forward", &c.forward), ("backward", &c.backward)] {
                link.check().map_err(|error| TopologyError::Link { cable: c.name.clone(), direction, error })?;
            }
        }
        let hosts = (0..self.nodes.len()).filter(|i| self.nodes[*i].role == Role::Host);
        for host in hosts.map(|i| NodeId(i as u32)) {
            let name = || self.nodes[host.0 as usize].name.clone();
            if !self.cables.iter().any(|c| c.a == host || c.b == host) {
                return Err(TopologyError::Unwired(name()));
            }
            if !self.meets_a_host(host) {
                return Err(TopologyError::Alone(name()));
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        let (mut nodes, mut cables) = (BTreeSet::new(), BTreeSet::new());
        let nodes = self.nodes.iter().map(|n| &n.name).find(|n| !nodes.insert(*n));
        let cables = self.cables.iter().map(|c| &c.name).find(|n| !cables.insert(*n));
        nodes.or(cables).map_or(Ok(()), |name| Err(TopologyError::Twice(name.clone())))
    }

    /// Is another host reached from this one, by routers alone?
    fn meets_a_host(&self, from: NodeId) -> bool {
        self.meets(from, |_| true)
    }

    /// Does a way over routers alone lead from one host to another?
    pub fn leads(&self, from: NodeId, to: NodeId) -> bool {
        self.meets(from, |host| host == to)
    }

    fn meets(&self, from: NodeId, wanted: impl Fn(NodeId) -> bool) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if core::mem::replace(&mut seen[at.0 as usize], true) {
                continue;
            }
            if at != from && self.nodes[at.0 as usize].role == Role::Host {
                if wanted(at) {
                    return true;
                }
                continue; // Hosts do not forward.
            }
            let ends = self.cables.iter().flat_map(|c| [(c.a, c.b), (c.b, c.a)]);
            open.extend(ends.filter(|(a, _)| *a == at).map(|(_, b)| b));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkConfig;
    use crate::loss::LossConfig;

    fn line() -> LinkConfig {
        LinkConfig::ideal()
    }

    /// Two hosts and a router between them.
    fn small() -> Topology {
        let mut t = Topology::new();
        let (a, r, b) = (t.host("a"), t.router("r"), t.host("b"));
        t.cable("ar", a, r, line(), line());
        t.cable("rb", r, b, line(), line());
        t
    }

    fn error<T>(change: impl FnOnce(&mut Topology) -> T) -> String {
        let mut t = small();
        assert_eq!(t.check(), Ok(()));
        change(&mut t);
        t.check().unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        let twice = "two parts of the topology are called `b`: give each its own name";
        assert_eq!(error(|t| t.host("b")), twice);
        assert_eq!(error(|t| t.host("c")), "host `c` has no cable: wire it to something");
        let loose = error(|t| t.cable("x", NodeId(0), NodeId(9), line(), line()));
        assert_eq!(loose, "cable `x` must join two different nodes");
        let bad = |t: &mut Topology| t.cables[1].backward.loss = LossConfig::bernoulli(2.0);
        assert_eq!(error(bad), "cable `rb`, backward: loss must lie between 0 and 100 %");
    }

    #[test]
    fn a_host_must_meet_another_without_passing_through_one() {
        let alone = error(|t| {
            let (c, s) = (t.host("c"), t.router("s"));
            t.cable("cs", c, s, line(), line());
        });
        assert!(alone.starts_with("host `c` reaches no other host"), "{alone}");
    }
}
