//! What happened to a connection, kept so that a late reader does not miss the beginning.

use crate::shared::Shared;
use anabranch_base::{Duration, Instant};
use anabranch_engine::{AssocId, Event};
use std::collections::VecDeque;
use std::sync::Arc;

/// Events that are kept for each connection; older ones are forgotten.
const KEPT: usize = 1_024;

/// Shortest time between two events for messages given up, unless another event is due.
const GIVEN_UP_EVERY: Duration = Duration::from_secs(1);

/// An event and when it was seen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimedEvent {
    /// Time of the event, on the scale of [`now`](crate::now).
    pub at: Instant,
    /// The event itself.
    pub event: Event,
}

/// The events of one connection in order, each with a number.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// Number of the oldest event kept.
    first: u64,
    events: VecDeque<TimedEvent>,
    /// When messages given up were last reported, and how many have been since.
    reported: Option<Instant>,
    given_up: u64,
}

impl EventLog {
    /// Notes an event; false when there is nothing to read because of it.
    pub fn note(&mut self, at: Instant, event: Event) -> bool {
        if let Event::Abandoned { messages } = event {
            self.given_up += messages;
            // On a silent network every message is given up.
            if self.reported.is_some_and(|last| at.since(last) < GIVEN_UP_EVERY) {
                return false;
            }
            self.report_given_up(at);
            return true;
        }
        if self.given_up > 0 {
            self.report_given_up(at);
        }
        self.push(at, event);
        true
    }

    fn report_given_up(&mut self, at: Instant) {
        let messages = std::mem::take(&mut self.given_up);
        self.reported = Some(at);
        self.push(at, Event::Abandoned { messages });
    }

    fn push(&mut self, at: Instant, event: Event) {
        if self.events.len() == KEPT {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(TimedEvent { at, event });
    }

    /// The event with number `next` or, when that is forgotten, the oldest kept; `next` moves behind it.
    fn read(&self, next: &mut u64) -> Option<TimedEvent> {
        let number = (*next).max(self.first);
        let event = self.events.get(usize::try_from(number - self.first).ok()?)?.clone();
        *next = number + 1;
        Some(event)
    }
}

/// Events of a connection from its beginning: paths that come, go and change, messages given up, the end. Of messages
/// given up there is one event a second at most, with their number; [`AssocStats`](crate::AssocStats) has the sums. What
/// was on its way when it was given up may have arrived.
///
/// Does not keep the connection alive.
pub struct Events {
    shared: Arc<Shared>,
    id: AssocId,
    next: u64,
}

impl Events {
    pub(crate) fn new(shared: Arc<Shared>, id: AssocId) -> Self {
        Events { shared, id, next: 0 }
    }

    /// The next event; none after [`Event::Closed`].
    pub async fn next(&mut self) -> Option<TimedEvent> {
        loop {
            let signals = self.shared.lock().connections.get(&self.id)?.signals.clone();
            let changed = signals.changed.notified();
            {
                let core = self.shared.lock();
                let entry = core.connections.get(&self.id)?;
                if let Some(e) = entry.log.read(&mut self.next) {
                    return Some(e);
                }
                if entry.closed.is_some() {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// The next event if it has happened already.
    pub fn try_next(&mut self) -> Option<TimedEvent> {
        self.shared.lock().connections.get(&self.id)?.log.read(&mut self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_readers_start_at_the_oldest_kept() {
        let mut log = EventLog::default();
        for i in 0..KEPT as u64 + 3 {
            log.push(Instant::from_nanos(i), Event::Connected);
        }
        let mut next = 0;
        assert_eq!(log.read(&mut next).unwrap().at, Instant::from_nanos(3));
        assert_eq!(log.read(&mut next).unwrap().at, Instant::from_nanos(4));
        let mut read = 2;
        while log.read(&mut next).is_some() {
            read += 1;
        }
        assert_eq!(read, KEPT);
        log.push(Instant::FAR, Event::PeerShutdown);
        assert_eq!(log.read(&mut next).unwrap().event, Event::PeerShutdown);
    }

    #[test]
    fn messages_given_up_are_summed() {
        let mut log = EventLog::default();
        let at = Instant::from_millis;
        let noted: Vec<bool> = (0..2_500).map(|ms| log.note(at(ms), Event::Abandoned { messages: 2 })).collect();
        assert_eq!(noted.iter().filter(|t| **t).count(), 3, "one a second");
        assert!(log.note(at(2_501), Event::PeerShutdown));
        let mut next = 0;
        let all: Vec<Event> = std::iter::from_fn(|| log.read(&mut next)).map(|e| e.event).collect();
        let sums: Vec<u64> = all
            .iter()
            .filter_map(|e| if let Event::Abandoned { messages } = e { Some(*messages) } else { None })
            .collect();
        assert_eq!(sums, [2, 2_000, 2_000, 998], "and the rest with what happens next");
        assert_eq!(all.last(), Some(&Event::PeerShutdown));
    }
}
