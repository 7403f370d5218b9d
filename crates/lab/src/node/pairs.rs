//! Which address of one host talks to which of the other.

use anabranch_sim::network::{Address, Network};

/// The paths of an association, client's address first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(Address, Address)>);

impl Pairs {
    /// The `i`-th with the `i`-th; the last one of the side that has fewer serves the rest.
    pub fn of(client: &[Address], server: &[Address]) -> Self {
        let at = |list: &[Address], i: usize| list.get(i).or(list.last()).copied();
        let n = client.len().max(server.len());
        Pairs((0..n).filter_map(|i| at(client, i).zip(at(server, i))).collect())
    }

    /// Those that a network leads to each other, of a client on one host and a server on another.
    pub fn between<X: Clone + Send + 'static>(network: &Network<X>, client: &str, server: &str) -> Self {
        let addresses = |name: &str| network.node(name).map_or(&[][..], |n| network.addresses(n));
        let (from, to) = (addresses(client), addresses(server));
        let both = |a, b| network.reaches(a, b) && network.reaches(b, a);
        let same: Vec<_> = Pairs::of(from, to).iter().filter(|(a, b)| both(*a, *b)).collect();
        if !same.is_empty() {
            return Pairs(same);
        }
        // Cables in another order on either side.
        Pairs(from.iter().filter_map(|a| to.iter().find(|b| both(*a, **b)).map(|b| (*a, *b))).collect())
    }

    /// These pairs, client's address first.
    pub fn exactly(pairs: Vec<(Address, Address)>) -> Self {
        Pairs(pairs)
    }

    /// The pairs in the order of the paths.
    pub fn iter(&self) -> impl Iterator<Item = (Address, Address)> + '_ {
        self.0.iter().copied()
    }

    /// The client's addresses, each once: its interfaces in order.
    pub(super) fn clients(&self) -> Vec<Address> {
        let mut all = Vec::new();
        for (c, _) in self.iter() {
            if !all.contains(&c) {
                all.push(c);
            }
        }
        all
    }

    /// From which of its addresses the server answers this one.
    pub(super) fn answers(&self, client: Address) -> Option<Address> {
        self.iter().find(|(c, _)| *c == client).map(|(_, s)| s)
    }
}
