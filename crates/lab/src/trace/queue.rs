//! What waits at a link, as its packets show it.

use super::line::{Line, OnLink};
use super::tracer::seconds;
use crate::node::SctpPacket;
use anabranch_base::Instant;
use anabranch_sim::network::{Event, What};
use std::collections::BTreeMap;

/// A queue is noted at most once in this many nanoseconds.
const EVERY: u64 = 5_000_000;

/// The queue of one link.
pub(super) struct Queue {
    link: String,
    paths: Vec<OnLink>,
    /// Sizes by packet number.
    packets: BTreeMap<u64, u32>,
    bytes: u64,
    /// When it was last noted, and how many packets there were.
    noted: Option<(Instant, usize)>,
}

impl Queue {
    pub(super) fn new(link: &str, paths: Vec<OnLink>) -> Self {
        Queue { link: link.to_owned(), paths, packets: BTreeMap::new(), bytes: 0, noted: None }
    }

    /// Takes an event of the link; returns a line where one is due.
    pub(super) fn note(&mut self, e: &Event<'_, SctpPacket>) -> Option<Line> {
        match e.what {
            What::Enqueued => {
                self.packets.insert(e.packet.number, e.packet.size);
                self.bytes += u64::from(e.packet.size);
            }
            // A loss on the wire hits what has left the queue already.
            What::Dequeued | What::Dropped(_) => self.bytes -= u64::from(self.packets.remove(&e.packet.number)?),
            _ => return None,
        }
        let due = |last: Instant| (e.at - last).as_nanos() >= EVERY;
        let packets = self.packets.len();
        // A single packet in transmission is no queue.
        let quiet = packets < 2 && self.noted.is_none_or(|t| t.1 < 2);
        if quiet || self.noted.is_some_and(|(at, n)| !due(at) || n == packets) {
            return None;
        }
        self.noted = Some((e.at, packets));
        let (link, paths) = (self.link.clone(), self.paths.clone());
        Some(Line::Queue { t: seconds(e.at), link, paths, packets, bytes: self.bytes })
    }
}
