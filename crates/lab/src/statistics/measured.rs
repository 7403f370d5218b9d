//! Numbers over paired seeds, whichever way their intervals are found.

use super::{Draws, Estimate, Estimator, Known};

/// A number over paired seeds.
#[derive(Clone, PartialEq, Debug)]
pub enum Measured {
    /// A mean, or what means come to.
    Pulled(Estimator),
    /// A percentile, or what percentiles come to.
    Drawn(Draws),
}

impl Measured {
    /// Its value.
    pub fn value(&self) -> f64 {
        match self {
            Measured::Pulled(e) => e.value(),
            Measured::Drawn(d) => d.value(),
        }
    }

    /// `self - other`, seed by seed.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Measured::Pulled(a), Measured::Pulled(b)) => a.minus(b).map(Measured::Pulled),
            (Measured::Drawn(a), Measured::Drawn(b)) => drawn(&[a, b], |v| v[0] - v[1]),
            _ => None,
        }
    }

    /// `self / other`; `None` when `other` is zero.
    pub fn over(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Measured::Pulled(a), Measured::Pulled(b)) => a.over(b).map(Measured::Pulled),
            (Measured::Drawn(a), Measured::Drawn(b)) => drawn(&[a, b], |v| v[0] / v[1]),
            _ => None,
        }
    }

    /// `(self - base) / base`: the relative difference, as a fraction.
    pub fn relative_to(&self, base: &Self) -> Option<Self> {
        self.over(base)?.line(1.0, -1.0)
    }

    /// `k * self + add`.
    pub fn line(self, k: f64, add: f64) -> Option<Self> {
        match self {
            Measured::Pulled(e) => Some(Measured::Pulled(e.times(k).plus(add))),
            Measured::Drawn(d) => drawn(&[&d], |v| k * v[0] + add),
        }
    }

    /// Its absolute value (as far as its sign is sure; see [`Estimate::absolute`] for the interval around zero).
    #[must_use]
    pub fn absolute(self) -> Self {
        match self {
            Measured::Pulled(e) => Measured::Pulled(e.absolute()),
            Measured::Drawn(d) if d.value() < 0.0 => {
                Measured::Drawn(d.clone()).line(-1.0, 0.0).unwrap_or(Measured::Drawn(d))
            }
            Measured::Drawn(d) => Measured::Drawn(d),
        }
    }

    /// The coefficient of variation of several: their standard deviation (over n - 1) as a share of their mean. `None`
    /// with fewer than two, or with a mean of zero.
    pub fn variation(parts: &[Self]) -> Option<Self> {
        let pulled: Option<Vec<&Estimator>> =
            parts.iter().map(|p| if let Measured::Pulled(e) = p { Some(e) } else { None }).collect();
        if let Some(all) = pulled {
            return Estimator::variation(&all).map(Measured::Pulled);
        }
        let all: Option<Vec<&Draws>> =
            parts.iter().map(|p| if let Measured::Drawn(d) = p { Some(d) } else { None }).collect();
        drawn(&all?, |v| variation(v).unwrap_or(f64::NAN))
    }

    /// The value with its 95 % interval.
    pub fn estimate(&self) -> Estimate {
        match self {
            Measured::Pulled(e) => e.estimate(),
            Measured::Drawn(d) => d.estimate(),
        }
    }

    /// How surely the value is known; `None` with fewer than two seeds.
    pub fn known(&self) -> Option<Known> {
        match self {
            Measured::Pulled(e) => e.known(),
            Measured::Drawn(d) => d.known(),
        }
    }

    /// Where the number of `runs` further runs is expected; a percentile of so few has none.
    pub fn of_further(&self, runs: usize) -> Option<Known> {
        match self {
            Measured::Pulled(e) => e.of_further(runs),
            Measured::Drawn(_) => None,
        }
    }
}

fn drawn(parts: &[&Draws], f: impl Fn(&[f64]) -> f64) -> Option<Measured> {
    Draws::of_parts(parts, f).map(Measured::Drawn)
}

/// Standard deviation (over n - 1) as a share of the mean.
pub(super) fn variation(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|f| *f > 0)? as f64;
    let mean = super::mean(values)?;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / freedom;
    Some(variance.sqrt() / mean.abs()).filter(|v| v.is_finite())
}
