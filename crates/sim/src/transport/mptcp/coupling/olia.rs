//! OLIA, the opportunistic linked increases of Khalili et al. (2012): as much together as a TCP on the best path, and
//! nothing where another path is better.

use super::{View, sum_of_rates};

/// Qualities that differ by less are equal.
const EQUAL: f64 = 1e-9;

/// How good a path is: what it carried between two losses, squared, for each round trip (§III-B: `l_r` is the larger of
/// what was acknowledged since the latest loss and between the two before).
fn quality(v: &View) -> f64 {
    v.between_losses * v.between_losses / v.rtt
}

/// Khalili et al. 2012, §III-B, eq. 5 and 6: the first term is the resource pooling of Kelly and Voice, the second moves
/// window from the largest windows to the best paths whose windows are small.
pub(super) fn increase(all: &[View], own: &View) -> f64 {
    let sum = sum_of_rates(all);
    let pooled = own.window / (own.rtt * own.rtt) / (sum * sum);
    pooled + moved(all, own) / own.window
}

/// The alpha of eq. 6. Windows are compared in whole segments, as Linux has them: by fractions each of two that are equal
/// would fall back to the other after every acknowledgement, and neither would grow.
fn moved(all: &[View], own: &View) -> f64 {
    let most = |of: fn(&View) -> f64| all.iter().map(of).fold(0.0, f64::max);
    let (largest, best) = (most(|v| v.window.floor()), most(quality));
    let is_largest = |v: &View| v.window.floor() >= largest;
    let is_collected = |v: &View| quality(v) >= best * (1.0 - EQUAL) && !is_largest(v);
    let collected = all.iter().filter(|v| is_collected(v)).count();
    let paths = all.len() as f64;
    if collected == 0 {
        0.0
    } else if is_collected(own) {
        1.0 / (paths * collected as f64)
    } else if is_largest(own) {
        -1.0 / (paths * all.iter().filter(|v| is_largest(v)).count() as f64)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(window: f64, rtt: f64, between_losses: f64) -> View {
        View { window, rtt, between_losses }
    }

    #[test]
    fn equal_paths_share_one_increase() {
        for n in 1..=8 {
            let all = vec![view(12.0, 0.1, 300.0); n];
            // w/r^2 / (n w/r)^2, and nothing is moved.
            assert!((increase(&all, &all[0]) * (n * n) as f64 * 12.0 - 1.0).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn what_is_moved_comes_from_the_largest_and_sums_to_nothing() {
        // The second is the best and has a small window, the third is neither.
        let all = [view(20.0, 0.1, 100.0), view(5.0, 0.1, 400.0), view(10.0, 0.1, 50.0)];
        let each = all.map(|v| moved(&all, &v));
        assert_eq!(each, [-1.0 / 3.0, 1.0 / 3.0, 0.0]);
        // Where the best has the largest window nothing is moved.
        let settled = [view(20.0, 0.1, 400.0), view(5.0, 0.1, 100.0)];
        assert_eq!(settled.map(|v| moved(&settled, &v)), [0.0, 0.0]);
        // Two largest share what they lose, two best what they gain.
        let four = [view(9.0, 0.1, 1.0), view(9.0, 0.1, 1.0), view(2.0, 0.1, 8.0), view(3.0, 0.1, 8.0)];
        assert_eq!(four.map(|v| moved(&four, &v)), [-0.125, -0.125, 0.125, 0.125]);
    }

    #[test]
    fn a_bad_path_is_given_up() {
        // Its increase is negative once its window is the largest, however small that is.
        let all = [view(2.0, 0.1, 10.0), view(1.5, 0.1, 1_000.0)];
        assert!(increase(&all, &all[0]) < 0.1 && increase(&all, &all[1]) > 0.4);
    }
}
