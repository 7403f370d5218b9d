//! The real clock as the engine's [`Instant`]: one epoch for the whole process.

use anabranch_base::Instant;
use std::sync::OnceLock;
use std::time::{Duration as StdDuration, Instant as StdInstant};

/// The epoch lies this far before the first look at the clock, so that no real instant equals [`Instant::ZERO`].
const HEAD_START: StdDuration = StdDuration::from_secs(1);

fn start() -> StdInstant {
    static START: OnceLock<StdInstant> = OnceLock::new();
    *START.get_or_init(StdInstant::now)
}

/// Now. All endpoints of a process share one epoch, so their instants may be compared.
pub fn now() -> Instant {
    from_std(StdInstant::now())
}

/// A standard instant on the engine's scale; earlier than the epoch saturates.
pub fn from_std(at: StdInstant) -> Instant {
    let start = start();
    let since = match at.checked_duration_since(start) {
        Some(after) => HEAD_START + after,
        None => HEAD_START.saturating_sub(start - at),
    };
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// An instant of the engine as a standard one; too far away for the platform becomes a day from now.
pub fn to_std(at: Instant) -> StdInstant {
    let start = start();
    let since = StdDuration::from_nanos(at.as_nanos());
    match since.checked_sub(HEAD_START) {
        Some(after) => start.checked_add(after).unwrap_or_else(|| start + StdDuration::from_secs(86_400)),
        None => start.checked_sub(HEAD_START - since).unwrap_or(start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Duration;

    #[test]
    fn there_and_back() {
        let at = now();
        assert!(at > Instant::ZERO);
        assert_eq!(from_std(to_std(at)), at);
        let later = at + Duration::from_secs(3);
        assert_eq!(to_std(later) - to_std(at), StdDuration::from_secs(3));
        assert!(to_std(Instant::FAR) > StdInstant::now());
    }
}
