//! Links in netem's words: `rate 6mbit delay 30ms loss 0.1% limit 40 at 7s down at 10s up`.
//!
//! Who has more words than those of links, as the emulator has for its relays, reads them as a [`Guest`].

mod link;
mod loss;
mod queue;
pub mod units;
mod words;

pub use link::{Guest, Later, Links, NoGuest, read_link, read_links};
pub use words::{Cursor, LINK_WORDS, canonical, is_word, nearest, split, unknown};

/// Why a text or file is not understood: one line that names the word and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

impl ParseError {
    /// This line.
    pub fn new(message: String) -> Self {
        ParseError(message)
    }

    /// The same, with the place it happened in front.
    #[must_use]
    pub fn inside(self, place: &str) -> Self {
        ParseError(format!("{place}: {}", self.0))
    }
}
