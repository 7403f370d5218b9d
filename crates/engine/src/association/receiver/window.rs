//! The receive window (RFC 9260 §6.2).

use super::Receiver;
use anabranch_base::Tsn;

impl Receiver {
    /// What a SACK announces: nothing rather than less than a packet (silly window).
    ///
    /// A single message may fill the buffer: with nothing to read and nothing missing in between, reading cannot help,
    /// so the margin kept for holes is offered too.
    pub fn window(&self, packet: u64) -> u64 {
        let held = self.reassembly.held_bytes();
        let free = self.buffer.saturating_sub(held) as u64;
        if free >= packet {
            return free;
        }
        let alone = self.reassembly.ready_len() == 0 && !self.tracker.has_gap();
        let free = if alone { self.hard_limit().saturating_sub(held) as u64 } else { 0 };
        if free < packet { 0 } else { free }
    }

    /// The window for the SACK that leaves now.
    pub fn announce(&mut self, packet: u64) -> u64 {
        self.announced = self.window(packet);
        self.announced
    }

    /// Reading has opened the window by a quarter of the buffer since the last SACK.
    pub fn has_opened(&self, packet: u64) -> bool {
        self.window(packet) >= self.announced + self.buffer as u64 / 4
    }

    /// From now on the buffer has so many bytes.
    pub fn set_buffer(&mut self, bytes: usize) {
        self.buffer = bytes;
    }

    /// Most that is held when it closes holes, bytes.
    fn hard_limit(&self) -> usize {
        self.buffer + self.buffer / 4
    }

    /// How much may be held for `tsn` to be taken, bytes. A full buffer drops what is new at the top; a piece that
    /// closes a hole has a margin. The very next piece has another one when there is nothing to read: refused, it would
    /// come again for ever, for nothing else can make room.
    pub(super) fn room_for(&self, tsn: Tsn) -> usize {
        let next = tsn == self.tracker.cum().next();
        if next && self.reassembly.ready_len() == 0 {
            2 * self.buffer
        } else if next || tsn.before(self.tracker.highest()) {
            self.hard_limit()
        } else {
            self.buffer
        }
    }

    /// The buffer is full of one incomplete message: no reading will ever make room.
    pub(super) fn is_stuck(&self, packet: u64) -> bool {
        self.reassembly.ready_len() == 0 && !self.tracker.has_gap() && self.window(packet) == 0
    }
}
