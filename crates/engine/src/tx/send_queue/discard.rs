//! What is dropped before it has a TSN: for want of room, of time, or because the user ends.

use super::SendQueue;
use crate::message::SendOptions;
use anabranch_base::{Instant, StreamId};
use bytes::Bytes;

impl SendQueue {
    /// Drops messages of a lower priority than `than` (a larger number; none is above all), the lowest and newest
    /// first, until `bytes` are free; each is handed to `dropped` with its number. Nothing when they do not suffice.
    pub fn discard_below(
        &mut self,
        than: Option<u32>,
        bytes: u64,
        dropped: &mut dyn FnMut(u64, &SendOptions, Bytes),
    ) -> bool {
        let (mut victims, mut free) = (Vec::new(), 0);
        for &(p, message, stream) in self.droppable.iter().rev() {
            if free >= bytes || than.is_some_and(|than| p <= than) {
                break;
            }
            free += self.queued(stream, message).map_or(0, |(_, m)| m.payload.len() as u64);
            victims.push((p, message, stream));
        }
        if free < bytes {
            return false;
        }
        for (p, message, stream) in victims {
            self.droppable.remove(&(p, message, stream));
            let Some((i, _)) = self.queued(stream, message) else { continue };
            let Some(s) = self.streams.get_mut(stream) else { continue };
            let Some(m) = s.queue.remove(i) else { continue };
            self.bytes -= m.payload.len() as u64;
            self.waiting -= 1;
            dropped(m.message, &m.options, m.payload);
            if i == 0 {
                self.show_head(stream);
            }
        }
        true
    }

    /// Drops the messages whose deadline is over; each is handed to `dropped` with its number. A message that is being cut
    /// goes on.
    pub fn discard_late(&mut self, now: Instant, dropped: &mut dyn FnMut(u64, &SendOptions, Bytes)) {
        let SendQueue { streams, turns, droppable, bytes, waiting, interleaved, .. } = self;
        for (stream, s) in streams.iter_mut() {
            let before = s.queue.len();
            s.queue.retain_mut(|m| {
                let late = m.options.deadline.is_some_and(|d| now > d);
                if late {
                    if let Some(p) = m.options.discard_priority {
                        droppable.remove(&(p, m.message, stream));
                    }
                    *bytes -= m.payload.len() as u64;
                    *waiting -= 1;
                    dropped(m.message, &m.options, core::mem::take(&mut m.payload));
                }
                !late
            });
            if s.queue.len() < before {
                let begun = interleaved.as_ref().is_some_and(|all| all.contains_key(&stream));
                turns.show(stream, &mut s.standing, begun || !s.queue.is_empty());
            }
        }
    }

    /// Drops what waits on `stream`; a message that is being cut goes on. `dropped` gets each with its length.
    pub fn discard(&mut self, stream: StreamId, dropped: &mut dyn FnMut(&SendOptions, u64)) {
        let Some(s) = self.streams.get_mut(stream.0) else { return };
        for m in s.queue.drain(..) {
            if let Some(p) = m.options.discard_priority {
                self.droppable.remove(&(p, m.message, stream.0));
            }
            self.bytes -= m.payload.len() as u64;
            self.waiting -= 1;
            dropped(&m.options, m.payload.len() as u64);
        }
        self.show_head(stream.0);
    }
}
