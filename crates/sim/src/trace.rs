//! What the readers of trace files have in common.

/// Why a trace cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{what}", if *line > 0 { format!("line {line}: ") } else { String::new() })]
pub struct TraceError {
    /// The line, from 1; 0 when it is the trace as a whole.
    pub line: usize,
    /// What is wrong, and what should be there.
    pub what: String,
}

impl TraceError {
    pub(crate) fn at(line: usize, what: impl Into<String>) -> Self {
        TraceError { line, what: what.into() }
    }
}

/// The lines of `text` with their numbers from 1, without comments (from `#` on) and without blank
/// ones.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}
