//! Repair symbols over a sliding window of source symbols (the idea of RFC 8681): linear combinations over GF(256), or
//! plain XOR.
//!
//! Sources leave as they are and are known by a number that rises. A repair symbol is a sum of some of them, each times a
//! coefficient that both ends take from a small generator, so that only a seed travels. Whoever misses some of the
//! sources solves for them as soon as enough sums have come: [`Decoder`] does so step by step, in bounded memory and with
//! bounded work, whatever it is sent.
//!
//! Symbols may differ in length; a shorter one counts as if zeros followed. How long a solved one was is for the user to
//! note inside it.
//!
//! ```
//! use anabranch_code::{Code, Combiner, Decoder, Limits, Outcome, Repair};
//!
//! let sources: [&[u8]; 3] = [b"one", b"three", b"nine"];
//! let mut combiner = Combiner::new(Code::Rlc, 7);
//! for (number, source) in (40..).zip(sources) {
//!     combiner.add(number, &[source]);
//! }
//! let sum = combiner.finish();
//!
//! let mut decoder = Decoder::new(Limits::default());
//! decoder.source(40, &[sources[0]]);
//! decoder.source(42, &[sources[2]]);
//! let repair = Repair { code: Code::Rlc, seed: 7, symbol: &sum };
//! assert_eq!(decoder.repair(&repair, 40..43), Outcome::Solved);
//! let (number, symbol) = decoder.next_solved().expect("one was missing");
//! assert_eq!((number, symbol), (41, &b"three"[..]));
//! ```

mod block;
mod combiner;
mod decoder;
pub mod gf256;
pub mod hamming;
mod row;
mod sources;

pub use block::Block;
pub use combiner::{Code, Combiner};
pub use decoder::{Decoder, Limits, Outcome, Repair};
