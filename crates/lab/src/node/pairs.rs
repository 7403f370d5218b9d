//! Which address of one host talks to which of the other.

use anabranch_sim::network::Address;

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
