//! Times and rates as people write them.

use std::time::Duration;

/// A span such as `300ms`, `1.5s`, `2min`.
pub fn time(text: &str) -> Result<Duration, String> {
    parse(text, None)
}

/// A span that is to be waited for, so not nothing.
pub fn patience(text: &str) -> Result<Duration, String> {
    let t = time(text)?;
    if t < Duration::from_millis(1) {
        return Err(format!("{text} is no time to wait; write for example 10s"));
    }
    Ok(t)
}

/// A latency: like [`time`], and a bare number is milliseconds, as in the URIs of this field.
pub fn latency(text: &str) -> Result<Duration, String> {
    let t = parse(text, Some(1e-3))?;
    if t > Duration::from_secs(60) {
        return Err(format!("a latency of {text} is more than a minute; bare numbers are milliseconds"));
    }
    Ok(t)
}

/// A rate such as `10mbit` or `800kbit`, in bits per second.
pub fn bit_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text).ok_or_else(|| wrong_rate(text))?;
    let factor = match unit.to_ascii_lowercase().trim_end_matches("/s") {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(wrong_rate(text)),
    };
    let bits = (number * factor).round();
    if bits < 8.0 { Err(wrong_rate(text)) } else { Ok(bits as u64) }
}

fn wrong_rate(text: &str) -> String {
    format!("`{text}` is no rate; write for example 10mbit or 800kbit")
}

fn parse(text: &str, bare: Option<f64>) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write for example 300ms or 1.5s");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "" => bare
            .or((number == 0.0).then_some(1.0))
            .ok_or_else(|| format!("`{text}` has no unit; write {text}s or {text}ms"))?,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for bad in ["", "5", "ms", "-1s", "1d", "1e400s", "nan", "9999999999999999999999s"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patiences() {
        assert_eq!(patience("1s"), Ok(Duration::from_secs(1)));
        assert!(patience("0").is_err() && patience("0s").is_err());
        assert_eq!(patience("5"), Err("`5` has no unit; write 5s or 5ms".into()));
    }

    #[test]
    fn latencies() {
        assert_eq!(latency("300"), Ok(Duration::from_millis(300)));
        assert_eq!(latency("0.3s"), Ok(Duration::from_millis(300)));
        assert!(latency("61s").is_err());
    }

    #[test]
    fn rates() {
        assert_eq!(bit_rate("10mbit"), Ok(10_000_000));
        assert_eq!(bit_rate("0.8Mbit/s"), Ok(800_000));
        for bad in ["", "10", "10mbps", "0mbit", "1bit"] {
            assert!(bit_rate(bad).is_err(), "{bad}");
        }
    }
}
