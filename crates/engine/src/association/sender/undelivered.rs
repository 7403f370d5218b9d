//! Messages that did not arrive, for a user that wants them back (RFC 9260 §11.1 G and H, receive unsent and receive
//! unacknowledged message).

use super::Sender;
use crate::association::Association;
use crate::lazy_box::Empty;
use crate::message::{Payload, SendOptions};
use crate::tx::scoreboard::{Chunk, ChunkState};
use anabranch_base::StreamId;
use bytes::Bytes;
use std::collections::BTreeMap;

/// A message that was not acknowledged as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undelivered {
    /// Which it is: messages of an association are counted from 0 as [`Association::send`] takes them.
    pub number: u64,
    /// Its stream.
    pub stream: StreamId,
    /// It was to be delivered out of order.
    pub unordered: bool,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Some of it was sent.
    pub sent: bool,
    /// What was not acknowledged of it.
    pub payload: Payload,
}

/// Kept for [`Association::take_given_up`].
#[derive(Default)]
pub(in crate::association) struct GivenUp {
    messages: Vec<Undelivered>,
    bytes: u64,
}

impl GivenUp {
    /// Keeps a message, up to `most` bytes of them: beyond that the user does not read them.
    pub fn keep(&mut self, m: Undelivered, most: u64) {
        let len = m.payload.len() as u64;
        if self.bytes + len <= most {
            self.bytes += len;
            self.messages.push(m);
        }
    }
}

impl Undelivered {
    /// One of which nothing was sent.
    pub(in crate::association) fn unsent(number: u64, o: &SendOptions, payload: Bytes) -> Undelivered {
        let (stream, unordered, ppid) = (o.stream, o.unordered, o.ppid);
        Undelivered { number, stream, unordered, ppid, sent: false, payload: Payload::single(payload) }
    }
}

impl Empty for GivenUp {
    const EMPTY: &'static Self = &GivenUp { messages: Vec::new(), bytes: 0 };
}

/// Messages put together from their pieces, in the order in which they were handed over.
#[derive(Default)]
struct Pieces(BTreeMap<u64, (Undelivered, Vec<Bytes>)>);

impl Pieces {
    fn add_chunk(&mut self, c: &Chunk) {
        let h = &c.header;
        let new = || {
            let (stream, unordered, ppid) = (h.stream, h.flags.unordered, h.ppid);
            let m =
                Undelivered { number: c.message, stream, unordered, ppid, sent: false, payload: Payload::default() };
            (m, Vec::new())
        };
        let (m, pieces) = self.0.entry(c.message).or_insert_with(new);
        m.sent |= c.transmissions > 0;
        pieces.push(c.payload.clone());
    }

    fn add_rest(&mut self, number: u64, o: &SendOptions, rest: Bytes) {
        let new = || {
            let (stream, unordered, ppid) = (o.stream, o.unordered, o.ppid);
            (Undelivered { number, stream, unordered, ppid, sent: false, payload: Payload::default() }, Vec::new())
        };
        self.0.entry(number).or_insert_with(new).1.push(rest);
    }

    fn messages(self) -> impl Iterator<Item = Undelivered> {
        let whole = |(m, pieces): (Undelivered, Vec<Bytes>)| Undelivered { payload: Payload::from_pieces(pieces), ..m };
        self.0.into_values().map(whole)
    }
}

impl Association {
    /// What was handed over and is neither acknowledged nor given up, oldest first. Meant for after the end.
    pub fn undelivered(&self) -> Vec<Undelivered> {
        let mut all = Pieces::default();
        let unsettled =
            |c: &&Chunk| !matches!(c.state, ChunkState::Acked | ChunkState::Abandoned) && !c.parity && !c.repaired;
        self.sender.board.iter().map(|(_, c)| c).filter(unsettled).for_each(|c| all.add_chunk(c));
        self.sender.queue.for_each_left(|number, options, rest| all.add_rest(number, options, rest));
        all.messages().collect()
    }

    /// Messages that were given up since this was asked last; none but with
    /// [`return_given_up`](crate::config::Messages::return_given_up).
    pub fn take_given_up(&mut self) -> Vec<Undelivered> {
        self.sender.given_up.used().map(std::mem::take).map(|g| g.messages).unwrap_or_default()
    }
}

impl Sender {
    /// Keeps the message of a chunk that is about to be given up.
    pub(in crate::association) fn keep_given_up(&mut self, tsn: u64) {
        let mut all = Pieces::default();
        for t in self.board.message_tsns(tsn) {
            if let Some(c) = self.board.get(t).filter(|c| c.state != ChunkState::Acked) {
                all.add_chunk(c);
            }
        }
        let number = self.board.get(tsn).map(|c| c.message);
        self.queue.for_each_left(|n, options, rest| {
            if Some(n) == number {
                all.add_rest(n, options, rest);
            }
        });
        let limit = self.buffer;
        all.messages().for_each(|m| self.given_up.keep(m, limit));
    }
}
