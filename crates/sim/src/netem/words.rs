//! Words of a text, one after another, and the error for an unknown one.

use super::ParseError;
use super::units::ValueError;
use core::fmt;

/// Words of a link.
pub const LINK_WORDS: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "order",
    "loss",
    "loss-at",
    "arq",
    "limit",
    "limit-bytes",
    "queue",
    "overhead",
    "mtu",
    "duplicate",
    "reorder",
    "corrupt",
    "down",
    "up",
    "cut",
    "restore",
    "at",
    "every",
];
/// Words of netem that have no meaning here.
const UNSUPPORTED: &[&str] = &["gap", "slot", "ecn", "seed"];

/// Is this, with or without the prefix of a direction, a word of the grammar, or one of `guests`?
pub fn is_word(word: &str, guests: &[&str]) -> bool {
    let bare = word.strip_prefix("up.").or_else(|| word.strip_prefix("down.")).unwrap_or(word);
    LINK_WORDS.contains(&bare) || guests.contains(&bare)
}

/// Words of a text; `word=value` becomes two, if it is a word of the grammar or one of `guests`.
pub fn split(text: &str, guests: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if is_word(&canonical(name), guests) => {
                words.push(canonical(name));
                if !value.is_empty() {
                    words.push(value.into());
                }
            }
            _ => words.push(word.into()),
        }
    }
    words
}

/// TOML likes underscores where netem likes dashes; both are taken.
pub fn canonical(word: &str) -> String {
    word.replace('_', "-")
}

/// A place in a list of words.
#[derive(Debug)]
pub struct Cursor<'a> {
    words: &'a [String],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of `words`.
    pub fn new(words: &'a [String]) -> Self {
        Cursor { words, position: 0 }
    }
    /// The next word.
    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.position).map(String::as_str)
    }
    /// How many words it has gone past.
    pub fn position(&self) -> usize {
        self.position
    }
    /// Goes past the next word.
    pub fn skip(&mut self) {
        self.position = (self.position + 1).min(self.words.len());
    }
    /// Takes the next word.
    #[expect(clippy::should_implement_trait, reason = "a cursor is more than an iterator")]
    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.skip();
        Some(word)
    }
    /// The value of `word`, of which `what` gives the kind.
    ///
    /// # Errors
    /// There is none.
    pub fn value(&mut self, word: &str, what: &str) -> Result<&'a str, ParseError> {
        self.next().ok_or_else(|| ParseError::about(word, format!("needs {what}")))
    }
    /// The value of `word`, of which `what` gives the kind, as `read` understands it.
    ///
    /// # Errors
    /// There is none, or it is not of the kind.
    pub fn read<T>(
        &mut self,
        word: &str,
        what: &str,
        read: impl FnOnce(&str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        read(self.value(word, what)?).map_err(|e| e.of(word))
    }
    /// Goes past the next word if it is this one.
    pub fn take_if(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        if is {
            self.skip();
        }
        is
    }
}

/// An error for a word that has no meaning here, with the nearest one that has; `guests` are known too.
pub fn unknown(word: &str, guests: &[&'static str]) -> ParseError {
    unsupported(word).unwrap_or_else(|| ParseError::unknown(word, LINK_WORDS.iter().chain(guests).copied().collect()))
}

/// What to say of a word that is none of these.
pub(super) fn show_unknown(word: &str, known: &[&'static str], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bare = word.rsplit('.').next().unwrap_or(word);
    match nearest(bare, known.iter().copied()) {
        Some(near) if near == bare => write!(f, "`{word}`: `{near}` holds for both directions; leave out the prefix"),
        Some(near) => write!(f, "unknown word `{word}`; did you mean `{near}`?"),
        None => write!(f, "unknown word `{word}`; known are {}", known.join(", ")),
    }
}

/// Words that may be part of the value of a link's word.
pub fn words_of_values(word: &str) -> &'static [&'static str] {
    match word {
        "loss" => &["burst", "none", "random", "gemodel", "timed", "pattern", "outages", "packets", "and"],
        "delay" | "jitter" => &["distribution", "normal", "uniform", "exponential"],
        "limit" | "limit-bytes" => &["waiting"],
        "corrupt" => &["bits", "blocks", "none"],
        _ => &[],
    }
}

/// The known word that is at most two edits away.
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known.map(|k| (distance(word, k), k)).min().filter(|(d, _)| *d <= 2).map(|(_, k)| k)
}

/// An error for what netem has and this grammar has not.
fn unsupported(word: &str) -> Option<ParseError> {
    let bare = word.rsplit('.').next().unwrap_or(word);
    if word.strip_suffix('%').is_some_and(|n| n.parse::<f64>().is_ok()) {
        return Some(ParseError::new(format!(
            "`{word}`: netem's correlations are not supported; losses in a row are written `loss 1% burst 5`"
        )));
    }
    UNSUPPORTED.contains(&bare).then(|| ParseError::new(format!("netem's `{bare}` is not supported")))
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let new = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = new;
            left = new;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, n) in
            [("", "", 0), ("", "abc", 3), ("delay", "dely", 1), ("kitten", "sitting", 3), ("loss", "loss", 0)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (n, n), "{a} {b}");
        }
    }

    #[test]
    fn equal_signs_separate_words_of_the_grammar_only() {
        assert_eq!(
            split("rate=6mbit up.limit_bytes=9 loss gemodel p=1%", &[]),
            ["rate", "6mbit", "up.limit-bytes", "9", "loss", "gemodel", "p=1%"]
        );
    }
}
