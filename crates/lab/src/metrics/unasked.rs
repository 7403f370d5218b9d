//! What a source makes that no transport has asked for.

use anabranch_base::Instant;
use anabranch_sim::traffic::{Emission, Source};
use std::sync::{Arc, Mutex, PoisonError};

/// A source with a clock of its own, which is asked for the rest once a run is over: a transport that had no room, or
/// whose connection ended, has left what was made since to it. What notes emissions is inside it, so that all are noted
/// in one place.
#[derive(Clone)]
pub struct Unasked(Arc<Mutex<Box<dyn Source>>>);

impl Unasked {
    /// Of a source that makes what it makes whether it is asked or not.
    pub fn new(source: Box<dyn Source>) -> Self {
        Unasked(Arc::new(Mutex::new(source)))
    }

    /// Makes what is made up to `end`, by a source that began at `start` if it was never asked.
    pub fn make_rest(&self, start: Instant, end: Instant) {
        let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while source.next(start).is_some_and(|e| e.at <= end) {}
    }
}

impl std::fmt::Debug for Unasked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unasked").finish_non_exhaustive()
    }
}

impl Source for Unasked {
    fn next(&mut self, now: Instant) -> Option<Emission> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next(now)
    }
}
