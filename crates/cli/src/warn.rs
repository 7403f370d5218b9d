//! Warnings that a peer can cause: one line for each kind and second, however many peers do so.

use crate::exit::warning;
use crate::monitor::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Least time between two lines of one kind.
const EVERY: Duration = Duration::from_secs(1);

static QUIET: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<BTreeMap<&'static str, Kind>> = Mutex::new(BTreeMap::new());

/// When a kind was last said, and how often it was not since.
#[derive(Clone, Copy, Debug)]
struct Kind {
    at: Instant,
    kept_back: u64,
}

/// From now on nothing is said (`-q`).
pub fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Warns, unless one of its kind was said within the last second; then it is only counted.
pub fn limited(kind: &'static str, what: impl FnOnce() -> String) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    let Some(kept_back) = due(&mut lock(&SAID), kind, Instant::now()) else { return };
    match kept_back {
        0 => warning(&what()),
        n => warning(&format!("{} ({n} more of this kind were not shown)", what())),
    }
}

/// How many of this kind were kept back, when one may be said now.
fn due(said: &mut BTreeMap<&'static str, Kind>, kind: &'static str, now: Instant) -> Option<u64> {
    match said.get_mut(kind) {
        Some(k) if now.saturating_duration_since(k.at) < EVERY => {
            k.kept_back += 1;
            None
        }
        Some(k) => Some(std::mem::replace(k, Kind { at: now, kept_back: 0 }).kept_back),
        None => {
            said.insert(kind, Kind { at: now, kept_back: 0 });
            Some(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_kind_in_a_second() {
        let (mut said, start) = (BTreeMap::new(), Instant::now());
        let mut at = |kind, ms| due(&mut said, kind, start + Duration::from_millis(ms));
        assert_eq!(at("a", 0), Some(0));
        assert_eq!([at("a", 1), at("a", 999)], [None; 2]);
        assert_eq!(at("b", 5), Some(0), "another kind");
        assert_eq!(at("a", 1_000), Some(2));
        assert_eq!(at("a", 2_500), Some(0));
    }
}
