//! Memory that will be needed soon.

use prefetch_index::prefetch_index;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Has the cache fetch the first `LINES` lines of `what`, and does not wait for them.
#[inline(always)]
pub(crate) fn fetch<const LINES: usize, T: ?Sized>(what: &T) {
    let first = core::ptr::from_ref(what).addr();
    // A slice of something without a type is not to be had, but the address is all that counts: nothing is read.
    let nowhere: &[u8] = &[];
    for line in 0..LINES {
        prefetch_index(nowhere, (first + line * LINE).wrapping_sub(nowhere.as_ptr().addr()));
    }
}
