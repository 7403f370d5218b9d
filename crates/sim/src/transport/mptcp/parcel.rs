//! What links carry of a segment: packets of a network fit a line of a cache, a segment of Multipath TCP does not, so it
//! lies in a box of its own.
#![allow(clippy::vec_box, reason = "boxes go back on a link as they are")]

use super::MptcpSegment;
use core::cell::RefCell;

/// Most boxes kept for the next packets.
const KEPT: usize = 4_096;

thread_local! {
    /// Boxes of packets that arrived or were lost: a network is one thread's at a time.
    static POOL: RefCell<Vec<Box<MptcpSegment>>> = const { RefCell::new(Vec::new()) };
}

/// A segment on its way. Its box is used again once it is gone.
#[derive(PartialEq, Eq, Debug)]
pub struct MptcpParcel(Option<Box<MptcpSegment>>);

impl MptcpParcel {
    /// Packs a segment.
    pub fn of(segment: MptcpSegment) -> Self {
        let spare = POOL.with_borrow_mut(Vec::pop);
        MptcpParcel(Some(match spare {
            Some(mut own) => {
                *own = segment;
                own
            }
            None => Box::new(segment),
        }))
    }

    /// The segment.
    pub fn segment(&self) -> Option<&MptcpSegment> {
        self.0.as_deref()
    }
}

impl Clone for MptcpParcel {
    fn clone(&self) -> Self {
        MptcpParcel(self.0.clone())
    }
}

impl Drop for MptcpParcel {
    fn drop(&mut self) {
        let Some(own) = self.0.take() else { return };
        // While a thread ends its pool may be gone.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < KEPT {
                pool.push(own);
            }
        });
    }
}
