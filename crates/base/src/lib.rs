//! Vocabulary that every anabranch crate shares: time, serial numbers, ids, units, random streams.
//!
//! Nothing here reads a clock or the operating system's random source; both are handed in.

mod ids;
mod random;
mod serial;
mod time;
mod units;

pub use ids::{PathId, PathSet, StreamId};
pub use random::{Entropy, RandomStream};
pub use serial::{Mid, Ssn, Tsn};
pub use time::{Duration, Instant, earlier};
pub use units::{Ppm, Rate};
