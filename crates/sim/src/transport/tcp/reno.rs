//! Reno (RFC 5681 §3.2): fast retransmit and fast recovery, until the next new acknowledgement.

use super::DataSegment;
use super::sender::{DUPLICATES, Phase, Sender};
use anabranch_base::Instant;

impl Sender {
    pub(super) fn reno(&mut self, now: Instant, next: u64, out: &mut impl FnMut(DataSegment)) {
        if next < self.una {
            return;
        }
        if next > self.una {
            if self.phase == Phase::Recovering {
                self.phase = Phase::Open;
            }
            self.inflation = 0;
            self.advance(now, next);
            self.grow();
        } else {
            self.duplicate(now, out);
        }
        if self.duplicates == 0 || self.duplicates >= DUPLICATES {
            self.send_window(now, None, out);
        }
    }

    /// A duplicate acknowledgement, for Reno and NewReno.
    pub(super) fn duplicate(&mut self, now: Instant, out: &mut impl FnMut(DataSegment)) {
        self.duplicates += 1;
        if self.duplicates < DUPLICATES {
            self.send_limited(now, out);
        } else if self.duplicates > DUPLICATES {
            if self.phase == Phase::Recovering {
                self.inflation += 1;
            }
        } else if self.is_new_loss() {
            self.note_loss(now);
            self.reduce(None);
            self.transmit(now, self.una, out);
            self.inflation = DUPLICATES;
        }
    }
}
