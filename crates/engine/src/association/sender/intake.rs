//! Messages that the user hands over, and whether there is room for more.

use crate::association::{Association, SendError};
use crate::message::SendOptions;
use anabranch_base::Instant;
use anabranch_policy::Asks;
use bytes::Bytes;

/// What a message or a chunk of one takes of the send buffer at least, in the mean of all that are in it, bytes: without
/// it a peer that shuts its window would make a user of small messages hold a hundred times the buffer.
const LEAST_PIECE: u64 = 256;

/// What a user has under way who only answers, or sends a little now and then, packets: that leaves at once, whatever a
/// path carries.
const FEW_PACKETS: u64 = 4;

/// There is room in the send buffer again when this part of it is free.
const ROOM: u64 = 32;

impl Association {
    /// Hands a message over. Units of the deadline are those of `now`.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is taken on an error.
    pub fn send(&mut self, now: Instant, options: SendOptions, payload: Bytes) -> Result<(), SendError> {
        self.offer(now, options, payload).map_err(|(why, _)| why)
    }

    /// [`send`](Self::send) that gives the payload back where it is not taken: who tries again need not share it.
    ///
    /// # Errors
    /// See [`SendError`]; nothing is taken on an error.
    pub fn offer(&mut self, now: Instant, options: SendOptions, payload: Bytes) -> Result<(), (SendError, Bytes)> {
        if let Err(why) = self.takes(&options, payload.len()) {
            return Err((why, payload));
        }
        self.stats.messages_sent += 1;
        self.stats.bytes_sent += payload.len() as u64;
        if !self.sender.sends() {
            let held = self.sender.queue.bytes() + self.sender.board.held_bytes() + payload.len() as u64;
            if held > FEW_PACKETS * self.paths.mtu() {
                self.means_to_send(now);
            }
        }
        self.sender.may_give_up |= options.deadline.is_some() || options.max_retransmissions.is_some();
        self.sender.groups.queued(options.group, payload.len() as u64);
        if let Some(deadline) = options.deadline {
            self.sender.carried.lives(deadline.since(now));
            self.sender.load.add(now, options.class, payload.len() as u64);
        }
        self.give_up_waiting(now);
        self.sender.queue.push(now, options, payload);
        self.sender.user_sends = true;
        if !self.policies.ask(Asks::REPAIRED) {
            self.opportunity();
        } else {
            self.sender.scheduler_blocked = false;
        }
        Ok(())
    }

    /// Is there room for a message of `len` bytes, or can it be made?
    #[inline]
    fn takes(&mut self, options: &SendOptions, len: usize) -> Result<(), SendError> {
        if !self.handshake.state().takes_user_data() {
            return Err(SendError::Closed);
        }
        if len == 0 {
            return Err(SendError::Empty);
        }
        if self.handshake.state().is_connected() && options.stream.0 >= self.sender.outbound_streams {
            return Err(SendError::InvalidStream(self.sender.outbound_streams));
        }
        if len > self.config.limits.send_buffer {
            let most = self.config.limits.send_buffer as u64;
            return Err(SendError::TooLarge { most, limit: "`limits.send_buffer`" });
        }
        if !self.config.messages.fragmentation && len as u64 > self.paths.mtu() {
            let limit = "one packet, as `messages.fragmentation` is off";
            return Err(SendError::TooLarge { most: self.paths.mtu(), limit });
        }
        let excess = self.held_for_sending(len as u64).saturating_sub(self.config.limits.send_buffer as u64);
        if excess > 0 && !self.make_room(options, excess) {
            self.sender.want_writable = true;
            self.sender.refused = len as u64;
            return Err(SendError::WouldBlock);
        }
        self.sender.refused = 0;
        Ok(())
    }

    /// Gives a stream its priority (0 is the best) or weight, for the stream schedulers `priority` and `weighted_fair`
    /// (RFC 8260 §4.3.3); none takes it away.
    pub fn set_stream_value(&mut self, stream: anabranch_base::StreamId, value: Option<u16>) {
        self.sender.queue.set_value(stream, value);
    }

    /// What fills the send buffer, with `bytes` of a message more: payload, or what small pieces cost where that is
    /// more.
    fn held_for_sending(&self, bytes: u64) -> u64 {
        let pieces = self.sender.queue.waiting() + self.sender.board.chunks();
        (self.sender.queue.bytes() + self.sender.board.held_bytes() + bytes).max(LEAST_PIECE * pieces)
    }

    /// Would `send` take a message that is not larger than half the buffer, and the one that it refused last?
    pub fn is_writable(&self) -> bool {
        self.handshake.state().takes_user_data() && self.takes_more()
    }

    /// Was a message refused for which there is no room yet?
    pub fn is_refusing(&self) -> bool {
        self.sender.refused > 0 && self.handshake.state().takes_user_data() && !self.takes_more()
    }

    /// Is there room for what was refused, and for more than a packet? The buffer fills as fast as it drains, and its
    /// user is not woken for each packet.
    pub(in crate::association) fn takes_more(&self) -> bool {
        let buffer = self.config.limits.send_buffer as u64;
        let room = (buffer / ROOM).max(self.paths.mtu() + 1).min(buffer / 2).max(self.sender.refused);
        self.held_for_sending(room) <= buffer
    }

    /// The buffer has room again for what was refused.
    pub(in crate::association) fn is_writable_again(&self) -> bool {
        self.sender.want_writable && self.takes_more()
    }

    /// The user knows that there is room again.
    pub(in crate::association) fn note_writable(&mut self) {
        self.sender.want_writable = false;
    }
}
