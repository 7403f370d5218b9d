//! Values of the common distributions from a random stream.

use anabranch_base::RandomStream;

/// A standard normal value (Box and Muller 1958, one of the pair).
pub fn normal(random: &mut RandomStream) -> f64 {
    let (radius, turn) = (1.0 - random.unit(), random.unit());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * turn)
}

/// An exponential value with this mean.
pub fn exponential(random: &mut RandomStream, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.unit())
}

/// A Pareto value of at least `min`; its mean is `min shape / (shape - 1)` for a shape above 1.
pub fn pareto(random: &mut RandomStream, min: f64, shape: f64) -> f64 {
    min * libm::pow(1.0 - random.unit(), -1.0 / shape)
}

/// Probability that a standard normal value is at most `z`.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean of `n` draws and its standard error.
    fn mean(n: u32, mut draw: impl FnMut(&mut RandomStream) -> f64) -> (f64, f64) {
        let mut random = RandomStream::named(8, "draw");
        let all: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / f64::from(n);
        let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n - 1);
        (mean, (variance / f64::from(n)).sqrt())
    }

    #[test]
    fn first_and_second_moments() {
        let check = |(mean, error): (f64, f64), want: f64| {
            assert!((mean - want).abs() < 4.0 * error, "{mean} +- {error}, not {want}");
        };
        let n = 200_000;
        check(mean(n, normal), 0.0);
        check(mean(n, |r| normal(r).powi(2)), 1.0);
        check(mean(n, |r| exponential(r, 3.0)), 3.0);
        check(mean(n, |r| exponential(r, 3.0).powi(2)), 18.0);
        // Shape 4.5: the second moment, min^2 a / (a - 2), has a variance of its own.
        check(mean(n, |r| pareto(r, 2.0, 4.5)), 2.0 * 4.5 / 3.5);
        check(mean(n, |r| pareto(r, 2.0, 4.5).powi(2)), 4.0 * 4.5 / 2.5);
    }

    #[test]
    fn the_normal_distribution_at_known_points() {
        for (z, p) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.959_963_985, 0.025), (3.0, 0.998_650_102)] {
            assert!((normal_cdf(z) - p).abs() < 1e-9, "{z}");
        }
    }
}
