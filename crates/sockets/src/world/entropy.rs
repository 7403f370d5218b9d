//! Randomness of virtual time.

use crate::socket::EntropySource;
use anabranch_base::RandomStream;

/// Randomness that repeats in every run.
pub fn repeatable() -> EntropySource {
    let mut endpoints = 0;
    Box::new(move || {
        endpoints += 1;
        Box::new(RandomStream::named(endpoints, "sockets"))
    })
}
