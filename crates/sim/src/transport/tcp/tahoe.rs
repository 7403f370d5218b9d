//! Tahoe (Jacobson 1988): a loss, however noticed, starts again from a window of one.

use super::DataSegment;
use super::sender::{DUPLICATES, Sender};
use anabranch_base::Instant;

impl Sender {
    pub(super) fn tahoe(&mut self, now: Instant, next: u64, out: &mut impl FnMut(DataSegment)) {
        if next < self.una {
            return;
        }
        if next > self.una {
            self.advance(now, next);
            self.grow();
        } else {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES && self.is_new_loss() {
                self.note_loss(now);
                self.reduce(Some(1.0));
                self.go_back(now);
            } else if self.duplicates < DUPLICATES {
                self.send_limited(now, out);
            }
        }
        self.send_window(now, None, out);
    }
}
