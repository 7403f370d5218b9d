//! NewReno (RFC 6582): fast recovery lasts until everything sent before it is acknowledged; each partial
//! acknowledgement shows the next loss.

use super::DataSegment;
use super::sender::{DUPLICATES, Phase, Sender};
use anabranch_base::Instant;

impl Sender {
    pub(super) fn newreno(&mut self, now: Instant, next: u64, out: &mut impl FnMut(DataSegment)) {
        if next < self.una {
            return;
        }
        if next == self.una {
            self.duplicate(now, out);
        } else if self.phase == Phase::Recovering && next < self.recover {
            self.partial(now, next, out);
        } else {
            if self.phase == Phase::Recovering {
                self.phase = Phase::Open;
                if self.config.halve_flight {
                    self.cwnd = self.ssthresh; // RFC 6582 §3.2 step 3; ns-2 keeps the deflated window.
                }
            }
            self.inflation = 0;
            self.partial_seen = false;
            self.advance(now, next);
            self.grow();
        }
        if self.duplicates == 0 {
            self.send_window(now, None, out);
        } else if self.duplicates >= DUPLICATES {
            self.send_window(now, self.config.recovery_burst, out);
        }
    }

    /// RFC 6582 §3.2 step 3, with the timer restarted by the first only (the impatient variant, §4).
    fn partial(&mut self, now: Instant, next: u64, out: &mut impl FnMut(DataSegment)) {
        if !self.partial_seen {
            self.partial_seen = true;
            self.restart_timer(now);
        }
        let acknowledged = u32::try_from(next - self.una).unwrap_or(u32::MAX);
        if self.inflation > acknowledged {
            self.inflation -= acknowledged - 1;
        } else {
            self.cwnd = (self.cwnd - f64::from(acknowledged - self.inflation)).max(1.0);
            self.inflation = 1;
        }
        self.una = next;
        self.next = self.next.max(next + 1);
        self.discard_measurement();
        self.transmit(now, next, out);
    }
}
