//! The books of one direction: what was sent, what came, what was given up, what a restart took.

use anabranch_engine::Message;
use bytes::Bytes;
use std::collections::VecDeque;

/// Streams 0 and 1 are ordered and reliable.
pub const UNORDERED: u16 = 2;
/// Ordered, with deadlines.
pub const PARTIAL: u16 = 3;
const STREAMS: usize = 4;
/// Epoch, stream, number, hash.
const HEADER: usize = 18;

/// A message that has not arrived: its number and the hash of its content.
pub type Entry = (u32, u64);

#[derive(Default)]
pub struct Ledger {
    /// Counts the associations.
    pub epoch: u32,
    next: [u32; STREAMS],
    open: [VecDeque<Entry>; STREAMS],
    /// Of the association before: what was on its way may still come.
    late: [VecDeque<Entry>; STREAMS],
    pub messages: u64,
    pub bytes: u64,
    pub delivered: u64,
    pub given_up: u64,
    pub lost: u64,
    /// Not delivered when their association ended.
    pub on_the_way: u64,
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// A message that says what it is, and its entry.
pub fn message(epoch: u32, stream: u16, number: u32, len: usize) -> (Bytes, Entry) {
    let mut body = vec![0; len.max(HEADER)];
    let mut x =
        (u64::from(epoch) << 48 ^ u64::from(stream) << 32 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in body[HEADER..].chunks_mut(8) {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        chunk.copy_from_slice(&(x ^ x >> 29).to_le_bytes()[..chunk.len()]);
    }
    let h = hash(&body[HEADER..]);
    body[..4].copy_from_slice(&epoch.to_be_bytes());
    body[4..6].copy_from_slice(&stream.to_be_bytes());
    body[6..10].copy_from_slice(&number.to_be_bytes());
    body[10..18].copy_from_slice(&h.to_be_bytes());
    (Bytes::from(body), (number, h))
}

impl Ledger {
    pub fn next_number(&self, stream: u16) -> u32 {
        self.next[usize::from(stream)]
    }

    pub fn sent(&mut self, stream: u16, entry: Entry, len: usize) {
        let s = usize::from(stream);
        self.next[s] += 1;
        self.open[s].push_back(entry);
        self.messages += 1;
        self.bytes += len as u64;
    }

    pub fn arrived(&mut self, m: Message) {
        let stream = m.stream.0;
        let body = m.payload.into_bytes();
        let field = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        let (epoch, number) = (field(0), field(6));
        let said = u16::from_be_bytes([body[4], body[5]]);
        assert_eq!(said, stream, "by another stream");
        let h = hash(&body[HEADER..]);
        let list = match self.epoch.checked_sub(epoch) {
            Some(0) => &mut self.open,
            Some(1) => &mut self.late,
            _ => panic!("message {number} of epoch {epoch} in epoch {}", self.epoch),
        };
        let list = &mut list[usize::from(stream)];
        let at = list.iter().position(|e| e.0 == number);
        let Some(at) = at else { panic!("message {number} of stream {stream} came twice, or was never sent") };
        if stream == PARTIAL {
            self.given_up += at as u64;
            list.drain(..at);
        } else {
            assert!(at == 0 || stream == UNORDERED, "message {number} of stream {stream} overtook {:?}", list.front());
        }
        let at = if stream == PARTIAL { 0 } else { at };
        assert_eq!(list.remove(at), Some((number, h)), "its content changed");
        self.delivered += 1;
    }

    /// The association is over; what is on its way is lost unless it still comes.
    pub fn begin_epoch(&mut self) {
        self.bury();
        core::mem::swap(&mut self.late, &mut self.open);
        self.on_the_way += self.late.iter().map(|l| l.len() as u64).sum::<u64>();
        self.next = [0; STREAMS];
        self.epoch += 1;
    }

    fn bury(&mut self) {
        for l in &mut self.late {
            self.lost += l.len() as u64;
            l.clear();
        }
    }

    /// Nothing has been sent for a while: what has not come never will.
    pub fn settle(&mut self) {
        self.bury();
        for (stream, l) in self.open.iter_mut().enumerate() {
            if stream == usize::from(PARTIAL) {
                self.given_up += l.len() as u64;
                l.clear();
            }
            assert!(l.is_empty(), "stream {stream}: {} messages are missing, first {:?}", l.len(), l.front());
        }
    }
}
