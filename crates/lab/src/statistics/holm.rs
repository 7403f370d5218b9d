//! Several comparisons at once.

/// The p-values of a family, adjusted by Holm's step-down rule (Holm 1979): those below a level are significant when the
/// chance of any false one among the whole family is to stay below that level, whatever depends on what. In the order
/// given; with a single p-value nothing changes.
pub fn holm(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    let p = |i: usize| all.get(i).copied().unwrap_or(1.0);
    order.sort_by(|a, b| p(*a).total_cmp(&p(*b)));
    let mut adjusted = vec![1.0; all.len()];
    let mut least = 0.0f64;
    for (rank, place) in order.into_iter().enumerate() {
        // Never below what a smaller p-value came to.
        least = least.max((p(place) * (all.len() - rank) as f64).min(1.0));
        if let Some(slot) = adjusted.get_mut(place) {
            *slot = least;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Student;
    use anabranch_base::RandomStream;

    #[test]
    fn the_example_by_hand() {
        // 4 x 0.005, 3 x 0.01, 2 x 0.03, then 0.04 may not fall below 0.06.
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(wanted).all(|(a, w)| (a - w).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.04]), [0.04]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn any_false_alarm_of_a_family_is_as_rare_as_it_says() {
        let mut random = RandomStream::named(1, "holm");
        // Ten comparisons of nothing with nothing, eight seeds each; a sum of twelve even draws is nearly normal.
        let mut p = || {
            let seen: Vec<f64> = (0..8).map(|_| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0).collect();
            let centre = seen.iter().sum::<f64>() / 8.0;
            let variance = seen.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / 7.0;
            let s = Student::new(centre, (variance / 8.0).sqrt(), 8).unwrap();
            2.0 * s.above(0.0).min(s.below(0.0))
        };
        let trials = 2_000;
        let mut alarms = [0, 0];
        for _ in 0..trials {
            let family: Vec<f64> = (0..10).map(|_| p()).collect();
            alarms[0] += i32::from(family.iter().any(|p| *p < 0.05));
            alarms[1] += i32::from(holm(&family).iter().any(|p| *p < 0.05));
        }
        let [bare, adjusted] = alarms.map(|a| f64::from(a) / f64::from(trials));
        assert!((0.34..0.46).contains(&bare), "1 - 0.95^10 = 0.40: {bare}");
        assert!((0.03..0.065).contains(&adjusted), "{adjusted}");
    }
}
