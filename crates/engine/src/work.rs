//! How much an association looks at, counted in debug builds: tests bound how work grows by it, which no clock could.
//!
//! Whatever walks through chunks, packets in flight, streams, runs of TSNs or fragments counts each step. Release
//! builds count nothing and pay nothing.

#[cfg(debug_assertions)]
thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// So many things are looked at, or moved.
#[inline(always)]
pub(crate) fn steps(n: usize) {
    #[cfg(debug_assertions)]
    STEPS.with(|s| s.set(s.get() + n as u64));
    #[cfg(not(debug_assertions))]
    let _ = n;
}

/// Steps of this thread since the last call; none where they are not counted.
#[doc(hidden)]
pub fn take() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(STEPS.with(core::cell::Cell::take));
    #[cfg(not(debug_assertions))]
    None
}
