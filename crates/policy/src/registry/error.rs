//! What can be wrong with a choice of policies.

use super::{Hook, Value};

/// A choice that cannot be carried out, with what could have been meant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// No such profile.
    #[error("no profile is called '{name}'{}", hint(name, known))]
    UnknownProfile {
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<&'static str>,
    },
    /// No such hook.
    #[error("no hook is called '{name}'{}", hint(name, known))]
    UnknownHook {
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<&'static str>,
    },
    /// No such policy.
    #[error("{} has no policy called '{name}'{}", .hook.name(), hint(name, known))]
    UnknownPolicy {
        /// The hook.
        hook: Hook,
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<&'static str>,
    },
    /// No such parameter.
    #[error("{policy} has no parameter '{name}'{}", hint(name, known))]
    UnknownParam {
        /// The policy.
        policy: &'static str,
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<&'static str>,
    },
    /// A value that does not fit.
    #[error("{policy}: {param}={value} does not fit: {expected}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
        /// Value that was given.
        value: String,
        /// Range or words that are allowed.
        expected: String,
    },
    /// A parameter that is given twice.
    #[error("{policy}: {param} is given twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// A number above another one of the same policy that it must not exceed.
    #[error("{policy}: {param}={value} must not be above {other}={most}")]
    Above {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        param: &'static str,
        /// Its value.
        value: Value,
        /// The other parameter.
        other: &'static str,
        /// Its value.
        most: Value,
    },
    /// A parameter without `=`.
    #[error("'{text}' is no parameter: write name=value, separated by commas, after '{policy}:'")]
    Malformed {
        /// The policy.
        policy: &'static str,
        /// Text that was given.
        text: String,
    },
    /// Policies that make no sense together.
    #[error("{first} and {second} do not go together: {reason}")]
    Refused {
        /// One of the policies, as hook and name.
        first: String,
        /// The other policy.
        second: String,
        /// Why they are refused together.
        reason: &'static str,
    },
}

/// "; did you mean 'x'? There is a, b and c" with the nearest name first.
fn hint(name: &str, known: &[&'static str]) -> String {
    let near = known.iter().map(|k| (distance(name, k), k)).min();
    let mut out = match near {
        Some((d, k)) if d <= 2 + name.len() / 4 => format!("; did you mean '{k}'?"),
        _ => String::from(";"),
    };
    if known.is_empty() {
        out.push_str(" there is none");
    } else {
        out.push_str(" there is ");
        out.push_str(&known.join(", "));
    }
    out
}

/// Levenshtein distance, with `-` and `_` taken as one letter.
fn distance(a: &str, b: &str) -> usize {
    let fold = |s: &str| s.to_ascii_lowercase().replace('-', "_").into_bytes();
    let (a, b) = (fold(a), fold(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = core::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("round-robin", "round_robin"), 0);
        assert_eq!(distance("roundrobin", "round_robin"), 1);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn nearest_name_comes_first() {
        assert_eq!(hint("cmtt", &["sctp", "cmt"]), "; did you mean 'cmt'? there is sctp, cmt");
        assert_eq!(hint("zzzzzz", &["sctp"]), "; there is sctp");
    }
}
