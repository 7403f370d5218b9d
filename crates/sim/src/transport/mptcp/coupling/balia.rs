//! BALIA, the balanced linked adaptation of Peng et al. (2016): between LIA's friendliness and OLIA's, and quicker than
//! either to use what becomes free.

use super::{View, sum_of_rates};

/// Of the best rate among all to this one's.
fn alpha(all: &[View], own: &View) -> f64 {
    let best = all.iter().map(|v| v.window / v.rtt).fold(0.0, f64::max);
    best * own.rtt / own.window
}

/// Peng et al. 2016, §V, for each acknowledgement.
pub(super) fn increase(all: &[View], own: &View) -> f64 {
    let (sum, alpha) = (sum_of_rates(all), alpha(all, own));
    let rate = own.window / own.rtt;
    rate / (own.rtt * sum * sum) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

/// The part of the window that a loss leaves: half on the best path, less on others, at least a quarter.
pub(super) fn left(all: &[View], own: &View) -> f64 {
    1.0 - alpha(all, own).min(1.5) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(window: f64, rtt: f64) -> View {
        View { window, rtt, between_losses: 0.0 }
    }

    #[test]
    fn alone_it_is_reno() {
        let one = [view(17.0, 0.3)];
        assert!((increase(&one, &one[0]) - 1.0 / 17.0).abs() < 1e-12);
        assert_eq!(left(&one, &one[0]), 0.5);
    }

    #[test]
    fn equal_paths_share_one_increase() {
        for n in 1..=8 {
            let all = vec![view(12.0, 0.1); n];
            assert!((increase(&all, &all[0]) * (n * n) as f64 * 12.0 - 1.0).abs() < 1e-12, "{n}");
            assert_eq!(left(&all, &all[0]), 0.5);
        }
    }

    #[test]
    fn a_slower_path_grows_by_more_than_its_part_and_falls_by_more() {
        let all = [view(30.0, 0.1), view(10.0, 0.1)];
        // Rates 300 and 100: alpha is 1 and 3.
        let sum = 400.0f64;
        let expected = [300.0 / (0.1 * sum * sum), 100.0 / (0.1 * sum * sum) * 2.0 * 1.4];
        for (v, expected) in all.iter().zip(expected) {
            assert!((increase(&all, v) - expected).abs() < 1e-12);
        }
        assert_eq!(all.map(|v| left(&all, &v)), [0.5, 0.25]);
    }
}
