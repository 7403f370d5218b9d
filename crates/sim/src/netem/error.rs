//! Why words are not understood.

use super::units::ValueError;
use super::words::show_unknown;
use core::fmt;

/// Why a text or file is not understood: one line that names the word and says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError(Box<Inside>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Inside {
    /// The place it happened, from the outside in.
    places: Vec<String>,
    word: Option<usize>,
    mistake: Mistake,
}

/// A kind of mistake in the words of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mistake {
    /// A word that has no meaning here.
    Unknown {
        /// The unknown word.
        word: String,
        /// Words that are known here.
        known: Vec<&'static str>,
    },
    /// Something about a word, such as that it has no value.
    About {
        /// The word.
        word: String,
        /// What is said of it: `needs a time such as 30ms`.
        says: String,
    },
    /// A value that is none.
    Value {
        /// The word whose value it is.
        word: String,
        /// Why it is no value of the word.
        error: ValueError,
    },
    /// Anything else, in one line.
    Other(String),
}

impl ParseError {
    fn of(mistake: Mistake) -> Self {
        ParseError(Box::new(Inside { places: Vec::new(), word: None, mistake }))
    }

    /// This line.
    pub fn new(message: String) -> Self {
        ParseError::of(Mistake::Other(message))
    }

    /// A word that is none of those known.
    pub fn unknown(word: &str, known: Vec<&'static str>) -> Self {
        ParseError::of(Mistake::Unknown { word: word.to_owned(), known })
    }

    /// What `word` needs, is or cannot be.
    pub fn about(word: &str, says: impl Into<String>) -> Self {
        ParseError::of(Mistake::About { word: word.to_owned(), says: says.into() })
    }

    pub(super) fn value(word: &str, error: ValueError) -> Self {
        ParseError::of(Mistake::Value { word: word.to_owned(), error })
    }

    /// This error with the place it happened in front.
    #[must_use]
    pub fn inside(mut self, place: &str) -> Self {
        self.0.places.insert(0, place.to_owned());
        self
    }

    /// The error, as one of the word at this place in the list of words.
    pub(super) fn at_word(mut self, word: usize) -> Self {
        self.0.word = Some(word);
        self
    }

    /// The kind of mistake.
    pub fn mistake(&self) -> &Mistake {
        &self.0.mistake
    }

    /// Where in the list of words the word stands that is unknown, or whose values are wrong.
    pub fn word(&self) -> Option<usize> {
        self.0.word
    }

    /// The word that the line speaks of and begins with: `delay` in "`delay` needs a time".
    pub fn subject(&self) -> Option<&str> {
        match &self.0.mistake {
            Mistake::About { word, .. } => Some(word),
            Mistake::Value { word, error } if error.begins_with_word() => Some(word),
            _ => None,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.places.iter().try_for_each(|place| write!(f, "{place}: "))?;
        match &self.0.mistake {
            Mistake::Unknown { word, known } => show_unknown(word, known, f),
            Mistake::About { word, says } => write!(f, "`{word}` {says}"),
            Mistake::Value { word, error } => error.show(Some(word), f),
            Mistake::Other(line) => f.write_str(line),
        }
    }
}

impl core::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::super::{NoGuest, read_links, split};
    use super::Mistake;

    #[test]
    fn an_error_says_which_word_it_is_about() {
        for (text, word, subject) in [
            ("rate 6mbit dleay 30ms", 2, None),
            ("rate 6mbit delay 30", 2, Some("delay")),
            ("rate 6mbit up.delay", 2, Some("up.delay")),
            ("loss 1% burst 0 rate 1mbit", 0, Some("burst")),
            ("limit 50p at 7s rate 3mb", 4, Some("rate")),
            ("loss 1% brust 3", 2, None),
        ] {
            let e = read_links(&split(text, &[]), &mut NoGuest, None).unwrap_err();
            assert_eq!((e.word(), e.subject()), (Some(word), subject), "{text}: {e}");
        }
        let e = read_links(&split("dleay 30ms", &[]), &mut NoGuest, None).unwrap_err();
        assert!(matches!(e.mistake(), Mistake::Unknown { word, .. } if word == "dleay"), "{e:?}");
        let e = e.inside("link 2").inside("path `x`");
        assert_eq!(e.to_string(), "path `x`: link 2: unknown word `dleay`; did you mean `delay`?");
    }
}
