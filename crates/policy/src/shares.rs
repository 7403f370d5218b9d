//! Shares of the paths in new data, and the credits that realise them.
//!
//! Becke et al. 2013 §IV: a path weighs one less its part in the sum of all smoothed round trips. The weights of n
//! paths add up to n - 1, so the share is the weight divided by that. A path without a sample counts with the largest
//! known round trip; without any, and for one path, shares are equal.

use crate::view::{AssocView, PathView};
use anabranch_base::{PathId, Ppm};

/// What shares follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// Smoothed round trips, as in Becke et al. 2013 §IV.
    Srtt,
    /// Equal weights.
    Equal,
    /// The rate that each path's window or acknowledgements show.
    Rate,
}

impl Weights {
    /// From a parameter's word.
    pub fn of(word: &str) -> Self {
        match word {
            "equal" => Weights::Equal,
            "rate" => Weights::Rate,
            _ => Weights::Srtt,
        }
    }
}

/// Turns weights into shares without visiting all paths for each.
struct Scale {
    weights: Weights,
    paths: u64,
    sum: u64,
    longest: u64,
}

fn rate(p: &PathView) -> u64 {
    p.delivery_rate.max(p.window_rate()).bytes_per_sec()
}

impl Scale {
    fn new(cx: &AssocView<'_>, weights: Weights) -> Self {
        let longest = cx.active().map(|p| p.srtt.as_nanos()).max().unwrap_or(0);
        let mut s = Scale { weights, paths: 0, sum: 0, longest };
        for p in cx.active() {
            s.paths += 1;
            s.sum = s.sum.saturating_add(s.measure(p));
        }
        s
    }
    fn measure(&self, p: &PathView) -> u64 {
        match self.weights {
            Weights::Srtt if p.srtt.is_zero() => self.longest,
            Weights::Srtt => p.srtt.as_nanos(),
            Weights::Rate => rate(p),
            Weights::Equal => 0,
        }
    }
    fn share(&self, p: &PathView) -> Ppm {
        let (numerator, denominator) = match (self.weights, self.sum) {
            _ if self.paths <= 1 => (1, 1),
            (Weights::Equal, _) | (_, 0) => (1, self.paths),
            (Weights::Rate, sum) => (self.measure(p), sum),
            (Weights::Srtt, sum) => (sum - self.measure(p), (self.paths - 1).saturating_mul(sum)),
        };
        Ppm((u128::from(numerator) * 1_000_000 / u128::from(denominator.max(1))) as u32)
    }
}

/// The share of an active path in new data.
pub(crate) fn share(cx: &AssocView<'_>, p: &PathView, weights: Weights) -> Ppm {
    Scale::new(cx, weights).share(p)
}

/// Credits: every byte sent earns each active path its share and costs the path that sent it the byte. The path with
/// the largest credit is the one furthest behind its share.
#[derive(Clone, Debug)]
pub(crate) struct Credits {
    weights: Weights,
    by_path: Vec<i64>,
}

/// A path that was closed for long may not have the association to itself until it has caught up.
const MOST: i64 = 64 * 1024;

impl Credits {
    pub fn new(weights: Weights) -> Self {
        Credits { weights, by_path: Vec::new() }
    }
    fn of(&self, p: PathId) -> i64 {
        self.by_path.get(p.index()).copied().unwrap_or(0)
    }
    /// The open path with the largest credit; of equals the one with the smallest round trip, then the first.
    pub fn best<'a>(&self, cx: &AssocView<'a>) -> Option<&'a PathView> {
        cx.open().min_by_key(|p| (-self.of(p.id), p.srtt, p.id))
    }
    /// `path` sent `len` bytes.
    pub fn pay(&mut self, cx: &AssocView<'_>, path: PathId, len: u64) {
        self.by_path.resize(cx.paths.len().max(path.index() + 1), 0);
        let scale = Scale::new(cx, self.weights);
        for p in cx.active() {
            if let Some(credit) = self.by_path.get_mut(p.id.index()) {
                *credit += scale.share(p).of(len) as i64;
            }
        }
        self.by_path[path.index()] -= len as i64;
        self.by_path.iter_mut().for_each(|c| *c = (*c).clamp(-MOST, MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    fn shares(rtts: &[u64], weights: Weights) -> Vec<u32> {
        let mut s = Scene::new(rtts.len() as u8, 0);
        for (i, &r) in rtts.iter().enumerate() {
            s.rtt(i as u8, r);
        }
        s.paths.iter().map(|p| share(&s.cx(), p, weights).0).collect()
    }

    #[test]
    fn weights_of_conf_c18() {
        assert_eq!(shares(&[30, 160], Weights::Srtt), [842_105, 157_894]);
        assert_eq!(shares(&[30, 280], Weights::Srtt), [903_225, 96_774]);
    }

    #[test]
    fn shares_add_up_and_odd_cases_are_equal() {
        assert_eq!(shares(&[50], Weights::Srtt), [1_000_000]);
        assert_eq!(shares(&[0, 0, 0], Weights::Srtt), [333_333; 3]);
        let three = shares(&[30, 60, 110], Weights::Srtt);
        assert_eq!(three, [425_000, 350_000, 225_000]);
        assert_eq!(shares(&[0, 100], Weights::Srtt), [500_000; 2], "unknown counts as the longest");
        assert_eq!(shares(&[10, 1_000], Weights::Equal), [500_000; 2]);
        let rates = shares(&[50, 100], Weights::Rate);
        assert!((666_000..667_000).contains(&rates[0]) && (333_000..334_000).contains(&rates[1]), "{rates:?}");
    }

    #[test]
    fn credits_realise_the_shares() {
        let mut s = Scene::new(2, 0);
        s.rtt(0, 30);
        s.rtt(1, 160);
        let mut credits = Credits::new(Weights::Srtt);
        let mut sent = [0u32; 2];
        for _ in 0..1_000 {
            let id = credits.best(&s.cx()).map(|p| p.id).unwrap();
            credits.pay(&s.cx(), id, 1_000);
            sent[id.index()] += 1;
        }
        assert!((840..845).contains(&sent[0]), "{sent:?}");
    }

    #[test]
    fn arrears_are_bounded() {
        let mut s = Scene::new(2, 0);
        s.close(0);
        let mut credits = Credits::new(Weights::Equal);
        for _ in 0..10_000 {
            credits.pay(&s.cx(), PathId(1), 1_000);
        }
        s.open(0);
        let mut in_a_row = 0;
        while credits.best(&s.cx()).map(|p| p.id) == Some(PathId(0)) {
            credits.pay(&s.cx(), PathId(0), 1_000);
            in_a_row += 1;
        }
        assert!(in_a_row <= 140, "{in_a_row}");
    }
}
