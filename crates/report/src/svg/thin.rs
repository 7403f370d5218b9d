//! Long series made short: what falls into one pixel column becomes its first, lowest, highest and last point.

/// Thins a run of points (in pixels) without losing a peak. Consecutive points of one column of a pixel are replaced
/// by at most four; their order stays, so that lines which turn back are kept as well.
pub(super) fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 4 {
            out.extend_from_slice(column);
            continue;
        }
        let lowest = position(column, |a, b| a < b);
        let highest = position(column, |a, b| a > b);
        let mut keep = [0, lowest.min(highest), lowest.max(highest), column.len() - 1].to_vec();
        keep.dedup();
        out.extend(keep.into_iter().filter_map(|i| column.get(i)));
    }
    out
}

/// Thins a band `(x, low, high)` to one entry for each column of a pixel, as wide as its widest.
pub(super) fn thin_band(band: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    let mut out = Vec::new();
    for column in band.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 2 {
            out.extend_from_slice(column);
        } else if let Some(first) = column.first() {
            let ends = column.iter().fold(*first, |e, c| (e.0, e.1.max(c.1), e.2.min(c.2)));
            out.push(ends);
        }
    }
    out
}

/// Index of the first point whose y is ahead of all others.
fn position(points: &[(f64, f64)], ahead: impl Fn(f64, f64) -> bool) -> usize {
    let mut best: Option<(usize, f64)> = None;
    for (i, &(_, y)) in points.iter().enumerate() {
        if best.is_none_or(|(_, b)| ahead(y, b)) {
            best = Some((i, y));
        }
    }
    best.map_or(0, |(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_and_ends_survive() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i) / 100.0, f64::from(i % 7))).collect();
        points[4321].1 = 99.0;
        points[4377].1 = -99.0;
        let thinned = thin(&points);
        assert!(thinned.len() <= 400, "{}", thinned.len());
        assert!(thinned.contains(&(43.21, 99.0)) && thinned.contains(&(43.77, -99.0)));
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0.0, 1.0), (0.1, 2.0), (5.0, 3.0), (0.2, 4.0)];
        assert_eq!(thin(&points), points);
        assert!(thin(&[]).is_empty());
    }

    #[test]
    fn a_band_keeps_its_width() {
        // In pixels, so the low end has the greater coordinate.
        let band = [(1.0, 50.0, 40.0), (1.2, 60.0, 30.0), (1.4, 55.0, 35.0), (2.0, 50.0, 40.0)];
        assert_eq!(thin_band(&band), [(1.0, 60.0, 30.0), (2.0, 50.0, 40.0)]);
    }
}
