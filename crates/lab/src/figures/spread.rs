//! How values are distributed.

use anabranch_report::BoxStats;

/// Whiskers reach to the furthest value within so many distances of the quartiles beyond them (Tukey 1977).
const REACH: f64 = 1.5;

/// Values in order, each with how often it is there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spread {
    values: Vec<(f64, u64)>,
    count: u64,
}

impl Spread {
    /// Of values in any order; what is not finite does not count.
    pub fn of(values: impl IntoIterator<Item = (f64, u64)>) -> Spread {
        let mut values: Vec<(f64, u64)> = values.into_iter().filter(|v| v.0.is_finite() && v.1 > 0).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let count = values.iter().map(|v| v.1).sum();
        Spread { values, count }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The values in order, each with how often it is there.
    pub fn values(&self) -> &[(f64, u64)] {
        &self.values
    }

    /// The lowest and the highest value.
    pub fn ends(&self) -> Option<(f64, f64)> {
        Some((self.values.first()?.0, self.values.last()?.0))
    }

    /// Each value, how often it is there, and how many of all are at most as high.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, u64, u64)> + '_ {
        let mut sum = 0;
        self.values.iter().map(move |(v, n)| {
            sum += n;
            (*v, *n, sum)
        })
    }

    /// The value at this place of all in order, from 0.
    fn at(&self, place: u64) -> Option<f64> {
        self.cumulated().find(|(.., sum)| *sum > place).map(|(v, ..)| v)
    }

    /// The `p`-quantile (`p` in 0..=1), between order statistics as in [`percentile`](crate::statistics::percentile).
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        let place = p.clamp(0.0, 1.0) * last as f64;
        let below = place.floor() as u64;
        let (a, b) = (self.at(below)?, self.at((below + 1).min(last))?);
        Some(a + (b - a) * (place - below as f64))
    }

    /// Quartiles, whiskers and what lies beyond; none without values.
    pub fn in_a_box(&self) -> Option<BoxStats> {
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|p| self.quantile(p));
        let (q1, median, q3) = (q1?, median?, q3?);
        let reach = (q3 - q1) * REACH;
        let within = |v: &f64| (q1 - reach..=q3 + reach).contains(v);
        let inside = || self.values.iter().map(|v| v.0).filter(within);
        // A quartile between two values may lie beyond the last one within reach.
        let low = inside().next().unwrap_or(q1).min(q1);
        let high = inside().next_back().unwrap_or(q3).max(q3);
        let beyond = self.values.iter().filter(|v| !within(&v.0));
        let outliers = beyond.flat_map(|(v, n)| std::iter::repeat_n(*v, usize::try_from(*n).unwrap_or(1))).collect();
        Some(BoxStats { low, q1, median, q3, high, outliers })
    }

    /// All times `k`.
    #[must_use]
    pub fn scaled(mut self, k: f64) -> Spread {
        self.values.iter_mut().for_each(|v| v.0 *= k);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::percentile;

    #[test]
    fn quantiles_are_those_of_the_values_one_by_one() {
        let values = [5.0, 1.0, 1.0, 9.0, 1.0, 5.0, 2.0];
        let s = Spread::of([(5.0, 2), (1.0, 3), (9.0, 1), (2.0, 1), (f64::NAN, 4), (7.0, 0)]);
        assert_eq!((s.count(), s.ends()), (7, Some((1.0, 9.0))));
        for p in [0.0, 0.1, 0.25, 0.5, 0.6, 0.75, 0.99, 1.0] {
            assert_eq!(s.quantile(p), percentile(&values, p), "{p}");
        }
        let parts: Vec<_> = s.cumulated().collect();
        assert_eq!(parts, [(1.0, 3, 3), (2.0, 1, 4), (5.0, 2, 6), (9.0, 1, 7)]);
        assert_eq!((Spread::default().quantile(0.5), Spread::default().in_a_box()), (None, None));
    }

    #[test]
    fn whiskers_end_at_values_and_the_others_lie_beyond() {
        // Quartiles of 1 to 9 are 3 and 7; whiskers may reach from -3 to 13.
        let s = Spread::of((1..=8).map(|v| (f64::from(v), 1)).chain([(100.0, 2)]));
        let b = s.in_a_box().unwrap();
        assert_eq!((b.q1, b.median, b.q3, b.low, b.high), (3.25, 5.5, 7.75, 1.0, 8.0));
        assert_eq!(b.outliers, [100.0, 100.0]);
        let one = Spread::of([(4.0, 1)]).in_a_box().unwrap();
        assert_eq!((one.low, one.median, one.high, one.outliers.len()), (4.0, 4.0, 4.0, 0));
        // Most are alike: what differs lies beyond.
        let alike = Spread::of([(4.0, 97), (5.0, 3)]).in_a_box().unwrap();
        assert_eq!((alike.low, alike.high, alike.outliers.len()), (4.0, 4.0, 3));
        let far = Spread::of([(0.0, 1), (1.0, 1), (1.0, 1), (1e300, 1)]).in_a_box().unwrap();
        assert!(far.low <= far.q1 && far.high >= far.q3);
    }
}
