//! The names of what is measured of repairs, taken apart: `repair2-delay-p99`, `repairs-timer-spurious`,
//! `lost-radio-as-congestion`.

use super::repairs::{COUNTED_APART, NAMED, Truth, Which};
use anabranch_engine::TransmissionCause;
use anabranch_policy::loss_cause::Cause;

/// What is measured of repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Mean time from the first transmission to the arrival of chunks that a repetition brought.
    Mean(Which),
    /// A percentile of it, in thousandths of a per cent.
    Percentile(Which, u32),
    /// The longest.
    Longest(Which),
    /// How many repetitions.
    Count(Which),
    /// Part of them that were spurious.
    Spurious(Which),
    /// Transmissions that were lost like this and taken for that.
    Confused(Truth, Option<Cause>),
    /// Part of what was taken for lost of which the policy named the true cause.
    Right,
}

impl Repair {
    /// Is it of what links do to packets?
    pub const fn needs_truth(self) -> bool {
        matches!(self, Repair::Confused(..) | Repair::Right)
    }

    /// The metric and its unit by its name; none for a name of another kind.
    pub(super) fn named(name: &str) -> Option<(Self, &'static str)> {
        if name == "causes-right" {
            return Some((Repair::Right, ""));
        }
        if let Some(rest) = name.strip_prefix("lost-") {
            let (truth, named) = rest.split_once("-as-")?;
            let truth = Truth::ALL.into_iter().find(|t| t.as_str() == truth)?;
            let (named, _) = NAMED.into_iter().find(|(_, n)| *n == named)?;
            return Some((Repair::Confused(truth, named), ""));
        }
        let rest = name.strip_prefix("repair")?;
        let (which, mut rest) = match rest.strip_prefix('s') {
            Some(rest) => (Which::default(), rest),
            None => {
                let digit = rest.chars().next()?.to_digit(10)? as usize;
                let nth = Some(digit).filter(|k| (1..=COUNTED_APART).contains(k))?;
                (Which { nth: Some(nth), ..Which::default() }, rest.get(1..)?)
            }
        };
        if let Some(delay) = rest.strip_prefix("-delay") {
            let classes = ["-i", "-p", "-b"];
            let of = classes.iter().position(|c| delay == *c || delay.starts_with(&format!("{c}-")));
            let which = Which { class: of, ..which };
            let tail = of.map_or(delay, |_| &delay[2..]);
            return delay_named(which, tail).map(|m| (m, "s"));
        }
        let mut which = which;
        if let Some(c) = TransmissionCause::ALL.into_iter().skip(1).find(|c| {
            rest.strip_prefix('-')
                .and_then(|r| r.strip_prefix(c.as_str()))
                .is_some_and(|r| r.is_empty() || r.starts_with('-'))
        }) {
            which.cause = Some(c);
            rest = rest.get(1 + c.as_str().len()..)?;
        }
        match rest {
            "" => Some((Repair::Count(which), "")),
            "-spurious" => Some((Repair::Spurious(which), "")),
            _ => None,
        }
    }
}

/// What follows `-delay`: nothing, `-max`, `-p99.9`.
fn delay_named(which: Which, tail: &str) -> Option<Repair> {
    match tail {
        "" => Some(Repair::Mean(which)),
        "-max" => Some(Repair::Longest(which)),
        _ => {
            let percent = tail.strip_prefix("-p")?;
            let fine = percent.split_once('.').is_none_or(|(_, decimals)| decimals.len() <= 3);
            let p = percent.parse::<f64>().ok().filter(|p| fine && *p > 0.0 && *p < 100.0)?;
            Some(Repair::Percentile(which, (p * 1_000.0).round() as u32))
        }
    }
}

/// Names that show how they are made, for messages about unknown ones.
pub(super) const EXAMPLES: [&str; 7] = [
    "repairs",
    "repairs-timer",
    "repairs-spurious",
    "repair1-delay",
    "repairs-delay-i",
    "lost-radio-as-congestion",
    "causes-right",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let all = Which::default();
        let second = Which { nth: Some(2), ..all };
        let by = |cause| Which { cause: Some(cause), ..all };
        for (name, want) in [
            ("repairs", Repair::Count(all)),
            ("repair2", Repair::Count(second)),
            ("repair2-delay", Repair::Mean(second)),
            ("repairs-delay-p99.9", Repair::Percentile(all, 99_900)),
            ("repairs-delay-p", Repair::Mean(Which { class: Some(1), ..all })),
            ("repairs-delay-p-p50", Repair::Percentile(Which { class: Some(1), ..all }, 50_000)),
            ("repair2-delay-i-max", Repair::Longest(Which { class: Some(0), ..second })),
            ("repairs-timer", Repair::Count(by(TransmissionCause::Timer))),
            ("repairs-bundled-spurious", Repair::Spurious(by(TransmissionCause::Bundled))),
            ("repair2-spurious", Repair::Spurious(second)),
            ("lost-radio-as-congestion", Repair::Confused(Truth::Radio, Some(Cause::Congestion))),
            ("lost-down-as-unnamed", Repair::Confused(Truth::Down, None)),
            ("causes-right", Repair::Right),
        ] {
            assert_eq!(Repair::named(name).map(|m| m.0), Some(want), "{name}");
        }
        for wrong in [
            "repair",
            "repair0",
            "repair10",
            "repairs-first",
            "repairs-delay-x",
            "repairs-delay-p0",
            "repairs-timers",
            "repairs-delay-p99.9999",
            "lost-radio",
            "lost-radio-as-luck",
            "repair1-delay-max-p9",
        ] {
            assert_eq!(Repair::named(wrong), None, "{wrong}");
        }
        for e in EXAMPLES {
            assert!(Repair::named(e).is_some(), "{e}");
        }
    }
}
