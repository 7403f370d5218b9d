//! Where further runs of the same kind are expected.

use super::Student;

/// The interval in which the mean of `further` more runs lies with this probability, when runs are alike and their values
/// normal: the mean of those seen, plus and minus Student's t times their deviation times sqrt(1/n + 1/further). None with
/// fewer than two runs seen, or none to come.
pub fn prediction(seen: &[f64], further: usize, probability: f64) -> Option<(f64, f64)> {
    Student::of_further(seen, further).map(|s| s.interval(probability))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::RandomStream;

    #[test]
    fn one_more_run_of_five() {
        // t(0.975, 4) = 2.776445; the deviation of 1 to 5 is sqrt(2.5).
        let (low, high) = prediction(&[1.0, 2.0, 3.0, 4.0, 5.0], 1, 0.95).unwrap();
        let half = 2.776_445 * (2.5f64 * 1.2).sqrt();
        assert!((low - (3.0 - half)).abs() < 1e-5 && (high - (3.0 + half)).abs() < 1e-5, "{low} {high}");
        assert_eq!(prediction(&[1.0], 1, 0.95), None);
        assert_eq!(prediction(&[1.0, 2.0], 0, 0.95), None);
        assert_eq!(prediction(&[7.0, 7.0], 3, 0.95), Some((7.0, 7.0)));
    }

    #[test]
    fn the_mean_of_three_more_lies_inside_as_often_as_it_says() {
        let mut random = RandomStream::named(1, "prediction");
        // A sum of twelve even draws is nearly normal.
        let mut draw = || (0..12).map(|_| random.unit()).sum::<f64>();
        let trials = 4_000;
        let inside = (0..trials)
            .filter(|_| {
                let seen: Vec<f64> = (0..10).map(|_| draw()).collect();
                let further = (0..3).map(|_| draw()).sum::<f64>() / 3.0;
                prediction(&seen, 3, 0.9).is_some_and(|(low, high)| (low..=high).contains(&further))
            })
            .count();
        let share = inside as f64 / f64::from(trials);
        assert!((0.88..0.92).contains(&share), "{share}");
    }
}
