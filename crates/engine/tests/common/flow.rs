//! Numbered messages that are checked as they arrive.

use super::{Bench, Side, ms};
use anabranch_base::{Duration, StreamId};
use anabranch_engine::{Message, SendOptions};
use bytes::Bytes;

/// A message that tells its stream, number and length, and whether a byte of it changed.
pub fn numbered(stream: u16, number: u32, len: usize) -> Bytes {
    let mut v = Vec::with_capacity(len.max(10));
    v.extend_from_slice(&stream.to_be_bytes());
    v.extend_from_slice(&number.to_be_bytes());
    v.extend_from_slice(&(len.max(10) as u32).to_be_bytes());
    let mut x = number.wrapping_mul(0x9e37_79b9) ^ u32::from(stream);
    while v.len() < len {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        v.push((x >> 24) as u8);
    }
    Bytes::from(v)
}

/// Stream and number of such a message; panics when it is not as it was sent.
pub fn number_of(m: &Message) -> (u16, u32) {
    let b = m.payload.clone().into_bytes();
    assert!(b.len() >= 10, "a message of {} bytes", b.len());
    let stream = u16::from_be_bytes([b[0], b[1]]);
    let number = u32::from_be_bytes([b[2], b[3], b[4], b[5]]);
    let len = u32::from_be_bytes([b[6], b[7], b[8], b[9]]) as usize;
    assert!(numbered(stream, number, len) == b, "message {number} of stream {stream} differs");
    assert_eq!(m.stream.0, stream, "message {number} came by another stream");
    (stream, number)
}

/// A reliable ordered flow on one stream, checked by content.
pub struct Flow {
    from: Side,
    stream: u16,
    size: usize,
    pub sent: u32,
    pub got: u32,
}

impl Flow {
    pub fn new(from: Side, stream: u16, size: usize) -> Flow {
        Flow { from, stream, size, sent: 0, got: 0 }
    }
    /// Sends until `total` messages are on their way or the buffer is full.
    pub fn send_to(&mut self, b: &mut Bench, total: u32) {
        let options = SendOptions { stream: StreamId(self.stream), ..SendOptions::default() };
        while self.sent < total && b.send(self.from, options, numbered(self.stream, self.sent, self.size)) {
            self.sent += 1;
        }
    }
    /// Takes what arrived; panics on loss, doubling, disorder and change.
    pub fn check(&mut self, b: &mut Bench) {
        let list = if self.from == Side::Client { &mut b.at_server } else { &mut b.at_client };
        for m in list.drain(..) {
            assert_eq!(number_of(&m), (self.stream, self.got), "out of order");
            self.got += 1;
        }
    }
    /// Sends `n` more and runs until they are there; the virtual time it took, none after `limit`.
    pub fn transfer(&mut self, b: &mut Bench, n: u32, limit: Duration) -> Option<Duration> {
        let (began, total) = (b.now, self.sent + n);
        let until = b.now + limit;
        while b.now < until {
            self.send_to(b, total);
            self.check(b);
            if self.got == total {
                return Some(b.now.since(began));
            }
            let next = (b.now + ms(20)).min(until);
            b.run_until(next, |_| false);
            b.now = next;
        }
        None
    }
    /// One message every `gap` for `time`, whatever arrives.
    pub fn stream(&mut self, b: &mut Bench, gap: Duration, time: Duration) {
        let until = b.now + time;
        while b.now < until {
            self.send_to(b, self.sent + 1);
            b.run_for(gap);
            self.check(b);
        }
    }
}
