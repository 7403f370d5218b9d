//! Times, rates, shares and counts with their units.

use super::ParseError;
use anabranch_base::{Duration, Rate};

/// Splits `6.5mbit` into 6.5 and `mbit`.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit))
}

/// A span such as `30ms`, `0.5s`, `200us`.
///
/// # Errors
/// The word, and what it needs.
pub fn time(word: &str, text: &str) -> Result<Duration, ParseError> {
    let wrong = || ParseError::new(format!("`{word}` needs a time with its unit, such as 30ms or 1.5s, not `{text}`"));
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" | "sec" => 1e9,
        "min" => 60e9,
        "" if number == 0.0 => 0.0,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_nanos((number * nanos).round() as u64))
}

/// A rate such as `6mbit`; `unlimited` is none.
///
/// # Errors
/// The word, and what it needs.
pub fn rate(word: &str, text: &str) -> Result<Option<Rate>, ParseError> {
    let lower = text.to_ascii_lowercase();
    if lower == "unlimited" || lower == "none" {
        return Ok(None);
    }
    let unit_of = lower.trim_end_matches("/s");
    let wrong = || {
        ParseError::new(format!(
            "`{word}` needs a rate with its unit, such as 6mbit, 800kbit or 1mbyte (a second), or `unlimited`, not `{text}`"
        ))
    };
    let (number, unit) = number_and_unit(unit_of).ok_or_else(wrong)?;
    let bits = match unit {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "byte" => 8.0,
        "kbyte" => 8e3,
        "mbyte" => 8e6,
        "gbyte" => 8e9,
        "bps" | "kbps" | "mbps" | "gbps" => {
            return Err(ParseError::new(format!(
                "`{word} {text}`: some read `{unit}` as bits and tc reads it as bytes; write {number}{prefix}bit or {number}{prefix}byte",
                prefix = unit.trim_end_matches("bps"),
            )));
        }
        _ => return Err(wrong()),
    };
    let rate = Rate::from_bits_per_sec((number * bits).round() as u64);
    if rate == Rate::ZERO {
        return Err(ParseError::new(format!("`{word} {text}` sends nothing; use `down` to cut a path")));
    }
    Ok(Some(rate))
}

/// A share such as `0.1%`, as a fraction of one.
///
/// # Errors
/// The word, and what it needs.
pub fn share(word: &str, text: &str) -> Result<f64, ParseError> {
    let wrong = || ParseError::new(format!("`{word}` needs a share in percent, such as 0.1%, not `{text}`"));
    let number = match text.strip_suffix('%') {
        Some(number) => number,
        None if text == "0" => text,
        None => return Err(wrong()),
    };
    match number_and_unit(number) {
        Some((n, "")) if n <= 100.0 => Ok(n / 100.0),
        Some((_, "")) => Err(ParseError::new(format!("`{word} {text}` is more than 100%"))),
        _ => Err(wrong()),
    }
}

/// Bytes such as `64KB` (1,024 each), `1.5MB` or `1500`. Unlike rates, which count thousands, sizes of buffers are
/// counted in powers of two.
///
/// # Errors
/// The word, and what it needs.
pub fn bytes(word: &str, text: &str) -> Result<u64, ParseError> {
    let wrong = || ParseError::new(format!("`{word}` needs a number of bytes, such as 64KB or 1500, not `{text}`"));
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    if unit.ends_with('b') {
        let whole = format!("{}B", text.trim_end_matches('b'));
        return Err(ParseError::new(format!("`{word} {text}`: a small `b` would be bits; write {whole} for bytes")));
    }
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" | "kib" => 1024.0,
        "mb" | "m" | "mib" => 1024.0 * 1024.0,
        "gb" | "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    if bytes.fract() != 0.0 || bytes > 1e15 { Err(wrong()) } else { Ok(bytes as u64) }
}

/// A whole number.
///
/// # Errors
/// The word, and what it needs.
pub fn count(word: &str, text: &str, of: &str) -> Result<u64, ParseError> {
    text.parse().map_err(|_| ParseError::new(format!("`{word}` needs a whole number of {of}, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let t = |s| time("delay", s).map(Duration::as_nanos);
        assert_eq!(t("30ms"), Ok(30_000_000));
        assert_eq!(t("1.5s"), Ok(1_500_000_000));
        assert_eq!(t("250us"), Ok(250_000));
        assert_eq!(t("2min"), Ok(120_000_000_000));
        assert_eq!(t("0"), Ok(0));
        for bad in ["30", "ms", "-3ms", "3 ms", "1e3ms", "1.2.3s", "3h", "", "NaNs", "infs"] {
            assert!(t(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates() {
        let r = |s| rate("rate", s).map(|r| r.map(Rate::bits_per_sec));
        assert_eq!(r("6mbit"), Ok(Some(6_000_000)));
        assert_eq!(r("6.5Mbit/s"), Ok(Some(6_500_000)));
        assert_eq!(r("800kbit"), Ok(Some(800_000)));
        assert_eq!(r("1mbyte"), Ok(Some(8_000_000)));
        assert_eq!(r("unlimited"), Ok(None));
        for bad in ["6", "0mbit", "mbit", "-1mbit", "6mb", "6m", "0.1bit"] {
            assert!(r(bad).is_err(), "{bad}");
        }
        let message = rate("rate", "6mbps").unwrap_err().to_string();
        assert!(message.contains("6mbit") && message.contains("6mbyte"), "{message}");
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!(share("loss", "25%"), Ok(0.25));
        assert_eq!(share("loss", "0"), Ok(0.0));
        for bad in ["0.1", "101%", "-1%", "%", "x%", "1%%"] {
            assert!(share("loss", bad).is_err(), "{bad}");
        }
        assert_eq!(count("limit", "40", "packets"), Ok(40));
        assert!(count("limit", "4.5", "packets").is_err());
        assert_eq!(
            (bytes("b", "64KB"), bytes("b", "1500"), bytes("b", "1.5mB")),
            (Ok(65_536), Ok(1_500), Ok(1_572_864))
        );
        for bad in ["64kbit", "0.3", "-1", "KB", ""] {
            assert!(bytes("b", bad).is_err(), "{bad}");
        }
        for good in ["32KB", "32kB", "32KiB", "32K", "32768B"] {
            assert_eq!(bytes("b", good), Ok(32_768), "{good}");
        }
        let bits = bytes("limit", "32Kb").unwrap_err().to_string();
        assert_eq!(bits, "`limit 32Kb`: a small `b` would be bits; write 32KB for bytes");
        assert!(["32kb", "1Mb", "1mib", "9b"].iter().all(|bad| bytes("b", bad).is_err()));
    }
}
