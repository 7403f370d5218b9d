//! Links in netem's words: `rate 6mbit delay 30ms loss 0.1% limit 40 at 7s down at 10s up`.
//!
//! Who has more words than those of links, as the emulator has for its relays, reads them as a [`Guest`].

mod error;
mod link;
mod loss;
mod queue;
pub mod units;
mod words;

pub use error::{Mistake, ParseError};
pub use link::{Guest, Later, LinkReader, Links, NoGuest, read_link, read_links};
pub use loss::AND;
pub use words::{Cursor, LINK_WORDS, canonical, is_word, nearest, split, unknown, words_of_values};
