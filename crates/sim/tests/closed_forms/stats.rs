//! Means with intervals.

/// Into how many parts every measurement is cut.
pub const PARTS: usize = 40;

/// Student's t for 99.9 % (two-sided) and `PARTS - 1` degrees of freedom.
const T: f64 = 3.5581;

/// Mean of the parts and half the width of its interval.
pub fn interval(parts: &[f64]) -> (f64, f64) {
    assert_eq!(parts.len(), PARTS);
    let n = PARTS as f64;
    let mean = parts.iter().sum::<f64>() / n;
    let variance = parts.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, T * (variance / n).sqrt())
}

/// Fails unless `want` lies in the interval of the parts' mean and that is no wider than
/// `want (1 +- precision)`.
#[track_caller]
pub fn agrees(what: &str, parts: &[f64], want: f64, precision: f64) {
    let (mean, half) = interval(parts);
    assert!((mean - want).abs() <= half, "{what}: measured {mean} +- {half}, closed form {want}");
    assert!(half <= precision * want.abs(), "{what}: {mean} +- {half} is too coarse to tell from {want}");
}

/// One value per part.
pub fn parts(of: impl FnMut(u64) -> f64) -> Vec<f64> {
    (0..PARTS as u64).map(of).collect()
}

/// Means of `PARTS` stretches of equal length of a sequence; what is left over at its end is not used.
pub fn stretches(values: &[f64]) -> Vec<f64> {
    let length = values.len() / PARTS;
    assert!(length > 0);
    values.chunks_exact(length).take(PARTS).map(|c| c.iter().sum::<f64>() / length as f64).collect()
}
