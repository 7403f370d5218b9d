//! Times, rates, shares and counts with their units.

use super::ParseError;
use anabranch_base::{Duration, Rate};
use core::fmt;

/// Why a text is no such value. Shown alone it says what is needed; [`ValueError::of`] puts the word in front whose
/// value it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueError {
    text: String,
    wrong: Wrong,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Wrong {
    /// It is none of these.
    Needs(String),
    /// `6mbps`: the unit, and the two that it could mean.
    Bps { unit: String, bit: String, byte: String },
    /// A rate that rounds to zero.
    Nothing,
    /// More than 100 %.
    TooMuch,
    /// `32kb`: what it should be.
    SmallB(String),
}

impl ValueError {
    /// The text is none of what is needed: `a time such as 30ms`.
    pub fn needs(needed: impl Into<String>, text: &str) -> Self {
        ValueError { text: text.to_owned(), wrong: Wrong::Needs(needed.into()) }
    }

    fn new(text: &str, wrong: Wrong) -> Self {
        ValueError { text: text.to_owned(), wrong }
    }

    /// The error of `word`, whose value this is.
    #[must_use]
    pub fn of(self, word: &str) -> ParseError {
        ParseError::value(word, self)
    }

    /// Does what is shown begin with the word alone?
    pub(super) fn begins_with_word(&self) -> bool {
        matches!(self.wrong, Wrong::Needs(_))
    }

    /// What is shown: with the word, advice for links is added.
    pub(super) fn show(&self, word: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        if let Wrong::Needs(what) = &self.wrong {
            if let Some(word) = word {
                write!(f, "`{word}` ")?;
            }
            return write!(f, "needs {what}, not `{text}`");
        }
        match word {
            Some(word) => write!(f, "`{word} {text}`")?,
            None => write!(f, "`{text}`")?,
        }
        match &self.wrong {
            Wrong::Bps { unit, bit, byte } => {
                write!(f, ": some read `{unit}` as bits and tc reads it as bytes; write {bit} or {byte}")
            }
            Wrong::Nothing if word.is_some() => f.write_str(" sends nothing; use `down` to cut a path"),
            Wrong::Nothing => f.write_str(" sends nothing"),
            Wrong::TooMuch => f.write_str(" is more than 100%"),
            Wrong::SmallB(whole) => write!(f, ": a small `b` would be bits; write {whole} for bytes"),
            Wrong::Needs(_) => Ok(()),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(None, f)
    }
}

impl core::error::Error for ValueError {}

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
/// The text has another form; the error says which form a value needs.
pub fn time(text: &str) -> Result<Duration, ValueError> {
    let wrong = || ValueError::needs("a time with its unit, such as 30ms or 1.5s", text);
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
/// The text has another form; the error says which form a value needs.
pub fn rate(text: &str) -> Result<Option<Rate>, ValueError> {
    let lower = text.to_ascii_lowercase();
    if lower == "unlimited" || lower == "none" {
        return Ok(None);
    }
    let unit_of = lower.trim_end_matches("/s");
    let needed = "a rate with its unit, such as 6mbit, 800kbit or 1mbyte (a second), or `unlimited`";
    let wrong = || ValueError::needs(needed, text);
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
            let with = |own: &str| format!("{number}{}{own}", unit.trim_end_matches("bps"));
            let wrong = Wrong::Bps { unit: unit.to_owned(), bit: with("bit"), byte: with("byte") };
            return Err(ValueError::new(text, wrong));
        }
        _ => return Err(wrong()),
    };
    let rate = Rate::from_bits_per_sec((number * bits).round() as u64);
    if rate == Rate::ZERO {
        return Err(ValueError::new(text, Wrong::Nothing));
    }
    Ok(Some(rate))
}

/// A share such as `0.1%`, as a fraction of one.
///
/// # Errors
/// The text has another form; the error says which form a value needs.
pub fn share(text: &str) -> Result<f64, ValueError> {
    let wrong = || ValueError::needs("a share in percent, such as 0.1%", text);
    let number = match text.strip_suffix('%') {
        Some(number) => number,
        None if text == "0" => text,
        None => return Err(wrong()),
    };
    match number_and_unit(number) {
        Some((n, "")) if n <= 100.0 => Ok(n / 100.0),
        Some((_, "")) => Err(ValueError::new(text, Wrong::TooMuch)),
        _ => Err(wrong()),
    }
}

/// Bytes such as `64KB` (1,024 each), `1.5MB` or `1500`. Unlike rates, which count thousands, sizes of buffers are
/// counted in powers of two.
///
/// # Errors
/// The text has another form; the error says which form a value needs.
pub fn bytes(text: &str) -> Result<u64, ValueError> {
    let wrong = || ValueError::needs("a number of bytes, such as 64KB or 1500", text);
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    if unit.ends_with('b') {
        let whole = format!("{}B", text.trim_end_matches('b'));
        return Err(ValueError::new(text, Wrong::SmallB(whole)));
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
/// The text has another form; the error says which form a value needs.
pub fn count(text: &str, of: &str) -> Result<u64, ValueError> {
    text.parse().map_err(|_| ValueError::needs(format!("a whole number of {of}"), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let t = |s| time(s).map(Duration::as_nanos);
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
        let r = |s| rate(s).map(|r| r.map(Rate::bits_per_sec));
        assert_eq!(r("6mbit"), Ok(Some(6_000_000)));
        assert_eq!(r("6.5Mbit/s"), Ok(Some(6_500_000)));
        assert_eq!(r("800kbit"), Ok(Some(800_000)));
        assert_eq!(r("1mbyte"), Ok(Some(8_000_000)));
        assert_eq!(r("unlimited"), Ok(None));
        for bad in ["6", "0mbit", "mbit", "-1mbit", "6mb", "6m", "0.1bit"] {
            assert!(r(bad).is_err(), "{bad}");
        }
        let message = rate("6mbps").unwrap_err().of("rate").to_string();
        assert!(message.contains("6mbit") && message.contains("6mbyte"), "{message}");
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!(share("25%"), Ok(0.25));
        assert_eq!(share("0"), Ok(0.0));
        for bad in ["0.1", "101%", "-1%", "%", "x%", "1%%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert_eq!(count("40", "packets"), Ok(40));
        assert!(count("4.5", "packets").is_err());
        assert_eq!((bytes("64KB"), bytes("1500"), bytes("1.5mB")), (Ok(65_536), Ok(1_500), Ok(1_572_864)));
        for bad in ["64kbit", "0.3", "-1", "KB", ""] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        for good in ["32KB", "32kB", "32KiB", "32K", "32768B"] {
            assert_eq!(bytes(good), Ok(32_768), "{good}");
        }
        let bits = bytes("32Kb").unwrap_err().of("limit").to_string();
        assert_eq!(bits, "`limit 32Kb`: a small `b` would be bits; write 32KB for bytes");
        assert!(["32kb", "1Mb", "1mib", "9b"].iter().all(|bad| bytes(bad).is_err()));
    }

    #[test]
    fn what_is_wrong_is_said_with_and_without_its_word() {
        for (error, alone, of_rate) in [
            (
                time("3").unwrap_err(),
                "needs a time with its unit, such as 30ms or 1.5s, not `3`",
                "`rate` needs a time ",
            ),
            (rate("0mbit").unwrap_err(), "`0mbit` sends nothing", "`rate 0mbit` sends nothing; use `down`"),
            (share("101%").unwrap_err(), "`101%` is more than 100%", "`rate 101%` is more than 100%"),
            (
                bytes("9kb").unwrap_err(),
                "`9kb`: a small `b` would be bits; write 9kB for bytes",
                "`rate 9kb`: a small ",
            ),
        ] {
            assert_eq!(error.to_string(), alone);
            let whole = error.of("rate").to_string();
            assert!(whole.starts_with(of_rate), "{whole}");
        }
    }
}
