//! How a command ends: the exit codes, and the one line that says why.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command did not end well. Each prints as one line that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The network or the peer failed: unreachable, port in use, peer gone.
    #[error("{0}")]
    Network(String),
    /// The user's mistake: flags, files, configuration.
    #[error("{0}")]
    Usage(String),
    /// The control failed: the machine is not fit to measure on.
    #[error("{0}")]
    Unfit(String),
    /// Interrupted by a signal; nothing needs to be said.
    #[error("interrupted")]
    Interrupted,
}

/// What commands return.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// A failure of the network or the peer.
    pub fn network(what: impl Display) -> Self {
        Failure::Network(one_line(&what.to_string()))
    }

    /// A mistake of the user.
    pub fn usage(what: impl Display) -> Self {
        Failure::Usage(one_line(&what.to_string()))
    }

    /// The exit code, as documented: 1 network or peer, 2 user's mistake, 3 a control that failed, 130 interrupted.
    pub const fn code(&self) -> u8 {
        match self {
            Failure::Network(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unfit(_) => 3,
            Failure::Interrupted => 130,
        }
    }
}

/// Prints why, if anything went wrong, and gives the code to exit with.
pub fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::Interrupted {
                eprintln!("anabranch: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Something that is better than before.
pub fn notice(what: &str) {
    eprintln!("anabranch: {}", one_line(what));
}

/// Something the user should know although all goes on.
pub fn warning(what: &str) {
    eprintln!("anabranch: warning: {}", one_line(what));
}

/// Writes to standard output what a command was asked for. A reader that has seen enough, such as `head`, is no failure.
///
/// # Errors
/// Standard output cannot take it: a full disk.
pub fn print(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// A message of clap, shortened to one line, and what helps.
pub fn clap_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    // What follows an empty line is usage and hints; a list of what is missing is kept.
    let body = in_words(&one_line(text.split("\n\n").next().unwrap_or(text)));
    match meant(error) {
        Some(name) => format!("{body}; did you mean `{name}`?"),
        None => format!("{body}; see --help"),
    }
}

/// What Rust says of text that is no number, for people.
fn in_words(text: &str) -> String {
    let words = [
        ("invalid digit found in string", "not a whole number of 0 or more"),
        ("cannot parse integer from empty string", "not a whole number of 0 or more"),
        ("number too large to fit in target type", "more than this number can be"),
    ];
    words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What clap takes a mistyped word for.
fn meant(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind as K, ContextValue as V};
    [K::SuggestedSubcommand, K::SuggestedArg, K::SuggestedValue].into_iter().find_map(|kind| match error.get(kind)? {
        V::String(one) => Some(one.clone()),
        V::Strings(several) => several.first().cloned(),
        _ => None,
    })
}

/// Line breaks and runs of blanks become one blank each, and the numbers of the system's errors go: the words before them
/// say all.
pub fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = text.split(" (os error ");
    let mut line = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|p| line.push_str(p.split_once(')').map_or(p, |(_, after)| after)));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        assert_eq!(Failure::network("x").code(), 1);
        assert_eq!(Failure::usage("x").code(), 2);
        assert_eq!(Failure::Interrupted.code(), 130);
    }

    #[test]
    fn always_one_line() {
        assert_eq!(Failure::usage("two\n  lines").to_string(), "two lines");
    }

    #[test]
    fn the_words_of_an_error_of_the_system_do() {
        let missing = io::Error::from_raw_os_error(2);
        let text = Failure::usage(format!("cannot read a: {missing}; nor b: {missing}")).to_string();
        assert!(!text.contains("os error") && text.starts_with("cannot read a: "), "{text}");
        assert!(text.contains("; nor b: "), "{text}");
    }

    #[test]
    fn a_mistyped_word_is_recognised() {
        use clap::{Arg, Command};
        let command = || Command::new("x").subcommand(Command::new("send").arg(Arg::new("path").long("path")));
        let says = |words: &[&str]| clap_line(&command().try_get_matches_from(words).expect_err("a mistake"));
        assert_eq!(says(&["x", "sned"]), "unrecognized subcommand 'sned'; did you mean `send`?");
        assert_eq!(says(&["x", "send", "--pth=1"]), "unexpected argument '--pth' found; did you mean `--path`?");
        assert_eq!(says(&["x", "send", "more"]), "unexpected argument 'more' found; see --help");
    }
}
