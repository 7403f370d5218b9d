//! Values of a sweep on an axis of numbers.

use crate::quantity::number_of;

/// Where values lie, and the unit of the axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Placed {
    /// The unit that most of the values are written in: `KB`, `ms`, `Mbit/s`, `%`; empty for bare numbers.
    pub unit: &'static str,
    /// The place of each value, in that unit.
    pub at: Vec<f64>,
}

impl Placed {
    /// Are its round values powers of two?
    pub fn binary(&self) -> bool {
        matches!(self.unit, "KB" | "MB" | "GB")
    }
}

/// What a unit measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bare,
    Time,
    Share,
    Rate,
    Size,
}

/// As it is written, what it measures, how it is shown, and how much of the base unit it is.
const UNITS: [(&str, Kind, &str, f64); 26] = [
    ("", Kind::Bare, "", 1.0),
    ("ns", Kind::Time, "ns", 1e-9),
    ("us", Kind::Time, "\u{b5}s", 1e-6),
    ("ms", Kind::Time, "ms", 1e-3),
    ("s", Kind::Time, "s", 1.0),
    ("sec", Kind::Time, "s", 1.0),
    ("min", Kind::Time, "min", 60.0),
    ("%", Kind::Share, "%", 0.01),
    ("bit", Kind::Rate, "bit/s", 1.0),
    ("kbit", Kind::Rate, "kbit/s", 1e3),
    ("mbit", Kind::Rate, "Mbit/s", 1e6),
    ("gbit", Kind::Rate, "Gbit/s", 1e9),
    ("byte", Kind::Rate, "byte/s", 8.0),
    ("kbyte", Kind::Rate, "kbyte/s", 8e3),
    ("mbyte", Kind::Rate, "Mbyte/s", 8e6),
    ("gbyte", Kind::Rate, "Gbyte/s", 8e9),
    ("b", Kind::Size, "B", 1.0),
    ("kb", Kind::Size, "KB", 1_024.0),
    ("k", Kind::Size, "KB", 1_024.0),
    ("kib", Kind::Size, "KB", 1_024.0),
    ("mb", Kind::Size, "MB", 1_048_576.0),
    ("m", Kind::Size, "MB", 1_048_576.0),
    ("mib", Kind::Size, "MB", 1_048_576.0),
    ("gb", Kind::Size, "GB", 1_073_741_824.0),
    ("g", Kind::Size, "GB", 1_073_741_824.0),
    ("gib", Kind::Size, "GB", 1_073_741_824.0),
];

/// What a value measures, how its unit is shown and how much that is, and its number in the base unit.
type Read = (Kind, &'static str, f64, f64);

fn read(text: &str) -> Option<Read> {
    let number = number_of(text)?;
    let text = text.replace(' ', "");
    if text.parse::<f64>().is_ok() {
        return Some((Kind::Bare, "", 1.0, number));
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_ascii_lowercase();
    let (_, kind, shown, factor) = UNITS.iter().find(|u| u.0 == unit.trim_end_matches("/s"))?;
    Some((*kind, shown, *factor, number))
}

/// Places values by their numbers.
///
/// # Errors
/// Which value is no number, or is one of something else than those before; to be read after its key.
pub(super) fn of(values: &[String]) -> Result<Placed, String> {
    let all: Vec<Read> =
        values.iter().map(|v| read(v).ok_or_else(|| format!("{v} is no number"))).collect::<Result<_, _>>()?;
    // Zero is zero in any unit.
    let with_unit: Vec<(&String, &Read)> =
        values.iter().zip(&all).filter(|(_, r)| r.0 != Kind::Bare || r.3 != 0.0).collect();
    if let Some(w) = with_unit.windows(2).find(|w| w[0].1.0 != w[1].1.0) {
        return Err(format!("{} and {} are not of one kind", w[0].0, w[1].0));
    }
    let often = |shown: &str| with_unit.iter().filter(|(_, r)| r.1 == shown).count();
    // Of those that are there most often, the first.
    let mut most: Option<&Read> = None;
    for (_, r) in &with_unit {
        if most.is_none_or(|m| often(r.1) > often(m.1)) {
            most = Some(r);
        }
    }
    let (unit, factor) = most.map_or(("", 1.0), |r| (r.1, r.2));
    // Written numbers come back as they are: 64 KB, not 64.00000001.
    let exact = |v: f64| format!("{v:.12e}").parse().unwrap_or(v);
    Ok(Placed { unit, at: all.iter().map(|r| exact(r.3 / factor)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_words(words: &str) -> Result<Placed, String> {
        of(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn values_keep_their_units() {
        for (words, unit, at) in [
            ("16KB 64KB 1MB", "KB", vec![16.0, 64.0, 1024.0]),
            ("0 10ms 2.5ms", "ms", vec![0.0, 10.0, 2.5]),
            ("0.1% 3%", "%", vec![0.1, 3.0]),
            ("400kbit 1mbit 500kbit/s", "kbit/s", vec![400.0, 1000.0, 500.0]),
            ("500ms 1s 2s", "s", vec![0.5, 1.0, 2.0]),
            ("4 -1.5 1e3", "", vec![4.0, -1.5, 1000.0]),
            ("150us", "\u{b5}s", vec![150.0]),
            ("0", "", vec![0.0]),
        ] {
            assert_eq!(of_words(words), Ok(Placed { unit, at }), "{words}");
        }
        assert_eq!(of(&[]), Ok(Placed { unit: "", at: Vec::new() }));
    }

    #[test]
    fn words_and_mixtures_have_no_place() {
        for (words, what) in [
            ("1ms rtx_csi", "rtx_csi is no number"),
            ("1ms 3%", "1ms and 3% are not of one kind"),
            ("1 3%", "1 and 3% are not of one kind"),
            ("50p", "50p is no number"),
        ] {
            assert_eq!(of_words(words), Err(what.to_owned()), "{words}");
        }
    }
}
