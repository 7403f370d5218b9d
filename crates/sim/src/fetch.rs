//! Memory that will be needed soon.

use prefetch_index::prefetch_index;

/// Has the cache fetch the line where `what` begins, and does not wait for it.
#[inline(always)]
pub(crate) fn fetch<T>(what: &T) {
    prefetch_index(core::slice::from_ref(what), 0);
}
