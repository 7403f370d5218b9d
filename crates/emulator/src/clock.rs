//! The real clock, as an [`Instant`] since the emulator started.

use anabranch_base::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock(std::time::Instant::now())
    }

    pub(crate) fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn epoch(self) -> std::time::Instant {
        self.0
    }
}
