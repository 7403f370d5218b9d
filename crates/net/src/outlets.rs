//! Sending directly from the user's thread.
//!
//! A message of an association that has nothing else on its way does not wait: handing it to the driver's thread
//! would only add two changes of threads to its delay. With anything on its way the driver sends: it gathers what
//! comes meanwhile into full packets and large batches. Messages that are handed over together are gathered already, and
//! leave from the thread that brought them.

use crate::batch::{Batch, Batches};
use crate::driver::{Sent, send};
use crate::shared::{Core, Shared};
use crate::socket::Io;
use anabranch_base::{Duration, Instant};
use anabranch_engine::Transmit;
use std::sync::Arc;
use std::task::Poll;

/// Packets that leave at once; the driver sends what is beyond.
const LIMIT: usize = 64;

/// Timers that each packet sets are longer than this: the shortest, 15 ms, is for the tail of a burst.
const LOOKS_EVERY: Duration = Duration::from_millis(8);

/// What it takes.
#[derive(Default)]
pub(crate) struct Outlets {
    /// Of each slot, as the driver last left it; none where it does not take packets, or where others wait.
    pub sockets: Vec<Option<Arc<Io>>>,
    /// What did not leave as it should: the driver goes on with it.
    pub left_over: Vec<(Batch, Poll<Sent>)>,
    /// When the driver will look again without being called.
    driver_wakes: Option<Instant>,
    /// Packets have left here since the driver last looked.
    used: bool,
    /// Every packet has to go through the driver, which captures them.
    pub closed: bool,
    transmit: Transmit,
    batches: Batches,
}

impl Outlets {
    /// Closed until the driver shows what may be used.
    pub fn closed() -> Self {
        Outlets { closed: true, ..Outlets::default() }
    }

    /// When the driver has to look again, whose next timer is at `next`; it will. A stream that leaves here sets a timer
    /// with each piece, sooner than what the driver knows of: instead of calling it each time it looks by itself for as
    /// long as the stream goes on.
    pub fn promise(&mut self, now: Instant, next: Option<Instant>) -> Option<Instant> {
        let soon = std::mem::take(&mut self.used).then(|| now + LOOKS_EVERY);
        self.driver_wakes = [next, soon].into_iter().flatten().min();
        self.driver_wakes
    }
}

impl Core {
    /// Sends what the engine has. True when the driver has to be called.
    pub fn send_at_once(&mut self, now: Instant, shared: &Shared) -> bool {
        if self.outlets.closed {
            return true;
        }
        let mut built = 0;
        while built < LIMIT && self.engine.poll_transmit(now, &mut self.outlets.transmit) {
            built += 1;
            match self.locals.get(self.outlets.transmit.local) {
                Some(side) => self.outlets.batches.push(&self.outlets.transmit, side),
                None => self.stats.send_errors += 1,
            }
        }
        self.outlets.transmit.packet.clear();
        let mut list = self.outlets.batches.take();
        for batch in list.drain(..) {
            let io = self.outlets.sockets.get(batch.slot.0).and_then(Option::as_ref);
            let io = io.filter(|_| !batch.bits.is_special());
            match io.map_or(Poll::Pending, |io| send(io, &batch)) {
                Poll::Ready(sent) if sent.errors == 0 => {
                    self.stats.sent(sent, batch.contents.len());
                    self.outlets.batches.recycle(batch);
                }
                other => self.outlets.left_over.push((batch, other)),
            }
        }
        self.outlets.batches.give_back(list);
        self.outlets.used |= built > 0;
        self.dispatch(now, shared);
        let later = match (self.engine.poll_timeout(), self.outlets.driver_wakes) {
            (Some(next), Some(promised)) => next >= promised,
            (next, _) => next.is_none(),
        };
        let settled = self.engine.is_settled() && self.endings.is_empty() && self.outlets.left_over.is_empty();
        !(later && built < LIMIT && settled)
    }
}
