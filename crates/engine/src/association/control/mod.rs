//! Control chunks that wait to leave, and those of the peer that end or complain.

mod encode;
mod peer_errors;

use crate::association::receive::Source;
use anabranch_base::{Duration, Instant, PathId, Tsn};
use anabranch_wire::{Cause, Encode};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// A control chunk for a path.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub path: PathId,
    pub what: What,
    /// Leaves for this address instead of the path's.
    pub to: Option<Source>,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Init,
    /// First in its packet; an ERROR about the INIT ACK and the probe of an unconfirmed address may follow.
    CookieEcho(Arc<[u8]>),
    CookieAck,
    Heartbeat(u64),
    /// A HEARTBEAT of `size` bytes (RFC 8899 §4.1).
    PathProbe {
        nonce: u64,
        size: usize,
    },
    /// The window is cut: the highest TSN sent before.
    Cwr(Tsn),
    /// The parameters of a HEARTBEAT, to be returned unchanged.
    HeartbeatAck(Bytes),
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Abort(Bytes),
    /// To a peer that has no tag.
    AbortReflected(Bytes),
    Error(Bytes),
    Asconf {
        serial: u32,
        address: IpAddr,
        params: Bytes,
    },
    AsconfAck {
        serial: u32,
        params: Bytes,
    },
    /// The beginning of a packet that arrived damaged, and the length of all of it.
    Damage {
        shown: Bytes,
        whole_len: u16,
    },
    /// Parameters of RE-CONFIG; is it an answer?
    ReConfig {
        params: Bytes,
        answer: bool,
    },
}

/// The last chunk of an association.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goodbye<'a> {
    /// An ABORT with these causes.
    Abort(&'a Bytes),
    ShutdownComplete,
}

impl What {
    /// Stands alone in its packet: by rule (RFC 9260 §5.1), because nothing may follow it, or because AUTH covers it.
    fn alone(&self) -> bool {
        use What::{CookieAck, Cwr, Error, Heartbeat, HeartbeatAck, ReConfig, Shutdown, ShutdownAck};
        !matches!(
            self,
            CookieAck | Cwr(_) | HeartbeatAck(_) | Error(_) | Heartbeat(_) | Shutdown | ShutdownAck | ReConfig { .. }
        )
    }
    /// The peer's own chunk asks for it, so that the peer could ask for any number.
    fn is_answer(&self) -> bool {
        matches!(self, What::HeartbeatAck(_) | What::Cwr(_) | What::Error(_) | What::ReConfig { answer: true, .. })
    }
    /// Bytes in a packet, of chunks that may share one and of answers.
    fn len(&self) -> usize {
        match self {
            What::HeartbeatAck(b) | What::Error(b) | What::ReConfig { params: b, .. } => {
                4 + b.len().next_multiple_of(4)
            }
            _ => HEARTBEAT_LEN,
        }
    }
    /// Saying it twice says no more.
    fn repeats(&self, other: &What) -> bool {
        use What::{CookieAck, Cwr, Shutdown, ShutdownAck};
        matches!(
            (self, other),
            (CookieAck, CookieAck) | (Cwr(_), Cwr(_)) | (Shutdown, Shutdown) | (ShutdownAck, ShutdownAck)
        )
    }
}

/// Our HEARTBEAT: chunk and parameter header, path and nonce, padding.
const HEARTBEAT_LEN: usize = 20;

/// Encoded error causes.
pub(in crate::association) fn causes(c: &[Cause<'_>]) -> Bytes {
    let mut out = Vec::new();
    for c in c {
        c.encode(&mut out);
    }
    Bytes::from(out)
}

/// Chunks that wait, beyond which answers are dropped: a peer that asks faster than we can answer loses its answers, not our memory.
const MAX_CONTROL: usize = 64;

/// Reports of damage that may leave one right after the other.
const DAMAGE_BURST: u64 = 8;
/// From one to the next otherwise.
const DAMAGE_PAUSE: Duration = Duration::from_millis(50);

/// Control chunks that wait to leave.
#[derive(Debug, Default)]
pub(in crate::association) struct ControlOut {
    queue: VecDeque<Control>,
    /// Bytes left for answers to the packet at hand.
    answer_room: usize,
    /// Damage was reported so often that steadily sent reports would last until then.
    damage_reported_until: Instant,
    /// Nothing may be added any more.
    closed: bool,
}

impl ControlOut {
    /// Queues a chunk. Answers that have no room are dropped; ABORT and the shutdown family always find room.
    pub fn push(&mut self, path: PathId, what: What) {
        if self.closed || what.is_answer() && !self.answer_fits(&what) {
            return;
        }
        if self.queue.iter().any(|c| c.path == path && c.what.repeats(&what)) {
            return;
        }
        self.queue.push_back(Control { path, what, to: None });
    }

    /// Queues an answer to an address that is no path.
    pub fn push_answer_to(&mut self, to: Source, what: What) {
        if self.has_room() {
            self.queue.push_back(Control { path: PathId(0), what, to: Some(to) });
        }
    }

    /// A packet came: its answers have one packet's room (RFC 9260 §12.4).
    pub fn begin_answers(&mut self, room: usize) {
        self.answer_room = room;
    }

    /// Bytes left for answers to the packet at hand.
    pub fn answer_room(&self) -> usize {
        self.answer_room
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// May another answer wait?
    pub fn has_room(&self) -> bool {
        self.queue.len() < MAX_CONTROL
    }

    /// May damage be reported at `now`? A report that may counts towards the next ones.
    pub fn takes_damage_report(&mut self, now: Instant) -> bool {
        let until = self.damage_reported_until.max(now);
        let takes = until.since(now) <= DAMAGE_PAUSE * (DAMAGE_BURST - 1) && self.has_room();
        if takes {
            self.damage_reported_until = until + DAMAGE_PAUSE;
        }
        takes
    }

    pub fn clear(&mut self) {
        self.queue.clear();
    }

    /// The path is gone, and with it what was to leave on it; answers whether an ASCONF was among that.
    pub fn forget_path(&mut self, id: PathId) -> bool {
        let asconf = self.queue.iter().any(|c| c.path == id && matches!(c.what, What::Asconf { .. }));
        self.queue.retain(|c| c.path != id || c.to.is_some());
        asconf
    }

    /// The association is over: what says goodbye may still leave, nothing else.
    pub fn close(&mut self) {
        self.queue.retain(|c| matches!(c.what, What::Abort(_) | What::AbortReflected(_) | What::ShutdownComplete));
        self.closed = true;
    }

    /// The last word, which waits to leave.
    pub fn goodbye(&self) -> Option<Goodbye<'_>> {
        self.queue.iter().find_map(|c| match &c.what {
            What::Abort(causes) => Some(Goodbye::Abort(causes)),
            What::ShutdownComplete => Some(Goodbye::ShutdownComplete),
            _ => None,
        })
    }

    fn answer_fits(&mut self, what: &What) -> bool {
        if !self.has_room() {
            self.answer_room = 0;
        }
        let left = self.answer_room.checked_sub(what.len());
        self.answer_room = left.unwrap_or(self.answer_room);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(len: usize) -> What {
        What::Error(Bytes::from(vec![0; len]))
    }

    #[test]
    fn answers_have_the_room_of_one_packet() {
        let mut c = ControlOut::default();
        c.begin_answers(100);
        for _ in 0..5 {
            c.push(PathId(0), error(40));
        }
        assert_eq!((c.len(), c.answer_room()), (2, 12));
        // What answers nothing always finds room.
        c.push(PathId(0), What::Abort(Bytes::new()));
        assert_eq!(c.len(), 3);
    }

    #[test]
    fn a_peer_that_asks_faster_than_it_is_answered_loses_answers() {
        let mut c = ControlOut::default();
        for _ in 0..10 * MAX_CONTROL {
            c.begin_answers(1_000);
            c.push(PathId(0), error(8));
        }
        assert_eq!((c.len(), c.answer_room()), (MAX_CONTROL, 0));
    }

    #[test]
    fn damage_is_reported_in_a_burst_and_then_at_a_steady_rate() {
        let mut c = ControlOut::default();
        let mut reports = |ms| (0..20).filter(|_| c.takes_damage_report(Instant::from_millis(ms))).count();
        assert_eq!([1_000, 1_049, 1_050, 1_150, 60_000].map(&mut reports), [8, 0, 1, 2, 8]);
    }

    #[test]
    fn once_closed_only_goodbyes_are_left_and_nothing_is_added() {
        let mut c = ControlOut::default();
        c.push(PathId(0), What::Shutdown);
        c.push(PathId(0), What::Shutdown);
        c.push(PathId(1), What::Abort(Bytes::new()));
        assert_eq!(c.len(), 2);
        c.close();
        c.push(PathId(0), What::ShutdownAck);
        assert_eq!(c.len(), 1);
    }
}
