//! Vocabulary that every anabranch crate shares: time, serial numbers, ids, units, random streams.
//!
//! Nothing here reads a clock or the operating system's random source; both are handed in.
//!
//! ```
//! use anabranch_base::{Duration, Instant, RandomStream, Rate, Tsn};
//!
//! // A packet of 1,500 bytes at 12 Mbit/s.
//! let sent = Instant::from_millis(5) + Rate::from_bits_per_sec(12_000_000).time_for(1_500);
//! assert_eq!(sent, Instant::from_millis(6));
//! // Serial numbers wrap (RFC 1982).
//! assert!(Tsn(u32::MAX).before(Tsn(u32::MAX).next()));
//! // One seed and name draw the same numbers on any machine.
//! let draw = |name| RandomStream::named(1, name).u64();
//! assert_eq!(draw("loss"), draw("loss"));
//! assert_ne!(draw("loss"), draw("delay"));
//! assert_eq!(Duration::from_millis(1).as_nanos(), 1_000_000);
//! ```

mod ids;
mod radio;
mod random;
mod serial;
mod time;
mod units;

pub use ids::{PathId, PathSet, StreamId};
pub use radio::{Modulation, NoSuchWord, Technology};
pub use random::{Entropy, RandomStream};
pub use serial::{Mid, Ssn, Tsn};
pub use time::{Duration, Instant, earlier};
pub use units::{Ppm, Rate};
