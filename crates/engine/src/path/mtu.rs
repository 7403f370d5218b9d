//! How large packets of a path may be: what the user said, and what was found out.

use super::discovery::{Discovery, PathMtuDiscovery};

/// Bytes of a UDP header.
const UDP_HEADER_LEN: usize = 8;

/// The largest packet of a path.
#[derive(Debug)]
pub(crate) struct PathMtu {
    /// Largest SCTP packet as the user or the encapsulation has it, bytes.
    most: usize,
    /// Looks for the largest packet, where that was asked for.
    discovery: Option<Box<Discovery>>,
    /// The user knows that it carries small packets only.
    small_known: bool,
}

impl PathMtu {
    /// Nothing is known, and nothing looked for.
    pub fn new() -> PathMtu {
        PathMtu { most: usize::MAX, discovery: None, small_known: false }
    }

    /// Looks for the largest packet, beginning at `base` bytes and never below `floor`.
    pub fn search(&mut self, config: PathMtuDiscovery, base: usize, floor: usize) {
        self.discovery = Some(Box::new(Discovery::new(config, base, floor)));
    }

    /// The search, where there is one.
    #[inline(always)]
    pub fn discovery(&self) -> Option<&Discovery> {
        self.discovery.as_deref()
    }

    /// The search, to learn something.
    #[inline(always)]
    pub fn discovery_mut(&mut self) -> Option<&mut Discovery> {
        self.discovery.as_deref_mut()
    }

    /// Bytes of the largest packet where the association's have `configured`, unless a search found another size.
    #[inline]
    pub fn packet_size(&self, configured: usize) -> usize {
        self.discovery().map_or(configured, Discovery::size).min(self.most)
    }

    /// The user found that it carries `size` bytes.
    pub fn limit(&mut self, size: usize) {
        self.most = size;
    }

    /// Packets leave with or without a header of UDP from now on, which takes what they had for themselves; without
    /// that they had `configured` bytes at most, or what was found.
    pub fn encapsulate(&mut self, yes: bool, configured: usize) {
        if yes {
            let found = self.discovery().map_or(0, Discovery::size);
            self.most = self.most.min(configured.max(found)) - UDP_HEADER_LEN;
        } else {
            self.most = self.most.saturating_add(UDP_HEADER_LEN);
        }
    }

    /// The size that was found, when the user has to learn of it: the path has begun, or ceased, to carry packets below
    /// `whole` only.
    pub fn news(&mut self, whole: usize) -> Option<usize> {
        let size = self.discovery()?.size();
        let small = size < whole;
        let changed = core::mem::replace(&mut self.small_known, small) != small;
        changed.then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_that_is_known_counts() {
        for (configured, limit) in [(1_200, 1_400), (1_200, 600), (1_400, 1_400)] {
            let mut m = PathMtu::new();
            assert_eq!(m.packet_size(configured), configured);
            m.limit(limit);
            assert_eq!(m.packet_size(configured), configured.min(limit));
            m.search(PathMtuDiscovery::up_to(9_000), configured, 512);
            assert_eq!(m.packet_size(100), configured.min(limit), "the search begins at the configured size");
        }
    }

    /// However often a path changes between UDP and IP, packets have eight bytes less with UDP than without.
    #[test]
    fn a_header_of_udp_takes_its_bytes_and_gives_them_back() {
        for limit in [usize::MAX, 1_500, 700] {
            let mut m = PathMtu::new();
            m.limit(limit);
            for _ in 0..5 {
                m.encapsulate(true, 1_200);
                assert_eq!(m.packet_size(1_200), limit.min(1_200) - UDP_HEADER_LEN);
                m.encapsulate(false, 1_200);
                assert_eq!(m.packet_size(1_200), limit.min(1_200));
            }
        }
    }

    #[test]
    fn the_user_learns_of_small_packets_once() {
        let mut m = PathMtu::new();
        assert_eq!(m.news(1_200), None, "nothing is looked for");
        m.search(PathMtuDiscovery::up_to(9_000), 1_000, 512);
        let learnt: Vec<_> = [900, 1_200, 1_100, 1_000, 900, 1_001].map(|whole| m.news(whole)).into();
        assert_eq!(learnt, [None, Some(1_000), None, Some(1_000), None, Some(1_000)]);
    }
}
