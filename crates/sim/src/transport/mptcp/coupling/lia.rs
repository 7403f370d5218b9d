//! LIA, the linked increases of RFC 6356: together no more than a TCP would have on the best path, and on no path more
//! than a TCP would have there.

use super::{View, sum_of_rates};

/// RFC 6356 §3, eq. 1 with alpha of eq. 2: the total window cancels out.
pub(super) fn increase(all: &[View], own: &View) -> f64 {
    let best = all.iter().map(|v| v.window / (v.rtt * v.rtt)).fold(0.0, f64::max);
    let sum = sum_of_rates(all);
    (best / (sum * sum)).min(1.0 / own.window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(window: f64, ms: f64) -> View {
        View { window, rtt: ms / 1_000.0, between_losses: 0.0 }
    }

    #[test]
    fn equal_paths_share_one_increase() {
        // Of n equal windows w: w/r^2 / (n w/r)^2 = 1 / (n^2 w).
        for n in 1..=8 {
            for w in [1.0, 7.0, 100.0] {
                let all = vec![view(w, 50.0); n];
                let expected = 1.0 / ((n * n) as f64 * w);
                assert!((increase(&all, &all[0]) / expected - 1.0).abs() < 1e-12, "{n} {w}");
            }
        }
    }

    #[test]
    fn alpha_is_that_of_equation_2() {
        let all = [view(20.0, 20.0), view(50.0, 200.0), view(8.0, 65.0)];
        let total: f64 = all.iter().map(|v| v.window).sum();
        let best = 20.0 / (0.02 * 0.02);
        let sum: f64 = 20.0 / 0.02 + 50.0 / 0.2 + 8.0 / 0.065;
        let alpha = total * best / (sum * sum);
        for own in &all {
            let expected = (alpha / total).min(1.0 / own.window);
            assert!((increase(&all, own) / expected - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn never_more_than_a_tcp_on_that_path() {
        // A small window on a long path: the connection's increase would be more than Reno's.
        let all = [view(100.0, 400.0), view(1.0, 10.0)];
        assert!(increase(&all, &all[0]) <= 1.0 / 100.0);
        assert_eq!(increase(&all, &all[0]), 1.0 / 100.0);
    }
}
