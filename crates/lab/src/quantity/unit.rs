//! Units, and numbers with them.

use super::Compare;
use anabranch_sim::netem::units;

/// By what to multiply a number in `from` to have it in `to`; `None` when they measure different things.
pub fn convert(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    let ((kind_a, a), (kind_b, b)) = (scale(from)?, scale(to)?);
    // Divided this way round, powers of ten stay exact.
    (kind_a == kind_b).then(|| if a >= b { a / b } else { 1.0 / (b / a) })
}

/// Finds a unit in which a quantity cannot be shown, before anything runs. `of` is the unit that its metric or series
/// is measured in.
///
/// # Errors
/// What is wrong, for people.
pub fn check_unit(unit: Option<&str>, metric: &str, of: Option<&str>, compare: Option<&Compare>) -> Result<(), String> {
    let Some(to) = unit else { return Ok(()) };
    match (compare.is_some_and(|c| c.how.relative()), of) {
        (true, _) if convert("", to).is_none() => {
            Err(format!("`unit`: a comparison of this kind is a share, which `{to}` cannot show"))
        }
        (false, Some(from)) if convert(from, to).is_none() => {
            let is = if from.is_empty() { "has no unit".to_owned() } else { format!("is in {from}") };
            Err(format!("`unit`: `{metric}` {is}, which `{to}` cannot show"))
        }
        _ => Ok(()),
    }
}

/// What a unit measures, and how many of the smallest one it holds.
fn scale(unit: &str) -> Option<(char, f64)> {
    Some(match unit {
        "" => ('1', 100.0),
        "%" => ('1', 1.0),
        "bit/s" => ('r', 1.0),
        "byte/s" | "B/s" => ('r', 8.0),
        "kbit/s" => ('r', 1e3),
        "Mbit/s" => ('r', 1e6),
        "Gbit/s" => ('r', 1e9),
        "ns" => ('t', 1.0),
        "us" | "\u{b5}s" => ('t', 1e3),
        "ms" => ('t', 1e6),
        "s" => ('t', 1e9),
        "byte" | "bytes" | "B" => ('b', 1.0),
        "kB" => ('b', 1e3),
        "MB" => ('b', 1e6),
        _ => return None,
    })
}

/// The number that a value of a sweep stands for, in seconds, bytes, bits a second or as a fraction of one: `30ms`,
/// `64KB`, `10mbit`, `1%`, `1460`. `None` for a word.
pub fn number_of(text: &str) -> Option<f64> {
    // As people write it: 1 %.
    let text = &text.replace(' ', "");
    if let Ok(number) = text.parse::<f64>() {
        return Some(number).filter(|n| n.is_finite());
    }
    let time = || units::time(text).ok().map(|t| t.as_nanos() as f64 / 1e9);
    let share = || units::share(text).ok();
    let rate = || units::rate(text).ok().flatten().map(|r| r.bits_per_sec() as f64);
    let bytes = || units::bytes(text).ok().map(|n| n as f64);
    time().or_else(share).or_else(rate).or_else(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(convert("bit/s", "Mbit/s"), Some(1e-6));
        assert_eq!(convert("", "%"), Some(100.0));
        assert_eq!(convert("s", "ms"), Some(1e3));
        assert_eq!(convert("s", "bit/s"), None);
        assert_eq!(convert("frames", "frames"), Some(1.0));
    }

    #[test]
    fn values_of_sweeps_are_numbers() {
        for (text, number) in [
            ("1460", 1460.0),
            ("-1.5", -1.5),
            ("30ms", 0.03),
            ("1%", 0.01),
            ("10mbit", 1e7),
            ("64KB", 65_536.0),
            ("1500B", 1500.0),
        ] {
            assert_eq!(number_of(text), Some(number), "{text}");
        }
        for word in ["rtx_csi", "nan", "inf", "50p", "2 packets", ""] {
            assert_eq!(number_of(word), None, "{word}");
        }
    }
}
