//! Words of a text, one after another, and what to say about one that nobody knows.

use super::ParseError;

const LINK_WORDS: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "order",
    "loss",
    "loss-at",
    "limit",
    "limit-bytes",
    "overhead",
    "mtu",
    "duplicate",
    "reorder",
    "down",
    "up",
    "cut",
    "restore",
    "at",
    "every",
];
const PATH_WORDS: &[&str] = &["listen", "to", "from", "name", "rebind"];

/// Words of netem that have no meaning here.
const UNSUPPORTED: &[&str] = &["corrupt", "gap", "slot", "ecn", "seed"];

/// Every word of the grammar.
pub fn all_words() -> impl Iterator<Item = &'static str> {
    LINK_WORDS.iter().chain(PATH_WORDS).copied()
}

/// Is this, with or without the prefix of a direction, a word of the grammar?
pub(super) fn is_word(word: &str) -> bool {
    let bare = word.strip_prefix("up.").or_else(|| word.strip_prefix("down.")).unwrap_or(word);
    LINK_WORDS.contains(&bare) || PATH_WORDS.contains(&bare)
}

/// Words of a text; `word=value` becomes two.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if is_word(&canonical(name)) => {
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
pub(super) fn canonical(word: &str) -> String {
    word.replace('_', "-")
}

/// A place in a list of words.
pub(super) struct Cursor<'a> {
    words: &'a [String],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(words: &'a [String]) -> Self {
        Cursor { words }
    }
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.first().map(String::as_str)
    }
    pub(super) fn skip(&mut self) {
        self.words = self.words.get(1..).unwrap_or(&[]);
    }
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.skip();
        Some(word)
    }
    /// The value of `word`, of which `what` gives the kind.
    pub(super) fn value(&mut self, word: &str, what: &str) -> Result<&'a str, ParseError> {
        self.next().ok_or_else(|| ParseError::new(format!("`{word}` needs {what}")))
    }
    /// Goes past the next word if it is this one.
    pub(super) fn take_if(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        if is {
            self.skip();
        }
        is
    }
}

/// An error for a word that has no meaning here, with the nearest one that has.
pub(super) fn unknown(word: &str, whole_path: bool) -> ParseError {
    if PATH_WORDS.contains(&word) && !whole_path {
        return ParseError::new(format!("`{word}` is a word for a whole path and has no place here"));
    }
    if let Some(e) = unsupported(word) {
        return e;
    }
    let known = LINK_WORDS.iter().chain(PATH_WORDS.iter().filter(|_| whole_path)).copied();
    let bare = word.rsplit('.').next().unwrap_or(word);
    let near = known.clone().map(|k| (distance(bare, k), k)).min().filter(|(d, _)| *d <= 2);
    ParseError::new(match near {
        Some((0, near)) => format!("`{word}`: `{near}` holds for both directions; leave out the prefix"),
        Some((_, near)) => format!("unknown word `{word}`; did you mean `{near}`?"),
        None => format!("unknown word `{word}`; known are {}", known.collect::<Vec<_>>().join(", ")),
    })
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
            split("rate=6mbit up.limit_bytes=9 loss gemodel p=1%"),
            ["rate", "6mbit", "up.limit-bytes", "9", "loss", "gemodel", "p=1%"]
        );
    }
}
