//! Numbers as text, as exact as they are sure.

use crate::statistics::Estimate;

/// `v` with about four significant digits and a true minus.
pub fn number_text(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return if v == 0.0 { "0".to_owned() } else { "\u{2013}".to_owned() };
    }
    let text = with_decimals(v, 3 - magnitude(v));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// An estimate as `mean [low, high]`, with as many decimals as its interval is worth (two digits of its half width).
pub fn interval_text(e: &Estimate) -> String {
    let decimals = decimals(e);
    match e.interval {
        Some((low, high)) => {
            let [mean, low, high] = [e.mean, low, high].map(|v| with_decimals(v, decimals as i32));
            format!("{mean} [{low}, {high}]")
        }
        None => number_text(e.mean),
    }
}

/// Decimals that show two digits of the interval's half width, or four digits of the value without an interval.
pub fn decimals(e: &Estimate) -> usize {
    let half = e.interval.map_or(0.0, |(low, high)| (high - low) / 2.0);
    let places = match (half > 0.0, e.mean != 0.0) {
        (true, _) => 1 - magnitude(half),
        (false, true) => 3 - magnitude(e.mean),
        (false, false) => 0,
    };
    places.clamp(0, 9) as usize
}

/// Power of ten of the first digit.
pub fn magnitude(v: f64) -> i32 {
    // By formatting: exact at the powers of ten and the same on every machine.
    format!("{:e}", v.abs()).split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

fn with_decimals(v: f64, decimals: i32) -> String {
    let text = format!("{v:.*}", decimals.clamp(0, 12) as usize);
    let zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    if zero { text.replace('-', "") } else { text.replace('-', "\u{2212}") }
}

/// A field of a CSV file, quoted where it must be.
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_digits_as_are_sure() {
        let e = |mean, low, high| Estimate { mean, interval: Some((low, high)), seeds: 3 };
        assert_eq!(interval_text(&e(1.234_567, 1.2, 1.27)), "1.235 [1.200, 1.270]");
        assert_eq!(interval_text(&e(-0.01, -1.0, 0.98)), "\u{2212}0.01 [\u{2212}1.00, 0.98]");
        assert_eq!(interval_text(&e(123_456.0, 120_000.0, 126_912.0)), "123456 [120000, 126912]");
        assert_eq!(number_text(0.002_5), "0.0025");
        assert_eq!(number_text(-4.42), "\u{2212}4.42");
        assert_eq!(number_text(1_234.56), "1235");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
